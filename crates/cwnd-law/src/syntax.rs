//! The grammar: a file, its items, statements and expressions.

use crate::Diagnostic;
use crate::token::{Kind, Token, Tokens};
use crate::unit::Unit;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use winnow::combinator::{
    Infix, Postfix, Prefix, alt, cut_err, delimited, dispatch, empty, expression, fail, opt,
    preceded, repeat, repeat_till, separated, terminated,
};
use winnow::error::{ModalError, ParserError};
use winnow::prelude::*;
use winnow::token::any;

/// The most branches that begin with `elif`: each is nested in the one before.
pub(crate) const MAX_BRANCHES: usize = 16;

/// A name where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
}

/// A law as it is written.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) rate: bool,
    pub(crate) name: Name,
    pub(crate) title: String,
    pub(crate) items: Vec<Item>,
}

/// An item of a file.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Source(String),
    Deviation(String),
    Parameter { name: Name, default: Expr, allowed: Option<Allowed>, meaning: String },
    State { name: Name, initial: Expr, meaning: String },
    Let { name: Name, value: Expr },
    On { hook: Name, body: Vec<Statement> },
}

/// What a parameter may be.
#[derive(Clone, Debug)]
pub(crate) enum Allowed {
    /// An interval, and whether it excludes its ends.
    Interval {
        min: Expr,
        max: Expr,
        min_excluded: bool,
        max_excluded: bool,
    },
    Choices(Vec<Name>),
}

/// A statement of a hook.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Let { name: Name, value: Expr },
    Assign { name: Name, value: Expr },
    Return { value: Option<Expr>, span: Range<usize> },
    If { condition: Expr, then: Vec<Statement>, otherwise: Vec<Statement> },
    Pass,
}

/// An expression where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Number(f64, Unit),
    Truth(bool),
    None,
    Name(String),
    Minus(Box<Expr>),
    Not(Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    If { condition: Box<Expr>, then: Box<Expr>, otherwise: Box<Expr> },
    Call(Name, Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    Is,
    IsNot,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    NotEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

/// Where a parser failed, and what it expected there.
#[derive(Clone, Debug)]
struct Fail {
    at: Range<usize>,
    found: String,
    expected: Option<&'static str>,
    fatal: bool,
}

impl ParserError<Tokens<'_>> for Fail {
    type Inner = Fail;

    fn from_input(input: &Tokens<'_>) -> Self {
        // Every text ends with a token of its own, which no parser consumes.
        let Some(token) = input.first() else {
            return Fail { at: 0..0, found: String::new(), expected: None, fatal: false };
        };
        let found = match token.kind {
            Kind::Newline => "the end of the line".to_owned(),
            Kind::Indent => "a deeper indentation".to_owned(),
            Kind::Dedent => "the end of the block".to_owned(),
            Kind::End => "the end of the text".to_owned(),
            _ => token.text.to_owned(),
        };
        Fail { at: token.span.clone(), found, expected: None, fatal: false }
    }

    /// The failure that is further in the text.
    fn or(self, other: Self) -> Self {
        if self.at.start > other.at.start { self } else { other }
    }

    fn is_backtrack(&self) -> bool {
        !self.fatal
    }

    fn into_inner(self) -> Result<Fail, Self> {
        Ok(self)
    }
}

impl ModalError for Fail {
    fn cut(self) -> Self {
        Fail { fatal: true, ..self }
    }

    fn backtrack(self) -> Self {
        Fail { fatal: false, ..self }
    }
}

type Parsed<T> = Result<T, Fail>;

/// Names what stands at the position where `parser` fails, unless it has read something.
fn expect<'t, T>(
    expected: &'static str,
    mut parser: impl Parser<Tokens<'t>, T, Fail>,
) -> impl Parser<Tokens<'t>, T, Fail> {
    move |input: &mut Tokens<'t>| {
        let here = Fail::from_input(input);
        parser.parse_next(input).map_err(|failed| {
            let untouched = failed.at.start <= here.at.start && failed.expected.is_none();
            let fatal = failed.fatal;
            if untouched { Fail { expected: Some(expected), fatal, ..here } } else { failed }
        })
    }
}

fn kind<'t>(is: impl Fn(Kind) -> bool) -> impl Parser<Tokens<'t>, Token<'t>, Fail> {
    any.verify(move |token: &Token<'_>| is(token.kind)).map(|token: &Token<'t>| token.clone())
}

/// The keyword, operator or bracket `text`.
fn word<'t>(text: &'static str) -> impl Parser<Tokens<'t>, (), Fail> {
    any.verify(move |token: &Token<'_>| {
        matches!(token.kind, Kind::Name | Kind::Symbol) && token.text == text
    })
    .void()
}

/// A text of words that is expected in any case.
fn must<'t>(text: &'static str) -> impl Parser<Tokens<'t>, (), Fail> {
    cut_err(expect(text, word(text)))
}

pub(crate) const KEYWORDS: &[&str] = &[
    "and",
    "deviation",
    "elif",
    "else",
    "false",
    "if",
    "in",
    "is",
    "law",
    "let",
    "none",
    "not",
    "off",
    "on",
    "or",
    "parameter",
    "pass",
    "return",
    "source",
    "state",
    "true",
];

fn name(input: &mut Tokens<'_>) -> Parsed<Name> {
    kind(|kind| kind == Kind::Name)
        .verify(|token: &Token<'_>| !KEYWORDS.contains(&token.text))
        .map(|token| Name { text: token.text.to_owned(), span: token.span })
        .parse_next(input)
}

fn text(input: &mut Tokens<'_>) -> Parsed<String> {
    kind(|kind| kind == Kind::Text)
        .map(|token| token.text.trim_matches('"').to_owned())
        .parse_next(input)
}

fn newline(input: &mut Tokens<'_>) -> Parsed<()> {
    expect("the end of the line", kind(|kind| kind == Kind::Newline)).void().parse_next(input)
}

/// Parses what `tokens` say, without comments.
///
/// # Errors
/// The first fault.
pub(crate) fn file<'t>(tokens: &'t [Token<'t>]) -> Result<File, Diagnostic> {
    file_items.parse_next(&mut Tokens::new(tokens)).map_err(|fail| {
        let Fail { at, found, expected, .. } = fail;
        let error = match expected {
            // Words of the language are quoted, descriptions are not.
            Some(word) if !word.contains(' ') => format!("expected \"{word}\", found {found}"),
            Some(expected) => format!("expected {expected}, found {found}"),
            None => format!("{found} is not expected here"),
        };
        let error = Diagnostic::error(at, error);
        match found.as_str() {
            "**" => error.help("a power is written ^"),
            "==" | "!=" | "<" | ">" | "<=" | ">=" => {
                error.help("comparisons are joined by \"and\" and \"or\"")
            }
            _ => error,
        }
    })
}

fn file_items(input: &mut Tokens<'_>) -> Parsed<File> {
    let rate = cut_err(expect(
        "\"law\" or \"rate law\"",
        alt((word("law").value(false), (word("rate"), must("law")).value(true))),
    ))
    .parse_next(input)?;
    let name = cut_err(expect("the name of the law", name)).parse_next(input)?;
    let title = cut_err(expect("its title in double quotes", text)).parse_next(input)?;
    cut_err(newline).parse_next(input)?;
    let end = kind(|kind| kind == Kind::End);
    let (items, _) = cut_err(repeat_till(0.., item, end)).parse_next(input)?;
    Ok(File { rate, name, title, items })
}

fn item(input: &mut Tokens<'_>) -> Parsed<Item> {
    const ITEMS: &str = "source, parameter, state, let, on or deviation";
    let quoted = || cut_err(expect("a text in double quotes", text));
    let named = || cut_err(expect("a name", name));
    expect(
        ITEMS,
        alt((
            delimited(word("source"), quoted(), cut_err(newline)).map(Item::Source),
            delimited(word("deviation"), quoted(), cut_err(newline)).map(Item::Deviation),
            (
                preceded(word("parameter"), named()),
                preceded(must("="), value),
                opt(preceded(word("in"), cut_err(allowed))),
                terminated(
                    cut_err(expect("in and a range, or what it means in double quotes", text)),
                    cut_err(newline),
                ),
            )
                .map(|(name, default, allowed, meaning)| Item::Parameter {
                    name,
                    default,
                    allowed,
                    meaning,
                }),
            (
                preceded(word("state"), named()),
                preceded(must("="), value),
                terminated(
                    cut_err(expect("what it means in double quotes", text)),
                    cut_err(newline),
                ),
            )
                .map(|(name, initial, meaning)| Item::State { name, initial, meaning }),
            (preceded(word("let"), named()), delimited(must("="), value, cut_err(newline)))
                .map(|(name, value)| Item::Let { name, value }),
            (preceded(word("on"), cut_err(expect("the name of a hook", name))), block)
                .map(|(hook, body)| Item::On { hook, body }),
        )),
    )
    .parse_next(input)
}

fn allowed(input: &mut Tokens<'_>) -> Parsed<Allowed> {
    let open = || alt((word("(").value(true), word("[").value(false)));
    let close = || alt((word(")").value(true), word("]").value(false)));
    let choice = cut_err(expect("a name", name));
    expect(
        "an interval such as (0, 1] or choices such as {a, b}",
        alt((
            delimited(word("{"), separated(1.., choice, word(",")), must("}"))
                .map(Allowed::Choices),
            (
                open(),
                value,
                preceded(must(","), value),
                cut_err(expect("a closing bracket", close())),
            )
                .map(|(min_excluded, min, max, max_excluded)| Allowed::Interval {
                    min,
                    max,
                    min_excluded,
                    max_excluded,
                }),
        )),
    )
    .parse_next(input)
}

/// A colon, and statements that are indented more deeply.
fn block(input: &mut Tokens<'_>) -> Parsed<Vec<Statement>> {
    (must(":"), cut_err(newline)).parse_next(input)?;
    cut_err(expect("statements, indented", kind(|kind| kind == Kind::Indent))).parse_next(input)?;
    let dedent = kind(|kind| kind == Kind::Dedent);
    let (body, _) = cut_err(repeat_till(1.., statement, dedent)).parse_next(input)?;
    Ok(body)
}

fn statement(input: &mut Tokens<'_>) -> Parsed<Statement> {
    let here = input.first().map_or(0..0, |token| token.span.clone());
    expect(
        "a statement: let, return, if, pass or an assignment",
        alt((
            (
                preceded(word("let"), cut_err(expect("a name", name))),
                delimited(must("="), value, cut_err(newline)),
            )
                .map(|(name, value)| Statement::Let { name, value }),
            delimited(word("return"), opt(expression_of), cut_err(newline))
                .map(|value| Statement::Return { value, span: here.clone() }),
            preceded(word("if"), branch),
            (word("pass"), cut_err(newline)).value(Statement::Pass),
            (name, delimited(must("="), value, cut_err(newline)))
                .map(|(name, value)| Statement::Assign { name, value }),
        )),
    )
    .parse_next(input)
}

/// A condition, its block, and what else happens.
fn branch(input: &mut Tokens<'_>) -> Parsed<Statement> {
    let mut branches = Vec::from([(value, block).parse_next(input)?]);
    let more: Vec<_> =
        repeat(0..=MAX_BRANCHES, preceded(word("elif"), (value, block))).parse_next(input)?;
    branches.extend(more);
    let otherwise = opt(preceded(word("else"), block)).parse_next(input)?;
    let last = otherwise.unwrap_or_default();
    let nested = branches.into_iter().rev().fold(last, |otherwise, (condition, then)| {
        alloc::vec![Statement::If { condition, then, otherwise }]
    });
    // There is at least one branch.
    Ok(nested.into_iter().next().unwrap_or(Statement::Pass))
}

/// An expression that is expected in any case.
fn value(input: &mut Tokens<'_>) -> Parsed<Expr> {
    cut_err(expect("a value", expression_of)).parse_next(input)
}

fn expression_of(input: &mut Tokens<'_>) -> Parsed<Expr> {
    at_level(0, input)
}

/// An expression of operators that bind at least as strongly as `level`.
fn at_level(level: i64, input: &mut Tokens<'_>) -> Parsed<Expr> {
    type Stream<'t> = Tokens<'t>;
    fn join(operator: Binary, a: Expr, b: Expr) -> Parsed<Expr> {
        let span = a.span.start..b.span.end;
        Ok(Expr { kind: ExprKind::Binary(operator, Box::new(a), Box::new(b)), span })
    }
    fn sign(kind: fn(Box<Expr>) -> ExprKind, start: usize, of: Expr) -> Expr {
        let span = start.min(of.span.start)..of.span.end;
        Expr { kind: kind(Box::new(of)), span }
    }
    /// The start of the operator just before its operand: a sign has one character or three.
    fn conditional(input: &mut Stream<'_>, then: Expr) -> Parsed<Expr> {
        let condition = cut_err(expect("a condition", |input: &mut Stream<'_>| at_level(2, input)))
            .parse_next(input)?;
        must("else").parse_next(input)?;
        let otherwise = value(input)?;
        let span = then.span.start..otherwise.span.end;
        let (then, condition) = (Box::new(then), Box::new(condition));
        let kind = ExprKind::If { condition, then, otherwise: Box::new(otherwise) };
        Ok(Expr { kind, span })
    }
    let symbol = || {
        any.verify(|token: &Token<'_>| matches!(token.kind, Kind::Name | Kind::Symbol))
            .map(|token: &Token<'_>| token.text)
    };
    expression(operand)
        .current_precedence_level(level)
        .prefix(dispatch! {symbol();
            "-" => Prefix(14, |_: &mut Stream<'_>, a: Expr| {
                Ok(sign(ExprKind::Minus, a.span.start.saturating_sub(1), a))
            }),
            "not" => Prefix(6, |_: &mut Stream<'_>, a: Expr| {
                Ok(sign(ExprKind::Not, a.span.start.saturating_sub(4), a))
            }),
            _ => fail,
        })
        .postfix(dispatch! {symbol();
            "if" => Postfix(1, conditional),
            _ => fail,
        })
        .infix(dispatch! {symbol();
            "or" => Infix::Left(2, |_: &mut Stream<'_>, a, b| join(Binary::Or, a, b)),
            "and" => Infix::Left(4, |_: &mut Stream<'_>, a, b| join(Binary::And, a, b)),
            "is" => alt((
                word("not").value(Infix::Neither(8, |_: &mut Stream<'_>, a, b| join(Binary::IsNot, a, b))),
                empty.value(Infix::Neither(8, |_: &mut Stream<'_>, a, b| join(Binary::Is, a, b))),
            )),
            "<" => Infix::Neither(8, |_: &mut Stream<'_>, a, b| join(Binary::Less, a, b)),
            "<=" => Infix::Neither(8, |_: &mut Stream<'_>, a, b| join(Binary::AtMost, a, b)),
            ">" => Infix::Neither(8, |_: &mut Stream<'_>, a, b| join(Binary::Greater, a, b)),
            ">=" => Infix::Neither(8, |_: &mut Stream<'_>, a, b| join(Binary::AtLeast, a, b)),
            "==" => Infix::Neither(8, |_: &mut Stream<'_>, a, b| join(Binary::Equal, a, b)),
            "!=" => Infix::Neither(8, |_: &mut Stream<'_>, a, b| join(Binary::NotEqual, a, b)),
            "+" => Infix::Left(10, |_: &mut Stream<'_>, a, b| join(Binary::Add, a, b)),
            "-" => Infix::Left(10, |_: &mut Stream<'_>, a, b| join(Binary::Subtract, a, b)),
            "*" => Infix::Left(12, |_: &mut Stream<'_>, a, b| join(Binary::Multiply, a, b)),
            "/" => Infix::Left(12, |_: &mut Stream<'_>, a, b| join(Binary::Divide, a, b)),
            "^" => Infix::Right(16, |_: &mut Stream<'_>, a, b| join(Binary::Power, a, b)),
            _ => fail,
        })
        .parse_next(input)
}

/// A number, a name, a call or an expression in brackets.
fn operand(input: &mut Tokens<'_>) -> Parsed<Expr> {
    let start = input.first().map_or(0, |token| token.span.start);
    let number = kind(|kind| matches!(kind, Kind::Number(..))).map(|token| match token.kind {
        Kind::Number(value, unit) => ExprKind::Number(value, unit),
        _ => ExprKind::None,
    });
    let called =
        (name, opt(delimited(word("("), cut_err(separated(1.., value, word(","))), must(")"))))
            .map(|(name, arguments): (Name, Option<Vec<Expr>>)| match arguments {
                Some(arguments) => ExprKind::Call(name, arguments),
                None => ExprKind::Name(name.text),
            });
    let kind = expect(
        "a value",
        alt((
            number,
            alt((word("true"), word("on"))).value(ExprKind::Truth(true)),
            alt((word("false"), word("off"))).value(ExprKind::Truth(false)),
            word("none").value(ExprKind::None),
            delimited(word("("), value, must(")")).map(|inner| inner.kind),
            called,
        )),
    )
    .parse_next(input)?;
    let end = input.previous_tokens().next().map_or(start, |token| token.span.end);
    Ok(Expr { kind, span: start..end })
}
