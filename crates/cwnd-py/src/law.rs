//! Laws in files: reading, checking and formatting their texts.

use crate::registry::SpecError;
use cwnd_law::{Diagnostic, Hook, Kind, Law, Severity};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// `FILE:LINE:COLUMN: MESSAGE`; before the message of a warning there is `warning: `.
fn line(file: &str, text: &str, diagnostic: &Diagnostic) -> String {
    let (line, column) = diagnostic.position(text);
    let severity = if diagnostic.severity == Severity::Error { "" } else { "warning: " };
    format!("{file}:{line}:{column}: {severity}{diagnostic}")
}

/// Makes the law of a text known by a name; the lines of its warnings.
#[pyfunction]
pub(crate) fn declare_law(name: &str, text: &str) -> PyResult<Vec<String>> {
    let declared = cwnd::registry::declare(name, text);
    let declared = declared.map_err(|error| SpecError::new_err(line(name, text, &error)))?;
    let warnings = declared.law().map(Law::warnings).unwrap_or_default();
    Ok(warnings.iter().map(|warning| line(name, text, warning)).collect())
}

/// The identity of the law of a text.
#[pyfunction]
pub(crate) fn hash_law(name: &str, text: &str) -> PyResult<String> {
    let law = Law::parse(text).map_err(|error| SpecError::new_err(line(name, text, &error)))?;
    Ok(law.hash().to_owned())
}

/// The canonical form of a law's text.
#[pyfunction]
pub(crate) fn format_law(name: &str, text: &str) -> PyResult<String> {
    cwnd_law::format(text).map_err(|error| SpecError::new_err(line(name, text, &error)))
}

/// The faults of a law's text and what it describes, which is none where one of them is an error;
/// and the faults with the lines that they concern.
#[pyfunction]
pub(crate) fn check_law<'py>(
    py: Python<'py>,
    name: &str,
    text: &str,
) -> PyResult<(Bound<'py, PyDict>, Vec<String>)> {
    let (law, faults) = match Law::parse(text) {
        Ok(law) => (Some(describe(py, &law)?), law.warnings().to_vec()),
        Err(error) => (None, vec![error]),
    };
    let rows = PyList::empty(py);
    for fault in &faults {
        let (line, column) = fault.position(text);
        let row = PyDict::new(py);
        row.set_item(
            "severity",
            if fault.severity == Severity::Error { "error" } else { "warning" },
        )?;
        row.set_item("line", line)?;
        row.set_item("column", column)?;
        row.set_item(
            "length",
            text.get(fault.span.clone()).map_or(0, |text| text.chars().count()),
        )?;
        row.set_item("message", &fault.message)?;
        row.set_item("help", &fault.help)?;
        rows.append(row)?;
    }
    let document = PyDict::new(py);
    document.set_item("law", law)?;
    document.set_item("faults", rows)?;
    Ok((document, faults.iter().map(|fault| fault.render(name, text)).collect()))
}

fn describe<'py>(py: Python<'py>, law: &Law) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("name", law.name())?;
    entry.set_item("title", law.title())?;
    entry.set_item("kind", if law.kind() == Kind::Window { "window" } else { "rate" })?;
    entry.set_item("hash", law.hash())?;
    let parameters: Vec<&str> = law.parameters().iter().map(|each| each.name.as_str()).collect();
    entry.set_item("parameters", parameters)?;
    let states: Vec<&str> = law.states().iter().map(|each| each.name.as_str()).collect();
    entry.set_item("states", states)?;
    let hooks = PyList::empty(py);
    for hook in Hook::ALL {
        if let Some(cost) = law.cost(*hook) {
            let row = PyDict::new(py);
            row.set_item("name", hook.name())?;
            row.set_item("cost_ns", cost)?;
            hooks.append(row)?;
        }
    }
    entry.set_item("hooks", hooks)?;
    Ok(entry)
}
