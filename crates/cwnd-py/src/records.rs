//! Records as Python dictionaries with NumPy arrays.

use cwnd_sim::network::{Flow, Link, Network, QueueLimit, Traffic};
use cwnd_sim::record::{FlowRecord, LinkRecord, Records, Transfer};
use cwnd_sim::scenario::Conventions;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::Arc;

/// A run with what it was made from.
pub(crate) struct Finished {
    pub name: String,
    pub seed: u64,
    pub network: Arc<Network>,
    /// Conventions of the TCP flows; empty if the backend has its own TCP.
    pub conventions: Vec<Conventions>,
    pub records: Records,
    pub wall: f64,
}

/// One finished run.
pub(crate) fn run<'py>(py: Python<'py>, finished: Finished) -> PyResult<Bound<'py, PyDict>> {
    let Finished { name, seed, network, conventions, records, wall } = finished;
    let result = PyDict::new(py);
    result.set_item("scenario", name)?;
    result.set_item("seed", seed)?;
    result.set_item("duration_s", network.duration.as_secs())?;
    result.set_item("warmup_s", network.warmup.as_secs())?;
    result.set_item("conventions", names(&conventions))?;
    let engine = PyDict::new(py);
    engine.set_item("packets", records.packets)?;
    engine.set_item("events", records.events)?;
    engine.set_item("wall_s", wall)?;
    result.set_item("engine", engine)?;
    let samples = records.time.len();
    let warm = records.time.partition_point(|&at| at < network.warmup.as_secs());
    result.set_item("time", records.time.into_pyarray(py))?;
    let flows = PyList::empty(py);
    for (spec, record) in network.flows.iter().zip(records.flows) {
        flows.append(flow(py, &network, spec, record, samples, warm)?)?;
    }
    result.set_item("flows", flows)?;
    let links = PyList::empty(py);
    for (spec, record) in network.links.iter().zip(records.links) {
        links.append(link(py, spec, record)?)?;
    }
    result.set_item("links", links)?;
    Ok(result)
}

/// The names of conventions in a scenario.
pub(crate) fn names(conventions: &[Conventions]) -> Vec<String> {
    let name = |one| serde_json::to_value(one).ok()?.as_str().map(str::to_owned);
    conventions.iter().filter_map(name).collect()
}

fn flow<'py>(
    py: Python<'py>,
    network: &Network,
    spec: &Flow,
    record: FlowRecord,
    samples: usize,
    warm: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (kind, controller, packet, header) = match &*spec.traffic {
        Traffic::Tcp(tcp) => ("tcp", tcp.controller.as_str(), tcp.packet, tcp.header),
        Traffic::Udt(udt) => ("udt", udt.controller.as_str(), udt.packet, udt.header),
        Traffic::Cbr { packet, .. } => ("cbr", "", *packet, 0),
        Traffic::Pareto { packet, .. } => ("pareto", "", *packet, 0),
    };
    let flow = PyDict::new(py);
    flow.set_item("name", &spec.name)?;
    flow.set_item("controller", controller)?;
    flow.set_item("kind", kind)?;
    flow.set_item("measured", spec.measured)?;
    flow.set_item("packet_bytes", packet)?;
    flow.set_item("header_bytes", header)?;
    flow.set_item("path", PyTuple::new(py, &*spec.path)?)?;
    let delays = spec.path.iter().chain(&*spec.back).map(|&link| network.links[link].least_delay());
    flow.set_item("base_rtt_s", delays.map(cwnd::Dur::as_secs).sum::<f64>())?;
    flow.set_item("start_s", spec.start.as_secs())?;
    let endless = spec.stop == cwnd::Time::NEVER;
    flow.set_item("stop_s", if endless { f64::INFINITY } else { spec.stop.as_secs() })?;
    flow.set_item("completed_s", record.completed)?;
    flow.set_item("acknowledged_s", record.acknowledged)?;
    flow.set_item("bytes", spec.bytes())?;
    let transfers = spec.application.as_ref().map(|_| transfers(py, &record)).transpose()?;
    flow.set_item("transfers", transfers)?;
    let figures = PyDict::new(py);
    for (name, value) in &record.application {
        figures.set_item(name, value)?;
    }
    flow.set_item("application", figures)?;
    flow.set_item("packets_sent", record.packets_sent)?;
    flow.set_item("bytes_sent", record.bytes_sent)?;
    flow.set_item("packets_delivered", record.packets_delivered)?;
    flow.set_item("bytes_delivered", record.bytes_delivered)?;
    flow.set_item("packets_received", record.packets_received)?;
    flow.set_item("retransmissions", record.retransmissions)?;
    flow.set_item("packets_lost", record.packets_lost)?;
    flow.set_item("packets_marked", record.packets_marked)?;
    flow.set_item("timeouts", record.timeouts)?;
    flow.set_item("ecn_cuts", record.ecn_cuts)?;
    let limited = PyDict::new(py);
    for (name, seconds) in
        ["window", "pacing", "receiver", "application"].iter().zip(record.limited)
    {
        limited.set_item(name, seconds)?;
    }
    flow.set_item("limited", limited)?;
    flow.set_item("mean_rtt_s", record.mean_rtt)?;
    flow.set_item("min_rtt_s", record.min_rtt)?;
    let mut series = record.series;
    flow.set_item("mean_window", mean(series.window.get(warm..).unwrap_or_default()))?;
    let cuts = PyDict::new(py);
    let column = |get: fn(&cwnd_sim::record::CutRecord) -> f64| {
        record.cuts.iter().map(get).collect::<Vec<_>>().into_pyarray(py)
    };
    cuts.set_item("time", column(|cut| cut.at.as_secs()))?;
    cuts.set_item("cause", record.cuts.iter().map(|cut| cut.cut.why.name()).collect::<Vec<_>>())?;
    cuts.set_item("before", column(|cut| cut.cut.before()))?;
    cuts.set_item("after", column(|cut| cut.cut.after()))?;
    flow.set_item("cuts", cuts)?;
    let gauges = PyDict::new(py);
    for (name, values) in series.gauges {
        let values = padded(values, samples).into_pyarray(py);
        if name == "ssthresh" {
            flow.set_item(name, values)?
        } else {
            gauges.set_item(name, values)?
        }
    }
    if !flow.contains("ssthresh")? {
        flow.set_item("ssthresh", padded(Vec::new(), samples).into_pyarray(py))?;
    }
    flow.set_item("gauges", gauges)?;
    flow.set_item("window", padded(std::mem::take(&mut series.window), samples).into_pyarray(py))?;
    flow.set_item("rtt", padded(series.rtt, samples).into_pyarray(py))?;
    flow.set_item("sent", series.sent.into_pyarray(py))?;
    flow.set_item("sent_bytes", series.sent_bytes.into_pyarray(py))?;
    flow.set_item("delivered", series.delivered.into_pyarray(py))?;
    flow.set_item("delivered_bytes", series.delivered_bytes.into_pyarray(py))?;
    Ok(flow)
}

/// The transfers of an application as columns.
fn transfers<'py>(py: Python<'py>, record: &FlowRecord) -> PyResult<Bound<'py, PyDict>> {
    let column = |get: fn(&Transfer) -> f64| {
        record.transfers.iter().map(get).collect::<Vec<_>>().into_pyarray(py)
    };
    let transfers = PyDict::new(py);
    transfers.set_item("begin", column(|transfer| transfer.begin))?;
    transfers.set_item("bytes", column(|transfer| transfer.bytes as f64))?;
    transfers.set_item("end", column(|transfer| transfer.end))?;
    Ok(transfers)
}

/// A series as long as the others: not a number where there was none.
fn padded(mut values: Vec<f64>, samples: usize) -> Vec<f64> {
    values.resize(samples, f64::NAN);
    values
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// What a link did.
pub(crate) fn link<'py>(
    py: Python<'py>,
    spec: &Link,
    record: LinkRecord,
) -> PyResult<Bound<'py, PyDict>> {
    let link = PyDict::new(py);
    link.set_item("name", &spec.name)?;
    link.set_item("rate_bps", spec.rate.unwrap_or(f64::INFINITY))?;
    let buckets = spec.impairments.iter().flat_map(|own| [own.policer, own.shaper]).flatten();
    let tokens = buckets.map(|bucket| bucket.rate).fold(f64::INFINITY, f64::min);
    link.set_item("token_rate_bps", tokens)?;
    link.set_item("delay_s", spec.delay.as_secs())?;
    link.set_item("arrivals", record.arrivals)?;
    link.set_item("offered", record.offered)?;
    link.set_item("departures", record.departures)?;
    link.set_item("drops", record.drops)?;
    link.set_item("marks", record.marks)?;
    link.set_item("losses", record.losses)?;
    link.set_item("bytes_departed", record.bytes_departed)?;
    link.set_item("utilization", record.utilization)?;
    link.set_item("mean_queue", record.mean_queue)?;
    let (limit, unit) = match spec.queue.limit() {
        QueueLimit::Packets(packets) => (f64::from(packets), "packets"),
        QueueLimit::Bytes(bytes) => (bytes as f64, "bytes"),
    };
    link.set_item("queue_limit", limit)?;
    link.set_item("queue_limit_unit", unit)?;
    let delay = PyDict::new(py);
    for (name, seconds) in ["mean", "p50", "p95", "p99"].iter().zip(record.delay) {
        delay.set_item(name, seconds)?;
    }
    link.set_item("delay", delay)?;
    link.set_item("queue", record.queue.into_pyarray(py))?;
    link.set_item("drops_series", record.drops_series.into_pyarray(py))?;
    link.set_item("capacity_bps", record.capacity.into_pyarray(py))?;
    Ok(link)
}
