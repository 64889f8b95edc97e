//! QUIC connections. The stacks are not part of the simulator.

use super::packet_change::PacketChange;
use crate::check::{Checked, check_data, check_positive, invalid};
use cwnd::Dur;
use cwnd_udt::packet::IP_UDP_HEADERS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// UDP payloads: the least that every QUIC path carries (RFC 9000 section 14), and the largest of an
/// IPv4 packet.
const MTUS: [u32; 2] = [1200, 65_507];
/// The UDP payload up to which stacks probe by default: that of an IPv6 packet in an Ethernet frame.
const PROBED: u32 = 1452;
/// Bytes of a full data packet besides its data: the short header with an identifier of 8 bytes and
/// a packet number of 2, the header of a STREAM frame with an offset of 4 bytes, and the tag.
const OVERHEAD: u32 = 11 + 6 + 16;
/// The largest value of a variable-length integer (RFC 9000 section 16).
const MAX_INTEGER: u64 = (1 << 62) - 1;
/// Streams that a receiver accepts by default in both stacks.
const MAX_STREAMS: u32 = 100;
const MAX_ACK_FREQUENCY: u32 = 1000;

/// A QUIC stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuicStack {
    /// noq-proto.
    #[default]
    Noq,
    /// quinn-proto.
    Quinn,
}

impl QuicStack {
    /// All stacks.
    pub const ALL: [QuicStack; 2] = [QuicStack::Noq, QuicStack::Quinn];

    /// The name of the stack in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            QuicStack::Noq => "noq",
            QuicStack::Quinn => "quinn",
        }
    }

    /// The names of the stack's own controllers, after `own:`.
    #[must_use]
    pub fn own_controllers(self) -> &'static [&'static str] {
        match self {
            QuicStack::Noq => &["cubic", "reno", "bbr3"],
            QuicStack::Quinn => &["cubic", "reno", "bbr"],
        }
    }
}

/// A QUIC connection. [`Options::quic`](crate::Options::quic) provides the stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Quic {
    /// The stack of both ends.
    pub stack: QuicStack,
    /// Specification of the congestion controller: `own:` and the name of one of the stack's
    /// [own](QuicStack::own_controllers), or see [`Tcp::controller`](super::Tcp::controller).
    pub controller: String,
    /// Bytes to send; `None` for no limit.
    pub bytes: Option<u64>,
    /// UDP payload of a full packet in bytes at the start.
    pub mtu: u32,
    /// Whether the stack searches for a larger `mtu` of the path.
    pub mtu_discovery: bool,
    /// Bytes of each stream that the receiver admits before it has read them.
    pub receive_window: u64,
    /// Packets that the receiver may leave unacknowledged, which the sender requests by the
    /// extension for ACK frequency; `None` without the extension.
    pub ack_frequency: Option<u32>,
    /// Streams that share the data.
    pub streams: u32,
    /// Whether packets are encrypted, and the handshake is that of TLS 1.3; the sizes are the same.
    pub tls: bool,
    /// Time without packets after which an end closes the connection.
    pub idle_timeout: Dur,
    /// Changes of the largest UDP payload that the path carries, in the order of time. Larger
    /// datagrams are lost. Before the first one the path carries all.
    pub packet_changes: Vec<PacketChange>,
}

impl Quic {
    /// Divides the data among the streams, of which the first gets the rest. Returns the bytes of
    /// each; [`u64::MAX`] for no limit.
    pub fn stream_bytes(&self) -> impl Iterator<Item = u64> + use<> {
        let count = u64::from(self.streams.max(1));
        let (each, rest) = match self.bytes {
            Some(bytes) => (bytes / count, bytes % count),
            None => (u64::MAX, 0),
        };
        (0..count).map(move |at| if at == 0 { each.saturating_add(rest) } else { each })
    }

    /// Bytes of all streams that the receiver admits before it has read them.
    #[must_use]
    pub fn admitted(&self) -> u64 {
        self.receive_window.saturating_mul(self.streams.into())
    }
}

/// Returns `NAME` of a specification `own:NAME`, a controller of a QUIC stack; `None` for other
/// specifications.
///
/// ```
/// assert_eq!(cwnd_sim::network::own_name("own:cubic"), Some("cubic"));
/// assert_eq!(cwnd_sim::network::own_name("cubic"), None);
/// ```
#[must_use]
pub fn own_name(spec: &str) -> Option<&str> {
    spec.strip_prefix("own:")
}

fn check_mtu(field: &'static str, bytes: u32) -> Checked {
    let [least, most] = MTUS;
    if (least..=most).contains(&bytes) {
        return Ok(());
    }
    invalid(field, format!("{bytes} is not from {least} to {most} bytes"))
}

impl Quic {
    /// UDP payload in bytes up to which packets may grow.
    #[must_use]
    pub fn largest_mtu(&self) -> u32 {
        if self.mtu_discovery { self.mtu.max(PROBED) } else { self.mtu }
    }

    /// Bytes of data in a full packet, and of all its headers.
    pub(super) fn packet_bytes(&self) -> (u32, u32) {
        let below = u32::try_from(IP_UDP_HEADERS).unwrap_or_default();
        (self.largest_mtu() - OVERHEAD, below + OVERHEAD)
    }

    /// Checks the options of a QUIC connection, and the name of a controller of the stack's own.
    pub(crate) fn check(&self) -> Checked {
        if let Some(name) = own_name(&self.controller)
            && !self.stack.own_controllers().contains(&name)
        {
            let known = self.stack.own_controllers().join(", own:");
            let message = format!("the stack has no controller \"{name}\": own:{known}");
            return invalid("controller", message);
        }
        check_data(self.bytes)?;
        check_mtu("mtu", self.mtu)?;
        if !(1..=MAX_INTEGER).contains(&self.receive_window) {
            return invalid("receive_window", "a window is from 1 byte to 2^62 - 1");
        }
        if self.ack_frequency.is_some_and(|packets| packets > MAX_ACK_FREQUENCY) {
            return invalid("ack_frequency", format!("at most {MAX_ACK_FREQUENCY} packets"));
        }
        if !(1..=MAX_STREAMS).contains(&self.streams) {
            return invalid("streams", format!("a connection has from 1 to {MAX_STREAMS}"));
        }
        if self.idle_timeout < Dur::from_millis(1) {
            return invalid("idle_timeout", "a timeout is at least 1ms");
        }
        check_positive([("idle_timeout", self.idle_timeout)])?;
        let check_mtu = |bytes| check_mtu("packet_changes", bytes);
        PacketChange::check(&self.packet_changes, check_mtu)
    }
}
