//! Emulated links, for `cwnd emulate`.

use crate::records::{LinkView, to_dict};
use crate::scenario::{read_scenario, scenario_error};
use cwnd_linux::emulate::{Emulation, Options, Report, RunningCommand};
use cwnd_sim::network::Link;
use numpy::IntoPyArray;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Between two looks at a command and at Python's signals.
const SLICE: Duration = Duration::from_millis(5);

/// With its number, by which Python chooses the kind of the error.
pub(crate) fn os_error(error: io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string())),
        None => PyOSError::new_err(error.to_string()),
    }
}

/// A link between the caller's network namespace and a new one, and a command in that.
#[pyclass(frozen, name = "Emulation", module = "cwnd._native")]
pub(crate) struct Bridge {
    links: [Link; 2],
    state: Mutex<State>,
}

struct State {
    emulation: Option<Emulation>,
    running: Option<RunningCommand>,
}

impl Bridge {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> PyResult<T>) -> PyResult<T> {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("nothing runs here")
}

#[pymethods]
impl Bridge {
    /// The links are the first two of a scenario in JSON: from the new namespace, and to it.
    #[new]
    #[pyo3(signature = (scenario_json, seed, record, mtu=None))]
    fn new(
        py: Python<'_>,
        scenario_json: &str,
        seed: u64,
        record: Option<PathBuf>,
        mtu: Option<u16>,
    ) -> PyResult<Self> {
        let scenario = read_scenario(scenario_json)?;
        let network = scenario.network(seed).map_err(scenario_error)?;
        let [up, down] = <[Link; 2]>::try_from(network.links)
            .map_err(|_| PyValueError::new_err("an emulation has two links"))?;
        let record = record.map(File::create).transpose().map_err(os_error)?;
        let options = Options { seed, record, mtu };
        let emulation = py.detach(|| Emulation::new(&up, &down, &options)).map_err(os_error)?;
        let state = State { emulation: Some(emulation), running: None };
        Ok(Bridge { links: [up, down], state: Mutex::new(state) })
    }

    /// The addresses of the new namespace's end and of the caller's.
    fn addresses(&self) -> PyResult<(String, String)> {
        self.with(|state| {
            let emulation = state.emulation.as_ref().ok_or_else(ended)?;
            Ok((emulation.address().to_string(), emulation.peer().to_string()))
        })
    }

    /// Starts a command in the new namespace.
    fn start(&self, py: Python<'_>, program: PathBuf, arguments: Vec<String>) -> PyResult<()> {
        let mut command = Command::new(program);
        command.args(arguments);
        py.detach(|| {
            self.with(|state| {
                let emulation = state.emulation.as_ref().ok_or_else(ended)?;
                state.running = Some(emulation.start(command).map_err(os_error)?);
                Ok(())
            })
        })
    }

    /// Sends the command a signal.
    fn signal(&self, number: i32) -> PyResult<()> {
        self.with(|state| {
            let running = state.running.as_ref().ok_or_else(ended)?;
            running.signal(number).map_err(os_error)
        })
    }

    /// Waits for the command's end. Gives its exit status, for a signal 128 and its number.
    fn wait(&self, py: Python<'_>) -> PyResult<i32> {
        while !self.with(|state| Ok(state.running.as_ref().ok_or_else(ended)?.is_finished()))? {
            py.detach(|| std::thread::sleep(SLICE));
            py.check_signals()?;
        }
        let running = self.with(|state| state.running.take().ok_or_else(ended))?;
        let status = running.wait().map_err(os_error)?;
        // Its first process has been killed only when all of them were.
        Ok(status.code().unwrap_or(128 + 9))
    }

    /// Ends everything. Gives what was measured; the series, which need NumPy, only on demand:
    /// importing NumPy takes longer than everything else that a link needs.
    #[pyo3(signature = (*, series))]
    fn stop<'py>(&self, py: Python<'py>, series: bool) -> PyResult<Bound<'py, PyDict>> {
        let emulation = self.with(|state| {
            drop(state.running.take());
            state.emulation.take().ok_or_else(ended)
        })?;
        let report = py.detach(|| emulation.stop()).map_err(os_error)?;
        measured(py, &self.links, report, series)
    }
}

fn measured<'py>(
    py: Python<'py>,
    specs: &[Link],
    report: Report,
    series: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let limit = report.limit();
    report.packet_log.map_err(os_error)?;
    let result = PyDict::new(py);
    if series {
        result.set_item("time", report.time.into_pyarray(py))?;
    }
    let links = PyList::empty(py);
    for (spec, record) in specs.iter().zip(report.links) {
        let link = LinkView::new(spec, record);
        links.append(if series { link.into_dict(py)? } else { to_dict(py, &link)? })?;
    }
    result.set_item("links", links)?;
    let lateness = PyDict::new(py);
    for (name, fraction) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
        lateness.set_item(name, report.lateness.quantile(fraction))?;
    }
    lateness.set_item("max", report.lateness.max())?;
    let tool = PyDict::new(py);
    tool.set_item("realtime", report.emulator.realtime)?;
    tool.set_item("cpu_s", report.emulator.cpu)?;
    tool.set_item("wall_s", report.emulator.wall)?;
    tool.set_item("packets", report.lateness.packets())?;
    tool.set_item("late", report.lateness.late())?;
    tool.set_item("overrun", report.emulator.overrun)?;
    tool.set_item("refused", report.emulator.refused)?;
    tool.set_item("lateness_s", lateness)?;
    tool.set_item("limit", limit)?;
    result.set_item("tool", tool)?;
    let tcp = PyList::empty(py);
    for limits in report.tcp {
        let entry = PyDict::new(py);
        entry.set_item("busy_s", limits.busy)?;
        entry.set_item("receive_window_s", limits.receive_window)?;
        entry.set_item("send_buffer_s", limits.send_buffer)?;
        tcp.append(entry)?;
    }
    result.set_item("tcp", tcp)?;
    Ok(result)
}
