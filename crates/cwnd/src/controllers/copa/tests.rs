//! Tests of the rules of Copa.

use super::*;
use crate::testing::{at_ms, ms, sampled};
use alloc::vec::Vec;

fn copa() -> Copa {
    Copa::new(0.5, true, &Settings::default())
}

/// Reports an acknowledgement of a packet at `millis` with this RTT in milliseconds, by a sender
/// that its window limits.
fn ack(copa: &mut Copa, millis: u64, rtt: u64) {
    let acked = Acked { sent: 100, ..sampled(1, at_ms(millis), ms(rtt)) };
    copa.on(at_ms(millis), &Event::Acked(acked));
}

fn lose(copa: &mut Copa, millis: u64, packets: u32, sent_millis: u64) {
    copa.on(at_ms(millis), &Event::Lost(Lost::new(packets, at_ms(sent_millis), 100)));
}

/// Leaves slow start at 1.1 s with a window of 30, RTT_min 100 ms and RTT_standing 120 ms. One
/// acknowledgement later the first step is done.
fn steady() -> Copa {
    let mut copa = copa();
    for k in 0..20 {
        ack(&mut copa, 100 + k, 100);
    }
    assert_eq!(copa.w, 30.0);
    ack(&mut copa, 1100, 120);
    copa
}

#[test]
fn slow_start_ends_when_the_rate_exceeds_the_target() {
    let mut copa = copa();
    ack(&mut copa, 100, 100);
    assert_eq!((copa.w, copa.slow_start), (11.0, true));
    // The target rate is 1/(0.5 * 0.02 s) = 100 packets/s: 12 packets in 120 ms.
    let mut below = copa.clone();
    ack(&mut below, 1100, 120);
    assert_eq!((below.w, below.slow_start), (12.0, true));
    copa.w = 13.0;
    ack(&mut copa, 1100, 120);
    assert!(!copa.slow_start && copa.w < 13.0);
}

#[test]
fn a_step_is_the_velocity_over_delta_times_the_window() {
    let mut copa = steady();
    assert_eq!(copa.w, 30.0 - 2.0 / 30.0);
    let w = copa.w;
    // The queue is empty: the target is infinite.
    ack(&mut copa, 1500, 100);
    assert_eq!(copa.w, w + 2.0 / w);
    let w = copa.w;
    copa.inverse = 10.0;
    ack(&mut copa, 1501, 100);
    assert_eq!(copa.w, w + 10.0 / w);
}

/// Acknowledgements delayed on the way do not count as queueing delay.
#[test]
fn the_standing_rtt_is_the_smallest_of_half_an_rtt() {
    let mut copa = copa();
    ack(&mut copa, 100, 100);
    ack(&mut copa, 110, 180);
    assert_eq!(copa.queueing(), Some(Dur::ZERO));
    // srtt is 110 ms: its half has passed at 161 ms.
    ack(&mut copa, 161, 130);
    assert_eq!(copa.rtt_standing.get(), Some(ms(130)));
    assert_eq!(copa.queueing(), Some(ms(30)));
}

#[test]
fn the_smallest_rtt_is_that_of_ten_seconds() {
    let mut copa = copa();
    ack(&mut copa, 100, 100);
    ack(&mut copa, 5000, 150);
    ack(&mut copa, 10_100, 150);
    assert_eq!(copa.rtt_min.get(), Some(ms(100)));
    ack(&mut copa, 10_101, 150);
    assert_eq!(copa.rtt_min.get(), Some(ms(150)));
}

#[test]
fn a_handshake_gives_no_rtt() {
    let mut copa = copa();
    copa.on(at_ms(90), &Event::Handshake { rtt: ms(90) });
    assert_eq!((copa.rtt_min.get(), copa.w), (None, 10.0));
}

#[test]
fn the_pace_is_twice_the_window_in_each_standing_rtt() {
    let mut copa = copa();
    assert_eq!(copa.output().pace, None);
    ack(&mut copa, 100, 100);
    assert_eq!(copa.output().pace, Some(Rate::per_sec(220.0)));
}

/// One acknowledgement for each window of data.
#[test]
fn the_velocity_doubles_after_three_windows_in_one_direction() {
    let mut copa = Copa::new(0.5, false, &Settings::default());
    copa.w = 1000.0;
    copa.slow_start = false;
    ack(&mut copa, 100, 100);
    let mut seen = Vec::new();
    for k in 1..=7 {
        ack(&mut copa, 100 + 150 * k, 150);
        seen.push(copa.v);
    }
    // The first window goes up, for its queue was empty; the next ones go down.
    assert_eq!(seen, [1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 8.0]);
    let w = copa.w;
    ack(&mut copa, 1300, 100);
    assert_eq!((copa.v, copa.direction), (1.0, Some(Direction::Up)));
    assert_eq!(copa.w, w + 2.0 / w);
}

#[test]
fn a_step_is_at_most_a_packet() {
    let mut copa = steady();
    (copa.v, copa.direction) = (1024.0, Some(Direction::Down));
    let w = copa.w;
    ack(&mut copa, 1101, 120);
    assert_eq!(copa.w, w - 1.0);
}

/// A sender with a queue of 20 ms for `windows` windows of data.
fn busy(copa: &mut Copa, windows: u64) -> u64 {
    let mut now = 1100;
    for _ in 0..windows {
        now += 121;
        copa.w = 30.0;
        ack(copa, now, 120);
    }
    now
}

#[test]
fn five_windows_without_an_empty_queue_begin_the_competitive_mode() {
    let mut copa = steady();
    // The queue was empty when the first window began.
    let now = busy(&mut copa, 6);
    assert!(!copa.is_competitive());
    ack(&mut copa, now + 1, 120);
    assert!(copa.is_competitive());
    assert_eq!(copa.inverse, 2.0);
    // The queue is empty.
    ack(&mut copa, now + 70, 100);
    assert!(!copa.is_competitive());
    let mut never = steady();
    never.competes = false;
    busy(&mut never, 20);
    assert!(!never.is_competitive());
}

#[test]
fn the_competitive_mode_is_aimd_on_the_inverse_of_delta() {
    let mut copa = steady();
    let mut now = busy(&mut copa, 7);
    assert_eq!((copa.is_competitive(), copa.inverse), (true, 2.0));
    let mut seen = Vec::new();
    for _ in 0..4 {
        now += 125;
        copa.w = 30.0;
        ack(&mut copa, now, 120);
        seen.push(copa.inverse);
    }
    assert_eq!(seen, [3.0, 4.0, 5.0, 6.0]);
    lose(&mut copa, now, 1, now - 120);
    assert_eq!(copa.inverse, 3.0);
    // A loss of the same window of data.
    lose(&mut copa, now + 10, 1, now - 110);
    assert_eq!(copa.inverse, 3.0);
    // delta is at most the default.
    lose(&mut copa, now + 130, 1, now + 5);
    assert_eq!(copa.inverse, 2.0);
    // Back in the default mode.
    copa.inverse = 9.0;
    ack(&mut copa, now + 200, 100);
    assert_eq!((copa.is_competitive(), copa.inverse), (false, 2.0));
}

#[test]
fn a_tenth_of_the_oscillation_is_nearly_empty() {
    let mut copa = steady();
    busy(&mut copa, 7);
    copa.w = 1e6;
    copa.inverse = 2.0;
    // RTTs of 100 to 200 ms: below 10 ms.
    ack(&mut copa, 2000, 200);
    ack(&mut copa, 2120, 111);
    assert!(copa.is_competitive());
    ack(&mut copa, 2121, 109);
    assert!(!copa.is_competitive());
}

#[test]
fn the_default_mode_ignores_losses() {
    let mut copa = steady();
    let before = copa.output();
    lose(&mut copa, 1101, 1, 1000);
    assert_eq!((copa.output(), copa.take_cut()), (before, None));
}

#[test]
fn a_high_loss_rate_reduces_the_window() {
    let mut copa = steady();
    copa.w = 50.0;
    copa.losses = Losses { began: at_ms(800), lost: 0, packets: 0 };
    // 8 of 21 packets in more than two RTTs of 120 ms.
    for _ in 0..13 {
        copa.losses.packets += 1;
    }
    lose(&mut copa, 1000, 4, 900);
    assert_eq!(copa.w, 50.0);
    lose(&mut copa, 1101, 4, 1000);
    assert_eq!(copa.w, 35.0);
    assert_eq!(copa.take_cut().map(|cut| (cut.before(), cut.after())), Some((50.0, 35.0)));
}

#[test]
fn a_timeout_is_undone() {
    let mut copa = steady();
    let before = copa.w;
    copa.on(at_ms(2000), &Event::Timeout(Lost::new(0, Time::ZERO, 100)));
    assert_eq!(copa.w, 2.0);
    assert_eq!(copa.take_cut().map(|cut| cut.why), Some(Signal::Timeout));
    copa.on(at_ms(2001), &Event::Undo);
    assert_eq!(copa.w, before);
}

#[test]
fn an_unused_window_does_not_grow() {
    let mut copa = copa();
    let limit = Limit::Application;
    let acked = Acked { sent: 100, limit, ..sampled(1, at_ms(100), ms(100)) };
    copa.on(at_ms(100), &Event::Acked(acked));
    copa.slow_start = false;
    copa.on(at_ms(101), &Event::Acked(acked));
    assert_eq!(copa.w, 10.0);
}

#[test]
fn a_change_of_the_packet_size_keeps_the_bytes() {
    let mut copa = copa();
    copa.on(at_ms(0), &Event::Mtu { packet: 750 });
    assert_eq!(copa.w, 20.0);
    copa.on(at_ms(0), &Event::Reduced { window: Packets::new(4.0), idle: false });
    assert_eq!(copa.w, 4.0);
}
