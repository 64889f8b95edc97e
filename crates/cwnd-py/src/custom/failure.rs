//! The first error of the controllers of a run, and their warnings.

use pyo3::intern;
use pyo3::prelude::*;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// The run of this thread.
    static RUN: Cell<String> = const { Cell::new(String::new()) };
}

/// Names the run of this thread.
pub(crate) fn begin_run(name: String) {
    RUN.set(name);
}

/// Keeps the first error of the Python controllers of a run until the run is stopped.
#[derive(Default)]
pub(crate) struct Failure {
    error: Mutex<Option<PyErr>>,
    happened: AtomicBool,
    warned: Mutex<BTreeSet<String>>,
}

impl Failure {
    /// Whether there was an error, or the run was stopped.
    pub(crate) fn happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }

    /// Prevents further calls into Python: a run that is stopped does not wait for a slow
    /// controller.
    pub(crate) fn stop(&self) {
        self.happened.store(true, Ordering::Relaxed);
    }

    /// Keeps `error` if it is the first one, with a note (PEP 678) of the run of this thread.
    pub(super) fn keep(&self, py: Python<'_>, error: PyErr) {
        let run = RUN.take();
        if !run.is_empty() {
            // Python before 3.11 has no `add_note`. An error without the note is the same error.
            let (value, name) = (error.value(py), intern!(py, "__notes__"));
            let own = value.getattr(name).and_then(|notes| notes.extract::<Vec<String>>());
            let _ = value.setattr(name, [own.unwrap_or_default(), vec![run]].concat());
        }
        let mut kept = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(error);
        self.happened.store(true, Ordering::Relaxed);
    }

    /// Whether a warning is the first one of its text.
    pub(super) fn is_first(&self, text: &str) -> bool {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        warned.insert(text.to_owned())
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
