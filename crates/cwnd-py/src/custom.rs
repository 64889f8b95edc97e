//! A congestion controller written as a Python class.

use crate::SpecError;
use cwnd::laws::{Aimd, AnyLaw};
use cwnd::{Acked, AnyController, MakeController, Round, Settings, Signal, Spec, WindowLaw};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where the first thing that goes wrong in Python is kept until the run can be stopped.
#[derive(Default)]
pub(crate) struct Failure {
    error: Mutex<Option<PyErr>>,
    happened: AtomicBool,
}

impl Failure {
    pub(crate) fn happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }

    /// Makes no further call into Python: a run that is stopped does not wait for a slow law.
    pub(crate) fn stop(&self) {
        self.happened.store(true, Ordering::Relaxed);
    }

    fn keep(&self, error: PyErr) {
        let mut kept = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(error);
        self.happened.store(true, Ordering::Relaxed);
    }

    /// Takes the error. [`Failure::happened`] stays true.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Fails with the error, if there is one.
    pub(crate) fn check(&self) -> PyResult<()> {
        self.take().map_or(Ok(()), Err)
    }
}

/// What a Python controller may look at; times in seconds.
#[pyclass(frozen, get_all, module = "cwnd._native")]
struct Context {
    now: f64,
    rtt: Option<f64>,
    min_rtt: Option<f64>,
    last_cut: f64,
    packet: u32,
}

impl From<&cwnd::Context> for Context {
    fn from(cx: &cwnd::Context) -> Self {
        Context {
            now: cx.now.as_secs(),
            rtt: cx.rtt.map(|rtt| rtt.smoothed.as_secs()),
            min_rtt: cx.rtt.map(|rtt| rtt.min.as_secs()),
            last_cut: cx.last_cut.as_secs(),
            packet: cx.packet,
        }
    }
}

/// What happened between two cuts.
#[pyclass(frozen, get_all, name = "Round", module = "cwnd._native")]
struct PyRound {
    sent: u64,
    lost: u64,
    marked: u64,
    took: f64,
}

/// One acknowledgement; times in seconds.
#[pyclass(frozen, get_all, name = "Acked", module = "cwnd._native")]
struct PyAcked {
    packets: u32,
    in_flight: u32,
    rtt: Option<f64>,
    received_at: Option<f64>,
}

struct PyLaw {
    object: Py<PyAny>,
    failure: Arc<Failure>,
    own_threshold: bool,
    enters: bool,
    rounds: bool,
    observes: bool,
}

/// A controller as Python names it: its specification, or what makes it.
#[derive(FromPyObject)]
pub(crate) enum Given {
    Spec(String),
    Factory(Py<PyAny>),
}

impl Given {
    /// What makes the controller's laws. Errors of laws written in Python are kept in `failure`.
    ///
    /// # Errors
    /// `SpecError` for a specification that is wrong.
    pub(crate) fn read(&self, failure: &Arc<Failure>) -> PyResult<Arc<dyn MakeController>> {
        match self {
            Given::Spec(text) => match Spec::parse(text) {
                Ok(spec) => Ok(Arc::new(spec)),
                Err(error) => Err(SpecError::new_err(error.to_string())),
            },
            Given::Factory(factory) => {
                let factory = Python::attach(|py| factory.clone_ref(py));
                Ok(Arc::new(Factory { factory, failure: failure.clone() }))
            }
        }
    }
}

/// Makes laws by calling a Python object.
pub(crate) struct Factory {
    pub factory: Py<PyAny>,
    pub failure: Arc<Failure>,
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Factory").field(&self.factory.as_ptr()).finish()
    }
}

impl fmt::Display for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a controller written in Python")
    }
}

impl MakeController for Factory {
    /// A law that is Reno after a failure: the caller looks at that before it uses any result.
    fn controller(&self, settings: &Settings) -> AnyController {
        let made = Python::attach(|py| {
            let object = self.factory.call0(py)?;
            for method in ["grow", "cut"] {
                object.getattr(py, method)?;
            }
            let has = |method: &str| object.bind(py).hasattr(method);
            let (enters, rounds, observes) = (has("enter")?, has("round")?, has("observe")?);
            let own_threshold = match has("own_threshold")? {
                true => object.call_method0(py, "own_threshold")?.extract(py)?,
                false => false,
            };
            let failure = self.failure.clone();
            Ok(PyLaw { object, failure, own_threshold, enters, rounds, observes })
        });
        match made {
            Ok(law) => AnyController::window(AnyLaw::Custom(Box::new(law)), settings),
            Err(error) => {
                self.failure.keep(error);
                AnyController::window(Aimd::reno(), settings)
            }
        }
    }
}

impl PyLaw {
    /// Calls into Python; after a failure gives `otherwise` until the run is stopped.
    fn call<T>(&self, otherwise: T, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
        if self.failure.happened() {
            return otherwise;
        }
        Python::attach(call).unwrap_or_else(|error| {
            self.failure.keep(error);
            otherwise
        })
    }
}

impl fmt::Debug for PyLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PyLaw").field(&self.object.as_ptr()).finish()
    }
}

impl Clone for PyLaw {
    /// The machine keeps a copy to revert a spurious reduction.
    fn clone(&self) -> Self {
        let copied = Python::attach(|py| {
            let copy = py.import(intern!(py, "copy"))?;
            Ok(copy.call_method1(intern!(py, "copy"), (&self.object,))?.unbind())
        });
        let object = copied.unwrap_or_else(|error: PyErr| {
            self.failure.keep(error);
            Python::attach(|py| self.object.clone_ref(py))
        });
        PyLaw {
            object,
            failure: self.failure.clone(),
            own_threshold: self.own_threshold,
            enters: self.enters,
            rounds: self.rounds,
            observes: self.observes,
        }
    }
}

impl WindowLaw for PyLaw {
    fn grow(&mut self, w: f64, acked: f64, cx: &cwnd::Context) -> f64 {
        self.call(w, |py| {
            let grown =
                self.object.call_method1(py, intern!(py, "grow"), (w, acked, Context::from(cx)))?;
            window(py, &grown, "grow")
        })
    }

    fn cut(&mut self, w: f64, why: Signal, cx: &cwnd::Context) -> f64 {
        self.call(w, |py| {
            let why = why.name();
            let cut =
                self.object.call_method1(py, intern!(py, "cut"), (w, why, Context::from(cx)))?;
            window(py, &cut, "cut")
        })
    }

    fn threshold(&self, cut: f64, _why: Signal) -> Option<f64> {
        self.own_threshold.then_some(cut)
    }

    fn enter(&mut self, w: f64, cx: &cwnd::Context) {
        if self.enters {
            self.call((), |py| {
                self.object.call_method1(py, intern!(py, "enter"), (w, Context::from(cx)))?;
                Ok(())
            });
        }
    }

    fn round(&mut self, round: &Round, cx: &cwnd::Context) {
        if self.rounds {
            self.call((), |py| {
                let took = round.took.as_secs();
                let round =
                    PyRound { sent: round.sent, lost: round.lost, marked: round.marked, took };
                self.object.call_method1(py, intern!(py, "round"), (round, Context::from(cx)))?;
                Ok(())
            });
        }
    }

    fn observe(&mut self, acked: &Acked, cx: &cwnd::Context) {
        if self.observes {
            self.call((), |py| {
                let acked = PyAcked {
                    packets: acked.packets,
                    in_flight: acked.in_flight,
                    rtt: acked.rtt.map(cwnd::Dur::as_secs),
                    received_at: acked.received_at.map(cwnd::Time::as_secs),
                };
                self.object.call_method1(py, intern!(py, "observe"), (acked, Context::from(cx)))?;
                Ok(())
            });
        }
    }
}

/// The window that a method answered.
fn window(py: Python<'_>, answer: &Py<PyAny>, method: &str) -> PyResult<f64> {
    let window: f64 = answer.extract(py)?;
    if window.is_finite() {
        return Ok(window);
    }
    Err(PyValueError::new_err(format!("{method} answered {window}: a window is a finite number")))
}
