//! What is read of a flow, made into the simulator's record of it.

use cwnd::{Cut, Dur, Time};
use cwnd_sim::network::Network;
use cwnd_sim::record::{CutRecord, FlowRecord, FlowSeries};

use super::plan::Flow;
use crate::emulate::FlowReport;

/// What there is to see of a flow at some time; counters since its start.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// Data packets sent, those sent again included.
    pub sent: u64,
    /// Data packets that arrived in order; `None` where only the links know.
    pub delivered: Option<f64>,
    pub retransmitted: u64,
    pub timeouts: u64,
    /// The window in packets; `None` before there is one.
    pub window: Option<f64>,
    /// The round-trip time in seconds, where the meter is not told samples.
    pub rtt: Option<f64>,
    pub min_rtt: Option<f64>,
    /// Seconds limited by the window, pacing, the receiver and the application.
    pub limited: [f64; 4],
    /// When all was acknowledged, in seconds.
    pub completed: Option<f64>,
    pub gauges: Vec<(&'static str, f64)>,
}

/// What is told of a flow between two readings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    Rtt(Time, f64),
    Cut(Time, Cut),
    /// The last cut was a timeout's, and is made again.
    Again,
    /// The rate of a rate law in packets per second.
    Rate(f64),
}

/// Sum, number and smallest of the round-trip times.
#[derive(Clone, Copy, Debug)]
struct Rtts {
    sum: f64,
    count: u64,
    min: f64,
}

impl Rtts {
    const NONE: Rtts = Rtts { sum: 0.0, count: 0, min: f64::INFINITY };

    fn add(&mut self, rtt: f64) {
        self.sum += rtt;
        self.count += 1;
        self.min = self.min.min(rtt);
    }
}

pub(super) struct Meter {
    /// Bytes of a packet on the links.
    wire: f64,
    initial_window: f64,
    warmup: Dur,
    before: Reading,
    cuts: Vec<CutRecord>,
    /// Samples of the round-trip time; all, and since the measurement began.
    rtts: [Rtts; 2],
    last_rtt: f64,
    rate: Option<f64>,
    series: FlowSeries,
}

impl Meter {
    pub(super) fn new(flow: &Flow, network: &Network) -> Self {
        Meter {
            wire: f64::from(flow.wire),
            initial_window: flow.initial_window,
            warmup: network.warmup,
            before: Reading::default(),
            cuts: Vec::new(),
            rtts: [Rtts::NONE; 2],
            last_rtt: f64::NAN,
            rate: None,
            series: FlowSeries::default(),
        }
    }

    /// Something happened.
    pub(super) fn told(&mut self, told: Told) {
        match told {
            Told::Rtt(at, rtt) => self.rtt(at, rtt),
            Told::Cut(at, cut) => self.cuts.push(CutRecord { at, cut }),
            Told::Again => drop(self.cuts.pop()),
            Told::Rate(rate) => self.rate = Some(rate),
        }
    }

    fn rtt(&mut self, at: Time, rtt: f64) {
        self.last_rtt = rtt;
        self.rtts[0].add(rtt);
        if at >= Time::ZERO + self.warmup {
            self.rtts[1].add(rtt);
        }
    }

    /// The measurement begins.
    pub(super) fn begin(&mut self, reading: &Reading) {
        self.before = reading.clone();
    }

    /// A sample.
    pub(super) fn sample(&mut self, reading: &Reading) {
        let number = self.series.sent.len();
        self.series.sent.push(reading.sent as f64);
        self.series.delivered.extend(reading.delivered);
        self.series.window.push(reading.window.unwrap_or(self.initial_window));
        // Samples tell it better than the kernel's average of them.
        let told = Some(self.last_rtt).filter(|rtt| rtt.is_finite());
        self.series.rtt.push(told.or(reading.rtt).unwrap_or(f64::NAN));
        let rate = self.rate.map(|rate| ("rate", rate));
        for (name, value) in reading.gauges.iter().copied().chain(rate) {
            let gauges = &mut self.series.gauges;
            let at = gauges.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                gauges.push((name, Vec::new()));
                gauges.len() - 1
            });
            // Before the first there was none.
            gauges[at].1.resize(number, f64::NAN);
            gauges[at].1.push(value);
        }
    }

    /// The record, from what was read last and what the links carried.
    pub(super) fn finish(
        mut self,
        last: &Reading,
        carried: &FlowReport,
        time: &[f64],
    ) -> FlowRecord {
        let since = |get: fn(&Reading) -> u64| get(last) - get(&self.before);
        let samples = time.len();
        let warm = time.partition_point(|&at| at < self.warmup.as_secs());
        let delivered = match last.delivered {
            Some(all) => all - self.before.delivered.unwrap_or(0.0),
            None => {
                let packets = |bytes: &f64| (bytes / self.wire).round();
                self.series.delivered = carried.bytes_series.iter().map(packets).collect();
                self.series.delivered.truncate(samples);
                let before = self.series.delivered.get(warm).filter(|_| warm > 0);
                packets(&(carried.bytes as f64)) - before.unwrap_or(&0.0)
            }
        };
        // Without samples: the kernel's averages, as they were looked at.
        if self.rtts[0].count == 0 {
            let seen = self.series.rtt.iter().skip(warm).filter(|rtt| rtt.is_finite());
            seen.for_each(|&rtt| self.rtts[1].add(rtt));
        }
        let [all, measured] = self.rtts;
        let least = last.min_rtt.unwrap_or(f64::INFINITY).min(all.min);
        FlowRecord {
            packets_sent: since(|reading| reading.sent),
            packets_delivered: delivered.max(0.0) as u64,
            retransmissions: since(|reading| reading.retransmitted),
            packets_lost: carried.lost,
            packets_marked: carried.marked,
            timeouts: since(|reading| reading.timeouts),
            ecn_cuts: 0,
            limited: std::array::from_fn(|k| (last.limited[k] - self.before.limited[k]).max(0.0)),
            mean_rtt: measured.sum / measured.count as f64,
            min_rtt: if least.is_finite() { least } else { f64::NAN },
            completed: last.completed.unwrap_or(f64::NAN),
            cuts: self.cuts,
            series: self.series,
            events: None,
        }
    }
}
