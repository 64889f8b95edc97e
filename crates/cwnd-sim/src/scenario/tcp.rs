//! The options of TCP and what they are when a scenario does not say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{Problem, problem};
use super::units::{Bytes, Span, Timestamps};
use crate::network::{self, Tcp, Udt};
use crate::udt::HEADERS;

/// How TCP behaves. A key left out has the default of `conventions`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table of TCP options")]
pub struct TcpOptions {
    /// Whose habits and defaults: the RFCs' (default), ns-2.35's, or ns-2's of spring 2001.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conventions: Option<Conventions>,
    /// Loss recovery: `sack` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Payload bytes of a data packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<Bytes>,
    /// Header bytes of a data packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Bytes>,
    /// Bytes of an acknowledgement on the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack: Option<Bytes>,
    /// Initial window in packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub initial_window: Option<u32>,
    /// Receiver's window in packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
    /// Acknowledge every second packet, or after `ack_delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_acks: Option<bool>,
    /// The longest an acknowledgement is delayed, at most 500ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_delay: Option<Span>,
    /// Explicit congestion notification (RFC 3168); the queues must mark with `ecn` too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// Timestamps (RFC 7323).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<Timestamps>,
    /// Sends a new packet on each of the first two duplicate acknowledgements (RFC 3042).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_transmit: Option<bool>,
    /// Opens with a handshake packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syn: Option<bool>,
    /// Counts packets and not acknowledgements when the window grows (RFC 3465).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_counting: Option<bool>,
    /// Granularity of the retransmission timer's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granularity: Option<Span>,
    /// The smallest retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rto: Option<Span>,
    /// The largest retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rto: Option<Span>,
    /// The retransmission timeout before the first sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_rto: Option<Span>,
    /// The spread of a random delay before each packet is sent (ns-2's `overhead_`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Span>,
}

/// How TCP repairs losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// Selective acknowledgements (RFC 6675).
    Sack,
    /// RFC 6582.
    NewReno,
    /// RFC 5681's fast retransmit and fast recovery alone.
    Reno,
}

/// Whose habits and defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Conventions {
    /// The RFCs'.
    #[serde(rename = "rfc")]
    Rfc,
    /// ns-2.35's.
    #[serde(rename = "ns2")]
    Ns2,
    /// ns-2's of spring 2001.
    #[serde(rename = "ns2-2001")]
    Ns2001,
}

/// What a set of conventions says of every option.
struct Defaults {
    packet: u32,
    header: u32,
    initial_window: u32,
    delayed_acks: bool,
    ack_delay: Span,
    limited_transmit: bool,
    syn: bool,
    byte_counting: bool,
    granularity: Span,
    min_rto: Span,
    initial_rto: Span,
}

/// The largest packet on the wire: an IP packet's.
const LARGEST_PACKET: u64 = 65_535;
/// So large that it never limits, unless the scenario says otherwise.
const WINDOW: u32 = 1_000_000;
/// The same for everyone: RFC 6298 allows no less, and ns-2 has it too.
const MAX_RTO: Span = Span::millis(60_000);
/// RFC 5681 section 4.2: an acknowledgement is delayed by less.
const LONGEST_ACK_DELAY: Span = Span::millis(500);

impl Conventions {
    fn defaults(self) -> Defaults {
        match self {
            // Packets fill an Ethernet frame. RFC 6928's window, RFC 6298's timer. RFC 5681 allows
            // acknowledgements up to 500 ms late; 40 ms is what stacks do.
            Conventions::Rfc => Defaults {
                packet: 1460,
                header: 40,
                initial_window: 10,
                delayed_acks: true,
                ack_delay: Span::millis(40),
                limited_transmit: true,
                syn: true,
                byte_counting: true,
                granularity: Span::millis(1),
                min_rto: Span::millis(1000),
                initial_rto: Span::millis(1000),
            },
            Conventions::Ns2 => Defaults {
                packet: 1000,
                header: 40,
                initial_window: 2,
                delayed_acks: false,
                ack_delay: Span::millis(100),
                limited_transmit: true,
                syn: true,
                byte_counting: false,
                granularity: Span::millis(10),
                min_rto: Span::millis(200),
                initial_rto: Span::millis(3000),
            },
            // Packets were their payload's size on the wire: no headers were counted.
            Conventions::Ns2001 => Defaults {
                packet: 1000,
                header: 0,
                initial_window: 1,
                delayed_acks: false,
                ack_delay: Span::millis(100),
                limited_transmit: false,
                syn: false,
                byte_counting: false,
                granularity: Span::millis(100),
                min_rto: Span::ZERO,
                initial_rto: Span::millis(6000),
            },
        }
    }
}

/// One flow's options over the scenario's, and the keys to name in a mistake.
struct Layers<'a> {
    own: &'a TcpOptions,
    own_key: &'a str,
    common: &'a TcpOptions,
}

impl<'a> Layers<'a> {
    fn get<T: Copy>(&self, option: impl Fn(&TcpOptions) -> Option<T>) -> Option<T> {
        option(self.own).or_else(|| option(self.common))
    }

    /// The key under which an option was given, the flow's own first.
    fn key<T>(&self, name: &str, option: impl Fn(&TcpOptions) -> Option<T>) -> String {
        if option(self.own).is_none() && option(self.common).is_some() {
            format!("tcp.{name}")
        } else {
            format!("{}.{name}", self.own_key)
        }
    }

    fn size(
        &self,
        name: &str,
        option: impl Fn(&TcpOptions) -> Option<Bytes>,
        default: u32,
        least: u64,
    ) -> Result<u32, Problem> {
        let Some(bytes) = self.get(&option) else { return Ok(default) };
        match u32::try_from(bytes.get()) {
            Ok(size) if (least..=LARGEST_PACKET).contains(&bytes.get()) => Ok(size),
            _ => problem(
                self.key(name, option),
                format!("{} is not from {least} to {LARGEST_PACKET} bytes", bytes.get()),
            ),
        }
    }

    fn count(
        &self,
        name: &str,
        option: impl Fn(&TcpOptions) -> Option<u32>,
        default: u32,
    ) -> Result<u32, Problem> {
        match self.get(&option) {
            Some(0) => problem(self.key(name, option), "a window is at least one packet"),
            Some(packets) => Ok(packets),
            None => Ok(default),
        }
    }
}

/// The options that UDT has too.
const OF_UDT: [&str; 3] = ["packet", "header", "window"];
/// Payload bytes of a UDT packet that fills an Ethernet frame, and of the smallest.
const UDT_PACKET: u32 = 1456;
const LEAST_UDT_PACKET: u64 = 56;

/// A flow's UDT: of TCP's options the few that it has, its own first.
pub(super) fn compile_udt(
    controller: &str,
    bytes: Option<Bytes>,
    own: &TcpOptions,
    own_key: &str,
    common: &TcpOptions,
) -> Result<Udt, Problem> {
    let given = serde_json::to_value(own).unwrap_or_default();
    let mut keys = given.as_object().into_iter().flat_map(|keys| keys.keys());
    if let Some(key) = keys.find(|key| !OF_UDT.contains(&key.as_str())) {
        return problem(
            format!("{own_key}.{key}"),
            format!("UDT has no such option; of TCP's it has {}", OF_UDT.join(", ")),
        );
    }
    let layers = Layers { own, own_key, common };
    let packet = layers.size("packet", |o| o.packet, UDT_PACKET, LEAST_UDT_PACKET)?;
    let header = layers.size("header", |o| o.header, HEADERS, 0)?;
    if header < HEADERS {
        return problem(
            layers.key("header", |o| o.header),
            format!("{header} is less than the {HEADERS} bytes of IP's, UDP's and UDT's headers"),
        );
    }
    fits(&layers, packet, header)?;
    sends(bytes, own_key)?;
    let window = layers.count("window", |o| o.window, WINDOW)?;
    if !(2..=cwnd_udt::handshake::MAX_FLOW_WINDOW).contains(&window) {
        return problem(
            layers.key("window", |o| o.window),
            format!("UDT's window is from 2 to {} packets", cwnd_udt::handshake::MAX_FLOW_WINDOW),
        );
    }
    Ok(Udt {
        controller: controller.to_owned(),
        bytes: bytes.map(Bytes::get),
        packet,
        header,
        window,
    })
}

/// Whether a packet is one that IP can carry.
fn fits(layers: &Layers, packet: u32, header: u32) -> Result<(), Problem> {
    if u64::from(packet) + u64::from(header) > LARGEST_PACKET {
        return problem(
            layers.key("packet", |o| o.packet),
            format!("{packet} bytes and a header of {header} exceed {LARGEST_PACKET} on the wire"),
        );
    }
    Ok(())
}

/// Whether there is anything to send.
fn sends(bytes: Option<Bytes>, own_key: &str) -> Result<(), Problem> {
    if bytes.is_some_and(|bytes| bytes.get() == 0) {
        let flow = own_key.trim_end_matches(".tcp");
        return problem(format!("{flow}.bytes"), "a flow sends at least one byte");
    }
    Ok(())
}

/// A flow's TCP: its own options, then the scenario's, then those of the conventions.
pub(super) fn compile(
    controller: &str,
    bytes: Option<Bytes>,
    own: &TcpOptions,
    own_key: &str,
    common: &TcpOptions,
) -> Result<Tcp, Problem> {
    let layers = Layers { own, own_key, common };
    let conventions = layers.get(|o| o.conventions).unwrap_or(Conventions::Rfc);
    let defaults = conventions.defaults();

    let packet = layers.size("packet", |o| o.packet, defaults.packet, 1)?;
    let header = layers.size("header", |o| o.header, defaults.header, 0)?;
    fits(&layers, packet, header)?;
    let ack_delay = layers.get(|o| o.ack_delay).unwrap_or(defaults.ack_delay);
    if ack_delay > LONGEST_ACK_DELAY {
        return problem(
            layers.key("ack_delay", |o| o.ack_delay),
            format!("{ack_delay} is more than the 500ms that RFC 5681 allows"),
        );
    }
    let granularity = layers.get(|o| o.granularity).unwrap_or(defaults.granularity);
    if granularity == Span::ZERO {
        return problem(
            layers.key("granularity", |o| o.granularity),
            "a clock's granularity cannot be zero; write 1ns for an ideal clock",
        );
    }
    let min_rto = layers.get(|o| o.min_rto).unwrap_or(defaults.min_rto);
    let max_rto = layers.get(|o| o.max_rto).unwrap_or(MAX_RTO);
    if max_rto == Span::ZERO || min_rto > max_rto {
        return problem(
            layers.key("max_rto", |o| o.max_rto),
            format!("max_rto {max_rto} is less than min_rto {min_rto}, or zero"),
        );
    }
    let initial_rto = layers.get(|o| o.initial_rto).unwrap_or(defaults.initial_rto.min(max_rto));
    if initial_rto == Span::ZERO || initial_rto > max_rto {
        return problem(
            layers.key("initial_rto", |o| o.initial_rto),
            format!("initial_rto {initial_rto} is not above zero and at most max_rto {max_rto}"),
        );
    }
    sends(bytes, own_key)?;

    Ok(Tcp {
        controller: controller.to_owned(),
        bytes: bytes.map(Bytes::get),
        recovery: match layers.get(|o| o.recovery).unwrap_or(Recovery::Sack) {
            Recovery::Sack => network::Recovery::Sack,
            Recovery::NewReno => network::Recovery::NewReno,
            Recovery::Reno => network::Recovery::Reno,
        },
        conventions: match conventions {
            Conventions::Rfc => network::Conventions::Rfc,
            Conventions::Ns2 => network::Conventions::Ns2,
            Conventions::Ns2001 => network::Conventions::Ns2001,
        },
        packet,
        header,
        ack: layers.size("ack", |o| o.ack, 40, 1)?,
        initial_window: layers.count(
            "initial_window",
            |o| o.initial_window,
            defaults.initial_window,
        )?,
        window: layers.count("window", |o| o.window, WINDOW)?,
        delayed_acks: layers.get(|o| o.delayed_acks).unwrap_or(defaults.delayed_acks),
        ack_delay: ack_delay.dur(),
        ecn: layers.get(|o| o.ecn).unwrap_or(false),
        timestamps: layers.get(|o| o.timestamps).and_then(Timestamps::granularity),
        limited_transmit: layers.get(|o| o.limited_transmit).unwrap_or(defaults.limited_transmit),
        syn: layers.get(|o| o.syn).unwrap_or(defaults.syn),
        byte_counting: layers.get(|o| o.byte_counting).unwrap_or(defaults.byte_counting),
        granularity: granularity.dur(),
        min_rto: min_rto.dur(),
        max_rto: max_rto.dur(),
        initial_rto: initial_rto.dur(),
        overhead: layers.get(|o| o.overhead).unwrap_or(Span::ZERO).dur(),
    })
}
