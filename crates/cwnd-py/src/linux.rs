//! The controllers of the Linux kernel, for `cwnd.kernel`.

use crate::export::export;
use crate::records::{CutsRecord, FlowView};
use crate::registry::parse;
use cwnd::Signal;
use cwnd_law::Law;
use cwnd_linux::bpf::{self, Connection, Connections, Instance};
use cwnd_sim::record::{FlowRecord, FlowSeries, Limited};
use numpy::IntoPyArray;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList};
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

/// A controller that is loaded.
#[derive(IntoPyObject)]
pub(crate) struct Loaded {
    name: String,
    controller: String,
    /// Of the text that was loaded, for a law in a file.
    hash: Option<String>,
    default: bool,
}

impl From<Instance> for Loaded {
    fn from(Instance { name, spec, law, default }: Instance) -> Self {
        let law = law.and_then(|text| Law::parse(&text).ok());
        let hash = law.map(|law| law.hash().to_owned());
        Loaded { name, controller: spec, hash, default }
    }
}

export! {
    /// Loads a controller into the kernel.
    kernel_load(spec: &str, name: Option<&str>, default: bool) -> PyResult<Loaded> =
        bpf::load(&parse(spec)?, name, default).map(Loaded::from).map_err(refused);
    /// What is loaded.
    kernel_list() -> PyResult<Vec<Loaded>> =
        Ok(bpf::list().map_err(refused)?.into_iter().map(Loaded::from).collect());
    /// The controller of a name or specification.
    kernel_find(what: &str) -> PyResult<Loaded> =
        bpf::find(what).map(Loaded::from).map_err(refused);
    /// The name and the text of the law in a file that a controller is; nothing for others.
    kernel_law(what: &str) -> PyResult<Option<(String, String)>> = {
        let Instance { spec, law, .. } = bpf::find(what).map_err(refused)?;
        let name = spec.split('(').next().unwrap_or_default().to_owned();
        Ok(law.map(|text| (name, text)))
    };
    /// Unloads one.
    kernel_unload(what: &str) -> PyResult<Loaded> =
        bpf::unload(what).map(Loaded::from).map_err(refused);
    /// The controllers that have a kernel implementation, with the parameters that they need.
    kernel_implemented() -> Vec<String> = bpf::implemented();
    /// What this kernel allows: name, whether it is fine, and words.
    kernel_check(py: Python<'_>) -> Vec<(String, bool, String)> = {
        let found = py.detach(bpf::check);
        found.into_iter().map(|it| (it.name, it.fine, it.detail)).collect()
    };
}

/// A listener to a controller of the kernel. Threads that want it at the same time wait for each
/// other.
#[pyclass(name = "KernelTrace", module = "cwnd._native", frozen)]
pub(crate) struct Trace {
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

    /// Waits for at most `seconds`; the lines of the connections' records that have come, each with
    /// the number of its connection and its port here.
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
    let [a, b, c, d] = flow.first.peer;
    let ends = (flow.first.port, flow.first.peer_port);
    let size = f64::from(flow.last.packet_bytes);
    let bytes = |packets: u32| u64::from(packets) * u64::from(flow.last.packet_bytes);
    let bytes_of = |packets: &[f64]| packets.iter().map(|packets| packets * size).collect();
    let (sum, count) = flow.rtt_sum_count;
    let min_rtt = f64::from(flow.last.min_rtt) / 1e6;
    let (window, application) = flow.limited;
    let rate = (!flow.rate.is_empty()).then(|| ("rate", flow.rate.clone()));
    let cuts = |why| flow.cuts.iter().filter(|(_, cut)| cut.why == why).count() as u64;
    let observed = FlowRecord {
        completed: f64::NAN,
        acknowledged: f64::NAN,
        packets_sent: flow.last.sent.into(),
        bytes_sent: bytes(flow.last.sent),
        packets_delivered: flow.last.delivered.into(),
        bytes_delivered: bytes(flow.last.delivered),
        packets_received: flow.last.delivered.into(),
        packets_lost: flow.last.retransmitted.into(),
        retransmissions: flow.last.retransmitted.into(),
        packets_marked: flow.marked,
        timeouts: cuts(Signal::Timeout),
        ecn_cuts: cuts(Signal::Mark),
        limited: Limited { window, application, ..Limited::default() },
        mean_rtt: sum / count as f64,
        min_rtt: if min_rtt > 0.0 { min_rtt } else { f64::NAN },
        series: FlowSeries {
            window: flow.window.clone(),
            rtt: flow.rtt.clone(),
            sent: flow.sent.clone(),
            sent_bytes: bytes_of(&flow.sent),
            delivered: flow.delivered.clone(),
            delivered_bytes: bytes_of(&flow.delivered),
            gauges: rate.into_iter().collect(),
        },
        ..FlowRecord::default()
    };
    let result = FlowView {
        name: &format!("{} -> {a}.{b}.{c}.{d}:{}", ends.0, ends.1),
        controller: &from.spec,
        kind: "tcp",
        measured: flow.from_start,
        packet_bytes: flow.last.packet_bytes,
        // The controller observes neither the headers nor the path.
        header_bytes: 0,
        path: &[],
        base_rtt_s: f64::NAN,
        start_s: flow.time.first().copied().unwrap_or(0.0),
        stop_s: flow.time.last().copied().unwrap_or(0.0),
        bytes: None,
        record: observed,
        mean_window: mean(&flow.time, &flow.window),
        transfers: None,
        acks: None,
        cuts: CutsRecord {
            time: flow.cuts.iter().map(|(time, _)| *time).collect(),
            cause: flow.cuts.iter().map(|(_, cut)| cut.why.name()).collect(),
            before: flow.cuts.iter().map(|(_, cut)| cut.before()).collect(),
            after: flow.cuts.iter().map(|(_, cut)| cut.after()).collect(),
        },
        ssthresh: flow.ssthresh.clone(),
    }
    .into_dict(py)?;
    result.set_item("port", ends.0)?;
    result.set_item("time", flow.time.clone().into_pyarray(py))?;
    result.set_item("agreement", flow.agreement().map(|it| (it.steps, it.cuts, it.max_error)))?;
    Ok(result)
}

/// The mean of a series that keeps each value until the next one.
fn mean(time: &[f64], values: &[f64]) -> f64 {
    let spans = time.windows(2).map(|pair| pair[1] - pair[0]);
    let area: f64 = spans.clone().zip(values).map(|(span, value)| span * value).sum();
    let length: f64 = spans.sum();
    if length > 0.0 { area / length } else { values.last().copied().unwrap_or(f64::NAN) }
}
