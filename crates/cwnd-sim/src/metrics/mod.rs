//! Metrics of flows, links and runs, as RFC 5166 and the papers define them, without I/O. Rates are
//! in bits per second, times in seconds. A metric without data is NaN.
//!
//! A sum is compensated (Neumaier 1974): it does not depend on the order of the flows.

mod catalog;
pub mod formula;
mod run;

pub use catalog::{Dimension, Figure, METRICS, Metric};
pub use run::{
    Flow, FlowFigures, FlowTransfers, JainFigures, Link, Run, RunFigures, SizeFigures, Smoothness,
    TransferFigures, Transfers, loss_rate, mark_rate, retransmission_rate, time_scales,
};
