//! Properties of every controller of the registry under any events.

use crate::common::{self, EVERY_RULE, at, conventions, slow_start};
use cwnd::laws::AnyLaw;
use cwnd::record::{Record, Recorder, replay};
use cwnd::registry::Kind;
use cwnd::{
    Acked, AnyController, Context, Controller, Conventions, Dur, Event, Law, Limit, Lost, Marked,
};
use cwnd::{MakeController, Output, Packets, Rate, Report, Round, Settings, Signal, Spec, Time};
use cwnd::{WindowLaw, Windowed};
use proptest::prelude::*;

/// The paced machine's smallest flow window.
const MIN_FLOW_WINDOW: f64 = 16.0;

fn settings(conventions: &'static Conventions) -> Settings {
    let mut settings = Settings::default();
    settings.conventions = conventions;
    settings.seed = 7;
    settings
}

fn rfc() -> Settings {
    settings(&Conventions::RFC)
}

fn controller(spec: &str, settings: &Settings) -> AnyController {
    Spec::parse(spec).unwrap().controller(settings)
}

/// A pace, where none is faster than any.
fn pace(output: &Output) -> f64 {
    output.pace.map_or(f64::INFINITY, cwnd::Rate::as_per_sec)
}

fn sound(spec: &Spec, output: &Output) -> Result<(), TestCaseError> {
    let rate_law = spec.algorithm().kind() == Kind::Rate;
    // TFRC's least rate is a packet in 64 s (RFC 5348 section 4.3).
    let slowest = if spec.name() == "tfrc" { 1.0 / 64.0 } else { 1.0 };
    let (least, slowest) = if rate_law { (MIN_FLOW_WINDOW, slowest) } else { (1.0, 0.0) };
    // A rate law may leave the flow window to the receiver, whose window has no limit here.
    let window = output.window.get();
    prop_assert!((window.is_finite() || rate_law) && window >= least, "{spec}: window {window}");
    if let Some(rate) = output.pace {
        let rate = rate.as_per_sec();
        prop_assert!(rate.is_finite() && rate >= slowest, "{spec}: pace {rate}");
    }
    Ok(())
}

/// Checks the answers of a law before the clamps of its machine.
#[derive(Clone, Debug)]
struct Honest(AnyLaw);

impl WindowLaw for Honest {
    fn grow(&mut self, w: f64, acked: f64, cx: &Context) -> f64 {
        let grown = self.0.grow(w, acked, cx);
        assert!(grown.is_finite() && grown >= w - 1.0, "{:?} went from {w} to {grown}", self.0);
        grown
    }
    fn cut(&mut self, w: f64, why: Signal, cx: &Context) -> f64 {
        let cut = self.0.cut(w, why, cx);
        // A law with a threshold of its own may compute it as its answer, which may exceed the
        // window.
        let most = if self.0.threshold(cut, why).is_some() { f64::MAX } else { w };
        assert!((0.0..=most).contains(&cut), "{:?} reduced {w} to {cut}", self.0);
        cut
    }
    fn threshold(&self, cut: f64, why: Signal) -> Option<f64> {
        let threshold = self.0.threshold(cut, why);
        let sound = threshold.is_none_or(|threshold| (0.0..=f64::MAX).contains(&threshold));
        assert!(sound, "{:?} has the threshold {threshold:?}", self.0);
        threshold
    }
    fn enter(&mut self, w: f64, cx: &Context) {
        self.0.enter(w, cx);
    }
    fn round(&mut self, round: &Round, cx: &Context) {
        self.0.round(round, cx);
    }
    fn timeout_ends_round(&self) -> bool {
        self.0.timeout_ends_round()
    }
    fn observe(&mut self, acked: &Acked, cx: &Context) {
        self.0.observe(acked, cx);
    }
    fn leave_slow_start(&mut self, w: f64, cx: &Context) -> bool {
        self.0.leave_slow_start(w, cx)
    }
    fn rescale(&mut self, factor: f64) {
        self.0.rescale(factor);
    }
}

/// A law that answers a signal with any number, as a law from outside may; it counts its
/// reductions.
#[derive(Clone, Debug)]
struct Anything {
    answers: Vec<f64>,
    own_threshold: bool,
    cuts: usize,
}

impl Anything {
    fn answer(&self) -> f64 {
        self.answers[self.cuts % self.answers.len()]
    }
}

impl WindowLaw for Anything {
    fn grow(&mut self, w: f64, acked: f64, _: &Context) -> f64 {
        w + acked / w
    }
    fn cut(&mut self, _: f64, _: Signal, _: &Context) -> f64 {
        self.cuts += 1;
        self.answer()
    }
    fn threshold(&self, _: f64, _: Signal) -> Option<f64> {
        self.own_threshold.then(|| self.answer())
    }
}

fn answer() -> impl Strategy<Value = f64> {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -1.0, 0.0];
    prop_oneof![proptest::sample::select(odd.to_vec()), 0.0..200.0_f64]
}

/// Runs `events` through the controller and checks every answer.
fn check(spec: &Spec, settings: &Settings, events: &[(Time, Event)]) -> Result<(), TestCaseError> {
    let mut controller = spec.controller(settings);
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
        let signal = match event {
            Event::Lost(lost) => Some(lost.sent_at),
            Event::Marked(marked) => Some(marked.sent_at),
            Event::Timeout(_) | Event::PersistentCongestion => Some(*now),
            _ => None,
        };
        if let Some(sent_at) = signal {
            prop_assert!(after.window <= before.window, "{spec}: grew at {event:?}");
            prop_assert!(pace(&after) <= pace(&before), "{spec}: sped up at {event:?}");
            if windowed && last_cut.is_some_and(|cut| sent_at < cut) {
                prop_assert!(cut.is_none(), "{spec}: reduced twice in a round at {event:?}");
                prop_assert_eq!(after, before);
            }
        } else if let Some(cut) = cut {
            // A rising delay is a signal of a report.
            let delay = matches!(event, Event::Report(_)) && cut.why == Signal::Delay;
            prop_assert!(delay && !windowed, "{spec}: reduced at {event:?}");
            prop_assert!(pace(&after) <= pace(&before), "{spec}: sped up at {event:?}");
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
    fn any_spec_stays_sound(
        spec in common::spec(),
        conventions in conventions(),
        events in common::events(400),
    ) {
        check(&spec, &settings(conventions), &events)?;
    }

    #[test]
    fn no_law_relies_on_the_clamps(
        spec in common::spec(),
        conventions in conventions(),
        slow_start in slow_start(),
        events in common::events(400),
    ) {
        let mut settings = settings(conventions);
        settings.slow_start = slow_start;
        if let Some(Law::Window(law)) = spec.law(&settings) {
            let mut machine = Windowed::new(Honest(law), &settings);
            for (now, event) in &events {
                machine.on(*now, event);
            }
        }
    }

    #[test]
    fn a_law_may_answer_anything(
        answers in prop::collection::vec(answer(), 1..8),
        own_threshold: bool,
        conventions in conventions(),
        max_window in proptest::sample::select(vec![2.0, 37.5, f64::INFINITY]),
        events in common::events(400),
    ) {
        let law = Anything { answers, own_threshold, cuts: 0 };
        let mut settings = settings(conventions);
        settings.max_window = Packets::new(max_window);
        let mut machine = Windowed::new(law, &settings);
        for (now, event) in &events {
            let saved = machine.clone();
            machine.on(*now, event);
            let (before, after) = (saved.unclamped().get(), machine.unclamped().get());
            prop_assert!((1.0..=f64::from(u32::MAX)).contains(&after), "{after} at {event:?}");
            let Some(cut) = machine.take_cut() else { continue };
            prop_assert!(after <= before, "grew from {before} to {after} at {event:?}");
            let window = cut.before();
            let (threshold, old) = (machine.ssthresh().get(), saved.ssthresh().get());
            let half = window / 2.0;
            let most = match cut.why {
                Signal::PersistentCongestion => old,
                _ if own_threshold => f64::INFINITY,
                // EVERY_RULE keeps the threshold of a mark at the timeout after it.
                Signal::Timeout if std::ptr::eq(conventions, &EVERY_RULE) => half.max(old),
                Signal::Timeout => half,
                _ if saved.in_slow_start() => half,
                _ => window,
            };
            // A larger packet size reduces a threshold below two packets.
            let allowed = old.min(2.0)..=most.max(2.0);
            prop_assert!(allowed.contains(&threshold), "{threshold} at {event:?}");
            let mut spurious = machine.clone();
            spurious.on(*now, &Event::Undo);
            prop_assert_eq!(spurious.unclamped(), saved.unclamped());
            prop_assert_eq!(spurious.ssthresh(), saved.ssthresh());
            prop_assert_eq!(spurious.law().cuts, saved.law().cuts);
        }
    }

    #[test]
    fn equal_inputs_give_equal_outputs(spec in common::spec(), events in common::events(200)) {
        let mut recorder = Recorder::new(spec.controller(&rfc()));
        for (now, event) in &events {
            recorder.on(*now, event);
        }
        let record = recorder.record();
        prop_assert_eq!(replay(spec.controller(&rfc()), record), Ok(()));
        // Through its text as well, and bit for bit.
        let read: Record = record.to_string().parse().expect("a record's text is read back");
        prop_assert_eq!(&read, record);
        prop_assert_eq!(replay(spec.controller(&rfc()), &read), Ok(()));
    }

    #[test]
    fn undo_restores(
        spec in common::spec(),
        conventions in conventions(),
        events in common::events(200),
    ) {
        let mut controller = spec.controller(&settings(conventions));
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
    fn the_ends_of_every_range_stay_sound(
        conventions in conventions(),
        events in common::events(600),
    ) {
        for spec in common::corners() {
            check(&spec, &settings(conventions), &events)?;
        }
    }
}

#[test]
fn a_replay_finds_what_differs() {
    let mut recorder = Recorder::new(controller("reno", &rfc()));
    recorder.on(Time::from_nanos(5), &Event::Timeout(Lost::new(0, Time::ZERO, 3)));
    let record = recorder.into_parts().1;
    let mut other = rfc();
    other.initial_window = Packets::new(4.0);
    assert_eq!(replay(controller("reno", &other), &record), Ok(()));
    let text = record.to_string().replace("| 1 ", "| 2 ");
    let mismatch = replay(controller("reno", &other), &text.parse().unwrap());
    let message = mismatch.unwrap_err().to_string();
    assert_eq!(message, "entry 0: 2 - - on record, 1 - - in the replay");
}

/// The example of the documentation, and a line with every field of an acknowledgement.
#[test]
fn a_record_reads_back_as_it_was_written() {
    let text = "50000000 acked 2 2 8 10 0 50000000 - 0 0 window | 12 - -
61000000 lost 1 50000000 14 | 6 - -
62000000 acked 2 1 8 10 61000000 1000000 7 1 3 pacing delivery 5 4 3000000 2000000 1 9 1 0 | 6 120.5 -
63000000 marked 2 62000000 15 | 6 - -
64000000 report 3 16 - 1000.5 50000000 | 6 - 65000000
65000000 persistent-congestion | 2 - -
66000000 reduced 1.5 | 1.5 - -
67000000 mtu 1200 | 1.875 - -
";
    let record: Record = text.parse().unwrap();
    assert_eq!(record.to_string(), text);
    let Event::Acked(acked) = record.entries[2].event else { panic!("{record}") };
    let sample = acked.delivery.unwrap();
    assert_eq!((acked.limit, acked.echo, acked.marked), (Limit::Pacing, true, 3));
    assert_eq!((sample.delivered, sample.prior_delivered, sample.in_flight), (5, 4, 9));
    assert!(sample.application_limited && !sample.reliable);
}

#[test]
fn a_records_errors_name_the_line() {
    for (text, message) in [
        (
            "# a comment\n\n12 tick | 1 - -\n13 tock | 1 - -",
            "line 4: expected the name of an event",
        ),
        ("12 lost 1 x 3 | 1 - -", "line 1: expected the time of sending in nanoseconds"),
        ("12 reduced | 1 - -", "line 1: expected the window in packets"),
        ("12 mtu 1.5 | 1 - -", "line 1: expected the packet size in bytes"),
        (
            "12 acked 1 1 0 0 0 - - 0 0 link | 1 - -",
            "line 1: expected window, pacing, receiver or application",
        ),
        (
            "12 acked 1 1 0 0 0 - - 0 0 window delivery 1 0 5 5 0 1 2 1 | 1 - -",
            "line 1: expected 0 or 1 for an application-limited sample",
        ),
        ("12 tick 1 - -", "line 1: expected | between the event and the answer"),
        ("12 tick | 1 - - -", "line 1: expected nothing after the answer"),
        (
            "12 tick | 1 - -\n13 tick | 1 - 45",
            "line 2: expected a line feed at the end of the line, which is cut",
        ),
    ] {
        assert_eq!(text.parse::<Record>().unwrap_err().to_string(), message);
    }
}

/// Only UDT's laws use the receiver's estimate of the capacity.
#[test]
fn who_uses_the_capacity() {
    for algorithm in cwnd::registry::algorithms() {
        let uses = Spec::new(algorithm).controller(&rfc()).needs().capacity;
        assert_eq!(uses, matches!(algorithm.name, "daimd" | "udt"), "{}", algorithm.name);
    }
}

/// The law of `spec` in its machine, with an initial window of 40.
fn machine(spec: &str) -> Windowed<AnyLaw> {
    let mut settings = rfc();
    settings.initial_window = Packets::new(40.0);
    let law = Spec::parse(spec).unwrap().law(&settings);
    let Some(Law::Window(law)) = law else { panic!("{spec}") };
    Windowed::new(law, &settings)
}

/// The threshold and the window after `why`, from a window of 40 in slow start or, after a mark, of
/// 40 or just more in congestion avoidance.
fn after(spec: &str, avoidance: bool, why: Signal) -> (f64, f64) {
    let mut machine = machine(spec);
    let mut sent = 40;
    if avoidance {
        machine.on(at(1), &Event::Marked(Marked::new(1, at(1), sent)));
        while machine.unclamped().get() < 40.0 {
            sent += 1;
            machine.on(at(2), &Event::Acked(Acked::new(1, at(1))));
        }
    }
    let event = match why {
        Signal::Loss => Event::Lost(Lost::new(1, at(3), sent)),
        Signal::Mark => Event::Marked(Marked::new(1, at(3), sent)),
        _ => Event::Timeout(Lost::new(0, Time::ZERO, sent)),
    };
    machine.on(at(4), &event);
    (machine.ssthresh().get(), machine.unclamped().get())
}

/// RFC 5681 equation 4: at most half, in slow start and after a timeout.
#[test]
fn laws_inherit_a_threshold_of_half_of_the_window() {
    for spec in
        ["reno", "gaimd(1, 7/8)", "iiad", "simd", "aira", "bic", "scalable", "highspeed", "vegas"]
    {
        for why in [Signal::Loss, Signal::Mark] {
            assert_eq!(after(spec, false, why), (20.0, 20.0), "{spec}");
        }
        assert_eq!(after(spec, false, Signal::Timeout), (20.0, 1.0), "{spec}");
    }
    assert_eq!(after("gaimd(1, 1/4)", false, Signal::Loss), (10.0, 10.0));
    assert_eq!(after("gaimd(1, 1/4)", false, Signal::Timeout), (10.0, 1.0));
    let (threshold, window) = after("gaimd(1, 7/8)", true, Signal::Timeout);
    assert!((threshold - 20.0).abs() < 0.1 && window == 1.0, "{threshold}");
    let (threshold, window) = after("gaimd(1, 7/8)", true, Signal::Loss);
    assert!((threshold - 35.0).abs() < 0.1 && window == threshold, "{threshold}");
}

/// RFC 9438 sections 4.6 and 4.8: 0.7 of the window, everywhere.
#[test]
fn cubic_keeps_its_share_in_slow_start_and_after_a_timeout() {
    assert_eq!(after("cubic", false, Signal::Loss), (28.0, 28.0));
    assert_eq!(after("cubic", false, Signal::Timeout), (28.0, 1.0));
    // From the first packet above 40.
    let (threshold, window) = after("cubic", true, Signal::Timeout);
    assert!((28.0..28.1).contains(&threshold) && window == 1.0, "{threshold}");
}

/// Westwood: the threshold is r d, also where it exceeds the window, which does not grow.
#[test]
fn westwoods_threshold_is_its_estimate() {
    let estimated = |packets: u32| {
        let mut machine = machine("westwood");
        // Acknowledges `packets` every 10 ms for 20 s; the round-trip time is 100 ms.
        for n in 0..2000 {
            let mut acked = Acked::new(packets, at(10 * n));
            acked.credit = 0;
            acked.rtt = Some(Dur::from_millis(100));
            machine.on(at(10 * n), &Event::Acked(acked));
        }
        machine
    };
    let now = at(20_000);
    let lost = Event::Lost(Lost::new(1, now, 2000));
    let near = |value: Packets, expected: f64| (value.get() - expected).abs() < 1e-6;
    // 300 packets/s in 100 ms are 30, in slow start with a window of 40.
    let mut less = estimated(3);
    less.on(now, &lost);
    assert!(near(less.ssthresh(), 30.0) && near(less.unclamped(), 30.0), "{less:?}");
    // 60: the window stays 40, and slow start continues after the recovery.
    let mut more = estimated(6);
    more.on(now, &lost);
    assert!(near(more.ssthresh(), 60.0) && near(more.unclamped(), 40.0) && more.in_slow_start());
    let mut timeout = estimated(3);
    for _ in 0..2 {
        // A second one at a window of 1 leaves the threshold.
        timeout.on(now, &Event::Timeout(Lost::new(0, Time::ZERO, 2000)));
        assert!(timeout.ssthresh().get() >= 29.0 && timeout.unclamped().get() == 1.0);
    }
}

/// Reports in which nothing arrives have no estimate and do not reduce the rate.
#[test]
fn a_report_without_an_arrival_rate_keeps_the_estimate() {
    let rtt = Dur::from_millis(50);
    for name in ["daimd", "tfrc", "udt"] {
        let mut controller = Spec::parse(name).unwrap().controller(&Settings::default());
        let at = |millis| Time::ZERO + Dur::from_millis(millis);
        for n in 1..=100 {
            let mut report = Report::new(5, 5 * n, rtt);
            report.arrival = Some(Rate::per_sec(500.0));
            controller.on(at(10 * n), &Event::Report(report));
        }
        controller.on(at(1001), &Event::Lost(Lost::new(1, at(990), 500)));
        let before = controller.output().pace.unwrap();
        for n in 101..=200 {
            let report = Report::new(0, 500, rtt);
            controller.on(at(10 * n), &Event::Report(report));
        }
        assert!(controller.output().pace >= Some(before), "{name}");
    }
}

/// A method that is not forwarded would be the default for every law, without an error of the
/// compiler.
#[test]
fn every_method_of_the_traits_is_forwarded() {
    let methods = |text: &str| -> Vec<String> {
        let names = text.split(" fn ").skip(1).map(|rest| rest.split('(').next().unwrap());
        names.map(str::to_owned).collect()
    };
    let after = |text: &str, from: &str, to: &str| -> String {
        let start = text.find(from).unwrap_or_else(|| panic!("{from}"));
        text[start..].split(to).next().unwrap().to_owned()
    };
    let law = include_str!("../src/law.rs");
    let any = include_str!("../src/laws/any.rs");
    for (name, list) in [("WindowLaw", "forward_window_law!"), ("RateLaw", "forward_rate_law!")] {
        let declared = methods(&after(law, &format!("pub trait {name}: "), "\n}\n"));
        let macro_rules = format!("macro_rules! {} {{", list.trim_end_matches('!'));
        let forwarded = methods(&after(law, &macro_rules, "\n}\n"));
        assert!(declared.len() > 8, "{declared:?}");
        for method in &declared {
            assert!(forwarded.contains(method), "{name}::{method}");
        }
        let boxed = after(law, &format!("impl {name} for Box<dyn {name}>"), "}\n");
        assert!(boxed.contains(list), "{name} of a box");
        let of_any = after(any, &format!("impl {name} for $any"), "}\n");
        assert!(of_any.contains(list), "{name} of any law");
    }
}
