//! The catalogue: the dimension, unit, decimals and words of each metric that tables, JSON, data sets
//! and `[expect]` take from one place, and how `[expect]` computes it.

use serde::{Deserialize, Serialize, Serializer};

use super::formula::{Spread, extreme, interpolate, jain, mean, mean_of_finite, rate, spread, sum};
use super::run::{
    Flow, Link, Run, first_kind, loss_rate, mark_rate, retransmission_rate, share, total,
};

use Dimension::{Count, Fraction, Number, Rate, Time};

/// The dimension of a metric. It determines the unit of a bound, and the range of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dimension {
    /// Bits per second.
    Rate,
    /// Seconds.
    Time,
    /// A part of a whole, from 0 to 1.
    Fraction,
    /// A number of events.
    Count,
    /// A number without a unit.
    Number,
}

/// A metric.
#[derive(Debug, Serialize)]
pub struct Metric {
    /// Its name; that in `[expect]`, if it can be named there.
    pub name: &'static str,
    /// The dimension of its values.
    pub dimension: Dimension,
    /// Its figures in JSON, frames, data sets and tables.
    pub figures: &'static [Figure],
    /// The statistics that its name in `[expect]` may contain.
    pub(super) statistics: &'static [&'static str],
    /// Computes it of at least one flow; the text is a statistic, or empty for the default one.
    #[serde(serialize_with = "is_some")]
    pub(super) of_flows: Option<OfFlows>,
    /// Computes it of a link; that of the run is the bottleneck's.
    #[serde(serialize_with = "is_some")]
    pub(super) of_link: Option<OfLink>,
    /// Computes it of the whole run only.
    #[serde(serialize_with = "is_some")]
    pub(super) of_run: Option<OfRun>,
    /// Computes it of flows from one time to another, with the rate in its name.
    #[serde(skip)]
    pub(super) of_span: Option<OfSpan>,
    /// Whether its name contains a rate.
    pub(super) of_rate: bool,
}

#[expect(clippy::ref_option, reason = "serde passes a field by reference")]
fn is_some<T, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(value.is_some())
}

type OfFlows = fn(&Run<'_>, &[&Flow<'_>], &str) -> f64;
type OfLink = fn(&Link<'_>, &str) -> f64;
type OfRun = fn(&Run<'_>) -> f64;
type OfSpan = fn(&Run<'_>, &[&Flow<'_>], f64, (f64, f64)) -> f64;

impl Metric {
    const fn flows(self, of: OfFlows) -> Self {
        Metric { of_flows: Some(of), ..self }
    }

    const fn link(self, of: OfLink) -> Self {
        Metric { of_link: Some(of), ..self }
    }

    const fn run(self, of: OfRun) -> Self {
        Metric { of_run: Some(of), ..self }
    }

    const fn within(self, of: OfSpan) -> Self {
        Metric { of_span: Some(of), ..self }
    }

    const fn with(self, statistics: &'static [&'static str]) -> Self {
        Metric { statistics, ..self }
    }

    const fn with_rate(self) -> Self {
        Metric { of_rate: true, ..self }
    }

    /// Whether `[expect]` can name it.
    pub(super) fn is_named(&self) -> bool {
        self.of_flows.is_some() || self.of_link.is_some() || self.of_run.is_some()
    }
}

/// A figure of a metric: one column of a table.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// Its key in JSON, and its column in frames and data sets. The value is in bits per second,
    /// seconds, or without unit.
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

const fn of(name: &'static str, dimension: Dimension, figures: &'static [Figure]) -> Metric {
    Metric {
        name,
        dimension,
        figures,
        statistics: &[],
        of_flows: None,
        of_link: None,
        of_run: None,
        of_span: None,
        of_rate: false,
    }
}

/// A figure of flows, links, comparisons or applications: its name, titles, unit, decimals and
/// meaning.
const fn figure(
    name: &'static str,
    [title, short]: [&'static str; 2],
    (unit, digits): (&'static str, u8),
    meaning: &'static str,
) -> Figure {
    Figure { name, title, short, unit, digits, meaning, of_run: false }
}

/// A figure that each run has.
const fn run(
    name: &'static str,
    titles: [&'static str; 2],
    format: (&'static str, u8),
    meaning: &'static str,
) -> Figure {
    Figure { of_run: true, ..figure(name, titles, format, meaning) }
}

/// The statistics of transfers.
const SPREAD: &[&str] = &["mean", "p50", "p95", "p99", "max"];

fn part(of: &Spread, statistic: &str) -> f64 {
    match statistic {
        "p50" => of.p50,
        "p95" => of.p95,
        "p99" => of.p99,
        "max" => of.max,
        _ => of.mean,
    }
}

/// The known values of flows: a flow that ended in the warm-up has no round-trip time.
fn known(flows: &[&Flow<'_>], of: fn(&Flow<'_>) -> f64) -> Vec<f64> {
    flows.iter().map(|flow| of(flow)).filter(|value| !value.is_nan()).collect()
}

/// The rate of flows together, or a statistic of those of the active flows.
fn among(run: &Run<'_>, flows: &[&Flow<'_>], statistic: &str, bytes: fn(&Flow<'_>) -> f64) -> f64 {
    match statistic {
        "mean" => mean(&run.rates(flows, bytes)),
        "min" => extreme(&run.rates(flows, bytes), false),
        "max" => extreme(&run.rates(flows, bytes), true),
        _ => run.total_rate(flows, bytes),
    }
}

/// The mean rate of the payload that flows sent or delivered from one time to another.
fn rate_in<'a>(
    run: &Run<'_>,
    flows: &[&Flow<'a>],
    series: fn(&Flow<'a>) -> &'a [f64],
    (begin, end): (f64, f64),
) -> f64 {
    let end = end.min(run.duration_s);
    let until = |flow, time| interpolate(time, run.time, series(flow));
    let bytes = sum(flows.iter().map(|flow| until(flow, end) - until(flow, begin)));
    if flows.is_empty() { f64::NAN } else { rate(bytes, end - begin) }
}

/// The time until the first second in which flows have a goodput, or the whole part of the run.
fn time_to(run: &Run<'_>, flows: &[&Flow<'_>], rate_bps: f64, (begin, end): (f64, f64)) -> f64 {
    if flows.is_empty() || begin >= run.duration_s {
        return f64::NAN;
    }
    let end = end.min(run.duration_s);
    let until = |flow: &Flow<'_>, time| interpolate(time, run.time, flow.delivered_bytes);
    let reached = |from: f64| {
        let bytes = sum(flows.iter().map(|flow| until(flow, from + 1.0) - until(flow, from)));
        rate(bytes, 1.0) >= rate_bps
    };
    let mut seconds = run.time.iter().filter(|time| **time >= begin && **time <= end - 1.0);
    seconds.find(|time| reached(**time)).map_or(end, |time| *time) - begin
}

/// The metrics. Their figures of a run are the columns of a data set, in this order.
#[rustfmt::skip]
pub static METRICS: &[Metric] = &[
    of("jain", Fraction, &[
        run("jain", ["Jain"; 2], ("", 3), "Jain's fairness index of flows of one kind; 1 is equal."),
    ])
        .flows(|run, flows, statistic| {
            let flows = first_kind(flows);
            match statistic {
                "" => jain(&run.goodputs(&flows)),
                "worst" => run.jain_over_time(&flows, run.scales[1]).worst,
                _ => run.jain_over_time(&flows, run.scales[1]).mean,
            }
        })
        .with(&["worst", "mean"]),
    of("goodput", Rate, &[
        run("goodput_bps", ["goodput"; 2], ("Mbit/s", 2), "Payload that arrived, each byte once."),
        figure("reference_goodput_bps", ["reference"; 2], ("Mbit/s", 2), "Goodput of the reference's flows."),
    ])
        .flows(|run, flows, by| among(run, flows, by, |flow| flow.bytes_delivered))
        .with(&["total", "mean", "min", "max"])
        .within(|run, flows, _, span| rate_in(run, flows, |flow| flow.delivered_bytes, span)),
    of("throughput", Rate, &[])
        .flows(|run, flows, by| among(run, flows, by, |flow| flow.bytes_sent))
        .with(&["total", "mean", "min", "max"])
        .within(|run, flows, _, span| rate_in(run, flows, |flow| flow.sent_bytes, span)),
    of("time_to", Time, &[])
        .flows(|_, _, _| f64::NAN)
        .within(time_to)
        .with_rate(),
    of("rate_ratio", Number, &[])
        .flows(|run, flows, _| {
            let rates = run.goodputs(flows);
            let [low, high] = [false, true].map(|highest| extreme(&rates, highest));
            if rates.len() < 2 { f64::NAN } else if low > 0.0 { high / low } else { f64::INFINITY }
        }),
    of("useful", Fraction, &[])
        .run(|run| {
            let flows: Vec<_> = run.flows.iter().collect();
            share(&flows, |flow| flow.packets_delivered, |flow| flow.packets_received)
        }),
    of("efficiency_index", Rate, &[
        run("efficiency_index", ["efficiency index"; 2], ("Mbit/s", 2), "DAIMD's index: the sum of the flows' rates."),
    ]),
    of("fairness_index", Number, &[
        run("fairness_index", ["fairness index"; 2], ("", 3), "DAIMD's index: Jain's index of the flows' rates."),
    ]),
    of("stability_index", Number, &[
        run("stability_index", ["stability index"; 2], ("", 3), "DAIMD's index; 0 is smooth."),
    ]),
    of("alpha_fairness", Number, &[
        run("alpha_fairness", ["α-fairness"; 2], ("", 3), "Jain's index of AIRA's increases."),
    ]),
    of("utilization", Fraction, &[
        run("utilization", ["utilization", "util."], ("%", 1), "Utilisation of the bottleneck."),
    ])
        .link(|link, _| link.utilization),
    of("loss_rate", Fraction, &[
        run("loss_rate", ["loss"; 2], ("%", 2), "Packets lost at the bottleneck."),
    ])
        .flows(|_, flows, _| loss_rate(flows))
        .link(|link, _| link.loss_rate()),
    of("mark_rate", Fraction, &[
        run("mark_rate", ["marks"; 2], ("%", 2), "Packets marked at the bottleneck."),
    ])
        .flows(|_, flows, _| mark_rate(flows))
        .link(|link, _| link.mark_rate()),
    of("retransmission_rate", Fraction, &[
        run("retransmission_rate", ["retransmissions"; 2], ("%", 2), "Share of the packets sent."),
    ])
        .flows(|_, flows, _| retransmission_rate(flows)),
    of("queue_delay", Time, &[
        run("queue_delay_s", ["queueing delay", "queue"], ("ms", 1), "Mean queueing delay."),
        run("queue_delay_p50_s", ["queueing delay, p50", "p50"], ("ms", 1), "Median queueing delay."),
        run("queue_delay_p95_s", ["queueing delay, p95", "p95"], ("ms", 1), "95th percentile of queueing delay."),
        run("queue_delay_p99_s", ["queueing delay, p99", "p99"], ("ms", 1), "99th percentile of queueing delay."),
    ])
        .link(|link, statistic| match statistic {
            "p50" => link.delay.p50,
            "p95" => link.delay.p95,
            "p99" => link.delay.p99,
            _ => link.delay.mean,
        })
        .with(&["mean", "p50", "p95", "p99"]),
    of("smoothness", Number, &[
        run("cov_2rtt", ["CoV, 2 RTT", "CoV"], ("", 3), "Variation of throughput over two RTT; 0 is smooth."),
        run("cov_10rtt", ["CoV, 10 RTT", "CoV"], ("", 3), "The same over ten round-trip times."),
        run("cov_50rtt", ["CoV, 50 RTT", "CoV"], ("", 3), "The same over fifty round-trip times."),
    ])
        .flows(|run, flows, _| {
            mean_of_finite(flows.iter().map(|flow| run.smoothness(flow, run.scales[1])))
        }),
    of("convergence_time", Time, &[
        run("convergence_time_s", ["convergence"; 2], ("s", 2), "Time until all rates stay fair."),
    ])
        .run(|run| run.convergence_time()),
    of("fct", Time, &[
        figure("fct_s", ["completion time", "FCT"], ("ms", 1), "Mean completion time of its transfers."),
    ])
        .flows(|run, flows, statistic| part(&spread(&run.transfers(flows).fct), statistic))
        .with(SPREAD),
    of("slowdown", Number, &[])
        .flows(|run, flows, statistic| part(&spread(&run.transfers(flows).slowdown), statistic))
        .with(SPREAD),
    of("completed", Fraction, &[])
        .flows(|run, flows, _| run.transfers(flows).completed()),
    of("rtt", Time, &[
        figure("mean_rtt_s", ["RTT"; 2], ("ms", 1), "Mean round-trip time."),
    ])
        .flows(|_, flows, statistic| match statistic {
            "min" => extreme(&known(flows, |flow| flow.min_rtt_s), false),
            _ => mean(&known(flows, |flow| flow.mean_rtt_s)),
        })
        .with(&["mean", "min"]),
    of("timeouts", Count, &[
        figure("timeouts", ["timeouts"; 2], ("", 0), "Expirations of the retransmission timer."),
    ])
        .flows(|_, flows, _| total(flows, |flow| flow.timeouts)),
    of("cuts", Count, &[figure("cuts", ["cuts"; 2], ("", 0), "Window reductions.")]),
    of("packets", Count, &[
        figure("packets_sent", ["sent"; 2], ("packets", 0), "Data packets sent, retransmissions included."),
        figure("retransmissions", ["retransmitted"; 2], ("packets", 0), "Retransmissions."),
    ]),
    of("share", Fraction, &[
        figure("share", ["share"; 2], ("", 3), "A flow's share against the reference's; 0.5 is equal."),
    ]),
    of("harm", Number, &[
        figure("harm_goodput", ["harm"; 2], ("", 3), "Goodput that the reference's flows lose; 0 is none."),
    ]),
    of("window", Number, &[
        figure("mean_window", ["window"; 2], ("packets", 1), "Mean window."),
        figure("window_p10", ["window, p10"; 2], ("packets", 1), "10th percentile of the windows."),
        figure("window_p50", ["window, p50"; 2], ("packets", 1), "Median window."),
        figure("window_p90", ["window, p90"; 2], ("packets", 1), "90th percentile of the windows."),
    ]),
    of("queue", Number, &[figure("mean_queue", ["queue"; 2], ("packets", 1), "Mean queue length.")]),
    of("playback", Time, &[
        figure("startup_s", ["startup"; 2], ("s", 2), "Time until the playback begins."),
        figure("rebuffering_s", ["stalled"; 2], ("s", 2), "Time of interruptions."),
    ]),
    of("application", Count, &[
        figure("stalls", ["stalls"; 2], ("", 0), "Interruptions of the playback."),
        figure("frames", ["frames"; 2], ("", 0), "Frames of the encoder."),
        figure("frames_late", ["late"; 2], ("", 0), "Frames above the deadline."),
    ]),
    of("bitrate", Rate, &[
        figure("mean_bitrate_bps", ["bitrate"; 2], ("Mbit/s", 2), "Mean bitrate of chunks or frames."),
    ]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_units_have_the_dimension() {
        let mut names = BTreeSet::new();
        for metric in METRICS {
            for figure in metric.figures {
                let units: &[&str] = match metric.dimension {
                    Rate => &["Mbit/s"],
                    Time => &["ms", "s"],
                    Fraction => &["%", ""],
                    Count | Number => &["", "packets"],
                };
                assert!(units.contains(&figure.unit), "{}", figure.name);
                assert!(names.insert(figure.name), "{}", figure.name);
            }
        }
        let metrics: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(metrics.len(), METRICS.len());
    }
}
