//! Specs: what is read, how it is written, and what is refused.

use crate::common;
use cwnd::registry::{Domain, Kind, algorithms, find};
use cwnd::{Acked, Dur, Event, Time};
use cwnd::{AnyController, Controller, MakeController, Rate, Settings, SlowStart, Spec};
use proptest::prelude::*;

proptest! {
    #![proptest_config(common::config(1024))]

    #[test]
    fn specs_round_trip(spec in common::spec()) {
        let text = spec.to_string();
        let read = Spec::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        prop_assert_eq!(&read, &spec);
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text: String) {
        if let Err(error) = Spec::parse(&text) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn no_near_miss_makes_the_parser_panic(text in "[a-z]{0,5}[ (]{0,3}([a-z]{0,6}=?[-+0-9./e]{0,6}[a-zµ]{0,4}[,()]{0,2}){0,4}") {
        for name in ["", "simd", "aimd(", "daimd( syn = ", "aira(mail="] {
            if let Err(error) = Spec::parse(&format!("{name}{text}")) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}

fn canonical(text: &str) -> String {
    Spec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
}

fn refused(text: &str) -> String {
    let error = Spec::parse(text).expect_err(text);
    assert_eq!(format!("{error:?}"), error.to_string());
    error.to_string()
}

#[test]
fn equal_controllers_have_one_name() {
    for (text, expected) in [
        ("CUBIC", "cubic"),
        ("AIMD(0.31, Beta=1/8)", "aimd(alpha=0.31, beta=1/8)"),
        ("aira(Timeout=Ends)", "aira(timeout=ends)"),
        ("reno", "reno"),
        (" reno ( ) ", "reno"),
        ("simd(beta=1/16)", "simd"),
        ("simd(1/8)", "simd(beta=1/8)"),
        ("aimd(alpha=0.31, beta=1/8)", "aimd(alpha=0.31, beta=1/8)"),
        ("aimd( 0.31 ,1/8)", "aimd(alpha=0.31, beta=1/8)"),
        ("aimd(beta = 1.25e-1)", "aimd(beta=1/8)"),
        ("aimd(beta = 1/10)", "aimd(beta=0.1)"),
        ("aira(mail=0, reset=false, increase=on)", "aira(mail=off, reset=off)"),
        ("aiad(receiver, 250ms)", "aiad(rate=receiver, tau=0.25s)"),
        ("daimd(syn=10ms, capacity=1gbit)", "daimd(capacity=1gbit)"),
        ("daimd(feedback=event)", "daimd"),
        ("daimd(feedback=syn)", "daimd(feedback=syn)"),
        ("aira(timeout=continues)", "aira"),
        ("aira(timeout=ends)", "aira(timeout=ends)"),
        ("daimd(capacity=1544000bit)", "daimd(capacity=1544kbit)"),
        ("daimd(capacity=0)", "daimd"),
        ("ledbat(target=25ms)", "ledbat(target=0.025s)"),
        ("prague(rtt_virt=0)", "prague(rtt_virt=0s)"),
        ("cubic(start=hystart)", "cubic(start=hystart)"),
        ("reno(hystart-train)", "reno(start=hystart-train)"),
        ("friendly(1/16, on)", "friendly(beta=1/16, timeouts=on)"),
    ] {
        assert_eq!(canonical(text), expected);
    }
}

#[test]
fn mistakes_are_refused_in_one_line_that_says_what_is_allowed() {
    let long = "x".repeat(10_000);
    for (text, expected) in [
        ("", "no controller given: write a name such as reno or simd(beta=1/16)"),
        ("simd(gamma=1)", "simd has no parameter \"gamma\" (it takes: beta, reset, start, pacing)"),
        (
            "simd(bta=1)",
            "simd has no parameter \"bta\", did you mean beta? (it takes: beta, reset, start, pacing)",
        ),
        ("simd(beta=1)", "simd: beta cannot be \"1\": it is a number with 0 < beta < 1"),
        ("simd(beta=1/0)", "simd: beta cannot be \"1/0\": it is a number with 0 < beta < 1"),
        ("simd(beta=nan)", "simd: beta cannot be \"nan\": it is a number with 0 < beta < 1"),
        ("simd(beta=)", "simd: beta cannot be \"\": it is a number with 0 < beta < 1"),
        ("simd(1/8, beta=1/4)", "simd: beta is given twice"),
        ("simd(beta=1/8", "expected a closing parenthesis at the end of the spec"),
        ("simd(1/8) x", "expected nothing after the closing parenthesis, found \"x\""),
        ("simd(1/8))", "expected nothing after the closing parenthesis, found \")\""),
        ("aimd(alpha=1, 1/2)", "aimd: \"1/2\" needs its parameter's name after a named value"),
        ("reno(standard, 1, 2)", "reno takes at most 2 values: start, pacing"),
        ("tfrc(1)", "tfrc takes no values"),
        ("tfrc(n=8)", "tfrc has no parameter \"n\" (it takes none)"),
        ("aira(mail=maybe)", "aira: mail cannot be \"maybe\": it is on or off"),
        (
            "reno(start=fast)",
            "reno: start cannot be \"fast\": it is one of standard, hystart, hystart-train, hystart-linux",
        ),
        (
            "daimd(feedback=nak)",
            "daimd: feedback cannot be \"nak\": it is one of event, packet, syn, report",
        ),
        ("aira(timeout=on)", "aira: timeout cannot be \"on\": it is one of continues, ends"),
        ("udt(syn=1h)", "udt: syn cannot be \"1h\": it is a number with 0.0001s <= syn <= 10s"),
        ("ledbat(target=0.1)", "ledbat: target cannot be \"0.1\": it needs a unit: s, ms, us, ns"),
        ("daimd(syn=1/100)", "daimd: syn cannot be \"1/100\": it needs a unit: s, ms, us, ns"),
        (
            "daimd(capacity=1544000)",
            "daimd: capacity cannot be \"1544000\": it needs a unit: bit, kbit, mbit, gbit",
        ),
        (&long, "a controller's spec has at most 256 bytes, this one 10000"),
    ] {
        assert_eq!(refused(text), expected);
    }
    let unknown = refused("smid(beta=1/8)");
    assert!(
        unknown.starts_with("unknown controller \"smid\", did you mean simd? (known: aimd, reno, ")
    );
    assert!(refused("BBRv3").starts_with("unknown controller \"BBRv3\", did you mean bbr3? "));
    assert_eq!(
        refused("folder/simd.law(beta=1/4)"),
        "the law \"folder/simd.law\" is not declared: a program declares the text first (registry::declare)"
    );
    assert!(refused("quantum").starts_with("unknown controller \"quantum\" (known: "));
}

/// One rule for all: a bare number is no time and no rate, and 0 needs no unit.
#[test]
fn times_and_rates_need_a_unit() {
    for algorithm in algorithms() {
        for parameter in algorithm.parameters {
            let Domain::Number { range, .. } = parameter.domain else { continue };
            let most = format!("{}({}={:?})", algorithm.name, parameter.name, range.max.min(1e3));
            let is_time_or_rate = parameter.unit == "s" || parameter.unit.contains("bit");
            let message =
                Spec::parse(&most).map_or_else(|error| error.to_string(), |_| String::new());
            assert_eq!(message.contains("it needs a unit: "), is_time_or_rate, "{most}: {message}");
            assert!(!["ms", "us", "ns"].contains(&parameter.unit), "{most}");
        }
    }
}

#[test]
fn every_window_law_takes_the_machines_start() {
    for algorithm in algorithms() {
        assert_eq!(find(algorithm.name).map(|found| found.name), Some(algorithm.name));
        let spec = Spec::parse(&format!("{}(start=hystart)", algorithm.name));
        assert_eq!(spec.is_ok(), algorithm.kind() == Kind::Window, "{}", algorithm.name);
    }
    for (text, by_driver, expected) in [
        ("reno", SlowStart::Standard, 1.0),
        ("reno", SlowStart::HyStart, 0.25),
        ("reno(start=standard)", SlowStart::HyStart, 1.0),
        ("reno(start=hystart)", SlowStart::Standard, 0.25),
        ("reno(start=hystart-train)", SlowStart::Standard, 0.25),
    ] {
        let mut settings = Settings::default();
        settings.slow_start = by_driver;
        let mut controller = Spec::parse(text).unwrap().controller(&settings);
        assert_eq!(growth_after_delay(&mut controller), expected, "{text} {by_driver:?}");
    }
}

/// The growth at the last acknowledgement of a round whose round-trip times are twice those of the
/// round before.
fn growth_after_delay(controller: &mut AnyController) -> f64 {
    let (mut sent_at, mut growth) = (Time::ZERO, 0.0);
    for rtt in [50, 50, 100].map(Dur::from_millis) {
        let now = sent_at + rtt;
        for n in 0..10 {
            let before = controller.output().window.get();
            // The first packet ends the round before.
            let mut acked = Acked::new(1, if n == 0 { sent_at } else { Time::ZERO });
            acked.rtt = Some(rtt);
            controller.on(now, &Event::Acked(acked));
            growth = controller.output().window.get() - before;
        }
        sent_at = now;
    }
    growth
}

#[test]
fn every_window_law_can_be_paced() {
    for algorithm in algorithms() {
        let spec = Spec::parse(&format!("{}(pacing=5/4)", algorithm.name));
        assert_eq!(spec.is_ok(), algorithm.kind() == Kind::Window, "{}", algorithm.name);
        let Ok(spec) = spec else { continue };
        let mut controller = spec.controller(&Settings::default());
        assert_eq!(controller.output().pace, None, "before the first round-trip time");
        let mut acked = Acked::new(0, Time::ZERO);
        acked.rtt = Some(Dur::from_millis(100));
        controller.on(Time::ZERO + Dur::from_millis(100), &Event::Acked(acked));
        assert_eq!(controller.output().pace, Some(Rate::per_sec(125.0)), "{}", algorithm.name);
    }
}

#[test]
fn every_entry_is_complete() {
    for algorithm in algorithms() {
        let name = algorithm.name;
        assert_eq!(algorithms().iter().filter(|other| other.name == name).count(), 1, "{name}");
        assert!(!algorithm.title.is_empty() && algorithm.summary.ends_with('.'), "{name}");
        assert!(!algorithm.source.is_empty() && !algorithm.equations.is_empty(), "{name}");
        for parameter in algorithm.parameters {
            let allowed = parameter.default().is_none_or(|default| parameter.allows(default));
            assert!(allowed, "{name}: {}", parameter.name);
            assert!(!parameter.meaning.is_empty() && !parameter.symbol.is_empty(), "{name}");
            if let Domain::Number { range, .. } = parameter.domain {
                assert!(range.min.is_finite() && range.max.is_finite() && range.min < range.max);
            }
        }
    }
}
