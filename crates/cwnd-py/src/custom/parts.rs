//! The shared parts of whole controllers.

use super::data::RateSample;
use cwnd::parts;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Resolution of times and lengths: they are given in seconds or in rounds.
const RESOLUTION: f64 = 1e9;

/// A time or a length in units of the resolution.
fn units(value: f64, name: &str) -> PyResult<u64> {
    let units = (value * RESOLUTION).round();
    if (0.0..u64::MAX as f64).contains(&units) {
        return Ok(units as u64);
    }
    Err(PyValueError::new_err(format!("{name} is {value}: a number from 0 to 1e10 is needed")))
}

macro_rules! extremum {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[pyclass(module = "cwnd._native")]
        #[derive(Clone)]
        pub(crate) struct $name(parts::$name<f64>);

        #[pymethods]
        impl $name {
            #[new]
            fn new(length: f64) -> PyResult<Self> {
                Ok($name(parts::$name::new(units(length, "length")?)))
            }

            /// Adds a sample and returns the extremum.
            fn add(&mut self, at: f64, value: f64) -> PyResult<f64> {
                if value.is_nan() {
                    return Err(PyValueError::new_err("value is not a number"));
                }
                Ok(self.0.add(units(at, "at")?, value))
            }

            /// Returns the extremum as of the last sample; None before the first.
            fn get(&self) -> Option<f64> {
                self.0.get()
            }

            /// Forgets all samples.
            fn clear(&mut self) {
                self.0.clear();
            }

            fn __copy__(&self) -> Self {
                self.clone()
            }

            fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
                self.clone()
            }
        }
    };
}

extremum! {
    /// The maximum of the samples of a sliding window.
    WindowedMax
}

extremum! {
    /// The minimum of the samples of a sliding window.
    WindowedMin
}

/// Counts packet-timed round trips by the delivered count.
#[pyclass(module = "cwnd._native")]
#[derive(Clone, Default)]
pub(crate) struct RoundCounter(parts::RoundCounter);

#[pymethods]
impl RoundCounter {
    #[new]
    fn new() -> Self {
        RoundCounter::default()
    }

    /// Counts an acknowledgement; returns whether it begins a round.
    fn acked(&mut self, sample: &RateSample) -> bool {
        let mut counted = cwnd::delivery::RateSample::new();
        counted.prior_delivered = sample.prior_delivered;
        counted.delivered = sample.delivered;
        self.0.acked(&counted)
    }

    /// Returns the number of rounds begun so far.
    fn count(&self) -> u64 {
        self.0.count()
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }
}
