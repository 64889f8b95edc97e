//! The canonical form of a text.

use crate::token::{Kind, MAX_TEXT, Token, tokens};
use crate::{Diagnostic, Law};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The text with its lines indented by four blanks, one blank between words, and no blank lines but
/// between items; comments stay.
///
/// # Errors
/// The first fault of the text, or that its canonical form is too long.
pub fn format(text: &str) -> Result<String, Diagnostic> {
    Law::parse(text)?;
    let mut printer = Printer::default();
    let (mut last_line, mut line, mut at) = (0, 0, 0);
    for token in tokens(text)? {
        line += text[at..token.span.start].matches('\n').count();
        at = token.span.start;
        if !matches!(token.kind, Kind::Newline | Kind::Indent | Kind::Dedent | Kind::End) {
            if printer.at_start() && line > last_line + 1 {
                printer.blank_line();
            }
            last_line = line;
        }
        printer.token(&token);
    }
    if printer.text.len() > MAX_TEXT {
        let message = format!("the canonical form has more than {MAX_TEXT} bytes");
        return Err(Diagnostic::error(0..0, message));
    }
    Ok(printer.text)
}

/// The lines of hooks and named expressions.
pub(crate) fn equations(tokens: &[Token<'_>]) -> Vec<String> {
    let mut printer = Printer::default();
    let mut equation = false;
    for (place, token) in tokens.iter().enumerate() {
        // The first word of a line that is not indented begins an item.
        let after = place.checked_sub(1).map_or(Kind::Newline, |before| tokens[before].kind);
        if printer.depth == 0
            && token.kind == Kind::Name
            && matches!(after, Kind::Newline | Kind::Dedent)
        {
            equation = matches!(token.text, "on" | "let");
        }
        if equation || matches!(token.kind, Kind::Indent | Kind::Dedent) {
            printer.token(token);
        }
    }
    printer.text.lines().map(String::from).collect()
}

/// What identifies a law: its words without comments and texts.
pub(crate) fn hash(tokens: &[Token<'_>]) -> String {
    let mut printer = Printer::default();
    let words =
        tokens.iter().filter(|token| !matches!(token.kind, Kind::Comment { .. } | Kind::Text));
    words.for_each(|token| printer.token(token));
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

    fn token(&mut self, token: &Token<'_>) {
        match token.kind {
            Kind::Indent => self.depth += 1,
            Kind::Dedent => self.depth -= 1,
            Kind::End => {}
            Kind::Newline => self.newline(),
            _ => {
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
            None => (0..self.depth).for_each(|_| self.text.push_str("    ")),
            Some(_) if matches!(kind, Kind::Comment { .. }) => self.text.push_str("    "),
            Some(Before::Open) => {}
            Some(Before::Name) if text == "(" => {}
            Some(_) if matches!(text, ")" | "]" | "}" | "," | ":") => {}
            Some(_) => self.text.push(' '),
        }
        let digits = match kind {
            Kind::Number(..) => text.rfind(|c: char| c.is_ascii_digit()).map_or(0, |last| last + 1),
            _ => text.len(),
        };
        let (text, unit) = text.split_at(digits);
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
