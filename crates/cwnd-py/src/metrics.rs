//! The formulas of the metrics, on what NumPy can read as arrays, and the metrics of records.

use crate::export::export;
use crate::records::Series;
use crate::scenario::scenario_error;
use cwnd_sim::metrics::formula::{self, JainSeries, Spread};
use cwnd_sim::metrics::{
    self, Expectation, Expectations, Flow, FlowTransfers, Kind, Link, MetricError, Named, Outcome,
    Places, Run,
};
use numpy::{AllowTypeChange, IntoPyArray, PyArrayLikeDyn, PyArrayMethods, PyReadonlyArrayDyn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pythonize::{depythonize, pythonize};
use std::collections::BTreeSet;

/// Numbers from Python, of any shape, contiguous in memory.
#[derive(Default)]
pub(crate) struct Numbers<'py>(Option<PyReadonlyArrayDyn<'py, f64>>);

impl<'a, 'py> FromPyObject<'a, 'py> for Numbers<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let array: PyArrayLikeDyn<'py, f64, AllowTypeChange> = object.extract()?;
        if array.as_slice().is_ok() {
            return Ok(Numbers(Some(array.clone())));
        }
        let copied: Vec<_> = array.as_array().iter().copied().collect();
        Ok(Numbers(Some(copied.into_pyarray(object.py()).to_dyn().readonly())))
    }
}

impl AsRef<[f64]> for Numbers<'_> {
    fn as_ref(&self) -> &[f64] {
        self.0.as_ref().and_then(|array| array.as_slice().ok()).unwrap_or_default()
    }
}

/// Checks that columns belong together.
fn check_lengths(names: &str, columns: &[&[f64]]) -> PyResult<()> {
    let lengths: Vec<_> = columns.iter().map(|column| column.len().to_string()).collect();
    if lengths.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(());
    }
    let lengths = lengths.join(" and ");
    Err(PyValueError::new_err(format!("{names} have different lengths: {lengths}")))
}

/// Checks a time scale of series.
fn check_scale(time: &[f64], scale: f64, start: Option<f64>) -> PyResult<()> {
    let (first, last) = (start.or(time.first().copied()), time.last().copied());
    let span = last.unwrap_or(0.0) - first.unwrap_or(0.0);
    if scale > 0.0 && scale.is_finite() && span / scale < formula::MAX_INTERVALS && span.is_finite()
    {
        return Ok(());
    }
    let most = formula::MAX_INTERVALS;
    let text =
        format!("intervals of {scale} s: they are above 0, and at most {most:e} in a series");
    Err(PyValueError::new_err(text))
}

/// The fields of a `cwnd.metrics.Spread`.
type SpreadFields = (usize, f64, f64, f64, f64, f64);

fn fields(of: Spread) -> SpreadFields {
    (of.number, of.mean, of.p50, of.p95, of.p99, of.max)
}

export! {
    ratio(part: f64, whole: f64) -> f64 = formula::ratio(part, whole);
    rate(size: f64, seconds: f64) -> f64 = formula::rate(size, seconds);
    harm(alone: f64, beside: f64, more_is_better: bool) -> f64 =
        formula::harm(alone, beside, more_is_better);
    extreme(values: Numbers<'_>, highest: bool) -> f64 = formula::extreme(values.as_ref(), highest);
    total(values: Numbers<'_>) -> f64 = formula::sum(values.as_ref().iter().copied());
    mean_of_finite(values: Numbers<'_>) -> f64 =
        formula::mean_of_finite(values.as_ref().iter().copied());
    jain(rates: Numbers<'_>) -> f64 = formula::jain(rates.as_ref());
    friendliness(controller: Numbers<'_>, reference: Numbers<'_>) -> f64 =
        formula::friendliness(controller.as_ref(), reference.as_ref());
    coefficient_of_variation(rates: Numbers<'_>) -> f64 =
        formula::coefficient_of_variation(rates.as_ref());
    stability_index(rates: Vec<Numbers<'_>>) -> f64 = formula::stability_index(&rates);
    smoothness(
        time: Numbers<'_>, counted: Numbers<'_>, scale: f64, start: Option<f64>
    ) -> PyResult<f64> = {
        let (time, counted) = (time.as_ref(), counted.as_ref());
        check_lengths("time and packets", &[time, counted])?;
        check_scale(time, scale, start)?;
        Ok(formula::smoothness(time, counted, scale, start))
    };
    convergence_time(
        time: Numbers<'_>, rates: Vec<Numbers<'_>>, epsilon: f64, hold: f64
    ) -> PyResult<f64> = {
        for own in &rates {
            check_lengths("time and rates", &[time.as_ref(), own.as_ref()])?;
        }
        Ok(formula::convergence_time(time.as_ref(), &rates, epsilon, hold))
    };
    responsiveness(
        time: Numbers<'_>, rate: Numbers<'_>, congestion: f64, rtt: f64, factor: f64
    ) -> PyResult<f64> = {
        check_lengths("time and rate", &[time.as_ref(), rate.as_ref()])?;
        if rtt <= 0.0 {
            return Err(PyValueError::new_err("a round-trip time is above 0"));
        }
        Ok(formula::responsiveness(time.as_ref(), rate.as_ref(), congestion, rtt, factor))
    };
    queue_delay(delays: Numbers<'_>, weights: Option<Numbers<'_>>) -> PyResult<[f64; 4]> = {
        let weights = weights.as_ref().map(AsRef::as_ref);
        check_lengths("delays and weights", &[delays.as_ref(), weights.unwrap_or(delays.as_ref())])?;
        if weights.is_some_and(|own| own.iter().any(|weight| *weight < 0.0)) {
            return Err(PyValueError::new_err("weights are at least 0"));
        }
        Ok(formula::queue_delay(delays.as_ref(), weights))
    };
    spread(values: Numbers<'_>) -> SpreadFields = fields(formula::spread(values.as_ref()));
    by_size(sizes: Numbers<'_>, values: Numbers<'_>) -> PyResult<Vec<(f64, f64, SpreadFields)>> = {
        let (sizes, values) = (sizes.as_ref(), values.as_ref());
        check_lengths("sizes and values", &[sizes, values])?;
        let classes = formula::by_size(sizes, values).into_iter();
        Ok(classes.map(|(low, high, found)| (low, high, fields(found))).collect())
    };
    /// Returns the beginnings of the intervals and the rate in each.
    binned_rate(
        time: Numbers<'_>, counted: Numbers<'_>, packet_bytes: f64, scale: f64, start: Option<f64>
    ) -> PyResult<(Series, Series)> = {
        let (time, counted) = (time.as_ref(), counted.as_ref());
        check_lengths("time and packets", &[time, counted])?;
        check_scale(time, scale, start)?;
        let (edges, rates) = formula::binned_rate(time, counted, packet_bytes, scale, start);
        Ok((Series(edges), Series(rates)))
    };
    /// Returns the ideal completion time of each transfer.
    ideal_completion_time(
        wire_bytes: Numbers<'_>, rate_bps: Numbers<'_>, rtt_s: Numbers<'_>
    ) -> Series = {
        let rates = rate_bps.as_ref().iter().zip(rtt_s.as_ref());
        let each = wire_bytes.as_ref().iter().zip(rates);
        each.map(|(bytes, (rate, rtt))| formula::ideal_completion_time(*bytes, *rate, *rtt)).collect()
    };
    /// Returns the slowdown of each transfer.
    slowdown(times: Numbers<'_>, ideal: Numbers<'_>) -> Series = {
        let each = times.as_ref().iter().zip(ideal.as_ref());
        each.map(|(time, ideal)| formula::slowdown(*time, *ideal)).collect()
    };
    /// Returns the rate that the link offers to each transfer.
    offered_rate(
        time: Numbers<'_>, capacity_bps: Numbers<'_>, begin: Numbers<'_>, wire_bytes: Numbers<'_>
    ) -> PyResult<Series> = {
        let (time, capacity) = (time.as_ref(), capacity_bps.as_ref());
        let (begin, bytes) = (begin.as_ref(), wire_bytes.as_ref());
        check_lengths("time and capacity_bps", &[time, capacity])?;
        check_lengths("begin and wire_bytes", &[begin, bytes])?;
        Ok(Series(formula::offered_rate(time, capacity, begin, bytes)))
    };
}

/// The fields of a `cwnd.metrics.JainSeries`.
type JainFields = (Series, Series, f64, f64);

fn jain_fields(of: JainSeries) -> JainFields {
    (Series(of.time), Series(of.jain), of.worst, of.mean)
}

/// Returns the beginnings of the windows, Jain's index in each, its worst and its mean.
#[pyfunction]
pub(crate) fn jain_over_time(
    time: Numbers<'_>,
    delivered: Vec<Numbers<'_>>,
    window: f64,
    start: f64,
    active: Vec<(f64, f64)>,
) -> PyResult<JainFields> {
    for own in &delivered {
        check_lengths("time and delivered", &[time.as_ref(), own.as_ref()])?;
    }
    if active.len() != delivered.len() {
        let (spans, flows) = (active.len(), delivered.len());
        let text = format!("active has {spans} times, and delivered has {flows} flows");
        return Err(PyValueError::new_err(text));
    }
    check_scale(time.as_ref(), window, Some(start))?;
    Ok(jain_fields(formula::jain_over_time(time.as_ref(), &delivered, window, start, &active)))
}

type Dicts<'py> = Vec<Bound<'py, PyDict>>;

/// Returns the series of a record; empty if a record made by hand lacks it.
fn series<'py>(record: &Bound<'py, PyDict>, name: &str) -> PyResult<Numbers<'py>> {
    record.get_item(name)?.map_or_else(|| Ok(Numbers::default()), |found| found.extract())
}

/// The series of a `FlowRecord`.
struct FlowSeries<'py> {
    sent: Numbers<'py>,
    delivered: Numbers<'py>,
    cuts: Numbers<'py>,
    increases: Numbers<'py>,
    transfers: Option<[Numbers<'py>; 3]>,
}

impl<'py> FlowSeries<'py> {
    fn read(record: &Bound<'py, PyDict>) -> PyResult<Self> {
        let part = |name| PyResult::Ok(record.get_item(name)?.and_then(|own| own.cast_into().ok()));
        let of_part = |part: Option<Bound<'py, PyDict>>, name| {
            part.map_or_else(|| Ok(Numbers::default()), |part| series(&part, name))
        };
        let transfers = |own: Bound<'py, PyDict>| {
            PyResult::Ok([series(&own, "begin")?, series(&own, "bytes")?, series(&own, "end")?])
        };
        Ok(FlowSeries {
            sent: series(record, "sent_bytes")?,
            delivered: series(record, "delivered_bytes")?,
            cuts: of_part(part("cuts")?, "time")?,
            increases: of_part(part("gauges")?, "a")?,
            transfers: part("transfers")?.map(transfers).transpose()?,
        })
    }

    fn flow(&self, record: &Bound<'py, PyDict>) -> PyResult<Flow<'_>> {
        Ok(Flow {
            sent_bytes: self.sent.as_ref(),
            delivered_bytes: self.delivered.as_ref(),
            cuts: self.cuts.as_ref().into(),
            transfers: self.transfers.as_ref().map(|[begin, bytes, end]| FlowTransfers {
                begin: begin.as_ref().into(),
                bytes: bytes.as_ref().into(),
                end: end.as_ref().into(),
            }),
            increase: self.increases.as_ref().last().copied(),
            ..depythonize(record)?
        })
    }
}

/// A `cwnd.Result`.
#[derive(FromPyObject)]
pub(crate) struct Given<'py> {
    record: Bound<'py, PyDict>,
    scales: [f64; 3],
}

impl<'py> Given<'py> {
    fn list(&self, name: &str) -> PyResult<Dicts<'py>> {
        let found = self.record.get_item(name)?.map(|found| found.extract());
        Ok(found.transpose()?.unwrap_or_default())
    }

    /// Computes metrics of the run with all its flows and links.
    fn whole<T>(&self, compute: impl FnOnce(&Run<'_>) -> T) -> PyResult<T> {
        self.part(&self.list("flows")?, &self.list("links")?, |run, _| compute(run))
    }

    /// Computes metrics of flows of the run that need their series and these links.
    fn part<T>(
        &self,
        flows: &Dicts<'py>,
        links: &Dicts<'py>,
        compute: impl FnOnce(&Run<'_>, &[&Flow<'_>]) -> T,
    ) -> PyResult<T> {
        let time = series(&self.record, "time")?;
        let of_flows = flows.iter().map(FlowSeries::read).collect::<PyResult<Vec<_>>>()?;
        let capacities = links.iter().map(|link| series(link, "capacity_bps"));
        let capacities = capacities.collect::<PyResult<Vec<_>>>()?;
        let flows = flows.iter().zip(&of_flows).map(|(record, own)| own.flow(record));
        let links = links.iter().zip(&capacities).map(|(link, capacity)| {
            PyResult::Ok(Link { capacity_bps: capacity.as_ref(), ..depythonize(link)? })
        });
        let run = Run {
            time: time.as_ref(),
            scales: self.scales,
            flows: flows.collect::<PyResult<_>>()?,
            links: links.collect::<PyResult<_>>()?,
            ..depythonize(&self.record)?
        };
        Ok(compute(&run, &run.flows.iter().collect::<Vec<_>>()))
    }

    /// Computes metrics of flows of the run that need neither series nor links.
    fn counters<T>(
        &self,
        flows: &Dicts<'py>,
        compute: impl FnOnce(&Run<'_>, &[&Flow<'_>]) -> T,
    ) -> PyResult<T> {
        let flows =
            flows.iter().map(|flow| Ok(depythonize(flow)?)).collect::<PyResult<Vec<_>>>()?;
        Ok(compute(&depythonize(&self.record)?, &flows.iter().collect::<Vec<_>>()))
    }
}

/// Returns the coefficient of variation of a flow's throughput at each time scale.
#[pyfunction]
pub(crate) fn run_smoothness<'py>(
    result: Given<'py>,
    flow: Bound<'py, PyDict>,
    scales: Vec<f64>,
) -> PyResult<Vec<f64>> {
    let time = series(&result.record, "time")?;
    for scale in &scales {
        check_scale(time.as_ref(), *scale, None)?;
    }
    result.part(&vec![flow], &Vec::new(), |run, flows| {
        scales.iter().map(|scale| run.smoothness(flows[0], *scale)).collect()
    })
}

/// Returns Jain's index of the flows' goodputs in windows.
#[pyfunction]
pub(crate) fn run_jain(result: Given<'_>, flows: Dicts<'_>, window: f64) -> PyResult<JainFields> {
    check_scale(series(&result.record, "time")?.as_ref(), window, None)?;
    let compute = |run: &Run<'_>, flows: &[&Flow<'_>]| run.jain_over_time(flows, window);
    Ok(jain_fields(result.part(&flows, &Vec::new(), compute)?))
}

/// Returns the beginnings, sizes, completion times and slowdowns of the flows' transfers.
#[pyfunction]
pub(crate) fn run_transfers(result: Given<'_>, flows: Dicts<'_>) -> PyResult<[Series; 4]> {
    let found = result.part(&flows, &result.list("links")?, |run, flows| run.transfers(flows))?;
    Ok([found.begin, found.bytes, found.fct, found.slowdown].map(Series))
}

/// Returns the metrics of a run, and of each of its flows.
#[pyfunction]
pub(crate) fn run_figures<'py>(
    py: Python<'py>,
    result: Given<'py>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let figures = result.whole(|run| run.figures())?;
    Ok((pythonize(py, &figures)?, pythonize(py, &figures.flows)?))
}

/// Returns the fractions of the flows' packets that were lost, marked and retransmitted.
#[pyfunction]
pub(crate) fn packet_rates(flows: Dicts<'_>) -> PyResult<[f64; 3]> {
    let flows =
        flows.iter().map(|flow| Ok(depythonize(flow)?)).collect::<PyResult<Vec<Flow<'_>>>>()?;
    let flows: Vec<_> = flows.iter().collect();
    Ok([metrics::loss_rate, metrics::mark_rate, metrics::retransmission_rate].map(|of| of(&flows)))
}

export! {
    /// Returns the time scales of smoothness in seconds.
    time_scales(min_rtts: Numbers<'_>, sample_s: f64) -> [f64; 3] =
        metrics::time_scales(min_rtts.as_ref().iter().copied(), sample_s);
    /// Returns the seconds for which each flow was active after the warm-up.
    run_seconds(result: Given<'_>, flows: Dicts<'_>) -> PyResult<Vec<f64>> =
        result.counters(&flows, |run, flows| flows.iter().map(|flow| run.seconds(flow)).collect());
    /// Returns the goodput of each flow that was active after the warm-up.
    run_goodputs(result: Given<'_>, flows: Dicts<'_>) -> PyResult<Vec<f64>> =
        result.counters(&flows, |run, flows| run.goodputs(flows));
    /// Returns the goodput of flows together.
    run_total_goodput(result: Given<'_>, flows: Dicts<'_>) -> PyResult<f64> =
        result.counters(&flows, |run, flows| run.total_goodput(flows));
    /// Returns the fractions of the packets offered to a link that were lost and marked.
    link_rates(offered: f64, drops: f64, losses: f64, marks: f64) -> [f64; 2] = {
        let link = Link { offered, drops, losses, marks, ..Link::default() };
        [link.loss_rate(), link.mark_rate()]
    };
    /// Splits a bound into its operator and its value.
    read_bound(bound: &str) -> PyResult<(&'static str, &str)> =
        metrics::read_bound(bound).map_err(wrong);
    /// Reads the value of a bound in the unit of a dimension.
    read_limit(dimension: Bound<'_, PyAny>, text: &str) -> PyResult<f64> =
        metrics::read_limit(depythonize(&dimension)?, text).map_err(wrong);
    /// Formats a rate for people.
    format_rate(bps: f64, digits: usize) -> String = metrics::format_rate(bps, digits);
    /// Formats a time for people.
    format_time(seconds: f64, digits: usize) -> String = metrics::format_time(seconds, digits);
    /// Returns the name of a flow's group.
    flow_group(name: &str) -> &str = metrics::group_of(name);
    /// Separates flows by kind: the name of each, and indices of its flows.
    flow_kinds(names: Vec<String>, endless: Vec<bool>) -> Vec<(Option<String>, Vec<usize>)> = {
        let flows = names.iter().map(String::as_str).zip(endless);
        metrics::flow_kinds(flows).into_iter().map(|kind| (kind.name, kind.flows)).collect()
    };
    /// Names the flows of a kind for people.
    kind_label(name: Option<&str>, number: usize) -> String =
        metrics::FlowKind::label(name, number);
    /// Formats a value of a dimension for people.
    format_value(dimension: Bound<'_, PyAny>, value: f64) -> PyResult<String> =
        Ok(metrics::format_value(depythonize(&dimension)?, value));
}

fn wrong(error: MetricError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Lists the metrics that can be named.
#[pyfunction]
pub(crate) fn named_metrics() -> Vec<&'static str> {
    metrics::named().map(|metric| metric.name).collect()
}

/// Reads a metric's name; returns that of the entry of the catalogue.
#[pyfunction]
pub(crate) fn read_metric(
    name: &str,
    groups: &Bound<'_, PyAny>,
    links: &Bound<'_, PyAny>,
) -> PyResult<&'static str> {
    // The sets have up to tens of thousands of names, which only a name with a place needs.
    let nowhere = Places { groups: BTreeSet::new(), links: BTreeSet::new() };
    if let Ok(found) = Named::read(name, Some(&nowhere)) {
        return Ok(found.metric.name);
    }
    let places = Places { groups: groups.extract()?, links: links.extract()? };
    let found = Named::read(name, Some(&places)).map_err(wrong)?;
    Ok(found.metric.name)
}

/// Returns metrics of a run by their names, of which the places are not checked.
#[pyfunction]
pub(crate) fn run_metrics(result: Given<'_>, names: Vec<String>) -> PyResult<Vec<f64>> {
    let read = names.iter().map(|name| Named::read(name, None).map_err(wrong));
    let metrics = read.collect::<PyResult<Vec<_>>>()?;
    result.whole(|run| metrics.iter().map(|metric| metric.value(run)).collect())
}

/// Reads a rate, a time or a size: text with a unit, or a number.
#[pyfunction]
pub(crate) fn parse_quantity(kind: &str, value: &Bound<'_, PyAny>, zero: bool) -> PyResult<f64> {
    let kind = match kind {
        "rate" => Kind::RATE,
        "time" => Kind::TIME,
        _ => Kind::SIZE,
    };
    let read = match value.cast::<PyString>() {
        Ok(text) => kind.parse(&text.to_string_lossy(), zero),
        Err(_) => kind.check(value.extract()?, zero, &value.repr()?.to_string()),
    };
    read.map_err(wrong)
}

/// Lists the bounds in a table with the parts of their names, in the order of the table.
fn bounds(table: &Bound<'_, PyDict>, before: &[String]) -> PyResult<Vec<(Vec<String>, String)>> {
    let mut found = Vec::new();
    for (key, value) in table {
        let keys = [before, &[key.extract()?]].concat();
        if let Ok(inner) = value.cast::<PyDict>() {
            found.extend(bounds(inner, &keys)?);
        } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            for bound in value.try_iter()? {
                found.push((keys.clone(), bound?.str()?.to_string()));
            }
        } else {
            found.push((keys, value.str()?.to_string()));
        }
    }
    Ok(found)
}

/// The name of a metric, that of its entry in the catalogue, the bound, its operator and limit.
type ExpectationFields = (String, &'static str, String, &'static str, f64);

fn expectation_fields(of: &Expectation) -> ExpectationFields {
    let Expectation { metric, bound, operator, limit } = of;
    (metric.name.clone(), metric.metric.name, bound.clone(), operator, *limit)
}

/// Reads a table of bounds; the file is the path and the text of the scenario.
#[pyfunction]
pub(crate) fn read_expectations(
    table: Bound<'_, PyDict>,
    groups: BTreeSet<String>,
    links: BTreeSet<String>,
    duration_s: f64,
    file: Option<(String, String)>,
) -> PyResult<Vec<ExpectationFields>> {
    let found = bounds(&table, &[])?;
    let file = file.as_ref().map(|(origin, text)| (origin.as_str(), text.as_str()));
    let places = Places { groups, links };
    let read = Expectations::read(found, &places, duration_s, file).map_err(scenario_error)?;
    Ok(read.iter().map(expectation_fields).collect())
}

/// Compares the metrics of a run with a table of bounds: returns each expectation, the value,
/// whether it holds, and a line of text.
#[pyfunction]
pub(crate) fn check_expectations(
    result: Given<'_>,
    table: Bound<'_, PyDict>,
) -> PyResult<Vec<(ExpectationFields, f64, bool, String)>> {
    let found = bounds(&table, &[])?;
    let fields = |own: &Outcome<'_>| {
        (expectation_fields(own.expectation), own.value, own.holds, own.to_string())
    };
    let check = |run: &Run<'_>| {
        let read = Expectations::read(found, &Places::of_run(run), f64::INFINITY, None)?;
        Ok(read.check(run).iter().map(fields).collect())
    };
    result.whole(check)?.map_err(scenario_error)
}
