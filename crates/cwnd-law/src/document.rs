//! docs/laws.md against the language: each row of its tables.

use crate::code::{MAX_CODE, MAX_COST, MAX_SKIP, Op};
use crate::{Hook, Kind, Law, MAX_TEXT, REGISTERS};
use std::format;
use std::string::String;
use std::vec::Vec;

const DOCUMENT: &str = include_str!("../../../docs/laws.md");

/// The cells of the tables of a section, without their heads.
fn rows(section: &str) -> Vec<Vec<&'static str>> {
    let (_, text) = DOCUMENT.split_once(&format!("\n## {section}\n")).expect(section);
    let text = text.split_once("\n## ").map_or(text, |(text, _)| text);
    let lines = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// The texts in back quotes.
fn codes(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn law(head: &str, body: &str) -> Result<Law, crate::Diagnostic> {
    Law::parse(&format!(
        "law l \"l\"\nparameter p = 1 in (0, 9) \"p\"\nparameter reset = one in {{one, decrease}} \"r\"\n\
         state a = 1 \"a\"\nstate b = 2 \"b\"\nstate x = none \"x\"\nstate y = 3 \"y\"\nstate c = true \"c\"\n\
         state seconds = none \"s\"\nstate rate = none \"r\"\nhistory peaks of 3\n{head}\
         on grow:\n    return w\non cut:\n{body}    return w\non enter:\n    x = 1\n    seconds = now - last_cut\n"
    ))
}

fn compiles(body: &str) {
    law("", body).map_err(|error| format!("{error}: {body}")).unwrap();
}

#[test]
fn values_are_as_the_document_says() {
    for row in rows("Values") {
        let codes = codes(row[0]);
        assert!(!codes.is_empty(), "{row:?}");
        // Functions of a history, and those of its values.
        let folds = row[1].contains("functions of a history");
        for code in codes {
            if folds || code.contains(" for ") {
                for name in code.split(' ').filter(|_| folds) {
                    let otherwise = if ["sum", "count"].contains(&name) { "" } else { " or 1" };
                    compiles(&format!("    a = {name}(peaks){otherwise}\n"));
                }
                if !folds {
                    compiles(&format!("    a = {code}\n"));
                }
                continue;
            }
            for word in code
                .split(' ')
                .filter(|_| !code.contains("is ") && code != "a if c else b" && code != "x or y")
            {
                match word {
                    "and" | "or" => compiles(&format!("    c = c {word} a < b\n")),
                    "not" => compiles("    c = not c\n"),
                    "true" | "false" => compiles(&format!("    c = {word}\n")),
                    "max" | "min" => compiles(&format!("    a = {word}(a, b, y)\n")),
                    "<" | "<=" | ">" | ">=" | "==" | "!=" => {
                        compiles(&format!("    c = a {word} b\n"))
                    }
                    "+" | "-" | "*" | "/" | "^" => compiles(&format!("    a = a {word} b\n")),
                    _ if word.chars().all(|c| c.is_ascii_lowercase() || c == '1' || c == '0')
                        && word.len() > 2
                        && word.starts_with(char::is_alphabetic)
                        && word != "ms" =>
                    {
                        compiles(&format!("    a = {word}(a)\n"));
                    }
                    _ => {}
                }
            }
            match code {
                "a if c else b" | "x or y" | "1.5" | "1e-3" => {
                    compiles(&format!("    a = {code}\n"))
                }
                "random()" => compiles(&format!("    a = {code}\n")),
                "10 ms" => compiles(&format!("    seconds = {code}\n")),
                "5 /s" => compiles(&format!("    rate = {code}\n")),
                _ if code.contains("is ") => compiles(&format!("    c = {code}\n")),
                _ => {}
            }
        }
    }
}

#[test]
fn hooks_and_their_values_are_those_of_the_document() {
    let (_, context) = DOCUMENT.split_once("\nThe context: ").unwrap();
    let context = codes(context.split_once(". `why`").unwrap().0);
    for (section, kind) in [
        ("Hooks of a law for the window", Kind::Window),
        ("Hooks of a law for the rate", Kind::Rate),
    ] {
        let mut named = Vec::new();
        for row in rows(section) {
            for name in codes(row[0]) {
                let hook = Hook::ALL.iter().find(|hook| hook.kind() == kind && hook.name() == name);
                let hook = *hook.expect(name);
                named.push(hook);
                let mut expected = codes(row[1]);
                if !row[1].contains("without the context") {
                    expected.extend(&context);
                }
                let mut given: Vec<&str> = hook.inputs().map(crate::Input::name).collect();
                given.sort_unstable();
                expected.sort_unstable();
                assert_eq!(given, expected, "{name}");
                assert_eq!(row[2].contains("required"), hook.is_required(), "{name}");
                let reads = row[2].contains("not change the state");
                assert!(!reads || !hook.changes_state(), "{name}");
            }
        }
        let all = Hook::ALL.iter().filter(|hook| hook.kind() == kind).count();
        assert_eq!(named.len(), all, "{section}");
    }
}

#[test]
fn the_example_is_in_the_canonical_form() {
    let (_, example) = DOCUMENT.split_once("```law\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    assert_eq!(crate::format(example).unwrap(), example);
}

#[test]
fn items_and_statements_are_as_the_document_says() {
    let row = |section: &str, code: &str| {
        assert!(rows(section).iter().any(|row| codes(row[0]).contains(&code)), "{code}");
    };
    for (code, head) in [
        ("summary \"TEXT\"", "summary \"Grows.\"\n"),
        ("pacing NUMBER", "pacing 5/4\n"),
        ("source \"TEXT\"", "source \"a paper\"\n"),
        ("deviation \"TEXT\"", "deviation \"none\"\n"),
        ("parameter NAME = NUMBER in RANGE \"MEANING\"", "parameter q = 1 in (0, 1] \"q\"\n"),
        (
            "parameter NAME \"SYMBOL\" = NUMBER packets in RANGE \"MEANING\"",
            "parameter q \"Q\" = 1/2 packets in (0, 1] \"q\"\n",
        ),
        (
            "parameter NAME = NUMBER bits in RANGE \"MEANING\"",
            "parameter q = 1e6 /s bits in (0, 1e9 /s] \"q\"\n",
        ),
        ("parameter NAME = on \"MEANING\"", "parameter q = on \"q\"\n"),
        (
            "parameter NAME = CHOICE in {CHOICE, CHOICE} \"MEANING\"",
            "parameter q = one in {one, two} \"q\"\n",
        ),
        ("state NAME = VALUE \"MEANING\"", "state q = 2 * p \"q\"\n"),
        ("state NAME \"SYMBOL\" = VALUE \"MEANING\"", "state q \"Q\" = 2 * p \"q\"\n"),
        ("state NAME = VALUE", "state q = 2 * p\n"),
        ("history NAME of NUMBER", "history q of 2\n"),
        ("let NAME = VALUE", "let q = 2 * p\n"),
    ] {
        row("Items", code);
        law(head, "").unwrap();
    }
    for (code, body) in [
        ("NAME = VALUE", "    a = b\n"),
        ("NAME.add(VALUE)", "    peaks.add(a)\n"),
        ("NAME = NAME * VALUE", "    peaks = peaks * 2\n"),
        ("NAME = NAME / VALUE", "    peaks = peaks / a\n"),
        ("let NAME = VALUE", "    let z = a\n"),
        ("return VALUE", "    if c:\n        return a\n"),
        (
            "elif CONDITION:",
            "    if c:\n        a = 1\n    elif a < b:\n        a = 2\n    else:\n        a = 3\n",
        ),
        ("repeat COUNT at most NUMBER:", "    repeat a at most 30:\n        b = b / 2\n"),
        ("pass", "    pass\n"),
    ] {
        row("Statements", code);
        compiles(body);
    }
}

#[test]
fn limits_are_those_of_the_document() {
    let found: Vec<String> = rows("Limits").iter().map(|row| row[1].replace(',', "")).collect();
    let numbers: Vec<usize> =
        found.iter().filter_map(|cell| cell.split(' ').next()?.parse().ok()).collect();
    let limits = [
        MAX_TEXT,
        crate::token::MAX_OPERATORS,
        crate::token::MAX_NAME,
        crate::token::MAX_INDENTS,
        crate::syntax::MAX_BRANCHES,
        crate::compile::statements::MAX_TIMES as usize,
        crate::compile::names::MAX_PARAMETERS,
        crate::compile::parameters::MAX_CHOICES,
        crate::compile::names::MAX_EXPRESSIONS,
        REGISTERS,
        MAX_CODE,
        MAX_SKIP,
        MAX_COST as usize,
    ];
    assert_eq!(numbers, limits);
    let text = DOCUMENT.replace(',', "");
    for (op, name) in [
        (Op::Add, "an addition or product"),
        (Op::Multiply, "an addition or product"),
        (Op::Divide, "a division"),
        (Op::Sqrt, "a square root"),
        (Op::Cbrt, "`cbrt`"),
        (Op::Exp, "`exp`"),
        (Op::Log, "`log`"),
        (Op::Log10, "`log10`"),
        (Op::Power, "a power other than those of 0 0.5 1 2 and 3"),
    ] {
        let cost = op.cost();
        let units = ["", " ns"].map(|unit| format!(" {cost}{unit} {name}"));
        assert!(units.iter().any(|words| text.contains(words)), "{name}: {cost} ns");
    }
}

/// The grammar for editors has each keyword and each function.
#[test]
fn editors_know_the_words() {
    let grammar = include_str!("../../../editors/law.tmLanguage.json");
    let words: Vec<&str> = grammar.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let functions = crate::compile::values::FUNCTIONS.iter().map(|(name, ..)| *name);
    let folds = crate::compile::values::FOLDS.iter().copied();
    let folds = folds.chain([crate::compile::values::RANDOM]);
    for word in crate::syntax::KEYWORDS.iter().copied().chain(functions).chain(folds) {
        assert!(words.contains(&word), "{word}");
    }
}
