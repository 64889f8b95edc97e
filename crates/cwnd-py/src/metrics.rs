//! The catalogue of metrics, their names, and bounds on them.

use cwnd_sim::metrics::{self, Dimension, METRICS, Operator, Places, Scope};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeSet;

/// A metric as a dictionary.
#[derive(IntoPyObject)]
struct Metric {
    name: &'static str,
    dimension: &'static str,
    range: (f64, f64, f64),
    statistics: &'static [&'static str],
    named: bool,
    of_bottleneck: bool,
    figures: Vec<Figure>,
}

/// A figure as a dictionary.
#[derive(IntoPyObject)]
struct Figure {
    name: &'static str,
    title: &'static str,
    short: &'static str,
    unit: &'static str,
    factor: f64,
    digits: u8,
    meaning: &'static str,
    of_run: bool,
}

/// The metrics of the catalogue.
#[pyfunction]
fn catalogue() -> Vec<Metric> {
    let figure = |figure: &metrics::Figure| Figure {
        name: figure.name,
        title: figure.title,
        short: figure.short,
        unit: figure.unit,
        factor: figure.factor(),
        digits: figure.digits,
        meaning: figure.meaning,
        of_run: figure.of_run,
    };
    let metric = |metric: &metrics::Metric| Metric {
        name: metric.name,
        dimension: metric.dimension.name(),
        range: metric.dimension.range(),
        statistics: metric.statistics,
        named: metric.scope != Scope::Nothing,
        of_bottleneck: metric.scope.has_links(),
        figures: metric.figures.iter().map(figure).collect(),
    };
    METRICS.iter().map(metric).collect()
}

/// The metric, the statistic, the place, the rate and the part of the run in a name.
type Name = (&'static str, String, String, f64, Option<(f64, f64)>);

/// Reads the name of a metric.
#[pyfunction]
fn read_metric(name: &str, groups: BTreeSet<String>, links: BTreeSet<String>) -> PyResult<Name> {
    let name = metrics::Name::parse(name, &Places { groups, links });
    let name = name.map_err(PyValueError::new_err)?;
    Ok((name.metric.name, name.statistic, name.place, name.rate, name.span))
}

/// Splits a bound into its operator and its value.
#[pyfunction]
fn read_bound(bound: &str) -> PyResult<(&'static str, &str)> {
    let (operator, value) = Operator::split(bound).map_err(PyValueError::new_err)?;
    Ok((operator.text(), value))
}

/// Reads the value of a bound of a metric of a dimension.
#[pyfunction]
fn read_limit(dimension: &str, text: &str) -> PyResult<f64> {
    let dimension = Dimension::named(dimension).map_err(PyValueError::new_err)?;
    metrics::limit(dimension, text).map_err(PyValueError::new_err)
}

/// Compares a value with the limit of a bound; false for NaN.
#[pyfunction]
fn holds(value: f64, operator: &str, limit: f64) -> PyResult<bool> {
    let operator = Operator::named(operator).map_err(PyValueError::new_err)?;
    Ok(operator.holds(value, limit))
}

/// Adds the functions to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(catalogue, module)?)?;
    module.add_function(wrap_pyfunction!(read_metric, module)?)?;
    module.add_function(wrap_pyfunction!(read_bound, module)?)?;
    module.add_function(wrap_pyfunction!(read_limit, module)?)?;
    module.add_function(wrap_pyfunction!(holds, module)?)?;
    Ok(())
}
