//! The canonical form of a text.

use crate::Diagnostic;
use crate::token::{Kind, MAX_TEXT, Token};
use crate::unit::Unit;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The canonical form of the text of a law, which has these tokens.
///
/// # Errors
/// The canonical form is too long.
pub(crate) fn form(text: &str, tokens: &[Token<'_>]) -> Result<String, Diagnostic> {
    let mut printer = Printer::default();
    let (mut last_line, mut line, mut at) = (0, 0, 0);
    for (place, token) in tokens.iter().enumerate() {
        if !matches!(token.kind, Kind::Newline | Kind::Indent | Kind::Dedent | Kind::End) {
            line += text[at..token.span.start].matches('\n').count();
            at = token.span.start;
            if printer.at_start() && line > last_line + 1 {
                printer.blank_line();
            }
            last_line = line;
        }
        printer.token(tokens, place);
    }
    if printer.text.len() > MAX_TEXT {
        let message = format!("the canonical form has more than {MAX_TEXT} bytes");
        return Err(Diagnostic::error(0..0, message));
    }
    Ok(printer.text)
}

/// The lines of hooks and named expressions, without the comments before them.
pub(crate) fn equations(tokens: &[Token<'_>]) -> Vec<String> {
    let mut printer = Printer::default();
    let (mut equation, mut after) = (false, Kind::Newline);
    for (place, token) in tokens.iter().enumerate() {
        // A line that is not indented begins an item, or is a comment.
        if printer.depth == 0
            && matches!(after, Kind::Newline | Kind::Dedent)
            && matches!(token.kind, Kind::Name | Kind::Comment { .. })
        {
            equation = matches!(token.text, "on" | "let");
        }
        if equation || matches!(token.kind, Kind::Indent | Kind::Dedent) {
            printer.token(tokens, place);
        }
        if !matches!(token.kind, Kind::Comment { .. }) {
            after = token.kind;
        }
    }
    printer.text.lines().map(String::from).collect()
}

/// What identifies a law: its words without comments and texts.
pub(crate) fn hash(tokens: &[Token<'_>]) -> String {
    let mut printer = Printer::default();
    let mut words = tokens.to_vec();
    words.retain(|token| !matches!(token.kind, Kind::Comment { .. } | Kind::Text));
    (0..words.len()).for_each(|place| printer.token(&words, place));
    blake3::hash(printer.text.as_bytes()).to_hex()[..32].into()
}

/// Prints tokens.
#[derive(Default)]
struct Printer {
    text: String,
    depth: usize,
    /// Brackets that are open.
    brackets: usize,
    before: Option<Before>,
}

/// The last word of a line.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// A blank follows.
    Word,
    /// A value ends: an opening bracket is that of a call if it follows a name.
    Name,
    Value,
    /// No blank follows: an opening bracket or a sign.
    Open,
}

impl Printer {
    fn at_start(&self) -> bool {
        self.before.is_none()
    }

    fn blank_line(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// Prints the token at `place`.
    fn token(&mut self, tokens: &[Token<'_>], place: usize) {
        let token = &tokens[place];
        match token.kind {
            Kind::Indent => self.depth += 1,
            Kind::Dedent => self.depth -= 1,
            Kind::End => {}
            Kind::Newline => self.newline(),
            _ => {
                if is_fraction(tokens, place) || place > 0 && is_fraction(tokens, place - 1) {
                    self.before = Some(Before::Open);
                }
                self.word(token);
                if let Kind::Comment { alone } = token.kind
                    && (alone || self.brackets > 0)
                {
                    self.newline();
                }
            }
        }
    }

    fn newline(&mut self) {
        self.text.push('\n');
        self.before = None;
    }

    fn word(&mut self, token: &Token<'_>) {
        let (text, kind) = (token.text, token.kind);
        match self.before {
            None => {
                let depth = self.depth + usize::from(self.brackets > 0);
                (0..depth).for_each(|_| self.text.push_str("    "));
            }
            Some(_) if matches!(kind, Kind::Comment { .. }) => self.text.push_str("    "),
            Some(Before::Open) => {}
            Some(Before::Name) if text == "(" => {}
            Some(_) if matches!(text, ")" | "]" | "}" | "," | ":") => {}
            Some(_) => self.text.push(' '),
        }
        let (text, unit) = if let Kind::Number(..) = kind { split_unit(text) } else { (text, "") };
        self.text.push_str(text);
        if !unit.is_empty() {
            self.text.push(' ');
            self.text.push_str(unit.trim_start());
        }
        if kind == Kind::Symbol {
            match text {
                "(" | "[" | "{" => self.brackets += 1,
                ")" | "]" | "}" => self.brackets = self.brackets.saturating_sub(1),
                _ => {}
            }
        }
        let sign = text == "-" && !matches!(self.before, Some(Before::Name | Before::Value));
        let keyword = matches!(
            text,
            "if" | "elif" | "else" | "and" | "or" | "not" | "is" | "in" | "return" | "on"
        );
        self.before = Some(match kind {
            Kind::Name if keyword => Before::Word,
            Kind::Name => Before::Name,
            Kind::Number(..) | Kind::Text => Before::Value,
            Kind::Symbol if sign || matches!(text, "(" | "[" | "{") => Before::Open,
            Kind::Symbol if matches!(text, ")" | "]" | "}") => Before::Value,
            _ => Before::Word,
        });
    }
}

/// A number without its unit, and the unit.
pub(crate) fn split_unit(number: &str) -> (&str, &str) {
    number.split_at(number.rfind(|c: char| c.is_ascii_digit()).map_or(0, |last| last + 1))
}

/// Whether the token at `place` is the slash of a fraction of two numbers, such as `1/2`. In
/// `w / 1 / 2` and `1 / 2 ^ w` other operators bind one of the numbers: these have no fraction.
fn is_fraction(tokens: &[Token<'_>], place: usize) -> bool {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let number = |at: usize| {
        tokens.get(at).is_some_and(|token| matches!(token.kind, Kind::Number(_, Unit::PLAIN)))
    };
    if text(place) != "/" || !number(place + 1) || !place.checked_sub(1).is_some_and(number) {
        return false;
    }
    let mut words = tokens[..place - 1].iter().rev().map(|token| token.text);
    let before = words.next().unwrap_or("");
    let before = if before == "-" { words.next().unwrap_or("") } else { before };
    !matches!(before, "*" | "/" | "^") && !matches!(text(place + 2), "/" | "^")
}
