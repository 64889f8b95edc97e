//! Records as Python dictionaries with NumPy arrays. Their schema describes each name once:
//! `python/cwnd/_base/records.py` and `docs/json.md` are generated from it.

use cwnd::record::{Entry, Record};
use cwnd::{Dur, Event, Rate};
use cwnd_sim::metrics::METRICS;
use cwnd_sim::network::{Flow, Link, Network, QueueLimit, Traffic};
use cwnd_sim::record::{FlowRecord, LinkRecord, Records};
use cwnd_sim::scenario::Conventions;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::pythonize;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::convert::Infallible;
use std::sync::Arc;

/// A run with its network.
pub(crate) struct Finished {
    pub name: String,
    pub seed: u64,
    pub network: Arc<Network>,
    /// Conventions of the TCP flows; empty if the backend has its own TCP.
    pub conventions: Vec<Conventions>,
    pub records: Records,
    pub wall: f64,
}

/// One run of one scenario with one seed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RunRecord")]
struct RunView<'a> {
    /// Name of the scenario.
    scenario: String,
    /// Seed of the run.
    seed: u64,
    /// Length of the run in seconds.
    duration_s: f64,
    /// Length of the warm-up in seconds, which no counter includes.
    warmup_s: f64,
    /// Conventions of the TCP flows, each once, such as `linux`; empty in real time.
    #[schemars(with = "Vec<String>")]
    conventions: Vec<Conventions>,
    /// Cost of the run: `packets` sent by all sources, `events` processed, `wall_s` of wall time,
    /// which is the only figure that differs between equal runs.
    engine: EngineRecord,
    /// Notes on parts of the scenario that have no effect, or that the backend does not support or
    /// approximates: one sentence each.
    notes: Vec<String>,
    /// Times of the samples of all series in seconds.
    #[serde(skip_serializing)]
    time: Vec<f64>,
    /// Traffic sources in the order of the scenario.
    #[serde(skip_serializing)]
    flows: Vec<FlowView<'a>>,
    /// Directions of the links in the order of the scenario.
    #[serde(skip_serializing)]
    links: Vec<LinkView<'a>>,
}

/// Cost of a run.
#[derive(Serialize, JsonSchema)]
struct EngineRecord {
    /// Data packets sent by all sources, including the warm-up.
    packets: u64,
    /// Events processed.
    events: u64,
    /// Wall time in seconds: the only value that differs between equal runs.
    wall_s: f64,
}

/// Record of one traffic source.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FlowRecord")]
pub(crate) struct FlowView<'a> {
    /// Name in the scenario.
    pub name: &'a str,
    /// Specification of the controller; empty without one.
    pub controller: &'a str,
    /// `tcp`, `udt`, `quic`, `cbr` or `pareto`.
    pub kind: &'static str,
    /// Whether the metrics of the run include it; of a connection of the kernel, whether the trace
    /// has its beginning.
    pub measured: bool,
    /// Bytes of a data packet.
    pub packet_bytes: u32,
    /// Bytes of its headers; 0 for a source whose packets are given on the wire.
    pub header_bytes: u32,
    /// Indices of the links from source to sink.
    #[serde(serialize_with = "as_tuple")]
    pub path: &'a [usize],
    /// Least propagation time in seconds, both ways.
    pub base_rtt_s: f64,
    /// Scheduled start in seconds.
    pub start_s: f64,
    /// Scheduled stop in seconds.
    pub stop_s: f64,
    /// Bytes to send, if they are limited. Without an application they are a single transfer from
    /// `start_s` to `acknowledged_s`.
    pub bytes: Option<u64>,
    #[serde(flatten)]
    pub record: FlowRecord,
    /// Time average of the window in packets.
    pub mean_window: f64,
    /// Transfers of an application (`source`).
    #[serde(skip_serializing)]
    pub transfers: Option<TransfersRecord>,
    /// Acknowledgements that the sender received, if they were recorded.
    #[serde(skip_serializing)]
    pub acks: Option<AcksRecord>,
    /// Window reductions in the whole run.
    #[serde(skip_serializing)]
    pub cuts: CutsRecord,
    /// Slow start threshold in packets.
    #[serde(skip_serializing)]
    pub ssthresh: Vec<f64>,
}

/// Transfers of an application: on periods, responses or chunks, one value each.
#[derive(IntoPyObject, JsonSchema)]
pub(crate) struct TransfersRecord {
    /// Times in seconds at which the data was requested or its writing began.
    begin: Series,
    /// Sizes in bytes.
    bytes: Series,
    /// Times in seconds at which the sender received the acknowledgement of the last byte; NaN if
    /// incomplete.
    end: Series,
}

/// Acknowledgements and reports that a sender received; rates are in packets per second.
#[derive(IntoPyObject, JsonSchema)]
pub(crate) struct AcksRecord {
    /// Times in seconds.
    time: Series,
    /// Congestion windows in packets after them.
    window: Series,
    /// Packets in flight after them; NaN for a report.
    in_flight: Series,
    /// Round-trip time samples in seconds; NaN without a sample.
    rtt: Series,
    /// Pacing rates after them; NaN without pacing.
    pacing_rate: Series,
    /// Delivery-rate samples, and the arrival rates of reports; NaN for a controller that uses none.
    delivery_rate: Series,
}

impl AcksRecord {
    fn new(record: &Record) -> Self {
        let is_ack = |entry: &&Entry| matches!(entry.event, Event::Acked(_) | Event::Report(_));
        let column = |value: fn(&Entry) -> Option<f64>| {
            let acks = record.entries.iter().filter(is_ack);
            acks.map(|entry| value(entry).unwrap_or(f64::NAN)).collect()
        };
        AcksRecord {
            time: column(|entry| Some(entry.at.as_secs())),
            window: column(|entry| Some(entry.output.window.get())),
            in_flight: column(|entry| match entry.event {
                Event::Acked(acked) => Some(acked.in_flight.into()),
                _ => None,
            }),
            rtt: column(|entry| {
                let sample = match entry.event {
                    Event::Acked(acked) => acked.rtt,
                    Event::Report(report) => Some(report.rtt),
                    _ => None,
                };
                sample.map(Dur::as_secs)
            }),
            pacing_rate: column(|entry| entry.output.pace.map(Rate::as_per_sec)),
            delivery_rate: column(|entry| {
                let sample = match entry.event {
                    Event::Acked(acked) => acked.delivery.and_then(|sample| sample.rate()),
                    Event::Report(report) => report.arrival,
                    _ => None,
                };
                sample.map(Rate::as_per_sec)
            }),
        }
    }
}

/// Window reductions of a flow.
#[derive(IntoPyObject, JsonSchema)]
pub(crate) struct CutsRecord {
    /// Times in seconds.
    pub time: Series,
    /// `loss`, `mark`, `timeout` or `persistent-congestion`.
    pub cause: Vec<&'static str>,
    /// Windows before the reductions.
    pub before: Series,
    /// Windows after the reductions.
    pub after: Series,
}

/// Record of one direction of a link.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LinkRecord")]
pub(crate) struct LinkView<'a> {
    /// Name in the scenario.
    name: &'a str,
    /// Rate in bit/s; infinite without one.
    rate_bps: f64,
    /// Lowest token rate of a policer or a shaper in bit/s; infinite without one.
    token_rate_bps: f64,
    /// Propagation delay in seconds.
    delay_s: f64,
    #[serde(flatten)]
    record: LinkRecord,
    /// Limit of the queue.
    queue_limit: f64,
    /// Unit of `queue_limit`: `packets` or `bytes`.
    queue_limit_unit: &'static str,
}

/// Numbers that become a NumPy array without a copy.
#[derive(JsonSchema)]
#[schemars(inline)]
pub(crate) struct Series(pub Vec<f64>);

impl FromIterator<f64> for Series {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        Series(values.into_iter().collect())
    }
}

impl<'py> IntoPyObject<'py> for Series {
    type Target = PyArray1<f64>;
    type Output = Bound<'py, Self::Target>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(self.0.into_pyarray(py))
    }
}

/// The catalogue of metrics, as dictionaries.
#[pyfunction]
pub(crate) fn catalogue(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize(py, METRICS)?)
}

/// The JSON Schema of the record of a run, as JSON text.
#[pyfunction]
pub(crate) fn record_schema() -> String {
    format!("{:#}", schemars::schema_for!(RunView<'_>).to_value())
}

/// Returns the record of a run.
pub(crate) fn run<'py>(py: Python<'py>, finished: Finished) -> PyResult<Bound<'py, PyDict>> {
    let Finished { name, seed, network, conventions, records, wall } = finished;
    let samples = records.time.len();
    let warm = records.time.partition_point(|&at| at < network.warmup.as_secs());
    let flows = network.flows.iter().zip(records.flows);
    let run = RunView {
        scenario: name,
        seed,
        duration_s: network.duration.as_secs(),
        warmup_s: network.warmup.as_secs(),
        conventions,
        engine: EngineRecord { packets: records.packets, events: records.events, wall_s: wall },
        notes: records.notes,
        time: records.time,
        flows: flows.map(|(spec, record)| flow(&network, spec, record, samples, warm)).collect(),
        links: network
            .links
            .iter()
            .zip(records.links)
            .map(|it| LinkView::new(it.0, it.1))
            .collect(),
    };
    let result = to_dict(py, &run)?;
    result.set_item("time", Series(run.time))?;
    let flows = run.flows.into_iter().map(|flow| flow.into_dict(py));
    result.set_item("flows", flows.collect::<PyResult<Vec<_>>>()?)?;
    let links = run.links.into_iter().map(|link| link.into_dict(py));
    result.set_item("links", links.collect::<PyResult<Vec<_>>>()?)?;
    Ok(result)
}

/// The names of conventions in a scenario.
pub(crate) fn names(conventions: &[Conventions]) -> Vec<String> {
    let name = |one| serde_json::to_value(one).ok()?.as_str().map(str::to_owned);
    conventions.iter().filter_map(name).collect()
}

/// Converts the serialized fields of a record: all but its series.
pub(crate) fn to_dict<'py>(
    py: Python<'py>,
    record: &impl Serialize,
) -> PyResult<Bound<'py, PyDict>> {
    Ok(pythonize(py, record)?.cast_into()?)
}

fn as_tuple<S: Serializer>(path: &[usize], serializer: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeTuple;
    let mut tuple = serializer.serialize_tuple(path.len())?;
    path.iter().try_for_each(|link| tuple.serialize_element(link))?;
    tuple.end()
}

fn flow<'a>(
    network: &Network,
    spec: &'a Flow,
    mut record: FlowRecord,
    samples: usize,
    warm: usize,
) -> FlowView<'a> {
    let (kind, controller) = match &*spec.traffic {
        Traffic::Tcp(tcp) => ("tcp", tcp.controller.as_str()),
        Traffic::Udt(udt) => ("udt", udt.controller.as_str()),
        Traffic::Quic(quic) => ("quic", quic.controller.as_str()),
        Traffic::Cbr { .. } => ("cbr", ""),
        Traffic::Pareto { .. } => ("pareto", ""),
    };
    let (packet_bytes, header_bytes) = spec.traffic.packet_bytes();
    let endless = spec.stop == cwnd::Time::NEVER;
    let series = &mut record.series;
    let mean_window = mean(series.window.get(warm..).unwrap_or_default());
    // A series is as long as the others: NaN without samples.
    let pad = |values: &mut Vec<f64>| values.resize(samples, f64::NAN);
    series.gauges.iter_mut().for_each(|(_, values)| pad(values));
    pad(&mut series.window);
    pad(&mut series.rtt);
    let place = series.gauges.iter().position(|(name, _)| *name == "ssthresh");
    let mut ssthresh = place.map(|at| series.gauges.remove(at).1).unwrap_or_default();
    pad(&mut ssthresh);
    FlowView {
        name: &spec.name,
        controller,
        kind,
        measured: spec.measured,
        packet_bytes,
        header_bytes,
        path: &spec.path,
        base_rtt_s: network.base_rtt_s(spec),
        start_s: spec.start.as_secs(),
        stop_s: if endless { f64::INFINITY } else { spec.stop.as_secs() },
        bytes: spec.bytes(),
        mean_window,
        transfers: spec.application.as_ref().map(|_| TransfersRecord {
            begin: record.transfers.iter().map(|transfer| transfer.begin).collect(),
            bytes: record.transfers.iter().map(|transfer| transfer.bytes as f64).collect(),
            end: record.transfers.iter().map(|transfer| transfer.end).collect(),
        }),
        acks: record.events.take().map(|events| AcksRecord::new(&events)),
        cuts: CutsRecord {
            time: record.cuts.iter().map(|cut| cut.at.as_secs()).collect(),
            cause: record.cuts.iter().map(|cut| cut.cut.why.name()).collect(),
            before: record.cuts.iter().map(|cut| cut.cut.before()).collect(),
            after: record.cuts.iter().map(|cut| cut.cut.after()).collect(),
        },
        ssthresh,
        record,
    }
}

impl FlowView<'_> {
    pub(crate) fn into_dict<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let flow = to_dict(py, &self)?;
        flow.set_item("transfers", self.transfers)?;
        flow.set_item("acks", self.acks)?;
        flow.set_item("cuts", self.cuts)?;
        flow.set_item("ssthresh", Series(self.ssthresh))?;
        let mut series = self.record.series;
        let gauges = PyDict::new(py);
        for (name, values) in std::mem::take(&mut series.gauges) {
            gauges.set_item(name, Series(values))?;
        }
        flow.set_item("gauges", gauges)?;
        for (name, values) in series.by_name() {
            flow.set_item(name, Series(values))?;
        }
        Ok(flow)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl<'a> LinkView<'a> {
    pub(crate) fn new(spec: &'a Link, record: LinkRecord) -> Self {
        let buckets = spec.impairments.iter().flat_map(|own| [own.policer, own.shaper]).flatten();
        let (queue_limit, queue_limit_unit) = match spec.queue.limit() {
            QueueLimit::Packets(packets) => (f64::from(packets), "packets"),
            QueueLimit::Bytes(bytes) => (bytes as f64, "bytes"),
        };
        LinkView {
            name: &spec.name,
            rate_bps: spec.rate.unwrap_or(f64::INFINITY),
            token_rate_bps: buckets.map(|bucket| bucket.rate).fold(f64::INFINITY, f64::min),
            delay_s: spec.delay.as_secs(),
            record,
            queue_limit,
            queue_limit_unit,
        }
    }

    pub(crate) fn into_dict<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let link = to_dict(py, &self)?;
        link.set_item("queue", Series(self.record.queue))?;
        link.set_item("drops_series", Series(self.record.drops_series))?;
        link.set_item("capacity_bps", Series(self.record.capacity))?;
        Ok(link)
    }
}
