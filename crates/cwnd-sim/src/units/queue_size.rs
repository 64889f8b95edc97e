//! Limits and thresholds of queues.

use std::fmt;

use super::{Bytes, quantity, shorten, split};
use crate::cast::{low32, whole};

/// The limit of a queue: `20p` (packets), `64kb`, `1.5bdp` (bandwidth-delay products) or
/// `infinite`. A number without a unit is in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueSize {
    /// Packets.
    Packets(u32),
    /// Bytes.
    Bytes(Bytes),
    /// Bandwidth-delay products of the link.
    Bdp(f64),
    /// No limit.
    Infinite,
}

const EXPECTED: &str =
    "a queue: write its limit as `20p` (packets), `64kb`, `1.5bdp` or `infinite`";

/// The largest finite limit in packets.
pub const MAX_PACKETS: f64 = 1e9;

impl QueueSize {
    fn number(packets: f64) -> Result<Self, String> {
        if packets < 0.0 {
            Err("a queue cannot be negative".into())
        } else if packets == 0.0 {
            Err("a queue holds at least one packet (the one being sent is not in it)".into())
        } else if packets.is_nan() || packets > MAX_PACKETS {
            Err("a queue is at most 10^9 packets; write \"infinite\" for no limit".into())
        } else if packets.fract() != 0.0 {
            Err(format!("a queue holds a whole number of packets, not {packets}"))
        } else {
            Ok(QueueSize::Packets(low32(whole(packets))))
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        if lower == "infinite" {
            return Ok(QueueSize::Infinite);
        }
        let quantity = split(&lower, EXPECTED)?;
        match quantity.unit {
            "" | "p" => Self::number(quantity.number),
            "bdp" if quantity.number > 0.0 => Ok(QueueSize::Bdp(quantity.number)),
            "bdp" => Err("a queue in bandwidth-delay products is above zero".into()),
            unit => match Bytes::scale(unit) {
                Some(_) if quantity.number == 0.0 => Err("a queue cannot be empty".into()),
                Some(scale) => {
                    Bytes::number((quantity.number * scale).round()).map(QueueSize::Bytes)
                }
                None => Err(format!("`{}` is not {EXPECTED}", shorten(text))),
            },
        }
    }
}

impl fmt::Display for QueueSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueSize::Packets(packets) => write!(f, "{packets}p"),
            QueueSize::Bytes(bytes) => bytes.fmt(f),
            QueueSize::Bdp(products) => write!(f, "{products}bdp"),
            QueueSize::Infinite => f.write_str("infinite"),
        }
    }
}

quantity!(
    QueueSize,
    "a queue's limit such as \"20p\", \"64kb\" or \"1.5bdp\"",
    "A queue's limit in packets (`20p`, or a bare number), bytes, bandwidth-delay products, or \
     `infinite`.",
    r"^(infinite|[0-9.]+([eE][+-]?[0-9]+)? ?([pP]|[bB][dD][pP]|[bB]|[kmgtKMGT]i?[bB]?)?)$",
    ["20p", "64kb", "1.5bdp", "infinite"]
);

/// A threshold of a queue: `5p`, or a percentage of its limit such as `15%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Packets.
    Packets(f64),
    /// Percentage of the limit.
    Percent(f64),
}

impl Threshold {
    /// Returns the threshold in packets for a limit in packets.
    pub fn of(self, limit: u32) -> f64 {
        match self {
            Threshold::Packets(packets) => packets,
            Threshold::Percent(percent) => percent / 100.0 * f64::from(limit),
        }
    }

    fn number(packets: f64) -> Result<Self, String> {
        // 0.15 may mean 15 % of the limit or 0.15 packets.
        if packets > 0.0 && packets < 1.0 {
            let percent = packets * 100.0;
            Err(format!("write {percent}% of the limit or {packets}p, a part of a packet"))
        } else {
            Self::packets(packets)
        }
    }

    fn packets(packets: f64) -> Result<Self, String> {
        if (0.0..=MAX_PACKETS).contains(&packets) {
            Ok(Threshold::Packets(packets))
        } else {
            Err(format!("a threshold is from 0 to 10^9 packets, not {packets}"))
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "a threshold: write `5p` (packets) or `15%` (of the limit)";
        let lower = text.to_ascii_lowercase();
        let quantity = split(&lower, EXPECTED)?;
        match quantity.unit {
            "" => Self::number(quantity.number),
            "p" => Self::packets(quantity.number),
            "%" if (0.0..=100.0).contains(&quantity.number) => {
                Ok(Threshold::Percent(quantity.number))
            }
            "%" => Err(format!(
                "a threshold is from 0% to 100% of the limit, not {}%",
                quantity.number
            )),
            _ => Err(format!("`{}` is not {EXPECTED}", shorten(text))),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Threshold::Packets(packets) => write!(f, "{packets}p"),
            Threshold::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

quantity!(
    Threshold,
    "a threshold such as \"5p\" or \"15%\"",
    "A threshold of a queue: packets (`5p`, or a bare number) or a share of the limit (`15%`).",
    r"^[0-9.]+([eE][+-]?[0-9]+)? ?([pP]|%)?$",
    ["5p", "15%"]
);
