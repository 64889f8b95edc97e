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
    alt, cut_err, delimited, fail, opt, peek, preceded, repeat, repeat_till, separated, terminated,
};
use winnow::error::{ModalError, ParserError};
use winnow::prelude::*;
use winnow::token::any;

/// The most branches that begin with `elif`: each is nested in the one before.
pub(crate) const MAX_BRANCHES: usize = 16;

/// What is expected after as many.
const NO_BRANCH: &str = "no other elif";

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
    Summary(String),
    Source(String),
    Deviation(String),
    /// The default of the machine's parameter.
    Pacing(Expr),
    Parameter(Parameter),
    /// Without a meaning it is not shown.
    State {
        name: Name,
        symbol: Option<Name>,
        initial: Expr,
        meaning: Option<String>,
    },
    History {
        name: Name,
        size: Expr,
    },
    Let {
        name: Name,
        value: Expr,
    },
    On {
        hook: Name,
        body: Vec<Statement>,
    },
}

/// A parameter.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: Name,
    pub(crate) symbol: Option<String>,
    pub(crate) default: Expr,
    /// What it counts: `packets`, or `bits` in a second.
    pub(crate) counts: Option<&'static str>,
    pub(crate) allowed: Option<Allowed>,
    pub(crate) meaning: String,
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
    Let {
        name: Name,
        value: Expr,
    },
    Assign {
        name: Name,
        value: Expr,
    },
    /// A call such as `peaks.add(w)`, by its words.
    Add {
        name: Name,
        value: Expr,
    },
    Return {
        value: Option<Expr>,
        span: Range<usize>,
    },
    If {
        condition: Expr,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    /// As often as `count` says, at most as often as the number `most`.
    Repeat {
        count: Expr,
        most: Expr,
        body: Vec<Statement>,
    },
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
    Each(Box<Each>),
}

/// A function of `value` for each `name` of a history.
#[derive(Clone, Debug)]
pub(crate) struct Each {
    pub(crate) function: Name,
    pub(crate) value: Expr,
    pub(crate) name: Name,
    pub(crate) history: Name,
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

impl Binary {
    /// How strongly it binds its operands.
    pub(crate) const fn binds(self) -> u8 {
        match self {
            Binary::Or => 2,
            Binary::And => 4,
            Binary::Is
            | Binary::IsNot
            | Binary::Less
            | Binary::AtMost
            | Binary::Greater
            | Binary::AtLeast
            | Binary::Equal
            | Binary::NotEqual => COMPARISON,
            Binary::Add | Binary::Subtract => 10,
            Binary::Multiply | Binary::Divide => 12,
            Binary::Power => 16,
        }
    }
}

/// Where a parser failed, and what it expected there.
#[derive(Clone, Copy, Debug)]
struct Fail {
    /// How many tokens are left.
    left: usize,
    expected: Option<&'static str>,
    fatal: bool,
}

impl ParserError<Tokens<'_>> for Fail {
    type Inner = Fail;

    fn from_input(input: &Tokens<'_>) -> Self {
        Fail { left: input.eof_offset(), expected: None, fatal: false }
    }

    /// The failure that is further in the text.
    fn or(self, other: Self) -> Self {
        if self.left < other.left { self } else { other }
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
            let untouched = failed.left >= here.left && failed.expected.is_none();
            if untouched { Fail { expected: Some(expected), ..failed } } else { failed }
        })
    }
}

fn kind<'t>(is: impl Fn(Kind) -> bool) -> impl Parser<Tokens<'t>, Token<'t>, Fail> {
    any.verify(move |token: &Token<'_>| is(token.kind)).map(|token: &Token<'t>| token.clone())
}

/// The keyword, operator or bracket `text`; its end.
fn word<'t>(text: &'static str) -> impl Parser<Tokens<'t>, usize, Fail> {
    any.verify(move |token: &Token<'_>| {
        matches!(token.kind, Kind::Name | Kind::Symbol) && token.text == text
    })
    .map(|token: &Token<'_>| token.span.end)
}

/// A text of words that is expected in any case.
fn must<'t>(text: &'static str) -> impl Parser<Tokens<'t>, usize, Fail> {
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
    "summary",
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
    file_items.parse_next(&mut Tokens::new(tokens)).map_err(|Fail { left, expected, .. }| {
        // Every text ends with a token of its own, which no item consumes.
        let at = tokens.len() - left;
        let Some(token) = tokens.get(at) else {
            return Diagnostic::error(0..0, "this is no law");
        };
        let before = at.checked_sub(1).and_then(|before| tokens.get(before)).unwrap_or(token);
        // A statement that begins with such a word, which is else a name.
        if matches!(before.text, "for" | "while") && expected == Some("=") {
            return Diagnostic::error(before.span.clone(), "a law has no such loop")
                .help("write repeat n at most 30, or sum(x for x in history)");
        }
        if expected == Some(NO_BRANCH) {
            let error = format!("an \"if\" has at most {MAX_BRANCHES} \"elif\"");
            return Diagnostic::error(token.span.clone(), error);
        }
        let found = match token.kind {
            Kind::Newline => "the end of the line",
            Kind::Indent => "a deeper indentation",
            Kind::Dedent => "the end of the block",
            Kind::End => "the end of the text",
            _ => token.text,
        };
        let error = match expected {
            // Words of the language are quoted, descriptions are not.
            Some(word) if !word.contains(' ') => format!("expected \"{word}\", found {found}"),
            Some(expected) => format!("expected {expected}, found {found}"),
            None => format!("{found} is not expected here"),
        };
        let error = Diagnostic::error(token.span.clone(), error);
        match found {
            "+" | "-" | "*" | "/" | "^" if expected == Some("=") => {
                let name = before.text;
                let line = tokens[at + 1..].iter().take_while(|next| next.kind != Kind::Newline);
                let mut words: Vec<&str> = line.map(|next| next.text).collect();
                match words.as_mut_slice() {
                    ["=", value] => error.help(format!("write {name} = {name} {found} {value}")),
                    ["=", ..] => {
                        let value = words[1..].join(" ");
                        error.help(format!("write {name} = {name} {found} ({value})"))
                    }
                    _ => error,
                }
            }
            "**" => error.help("a power is written ^"),
            "bit" | "kbit" | "mbit" | "gbit" => {
                error.help("rates are in packets per second: write 2e6 /s / (8 * packet)")
            }
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
    const ITEMS: &str = "summary, source, pacing, parameter, state, history, let, on or deviation";
    let quoted = || cut_err(expect("a text in double quotes", text));
    let named = || cut_err(expect("a name", name));
    expect(
        ITEMS,
        alt((
            delimited(word("summary"), quoted(), cut_err(newline)).map(Item::Summary),
            delimited(word("source"), quoted(), cut_err(newline)).map(Item::Source),
            delimited(word("deviation"), quoted(), cut_err(newline)).map(Item::Deviation),
            delimited(word("pacing"), value, cut_err(newline)).map(Item::Pacing),
            (
                preceded(word("parameter"), named()),
                opt(text),
                preceded(must("="), value),
                opt(alt((word("packets").value("packets"), word("bits").value("bits")))),
                opt(preceded(word("in"), cut_err(allowed))),
                terminated(
                    cut_err(expect("in and a range, or what it means in double quotes", text)),
                    cut_err(newline),
                ),
            )
                .map(|(name, symbol, default, counts, allowed, meaning)| {
                    Item::Parameter(Parameter { name, symbol, default, counts, allowed, meaning })
                }),
            (
                preceded(word("state"), named()),
                opt(text.with_span()),
                preceded(must("="), value),
                terminated(opt(text), cut_err(newline)),
            )
                .map(|(name, symbol, initial, meaning)| {
                    let symbol = symbol.map(|(text, span)| Name { text, span });
                    Item::State { name, symbol, initial, meaning }
                }),
            (preceded(word("history"), named()), delimited(must("of"), value, cut_err(newline)))
                .map(|(name, size)| Item::History { name, size }),
            (preceded(word("let"), named()), assigned)
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
    const STATEMENTS: &str = "a statement: let, return, if, repeat, pass or an assignment";
    // A choice by the first word needs less of the stack than one of parsers.
    let first = peek(any).parse_next(input)?;
    match first.text {
        "let" => {
            let name = preceded(any, cut_err(expect("a name", name))).parse_next(input)?;
            Ok(Statement::Let { name, value: assigned(input)? })
        }
        "return" => {
            let value = delimited(any, opt(expression_of), cut_err(newline)).parse_next(input)?;
            Ok(Statement::Return { value, span: first.span.clone() })
        }
        "if" => {
            any.parse_next(input)?;
            branch(input)
        }
        "repeat" if input.get(1).is_some_and(|next| next.text != "=") => {
            let count = preceded(any, value).parse_next(input)?;
            (must("at"), must("most")).parse_next(input)?;
            Ok(Statement::Repeat { count, most: value(input)?, body: block(input)? })
        }
        "pass" => (any, cut_err(newline)).value(Statement::Pass).parse_next(input),
        _ => {
            let name = expect(STATEMENTS, name).parse_next(input)?;
            if opt(word("(")).parse_next(input)?.is_some() {
                let value = terminated(value, must(")")).parse_next(input)?;
                cut_err(newline).parse_next(input)?;
                return Ok(Statement::Add { name, value });
            }
            Ok(Statement::Assign { name, value: assigned(input)? })
        }
    }
}

/// What a name is to be.
fn assigned(input: &mut Tokens<'_>) -> Parsed<Expr> {
    delimited(must("="), value, cut_err(newline)).parse_next(input)
}

/// A condition, its block, and what else happens.
fn branch(input: &mut Tokens<'_>) -> Parsed<Statement> {
    let mut branches = Vec::from([(value, block).parse_next(input)?]);
    let more: Vec<_> =
        repeat(0..=MAX_BRANCHES, preceded(word("elif"), (value, block))).parse_next(input)?;
    branches.extend(more);
    if branches.len() > MAX_BRANCHES && input.first().is_some_and(|next| next.text == "elif") {
        return Err(Fail { expected: Some(NO_BRANCH), fatal: true, ..Fail::from_input(input) });
    }
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
    expression_of(input).map_err(Fail::cut)
}

fn expression_of(input: &mut Tokens<'_>) -> Parsed<Expr> {
    at_level(0, input)
}

/// An expression of operators that bind at least as strongly as `level`. Brackets nest these
/// functions, which therefore need little of the stack: no combinators.
fn at_level(level: u8, input: &mut Tokens<'_>) -> Parsed<Expr> {
    let first = peek(any).parse_next(input)?;
    // The operators that may follow bind at most as strongly as the one before.
    let (mut left, mut most) = match first.text {
        "-" => (sign(ExprKind::Minus, 14, first, input)?, 14),
        "not" => (sign(ExprKind::Not, 6, first, input)?, 6),
        _ => (operand(first, input)?, u8::MAX),
    };
    while let Some(token) = input.first() {
        if token.text == "if" && level <= 1 {
            return conditional(left, input);
        }
        let Some(mut operator) = infix(token.text) else { break };
        let power = operator.binds();
        if power < level || power > most {
            break;
        }
        any.parse_next(input)?;
        if operator == Binary::Is && opt(word("not")).parse_next(input)?.is_some() {
            operator = Binary::IsNot;
        }
        // Powers associate to the right, comparisons not at all.
        let right = if operator == Binary::Power { power } else { power + 1 };
        let right = at_level(right, input).map_err(Fail::cut)?;
        most = if power == COMPARISON { power - 1 } else { power };
        let span = left.span.start..right.span.end;
        let kind = ExprKind::Binary(operator, Box::new(left), Box::new(right));
        left = Expr { kind, span };
    }
    Ok(left)
}

/// How strongly comparisons bind.
const COMPARISON: u8 = 8;

/// An operator between two values.
fn infix(text: &str) -> Option<Binary> {
    Some(match text {
        "or" => Binary::Or,
        "and" => Binary::And,
        "is" => Binary::Is,
        "<" => Binary::Less,
        "<=" => Binary::AtMost,
        ">" => Binary::Greater,
        ">=" => Binary::AtLeast,
        "==" => Binary::Equal,
        "!=" => Binary::NotEqual,
        "+" => Binary::Add,
        "-" => Binary::Subtract,
        "*" => Binary::Multiply,
        "/" => Binary::Divide,
        "^" => Binary::Power,
        _ => return None,
    })
}

/// The operator `first` and its operand.
fn sign(
    kind: fn(Box<Expr>) -> ExprKind,
    power: u8,
    first: &Token<'_>,
    input: &mut Tokens<'_>,
) -> Parsed<Expr> {
    any.parse_next(input)?;
    let of = at_level(power, input).map_err(Fail::cut)?;
    let span = first.span.start..of.span.end;
    Ok(Expr { kind: kind(Box::new(of)), span })
}

/// From `if` on: the condition, and the value if it is false.
fn conditional(then: Expr, input: &mut Tokens<'_>) -> Parsed<Expr> {
    any.parse_next(input)?;
    let condition = at_level(2, input).map_err(Fail::cut)?;
    must("else").parse_next(input)?;
    let otherwise = value(input)?;
    let span = then.span.start..otherwise.span.end;
    let (then, condition) = (Box::new(then), Box::new(condition));
    let kind = ExprKind::If { condition, then, otherwise: Box::new(otherwise) };
    Ok(Expr { kind, span })
}

/// A number, a name, a call or an expression in brackets.
fn operand(first: &Token<'_>, input: &mut Tokens<'_>) -> Parsed<Expr> {
    let kind = match (first.kind, first.text) {
        (Kind::Number(value, unit), _) => ExprKind::Number(value, unit),
        (Kind::Name, "true" | "on") => ExprKind::Truth(true),
        (Kind::Name, "false" | "off") => ExprKind::Truth(false),
        (Kind::Name, "none") => ExprKind::None,
        (Kind::Name, name) if !KEYWORDS.contains(&name) => ExprKind::Name(name.to_owned()),
        (Kind::Symbol, "(") => {
            any.parse_next(input)?;
            let inner = value(input)?;
            let end = must(")").parse_next(input)?;
            return Ok(Expr { kind: inner.kind, span: first.span.start..end });
        }
        _ => return expect("a value", fail).parse_next(input),
    };
    any.parse_next(input)?;
    match kind {
        ExprKind::Name(text) if opt(word("(")).parse_next(input)?.is_some() => {
            let name = Name { text, span: first.span.clone() };
            call(name, input)
        }
        kind => Ok(Expr { kind, span: first.span.clone() }),
    }
}

/// The arguments of a function, after the opening bracket.
fn call(name: Name, input: &mut Tokens<'_>) -> Parsed<Expr> {
    if let Some(end) = opt(word(")")).parse_next(input)? {
        let span = name.span.start..end;
        return Ok(Expr { kind: ExprKind::Call(name, Vec::new()), span });
    }
    let first = value(input)?;
    if opt(word("for")).parse_next(input)?.is_some() {
        let each = cut_err(expect("a name", self::name)).parse_next(input)?;
        must("in").parse_next(input)?;
        let history = cut_err(expect("the name of a history", self::name)).parse_next(input)?;
        let end = must(")").parse_next(input)?;
        let span = name.span.start..end;
        let each = Each { function: name, value: first, name: each, history };
        return Ok(Expr { kind: ExprKind::Each(Box::new(each)), span });
    }
    let mut arguments = Vec::from([first]);
    while opt(word(",")).parse_next(input)?.is_some() {
        arguments.push(value(input)?);
    }
    let end = must(")").parse_next(input)?;
    let start = name.span.start;
    Ok(Expr { kind: ExprKind::Call(name, arguments), span: start..end })
}
