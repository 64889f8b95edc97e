//! The event loop's parts: schedule, links, queues, packets. Nothing here knows TCP.

pub(crate) mod clock;
pub(crate) mod histogram;
pub(crate) mod inbox;
pub(crate) mod link;
pub(crate) mod net;
pub(crate) mod packet;
mod red;
pub(crate) mod ring;
pub(crate) mod schedule;
pub(crate) mod split;
pub(crate) mod tap;
