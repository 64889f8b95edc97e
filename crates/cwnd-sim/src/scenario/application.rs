//! The keys of applications and of arrivals. These doc comments are the descriptions of the JSON
//! Schema.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{ReadFile, kbit, millis};
use super::error::{Problem, in_table, problem};
use crate::cast::whole;
use crate::network::{self, InvalidField, pareto_min};
use crate::units::{BitRate, Bytes, Span, shorten};

/// The application of a flow.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields, expecting = "an application")]
pub enum Application {
    /// Writes at a constant rate.
    Limited {
        /// Rate of the data, without headers.
        rate: BitRate,
    },
    /// Writes during on periods, which alternate with off periods. The flow starts with an on
    /// period.
    OnOff {
        /// Duration of on periods.
        on: Times,
        /// Duration of off periods.
        off: Times,
        /// Rate of the data during on periods; by default without limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate: Option<BitRate>,
    },
    /// A server that answers the requests of a client on one connection.
    Request {
        /// Sizes of the responses.
        sizes: Sizes,
        /// Time between the end of a response and the next request; by default 0.
        #[serde(default = "no_time")]
        think: Times,
    },
    /// Video in chunks, which a player with a playback buffer requests on one connection.
    Video {
        /// Duration of a chunk.
        #[serde(default = "millis::<4000>")]
        chunk: Span,
        /// Bitrates in ascending order. The player chooses by the level of its buffer (BBA-0).
        rates: Vec<BitRate>,
        /// The largest playback buffer.
        #[serde(default = "millis::<30_000>")]
        buffer: Span,
    },
    /// Interactive video whose rate follows the congestion controller (RFC 8867, RFC 8593).
    Media {
        /// Frames per second.
        #[serde(default = "default_fps")]
        fps: f64,
        /// The lowest rate of the encoder.
        #[serde(default = "kbit::<150>")]
        min: BitRate,
        /// The highest rate of the encoder.
        #[serde(default = "kbit::<1500>")]
        max: BitRate,
        /// Time from writing a frame to its acknowledgement above which the frame is late.
        #[serde(default = "millis::<400>")]
        deadline: Span,
    },
}

fn default_fps() -> f64 {
    30.0
}

fn no_time() -> Times {
    Times::Constant(Span::ZERO)
}

/// A time, or a distribution of times.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a time such as \"1s\", { kind = \"exponential\", mean = \"1s\" } or { kind = \"pareto\", mean = \"1s\", shape = 1.5 }"
)]
pub enum Times {
    /// The same time always.
    Constant(Span),
    /// A distribution.
    Distribution(TimesTable),
}

/// A distribution of times.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TimesTable {
    /// The same time always.
    Constant {
        /// The time.
        mean: Span,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: Span,
    },
    /// Pareto.
    Pareto {
        /// Mean.
        mean: Span,
        /// Shape parameter, above 1; 1.5 by default.
        #[serde(default = "default_shape")]
        shape: f64,
    },
}

pub(super) fn default_shape() -> f64 {
    1.5
}

/// A size, a distribution of sizes, or the path of a file of sizes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected sizes such as \"100kb\", { kind = \"pareto\", mean = \"100kb\", shape = 1.2 }, { kind = \"lognormal\", mean = \"20kb\", sigma = 2 }, a table of kind cdf or list, or the path of a file"
)]
pub enum Sizes {
    /// The same size always.
    Constant(Bytes),
    /// A distribution.
    Distribution(SizesTable),
    /// The name of a file, relative to the scenario file, which the reader of the scenario replaces
    /// by its contents.
    File(String),
}

/// A distribution of sizes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SizesTable {
    /// The same size always.
    Constant {
        /// The size.
        mean: Bytes,
    },
    /// Pareto; with `max` bounded Pareto, whose smallest size follows from the mean.
    Pareto {
        /// Mean, also of the bounded distribution.
        mean: Bytes,
        /// Shape parameter: above 1, or with `max` above 0.
        shape: f64,
        /// The largest size.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<Bytes>,
    },
    /// Lognormal, with either its mean or its median.
    Lognormal {
        /// Mean.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mean: Option<Bytes>,
        /// Median.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        median: Option<Bytes>,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Points of the cumulative distribution.
    Cdf {
        /// Sizes in bytes with their cumulative probabilities; linear between them.
        points: Vec<(f64, f64)>,
    },
    /// Sizes of equal probability.
    List {
        /// Sizes in bytes.
        bytes: Vec<u64>,
    },
}

/// Transfers that arrive as a Poisson process, each a flow of its own.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of arrivals")]
pub struct Arrivals {
    /// Arrivals per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Offered load, instead of `rate`: the mean rate of the transfers with headers of full
    /// packets, as a fraction of the rate of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The link of `load`; by default the slowest one on the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Sizes of the transfers.
    pub sizes: Sizes,
}

fn rate(key: &str, field: &str, rate: BitRate) -> Result<f64, Problem> {
    rate.finite()
        .ok_or_else(|| Problem::new(format!("{key}.{field}"), "an application's rate is finite"))
}

impl Application {
    /// Compiles the application at `key`.
    pub(super) fn compile(&self, key: &str) -> Result<network::Application, Problem> {
        let compiled = match self {
            Application::Limited { rate: limit } => {
                network::Application::Limited { rate: rate(key, "rate", *limit)? }
            }
            Application::OnOff { on, off, rate: limit } => network::Application::OnOff {
                on: on.compile(),
                off: off.compile(),
                rate: limit.map(|limit| rate(key, "rate", limit)).transpose()?,
            },
            Application::Request { sizes, think } => network::Application::Request {
                sizes: sizes.compile(&format!("{key}.sizes"))?,
                think: think.compile(),
            },
            Application::Video { chunk, rates, buffer } => network::Application::Video {
                chunk: chunk.dur(),
                rates: rates
                    .iter()
                    .map(|&limit| rate(key, "rates", limit))
                    .collect::<Result<_, _>>()?,
                buffer: buffer.dur(),
            },
            Application::Media { fps, min, max, deadline } => {
                network::Application::Media(network::Media {
                    fps: *fps,
                    min: rate(key, "min", *min)?,
                    max: rate(key, "max", *max)?,
                    deadline: deadline.dur(),
                })
            }
        };
        compiled.check().map_err(in_table(key))?;
        Ok(compiled)
    }
}

impl SizesTable {
    /// Reads the text of a file of sizes: on each line a size in bytes, or for each point of the
    /// cumulative distribution a size and its probability, which ends at 1 or at 100 (percent). The
    /// last column counts. Empty lines and lines that begin with `#` are comments.
    ///
    /// # Errors
    /// The number of a line with something else, and what it is, to be appended to the name of the
    /// file.
    fn from_text(text: &str) -> Result<Self, String> {
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let row: Vec<f64> =
                line.split_whitespace().map_while(|word| word.parse().ok()).collect();
            let complete = row.len() == line.split_whitespace().count();
            if !complete || row.len() > 3 || rows.first().is_some_and(|it| it.len() != row.len()) {
                let line = shorten(line);
                return Err(format!(
                    ":{}: `{line}` is neither a size nor a size and its cumulative probability",
                    at + 1
                ));
            }
            rows.push(row);
        }
        let ends: Vec<_> =
            rows.iter().filter_map(|row| Some((*row.first()?, *row.last()?))).collect();
        let Some(&(_, total)) = ends.last() else { return Err(": there are no sizes".to_owned()) };
        if rows.iter().all(|row| row.len() == 1) {
            return Ok(SizesTable::List {
                bytes: ends.iter().map(|row| whole(row.0.round())).collect(),
            });
        }
        let scale = if total > 1.0 { 100.0 } else { 1.0 };
        let points = ends.into_iter().map(|(size, part)| (size, part / scale)).collect();
        Ok(SizesTable::Cdf { points })
    }
}

impl Times {
    fn compile(self) -> network::Times {
        match self {
            Times::Constant(time) | Times::Distribution(TimesTable::Constant { mean: time }) => {
                network::Times::Constant(time.dur())
            }
            Times::Distribution(TimesTable::Exponential { mean }) => {
                network::Times::Exponential(mean.dur())
            }
            Times::Distribution(TimesTable::Pareto { mean, shape }) => {
                network::Times::Pareto { mean: mean.dur(), shape }
            }
        }
    }
}

impl Sizes {
    /// Replaces the name of a file by its contents, which `files` returns.
    pub(super) fn resolve(&mut self, key: &str, files: &ReadFile) -> Result<(), Problem> {
        let Sizes::File(name) = self else { return Ok(()) };
        let (path, text) = files(name).map_err(|message| {
            let name = shorten(name);
            let message = format!("\"{name}\" is not an amount of data such as 100kb; {message}");
            Problem::new(key, message)
        })?;
        let table = SizesTable::from_text(&text)
            .map_err(|message| Problem::new(key, format!("{path}{message}")))?;
        *self = Sizes::Distribution(table);
        Ok(())
    }

    /// Compiles the sizes at `key`.
    pub(super) fn compile(&self, key: &str) -> Result<network::Sizes, Problem> {
        let table = match self {
            Sizes::Constant(bytes) => return checked(key, network::Sizes::Constant(bytes.get())),
            Sizes::Distribution(table) => table,
            Sizes::File(name) => {
                return problem(key, format!("the file \"{}\" was not read", shorten(name)));
            }
        };
        let sizes = match table {
            SizesTable::Constant { mean } => network::Sizes::Constant(mean.get()),
            SizesTable::Pareto { mean, shape, max } => {
                let max = max.map_or(f64::INFINITY, |max| max.get() as f64);
                let mean = mean.get() as f64;
                // Without a minimum the parameters are invalid, and the check says why.
                let min = pareto_min(mean, *shape, max).unwrap_or(max);
                network::Sizes::Pareto { min, shape: *shape, max }
            }
            SizesTable::Lognormal { mean, median, sigma } => {
                let median = match (mean, median) {
                    (None, Some(median)) => median.get() as f64,
                    (Some(mean), None) => mean.get() as f64 * libm::exp(-sigma * sigma / 2.0),
                    _ => return problem(key, "give either the mean or the median"),
                };
                network::Sizes::Lognormal { median, sigma: *sigma }
            }
            SizesTable::Cdf { points } => network::Sizes::Cdf(points.as_slice().into()),
            SizesTable::List { bytes } => network::Sizes::List(bytes.as_slice().into()),
        };
        checked(key, sizes)
    }
}

fn checked(key: &str, sizes: network::Sizes) -> Result<network::Sizes, Problem> {
    sizes.check().map_err(|InvalidField { message, .. }| Problem::new(key, message))?;
    Ok(sizes)
}
