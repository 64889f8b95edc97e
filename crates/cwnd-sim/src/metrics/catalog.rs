//! The catalogue: the dimension, unit, decimals and words of each metric that tables, JSON, data sets
//! and `[expect]` take from one place.

use serde::Serialize;

use Dimension::{Count, Fraction, Number, Rate, Time};

/// The dimension of a metric. It determines the unit of a bound, and the range of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    Metric { name, dimension, figures }
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

/// The metrics. Their figures of a run are the columns of a data set, in this order.
#[rustfmt::skip]
pub static METRICS: &[Metric] = &[
    of("jain", Fraction, &[
        run("jain", ["Jain"; 2], ("", 3), "Jain's fairness index of all flows; 1 is equal."),
    ]),
    of("goodput", Rate, &[
        run("goodput_bps", ["goodput"; 2], ("Mbit/s", 2), "Payload that arrived, each byte once."),
        figure("reference_goodput_bps", ["reference"; 2], ("Mbit/s", 2), "Goodput of the reference's flows."),
    ]),
    of("throughput", Rate, &[]),
    of("time_to", Time, &[]),
    of("rate_ratio", Number, &[]),
    of("useful", Fraction, &[]),
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
        run("utilization", ["utilization", "used"], ("%", 1), "Utilisation of the bottleneck."),
    ]),
    of("loss_rate", Fraction, &[
        run("loss_rate", ["loss"; 2], ("%", 2), "Packets lost at the bottleneck."),
    ]),
    of("mark_rate", Fraction, &[
        run("mark_rate", ["marks"; 2], ("%", 2), "Packets marked at the bottleneck."),
    ]),
    of("retransmission_rate", Fraction, &[
        run("retransmission_rate", ["retransmissions"; 2], ("%", 2), "Share of the packets sent."),
    ]),
    of("queue_delay", Time, &[
        run("queueing_delay_s", ["queueing delay", "queue"], ("ms", 1), "Mean queueing delay."),
        run("queueing_delay_p50_s", ["queueing delay, p50", "p50"], ("ms", 1), "Median queueing delay."),
        run("queueing_delay_p95_s", ["queueing delay, p95", "p95"], ("ms", 1), "95th percentile of queueing delay."),
        run("queueing_delay_p99_s", ["queueing delay, p99", "p99"], ("ms", 1), "99th percentile of queueing delay."),
    ]),
    of("smoothness", Number, &[
        run("cov_2rtt", ["CoV, 2 RTT", "CoV"], ("", 3), "Variation of throughput over two RTT; 0 is smooth."),
        run("cov_10rtt", ["CoV, 10 RTT", "CoV"], ("", 3), "The same over ten round-trip times."),
        run("cov_50rtt", ["CoV, 50 RTT", "CoV"], ("", 3), "The same over fifty round-trip times."),
    ]),
    of("convergence_time", Time, &[
        run("convergence_time_s", ["convergence"; 2], ("s", 2), "Time until all rates stay fair."),
    ]),
    of("fct", Time, &[
        figure("fct_s", ["completion time", "time"], ("ms", 1), "Mean completion time of its transfers."),
    ]),
    of("slowdown", Number, &[]),
    of("completed", Fraction, &[]),
    of("rtt", Time, &[
        figure("mean_rtt_s", ["RTT"; 2], ("ms", 1), "Mean round-trip time."),
    ]),
    of("timeouts", Count, &[
        figure("timeouts", ["timeouts"; 2], ("", 0), "Expirations of the retransmission timer."),
    ]),
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
