//! Compiles queues: limits in bandwidth-delay products and thresholds in percent become packets.

use super::error::{Problem, problem};
use super::queue_format::{Queue, QueueKind, QueueTable};
use super::units::{BitRate, Bytes, Probability, QueueSize, Span, Threshold};
use crate::cast::{low32, whole};
use crate::network::{self, Codel, DualPi2, Fq, FqCodel, InvalidField, Pie, QueueLimit, Red};
use cwnd::Dur;

/// The values that the size of a queue can depend on.
pub(super) struct LinkUse {
    /// Rate of the link in bits per second; `None` is infinite.
    pub rate: Option<f64>,
    /// Round-trip time in seconds for bandwidth-delay products.
    pub rtt: f64,
    /// Size in bytes of the largest packet on the link.
    pub packet: u32,
}

/// The least default limit in packets.
const LEAST_DEFAULT: u32 = 10;
/// Default limit of CoDel and PIE in packets, that of Linux.
const DEFAULT_LIMIT: u32 = 1000;
/// Bytes of an Ethernet frame, the default quantum of FQ-CoDel.
const ETHERNET: u32 = 1514;
/// Default limit of DualPI2 in seconds at the rate of the link.
const DUALPI2_BUFFER: f64 = 0.25;
/// The largest finite limit in packets.
const MOST: f64 = 1e9;

/// Compiles the queue of a link.
pub(super) fn compile(
    queue: Option<&Queue>,
    key: &str,
    link: &LinkUse,
) -> Result<network::Queue, Problem> {
    let default = QueueTable::default();
    let table = queue.map_or(&default, |queue| &queue.0);
    if let Some(foreign) = table.foreign_key() {
        return problem(key, foreign_key(table.kind, foreign));
    }
    let queue = match table.kind {
        QueueKind::DropTail => drop_tail(table, key, link)?,
        QueueKind::Red => red(table, key, link)?,
        QueueKind::Codel => network::Queue::Codel(codel(table, key, link, DEFAULT_LIMIT, false)?),
        QueueKind::FqCodel => fq_codel(table, key, link)?,
        QueueKind::Fq => fq(table, key, link)?,
        QueueKind::Pie => pie(table, key, link)?,
        QueueKind::DualPi2 => dualpi2(table, key, link)?,
    };
    queue.check().map_err(|InvalidField { field, message }| match field {
        // Either may be a default.
        "min" | "max" => Problem::new(key, message),
        _ => Problem::new(format!("{key}.{field}"), message),
    })?;
    Ok(queue)
}

/// Says which keys a queue has instead of the key `foreign`.
fn foreign_key(kind: QueueKind, foreign: &str) -> String {
    let name = kind.name();
    let keys = QueueTable::keys(kind);
    if keys.is_empty() {
        return format!(
            "a {name} queue has no keys but `kind` and `limit`; `{foreign}` needs another kind"
        );
    }
    format!("a {name} queue has no key `{foreign}`; it has limit, {}", keys.join(", "))
}

fn drop_tail(table: &QueueTable, key: &str, link: &LinkUse) -> Result<network::Queue, Problem> {
    let limit = limit(table, key, link)?.map_or_else(
        || match link.rate {
            None => Ok(QueueLimit::Packets(u32::MAX)),
            Some(_) => Ok(QueueLimit::Packets(bdp(1.0, key, link)?.max(LEAST_DEFAULT))),
        },
        Ok,
    )?;
    Ok(network::Queue::DropTail { limit })
}

/// Returns the given limit of a queue.
fn limit(table: &QueueTable, key: &str, link: &LinkUse) -> Result<Option<QueueLimit>, Problem> {
    let Some(limit) = table.limit else { return Ok(None) };
    Ok(Some(match limit {
        QueueSize::Packets(packets) => QueueLimit::Packets(packets),
        QueueSize::Infinite => QueueLimit::Packets(u32::MAX),
        QueueSize::Bdp(products) => QueueLimit::Packets(bdp(products, key, link)?),
        QueueSize::Bytes(bytes) if bytes.get() < u64::from(link.packet) => {
            return problem(
                key,
                format!("{bytes} is less than one packet of {} bytes", link.packet),
            );
        }
        QueueSize::Bytes(bytes) => QueueLimit::Bytes(bytes.get()),
    }))
}

/// Returns the limit of a queue, by default that in packets.
fn limit_or(
    table: &QueueTable,
    key: &str,
    link: &LinkUse,
    packets: u32,
) -> Result<QueueLimit, Problem> {
    Ok(limit(table, key, link)?.unwrap_or(QueueLimit::Packets(packets)))
}

fn dur(span: Option<Span>, default: Dur) -> Dur {
    span.map_or(default, |span| Dur::from_nanos(span.nanos()))
}

fn size(bytes: Option<Bytes>, default: u32) -> u32 {
    bytes.map_or(default, |bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX))
}

fn codel(
    table: &QueueTable,
    key: &str,
    link: &LinkUse,
    packets: u32,
    ecn: bool,
) -> Result<Codel, Problem> {
    Ok(Codel {
        limit: limit_or(table, key, link, packets)?,
        target: dur(table.target, Dur::from_millis(5)),
        interval: dur(table.interval, Dur::from_millis(100)),
        ecn: table.ecn.unwrap_or(ecn),
        maxpacket: link.packet,
    })
}

fn fq_codel(table: &QueueTable, key: &str, link: &LinkUse) -> Result<network::Queue, Problem> {
    Ok(network::Queue::FqCodel(FqCodel {
        codel: codel(table, key, link, 10_240, true)?,
        flows: table.flows.unwrap_or(1024),
        quantum: size(table.quantum, ETHERNET),
        ce_threshold: table.ce_threshold.map(|span| Dur::from_nanos(span.nanos())),
    }))
}

fn fq(table: &QueueTable, key: &str, link: &LinkUse) -> Result<network::Queue, Problem> {
    Ok(network::Queue::Fq(Fq {
        limit: limit_or(table, key, link, 10_000)?,
        flow_limit: table.flow_limit.unwrap_or(100),
        flows: table.flows.unwrap_or(1024),
        quantum: size(table.quantum, 2 * ETHERNET),
        initial_quantum: size(table.initial_quantum, 10 * ETHERNET),
    }))
}

fn pie(table: &QueueTable, key: &str, link: &LinkUse) -> Result<network::Queue, Problem> {
    Ok(network::Queue::Pie(Pie {
        limit: limit_or(table, key, link, DEFAULT_LIMIT)?,
        qdelay_ref: dur(table.qdelay_ref, Dur::from_millis(15)),
        t_update: dur(table.t_update, Dur::from_millis(15)),
        alpha: table.alpha.unwrap_or(0.125),
        beta: table.beta.unwrap_or(1.25),
        max_burst: dur(table.max_burst, Dur::from_millis(150)),
        ecn: table.ecn.unwrap_or(false),
        mark_ecnth: table.mark_ecnth.map_or(0.1, Probability::get),
        mean_pktsize: size(table.mean_pktsize, link.packet),
        derandomize: table.derandomize.unwrap_or(true),
    }))
}

fn dualpi2(table: &QueueTable, key: &str, link: &LinkUse) -> Result<network::Queue, Problem> {
    let default_limit = match link.rate {
        None => QueueLimit::Packets(u32::MAX),
        Some(rate) => {
            let least = u64::from(LEAST_DEFAULT) * u64::from(link.packet);
            QueueLimit::Bytes(whole(rate / 8.0 * DUALPI2_BUFFER).max(least))
        }
    };
    let target = dur(table.target, Dur::from_millis(15));
    let rtt_max = dur(table.rtt_max, Dur::from_millis(100));
    if rtt_max.is_zero() {
        return problem(format!("{key}.rtt_max"), "must be above zero");
    }
    let third = Dur::from_nanos(rtt_max.as_nanos() / 3);
    let tupdate = dur(table.tupdate, target.min(third));
    let rtt = rtt_max.as_secs();
    Ok(network::Queue::DualPi2(DualPi2 {
        limit: limit(table, key, link)?.unwrap_or(default_limit),
        target,
        tupdate,
        alpha: table.alpha.unwrap_or(0.1 * tupdate.as_secs() / (rtt * rtt)),
        beta: table.beta.unwrap_or(0.3 / rtt),
        k: table.k.unwrap_or(2.0),
        min_th: dur(table.min_th, Dur::from_micros(800)),
        range: dur(table.range, Dur::from_micros(400)),
        th_len: table.th_len.unwrap_or(1),
        classic_protection: table.classic_protection.map_or(0.1, Probability::get),
        mtu: link.packet,
    }))
}

fn red(table: &QueueTable, key: &str, link: &LinkUse) -> Result<network::Queue, Problem> {
    let limit = match table.limit {
        Some(QueueSize::Packets(packets)) => packets,
        Some(QueueSize::Bdp(products)) => bdp(products, key, link)?,
        None => bdp(2.5, key, link)?.max(LEAST_DEFAULT),
        Some(QueueSize::Bytes(_) | QueueSize::Infinite) => {
            return problem(key, "a red queue's limit is in packets (`50p`) or in `bdp`");
        }
    };
    let min = table.min.unwrap_or(Threshold::Percent(15.0)).of(limit);
    let max = table.max.unwrap_or(Threshold::Percent(50.0)).of(limit);
    let share = |value: Option<Probability>, default: f64| value.map_or(default, Probability::get);
    let red = Red {
        limit,
        min,
        max,
        max_p: share(table.max_p, 0.1),
        weight: share(table.weight, 0.002),
        gentle: table.gentle.unwrap_or(true),
        wait: table.wait.unwrap_or(true),
        ecn: table.ecn.unwrap_or(false),
        mark_p: share(table.mark_p, 1.0),
        mean_packet: size(table.mean_packet, link.packet),
    };
    if red.max > f64::from(limit) {
        let max = red.max;
        return problem(key, format!("red's max of {max} packets is outside its limit of {limit}"));
    }
    Ok(network::Queue::Red(red))
}

/// Converts bandwidth-delay products to packets, at least one.
fn bdp(products: f64, key: &str, link: &LinkUse) -> Result<u32, Problem> {
    let Some(rate) = link.rate else {
        let infinite = BitRate::INFINITE;
        return problem(key, format!("a link of {infinite} rate has no bandwidth-delay product"));
    };
    let packets = (products * rate * link.rtt / (8.0 * f64::from(link.packet))).round();
    if packets <= MOST {
        Ok(low32(whole(packets)).max(1))
    } else {
        let rtt = link.rtt;
        problem(
            key,
            format!("{products}bdp are {packets} packets ({rate} bit/s, {rtt} s): too many"),
        )
    }
}

/// Returns the round-trip time of a bandwidth-delay product in seconds: that of the file, or else that of the flows.
pub(super) fn bdp_rtt(given: Option<Span>, longest_nanos: u64) -> f64 {
    given.map_or(longest_nanos, Span::nanos) as f64 / 1e9
}
