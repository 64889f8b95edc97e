//! Checks of records, qlogs and runs against the rules of the RFCs.

use crate::scenario::{ScenarioError, read_scenario, scenario_error};
use crate::simulate::controller;
use cwnd::conform::{Expected, Finding, Law, Outcome, conform};
use cwnd::record::{Entry, ParseError, Record};
use cwnd::{Controller, Dur, Event, MakeController, Settings, Spec};
use cwnd_sim::network::{Flow, Traffic};
use cwnd_sim::qlog::{self, Qlog};
use cwnd_sim::{Options, Simulation};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pythonize::pythonize;
use serde::Serialize;
use std::fmt::Display;

/// A rule and its outcome.
#[derive(Serialize)]
struct FindingView {
    rule: &'static str,
    source: &'static str,
    statement: &'static str,
    /// `held`, `violated` or `not exercised`.
    outcome: &'static str,
    /// The events that were checked.
    checks: Option<u64>,
    violation: Option<ViolationView>,
}

/// The first event that violates a rule. Windows are in packets.
#[derive(Serialize)]
struct ViolationView {
    at_s: f64,
    entry: usize,
    before: f64,
    after: f64,
    least: f64,
    /// None without a limit.
    most: Option<f64>,
    cause: String,
}

impl From<Finding> for FindingView {
    fn from(Finding { rule, outcome }: Finding) -> Self {
        let (outcome, checks, violation) = match outcome {
            Outcome::Held(checks) => ("held", Some(checks), None),
            Outcome::Violated(found) => (
                "violated",
                None,
                Some(ViolationView {
                    at_s: found.at.as_secs(),
                    entry: found.position,
                    before: found.before,
                    after: found.after,
                    least: found.least,
                    most: Some(found.most).filter(|most| most.is_finite()),
                    cause: found.cause,
                }),
            ),
            Outcome::NotExercised => ("not exercised", None, None),
        };
        FindingView {
            rule: rule.name,
            source: rule.source,
            statement: rule.statement,
            outcome,
            checks,
            violation,
        }
    }
}

/// A connection that was checked.
#[derive(Serialize)]
struct ConnectionView {
    name: String,
    /// The law whose rules count: `reno`, `cubic` or `other`.
    law: &'static str,
    /// `tcp`, `udt` or `quic`.
    protocol: &'static str,
    findings: Vec<FindingView>,
}

impl ConnectionView {
    fn new(name: String, protocol: &'static str, record: &Record, expected: &Expected) -> Self {
        let law = match expected.law {
            Law::Reno => "reno",
            Law::Cubic => "cubic",
            Law::Other => "other",
        };
        let findings = conform(record, expected).into_iter().map(FindingView::from).collect();
        ConnectionView { name, law, protocol, findings }
    }
}

fn law_named(name: &str) -> Law {
    match name {
        "reno" => Law::Reno,
        "cubic" => Law::Cubic,
        _ => Law::Other,
    }
}

fn expect(law: Law, quic: bool) -> Expected {
    if quic { Expected::quic(law) } else { Expected::tcp(law) }
}

/// Reads a recording with events: a qlog, or the record of a controller, whose protocol is TCP.
fn read_recording(text: &str, is_qlog: bool) -> PyResult<Qlog> {
    let error = |error: &dyn Display| PyValueError::new_err(error.to_string());
    let read = if is_qlog {
        qlog::read(text).map_err(|problem| error(&problem))?
    } else {
        let Settings { packet, .. } = Settings::default();
        let record = text.parse().map_err(|problem: ParseError| error(&problem))?;
        Qlog { protocol: "TCP".into(), title: String::new(), packet, initial_window: None, record }
    };
    match read.record.entries.is_empty() {
        true => Err(error(&"there are no events")),
        false => Ok(read),
    }
}

/// Checks a recording in a text. Its protocol is that of the file, if `quic` is none.
#[pyfunction]
pub(crate) fn conform_recording<'py>(
    py: Python<'py>,
    text: &str,
    is_qlog: bool,
    name: String,
    law: &str,
    quic: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let read = read_recording(text, is_qlog)?;
    let own = match read.protocol.as_str() {
        "TCP" => "tcp",
        "UDT" => "udt",
        _ => "quic",
    };
    let protocol = quic.map_or(own, |quic| if quic { "quic" } else { "tcp" });
    let expected = expect(law_named(law), protocol == "quic");
    let name = if read.title.is_empty() { name } else { read.title };
    Ok(pythonize(py, &ConnectionView::new(name, protocol, &read.record, &expected))?)
}

/// What a recording has after each event; counts and windows are in packets.
#[derive(Default, Serialize)]
struct SeriesView {
    time_s: Vec<f64>,
    sent: Vec<u64>,
    acked: Vec<u64>,
    lost: Vec<u64>,
    in_flight: Vec<u32>,
    window: Vec<f64>,
    rtt_s: Vec<Option<f64>>,
    /// The windows of a controller that was given the same events.
    replayed: Option<Vec<f64>>,
}

impl SeriesView {
    fn push(&mut self, entry: &Entry) {
        let last = |counts: &[u64]| counts.last().copied().unwrap_or(0);
        let (mut sent, mut acked) = (last(&self.sent), last(&self.acked));
        let (mut lost, mut rtt) = (last(&self.lost), self.rtt_s.last().copied().flatten());
        let mut in_flight = self.in_flight.last().copied().unwrap_or(0);
        match &entry.event {
            Event::Acked(of) => {
                (sent, in_flight) = (of.sent, of.in_flight);
                acked += u64::from(of.packets);
                rtt = of.rtt.map(Dur::as_secs).or(rtt);
            }
            Event::Lost(of) | Event::Timeout(of) => {
                sent = of.sent;
                lost += u64::from(of.packets);
                in_flight = in_flight.saturating_sub(of.packets);
            }
            _ => {}
        }
        self.time_s.push(entry.at.as_secs());
        self.sent.push(sent);
        self.acked.push(acked);
        self.lost.push(lost);
        self.in_flight.push(in_flight);
        self.window.push(entry.output.window.get());
        self.rtt_s.push(rtt);
    }
}

/// Returns the series of a recording in a text, and the windows of another controller with the same
/// events.
#[pyfunction]
#[pyo3(signature = (text, is_qlog, quic, controller = None))]
pub(crate) fn recording_series<'py>(
    py: Python<'py>,
    text: &str,
    is_qlog: bool,
    quic: Option<bool>,
    controller: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let error = |error: &dyn Display| PyValueError::new_err(error.to_string());
    let Qlog { protocol, packet, initial_window, record, .. } = read_recording(text, is_qlog)?;
    let mut settings = Settings::default();
    settings.packet = packet;
    settings.initial_window = initial_window.unwrap_or(settings.initial_window);
    if quic.unwrap_or(!matches!(protocol.as_str(), "TCP" | "UDT")) {
        settings.conventions = &cwnd::Conventions::QUIC;
    }
    let mut view = SeriesView::default();
    record.entries.iter().for_each(|entry| view.push(entry));
    if let Some(spec) = controller {
        let made = Spec::parse(spec).map_err(|problem| error(&problem))?;
        let mut made = made.controller(&settings);
        if made.needs().reports || made.needs().delivery_rate {
            let what = if made.needs().reports { "reports" } else { "delivery rates" };
            return Err(error(&format!("{spec} needs {what}, which a recording does not have")));
        }
        let replay = |entry: &Entry| {
            made.on(entry.at, &entry.event);
            made.output().window.get()
        };
        view.replayed = Some(record.entries.iter().map(replay).collect());
    }
    Ok(pythonize(py, &view)?)
}

/// Runs a scenario in JSON and checks the flows with a controller, against the rules of `law` or of
/// their controllers.
#[pyfunction]
#[pyo3(signature = (scenario_json, seed, law = None))]
pub(crate) fn conform_scenario<'py>(
    py: Python<'py>,
    scenario_json: &str,
    seed: u64,
    law: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let scenario = read_scenario(scenario_json)?;
    let network = scenario.network(seed).map_err(scenario_error)?;
    let options =
        Options { quic: Some(&cwnd_quic_sim::connect), record_events: true, ..Options::default() };
    let mut simulation = Simulation::new(&network, seed, &options)
        .map_err(|error| ScenarioError::new_err(error.to_string()))?;
    let records = py.detach(move || {
        simulation.run();
        simulation.finish()
    });
    let given = law.map(law_named);
    let view = |(flow, events): (&Flow, Option<Record>)| {
        let own = Spec::parse(controller(flow)?).map_or(Law::Other, |spec| Law::of(&spec));
        let law = given.unwrap_or(own);
        let tcp = |max_window| Expected { max_window: f64::from(max_window), ..Expected::tcp(law) };
        let (protocol, expected) = match &*flow.traffic {
            Traffic::Tcp(of) => ("tcp", tcp(of.window)),
            Traffic::Udt(udt) => ("udt", tcp(udt.window)),
            Traffic::Quic(_) => ("quic", Expected::quic(law)),
            Traffic::Cbr { .. } | Traffic::Pareto { .. } => return None,
        };
        Some(ConnectionView::new(flow.name.clone(), protocol, &events?, &expected))
    };
    let events = records.flows.into_iter().map(|flow| flow.events);
    let views: Vec<_> = network.flows.iter().zip(events).filter_map(view).collect();
    Ok(pythonize(py, &views)?)
}
