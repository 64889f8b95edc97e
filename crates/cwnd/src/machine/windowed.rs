//! The windowed machine: slow start, congestion avoidance, recovery, timeout, undo and the clamps
//! around a [`WindowLaw`].
//!
//! ```text
//!                 w >= ssthresh; the law or the slow start ends it
//!  slow start ------------------------------------------------------> avoidance --\
//!   |  ^   ^                                                            |  ^  ^   | mark
//!   |  |   \--- timeout: w = 1; persistent congestion: w = 2; ---------/|  |  \---/
//!   |  |        reduction by the driver: w < ssthresh                   |  |
//!   |  |                                                           loss |  | recovered,
//!   |  |                                                                v  | or inferred
//!   |  \------- timeout: w = 1; persistent congestion: w = 2 -------- recovery
//!   |                                                                   ^
//!   \--------------------------------- loss ----------------------------/
//! ```
//!
//! * There is one reduction for each window of data: signals of packets sent before the last
//!   reduction change nothing, and neither do losses and marks during recovery.
//! * The window does not grow during recovery.
//! * A timeout and persistent congestion restart slow start from every state.
//! * A mark in slow start ends it, as in congestion avoidance. Where recovery is inferred (RFC 9002
//!   section 7.3.2), a mark begins one as a loss does.
//! * Recovery returns to slow start if the threshold exceeds the window: by a law's own threshold,
//!   or a reduction by the driver.
//! * Undo returns to the state before the last reduction, and ends a recovery.
//! * A change of the packet size changes no state: the window, the threshold, the largest window
//!   and those that an undo restores stay the same numbers of bytes.

use super::slow_start::{AnySlowStart, Growth};
use crate::controller::{Controller, Cut, Needs, Settings};
use crate::conventions::{Conventions, Decided, Decision};
use crate::event::{Acked, Event, Limit, Lost, Marked, Output};
use crate::law::{Context, Round, Signal, WindowLaw};
use crate::parts::{MAX_WINDOW, PERSISTENT_WINDOW, rescale_max_window};
use crate::rtt::Rtt;
use crate::units::{Packets, Rate, Time};
use alloc::boxed::Box;
use libm::floor;

/// A window law in its machine. Small and on few cache lines: a simulation holds one for each flow.
#[derive(Clone, Debug)]
pub struct Windowed<L> {
    law: L,
    window: f64,
    ssthresh: f64,
    max_window: f64,
    rtt: Option<Rtt>,
    /// The start of the connection before the first reduction.
    last_cut: Time,
    conventions: &'static Conventions,
    /// A slow start other than the standard one, until the end of the first slow start; that of
    /// Linux always.
    slow_start: Option<Box<AnySlowStart>>,
    congestion: Option<Box<Congestion<L>>>,
    packet: u32,
    /// Single precision for the sake of size.
    slow_start_limit: f32,
    /// 0 without pacing.
    pacing: f32,
    /// The pacing rate below half of the threshold over that above.
    startup_pacing: f32,
    in_recovery: bool,
    /// Whether the law knows the window at which congestion avoidance began.
    entered: bool,
    /// Whether there was a reduction.
    cut_before: bool,
    /// Whether the last congestion signal was a mark.
    marked: bool,
}

/// State from the first congestion signal on.
#[derive(Clone, Debug)]
struct Congestion<L> {
    round: Round,
    /// When the round began, and the packets sent until then.
    round_began: (Time, u64),
    undo: Option<Saved<L>>,
    cut: Option<Cut>,
}

impl<L> Default for Congestion<L> {
    fn default() -> Self {
        Congestion { round: Round::default(), round_began: (Time::ZERO, 0), undo: None, cut: None }
    }
}

/// The state before a reduction, for the case that it was spurious.
#[derive(Clone, Debug)]
struct Saved<L> {
    law: L,
    window: f64,
    ssthresh: f64,
    entered: bool,
    slow_start: Option<Box<AnySlowStart>>,
}

impl<L: WindowLaw + Clone> Windowed<L> {
    /// A controller that runs `law` from the start of a connection.
    pub fn new(mut law: L, settings: &Settings) -> Self {
        law.adopt(settings.conventions);
        let max_window = settings.max_window.get().min(MAX_WINDOW);
        let conventions = settings.conventions;
        Windowed {
            law,
            window: settings.initial_window.get().clamp(conventions.least_window, MAX_WINDOW),
            ssthresh: if conventions.threshold_from_max_window {
                max_window
            } else {
                f64::INFINITY
            },
            max_window,
            rtt: None,
            last_cut: Time::ZERO,
            conventions,
            slow_start: AnySlowStart::new(settings),
            congestion: None,
            packet: settings.packet,
            slow_start_limit: settings.slow_start_limit as f32,
            pacing: settings.pacing.map_or(0.0, |factor| factor as f32),
            startup_pacing: settings.startup_pacing as f32,
            in_recovery: false,
            entered: false,
            cut_before: false,
            marked: false,
        }
    }

    /// The law.
    pub fn law(&self) -> &L {
        &self.law
    }

    /// Replaces the law during a connection. The window, the threshold and the slow start stay, and
    /// the reversal of a reduction keeps the new law.
    pub fn replace_law(&mut self, mut law: L) {
        law.adopt(self.conventions);
        if let Some(saved) =
            self.congestion.as_mut().and_then(|congestion| congestion.undo.as_mut())
        {
            (saved.law, saved.entered) = (law.clone(), false);
        }
        (self.law, self.entered) = (law, false);
    }

    /// The law, without its machine.
    pub fn into_law(self) -> L {
        self.law
    }

    /// The congestion window.
    #[inline]
    pub fn window(&self) -> Packets {
        Packets::new(at_most(self.window, self.max_window))
    }

    /// The congestion window before the largest window limits it.
    #[inline]
    pub fn unclamped(&self) -> Packets {
        Packets::new(self.window)
    }

    /// The slow-start threshold; infinite before the first reduction.
    pub fn ssthresh(&self) -> Packets {
        Packets::new(self.ssthresh)
    }

    /// Whether the sender is in slow start.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.window < self.ssthresh
    }

    /// Whether the machine gives a pacing rate.
    pub fn is_paced(&self) -> bool {
        self.pacing > 0.0
    }

    /// Whether the sender is in loss recovery.
    pub fn in_recovery(&self) -> bool {
        self.in_recovery
    }

    #[inline]
    fn context(&self, now: Time) -> Context {
        Context {
            now,
            rtt: self.rtt,
            last_cut: self.last_cut,
            packet: self.packet,
            slow_start: self.in_slow_start(),
        }
    }

    /// An acknowledgement arrived.
    #[inline(always)]
    fn acked(&mut self, now: Time, acked: &Acked) {
        let known = self.rtt;
        let rtt = acked.rtt.map_or(known, |sample| Some(Rtt::update(known, sample)));
        self.rtt = rtt;
        let cx = Context { rtt, ..self.context(now) };
        self.law.observe(acked, &cx);
        // RFC 9002 section 7.3.2, for drivers that do not report the end of recovery.
        if self.in_recovery && self.conventions.infers_recovery && acked.sent_at > self.last_cut {
            self.recovered(now);
        }
        if self.in_recovery || acked.echo || acked.credit == 0 {
            return;
        }
        // RFC 7661: a window that is not used is not validated by acknowledgements. At the largest
        // window the law still runs: it may decrease the window (Vegas).
        let used = matches!(acked.limit, Limit::Window | Limit::Pacing);
        let full = acked.limit == Limit::Receiver && self.window >= self.max_window;
        if !used && !full && !self.conventions.grows_unused {
            if self.slow_start.is_some() {
                self.unused(&{ *acked }, cx);
            }
            return;
        }
        if self.in_slow_start() {
            let credit = f64::from(acked.credit).min(f64::from(self.slow_start_limit));
            self.slow_start(acked, credit, cx);
        } else {
            if !self.entered {
                self.enter(cx);
            }
            let grown = self.law.grow(self.window, f64::from(acked.credit), &cx);
            self.window = grown.max(self.conventions.least_window);
            // A law may decrease its window (Vegas): that does not return to slow start.
            self.ssthresh = self.ssthresh.min(self.window);
        }
        self.window = at_most(self.window, self.largest());
    }

    /// The largest window that growth reaches, in packets.
    #[inline]
    fn largest(&self) -> f64 {
        if self.conventions.grows_past_max_window { MAX_WINDOW } else { self.max_window }
    }

    /// An acknowledgement for which the window does not grow, because it does not limit the sender.
    /// A slow start other than the standard one observes it.
    #[cold]
    fn unused(&mut self, acked: &Acked, cx: Context) {
        if self.in_slow_start() {
            self.slow_start(acked, 0.0, cx);
        }
    }

    /// An acknowledgement in slow start, by which the window may grow by `credit` packets.
    #[inline(always)]
    fn slow_start(&mut self, acked: &Acked, credit: f64, cx: Context) {
        let Growth { window, done } = match &mut self.slow_start {
            None => Growth { window: self.window + credit, done: false },
            // Copies: passing a reference to a non-inlined function forces the value out of
            // registers.
            Some(law) => law.grow(self.window, credit, &{ *acked }, &{ cx }),
        };
        // A threshold above the largest window would never be reached.
        let grown = window.max(self.conventions.least_window).min(self.largest());
        let overshoots = self.conventions.overshoots_threshold;
        self.window = if overshoots { grown } else { grown.min(self.ssthresh) };
        if done || (credit > 0.0 && self.law.leave_slow_start(self.window, &cx)) {
            self.ssthresh = self.window;
        }
        if !self.in_slow_start() {
            // Later slow starts are the standard one, except in Linux.
            self.slow_start.take_if(|law| law.linux().is_none());
            self.enter(cx);
        }
    }

    fn enter(&mut self, cx: Context) {
        self.entered = true;
        self.law.enter(self.window, &cx);
    }

    /// Reduces the window for `why`, unless the newest packet concerned was sent before the last
    /// reduction: one reduction for each window of data (RFC 5681 section 3.2, RFC 3168 section
    /// 6.1.2). During recovery there is no other (RFC 6675 section 5): the loss of a packet sent in
    /// recovery is answered when the driver starts to repair it.
    fn congested(&mut self, now: Time, why: Signal, sent_at: Time, sent: u64) {
        let mark = self.conventions.marks_reduce_in_recovery && why == Signal::Mark;
        if (self.in_recovery && !mark) || sent_at < self.last_cut {
            return;
        }
        if why == Signal::Mark && !self.law.answers_mark(&self.context(now)) {
            return;
        }
        self.end_round(now, sent);
        self.shrink(now, why);
        // RFC 9002 section 7.3.2: a mark begins a recovery period too. In RFC 3168 it does not.
        let mark_recovers = self.conventions.infers_recovery && !self.law.grows_after_mark();
        if why == Signal::Loss || mark_recovers {
            self.in_recovery = true;
        } else {
            self.close_round(now);
        }
    }

    fn congestion(&mut self) -> &mut Congestion<L> {
        self.congestion.get_or_insert_default()
    }

    fn end_round(&mut self, now: Time, sent: u64) {
        let congestion = self.congestion();
        let (began, sent_before) = core::mem::replace(&mut congestion.round_began, (now, sent));
        congestion.round.sent = sent.saturating_sub(sent_before);
        congestion.round.took = now.since(began);
    }

    fn shrink(&mut self, now: Time, why: Signal) {
        let before = self.window().get();
        let slow_start = self.in_slow_start();
        let ended = self.slow_start.take_if(|law| law.linux().is_none());
        if why == Signal::Timeout {
            self.restart_linux(now);
        }
        self.congestion().undo = Some(Saved {
            law: self.law.clone(),
            window: self.window,
            ssthresh: self.ssthresh,
            entered: self.entered,
            slow_start: ended,
        });
        let cx = self.context(now);
        let cut = self.law.cut(before, why, &cx);
        let law_threshold = self.law.threshold(cut, why).filter(|threshold| !threshold.is_nan());
        let decision = Decision {
            why,
            window: before,
            threshold: self.ssthresh,
            // f64::min keeps the window where a law's answer is not a number.
            cut: cut.min(before),
            law_threshold,
            slow_start,
            first: !self.cut_before,
            after_mark: self.marked,
        };
        let Decided { threshold, window } = (self.conventions.reduce)(&decision);
        let least = self.conventions.least_window;
        // After persistent congestion the threshold stays that of the loss (RFC 9002 section
        // 7.6.2).
        (self.ssthresh, self.window) = match why {
            Signal::Timeout => (threshold, least),
            Signal::PersistentCongestion => (self.ssthresh, PERSISTENT_WINDOW.min(before)),
            Signal::Loss | Signal::Mark | Signal::Delay => {
                (threshold, at_most(window, before).max(least))
            }
        };
        self.last_cut = now;
        self.cut_before = true;
        self.marked = why == Signal::Mark;
        self.entered = false;
        let [before, after] = [before, self.window].map(Packets::new);
        self.congestion().cut = Some(Cut::window(why, before, after));
    }

    /// The HyStart of Linux begins anew after a timeout.
    fn restart_linux(&mut self, now: Time) {
        if let Some(law) = self.slow_start.as_mut().and_then(|law| law.linux()) {
            law.restart(now);
        }
    }

    /// The driver reduced the window, or restarts after an idle period.
    fn reduced(&mut self, now: Time, window: f64, idle: bool) {
        let least = self.conventions.least_window;
        let window = self.window.min(window).max(least);
        if idle && self.conventions.restart_raises_threshold && !self.in_recovery {
            let three_quarters = floor(self.window / 2.0) + floor(self.window / 4.0);
            self.ssthresh = self.ssthresh.max(three_quarters);
        }
        if window < self.window {
            self.window = window;
            self.entered = false;
            self.law.reduced(window);
            if window == least {
                self.restart_linux(now);
            }
        }
    }

    fn close_round(&mut self, now: Time) {
        let cx = self.context(now);
        let round = core::mem::take(&mut self.congestion().round);
        self.law.round(&round, &cx);
    }

    /// Packets were declared lost.
    fn lost(&mut self, now: Time, lost: &Lost) {
        self.congestion().round.lost += u64::from(lost.packets);
        self.marked = false;
        self.congested(now, Signal::Loss, lost.sent_at, lost.sent);
    }

    /// Packets were reported as marked.
    fn marked(&mut self, now: Time, marked: &Marked) {
        self.congestion().round.marked += u64::from(marked.packets);
        self.congested(now, Signal::Mark, marked.sent_at, marked.sent);
    }

    /// Recovery is over.
    fn recovered(&mut self, now: Time) {
        if self.in_recovery {
            self.in_recovery = false;
            self.close_round(now);
        }
    }

    /// The retransmission timer expired. Its losses belong to the round whose recovery it ends, or
    /// else to the one that it ends or that continues.
    fn timeout(&mut self, now: Time, lost: &Lost) {
        // A failed repair or probe ends no round of its own: packets sent since the reduction count
        // in the round that follows it.
        let fresh = !self.in_recovery && self.window > self.conventions.least_window;
        let ends = fresh && self.law.timeout_ends_round();
        self.congestion().round.lost += u64::from(lost.packets);
        self.recovered(now);
        if ends {
            self.end_round(now, lost.sent);
        }
        self.shrink(now, Signal::Timeout);
        if ends {
            self.close_round(now);
        }
    }

    /// Persistent congestion was established. Its losses have been reported: they began the
    /// recovery that ends here (RFC 9002 section 7.6.2).
    fn persistent_congestion(&mut self, now: Time) {
        self.recovered(now);
        self.shrink(now, Signal::PersistentCongestion);
    }

    /// The last reduction was spurious: the window and the law return to their state before it,
    /// unless the window has grown past it since.
    fn undo(&mut self) {
        if let Some(saved) = self.congestion.as_mut().and_then(|it| it.undo.take()) {
            self.in_recovery = false;
            self.ssthresh = saved.ssthresh;
            if saved.slow_start.is_some() {
                self.slow_start = saved.slow_start;
            }
            if saved.window >= self.window {
                self.window = saved.window;
                if !self.conventions.undo_keeps_law {
                    self.law = saved.law;
                    self.entered = saved.entered;
                }
            }
        }
    }

    /// The packet size changed: the window stays the same number of bytes.
    fn rescale(&mut self, packet: u32) {
        let packet = packet.max(1);
        let factor = f64::from(self.packet) / f64::from(packet);
        self.packet = packet;
        let least = self.conventions.least_window;
        self.window = (self.window * factor).clamp(least, MAX_WINDOW);
        self.ssthresh *= factor;
        self.max_window = rescale_max_window(self.max_window, factor, least);
        self.law.rescale(factor);
        if let Some(saved) = self.congestion.as_mut().and_then(|it| it.undo.as_mut()) {
            saved.window = (saved.window * factor).clamp(least, MAX_WINDOW);
            saved.ssthresh *= factor;
            saved.law.rescale(factor);
        }
    }

    /// The pacing rate: a multiple of one window in each smoothed round-trip time.
    fn pace(&self) -> Option<Rate> {
        let (factor, rtt) = (self.pacing, self.rtt?);
        let startup = self.window < self.ssthresh / 2.0;
        let factor = if startup { factor * self.startup_pacing } else { factor };
        let rate = Rate::over(f64::from(factor) * self.window().get(), rtt.smoothed);
        rate.as_per_sec().is_finite().then_some(rate)
    }
}

/// A window no larger than `bound`, and `bound` where a law's answer is not a number. `f64::min`
/// tests whether `bound` is one too, which takes five more instructions.
#[inline(always)]
fn at_most(window: f64, bound: f64) -> f64 {
    if window < bound { window } else { bound }
}

impl<L: WindowLaw + Clone> Controller for Windowed<L> {
    #[inline(always)]
    fn on(&mut self, now: Time, event: &Event) {
        match event {
            Event::Acked(acked) => self.acked(now, acked),
            Event::Lost(lost) => self.lost(now, lost),
            Event::Marked(marked) => self.marked(now, marked),
            Event::Recovered => self.recovered(now),
            Event::Timeout(lost) => self.timeout(now, lost),
            Event::PersistentCongestion => self.persistent_congestion(now),
            Event::Undo => self.undo(),
            Event::Reduced { window, idle } => self.reduced(now, window.get(), *idle),
            Event::Mtu { packet } => self.rescale(*packet),
            Event::Handshake { rtt } => self.rtt = Some(Rtt::handshake(*rtt)),
            Event::Report(_) | Event::Tick => {}
        }
    }

    #[inline]
    fn output(&self) -> Output {
        let mut output = Output::window(self.window());
        if self.is_paced() {
            output.pace = self.pace();
        }
        output
    }

    fn needs(&self) -> Needs {
        Needs {
            delivery_rate: self.law.uses_delivery_rate(),
            ecn: self.law.needs_ecn(),
            ..Needs::default()
        }
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.congestion.as_mut()?.cut.take()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("ssthresh", self.ssthresh);
        self.law.gauges(emit);
    }
}
