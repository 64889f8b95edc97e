//! Events as Python objects, one class for each kind.

use super::data::{
    Acked, Handshake, Lost, Marked, Mtu, PersistentCongestion, Recovered, Reduced, Report, Tick,
    Timeout, Undo,
};
use cwnd::Event;
use pyo3::prelude::*;
use pyo3::{PyClass, PyClassInitializer};

/// The Python object of an event; `None` for a kind that Python does not have.
pub(super) fn object<'py>(py: Python<'py>, event: &Event) -> PyResult<Option<Bound<'py, PyAny>>> {
    match event {
        Event::Acked(acked) => any(py, Acked::from(acked)),
        Event::Handshake { rtt } => any(py, Handshake { rtt: rtt.as_secs() }),
        Event::Lost(lost) => any(py, Lost::from(lost)),
        Event::Marked(marked) => any(py, Marked::from(marked)),
        Event::Report(report) => any(py, Report::from(report)),
        Event::Recovered => any(py, Recovered),
        Event::Timeout(lost) => any(py, Timeout::from(lost)),
        Event::PersistentCongestion => any(py, PersistentCongestion),
        Event::Undo => any(py, Undo),
        Event::Reduced { window, .. } => any(py, Reduced { window: window.get() }),
        Event::Mtu { packet } => any(py, Mtu { packet: *packet }),
        Event::Tick => any(py, Tick),
        _ => Ok(None),
    }
}

fn any<'py, T: PyClass>(
    py: Python<'py>,
    event: impl Into<PyClassInitializer<T>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(Bound::new(py, event)?.into_any()))
}
