//! Laws of files, beside the same laws of the registry: the interpreter, beside Rust that was made
//! from the same text or written by hand.

use crate::common::{conventions, events};
use cwnd::registry::{Kind, declare};
use cwnd::{AnyController, Controller, MakeController, Output, Settings, Spec};
use cwnd_law::{Law, equations, format};
use proptest::prelude::*;
use std::sync::Once;

/// The text of a law, and the name under which it is declared.
macro_rules! laws {
    ($($folder:literal: $($name:literal),+;)+) => {
        &[$($((concat!($name, ".law"), include_str!(concat!($folder, $name, ".law"))),)+)+]
    };
}

const LAWS: &[(&str, &str)] = laws![
    "../src/laws/": "aiad", "aimd", "aira", "bic", "binomial", "daimd", "dctcp", "friendly", "gaimd", "highspeed", "iiad",
        "prague", "reno", "scalable", "simd", "sqrt", "udt", "vegas", "westwood";
];

fn declare_all() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (name, text) in LAWS {
            let algorithm = declare(name, text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(algorithm.name, *name);
        }
    });
}

/// Specs of the registry; the same with `.law` after the name is that of the file.
const SPECS: &[&str] = &[
    "aimd(2, 1/4)",
    "reno",
    "gaimd(0.5, 1/3, kept)",
    "friendly",
    "friendly(1/3, on)",
    "highspeed",
    "highspeed(20, 2000, 0.01, 1e-6, 0.2)",
    "simd",
    "simd(beta=3/8, reset=avoidance, start=hystart)",
    "aira",
    "aira(beta=1/4, bound=0, mail=off, timeout=ends, ratio=2)",
    "aira(reset=off, increase=off, rounds=10)",
    "aira(peak=mean, ratio=1.25)",
    "aira(peak=largest, decrease=off)",
    "scalable",
    "scalable(a=0.02, b=1/4, low=20, pacing=1.2)",
    "binomial",
    "binomial(k=1/2, l=1/2)",
    "binomial(k=2.3, l=0.4)",
    "bic",
    "bic(smax=16, beta=1/4)",
    "vegas",
    "vegas(alpha=1, beta=3)",
    "dctcp",
    "dctcp(g=1/8)",
    "prague",
    "prague(1/3, 60ms, 3)",
    "prague(pacing=0, transition=0)",
    "aiad",
    "aiad(rate=receiver, tau=20ms)",
    "aiad(tau=5ms)",
    "aiad(filter=fixed)",
    "westwood(tau=50ms)",
    "daimd",
    "daimd(capacity=20mbit, feedback=packet)",
    "daimd(lambda=1/2, feedback=syn, delay=off)",
    "daimd(3, 1/4, 20ms, feedback=report)",
    "udt",
    "udt(20ms, 3)",
];

fn of_file(spec: &str) -> String {
    match spec.split_once('(') {
        Some((name, rest)) => format!("{name}.law({rest}"),
        None => format!("{spec}.law"),
    }
}

fn controller(spec: &str, settings: &Settings) -> AnyController {
    Spec::parse(spec).unwrap().controller(settings)
}

fn bits(output: &Output) -> (u64, Option<u64>) {
    (output.window.get().to_bits(), output.pace.map(|pace| pace.as_per_sec().to_bits()))
}

proptest! {
    #![proptest_config(crate::common::config(300))]

    /// The same numbers, bit for bit, whatever happens.
    #[test]
    fn a_law_of_a_file_is_the_law(
        spec in proptest::sample::select(SPECS),
        conventions in conventions(),
        events in events(150),
    ) {
        declare_all();
        let mut settings = Settings::default();
        settings.conventions = conventions;
        let (mut own, mut file) = (controller(spec, &settings), controller(&of_file(spec), &settings));
        for (now, event) in events {
            own.on(now, &event);
            file.on(now, &event);
            prop_assert_eq!(bits(&own.output()), bits(&file.output()), "{} after {:?}", spec, event);
            prop_assert_eq!(own.take_cut(), file.take_cut());
        }
        let needs = (own.needs(), file.needs());
        prop_assert_eq!(needs.0.ecn, needs.1.ecn);
    }
}

#[test]
fn texts_of_the_registry_are_canonical_and_their_laws_are_known() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/laws");
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let listed = LAWS.iter().any(|(known, _)| *known == name);
        assert!(listed || !name.ends_with(".law"), "{name} is not in LAWS");
    }
    for (name, text) in LAWS {
        assert_eq!(cwnd_law::format(text).unwrap(), *text, "{name}");
        let algorithm = cwnd::registry::find(name.trim_end_matches(".law")).unwrap();
        let law = cwnd_law::Law::parse(text).unwrap();
        assert_eq!(law.warnings(), [], "{name}");
        assert_eq!(algorithm.law().map(cwnd_law::Law::hash), Some(law.hash()), "{name}");
    }
}

#[test]
fn a_declared_law_has_its_parameters_and_those_of_the_machine() {
    declare_all();
    let spec = Spec::parse("simd.law(beta=1/4, reset=avoidance)").unwrap();
    assert_eq!(spec.to_string(), "simd.law(beta=0.25, reset=avoidance)");
    assert_eq!(spec.algorithm().kind(), Kind::Window);
    let names: Vec<_> =
        spec.algorithm().parameters.iter().map(|parameter| parameter.name).collect();
    assert_eq!(names, ["beta", "reset", "start", "pacing"]);
    let error = Spec::parse("simd.law(beta=2)").unwrap_err().to_string();
    assert_eq!(error, "simd.law: beta cannot be \"2\": it is a number with 0 < beta < 1");
    let rate = Spec::parse("daimd.law(syn=20ms)").unwrap();
    assert_eq!((rate.algorithm().kind(), rate.get("syn")), (Kind::Rate, Some(0.02)));
    assert!(rate.algorithm().equations[0].starts_with("let nanos ="));
}

#[test]
fn a_rate_has_its_unit() {
    let text = include_str!("../../../python/cwnd/_controllers/new_controller/rate.law");
    declare("paced.law", &text.replace("$name", "paced")).unwrap();
    for (given, value, shown) in [
        ("10/s", 10.0, "paced.law(gain=10/s)"),
        ("10 /s", 10.0, "paced.law(gain=10/s)"),
        ("1/3/s", 1.0 / 3.0, "paced.law(gain=1/3/s)"),
        ("2e-1/s", 0.2, "paced.law(gain=0.2/s)"),
        ("1/s", 1.0, "paced.law"),
    ] {
        let spec = Spec::parse(&format!("paced.law(gain={given})")).unwrap();
        assert_eq!((spec.get("gain"), spec.to_string().as_str()), (Some(value), shown));
        assert_eq!(Spec::parse(shown).unwrap(), spec);
    }
    for (given, message) in [
        ("10", "it needs a unit: /s"),
        ("10s", "it is a number with 0/s < gain <= 1000/s"),
        ("10/ms", "it is a number with 0/s < gain <= 1000/s"),
        ("0", "it is a number with 0/s < gain <= 1000/s"),
        ("/s", "it is a number with 0/s < gain <= 1000/s"),
    ] {
        let error = Spec::parse(&format!("paced.law(gain={given})")).unwrap_err().to_string();
        assert_eq!(error, format!("paced.law: gain cannot be \"{given}\": {message}"));
    }
}

/// Another text of the same name is another law; specs that were read keep theirs.
#[test]
fn a_declaration_replaces_the_one_before() {
    let law = |kept: &str| {
        format!("law own \"own\"\non grow:\n    return w + acked\non cut:\n    return {kept} * w\n")
    };
    declare("own.law", &law("0.5")).unwrap();
    let before = Spec::parse("own.law").unwrap();
    assert!(std::ptr::eq(declare("own.law", &law("0.5")).unwrap(), before.algorithm()));
    declare("own.law", &law("0.25")).unwrap();
    let after = Spec::parse("own.law").unwrap();
    assert!(!std::ptr::eq(after.algorithm(), before.algorithm()));
    assert!(before.algorithm().equations.iter().any(|line| line.contains("0.5")));
    assert!(declare("own.law", "law own").is_err());
    assert!(std::ptr::eq(Spec::parse("own.law").unwrap().algorithm(), after.algorithm()));
}

/// An answer that is no number, negative, infinite or less than the least window.
#[test]
fn the_machine_bounds_what_a_law_answers() {
    use cwnd::{Acked, Dur, Event, Lost, Time};
    for answer in ["0 / 0", "-5", "1 / 0", "0", "0.001"] {
        let text = format!(
            "law bad \"bad\"\non grow:\n return w * 0 + {answer}\non cut:\n return w * 0 + {answer}\n"
        );
        declare("bad.law", &text).unwrap();
        let mut controller = controller("bad.law", &Settings::default());
        for n in 1..200_u64 {
            let now = Time::ZERO + Dur::from_millis(10 * n);
            let mut acked = Acked::new(2, now - Dur::from_millis(5));
            acked.rtt = Some(Dur::from_millis(5));
            controller.on(now, &Event::Acked(acked));
            if n % 20 == 0 {
                controller.on(now, &Event::Lost(Lost::new(1, now, 3 * n)));
                controller.on(now, &Event::Recovered);
            }
            let window = controller.output().window.get();
            assert!(window.is_finite() && window >= 1.0, "{answer}: {window}");
        }
    }
}

/// The machine bounds an answer of `cut` that is not finite as one of 0.
#[test]
fn a_cut_that_is_not_finite_is_one_to_the_least_window() {
    use cwnd::{Acked, Dur, Event, Lost, Time};
    let cut_to = |answer: &str| {
        let text = format!(
            "law bad \"bad\"\non grow:\n return w + acked / w\non cut:\n return {answer}\n"
        );
        declare("endless.law", &text).unwrap();
        let mut controller = controller("endless.law", &Settings::default());
        let mut acked = Acked::new(2, Time::ZERO);
        acked.rtt = Some(Dur::from_millis(10));
        controller.on(Time::ZERO + Dur::from_millis(10), &Event::Acked(acked));
        let lost = Lost::new(1, Time::ZERO, 9);
        controller.on(Time::ZERO + Dur::from_millis(20), &Event::Lost(lost));
        controller.output().window.get()
    };
    // The least threshold of RFC 5681 equation 4.
    assert_eq!(cut_to("0"), 2.0);
    for answer in ["w * 0 / 0", "w / 0", "-w / 0"] {
        assert_eq!(cut_to(answer), 2.0, "{answer}");
    }
}

/// A window at the bound of 2^32 - 1 packets, from infinite and doubling laws.
#[test]
fn the_model_bounds_what_a_law_answers() {
    use cwnd::model::{Alone, Path, Pattern, Plane, converge, forgets, sawtooth};
    use cwnd::{Dur, Law, Rate};
    let path = Path { rtt: Dur::from_millis(100), capacity: Rate::per_sec(1000.0), packet: 1500 };
    let law = |text: &str| -> Law {
        declare("model.law", text).unwrap();
        Spec::parse("model.law").unwrap().law(&Settings::default()).unwrap()
    };
    for (grow, cut) in [("1 / 0", "1 / 0"), ("1e300 * w * w", "1e300"), ("2 * w", "w / 2")] {
        let grows = format!("on grow:\n return {grow}\n");
        let bad = law(&format!("law model \"bad\"\n{grows}on cut:\n return {cut}\n"));
        let mut flow = Alone::new(bad.clone(), 40.0, path);
        for _ in 0..2 {
            flow.round(Pattern::Each);
            assert_eq!(flow.window(), f64::from(u32::MAX), "{grow}");
        }
        forgets(&bad, path);
        sawtooth(bad.clone(), 40.0, path, 1000);
        let plane = Plane::new([(bad.clone(), 10.0), (bad, 30.0)], 100.0, path, Pattern::Each);
        assert_eq!(converge(plane, 1.0, 1_000_000).to_efficiency, 1.0);
    }
    let clock = "on clock:\n return timer\non interval:\n return 50 ms\n";
    let others = "on start:\n return 100 /s\non cut:\n return rate / 2\n";
    for (tick, window) in [("rate / 0", 40.0), ("-rate", 1.0), ("1e300 /s", f64::from(u32::MAX))] {
        let tick = format!("on tick:\n return {tick}\n");
        let bad = law(&format!("rate law model \"bad\"\n{clock}{others}{tick}"));
        let mut flow = Alone::new(bad, 40.0, path);
        for _ in 0..3 {
            flow.round(Pattern::Each);
        }
        assert_eq!(flow.window(), window, "{tick}");
    }
}

/// Texts as long as the limit, each of one construct: the work for them is bounded, and the stack.
/// The bounds are those of optimised code, and the unit tests of cwnd-law are not optimised.
#[test]
fn no_text_takes_much_time_or_stack() {
    let law = |declarations: &str, body: &str| {
        format!("law a \"\"\n{declarations}on cut:\n return w\non grow:\n{body} return w\n")
    };
    let many = |piece: &dyn Fn(usize) -> String| {
        (0..60_000 / piece(9999).len()).map(piece).collect::<String>()
    };
    let states: String = (0..60).map(|n| format!("state s{n} = 0 \"\"\n")).collect();
    let chain: String = (0..59).map(|n| format!(" s{n} = s{}\n", n + 1)).collect();
    let same = many(&|_| " s1 = s1\n".to_string());
    let nested: String = (1..8).map(|n| format!("{0}if w > 1:\n", " ".repeat(n))).collect();
    let lets = |open: &str, close: &str| -> String {
        let part = |n| format!("let x{n} = {}x{}{}\n", open.repeat(20), n - 1, close.repeat(20));
        (1..40).map(part).collect()
    };
    let texts = [
        law("", &format!(" let m = max(w{})\n", many(&|n| format!(", {n}")))),
        law("state a = 0 \"\"\n", &many(&|n| format!(" a = {n}\n"))),
        law(&states, &format!("{chain} s59 = now\n{}", &same[..50_000 / 9 * 9])),
        law(&many(&|n| format!("let x{n} = 1\n")), ""),
        law("", &many(&|n| format!(" let x{n} = w\n"))),
        law(&many(&|n| format!("state x{n} = 1 \"\"\n")), ""),
        law(&format!("parameter p = x in {{x{}}} \"\"\n", many(&|n| format!(", x{n}"))), ""),
        law(&format!("state a{} = 0 \"\"\n", "b".repeat(30_000)), &" let x = ab\n".repeat(2)),
        law(&many(&|_| "#\n".to_string()), ""),
        law("", &many(&|_| "       #\n".to_string())),
        law(
            "",
            &format!("{nested}{}return {}w{}\n", " ".repeat(8), "(".repeat(63), ")".repeat(63)),
        ),
        law("", &format!(" let m = {}w{}\n", "max(w, ".repeat(63), ")".repeat(63))),
        law("state f = false \"\"\n", &format!(" f = {}f\n", "not ".repeat(63))),
        law(&format!("state w0 = 0 \"\"\nlet x0 = w0\n{}", lets("abs(", ")")), " let y = x39\n"),
        law(&format!("state f = 0 \"\"\nlet x0 = f\n{}", lets("f and (", ")")), " f = x39\n"),
    ];
    let reader = std::thread::Builder::new().stack_size(512 << 10).spawn(move || {
        for text in &texts {
            let began = std::time::Instant::now();
            let read = Law::parse(text);
            let canonical = format(text);
            assert_eq!(equations(text).is_ok(), read.is_ok());
            // Several times as long as an optimised build needs.
            assert!(began.elapsed().as_millis() < 2000, "{}", &text[..200]);
            if let (Ok(law), Ok(canonical)) = (read, canonical) {
                assert_eq!(Law::parse(&canonical).unwrap().hash(), law.hash());
            }
        }
    });
    reader.unwrap().join().unwrap();
}
