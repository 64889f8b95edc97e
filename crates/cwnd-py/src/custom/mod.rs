//! Congestion controllers written in Python: window laws, rate laws and whole controllers.

mod data;
mod event;
mod failure;
mod kind;
mod make;
mod object;
mod parts;
mod rate;
mod whole;
mod window;

pub(crate) use failure::Failure;
pub(crate) use make::{Factory, Given};

use pyo3::prelude::*;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(kind::controller_kind, module)?)?;
    data::add(module)?;
    parts::add(module)
}
