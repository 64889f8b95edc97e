//! A Python controller as an object: calls of its hooks, their answers, copies.

use super::failure::Failure;
use crate::registry::SpecError;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The module whose classes define the default of each hook: such a hook is not called.
const DEFAULTS: &str = "cwnd.controller";
/// Characters of an answer in a message.
const SHOWN: usize = 60;
/// Columns of the series that gauges stand beside.
const COLUMNS: [&str; 8] =
    ["time_s", "flow", "controller", "sent", "delivered", "window", "rtt", "rtt_s"];

/// Defines `Hooks`: which of the optional methods of these names a law has.
macro_rules! hooks {
    ($($hook:ident),+) => {
        /// The optional methods that the law has.
        #[derive(Clone, Copy, Debug)]
        struct Hooks {
            $($hook: bool,)+
        }

        impl Hooks {
            fn of(object: &Object, py: Python<'_>) -> PyResult<Self> {
                Ok(Hooks { $($hook: object.has(py, stringify!($hook))?,)+ })
            }
        }
    };
}
pub(super) use hooks;

/// The object of a controller.
pub(super) struct Object {
    object: Py<PyAny>,
    name: Arc<str>,
    failure: Arc<Failure>,
    /// The names of its gauges, in the order in which the controller gave them first.
    gauges: Arc<[&'static str]>,
}

impl Object {
    pub(super) fn new(object: Py<PyAny>, name: Arc<str>, failure: Arc<Failure>) -> Self {
        Object { object, name, failure, gauges: Arc::default() }
    }

    /// Whether the controller has the method `hook`, other than by inheriting the default.
    pub(super) fn has(&self, py: Python<'_>, hook: &str) -> PyResult<bool> {
        let Some(member) = self.object.bind(py).getattr_opt(hook)? else { return Ok(false) };
        if !member.is_callable() {
            return Err(PyValueError::new_err(format!("{hook} is not a method")));
        }
        let module = member.getattr_opt(intern!(py, "__module__"))?;
        Ok(module.is_none_or(|module| module.extract::<String>().is_ok_and(|m| m != DEFAULTS)))
    }

    /// The value of a constant: an attribute, or the answer of a method without arguments.
    pub(super) fn constant<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(member) = self.object.bind(py).getattr_opt(name)? else { return Ok(None) };
        Ok(Some(if member.is_callable() { member.call0()? } else { member }))
    }

    /// The value of a constant that is true or false.
    pub(super) fn switch(&self, py: Python<'_>, name: &str, default: bool) -> PyResult<bool> {
        match self.constant(py, name)? {
            None => Ok(default),
            Some(value) => {
                value.extract().map_err(|_| wrong(name, &value, "the value is True or False"))
            }
        }
    }

    /// Calls a hook.
    pub(super) fn ask<'py>(
        &self,
        py: Python<'py>,
        hook: &str,
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.object.bind(py).call_method1(hook, arguments)
    }

    /// Calls a hook whose answer does not count, if the controller has it.
    pub(super) fn tell<A: for<'py> PyCallArgs<'py>>(
        &self,
        has: bool,
        hook: &str,
        arguments: impl FnOnce() -> A,
    ) {
        if has {
            self.run((), |py| self.ask(py, hook, arguments()).map(drop));
        }
    }

    /// Calls a hook that answers a finite number, `what`.
    pub(super) fn number<'py>(
        &self,
        py: Python<'py>,
        (hook, what): (&str, &str),
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<f64> {
        finite(hook, &self.ask(py, hook, arguments)?, what)
    }

    /// Warns, once in a run, of an answer that the machine changes.
    pub(super) fn warn(&self, py: Python<'_>, hook: &str, text: &str) -> PyResult<()> {
        if self.failure.is_first(text) {
            let arguments = (&self.object, hook, text);
            py.import(intern!(py, DEFAULTS))?.call_method1("warn_answer", arguments)?;
        }
        Ok(())
    }

    /// Calls a hook that answers True or False.
    pub(super) fn truth<'py>(
        &self,
        py: Python<'py>,
        hook: &str,
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<bool> {
        let answer = self.ask(py, hook, arguments)?;
        answer.extract().map_err(|_| wrong(hook, &answer, "the answer is True or False"))
    }

    /// Runs calls into Python. After an error the result is `otherwise` until the run is stopped.
    pub(super) fn run<T>(&self, otherwise: T, calls: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
        if self.failure.happened() {
            return otherwise;
        }
        Python::attach(|py| {
            calls(py).unwrap_or_else(|error| {
                self.failure.keep(py, Object::explain(py, &self.name, error));
                otherwise
            })
        })
    }

    /// The error of the controller `name`: an exception raised in its code as it is, and a wrong
    /// answer or call with the name.
    pub(super) fn explain(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
        let raised = error.traceback(py).is_some() || !error.is_instance_of::<PyException>(py);
        if raised {
            return error;
        }
        SpecError::new_err(format!("{name}: {}", error.value(py)))
    }

    /// Reads the names of the gauges; `taken` is the gauge of the controller's machine.
    pub(super) fn declare_gauges(&mut self, py: Python<'_>, taken: &str) -> PyResult<()> {
        if self.has(py, "gauges")? {
            let answer = self.ask(py, "gauges", ())?;
            let names = gauges(&answer)?.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
            let clash = |name: &&String| COLUMNS.contains(&name.as_str()) || *name == taken;
            if let Some(name) = names.iter().find(clash) {
                let text = format!("gauges answered {name:?}, the name of another series");
                return Err(PyValueError::new_err(text));
            }
            self.gauges = names.iter().map(|name| interned(name)).collect();
        }
        Ok(())
    }

    /// Emits the gauges.
    pub(super) fn emit_gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        if self.gauges.is_empty() {
            return;
        }
        let values = self.run(Vec::new(), |py| {
            let answer = self.ask(py, "gauges", ())?;
            let values = gauges(&answer)?;
            let same = values.len() == self.gauges.len();
            let find = |name| values.iter().find(|(known, _)| known == name);
            let found = self.gauges.iter().map_while(find).map(|&(_, value)| value);
            let found = found.collect::<Vec<_>>();
            if same && found.len() == values.len() {
                return Ok(found);
            }
            let names = self.gauges.join(", ");
            Err(wrong("gauges", &answer, &format!("gauges have the same names each time: {names}")))
        });
        for (at, name) in self.gauges.iter().enumerate() {
            emit(name, values.get(at).copied().unwrap_or(f64::NAN));
        }
    }
}

impl Clone for Object {
    /// A copy by `copy.copy`: a machine keeps one to revert a spurious reduction.
    fn clone(&self) -> Self {
        let copied = self.run(None, |py| {
            let copy = py.import(intern!(py, "copy"))?;
            let copied = copy.call_method1(intern!(py, "copy"), (&self.object,))?;
            Ok(Some(copied.unbind()))
        });
        let object = copied.unwrap_or_else(|| Python::attach(|py| self.object.clone_ref(py)));
        let (name, failure) = (self.name.clone(), self.failure.clone());
        Object { object, name, failure, gauges: self.gauges.clone() }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Object").field(&self.name).finish()
    }
}

/// A finite number, `what`, that `hook` answered.
pub(super) fn finite(hook: &str, answer: &Bound<'_, PyAny>, what: &str) -> PyResult<f64> {
    match answer.extract::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(wrong(hook, answer, &format!("{what} is a finite number"))),
    }
}

/// The same where `None` is allowed.
pub(super) fn finite_or_none(
    hook: &str,
    answer: &Bound<'_, PyAny>,
    what: &str,
) -> PyResult<Option<f64>> {
    match answer.extract::<Option<f64>>() {
        Ok(number) if number.is_none_or(f64::is_finite) => Ok(number),
        _ => Err(wrong(hook, answer, &format!("{what} is a finite number or None"))),
    }
}

/// The error of a wrong answer: `expected` says what is allowed.
pub(super) fn wrong(hook: &str, answer: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let shown = answer.repr().map_or_else(|_| "an object".into(), |text| text.to_string());
    let mut shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = shown.char_indices().nth(SHOWN) {
        shown.truncate(end);
        shown.push('…');
    }
    PyValueError::new_err(format!("{hook} answered {shown}: {expected}"))
}

/// The names and values of an answer of `gauges`.
fn gauges(answer: &Bound<'_, PyAny>) -> PyResult<Vec<(String, f64)>> {
    let expected = "gauges are a dict of numbers by name";
    let Ok(dict) = answer.cast::<PyDict>() else { return Err(wrong("gauges", answer, expected)) };
    let read = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        name.extract::<String>().ok().zip(value.extract::<f64>().ok())
    };
    let read = dict.iter().map(read).collect::<Option<Vec<_>>>();
    read.ok_or_else(|| wrong("gauges", answer, expected))
}

/// The static copy of a name. Each distinct name is stored once and never freed.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let new: &'static str = Box::leak(name.into());
    names.insert(new);
    new
}

/// The items of a tuple of `N` items.
pub(super) fn items<'py, const N: usize>(
    answer: &Bound<'py, PyAny>,
) -> Option<[Bound<'py, PyAny>; N]> {
    let tuple = answer.cast::<PyTuple>().ok()?;
    tuple.iter().collect::<Vec<_>>().try_into().ok()
}
