//! What a connection is made with, why it ends, and what it counts.

use crate::handshake::{MAX_FLOW_WINDOW, MAX_PACKET_SIZE, MIN_PACKET_SIZE, SocketType};
use cwnd::{Dur, MakeController, Packets, Settings, SlowStart};
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;

/// The window before anything is known of the path, in packets (UDT4's).
const INITIAL_WINDOW: Packets = Packets::new(16.0);

/// Bytes of a packet with its headers, and packets that a receive buffer holds, unless said otherwise.
pub(crate) const PACKET_SIZE: u32 = 1500;
pub(crate) const RECEIVE_BUFFER: u32 = 16_384;

/// How a connection is made. The defaults are UDT4's where it has them, with twice its buffers.
#[derive(Clone, Debug)]
pub struct Config {
    /// A stream of bytes, or messages. Both ends have to be of the same type.
    pub socket_type: SocketType,
    /// The largest packet in bytes, IP and UDP headers (28) included. The smaller of both ends' counts.
    pub packet_size: u32,
    /// Packets that may be on their way to this end, at most; no more than `receive_buffer` counts.
    pub flow_window: u32,
    /// Packets that the send buffer holds.
    pub send_buffer: u32,
    /// Packets that the receive buffer holds.
    pub receive_buffer: u32,
    /// How long what was written is still delivered after [`crate::Connection::shutdown`].
    pub linger: Dur,
    /// How long the handshake may take.
    pub connect_timeout: Dur,
    /// A peer that was silent for so long is lost. UDT4 waits for 16 expiries of its timer, some 40 s, and
    /// so does this end at most; seconds are enough for a peer that is there, because it sends keep-alives.
    pub patience: Dur,
    /// The controller of what this end sends.
    pub controller: Arc<dyn MakeController>,
    /// Bits a second, headers included, that this end sends at most.
    pub rate_limit: Option<f64>,
    /// Whether to keep all that the controller is told and answers. The record grows with the
    /// connection: about 150 bytes for each acknowledgement.
    pub record: bool,
    /// For simulations, where nobody looks at the bytes: one payload is kept for all packets, whatever each
    /// carries. What a peer then reads is not what was written.
    pub same_payload: bool,
    /// Seed of the controller's own randomness.
    pub seed: u64,
    /// Whom a listener of [`crate::net`] answers.
    pub admission: Admission,
    /// How the ends prove who they are. With credentials the sockets of [`crate::net`] seal every datagram;
    /// the seals count to the packet size. A [`crate::Connection`] itself does not look at them.
    #[cfg(feature = "secure")]
    pub credentials: Option<crate::secure::Credentials>,
}

impl Config {
    /// UDT4's settings with `controller`.
    pub fn new(controller: impl MakeController + 'static) -> Self {
        Config {
            socket_type: SocketType::Stream,
            packet_size: PACKET_SIZE,
            flow_window: 25_600,
            send_buffer: 16_384,
            receive_buffer: RECEIVE_BUFFER,
            linger: Dur::from_millis(180_000),
            connect_timeout: Dur::from_millis(3_000),
            patience: Dur::MAX,
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

    /// The controller's settings for packets of `packet_size` bytes and at most `window` of them in flight.
    /// [`Config::controller`] and these settings make another controller, which answers the connection's
    /// record bit by bit. A window law leaves slow start by HyStart++ with ACK trains, unless its spec says
    /// `start=standard`.
    pub fn settings(&self, packet_size: u32, window: u32) -> Settings {
        let mut settings = Settings::default();
        settings.packet = packet_size;
        settings.initial_window = INITIAL_WINDOW;
        settings.max_window = Packets::new(f64::from(window));
        settings.slow_start = SlowStart::HyStartTrain;
        settings.seed = self.seed;
        settings
    }

    /// The same with every size brought into the range that the protocol can work with.
    pub(crate) fn sound(&self) -> Self {
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

/// Whom a listener answers, before it keeps anything about a client. By default everybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Networks whose addresses are answered; all addresses if there is none. An IPv4 address that is mapped
    /// into IPv6 counts as the IPv4 address.
    pub allow: Vec<IpNet>,
    /// Open connections of one address at most. A client that comes then is not answered, and goes on
    /// asking until its time to connect is over.
    pub per_address: Option<usize>,
}

impl Admission {
    /// Whether an address is in an allowed network.
    pub fn allows(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.allow.is_empty() || self.allow.iter().any(|net| net.contains(&ip))
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CloseReason {
    /// This end closed, and all that it had written was delivered.
    #[error("closed by this end")]
    Local,
    /// This end closed, and the linger time was over before all was delivered.
    #[error("closed by this end before everything was delivered")]
    LingerOver,
    /// The peer closed.
    #[error("closed by the peer")]
    Peer,
    /// The peer does not answer any more.
    #[error("the peer does not answer any more")]
    Lost,
    /// The peer has answered that it does not know the connection.
    #[error("the peer does not know this connection: it was restarted or has closed it")]
    Reset,
    /// Nobody answered the handshake in time.
    #[error("nobody answered")]
    ConnectTimeout,
    /// The listener refused: another version or type of socket, or a key that this end does not have.
    #[error("the peer refused: it takes another type of socket, or only those who have its key")]
    Refused,
    /// The answer to the handshake has another version, type or initial sequence than was asked for.
    #[error("the peer's handshake does not fit")]
    Incompatible,
}

/// What cannot be done with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Error {
    /// The handshake is not done.
    #[error("not connected yet")]
    NotConnected,
    /// The connection has ended, or this end has closed it.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
    /// A stream has no messages, and the other way round.
    #[error("not possible with this type of socket")]
    WrongType,
    /// A message is larger than the send buffer.
    #[error("a message of {length} bytes is larger than the send buffer of {room}")]
    MessageTooLarge {
        /// Bytes in the message.
        length: usize,
        /// Bytes that the buffer holds.
        room: usize,
    },
    /// A message does not fit into the buffer given for it.
    #[error("the next message has {0} bytes")]
    BufferTooSmall(usize),
}

/// What has changed. Each is told once, until it changes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The handshake is done.
    Connected,
    /// There is something to read that was not there before.
    Readable,
    /// There is room to write, where there was too little before.
    Writable,
    /// The connection has ended. What has arrived can still be read.
    Closed(CloseReason),
}

/// What happened since the connection began, or since counters were last [taken](Counters::since).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data packets sent, retransmissions included.
    pub pkt_sent: u64,
    /// Data packets received, duplicates included.
    pub pkt_recv: u64,
    /// Packets that the peer, or the timer, reported lost.
    pub pkt_snd_loss: u64,
    /// Packets found missing on arrival of later ones.
    pub pkt_rcv_loss: u64,
    /// Data packets retransmitted.
    pub pkt_retrans: u64,
    /// Acknowledgements sent, light ones not counted, as UDT4 counts.
    pub pkt_sent_ack: u64,
    /// Acknowledgements received, light ones not counted.
    pub pkt_recv_ack: u64,
    /// Loss reports sent.
    pub pkt_sent_nak: u64,
    /// Loss reports received.
    pub pkt_recv_nak: u64,
    /// Light acknowledgements sent (not in UDT4's record).
    pub pkt_sent_light_ack: u64,
    /// Bytes that the user wrote and that were sent for the first time.
    pub byte_sent: u64,
    /// Bytes that arrived for the first time.
    pub byte_recv: u64,
    /// Microseconds in which there was something unacknowledged.
    pub us_snd_duration: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Packets that had arrived before.
    pub pkt_duplicate: u64,
    /// Datagrams that were no packet, or said what cannot be: ignored.
    pub pkt_ignored: u64,
    /// Messages dropped because their time was over, at this end or the peer's.
    pub msg_dropped: u64,
    /// Microseconds in which the congestion window kept the sender from sending more. The five times of
    /// this kind add up to the time since the connection opened; [`crate::Connection::stats`] brings them
    /// up to date.
    pub us_limited_window: u64,
    /// Microseconds in which the sender was on the schedule of its pace.
    pub us_limited_pacing: u64,
    /// Microseconds in which the peer's receive buffer had no room.
    pub us_limited_receiver: u64,
    /// Microseconds in which there was nothing to send.
    pub us_limited_application: u64,
    /// Microseconds in which packets were due and allowed, and the sending thread had yet to send them.
    pub us_limited_processor: u64,
}

macro_rules! minus {
    ($now:ident, $before:ident: $($field:ident)*) => {
        Counters { $($field: $now.$field.saturating_sub($before.$field),)* }
    };
}

impl Counters {
    /// What happened since `before`.
    #[must_use]
    pub fn since(&self, before: &Counters) -> Counters {
        minus!(self, before: pkt_sent pkt_recv pkt_snd_loss pkt_rcv_loss pkt_retrans pkt_sent_ack
            pkt_recv_ack pkt_sent_nak pkt_recv_nak pkt_sent_light_ack byte_sent byte_recv
            us_snd_duration timeouts pkt_duplicate pkt_ignored msg_dropped us_limited_window
            us_limited_pacing us_limited_receiver us_limited_application us_limited_processor)
    }
}

/// The fields of UDT4's `CPerfMon`: what [`crate::Connection::stats`] returns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Milliseconds since the connection was made.
    pub ms_time_stamp: u64,
    /// Since the connection was made.
    pub total: Counters,
    /// Since the last call that cleared.
    pub interval: Counters,
    /// Megabits a second sent in the interval: full packets' user bytes times packets, as UDT4 counts.
    pub mbps_send_rate: f64,
    /// The same for what was received.
    pub mbps_recv_rate: f64,
    /// Microseconds between packets; 0 while nothing paces them.
    pub us_pkt_snd_period: f64,
    /// Packets that the peer has room for.
    pub pkt_flow_window: u64,
    /// The congestion window in packets.
    pub pkt_congestion_window: f64,
    /// Packets sent and not acknowledged.
    pub pkt_flight_size: u64,
    /// The smoothed round-trip time in milliseconds.
    pub ms_rtt: f64,
    /// The capacity of the path to the peer in megabits a second, as the peer measures it; 0 where
    /// unknown.
    pub mbps_bandwidth: f64,
    /// Bytes that can be written.
    pub byte_avail_snd_buf: u64,
    /// Bytes that the peer could send.
    pub byte_avail_rcv_buf: u64,
}
