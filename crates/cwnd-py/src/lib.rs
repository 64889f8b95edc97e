//! The bridge from Rust results to Python and NumPy, and nothing else: `cwnd._native`.

mod custom;
#[cfg(target_os = "linux")]
mod emulate;
#[cfg(target_os = "linux")]
mod linux;
mod model;
mod parallel;
#[cfg(target_os = "linux")]
mod real;
mod records;
mod registry;
mod simulate;
mod transfer;
mod udt;

use cwnd_sim::scenario::{self, Scenario};
use pyo3::create_exception;
use pyo3::exceptions::{PyFileNotFoundError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::{Cell, RefCell};
use std::path::Path;

create_exception!(
    cwnd._native,
    ScenarioError,
    PyValueError,
    "A scenario is wrong; one line says how."
);
create_exception!(cwnd._native, SpecError, PyValueError, "A controller's specification is wrong.");

/// The version of the native module.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// A hash of the sources of the crates in this module, and of the versions of their dependencies.
#[pyfunction]
fn sources() -> &'static str {
    env!("CWND_SOURCES")
}

/// The JSON Schema of a scenario, as JSON text.
#[pyfunction]
fn schema() -> String {
    format!("{:#}", scenario::schema())
}

/// Reads a scenario file's text; `origin` names it in messages. Returns it as JSON.
#[pyfunction]
fn load(text: &str, origin: &str) -> PyResult<String> {
    let home = Path::new(origin).parent().unwrap_or(Path::new(""));
    let read = |name: &str| read_file(&home.join(name));
    let scenario = Scenario::from_toml_with(text, origin, &read).map_err(scenario_error)?;
    Ok(scenario.to_json())
}

/// Reads a scenario in JSON and the files that it names, in the folder `home`. Returns it as JSON with their contents,
/// and the names of the files.
#[pyfunction]
fn resolve(scenario_json: &str, home: &str) -> PyResult<(String, Vec<String>)> {
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

/// Checks a scenario in JSON and says what it is compiled to.
#[pyfunction]
fn validate<'py>(py: Python<'py>, scenario_json: &str, seed: u64) -> PyResult<Bound<'py, PyDict>> {
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

/// Reads a scenario in JSON. The names of its files are relative to the working directory.
fn read_scenario(json: &str) -> PyResult<Scenario> {
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

fn scenario_error(error: scenario::ScenarioError) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

/// The laws, the simulator and the scenario format, as Rust has them.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("ScenarioError", py.get_type::<ScenarioError>())?;
    module.add("SpecError", py.get_type::<SpecError>())?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(sources, module)?)?;
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)?;
    module.add_function(wrap_pyfunction!(resolve, module)?)?;
    module.add_function(wrap_pyfunction!(validate, module)?)?;
    module.add_function(wrap_pyfunction!(registry::algorithms, module)?)?;
    module.add_function(wrap_pyfunction!(registry::canonical, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    custom::add(module)?;
    model::add(module)?;
    udt::add(module)?;
    transfer::add(module)?;
    #[cfg(target_os = "linux")]
    emulate::add(module)?;
    #[cfg(target_os = "linux")]
    linux::add(module)?;
    #[cfg(target_os = "linux")]
    real::add(module)?;
    Ok(())
}
