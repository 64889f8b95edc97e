//! The hooks and named expressions of a law as MathML Core.

use crate::canonical::split_unit;
use crate::syntax::{Binary, Each, Expr, ExprKind, File, Item, Statement};
use crate::token::{Kind, Token};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// A hook or a named expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equation {
    /// The name of the hook; nothing for a named expression.
    pub hook: Option<String>,
    /// An element `math`. A page aligns its `mtd`, which are lines, to the left. Cases have the class
    /// `cases`: their brace stretches only in a font for mathematics.
    pub mathml: String,
}

/// The hooks and named expressions of a file, whose numbers are as in its tokens.
pub(crate) fn equations(file: &File, tokens: &[Token<'_>]) -> Vec<Equation> {
    let equation = |hook: Option<&str>, body: &dyn Fn(&mut Printer<'_>)| {
        let mut printer = Printer { tokens, text: String::new() };
        printer.element("math", " display=\"block\"", body);
        Some(Equation { hook: hook.map(String::from), mathml: printer.text })
    };
    let of_item = |item: &Item| match item {
        Item::Let { name, value } => {
            equation(None, &|printer| printer.assignment(&name.text, "=", value))
        }
        Item::On { hook, body } => equation(Some(&hook.text), &|printer| printer.block(body)),
        _ => None,
    };
    file.items.iter().filter_map(of_item).collect()
}

/// How strongly a root, a fraction or an applied function binds: only powers need it in brackets.
const APPLIED: u8 = Binary::Power.binds() - 1;

/// The Greek letters by their names, without pi, which would be read as the constant.
const GREEK: &[(&str, &str)] = &[
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("epsilon", "ε"),
    ("zeta", "ζ"),
    ("eta", "η"),
    ("theta", "θ"),
    ("kappa", "κ"),
    ("lambda", "λ"),
    ("mu", "μ"),
    ("nu", "ν"),
    ("xi", "ξ"),
    ("rho", "ρ"),
    ("sigma", "σ"),
    ("tau", "τ"),
    ("phi", "φ"),
    ("chi", "χ"),
    ("psi", "ψ"),
    ("omega", "ω"),
];

/// What stands in a row of cases.
#[derive(Clone, Copy)]
enum Case<'f> {
    Value(&'f Expr),
    Block(&'f [Statement]),
}

/// Prints the elements of an equation.
struct Printer<'t> {
    tokens: &'t [Token<'t>],
    text: String,
}

impl Printer<'_> {
    fn element(&mut self, tag: &str, attributes: &str, content: impl FnOnce(&mut Self)) {
        for part in ["<", tag, attributes, ">"] {
            self.text.push_str(part);
        }
        content(self);
        for part in ["</", tag, ">"] {
            self.text.push_str(part);
        }
    }

    /// An element with a text.
    fn leaf(&mut self, tag: &str, text: &str) {
        self.element(tag, "", |printer| {
            for letter in text.chars() {
                match letter {
                    '&' => printer.text.push_str("&amp;"),
                    '<' => printer.text.push_str("&lt;"),
                    '>' => printer.text.push_str("&gt;"),
                    _ => printer.text.push(letter),
                }
            }
        });
    }

    /// One of the lines of a table.
    fn row(&mut self, cells: &[&dyn Fn(&mut Self)]) {
        self.element("mtr", "", |printer| {
            for cell in cells {
                printer.element("mtd", "", cell);
            }
        });
    }

    fn table(&mut self, rows: impl FnOnce(&mut Self)) {
        self.element("mtable", " displaystyle=\"true\"", rows);
    }

    fn block(&mut self, body: &[Statement]) {
        match body {
            [one] => self.statement(one),
            _ => self.table(|printer| {
                body.iter().for_each(|each| printer.row(&[&|cell| cell.statement(each)]));
            }),
        }
    }

    fn statement(&mut self, statement: &Statement) {
        self.element("mrow", "", |printer| match statement {
            Statement::Let { name, value } => printer.assignment(&name.text, "=", value),
            Statement::Assign { name, value } => printer.assignment(&name.text, "←", value),
            Statement::Add { name, value } => {
                printer.name(name.text.trim_end_matches(".add"));
                printer.leaf("mtext", "\u{a0}gets\u{a0}");
                printer.value(value, 0);
            }
            Statement::Return { value, .. } => {
                printer.leaf("mtext", "return\u{a0}");
                value.iter().for_each(|value| printer.value(value, 0));
            }
            Statement::If { condition, then, otherwise } => {
                let mut cases = Vec::from([(Case::Block(then), Some(condition))]);
                let mut rest = otherwise.as_slice();
                while let [Statement::If { condition, then, otherwise }] = rest {
                    cases.push((Case::Block(then), Some(condition)));
                    rest = otherwise;
                }
                if !rest.is_empty() {
                    cases.push((Case::Block(rest), None));
                }
                printer.cases(&cases);
            }
            Statement::Repeat { count, most, body } => {
                let often = |cell: &mut Self| {
                    cell.leaf("mtext", "repeat\u{a0}");
                    cell.value(count, 0);
                    cell.leaf("mtext", "\u{a0}times, at most\u{a0}");
                    cell.value(most, 0);
                };
                let times = |cell: &mut Self| cell.block(body);
                printer.table(|printer| {
                    printer.row(&[&often]);
                    printer.row(&[&times]);
                });
            }
            Statement::Pass => printer.leaf("mtext", "pass"),
        });
    }

    fn assignment(&mut self, name: &str, sign: &str, value: &Expr) {
        self.name(name);
        self.leaf("mo", sign);
        self.value(value, 0);
    }

    /// What is in force where the condition beside it is the first true one.
    fn cases(&mut self, cases: &[(Case<'_>, Option<&Expr>)]) {
        self.element("mrow", " class=\"cases\"", |printer| {
            printer.leaf("mo", "{");
            printer.table(|printer| {
                for (case, condition) in cases {
                    let case = |cell: &mut Self| match case {
                        Case::Value(value) => cell.value(value, 0),
                        Case::Block(body) => cell.block(body),
                    };
                    let condition = |cell: &mut Self| match condition {
                        Some(condition) => {
                            cell.leaf("mtext", "if\u{a0}");
                            cell.value(condition, 0);
                        }
                        None => cell.leaf("mtext", "otherwise"),
                    };
                    printer.row(&[&case, &condition]);
                }
            });
        });
    }

    /// An expression, in brackets if it binds less strongly than `level`.
    fn value(&mut self, expr: &Expr, level: u8) {
        if self.binds(expr) < level {
            self.between("(", ")", expr);
        } else {
            self.element("mrow", "", |printer| printer.expression(expr));
        }
    }

    /// An expression between brackets, which stretch.
    fn between(&mut self, open: &str, close: &str, expr: &Expr) {
        self.element("mrow", "", |printer| {
            printer.leaf("mo", open);
            printer.expression(expr);
            printer.leaf("mo", close);
        });
    }

    fn expression(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Number(..) => self.number(expr),
            ExprKind::Truth(truth) => self.leaf("mtext", if *truth { "true" } else { "false" }),
            ExprKind::None => self.leaf("mtext", "none"),
            ExprKind::Name(name) => self.name(name),
            ExprKind::Minus(of) => {
                self.leaf("mo", "−");
                self.value(of, APPLIED);
            }
            ExprKind::Not(of) => {
                self.leaf("mtext", "not\u{a0}");
                self.value(of, Binary::Less.binds());
            }
            ExprKind::Binary(operator, a, b) => self.binary(*operator, a, b),
            ExprKind::If { condition, then, otherwise } => {
                let mut cases = Vec::from([(Case::Value(then), Some(&**condition))]);
                let mut rest = &**otherwise;
                while let ExprKind::If { condition, then, otherwise } = &rest.kind {
                    cases.push((Case::Value(then), Some(condition)));
                    rest = otherwise;
                }
                cases.push((Case::Value(rest), None));
                self.cases(&cases);
            }
            ExprKind::Call(function, arguments) => self.call(&function.text, arguments),
            ExprKind::Each(each) => {
                let Each { function, value, name, history } = &**each;
                self.element("mrow", "", |printer| {
                    printer.element("munder", "", |printer| {
                        printer.leaf("mi", &function.text);
                        printer.element("mrow", "", |printer| {
                            printer.name(&name.text);
                            printer.leaf("mo", "∈");
                            printer.name(&history.text);
                        });
                    });
                    printer.leaf("mo", "\u{2061}");
                    printer.between("(", ")", value);
                });
            }
        }
    }

    fn binary(&mut self, operator: Binary, a: &Expr, b: &Expr) {
        let level = operator.binds();
        let sign = match operator {
            Binary::Divide => {
                return self.element("mfrac", "", |printer| {
                    printer.value(a, 0);
                    printer.value(b, 0);
                });
            }
            Binary::Power => {
                return self.element("msup", "", |printer| {
                    printer.value(a, level + 1);
                    printer.value(b, 0);
                });
            }
            Binary::Or => "or",
            Binary::And => "and",
            Binary::Is => "is",
            Binary::IsNot => "is not",
            Binary::Less => "<",
            Binary::AtMost => "≤",
            Binary::Greater => ">",
            Binary::AtLeast => "≥",
            Binary::Equal => "=",
            Binary::NotEqual => "≠",
            Binary::Add => "+",
            Binary::Subtract => "−",
            Binary::Multiply => "⋅",
        };
        self.value(a, level);
        if sign.starts_with(char::is_alphabetic) {
            self.leaf("mtext", &format!("\u{a0}{sign}\u{a0}"));
        } else {
            self.leaf("mo", sign);
        }
        self.value(b, level + 1);
    }

    fn call(&mut self, function: &str, arguments: &[Expr]) {
        match (function, arguments) {
            ("sqrt", [of]) => self.element("msqrt", "", |printer| printer.value(of, 0)),
            ("cbrt", [of]) => self.element("mroot", "", |printer| {
                printer.value(of, 0);
                printer.leaf("mn", "3");
            }),
            ("abs", [of]) => self.between("|", "|", of),
            ("floor", [of]) => self.between("⌊", "⌋", of),
            ("ceil", [of]) => self.between("⌈", "⌉", of),
            _ => {
                match function {
                    "log10" => self.element("msub", "", |printer| {
                        printer.leaf("mi", "log");
                        printer.leaf("mn", "10");
                    }),
                    _ => self.leaf("mi", function),
                }
                // The application of a function.
                self.leaf("mo", "\u{2061}");
                self.element("mrow", "", |printer| {
                    printer.leaf("mo", "(");
                    for (place, argument) in arguments.iter().enumerate() {
                        if place > 0 {
                            printer.leaf("mo", ",");
                        }
                        printer.value(argument, 0);
                    }
                    printer.leaf("mo", ")");
                });
            }
        }
    }

    /// How strongly an expression binds as it is printed.
    fn binds(&self, expr: &Expr) -> u8 {
        match &expr.kind {
            ExprKind::If { .. } => 0,
            ExprKind::Not(_) => Binary::Less.binds() - 1,
            // A product of digits and a power of ten, or of digits and a unit.
            ExprKind::Number(..) if parts(self.text_of(expr)) != (self.text_of(expr), "", "") => {
                Binary::Multiply.binds()
            }
            ExprKind::Minus(_) => Binary::Multiply.binds(),
            ExprKind::Binary(Binary::Divide, ..) => APPLIED,
            ExprKind::Binary(operator, ..) => operator.binds(),
            ExprKind::Each(_) => APPLIED,
            ExprKind::Call(function, _)
                if !matches!(&*function.text, "sqrt" | "cbrt" | "abs" | "floor" | "ceil") =>
            {
                APPLIED
            }
            _ => u8::MAX,
        }
    }

    /// A number as its text has it, which may stand in brackets.
    fn text_of(&self, number: &Expr) -> &str {
        let from = self.tokens.partition_point(|token| token.span.start < number.span.start);
        let mut following = self.tokens[from..].iter();
        following
            .find(|token| matches!(token.kind, Kind::Number(..)))
            .map_or("", |token| token.text)
    }

    fn number(&mut self, number: &Expr) {
        let text = String::from(self.text_of(number));
        let (digits, power, unit) = parts(&text);
        self.leaf("mn", digits);
        if !power.is_empty() {
            self.leaf("mo", "×");
            self.element("msup", "", |printer| {
                printer.leaf("mn", "10");
                printer.element("mrow", "", |printer| {
                    if power.starts_with('-') {
                        printer.leaf("mo", "−");
                    }
                    printer.leaf("mn", power.trim_start_matches(['-', '+']));
                });
            });
        }
        match unit {
            "" => {}
            "/s" => self.leaf("mtext", "/s"),
            _ => self.leaf("mtext", &format!("\u{a0}{unit}")),
        }
    }

    /// A name, whose letter has what follows it as an index: `w_max`, `beta2`.
    fn name(&mut self, name: &str) {
        let end = name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(name.len());
        let (word, rest) = name.split_at(end);
        let greek = GREEK.iter().find(|(known, _)| *known == word).map(|(_, letter)| *letter);
        let letter = greek.or_else(|| (word.len() == 1).then_some(word));
        let index = rest.strip_prefix('_').unwrap_or(rest);
        match letter {
            Some(letter) if rest.is_empty() => self.leaf("mi", letter),
            Some(letter)
                if index.chars().all(|c| c.is_ascii_alphanumeric()) && !index.is_empty() =>
            {
                self.element("msub", "", |printer| {
                    printer.leaf("mi", letter);
                    printer.leaf("mi", index);
                });
            }
            _ => self.leaf("mi", name),
        }
    }
}

/// The digits of a number, its power of ten and its unit.
fn parts(text: &str) -> (&str, &str, &str) {
    let (number, unit) = split_unit(text);
    let (digits, power) = number.split_once(['e', 'E']).unwrap_or((number, ""));
    (digits, power, unit.trim_start())
}
