//! Metrics of flows, links and runs, as RFC 5166 and the papers define them, without I/O. Rates are
//! in bits per second, times in seconds. A metric without data is NaN.
//!
//! A sum is compensated (Neumaier 1974), so that it does not depend on the order of the flows. Running
//! totals are added in order.

mod catalog;
mod expect;
mod flow_kinds;
pub mod formula;
mod name;
mod quantity;
mod run;

pub use catalog::{Dimension, Figure, METRICS, Metric};
pub use expect::{Expectation, Expectations, Outcome, read_bound, read_limit};
pub use flow_kinds::{FlowKind, flow_kinds, group_of};
pub use name::{Named, Places, named};
pub use quantity::{Kind, MetricError, format_rate, format_time, format_value};
pub use run::{
    Flow, FlowFigures, FlowTransfers, JainFigures, KindFigures, Link, Run, RunFigures, SCALES,
    SizeFigures, Smoothness, TransferFigures, Transfers, loss_rate, mark_rate, retransmission_rate,
    time_scales,
};
