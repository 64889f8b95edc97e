//! Scenarios: reading, checking, and their error.

use crate::records;
use cwnd_sim::scenario::Scenario;
use pyo3::create_exception;
use pyo3::exceptions::{PyFileNotFoundError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

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
    Ok((path.display().to_string(), read_text(path)?))
}

/// The largest size in bytes of a file that a scenario names.
pub(crate) const LARGEST_FILE: usize = 128 << 20;

/// Returns the text of a regular file in UTF-8, without a byte order mark.
fn read_text(path: &Path) -> Result<String, String> {
    let failed = |error: &dyn Display| format!("{}: {error}", path.display());
    let metadata = std::fs::metadata(path).map_err(|error| failed(&error))?;
    if !metadata.is_file() {
        return Err(failed(&"not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LARGEST_FILE as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| failed(&error))?;
    if bytes.len() > LARGEST_FILE {
        return Err(failed(&format_args!("larger than {} MiB", LARGEST_FILE >> 20)));
    }
    let text = str::from_utf8(&bytes).map_err(|_| failed(&"not a text file in UTF-8"))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned())
}

/// Returns the text of a trace, which is read as the files that a scenario names.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts a path by value")]
pub(crate) fn read_trace(path: PathBuf) -> PyResult<String> {
    read_text(&path).map_err(PyValueError::new_err)
}

pub(crate) fn scenario_error(error: cwnd_sim::scenario::ScenarioError) -> PyErr {
    ScenarioError::new_err(error.to_string())
}
