//! A whole controller written in Python.

use super::data::Settings;
use super::event;
use super::object::{Object, finite, finite_or_none, items, wrong};
use cwnd::{Controller, Cut, Dur, Event, Needs, Output, Packets, Rate, Signal, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The latest wake-up time in seconds that a clock in nanoseconds holds.
const LATEST: f64 = 1e10;

/// A whole controller written in Python.
#[derive(Clone, Debug)]
pub(super) struct PyController {
    object: Object,
    /// As of the last event: a driver reads it several times for each.
    output: Output,
    needs: Needs,
    takes_cut: bool,
}

impl PyController {
    pub(super) fn new(
        py: Python<'_>,
        mut object: Object,
        settings: &cwnd::Settings,
    ) -> PyResult<Self> {
        let takes_cut = object.has(py, "take_cut")?;
        let needs = needs(py, &object)?;
        if object.has(py, "begin")? {
            object.ask(py, "begin", (Settings::from(settings),))?;
        }
        object.declare_gauges(py, "")?;
        let output = output(py, &object)?;
        Ok(PyController { object, output, needs, takes_cut })
    }
}

/// Reads `needs`, a collection of names.
fn needs(py: Python<'_>, object: &Object) -> PyResult<Needs> {
    let mut needs = Needs::default();
    let Some(value) = object.constant(py, "needs")? else { return Ok(needs) };
    let unknown = || {
        wrong(
            "needs",
            &value,
            "needs are a tuple of \"delivery_rate\", \"ecn\", \"reports\" and \"capacity\"",
        )
    };
    for name in value.extract::<Vec<String>>().map_err(|_| unknown())? {
        match name.as_str() {
            "delivery_rate" => needs.delivery_rate = true,
            "ecn" => needs.ecn = true,
            "reports" => needs.reports = true,
            "capacity" => needs.capacity = true,
            _ => return Err(unknown()),
        }
    }
    Ok(needs)
}

/// Reads `output`: the window, the pacing rate and the time of the wake-up.
fn output(py: Python<'_>, object: &Object) -> PyResult<Output> {
    let answer = object.ask(py, "output", ())?;
    let Some([window, pace, wake]) = items(&answer) else {
        return Err(wrong("output", &answer, "an output is a tuple (window, pace, wake)"));
    };
    let window = finite("output", &window, "the window")?;
    if window < 1.0 {
        object.warn(py, "output", "the window is less than one packet and counts as one packet")?;
    }
    let mut output = Output::window(Packets::new(window.max(1.0)));
    if let Some(pace) = finite_or_none("output", &pace, "the pacing rate")? {
        if pace <= 0.0 {
            return Err(wrong("output", &answer, "the pacing rate is positive or None"));
        }
        output.pace = Some(Rate::per_sec(pace));
    }
    let wake = finite_or_none("output", &wake, "the wake-up time")?;
    output.wake = wake.map(|secs| Time::ZERO + Dur::from_secs(secs.clamp(0.0, LATEST)));
    Ok(output)
}

/// Reads `take_cut`: `None`, or the signal, the values before and after, and which value was
/// reduced.
fn take_cut(py: Python<'_>, object: &Object) -> PyResult<Option<Cut>> {
    let answer = object.ask(py, "take_cut", ())?;
    if answer.is_none() {
        return Ok(None);
    }
    let expected = "a cut is None or a tuple (why, before, after, \"window\" or \"rate\")";
    let cut = answer.extract::<(String, f64, f64, String)>();
    let cut = cut.ok().and_then(|(why, before, after, of)| {
        let why = Signal::ALL.into_iter().find(|signal| signal.name() == why)?;
        if !before.is_finite() || !after.is_finite() {
            return None;
        }
        match of.as_str() {
            "window" => Some(Cut::window(why, Packets::new(before), Packets::new(after))),
            "rate" => Some(Cut::rate(why, Rate::per_sec(before), Rate::per_sec(after))),
            _ => None,
        }
    });
    cut.map(Some).ok_or_else(|| wrong("take_cut", &answer, expected))
}

impl Controller for PyController {
    fn on(&mut self, now: Time, event: &Event) {
        self.output = self.object.run(self.output, |py| {
            if let Some(event) = event::object(py, event)? {
                self.object.ask(py, "on", (now.as_secs(), event))?;
            }
            let output = output(py, &self.object)?;
            if *event == Event::Tick && output.wake.is_some_and(|wake| wake <= now) {
                return Err(PyValueError::new_err(format!(
                    "output answered a wake-up time that is not after the Tick at {} s",
                    now.as_secs()
                )));
            }
            Ok(output)
        });
    }

    fn output(&self) -> Output {
        self.output
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn take_cut(&mut self) -> Option<Cut> {
        if !self.takes_cut {
            return None;
        }
        self.object.run(None, |py| take_cut(py, &self.object))
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.object.emit_gauges(emit);
    }
}
