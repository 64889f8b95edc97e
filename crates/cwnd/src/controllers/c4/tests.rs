//! Tests of the rules of C4.

use super::*;
use crate::delivery::RateSample;
use crate::testing::{at_ms, ms, sampled};
use crate::units::Dur;

/// A flow whose acknowledgements are one for each era.
struct Flow {
    c4: C4,
    now: Time,
}

const RTT: f64 = 0.1;

impl Flow {
    fn new() -> Self {
        let settings = Settings { packet: 1000, ..Settings::default() };
        Flow { c4: C4::new(&settings), now: Time::ZERO }
    }

    /// An acknowledgement after `rtt` seconds of a packet sent now, with a delivery rate in packets
    /// per second.
    fn ack(&mut self, rate: f64, rtt: f64) {
        self.now += Dur::from_secs(rtt);
        let mut sample = RateSample::new();
        sample.prior_delivered = self.c4.delivered;
        sample.delivered = (rate * rtt + 0.5) as u64;
        let acked = sampled(1, self.now, Dur::from_secs(rtt));
        let acked = Acked { delivery: Some(sample), ..acked };
        self.c4.on(self.now, &Event::Acked(acked));
    }

    fn lose(&mut self, packets: u32, sent_at: Time) {
        self.c4.on(self.now, &Event::Lost(Lost::new(packets, sent_at, 100)));
    }

    /// In Cruising at `rate`, with the RTT of the constant.
    fn cruising(rate: f64) -> Self {
        let mut flow = Flow::new();
        for _ in 0..5 {
            flow.ack(rate, RTT);
        }
        assert_eq!(flow.c4.state(), State::Cruising);
        flow
    }
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-9 * right.abs().max(1e-3)
}

#[test]
fn sensitivity_is_linear_between_its_points() {
    let mut c4 = Flow::new().c4;
    for (kilobytes, sensitivity) in [
        (10.0, 0.0),
        (50.0, 0.0),
        (525.0, 0.46),
        (1e3, 0.92),
        (5.5e3, 0.96),
        (1e4, 1.0),
        (1e5, 1.0),
    ] {
        c4.rate = kilobytes;
        assert!(close(c4.sensitivity(), sensitivity), "{kilobytes}: {}", c4.sensitivity());
    }
}

#[test]
fn thresholds_fall_with_the_sensitivity() {
    let mut c4 = Flow::new().c4;
    (c4.rate, c4.max_rtt) = (10.0, 0.04);
    assert!(close(c4.delay_threshold(), 0.01) && close(c4.loss_threshold(), 0.52));
    c4.rate = 1e4;
    assert!(close(c4.delay_threshold(), 0.0025) && close(c4.loss_threshold(), 0.02));
    c4.max_rtt = 1.0;
    assert_eq!(c4.delay_threshold(), 0.025);
}

#[test]
fn the_rate_is_what_was_delivered_and_only_grows() {
    let mut flow = Flow::new();
    assert_eq!(flow.c4.output().pace, None);
    assert_eq!(flow.c4.output().window, Packets::new(10.0));
    flow.ack(200.0, RTT);
    assert!(close(flow.c4.rate, 200.0));
    flow.ack(100.0, RTT);
    assert!(close(flow.c4.rate, 200.0));
    // 2 rate, 5/4 of it for bunches, and twice the bandwidth-delay product.
    assert!(close(flow.c4.output().pace.unwrap().as_per_sec(), 500.0));
    assert!(close(flow.c4.output().window.get(), 40.0));
}

#[test]
fn a_long_send_interval_bounds_the_rate() {
    let mut flow = Flow::new();
    let mut sample = RateSample::new();
    (sample.delivered, sample.send_elapsed) = (20, ms(200));
    let acked = Acked { delivery: Some(sample), ..sampled(1, at_ms(100), ms(100)) };
    flow.c4.on(at_ms(100), &Event::Acked(acked));
    assert!(close(flow.c4.rate, 100.0));
}

#[test]
fn three_eras_without_growth_end_initial() {
    let mut flow = Flow::new();
    for rate in [100.0, 200.0, 400.0, 400.0, 440.0] {
        flow.ack(rate, RTT);
        assert_eq!(flow.c4.state(), State::Initial, "{rate}");
    }
    // A tenth more is no growth: the rate was to double.
    flow.ack(440.0, RTT);
    assert_eq!(flow.c4.state(), State::Recovery);
    assert_eq!(flow.c4.alpha, ALPHA_RECOVERY);
    assert!(close(flow.c4.output().window.get(), 15.0 / 16.0 * 44.0));
}

#[test]
fn delays_end_initial_after_two_flat_eras() {
    let mut flow = Flow::new();
    flow.ack(400.0, RTT);
    flow.ack(400.0, 2.0 * RTT);
    assert_eq!(flow.c4.state(), State::Initial);
    flow.ack(200.0, 2.0 * RTT);
    assert_eq!((flow.c4.state(), flow.c4.flat), (State::Initial, 2));
    flow.ack(200.0, 2.0 * RTT);
    assert_eq!(flow.c4.state(), State::Recovery);
    assert!(close(flow.c4.rate, 400.0) && close(flow.c4.max_rtt, RTT));
}

#[test]
fn losses_end_initial_after_twenty_packets() {
    let mut flow = Flow::new();
    flow.ack(10e3, RTT);
    flow.lose(20, flow.now);
    assert_eq!(flow.c4.state(), State::Initial);
    flow.c4.received = 21;
    flow.lose(1, flow.now);
    assert_eq!(flow.c4.state(), State::Recovery);
    assert!(close(flow.c4.rate, 10e3));
}

/// The states of C4: four eras of Cruising, then one of Pushing and one of Recovery.
#[test]
fn a_cycle_has_four_eras_of_cruising() {
    let mut flow = Flow::cruising(1000.0);
    for _ in 0..3 {
        flow.ack(1000.0, RTT);
        assert_eq!((flow.c4.state(), flow.c4.alpha), (State::Cruising, 1.0));
    }
    flow.ack(1000.0, RTT);
    assert_eq!((flow.c4.state(), flow.c4.alpha), (State::Pushing, ALPHA_PUSHING_LOW));
    flow.ack(1000.0, RTT);
    assert_eq!(flow.c4.state(), State::Recovery);
    flow.ack(1000.0, RTT);
    assert_eq!((flow.c4.state(), flow.c4.cruise), (State::Cruising, CRUISING_ERAS));
}

#[test]
fn an_application_limited_flow_does_not_push() {
    let mut flow = Flow::cruising(1000.0);
    for _ in 0..8 {
        flow.now += Dur::from_secs(RTT);
        let mut acked = Acked::new(1, flow.now);
        (acked.rtt, acked.limit) = (Some(Dur::from_secs(RTT)), Limit::Application);
        flow.c4.on(flow.now, &Event::Acked(acked));
        assert_eq!(flow.c4.state(), State::Cruising);
    }
    flow.ack(1000.0, RTT);
    assert_eq!(flow.c4.state(), State::Pushing);
}

/// A successful push shortens Cruising and is followed by one of 5/4; four of them restart Initial.
#[test]
fn successful_pushes_restart_initial() {
    let mut flow = Flow::cruising(1000.0);
    let mut rate = 1000.0;
    for push in 0..4 {
        let eras = if push == 0 { 4 } else { 1 };
        for _ in 0..eras {
            assert_eq!(flow.c4.state(), State::Cruising);
            flow.ack(rate, RTT);
        }
        let alpha = if push == 0 { ALPHA_PUSHING_LOW } else { ALPHA_PUSHING };
        assert_eq!((flow.c4.state(), flow.c4.alpha), (State::Pushing, alpha));
        rate *= 1.1;
        flow.ack(rate, RTT);
        assert_eq!(flow.c4.state(), State::Recovery);
        flow.ack(rate, RTT);
    }
    assert_eq!((flow.c4.state(), flow.c4.pushes), (State::Initial, 0));
}

/// An increase of a sixteenth is a quarter of that of a push of 5/4.
#[test]
fn a_push_of_a_quarter_needs_a_sixteenth() {
    for (growth, successful) in [(1.06, false), (1.065, true)] {
        let mut c4 = Flow::cruising(1000.0).c4;
        (c4.state, c4.reference, c4.pushed, c4.used) =
            (State::Recovery, 1000.0, ALPHA_PUSHING, true);
        c4.rate = growth * 1000.0;
        c4.assess();
        assert_eq!(c4.pushes, u32::from(successful), "{growth}");
    }
}

#[test]
fn a_loss_in_cruising_takes_a_quarter() {
    let mut flow = Flow::cruising(10e3);
    let sent_at = flow.now;
    flow.lose(1, sent_at);
    assert_eq!(flow.c4.state(), State::Recovery);
    assert!(close(flow.c4.rate, 7500.0) && close(flow.c4.max_rtt, 0.075));
    let cut = flow.c4.take_cut().unwrap();
    assert!(close(cut.before(), 1000.0) && close(cut.after(), 562.5 * 15.0 / 16.0));
    // Neither further losses in Recovery nor those of packets sent before it count.
    flow.lose(1, flow.now);
    flow.ack(10e3, RTT);
    flow.lose(5, sent_at - Dur::from_millis(1));
    assert_eq!(flow.c4.state(), State::Cruising);
    assert!(close(flow.c4.rate, 7500.0), "no bounce: {}", flow.c4.rate);
}

/// At 10 kB/s the threshold is 52 %.
#[test]
fn a_slow_flow_tolerates_losses() {
    let mut flow = Flow::cruising(10.0);
    flow.lose(11, flow.now);
    assert_eq!(flow.c4.state(), State::Cruising);
    flow.lose(1, flow.now);
    assert_eq!(flow.c4.state(), State::Recovery);
}

#[test]
fn a_signal_in_pushing_leaves_the_rate() {
    let mut flow = Flow::cruising(10e3);
    for _ in 0..4 {
        flow.ack(10e3, RTT);
    }
    let mut delayed = Flow { c4: flow.c4.clone(), now: flow.now };
    flow.lose(1, flow.now);
    assert_eq!((flow.c4.state(), flow.c4.pushes), (State::Recovery, 0));
    assert!(close(flow.c4.rate, 10e3));
    assert_eq!(delayed.c4.state(), State::Pushing);
    delayed.ack(10e3, 1.1 * RTT);
    assert!(delayed.c4.congested && close(delayed.c4.rate, 10e3));
}

#[test]
fn a_mark_in_cruising_takes_a_quarter() {
    let mut flow = Flow::cruising(1000.0);
    let marked = crate::event::Marked::new(1, flow.now, 100);
    flow.c4.on(flow.now, &Event::Marked(marked));
    assert_eq!(flow.c4.state(), State::Recovery);
    assert!(close(flow.c4.rate, 750.0) && close(flow.c4.max_rtt, RTT));
}

#[test]
fn the_pace_is_at_least_that_of_two_packets() {
    let mut flow = Flow::cruising(1000.0);
    for _ in 0..100 {
        let marked = crate::event::Marked::new(1, flow.now, 100);
        flow.c4.on(flow.now, &Event::Marked(marked));
        flow.ack(1.0, RTT);
    }
    assert!(flow.c4.rate < 11.0);
    assert!(close(flow.c4.output().pace.unwrap().as_per_sec(), 20.0));
    assert_eq!(flow.c4.output().window, Packets::new(2.0));
}

#[test]
fn the_max_rtt_follows_jitter_and_forgets_it() {
    let mut flow = Flow::cruising(1000.0);
    flow.ack(1000.0, 1.5 * RTT);
    assert!(close(flow.c4.max_rtt, 1.5 * RTT));
    flow.ack(1000.0, RTT);
    assert!(close(flow.c4.max_rtt, (7.0 * 1.5 + 1.0) / 8.0 * RTT));
    // At most 250 ms above the running min RTT.
    flow.ack(1000.0, 10.0 * RTT);
    assert!(close(flow.c4.max_rtt, flow.c4.min_rtt + MAX_JITTER));
}

#[test]
fn high_jitter_restarts_initial_once() {
    let mut flow = Flow::cruising(1000.0);
    flow.c4.max_rtt = 4.0 * RTT;
    flow.c4.enter_recovery(flow.now);
    flow.ack(1000.0, RTT);
    assert_eq!(flow.c4.state(), State::Initial);
    flow.c4.max_rtt = 4.0 * RTT;
    flow.c4.enter_recovery(flow.now);
    flow.ack(1000.0, RTT);
    assert_eq!(flow.c4.state(), State::Cruising);
}

/// A timeout without losses, such as QUIC's, would change nothing else.
#[test]
fn after_a_timeout_the_window_is_a_packet_until_the_path_answers() {
    let mut flow = Flow::cruising(1000.0);
    let before = flow.c4.output();
    flow.c4.on(flow.now, &Event::Timeout(Lost::new(0, Time::ZERO, 100)));
    assert_eq!(flow.c4.output().window, Packets::new(1.0));
    assert_eq!(flow.c4.take_cut().map(|cut| cut.why), Some(Signal::Timeout));
    // A packet sent before the timeout arrives.
    flow.c4.on(flow.now, &Event::Acked(Acked::new(1, Time::ZERO)));
    assert_eq!(flow.c4.output().window, Packets::new(1.0));
    flow.c4.on(flow.now, &Event::Acked(Acked::new(1, flow.now)));
    assert_eq!(flow.c4.output(), before);
    flow.c4.on(flow.now, &Event::PersistentCongestion);
    assert_eq!(flow.c4.output().window, Packets::new(2.0));
    flow.c4.on(flow.now, &Event::Undo);
    assert_eq!(flow.c4.output(), before);
}

/// 1 - (15/16)^10 is a loss rate of 47.6 %, above the threshold of 47.2 % at 1000 packets of 150
/// bytes in a second.
#[test]
fn losses_at_a_timeout_count() {
    let mut flow = Flow::cruising(1000.0);
    flow.c4.rescale(150);
    flow.c4.rate = 1000.0;
    flow.c4.on(flow.now, &Event::Timeout(Lost::new(9, flow.now, 100)));
    assert!(close(flow.c4.loss_rate, 1.0 - (15.0_f64 / 16.0).powi(9)));
    assert!(close(flow.c4.rate, 1000.0));
    flow.c4.on(flow.now, &Event::Timeout(Lost::new(1, flow.now, 100)));
    assert!(close(flow.c4.rate, 750.0));
    assert_eq!(flow.c4.state(), State::Recovery);
}

/// A timeout whose losses are a signal is one reduction, from the window before it.
#[test]
fn a_timeout_is_one_reduction() {
    let mut flow = Flow::cruising(1000.0);
    let before = flow.c4.output().window;
    flow.c4.on(flow.now, &Event::Timeout(Lost::new(100, flow.now, 100)));
    assert!(close(flow.c4.rate, 750.0));
    let cut = Cut::window(Signal::Timeout, before, Packets::new(1.0));
    assert_eq!(flow.c4.take_cut(), Some(cut));
}

#[test]
fn a_change_of_the_packet_size_keeps_the_bytes() {
    let mut flow = Flow::cruising(1000.0);
    flow.c4.in_flight = 100;
    flow.c4.on(flow.now, &Event::Mtu { packet: 500 });
    assert!(close(flow.c4.rate, 2000.0));
    // The packets of the old size that were in flight, then new ones.
    flow.ack(1000.0, RTT);
    assert!(close(flow.c4.rate, 2000.0));
    flow.ack(2100.0, RTT);
    assert!(close(flow.c4.rate, 2100.0));
}

/// Also the window after a timeout, which is at least one packet.
#[test]
fn a_change_of_the_packet_size_keeps_the_bytes_after_a_timeout() {
    let mut flow = Flow::cruising(1000.0);
    flow.c4.on(flow.now, &Event::Timeout(Lost::new(0, flow.now, 100)));
    for (packet, window) in [(500, 2.0), (1000, 1.0), (2000, 1.0)] {
        flow.c4.on(flow.now, &Event::Mtu { packet });
        assert_eq!(flow.c4.output().window.get(), window, "{packet}");
    }
}
