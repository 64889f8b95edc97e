//! The metrics of a run, of its flows and of its links. `docs/metrics.md` defines them.

use std::borrow::Cow;

use cwnd::Time;
use serde::{Deserialize, Serialize};

use super::flow_kinds::{FlowKind, flow_kinds};
use super::formula::{self, JainSeries, Spread, extreme, mean_of_finite, rate, ratio, sum};
use crate::network::Network;
use crate::record::{Delay, Records};

/// The time scales of smoothness, in round-trip times.
pub const SCALES: [u32; 3] = [2, 10, 50];

/// The largest deviation from the mean rate of flows that have converged.
const CONVERGED: f64 = 0.25;

/// The intervals for which flows that have converged stay near their mean rate.
const HELD: f64 = 4.0;

/// A flow of a run. Fields without a comment are those of the [record](crate::record::FlowRecord).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "they are those of the record")]
pub struct Flow<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Whether the metrics of the run include it.
    pub measured: bool,
    /// Bytes of a data packet.
    pub packet_bytes: f64,
    /// Bytes of its headers.
    pub header_bytes: f64,
    /// Indices of the links from the source to the sink.
    pub path: Cow<'a, [usize]>,
    /// The least propagation time in seconds, both ways.
    pub base_rtt_s: f64,
    /// Scheduled start in seconds.
    pub start_s: f64,
    /// Scheduled stop in seconds.
    pub stop_s: f64,
    /// Bytes to send, if they are limited.
    pub bytes: Option<f64>,
    pub completed_s: f64,
    pub acknowledged_s: f64,
    pub packets_sent: f64,
    pub bytes_sent: f64,
    pub packets_delivered: f64,
    pub bytes_delivered: f64,
    pub packets_received: f64,
    pub packets_lost: f64,
    pub packets_marked: f64,
    pub retransmissions: f64,
    pub timeouts: f64,
    pub mean_rtt_s: f64,
    pub min_rtt_s: f64,
    /// Bytes of payload sent until the times of the samples.
    #[serde(skip)]
    pub sent_bytes: &'a [f64],
    /// Bytes of payload delivered until the times of the samples.
    #[serde(skip)]
    pub delivered_bytes: &'a [f64],
    /// Times of the window reductions in seconds.
    #[serde(skip)]
    pub cuts: Cow<'a, [f64]>,
    /// The transfers of its application.
    #[serde(skip)]
    pub transfers: Option<FlowTransfers<'a>>,
    /// AIRA's additive increase at the end of the run.
    #[serde(skip)]
    pub increase: Option<f64>,
}

/// The transfers of an application.
#[derive(Clone, Debug)]
pub struct FlowTransfers<'a> {
    /// Beginning of each transfer in seconds.
    pub begin: Cow<'a, [f64]>,
    /// Its bytes.
    pub bytes: Cow<'a, [f64]>,
    /// Its end in seconds; NaN if it is incomplete.
    pub end: Cow<'a, [f64]>,
}

/// A link of a run. Fields without a comment are those of the [record](crate::record::LinkRecord).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "they are those of the record")]
pub struct Link<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Rate in bit/s; infinite without one.
    pub rate_bps: f64,
    pub offered: f64,
    pub drops: f64,
    pub marks: f64,
    pub losses: f64,
    pub utilization: f64,
    pub delay: Delay,
    /// Mean rate in bit/s from each sample to the next one; empty if the rate is constant.
    #[serde(skip)]
    pub capacity_bps: &'a [f64],
}

impl Link<'_> {
    /// The fraction of the packets offered that the queue dropped or the link lost.
    pub fn loss_rate(&self) -> f64 {
        ratio(self.drops + self.losses, self.offered)
    }

    /// The fraction of the packets offered that the queue marked.
    pub fn mark_rate(&self) -> f64 {
        ratio(self.marks, self.offered)
    }
}

/// The part of the flows' packets counted by `part` in those counted by `whole`.
pub(super) fn share(
    flows: &[&Flow<'_>],
    part: fn(&Flow<'_>) -> f64,
    whole: fn(&Flow<'_>) -> f64,
) -> f64 {
    ratio(total(flows, part), total(flows, whole))
}

/// The sum of a counter of flows.
pub(super) fn total(flows: &[&Flow<'_>], counter: fn(&Flow<'_>) -> f64) -> f64 {
    sum(flows.iter().map(|flow| counter(flow)))
}

/// The fraction of the flows' data packets that were lost, of those lost or received.
pub fn loss_rate(flows: &[&Flow<'_>]) -> f64 {
    share(flows, |flow| flow.packets_lost, |flow| flow.packets_lost + flow.packets_received)
}

/// The fraction of the flows' received data packets that were marked.
pub fn mark_rate(flows: &[&Flow<'_>]) -> f64 {
    share(flows, |flow| flow.packets_marked, |flow| flow.packets_received)
}

/// The fraction of the flows' sent data packets that were retransmissions.
pub fn retransmission_rate(flows: &[&Flow<'_>]) -> f64 {
    share(flows, |flow| flow.retransmissions, |flow| flow.packets_sent)
}

/// The kinds of some flows.
fn kinds_of(flows: &[&Flow<'_>]) -> Vec<FlowKind> {
    let endless = |flow: &Flow<'_>| flow.bytes.is_none() && flow.transfers.is_none();
    flow_kinds(flows.iter().map(|flow| (&*flow.name, endless(flow))))
}

/// The flows of the first kind, which Jain's index is of; none if no kind has two flows.
pub(super) fn first_kind<'r, 'a>(flows: &[&'r Flow<'a>]) -> Vec<&'r Flow<'a>> {
    let first = kinds_of(flows).into_iter().next();
    first.map_or_else(Vec::new, |kind| kind.flows.iter().map(|index| flows[*index]).collect())
}

/// Which flows the first kind has, in words, if the flows differ in kind.
pub(super) fn label_of_first(flows: &[&Flow<'_>]) -> Option<String> {
    let kinds = differing(flows)?;
    Some(match kinds.first() {
        Some(kind) => FlowKind::label(kind.name.as_deref(), kind.flows.len()),
        None => "as no two flows are of one kind".into(),
    })
}

/// The kinds of flows that differ in kind; none if all are of one kind.
fn differing(flows: &[&Flow<'_>]) -> Option<Vec<FlowKind>> {
    let kinds = kinds_of(flows);
    let alike = flows.is_empty() || kinds.iter().any(|kind| kind.flows.len() == flows.len());
    (!alike).then_some(kinds)
}

/// A run: what its metrics depend on.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Run<'a> {
    /// Length of the run in seconds.
    pub duration_s: f64,
    /// Length of the warm-up in seconds.
    pub warmup_s: f64,
    /// Times of the samples in seconds.
    #[serde(skip)]
    pub time: &'a [f64],
    /// The time scales of smoothness in seconds; the second one is also that of other series.
    #[serde(skip)]
    pub scales: [f64; 3],
    /// The flows in the order of the scenario.
    #[serde(skip)]
    pub flows: Vec<Flow<'a>>,
    /// The links in the order of the scenario.
    #[serde(skip)]
    pub links: Vec<Link<'a>>,
}

/// Transfers of some flows, one value each.
#[derive(Clone, Debug, Default)]
pub struct Transfers {
    /// Beginning in seconds.
    pub begin: Vec<f64>,
    /// Bytes of payload.
    pub bytes: Vec<f64>,
    /// Completion time in seconds; NaN if it is incomplete.
    pub fct: Vec<f64>,
    /// Completion time over that on the empty path; NaN if one of them is unknown.
    pub slowdown: Vec<f64>,
}

impl Transfers {
    /// The fraction of complete transfers; NaN without any.
    pub fn completed(&self) -> f64 {
        let complete = self.fct.iter().filter(|time| !time.is_nan()).count();
        ratio(complete as f64, self.fct.len() as f64)
    }

    fn figures(&self) -> Option<TransferFigures> {
        let slow = formula::by_size(&self.bytes, &self.slowdown);
        let unknown = formula::spread(&[]);
        let class = |(low_bytes, high_bytes, fct_s): (f64, f64, Spread)| SizeFigures {
            low_bytes,
            high_bytes,
            number: fct_s.number,
            fct_s,
            slowdown: slow.iter().find(|class| class.0 == low_bytes).map_or(unknown, |own| own.2),
        };
        (!self.begin.is_empty()).then(|| TransferFigures {
            number: self.begin.len(),
            completed: self.completed(),
            fct_s: formula::spread(&self.fct),
            slowdown: formula::spread(&self.slowdown),
            by_size: formula::by_size(&self.bytes, &self.fct).into_iter().map(class).collect(),
        })
    }
}

/// The metrics of the measured flows together, with their names in JSON.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "the catalogue and docs/json.md describe them")]
pub struct RunFigures {
    pub jain: f64,
    /// That of each kind, if the flows differ in kind.
    pub jain_by_kind: Option<Vec<KindFigures>>,
    pub goodput_bps: f64,
    pub efficiency_index: f64,
    pub fairness_index: f64,
    pub stability_index: f64,
    pub alpha_fairness: f64,
    pub bottleneck: String,
    pub utilization: f64,
    pub loss_rate: f64,
    pub mark_rate: f64,
    pub retransmission_rate: f64,
    pub queue_delay_s: Delay,
    pub smoothness: Vec<Smoothness>,
    pub convergence_time_s: f64,
    pub jain_windows: JainFigures,
    pub worst_goodput_bps: f64,
    pub transfers: Option<TransferFigures>,
    /// Those of each flow of the run, with background traffic.
    #[serde(skip)]
    pub flows: Vec<FlowFigures>,
}

/// The metrics of a flow, with their names in JSON.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md describes them")]
pub struct FlowFigures {
    pub throughput_bps: f64,
    pub goodput_bps: f64,
    pub cuts: usize,
    pub loss_rate: f64,
    pub smoothness: [Smoothness; 3],
}

/// The coefficient of variation at a time scale.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Smoothness {
    /// The time scale in seconds.
    pub scale_s: f64,
    /// The coefficient of variation.
    pub cov: f64,
}

/// Jain's index of the flows of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct KindFigures {
    /// The name of finite flows or applications; none for flows that always have data.
    pub name: Option<String>,
    /// Number of flows.
    pub number: usize,
    /// The index.
    pub jain: f64,
}

/// Jain's index in windows of time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct JainFigures {
    /// Length of a window in seconds.
    pub window_s: f64,
    /// The lowest index.
    pub worst: f64,
    /// The mean index.
    pub mean: f64,
}

/// The metrics of transfers.
#[derive(Clone, Debug, Serialize)]
pub struct TransferFigures {
    /// Number of transfers that begin after the warm-up.
    pub number: usize,
    /// The fraction of complete ones.
    pub completed: f64,
    /// Completion times.
    pub fct_s: Spread,
    /// Slowdowns.
    pub slowdown: Spread,
    /// The same by decade of size.
    pub by_size: Vec<SizeFigures>,
}

/// The metrics of the transfers of some sizes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SizeFigures {
    /// The least size in bytes.
    pub low_bytes: f64,
    /// The size of the next class in bytes.
    pub high_bytes: f64,
    /// Number of complete transfers.
    pub number: usize,
    /// Completion times.
    pub fct_s: Spread,
    /// Slowdowns.
    pub slowdown: Spread,
}

/// The time scales of smoothness in seconds: multiples of the median of the flows' smallest
/// round-trip times, or of the sampling period if it is longer, to two digits.
pub fn time_scales(min_rtts: impl IntoIterator<Item = f64>, sample_s: f64) -> [f64; 3] {
    let mut rtts: Vec<_> = min_rtts.into_iter().filter(|rtt| rtt.is_finite()).collect();
    rtts.sort_by(f64::total_cmp);
    let middle = rtts.len() / 2;
    let unit = match (rtts.get(middle), rtts.iter().rev().nth(middle)) {
        (Some(high), Some(low)) => sample_s.max((high + low) / 2.0),
        _ => sample_s,
    };
    SCALES.map(|scale| format!("{:.1e}", f64::from(scale) * unit).parse().unwrap_or(f64::NAN))
}

impl<'a> Run<'a> {
    /// A run of a network in the simulator.
    pub fn new(network: &'a Network, records: &'a Records) -> Self {
        let flow = |(spec, record): (&'a crate::network::Flow, &'a crate::record::FlowRecord)| {
            let (packet, header) = spec.traffic.packet_bytes();
            let last = records.time.len().max(1) - 1;
            let gauge = record.series.gauges.iter().find(|(name, _)| *name == "a");
            let column =
                |of: fn(&crate::record::Transfer) -> f64| record.transfers.iter().map(of).collect();
            Flow {
                name: Cow::from(&spec.name),
                measured: spec.measured,
                packet_bytes: packet.into(),
                header_bytes: header.into(),
                path: Cow::from(&*spec.path),
                base_rtt_s: network.base_rtt_s(spec),
                start_s: spec.start.as_secs(),
                stop_s: if spec.stop == Time::NEVER { f64::INFINITY } else { spec.stop.as_secs() },
                bytes: spec.bytes().map(|bytes| bytes as f64),
                completed_s: record.completed,
                acknowledged_s: record.acknowledged,
                packets_sent: record.packets_sent as f64,
                bytes_sent: record.bytes_sent as f64,
                packets_delivered: record.packets_delivered as f64,
                bytes_delivered: record.bytes_delivered as f64,
                packets_received: record.packets_received as f64,
                packets_lost: record.packets_lost as f64,
                packets_marked: record.packets_marked as f64,
                retransmissions: record.retransmissions as f64,
                timeouts: record.timeouts as f64,
                mean_rtt_s: record.mean_rtt,
                min_rtt_s: record.min_rtt,
                sent_bytes: &record.series.sent_bytes,
                delivered_bytes: &record.series.delivered_bytes,
                cuts: record.cuts.iter().map(|cut| cut.at.as_secs()).collect(),
                transfers: spec.application.as_ref().map(|_| FlowTransfers {
                    begin: column(|transfer| transfer.begin),
                    bytes: column(|transfer| transfer.bytes as f64),
                    end: column(|transfer| transfer.end),
                }),
                increase: gauge.map(|(_, a)| a.get(last).copied().unwrap_or(f64::NAN)),
            }
        };
        let link =
            |(spec, record): (&'a crate::network::Link, &'a crate::record::LinkRecord)| Link {
                name: Cow::from(&spec.name),
                rate_bps: spec.rate.unwrap_or(f64::INFINITY),
                offered: record.offered as f64,
                drops: record.drops as f64,
                marks: record.marks as f64,
                losses: record.losses as f64,
                utilization: record.utilization,
                delay: record.delay,
                capacity_bps: &record.capacity,
            };
        let duration_s = network.duration.as_secs();
        let periods = records.time.len().saturating_sub(1).max(1);
        let min_rtts = records.flows.iter().map(|flow| flow.min_rtt);
        Run {
            duration_s,
            warmup_s: network.warmup.as_secs(),
            time: &records.time,
            scales: time_scales(min_rtts, duration_s / periods as f64),
            flows: network.flows.iter().zip(&records.flows).map(flow).collect(),
            links: network.links.iter().zip(&records.links).map(link).collect(),
        }
    }

    /// The flows that the metrics of the run include.
    pub fn measured(&self) -> Vec<&Flow<'a>> {
        self.flows.iter().filter(|flow| flow.measured).collect()
    }

    /// The link of finite rate with the highest utilisation.
    pub fn bottleneck(&self) -> Option<&Link<'a>> {
        fn most<'l, 'a>(a: &'l Link<'a>, b: &'l Link<'a>) -> &'l Link<'a> {
            if b.utilization > a.utilization { b } else { a }
        }
        let finite = self.links.iter().filter(|link| link.rate_bps.is_finite());
        finite.reduce(most).or_else(|| self.links.iter().reduce(most))
    }

    /// The seconds for which a flow was active after the warm-up.
    pub fn seconds(&self, flow: &Flow<'_>) -> f64 {
        // The minimum with NaN, for a flow that never completed, is the other number.
        let end = self.duration_s.min(flow.stop_s).min(flow.completed_s);
        (end - flow.start_s.max(self.warmup_s)).max(0.0)
    }

    /// A rate of each flow that was active after the warm-up, from its bytes.
    pub(super) fn rates(&self, flows: &[&Flow<'_>], bytes: fn(&Flow<'_>) -> f64) -> Vec<f64> {
        let active = flows.iter().map(|flow| (bytes(flow), self.seconds(flow)));
        active.filter(|(_, time)| *time > 0.0).map(|(bytes, time)| rate(bytes, time)).collect()
    }

    /// The goodput of each flow that was active after the warm-up, in bit/s.
    pub fn goodputs(&self, flows: &[&Flow<'_>]) -> Vec<f64> {
        self.rates(flows, |flow| flow.bytes_delivered)
    }

    /// The rate of the bytes of all flows in the measured time, in bit/s.
    pub(super) fn total_rate(&self, flows: &[&Flow<'_>], bytes: fn(&Flow<'_>) -> f64) -> f64 {
        rate(total(flows, bytes), self.duration_s - self.warmup_s)
    }

    /// The goodput of flows together in the measured time, in bit/s.
    pub fn total_goodput(&self, flows: &[&Flow<'_>]) -> f64 {
        self.total_rate(flows, |flow| flow.bytes_delivered)
    }

    /// The coefficient of variation of a flow's throughput at a time scale in seconds.
    pub fn smoothness(&self, flow: &Flow<'_>, scale: f64) -> f64 {
        let start = flow.start_s.max(self.warmup_s);
        let end = start + self.seconds(flow);
        let active = self.time.partition_point(|time| *time <= end);
        formula::smoothness(&self.time[..active], flow.sent_bytes, scale, Some(start))
    }

    /// Jain's index of the goodputs in windows of `window` seconds after the warm-up. A flow counts
    /// in the windows in which it is active.
    pub fn jain_over_time(&self, flows: &[&Flow<'_>], window: f64) -> JainSeries {
        let begun = |flow: &Flow<'_>| flow.start_s.max(self.warmup_s) + self.seconds(flow);
        let active: Vec<_> = flows.iter().map(|flow| (flow.start_s, begun(flow))).collect();
        let delivered: Vec<_> = flows.iter().map(|flow| flow.delivered_bytes).collect();
        formula::jain_over_time(self.time, &delivered, window, self.warmup_s, &active)
    }

    /// The throughput of flows in intervals of the second time scale from `start`: the beginnings
    /// of the intervals, and a row for each flow.
    fn series(&self, flows: &[&Flow<'_>], start: f64) -> (Vec<f64>, Vec<Vec<f64>>) {
        let binned = |flow: &&Flow<'_>| {
            formula::binned_rate(self.time, flow.sent_bytes, 1.0, self.scales[1], Some(start))
        };
        let (edges, rates): (Vec<_>, Vec<_>) = flows.iter().map(binned).unzip();
        (edges.into_iter().next().unwrap_or_default(), rates)
    }

    /// The time from the start of the last measured flow until all stay near the fair share.
    pub fn convergence_time(&self) -> f64 {
        let flows = self.measured();
        if flows.len() < 2 {
            return f64::NAN;
        }
        let starts: Vec<_> = flows.iter().map(|flow| flow.start_s).collect();
        let (time, rates) = self.series(&flows, extreme(&starts, true));
        formula::convergence_time(&time, &rates, CONVERGED, HELD * self.scales[1])
    }

    /// The transfers of flows that begin after the warm-up: finite flows without an application,
    /// and then the transfers of applications.
    pub fn transfers(&self, flows: &[&Flow<'_>]) -> Transfers {
        let mut found = Transfers::default();
        let (mut owners, mut wire) = (Vec::new(), Vec::new());
        let mut add = |owner: usize, flow: &Flow<'_>, begin: f64, bytes: f64, end: f64| {
            if begin >= self.warmup_s && !bytes.is_nan() {
                owners.push(owner);
                found.begin.push(begin);
                found.bytes.push(bytes);
                found.fct.push(end - begin);
                wire.push(bytes + flow.header_bytes * (bytes / flow.packet_bytes).ceil());
            }
        };
        let each = || flows.iter().enumerate();
        for (owner, flow) in each().filter(|(_, flow)| flow.transfers.is_none()) {
            add(owner, flow, flow.start_s, flow.bytes.unwrap_or(f64::NAN), flow.acknowledged_s);
        }
        for (owner, flow) in each() {
            if let Some(FlowTransfers { begin, bytes, end }) = &flow.transfers {
                for ((begin, bytes), end) in begin.iter().zip(&**bytes).zip(&**end) {
                    add(owner, flow, *begin, *bytes, *end);
                }
            }
        }
        // The lowest rate on the path of each transfer.
        let path = |flow: &Flow<'_>| {
            let links = flow.path.iter().filter_map(|number| self.links.get(*number));
            let constant = links.filter(|link| link.capacity_bps.is_empty());
            constant.map(|link| link.rate_bps).fold(f64::INFINITY, f64::min)
        };
        let constant: Vec<_> = flows.iter().map(|flow| path(flow)).collect();
        let mut rates: Vec<_> = owners.iter().map(|owner| constant[*owner]).collect();
        for (number, link) in self.links.iter().enumerate() {
            if link.capacity_bps.is_empty() {
                continue;
            }
            let crosses: Vec<_> = flows.iter().map(|flow| flow.path.contains(&number)).collect();
            let here: Vec<_> = (0..owners.len()).filter(|at| crosses[owners[*at]]).collect();
            let of = |column: &[f64]| here.iter().map(|at| column[*at]).collect::<Vec<_>>();
            let (begin, wire) = (of(&found.begin), of(&wire));
            let offered = formula::offered_rate(self.time, link.capacity_bps, &begin, &wire);
            for (at, offered) in here.into_iter().zip(offered) {
                rates[at] = extreme(&[rates[at], offered], false);
            }
        }
        let times = found.fct.iter().zip(owners.iter().zip(wire.iter().zip(&rates)));
        found.slowdown = times
            .map(|(time, (owner, (wire, rate)))| {
                let rtt = flows[*owner].base_rtt_s;
                formula::slowdown(*time, formula::ideal_completion_time(*wire, *rate, rtt))
            })
            .collect();
        found
    }

    /// The metrics of the measured flows together, and of each flow.
    pub fn figures(&self) -> RunFigures {
        let figures: Vec<_> = self.flows.iter().map(|flow| self.flow_figures(flow)).collect();
        let smoothness = self.scales.iter().enumerate().map(|(number, &scale_s)| {
            let each = figures.iter().zip(&self.flows).filter(|(_, flow)| flow.measured);
            let cov = mean_of_finite(each.map(|(own, _)| own.smoothness[number].cov));
            Smoothness { scale_s, cov }
        });
        let flows = self.measured();
        let none = Link { utilization: f64::NAN, ..Link::default() };
        let link = self.bottleneck().unwrap_or(&none);
        let goodputs = self.goodputs(&flows);
        let increases: Option<Vec<_>> = flows.iter().map(|flow| flow.increase).collect();
        let window_s = self.scales[1];
        let first = first_kind(&flows);
        let windows = self.jain_over_time(&first, window_s);
        RunFigures {
            jain: formula::jain(&self.goodputs(&first)),
            jain_by_kind: self.jain_by_kind(&flows),
            goodput_bps: self.total_goodput(&flows),
            efficiency_index: sum(goodputs.iter().copied()),
            fairness_index: formula::jain(&goodputs),
            stability_index: formula::stability_index(&self.series(&flows, self.warmup_s).1),
            alpha_fairness: increases.map_or(f64::NAN, |a| formula::jain(&a)),
            bottleneck: link.name.to_string(),
            utilization: link.utilization,
            loss_rate: link.loss_rate(),
            mark_rate: link.mark_rate(),
            retransmission_rate: retransmission_rate(&flows),
            queue_delay_s: link.delay,
            smoothness: smoothness.collect(),
            convergence_time_s: self.convergence_time(),
            jain_windows: JainFigures { window_s, worst: windows.worst, mean: windows.mean },
            worst_goodput_bps: extreme(&goodputs, false),
            transfers: self.transfers(&flows).figures(),
            flows: figures,
        }
    }

    /// Jain's index of each kind of flows; none if all are of one kind.
    fn jain_by_kind(&self, flows: &[&Flow<'_>]) -> Option<Vec<KindFigures>> {
        let figures = |kind: FlowKind| {
            let own: Vec<_> = kind.flows.iter().map(|index| flows[*index]).collect();
            let jain = formula::jain(&self.goodputs(&own));
            KindFigures { name: kind.name, number: own.len(), jain }
        };
        Some(differing(flows)?.into_iter().map(figures).collect())
    }

    /// The metrics of a flow.
    pub fn flow_figures(&self, flow: &Flow<'_>) -> FlowFigures {
        let seconds = self.seconds(flow);
        FlowFigures {
            throughput_bps: rate(flow.bytes_sent, seconds),
            goodput_bps: rate(flow.bytes_delivered, seconds),
            cuts: flow.cuts.iter().filter(|time| **time >= self.warmup_s).count(),
            loss_rate: loss_rate(&[flow]),
            smoothness: self
                .scales
                .map(|scale_s| Smoothness { scale_s, cov: self.smoothness(flow, scale_s) }),
        }
    }
}
