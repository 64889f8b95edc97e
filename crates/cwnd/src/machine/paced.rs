//! The paced machine: the control interval, slow start, the flow window and the clamps around a
//! [`RateLaw`].

use super::{Controller, Cut, Settings, rtt};
use crate::event::{Event, Lost, Marked, Output, Report};
use crate::law::{Clock, Context, RateLaw, Rtt, Signal};
use crate::units::{Packets, Rate, Time};

/// The slowest rate: one packet a second.
const MIN_RATE: Rate = Rate::per_sec(1.0);
/// The smallest flow window: UDT's, so that a packet pair always fits.
const MIN_WINDOW: Packets = 16.0;

/// A rate law in its machine.
#[derive(Clone, Debug)]
pub struct Paced<L> {
    law: L,
    settings: Settings,
    rate: Option<Rate>,
    window: Packets,
    rtt: Option<Rtt>,
    /// The start of the running control interval.
    interval: Time,
    /// Whether acknowledgements came, and whether losses did, in the running interval.
    acked: bool,
    lost: bool,
    last_cut: Option<Time>,
    cut: Option<Cut>,
}

impl<L: RateLaw> Paced<L> {
    /// A controller that runs `law` from the start of a connection. Slow start opens the window by
    /// one packet for each one acknowledged, unpaced, until a loss or the largest window (UDT); a law
    /// that starts itself is paced from the first packet.
    pub fn new(law: L, settings: Settings) -> Self {
        let mut machine = Paced {
            law,
            window: settings.initial_window.max(MIN_WINDOW).min(settings.max_window),
            settings,
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

    /// The law itself.
    pub fn law(&self) -> &L {
        &self.law
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
            packet: self.settings.packet,
            slow_start: self.rate.is_none(),
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        let finite = rate.as_per_sec().is_finite();
        let rate = if finite { rate } else { self.rate.unwrap_or(MIN_RATE) };
        self.rate = Some(if rate < MIN_RATE { MIN_RATE } else { rate });
    }

    fn leave_slow_start(&mut self, now: Time) {
        let rate = self.law.start(self.window, &self.context(now));
        self.set_rate(rate);
        self.interval = now;
    }

    fn report(&mut self, now: Time, report: &Report) {
        self.rtt = Some(rtt::after(self.rtt, report.rtt));
        let cx = self.context(now);
        self.law.observe(report, &cx);
        self.acked |= report.packets > 0;
        if self.rate.is_none() {
            self.window += f64::from(report.packets);
            if self.window >= self.settings.max_window {
                self.window = self.settings.max_window;
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
        let wanted = self.law.window(&self.context(now)).unwrap_or(self.settings.max_window);
        self.window = wanted.max(MIN_WINDOW).min(self.settings.max_window);
    }

    /// Runs the law if the control interval is over.
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
        if self.rate.is_none() {
            self.leave_slow_start(now);
        }
        self.tell_losses(now, lost);
        let fresh = self.last_cut.is_none_or(|cut| lost.sent_at >= cut);
        self.shrink(now, fresh, Signal::Loss);
    }

    fn tell_losses(&mut self, now: Time, lost: &Lost) {
        let (rate, cx) = (self.rate.unwrap_or(MIN_RATE), self.context(now));
        self.law.losses(lost, rate, &cx);
    }

    fn shrink(&mut self, now: Time, fresh: bool, why: Signal) {
        let before = self.rate.unwrap_or(MIN_RATE);
        let after = self.law.cut(before, fresh, why, &self.context(now));
        self.set_rate(if after < before { after } else { before });
        if after < before {
            self.last_cut = Some(now);
            self.cut = Some(Cut {
                why,
                before: before.as_per_sec(),
                after: self.rate.unwrap_or(MIN_RATE).as_per_sec(),
            });
        }
    }
}

impl<L: RateLaw> Controller for Paced<L> {
    fn on(&mut self, now: Time, event: &Event) {
        match event {
            Event::Report(report) => self.report(now, report),
            Event::Lost(lost) => self.lost(now, lost),
            &Event::Marked(Marked { packets, sent_at, sent }) => {
                self.tell_losses(now, &Lost { packets, sent_at, sent });
                let fresh = self.last_cut.is_none_or(|cut| sent_at >= cut);
                if fresh && self.rate.is_some() {
                    self.lost = true;
                    self.shrink(now, true, Signal::Mark);
                }
            }
            Event::Timeout { .. } => {
                if self.rate.is_none() {
                    self.leave_slow_start(now);
                }
                self.shrink(now, true, Signal::Timeout);
            }
            Event::Tick => {
                if self.law.clock() == Clock::Timer {
                    self.step(now);
                }
            }
            Event::Acked(_) | Event::Recovered | Event::Undo | Event::Deflated { .. } => {}
        }
    }

    fn output(&self) -> Output {
        let timed = self.rate.is_some() && self.law.clock() == Clock::Timer;
        Output {
            window: self.window,
            pace: self.rate,
            wake: timed.then(|| self.interval + self.law.interval()),
        }
    }

    fn uses_capacity(&self) -> bool {
        self.law.uses_capacity()
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.cut.take()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("rate", self.rate.map_or(f64::NAN, Rate::as_per_sec));
        self.law.gauges(emit);
    }
}
