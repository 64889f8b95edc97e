//! `bbr3` with a fault, for the checks of the draft's cases.

use super::cases::{Received, Rounds, Step};
use cwnd::controllers::Bbr3;
use cwnd::controllers::bbr3::{Aging, State};
use cwnd::{
    Acked, Controller, Cut, Dur, Event, Limit, Needs, Output, Packets, Rate, Settings, Time,
};
use std::fmt;
use std::sync::{Arc, Mutex};

/// What is wrong with a test double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    ShortPlateau,
    NoLosses,
    NoUndo,
    NoProbeRtt,
    NoApplication,
    NoWindowLimit,
    LittleInFlight,
    NoGain,
    NoExtraAcked,
    SmallWindow,
    NoIdleTime,
}

/// A fault with which the check of each case fails.
pub(crate) const FAULTS: [Fault; 22] = [
    Fault::ShortPlateau,
    Fault::NoLosses,
    Fault::NoGain,
    Fault::LittleInFlight,
    Fault::ShortPlateau,
    Fault::NoLosses,
    Fault::NoApplication,
    Fault::LittleInFlight,
    Fault::LittleInFlight,
    Fault::NoProbeRtt,
    Fault::NoApplication,
    Fault::NoExtraAcked,
    Fault::NoExtraAcked,
    Fault::SmallWindow,
    Fault::NoWindowLimit,
    Fault::NoLosses,
    Fault::NoLosses,
    Fault::NoUndo,
    Fault::NoUndo,
    Fault::NoProbeRtt,
    Fault::NoLosses,
    Fault::NoIdleTime,
];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::None => "none",
            Fault::ShortPlateau => "counts a round of a plateau twice",
            Fault::NoLosses => "ignores losses",
            Fault::NoUndo => "restores nothing after a spurious loss",
            Fault::NoProbeRtt => "never enters ProbeRTT",
            Fault::NoApplication => "ignores that the application limits it",
            Fault::NoWindowLimit => "ignores that the window limits it",
            Fault::LittleInFlight => "halves the packets in flight",
            Fault::NoGain => "paces at the bandwidth in all states after Startup",
            Fault::NoExtraAcked => "bounds the window at two BDP",
            Fault::SmallWindow => "has a window of two packets",
            Fault::NoIdleTime => "leaves idle times out of its rate samples",
        })
    }
}

/// `bbr3` with a fault, which records its steps.
#[derive(Clone, Debug)]
pub(crate) struct Double {
    bbr: Bbr3,
    fault: Fault,
    rounds: Rounds,
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Double {
    /// Returns `bbr3` with a fault, and appends its steps to `steps`.
    pub(crate) fn new(settings: &Settings, fault: Fault, steps: Arc<Mutex<Vec<Step>>>) -> Self {
        let bbr = Bbr3::new(Aging::Quiche, settings);
        Double { bbr, fault, rounds: Rounds::default(), steps }
    }

    /// The event that a controller with the fault sees.
    fn seen(&self, now: Time, event: &Event) -> Option<Event> {
        let mut event = *event;
        match (&mut event, self.fault) {
            (Event::Lost(_) | Event::Timeout(_), Fault::NoLosses) => return None,
            (Event::Undo, Fault::NoUndo) => return None,
            (Event::Acked(acked), fault) => match fault {
                Fault::NoLosses => {
                    acked.delivery.iter_mut().for_each(|sample| sample.lost = 0);
                }
                // Each sample is the smallest one.
                Fault::NoProbeRtt => {
                    acked.rtt = Some(Dur::from_secs(0.04 - 1e-6 * now.as_secs()));
                }
                Fault::NoApplication => {
                    acked.limit = Limit::Pacing;
                    acked.delivery.iter_mut().for_each(|sample| sample.application_limited = false);
                }
                Fault::NoIdleTime => {
                    let limited = acked.delivery.as_mut().filter(|rs| rs.application_limited);
                    if let Some(sample) = limited {
                        let busy = Dur::from_secs(0.01 * sample.interval().as_secs());
                        (sample.send_elapsed, sample.ack_elapsed) = (busy, busy);
                    }
                }
                Fault::NoWindowLimit => acked.limit = Limit::Pacing,
                Fault::LittleInFlight => acked.in_flight /= 2,
                _ => {}
            },
            _ => {}
        }
        Some(event)
    }

    /// A second round with the delivery rate of `acked`.
    fn repeat_round(&mut self, now: Time, acked: &Acked) {
        let mut again = *acked;
        (again.packets, again.credit) = (0, 0);
        if let Some(sample) = again.delivery.as_mut() {
            let packet = Dur::from_secs(sample.interval().as_secs() / sample.delivered as f64);
            (sample.send_elapsed, sample.ack_elapsed) = (packet, packet);
            sample.prior_delivered += sample.delivered;
            sample.delivered = 1;
        }
        self.rounds.next += 1;
        self.bbr.on(now, &Event::Acked(again));
    }
}

impl Controller for Double {
    fn on(&mut self, now: Time, event: &Event) {
        let before = self.bbr.state();
        if let Some(seen) = self.seen(now, event) {
            self.bbr.on(now, &seen);
        }
        let mut round_start = false;
        let received = match *event {
            Event::Acked(acked) => {
                round_start = self.rounds.begins(&acked);
                if round_start && self.fault == Fault::ShortPlateau {
                    self.repeat_round(now, &acked);
                }
                Received::Acked(acked)
            }
            Event::Lost(lost) => Received::Lost(lost.packets, lost.delivery.unwrap_or_default()),
            Event::Timeout(_) => Received::Timeout,
            Event::Undo => Received::Undo,
            _ => Received::Other,
        };
        let answer = (self.output(), self.bbr.state());
        self.rounds.change(before, answer.1);
        let step = Step::new(now, received, round_start, answer, &self.bbr);
        self.steps.lock().unwrap().push(step);
    }

    fn output(&self) -> Output {
        let mut output = self.bbr.output();
        let (mut bandwidth, mut min_rtt) = (0.0, 0.0);
        self.bbr.gauges(&mut |name, value| match name {
            "bandwidth" => bandwidth = value,
            "min_rtt" => min_rtt = value,
            _ => {}
        });
        let bound = match self.fault {
            Fault::NoExtraAcked if bandwidth > 0.0 => 2.0 * bandwidth * min_rtt,
            Fault::SmallWindow => 2.0,
            _ => f64::INFINITY,
        };
        output.window = Packets::new(output.window.get().min(bound));
        if self.fault == Fault::NoGain && self.bbr.state() != State::Startup {
            output.pace = Some(Rate::per_sec(bandwidth));
        }
        output
    }

    fn needs(&self) -> Needs {
        self.bbr.needs()
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.bbr.take_cut()
    }
}
