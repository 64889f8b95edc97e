//! The paced machine: the control interval, slow start, the flow window and the clamps around a
//! [`RateLaw`].

use crate::controller::{Controller, Cut, Needs, Settings};
use crate::event::{Event, Lost, Marked, Output, Report};
use crate::law::{Clock, Context, RateLaw, Signal};
use crate::parts::rescale_max_window;
use crate::rtt::Rtt;
use crate::units::{Packets, Rate, Time};

/// The smallest flow window in packets: UDT's, which always has room for a packet pair.
const MIN_WINDOW: f64 = 16.0;

/// A rate law in its machine.
#[derive(Clone, Debug)]
pub struct Paced<L> {
    law: L,
    packet: u32,
    max_window: f64,
    rate: Option<Rate>,
    window: f64,
    rtt: Option<Rtt>,
    /// The start of the current control interval.
    interval: Time,
    /// Whether packets were acknowledged, and whether packets were lost, in the current interval.
    acked: bool,
    lost: bool,
    last_cut: Option<Time>,
    cut: Option<Cut>,
}

impl<L: RateLaw + Clone> Paced<L> {
    /// A controller that runs `law` from the start of a connection. Slow start opens the window by
    /// one packet for each packet acknowledged, unpaced, until a loss, a mark or the largest window
    /// (UDT). A law that starts itself is paced from the first packet.
    pub fn new(law: L, settings: &Settings) -> Self {
        let max_window = settings.max_window.get();
        let mut machine = Paced {
            law,
            packet: settings.packet,
            max_window,
            window: settings.initial_window.get().max(MIN_WINDOW).min(max_window),
            rate: None,
            rtt: None,
            interval: Time::ZERO,
            acked: false,
            lost: false,
            last_cut: None,
            cut: None,
        };
        if machine.law.starts_itself() {
            machine.leave_slow_start(Time::ZERO);
        }
        machine
    }

    /// The law.
    pub fn law(&self) -> &L {
        &self.law
    }

    /// Replaces the law during a connection, at `now`. The rate and the flow window stay.
    pub fn replace_law(&mut self, now: Time, law: L) {
        self.law = law;
        if let Some(rate) = self.rate {
            let _ = self.law.start(self.window, &self.context(now));
            self.set_rate(rate);
        }
    }

    /// The law, without its machine.
    pub fn into_law(self) -> L {
        self.law
    }

    /// The sending rate; `None` in slow start.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    fn context(&self, now: Time) -> Context {
        Context {
            now,
            rtt: self.rtt,
            last_cut: self.last_cut.unwrap_or(Time::ZERO),
            packet: self.packet,
            slow_start: self.rate.is_none(),
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        let finite = rate.as_per_sec().is_finite();
        let least = self.law.least();
        let rate = if finite { rate } else { self.rate.unwrap_or(least) };
        self.rate = Some(if rate < least { least } else { rate });
    }

    /// Ends slow start, unless it has ended.
    fn leave_slow_start(&mut self, now: Time) {
        if self.rate.is_some() {
            return;
        }
        let rate = self.law.start(self.window, &self.context(now));
        self.set_rate(rate);
        self.interval = now;
    }

    fn report(&mut self, now: Time, report: &Report) {
        self.rtt = Some(Rtt::update(self.rtt, report.rtt));
        let cx = self.context(now);
        self.law.observe(report, &cx);
        if self.law.delay_rises(&cx) {
            self.delayed(now);
        }
        self.acked |= report.packets > 0;
        if self.rate.is_none() {
            self.window += f64::from(report.packets);
            if self.window >= self.max_window {
                self.window = self.max_window;
                self.leave_slow_start(now);
            }
        } else {
            self.set_flow_window(now);
            if self.law.clock() == Clock::Reports {
                self.step(now);
            }
        }
    }

    fn set_flow_window(&mut self, now: Time) {
        let wanted = self.law.window(&self.context(now)).unwrap_or(self.max_window);
        self.window = wanted.max(MIN_WINDOW).min(self.max_window);
    }

    /// Runs the law at the end of the control interval.
    fn step(&mut self, now: Time) {
        let Some(rate) = self.rate else { return };
        if now.since(self.interval) < self.law.interval() {
            return;
        }
        self.interval = now;
        if self.law.starts_itself() || self.acked && !self.lost {
            let grown = self.law.tick(rate, &self.context(now));
            self.set_rate(grown);
        }
        self.acked = false;
        self.lost = false;
    }

    fn lost(&mut self, now: Time, lost: &Lost) {
        self.lost = true;
        self.leave_slow_start(now);
        self.report_losses(now, lost);
        let fresh = self.last_cut.is_none_or(|cut| lost.sent_at >= cut);
        self.shrink(now, fresh, Signal::Loss);
    }

    /// A mark ends slow start, as a loss does (RFC 3168 section 6.1.2). The law answers one for
    /// each congestion period.
    fn marked(&mut self, now: Time, marked: &Marked) {
        self.leave_slow_start(now);
        self.report_losses(now, &Lost::new(marked.packets, marked.sent_at, marked.sent));
        if self.last_cut.is_none_or(|cut| marked.sent_at >= cut) {
            self.lost = true;
            self.shrink(now, true, Signal::Mark);
        }
    }

    /// The round-trip time rises: as after a loss, the rate is reduced and does not grow in this
    /// interval.
    fn delayed(&mut self, now: Time) {
        self.leave_slow_start(now);
        self.lost = true;
        self.shrink(now, true, Signal::Delay);
    }

    fn report_losses(&mut self, now: Time, lost: &Lost) {
        let (rate, cx) = (self.rate.unwrap_or(self.law.least()), self.context(now));
        self.law.losses(lost, rate, &cx);
    }

    fn shrink(&mut self, now: Time, fresh: bool, why: Signal) {
        let before = self.rate.unwrap_or(self.law.least());
        let after = self.law.cut(before, fresh, why, &self.context(now));
        self.set_rate(if after < before { after } else { before });
        if after < before {
            self.last_cut = Some(now);
            self.cut = Some(Cut::rate(why, before, self.rate.unwrap_or(self.law.least())));
        }
    }

    /// A signal after which the sender starts again: a timeout, which declares packets lost, or
    /// persistent congestion.
    fn restart(&mut self, now: Time, why: Signal, lost: Option<&Lost>) {
        self.leave_slow_start(now);
        if let Some(lost) = lost
            && lost.packets > 0
        {
            self.report_losses(now, lost);
        }
        self.shrink(now, true, why);
    }

    /// The packet size changed: rate and window stay the same numbers of bytes.
    fn rescale(&mut self, packet: u32) {
        let packet = packet.max(1);
        let factor = f64::from(self.packet) / f64::from(packet);
        self.packet = packet;
        self.max_window = rescale_max_window(self.max_window, factor, 1.0);
        self.window = (self.window * factor).max(MIN_WINDOW).min(self.max_window);
        if let Some(rate) = self.rate {
            self.set_rate(Rate::per_sec(rate.as_per_sec() * factor));
        }
        self.law.rescale(factor);
    }
}

impl<L: RateLaw + Clone> Controller for Paced<L> {
    fn on(&mut self, now: Time, event: &Event) {
        match event {
            Event::Report(report) => self.report(now, report),
            Event::Lost(lost) => self.lost(now, lost),
            Event::Marked(marked) => self.marked(now, marked),
            Event::Timeout(lost) => self.restart(now, Signal::Timeout, Some(lost)),
            Event::PersistentCongestion => {
                self.restart(now, Signal::PersistentCongestion, None);
            }
            Event::Reduced { window, .. } => {
                self.window = self.window.min(window.get()).max(MIN_WINDOW).min(self.max_window);
            }
            Event::Mtu { packet } => self.rescale(*packet),
            Event::Tick => {
                if self.law.clock() == Clock::Timer {
                    self.step(now);
                }
            }
            Event::Acked(_) | Event::Handshake { .. } | Event::Recovered | Event::Undo => {}
        }
    }

    fn output(&self) -> Output {
        let timed = self.rate.is_some() && self.law.clock() == Clock::Timer;
        Output {
            window: Packets::new(self.window),
            pace: self.rate,
            wake: timed.then(|| self.interval + self.law.interval()),
        }
    }

    fn needs(&self) -> Needs {
        Needs { reports: true, capacity: self.law.uses_capacity(), ..Needs::default() }
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.cut.take()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("rate", self.rate.map_or(f64::NAN, Rate::as_per_sec));
        self.law.gauges(emit);
    }
}
