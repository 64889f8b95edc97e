//! Random laws against the slow evaluator, and texts that are no laws.

use crate::evaluator::{Evaluator, Value};
use crate::hook::Type;
use crate::syntax;
use crate::token;
use crate::writer::Writer;
use crate::{Hook, Input, Law, format};
use proptest::prelude::*;
use std::collections::HashMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

const SIMD: &str = include_str!("../tests/simd.law");

pub(crate) fn words(text: &str) -> Vec<token::Token<'_>> {
    let mut tokens = token::tokens(text).unwrap();
    token::remove_comments(&mut tokens);
    tokens
}

/// Runs a law by its code and by its syntax; false if it exceeds a limit.
fn both(text: &str, seed: u64) -> bool {
    let law = match Law::parse(text) {
        Ok(law) => law,
        Err(error) if error.message.contains("allowed") => return false,
        Err(error) => panic!("{error}\n{text}"),
    };
    let tokens = words(text);
    let file = syntax::file(&tokens).unwrap();
    let mut slow = Evaluator::new(&file);
    let mut fast = law.instance(&[]);
    let mut random = Writer::new(seed);
    // The slow evaluator does not know the choices of an answer.
    let hooks = Hook::ALL.iter().copied().filter(|hook| law.has(*hook) && *hook != Hook::Clock);
    let hooks: Vec<Hook> = hooks.collect();
    for _ in 0..60 {
        let hook = random.of(&hooks);
        let mut given: HashMap<Input, Option<f64>> = HashMap::new();
        let mut names = HashMap::new();
        for input in hook.inputs() {
            let none = input.may_be_none() && random.below(3) == 0;
            let number = random.of(&[0.0, 1.0, 2.0, 3.5, 64.0, 1e9, 1e-9, f64::INFINITY, f64::NAN]);
            let (value, named) = match input.kind() {
                _ if none => (None, Value::None),
                Type::Choice(choices) => {
                    let place = random.below(choices.len() as u64) as usize;
                    (Some(place as f64), Value::Choice(choices[place].into()))
                }
                Type::Truth => {
                    let truth = random.below(2);
                    (Some(truth as f64), Value::Truth(truth == 1))
                }
                Type::Instant => (Some(number), Value::Instant(number)),
                _ => (Some(number), Value::Number(number)),
            };
            given.insert(input, value);
            names.insert(input.name().to_string(), named);
        }
        let answer = fast.call(hook, |input| given[&input]);
        let expected = slow.call(hook, &names);
        match (answer, &expected) {
            (None, Value::None) => {}
            (Some(answer), Value::Number(number)) => {
                assert!(same(answer, *number), "{answer} {number}\n{text}")
            }
            (Some(answer), Value::Truth(truth)) => {
                assert_eq!(answer, f64::from(u8::from(*truth)), "{text}")
            }
            _ => panic!("{answer:?} {expected:?}\n{text}"),
        }
        for (name, value) in fast.states() {
            let expected = match &slow.states[name] {
                Value::Number(number) => *number,
                Value::Instant(number) => number / crate::arithmetic::NANOS,
                Value::Choice(choice) => {
                    crate::SIGNALS.iter().position(|signal| signal == choice).unwrap() as f64
                }
                Value::Truth(truth) => f64::from(u8::from(*truth)),
                Value::None => f64::NAN,
            };
            assert!(same(value, expected), "{name}: {value} {expected}\n{text}");
        }
    }
    true
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

proptest! {
    #[test]
    fn code_equals_the_slow_evaluator(seed: u64) {
        prop_assume!(both(&Writer::law(seed), seed ^ 0x9e37_79b9));
    }

    /// The canonical form is that of itself, and of the same law.
    #[test]
    fn the_canonical_form_is_the_same_law(seed: u64) {
        let comment = |line: usize| match seed >> (line % 64) & 1 {
            0 => String::new(),
            _ => format!("{}# {line}\n", " ".repeat(line % 7)),
        };
        let text = Writer::law(seed);
        let bare = Law::parse(&text);
        let lines = text.lines().enumerate();
        let text: String = lines.map(|(n, line)| format!("{}{line}\n", comment(n))).collect();
        let (Ok(bare), Ok(law)) = (bare, Law::parse(&text)) else { return Ok(()) };
        prop_assert_eq!(law.hash(), bare.hash());
        let canonical = format(&text).unwrap();
        prop_assert_eq!(&format(&canonical).unwrap(), &canonical);
        let again = Law::parse(&canonical).unwrap();
        prop_assert_eq!((law.hash(), &law.code, law.equations()), (again.hash(), &again.code, again.equations()));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*") {
        let _ = Law::parse(&text);
    }

    /// A law from which a part is removed, or into which another is put.
    #[test]
    fn no_change_makes_the_reader_panic(from in 0..SIMD.len(), length in 0_usize..40, to in 0..SIMD.len()) {
        let char_at = |mut at: usize| { while !SIMD.is_char_boundary(at) { at -= 1; } at };
        let (from, end, to) = (char_at(from), char_at((from + length).min(SIMD.len())), char_at(to));
        let part = &SIMD[from.min(end)..end];
        for text in [
            format!("{}{}", &SIMD[..from], &SIMD[end.max(from)..]),
            format!("{}{part}{}", &SIMD[..to], &SIMD[to..]),
        ] {
            if let Ok(law) = Law::parse(&text) {
                let canonical = format(&text).unwrap();
                let again = Law::parse(&canonical).unwrap();
                prop_assert_eq!(again.hash(), law.hash());
            }
        }
    }
}

/// "or" joins conditions: it does not replace a truth that is none.
#[test]
fn a_truth_that_may_be_none_is_tested_before() {
    let limited = "acked.delivery.application_limited";
    let law = |condition: String| {
        let observe = format!("on observe:\n if {condition}:\n  seen = 1\n");
        Law::parse(&format!(
            "law t \"t\"\nstate seen = 0 \"s\"\n{observe}on grow:\n return w\non cut:\n return w\n"
        ))
    };
    let error = law(format!("not {limited}")).unwrap_err().to_string();
    let help = format!("test it before by \"{limited} is not none and\"");
    assert_eq!(error, format!("{limited} may be none here: {help}"));
    assert_eq!(law(format!("{limited} is not none and not {limited}")).err(), None);
}

/// Each change of SIMD's text, and the fault that it is: the message, its line and column, and the
/// help.
#[test]
fn faults_are_named_where_they_are() {
    for (from, to, position, message) in [
        (
            "w + each",
            "w + rtt",
            (14, 16),
            "rtt may be none here: write \"or\" and another value, or test it by \"is none\"",
        ),
        (
            "w + each",
            "w + (rtt or 1 s)",
            (14, 12),
            "one value is a plain number, the other in seconds",
        ),
        (
            "return w + each",
            "return now + each",
            (14, 12),
            "\"on grow\" returns a value that is a plain number, this is a time of the clock",
        ),
        ("w + each", "w each", (14, 14), "expected the end of the line, found each"),
        (
            "w + each",
            "acked.packets + each",
            (14, 12),
            "acked.packets is given to \"on observe\", not to \"on grow\"",
        ),
        (
            "= alpha * sqrt",
            "= alhpa * sqrt",
            (13, 16),
            "alhpa is not known here: did you mean alpha?",
        ),
        (
            "= alpha * sqrt",
            "= ALPHA * sqrt",
            (13, 16),
            "ALPHA is not known here: did you mean alpha?",
        ),
        (
            "sqrt(w - w0)",
            "sqrtt(w - w0)",
            (13, 24),
            "no function is called sqrtt: did you mean sqrt?",
        ),
        ("sqrt(w - w0)", "max(w)", (13, 24), "max is of at least two values"),
        (
            "sqrt(w - w0)",
            "exp(now - last_cut)",
            (13, 28),
            "exp is of a plain number, this is in seconds",
        ),
        (
            "if w > w0",
            "if w > 1 > w0",
            (13, 46),
            "expected \"else\", found >: comparisons are joined by \"and\" and \"or\"",
        ),
        ("if w > w0", "if w", (13, 40), "this must be true or false, it is a plain number"),
        ("on cut:", "on cutt:", (16, 4), "no hook is called cutt: did you mean cut?"),
        ("on cut:", "on cut", (16, 7), "expected \":\", found the end of the line"),
        ("on rescale:", "on enter:", (30, 4), "\"on enter\" is there twice"),
        (
            "on rescale:",
            "on grows_after_mark:",
            (31, 5),
            "\"on grows_after_mark\" may not change the state",
        ),
        (
            "w_max = none\n",
            "w_max = 1 s\n",
            (28, 13),
            "w_max is a plain number, this is in seconds",
        ),
        (
            "w0 = w\n",
            "w = w0\n",
            (25, 9),
            "w is a value that the hook is given, which does not change",
        ),
        ("w0 = w\n", "w1 = w\n", (25, 9), "no state is called w1: did you mean w0?"),
        (
            "w0 = w\n",
            "w0 = w_max\n",
            (25, 14),
            "w0 is never none, this value may be: write \"or\" and another value, or begin the state with none",
        ),
        ("w0 = w\n", "let beta = w\n", (25, 13), "beta is the name of a parameter"),
        (
            "why is timeout or",
            "why is timeot or",
            (18, 25),
            "timeot is no choice: choices are loss, mark, timeout, persistent_congestion, delay",
        ),
        (
            "- beta * w\n",
            "- beta ** w\n",
            (21, 21),
            "expected the end of the line, found **: a power is written ^",
        ),
        ("1/16 in (0, 1)", "1 in (0, 1)", (4, 18), "the default is outside of the range"),
        ("1/16 in (0, 1)", "1/16 in [1, 0]", (4, 27), "the range from 1 to 0 is empty"),
        ("1/16 in (0, 1)", "1/2 in (0.5, 1/2]", (4, 26), "the range from 0.5 to 0.5 is empty"),
        (
            "1/16 in (0, 1)",
            "1/16",
            (4, 11),
            "a number needs its range: write \"in\" and an interval such as (0, 1]",
        ),
        (
            "1/16 in (0, 1)",
            "1 ms in (0, 1)",
            (4, 30),
            "the default is in seconds, this end of the range a plain number",
        ),
        (
            "parameter beta",
            "parameter start",
            (4, 11),
            "start is the name of a parameter that every window law has",
        ),
        (
            "state w0 = 0",
            "state w0 = 5kb",
            (8, 12),
            "a number ends before a letter, or has a unit: units are ns, us, ms, s and /s",
        ),
        (
            "w + each",
            "w + 2 mbit/s",
            (14, 18),
            "expected the end of the line, found mbit: rates are in packets per second: write 2e6 /s / (8 * packet)",
        ),
        ("state w0", "state ms", (8, 7), "ms is the name of a unit"),
        ("w0 = w\n", "w0 += 1\n", (25, 12), "expected \"=\", found +: write w0 = w0 + 1"),
        ("w0 = w\n", "w0 *= w + 1\n", (25, 12), "expected \"=\", found *: write w0 = w0 * (w + 1)"),
        ("w0 = w\n", "w0 - 1\n", (25, 12), "expected \"=\", found -"),
        (
            "    w_max = none\n",
            "    while w > 1:\n",
            (28, 5),
            "a law has no such loop: write repeat n at most 30, or sum(x for x in history)",
        ),
        (
            "    w_max = none\n",
            "    for i in w:\n",
            (28, 5),
            "a law has no such loop: write repeat n at most 30, or sum(x for x in history)",
        ),
        (
            "if why is timeout",
            "if why == timeout",
            (20, 19),
            "choices are tested by \"is\": write why is timeout",
        ),
        (
            "reset is decrease",
            "reset != avoidance",
            (18, 70),
            "choices are tested by \"is\": write reset is not avoidance",
        ),
        (
            "if why is timeout",
            "if why is timeout or mark",
            (20, 37),
            "mark is no condition: write \"why is timeout or why is mark\"",
        ),
        (
            "if why is timeout",
            "if w > 1 and reset is not decrease and avoidance",
            (20, 55),
            "avoidance is no condition: write \"reset is not decrease and reset is not avoidance\"",
        ),
        (
            "if why is timeout",
            "if why is timeout or slow_strt",
            (20, 37),
            "slow_strt is not known here: did you mean slow_start?",
        ),
        (
            "if why is timeout",
            "if why is lost",
            (20, 26),
            "lost is no choice: choices are loss, mark, timeout, persistent_congestion, delay",
        ),
        ("w + each", "w + .5 * each", (14, 16), "a number begins with a digit: write 0.5"),
        ("w + each", "w + 1e999", (14, 16), "this number is too large"),
        ("w + each", "w + 1e999 ms", (14, 16), "this number is too large"),
        ("window before it", "window\tbefore it", (9, 27), "a text has no control characters"),
        (
            "window before it\"",
            "window\tbefore it",
            (9, 20),
            "a text ends on its line, with a double quote",
        ),
        (
            "if why is timeout",
            "if loss == why",
            (20, 19),
            "loss is not known here: choices are tested by \"is\"",
        ),
        ("law simd", "lawn simd", (1, 1), "expected \"law\" or \"rate law\", found lawn"),
        ("2001\"", "2001", (2, 8), "a text ends on its line, with a double quote"),
        ("(2 * (w_max or", "(2 * ((w_max or", (27, 30), "this bracket is not closed"),
    ] {
        let text = SIMD.replacen(from, to, 1);
        assert_ne!(text, SIMD, "{from}");
        let error = Law::parse(&text).expect_err(to);
        assert_eq!(
            (error.to_string().as_str(), error.position(&text)),
            (message, position),
            "{to}"
        );
    }
}

#[test]
fn what_the_author_did_not_mean_is_a_warning() {
    assert!(Law::parse(SIMD).unwrap().warnings().is_empty());
    for (from, to, position, message) in [
        (
            "return w - beta * w",
            "w0 = w - beta * w",
            (16, 4),
            "\"on cut\" can end without return: the answer then is w",
        ),
        (
            "return w - beta * w",
            "return w - beta * w\n    w0 = w",
            (22, 5),
            "this is never reached",
        ),
        ("    w_max = none\n", "    let q = w\n", (28, 9), "q is never used"),
        (
            "    w0 = w0 * factor\n",
            "    w0 = w0 / alpha\n",
            (31, 15),
            "alpha begins with 0: the first division by it may be by 0",
        ),
        ("    w_max = none\n", "    w0 = w / alpha\n", (0, 0), ""),
        ("    w_max = none\n", "    w0 = w / 0\n", (28, 14), "this is a division by 0"),
        (
            "state alpha",
            "let twice = 2 * beta\nstate alpha",
            (7, 5),
            "the expression twice is never used",
        ),
        (
            "state alpha",
            "state more = 1 \"m\"\nstate alpha",
            (7, 7),
            "the state more is never used",
        ),
        ("(1 - beta)", "(1 - 1/16)", (0, 0), ""),
        ("    w_max = none\n", "    w_max = 1/0\n", (0, 0), ""),
        ("reset is decrease", "true", (5, 11), "the parameter reset is never used"),
        ("    w0 = w0 * factor\n", "", (0, 0), ""),
        ("    alpha = alpha / sqrt(factor)\n", "    w0 = 1\n", (0, 0), ""),
    ] {
        let text = SIMD.replacen(from, to, 1);
        let law = Law::parse(&text).unwrap();
        let first = law.warnings().first();
        let found = first.map_or(("".to_string(), (0, 0)), |warning| {
            (warning.to_string(), warning.position(&text))
        });
        assert_eq!(found, (message.to_string(), position), "{to}");
    }
}

#[cfg(feature = "std")]
#[test]
fn a_fault_is_shown_with_its_line() {
    let error = Law::parse("law tiny \"t\"\non grow:\n    return w + rt\n").unwrap_err();
    let shown = error.render("tiny.law", "law tiny \"t\"\non grow:\n    return w + rt\n");
    let expected = "error: rt is not known here
 --> tiny.law:3:16
  |
3 |     return w + rt
  |                ^^
  |
  = help: did you mean rtt?";
    assert_eq!(shown, expected);
}

/// Comments, texts and blanks do not change the identity of a law; a number does.
#[test]
fn the_hash_is_that_of_the_words() {
    let hash = |text: &str| Law::parse(text).unwrap().hash().to_string();
    let same =
        SIMD.replace("# Eq. 1", "").replace("increase, by Eq. 3", "growth").replace(" * ", "*");
    assert_eq!(hash(&same), hash(SIMD));
    let timed =
        |time: &str| hash(&SIMD.replace("w_max = w ", &format!("w_max = w * {time} / 1 s ")));
    assert_eq!(timed("5ms"), timed("5   ms"));
    assert_ne!(timed("5 ms"), timed("5 us"));
    assert_ne!(hash(&SIMD.replace("1/16", "1/8")), hash(SIMD));
    assert_ne!(hash(&SIMD.replace("/ 4", "/ 5")), hash(SIMD));
}

#[test]
fn states_that_are_times_are_shown_in_seconds() {
    let text = "law l \"l\"\nstate own = 0\nstate t = 0 \"t\"\nstate gap = 0 \"gap\"\nstate u = none \"u\"\n\
                on grow:\n return w\non cut:\n own = own + w\n gap = now - t\n t = now\n u = t if w > 9 else none\n return w\n";
    let law = Law::parse(text).unwrap();
    let mut instance = law.instance(&[]);
    instance.call(Hook::Cut, |input| Some(if input == Input::Now { 2.5e9 } else { 10.0 }));
    let states: Vec<_> = instance.states().collect();
    assert_eq!(states, [("t", 2.5), ("gap", 2.5), ("u", 2.5)]);
}

#[test]
fn a_state_is_shown_by_its_symbol() {
    let parse = |symbol: &str| {
        let hooks = "on grow:\n return w + a\non cut:\n a = 2\n return w\n";
        Law::parse(&format!("law l \"l\"\nstate a \"{symbol}\" = 1 \"a\"\n{hooks}"))
    };
    let law = parse("alpha_1").unwrap();
    assert_eq!(law.instance(&[]).states().collect::<Vec<_>>(), [("alpha_1", 1.0)]);
    for symbol in ["", "a,b", "α"] {
        let error = parse(symbol).unwrap_err();
        assert_eq!(error.message, "a gauge is called by letters, digits and _", "{symbol}");
    }
}

#[test]
fn a_parameter_has_a_symbol_and_a_unit() {
    let parse = |parameter: &str| {
        Law::parse(&format!(
            "law l \"l\"\nparameter p {parameter} \"p\"\non grow:\n return w\non cut:\n return w\n"
        ))
    };
    for (parameter, symbol, unit) in [
        ("= 1/2 in (0, 1)", "p", ""),
        ("\"β\" = 1/2 packets in (0, 1)", "β", "packets"),
        ("\"τ\" = 1 s in [1 ms, 2 s]", "τ", "s"),
        ("= 1 /s in [0, 2 /s]", "p", "/s"),
        ("= 1e6 /s bits in [0, 1e9 /s]", "p", "bit/s"),
    ] {
        let law = parse(parameter).unwrap();
        let [declared] = law.parameters() else { panic!("one parameter") };
        assert_eq!((declared.symbol.as_str(), declared.unit()), (symbol, unit));
    }
    let pacing =
        |item: &str| parse(&format!("= 1 in (0, 2) \"p\"\n{item}\nparameter q = 1 in (0, 2)"));
    assert_eq!(pacing("pacing 5/4").unwrap().pacing(), 1.25);
    assert_eq!(pacing("").unwrap().pacing(), 0.0);
    for item in ["pacing 101", "pacing -1", "pacing 1 s"] {
        assert_eq!(pacing(item).unwrap_err().message, "pacing is a number from 0 to 100");
    }
    for parameter in ["= 1 s packets in [0, 2 s]", "= on packets", "= a packets in {a, b}"] {
        let error = parse(parameter).unwrap_err();
        assert_eq!(error.message, "a number of packets is a plain number", "{parameter}");
    }
    for parameter in ["= 1 bits in [0, 2]", "= 1 s bits in [0, 2 s]", "= on bits"] {
        let error = parse(parameter).unwrap_err();
        assert_eq!(
            error.message, "a number of bits is one in a second: 1e6 /s bits",
            "{parameter}"
        );
    }
}

/// At the start of a connection, where an expression depends on parameters alone.
#[test]
fn expressions_of_parameters_are_computed_once() {
    let law = |of: &str| {
        let text = format!(
            "law l \"l\"\nparameter p = 1 in [0, 9] \"p\"\nparameter c = a in {{a, b}} \"c\"\n\
             state own = 2 * second \"o\"\nlet half = 1/2\n\
             let first = exp({of}) if c is a else half\nlet second = first ^ half\n\
             on grow:\n return w + second\non cut:\n own = w\n return own\n"
        );
        Law::parse(&text).unwrap()
    };
    let once = law("p");
    assert!(once.cost(Hook::Grow).is_some_and(|cost| cost < 50));
    assert_eq!(once.states().len(), 1);
    let mut instance = once.instance(&[2.0, 0.0]);
    let root = libm::sqrt(libm::exp(2.0));
    assert_eq!(instance.states().collect::<Vec<_>>(), [("own", 2.0 * root)]);
    let w = |input| (input == Input::W).then_some(10.0);
    assert_eq!(instance.call(Hook::Grow, w), Some(10.0 + root));
    let choice = once.instance(&[2.0, 1.0]).call(Hook::Grow, w);
    assert_eq!(choice, Some(10.0 + libm::sqrt(0.5)));
    assert!(Law::parse("law l \"l\"\nparameter p = 1 in [0, 9] \"p\"\nlet x = exp(w)\non grow:\n return x\non cut:\n return p\n").unwrap().cost(Hook::Grow) > Some(200));
}

#[test]
fn a_hook_that_is_missing_is_named() {
    let error = Law::parse("law l \"l\"\non grow:\n return w\n").unwrap_err();
    assert_eq!(error.message, "a law of this kind needs \"on cut\"");
}

/// A power with a constant exponent costs what the operations cost that define it.
#[test]
fn powers_cost_as_products_and_roots() {
    let cost = |value: &str| {
        let text = format!("law l \"l\"\non grow:\n return {value}\non cut:\n return w\n");
        Law::parse(&text).unwrap().cost(Hook::Grow).unwrap()
    };
    for (power, value) in [
        ("(w + 1) ^ 0", "w + 1"),
        ("w ^ 0", "1"),
        ("w ^ 0.5", "sqrt(w)"),
        ("(w + 1) ^ (1/2)", "sqrt(w + 1)"),
        ("w ^ 1", "w"),
        ("w ^ 2", "w * w"),
        ("w ^ 3", "w * w * w"),
        ("2 ^ 3", "8"),
    ] {
        assert_eq!(cost(power), cost(value), "{power}");
    }
    assert!(cost("w ^ 2.5") > 700);
    assert!(cost("2 ^ w") > 700);
}

#[test]
fn a_hook_that_takes_too_long_is_told_what_is_cheap() {
    let text = "law l \"l\"\non grow:\n return w ^ 2.5 + w ^ 2.6 + w ^ 2.7\non cut:\n return w\n";
    let error = Law::parse(text).unwrap_err();
    assert!(error.message.starts_with("\"on grow\" may take "), "{error}");
    assert!(error.help.unwrap().contains("those of 0, 0.5, 1, 2 and 3"));
}

/// 0 has any unit, a power of it may be 1: `0 ^ 0`.
#[test]
fn a_power_of_zero_is_a_plain_number_unless_it_is_zero() {
    let parse = |value: &str| {
        let text = format!(
            "law l \"l\"\nstate most = 0 s \"m\"\non grow:\n most = max(most, {value})\n \
            return w if most > 1 s else 2 * w\non cut:\n return w\n"
        );
        Law::parse(&text).map_err(|error| error.message)
    };
    for value in ["0 ^ w", "0 ^ 0", "0 ^ -1", "0 ^ (w - w)"] {
        assert_eq!(parse(value).unwrap_err(), "one value is in seconds, the other a plain number");
    }
    parse("0 ^ 2").unwrap();
    parse("rtts_since_cut * 1 s * 0 ^ w").unwrap();
}

#[test]
fn numbers_that_are_folded_take_no_registers() {
    let folded = |number: u32| format!(" let a{number} = w * ({number}.1 + {number}.2)\n");
    let text = |lines: u32| {
        let lets: String = (0..lines).map(folded).collect();
        let sum: Vec<String> = (0..lines).map(|number| format!("a{number}")).collect();
        let sum = sum.join(" + ");
        format!("law l \"l\"\non grow:\n{lets} return {sum}\non cut:\n return w\n")
    };
    // Of each line the sum and the value remain: 2 * 30 registers, and not 4 * 30.
    Law::parse(&text(30)).unwrap();
    assert!(Law::parse(&text(33)).unwrap_err().message.contains("registers"));
}

/// A comment of its own line belongs to the block of the line after it.
#[test]
fn comments_and_brackets_keep_their_places() {
    let text = "# first
law l \"l\"

# of a value
let half = 1/2

on grow:
    # of the block
    if w > 1:
        # of the inner block
        return w    # beside
    # of the return
    return max(w,    # a bracket
        # another
        half)

# of a hook
on cut:
    return -1/2 + w / 1 / 2 + w * 1 / 2 + 1 / 2 ^ 2 + 1 / 2 / w + 2 ^ -1 / 2 + 1/2 * w

# the end
";
    let loose = text.replace("        # of", " # of").replace("    # of", "  # of");
    let loose = loose.replace("1/2", "1 / 2").replace("        half", "half");
    assert_ne!(loose, text);
    assert_eq!(format(&loose).unwrap(), text);
    assert_eq!(format(text).unwrap(), text);
    let equations = Law::parse(text).unwrap().equations().join("\n");
    assert!(equations.starts_with("let half = 1/2\non grow:\n    # of the block\n    if w > 1:"));
    assert!(equations.contains("half)\non cut:\n    return -1/2"), "{equations}");
    for template in [
        include_str!("../../../python/cwnd/_controllers/new_controller/window.law"),
        include_str!("../../../python/cwnd/_controllers/new_controller/rate.law"),
    ] {
        let template = template.replace("$name", "mine");
        assert_eq!(format(&template).unwrap(), template);
    }
}

/// Texts that are as deep or as long as the limits allow, or more.
#[test]
fn limits_end_no_program() {
    let head = "law deep \"d\"\n";
    let hooks = "on grow:\n return w\non cut:\n return w\n";
    let nested = |depth: usize| {
        format!(
            "{head}on grow:\n return {}w{}\non cut:\n return w\n",
            "(".repeat(depth),
            ")".repeat(depth)
        )
    };
    assert!(Law::parse(&nested(60)).is_ok());
    assert!(Law::parse(&nested(100)).unwrap_err().message.contains("at most 64"));
    let minus = format!("{head}on grow:\n return {}w\non cut:\n return w\n", "-".repeat(64));
    assert_eq!(Law::parse(&minus).err(), None);
    let sum = format!("{head}on grow:\n return w{}\non cut:\n return w\n", " + w".repeat(5000));
    assert!(Law::parse(&sum).unwrap_err().message.contains("at most 64"));
    // Each named expression doubles the one before.
    let doubling: String =
        (1..60).map(|n| format!("let x{n} = x{} + x{}\n", n - 1, n - 1)).collect();
    let doubling =
        format!("{head}let x0 = 1\n{doubling}on grow:\n return x59\non cut:\n return w\n");
    assert!(Law::parse(&doubling).is_err());
    let branches = |count: usize| {
        let branches = " elif w > 1:\n  pass\n".repeat(count);
        format!("{head}on grow:\n if w > 2:\n  pass\n{branches} return w\non cut:\n return w\n")
    };
    assert_eq!(Law::parse(&branches(16)).err(), None);
    for count in [17, 3000] {
        let error = Law::parse(&branches(count)).unwrap_err();
        assert_eq!(error.to_string(), "an \"if\" has at most 16 \"elif\"");
        assert_eq!(error.position(&branches(count)), (37, 2));
    }
    let blocks: String = (1..40).map(|n| format!("{}if w > 1:\n", " ".repeat(n))).collect();
    assert!(
        Law::parse(&format!("{head}on grow:\n{blocks}{}return w\n{hooks}", " ".repeat(40)))
            .is_err()
    );
    let states: String = (0..70).map(|n| format!("state s{n} = 1 \"s\"\n")).collect();
    assert!(
        Law::parse(&format!("{head}{states}{hooks}")).unwrap_err().message.contains("registers")
    );
    let costly =
        format!("{head}on grow:\n return w{}\non cut:\n return w\n", " + exp(w)".repeat(8));
    assert!(Law::parse(&costly).unwrap_err().message.contains("2000 are allowed"));
    let help = |body: &str| {
        Law::parse(&format!(
            "{head}state w0 = 0 \"s\"\non grow:\n{body} return w\non cut:\n return exp(w)\n"
        ))
        .unwrap_err()
        .help
    };
    // The help has the costs of what the hook has, and of nothing else.
    let costs =
        "a power other than those of 0, 0.5, 1, 2 and 3 counts as 1000 ns, log counts as 320 ns";
    assert_eq!(help(" let a = w ^ 4 + w ^ w + log(w)\n w0 = a\n").as_deref(), Some(costs));
    assert_eq!(help(" repeat w at most 64:\n  w0 = w0 * w0 * w0 * w0\n"), None);
    let long = format!("{head}{}{hooks}", "# a comment\n".repeat(6000));
    assert!(Law::parse(&long).unwrap_err().message.contains("at most 65536 bytes"));
}

/// The type of a state is that of its assignments, in whatever order they are written.
#[test]
fn types_of_states_do_not_depend_on_the_order() {
    let law = |states: &str, body: &str| {
        let states: String =
            states.split(", ").map(|state| format!("state {state} \"\"\n")).collect();
        let body: String = body.split("; ").map(|line| format!("  {line}\n")).collect();
        Law::parse(&format!("law a \"\"\n{states}on grow:\n  return w\non cut:\n{body}"))
    };
    for (states, body) in [
        ("next = 0, last = 0", "next = last + 1 s; last = now; return w"),
        ("next = 0, last = 0", "next = last - 1 s; last = now; next = now; return w"),
        ("t = 0, gap = 0", "t = now - gap; gap = rtt or 1 s; return w"),
        ("gap = 0, last = 0", "gap = last - now; last = now; gap = 1 s; return w"),
        ("f = 0, last = none", "f = last is not none and last is loss; last = why; return w"),
        ("a = 0, b = 0", "a = b * (rtt or 1 s); b = w; a = 1 s; return w"),
    ] {
        assert_eq!(law(states, body).err(), None, "{body}");
    }
    for (states, body, message) in [
        ("a = b, b = 5", "return w * a", "b is not known here"),
        ("a = a + 1", "return w * a", "a is not known here"),
        ("f = false", "f = 0 * w; return w", "f is true or false, this is a plain number"),
        ("a = 1 s", "a = exp(0); return w", "a is in seconds, this is a plain number"),
        (
            "t = none",
            "t = now; t = now - 0 * 1 s; return w + t",
            "this must be a number, it is a time of the clock",
        ),
        (
            "t = 0",
            "t = t + 1; t = now; return w",
            "t is a plain number, this is a time of the clock",
        ),
        ("f = false", "f = w > 1 and w < 2 < 3; return w", "expected the end of the line, found <"),
    ] {
        assert_eq!(law(states, body).unwrap_err().message, message, "{body}");
    }
}

#[test]
fn ends_of_ranges_are_finite() {
    let text = SIMD.replace("1/16 in (0, 1)", "1/16 in (0, 1/0)");
    assert_eq!(Law::parse(&text).unwrap_err().message, "this must be a finite number");
}

/// A law with a history.
fn with_history(body: &str) -> Result<Law, crate::Diagnostic> {
    Law::parse(&format!(
        "law h \"h\"\nstate a = 0 \"a\"\nstate b = none \"b\"\nhistory peaks of 3\nlet best = max(peaks) or 7\n\
         on grow:\n return w\non cut:\n peaks.add(w)\n{body} return w\n"
    ))
}

#[test]
fn a_history_has_the_last_values() {
    let law = with_history(
        " a = count(peak > 2 for peak in peaks)\n b = mean(peaks) if w > 1 else none\n",
    );
    let law = law.unwrap();
    let mut instance = law.instance(&[]);
    let mut last = [1.0, f64::NAN, 3.0, 4.0, 8.0].map(|w| {
        instance.call(Hook::Cut, |_| Some(w));
        let states: Vec<f64> = instance.states().map(|(_, value)| value).collect();
        (states[0], states[1])
    });
    // None is NaN, which equals nothing.
    for (_, mean) in last.iter_mut().filter(|(_, mean)| mean.is_nan()) {
        *mean = -1.0;
    }
    assert_eq!(last, [(0.0, -1.0), (0.0, -1.0), (1.0, 2.0), (2.0, 8.0 / 3.0), (3.0, 5.0)]);
    let law = with_history(" peaks = peaks / 2\n a = best\n").unwrap();
    let mut instance = law.instance(&[]);
    for (w, best) in [(8.0, 4.0), (2.0, 2.0), (1.0, 1.0), (0.5, 0.25)] {
        instance.call(Hook::Cut, |_| Some(w));
        assert_eq!(instance.states().next(), Some(("a", best)), "{w}");
    }
}

#[test]
fn faults_of_histories_are_named() {
    for (body, message) in [
        (
            " a = peaks\n",
            "peaks is a history, which is no value: functions of histories are count, max, mean, min, sum",
        ),
        (
            " a = max(peaks)\n",
            "a is never none, this value may be: write \"or\" and another value, or begin the state with none",
        ),
        (
            " a = sqrt(peaks)\n",
            "sqrt is no function of a history: functions of histories are count, max, mean, min, sum",
        ),
        (" a = sum(w)\n", "sum is of a history"),
        (" a = sum(1 for peak in w)\n", "w is no history"),
        (" a = sum(1 for w in peaks)\n", "w is the name of a value that \"on grow\" is given"),
        (
            " a = count(peak for peak in peaks)\n",
            "this must be true or false, it is a plain number",
        ),
        (
            " peaks = w\n",
            "a history is multiplied or divided: peaks = peaks * value: peaks.add(value) adds a value",
        ),
        (" peaks = peaks * 2 s\n", "a factor is a plain number, this is in seconds"),
        (" peaks.add(2 s)\n", "peaks has values that are a plain number, this is in seconds"),
        (
            " peaks.add(now)\n",
            "peaks has values that are a plain number, this is a time of the clock",
        ),
        (" peaks.push(w)\n", "a value is added to a history, such as peaks.add(w)"),
        (" a.add(w)\n", "no history is called a"),
        (" let peaks = 1\n", "peaks is the name of a history"),
        (
            " for peak in peaks:\n",
            "a law has no such loop: write repeat n at most 30, or sum(x for x in history)",
        ),
    ] {
        assert_eq!(with_history(body).unwrap_err().to_string(), message, "{body}");
    }
    for (size, message) in [
        ("0", "this must be a whole number of values, at least 1"),
        ("2.5", "this must be a whole number of values, at least 1"),
        ("2 s", "this must be a whole number of values, at least 1"),
        ("64", "states and histories need more than the 64 registers of a law"),
        ("1e300", "states and histories need more than the 64 registers of a law"),
    ] {
        let hooks = "on grow:\n return w\non cut:\n return w\n";
        let text = format!("law h \"h\"\nhistory peaks of {size}\n{hooks}");
        assert_eq!(Law::parse(&text).unwrap_err().to_string(), message, "{size}");
    }
    let unused = " a = count(peaks)\n peaks.add(a)\n b = w\n";
    let text = with_history(unused).unwrap();
    let text = text.text().replace(" peaks.add(w)\n", "").replace(" peaks.add(a)\n", "");
    let law = Law::parse(&text).unwrap();
    let warnings: Vec<_> = law.warnings().iter().map(ToString::to_string).collect();
    assert!(warnings.contains(&"no value is added to the history peaks".into()), "{warnings:?}");
}

/// An operation costs at least a nanosecond: the code of each hook ends, at the latest at its last
/// word.
#[test]
fn skips_lead_forward_and_stay_in_the_code() {
    for seed in 0..100 {
        let Ok(law) = Law::parse(&Writer::law(seed)) else { continue };
        for (at, word) in law.code.iter().enumerate() {
            if word.op.skips() {
                assert!(at + 1 + usize::from(word.d) < law.code.len());
            }
        }
        assert_eq!(law.code.last().map(|word| word.op), Some(crate::code::Op::End));
    }
}

/// Each call is another number of the same sequence, whatever the law keeps.
#[test]
fn random_numbers_are_drawn_in_hooks() {
    let law = |body: &str| {
        Law::parse(&format!(
            "law r \"r\"\nstate a = 0 \"a\"\nstate b = 1 \"b\"\non grow:\n return w + b\non cut:\n{body} return a\n"
        ))
    };
    let text = " a = random() - random()\n";
    let draw = |seed| {
        let drawn = law(text).unwrap();
        let mut instance = drawn.instance(&[]).seeded(seed);
        [(); 3].map(|()| instance.call(Hook::Cut, |_| Some(1.0)).unwrap())
    };
    // The first numbers of SplitMix64 with the seed 0.
    let unit = |z: u64| (z >> 11) as f64 * 2_f64.powi(-53);
    assert_eq!(draw(0)[0], unit(0xe220_a839_7b1d_cdaf) - unit(0x6e78_9e6a_a1b9_65f4));
    let all = [draw(0), draw(7)].concat();
    for (at, number) in all.iter().enumerate() {
        assert!(!all[..at].contains(number), "{all:?}");
    }
    assert!(law(text).unwrap().is_random() && !Law::parse(SIMD).unwrap().is_random());
    for (body, message) in [
        (" a = random(1)\n", "random() has no value in its brackets"),
        (" a = sqrt()\n", "sqrt is of one value"),
        (" a = min()\n", "min is of at least two values"),
        (
            " return a\non answers_mark:\n return random() < 0.5\non enter:\n",
            "\"on answers_mark\" may not change the state",
        ),
        (" a = rando()\n", "no function is called rando: did you mean random?"),
    ] {
        assert_eq!(law(body).unwrap_err().to_string(), message, "{body}");
    }
    let text = "law r \"r\"\nstate a = random()\non grow:\n return w\non cut:\n return w\n";
    assert_eq!(Law::parse(text).unwrap_err().message, "random numbers are drawn in hooks");
}

#[test]
fn a_block_is_repeated() {
    let law = |body: &str| {
        Law::parse(&format!(
            "law r \"r\"\nstate a = 0 \"a\"\nstate b = none \"b\"\non grow:\n return w\non cut:\n a = 0\n{body} return a\n"
        ))
    };
    let counted = law(" repeat w at most 3:\n  let one = 1\n  a = a + one\n").unwrap();
    let mut instance = counted.instance(&[]);
    for (w, times) in
        [(0.0, 0.0), (0.5, 1.0), (2.0, 2.0), (3.0, 3.0), (9.0, 3.0), (-1.0, 0.0), (f64::NAN, 0.0)]
    {
        assert_eq!(instance.call(Hook::Cut, |_| Some(w)), Some(times), "{w}");
    }
    // What a block knows of none holds in the next one, and after it if it held before.
    assert!(law(" b = 1\n repeat w at most 2:\n  a = a + b\n a = b\n").is_ok());
    for (body, message) in [
        (
            " repeat w at most 2:\n  b = 1\n a = b\n",
            "a is never none, this value may be: write \"or\" and another value, or begin the state with none",
        ),
        (
            " b = 1\n repeat w at most 2:\n  a = a + b\n  b = none\n",
            "b may be none here: write \"or\" and another value, or test it by \"is none\"",
        ),
        (" repeat w at most 65:\n  pass\n", "this must be a number from 1 to 64"),
        (" repeat w at most a:\n  pass\n", "this must be a number from 1 to 64"),
        (
            " repeat now at most 2:\n  pass\n",
            "a count is a plain number, this is a time of the clock",
        ),
        (" repeat w:\n  pass\n", "expected \"at\", found :"),
    ] {
        assert_eq!(law(body).unwrap_err().to_string(), message, "{body}");
    }
    let named = "law r \"r\"\nstate repeat = 1 \"r\"\non grow:\n repeat = w\n return w\non cut:\n return repeat\n";
    assert_eq!(Law::parse(named).err(), None);
}
