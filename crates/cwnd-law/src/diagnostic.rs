//! What is wrong with a text, and where.

use alloc::string::String;
use core::fmt;
use core::ops::Range;

/// How serious a [`Diagnostic`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The text is no law.
    Error,
    /// The law runs, but probably not as its author expects.
    Warning,
}

/// A fault of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How serious it is.
    pub severity: Severity,
    /// One sentence without a period: what is wrong, and what is allowed.
    pub message: String,
    /// The bytes of the text that are concerned.
    pub span: Range<usize>,
    /// What to write instead, if that is known.
    pub help: Option<String>,
}

impl Diagnostic {
    pub(crate) fn error(span: Range<usize>, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Error, message: message.into(), span, help: None }
    }

    pub(crate) fn warning(span: Range<usize>, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The line and the column of the first byte in `text`, both counted from 1; columns are
    /// characters.
    pub fn position(&self, text: &str) -> (usize, usize) {
        let before = text.get(..self.span.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// The message with the lines of `text`, which was read from the file `path`, in the form of
    /// Rust's compiler.
    #[cfg(feature = "std")]
    pub fn render(&self, path: &str, text: &str) -> String {
        use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let end = self.span.end.min(text.len());
        let mark = AnnotationKind::Primary.span(self.span.start.min(end)..end);
        let snippet = Snippet::source(text).path(path).annotation(mark);
        let group = level.primary_title(self.message.as_str()).element(snippet);
        let help = self.help.as_deref().map(|help| Level::HELP.message(help));
        Renderer::plain().render(&[help.into_iter().fold(group, |group, help| group.element(help))])
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, ": {help}"),
            None => Ok(()),
        }
    }
}
