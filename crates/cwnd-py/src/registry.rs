//! The registry of controllers as Python dictionaries.

use cwnd::Spec;
use cwnd::registry::{self, Algorithm, Build, Domain, Kind, Parameter, Range};
use cwnd_sim::network::{QuicStack, kernel_name, own_name};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

create_exception!(cwnd._native, SpecError, PyValueError, "A controller's specification is wrong.");

pub(crate) fn parse(spec: &str) -> PyResult<Spec> {
    Spec::parse(spec).map_err(|error| SpecError::new_err(error.to_string()))
}

/// Every controller of the registry.
#[pyfunction]
pub(crate) fn algorithms(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let records = registry::algorithms().iter().map(|algorithm| record(py, algorithm));
    PyList::new(py, records.collect::<PyResult<Vec<_>>>()?)
}

/// The controller of this name.
#[pyfunction]
pub(crate) fn algorithm<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    record(py, parse(name)?.algorithm())
}

fn record<'py>(py: Python<'py>, algorithm: &Algorithm) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("name", algorithm.name)?;
    entry.set_item("title", algorithm.title)?;
    let kind = match algorithm.kind() {
        Kind::Window => "window",
        Kind::Rate => "rate",
        Kind::Whole => "whole",
    };
    entry.set_item("kind", kind)?;
    entry.set_item("summary", algorithm.summary)?;
    entry.set_item("source", algorithm.source)?;
    entry.set_item("equations", algorithm.equations)?;
    entry.set_item("deviations", algorithm.deviations)?;
    let parameters = PyList::empty(py);
    for parameter in algorithm.parameters {
        parameters.append(describe(py, parameter)?)?;
    }
    entry.set_item("parameters", parameters)?;
    let states = PyList::empty(py);
    let law = if let Build::File(law) = algorithm.build { Some(law) } else { None };
    for state in law.iter().flat_map(|law| law.states()) {
        let row = PyDict::new(py);
        row.set_item("name", &state.name)?;
        row.set_item("meaning", &state.meaning)?;
        states.append(row)?;
    }
    entry.set_item("states", states)?;
    entry.set_item("hash", law.map(|law| law.hash()))?;
    let text = algorithm.law().map_or("", |law| law.text());
    let equations = cwnd_law::equations(text).unwrap_or_default();
    let equations: Vec<_> =
        equations.into_iter().map(|equation| (equation.hook, equation.mathml)).collect();
    entry.set_item("mathml", equations)?;
    Ok(entry)
}

/// The canonical spelling of a specification. That of a controller of the kernel is `kernel:NAME`,
/// and that of one of a QUIC stack's own `own:NAME`.
#[pyfunction]
pub(crate) fn canonical(spec: &str) -> PyResult<String> {
    if let Some(name) = kernel_name(spec) {
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !name.is_empty() && name.chars().all(valid) {
            return Ok(spec.to_owned());
        }
        return Err(SpecError::new_err(format!(
            "{spec}: write kernel:NAME for a controller of the Linux kernel, such as kernel:cubic; \
             it has no parameters"
        )));
    }
    if let Some(name) = own_name(spec) {
        let mut known: Vec<_> =
            QuicStack::ALL.iter().flat_map(|stack| stack.own_controllers()).collect();
        known.sort();
        known.dedup();
        if known.contains(&&name) {
            return Ok(spec.to_owned());
        }
        let known = known.into_iter().copied().collect::<Vec<_>>().join(", own:");
        return Err(SpecError::new_err(format!(
            "{spec}: no QUIC stack has a controller of this name; the stacks have own:{known}"
        )));
    }
    Ok(parse(spec)?.to_string())
}

fn describe<'py>(py: Python<'py>, parameter: &Parameter) -> PyResult<Bound<'py, PyDict>> {
    let (default, range, choices): (String, String, Vec<&str>) = match &parameter.domain {
        Domain::Number { default, range } => {
            let unit = parameter.unit;
            (quantity(*default, unit), interval(range, unit), Vec::new())
        }
        Domain::Switch { default } => {
            (if *default { "on" } else { "off" }.into(), "on or off".into(), vec!["on", "off"])
        }
        Domain::Choice { choices, default } => {
            let default = default.map_or("", |place| choices[place]);
            (default.into(), choices.join(" or "), choices.to_vec())
        }
    };
    let entry = PyDict::new(py);
    entry.set_item("name", parameter.name)?;
    entry.set_item("symbol", parameter.symbol)?;
    entry.set_item("meaning", parameter.meaning)?;
    entry.set_item("unit", parameter.unit)?;
    entry.set_item("default", default)?;
    entry.set_item("range", range)?;
    entry.set_item("choices", choices)?;
    Ok(entry)
}

/// A number, as the fraction that people write where it is one over a small whole number.
fn number(value: f64) -> String {
    let inverse = 1.0 / value;
    if value < 1.0 && inverse.fract() == 0.0 && inverse <= 1024.0 && inverse != 10.0 {
        format!("1/{inverse}")
    } else {
        value.to_string()
    }
}

/// A value with its unit, as a specification has it: `20ms`, `10gbit`, `5/s`. Multiples of ten go
/// into the exponent of its shortest decimal, which reads back to the same value.
fn quantity(value: f64, unit: &str) -> String {
    let suffixes: &[(&str, i32)] = match unit {
        _ if value == 0.0 => return number(value),
        "s" => &[("s", 0), ("ms", 3), ("us", 6), ("ns", 9)],
        "bit/s" => &[("gbit", -9), ("mbit", -6), ("kbit", -3), ("bit", 0)],
        "/s" => &[("/s", 0)],
        _ => return number(value),
    };
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let last = suffixes.len() - 1;
    let at = suffixes.iter().position(|(_, shift)| exponent + shift >= 0).unwrap_or(last);
    let (suffix, shift) = suffixes[at];
    let scaled = format!("{digits}e{}", exponent + shift);
    format!("{}{suffix}", scaled.parse().unwrap_or(value))
}

fn interval(range: &Range, unit: &str) -> String {
    let open = if range.min_excluded { "above" } else { "from" };
    let close = if range.max_excluded { "below" } else { "to" };
    format!("{open} {} {close} {}", quantity(range.min, unit), quantity(range.max, unit))
}
