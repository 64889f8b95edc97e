//! The words of a text, and its indentation as in Python.

use crate::Diagnostic;
use crate::unit::Unit;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use winnow::ascii::digit1;
use winnow::combinator::{alt, delimited, not, opt, preceded, terminated};
use winnow::error::EmptyError;
use winnow::prelude::*;
use winnow::stream::{Location, TokenSlice};
use winnow::token::{one_of, take_while};

/// The most bytes of a text.
pub const MAX_TEXT: usize = 1 << 16;
/// The most bytes of a name.
pub(crate) const MAX_NAME: usize = 64;
/// The most levels of indentation.
pub(crate) const MAX_INDENTS: usize = 8;
/// The most operators and brackets of a statement: they bound the depth of recursion.
pub(crate) const MAX_OPERATORS: usize = 64;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A name or a keyword.
    Name,
    /// A number in seconds or per second, if it has a unit.
    Number(f64, Unit),
    /// A text in double quotes.
    Text,
    /// An operator or a bracket.
    Symbol,
    /// From `#` to the end of the line, perhaps without words before it.
    Comment { alone: bool },
    /// The end of a statement or of a heading.
    Newline,
    /// A deeper block begins.
    Indent,
    /// A block ends.
    Dedent,
    /// The text ends.
    End,
}

/// A word of the text.
#[derive(Clone, Debug)]
pub(crate) struct Token<'t> {
    pub(crate) kind: Kind,
    pub(crate) text: &'t str,
    pub(crate) span: Range<usize>,
}

impl Location for Token<'_> {
    fn previous_token_end(&self) -> usize {
        self.span.end
    }

    fn current_token_start(&self) -> usize {
        self.span.start
    }
}

/// The tokens that a parser reads.
pub(crate) type Tokens<'t> = TokenSlice<'t, Token<'t>>;

/// The tokens of `text`, with its comments.
///
/// # Errors
/// The first fault.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Diagnostic> {
    if text.len() > MAX_TEXT {
        let message = format!("a law has at most {MAX_TEXT} bytes, this text {}", text.len());
        return Err(Diagnostic::error(0..0, message));
    }
    let mut tokens = Vec::new();
    let (mut indents, mut brackets, mut operators) = (vec![0], Vec::new(), 0);
    // Comments of their own lines, which belong to the block of the line after them.
    let mut comments = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let line = line.trim_end_matches(['\n', '\r']);
        let rest = line.trim_start_matches(' ');
        let indent = line.len() - rest.len();
        let blank = rest.is_empty() || rest.starts_with('#');
        if rest.starts_with('\t') {
            let span = start + indent..start + indent + 1;
            return Err(Diagnostic::error(span, "a line is indented by blanks, not by tabs"));
        }
        if !blank && brackets.is_empty() {
            operators = 0;
            indentation(&mut tokens, &mut indents, indent, start)?;
            tokens.append(&mut comments);
        }
        let mut input = rest;
        loop {
            let _ = blanks(&mut input);
            if input.is_empty() {
                break;
            }
            let from = start + line.len() - input.len();
            let before = input;
            let Ok(mut kind) = word.parse_next(&mut input) else {
                return Err(no_word(before, from));
            };
            if let Kind::Comment { alone } = &mut kind {
                *alone = blank;
            }
            let word = &before[..before.len() - input.len()];
            match word {
                "(" | "[" | "{" => brackets.push(from),
                ")" | "]" | "}" => {
                    brackets.pop();
                }
                _ => {}
            }
            let span = from..from + word.len();
            if kind == Kind::Name && word.len() > MAX_NAME {
                let message = format!("a name has at most {MAX_NAME} letters");
                return Err(Diagnostic::error(span, message));
            }
            let keyword = matches!(word, "and" | "or" | "not" | "is" | "if");
            let symbol = kind == Kind::Symbol && !matches!(word, ")" | "]" | "}" | ",");
            operators += usize::from(keyword || symbol);
            if operators > MAX_OPERATORS {
                let message =
                    format!("a statement has at most {MAX_OPERATORS} operators and brackets");
                return Err(Diagnostic::error(span, message).help("divide it by \"let\""));
            }
            let line = if blank && brackets.is_empty() { &mut comments } else { &mut tokens };
            line.push(Token { kind, text: word, span });
        }
        if !blank && brackets.is_empty() {
            let end = start + line.len();
            tokens.push(Token { kind: Kind::Newline, text: "", span: end..end });
        }
    }
    if let Some(open) = brackets.pop() {
        return Err(Diagnostic::error(open..open + 1, "this bracket is not closed"));
    }
    for _ in 1..indents.len() {
        tokens.push(Token { kind: Kind::Dedent, text: "", span: at..at });
    }
    tokens.append(&mut comments);
    tokens.push(Token { kind: Kind::End, text: "", span: at..at });
    Ok(tokens)
}

/// Removes the comments, which the grammar does not know.
pub(crate) fn remove_comments(tokens: &mut Vec<Token<'_>>) {
    tokens.retain(|token| !matches!(token.kind, Kind::Comment { .. }));
}

/// Begins or ends blocks where the indentation changes.
fn indentation(
    tokens: &mut Vec<Token<'_>>,
    indents: &mut Vec<usize>,
    indent: usize,
    start: usize,
) -> Result<(), Diagnostic> {
    let span = start..start + indent;
    let mut change = |kind| tokens.push(Token { kind, text: "", span: span.clone() });
    if indents.last().is_some_and(|last| indent > *last) {
        if indents.len() > MAX_INDENTS {
            let message = format!("a law has at most {MAX_INDENTS} levels of indentation");
            return Err(Diagnostic::error(span, message));
        }
        indents.push(indent);
        change(Kind::Indent);
        return Ok(());
    }
    while indents.last().is_some_and(|last| indent < *last) {
        indents.pop();
        change(Kind::Dedent);
    }
    if indents.last() == Some(&indent) {
        return Ok(());
    }
    Err(Diagnostic::error(span, "this line is indented as no line before it"))
}

fn no_word(rest: &str, from: usize) -> Diagnostic {
    let first = rest.chars().next().unwrap_or_default();
    let span = from..from + first.len_utf8();
    if first == '"' {
        let end = rest[1..].find('"').map_or(0, |end| end + 1);
        let mut inside = rest[..end].char_indices();
        if let Some((at, control)) = inside.find(|(_, c)| c.is_control()) {
            let span = from + at..from + at + control.len_utf8();
            return Diagnostic::error(span, "a text has no control characters");
        }
        return Diagnostic::error(span, "a text ends on its line, with a double quote");
    }
    if let Some(digits) = rest.strip_prefix('.')
        && digits.starts_with(|c: char| c.is_ascii_digit())
    {
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let error = Diagnostic::error(span, "a number begins with a digit");
        return error.help(format!("write 0.{}", &digits[..end]));
    }
    if first.is_ascii_digit() {
        let too_large = |number: &str| number.parse().is_ok_and(f64::is_infinite);
        if decimal(&mut { rest }).is_ok_and(too_large) {
            return Diagnostic::error(span, "this number is too large");
        }
        let error = Diagnostic::error(span, "a number ends before a letter, or has a unit");
        return error.help("units are ns, us, ms, s and /s");
    }
    let shown = if first.is_control() { '\u{fffd}' } else { first };
    let error = Diagnostic::error(span, format!("\"{shown}\" has no meaning in a law"));
    match first {
        '\'' => error.help("texts are in double quotes"),
        '×' | '·' => error.help("a product is written *"),
        '≤' | '≥' => error.help("write <= or >="),
        _ => error,
    }
}

fn blanks<'t>(input: &mut &'t str) -> Word<&'t str> {
    take_while(0.., ' ').parse_next(input)
}

type Word<T> = Result<T, EmptyError>;

fn word(input: &mut &str) -> Word<Kind> {
    alt((number, text, comment, name, symbol)).parse_next(input)
}

/// A number, perhaps with a unit: `1.5`, `1e-3`, `10 ms`, `5 /s`.
fn number(input: &mut &str) -> Word<Kind> {
    let decimal = decimal(input)?;
    let end = not(one_of(|c: char| c.is_alphanumeric() || c == '_' || c == '.'));
    let (unit, power) = opt(terminated(preceded(take_while(0.., ' '), unit), end))
        .parse_next(input)?
        .unwrap_or((Unit::PLAIN, 0));
    not(one_of(|c: char| c.is_alphanumeric() || c == '_' || c == '.')).parse_next(input)?;
    // The power of ten goes into the decimal: the result is rounded once.
    let (mantissa, exponent) = decimal.split_once(['e', 'E']).unwrap_or((decimal, "0"));
    let exponent: i32 = exponent.parse().map_err(|_| EmptyError)?;
    let scaled = format!("{mantissa}e{}", exponent.saturating_add(power));
    let value = scaled.parse().ok().filter(|value: &f64| value.is_finite()).ok_or(EmptyError)?;
    Ok(Kind::Number(value, unit))
}

/// A number without its unit.
fn decimal<'t>(input: &mut &'t str) -> Word<&'t str> {
    let fraction = opt(('.', digit1));
    let exponent = opt((one_of(['e', 'E']), opt(one_of(['+', '-'])), digit1));
    (digit1, fraction, exponent).take().parse_next(input)
}

/// A unit, and the power of ten of its size in seconds or per second.
fn unit(input: &mut &str) -> Word<(Unit, i32)> {
    alt((
        "ns".value((Unit::SECONDS, -9)),
        "us".value((Unit::SECONDS, -6)),
        "ms".value((Unit::SECONDS, -3)),
        "s".value((Unit::SECONDS, 0)),
        "/s".value((Unit::PER_SECOND, 0)),
    ))
    .parse_next(input)
}

fn text(input: &mut &str) -> Word<Kind> {
    let inner = take_while(0.., |c: char| c != '"' && !c.is_control());
    delimited('"', inner, '"').value(Kind::Text).parse_next(input)
}

fn comment(input: &mut &str) -> Word<Kind> {
    let rest = take_while(0.., |c: char| !c.is_control() || c == '\t');
    ('#', rest).value(Kind::Comment { alone: false }).parse_next(input)
}

/// A name; the field of a record is one name, such as `round.lost`.
fn name(input: &mut &str) -> Word<Kind> {
    let part = || {
        (
            one_of(|c: char| c.is_ascii_alphabetic() || c == '_'),
            take_while(0.., |c: char| c.is_ascii_alphanumeric() || c == '_'),
        )
    };
    (part(), opt(('.', part(), opt(('.', part()))))).value(Kind::Name).parse_next(input)
}

fn symbol(input: &mut &str) -> Word<Kind> {
    let two = alt(("<=", ">=", "==", "!=", "**"));
    let one =
        one_of(['+', '-', '*', '/', '^', '<', '>', '=', ',', ':', '(', ')', '[', ']', '{', '}']);
    alt((two.void(), one.void())).value(Kind::Symbol).parse_next(input)
}
