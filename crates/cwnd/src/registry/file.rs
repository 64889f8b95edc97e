//! The laws of texts: those of the registry, and those that users write in files, as controllers by
//! the names of their files.

use super::window::{START, pacing};
use super::{Algorithm, Build, Domain, Parameter, Range};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use cwnd_law::{Diagnostic, Kind, Law};
use std::sync::{LazyLock, PoisonError, RwLock};

include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// The laws that were declared, the newest last.
static DECLARED: RwLock<Vec<&'static Algorithm>> = RwLock::new(Vec::new());

/// Makes the law that `text` describes known as the controller `name`, in place of an earlier one of
/// that name; a spec that was read before keeps its law. The law stays in memory until the process
/// ends: one with the same name and the same text is declared once.
///
/// ```
/// use cwnd::Spec;
///
/// let text = r#"
/// law gentle "AIMD(1, 1/4)"
/// on grow:
///     return w + acked / w
/// on cut:
///     return 3 * w / 4
/// "#;
/// cwnd::registry::declare("gentle.law", text).unwrap();
/// assert_eq!(Spec::parse("gentle.law").unwrap().name(), "gentle.law");
/// ```
///
/// # Errors
/// The first fault of the text.
pub fn declare(name: &str, text: &str) -> Result<&'static Algorithm, Diagnostic> {
    let mut declared = DECLARED.write().unwrap_or_else(PoisonError::into_inner);
    let is_known = |known: &&&Algorithm| {
        known.name == name && known.law().is_some_and(|law| law.text() == text)
    };
    if let Some(known) = declared.iter().find(is_known) {
        return Ok(known);
    }
    let law: &'static Law = Box::leak(Box::new(Law::parse(text)?));
    declared.retain(|known| known.name != name);
    let algorithm: &'static Algorithm =
        Box::leak(Box::new(algorithm(String::from(name).leak(), law)));
    declared.push(algorithm);
    Ok(algorithm)
}

fn read(text: &str) -> Law {
    Law::parse(text).expect("the build has read it")
}

/// The law of the registry's text of this name.
pub(super) fn law(name: &str) -> Option<&'static Law> {
    TEXTS.iter().find(|(known, _)| *known == name).map(|(_, law)| &**law)
}

/// The law that was declared by this name.
pub(super) fn find(name: &str) -> Option<&'static Algorithm> {
    let declared = DECLARED.read().unwrap_or_else(PoisonError::into_inner);
    declared.iter().find(|known| known.name == name).copied()
}

fn algorithm(name: &'static str, law: &'static Law) -> Algorithm {
    let own = law.parameters().iter().map(parameter);
    let machine = [START, pacing(law.pacing())].into_iter().filter(|_| law.kind() == Kind::Window);
    Algorithm {
        name,
        title: law.title(),
        summary: law.summary(),
        source: String::leak(law.sources().join("; ")),
        equations: leak(law.equations().iter().map(String::as_str)),
        deviations: leak(law.deviations().iter().map(String::as_str)),
        parameters: own.chain(machine).collect::<Vec<_>>().leak(),
        build: Build::File(law),
    }
}

fn leak(texts: impl Iterator<Item = &'static str>) -> &'static [&'static str] {
    texts.collect::<Vec<_>>().leak()
}

fn parameter(declared: &'static cwnd_law::Parameter) -> Parameter {
    let domain = match &declared.domain {
        cwnd_law::Domain::Number { min, max, min_excluded, max_excluded } => Domain::Number {
            default: declared.default,
            range: Range {
                min: *min,
                max: *max,
                min_excluded: *min_excluded,
                max_excluded: *max_excluded,
            },
        },
        cwnd_law::Domain::Choice(choices) => Domain::Choice {
            choices: leak(choices.iter().map(String::as_str)),
            // The default is one of the choices.
            default: Some(declared.default as usize),
        },
        cwnd_law::Domain::Switch => Domain::Switch { default: declared.default != 0.0 },
    };
    let cwnd_law::Parameter { name, symbol, meaning, .. } = declared;
    Parameter { name, symbol, meaning, unit: declared.unit(), domain }
}
