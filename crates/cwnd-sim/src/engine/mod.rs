//! The parts of the event loop: event queue, links, routes, timers, lookahead. Nothing here depends
//! on a transport protocol.

mod flow_order;
pub(crate) mod histogram;
mod host;
mod in_flight;
pub(crate) mod link;
mod lookahead;
pub(crate) mod net;
pub(crate) mod observation;
pub(crate) mod ring;
mod route;
pub(crate) mod schedule;
pub(crate) mod tap;
mod timer;
