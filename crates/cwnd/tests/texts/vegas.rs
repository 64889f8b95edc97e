use super::context_at;
use crate::common::at;
use cwnd::laws::Vegas;
use cwnd::{Acked, Context, Dur, WindowLaw};

/// An acknowledgement at `now` ms of a packet sent `rtt` ms ago; the base is 100 ms.
fn ack(law: &mut Vegas, now: u64, rtt: u64) -> Context {
    let cx = context_at(now);
    let mut acked = Acked::new(1, at(now - rtt));
    acked.rtt = Some(Dur::from_millis(rtt));
    law.observe(&acked, &cx);
    cx
}

/// 20 packets with a fifth of the round-trip time in queues: 4 packets queued.
#[test]
fn one_decision_a_round() {
    let mut law = Vegas::new(2.0, 4.0, 1.0);
    let cx = ack(&mut law, 1000, 125);
    assert_eq!(law.grow(20.0, 1.0, &cx), 20.0);
    // Still the same round.
    let cx = ack(&mut law, 1010, 100);
    assert_eq!(law.grow(20.0, 1.0, &cx), 20.0);
    // The next one: nothing queued.
    let cx = ack(&mut law, 1110, 100);
    assert_eq!(law.grow(20.0, 1.0, &cx), 21.0);
    assert_eq!(law.grow(21.0, 1.0, &cx), 21.0);
    // 21 (1 - 100/200) is more than 4.
    let cx = ack(&mut law, 1400, 200);
    assert_eq!(law.grow(21.0, 1.0, &cx), 20.0);
}

#[test]
fn slow_start_ends_with_the_first_packet_queued() {
    let mut law = Vegas::new(2.0, 4.0, 1.0);
    let cx = ack(&mut law, 1000, 104);
    // 20 (1 - 100/104) = 0.77.
    assert!(!law.leave_slow_start(20.0, &cx));
    let cx = ack(&mut law, 1200, 106);
    assert!(law.leave_slow_start(20.0, &cx));
}
