//! The state machine of a connection: see [`Connection`].

mod transmit;
mod user;

use crate::config::{CloseReason, Config, Counters, Event};
use crate::estimate::Rtt;
use crate::handshake::{
    Handshake, MAX_FLOW_WINDOW, Request, SocketType, VERSION, address, payload_of,
};
use crate::listener::Invitation;
use crate::opening::{Opening, Step};
use crate::packet::{Body, Control, HEADER, Packet};
use crate::receiver::{CONTROL_PACKET, Receiver};
use crate::reset::Recent;
use crate::sender::{MIN_EXPIRY, SYN, Sender};
use crate::seq::Seq;
use cwnd::{Dur, Time};
use std::net::IpAddr;

pub use transmit::{Filled, Transmit};

/// A silent peer counts as lost after this number of expiries, if the last one took longer than [`SILENCE`] (UDT4).
const EXPIRIES: u64 = 16;
const SILENCE: Dur = Dur::from_millis(5_000);
/// The time for which a closed connection is kept, to repeat the shutdown for a peer that missed it.
const DRAIN: Dur = Dur::from_millis(3_000);

/// The state of a connection.
#[derive(Clone, Debug)]
enum State {
    Opening(Opening),
    Open,
    /// Closed by the application. Written data is delivered until the given time.
    Lingering(Time),
    /// Ended. Until the given time a peer that still sends is answered with a shutdown.
    Closed(CloseReason, Option<Time>),
}

/// Both halves of an open connection.
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
struct Owed {
    handshake: Option<Handshake>,
    keep_alive: bool,
    shutdown: bool,
}

/// The free space in the send buffer that a blocked writer waits for.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// The length of a message.
    Bytes(usize),
    /// A share of the stream's current buffer: a writer is not woken for every packet that is acknowledged.
    Worthwhile,
}

/// Pending events.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    connected: bool,
    readable: bool,
    writable: bool,
    closed: bool,
}

/// One end of a connection, as a state machine without I/O.
///
/// See the [crate's documentation](crate) for how to drive it.
#[derive(Clone, Debug)]
pub struct Connection {
    config: Config,
    id: u32,
    start: Time,
    state: State,
    halves: Option<Box<Halves>>,
    rtt: Rtt,
    /// The time of the last packet from the peer, the number of expiries since then plus one, and the time of the last
    /// packet or expiry.
    silent: Time,
    expiries: u64,
    heard: Time,
    /// The answer to the repeated handshakes of an accepted client or a rendezvous peer.
    answer: Option<Handshake>,
    owed: Owed,
    waiting: Waiting,
    /// The free space that a blocked writer waits for.
    wanted: Option<Wanted>,
    last_shutdown: Time,
    counters: Counters,
    cleared: (Time, Counters),
    scratch: Box<[u8; CONTROL_PACKET]>,
    recent: Recent,
}

impl Connection {
    fn new(config: &Config, now: Time, id: u32, state: State) -> Self {
        Connection {
            config: config.sound(),
            id: id.clamp(1, i32::MAX as u32),
            start: now,
            state,
            halves: None,
            rtt: Rtt::INITIAL,
            expiries: 1,
            silent: now,
            heard: now,
            answer: None,
            owed: Owed::default(),
            waiting: Waiting::default(),
            wanted: None,
            last_shutdown: Time::ZERO,
            counters: Counters::default(),
            cleared: (now, Counters::default()),
            scratch: Box::new([0; CONTROL_PACKET]),
            recent: Recent::default(),
        }
    }

    /// Creates a client that connects to the listener at `to`.
    ///
    /// `id` is the id of this end's socket, 1 to `2^31 - 1` and unique on its port; `initial` is the first sequence
    /// number. Both should be random: an attacker that guesses them can inject packets.
    pub fn connect(config: &Config, now: Time, id: u32, initial: Seq, to: IpAddr) -> Self {
        let opening = Opening::new(&config.sound(), now, (id, initial), to, false);
        Connection::new(config, now, id, State::Opening(opening))
    }

    /// Creates one end of a rendezvous: both ends connect to each other, and neither listens. As in UDT4 the timeout is
    /// 30 s, ten times that of a client.
    pub fn rendezvous(config: &Config, now: Time, id: u32, initial: Seq, to: IpAddr) -> Self {
        let opening = Opening::new(&config.sound(), now, (id, initial), to, true);
        Connection::new(config, now, id, State::Opening(opening))
    }

    /// Creates the accepting end of a connection that a [`crate::Listener`] admitted. The connection is open at once.
    pub fn accept(config: &Config, now: Time, id: u32, invitation: &Invitation) -> Self {
        let mut connection = Connection::new(config, now, id, State::Open);
        let asked = invitation.handshake;
        let packet_size = asked.packet_size.min(connection.config.packet_size);
        let answer = Handshake {
            version: VERSION,
            socket_type: connection.config.socket_type,
            initial: asked.initial,
            packet_size,
            flow_window: connection.config.flow_window,
            request: Request::Agree,
            socket: connection.id,
            cookie: asked.cookie,
            peer: address(invitation.from.ip()),
        };
        connection.answer = Some(answer);
        connection.owed.handshake = Some(answer);
        connection.open(now, &asked, asked.initial, packet_size);
        connection
    }

    /// Opens the connection with `peer`; this end's sequence numbers begin at `initial`.
    fn open(&mut self, now: Time, peer: &Handshake, initial: Seq, packet_size: u32) {
        let payload = payload_of(packet_size);
        let window = peer.flow_window.min(MAX_FLOW_WINDOW);
        // UDT4 adopts the packet size of a rendezvous peer: its packets may be as large as this end offered.
        let largest = match &self.state {
            State::Opening(opening) => payload_of(opening.request().packet_size).max(payload),
            _ => payload,
        };
        self.halves = Some(Box::new(Halves {
            sender: Sender::new(&self.config, now, (peer.socket, initial), packet_size, window),
            receiver: Receiver::new(&self.config, now, peer.initial, largest),
            peer: peer.socket,
            payload,
        }));
        self.state = State::Open;
        self.silent = now;
        self.heard = now;
        self.waiting.connected = true;
        self.waiting.writable = true;
    }

    /// Processes a datagram that arrived at `now` from the peer's address. The caller checks that address, and that the
    /// datagram is for this socket ([`crate::Routes`] does both).
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
        if let State::Opening(_) = self.state {
            self.handle_opening(now, &packet);
            if !matches!(self.state, State::Open) || handshake {
                return;
            }
        }
        match self.state {
            State::Closed(reason, until) => {
                if let Body::Control(Control::Shutdown) = packet.body {
                    self.state = State::Closed(reason, None);
                } else if now.since(self.last_shutdown) >= SYN {
                    self.owed.shutdown = until.is_some();
                }
            }
            _ => self.handle_packet(now, &packet),
        }
    }

    /// Processes datagrams that arrived together, concatenated in `datagrams`: all but the last have `segment` bytes,
    /// as the system's receive offload delivers them.
    pub fn handle_batch(&mut self, now: Time, datagrams: &[u8], segment: usize) {
        for datagram in datagrams.chunks(segment.max(1)) {
            self.handle_datagram(now, datagram);
        }
    }

    /// Processes a [reset](crate::reset) from the peer's address that repeats `header`. It ends the connection if a
    /// packet with exactly this header was sent: an outstanding data packet, or one of the last control packets.
    /// Returns whether the connection ended.
    pub fn handle_reset(&mut self, now: Time, header: &[u8; HEADER]) -> bool {
        let Some(halves) = &self.halves else { return false };
        let sent = halves.sender.buffer.is_outstanding(header) || self.recent.contains(header);
        if !sent || !header.ends_with(&halves.peer.to_be_bytes()) {
            return false;
        }
        self.end_unknown(now)
    }

    /// Ends the connection: its driver has verified that the peer no longer knows it. Returns false if it had ended
    /// before.
    pub(crate) fn end_unknown(&mut self, now: Time) -> bool {
        let reason = match self.state {
            State::Open => CloseReason::Reset,
            State::Lingering(_) if self.unacknowledged() > 0 => CloseReason::Reset,
            State::Lingering(_) => CloseReason::Local,
            _ => return false,
        };
        self.close(now, reason);
        // No shutdown is sent: the peer has no such connection.
        self.state = State::Closed(reason, None);
        true
    }

    fn handle_opening(&mut self, now: Time, packet: &Packet) {
        let State::Opening(opening) = &mut self.state else { return };
        let (mine, rendezvous) = (*opening.request(), opening.is_rendezvous());
        let step = match packet.body {
            Body::Control(Control::Handshake(answer)) => opening.handle(now, &answer),
            // A rendezvous peer that sends data or a keep-alive has opened the connection.
            Body::Data(_) | Body::Control(Control::KeepAlive) => {
                opening.peer().map_or(Step::Wait, Step::Open)
            }
            Body::Control(_) => Step::Wait,
        };
        match step {
            Step::Wait => {}
            Step::Fail(reason) => self.close(now, reason),
            Step::Open(peer) => {
                let packet_size = peer.packet_size.min(mine.packet_size);
                self.open(now, &peer, mine.initial, packet_size);
                if rendezvous {
                    // The peer may still wait for an answer: send it before the peer repeats its handshake.
                    self.answer = Some(Handshake { request: Request::Confirm, ..mine });
                    self.owed.handshake = self.answer;
                }
            }
        }
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet) {
        let Some(halves) = &mut self.halves else { return };
        let Halves { sender, receiver, peer, payload } = &mut **halves;
        self.silent = now;
        self.heard = now;
        self.expiries = 1;
        let count = &mut self.counters;
        let sound = match packet.body {
            Body::Data(data) => {
                let before = receiver.buffer.next();
                receiver.data(now, &data, *payload, count);
                self.waiting.readable |= match &receiver.messages {
                    Some(messages) => messages.any(),
                    None => receiver.buffer.next() > before,
                };
                true
            }
            Body::Control(control) => match control {
                Control::Ack(ack) => sender.acked(now, &ack, &mut self.rtt, count),
                Control::LightAck(next) => sender.light_acked(now, next, count),
                Control::Progress(progress) => sender.progressed(now, &progress, count),
                Control::Nak(losses) => sender.nacked(now, losses, &self.rtt, count),
                Control::Ack2(number) => {
                    if let Some(sample) = receiver.confirmed(now, number) {
                        self.rtt.sample(sample);
                    }
                    true
                }
                Control::Drop(request) => {
                    receiver.dropped(now, &request, count);
                    self.waiting.readable |= receiver.is_readable();
                    true
                }
                Control::Shutdown => {
                    self.close(now, CloseReason::Peer);
                    return;
                }
                Control::Handshake(asked) => {
                    // The peer repeats its handshake: it has not received the answer.
                    if asked.request != Request::Confirm && asked.socket == *peer {
                        self.owed.handshake = self.answer;
                    }
                    true
                }
                Control::KeepAlive | Control::Other { .. } => true,
            },
        };
        sender.unblock(now);
        if !sound {
            self.counters.pkt_ignored += 1;
        }
        self.check_room();
    }

    fn check_room(&mut self) {
        let (Some(wanted), Some(halves)) = (self.wanted, &self.halves) else { return };
        let buffer = &halves.sender.buffer;
        let enough = match wanted {
            Wanted::Bytes(bytes) => bytes,
            Wanted::Worthwhile => buffer.worthwhile(),
        };
        if buffer.room() >= enough {
            self.wanted = None;
            self.waiting.writable = true;
        }
    }

    /// Ends the connection. Received data can still be read.
    fn close(&mut self, now: Time, reason: CloseReason) {
        self.account(now);
        // No shutdown is repeated for a peer that closed the connection or never answered.
        let drains = reason != CloseReason::Peer && self.halves.is_some();
        self.state = State::Closed(reason, drains.then(|| now + DRAIN));
        self.waiting.closed = true;
        self.waiting.writable = false;
    }

    /// Updates the counters of what limits the sender, while the connection is open.
    fn account(&mut self, now: Time) {
        if let (true, Some(halves)) = (self.is_open(), &mut self.halves) {
            halves.sender.account(now, &mut self.counters);
        }
    }

    /// Processes the timers that have expired by `now`. Call it at [`next_wakeup`](Self::next_wakeup), then
    /// [`poll_transmit`](Self::poll_transmit).
    pub fn handle_timeout(&mut self, now: Time) {
        match &self.state {
            State::Opening(opening) => {
                if opening.is_over(now) {
                    self.close(now, CloseReason::ConnectTimeout);
                }
                return;
            }
            State::Lingering(deadline) if *deadline <= now => {
                self.finish(now, CloseReason::LingerOver);
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
        self.owed.keep_alive |= halves.sender.handle_timeout(now, &self.rtt, &mut self.counters);
        if self.expiry() > now {
            return;
        }
        let given_up = self.expiries > EXPIRIES && self.expiry_interval() > SILENCE;
        if given_up || now.since(self.silent) >= self.config.patience {
            self.close(now, CloseReason::Lost);
            return;
        }
        self.expiries += 1;
        self.heard = now;
        self.owed.keep_alive |=
            self.halves.as_ref().is_some_and(|halves| halves.sender.buffer.outstanding() == 0);
    }

    /// The interval of the expiry timer (UDT4's EXP).
    fn expiry_interval(&self) -> Dur {
        let answer = self.expiries * self.rtt.patience().as_nanos() + SYN.as_nanos();
        Dur::from_nanos(answer.max(self.expiries * MIN_EXPIRY))
    }

    fn expiry(&self) -> Time {
        self.heard + self.expiry_interval()
    }

    /// Ends the connection and sends a shutdown.
    fn finish(&mut self, now: Time, reason: CloseReason) {
        self.owed.shutdown = true;
        self.close(now, reason);
    }

    /// The time of the next call of [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit), unless a datagram or the application comes first. Valid after
    /// `poll_transmit` has returned `None`. `None` once the connection has ended and can be dropped; a time in the past
    /// means now.
    pub fn next_wakeup(&self) -> Option<Time> {
        let halves = match (&self.state, &self.halves) {
            (State::Opening(opening), _) => return Some(opening.next_wakeup()),
            (State::Closed(_, until), _) => {
                return if self.owed.shutdown { Some(Time::ZERO) } else { *until };
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

    /// Whether a closed connection can be dropped: its peer has had time to receive the shutdown.
    pub fn is_drained(&self, now: Time) -> bool {
        matches!(self.state, State::Closed(_, until)
            if !self.owed.shutdown && until.is_none_or(|until| until <= now))
    }

    /// The next event, if there is one.
    pub fn poll_event(&mut self) -> Option<Event> {
        let waiting = &mut self.waiting;
        if std::mem::take(&mut waiting.connected) {
            return Some(Event::Connected);
        }
        if std::mem::take(&mut waiting.readable) {
            return Some(Event::Readable);
        }
        if std::mem::take(&mut waiting.writable) {
            return Some(Event::Writable);
        }
        if std::mem::take(&mut waiting.closed)
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

    /// The type of this end's socket.
    pub fn socket_type(&self) -> SocketType {
        self.config.socket_type
    }

    /// Whether the handshake is done and the connection has not ended.
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
