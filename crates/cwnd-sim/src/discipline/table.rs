//! The keys of queues in scenarios. These doc comments are the descriptions of the JSON Schema.

use crate::cast::{low32, whole};
use crate::check::{Checked, invalid};
use crate::units::{BitRate, Bytes, MAX_PACKETS, Probability, QueueSize, Span, Threshold, table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The least default limit in packets.
pub(super) const MIN_DEFAULT: u32 = 10;

/// A queue discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueKind {
    /// First in, first out, up to the limit.
    #[default]
    DropTail,
    /// Random early detection.
    Red,
    /// Controlled delay (RFC 8289).
    Codel,
    /// Flow queueing with CoDel (RFC 8290).
    #[serde(rename = "fq_codel")]
    FqCodel,
    /// Flow queueing as in Linux's `fq`.
    Fq,
    /// Proportional integral controller enhanced (RFC 8033).
    Pie,
    /// Coupled dual queue for L4S (RFC 9332).
    DualPi2,
}

table! {
    /// The kind and parameters of a queue.
    #[derive(Default)]
    #[serde(default, deny_unknown_fields, expecting = "a queue")]
    pub struct QueueTable {
        /// `droptail` by default.
        pub kind: QueueKind,
    } optional {
        /// Largest queue; by default `1bdp` for DropTail, `2.5bdp` for RED, 1000p for CoDel and
        /// PIE, 10240p for FQ-CoDel, 10000p for fq, and the bytes of 250 ms for DualPI2.
        limit: QueueSize,
        /// RED: average queue below which no packet is dropped; by default `15%` of the limit.
        min: Threshold,
        /// RED: average queue at which the drop probability is `max_p`; by default `50%` of the
        /// limit.
        max: Threshold,
        /// RED: drop probability at `max`; 0.1 by default.
        max_p: Probability,
        /// RED: weight of the current queue length in the moving average; 0.002 by default.
        weight: Probability,
        /// RED: whether the probability rises linearly from `max` to 1 at twice `max`; true by
        /// default.
        gentle: bool,
        /// RED: whether drops are spaced more evenly; true by default.
        wait: bool,
        /// Whether packets of flows with `ecn` are marked instead of dropped; false by default,
        /// true for FQ-CoDel. DualPI2 always marks them.
        ecn: bool,
        /// RED: probability above which packets of flows with `ecn` are dropped too; by default 1
        /// for never.
        mark_p: Probability,
        /// RED: mean packet size in bytes; by default that of the largest packet on the link.
        mean_packet: Bytes,
        /// Target queueing delay; 5ms by default for CoDel and FQ-CoDel (on a slow link at least
        /// the time of a packet, RFC 8290 section 5.2.2), 15ms for the Classic queue of DualPI2.
        target: Span,
        /// CoDel and FQ-CoDel: time above the target before the first drop, a worst-case round-trip
        /// time; 100ms by default.
        interval: Span,
        /// FQ-CoDel: queueing delay above which each packet of flows with `ecn` is marked; by
        /// default none.
        ce_threshold: Span,
        /// FQ-CoDel and fq: number of flow queues, 1024 by default. A hash function assigns flows
        /// to them.
        flows: u32,
        /// FQ-CoDel and fq: bytes that a flow may send in a round; by default 1514 for FQ-CoDel and
        /// 3028 for fq.
        quantum: Bytes,
        /// fq: bytes that a flow may send in its first round, 15140 by default.
        initial_quantum: Bytes,
        /// fq: largest queue of a flow in packets, 100 by default.
        flow_limit: u32,
        /// PIE: target queueing delay, 15ms by default.
        qdelay_ref: Span,
        /// PIE: time between updates of the drop probability, 15ms by default.
        t_update: Span,
        /// PIE: time for which a burst after an idle period is not dropped, 150ms by default.
        max_burst: Span,
        /// PIE: drop probability from which packets of flows with `ecn` are dropped too, 0.1 by
        /// default.
        mark_ecnth: Probability,
        /// PIE: mean packet size in bytes; by default that of the largest packet on the link.
        mean_pktsize: Bytes,
        /// PIE: whether drops and marks are spaced more evenly (RFC 8033 section 5.4); true by
        /// default.
        derandomize: bool,
        /// Integral gain in Hz: 0.125 by default for PIE; for DualPI2 0.1 `tupdate` / `rtt_max`².
        alpha: f64,
        /// Proportional gain in Hz: 1.25 by default for PIE; for DualPI2 0.3 / `rtt_max`.
        beta: f64,
        /// DualPI2: worst-case round-trip time, from which the gains follow; 100ms by default.
        rtt_max: Span,
        /// DualPI2: time between updates of the base probability; by default the smaller of
        /// `target` and a third of `rtt_max`.
        tupdate: Span,
        /// DualPI2: coupling factor between the L4S and the Classic probability, 2 by default.
        k: f64,
        /// DualPI2: queueing delay of the L4S queue above which packets are marked, 800us by
        /// default.
        min_th: Span,
        /// DualPI2: width of the ramp of the marking probability from 0 to 1, 400us by default; 0
        /// for a step.
        range: Span,
        /// DualPI2: packets in the L4S queue up to which its own AQM does not mark, 1 by default.
        th_len: u32,
        /// DualPI2: share of the Classic queue while both queues have packets; 0.1 by default, as
        /// in Linux.
        classic_protection: Probability,
    }
}

impl QueueTable {
    /// Returns the given limit.
    pub(super) fn limit(&self, link: &LinkUse) -> Checked<Option<QueueLimit>> {
        let Some(limit) = self.limit else { return Ok(None) };
        Ok(Some(match limit {
            QueueSize::Packets(packets) => QueueLimit::Packets(packets),
            QueueSize::Infinite => QueueLimit::INFINITE,
            QueueSize::Bdp(products) => QueueLimit::Packets(link.bdp(products)?),
            QueueSize::Bytes(bytes) if bytes.get() < u64::from(link.packet) => {
                let packet = link.packet;
                return invalid(
                    "limit",
                    format!("{bytes} is less than one packet of {packet} bytes"),
                );
            }
            QueueSize::Bytes(bytes) => QueueLimit::Bytes(bytes.get()),
        }))
    }

    /// Returns the given limit, or else `packets`.
    pub(super) fn limit_or(&self, packets: u32, link: &LinkUse) -> Checked<QueueLimit> {
        Ok(self.limit(link)?.unwrap_or(QueueLimit::Packets(packets)))
    }
}

/// Returns a size in bytes.
pub(super) fn size(bytes: Option<Bytes>, default: u32) -> u32 {
    bytes.map_or(default, |bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX))
}

/// The largest queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// In packets.
    Packets(u32),
    /// In bytes.
    Bytes(u64),
}

impl QueueLimit {
    /// No limit.
    pub(crate) const INFINITE: QueueLimit = QueueLimit::Packets(u32::MAX);
}

/// The values that the parameters of a queue can depend on.
pub(crate) struct LinkUse {
    /// Rate of the link in bits per second; `None` is infinite.
    pub rate: Option<f64>,
    /// Round-trip time in seconds for bandwidth-delay products; `None` for an access link, whose
    /// flows have different ones.
    pub rtt: Option<f64>,
    /// Size in bytes of the largest packet on the link.
    pub packet: u32,
}

impl LinkUse {
    /// Converts bandwidth-delay products to packets, at least one.
    pub(super) fn bdp(&self, products: f64) -> Checked<u32> {
        let Some(rtt) = self.rtt else {
            return invalid(
                "limit",
                "an access queue's limit is in packets (`50p`) or bytes, not in `bdp`",
            );
        };
        let Some(rate) = self.rate else {
            let infinite = BitRate::INFINITE;
            return invalid(
                "limit",
                format!("a link of {infinite} rate has no bandwidth-delay product"),
            );
        };
        let packets = (products * rate * rtt / (8.0 * f64::from(self.packet))).round();
        if packets <= MAX_PACKETS {
            return Ok(low32(whole(packets)).max(1));
        }
        invalid(
            "limit",
            format!("{products}bdp are {packets} packets ({rate} bit/s, {rtt} s): too many"),
        )
    }
}
