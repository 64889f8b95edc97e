//! Compiles queues: limits in bandwidth-delay products and thresholds in percent become packets.

use super::error::{Problem, problem};
use super::format::{Queue, QueueKind, QueueTable};
use super::units::{BitRate, Probability, QueueSize, Span, Threshold};
use crate::cast::{low32, whole};
use crate::network::{self, InvalidField, QueueLimit, Red};

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
    match table.kind {
        QueueKind::DropTail => drop_tail(table, key, link),
        QueueKind::Red => red(table, key, link),
    }
}

fn drop_tail(table: &QueueTable, key: &str, link: &LinkUse) -> Result<network::Queue, Problem> {
    let only = QueueTable { kind: table.kind, limit: table.limit, ..QueueTable::default() };
    if *table != only {
        return problem(
            key,
            "a droptail queue has no keys but `kind` and `limit`; say kind = \"red\"",
        );
    }
    let limit = match table.limit {
        Some(QueueSize::Packets(packets)) => QueueLimit::Packets(packets),
        Some(QueueSize::Infinite) => QueueLimit::Packets(u32::MAX),
        Some(QueueSize::Bdp(products)) => QueueLimit::Packets(bdp(products, key, link)?),
        Some(QueueSize::Bytes(bytes)) if bytes.get() < u64::from(link.packet) => {
            return problem(
                key,
                format!("{bytes} is less than one packet of {} bytes", link.packet),
            );
        }
        Some(QueueSize::Bytes(bytes)) => QueueLimit::Bytes(bytes.get()),
        None if link.rate.is_none() => QueueLimit::Packets(u32::MAX),
        None => QueueLimit::Packets(bdp(1.0, key, link)?.max(LEAST_DEFAULT)),
    };
    Ok(network::Queue::DropTail { limit })
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
        mean_packet: table
            .mean_packet
            .map_or(link.packet, |bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX)),
    };
    if red.max > f64::from(limit) {
        let max = red.max;
        return problem(key, format!("red's max of {max} packets is outside its limit of {limit}"));
    }
    red.check().map_err(|InvalidField { field, message }| match field {
        // Either may be a default.
        "min" | "max" => Problem::new(key, message),
        _ => Problem::new(format!("{key}.{field}"), message),
    })?;
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
