//! A window law written in Python.

use super::data::{Acked, Context, Conventions, Round};
use super::object::{Object, finite_or_none, hooks};
use cwnd::{Signal, WindowLaw};
use pyo3::prelude::*;

/// A window law written in Python.
#[derive(Clone, Debug)]
pub(super) struct PyWindowLaw {
    object: Object,
    has: Hooks,
    grows_after_mark: bool,
    uses_delivery_rate: bool,
    needs_ecn: bool,
}

hooks!(adopt, answers_mark, threshold, enter, round, observe, leave_slow_start, reduced, rescale);

impl PyWindowLaw {
    pub(super) fn new(py: Python<'_>, mut object: Object) -> PyResult<Self> {
        let has = Hooks::of(&object, py)?;
        let grows_after_mark = object.switch(py, "grows_after_mark", false)?;
        let uses_delivery_rate = object.switch(py, "uses_delivery_rate", false)?;
        let needs_ecn = object.switch(py, "needs_ecn", false)?;
        object.switch(py, "timeout_ends_round", true)?;
        object.declare_gauges(py, "ssthresh")?;
        Ok(PyWindowLaw { object, has, grows_after_mark, uses_delivery_rate, needs_ecn })
    }
}

impl WindowLaw for PyWindowLaw {
    fn adopt(&mut self, conventions: &'static cwnd::Conventions) {
        self.object.tell(self.has.adopt, "adopt", || (Conventions::from(conventions),));
    }

    fn grow(&mut self, w: f64, acked: f64, cx: &cwnd::Context) -> f64 {
        let cx = Context::from(cx);
        self.object.run(w, |py| {
            let grown = self.object.number(py, ("grow", "a window"), (w, acked, cx))?;
            if grown < 1.0 {
                let text = "the answer is less than one packet and counts as the least window";
                self.object.warn(py, "grow", text)?;
            }
            Ok(grown)
        })
    }

    fn cut(&mut self, w: f64, why: Signal, cx: &cwnd::Context) -> f64 {
        let cx = Context::from(cx);
        self.object.run(w, |py| {
            let cut = self.object.number(py, ("cut", "a window"), (w, why.name(), cx))?;
            if cut > w {
                let text = "the answer is more than the window and counts as the window";
                self.object.warn(py, "cut", text)?;
            } else if cut < 0.0 {
                let text = "the answer is negative and counts as the least window";
                self.object.warn(py, "cut", text)?;
            }
            Ok(cut)
        })
    }

    fn answers_mark(&self, cx: &cwnd::Context) -> bool {
        let arguments = (Context::from(cx),);
        !self.has.answers_mark
            || self.object.run(true, |py| self.object.truth(py, "answers_mark", arguments))
    }

    fn grows_after_mark(&self) -> bool {
        self.grows_after_mark
    }

    fn threshold(&self, cut: f64, why: Signal) -> Option<f64> {
        if !self.has.threshold {
            return None;
        }
        self.object.run(None, |py| {
            let answer = self.object.ask(py, "threshold", (cut, why.name()))?;
            finite_or_none("threshold", &answer, "a threshold")
        })
    }

    fn enter(&mut self, w: f64, cx: &cwnd::Context) {
        self.object.tell(self.has.enter, "enter", || (w, Context::from(cx)));
    }

    fn round(&mut self, round: &cwnd::Round, cx: &cwnd::Context) {
        let arguments = || (Round::from(round), Context::from(cx));
        self.object.tell(self.has.round, "round", arguments);
    }

    fn timeout_ends_round(&self) -> bool {
        self.object.run(true, |py| self.object.switch(py, "timeout_ends_round", true))
    }

    fn observe(&mut self, acked: &cwnd::Acked, cx: &cwnd::Context) {
        let arguments = || (Acked::from(acked), Context::from(cx));
        self.object.tell(self.has.observe, "observe", arguments);
    }

    fn leave_slow_start(&mut self, w: f64, cx: &cwnd::Context) -> bool {
        let arguments = (w, Context::from(cx));
        self.has.leave_slow_start
            && self.object.run(false, |py| self.object.truth(py, "leave_slow_start", arguments))
    }

    fn reduced(&mut self, w: f64) {
        self.object.tell(self.has.reduced, "reduced", || (w,));
    }

    fn rescale(&mut self, factor: f64) {
        self.object.tell(self.has.rescale, "rescale", || (factor,));
    }

    fn uses_delivery_rate(&self) -> bool {
        self.uses_delivery_rate
    }

    fn needs_ecn(&self) -> bool {
        self.needs_ecn
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.object.emit_gauges(emit);
    }
}
