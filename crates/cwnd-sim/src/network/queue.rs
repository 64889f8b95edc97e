//! The queue disciplines of links: their parameters and the values that can be simulated.

use super::validate::{Checked, check_probability, check_size, invalid};
use cwnd::Dur;
use std::ops::RangeInclusive;

/// The shortest time between two updates of a drop probability.
const SHORTEST_UPDATE: Dur = Dur::from_micros(100);
/// Quanta in bytes. With less than 64 bytes, a large packet would wait for a thousand rounds.
const QUANTA: RangeInclusive<u32> = 64..=1 << 20;
/// The largest number of flow queues, as in Linux.
const MOST_FLOWS: u32 = 65_536;
/// The largest gain of a controller in Hz.
const LARGEST_GAIN: f64 = 1e6;
/// The largest coupling factor.
const LARGEST_COUPLING: f64 = 100.0;

/// A queue discipline. Queue lengths exclude the packet in transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// First in, first out; a packet that exceeds the limit is dropped.
    DropTail {
        /// The largest queue.
        limit: QueueLimit,
    },
    /// Random early detection (Floyd and Jacobson 1993) as in ns-2, with lengths in packets.
    Red(Red),
    /// Controlled delay (RFC 8289).
    Codel(Codel),
    /// Flow queueing with CoDel on each queue (RFC 8290).
    FqCodel(FqCodel),
    /// Flow queueing as in Linux's `sch_fq`, without pacing.
    Fq(Fq),
    /// Proportional integral controller enhanced (RFC 8033).
    Pie(Pie),
    /// Coupled dual queue with a PI² controller (RFC 9332, appendix A).
    DualPi2(DualPi2),
}

/// The largest queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// In packets.
    Packets(u32),
    /// In bytes.
    Bytes(u64),
}

/// RED's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// The hard limit in packets.
    pub limit: u32,
    /// Average queue in packets below which no packet is dropped.
    pub min: f64,
    /// Average queue in packets at which the drop probability is `max_p`.
    pub max: f64,
    /// Drop probability at `max`.
    pub max_p: f64,
    /// Weight of the current queue length in the moving average.
    pub weight: f64,
    /// Whether the probability rises linearly from `max_p` at `max` to 1 at twice `max`; otherwise it is 1 above `max`.
    pub gentle: bool,
    /// Whether drops are spaced more evenly (ns-2's `wait_`).
    pub wait: bool,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Probability above which ECN-capable packets are dropped too; 1 for never (ns-2's `mark_p_`).
    pub mark_p: f64,
    /// Mean packet size in bytes. An idle period counts as the packets of this size that fit into it.
    pub mean_packet: u32,
}

/// CoDel's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codel {
    /// The largest queue.
    pub limit: QueueLimit,
    /// Acceptable sojourn time of a standing queue (`TARGET`).
    pub target: Dur,
    /// Time for which the sojourn time must exceed `target` before the first drop (`INTERVAL`).
    pub interval: Dur,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Queue in bytes up to which nothing is dropped: the largest packet (`maxpacket`).
    pub maxpacket: u32,
}

/// FQ-CoDel's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCodel {
    /// CoDel of each flow queue. Its limit is that of all queues together.
    pub codel: Codel,
    /// Number of flow queues.
    pub flows: u32,
    /// Bytes that a flow queue may send in a round.
    pub quantum: u32,
    /// Sojourn time above which each ECN-capable packet is marked; `None` for never.
    pub ce_threshold: Option<Dur>,
}

/// Parameters of flow queueing as in Linux's `sch_fq`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fq {
    /// The largest queue of all flows together.
    pub limit: QueueLimit,
    /// The largest queue of a flow in packets.
    pub flow_limit: u32,
    /// Number of flow queues.
    pub flows: u32,
    /// Bytes that a flow queue may send in a round.
    pub quantum: u32,
    /// Bytes that a flow may send in its first round.
    pub initial_quantum: u32,
}

/// PIE's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pie {
    /// The largest queue.
    pub limit: QueueLimit,
    /// Target queueing delay (`QDELAY_REF`).
    pub qdelay_ref: Dur,
    /// Time between updates of the drop probability (`T_UPDATE`).
    pub t_update: Dur,
    /// Weight of the deviation from the target in Hz.
    pub alpha: f64,
    /// Weight of the change of the delay in Hz.
    pub beta: f64,
    /// Time for which a burst after an idle period is not dropped (`MAX_BURST`).
    pub max_burst: Dur,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Probability from which ECN-capable packets are dropped too (`mark_ecnth`).
    pub mark_ecnth: f64,
    /// Mean packet size in bytes (`MEAN_PKTSIZE`). A queue of up to two such packets drops nothing.
    pub mean_pktsize: u32,
    /// Whether drops are spaced more evenly (section 5.4 of RFC 8033).
    pub derandomize: bool,
}

/// DualPI2's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2 {
    /// The largest queue of both queues together.
    pub limit: QueueLimit,
    /// Target queueing delay of the Classic queue.
    pub target: Dur,
    /// Time between updates of the base probability (`Tupdate`).
    pub tupdate: Dur,
    /// Integral gain in Hz.
    pub alpha: f64,
    /// Proportional gain in Hz.
    pub beta: f64,
    /// Coupling factor.
    pub k: f64,
    /// Queueing delay of the L4S queue above which packets are marked (`minTh`).
    pub min_th: Dur,
    /// Width of the ramp of the marking probability from 0 to 1 (`range`); 0 for a step.
    pub range: Dur,
    /// Packets in the L4S queue up to which its own AQM does not mark (`Th_len`).
    pub th_len: u32,
    /// Share of the Classic queue in the weighted round robin while both queues have packets (RFC 9332 section 4.2.2).
    pub classic_protection: f64,
    /// Size of the largest packet in bytes (`MTU`). A packet is accepted if one of this size fits.
    pub mtu: u32,
}

impl Queue {
    /// Returns the largest queue.
    #[must_use]
    pub fn limit(&self) -> QueueLimit {
        match self {
            Queue::DropTail { limit } => *limit,
            Queue::Red(red) => QueueLimit::Packets(red.limit),
            Queue::Codel(codel) => codel.limit,
            Queue::FqCodel(fq_codel) => fq_codel.codel.limit,
            Queue::Fq(fq) => fq.limit,
            Queue::Pie(pie) => pie.limit,
            Queue::DualPi2(dualpi2) => dualpi2.limit,
        }
    }

    /// Checks the parameters of the discipline.
    pub(crate) fn check(&self) -> Checked {
        match self {
            Queue::DropTail { .. } => Ok(()),
            Queue::Red(red) => red.check(),
            Queue::Codel(codel) => codel.check(),
            Queue::FqCodel(fq_codel) => fq_codel.check(),
            Queue::Fq(fq) => fq.check(),
            Queue::Pie(pie) => pie.check(),
            Queue::DualPi2(dualpi2) => dualpi2.check(),
        }
    }
}

fn check_positive<const N: usize>(spans: [(&'static str, Dur); N]) -> Checked {
    match spans.into_iter().find(|(_, span)| span.is_zero()) {
        Some((field, _)) => invalid(field, "must be above zero"),
        None => super::validate::check_spans(spans),
    }
}

fn check_update(field: &'static str, interval: Dur) -> Checked {
    if interval < SHORTEST_UPDATE {
        return invalid(field, "the time between updates is at least 100us");
    }
    super::validate::check_spans([(field, interval)])
}

fn check_gains(gains: [(&'static str, f64); 2]) -> Checked {
    for (field, gain) in gains {
        if !(0.0..=LARGEST_GAIN).contains(&gain) {
            return invalid(field, format!("a gain is from 0 to {LARGEST_GAIN} Hz, not {gain}"));
        }
    }
    Ok(())
}

fn check_quantum(field: &'static str, quantum: u32) -> Checked {
    if QUANTA.contains(&quantum) {
        return Ok(());
    }
    let (least, most) = (QUANTA.start(), QUANTA.end());
    invalid(field, format!("a quantum is from {least} to {most} bytes, not {quantum}"))
}

fn check_flows(flows: u32) -> Checked {
    if (1..=MOST_FLOWS).contains(&flows) {
        return Ok(());
    }
    invalid("flows", format!("there are from 1 to {MOST_FLOWS} flow queues, not {flows}"))
}

impl Red {
    /// Checks the parameters of RED.
    pub(crate) fn check(&self) -> Checked {
        let Red { min, max, gentle, .. } = *self;
        // A probability that rises between equal thresholds is a step, which `gentle` would turn into a slope.
        if !(min >= 0.0 && (min < max || min == max && !gentle)) {
            let step = if min == max { " (say gentle = false for a step)" } else { "" };
            return invalid(
                "min",
                format!("red's min of {min} packets is not below its max of {max}{step}"),
            );
        }
        if max <= 0.0 {
            return invalid("max", format!("red's max of {max} packets is not above 0"));
        }
        for (field, value) in
            [("max_p", self.max_p), ("weight", self.weight), ("mark_p", self.mark_p)]
        {
            if value == 0.0 {
                return invalid(field, "cannot be zero");
            }
            check_probability(field, value)?;
        }
        check_size("mean_packet", self.mean_packet)
    }
}

impl Codel {
    fn check(&self) -> Checked {
        check_positive([("target", self.target), ("interval", self.interval)])?;
        check_size("maxpacket", self.maxpacket)
    }
}

impl FqCodel {
    fn check(&self) -> Checked {
        self.codel.check()?;
        check_flows(self.flows)?;
        check_quantum("quantum", self.quantum)?;
        super::validate::check_spans([("ce_threshold", self.ce_threshold.unwrap_or_default())])
    }
}

impl Fq {
    fn check(&self) -> Checked {
        check_flows(self.flows)?;
        check_quantum("quantum", self.quantum)?;
        check_quantum("initial_quantum", self.initial_quantum)?;
        if self.flow_limit == 0 {
            return invalid("flow_limit", "a queue holds at least one packet");
        }
        Ok(())
    }
}

impl Pie {
    fn check(&self) -> Checked {
        check_positive([("qdelay_ref", self.qdelay_ref)])?;
        check_update("t_update", self.t_update)?;
        check_gains([("alpha", self.alpha), ("beta", self.beta)])?;
        super::validate::check_spans([("max_burst", self.max_burst)])?;
        check_probability("mark_ecnth", self.mark_ecnth)?;
        check_size("mean_pktsize", self.mean_pktsize)
    }
}

impl DualPi2 {
    fn check(&self) -> Checked {
        check_positive([("target", self.target)])?;
        check_update("tupdate", self.tupdate)?;
        check_gains([("alpha", self.alpha), ("beta", self.beta)])?;
        if !(self.k > 0.0 && self.k <= LARGEST_COUPLING) {
            return invalid(
                "k",
                format!("{} is not above 0 and at most {LARGEST_COUPLING}", self.k),
            );
        }
        super::validate::check_spans([("min_th", self.min_th), ("range", self.range)])?;
        check_probability("classic_protection", self.classic_protection)?;
        check_size("mtu", self.mtu)
    }
}
