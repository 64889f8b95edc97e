//! The controllers of the Linux kernel, for `cwnd.kernel`.

use crate::registry::SpecError;
use cwnd::Spec;
use cwnd_linux::bpf::{self, Connection, Connections, Instance};
use numpy::IntoPyArray;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

create_exception!(
    cwnd._native,
    KernelError,
    PyValueError,
    "The kernel's controllers: one line says what is wrong, or missing."
);

fn refused(error: bpf::Error) -> PyErr {
    KernelError::new_err(error.to_string())
}

fn parse(spec: &str) -> PyResult<Spec> {
    Spec::parse(spec).map_err(|error| SpecError::new_err(error.to_string()))
}

fn describe<'py>(py: Python<'py>, instance: &Instance) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("name", &instance.name)?;
    entry.set_item("controller", &instance.spec)?;
    entry.set_item("default", instance.default)?;
    Ok(entry)
}

/// Loads a controller into the kernel.
#[pyfunction]
fn kernel_load<'py>(
    py: Python<'py>,
    spec: &str,
    name: Option<&str>,
    default: bool,
) -> PyResult<Bound<'py, PyDict>> {
    describe(py, &bpf::load(&parse(spec)?, name, default).map_err(refused)?)
}

/// What is loaded.
#[pyfunction]
fn kernel_list(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for instance in bpf::list().map_err(refused)? {
        list.append(describe(py, &instance)?)?;
    }
    Ok(list)
}

/// The controller of a name or specification.
#[pyfunction]
fn kernel_find<'py>(py: Python<'py>, what: &str) -> PyResult<Bound<'py, PyDict>> {
    describe(py, &bpf::find(what).map_err(refused)?)
}

/// Unloads one.
#[pyfunction]
fn kernel_unload<'py>(py: Python<'py>, what: &str) -> PyResult<Bound<'py, PyDict>> {
    describe(py, &bpf::unload(what).map_err(refused)?)
}

/// What this kernel allows: name, whether it is fine, and words.
#[pyfunction]
fn kernel_check(py: Python<'_>) -> Vec<(String, bool, String)> {
    let found = py.detach(bpf::check);
    found.into_iter().map(|it| (it.name, it.fine, it.detail)).collect()
}

/// A listener to a controller of the kernel. Threads that want it at the same time wait for each other.
#[pyclass(name = "KernelTrace", module = "cwnd._native", frozen)]
pub struct Trace {
    heard: Mutex<Heard>,
    instance: Instance,
}

struct Heard {
    trace: bpf::Trace,
    flows: Connections,
}

impl Trace {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Trace {
    #[new]
    fn new(what: &str) -> PyResult<Self> {
        let instance = bpf::find(what).map_err(refused)?;
        let flows = Connections::new(&parse(&instance.spec)?);
        let trace = bpf::Trace::new(&instance).map_err(refused)?;
        Ok(Trace { heard: Mutex::new(Heard { trace, flows }), instance })
    }

    /// Waits for at most `seconds`; the lines of the connections' records that have come, each with the
    /// number of its connection and its port here.
    fn read(&self, py: Python<'_>, seconds: f64) -> PyResult<Vec<(usize, u16, String)>> {
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        // Whoever waits for the interpreter holds nothing that another thread could wait for.
        py.detach(|| {
            let Heard { trace, flows } = &mut *self.heard();
            let (mut lines, mut events) = (Vec::new(), Vec::new());
            trace.read(wait, &mut events)?;
            for event in &events {
                flows.push(event, |flow, entry| lines.push((flow, entry.to_string())));
            }
            let port = |flow: usize| flows.all()[flow].first.port;
            Ok(lines.into_iter().map(|(flow, line)| (flow, port(flow), line)).collect())
        })
        .map_err(refused)
    }

    /// Events that came too fast.
    fn missed(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.heard().trace.missed()).map_err(refused)
    }

    /// What was seen of each connection, as the simulator's records say it.
    fn flows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let heard = self.heard.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let list = PyList::empty(py);
        for flow in heard.flows.all() {
            list.append(record(py, flow, &self.instance)?)?;
        }
        Ok(list)
    }
}

fn record<'py>(
    py: Python<'py>,
    flow: &Connection,
    from: &Instance,
) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    let [a, b, c, d] = flow.first.peer;
    let end = flow.time.last().copied().unwrap_or(0.0);
    let timeouts = flow.cuts.iter().filter(|cut| cut.timeout).count();
    let ends = (flow.first.port, flow.first.peer_port);
    result.set_item("name", format!("{} -> {a}.{b}.{c}.{d}:{}", ends.0, ends.1))?;
    result.set_item("port", ends.0)?;
    result.set_item("controller", &from.spec)?;
    result.set_item("kind", "tcp")?;
    result.set_item("measured", flow.from_start)?;
    result.set_item("packet_bytes", flow.last.packet_bytes)?;
    // The controller observes neither the headers nor the path.
    result.set_item("header_bytes", 0)?;
    result.set_item("path", PyTuple::empty(py))?;
    result.set_item("base_rtt_s", f64::NAN)?;
    result.set_item("start_s", flow.time.first().copied().unwrap_or(0.0))?;
    result.set_item("stop_s", end)?;
    result.set_item("completed_s", f64::NAN)?;
    result.set_item("acknowledged_s", f64::NAN)?;
    result.set_item("bytes", py.None())?;
    result.set_item("transfers", py.None())?;
    result.set_item("application", PyDict::new(py))?;
    result.set_item("packets_sent", flow.last.sent)?;
    let bytes = |packets: u64| packets * u64::from(flow.last.packet_bytes);
    result.set_item("bytes_sent", bytes(flow.last.sent.into()))?;
    result.set_item("packets_delivered", flow.last.delivered)?;
    result.set_item("bytes_delivered", bytes(flow.last.delivered.into()))?;
    result.set_item("packets_received", flow.last.delivered)?;
    result.set_item("retransmissions", flow.last.retransmitted)?;
    result.set_item("packets_lost", flow.last.retransmitted)?;
    result.set_item("packets_marked", 0)?;
    result.set_item("timeouts", timeouts)?;
    result.set_item("ecn_cuts", 0)?;
    let limited = PyDict::new(py);
    let (window, application) = flow.limited;
    for (what, seconds) in
        [("window", window), ("pacing", 0.0), ("receiver", 0.0), ("application", application)]
    {
        limited.set_item(what, seconds)?;
    }
    result.set_item("limited", limited)?;
    let (sum, count) = flow.rtt_sum_count;
    let min_rtt = f64::from(flow.last.min_rtt) / 1e6;
    result.set_item("mean_rtt_s", sum / count as f64)?;
    result.set_item("min_rtt_s", if min_rtt > 0.0 { min_rtt } else { f64::NAN })?;
    result.set_item("mean_window", mean(&flow.time, &flow.window))?;
    let cuts = PyDict::new(py);
    let series = |of: fn(&bpf::CutEvent) -> f64| -> Vec<f64> { flow.cuts.iter().map(of).collect() };
    cuts.set_item("time", series(|cut| cut.time).into_pyarray(py))?;
    let causes = flow.cuts.iter().map(|cut| if cut.timeout { "timeout" } else { "loss" });
    cuts.set_item("cause", causes.collect::<Vec<_>>())?;
    cuts.set_item("before", series(|cut| cut.before).into_pyarray(py))?;
    cuts.set_item("after", series(|cut| cut.after).into_pyarray(py))?;
    result.set_item("cuts", cuts)?;
    for (name, series) in [
        ("time", &flow.time),
        ("window", &flow.window),
        ("ssthresh", &flow.ssthresh),
        ("rtt", &flow.rtt),
        ("sent", &flow.sent),
        ("delivered", &flow.delivered),
    ] {
        result.set_item(name, series.clone().into_pyarray(py))?;
    }
    for (name, packets) in [("sent_bytes", &flow.sent), ("delivered_bytes", &flow.delivered)] {
        let size = f64::from(flow.last.packet_bytes);
        let bytes: Vec<_> = packets.iter().map(|packets| packets * size).collect();
        result.set_item(name, bytes.into_pyarray(py))?;
    }
    let gauges = PyDict::new(py);
    if !flow.rate.is_empty() {
        gauges.set_item("rate", flow.rate.clone().into_pyarray(py))?;
    }
    result.set_item("gauges", gauges)?;
    let agreement = flow.agreement().map(|it| (it.steps, it.cuts, it.max_error));
    result.set_item("agreement", agreement)?;
    Ok(result)
}

/// The mean of a series that keeps each value until the next one.
fn mean(time: &[f64], values: &[f64]) -> f64 {
    let spans = time.windows(2).map(|pair| pair[1] - pair[0]);
    let area: f64 = spans.clone().zip(values).map(|(span, value)| span * value).sum();
    let length: f64 = spans.sum();
    if length > 0.0 { area / length } else { values.last().copied().unwrap_or(f64::NAN) }
}

/// Adds the functions and classes of this file to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("KernelError", module.py().get_type::<KernelError>())?;
    module.add("KERNEL_IMPLEMENTED", bpf::IMPLEMENTED)?;
    module.add("KERNEL_BOUND", bpf::BOUND)?;
    module.add_class::<Trace>()?;
    module.add_function(wrap_pyfunction!(kernel_load, module)?)?;
    module.add_function(wrap_pyfunction!(kernel_list, module)?)?;
    module.add_function(wrap_pyfunction!(kernel_find, module)?)?;
    module.add_function(wrap_pyfunction!(kernel_unload, module)?)?;
    module.add_function(wrap_pyfunction!(kernel_check, module)?)?;
    Ok(())
}
