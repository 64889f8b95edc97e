//! The windowed machine: slow start, congestion avoidance, recovery, timeout, undo and the clamps
//! around a [`WindowLaw`].
//!
//! ```text
//!              w >= ssthresh            loss, once a window of data
//!  slow start ---------------> avoidance ----------------------> recovery
//!      ^  \------- loss ------------------------------------------^   |
//!      |                            ^------------ recovered ----------/
//!      \----- timeout, from anywhere: w = 1
//! ```

use super::slow_start::{self, HyStart, SlowStart};
use super::{Controller, Cut, Settings, rtt};
use crate::event::{Acked, Event, Limit, Lost, Marked, Output};
use crate::law::{Context, Round, Rtt, Signal, WindowLaw};
use crate::units::{Packets, Time};
use alloc::boxed::Box;

/// The smallest slow-start threshold (RFC 5681 equation 4).
const MIN_SSTHRESH: Packets = 2.0;
/// The smallest window.
const MIN_WINDOW: Packets = 1.0;
/// The largest window: drivers count packets in 32 bits.
const MAX_WINDOW: Packets = u32::MAX as f64;

/// A window law in its machine. Kept small and on few cache lines: there is one for each flow.
#[derive(Clone, Debug)]
pub struct Windowed<L> {
    law: L,
    window: Packets,
    ssthresh: Packets,
    max_window: Packets,
    rtt: Option<Rtt>,
    /// The start of the connection before the first cut.
    last_cut: Time,
    hystart: Option<Box<HyStart>>,
    congestion: Option<Box<Congestion<L>>>,
    packet: u32,
    ns2: bool,
    in_recovery: bool,
    /// Whether the law has been told at which window congestion avoidance began.
    entered: bool,
    /// Whether there was a cut.
    cut_before: bool,
    /// The last congestion was a mark.
    marked: bool,
}

/// What is kept from the first congestion signal on.
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

/// What a spurious cut takes back.
#[derive(Clone, Debug)]
struct Saved<L> {
    law: L,
    window: Packets,
    ssthresh: Packets,
    entered: bool,
}

impl<L: WindowLaw> Windowed<L> {
    /// A controller that runs `law` from the start of a connection.
    pub fn new(law: L, settings: Settings) -> Self {
        let max_window = settings.max_window.min(MAX_WINDOW);
        let hystart = settings.slow_start == SlowStart::HyStart;
        Windowed {
            law,
            window: settings.initial_window.clamp(MIN_WINDOW, MAX_WINDOW),
            // ns-2 starts from the receiver's window.
            ssthresh: if settings.ns2 { max_window } else { f64::INFINITY },
            max_window,
            rtt: None,
            last_cut: Time::ZERO,
            hystart: hystart.then(|| Box::new(HyStart::new())),
            congestion: None,
            packet: settings.packet,
            ns2: settings.ns2,
            in_recovery: false,
            entered: false,
            cut_before: false,
            marked: false,
        }
    }

    /// The law itself.
    pub fn law(&self) -> &L {
        &self.law
    }

    /// The congestion window in packets.
    #[inline]
    pub fn window(&self) -> Packets {
        at_most(self.window, self.max_window)
    }

    /// The congestion window before the clamp.
    #[inline]
    pub fn unclamped(&self) -> Packets {
        self.window
    }

    /// The slow-start threshold in packets; infinite before the first cut.
    pub fn ssthresh(&self) -> Packets {
        self.ssthresh
    }

    /// Whether the machine is in slow start.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.window < self.ssthresh
    }

    /// Whether a window with losses is being repaired.
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
    pub fn acked(&mut self, now: Time, acked: &Acked) {
        let known = self.rtt;
        let rtt = acked.rtt.map_or(known, |sample| Some(rtt::after(known, sample)));
        self.rtt = rtt;
        let cx = Context { rtt, ..self.context(now) };
        self.law.observe(acked, &cx);
        if self.in_recovery || acked.echo || acked.credit == 0 {
            return;
        }
        // RFC 7661: a window that is not used says nothing about the path. ns-2 grows it anyway.
        // At the largest window the law still runs: it may want less (Vegas).
        let full = acked.limit == Limit::Receiver && self.window >= self.max_window;
        if acked.limit != Limit::Window && !full && !self.ns2 {
            return;
        }
        if self.in_slow_start() {
            // A copy: what a function that is not inlined sees by its address lives in memory.
            self.slow_start(now, &{ *acked }, cx);
        } else {
            if !self.entered {
                self.enter(cx);
            }
            self.window = self.law.grow(self.window, f64::from(acked.credit), &cx).max(MIN_WINDOW);
            // A law may shrink its window (Vegas): that is no return to slow start.
            self.ssthresh = self.ssthresh.min(self.window);
        }
        self.window = at_most(self.window, self.largest());
    }

    /// The largest window; ns-2 lets it grow past the receiver's.
    #[inline]
    fn largest(&self) -> Packets {
        if self.ns2 { MAX_WINDOW } else { self.max_window }
    }

    fn slow_start(&mut self, now: Time, acked: &Acked, cx: Context) {
        let (grown, done) = slow_start::grow(&mut self.hystart, self.window, now, acked, self.rtt);
        // A threshold above the largest window would never be reached.
        let grown = grown.min(self.largest());
        self.window = if self.ns2 { grown } else { grown.min(self.ssthresh) };
        if done || self.law.leave_slow_start(self.window, &cx) {
            self.ssthresh = self.window;
        }
        if !self.in_slow_start() {
            self.enter(cx);
        }
    }

    fn enter(&mut self, cx: Context) {
        self.entered = true;
        self.law.enter(self.window, &cx);
    }

    /// Cuts for `why`, unless the newest packet concerned was sent before the last cut: one cut for
    /// each window of data (RFC 5681 section 3.2, RFC 3168 section 6.1.2). Until a window is repaired
    /// no other is begun (RFC 6675 section 5): a loss of what was sent in recovery is answered when
    /// the driver starts to repair that.
    fn congested(&mut self, now: Time, why: Signal, sent_at: Time, sent: u64) {
        // ns-2 answers the mark on the acknowledgement that would end a recovery.
        let repairing = self.in_recovery && !(self.ns2 && why == Signal::Mark);
        if repairing || sent_at < self.last_cut {
            return;
        }
        self.end_round(now, sent);
        self.shrink(now, why);
        if why == Signal::Loss {
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
        let before = self.window();
        let in_slow_start = self.in_slow_start();
        self.congestion().undo = Some(Saved {
            law: self.law.clone(),
            window: self.window,
            ssthresh: self.ssthresh,
            entered: self.entered,
        });
        let cx = self.context(now);
        let cut = self.law.cut(before, why, &cx);
        let own = self.law.own_threshold() && !cut.is_nan();
        // f64::min keeps the window where a law's answer is not a number.
        let cut = if own { cut } else { cut.min(before) };
        // Slow start overshoots by up to a factor of two, and after a timeout nothing is known of the
        // path: there RFC 5681 equation 4 allows half of the window at most. ns-2 takes exactly half,
        // also at the first cut of all (tcp.cc, slowdown()).
        let half = before / 2.0;
        let first = self.ns2 && !self.cut_before;
        let target = match in_slow_start || why == Signal::Timeout || first {
            true if own => cut,
            true if self.ns2 => half,
            true => cut.min(half),
            false => cut,
        };
        self.ssthresh =
            if self.ns2 { crate::math::floor(target) } else { target }.max(MIN_SSTHRESH);
        self.window = match why {
            Signal::Timeout => MIN_WINDOW,
            // ns-2 keeps the fraction that its threshold loses.
            _ if self.ns2 => target.min(before).max(MIN_WINDOW),
            _ => self.ssthresh.min(before),
        };
        self.hystart = None;
        self.last_cut = now;
        self.cut_before = true;
        self.marked = why == Signal::Mark;
        self.entered = false;
        self.congestion().cut = Some(Cut { why, before, after: self.window });
    }

    fn close_round(&mut self, now: Time) {
        let cx = self.context(now);
        let round = core::mem::take(&mut self.congestion().round);
        self.law.round(&round, &cx);
    }

    /// Packets were found lost.
    pub fn lost(&mut self, now: Time, lost: &Lost) {
        self.congestion().round.lost += u64::from(lost.packets);
        self.marked = false;
        self.congested(now, Signal::Loss, lost.sent_at, lost.sent);
    }

    /// Packets were reported as marked.
    pub fn marked(&mut self, now: Time, marked: &Marked) {
        self.congestion().round.marked += u64::from(marked.packets);
        self.congested(now, Signal::Mark, marked.sent_at, marked.sent);
    }

    /// The window with losses is repaired.
    pub fn recovered(&mut self, now: Time) {
        if self.in_recovery {
            self.in_recovery = false;
            self.close_round(now);
        }
    }

    /// The retransmission timer expired.
    pub fn timeout(&mut self, now: Time, sent: u64) {
        // A failed repair or probe ends no round of its own: packets sent since the cut count in the
        // round that follows it.
        let fresh = !self.in_recovery && self.window > MIN_WINDOW;
        let ends = fresh && self.law.timeout_ends_round();
        self.recovered(now);
        if ends {
            self.end_round(now, sent);
        }
        if fresh {
            // At least one packet was lost, whether or not the driver has reported it.
            let round = &mut self.congestion().round;
            round.lost = if ends { round.lost.max(1) } else { round.lost + 1 };
        }
        // ns-2 lowers the threshold for a mark and the timeout after it once.
        let kept = (self.ns2 && self.marked).then_some(self.ssthresh);
        self.shrink(now, Signal::Timeout);
        self.ssthresh = kept.unwrap_or(self.ssthresh);
        if ends {
            self.close_round(now);
        }
    }

    /// The last cut was spurious: the window and the law return to where they were, unless they have
    /// grown past it since.
    pub fn undo(&mut self) {
        if let Some(saved) = self.congestion.as_mut().and_then(|it| it.undo.take()) {
            self.in_recovery = false;
            self.ssthresh = saved.ssthresh;
            if saved.window >= self.window {
                self.window = saved.window;
                self.law = saved.law;
                self.entered = saved.entered;
            }
        }
    }
}

/// A window no larger than `bound`, and `bound` where a law's answer is not a number. `f64::min` asks
/// whether that is one too, which takes five more instructions.
#[inline(always)]
fn at_most(window: Packets, bound: Packets) -> Packets {
    if window < bound { window } else { bound }
}

impl<L: WindowLaw> Controller for Windowed<L> {
    #[inline(always)]
    fn on(&mut self, now: Time, event: &Event) {
        match event {
            Event::Acked(acked) => self.acked(now, acked),
            Event::Lost(lost) => self.lost(now, lost),
            Event::Marked(marked) => self.marked(now, marked),
            Event::Recovered => self.recovered(now),
            Event::Timeout { sent } => self.timeout(now, *sent),
            Event::Undo => self.undo(),
            Event::Deflated { packets } => {
                self.window = (self.window - packets).max(MIN_WINDOW);
            }
            Event::Report(_) | Event::Tick => {}
        }
    }

    #[inline]
    fn output(&self) -> Output {
        Output { window: self.window(), pace: None, wake: None }
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.congestion.as_mut()?.cut.take()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("ssthresh", self.ssthresh);
        self.law.gauges(emit);
    }
}
