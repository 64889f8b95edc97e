//! Errors in scenarios: the line of the file, the key, and what was expected.

use cwnd::registry::distance;
use toml::de::{DeTable, DeValue};

use crate::check::InvalidField;

/// An error in a scenario. It is shown as `file:line: key: message`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.line_of_text())]
pub struct ScenarioError {
    origin: String,
    line: Option<usize>,
    key: String,
    message: String,
}

impl ScenarioError {
    /// The path of the file; empty for a scenario that was not read from a file.
    pub fn origin(&self) -> &str {
        &self.origin
    }
    /// The line of the file, from 1.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
    /// The key, such as `flow[1].controller`; empty for the whole scenario.
    pub fn key(&self) -> &str {
        &self.key
    }
    /// What is wrong, and what is allowed.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the error of a bound of `[expect]`, or without keys of the table. `file` is the path
    /// and the text of the scenario; the line is that of the bound, if the text has it: `--set` may
    /// have changed it.
    pub(crate) fn of_bound(
        keys: &[String],
        bound: &str,
        message: impl Into<String>,
        file: Option<(&str, &str)>,
    ) -> Self {
        let (origin, text) = file.unwrap_or_default();
        let document = DeTable::parse(text).ok();
        let offset = document.and_then(|found| offset_of_bound(found.get_ref(), keys, bound));
        let line = offset.and_then(|offset| Source::new(origin, text).line_at(offset));
        let key = ["expect"].into_iter().chain(keys.iter().map(String::as_str));
        Problem::new(key.collect::<Vec<_>>().join("."), message).at(origin, line)
    }

    fn line_of_text(&self) -> String {
        let mut text = self.origin.clone();
        if let Some(line) = self.line {
            text += &format!(":{line}");
        }
        for part in [&self.key, &self.message] {
            if !text.is_empty() && !part.is_empty() {
                text += ": ";
            }
            text += part;
        }
        text
    }
}

/// An error without its position in a file.
#[derive(Debug)]
pub(super) struct Problem {
    key: String,
    message: String,
}

impl Problem {
    pub(super) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Problem { key: key.into(), message: message.into() }
    }

    /// Adds the file and the line.
    pub(super) fn at(self, origin: &str, line: Option<usize>) -> ScenarioError {
        ScenarioError { origin: origin.to_owned(), line, key: self.key, message: self.message }
    }
}

/// Returns an error at `key`.
pub(super) fn problem<T>(key: impl Into<String>, message: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::new(key, message))
}

/// Returns the error for a field that is called like a key of the table at `key`.
pub(super) fn in_table(key: &str) -> impl Fn(InvalidField) -> Problem {
    move |InvalidField { field, message }| Problem::new(format!("{key}.{field}"), message)
}

/// The text of a scenario file. Finds the line of a key and the key at a position.
pub(super) struct Source<'a> {
    origin: &'a str,
    pub text: &'a str,
}

impl<'a> Source<'a> {
    pub(super) fn new(origin: &'a str, text: &'a str) -> Self {
        Source { origin, text }
    }

    fn line_at(&self, offset: usize) -> Option<usize> {
        let before = self.text.as_bytes().get(..offset.min(self.text.len()))?;
        Some(1 + before.iter().filter(|byte| **byte == b'\n').count())
    }

    /// Returns the error of a text that is not TOML.
    pub(super) fn syntax_error(&self, error: &toml::de::Error) -> ScenarioError {
        let span = error.span();
        let found = span.clone().and_then(|span| self.text.get(span)).unwrap_or_default();
        let found = if found.trim().is_empty() || found.contains('\n') {
            String::new()
        } else {
            format!(": `{}`", crate::units::shorten(found))
        };
        let message = format!("not TOML: {}{found}", one_line(error.message()));
        Problem::new("", message).at(self.origin, span.and_then(|span| self.line_at(span.start)))
    }

    /// Adds the file and the line of the key to an error. `document` is the parsed text.
    pub(super) fn locate(&self, document: &DeTable, problem: Problem) -> ScenarioError {
        let line = offset_of(document, &problem.key).and_then(|offset| self.line_at(offset));
        problem.at(self.origin, line)
    }
}

/// Returns the error of a wrong value or an unknown key.
pub(super) fn value_error(error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let key = if error.path().iter().len() > 0 { error.path().to_string() } else { String::new() };
    Problem::new(key, plain(&error.inner().to_string()))
}

/// Joins the lines of a message and limits its length.
fn one_line(message: &str) -> String {
    let lines = message.split('\n').map(str::trim).filter(|line| !line.is_empty());
    let mut text = lines.collect::<Vec<_>>().join("; ");
    if let Some((end, _)) = text.char_indices().nth(400) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Returns the position of the last key of a bound of `[expect]`, if it has this bound.
fn offset_of_bound(document: &DeTable, keys: &[String], bound: &str) -> Option<usize> {
    let (last, tables) = keys.split_last()?;
    let (_, expect) = document.iter().find(|(key, _)| key.get_ref() == "expect")?;
    let mut table = expect.get_ref().as_table()?;
    for step in tables {
        let (_, value) = table.iter().find(|(key, _)| key.get_ref() == step)?;
        table = value.get_ref().as_table()?;
    }
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == last)?;
    let is_bound = |value: &DeValue| matches!(value, DeValue::String(text) if text == bound);
    let found = match value.get_ref() {
        DeValue::Array(items) => items.iter().any(|item| is_bound(item.get_ref())),
        value => is_bound(value),
    };
    found.then_some(key.span().start)
}

/// Returns the position of the value at `path`, or of the longest part of the path that exists.
fn offset_of(document: &DeTable, path: &str) -> Option<usize> {
    let mut table = document;
    let mut found = None;
    for step in path.split('.') {
        let (name, index) = match step.split_once('[') {
            Some((name, index)) => (name, index.trim_end_matches(']').parse::<usize>().ok()),
            None => (step, None),
        };
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else { break };
        let mut value = value;
        found = Some(key.span().start);
        if let (Some(index), DeValue::Array(items)) = (index, value.get_ref()) {
            let Some(item) = items.get(index) else { break };
            value = item;
            found = Some(item.span().start);
        }
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    found
}

/// Rewrites serde's message in the terms of the format's documentation.
fn plain(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (what, rest) = match message {
        m if m.starts_with("unknown field") => ("key", quoted.split_first()),
        m if m.starts_with("unknown variant") => ("value", quoted.split_first()),
        m if m.starts_with("missing field") => {
            return format!("missing `{}`", quoted.first().copied().unwrap_or_default());
        }
        m => {
            return one_line(message)
                .replacen("invalid type: map", "found a table", 1)
                .replacen("invalid type: sequence", "found a list", 1)
                .replacen("invalid type: floating point", "found the number", 1)
                .replacen("invalid type: ", "found the ", 1)
                .replacen("invalid value: ", "found the ", 1)
                .replace("expected a sequence", "expected a list ([[...]])")
                .replace("expected string or map", "expected text in quotes")
                .replace("expected f64", "expected a number")
                .replace(
                    "expected u32",
                    &format!("expected a whole number{}", bound(m, "4294967295")),
                )
                .replace(
                    "expected u64",
                    &format!("expected a whole number{}", bound(m, "2^63 - 1")),
                )
                .replace("expected usize", "expected a whole number");
        }
    };
    match rest {
        Some((unknown, allowed)) => unknown_name(what, unknown, allowed),
        None => one_line(message),
    }
}

/// The bound of an unsigned type that an integer exceeds. A key may have a narrower range.
fn bound(message: &str, most: &str) -> String {
    match message.strip_prefix("invalid value: integer `") {
        Some(rest) if rest.starts_with('-') => " of at least 0".to_owned(),
        Some(_) => format!(" of at most {most}"),
        None => String::new(),
    }
}

/// Returns a message such as `unknown key "foo"; did you mean "for"? allowed: …`.
pub(super) fn unknown_name(what: &str, unknown: &str, allowed: &[&str]) -> String {
    let shown = crate::units::shorten(unknown);
    let guess = synonym(&shown, allowed).or_else(|| nearest(&shown, allowed));
    let guess = match guess {
        Some(name) => format!("; did you mean \"{name}\"?"),
        None => ";".into(),
    };
    if allowed.len() > 60 {
        return format!("unknown {what} \"{shown}\"{guess} there are {} others", allowed.len());
    }
    let known = if what == "node" { "known" } else { "allowed" };
    format!("unknown {what} \"{shown}\"{guess} {known}: {}", allowed.join(", "))
}

/// Other names of keys, with the keys.
const SYNONYMS: [(&str, &str); 16] = [
    ("algorithm", "controller"),
    ("bandwidth", "rate"),
    ("buffer", "queue"),
    ("bw", "rate"),
    ("capacity", "rate"),
    ("cc", "controller"),
    ("iw", "initial_window"),
    ("latency", "delay"),
    ("lossofacks", "loss_of_acks"),
    ("mss", "packet"),
    ("n", "count"),
    ("parkinglot", "chain"),
    ("path", "link"),
    ("size", "bytes"),
    ("time", "duration"),
    ("type", "kind"),
];

fn synonym<'a>(unknown: &str, allowed: &[&'a str]) -> Option<&'a str> {
    let unknown = unknown.to_lowercase().replace(['-', '_'], "");
    let (_, key) = SYNONYMS.iter().find(|(other, _)| *other == unknown)?;
    allowed.iter().find(|name| *name == key).copied()
}

/// Returns the allowed name with the fewest edits, if they are few.
fn nearest<'a>(unknown: &str, allowed: &[&'a str]) -> Option<&'a str> {
    let unknown = unknown.replace('-', "_");
    allowed
        .iter()
        .map(|name| (distance(&unknown, &name.replace('-', "_")), *name))
        .filter(|(edits, name)| *edits <= (name.chars().count() + 1) / 3)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}
