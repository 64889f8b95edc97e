//! Congestion controllers written in Python: window laws, rate laws and whole controllers.

pub(crate) mod data;
mod event;
mod failure;
mod kind;
mod make;
mod object;
pub(crate) mod parts;
mod rate;
mod whole;
mod window;

pub(crate) use failure::{Failure, begin_run};
pub(crate) use kind::{controller_hooks, controller_kind};
pub(crate) use make::{Factory, Given};
