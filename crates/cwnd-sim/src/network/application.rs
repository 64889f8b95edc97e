//! Applications of flows, and the distributions of their sizes and times.

use crate::cast::whole;
use crate::check::{Checked, RATES, check_spans, invalid};
use crate::rng::Rng;
use cwnd::Dur;
use std::sync::Arc;

/// The application of a flow: when it has data to send. Transfers consist of whole packets.
#[derive(Clone, Debug, PartialEq)]
pub enum Application {
    /// Writes at a constant rate.
    Limited {
        /// Rate of the data in bits per second, without headers.
        rate: f64,
    },
    /// Writes during on periods, which alternate with off periods. The flow starts with an on
    /// period.
    OnOff {
        /// Durations of on periods.
        on: Times,
        /// Durations of off periods.
        off: Times,
        /// Rate of the data during on periods in bits per second; `None` for no limit.
        rate: Option<f64>,
    },
    /// A server that answers the requests of a client on one connection.
    Request {
        /// Sizes of the responses.
        sizes: Sizes,
        /// Time between the end of a response and the next request.
        think: Times,
    },
    /// Video in chunks, which a player with a playback buffer requests on one connection.
    Video {
        /// Duration of a chunk.
        chunk: Dur,
        /// Bitrates in bits per second, ascending.
        rates: Arc<[f64]>,
        /// The largest playback buffer.
        buffer: Dur,
    },
    /// Interactive video whose rate follows the congestion controller (RFC 8867, RFC 8593).
    Media(Media),
}

/// Parameters of interactive video.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Media {
    /// Frames per second.
    pub fps: f64,
    /// The lowest rate of the encoder in bits per second.
    pub min: f64,
    /// The highest rate of the encoder in bits per second.
    pub max: f64,
    /// Time from writing a frame to its acknowledgement above which the frame is late.
    pub deadline: Dur,
}

/// A distribution of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Times {
    /// The same time always.
    Constant(Dur),
    /// Exponential with this mean.
    Exponential(Dur),
    /// Pareto.
    Pareto {
        /// Mean.
        mean: Dur,
        /// Shape parameter, above 1.
        shape: f64,
    },
}

/// A distribution of sizes in bytes. Draws are rounded to whole bytes, at least one.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// The same size always.
    Constant(u64),
    /// Pareto, or bounded Pareto with a maximum.
    Pareto {
        /// The smallest size.
        min: f64,
        /// Shape parameter.
        shape: f64,
        /// The largest size; infinite for a distribution without bound.
        max: f64,
    },
    /// Lognormal.
    Lognormal {
        /// Median.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Points of the cumulative distribution: size and probability, linear between them. The
    /// probability of the first point is that of its size.
    Cdf(Arc<[(f64, f64)]>),
    /// One of these sizes, all with the same probability.
    List(Arc<[u64]>),
}

/// The largest transfer in bytes: 2^53.
const MAX_TRANSFER: f64 = 9_007_199_254_740_992.0;

/// Returns the minimum of a Pareto distribution with this mean and shape, bounded by `max`, which
/// may be infinite; `None` if there is no such distribution.
pub(crate) fn pareto_min(mean: f64, shape: f64, max: f64) -> Option<f64> {
    if max.is_infinite() {
        return (shape > 1.0).then(|| mean * (shape - 1.0) / shape);
    }
    if max <= mean {
        return None;
    }
    // The mean grows with the minimum, from 0 to `max`.
    let (mut low, mut high) = (0.0, mean);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if pareto_mean(middle, shape, max) < mean { low = middle } else { high = middle }
    }
    (high > 0.0).then_some(high)
}

/// Returns the mean of a Pareto distribution between `min` and `max`, which may be infinite.
fn pareto_mean(min: f64, shape: f64, max: f64) -> f64 {
    if max.is_infinite() {
        return min * shape / (shape - 1.0);
    }
    let ratio = min / max;
    let mass = 1.0 - libm::pow(ratio, shape);
    if (shape - 1.0).abs() < 1e-9 {
        return min * -libm::log(ratio) / mass;
    }
    min * shape / (shape - 1.0) * (1.0 - libm::pow(ratio, shape - 1.0)) / mass
}

impl Sizes {
    /// Draws a size in bytes.
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let size = match self {
            Sizes::Constant(bytes) => return *bytes,
            Sizes::List(sizes) => {
                return sizes[crate::cast::to_index(rng.below(sizes.len() as u64))];
            }
            Sizes::Pareto { min, shape, max } => {
                let bounded = 1.0 - libm::pow(min / max, *shape);
                min * libm::pow(1.0 - bounded * rng.uniform(), -1.0 / shape)
            }
            Sizes::Lognormal { median, sigma } => median * libm::exp(sigma * rng.normal()),
            Sizes::Cdf(points) => inverse(points, rng.uniform()),
        };
        whole(size.min(MAX_TRANSFER) + 0.5).max(1)
    }

    /// The mean in bytes.
    pub(crate) fn mean(&self) -> f64 {
        match self {
            Sizes::Constant(bytes) => *bytes as f64,
            Sizes::List(sizes) => {
                sizes.iter().map(|&size| size as f64).sum::<f64>() / sizes.len() as f64
            }
            Sizes::Pareto { min, shape, max } => pareto_mean(*min, *shape, *max),
            Sizes::Lognormal { median, sigma } => median * libm::exp(sigma * sigma / 2.0),
            Sizes::Cdf(points) => {
                let first = points[0].0 * points[0].1;
                let pieces = points.windows(2);
                first + pieces.map(|p| (p[1].1 - p[0].1) * 0.5 * (p[0].0 + p[1].0)).sum::<f64>()
            }
        }
    }

    /// Checks the parameters.
    pub(crate) fn check(&self) -> Checked {
        let size = |bytes: f64| (1.0..=MAX_TRANSFER).contains(&bytes);
        match self {
            Sizes::Constant(bytes) if !size(*bytes as f64) => {
                invalid("sizes", "a transfer has from 1 to 2^53 bytes")
            }
            Sizes::Pareto { min, shape, max } => {
                let bounded = max.is_finite() && *shape > 0.0;
                if !(*shape <= 100.0 && (bounded || *shape > 1.0)) {
                    let text = "is not above 1 (where the mean is finite), or above 0 with `max`, and at most 100";
                    return invalid("shape", format!("{shape} {text}"));
                }
                if !(*min > 0.0 && min < max && *min <= MAX_TRANSFER) {
                    return invalid("mean", "the mean is positive and less than `max`");
                }
                Ok(())
            }
            Sizes::Lognormal { median, sigma } => {
                if !(*sigma > 0.0 && *sigma <= 10.0) {
                    return invalid("sigma", format!("{sigma} is not above 0 and at most 10"));
                }
                if size(*median) {
                    Ok(())
                } else {
                    invalid("median", "a median is from 1 to 2^53 bytes")
                }
            }
            Sizes::Cdf(points) => {
                let rises = |p: &[(f64, f64)]| p[0].0 <= p[1].0 && p[0].1 <= p[1].1;
                let valid = points.iter().all(|&(bytes, p)| {
                    (0.0..=MAX_TRANSFER).contains(&bytes) && (0.0..=1.0).contains(&p)
                }) && points.last().is_some_and(|&(bytes, p)| p == 1.0 && bytes >= 1.0);
                if valid && points.windows(2).all(rises) {
                    return Ok(());
                }
                invalid(
                    "cdf",
                    "sizes and probabilities do not decrease, and the last probability is 1",
                )
            }
            Sizes::List(sizes)
                if sizes.is_empty() || !sizes.iter().all(|&bytes| size(bytes as f64)) =>
            {
                invalid("list", "a list has one size at least, each from 1 to 2^53 bytes")
            }
            Sizes::Constant(_) | Sizes::List(_) => Ok(()),
        }
    }
}

/// Returns the size at which the cumulative distribution reaches `probability`.
fn inverse(points: &[(f64, f64)], probability: f64) -> f64 {
    let at = points.partition_point(|point| point.1 <= probability).min(points.len() - 1);
    let Some(before) = at.checked_sub(1) else { return points[0].0 };
    let ((low, from), (high, to)) = (points[before], points[at]);
    low + (high - low) * (probability - from) / (to - from)
}

impl Times {
    /// Draws a time in ticks from a distribution whose mean is converted by `ticks`.
    pub(crate) fn draw(&self, rng: &mut Rng, ticks: impl Fn(Dur) -> u64) -> u64 {
        match *self {
            Times::Constant(time) => ticks(time),
            Times::Exponential(mean) => whole(rng.exponential(ticks(mean) as f64)),
            Times::Pareto { mean, shape } => whole(rng.pareto(ticks(mean) as f64, shape)),
        }
    }

    fn mean(&self) -> Dur {
        match *self {
            Times::Constant(mean) | Times::Exponential(mean) | Times::Pareto { mean, .. } => mean,
        }
    }

    fn check(&self, field: &'static str, may_be_zero: bool) -> Checked {
        let mean = self.mean();
        if mean.is_zero() && !(may_be_zero && *self == Times::Constant(mean)) {
            return invalid(field, "must be above zero");
        }
        if let Times::Pareto { shape, .. } = *self
            && !(shape > 1.0 && shape <= 100.0)
        {
            return invalid(
                field,
                format!("shape {shape} is not above 1 (where the mean is finite) and at most 100"),
            );
        }
        check_spans([(field, mean)])
    }
}

fn check_rate(field: &'static str, rate: f64) -> Checked {
    if RATES.contains(&rate) {
        return Ok(());
    }
    invalid(field, "an application's rate is finite: from 8 bit/s to 10 Tbit/s")
}

impl Application {
    /// Checks the parameters.
    pub(crate) fn check(&self) -> Checked {
        match self {
            Application::Limited { rate } => check_rate("rate", *rate),
            Application::OnOff { on, off, rate } => {
                on.check("on", false)?;
                off.check("off", false)?;
                rate.map_or(Ok(()), |rate| check_rate("rate", rate))
            }
            Application::Request { sizes, think } => {
                sizes.check()?;
                think.check("think", true)
            }
            Application::Video { chunk, rates, buffer } => {
                check_spans([("chunk", *chunk), ("buffer", *buffer)])?;
                if chunk.is_zero() {
                    return invalid("chunk", "must be above zero");
                }
                if *buffer < *chunk {
                    return invalid("buffer", "a playback buffer has room for one chunk at least");
                }
                if rates.is_empty() || !rates.windows(2).all(|both| both[0] < both[1]) {
                    return invalid("rates", "bitrates are in ascending order, one at least");
                }
                rates.iter().try_for_each(|&rate| check_rate("rates", rate))
            }
            Application::Media(Media { fps, min, max, deadline }) => {
                if !(*fps >= 1.0 && *fps <= 1000.0) {
                    return invalid("fps", format!("{fps} is not from 1 to 1000"));
                }
                check_rate("min", *min)?;
                check_rate("max", *max)?;
                if min > max {
                    return invalid("min", "the lowest rate is above the highest one");
                }
                check_spans([("deadline", *deadline)])
            }
        }
    }
}
