//! What holds for every controller of the registry, whatever it is told.

mod common;

use cwnd::laws::AnyLaw;
use cwnd::record::{Record, Recorder, replay};
use cwnd::registry::{Kind, Law};
use cwnd::{
    Acked, Context, Controller, Dur, Event, Limit, Lost, MakeLaw, Marked, Output, Packets, Round,
};
use cwnd::{Settings, Signal, Spec, Time, WindowLaw, Windowed};
use proptest::prelude::*;

/// The paced machine's smallest flow window.
const LEAST_FLOW_WINDOW: f64 = 16.0;

fn settings(ns2: bool) -> Settings {
    Settings { ns2, seed: 7, ..Settings::default() }
}

/// A pace, where none is faster than any.
fn pace(output: &Output) -> f64 {
    output.pace.map_or(f64::INFINITY, cwnd::Rate::as_per_sec)
}

fn sound(spec: &Spec, output: &Output) -> Result<(), TestCaseError> {
    let least = match spec.algorithm().kind() {
        Kind::Window => 1.0,
        Kind::Rate => LEAST_FLOW_WINDOW,
    };
    // A rate law may leave the flow window to the receiver, whose window has no limit here.
    let limited = output.window.is_finite() || spec.algorithm().kind() == Kind::Rate;
    prop_assert!(limited && output.window >= least, "{spec}: window {}", output.window);
    if let Some(rate) = output.pace {
        let rate = rate.as_per_sec();
        prop_assert!(rate.is_finite() && rate >= 1.0, "{spec}: pace {rate}");
    }
    Ok(())
}

/// A law that is held to account itself, without the clamps of its machine.
#[derive(Clone)]
struct Honest(AnyLaw);

impl WindowLaw for Honest {
    fn grow(&mut self, w: Packets, acked: Packets, cx: &Context) -> Packets {
        let grown = self.0.grow(w, acked, cx);
        assert!(grown.is_finite() && grown >= w - 1.0, "{:?} went from {w} to {grown}", self.0);
        grown
    }
    fn cut(&mut self, w: Packets, why: Signal, cx: &Context) -> Packets {
        let cut = self.0.cut(w, why, cx);
        // A threshold of the law's own may exceed the window.
        let most = if self.0.own_threshold() { f64::MAX } else { w };
        assert!((0.0..=most).contains(&cut), "{:?} was cut from {w} to {cut}", self.0);
        cut
    }
    fn own_threshold(&self) -> bool {
        self.0.own_threshold()
    }
    fn enter(&mut self, w: Packets, cx: &Context) {
        self.0.enter(w, cx);
    }
    fn round(&mut self, round: &Round, cx: &Context) {
        self.0.round(round, cx);
    }
    fn observe(&mut self, acked: &Acked, cx: &Context) {
        self.0.observe(acked, cx);
    }
    fn leave_slow_start(&mut self, w: Packets, cx: &Context) -> bool {
        self.0.leave_slow_start(w, cx)
    }
}

/// A law that answers a cut with anything, as a law from outside may; it counts its cuts.
#[derive(Clone, Debug)]
struct Anything {
    answers: Vec<Packets>,
    own_threshold: bool,
    cuts: usize,
}

impl WindowLaw for Anything {
    fn grow(&mut self, w: Packets, acked: Packets, _: &Context) -> Packets {
        w + acked / w
    }
    fn cut(&mut self, _: Packets, _: Signal, _: &Context) -> Packets {
        self.cuts += 1;
        self.answers[(self.cuts - 1) % self.answers.len()]
    }
    fn own_threshold(&self) -> bool {
        self.own_threshold
    }
}

fn answer() -> impl Strategy<Value = Packets> {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -1.0, 0.0];
    prop_oneof![proptest::sample::select(odd.to_vec()), 0.0..200.0_f64]
}

/// Runs `events` through the controller and checks every answer.
fn check(spec: &Spec, ns2: bool, events: &[(Time, Event)]) -> Result<(), TestCaseError> {
    let mut controller = spec.controller(settings(ns2));
    let windowed = spec.algorithm().kind() == Kind::Window;
    let mut last_cut: Option<Time> = None;
    for (now, event) in events {
        let before = controller.output();
        controller.on(*now, event);
        let after = controller.output();
        sound(spec, &after)?;
        if matches!(event, Event::Tick) {
            prop_assert!(after.wake.is_none_or(|wake| wake > *now), "{spec}: wakes in the past");
        }
        let cut = controller.take_cut();
        let bad_news = match event {
            Event::Lost(lost) => Some(lost.sent_at),
            Event::Marked(marked) => Some(marked.sent_at),
            Event::Timeout { .. } => Some(*now),
            _ => None,
        };
        if let Some(sent_at) = bad_news {
            prop_assert!(after.window <= before.window, "{spec}: grew at {event:?}");
            prop_assert!(pace(&after) <= pace(&before), "{spec}: sped up at {event:?}");
            if windowed && last_cut.is_some_and(|cut| sent_at < cut) {
                prop_assert!(cut.is_none(), "{spec}: cut twice in a round at {event:?}");
                prop_assert_eq!(after, before);
            }
        } else {
            prop_assert!(cut.is_none(), "{spec}: cut at {event:?}");
        }
        if cut.is_some() {
            last_cut = Some(*now);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(common::config(256))]

    #[test]
    fn any_spec_stays_sound(spec in common::spec(), ns2: bool, events in common::events(400)) {
        check(&spec, ns2, &events)?;
    }

    #[test]
    fn no_law_relies_on_the_clamps(spec in common::spec(), ns2: bool, events in common::events(400)) {
        if let Law::Window(law) = spec.law(&settings(ns2)) {
            let mut machine = Windowed::new(Honest(law), spec.settings(settings(ns2)));
            for (now, event) in &events {
                machine.on(*now, event);
            }
        }
    }

    #[test]
    fn a_law_may_answer_anything(
        answers in prop::collection::vec(answer(), 1..8),
        own_threshold: bool,
        ns2: bool,
        max_window in proptest::sample::select(vec![2.0, 37.5, f64::INFINITY]),
        events in common::events(400),
    ) {
        let law = Anything { answers, own_threshold, cuts: 0 };
        let mut machine = Windowed::new(law, Settings { max_window, ..settings(ns2) });
        for (now, event) in &events {
            let saved = machine.clone();
            machine.on(*now, event);
            let (before, after) = (saved.unclamped(), machine.unclamped());
            prop_assert!((1.0..=f64::from(u32::MAX)).contains(&after), "{after} at {event:?}");
            let Some(cut) = machine.take_cut() else { continue };
            prop_assert!(after <= before, "grew from {before} to {after} at {event:?}");
            let threshold = machine.ssthresh();
            let half = cut.before / 2.0;
            let most = match cut.why {
                _ if own_threshold => f64::INFINITY,
                // ns-2 keeps the threshold of a mark at the timeout after it.
                Signal::Timeout if ns2 => half.max(saved.ssthresh()),
                Signal::Timeout => half,
                _ if saved.in_slow_start() => half,
                _ => cut.before,
            };
            let allowed = 2.0..=most.max(2.0);
            prop_assert!(allowed.contains(&threshold), "{threshold} at {event:?}");
            let mut spurious = machine.clone();
            spurious.on(*now, &Event::Undo);
            prop_assert_eq!(spurious.unclamped(), before);
            prop_assert_eq!(spurious.ssthresh(), saved.ssthresh());
            prop_assert_eq!(spurious.law().cuts, saved.law().cuts);
        }
    }

    #[test]
    fn equal_inputs_give_equal_outputs(spec in common::spec(), events in common::events(200)) {
        let mut recorder = Recorder::new(spec.controller(settings(false)));
        for (now, event) in &events {
            recorder.on(*now, event);
        }
        let record = recorder.record();
        prop_assert_eq!(replay(spec.controller(settings(false)), record), Ok(()));
        // Through its text as well, and bit for bit.
        let read: Record = record.to_string().parse().expect("a record's text is read back");
        prop_assert_eq!(&read, record);
        prop_assert_eq!(replay(spec.controller(settings(false)), &read), Ok(()));
    }

    #[test]
    fn undo_restores(spec in common::spec(), ns2: bool, events in common::events(200)) {
        let mut controller = spec.controller(settings(ns2));
        for (now, event) in &events {
            let mut spurious = controller.clone();
            let before = spurious.output();
            if spec.algorithm().kind() == Kind::Window {
                spurious.take_cut();
                spurious.on(*now, event);
                if spurious.take_cut().is_some() {
                    spurious.on(*now, &Event::Undo);
                    prop_assert_eq!(spurious.output(), before, "{} after {:?}", spec, event);
                }
            }
            controller.on(*now, event);
        }
    }
}

proptest! {
    #![proptest_config(common::config(16))]

    #[test]
    fn the_ends_of_every_range_stay_sound(ns2: bool, events in common::events(600)) {
        for spec in common::corners() {
            check(&spec, ns2, &events)?;
        }
    }
}

#[test]
fn a_replay_finds_what_differs() {
    let mut recorder = Recorder::new(Spec::parse("reno").unwrap().controller(settings(false)));
    recorder.on(Time::from_nanos(5), &Event::Timeout { sent: 3 });
    let record = recorder.into_parts().1;
    let other = Settings { initial_window: 4.0, ..settings(false) };
    assert_eq!(replay(Spec::parse("reno").unwrap().controller(other), &record), Ok(()));
    let text = record.to_string().replace("| 1 ", "| 2 ");
    let mismatch = replay(Spec::parse("reno").unwrap().controller(other), &text.parse().unwrap());
    let message = mismatch.unwrap_err().to_string();
    assert_eq!(message, "entry 0: 2 - - on record, 1 - - in the replay");
}

#[test]
fn a_records_errors_name_the_line() {
    for (text, message) in [
        (
            "# a comment\n\n12 tick | 1 - -\n13 tock | 1 - -",
            "line 4: expected the name of an event",
        ),
        ("12 lost 1 x 3 | 1 - -", "line 1: expected the time of sending in nanoseconds"),
        ("12 tick 1 - -", "line 1: expected | between the event and the answer"),
        ("12 tick | 1 - - -", "line 1: expected nothing after the answer"),
    ] {
        assert_eq!(text.parse::<Record>().unwrap_err().to_string(), message);
    }
}

/// A law that only records its rounds: packets sent and lost, and milliseconds.
#[derive(Clone, Debug, Default)]
struct Rounds {
    told: Vec<(u64, u64, u64)>,
    timeouts_continue: bool,
}

impl WindowLaw for Rounds {
    fn grow(&mut self, w: Packets, acked: Packets, _: &Context) -> Packets {
        w + acked / w
    }
    fn cut(&mut self, w: Packets, _: Signal, _: &Context) -> Packets {
        w / 2.0
    }
    fn round(&mut self, round: &Round, _: &Context) {
        self.told.push((round.sent, round.lost, round.took.as_nanos() / 1_000_000));
    }
    fn timeout_ends_round(&self) -> bool {
        !self.timeouts_continue
    }
}

/// The losses of a round stay with the packets of that round, whatever happens to its repair.
#[test]
fn a_timeout_in_recovery_does_not_mix_two_rounds() {
    let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
    let lost = |packets, sent| Event::Lost(Lost { packets, sent_at: at(10), sent });
    let mut machine = Windowed::new(Rounds::default(), Settings::default());
    machine.on(at(20), &lost(3, 100));
    machine.on(at(21), &lost(1, 101));
    assert!(machine.law().told.is_empty());
    // The repair fails: the round ends with what it had, and the timeout begins no other.
    machine.on(at(400), &Event::Timeout { sent: 102 });
    assert_eq!(machine.law().told, [(100, 4, 20)]);
    // The probe is lost as well.
    machine.on(at(900), &Event::Timeout { sent: 103 });
    assert_eq!(machine.law().told, [(100, 4, 20)]);
    let grows = Acked {
        packets: 4,
        credit: 4,
        in_flight: 1,
        sent: 104,
        sent_at: at(900),
        rtt: None,
        received_at: None,
        echo: false,
        limit: Limit::Window,
    };
    machine.on(at(950), &Event::Acked(grows));
    // A timeout out of the blue ends a round, in which at least one packet was lost.
    machine.on(at(2000), &Event::Timeout { sent: 143 });
    assert_eq!(machine.law().told, [(100, 4, 20), (43, 1, 1980)]);
}

/// A law can let a round continue after a timeout: the lost packet counts in that round.
#[test]
fn a_round_continues_after_a_timeout_if_the_law_says_so() {
    let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
    let rounds = Rounds { timeouts_continue: true, ..Rounds::default() };
    let mut machine = Windowed::new(rounds, Settings::default());
    machine.on(at(400), &Event::Timeout { sent: 60 });
    assert!(machine.law().told.is_empty());
    machine.on(at(900), &Event::Lost(Lost { packets: 2, sent_at: at(800), sent: 100 }));
    machine.on(at(1000), &Event::Recovered);
    assert_eq!(machine.law().told, [(100, 3, 900)]);
    // A recovery that fails closes its own round.
    machine.on(at(1500), &Event::Lost(Lost { packets: 1, sent_at: at(1400), sent: 130 }));
    machine.on(at(2000), &Event::Timeout { sent: 135 });
    assert_eq!(machine.law().told, [(100, 3, 900), (30, 1, 600)]);
}

/// Only UDT's laws use the receiver's estimate of the capacity.
#[test]
fn who_uses_the_capacity() {
    for algorithm in cwnd::registry::algorithms() {
        let uses = Spec::new(algorithm).controller(settings(false)).uses_capacity();
        assert_eq!(uses, matches!(algorithm.name, "daimd" | "udt"), "{}", algorithm.name);
    }
}

/// The threshold and the window after `why`, from a window of 40 in slow start or, after a mark, of 40 or
/// just more in congestion avoidance.
fn after(spec: &str, ns2: bool, avoidance: bool, why: Signal) -> (f64, f64) {
    let initial_window = 40.0;
    let settings = Settings { initial_window, ..settings(ns2) };
    let Law::Window(law) = spec.parse::<Spec>().unwrap().law(&settings) else { panic!("{spec}") };
    let mut machine = Windowed::new(law, settings);
    let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
    let mut sent = 40;
    if avoidance {
        machine.on(at(1), &Event::Marked(Marked { packets: 1, sent_at: at(1), sent }));
        while machine.unclamped() < 40.0 {
            sent += 1;
            let acked = Acked {
                packets: 1,
                credit: 1,
                in_flight: 20,
                sent,
                sent_at: at(1),
                rtt: None,
                received_at: None,
                echo: false,
                limit: Limit::Window,
            };
            machine.on(at(2), &Event::Acked(acked));
        }
    }
    let event = match why {
        Signal::Loss => Event::Lost(Lost { packets: 1, sent_at: at(3), sent }),
        Signal::Mark => Event::Marked(Marked { packets: 1, sent_at: at(3), sent }),
        Signal::Timeout => Event::Timeout { sent },
    };
    machine.on(at(4), &event);
    (machine.ssthresh(), machine.unclamped())
}

/// RFC 5681 equation 4: at most half, in slow start and after a timeout.
#[test]
fn laws_inherit_a_threshold_of_half_of_the_window() {
    for spec in
        ["reno", "gaimd(1, 7/8)", "iiad", "simd", "aira", "bic", "scalable", "highspeed", "vegas"]
    {
        for why in [Signal::Loss, Signal::Mark] {
            assert_eq!(after(spec, false, false, why), (20.0, 20.0), "{spec}");
        }
        assert_eq!(after(spec, false, false, Signal::Timeout), (20.0, 1.0), "{spec}");
    }
    assert_eq!(after("gaimd(1, 1/4)", false, false, Signal::Loss), (10.0, 10.0));
    assert_eq!(after("gaimd(1, 1/4)", false, false, Signal::Timeout), (10.0, 1.0));
    let (threshold, window) = after("gaimd(1, 7/8)", false, true, Signal::Timeout);
    assert!((threshold - 20.0).abs() < 0.1 && window == 1.0, "{threshold}");
    let (threshold, window) = after("gaimd(1, 7/8)", false, true, Signal::Loss);
    assert!((threshold - 35.0).abs() < 0.1 && window == threshold, "{threshold}");
}

/// tcp.cc, slowdown(): exactly half in slow start, at the first cut and, for the threshold, after a
/// timeout, whatever the law keeps; the threshold is a whole number.
#[test]
fn ns2_takes_exactly_half() {
    for spec in ["gaimd(1, 1/4)", "gaimd(1, 7/8)", "iiad"] {
        assert_eq!(after(spec, true, false, Signal::Loss), (20.0, 20.0), "{spec}");
        assert_eq!(after(spec, true, false, Signal::Timeout), (20.0, 1.0), "{spec}");
        assert_eq!(after(spec, true, true, Signal::Timeout), (20.0, 1.0), "{spec}");
    }
    let (threshold, window) = after("gaimd(1, 1/4)", true, true, Signal::Loss);
    assert!(threshold == 10.0 && (10.0..10.1).contains(&window), "{threshold} {window}");
}

/// RFC 9438 sections 4.6 and 4.8: 0.7 of the window, everywhere.
#[test]
fn cubic_keeps_its_share_in_slow_start_and_after_a_timeout() {
    for ns2 in [false, true] {
        assert_eq!(after("cubic", ns2, false, Signal::Loss), (28.0, 28.0));
        assert_eq!(after("cubic", ns2, false, Signal::Timeout), (28.0, 1.0));
        // From the first packet above 40.
        let (threshold, window) = after("cubic", ns2, true, Signal::Timeout);
        assert!((28.0..28.1).contains(&threshold) && window == 1.0, "{threshold}");
    }
}

/// Westwood: the threshold is r d, also where that is more than the window, which does not grow by it.
#[test]
fn westwoods_threshold_is_its_estimate() {
    let machine = |packets: u32, ns2: bool| {
        let settings = Settings { initial_window: 40.0, ..settings(ns2) };
        let Law::Window(law) = "westwood".parse::<Spec>().unwrap().law(&settings) else { panic!() };
        let mut machine = Windowed::new(law, settings);
        // Acknowledges `packets` every 10 ms for 20 s; the round-trip time is 100 ms.
        for n in 0..2000 {
            let now = Time::from_nanos(n * 10_000_000);
            let acked = Acked {
                packets,
                credit: 0,
                in_flight: 40,
                sent: 0,
                sent_at: now,
                rtt: Some(Dur::from_millis(100)),
                received_at: None,
                echo: false,
                limit: Limit::Window,
            };
            machine.on(now, &Event::Acked(acked));
        }
        machine
    };
    let now = Time::from_nanos(20_000_000_000);
    let lost = Event::Lost(Lost { packets: 1, sent_at: now, sent: 2000 });
    let near = |value: f64, expected: f64| (value - expected).abs() < 1e-6;
    // 300 packets/s in 100 ms are 30, in slow start with a window of 40.
    let mut less = machine(3, false);
    less.on(now, &lost);
    assert!(near(less.ssthresh(), 30.0) && near(less.unclamped(), 30.0), "{}", less.ssthresh());
    // 60: the window stays 40, and slow start goes on once the loss is repaired.
    let mut more = machine(6, false);
    more.on(now, &lost);
    assert!(near(more.ssthresh(), 60.0) && more.unclamped() == 40.0 && more.in_slow_start());
    for ns2 in [false, true] {
        let mut timeout = machine(3, ns2);
        for _ in 0..2 {
            // A second one at a window of 1 leaves the threshold.
            timeout.on(now, &Event::Timeout { sent: 2000 });
            assert!(timeout.ssthresh() >= 29.0 && timeout.unclamped() == 1.0);
        }
    }
}
