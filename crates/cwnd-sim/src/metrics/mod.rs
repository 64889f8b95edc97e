//! The metrics of a run: their catalogue, their names, and bounds on them. No I/O.
//!
//! ```
//! use cwnd_sim::metrics::{Bound, Name, Places};
//!
//! let places = Places { groups: ["reno".into()].into(), links: [].into() };
//! let name = Name::parse("goodput.reno@10s..20s", &places)?;
//! let bound = Bound::parse(name.metric.dimension, ">= 4mbit")?;
//! assert!(bound.holds(4.2e6));
//! # Ok::<(), String>(())
//! ```
//!
//! A metric is one [`Metric`] in `catalogue.rs`; tables, JSON, data sets and `[expect]` take its dimension, unit, decimals and
//! words from there.

mod bound;
mod catalogue;
mod name;

pub use bound::{Bound, Operator, limit};
pub use catalogue::{METRICS, metric};
pub use name::{Name, Places};

/// The dimension of a metric. It determines the unit of a bound, and the range of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Bits per second.
    Rate,
    /// Seconds.
    Time,
    /// A part of a whole, from 0 to 1.
    Fraction,
    /// A number of events.
    Count,
    /// A number without a unit, 0 or more.
    Number,
    /// A loss of performance, at most 1; below 0 for a gain.
    Harm,
}

impl Dimension {
    /// All dimensions.
    const ALL: [Self; 6] =
        [Self::Rate, Self::Time, Self::Fraction, Self::Count, Self::Number, Self::Harm];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Time => "time",
            Self::Fraction => "fraction",
            Self::Count => "count",
            Self::Number => "number",
            Self::Harm => "harm",
        }
    }

    /// Returns the dimension of a name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|each| each.name() == name).ok_or_else(|| format!("no dimension is {name}"))
    }

    /// The smallest and the largest value, and the increment of a count by one event, otherwise 0.
    pub const fn range(self) -> (f64, f64, f64) {
        match self {
            Self::Rate | Self::Time | Self::Number => (0.0, f64::INFINITY, 0.0),
            Self::Fraction => (0.0, 1.0, 0.0),
            Self::Count => (0.0, f64::INFINITY, 1.0),
            Self::Harm => (f64::NEG_INFINITY, 1.0, 0.0),
        }
    }
}

/// What `[expect]` may refer a metric to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The measured flows of the run, or a group of flows.
    Flows,
    /// A link; without a place the bottleneck.
    Links,
    /// A group of flows or a link; without a place the bottleneck.
    FlowsAndLinks,
    /// The run.
    Run,
    /// Nothing: the metric has no name in `[expect]`.
    Nothing,
}

impl Scope {
    /// Whether a group of flows can be named.
    pub const fn has_flows(self) -> bool {
        matches!(self, Self::Flows | Self::FlowsAndLinks)
    }

    /// Whether a link can be named.
    pub const fn has_links(self) -> bool {
        matches!(self, Self::Links | Self::FlowsAndLinks)
    }
}

/// Whether a metric has a value for a part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Only for the whole run.
    Never,
    /// For either.
    Optional,
    /// Only for a part, with a rate in the name.
    WithRate,
}

/// A metric.
#[derive(Debug)]
pub struct Metric {
    /// Its name in `[expect]`, plans and evaluations.
    pub name: &'static str,
    /// The dimension of its values.
    pub dimension: Dimension,
    /// Its statistics in `[expect]`, the default first unless `figures` has another one.
    pub statistics: &'static [&'static str],
    /// What a name may refer it to.
    pub scope: Scope,
    /// Whether it has values for parts of a run.
    pub part: Part,
    /// Its figures in JSON, frames, data sets and tables.
    pub figures: &'static [Figure],
}

/// A figure of a metric: one column of a table.
#[derive(Debug)]
pub struct Figure {
    /// Its key in JSON, and its column in frames and data sets. The value is in bits per second, seconds, or without unit.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its title in tables of several metrics of a network.
    pub short: &'static str,
    /// The unit in tables: `Mbit/s`, `ms`, `s`, `%`, `packets`, or empty.
    pub unit: &'static str,
    /// Decimal places in tables.
    pub digits: u8,
    /// One sentence.
    pub meaning: &'static str,
    /// Whether each run has it as one number, which data sets of sweeps have as a column.
    pub of_run: bool,
}

impl Figure {
    /// The factor from the value to that in the unit of tables.
    pub fn factor(&self) -> f64 {
        match self.unit {
            "Mbit/s" => 1e-6,
            "ms" => 1e3,
            "%" => 100.0,
            _ => 1.0,
        }
    }
}
