//! Report of an emulation: the links, the flows, and the performance of the emulator.

use std::io;

use cwnd_sim::live::Histogram;
use cwnd_sim::record::LinkRecord;

use super::TcpLimits;

/// A packet is late if it is delivered more than this many nanoseconds after it was due.
const LATE: u64 = 200_000;
/// The emulator was the limit if a larger fraction of the packets was late.
const MAX_LATE_FRACTION: f64 = 0.01;

/// Report of an emulation.
#[derive(Debug)]
pub struct Report {
    /// Times of the samples in seconds since time 0 of the links.
    pub time: Vec<f64>,
    /// Records of the links, as in the simulator.
    pub links: Vec<LinkRecord>,
    /// Counters of the flows.
    pub flows: Vec<FlowReport>,
    /// Lateness of the deliveries.
    pub lateness: Lateness,
    /// Performance of the emulator.
    pub emulator: EmulatorStats,
    /// Limits of the TCP connections over the links of an [`Emulation`](super::Emulation), up and
    /// down; empty for a testbed.
    pub tcp: Vec<TcpLimits>,
    /// Error of the packet log, if any.
    pub packet_log: io::Result<()>,
}

/// Counters of a flow's packets from source to sink. They include retransmissions and packets
/// without data. Packets are counted from the start of the measurement, like those of links; bytes
/// from time 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowReport {
    /// Packets sent by the source.
    pub packets: u64,
    /// Packets dropped by queues, or lost at random.
    pub lost: u64,
    /// Packets marked by a queue.
    pub marked: u64,
    /// Bytes delivered to the sink, including headers.
    pub bytes: u64,
    /// Bytes delivered at the times of the samples.
    pub bytes_series: Vec<f64>,
}

/// Distribution of the delay from the time at which a packet is due to its delivery.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    all: Histogram,
    max: u64,
    late: u64,
}

impl FlowReport {
    /// Starts the measurement.
    pub(super) fn begin(&mut self) {
        (self.packets, self.lost, self.marked) = (0, 0, 0);
    }
}

impl Lateness {
    pub(super) fn add(&mut self, nanos: u64) {
        self.all.add(nanos);
        self.max = self.max.max(nanos);
        self.late += u64::from(nanos > LATE);
    }

    /// Returns the number of delivered packets.
    pub fn packets(&self) -> u64 {
        self.all.count()
    }

    /// Returns the number of packets that were more than 0.2 ms late.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Returns the quantile `fraction` of the lateness in seconds; NaN without packets.
    pub fn quantile(&self, fraction: f64) -> f64 {
        self.all.quantile(fraction, 0) * 1e-9
    }

    /// Returns the largest lateness in seconds.
    pub fn max(&self) -> f64 {
        self.max as f64 * 1e-9
    }
}

/// Performance of the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EmulatorStats {
    /// Whether the event loop ran as a real-time thread (`SCHED_FIFO`).
    pub realtime: bool,
    /// CPU time of the event loop in seconds.
    pub cpu: f64,
    /// Run time in seconds.
    pub wall: f64,
    /// Packets that the kernel dropped because the emulator did not read them in time.
    pub overrun: u64,
    /// Packets that the kernel did not accept from the emulator.
    pub refused: u64,
    /// Packets of no flow.
    pub unknown: u64,
}

impl Report {
    /// Returns the reason why the emulator, not the network, was the limit; `None` if it was not.
    pub fn limit(&self) -> Option<String> {
        let EmulatorStats { overrun, refused, .. } = self.emulator;
        let (late, packets) = (self.lateness.late(), self.lateness.packets());
        if overrun > 0 {
            Some(format!("{overrun} packets were dropped before the emulator read them"))
        } else if refused > 0 {
            Some(format!("the kernel refused {refused} packets"))
        } else if late as f64 > MAX_LATE_FRACTION * packets as f64 {
            let share = 100.0 * late as f64 / packets as f64;
            let max = 1e3 * self.lateness.max();
            Some(format!("{share:.1} % of the packets were over 0.2 ms late, up to {max:.1} ms"))
        } else {
            None
        }
    }
}
