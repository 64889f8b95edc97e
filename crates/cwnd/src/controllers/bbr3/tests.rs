//! Rules of the draft on a path that is computed here. The test cases of its appendix that need a
//! network are in `crates/cwnd-sim/tests/bbr_draft.rs`.

use super::*;
use crate::delivery::RateSample;
use crate::testing::sampled;
use alloc::vec::Vec;

const RTT: f64 = 0.1;
/// Packets per second, and those of a bandwidth-delay product.
const RATE: f64 = 1000.0;
const BDP: u32 = 100;

/// One acknowledgement.
#[derive(Clone, Copy)]
struct Given {
    packets: u32,
    rate: f64,
    rtt: f64,
    in_flight: u32,
    limited: bool,
    lost: u64,
    limit: Limit,
}

const STEADY: Given = Given {
    packets: BDP,
    rate: RATE,
    rtt: RTT,
    in_flight: BDP,
    limited: false,
    lost: 0,
    limit: Limit::Pacing,
};

fn loss_sample(packets: u32, in_flight: u32, application_limited: bool) -> LossSample {
    LossSample { lost: packets.into(), in_flight, application_limited }
}

struct Path {
    bbr: Bbr3,
    now: Time,
}

impl Path {
    fn new() -> Self {
        let settings = Settings { seed: 1, ..Settings::default() };
        Path { bbr: Bbr3::new(Aging::Quiche, &settings), now: Time::ZERO }
    }

    /// A round of `given.rtt` seconds, in one acknowledgement.
    fn round(&mut self, given: Given) {
        self.acked(given.rtt, self.bbr.delivered, given);
    }

    /// An acknowledgement at the same time that begins no round.
    fn within_round(&mut self, given: Given) {
        self.acked(0.0, self.bbr.next_round_delivered - 1, given);
    }

    /// An acknowledgement `after` seconds, of a packet sent when `prior_delivered` packets were
    /// delivered.
    fn acked(&mut self, after: f64, prior_delivered: u64, given: Given) {
        self.now += Dur::from_secs(after);
        let mut sample = RateSample::new();
        sample.prior_delivered = prior_delivered;
        sample.delivered = self.bbr.delivered + u64::from(given.packets) - prior_delivered;
        let interval = Dur::from_secs(sample.delivered as f64 / given.rate);
        (sample.send_elapsed, sample.ack_elapsed) = (interval, interval);
        (sample.lost, sample.in_flight) = (given.lost, given.in_flight);
        (sample.application_limited, sample.reliable) = (given.limited, true);
        let mut acked = sampled(given.packets, self.now, Dur::from_secs(given.rtt));
        (acked.in_flight, acked.limit, acked.delivery) =
            (given.in_flight, given.limit, Some(sample));
        self.bbr.on(self.now, &Event::Acked(acked));
    }

    /// `packets` packets are lost, of which the last was sent with `in_flight` packets in flight.
    fn lose(&mut self, packets: u32, in_flight: u32, limited: bool) {
        let delivery = Some(loss_sample(packets, in_flight, limited));
        let lost = Lost { delivery, ..Lost::new(packets, self.now, 1_000_000) };
        self.bbr.on(self.now, &Event::Lost(lost));
    }

    /// In Drain: the rate doubled each round up to RATE, and did not grow in three more.
    fn draining() -> Self {
        let mut path = Path::new();
        for rate in [125.0, 250.0, 500.0, RATE, RATE, RATE, RATE] {
            assert_eq!(path.bbr.state(), State::Startup);
            let packets = (rate * RTT) as u32;
            path.round(Given { packets, rate, in_flight: 2 * BDP, ..STEADY });
        }
        assert_eq!(path.bbr.state(), State::Drain);
        path
    }

    /// Rounds of a steady path until `state`.
    fn until(mut self, state: State) -> Self {
        for _ in 0..100 {
            if self.bbr.state() == state {
                return self;
            }
            self.round(STEADY);
        }
        panic!("{:?}, not {state:?}", self.bbr.state());
    }

    /// In `state`, without a ProbeRTT in the next hour.
    fn in_state(state: State) -> Self {
        let mut path = Path::draining();
        path.bbr.probe_rtt_min_stamp = path.now + Dur::from_secs(3600.0);
        path.until(state)
    }

    /// In Cruise, with a ProbeRTT due in 5 s.
    fn before_probe_rtt() -> Self {
        let mut path = Path::in_state(State::Cruise);
        path.bbr.probe_rtt_min_stamp = path.now;
        path
    }
}

/// Exiting STARTUP on Bandwidth Plateau: three rounds with less than 25 % of growth.
#[test]
fn startup_ends_on_a_bandwidth_plateau() {
    let mut path = Path::new();
    let mut round = |rate: f64| {
        let packets = (rate * RTT) as u32;
        path.round(Given { packets, rate, in_flight: 2 * BDP, ..STEADY });
        (path.bbr.full_bw_count, path.bbr.full_bw_now, path.bbr.full_bw_reached, path.bbr.state())
    };
    let growing = (0, false, false, State::Startup);
    assert_eq!(round(400.0), growing);
    assert_eq!(round(800.0), growing);
    // 20 % are too little twice; then 30 % more than the baseline.
    assert_eq!(round(900.0), (1, false, false, State::Startup));
    assert_eq!(round(960.0), (2, false, false, State::Startup));
    assert_eq!(round(1040.0), growing);
    assert_eq!(round(1040.0), (1, false, false, State::Startup));
    assert_eq!(round(1040.0), (2, false, false, State::Startup));
    assert_eq!(round(1040.0), (3, true, true, State::Drain));
}

/// A round that the application limited counts neither for nor against a plateau.
#[test]
fn startup_goes_on_while_the_application_limits_the_sender() {
    let mut path = Path::new();
    for _ in 0..40 {
        path.round(Given { limited: true, in_flight: 20, ..STEADY });
        assert_eq!(path.bbr.state(), State::Startup);
    }
}

/// Exiting STARTUP on Loss When Application-Limited: after a round of recovery, 2 % and six
/// detections in a round.
#[test]
fn startup_ends_on_losses_even_if_the_application_limits_the_sender() {
    for (events, each, ends) in [(6, 1, true), (5, 2, false)] {
        let mut path = Path::new();
        let given = Given { limited: true, in_flight: 150, ..STEADY };
        path.round(given);
        for _ in 0..events {
            path.lose(each, 150, true);
        }
        assert_eq!(path.bbr.state(), State::Startup);
        path.round(Given { lost: u64::from(events * each), ..given });
        assert_eq!(path.bbr.state() == State::Drain, ends, "{events} detections");
        assert_eq!((path.bbr.full_bw_now, path.bbr.full_bw_reached), (ends, ends));
        if ends {
            // max(bdp, inflight_latest).
            assert_eq!(path.bbr.inflight_longterm, f64::from(BDP));
            assert_eq!(path.bbr.saved.state, Some(State::Startup));
        }
    }
}

/// Exiting DRAIN Based on Inflight, and the gains of both states.
#[test]
fn drain_ends_with_the_queue() {
    let mut path = Path::draining();
    let gains = |bbr: &Bbr3| (bbr.pacing_gain, bbr.cwnd_gain);
    assert_eq!(gains(&path.bbr), (0.5, 2.0));
    let pace = path.bbr.output().pace.unwrap().as_per_sec();
    assert!((pace - 0.99 * 0.5 * RATE).abs() < 1e-6, "{pace}");
    path.round(Given { in_flight: BDP + 1, ..STEADY });
    assert_eq!(path.bbr.state(), State::Drain);
    path.round(Given { in_flight: BDP, ..STEADY });
    // Without a bound by losses Down has nothing left to drain.
    assert_eq!((path.bbr.state(), gains(&path.bbr)), (State::Cruise, (1.0, 2.0)));
}

/// Exiting DRAIN Based on Time: with more than three rounds after its beginning.
#[test]
fn drain_ends_after_three_rounds() {
    let mut path = Path::draining();
    let start = path.bbr.drain_start_round;
    for _ in 0..3 {
        path.round(Given { in_flight: 2 * BDP, rate: 0.9 * RATE, ..STEADY });
        assert_eq!(path.bbr.state(), State::Drain);
    }
    path.round(Given { in_flight: 2 * BDP, rate: 0.9 * RATE, ..STEADY });
    assert_eq!((path.bbr.state(), path.bbr.round_count), (State::Down, start + 4));
}

/// Exiting PROBE_DOWN on Inflight: at most the headroom's share and the bandwidth-delay product.
#[test]
fn down_ends_with_headroom() {
    for (longterm, most) in [(f64::INFINITY, BDP), (80.0, 68)] {
        let mut path = Path::in_state(State::Down);
        path.bbr.inflight_longterm = longterm;
        let in_flight = |in_flight| Given { in_flight, packets: in_flight, lost: 10, ..STEADY };
        path.round(in_flight(most + 1));
        assert_eq!((path.bbr.state(), path.bbr.pacing_gain), (State::Down, 0.9), "{longterm}");
        path.round(in_flight(most));
        assert_eq!((path.bbr.state(), path.bbr.pacing_gain), (State::Cruise, 1.0), "{longterm}");
    }
}

/// Exiting PROBE_DOWN After Max Time: after bw_probe_wait, without Cruise.
#[test]
fn down_ends_after_the_wait() {
    let mut path = Path::in_state(State::Down);
    let (began, wait) = (path.bbr.cycle_stamp, path.bbr.bw_probe_wait);
    assert!(wait >= Dur::from_millis(2000) && wait < Dur::from_millis(3000));
    while path.bbr.state() == State::Down {
        assert!(path.now <= began + wait);
        path.round(Given { in_flight: 2 * BDP, rate: 0.9 * RATE, ..STEADY });
    }
    assert_eq!(path.bbr.state(), State::Refill);
    assert!(path.now > began + wait && path.now <= began + wait + Dur::from_secs(RTT));
}

/// Reno would probe after min(bdp, 63) rounds: after 62 or 63, because the count begins at 0 or 1.
#[test]
fn cruise_lasts_no_longer_than_renos_rounds() {
    let mut path = Path::in_state(State::Cruise);
    let mut rounds = path.bbr.rounds_since_probe_up;
    path.bbr.bw_probe_wait = Dur::from_millis(1_000_000);
    while path.bbr.state() == State::Cruise {
        path.round(STEADY);
        rounds += 1;
    }
    assert_eq!((path.bbr.state(), rounds), (State::Refill, 63));
}

/// Refill lasts a round without the short-term model, and Up begins with the gains of the table.
#[test]
fn refill_lasts_a_round() {
    let mut path = Path::in_state(State::Cruise);
    path.lose(1, BDP, false);
    path.round(STEADY);
    path.round(STEADY);
    assert!(path.bbr.bw_shortterm.is_finite() && path.bbr.inflight_shortterm.is_finite());
    let mut path = path.until(State::Refill);
    assert_eq!(
        (path.bbr.bw_shortterm, path.bbr.inflight_shortterm),
        (f64::INFINITY, f64::INFINITY)
    );
    assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (1.0, 2.0));
    path.round(STEADY);
    assert_eq!(path.bbr.state(), State::Up);
    assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (1.25, 2.25));
    assert!(path.bbr.is_bw_probe_sample);
}

/// Exiting PROBE_UP on Bandwidth Plateau.
#[test]
fn up_ends_on_a_bandwidth_plateau() {
    let mut path = Path::in_state(State::Up);
    for count in 1..=2 {
        path.round(STEADY);
        assert_eq!((path.bbr.state(), path.bbr.full_bw_count), (State::Up, count));
    }
    path.round(STEADY);
    assert_eq!((path.bbr.state(), path.bbr.full_bw_now), (State::Down, true));
    assert!(!path.bbr.prev_probe_too_high);
}

/// The window at inflight_longterm restarts the search for a plateau.
#[test]
fn up_lasts_while_inflight_longterm_limits_it() {
    let mut path = Path::in_state(State::Up);
    path.bbr.inflight_longterm = f64::from(BDP);
    path.bbr.w = f64::from(BDP);
    for _ in 0..5 {
        path.round(Given { limit: Limit::Window, ..STEADY });
        for _ in 0..4 {
            path.within_round(Given { limit: Limit::Window, packets: 5, ..STEADY });
        }
        assert_eq!(path.bbr.state(), State::Up);
        assert!(path.bbr.full_bw_count <= 1, "{}", path.bbr.full_bw_count);
    }
    // The application limits it: the plateau ends it.
    path.bbr.cwnd_limited_at = None;
    path.bbr.full_bw_count = 0;
    for _ in 0..3 {
        assert_eq!(path.bbr.state(), State::Up);
        path.round(STEADY);
    }
    assert_eq!(path.bbr.state(), State::Down);
}

/// Exiting PROBE_UP on Loss When Application-Limited: the state changes; inflight_longterm keeps
/// its value, because the packets in flight were the application's choice (HandleInflightTooHigh).
#[test]
fn up_ends_on_loss_even_if_the_application_limits_the_sender() {
    let mut path = Path::in_state(State::Up);
    path.bbr.inflight_longterm = 150.0;
    path.round(Given { limited: true, ..STEADY });
    path.lose(2, BDP, true);
    assert_eq!(path.bbr.state(), State::Up, "2 % are not above the threshold");
    path.lose(3, BDP, true);
    assert_eq!((path.bbr.state(), path.bbr.inflight_longterm), (State::Down, 150.0));
    assert!(path.bbr.prev_probe_too_high && !path.bbr.is_bw_probe_sample);
}

/// Never Exiting PROBE_UP When Application-Limited With No Loss.
#[test]
fn up_goes_on_while_the_application_limits_the_sender() {
    let mut path = Path::in_state(State::Up);
    for _ in 0..20 {
        path.round(Given { limited: true, in_flight: 10, packets: 10, rate: 0.1 * RATE, ..STEADY });
        assert_eq!(path.bbr.state(), State::Up);
    }
}

/// Handling Loss During PROBE_UP After inflight_longterm is Set. InflightAtLoss: 5 of 200 packets
/// are lost in one detection; (195 + x) * 2 % = 0 + x gives x = 3.98.
#[test]
fn a_loss_in_up_reduces_inflight_longterm() {
    let mut path = Path::in_state(State::Up);
    path.bbr.inflight_longterm = 400.0;
    path.lose(5, 200, false);
    assert_eq!(path.bbr.state(), State::Down);
    let expected = 195.0 + 0.02 * 195.0 / 0.98;
    assert!((path.bbr.inflight_longterm - expected).abs() < 1e-9, "{}", path.bbr.inflight_longterm);
    assert!(path.bbr.w <= path.bbr.inflight_longterm);
    // Only once in a probe.
    path.lose(50, 100, false);
    assert!((path.bbr.inflight_longterm - expected).abs() < 1e-9);

    // At least 0.7 of min(bdp, w).
    let mut path = Path::in_state(State::Up);
    assert!(path.bbr.w > f64::from(BDP));
    path.lose(20, 40, false);
    assert!((path.bbr.inflight_longterm - 0.7 * f64::from(BDP)).abs() < 1e-9);
}

/// Precautionary Bandwidth Probing (section 5.3.3.6): after a probe that was too high the next one
/// ends at inflight_longterm, and without losses is followed by another at once.
#[test]
fn a_probe_after_a_loss_is_precautionary() {
    let mut path = Path::in_state(State::Up);
    path.lose(5, 120, false);
    let longterm = path.bbr.inflight_longterm;
    let mut path = path.until(State::Up);
    assert!(path.bbr.prev_probe_too_high);
    // It has a fraction, and the sender stops at the whole number below.
    assert_ne!(longterm, longterm.floor());
    let before = longterm as u32 - STEADY.packets;
    path.round(Given { in_flight: before - 1, ..STEADY });
    assert_eq!(path.bbr.state(), State::Up);
    path.round(Given { in_flight: before, ..STEADY });
    assert_eq!(path.bbr.state(), State::Down);
    assert!(path.bbr.prev_probe_precautionary && !path.bbr.prev_probe_too_high);
    path.round(STEADY);
    assert_eq!(path.bbr.state(), State::Refill);
    assert!(!path.bbr.prev_probe_precautionary);
}

/// Increasing Bandwidth 10x: inflight_longterm grows by 1, 2, 4, 8 packets in the rounds that it
/// limits.
#[test]
fn inflight_longterm_grows_exponentially_in_up() {
    let mut path = Path::in_state(State::Up);
    path.bbr.inflight_longterm = 150.0;
    path.bbr.w = 150.0;
    path.bbr.probe_up_acked_per_inc = 150.0;
    let mut growth = Vec::new();
    for _ in 0..5 {
        let before = path.bbr.inflight_longterm;
        path.round(Given { packets: 150, in_flight: 150, limit: Limit::Window, ..STEADY });
        for _ in 0..4 {
            path.within_round(Given { packets: 5, in_flight: 150, limit: Limit::Window, ..STEADY });
        }
        growth.push(path.bbr.inflight_longterm - before);
    }
    assert!((1.0..=2.0).contains(&growth[0]), "{growth:?}");
    for pair in growth.windows(2) {
        assert!((1.5..=3.0).contains(&(pair[1] / pair[0])), "{growth:?}");
    }
    assert_eq!(path.bbr.state(), State::Up);
}

/// Losses outside of probes reduce the short-term model to the latest delivery, at most to 0.7 in a
/// round.
#[test]
fn a_round_with_losses_reduces_the_short_term_model() {
    let mut path = Path::in_state(State::Cruise);
    path.round(STEADY);
    let w = path.bbr.w;
    path.lose(1, BDP, false);
    path.round(Given { rate: 0.5 * RATE, packets: BDP / 2, ..STEADY });
    // The first round ends with the packets in flight at the loss; the latest rate of that round is
    // the path's.
    assert_eq!(path.bbr.bw_shortterm, RATE);
    path.lose(1, BDP, false);
    path.round(Given { rate: 0.5 * RATE, packets: BDP / 2, ..STEADY });
    assert!((path.bbr.bw_shortterm - 0.7 * RATE).abs() < 1e-9, "{}", path.bbr.bw_shortterm);
    assert!(path.bbr.inflight_shortterm < w);
    assert!((path.bbr.bw - 0.7 * RATE).abs() < 1e-9);
    assert_eq!(path.bbr.max_bw, RATE);
}

/// Skipping PROBE_RTT Due to Application-Limited Sending.
#[test]
fn an_idle_period_replaces_probe_rtt() {
    for idle in [true, false] {
        let mut path = Path::before_probe_rtt();
        let last = u32::from(!idle) * BDP;
        path.round(Given { in_flight: last, limit: Limit::Application, ..STEADY });
        if idle {
            assert!((path.bbr.pace - 0.99 * RATE).abs() < 1e-6);
        }
        path.now += Dur::from_secs(6.0);
        path.round(Given { limited: true, ..STEADY });
        assert_eq!(path.bbr.state() == State::ProbeRtt, !idle);
        assert!(!path.bbr.idle_restart, "it lasts until the first delivery");
    }
}

/// HandleRestartFromIdle applies to flows that the application limits, not to those whose flight
/// ends between two paced packets.
#[test]
fn a_flow_that_the_pacing_rate_limits_is_not_idle() {
    let mut path = Path::in_state(State::Up);
    let pace = path.bbr.pace;
    for _ in 0..3 {
        path.within_round(Given { in_flight: 0, packets: 1, ..STEADY });
        assert_eq!(path.bbr.pace, pace);
        path.now += Dur::from_secs(2.0 * RTT);
        assert!(!path.bbr.idle_restart);
    }
}

/// The packets acknowledged before an idle period are not in the sampling interval of extra_acked
/// after it.
#[test]
fn an_idle_period_begins_a_sampling_interval() {
    let mut path = Path::in_state(State::Cruise);
    for _ in 0..50 {
        path.round(Given { in_flight: 0, limited: true, limit: Limit::Application, ..STEADY });
        path.now += Dur::from_secs(1.0);
    }
    assert!(path.bbr.extra_acked <= f64::from(BDP), "{}", path.bbr.extra_acked);
}

/// An idle sender leaves ProbeRTT by its timer.
#[test]
fn probe_rtt_ends_while_the_sender_is_idle() {
    let mut path = Path::before_probe_rtt();
    path.now += Dur::from_secs(6.0);
    path.round(STEADY);
    assert_eq!(path.bbr.state(), State::ProbeRtt);
    let w = path.bbr.prior_cwnd;
    path.round(Given { in_flight: 0, packets: 4, limit: Limit::Application, ..STEADY });
    let wake = path.bbr.output().wake.unwrap();
    assert!(wake > path.now + Dur::from_millis(200));
    path.bbr.on(wake, &Event::Tick);
    assert_eq!((path.bbr.state(), path.bbr.output().wake), (State::Cruise, None));
    assert!(path.bbr.w >= w);
}

/// Handling Spurious Fast Recovery and Spurious RTO Recovery.
#[test]
fn a_spurious_recovery_restores_state_and_model() {
    // Up ends by a loss, and begins again with Refill.
    let mut path = Path::in_state(State::Up);
    let before = path.bbr.clone();
    path.lose(5, 120, false);
    assert_eq!(path.bbr.state(), State::Down);
    path.bbr.on(path.now, &Event::Undo);
    assert_eq!(path.bbr.state(), State::Refill);
    assert_eq!(path.bbr.inflight_longterm, before.inflight_longterm);
    assert_eq!(path.bbr.w, before.w.min(path.bbr.max_inflight()));

    // Startup ends by losses, and begins again.
    let mut path = Path::new();
    let given = Given { limited: true, in_flight: 150, lost: 6, ..STEADY };
    path.round(given);
    for _ in 0..6 {
        path.lose(1, 150, true);
    }
    path.round(given);
    assert_eq!(path.bbr.state(), State::Drain);
    path.bbr.on(path.now, &Event::Undo);
    assert_eq!((path.bbr.state(), path.bbr.full_bw_reached), (State::Startup, false));
    assert_eq!(path.bbr.inflight_longterm, f64::INFINITY);

    // A timeout in Cruise.
    let mut path = Path::in_state(State::Cruise);
    path.lose(1, BDP, false);
    path.round(STEADY);
    path.round(STEADY);
    let before = path.bbr.clone();
    assert!(before.bw_shortterm.is_finite());
    path.bbr.on(path.now, &Event::Timeout(Lost::new(0, Time::ZERO, 1000)));
    assert_eq!(path.bbr.w, 1.0);
    path.bbr.on(path.now + Dur::from_millis(10), &Event::Undo);
    assert_eq!((path.bbr.w, path.bbr.state()), (before.w, before.state()));
    assert_eq!(path.bbr.bw_shortterm, before.bw_shortterm);
    assert_eq!(path.bbr.inflight_shortterm, before.inflight_shortterm);
}

/// Only the packets that a timeout declares lost leave the flight, with their state: RACK may keep
/// others.
#[test]
fn a_timeout_loses_what_it_declares_lost() {
    for (lost, too_high) in [(0, false), (1, false), (10, true)] {
        let mut path = Path::in_state(State::Up);
        let before = path.bbr.in_flight;
        let delivery = (lost > 0).then(|| loss_sample(lost, BDP, false));
        let event = Lost { delivery, ..Lost::new(lost, path.now, 1000) };
        path.bbr.on(path.now, &Event::Timeout(event));
        assert_eq!((path.bbr.w, path.bbr.in_flight), (1.0, before - lost));
        assert_eq!(path.bbr.inflight_longterm.is_finite(), too_high);
    }
}

/// After a timeout the window grows with the acknowledgements, and is restored two rounds later.
#[test]
fn the_window_is_restored_after_a_timeout() {
    let mut path = Path::in_state(State::Cruise);
    let before = path.bbr.w;
    path.bbr.on(path.now, &Event::Timeout(Lost::new(0, Time::ZERO, 1000)));
    path.round(Given { packets: 1, in_flight: 0, rate: 10.0, ..STEADY });
    assert_eq!(path.bbr.w, 4.0);
    path.round(Given { packets: 4, in_flight: 4, rate: 40.0, ..STEADY });
    assert!(path.bbr.w > 0.6 * before, "{}", path.bbr.w);
    assert_eq!(path.bbr.recovery, Recovery::None);
}

/// Handling Application-Limited Sending During PROBE_REFILL: its low samples are not those of the
/// path.
#[test]
fn refill_ignores_samples_that_the_application_limits() {
    let mut path = Path::in_state(State::Refill);
    let before = path.bbr.max_bw;
    path.round(Given { limited: true, rate: 0.1 * RATE, packets: 10, in_flight: 10, ..STEADY });
    assert_eq!((path.bbr.state(), path.bbr.max_bw), (State::Up, before));
    // A larger one is.
    path.round(Given { limited: true, rate: 1.2 * RATE, ..STEADY });
    assert!((path.bbr.max_bw - 1.2 * RATE).abs() < 1.0);
}

/// Correctly Managing Sub-Packet BDPs, and the offload budgets of TCP and QUIC.
#[test]
fn the_window_is_at_least_four_packets() {
    let mut settings = Settings::default();
    for (conventions, least) in [(&crate::Conventions::RFC, 6.0), (&crate::Conventions::QUIC, 4.0)]
    {
        settings.conventions = conventions;
        let mut path = Path { bbr: Bbr3::new(Aging::Quiche, &settings), now: Time::ZERO };
        let tiny = Given { packets: 1, rate: 100.0, rtt: 0.001, in_flight: 3, ..STEADY };
        for _ in 0..300 {
            path.acked(0.01, path.bbr.delivered, tiny);
            assert!(path.bbr.w >= 4.0);
        }
        assert!(path.bbr.is_in_probe_bw());
        while path.bbr.state() != State::Refill {
            assert!(path.now < Time::ZERO + Dur::from_secs(20.0));
            path.acked(0.01, path.bbr.delivered, tiny);
        }
        assert_eq!(path.bbr.w, least);
        assert!((path.bbr.pace - 99.0).abs() < 1e-6);
    }
}

/// BBR.extra_acked: the excess over the bandwidth, for ten rounds.
#[test]
fn aggregated_acknowledgements_enlarge_the_window() {
    let mut path = Path::in_state(State::Cruise);
    path.bbr.bw_probe_wait = Dur::from_secs(3600.0);
    path.bbr.rounds_since_probe_up = 0;
    // Each packet has an acknowledgement of its own, which begins a round.
    let each = Given { packets: 1, ..STEADY };
    let next = |path: &mut Path, after: f64, given: Given| {
        path.acked(after, path.bbr.delivered, given);
        path.bbr.extra_acked
    };
    next(&mut path, 0.2, each);
    for _ in 0..12 {
        next(&mut path, 1e-3, each);
    }
    assert!((path.bbr.extra_acked - 1.0).abs() < 1e-6, "{}", path.bbr.extra_acked);
    let extra = next(&mut path, 60e-3, Given { packets: 60, ..STEADY });
    assert!((extra - 60.0).abs() < 1e-6, "{extra}");
    assert!((path.bbr.max_inflight() - 2.0 * f64::from(BDP) - extra).abs() < 1e-6);
    assert!(path.bbr.w <= path.bbr.max_inflight());
    // A pause ends the aggregate; the filter keeps it.
    for _ in 0..10 {
        assert_eq!(next(&mut path, 0.1, each), extra);
    }
    let extra = next(&mut path, 0.1, each);
    assert!((extra - 1.0).abs() < 1e-6, "{extra}");
}

/// The maximum of bandwidth has two cycles: it falls after the second one without the old rate.
#[test]
fn max_bw_forgets_after_two_cycles() {
    let mut path = Path::in_state(State::Cruise);
    let slow = Given { rate: 0.1 * RATE, packets: BDP / 10, in_flight: BDP / 10, ..STEADY };
    let mut cycles = path.bbr.cycle_count;
    let first = cycles;
    while path.bbr.cycle_count < first + 3 {
        path.round(slow);
        if path.bbr.cycle_count > cycles {
            cycles = path.bbr.cycle_count;
        }
        if path.bbr.cycle_count < first + 1 {
            assert_eq!(path.bbr.max_bw, RATE);
        }
    }
    path.round(slow);
    assert!((path.bbr.max_bw - 0.1 * RATE).abs() < 1e-6, "{}", path.bbr.max_bw);
}

/// In packets of another size the model is the same in bytes.
#[test]
fn a_change_of_the_packet_size_keeps_the_bytes() {
    let mut path = Path::in_state(State::Cruise);
    let (pace, w) = (path.bbr.pace, path.bbr.w);
    path.bbr.on(path.now, &Event::Mtu { packet: 3000 });
    assert!((path.bbr.pace - pace / 2.0).abs() < 1e-9 && (path.bbr.w - w / 2.0).abs() < 1e-9);
    path.round(Given { rate: RATE / 2.0, packets: BDP / 2, in_flight: BDP / 2, ..STEADY });
    assert!((path.bbr.max_bw - RATE / 2.0).abs() < 1e-9);
}

/// In QUICHE a cycle with a sample ends with Down, once after each Refill; by the draft, with the
/// first round whose sample is not limited.
#[test]
fn max_bw_ages_at_the_end_of_down() {
    for (aging, has_sample, after_down) in
        [(Aging::Quiche, true, 1), (Aging::Quiche, false, 0), (Aging::Draft, true, 0)]
    {
        let mut path = Path::in_state(State::Cruise);
        (path.bbr.aging, path.bbr.has_sample) = (aging, has_sample);
        path.bbr.has_advanced = false;
        let before = path.bbr.cycle_count;
        path.bbr.start_down(path.now);
        path.bbr.start_cruise();
        assert_eq!(path.bbr.cycle_count, before + after_down, "{aging:?}");
        path.round(STEADY);
        assert_eq!(path.bbr.cycle_count, before + 1, "{aging:?}");
    }
}
