//! Controllers from a specification, or from a Python object that makes them.

use super::failure::Failure;
use super::kind;
use super::object::Object;
use super::rate::PyRateLaw;
use super::whole::PyController;
use super::window::PyWindowLaw;
use crate::registry::parse;
use cwnd::laws::{AnyLaw, AnyRateLaw, Reno};
use cwnd::registry::Kind;
use cwnd::{AnyController, MakeController, Settings};
use pyo3::prelude::*;
use std::fmt;
use std::sync::Arc;

/// A controller as Python names it: its specification, or a callable that makes it.
#[derive(FromPyObject)]
pub(crate) enum Given {
    Spec(String),
    Factory(Py<PyAny>),
}

impl Given {
    /// The factory of the controllers. Errors of controllers written in Python are kept in
    /// `failure`.
    ///
    /// # Errors
    /// `SpecError` for a specification that is wrong.
    pub(crate) fn read(&self, failure: &Arc<Failure>) -> PyResult<Arc<dyn MakeController>> {
        match self {
            Given::Spec(text) => Ok(Arc::new(parse(text)?)),
            Given::Factory(factory) => {
                let (factory, name) =
                    Python::attach(|py| (factory.clone_ref(py), name(factory.bind(py))));
                Ok(Arc::new(Factory::new(factory, &name, failure.clone())))
            }
        }
    }
}

/// Makes controllers by calling a Python object.
pub(crate) struct Factory {
    factory: Py<PyAny>,
    name: Arc<str>,
    failure: Arc<Failure>,
}

impl Factory {
    /// A factory that is called without arguments; `name` names the controller in messages.
    pub(crate) fn new(factory: Py<PyAny>, name: &str, failure: Arc<Failure>) -> Self {
        Factory { factory, name: name.into(), failure }
    }

    fn make(&self, py: Python<'_>, settings: &Settings) -> PyResult<AnyController> {
        let made = self.factory.bind(py).call0()?;
        let kind = kind::kind(&made)?;
        let object = Object::new(made.unbind(), self.name.clone(), self.failure.clone());
        Ok(match kind {
            Kind::Window => {
                let law = PyWindowLaw::new(py, object)?;
                AnyController::window(AnyLaw::Custom(Box::new(law)), settings)
            }
            Kind::Rate => {
                let law = PyRateLaw::new(py, object)?;
                AnyController::rate(AnyRateLaw::Custom(Box::new(law)), settings)
            }
            Kind::Whole => AnyController::whole(PyController::new(py, object, settings)?),
        })
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Factory").field(&self.name).finish()
    }
}

impl fmt::Display for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl MakeController for Factory {
    /// After an error the controller is Reno: the caller checks [`Failure`] before it uses any
    /// result.
    fn controller(&self, settings: &Settings) -> AnyController {
        Python::attach(|py| {
            self.make(py, settings).unwrap_or_else(|error| {
                self.failure.keep(py, Object::explain(py, &self.name, error));
                AnyController::window(Reno::new(), settings)
            })
        })
    }
}

/// The name of the controller that a factory makes: that of its specification, its class or its
/// function.
fn name(factory: &Bound<'_, PyAny>) -> String {
    let text = |object: &Bound<'_, PyAny>, key| object.getattr(key).ok()?.extract::<String>().ok();
    let partial = || text(&factory.getattr("func").ok()?, "__name__");
    let name = text(factory, "specification").or_else(|| text(factory, "__name__"));
    name.or_else(partial).unwrap_or_else(|| "a controller written in Python".into())
}
