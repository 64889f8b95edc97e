//! Scenarios in real time, for `cwnd run --on`.

use crate::linux::KernelError;
use crate::records::Finished;
use crate::scenario::{ScenarioError, read_scenario, scenario_error};
use crate::{emulate, records};
use cwnd_linux::run::{self, Backend, Error};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::time::Instant;

fn refused(error: Error) -> PyErr {
    match error {
        Error::Kernel(error) => KernelError::new_err(error.to_string()),
        Error::System(error) => emulate::os_error(error),
        other => ScenarioError::new_err(other.to_string()),
    }
}

fn parse_backend(name: &str) -> PyResult<Backend> {
    Backend::parse(name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "{name:?} is not a backend in real time; these are: linux, udt, quic"
        ))
    })
}

/// Refuses a scenario in JSON that asks for what a backend in real time does not have.
#[pyfunction]
pub(crate) fn check_real(scenario_json: &str, on: &str) -> PyResult<()> {
    let scenario = read_scenario(scenario_json)?;
    let network = scenario.network(0).map_err(scenario_error)?;
    run::check(&network, parse_backend(on)?).map_err(refused)
}

/// Runs a scenario in JSON with a seed, on `linux`, `udt` or `quic`; `progress` is given the fraction that
/// is done. Signals are heard meanwhile.
#[pyfunction]
pub(crate) fn run_real<'py>(
    py: Python<'py>,
    scenario_json: &str,
    seed: u64,
    on: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let on = parse_backend(on)?;
    let scenario = read_scenario(scenario_json)?;
    let network = Arc::new(scenario.network(seed).map_err(scenario_error)?);
    let begin = Instant::now();
    let mut interrupted = None;
    let outcome = py.detach(|| {
        run::run(&network, seed, on, |done| {
            let look = |py: Python<'_>| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |it| it.call1(py, (done,)).map(drop))
            };
            interrupted = Python::attach(look).err();
            interrupted.is_none()
        })
    });
    if let Some(error) = interrupted {
        return Err(error);
    }
    let real = outcome.map_err(refused)?;
    let real = real.ok_or_else(|| PyValueError::new_err("the run was stopped"))?;
    let wall = begin.elapsed().as_secs_f64();
    let (name, records, conventions) = (network.name.clone(), real.records, Vec::new());
    let result = PyDict::new(py);
    let finished = Finished { name, seed, network, conventions, records, wall };
    result.set_item("record", records::run(py, finished)?)?;
    result.set_item("limit", real.limit)?;
    Ok(result)
}
