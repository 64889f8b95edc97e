//! The list of metrics.

use super::Dimension::{Count, Fraction, Harm, Number, Rate, Time};
use super::Scope::{Flows, FlowsAndLinks, Links, Nothing, Run};
use super::{Dimension, Figure, Metric, Part, Scope};

/// Statistics of the rates of several flows.
const AMONG_FLOWS: &[&str] = &["total", "mean", "min", "max"];
/// Statistics of transfers.
const SPREAD: &[&str] = &["mean", "p50", "p95", "p99", "max"];

const fn of(
    scope: Scope,
    name: &'static str,
    dimension: Dimension,
    figures: &'static [Figure],
) -> Metric {
    Metric { name, dimension, statistics: &[], scope, part: Part::Never, figures }
}

impl Metric {
    const fn with(self, statistics: &'static [&'static str]) -> Self {
        Metric { statistics, ..self }
    }

    const fn part(self, part: Part) -> Self {
        Metric { part, ..self }
    }
}

/// A figure of flows, links, comparisons or applications: its name, titles, unit, decimals and meaning.
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
    of(Flows, "jain", Fraction, &[
        run("jain", ["Jain"; 2], ("", 3), "Jain's fairness index of all flows; 1 is equal."),
    ]).with(&["worst", "mean"]),
    of(Flows, "goodput", Rate, &[
        run("goodput_bps", ["goodput"; 2], ("Mbit/s", 2), "Payload that arrived, each byte once."),
        figure("reference_goodput_bps", ["reference"; 2], ("Mbit/s", 2), "Goodput of the reference's flows."),
        figure("worst_goodput_bps", ["worst goodput"; 2], ("Mbit/s", 2), "The lowest goodput of a flow."),
    ]).with(AMONG_FLOWS).part(Part::Optional),
    of(Flows, "throughput", Rate, &[
        figure("throughput_bps", ["throughput"; 2], ("Mbit/s", 2), "Payload sent, retransmissions included."),
    ]).with(AMONG_FLOWS).part(Part::Optional),
    of(Flows, "time_to", Time, &[]).part(Part::WithRate),
    of(Flows, "rate_ratio", Number, &[]),
    of(Run, "useful", Fraction, &[]),
    of(Nothing, "efficiency_index", Rate, &[
        run("efficiency_index", ["efficiency index"; 2], ("Mbit/s", 2), "DAIMD's index: the sum of the flows' rates."),
    ]),
    of(Nothing, "fairness_index", Number, &[
        run("fairness_index", ["fairness index"; 2], ("", 3), "DAIMD's index: Jain's index of the flows' rates."),
    ]),
    of(Nothing, "stability_index", Number, &[
        run("stability_index", ["stability index"; 2], ("", 3), "DAIMD's index; 0 is smooth."),
    ]),
    of(Nothing, "alpha_fairness", Number, &[
        run("alpha_fairness", ["α-fairness"; 2], ("", 3), "Jain's index of AIRA's increases."),
    ]),
    of(Links, "utilization", Fraction, &[
        run("utilization", ["utilization", "used"], ("%", 1),
            "Utilisation of the link, or of the rate of a shaper; of a network, that of the bottleneck."),
    ]),
    of(FlowsAndLinks, "loss_rate", Fraction, &[
        run("loss_rate", ["loss"; 2], ("%", 2), "Packets dropped by a queue or lost on a link; of a network, at the bottleneck."),
    ]),
    of(FlowsAndLinks, "mark_rate", Fraction, &[
        run("mark_rate", ["marks"; 2], ("%", 2), "Packets marked by a queue; of a network, at the bottleneck."),
    ]),
    of(Flows, "retransmission_rate", Fraction, &[
        run("retransmission_rate", ["retransmissions"; 2], ("%", 2), "Share of the packets sent."),
    ]),
    of(Links, "queue_delay", Time, &[
        run("queueing_delay_s", ["queueing delay", "queue"], ("ms", 1), "Mean queueing delay."),
        run("queueing_delay_p50_s", ["queueing delay, p50", "p50"], ("ms", 1), "Median queueing delay."),
        run("queueing_delay_p95_s", ["queueing delay, p95", "p95"], ("ms", 1), "95th percentile of queueing delay."),
        run("queueing_delay_p99_s", ["queueing delay, p99", "p99"], ("ms", 1), "99th percentile of queueing delay."),
    ]).with(&["mean", "p50", "p95", "p99"]),
    of(Flows, "smoothness", Number, &[
        run("cov_2rtt", ["CoV, 2 RTT", "CoV"], ("", 3), "Variation of throughput over two round-trip times; 0 is smooth."),
        run("cov_10rtt", ["CoV, 10 RTT", "CoV"], ("", 3), "Variation of throughput over ten round-trip times; 0 is smooth."),
        run("cov_50rtt", ["CoV, 50 RTT", "CoV"], ("", 3), "Variation of throughput over fifty round-trip times; 0 is smooth."),
    ]),
    of(Run, "convergence_time", Time, &[
        run("convergence_time_s", ["convergence"; 2], ("s", 2), "Time until all rates stay fair."),
    ]),
    of(Flows, "fct", Time, &[
        figure("fct_s", ["completion time", "time"], ("ms", 1), "Mean completion time of its transfers."),
        figure("reference_fct_s", ["completion time of the reference", "time"], ("ms", 1), "Mean completion time of the reference's transfers."),
    ]).with(SPREAD),
    of(Flows, "slowdown", Number, &[
        figure("slowdown", ["slowdown"; 2], ("", 2), "Completion time over that on the empty path."),
    ]).with(SPREAD),
    of(Flows, "completed", Fraction, &[
        figure("completed", ["completed"; 2], ("%", 1), "Transfers that were complete at the end of the run."),
    ]),
    of(Flows, "rtt", Time, &[
        figure("mean_rtt_s", ["RTT"; 2], ("ms", 1), "Mean round-trip time."),
        figure("min_rtt_s", ["RTT, minimum", "min"], ("ms", 1), "Smallest round-trip time."),
    ]).with(&["mean", "min"]),
    of(Flows, "timeouts", Count, &[
        figure("timeouts", ["timeouts"; 2], ("", 0), "Expirations of the retransmission timer."),
    ]),
    of(Nothing, "cuts", Count, &[figure("cuts", ["cuts"; 2], ("", 0), "Window reductions.")]),
    of(Nothing, "packets", Count, &[
        figure("packets_sent", ["sent"; 2], ("packets", 0), "Data packets sent, retransmissions included."),
        figure("retransmissions", ["retransmitted"; 2], ("packets", 0), "Retransmissions."),
    ]),
    of(Nothing, "share", Fraction, &[
        figure("share", ["share"; 2], ("", 3), "A flow's share against the reference's; 0.5 is equal."),
    ]),
    of(Nothing, "harm", Harm, &[
        figure("harm_goodput", ["harm"; 2], ("", 3), "Goodput that the reference's flows lose; 0 is none."),
        figure("harm_delay", ["harm, delay"; 2], ("", 3), "Part of the 95th percentile of queueing delay; 0 is none."),
        figure("harm_loss", ["harm, loss"; 2], ("", 3), "Part of the loss rate of the bottleneck; 0 is none."),
        figure("harm_fct", ["harm, completion time"; 2], ("", 3), "Part of the completion time of the reference's flows; 0 is none."),
    ]),
    of(Nothing, "window", Number, &[
        figure("mean_window", ["window"; 2], ("packets", 1), "Mean window."),
        figure("window_p10", ["window, p10"; 2], ("packets", 1), "10th percentile of the windows."),
        figure("window_p50", ["window, p50"; 2], ("packets", 1), "Median window."),
        figure("window_p90", ["window, p90"; 2], ("packets", 1), "90th percentile of the windows."),
    ]),
    of(Nothing, "queue", Number, &[figure("mean_queue", ["queue"; 2], ("packets", 1), "Mean queue length.")]),
    of(Nothing, "limited", Fraction, &[
        figure("limited_window", ["limited by the window"; 2], ("%", 0), "Time in which the window limited the rate."),
        figure("limited_pacing", ["limited by pacing"; 2], ("%", 0), "Time in which pacing limited the rate."),
        figure("limited_receiver", ["limited by the receiver"; 2], ("%", 0), "Time in which the receiver limited the rate."),
        figure("limited_application", ["limited by the application"; 2], ("%", 0), "Time in which the application limited the rate."),
    ]),
    of(Nothing, "playback", Time, &[
        figure("startup_s", ["startup"; 2], ("s", 2), "Time until the playback begins."),
        figure("rebuffering_s", ["stalled"; 2], ("s", 2), "Time of interruptions."),
    ]),
    of(Nothing, "application", Count, &[
        figure("stalls", ["stalls"; 2], ("", 0), "Interruptions of the playback."),
        figure("frames", ["frames"; 2], ("", 0), "Frames of the encoder."),
        figure("frames_late", ["late"; 2], ("", 0), "Frames above the deadline."),
    ]),
    of(Nothing, "bitrate", Rate, &[
        figure("mean_bitrate_bps", ["bitrate"; 2], ("Mbit/s", 2), "Mean bitrate of chunks or frames."),
    ]),
];

/// Returns the metric of a name of `[expect]`.
///
/// # Errors
/// If there is none: one sentence with the allowed names.
pub fn metric(name: &str) -> Result<&'static Metric, String> {
    let mut named = METRICS.iter().filter(|metric| metric.scope != Nothing);
    named.clone().find(|metric| metric.name == name).ok_or_else(|| {
        let first = named.next().map_or("", |metric| metric.name).to_owned();
        let allowed = named.fold(first, |list, metric| list + ", " + metric.name);
        format!("unknown metric \"{name}\"; allowed: {allowed}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_figures_have_words() {
        let metrics: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        let figures: Vec<_> = METRICS.iter().flat_map(|metric| metric.figures).collect();
        let names: BTreeSet<_> = figures.iter().map(|figure| figure.name).collect();
        assert_eq!((metrics.len(), names.len()), (METRICS.len(), figures.len()));
        for figure in figures {
            assert!(!figure.title.is_empty() && !figure.short.is_empty(), "{}", figure.name);
            assert!(figure.meaning.ends_with('.'), "{}", figure.name);
            assert!(["", "Mbit/s", "ms", "s", "%", "packets"].contains(&figure.unit));
        }
    }

    #[test]
    fn a_unit_has_the_dimension_of_its_metric() {
        for metric in METRICS {
            for figure in metric.figures {
                let units: &[&str] = match metric.dimension {
                    Rate => &["Mbit/s"],
                    Time => &["ms", "s"],
                    Fraction => &["%", ""],
                    Count | Number => &["", "packets"],
                    Harm => &[""],
                };
                assert!(units.contains(&figure.unit), "{}", figure.name);
            }
        }
    }

    #[test]
    fn an_unknown_metric_is_an_error_with_the_known_ones() {
        assert_eq!(metric("goodput").map(|metric| metric.dimension), Ok(Rate));
        let error = metric("share").map(|metric| metric.name);
        assert!(error.is_err_and(|error| {
            error.starts_with("unknown metric \"share\"; allowed: jain, goodput, ")
        }));
    }
}
