//! A rate law written in Python.

use super::data::{Context, Lost, Report};
use super::object::{Object, finite_or_none, hooks, wrong};
use cwnd::{Clock, Dur, Rate, RateLaw, Signal};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A rate law written in Python.
#[derive(Clone, Debug)]
pub(super) struct PyRateLaw {
    object: Object,
    has: Hooks,
    clock: Clock,
    /// As of the last call: the machine asks for it with each output.
    interval: Dur,
    starts_itself: bool,
    uses_capacity: bool,
    least: Rate,
}

hooks!(observe, delay_rises, losses, window, rescale);

impl PyRateLaw {
    pub(super) fn new(py: Python<'_>, mut object: Object) -> PyResult<Self> {
        let has = Hooks::of(&object, py)?;
        let clock = clock(py, &object)?;
        let interval = interval(py, &object)?;
        let starts_itself = object.switch(py, "starts_itself", false)?;
        let uses_capacity = object.switch(py, "uses_capacity", false)?;
        let least = least(py, &object)?;
        object.declare_gauges(py, "rate")?;
        Ok(PyRateLaw { object, has, clock, interval, starts_itself, uses_capacity, least })
    }

    /// Runs a hook that answers a rate in packets per second.
    fn rate(
        &mut self,
        hook: &str,
        otherwise: f64,
        arguments: impl for<'py> PyCallArgs<'py>,
    ) -> Rate {
        let least = self.least.as_per_sec();
        Rate::per_sec(self.run(otherwise, |py, object| {
            let rate = object.number(py, (hook, "a rate"), arguments)?;
            if rate < least {
                let text = "the answer is less than the least rate and counts as that";
                object.warn(py, hook, text)?;
            }
            Ok(rate)
        }))
    }

    /// Runs a hook that may change the law, and reads the interval after it.
    fn run<T>(
        &mut self,
        otherwise: T,
        calls: impl FnOnce(Python<'_>, &Object) -> PyResult<T>,
    ) -> T {
        let (answer, interval) = self.object.run((otherwise, self.interval), |py| {
            let answer = calls(py, &self.object)?;
            Ok((answer, interval(py, &self.object)?))
        });
        self.interval = interval;
        answer
    }

    /// Calls a hook whose answer does not count, if the law has it.
    fn tell<A: for<'py> PyCallArgs<'py>>(
        &mut self,
        has: bool,
        hook: &str,
        arguments: impl FnOnce() -> A,
    ) {
        if has {
            self.run((), |py, object| object.ask(py, hook, arguments()).map(drop));
        }
    }
}

/// The value of a constant that a rate law has.
fn required<'py>(py: Python<'py>, object: &Object, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let missing = || PyValueError::new_err(format!("the attribute {name} is missing"));
    object.constant(py, name)?.ok_or_else(missing)
}

fn clock(py: Python<'_>, object: &Object) -> PyResult<Clock> {
    let value = required(py, object, "clock")?;
    match value.extract::<String>().as_deref() {
        Ok("timer") => Ok(Clock::Timer),
        Ok("reports") => Ok(Clock::Reports),
        _ => Err(wrong("clock", &value, "the clock is \"timer\" or \"reports\"")),
    }
}

fn interval(py: Python<'_>, object: &Object) -> PyResult<Dur> {
    let value = required(py, object, "interval")?;
    match value.extract::<f64>() {
        // A shorter interval is none on the clock of the drivers.
        Ok(secs) if (1e-9..1e9).contains(&secs) => Ok(Dur::from_secs(secs)),
        _ => Err(wrong("interval", &value, "an interval is a positive number of seconds")),
    }
}

fn least(py: Python<'_>, object: &Object) -> PyResult<Rate> {
    let Some(value) = object.constant(py, "least")? else { return Ok(Rate::per_sec(1.0)) };
    match value.extract::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(Rate::per_sec(rate)),
        _ => Err(wrong("least", &value, "the least rate is a positive number")),
    }
}

impl RateLaw for PyRateLaw {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn interval(&self) -> Dur {
        self.interval
    }

    fn tick(&mut self, rate: Rate, cx: &cwnd::Context) -> Rate {
        let x = rate.as_per_sec();
        self.rate("tick", x, (x, Context::from(cx)))
    }

    fn cut(&mut self, rate: Rate, fresh: bool, why: Signal, cx: &cwnd::Context) -> Rate {
        let x = rate.as_per_sec();
        self.rate("cut", x, (x, fresh, why.name(), Context::from(cx)))
    }

    fn start(&mut self, w: f64, cx: &cwnd::Context) -> Rate {
        self.rate("start", 1.0, (w, Context::from(cx)))
    }

    fn observe(&mut self, report: &cwnd::Report, cx: &cwnd::Context) {
        let arguments = || (Report::from(report), Context::from(cx));
        self.tell(self.has.observe, "observe", arguments);
    }

    fn delay_rises(&mut self, cx: &cwnd::Context) -> bool {
        self.has.delay_rises
            && self.run(false, |py, object| object.truth(py, "delay_rises", (Context::from(cx),)))
    }

    fn losses(&mut self, lost: &cwnd::Lost, rate: Rate, cx: &cwnd::Context) {
        let arguments = || (Lost::from(lost), rate.as_per_sec(), Context::from(cx));
        self.tell(self.has.losses, "losses", arguments);
    }

    fn window(&self, cx: &cwnd::Context) -> Option<f64> {
        if !self.has.window {
            return None;
        }
        self.object.run(None, |py| {
            let answer = self.object.ask(py, "window", (Context::from(cx),))?;
            finite_or_none("window", &answer, "a flow window")
        })
    }

    fn starts_itself(&self) -> bool {
        self.starts_itself
    }

    fn uses_capacity(&self) -> bool {
        self.uses_capacity
    }

    fn least(&self) -> Rate {
        self.least
    }

    fn rescale(&mut self, factor: f64) {
        self.tell(self.has.rescale, "rescale", || (factor,));
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.object.emit_gauges(emit);
    }
}
