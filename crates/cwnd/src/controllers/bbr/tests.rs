//! Rules of tcp_bbr.c, on a path that is computed here.

use super::*;
use crate::testing::sampled;
use alloc::vec::Vec;

const RTT: f64 = 0.1;

/// A path of `rate` packets per second and 100 ms: one acknowledgement a packet, as BBR paces them.
struct Path {
    bbr: Bbr,
    now: Time,
    rate: f64,
}

impl Path {
    fn new(rate: f64) -> Self {
        Path { bbr: Bbr::new(&Settings { seed: 1, ..Settings::default() }), now: Time::ZERO, rate }
    }

    /// An acknowledgement of `packets` packets after `gap` seconds. The sample has the delivery
    /// rate `rate` over a round trip of `rtt` seconds.
    fn ack(&mut self, packets: u32, gap: f64, rate: f64, rtt: f64, in_flight: u32) {
        self.now += Dur::from_secs(gap);
        let delivered = self.bbr.delivered + u64::from(packets);
        let mut sample = RateSample::new();
        sample.delivered = ((rate * rtt).round() as u64).clamp(1, delivered);
        sample.prior_delivered = delivered - sample.delivered;
        (sample.send_elapsed, sample.ack_elapsed) = (Dur::from_secs(rtt), Dur::from_secs(rtt));
        sample.reliable = true;
        let acked = sampled(packets, self.now, Dur::from_secs(rtt));
        let acked = Acked { in_flight, delivery: Some(sample), ..acked };
        self.bbr.on(self.now, &Event::Acked(acked));
    }

    /// A round trip at the rate of the path, with a bandwidth-delay product in flight.
    fn round(&mut self) {
        let bdp = (self.rate * RTT) as u32;
        for _ in 0..10 {
            self.ack(bdp / 10, RTT / 10.0, self.rate, RTT, bdp);
        }
    }

    /// A round of Startup at `rate`, whose only sample ends a round.
    fn startup(&mut self, rate: f64) {
        let packets = (rate * RTT) as u32;
        self.ack(packets, RTT, rate, RTT, packets);
    }

    fn lose(&mut self, packets: u32) {
        let lost = Lost::new(packets, self.now, 1_000_000);
        self.bbr.on(self.now, &Event::Lost(lost));
    }

    /// In ProbeBW with an estimate of 1000 packets per second.
    fn probing() -> Self {
        let mut path = Path::new(1000.0);
        for rate in [125.0, 250.0, 500.0, 1000.0, 1000.0, 1000.0, 1000.0] {
            path.startup(rate);
        }
        for _ in 0..3 {
            path.round();
        }
        assert_eq!(path.bbr.state(), State::ProbeBw);
        path
    }
}

#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let mut path = Path::new(1000.0);
    for rate in [120.0, 240.0, 480.0, 960.0] {
        path.startup(rate);
        assert_eq!((path.bbr.state(), path.bbr.pipe_full), (State::Startup, false));
        // 0.99 * 2.885 of the estimate, which never falls.
        assert!(path.bbr.pace >= 0.99 * 2.885 * rate * 0.999);
    }
    // Growth of 20 % is not enough, and 35 % is.
    path.startup(1150.0);
    path.startup(1300.0);
    assert_eq!((path.bbr.full_bw, path.bbr.full_bw_rounds), (1300.0, 0));
    for rounds in 1..3 {
        path.startup(1300.0);
        assert_eq!((path.bbr.full_bw_rounds, path.bbr.state()), (rounds, State::Startup));
    }
    // 130 packets are in flight: inflight(1) is above them, and the queue counts as drained.
    path.startup(1300.0);
    assert_eq!(path.bbr.state(), State::ProbeBw);
}

#[test]
fn drain_lasts_until_a_bandwidth_delay_product_is_in_flight() {
    let mut path = Path::new(1000.0);
    for rate in [125.0, 250.0, 500.0, 1000.0, 1000.0, 1000.0] {
        path.startup(rate);
    }
    path.ack(100, RTT, 1000.0, RTT, 250);
    assert_eq!(path.bbr.state(), State::Drain);
    let pace = path.bbr.output().pace.unwrap().as_per_sec();
    assert!((pace - 0.99 * 1000.0 / 2.885).abs() < 1e-6);
    // inflight(1): 100 packets, 3 segments of 1 packet (343 packets per second are 4.1 Mb/s: 2),
    // rounded up to even.
    path.ack(1, 0.001, 1000.0, RTT, 107);
    assert_eq!(path.bbr.state(), State::Drain);
    path.ack(1, 0.001, 1000.0, RTT, 106);
    assert_eq!(path.bbr.state(), State::ProbeBw);
}

/// The phases last a min_rtt, 5/4 also until inflight(5/4), and the window is twice the product.
#[test]
fn probe_bw_cycles_the_pacing_gain() {
    let mut path = Path::probing();
    let mut gains: Vec<f64> = Vec::new();
    for step in 0..400 {
        let in_flight = if path.bbr.pacing_gain > 1.0 { 132 } else { 110 };
        path.ack(10, 0.01, 1000.0, RTT, in_flight);
        if gains.last() != Some(&path.bbr.pacing_gain) || step == 0 {
            gains.push(path.bbr.pacing_gain);
        }
        assert!([0.75, 1.0, 1.25].contains(&path.bbr.pacing_gain));
    }
    let at = gains.iter().position(|&gain| gain == 1.25).unwrap();
    assert_eq!(gains[at..at + 5], [1.25, 0.75, 1.0, 1.25, 0.75]);
    // 2 BDP, 3 segments of 2 packets, extra_acked; even.
    let expected = 200 + path.bbr.extra_acked() + 6;
    assert!(path.bbr.w == expected + expected % 2 || path.bbr.phase == 0, "{}", path.bbr.w);
    // A loss ends the phase with 5/4 before the packets are in flight.
    while path.bbr.pacing_gain <= 1.0 {
        path.ack(10, 0.01, 1000.0, RTT, 110);
    }
    for _ in 0..30 {
        path.ack(10, 0.01, 1000.0, RTT, 110);
        assert_eq!(path.bbr.pacing_gain, 1.25);
    }
    path.lose(1);
    path.ack(10, 0.01, 1000.0, RTT, 110);
    assert_eq!(path.bbr.pacing_gain, 0.75);
}

/// bbr_packets_in_net_at_edt: what is delivered until the next departure is not in the network
/// then, and the segment that departs is.
#[test]
fn packets_in_the_network_are_those_at_the_next_departure() {
    let mut path = Path::probing();
    path.bbr.pacing_gain = 1.0;
    assert_eq!(path.bbr.in_network(110, Dur::ZERO), 110);
    assert_eq!(path.bbr.in_network(110, Dur::from_micros(1999)), 109);
    assert_eq!(path.bbr.in_network(110, Dur::from_millis(2)), 108);
    assert_eq!(path.bbr.in_network(1, Dur::from_millis(2)), 0);
    path.bbr.pacing_gain = 1.25;
    assert_eq!(path.bbr.in_network(110, Dur::from_millis(2)), 110);
}

/// The phase of 5/4 lasts until 134 packets are in the network at the next departure.
#[test]
fn a_later_departure_prolongs_the_probe() {
    let phase_ends = |departure: f64| {
        let mut path = Path::probing();
        while path.bbr.pacing_gain <= 1.0 {
            path.ack(10, 0.01, 1000.0, RTT, 110);
        }
        path.now += Dur::from_secs(0.2);
        let mut acked = Acked::new(10, path.now);
        acked.in_flight = 122;
        acked.departure = Some(path.now + Dur::from_secs(departure));
        path.bbr.on(path.now, &Event::Acked(acked));
        path.bbr.pacing_gain < 1.0
    };
    assert!(phase_ends(0.0));
    assert!(!phase_ends(0.005));
}

#[test]
fn the_bandwidth_is_the_largest_of_ten_rounds() {
    let mut path = Path::probing();
    for _ in 0..9 {
        path.startup(500.0);
    }
    assert_eq!(path.bbr.max_bw(), 1000.0);
    for _ in 0..3 {
        path.startup(500.0);
    }
    assert_eq!(path.bbr.max_bw(), 500.0);
}

/// Ten seconds after the last min_rtt four packets are in flight, for 200 ms and a round; then the
/// window is restored.
#[test]
fn probe_rtt_every_ten_seconds() {
    let mut path = Path::probing();
    let began = path.bbr.min_rtt_at;
    while path.bbr.state() != State::ProbeRtt {
        path.ack(10, 0.01, 1000.0, RTT + 0.005, 110);
    }
    assert!((path.now.since(began).as_secs() - 10.0).abs() < 0.02);
    assert_eq!((path.bbr.w, path.bbr.prior >= 200), (4, true));
    // The filter takes the RTT at its expiry.
    assert_eq!(path.bbr.min_rtt, Some(Dur::from_secs(RTT + 0.005)));
    path.ack(100, 0.01, 1000.0, RTT, 4);
    let drained = path.now;
    let bandwidth = path.bbr.max_bw();
    while path.bbr.state() == State::ProbeRtt {
        assert_eq!(path.bbr.w, 4);
        path.ack(4, RTT, 40.0, RTT, 4);
    }
    assert!((path.now.since(drained).as_secs() - 0.3).abs() < 0.02);
    assert_eq!(path.bbr.state(), State::ProbeBw);
    assert!(path.bbr.w >= 200);
    // The low rates of ProbeRTT do not count.
    assert_eq!(path.bbr.max_bw(), bandwidth);
    assert_eq!(path.bbr.min_rtt, Some(Dur::from_secs(RTT)));
}

/// A round of packet conservation, then growth by the acknowledged packets, less the lost ones; the
/// end restores the window.
#[test]
fn recovery_conserves_packets_for_a_round() {
    let mut path = Path::probing();
    let before = path.bbr.w;
    path.ack(2, 0.002, 1000.0, RTT, 150);
    path.lose(30);
    // 120 packets in flight and two acknowledged.
    assert_eq!(path.bbr.w, 122);
    assert!(path.bbr.take_cut().is_some());
    path.ack(2, 0.002, 1000.0, RTT, 120);
    assert_eq!(path.bbr.w, 122);
    path.ack(2, 0.002, 1000.0, RTT, 118);
    assert_eq!(path.bbr.w, 122);
    // The next round.
    path.ack(100, RTT, 1000.0, RTT, 50);
    assert_eq!(path.bbr.w, (before).min(222));
    path.lose(40);
    assert_eq!(path.bbr.w, before.min(222) - 40);
    path.bbr.on(path.now, &Event::Recovered);
    assert!(path.bbr.w >= before - 2, "{} {before}", path.bbr.w);
}

#[test]
fn a_timeout_leaves_one_packet_and_restores_the_window_later() {
    let mut path = Path::probing();
    let before = path.bbr.w;
    path.bbr.on(path.now, &Event::Timeout(Lost::new(0, Time::ZERO, 1)));
    assert_eq!(path.bbr.w, 1);
    for _ in 0..4 {
        path.ack(4, RTT, 40.0, RTT, 4);
    }
    assert!(path.bbr.w >= before - 2);
}

/// Two intervals with the same rate and more than 20 % loss: a policer (bbr_lt_bw_sampling). The
/// rate is used for 48 rounds.
#[test]
fn a_policed_rate_is_found_and_used() {
    let mut path = Path::probing();
    let mut rounds = 0;
    while !path.bbr.long_term.used {
        path.lose(30);
        path.startup(1000.0);
        rounds += 1;
        assert!(rounds < 20);
    }
    assert!(rounds >= 2 * 4);
    assert!((path.bbr.bandwidth() - 1000.0).abs() < 1.0);
    assert_eq!(path.bbr.pacing_gain, 1.0);
    for _ in 0..60 {
        path.startup(1000.0);
    }
    assert!(!path.bbr.long_term.used);
}

#[test]
fn aggregated_acknowledgements_widen_the_window() {
    let mut path = Path::probing();
    // A pause ends the epoch.
    path.ack(1, 1.0, 1000.0, RTT, 100);
    for _ in 0..40 {
        path.ack(50, 0.05, 1000.0, RTT, 100);
    }
    // 50 packets at once, of which none were expected.
    assert_eq!(path.bbr.extra_acked(), 50);
    // At most 100 ms of the bandwidth.
    for _ in 0..5 {
        path.ack(300, 0.3, 1000.0, RTT, 100);
    }
    assert_eq!(path.bbr.extra_acked(), 100);
}

#[test]
fn segments_have_two_packets_from_1_2_mbit() {
    let mut bbr = Bbr::new(&Settings::default());
    for (mbit, packets) in [(1.0, 1), (1.3, 2), (20.0, 2), (100.0, 8), (10_000.0, 43)] {
        bbr.pace = mbit * 1e6 / 8.0 / 1500.0;
        assert_eq!(bbr.segment(), packets, "{mbit} Mb/s");
    }
}
