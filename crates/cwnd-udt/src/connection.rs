//! The state machine of a connection: see [`Connection`].

mod transmit;
mod user;

use crate::config::{CloseReason, Config, Counters, Event};
use crate::connecting::{Connecting, Outcome};
use crate::estimate::Rtt;
use crate::handshake::{
    ANSWER_TIMESTAMP, Handshake, MAX_FLOW_WINDOW, Request, SocketType, VERSION, address, payload_of,
};
use crate::listener::Incoming;
use crate::packet::{Body, Control, HEADER, Packet};
use crate::receiver::{CONTROL_PACKET, Receiver};
use crate::reset::RecentHeaders;
use crate::sender::{MIN_EXPIRY, SYN, Sender};
use crate::seq::Seq;
use cwnd::{Dur, Time};
use std::net::IpAddr;

pub use transmit::{Filled, Transmit};

/// The connection ends after this number of expiries without a packet from the peer, if the last
/// expiry interval was longer than [`MIN_SILENCE`] (UDT4).
const MAX_EXPIRIES: u64 = 16;
const MIN_SILENCE: Dur = Dur::from_millis(5_000);
/// The time for which a closed connection is kept, to repeat a lost shutdown.
const DRAIN: Dur = Dur::from_millis(3_000);

/// The state of a connection.
#[derive(Clone, Debug)]
enum State {
    Connecting(Connecting),
    Open,
    /// Closed by the application. Written data is delivered until this time.
    Lingering(Time),
    /// Ended. Until this time, packets of the peer are answered with a shutdown.
    Closed(CloseReason, Option<Time>),
}

/// The sender and the receiver of an open connection.
#[derive(Clone, Debug)]
struct Halves {
    sender: Sender,
    receiver: Receiver,
    /// The id of the peer's socket.
    peer: u32,
    /// Bytes of user data in a full packet.
    payload: usize,
}

/// Pending control packets.
#[derive(Clone, Copy, Debug, Default)]
struct PendingControl {
    handshake: Option<Handshake>,
    keep_alive: bool,
    shutdown: bool,
}

/// The free space in the send buffer at which a blocked writer is woken.
#[derive(Clone, Copy, Debug)]
enum WakeThreshold {
    /// The length of a message.
    Bytes(usize),
    /// A quarter of the stream's current buffer: waking the writer for each acknowledged packet
    /// would cost more.
    BufferShare,
}

/// Pending events.
#[derive(Clone, Copy, Debug, Default)]
struct PendingEvents {
    connected: bool,
    readable: bool,
    writable: bool,
    closed: bool,
}

/// The state machine of one end of a connection, without I/O.
///
/// The [crate's documentation](crate) describes how to drive it.
#[derive(Clone, Debug)]
pub struct Connection {
    config: Config,
    id: u32,
    start: Time,
    state: State,
    halves: Option<Box<Halves>>,
    rtt: Rtt,
    /// The time of the last packet from the peer.
    last_received: Time,
    /// One more than the number of expiries since the last packet from the peer.
    expiries: u64,
    /// The start of the expiry timer: the last packet or expiry.
    expiry_start: Time,
    /// The answer to repeated handshakes of an accepted client or a rendezvous peer.
    answer: Option<Handshake>,
    pending_control: PendingControl,
    pending_events: PendingEvents,
    /// The threshold of a blocked writer.
    blocked_writer: Option<WakeThreshold>,
    last_shutdown: Time,
    counters: Counters,
    cleared: (Time, Counters),
    scratch: Vec<u8>,
    recent_headers: RecentHeaders,
}

impl Connection {
    fn new(config: &Config, now: Time, id: u32, state: State) -> Self {
        Connection {
            config: config.clamped(),
            id: id.clamp(1, i32::MAX as u32),
            start: now,
            state,
            halves: None,
            rtt: Rtt::INITIAL,
            expiries: 1,
            last_received: now,
            expiry_start: now,
            answer: None,
            pending_control: PendingControl::default(),
            pending_events: PendingEvents::default(),
            blocked_writer: None,
            last_shutdown: Time::ZERO,
            counters: Counters::default(),
            cleared: (now, Counters::default()),
            scratch: vec![0; CONTROL_PACKET],
            recent_headers: RecentHeaders::default(),
        }
    }

    /// Creates a client that connects to the listener at `to`.
    ///
    /// `id` is the id of this end's socket, from 1 to `2^31 - 1` and unique on its port. `initial`
    /// is the initial sequence number. Both should be random: an attacker who guesses them can
    /// inject packets.
    pub fn connect(config: &Config, now: Time, id: u32, initial: Seq, to: IpAddr) -> Self {
        let connecting = Connecting::new(&config.clamped(), now, (id, initial), to, false);
        Connection::new(config, now, id, State::Connecting(connecting))
    }

    /// Creates one end of a rendezvous: both ends connect to each other, and neither listens.
    pub fn rendezvous(config: &Config, now: Time, id: u32, initial: Seq, to: IpAddr) -> Self {
        let connecting = Connecting::new(&config.clamped(), now, (id, initial), to, true);
        Connection::new(config, now, id, State::Connecting(connecting))
    }

    /// Creates the listener's end of a connection, from a request that a [`crate::Listener`] has
    /// accepted. The connection is open at once.
    pub fn accept(config: &Config, now: Time, id: u32, incoming: &Incoming) -> Self {
        let mut connection = Connection::new(config, now, id, State::Open);
        let request = incoming.handshake;
        let packet_size = request.packet_size.min(connection.config.packet_size);
        let answer = Handshake {
            version: VERSION,
            socket_type: connection.config.socket_type,
            initial: request.initial,
            packet_size,
            flow_window: connection.config.flow_window,
            request: Request::Agree,
            socket: connection.id,
            cookie: request.cookie,
            peer: address(incoming.from.ip()),
        };
        connection.answer = Some(answer);
        connection.pending_control.handshake = Some(answer);
        connection.open(now, &request, request.initial, packet_size);
        connection
    }

    /// Opens the connection with the peer's handshake. This end's sequence numbers start at
    /// `initial`.
    fn open(&mut self, now: Time, peer: &Handshake, initial: Seq, packet_size: u32) {
        let payload = payload_of(packet_size);
        let window = peer.flow_window.min(MAX_FLOW_WINDOW);
        // In a rendezvous, UDT4 uses the packet size that this end has offered, even if its own is
        // smaller.
        let largest = match &self.state {
            State::Connecting(connecting) => {
                payload_of(connecting.request().packet_size).max(payload)
            }
            _ => payload,
        };
        self.halves = Some(Box::new(Halves {
            sender: Sender::new(&self.config, now, (peer.socket, initial), packet_size, window),
            receiver: Receiver::new(&self.config, now, peer.initial, largest),
            peer: peer.socket,
            payload,
        }));
        self.state = State::Open;
        self.last_received = now;
        self.expiry_start = now;
        self.pending_events.connected = true;
        self.pending_events.writable = true;
    }

    /// Processes a datagram that arrived at `now`. The caller must check that it came from the
    /// peer's address and is for this socket; [`crate::Demultiplexer`] does both.
    pub fn handle_datagram(&mut self, now: Time, datagram: &[u8]) {
        let Ok(packet) = Packet::parse(datagram) else {
            self.counters.pkt_ignored += 1;
            return;
        };
        let handshake = matches!(packet.body, Body::Control(Control::Handshake(_)));
        if packet.destination != self.id && !(handshake && packet.destination == 0) {
            self.counters.pkt_ignored += 1;
            return;
        }
        if let State::Connecting(_) = self.state {
            self.handle_connecting(now, &packet, datagram.len());
            if !matches!(self.state, State::Open) || handshake {
                return;
            }
        }
        match self.state {
            State::Closed(reason, until) => {
                if let Body::Control(Control::Shutdown) = packet.body {
                    self.state = State::Closed(reason, None);
                } else if now.since(self.last_shutdown) >= SYN {
                    self.pending_control.shutdown = until.is_some();
                }
            }
            _ => self.handle_packet(now, &packet),
        }
    }

    /// The size in bytes of a full data packet, when the handshake is complete.
    #[cfg(all(unix, feature = "net"))]
    pub(crate) fn datagram_size(&self) -> Option<usize> {
        self.halves.as_ref().map(|halves| halves.payload + HEADER)
    }

    /// Whether the handshake of this end is not complete.
    #[cfg(all(unix, feature = "net"))]
    pub(crate) fn is_connecting(&self) -> bool {
        matches!(self.state, State::Connecting(_))
    }

    /// Processes concatenated datagrams that arrived together, as the system's receive offload
    /// delivers them: all but the last have `segment` bytes.
    pub fn handle_batch(&mut self, now: Time, datagrams: &[u8], segment: usize) {
        for datagram in datagrams.chunks(segment.max(1)) {
            self.handle_datagram(now, datagram);
        }
    }

    /// Processes a [reset](crate::reset) from the peer's address that echoes `header`. It ends the
    /// connection if this header is that of an outstanding data packet or of one of the last
    /// control packets sent. Returns whether the connection ended.
    pub fn handle_reset(&mut self, now: Time, header: &[u8; HEADER]) -> bool {
        let Some(halves) = &self.halves else { return false };
        let sent =
            halves.sender.buffer.is_outstanding(header) || self.recent_headers.contains(header);
        if !sent || !header.ends_with(&halves.peer.to_be_bytes()) {
            return false;
        }
        self.close_by_reset(now)
    }

    /// Ends the connection after a valid reset. Returns false if it had ended before.
    pub(crate) fn close_by_reset(&mut self, now: Time) -> bool {
        let reason = match self.state {
            State::Open => CloseReason::Reset,
            State::Lingering(_) if self.unacknowledged() > 0 => CloseReason::Reset,
            State::Lingering(_) => CloseReason::Local,
            _ => return false,
        };
        self.close(now, reason);
        // Send no shutdown: the peer has no such connection.
        self.state = State::Closed(reason, None);
        true
    }

    fn handle_connecting(&mut self, now: Time, packet: &Packet, length: usize) {
        let State::Connecting(connecting) = &mut self.state else { return };
        let (mine, rendezvous) = (*connecting.request(), connecting.is_rendezvous());
        let outcome = match packet.body {
            Body::Control(Control::Handshake(answer)) => {
                connecting.handle(now, &answer, length, packet.timestamp == ANSWER_TIMESTAMP)
            }
            // The peer has opened the rendezvous connection: its handshake was lost.
            Body::Data(_) | Body::Control(Control::KeepAlive) => {
                connecting.peer().map_or(Outcome::Pending, Outcome::Open)
            }
            Body::Control(_) => Outcome::Pending,
        };
        match outcome {
            Outcome::Pending => {}
            Outcome::Failed(reason) => self.close(now, reason),
            Outcome::Open(peer) => {
                let packet_size = peer.packet_size.min(mine.packet_size);
                self.open(now, &peer, mine.initial, packet_size);
                if rendezvous {
                    // The peer may wait for an answer: do not wait until it repeats its handshake.
                    self.answer = Some(Handshake { request: Request::Confirm, ..mine });
                    self.pending_control.handshake = self.answer;
                }
            }
        }
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet) {
        let Some(halves) = &mut self.halves else { return };
        let Halves { sender, receiver, peer, payload } = &mut **halves;
        self.last_received = now;
        self.expiry_start = now;
        self.expiries = 1;
        let count = &mut self.counters;
        let valid = match packet.body {
            Body::Data(data) => {
                let before = receiver.buffer.next();
                receiver.handle_data(now, &data, *payload, count);
                self.pending_events.readable |= match &receiver.messages {
                    Some(messages) => messages.has_message(),
                    None => receiver.buffer.next() > before,
                };
                true
            }
            Body::Control(control) => match control {
                Control::Ack(ack) => sender.handle_ack(now, &ack, &mut self.rtt, count),
                Control::LightAck(next) => sender.handle_light_ack(now, next, count),
                Control::Progress(progress) => sender.handle_progress(now, &progress, count),
                Control::Nak(losses) => sender.handle_nak(now, losses, &self.rtt, count),
                Control::Ack2(number) => {
                    if let Some(sample) = receiver.handle_ack2(now, number) {
                        self.rtt.sample(sample);
                    }
                    true
                }
                Control::Drop(request) => {
                    receiver.handle_drop_request(now, &request, count);
                    self.pending_events.readable |= receiver.is_readable();
                    true
                }
                Control::Shutdown => {
                    self.close(now, CloseReason::Peer);
                    return;
                }
                Control::Handshake(request) => {
                    // The peer has not received the answer.
                    if request.request != Request::Confirm && request.socket == *peer {
                        self.pending_control.handshake = self.answer;
                    }
                    true
                }
                Control::KeepAlive | Control::Other { .. } => true,
            },
        };
        sender.record_open_window(now);
        if !valid {
            self.counters.pkt_ignored += 1;
        }
        self.check_writable();
    }

    fn check_writable(&mut self) {
        let (Some(blocked_writer), Some(halves)) = (self.blocked_writer, &self.halves) else {
            return;
        };
        let buffer = &halves.sender.buffer;
        let enough = match blocked_writer {
            WakeThreshold::Bytes(bytes) => bytes,
            WakeThreshold::BufferShare => buffer.wake_threshold(),
        };
        if buffer.room() >= enough {
            self.blocked_writer = None;
            self.pending_events.writable = true;
        }
    }

    /// Ends the connection. Received data can still be read.
    fn close(&mut self, now: Time, reason: CloseReason) {
        self.account(now);
        // A peer that closed the connection or never answered needs no shutdown.
        let drain = reason != CloseReason::Peer && self.halves.is_some();
        self.state = State::Closed(reason, drain.then(|| now + DRAIN));
        self.pending_events.closed = true;
        self.pending_events.writable = false;
    }

    /// Updates the times by limiting cause, if the connection is open.
    fn account(&mut self, now: Time) {
        if let (true, Some(halves)) = (self.is_open(), &mut self.halves) {
            halves.sender.account(now, &mut self.counters);
        }
    }

    /// Whether the path seems not to carry packets of this size any more: a black hole (RFC 8899,
    /// section 4.3). Fragments may pass.
    #[must_use]
    pub fn suspects_black_hole(&self) -> bool {
        self.halves.as_ref().is_some_and(|halves| halves.sender.suspects_black_hole())
    }

    /// Processes the timers that have expired at `now`. Call it at
    /// [`next_wakeup`](Self::next_wakeup), and then call [`poll_transmit`](Self::poll_transmit).
    pub fn handle_timeout(&mut self, now: Time) {
        match &self.state {
            State::Connecting(connecting) => {
                if connecting.has_timed_out(now) {
                    self.close(now, CloseReason::ConnectTimeout);
                }
                return;
            }
            State::Lingering(deadline) if *deadline <= now => {
                self.close_with_shutdown(now, CloseReason::LingerOver);
                return;
            }
            State::Closed(reason, until) => {
                let until = until.filter(|until| *until > now);
                self.state = State::Closed(*reason, until);
                return;
            }
            _ => {}
        }
        let Some(halves) = &mut self.halves else { return };
        self.pending_control.keep_alive |=
            halves.sender.handle_timeout(now, &self.rtt, &mut self.counters);
        if self.expiry() > now {
            return;
        }
        let expired = self.expiries > MAX_EXPIRIES && self.expiry_interval() > MIN_SILENCE;
        if expired || now.since(self.last_received) >= self.config.idle_timeout {
            self.close(now, CloseReason::Lost);
            return;
        }
        self.expiries += 1;
        self.expiry_start = now;
        self.pending_control.keep_alive |=
            self.halves.as_ref().is_some_and(|halves| halves.sender.buffer.outstanding() == 0);
    }

    /// The interval of the expiry timer (UDT4's EXP).
    fn expiry_interval(&self) -> Dur {
        let answer = self.expiries * self.rtt.rto().as_nanos() + SYN.as_nanos();
        Dur::from_nanos(answer.max(self.expiries * MIN_EXPIRY))
    }

    fn expiry(&self) -> Time {
        self.expiry_start + self.expiry_interval()
    }

    /// Ends the connection and sends a shutdown.
    fn close_with_shutdown(&mut self, now: Time, reason: CloseReason) {
        self.pending_control.shutdown = true;
        self.close(now, reason);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) next, if no datagram arrives and the application does
    /// nothing before. Valid after `poll_transmit` has returned `None`. A time in the past means at
    /// once. `None` once the connection has ended and can be dropped.
    pub fn next_wakeup(&self) -> Option<Time> {
        let halves = match (&self.state, &self.halves) {
            (State::Connecting(connecting), _) => return Some(connecting.next_wakeup()),
            (State::Closed(_, until), _) => {
                return if self.pending_control.shutdown { Some(Time::ZERO) } else { *until };
            }
            (_, Some(halves)) => halves,
            (_, None) => return None,
        };
        let linger = match self.state {
            State::Lingering(deadline) => {
                halves.sender.delivered_until().map_or(deadline, |quiet| quiet.min(deadline))
            }
            _ => Time::NEVER,
        };
        let (sender, receiver) = (&halves.sender, &halves.receiver);
        let due = sender.next_wakeup(&self.rtt).min(receiver.next_wakeup());
        Some(linger.min(due).min(self.expiry()))
    }

    /// Whether a closed connection can be dropped: the shutdown no longer needs to be repeated.
    pub fn is_drained(&self, now: Time) -> bool {
        matches!(self.state, State::Closed(_, until)
            if !self.pending_control.shutdown && until.is_none_or(|until| until <= now))
    }

    /// Takes the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        let pending_events = &mut self.pending_events;
        if std::mem::take(&mut pending_events.connected) {
            return Some(Event::Connected);
        }
        if std::mem::take(&mut pending_events.readable) {
            return Some(Event::Readable);
        }
        if std::mem::take(&mut pending_events.writable) {
            return Some(Event::Writable);
        }
        if std::mem::take(&mut pending_events.closed)
            && let State::Closed(reason, _) = self.state
        {
            return Some(Event::Closed(reason));
        }
        None
    }

    /// The id of this end's socket.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The socket type: a stream of bytes, or messages.
    pub fn socket_type(&self) -> SocketType {
        self.config.socket_type
    }

    /// Whether the handshake is complete and the connection has not ended.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Lingering(_))
    }

    /// Why the connection has ended, if it has.
    pub fn close_reason(&self) -> Option<CloseReason> {
        match self.state {
            State::Closed(reason, _) => Some(reason),
            _ => None,
        }
    }
}
