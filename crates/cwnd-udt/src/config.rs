//! The configuration of a connection, its errors and events, and its statistics.

use crate::handshake::{MAX_FLOW_WINDOW, MAX_PACKET_SIZE, MIN_PACKET_SIZE, SocketType};
use cwnd::{Dur, MakeController, Packets, Settings, SlowStart};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// The initial congestion window (UDT4).
const INITIAL_WINDOW: Packets = Packets::new(16.0);

/// The default packet size in bytes, headers included, and the default receive buffer in packets.
pub(crate) const PACKET_SIZE: u32 = 1500;
pub(crate) const RECEIVE_BUFFER: u32 = 16_384;

/// The configuration of a connection. The defaults are those of UDT4, with twice its buffers.
#[derive(Clone, Debug)]
pub struct Config {
    /// A stream of bytes, or messages. Both ends must use the same type.
    pub socket_type: SocketType,
    /// The largest packet in bytes, IP and UDP headers (28) included. The smaller value of both
    /// ends is used.
    pub packet_size: u32,
    /// The packet sizes that a client probes, in descending order (RFC 8899): it sends its request
    /// padded to each, and then without padding. The first answer decides: if it is padded, the
    /// path carries packets of its size in both directions. A listener of UDT4 ignores padded
    /// requests. The sockets of [`crate::net`] set common sizes.
    pub probes: Vec<u32>,
    /// The advertised receive window in packets, at most `receive_buffer`.
    pub flow_window: u32,
    /// The send buffer in packets.
    pub send_buffer: u32,
    /// The receive buffer in packets.
    pub receive_buffer: u32,
    /// The time for which written data is still delivered after [`crate::Connection::shutdown`].
    pub linger: Dur,
    /// The longest duration of the handshake.
    pub connect_timeout: Dur,
    /// The connection ends if nothing arrives from the peer for this time. It also ends after 16
    /// expiries of UDT4's timer, about 40 s. A few seconds are enough, because an idle peer sends
    /// keep-alives.
    pub idle_timeout: Dur,
    /// The congestion controller of this end's data.
    pub controller: Arc<dyn MakeController>,
    /// The largest sending rate in bits per second, headers included.
    pub rate_limit: Option<f64>,
    /// Whether to record the controller's events and outputs. The record grows by about 150 bytes
    /// with each acknowledgement.
    pub record: bool,
    /// Whether to store one payload for all packets, for simulations that do not use the data. The
    /// peer then does not read the bytes that were written.
    pub same_payload: bool,
    /// The seed of the controller's random numbers.
    pub seed: u64,
    /// The clients that a listener of [`crate::net`] answers.
    pub admission: Admission,
    /// The credentials of this end. The sockets of [`crate::net`] encrypt every datagram if there
    /// are some; the overhead counts towards the packet size. [`crate::Connection`] itself ignores
    /// them.
    #[cfg(feature = "secure")]
    pub credentials: Option<crate::secure::Credentials>,
}

impl Config {
    /// The defaults, with `controller`.
    pub fn new(controller: impl MakeController + 'static) -> Self {
        Config {
            socket_type: SocketType::Stream,
            packet_size: PACKET_SIZE,
            probes: Vec::new(),
            flow_window: 25_600,
            send_buffer: 16_384,
            receive_buffer: RECEIVE_BUFFER,
            linger: Dur::from_millis(180_000),
            connect_timeout: Dur::from_millis(3_000),
            idle_timeout: Dur::MAX,
            controller: Arc::new(controller),
            rate_limit: None,
            record: false,
            same_payload: false,
            seed: 0,
            admission: Admission::default(),
            #[cfg(feature = "secure")]
            credentials: None,
        }
    }

    /// The controller's settings for packets of `packet_size` bytes and at most `window` packets in
    /// flight. A controller created from [`Config::controller`] with these settings reproduces the
    /// outputs in the connection's record exactly. A window law uses HyStart++ with acknowledgement
    /// trains, unless its specification contains `start=standard`.
    pub fn settings(&self, packet_size: u32, window: u32) -> Settings {
        let mut settings = Settings::default();
        settings.packet = packet_size;
        settings.initial_window = INITIAL_WINDOW;
        settings.max_window = Packets::new(f64::from(window));
        settings.slow_start = SlowStart::HyStartTrain;
        settings.seed = self.seed;
        settings
    }

    /// Returns the configuration with all sizes limited to the ranges that the protocol supports.
    pub(crate) fn clamped(&self) -> Self {
        let receive_buffer = self.receive_buffer.clamp(2, MAX_FLOW_WINDOW);
        Config {
            packet_size: self.packet_size.clamp(MIN_PACKET_SIZE, MAX_PACKET_SIZE),
            flow_window: self.flow_window.clamp(2, receive_buffer),
            send_buffer: self.send_buffer.clamp(2, MAX_FLOW_WINDOW),
            receive_buffer,
            rate_limit: self.rate_limit.filter(|rate| *rate > 0.0),
            admission: Admission::default(),
            #[cfg(feature = "secure")]
            credentials: None,
            ..self.clone()
        }
    }
}

/// The clients that a listener answers; all by default. Checked before the listener keeps any state
/// of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// The allowed networks; empty allows all addresses. An IPv4-mapped IPv6 address counts as the
    /// IPv4 address.
    pub allow: Vec<IpNet>,
    /// The largest number of open connections of one address, or of one IPv6 network of 64 bits.
    /// Further clients get no answer and repeat their request until they time out.
    pub per_address: Option<usize>,
}

impl Admission {
    /// Whether an address is in an allowed network.
    pub fn allows(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.allow.is_empty() || self.allow.iter().any(|net| net.contains(&ip))
    }
}

/// Returns the address by which the connections of a client are counted: in IPv6 that of its
/// network of 64 bits, of which one host can use every address.
#[must_use]
pub fn counted_address(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        ip => ip,
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CloseReason {
    /// This end closed the connection, and all written data was delivered.
    #[error("closed by this end")]
    Local,
    /// This end closed the connection, and the linger time expired before all data was delivered.
    #[error("closed by this end before all data was delivered")]
    LingerOver,
    /// The peer closed the connection.
    #[error("closed by the peer")]
    Peer,
    /// The peer stopped responding.
    #[error("the peer stopped responding")]
    Lost,
    /// The peer sent a [reset](crate::reset): it does not know the connection.
    #[error("the peer does not know this connection: it was restarted or has closed it")]
    Reset,
    /// The handshake was not answered in time.
    #[error("no answer")]
    ConnectTimeout,
    /// The listener refused the connection: it uses another version or socket type, or requires
    /// credentials.
    #[error(
        "the peer refused the connection: it uses another socket type, or requires credentials"
    )]
    Refused,
    /// The answer to the handshake has another version, another socket type or a larger packet size
    /// than the request.
    #[error("the peer's handshake is incompatible")]
    Incompatible,
}

/// Why an operation on a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Error {
    /// The handshake is not complete.
    #[error("not connected yet")]
    NotConnected,
    /// The connection has ended, or this end has closed it.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
    /// The operation is for the other socket type: streams have no messages, and messages no
    /// stream.
    #[error("not supported by this socket type")]
    WrongType,
    /// A message is larger than the send buffer.
    #[error("a message of {length} bytes is larger than the send buffer of {room} bytes")]
    MessageTooLarge {
        /// The length of the message in bytes.
        length: usize,
        /// The capacity of the send buffer in bytes.
        room: usize,
    },
    /// The caller's buffer is too small for the next message, which has this length in bytes.
    #[error("the next message has {0} bytes")]
    BufferTooSmall(usize),
}

/// An event of a connection. Each is reported once for each change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// New data can be read.
    Readable,
    /// There is room to write after a write that did not fit.
    Writable,
    /// The connection has ended. Received data can still be read.
    Closed(CloseReason),
}

/// Counters since the connection was created, or of an interval: see [`Counters::since`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data packets sent, retransmissions included.
    pub pkt_sent: u64,
    /// Data packets received, duplicates included.
    pub pkt_recv: u64,
    /// Packets declared lost by a loss report or a timer of the sender.
    pub pkt_snd_loss: u64,
    /// Packets found missing when a later packet arrived.
    pub pkt_rcv_loss: u64,
    /// Retransmitted data packets.
    pub pkt_retrans: u64,
    /// Full acknowledgements sent, as in UDT4.
    pub pkt_sent_ack: u64,
    /// Full acknowledgements received.
    pub pkt_recv_ack: u64,
    /// Loss reports sent.
    pub pkt_sent_nak: u64,
    /// Loss reports received.
    pub pkt_recv_nak: u64,
    /// Light acknowledgements sent, progress reports included (not counted by UDT4).
    pub pkt_sent_light_ack: u64,
    /// Bytes of user data sent, retransmissions excluded.
    pub byte_sent: u64,
    /// Bytes of user data received, duplicates excluded.
    pub byte_recv: u64,
    /// Microseconds with unacknowledged data.
    pub us_snd_duration: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Duplicate data packets received.
    pub pkt_duplicate: u64,
    /// Datagrams ignored because they were malformed or inconsistent with the connection's state.
    pub pkt_ignored: u64,
    /// Messages dropped because they expired, at this end or the peer's.
    pub msg_dropped: u64,
    /// Microseconds in which the congestion window limited the sender. The five times by limiting
    /// cause add up to the time since the connection opened; [`crate::Connection::stats`] updates
    /// them.
    pub us_limited_window: u64,
    /// Microseconds in which pacing limited the sender.
    pub us_limited_pacing: u64,
    /// Microseconds in which the peer's receive window limited the sender.
    pub us_limited_receiver: u64,
    /// Microseconds in which the application had no data to send.
    pub us_limited_application: u64,
    /// Microseconds in which packets were due and allowed, and the sending thread had not sent them
    /// yet.
    pub us_limited_processor: u64,
}

macro_rules! difference {
    ($now:ident, $before:ident: $($field:ident)*) => {
        Counters { $($field: $now.$field.saturating_sub($before.$field),)* }
    };
}

impl Counters {
    /// The difference to an earlier value of the counters.
    #[must_use]
    pub fn since(&self, before: &Counters) -> Counters {
        difference!(self, before: pkt_sent pkt_recv pkt_snd_loss pkt_rcv_loss pkt_retrans pkt_sent_ack
            pkt_recv_ack pkt_sent_nak pkt_recv_nak pkt_sent_light_ack byte_sent byte_recv
            us_snd_duration timeouts pkt_duplicate pkt_ignored msg_dropped us_limited_window
            us_limited_pacing us_limited_receiver us_limited_application us_limited_processor)
    }
}

/// The statistics of a connection, with the fields of UDT4's `CPerfMon`. See
/// [`crate::Connection::stats`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Milliseconds since the connection was created.
    pub ms_time_stamp: u64,
    /// Counters since the connection was created.
    pub total: Counters,
    /// Counters since the last call with `clear`.
    pub interval: Counters,
    /// The sending rate in the interval in megabits per second: packets times the user data of a
    /// full packet, as in UDT4.
    pub mbps_send_rate: f64,
    /// The receiving rate in the interval, computed in the same way.
    pub mbps_recv_rate: f64,
    /// The pacing interval in microseconds; 0 without pacing.
    pub us_pkt_snd_period: f64,
    /// The peer's receive window in packets.
    pub pkt_flow_window: u64,
    /// The congestion window in packets.
    pub pkt_congestion_window: f64,
    /// Unacknowledged packets.
    pub pkt_flight_size: u64,
    /// The smoothed round-trip time in milliseconds.
    pub ms_rtt: f64,
    /// The capacity of the path to the peer in megabits per second, as estimated by the peer; 0 if
    /// unknown.
    pub mbps_bandwidth: f64,
    /// Free space in the send buffer in bytes.
    pub byte_avail_snd_buf: u64,
    /// Free space in the receive buffer in bytes.
    pub byte_avail_rcv_buf: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_counted_by_address_or_by_network() {
        let same = |one: &str, other: &str| {
            counted_address(one.parse().unwrap()) == counted_address(other.parse().unwrap())
        };
        assert!(same("2001:db8::1", "2001:db8::ffff:2"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("::ffff:192.0.2.1", "192.0.2.1"));
        assert!(!same("192.0.2.1", "192.0.2.2"));
    }
}
