//! A whole controller: it owns all of its state and uses the parts of the crate.
//!
//! The controller estimates the bottleneck bandwidth as the maximum delivery rate of ten rounds and
//! the propagation delay as the minimum round-trip time of ten seconds, and paces at a gain times
//! the bandwidth, as BBR does (draft-ietf-ccwg-bbr). It has BBR's Startup, Drain and ProbeBW with
//! the gain cycle of version 1, no ProbeRTT, and no reaction to losses: an example, not a
//! controller for the Internet.
//!
//! ```text
//! cargo run --example whole
//! ```

#[expect(dead_code, reason = "its main function")]
mod driver;

use cwnd::parts::{RoundCounter, WindowedMax, WindowedMin};
use cwnd::{Acked, Controller, Dur, Event, Needs, Output, Packets, Rate, Settings, Time};

/// The filters' lengths: rounds, and nanoseconds.
const BANDWIDTH_ROUNDS: u64 = 10;
const MIN_RTT_WINDOW: Dur = Dur::from_millis(10_000);
/// The pacing gain of Startup, which doubles the delivery rate in each round: 4 ln 2.
const STARTUP_GAIN: f64 = 2.77;
/// The window as a multiple of the bandwidth-delay product: room for delayed acknowledgements.
const WINDOW_GAIN: f64 = 2.0;
const MIN_WINDOW: f64 = 4.0;
/// The pacing gains of ProbeBW, one for each minimum round-trip time.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Doubles the rate until three rounds have passed without a growth of the bandwidth by a
    /// quarter.
    Startup { full: f64, stalled: u32 },
    /// Empties the queue that Startup built.
    Drain,
    /// Cycles through the gains.
    Probe { index: usize, began: Time },
}

/// Paces at the bandwidth of the path.
#[derive(Clone, Debug)]
struct Model {
    bandwidth: WindowedMax<f64>,
    min_rtt: WindowedMin<Dur>,
    rounds: RoundCounter,
    phase: Phase,
    initial_window: Packets,
}

impl Model {
    fn new(settings: &Settings) -> Self {
        Model {
            bandwidth: WindowedMax::new(BANDWIDTH_ROUNDS),
            min_rtt: WindowedMin::new(MIN_RTT_WINDOW.as_nanos()),
            rounds: RoundCounter::default(),
            phase: Phase::Startup { full: 0.0, stalled: 0 },
            initial_window: settings.initial_window,
        }
    }

    /// The bandwidth-delay product in packets; `None` before the first samples.
    fn bdp(&self) -> Option<f64> {
        Some(self.bandwidth.get()? * self.min_rtt.get()?.as_secs())
    }

    fn acked(&mut self, now: Time, acked: &Acked) {
        if let Some(rtt) = acked.rtt {
            self.min_rtt.add(now.as_nanos(), rtt);
        }
        let Some(sample) = acked.delivery else { return };
        let round_begins = self.rounds.acked(&sample);
        if let Some(rate) = sample.rate() {
            let rate = rate.as_per_sec();
            // An application-limited sample may only raise the estimate.
            let raises = self.bandwidth.get().is_none_or(|bandwidth| rate > bandwidth);
            if raises || !sample.application_limited {
                self.bandwidth.add(self.rounds.count(), rate);
            }
        }
        let (Some(bandwidth), Some(bdp)) = (self.bandwidth.get(), self.bdp()) else { return };
        match &mut self.phase {
            Phase::Startup { full, stalled } if round_begins => {
                if bandwidth >= 1.25 * *full {
                    (*full, *stalled) = (bandwidth, 0);
                } else {
                    *stalled += 1;
                }
                if *stalled >= 3 {
                    self.phase = Phase::Drain;
                }
            }
            Phase::Drain if f64::from(acked.in_flight) <= bdp => {
                self.phase = Phase::Probe { index: 0, began: now };
            }
            Phase::Probe { index, began } if self.min_rtt.get() <= Some(now.since(*began)) => {
                (*index, *began) = ((*index + 1) % CYCLE.len(), now);
            }
            _ => {}
        }
    }
}

impl Controller for Model {
    fn on(&mut self, now: Time, event: &Event) {
        if let Event::Acked(acked) = event {
            self.acked(now, acked);
        }
    }

    fn output(&self) -> Output {
        let gain = match self.phase {
            Phase::Startup { .. } => STARTUP_GAIN,
            Phase::Drain => 1.0 / STARTUP_GAIN,
            Phase::Probe { index, .. } => CYCLE[index],
        };
        let window = self.bdp().map_or(self.initial_window.get(), |bdp| WINDOW_GAIN * bdp);
        let mut output = Output::window(Packets::new(window.max(MIN_WINDOW)));
        output.pace = self.bandwidth.get().map(|bandwidth| Rate::per_sec(gain * bandwidth));
        output
    }

    fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        needs.delivery_rate = true;
        needs
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("bandwidth", self.bandwidth.get().unwrap_or(f64::NAN));
        emit("min_rtt", self.min_rtt.get().map_or(f64::NAN, Dur::as_secs));
    }
}

fn main() {
    let mut model = Model::new(&driver::settings());
    let rate = driver::transfer(&mut model, Dur::from_millis(20_000));
    println!("{:.0} of {:.0} packets/s", rate.as_per_sec(), driver::LINK.as_per_sec());
    model.gauges(&mut |name, value| println!("{name}: {value}"));
}
