//! The window machine: its states and their transitions, undo, and rounds.

use crate::common::at;
use crate::machine::Call::{self, Enter, Grow, Round};
use crate::machine::State::{Avoidance, Recovery, SlowStart};
use crate::machine::{Bench, Trace};
use cwnd::{Acked, Controller, Conventions, Cut, Event, Lost, Marked, Packets, Signal, Time};

const RECOVERED: Event = Event::Recovered;
const TIMEOUT: Event = Event::Timeout(Lost::new(1, Time::ZERO, 1000));

fn reduced(window: f64) -> Event {
    Event::Reduced { window: Packets::new(window), idle: false }
}

fn quic() -> Bench {
    Bench::with(|settings| settings.conventions = &Conventions::QUIC)
}

fn cut(why: Signal, before: f64, after: f64) -> Option<Cut> {
    Some(Cut::window(why, Packets::new(before), Packets::new(after)))
}

#[test]
fn slow_start_ends_at_the_threshold() {
    let mut bench = Bench::default();
    bench.on(20, TIMEOUT);
    assert_eq!(bench.values(), (SlowStart, 1.0, 5.0));
    bench.ack(30, 2).ack(40, 1);
    assert_eq!(bench.values(), (SlowStart, 4.0, 5.0));
    // Growth beyond the threshold is not carried into congestion avoidance.
    bench.ack(50, 2);
    assert_eq!(bench.values(), (Avoidance, 5.0, 5.0));
    bench.ack(60, 5);
    assert_eq!(bench.values(), (Avoidance, 6.0, 5.0));
}

/// [`cwnd::WindowLaw::leave_slow_start`].
#[test]
fn a_law_may_end_slow_start() {
    let mut bench = Bench::of(Trace { leaves_at: 12.0, ..Trace::default() }, |_| {});
    bench.ack(20, 1);
    assert_eq!(bench.state(), SlowStart);
    bench.ack(30, 1);
    assert_eq!(bench.values(), (Avoidance, 12.0, 12.0));
    assert_eq!(bench.calls(), [Enter(12.0)]);
}

#[test]
fn a_law_enters_congestion_avoidance_once_for_each_reduction() {
    let mut bench = Bench::default();
    bench.ack(20, 1).lose(30, 29).on(40, RECOVERED).ack(50, 1).ack(60, 1);
    let reduction = Call::Cut(11.0, Signal::Loss);
    assert_eq!(bench.calls(), [reduction, Round(30, 1, 0), Enter(5.5), Grow(1.0), Grow(1.0)]);
    bench.calls_from_here().mark(62, 61).ack(64, 1);
    assert!(matches!(bench.calls()[..], [Call::Cut(..), Round(..), Enter(_), Grow(_)]));
    // From slow start it enters at the threshold, before it grows.
    bench.calls_from_here().on(70, TIMEOUT).ack(80, 1);
    assert_eq!(bench.values(), (Avoidance, 2.0, 2.0));
    assert!(matches!(bench.calls()[..], [Call::Cut(..), Round(938, 1, 0), Enter(2.0)]));
}

#[test]
fn a_loss_begins_recovery_without_growth() {
    for avoidance in [false, true] {
        let mut bench = Bench::in_avoidance_if(avoidance);
        let (before, after) = (bench.window(), bench.window() / 2.0);
        bench.lose(1000, 999);
        assert_eq!(bench.values(), (Recovery, after, after));
        assert_eq!(bench.machine.take_cut(), cut(Signal::Loss, before, after));
        assert_eq!(bench.machine.take_cut(), None);
        bench.ack(1100, 5);
        assert_eq!(bench.values(), (Recovery, after, after));
        bench.on(1200, RECOVERED);
        assert_eq!(bench.values(), (Avoidance, after, after));
        bench.ack(1300, 1);
        assert!(bench.window() > after);
    }
}

/// A law's own threshold may exceed the window (Westwood), and a driver may reduce the window in
/// recovery.
#[test]
fn recovery_returns_to_slow_start_below_the_threshold() {
    let mut bench = Bench::of(Trace { threshold: Some(40.0), ..Trace::default() }, |_| {});
    bench.lose(20, 19);
    assert_eq!(bench.values(), (Recovery, 10.0, 40.0));
    bench.on(30, RECOVERED);
    assert_eq!(bench.values(), (SlowStart, 10.0, 40.0));
    let mut bench = Bench::default();
    bench.lose(20, 19).on(25, reduced(3.0)).on(30, RECOVERED);
    assert_eq!(bench.values(), (SlowStart, 3.0, 5.0));
}

#[test]
fn recovered_outside_of_recovery_changes_nothing() {
    for avoidance in [false, true] {
        let mut bench = Bench::in_avoidance_if(avoidance);
        let before = bench.values();
        bench.calls_from_here().on(1000, RECOVERED);
        assert_eq!(bench.values(), before);
        assert_eq!(bench.calls(), []);
    }
}

/// RFC 5681 equation 4 and section 3.1: the threshold is at least two packets, the loss window one.
#[test]
fn a_timeout_restarts_slow_start_from_every_state() {
    for avoidance in [false, true] {
        let mut bench = Bench::in_avoidance_if(avoidance);
        let before = bench.window();
        bench.on(1000, TIMEOUT);
        assert_eq!(bench.values(), (SlowStart, 1.0, before / 2.0));
        assert_eq!(bench.machine.take_cut(), cut(Signal::Timeout, before, 1.0));
        bench.on(2000, TIMEOUT);
        assert_eq!(bench.values(), (SlowStart, 1.0, 2.0));
    }
    let mut bench = Bench::default();
    bench.lose(20, 19).on(30, TIMEOUT);
    assert_eq!(bench.values(), (SlowStart, 1.0, 2.5));
}

/// RFC 3168 section 6.1.2: a mark reduces the window, and an acknowledgement with ECN-Echo does not
/// grow it.
#[test]
fn a_mark_begins_no_recovery() {
    for avoidance in [false, true] {
        let mut bench = Bench::in_avoidance_if(avoidance);
        let (before, after) = (bench.window(), bench.window() / 2.0);
        bench.mark(1000, 999);
        assert_eq!(bench.values(), (Avoidance, after, after));
        assert_eq!(bench.machine.take_cut(), cut(Signal::Mark, before, after));
        let mut echo = Acked::new(1, at(1099));
        echo.echo = true;
        bench.on(1100, Event::Acked(echo));
        assert_eq!(bench.values(), (Avoidance, after, after));
        bench.ack(1200, 1);
        assert!(bench.window() > after);
    }
}

/// RFC 9002 section 7.6.2: the window falls to its minimum of two packets. Appendix B.8: the
/// threshold stays that of the losses.
#[test]
fn persistent_congestion_restarts_slow_start_from_every_state() {
    let mut bench = quic();
    bench.lose(1000, 999);
    bench.machine.take_cut();
    bench.on(1000, Event::PersistentCongestion);
    assert_eq!(bench.values(), (SlowStart, 2.0, 5.0));
    assert_eq!(bench.machine.take_cut(), cut(Signal::PersistentCongestion, 5.0, 2.0));
    bench.ack(1100, 1).ack(1200, 2);
    assert_eq!(bench.values(), (Avoidance, 5.0, 5.0));
    for avoidance in [false, true] {
        let mut bench = Bench::in_avoidance_if(avoidance);
        let (_, _, threshold) = bench.values();
        bench.on(1000, Event::PersistentCongestion);
        assert_eq!(bench.values(), (SlowStart, 2.0, threshold));
    }
    // A smaller window stays.
    let mut bench = Bench::default();
    bench.on(20, TIMEOUT).on(30, Event::PersistentCongestion);
    assert_eq!(bench.values(), (SlowStart, 1.0, 5.0));
}

/// For instance RFC 5681 section 4.1, after an idle period.
#[test]
fn the_driver_reduces_the_window_by_its_own_rule() {
    for avoidance in [false, true] {
        let mut bench = Bench::in_avoidance_if(avoidance);
        let before = bench.values();
        bench.on(1000, reduced(1e6)).on(1000, reduced(f64::NAN));
        assert_eq!(bench.values(), before);
        bench.on(1000, reduced(4.0));
        assert_eq!(bench.values(), (SlowStart, 4.0, before.2));
        bench.on(1000, reduced(0.25));
        assert_eq!(bench.values(), (SlowStart, 1.0, before.2));
        assert_eq!(bench.machine.take_cut(), None);
    }
    // Above the threshold it stays in congestion avoidance.
    let mut bench = Bench::in_avoidance_if(true);
    bench.ack(1000, 10).on(1000, reduced(5.25));
    assert_eq!(bench.values(), (Avoidance, 5.25, 5.0));
    // The law begins anew at this window.
    bench.calls_from_here().ack(1010, 1);
    assert_eq!(bench.calls(), [Enter(5.25), Grow(1.0)]);
}

/// RFC 5681 section 3.2, RFC 3168 section 6.1.2: one reduction for each window of data.
#[test]
fn one_reduction_for_each_window_of_data() {
    type Signals = [fn(&mut Bench, u64, u64) -> &mut Bench; 2];
    let signals: Signals = [Bench::lose, Bench::mark];
    for first in signals {
        for second in signals {
            let mut bench = Bench::default();
            first(&mut bench, 100, 90).on(150, RECOVERED);
            bench.machine.take_cut();
            second(&mut bench, 200, 99);
            assert_eq!(bench.values(), (Avoidance, 5.0, 5.0));
            assert_eq!(bench.machine.take_cut(), None);
            second(&mut bench, 300, 100);
            assert_eq!(bench.window(), 2.5);
            assert!(bench.machine.take_cut().is_some());
        }
    }
}

/// RFC 6675 section 5: losses and marks of packets sent in recovery reduce nothing before its end.
#[test]
fn recovery_has_one_reduction() {
    let mut bench = Bench::default();
    bench.lose(100, 90).lose(200, 150).mark(200, 150);
    assert_eq!(bench.values(), (Recovery, 5.0, 5.0));
    bench.on(300, RECOVERED).lose(300, 150);
    assert_eq!(bench.values(), (Recovery, 2.5, 2.5));
}

/// RFC 9002 section 7.3.2: a loss or a mark begins a recovery period, which ends when a packet sent
/// in it is acknowledged.
#[test]
fn a_quic_stack_infers_the_end_of_recovery() {
    for signal in [Bench::lose, Bench::mark] {
        let mut bench = quic();
        signal(&mut bench, 100, 90);
        assert_eq!(bench.values(), (Recovery, 5.0, 5.0));
        // Sent before the reduction, and at its time.
        bench.ack_of(150, 99).ack_of(160, 100).lose(170, 150).mark(180, 160);
        assert_eq!(bench.values(), (Recovery, 5.0, 5.0));
        assert_eq!(bench.rounds(), []);
        bench.ack_of(200, 101);
        assert_eq!(bench.values(), (Avoidance, 5.2, 5.0));
        assert_eq!(bench.rounds().len(), 1);
    }
}

/// With [`Conventions::RFC`] the driver reports the end: an acknowledged retransmission is not the
/// end.
#[test]
fn a_reported_recovery_is_not_inferred() {
    let mut bench = Bench::default();
    bench.lose(100, 90).ack_of(200, 150).ack_of(300, 250);
    assert_eq!(bench.values(), (Recovery, 5.0, 5.0));
    // A stack that infers the end may also report it.
    let mut bench = quic();
    bench.lose(100, 90).on(150, RECOVERED);
    assert_eq!(bench.values(), (Avoidance, 5.0, 5.0));
}

/// RFC 4015, RFC 5682: the machine and the law return to their state before the last reduction.
#[test]
fn undo_reverts_the_last_reduction() {
    let signals: [fn(&mut Bench) -> &mut Bench; 4] = [
        |bench| bench.lose(1000, 999),
        |bench| bench.lose(1000, 999).on(1010, RECOVERED).ack(1020, 1),
        |bench| bench.mark(1000, 999),
        |bench| bench.on(1000, TIMEOUT).ack(1010, 1),
    ];
    for avoidance in [false, true] {
        for signal in signals {
            let mut bench = Bench::in_avoidance_if(avoidance);
            let (before, calls) = (bench.values(), bench.calls());
            signal(&mut bench);
            assert_ne!(bench.values(), before);
            bench.on(1100, Event::Undo);
            assert_eq!(bench.values(), before);
            assert_eq!(bench.calls(), calls);
            // There is nothing more to revert.
            bench.on(1200, Event::Undo);
            assert_eq!(bench.values(), before);
            // The law continues congestion avoidance, and does not enter it again.
            bench.calls_from_here().ack(1300, 1);
            assert_eq!(bench.calls(), if avoidance { vec![Grow(1.0)] } else { vec![] });
        }
    }
}

#[test]
fn undo_reverts_one_reduction() {
    let mut bench = Bench::default();
    bench.mark(100, 99).mark(200, 199).on(300, Event::Undo).on(310, Event::Undo);
    assert_eq!(bench.values(), (Avoidance, 5.0, 5.0));
    let mut bench = Bench::default();
    bench.on(300, Event::Undo);
    assert_eq!(bench.values(), (SlowStart, 10.0, f64::INFINITY));
}

/// A window that has grown past its old value stays, and the law with it; the threshold returns.
#[test]
fn undo_does_not_reduce_the_window() {
    let mut bench = Bench::of(Trace { threshold: Some(100.0), ..Trace::default() }, |_| {});
    bench.mark(100, 99).ack(200, 2);
    assert_eq!(bench.values(), (SlowStart, 12.0, 100.0));
    bench.on(300, Event::Undo);
    assert_eq!(bench.values(), (SlowStart, 12.0, f64::INFINITY));
    assert!(bench.calls().contains(&Call::Cut(10.0, Signal::Mark)));
}

/// The losses of a round stay with the packets of that round, also where its recovery fails.
#[test]
fn a_timeout_in_recovery_does_not_mix_two_rounds() {
    let mut bench = Bench::default();
    let lost = |packets, sent| Event::Lost(Lost::new(packets, at(10), sent));
    bench.on(20, lost(3, 100)).on(21, lost(1, 101));
    assert_eq!(bench.rounds(), []);
    // The recovery fails: the round ends with its losses, and the timeout begins no other.
    bench.on(400, Event::Timeout(Lost::new(6, at(15), 102)));
    assert_eq!(bench.rounds(), [Round(100, 10, 0)]);
    // The probe is lost as well.
    bench.on(900, Event::Timeout(Lost::new(1, at(400), 103)));
    assert_eq!(bench.rounds(), [Round(100, 10, 0)]);
    // A timeout without a loss report before it ends a round, with the losses of the timeouts.
    bench.ack(950, 4).on(2000, Event::Timeout(Lost::new(3, at(950), 143)));
    assert_eq!(bench.rounds(), [Round(100, 10, 0), Round(43, 4, 0)]);
    assert_eq!(bench.machine.law().took, [20, 1980]);
}

/// [`cwnd::WindowLaw::timeout_ends_round`]: where it does not, its losses count in the round that continues.
#[test]
fn a_round_continues_after_a_timeout_if_the_law_says_so() {
    let mut bench = Bench::of(Trace { rounds_continue: true, ..Trace::default() }, |_| {});
    bench.on(400, Event::Timeout(Lost::new(5, at(50), 60)));
    assert_eq!(bench.rounds(), []);
    bench.on(900, Event::Lost(Lost::new(2, at(800), 100))).on(1000, RECOVERED);
    assert_eq!(bench.rounds(), [Round(100, 7, 0)]);
    // A recovery that fails ends its own round.
    bench.on(1500, Event::Lost(Lost::new(1, at(1400), 130)));
    bench.on(2000, Event::Timeout(Lost::new(2, at(1400), 135)));
    assert_eq!(bench.rounds(), [Round(100, 7, 0), Round(30, 3, 0)]);
    assert_eq!(bench.machine.law().took, [900, 600]);
}

#[test]
fn a_round_counts_losses_and_marks_until_the_end_of_its_recovery() {
    let mut bench = Bench::default();
    bench.on(100, Event::Marked(Marked::new(3, at(90), 50)));
    assert_eq!(bench.rounds(), [Round(50, 0, 3)]);
    bench.on(200, Event::Marked(Marked::new(2, at(99), 70)));
    bench.lose(300, 290).lose(310, 290).on(320, RECOVERED);
    assert_eq!(bench.rounds(), [Round(50, 0, 3), Round(250, 2, 2)]);
    assert_eq!(bench.machine.law().took, [100, 200]);
}
