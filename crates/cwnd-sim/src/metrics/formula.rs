//! The formulas of the metrics, on plain numbers and series. `cwnd.metrics` in Python documents
//! their parameters, sources and units.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cast::{to_index, whole};

/// The fractions of the percentiles p50, p95 and p99.
const PERCENTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// Intervals end at most this fraction of their length after the last sample.
const ROUNDING: f64 = 1e-9;

/// Adds numbers with compensation of the rounding errors (Neumaier 1974).
pub fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    for value in values {
        let total = sum + value;
        let (large, small) = if sum.abs() >= value.abs() { (sum, value) } else { (value, sum) };
        lost += (large - total) + small;
        sum = total;
    }
    if sum.is_finite() { sum + lost } else { sum }
}

/// Divides; NaN unless the denominator is positive.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { f64::NAN }
}

/// The rate of a number of bytes, in bits per second (RFC 5166, section 2.1.1).
pub fn rate(bytes: f64, seconds: f64) -> f64 {
    ratio(8.0 * bytes, seconds)
}

/// The mean; NaN without values.
pub fn mean(values: &[f64]) -> f64 {
    ratio(sum(values.iter().copied()), values.len() as f64)
}

/// The mean of the finite values; NaN without any.
pub fn mean_of_finite(values: impl IntoIterator<Item = f64>) -> f64 {
    mean(&values.into_iter().filter(|value| value.is_finite()).collect::<Vec<_>>())
}

/// The lowest value, or with `highest` the highest one; NaN without values, or if one is NaN.
pub fn extreme(values: &[f64], highest: bool) -> f64 {
    let worse = |a: f64, b: f64| match a.is_nan() || !b.is_nan() && (a > b) == highest {
        true => a,
        false => b,
    };
    values.iter().copied().reduce(worse).unwrap_or(f64::NAN)
}

/// The mean and the standard deviation of a sample; `None` with fewer than two values.
fn deviation(values: &[f64]) -> Option<(f64, f64)> {
    let mean = mean(values);
    let squares = sum(values.iter().map(|value| (value - mean) * (value - mean)));
    (values.len() > 1).then(|| (mean, (squares / (values.len() - 1) as f64).sqrt()))
}

/// The harm of competitors to a flow (Ware et al., HotNets 2019): (x - y) / x for a metric of which
/// more is better, (y - x) / y for another one.
pub fn harm(alone: f64, beside: f64, more_is_better: bool) -> f64 {
    let (lost, of) =
        if more_is_better { (alone - beside, alone) } else { (beside - alone, beside) };
    if lost == 0.0 { 0.0 } else { ratio(lost, of) }
}

/// Jain's fairness index (RFC 5166, section 2.3; Jain 1984).
pub fn jain(rates: &[f64]) -> f64 {
    let top = rates.iter().fold(0.0, |top: f64, rate| top.max(rate.abs()));
    if top == 0.0 || top.is_infinite() {
        return f64::NAN;
    }
    let total = sum(rates.iter().map(|rate| rate / top));
    let squares = sum(rates.iter().map(|rate| (rate / top) * (rate / top)));
    total * total / (rates.len() as f64 * squares)
}

/// The controller's share of the mean rates of its flows and of the reference's flows.
pub fn friendliness(controller: &[f64], reference: &[f64]) -> f64 {
    let [own, other] = [controller, reference].map(mean);
    ratio(own, own + other)
}

/// The coefficient of variation (RFC 5166, section 2.5).
pub fn coefficient_of_variation(rates: &[f64]) -> f64 {
    match deviation(rates) {
        Some((mean, deviation)) if mean != 0.0 => deviation / mean,
        _ => f64::NAN,
    }
}

/// DAIMD's stability index: the mean coefficient of variation of the flows that sent (Gu et al.,
/// Eq. 18). A row is a flow.
pub fn stability_index<R: AsRef<[f64]>>(rates: &[R]) -> f64 {
    let variations = rates.iter().filter_map(|row| deviation(row.as_ref()));
    let sent = variations.filter(|(mean, _)| *mean > 0.0).map(|(mean, deviation)| deviation / mean);
    mean(&sent.collect::<Vec<_>>())
}

/// Interpolates `values` at the time `at`; constant outside `time`.
pub fn interpolate(at: f64, time: &[f64], values: &[f64]) -> f64 {
    let time = &time[..time.len().min(values.len())];
    let next = time.partition_point(|time| *time <= at);
    match (next.checked_sub(1), time.get(next)) {
        (None, _) => values.first().copied().unwrap_or(f64::NAN),
        (Some(last), Some(end)) if time[last] != at => {
            let slope = (values[next] - values[last]) / (end - time[last]);
            slope * (at - time[last]) + values[last]
        }
        (Some(last), _) => values[last],
    }
}

/// The greatest number of intervals of a series.
pub const MAX_INTERVALS: f64 = 1e8;

/// The edges of the complete intervals of length `scale` from `start` until the last sample; none
/// if there are more than [`MAX_INTERVALS`].
fn edges(time: &[f64], scale: f64, start: f64) -> Vec<f64> {
    let last = time.last().copied().unwrap_or(f64::NAN);
    let count = ratio(last - start, scale) + ROUNDING;
    if count > MAX_INTERVALS {
        return Vec::new();
    }
    (0..=whole(count)).map(|number| start + scale * number as f64).collect()
}

/// The rate of a flow in intervals of equal length: their edges, and bits per second in each.
/// `counted` are the packets until the times of the samples.
pub fn binned_rate(
    time: &[f64],
    counted: &[f64],
    packet_bytes: f64,
    scale: f64,
    start: Option<f64>,
) -> (Vec<f64>, Vec<f64>) {
    let &[first, _, ..] = time else { return Default::default() };
    let mut edges = edges(time, scale, start.unwrap_or(first));
    let counts: Vec<_> = edges.iter().map(|edge| interpolate(*edge, time, counted)).collect();
    let factor = 8.0 * packet_bytes / scale;
    edges.pop();
    (edges, counts.windows(2).map(|pair| (pair[1] - pair[0]) * factor).collect())
}

/// The coefficient of variation of a flow's rate at a time scale (RFC 5166, section 2.5).
pub fn smoothness(time: &[f64], counted: &[f64], scale: f64, start: Option<f64>) -> f64 {
    coefficient_of_variation(&binned_rate(time, counted, 1.0, scale, start).1)
}

/// The time from the first sample until the rates of all flows are within `epsilon` of their mean
/// and stay there for `hold` (RFC 5166, section 2.3.2). A row is a flow.
pub fn convergence_time<R: AsRef<[f64]>>(
    time: &[f64],
    rates: &[R],
    epsilon: f64,
    hold: f64,
) -> f64 {
    let mut since = None;
    for (number, &now) in time.iter().enumerate() {
        let column: Vec<_> =
            rates.iter().filter_map(|row| row.as_ref().get(number)).copied().collect();
        let mean = mean(&column);
        let fair = mean > 0.0 && column.iter().all(|rate| (rate - mean).abs() <= epsilon * mean);
        since = since.filter(|_| fair).or(fair.then_some(now));
        if let Some(begin) = since
            && now - begin >= hold
        {
            return begin - time[0];
        }
    }
    f64::NAN
}

/// The round-trip times of congestion until the rate falls to `factor` of that at its beginning
/// (RFC 5166, section 2.2.1; Bansal et al. 2001), to nine decimals.
pub fn responsiveness(time: &[f64], rate: &[f64], congestion: f64, rtt: f64, factor: f64) -> f64 {
    let before = interpolate(congestion, time, rate);
    let mut samples = time.iter().zip(rate);
    let down = samples.find(|(time, rate)| **time >= congestion && **rate <= factor * before);
    down.and_then(|(time, _)| format!("{:.9}", (time - congestion) / rtt).parse().ok())
        .unwrap_or(f64::NAN)
}

/// The mean, and the smallest delays that 50, 95 and 99 % of the packets do not exceed (RFC 5166,
/// section 2.1.2). `weights` are the packets of each delay; 1 by default.
pub fn queue_delay(delays: &[f64], weights: Option<&[f64]>) -> [f64; 4] {
    let weight = |number: usize| match weights {
        Some(weights) => weights.get(number).copied().unwrap_or(f64::NAN),
        None => 1.0,
    };
    let total = sum((0..delays.len()).map(weight));
    let mean = ratio(sum(delays.iter().enumerate().map(|(at, delay)| delay * weight(at))), total);
    let mut order: Vec<_> = (0..delays.len()).collect();
    order.sort_by(|a, b| delays[*a].total_cmp(&delays[*b]));
    let mut seen = 0.0;
    let until: Vec<_> = order
        .iter()
        .map(|at| {
            seen += weight(*at);
            seen
        })
        .collect();
    let percentile = |part: f64| {
        let number = until.partition_point(|weight| weight / seen < part);
        if total > 0.0 { order.get(number).map_or(f64::NAN, |at| delays[*at]) } else { f64::NAN }
    };
    let [p50, p95, p99] = PERCENTILES.map(percentile);
    [mean, p50, p95, p99]
}

/// Mean and percentiles of a metric of complete transfers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Number of complete transfers.
    #[serde(skip)]
    pub number: usize,
    /// Mean.
    pub mean: f64,
    /// The smallest value that half of the transfers do not exceed.
    pub p50: f64,
    /// The smallest value that 95 % of the transfers do not exceed.
    pub p95: f64,
    /// The smallest value that 99 % of the transfers do not exceed.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
}

/// Mean and percentiles of the values that are not NaN (RFC 5166, section 2.1.1).
pub fn spread(values: &[f64]) -> Spread {
    let mut known: Vec<_> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    let mean = mean(&known);
    known.sort_by(f64::total_cmp);
    let number = known.len();
    let percentile = |part: f64| {
        let place = to_index(whole((number as f64 * part - 1.0).ceil()));
        known.get(place).copied().unwrap_or(f64::NAN)
    };
    let [p50, p95, p99] = PERCENTILES.map(percentile);
    Spread { number, mean, p50, p95, p99, max: percentile(1.0) }
}

/// Mean and percentiles by decade of size: the least size in bytes, that of the next decade, and
/// the metric of the complete transfers in between.
pub fn by_size(sizes: &[f64], values: &[f64]) -> Vec<(f64, f64, Spread)> {
    let mut decades: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
    for (&size, &value) in sizes.iter().zip(values) {
        if !value.is_nan() && size > 0.0 {
            // Powers of ten are exact; a logarithm of 1000 might be below 3.
            let decade = (0..20).find(|power| size < 10_f64.powi(power + 1)).unwrap_or(20);
            decades.entry(decade).or_default().push(value);
        }
    }
    let class = |(decade, values): (i32, Vec<f64>)| {
        (10_f64.powi(decade), 10_f64.powi(decade + 1), spread(&values))
    };
    decades.into_iter().map(class).collect()
}

/// The completion time of a transfer of some bytes on the wire on the empty path (Alizadeh et al.,
/// SIGCOMM 2013; Montazeri et al., SIGCOMM 2018).
pub fn ideal_completion_time(wire_bytes: f64, rate_bps: f64, rtt_s: f64) -> f64 {
    8.0 * wire_bytes / rate_bps + rtt_s
}

/// The completion time over the ideal one; NaN without one.
pub fn slowdown(time: f64, ideal: f64) -> f64 {
    ratio(time, ideal)
}

/// The mean rate that an empty link of varying rate offers to each transfer until its last bit.
/// `capacity` is the mean rate from each sample to the next one. The run ends at the last sample: a
/// transfer that needs more time has the rate of a transfer of these bytes until then.
pub fn offered_rate(time: &[f64], capacity: &[f64], begin: &[f64], wire_bytes: &[f64]) -> Vec<f64> {
    let bits = time.windows(2).zip(capacity).map(|(pair, rate)| (pair[1] - pair[0]) * rate);
    let bits: Vec<_> = bits.collect();
    let mut offered = vec![0.0];
    offered.extend(bits.iter().scan(0.0, |total, bits| {
        *total += bits;
        Some(*total)
    }));
    let rate = |(begin, bytes): (&f64, &f64)| {
        let size = 8.0 * bytes;
        let wanted = interpolate(*begin, time, &offered) + size;
        // The interval in which the last bit is sent: the first one, if the rate is 0 after it.
        let last = offered.partition_point(|bits| *bits < wanted).min(bits.len());
        let Some(before) = last.max(1).checked_sub(1).filter(|at| *at < bits.len()) else {
            return f64::NAN;
        };
        let part = ((wanted - offered[before]) / bits[before]).clamp(0.0, 1.0);
        size / (time[before] + part * (time[before + 1] - time[before]) - begin)
    };
    begin.iter().zip(wire_bytes).map(rate).collect()
}

/// Jain's index in windows of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JainSeries {
    /// Beginning of each window in seconds.
    pub time: Vec<f64>,
    /// The index in each window; NaN with fewer than two flows, or without data.
    pub jain: Vec<f64>,
    /// The lowest index; NaN without any.
    pub worst: f64,
    /// The mean index; NaN without any.
    pub mean: f64,
}

/// Jain's fairness index in windows of equal length (RFC 5166, section 2.3; Jain 1984). A row of
/// `delivered` is a flow, with the bytes delivered until the times of the samples; a flow counts in
/// the windows within its part of `active`.
pub fn jain_over_time<R: AsRef<[f64]>>(
    time: &[f64],
    delivered: &[R],
    window: f64,
    start: f64,
    active: &[(f64, f64)],
) -> JainSeries {
    let mut edges = edges(time, window, start);
    let mut sums = vec![(0.0, 0.0, 0.0); edges.len() - 1];
    for (delivered, (begin, end)) in delivered.iter().zip(active) {
        let first = edges.partition_point(|edge| *edge < begin - ROUNDING);
        let after = edges.partition_point(|edge| *edge <= end + ROUNDING);
        let inside = edges.get(first..after).unwrap_or_default();
        let count = |edge: &f64| interpolate(*edge, time, delivered.as_ref());
        let counts: Vec<_> = inside.iter().map(count).collect();
        for ((total, squares, flows), pair) in sums.iter_mut().skip(first).zip(counts.windows(2)) {
            let rate = pair[1] - pair[0];
            *total += rate;
            *squares += rate * rate;
            *flows += 1.0;
        }
    }
    edges.pop();
    let index = |(total, squares, flows)| match flows > 1.0 {
        true => ratio(total * total, flows * squares),
        false => f64::NAN,
    };
    let jain: Vec<f64> = sums.into_iter().map(index).collect();
    let known: Vec<_> = jain.iter().copied().filter(|index| !index.is_nan()).collect();
    JainSeries { time: edges, worst: extreme(&known, false), mean: mean(&known), jain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sums_do_not_depend_on_the_order() {
        assert_eq!(sum([1.0, 1e100, 1.0, -1e100]), 2.0);
        assert_eq!(sum([f64::INFINITY, 1.0]), f64::INFINITY);
        assert_eq!(sum([]), 0.0);
    }

    #[test]
    fn nothing_is_unknown() {
        let none: &[f64] = &[];
        let unknown = [
            ratio(1.0, 0.0),
            mean(none),
            jain(none),
            jain(&[0.0, 0.0]),
            jain(&[1.0, f64::NAN]),
            extreme(&[1.0, f64::NAN], false),
            friendliness(none, &[1.0]),
            coefficient_of_variation(&[1.0]),
            stability_index::<Vec<f64>>(&[]),
            interpolate(1.0, none, none),
            smoothness(&[0.0, 1.0], &[0.0, 1.0], 5.0, None),
            convergence_time::<Vec<f64>>(none, &[], 0.1, 0.0),
            responsiveness(none, none, 0.0, 1.0, 0.5),
            queue_delay(none, None)[0],
            queue_delay(&[1.0], Some(none))[1],
            spread(&[f64::NAN]).max,
            offered_rate(none, none, &[0.0], &[1.0])[0],
            jain_over_time::<Vec<f64>>(none, &[], 1.0, 0.0, &[]).worst,
        ];
        assert!(unknown.iter().all(|value| value.is_nan()), "{unknown:?}");
    }

    #[test]
    fn intervals_are_complete() {
        let (edges, rates) = binned_rate(&[0.0, 1.0, 2.5], &[0.0, 125.0, 500.0], 1000.0, 1.0, None);
        assert_eq!((edges, rates), (vec![0.0, 1.0], vec![1e6, 2e6]));
        assert!(binned_rate(&[0.0, 1.0], &[0.0, 1.0], 1.0, 0.0, None).1.is_empty());
        let rows = [vec![0.0, 4.0, 6.0], vec![0.0, 0.0, 2.0]];
        let found = jain_over_time(&[0.0, 1.0, 2.0], &rows, 1.0, 0.0, &[(0.0, 2.0), (0.0, 2.0)]);
        assert_eq!((found.jain, found.worst, found.mean), (vec![0.5, 1.0], 0.5, 0.75));
    }

    #[test]
    fn percentiles_are_values_of_the_sample() {
        let found = spread(&[4.0, 1.0, 3.0, 2.0, f64::NAN]);
        assert_eq!(found, Spread { number: 4, mean: 2.5, p50: 2.0, p95: 4.0, p99: 4.0, max: 4.0 });
        let weighted = queue_delay(&[0.03, 0.01, 0.02], Some(&[1.0, 96.0, 3.0]));
        assert_eq!(weighted[1..], [0.01, 0.01, 0.02]);
        let decades = by_size(&[999.0, 1000.0, 1e6], &[1.0, 3.0, f64::NAN]);
        assert_eq!(decades.iter().map(|each| each.0).collect::<Vec<_>>(), [100.0, 1000.0]);
    }

    #[test]
    fn a_varying_link_offers_its_mean_rate() {
        let found = offered_rate(&[0.0, 1.0, 3.0], &[8e3, 4e3, 0.0], &[0.0, 0.5], &[1500.0, 500.0]);
        assert_eq!(found, [6000.0, 8000.0]);
    }

    proptest! {
        #[test]
        fn jain_is_between_its_bounds(rates in prop::collection::vec(1e-3..1e9, 1..20)) {
            let index = jain(&rates);
            prop_assert!((1.0 / rates.len() as f64 - 1e-9..=1.0 + 1e-9).contains(&index));
        }
    }
}
