//! The window machine: limits of the sender, settings, and each rule of [`Conventions`] alone.

use crate::common::at;
use crate::machine::Call::{Enter, Grow, Rescale};
use crate::machine::State::{Avoidance, Recovery, SlowStart};
use crate::machine::{Bench, Trace};
use cwnd::laws::{Cubic, Reno};
use cwnd::{
    Acked, Context, Controller, Conventions, Decided, Decision, Dur, Event, Growth, Limit, Lost,
    Time,
};
use cwnd::{Packets, Rate, Settings, SlowStartLaw, Windowed};

/// A connection under the conventions of the RFCs with one rule changed.
macro_rules! with_rule {
    ($rule:ident: $value:expr) => {{
        static WITH_RULE: Conventions = {
            let mut conventions = Conventions::RFC;
            conventions.$rule = $value;
            conventions
        };
        Bench::with(|settings| {
            settings.conventions = &WITH_RULE;
            settings.max_window = Packets::new(12.0);
        })
    }};
}

fn limited(millis: u64, limit: Limit) -> Event {
    let mut acked = Acked::new(1, at(millis - 1));
    acked.limit = limit;
    Event::Acked(acked)
}

/// An acknowledgement with a round-trip time sample.
fn sampled(millis: u64, rtt: u64) -> Event {
    let mut acked = Acked::new(1, at(millis - 1));
    acked.rtt = Some(Dur::from_millis(rtt));
    Event::Acked(acked)
}

/// RFC 7661: the window grows only while it limits the sender. Its window also limits a paced
/// sender, as the pacing rate follows from it.
#[test]
fn the_window_grows_while_it_limits_the_sender() {
    for avoidance in [false, true] {
        for (limit, grows) in [
            (Limit::Window, true),
            (Limit::Pacing, true),
            (Limit::Receiver, false),
            (Limit::Application, false),
        ] {
            let mut bench = Bench::in_avoidance_if(avoidance);
            let before = bench.window();
            bench.on(100, limited(100, limit));
            assert_eq!(bench.window() > before, grows, "{limit:?}");
        }
    }
}

/// At the receiver's window a law may still decrease the window (Vegas), which does not return to
/// slow start.
#[test]
fn a_law_runs_at_the_largest_window() {
    let law = Trace { gain: -1.0, leaves_at: 10.0, ..Trace::default() };
    let mut bench = Bench::of(law, |settings| settings.max_window = Packets::new(10.0));
    bench.ack(20, 1).on(30, limited(30, Limit::Receiver));
    assert_eq!(bench.values(), (Avoidance, 9.9, 9.9));
    assert_eq!(bench.calls(), [Enter(10.0), Grow(1.0)]);
    // Below it the receiver's window does not limit growth by the law.
    bench.on(40, limited(40, Limit::Receiver));
    assert_eq!(bench.window(), 9.9);
}

/// RFC 3465 section 2.2: L limits the growth by one acknowledgement in slow start. In congestion
/// avoidance it does not.
#[test]
fn slow_start_grows_by_at_most_its_limit() {
    for (limit, grown) in [(2.0, 12.0), (8.0, 18.0), (f64::INFINITY, 50.0)] {
        let mut bench = Bench::with(|settings| settings.slow_start_limit = limit);
        bench.ack(20, 40);
        assert_eq!(bench.values(), (SlowStart, grown, f64::INFINITY));
        bench.mark(30, 29).calls_from_here().ack(40, 40);
        assert_eq!(bench.calls(), [Enter(grown / 2.0), Grow(40.0)]);
    }
}

/// RFC 5681 section 3.1 counts acknowledgements, RFC 3465 bytes.
#[test]
fn growth_counts_the_credit_of_an_acknowledgement() {
    for (credit, grown) in [(0, 10.0), (1, 11.0)] {
        let mut acked = Acked::new(5, at(19));
        acked.credit = credit;
        let mut bench = Bench::default();
        bench.on(20, Event::Acked(acked));
        assert_eq!(bench.window(), grown);
    }
}

/// RFC 9002 section 7.7: "a rate of N * congestion_window / smoothed_rtt".
#[test]
fn a_window_law_is_paced_by_its_window() {
    let mut bench = Bench::with(|settings| settings.pacing = Some(1.25));
    bench.ack(10, 1);
    assert_eq!(bench.machine.output().pace, None, "before the first round-trip time");
    bench.on(20, sampled(20, 100));
    assert_eq!(bench.machine.output().pace, Some(Rate::per_sec(1.25 * 12.0 / 0.1)));
    // The smoothed round-trip time is 7/8 of 100 ms and 1/8 of 180 ms.
    bench.on(30, sampled(30, 180));
    let smoothed = Dur::from_millis(110);
    assert_eq!(bench.machine.output().pace, Some(Rate::over(1.25 * 13.0, smoothed)));
    bench.lose(40, 39);
    assert_eq!(bench.machine.output().pace, Some(Rate::over(1.25 * 6.5, smoothed)));
    // No rate follows from a round-trip time of zero.
    let mut bench = Bench::with(|settings| settings.pacing = Some(1.25));
    assert_eq!(bench.on(20, sampled(20, 0)).machine.output().pace, None);
    assert_eq!(Bench::default().on(20, sampled(20, 100)).machine.output().pace, None);
}

/// The window, the threshold, the largest window and the pacing rate stay the same numbers of
/// bytes.
#[test]
fn a_change_of_the_packet_size_keeps_the_bytes() {
    let mut bench = Bench::with(|settings| {
        settings.packet = 1200;
        settings.max_window = Packets::new(9.0);
        settings.pacing = Some(1.0);
    });
    bench.on(10, sampled(10, 100)).mark(20, 19);
    assert_eq!(bench.values(), (Avoidance, 4.5, 4.5));
    bench.calls_from_here().on(30, Event::Mtu { packet: 400 });
    assert_eq!(bench.values(), (Avoidance, 13.5, 13.5));
    assert_eq!(bench.machine.output().pace, Some(Rate::per_sec(135.0)));
    assert_eq!(bench.calls(), [Rescale(3.0)]);
    for n in 0..1000 {
        bench.ack(40 + n, 10);
    }
    assert_eq!(bench.window(), 27.0);
    assert!(bench.machine.law().contexts.last().is_some_and(|cx| cx.packet == 400));
    bench.on(2000, Event::Mtu { packet: 1200 });
    assert_eq!(bench.values(), (Avoidance, 9.0, 4.5));
}

/// An undo after a change of the packet size restores the bytes from before the reduction, and ends
/// the recovery.
#[test]
fn an_undo_survives_a_change_of_the_packet_size() {
    let mut bench = Bench::with(|settings| settings.packet = 1200);
    bench.lose(20, 19);
    let before = bench.values();
    bench.on(30, Event::Mtu { packet: 400 }).calls_from_here().on(40, Event::Undo);
    assert_eq!(bench.values(), (SlowStart, 30.0, f64::INFINITY));
    assert_eq!(before, (Recovery, 5.0, 5.0));
    assert!(!bench.machine.in_recovery());
}

/// The window stays between one packet and the largest count of packets; no largest window stays
/// none.
#[test]
fn any_packet_size_is_accepted() {
    let mut bench = Bench::with(|settings| settings.slow_start_limit = f64::INFINITY);
    for packet in [0, 1, u32::MAX, 500, 1500] {
        bench.on(20, Event::Mtu { packet });
        assert!((1.0..=f64::from(u32::MAX)).contains(&bench.window()), "{packet}");
    }
    assert_eq!(bench.ack(30, u32::MAX).window(), f64::from(u32::MAX));
}

/// Grows by three packets for each acknowledgement and ends at 16, or returns `answer`.
#[derive(Clone, Debug)]
struct Probe {
    answer: Option<f64>,
}

impl SlowStartLaw for Probe {
    fn grow(&mut self, w: f64, credit: f64, _: &Acked, _: &Context) -> Growth {
        let window = self.answer.unwrap_or(if credit > 0.0 { w + 3.0 } else { w });
        Growth { window, done: window >= 16.0 }
    }
}

#[test]
fn a_custom_slow_start_decides_on_its_end() {
    let mut bench = Bench::with(|settings| {
        settings.slow_start = cwnd::SlowStart::Custom(|| Box::new(Probe { answer: None }));
    });
    bench.on(15, limited(15, Limit::Application)).ack(20, 1);
    assert_eq!(bench.values(), (SlowStart, 13.0, f64::INFINITY));
    bench.ack(30, 1);
    assert_eq!(bench.values(), (Avoidance, 16.0, 16.0));
    assert_eq!(bench.calls(), [Enter(16.0)]);
    // Later slow starts are the standard one.
    bench.on(40, Event::Reduced { window: Packets::new(4.0), idle: false }).ack(50, 1);
    assert_eq!(bench.values(), (SlowStart, 5.0, 16.0));
}

/// A slow start observes every acknowledgement; a law is asked for the end of slow start only where
/// the window grows.
#[test]
fn a_law_does_not_end_slow_start_at_an_unused_window() {
    for slow_start in [cwnd::SlowStart::Standard, cwnd::SlowStart::HyStart] {
        let law = Trace { leaves_at: 10.0, ..Trace::default() };
        let mut bench = Bench::of(law, |settings| settings.slow_start = slow_start);
        bench.on(20, limited(20, Limit::Application));
        assert_eq!(bench.values(), (SlowStart, 10.0, f64::INFINITY));
    }
}

#[test]
fn a_custom_slow_start_may_answer_anything() {
    let answers = [
        (cwnd::SlowStart::Custom(|| Box::new(Probe { answer: Some(f64::NAN) })), 1.0),
        (cwnd::SlowStart::Custom(|| Box::new(Probe { answer: Some(-5.0) })), 1.0),
        (cwnd::SlowStart::Custom(|| Box::new(Probe { answer: Some(f64::INFINITY) })), 40.0),
    ];
    for (slow_start, window) in answers {
        let mut bench = Bench::with(|settings| {
            settings.slow_start = slow_start;
            settings.max_window = Packets::new(40.0);
        });
        assert_eq!(bench.ack(20, 1).window(), window);
    }
}

/// The fields of the decision as digits of the threshold.
fn fields(decision: &Decision) -> Decided {
    assert_eq!((decision.cut, decision.law_threshold), (decision.window / 2.0, None));
    let flags = [decision.slow_start, decision.first, decision.after_mark];
    let digits = flags.iter().fold(1, |digits, &flag| 10 * digits + u32::from(flag));
    Decided { threshold: f64::from(digits), window: decision.window - 1.0 }
}

#[test]
fn the_conventions_decide_on_a_reduction() {
    let mut bench = with_rule!(reduce: fields);
    bench.mark(20, 19);
    assert_eq!(bench.values(), (SlowStart, 9.0, 1110.0));
    bench.lose(30, 29);
    assert_eq!(bench.values(), (Recovery, 8.0, 1100.0));
    // The loss was reported since the mark.
    bench.on(40, Event::Timeout(Lost::new(0, Time::ZERO, 40)));
    assert_eq!(bench.values(), (SlowStart, 1.0, 1100.0));
    bench.ack(50, 2).mark(60, 59).on(70, Event::Timeout(Lost::new(0, Time::ZERO, 70)));
    assert_eq!(bench.values(), (SlowStart, 1.0, 1101.0));
    // Persistent congestion leaves the threshold.
    bench.on(80, Event::PersistentCongestion);
    assert_eq!(bench.values(), (SlowStart, 1.0, 1101.0));
}

/// A policy cannot leave a window outside of one packet and the window before.
#[test]
fn a_decision_is_kept_within_bounds() {
    type Reduce = fn(&Decision) -> Decided;
    let decided: [(Reduce, f64); 3] = [
        (|_| Decided { threshold: 2.0, window: 0.0 }, 1.0),
        (|_| Decided { threshold: 2.0, window: 1e9 }, 10.0),
        (|_| Decided { threshold: 2.0, window: f64::NAN }, 10.0),
    ];
    for (reduce, window) in decided {
        let mut conventions = Conventions::RFC;
        conventions.reduce = reduce;
        let conventions = Box::leak(Box::new(conventions));
        let mut bench = Bench::with(|settings| settings.conventions = conventions);
        assert_eq!(bench.lose(20, 19).window(), window);
    }
}

#[test]
fn infers_recovery_alone() {
    for (mut bench, inferred) in
        [(Bench::default(), false), (with_rule!(infers_recovery: true), true)]
    {
        bench.mark(20, 19);
        assert_eq!(bench.state(), if inferred { Recovery } else { Avoidance });
        bench.lose(30, 25).ack_of(40, 35);
        assert_eq!(bench.state(), if inferred { Avoidance } else { Recovery });
    }
}

#[test]
fn marks_reduce_in_recovery_alone() {
    let mut bench = with_rule!(marks_reduce_in_recovery: true);
    bench.lose(20, 19).mark(30, 19).lose(30, 25);
    assert_eq!(bench.values(), (Recovery, 5.0, 5.0));
    bench.mark(40, 30);
    assert_eq!(bench.values(), (Recovery, 2.5, 2.5));
    bench.on(50, Event::Recovered);
    assert_eq!(bench.state(), Avoidance);
}

/// RFC 5681 section 3.1: the threshold begins arbitrarily high.
#[test]
fn threshold_from_max_window_alone() {
    let rule = with_rule!(threshold_from_max_window: true);
    for (mut bench, first, last) in [
        (with_rule!(threshold_from_max_window: false), f64::INFINITY, SlowStart),
        (rule, 12.0, Avoidance),
    ] {
        assert_eq!(bench.values(), (SlowStart, 10.0, first));
        bench.ack(20, 2);
        assert_eq!(bench.values(), (last, 12.0, first));
    }
}

#[test]
fn overshoots_threshold_alone() {
    let mut bench = with_rule!(overshoots_threshold: true);
    bench.on(20, Event::Timeout(Lost::new(0, Time::ZERO, 20))).ack(30, 1).ack(40, 2).ack(50, 2);
    assert_eq!(bench.values(), (Avoidance, 6.0, 5.0));
}

#[test]
fn grows_unused_alone() {
    for limit in [Limit::Receiver, Limit::Application] {
        let mut bench = with_rule!(grows_unused: true);
        bench.on(20, limited(20, limit));
        assert_eq!(bench.window(), 11.0);
        bench.mark(30, 29).on(40, limited(40, limit));
        assert!(bench.window() > 5.5);
    }
}

/// Growth past the largest window does not raise the window that a driver sees, nor the next
/// reduction.
#[test]
fn grows_past_max_window_alone() {
    let rule = with_rule!(grows_past_max_window: true);
    for (mut bench, grown) in [(with_rule!(grows_past_max_window: false), 12.0), (rule, 16.0)] {
        bench.ack(20, 2).ack(30, 2).ack(40, 2);
        assert_eq!((bench.window(), bench.machine.unclamped().get()), (12.0, grown));
        bench.lose(50, 49);
        assert_eq!(bench.values(), (Recovery, 6.0, 6.0));
    }
}

#[test]
fn laws_see_the_state_of_the_connection() {
    let mut bench = Bench::default();
    bench.on(20, sampled(20, 100)).lose(30, 29).on(40, Event::Recovered).on(50, sampled(50, 180));
    let [cut, grow] = &bench.machine.law().contexts[..] else { panic!() };
    assert_eq!((cut.now, cut.last_cut, cut.slow_start), (at(30), at(0), true));
    assert_eq!((grow.now, grow.last_cut, grow.slow_start), (at(50), at(30), false));
    assert_eq!((cut.packet, grow.packet), (1500, 1500));
    let smoothed = |cx: &Context| cx.rtt.map(|rtt| rtt.smoothed);
    assert_eq!(smoothed(cut), Some(Dur::from_millis(100)));
    assert_eq!(smoothed(grow), Some(Dur::from_millis(110)));
}

#[test]
fn needs_and_gauges_are_those_of_the_law() {
    assert!(Bench::default().machine.needs().delivery_rate);
    let mut cubic = Windowed::new(Cubic::new(0.4, 0.7, true), &Settings::default());
    assert!(!cubic.needs().delivery_rate && !cubic.needs().reports);
    cubic.on(at(20), &Event::Timeout(Lost::new(0, Time::ZERO, 20)));
    let mut gauges = Vec::new();
    cubic.gauges(&mut |name, value| gauges.push((name, value)));
    assert_eq!(gauges[0], ("ssthresh", 7.0));
}

/// RFC 9438 section 4.6 lets a mark reduce the window to one packet, RFC 9002 section 7.2 to two
/// packets.
#[test]
fn a_mark_leaves_a_quic_stack_two_packets() {
    for (conventions, left) in [(&Conventions::RFC, 1.0), (&Conventions::QUIC, 2.0)] {
        let law = Trace { threshold: Some(0.5), ..Trace::default() };
        let mut bench = Bench::of(law, |settings| settings.conventions = conventions);
        bench.mark(20, 19);
        assert_eq!(bench.window(), left);
    }
}

/// `tcp_reno_undo_cwnd` of Linux 6.18, which tcp_cubic.c has too: an undo restores the window and
/// the threshold alone. CUBIC begins a new epoch at the window of the loss, its plateau.
#[test]
fn an_undo_in_linux_keeps_the_state_of_cubic() {
    let grown = |conventions: &'static Conventions| {
        let mut settings = Settings::default();
        settings.initial_window = Packets::new(1000.0);
        settings.conventions = conventions;
        let mut machine = Windowed::new(Cubic::default(), &settings);
        let lost = |millis| Event::Lost(Lost::new(1, at(millis), 5000));
        machine.on(at(1000), &lost(1000));
        machine.on(at(1100), &Event::Recovered);
        let acknowledge = |machine: &mut Windowed<_>, from: u64| {
            for n in from..from + 12_000 {
                let mut acked = Acked::new(1, at(n - 100));
                (acked.rtt, acked.in_flight) = (Some(Dur::from_millis(100)), 700);
                machine.on(at(n), &Event::Acked(acked));
            }
        };
        acknowledge(&mut machine, 1200);
        let before = machine.window().get();
        assert!(before > 1000.0, "{before}");
        machine.on(at(14_000), &lost(14_000));
        machine.on(at(14_100), &Event::Undo);
        assert_eq!(machine.window().get(), before);
        acknowledge(&mut machine, 14_200);
        machine.window().get() - before
    };
    let [rfc, linux] = [&Conventions::RFC, &Conventions::LINUX].map(grown);
    assert!(linux < 0.8 * rfc, "{linux} {rfc}");
}

/// `cubictcp_state` of Linux 6.18: a timeout in a recovery leaves the threshold and resets CUBIC,
/// which then has no plateau at the window of the loss.
#[test]
fn a_timeout_in_recovery_resets_cubic_in_linux() {
    for (window, last_max) in [(1.0, 0.0), (2.0, 100.0)] {
        let mut settings = Settings::default();
        settings.initial_window = Packets::new(100.0);
        settings.conventions = &Conventions::LINUX;
        let mut machine = Windowed::new(Cubic::default(), &settings);
        machine.on(at(1000), &Event::Lost(Lost::new(1, at(1000), 500)));
        machine.on(at(1300), &Event::Recovered);
        machine.on(at(1300), &Event::Reduced { window: Packets::new(window), idle: false });
        assert_eq!((machine.window().get(), machine.ssthresh().get()), (window, 70.0));
        let mut w_max = f64::NAN;
        machine.gauges(&mut |name, value| {
            if name == "w_max" {
                w_max = value;
            }
        });
        assert_eq!(w_max, last_max);
    }
}

/// `tcp_cwnd_restart` of Linux 6.18, after RFC 2861: a restart after an idle period leaves a
/// threshold of three quarters of the window, also if the window stays. Other reductions by the
/// driver leave the threshold: a repeated timeout (RFC 5681 section 3.1), a lost SYN.
#[test]
fn a_restart_leaves_a_threshold_in_linux() {
    let (rfc, linux) = (&Conventions::RFC, &Conventions::LINUX);
    for (conventions, window, idle, threshold) in [
        (rfc, 10.0, true, 50.0),
        (linux, 10.0, true, 75.0),
        (linux, 100.0, true, 75.0),
        (linux, 1.0, false, 50.0),
    ] {
        let mut settings = Settings::default();
        settings.initial_window = Packets::new(100.0);
        settings.conventions = conventions;
        let mut machine = Windowed::new(Reno::new(), &settings);
        machine.on(at(1000), &Event::Lost(Lost::new(1, at(1000), 500)));
        machine.on(at(1100), &Event::Recovered);
        let mut now = 1200;
        while machine.window().get() < 100.0 {
            machine.on(at(now), &Event::Acked(Acked::new(1, at(now - 100))));
            now += 1;
        }
        machine.on(at(now), &Event::Reduced { window: Packets::new(window), idle });
        let left = (machine.window().get().floor(), machine.ssthresh().get().round());
        assert_eq!(left, (window, threshold));
    }
}
