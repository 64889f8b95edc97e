//! Scenarios: reading, checking, and their error.

use crate::records;
use cwnd_sim::scenario::Scenario;
use pyo3::create_exception;
use pyo3::exceptions::{PyFileNotFoundError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;

create_exception!(
    cwnd._native,
    ScenarioError,
    PyValueError,
    "A scenario is wrong; one line says how."
);

/// The JSON Schema of a scenario, as JSON text.
#[pyfunction]
pub(crate) fn schema() -> String {
    format!("{:#}", cwnd_sim::scenario::schema())
}

/// Reads a scenario file's text; `origin` names it in messages. Returns it as JSON.
#[pyfunction]
pub(crate) fn load(text: &str, origin: &str) -> PyResult<String> {
    let home = Path::new(origin).parent().unwrap_or(Path::new(""));
    let read = |name: &str| read_file(&home.join(name));
    let scenario = Scenario::from_toml_with(text, origin, &read).map_err(scenario_error)?;
    Ok(scenario.to_json())
}

/// Reads a scenario in JSON and the files that it names, in the folder `home`. Returns it as JSON
/// with their contents, and the names of the files.
#[pyfunction]
pub(crate) fn resolve(scenario_json: &str, home: &str) -> PyResult<(String, Vec<String>)> {
    let names = RefCell::new(Vec::new());
    let missing = Cell::new(false);
    let read = |name: &str| {
        names.borrow_mut().push(name.to_owned());
        read_file(&Path::new(home).join(name)).inspect_err(|_| missing.set(true))
    };
    match Scenario::from_json_with(scenario_json, &read) {
        Ok(scenario) => Ok((scenario.to_json(), names.into_inner())),
        Err(error) if missing.get() => Err(PyFileNotFoundError::new_err(error.to_string())),
        Err(error) => Err(scenario_error(error)),
    }
}

/// Checks a scenario in JSON and returns a summary of its network.
#[pyfunction]
pub(crate) fn validate<'py>(
    py: Python<'py>,
    scenario_json: &str,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario = read_scenario(scenario_json)?;
    let network = scenario.network(seed).map_err(scenario_error)?;
    let links: Vec<_> = network.links.iter().map(|link| link.name.as_str()).collect();
    let result = PyDict::new(py);
    result.set_item("flows", network.flows.len())?;
    result.set_item("links", links)?;
    result.set_item("duration_s", network.duration.as_secs())?;
    result.set_item("conventions", records::names(&scenario.conventions()))?;
    Ok(result)
}

/// Returns the names of the groups of flows of a scenario in JSON.
#[pyfunction]
pub(crate) fn scenario_groups(scenario_json: &str) -> PyResult<BTreeSet<String>> {
    Ok(read_scenario(scenario_json)?.group_names())
}

/// Reads a scenario in JSON. The names of its files are relative to the working directory.
pub(crate) fn read_scenario(json: &str) -> PyResult<Scenario> {
    let read = |name: &str| read_file(Path::new(name));
    Scenario::from_json_with(json, &read).map_err(scenario_error)
}

/// Returns the path and the text of a file that a scenario names.
fn read_file(path: &Path) -> Result<(String, String), String> {
    let shown = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((shown, text)),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

pub(crate) fn scenario_error(error: cwnd_sim::scenario::ScenarioError) -> PyErr {
    ScenarioError::new_err(error.to_string())
}
