use super::gauge;
use crate::common;
use cwnd::laws::Prague;
use cwnd::{Acked, Context, Dur, Rtt, Signal, WindowLaw};

const G: f64 = 1.0 / 16.0;
/// In seconds.
const RTT_VIRT: f64 = 0.025;

/// Congestion avoidance at `now` ms with a round-trip time of `rtt` ms.
fn at(now: u64, rtt: u64) -> Context {
    Context::new(common::at(now), Some(Rtt::first(Dur::from_millis(rtt))))
}

fn ack(law: &mut Prague, now: u64, rtt: u64, packets: u32, marked: u32) {
    let mut acked = Acked::new(packets, common::at(now - rtt));
    acked.marked = marked;
    law.observe(&acked, &at(now, rtt));
}

/// prague_update_alpha: alpha stays 1 until the first mark, and then follows the marked
/// fraction.
#[test]
fn alpha_follows_the_marks_from_the_first_one_on() {
    let mut law = Prague::new(G, RTT_VIRT, 500.0);
    for round in 1..10 {
        ack(&mut law, 100 * round, 100, 10, 0);
    }
    assert_eq!(gauge(&law, "alpha"), 1.0);
    ack(&mut law, 1000, 100, 10, 5);
    assert_eq!(gauge(&law, "alpha"), 1.0 + G * (0.5 - 1.0));
    for round in 11..300 {
        ack(&mut law, 100 * round, 100, 10, 2);
    }
    assert!((gauge(&law, "alpha") - 0.2).abs() < 1e-6, "{}", gauge(&law, "alpha"));
    let cut = law.cut(100.0, Signal::Mark, &at(30_000, 100));
    assert!((cut - 90.0).abs() < 1e-3, "{cut}");
}

/// prague_update_cwnd: marked packets do not increase the window.
#[test]
fn unmarked_packets_increase_the_window() {
    let mut law = Prague::new(G, RTT_VIRT, 500.0);
    ack(&mut law, 100, 50, 4, 1);
    assert_eq!(law.grow(10.0, 4.0, &at(100, 50)), 10.3);
    ack(&mut law, 101, 50, 2, 7);
    assert_eq!(law.grow(10.0, 2.0, &at(101, 50)), 10.0);
}

/// prague_rate_scaled_ai_ack_increase: (rtt / rtt_virt)^2 below rtt_virt, after the transition.
#[test]
fn short_round_trip_times_increase_as_the_virtual_one() {
    let mut law = Prague::new(G, RTT_VIRT, 3.0);
    for round in 1..=3_u64 {
        assert_eq!(law.grow(10.0, 1.0, &at(5 * round, 5)), 10.1, "round {round}");
        ack(&mut law, 5 * round, 5, 10, 0);
    }
    assert_eq!(law.grow(10.0, 1.0, &at(20, 5)), 10.0 + 0.2 * 0.2 / 10.0);
    assert_eq!(law.grow(10.0, 1.0, &at(20, 25)), 10.1);
    assert_eq!(law.grow(10.0, 1.0, &at(20, 80)), 10.1);
}

/// prague_should_update_ewma and prague_enter_cwr: after the transition at most one update and
/// one reduction in each rtt_virt.
#[test]
fn the_virtual_round_trip_time_spaces_updates_and_reductions() {
    let mut law = Prague::new(G, RTT_VIRT, 0.0);
    ack(&mut law, 100, 5, 10, 10);
    ack(&mut law, 110, 5, 10, 0);
    assert_eq!(gauge(&law, "alpha"), 1.0, "an update after 10 ms");
    ack(&mut law, 125, 5, 20, 0);
    // 10 marks of 40 packets would be wrong: those of the first update are gone.
    assert_eq!(gauge(&law, "alpha"), 1.0 - G);
    assert!(law.answers_mark(&at(130, 5)));
    assert_eq!(
        law.cut(100.0, Signal::Mark, &at(130, 5)),
        100.0 * (1.0 - gauge(&law, "alpha") / 2.0)
    );
    assert!(!law.answers_mark(&at(154, 5)));
    assert!(law.answers_mark(&at(155, 5)));
}

/// prague_enter_loss.
#[test]
fn losses_halve_the_window() {
    let mut law = Prague::new(G, RTT_VIRT, 500.0);
    assert_eq!(law.cut(40.0, Signal::Loss, &at(0, 50)), 20.0);
    assert_eq!(law.threshold(20.0, Signal::Loss), None);
}

#[test]
fn two_packets_remain_after_a_mark() {
    let mut law = Prague::new(G, RTT_VIRT, 500.0);
    assert_eq!(law.cut(2.5, Signal::Mark, &at(0, 50)), 2.0);
    assert_eq!(law.cut(1.0, Signal::Mark, &at(900, 50)), 1.0);
}
