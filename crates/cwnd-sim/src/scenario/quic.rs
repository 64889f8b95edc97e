//! The options of QUIC, and their defaults.

use super::error::{Problem, in_table};
use crate::network::{PacketChange, Quic, QuicStack};
use crate::units::{Bytes, Span, table};

table! {
    /// Options of QUIC.
    #[derive(Default)]
    #[serde(default, deny_unknown_fields, expecting = "a table of QUIC options")]
    pub struct QuicOptions {} optional {
        /// UDP payload of a full packet in bytes at the start: 1200 by default, and at least.
        mtu: Bytes,
        /// Whether the stack searches for a larger packet size of the path, up to 1452; true by
        /// default.
        mtu_discovery: bool,
        /// Bytes of each stream that the receiver admits before it has read them: 1250000 by
        /// default.
        receive_window: Bytes,
        /// Packets that the receiver may leave unacknowledged, at most 1000, which the sender
        /// requests (ACK frequency extension). By default it requests nothing, and the receiver
        /// acknowledges every second packet.
        ack_frequency: u32,
        /// Number of streams that share the data equally: 1 by default, at most 100.
        #[schemars(range(min = 1))]
        streams: u32,
        /// Whether TLS 1.3 encrypts the packets; false by default. The sizes are the same without
        /// it.
        tls: bool,
        /// Time without packets after which an end closes the connection: 30s by default.
        idle_timeout: Span,
    }
}

/// UDP payload that every path carries (RFC 9000 section 14).
const MTU: u64 = 1200;
/// Defaults of both stacks: 100 Mb/s for 100 ms, and the timeout that RFC 9308 recommends.
const RECEIVE_WINDOW: u64 = 1_250_000;
const IDLE_TIMEOUT: Span = Span::millis(30_000);

/// Compiles the options of the QUIC flow at `key`.
pub(super) fn compile(
    controller: &str,
    bytes: Option<Bytes>,
    stack: Option<QuicStack>,
    options: Option<&QuicOptions>,
    packet_changes: Vec<PacketChange>,
    key: &str,
) -> Result<Quic, Problem> {
    let mtu = options.and_then(|own| own.mtu).map_or(MTU, Bytes::get);
    let window = options.and_then(|own| own.receive_window);
    let quic = Quic {
        stack: stack.unwrap_or_default(),
        controller: controller.to_owned(),
        bytes: bytes.map(Bytes::get),
        // Sizes above 32 bits saturate: they are too large in any case.
        mtu: u32::try_from(mtu).unwrap_or(u32::MAX),
        mtu_discovery: options.and_then(|own| own.mtu_discovery).unwrap_or(true),
        receive_window: window.map_or(RECEIVE_WINDOW, Bytes::get),
        ack_frequency: options.and_then(|own| own.ack_frequency),
        streams: options.and_then(|own| own.streams).unwrap_or(1),
        tls: options.and_then(|own| own.tls).unwrap_or(false),
        idle_timeout: options.and_then(|own| own.idle_timeout).unwrap_or(IDLE_TIMEOUT).dur(),
        packet_changes,
    };
    quic.check().map_err(|invalid| match invalid.field {
        "controller" | "bytes" | "packet_changes" => in_table(key)(invalid),
        _ => in_table(&format!("{key}.quic"))(invalid),
    })?;
    Ok(quic)
}
