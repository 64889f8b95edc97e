//! Equations read back from their MathML.

use super::{GREEK, Printer, equations};
use crate::syntax::{self, Expr, Item, Statement};
use crate::tests::words;
use crate::writer::Writer;
use proptest::prelude::*;
use std::format;
use std::string::String;
use std::vec::Vec;

/// An element with its text or its children.
#[derive(Debug)]
struct Node<'x> {
    tag: &'x str,
    text: &'x str,
    children: Vec<Node<'x>>,
}

impl<'x> Node<'x> {
    fn read(input: &mut &'x str) -> Self {
        let (head, rest) = input.strip_prefix('<').unwrap().split_once('>').unwrap();
        let tag = head.split(' ').next().unwrap();
        let text = rest.split('<').next().unwrap();
        *input = &rest[text.len()..];
        let mut children = Vec::new();
        while !input.starts_with("</") {
            children.push(Node::read(input));
        }
        *input = input.strip_prefix(&*format!("</{tag}>")).unwrap();
        Node { tag, text, children }
    }

    /// What a reader takes the children for: only layout and brackets group them.
    fn inner(&self) -> String {
        self.children.iter().map(Node::law).collect()
    }

    /// The words of the language for the element.
    fn law(&self) -> String {
        let at = |place: usize| self.children[place].law();
        let first = self.children.first().map_or("", |child| child.text);
        match self.tag {
            "mfrac" => format!("(({}) / ({}))", at(0), at(1)),
            "msqrt" => format!("sqrt({})", self.inner()),
            "mroot" => format!("cbrt({})", at(0)),
            "msub" if first == "log" => "log10".into(),
            "msub" if at(1).starts_with(char::is_numeric) => format!("{}{}", at(0), at(1)),
            "msub" => format!("{}_{}", at(0), at(1)),
            "msup" if first == "10" => at(1),
            "msup" => format!("{}^({})", at(0), at(1)),
            "mrow" if self.children.first().is_some_and(|child| child.tag == "munder") => {
                let [under, _, value] = &*self.children else { panic!("{self:?}") };
                let [function, each] = &*under.children else { panic!("{self:?}") };
                let [name, _, history] = &*each.children else { panic!("{self:?}") };
                let (name, history) = (name.law(), history.law());
                format!("{}({} for {name} in {history})", function.law(), value.law())
            }
            "mrow" if first == "{" => self.children[1].cases(),
            "mrow" if matches!(first, "|" | "⌊" | "⌈") => {
                let inside = &self.children[1..self.children.len() - 1];
                let inside: String = inside.iter().map(Node::law).collect();
                let functions = [("|", "abs"), ("⌊", "floor"), ("⌈", "ceil")];
                let (_, function) = functions.iter().find(|(open, _)| *open == first).unwrap();
                format!("{function}({inside})")
            }
            "mi" => {
                let name = GREEK.iter().find(|(_, letter)| *letter == self.text);
                name.map_or(self.text, |(name, _)| name).into()
            }
            "mo" => match self.text {
                "&lt;" => "<",
                "&gt;" => ">",
                "≤" => "<=",
                "≥" => ">=",
                "=" => "==",
                "≠" => "!=",
                "−" => "-",
                "⋅" => "*",
                "×" => "e",
                "\u{2061}" => "",
                sign => sign,
            }
            .into(),
            _ if self.children.is_empty() => self.text.replace('\u{a0}', " "),
            _ => self.inner(),
        }
    }

    /// The rows of a table as a conditional expression.
    fn cases(&self) -> String {
        let row = |row: &Node<'_>| {
            let condition = row.children[1].law();
            match condition.strip_prefix("if ") {
                Some(condition) => format!("({}) if ({condition}) else ", row.children[0].law()),
                None => format!("({})", row.children[0].law()),
            }
        };
        self.children.iter().map(row).collect()
    }
}

/// The expressions of a file, without its parameters and states.
fn expressions(items: &[Item]) -> Vec<&Expr> {
    fn of_block<'f>(body: &'f [Statement], found: &mut Vec<&'f Expr>) {
        for statement in body {
            match statement {
                Statement::Let { value, .. }
                | Statement::Assign { value, .. }
                | Statement::Add { value, .. } => found.push(value),
                Statement::Return { value, .. } => found.extend(value),
                Statement::If { condition, then, otherwise } => {
                    found.push(condition);
                    of_block(then, found);
                    of_block(otherwise, found);
                }
                Statement::Repeat { count, body, .. } => {
                    found.push(count);
                    of_block(body, found);
                }
                Statement::Pass => {}
            }
        }
    }
    let mut found = Vec::new();
    for item in items {
        match item {
            Item::Let { value, .. } => found.push(value),
            Item::On { body, .. } => of_block(body, &mut found),
            _ => {}
        }
    }
    found
}

/// The tree of an expression, without places.
fn shape(expr: &Expr) -> String {
    let all = format!("{expr:?}");
    let place = |c: char| c.is_ascii_digit() || c == '.';
    all.split("span: ").map(|part| part.trim_start_matches(place)).collect()
}

/// Asserts that the equations of a text are read as what they are.
fn agrees(text: &str) {
    let tokens = words(text);
    let file = syntax::file(&tokens).unwrap();
    for expr in expressions(&file.items) {
        let mut printer = Printer { tokens: &tokens, text: String::new() };
        printer.value(expr, 0);
        let back = Node::read(&mut &*printer.text).law();
        let again = format!("law again \"\"\nlet value = {back}\n");
        let tokens = words(&again);
        let file = syntax::file(&tokens).unwrap_or_else(|error| panic!("{error}: {again}"));
        let [Item::Let { value, .. }] = &*file.items else { panic!("{again}") };
        assert_eq!(shape(value), shape(expr), "{back}");
    }
    for equation in equations(&file, &tokens) {
        let mut rest = &*equation.mathml;
        assert_eq!(Node::read(&mut rest).tag, "math");
        assert_eq!(rest, "");
    }
}

proptest! {
    #[test]
    fn an_equation_is_read_as_the_expression(seed: u64) {
        agrees(&Writer::law(seed));
    }
}

/// The equation of a named expression, without the elements around it.
fn value(text: &str) -> String {
    let text = format!("law one \"\"\nlet y = {text}\n");
    agrees(&text);
    let tokens = words(&text);
    let [equation] = &*equations(&syntax::file(&tokens).unwrap(), &tokens) else { panic!() };
    let (_, value) = equation.mathml.split_once("<mo>=</mo><mrow>").unwrap();
    value.strip_suffix("</mrow></math>").unwrap().into()
}

#[test]
fn what_layout_groups_has_no_brackets() {
    assert_eq!(value("(a + b) / c"), value("((a + b) / (c))"));
    assert!(!value("sqrt(a + b) / (a - b)").contains("<mo>(</mo>"));
    assert!(!value("a ^ (b + 1)").contains("<mo>(</mo>"));
    for text in [
        "(a / b) ^ 2",
        "(a * b) ^ 2",
        "(10 ms) ^ 2",
        "1e-3 ^ 2",
        "exp(a) ^ 2",
        "(-a) ^ 2",
        "(a ^ b) ^ 2",
        "a - (b - c)",
        "a * (b + c)",
        "-(a + b)",
        "(a if c else b) + 1",
        "not (a and b)",
        "(a or b) and c",
    ] {
        assert!(value(text).contains("<mo>(</mo>"), "{text}");
    }
}

#[test]
fn numbers_and_names_are_as_in_papers() {
    assert_eq!(value("w_max"), "<msub><mi>w</mi><mi>max</mi></msub>");
    assert_eq!(value("beta2"), "<msub><mi>β</mi><mi>2</mi></msub>");
    assert_eq!(value("lambda"), "<mi>λ</mi>");
    for name in ["min_rtt", "w_", "_w", "acked.delivery.rate", "w_max_of", "pi"] {
        assert_eq!(value(name), format!("<mi>{name}</mi>"));
    }
    assert_eq!(value("(  10 ms)"), value("10 ms"));
    assert_eq!(value("10ms"), "<mn>10</mn><mtext>\u{a0}ms</mtext>");
    assert_eq!(value("5 /s"), "<mn>5</mn><mtext>/s</mtext>");
    let power = "<msup><mn>10</mn><mrow><mo>−</mo><mn>3</mn></mrow></msup>";
    assert_eq!(value("2e-3"), format!("<mn>2</mn><mo>×</mo>{power}"));
}

#[test]
fn no_text_becomes_markup() {
    let mut printer = Printer { tokens: &[], text: String::new() };
    printer.leaf("mi", "<script>&\"");
    assert_eq!(printer.text, "<mi>&lt;script&gt;&amp;\"</mi>");
}
