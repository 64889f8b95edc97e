//! What an emulation leaves behind, and how well the tool did its own part.

use std::io;

use cwnd_sim::queue::Histogram;
use cwnd_sim::record::LinkRecord;

/// A packet is late when it is released this long after its time, in nanoseconds.
const LATE: u64 = 200_000;
/// When more than this part of the packets is late, the tool was the limit.
const TOLERATED: f64 = 0.01;

/// What was measured.
#[derive(Debug)]
pub struct Report {
    /// Times of the samples in seconds since the start.
    pub time: Vec<f64>,
    /// What each link did, as the simulator tells it.
    pub links: Vec<LinkRecord>,
    /// What became of each flow's packets.
    pub flows: Vec<FlowReport>,
    /// How late packets were released.
    pub lateness: Lateness,
    /// What the tool itself did.
    pub tool: Tool,
    /// What went wrong with the record of packets, if anything did.
    pub journal: io::Result<()>,
}

/// What became of a flow's packets from its source to its sink. Packets with and without data count
/// alike, and each that is sent again counts again. Counters of packets begin with the measurement, as
/// those of links do; bytes count from the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowReport {
    /// Packets that came from the source.
    pub packets: u64,
    /// Those of them that queues dropped or links lost.
    pub lost: u64,
    /// Those that a queue marked.
    pub marked: u64,
    /// Bytes that reached the sink's end, headers included.
    pub bytes: u64,
    /// The same at the times of the samples.
    pub bytes_series: Vec<f64>,
}

/// How late packets were released, after the time that their links gave them.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    all: Histogram,
    worst: u64,
    late: u64,
}

impl FlowReport {
    /// The measurement begins.
    pub(super) fn begin(&mut self) {
        (self.packets, self.lost, self.marked) = (0, 0, 0);
    }
}

impl Lateness {
    pub(super) fn add(&mut self, nanos: u64) {
        self.all.add(nanos);
        self.worst = self.worst.max(nanos);
        self.late += u64::from(nanos > LATE);
    }

    /// Packets released.
    pub fn packets(&self) -> u64 {
        self.all.count()
    }

    /// Those of them that were late by more than 0.2 ms.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// The lateness in seconds that this fraction of the packets does not exceed; NaN without any.
    pub fn quantile(&self, fraction: f64) -> f64 {
        self.all.quantile(fraction, 0) * 1e-9
    }

    /// The largest lateness in seconds.
    pub fn worst(&self) -> f64 {
        self.worst as f64 * 1e-9
    }
}

/// What the tool did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tool {
    /// Whether its thread ran before all others (`SCHED_FIFO`).
    pub realtime: bool,
    /// CPU seconds of that thread.
    pub cpu: f64,
    /// Seconds that it ran.
    pub wall: f64,
    /// Packets that the kernel dropped because the tool did not read them in time.
    pub overrun: u64,
    /// Packets that the kernel would not take back.
    pub refused: u64,
    /// Packets of nobody's flow.
    pub strangers: u64,
}

impl Report {
    /// Why the tool, not the link, was the limit; `None` if it was not.
    pub fn limit(&self) -> Option<String> {
        let Tool { overrun, refused, .. } = self.tool;
        let (late, packets) = (self.lateness.late(), self.lateness.packets());
        if overrun > 0 {
            Some(format!("{overrun} packets were dropped before the tool could read them"))
        } else if refused > 0 {
            Some(format!("the kernel refused {refused} packets"))
        } else if late as f64 > TOLERATED * packets as f64 {
            let share = 100.0 * late as f64 / packets as f64;
            let worst = 1e3 * self.lateness.worst();
            Some(format!("{share:.1} % of the packets were over 0.2 ms late, up to {worst:.1} ms"))
        } else {
            None
        }
    }
}
