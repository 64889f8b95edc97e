//! The formulas of the metrics, on what NumPy can read as arrays.

use cwnd_sim::metrics::formula::{self, Spread};
use numpy::{
    AllowTypeChange, IntoPyArray, PyArray1, PyArrayLike1, PyArrayMethods, PyReadonlyArray1,
};
use pyo3::prelude::*;

type Column<'py> = Bound<'py, PyArray1<f64>>;

/// Numbers from Python, contiguous in memory.
#[derive(Clone)]
pub(crate) struct Numbers<'py>(PyReadonlyArray1<'py, f64>);

impl<'a, 'py> FromPyObject<'a, 'py> for Numbers<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let array: PyArrayLike1<'py, f64, AllowTypeChange> = object.extract()?;
        if array.as_slice().is_ok() {
            return Ok(Numbers(array.clone()));
        }
        let copied = array.as_array().to_vec().into_pyarray(object.py());
        Ok(Numbers(copied.readonly()))
    }
}

impl AsRef<[f64]> for Numbers<'_> {
    fn as_ref(&self) -> &[f64] {
        self.0.as_slice().unwrap_or_default()
    }
}

/// The fields of a `cwnd.metrics.Spread`.
type SpreadFields = (usize, f64, f64, f64, f64, f64);

fn fields(of: Spread) -> SpreadFields {
    (of.number, of.mean, of.p50, of.p95, of.p99, of.max)
}

/// Exports formulas: their arguments as Python passes them, and the call.
macro_rules! export {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $value:expr;)*) => {
        $(
            #[pyfunction]
            pub(crate) fn $name($($argument: $type),*) -> $result {
                $value
            }
        )*
    };
}

export! {
    ratio(part: f64, whole: f64) -> f64 = formula::ratio(part, whole);
    rate(size: f64, seconds: f64) -> f64 = formula::rate(size, seconds);
    harm(alone: f64, beside: f64, more_is_better: bool) -> f64 =
        formula::harm(alone, beside, more_is_better);
    extreme(values: Numbers<'_>, highest: bool) -> f64 = formula::extreme(values.as_ref(), highest);
    total(values: Numbers<'_>) -> f64 = formula::sum(values.as_ref().iter().copied());
    jain(rates: Numbers<'_>) -> f64 = formula::jain(rates.as_ref());
    friendliness(controller: Numbers<'_>, reference: Numbers<'_>) -> f64 =
        formula::friendliness(controller.as_ref(), reference.as_ref());
    coefficient_of_variation(rates: Numbers<'_>) -> f64 =
        formula::coefficient_of_variation(rates.as_ref());
    stability_index(rates: Vec<Numbers<'_>>) -> f64 = formula::stability_index(&rates);
    smoothness(time: Numbers<'_>, counted: Numbers<'_>, scale: f64, start: Option<f64>) -> f64 =
        formula::smoothness(time.as_ref(), counted.as_ref(), scale, start);
    convergence_time(time: Numbers<'_>, rates: Vec<Numbers<'_>>, epsilon: f64, hold: f64) -> f64 =
        formula::convergence_time(time.as_ref(), &rates, epsilon, hold);
    responsiveness(
        time: Numbers<'_>, rate: Numbers<'_>, congestion: f64, rtt: f64, factor: f64
    ) -> f64 = formula::responsiveness(time.as_ref(), rate.as_ref(), congestion, rtt, factor);
    queueing_delay(delays: Numbers<'_>, weights: Option<Numbers<'_>>) -> [f64; 4] =
        formula::queueing_delay(delays.as_ref(), weights.as_ref().map(AsRef::as_ref));
    spread(values: Numbers<'_>) -> SpreadFields = fields(formula::spread(values.as_ref()));
    by_size(sizes: Numbers<'_>, values: Numbers<'_>) -> Vec<(f64, f64, SpreadFields)> =
        formula::by_size(sizes.as_ref(), values.as_ref())
            .into_iter()
            .map(|(low, high, found)| (low, high, fields(found)))
            .collect();
}

/// Returns the beginnings of the intervals and the rate in each.
#[pyfunction]
pub(crate) fn binned_rate<'py>(
    py: Python<'py>,
    time: Numbers<'py>,
    counted: Numbers<'py>,
    packet_bytes: f64,
    scale: f64,
    start: Option<f64>,
) -> (Column<'py>, Column<'py>) {
    let (time, counted) = (time.as_ref(), counted.as_ref());
    let (edges, rates) = formula::binned_rate(time, counted, packet_bytes, scale, start);
    (edges.into_pyarray(py), rates.into_pyarray(py))
}

/// Returns the ideal completion time of each transfer.
#[pyfunction]
pub(crate) fn ideal_completion_time<'py>(
    py: Python<'py>,
    wire_bytes: Numbers<'py>,
    rate_bps: Numbers<'py>,
    rtt_s: Numbers<'py>,
) -> Column<'py> {
    let rates = rate_bps.as_ref().iter().zip(rtt_s.as_ref());
    let each = wire_bytes.as_ref().iter().zip(rates);
    let ideal = |(bytes, (rate, rtt)): (&f64, (&f64, &f64))| {
        formula::ideal_completion_time(*bytes, *rate, *rtt)
    };
    each.map(ideal).collect::<Vec<_>>().into_pyarray(py)
}

/// Returns the slowdown of each transfer.
#[pyfunction]
pub(crate) fn slowdown<'py>(
    py: Python<'py>,
    times: Numbers<'py>,
    ideal: Numbers<'py>,
) -> Column<'py> {
    let each = times.as_ref().iter().zip(ideal.as_ref());
    each.map(|(time, ideal)| formula::slowdown(*time, *ideal)).collect::<Vec<_>>().into_pyarray(py)
}

/// Returns the rate that the link offers to each transfer.
#[pyfunction]
pub(crate) fn offered_rate<'py>(
    py: Python<'py>,
    time: Numbers<'py>,
    capacity_bps: Numbers<'py>,
    begin: Numbers<'py>,
    wire_bytes: Numbers<'py>,
) -> Column<'py> {
    let (time, capacity) = (time.as_ref(), capacity_bps.as_ref());
    formula::offered_rate(time, capacity, begin.as_ref(), wire_bytes.as_ref()).into_pyarray(py)
}

/// The fields of a `cwnd.metrics.JainSeries`.
type JainFields<'py> = (Column<'py>, Column<'py>, f64, f64);

/// Returns the beginnings of the windows, Jain's index in each, its worst and its mean.
#[pyfunction]
pub(crate) fn jain_over_time<'py>(
    py: Python<'py>,
    time: Numbers<'py>,
    delivered: Vec<Numbers<'py>>,
    window: f64,
    start: f64,
    active: Vec<(f64, f64)>,
) -> JainFields<'py> {
    let found = formula::jain_over_time(time.as_ref(), &delivered, window, start, &active);
    (found.time.into_pyarray(py), found.jain.into_pyarray(py), found.worst, found.mean)
}
