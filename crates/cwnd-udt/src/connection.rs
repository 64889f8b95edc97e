//! A connection: see [`Connection`].

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

/// A peer that has been silent for so many expiries, the last longer than [`SILENCE`], is lost (UDT4).
const EXPIRIES: u64 = 16;
const SILENCE: Dur = Dur::from_millis(5_000);
/// A closed connection is kept for so long, to tell a peer that missed it.
const DRAIN: Dur = Dur::from_millis(3_000);

/// Where a connection stands.
#[derive(Clone, Debug)]
enum State {
    Opening(Opening),
    Open,
    /// Closed by the user: what was written is still delivered until then.
    Lingering(Time),
    /// Until then, a peer that still sends is told.
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

/// Control packets that wait to be sent.
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    handshake: Option<Handshake>,
    keep_alive: bool,
    shutdown: bool,
}

/// The room that a writer waits for.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// A message's length.
    Bytes(usize),
    /// A part of what the stream's buffer holds just then: not every packet that leaves.
    Worthwhile,
}

/// Events that wait to be told.
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
    /// Since when the peer is silent, expiries since then, plus one, and when the last was.
    silent: Time,
    expiries: u64,
    heard: Time,
    /// What an accepted client, or a rendezvous peer that asks again, is answered.
    answer: Option<Handshake>,
    owed: Owed,
    waiting: Waiting,
    /// What a writer waits for.
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

    /// A client that connects to the listener at `to`.
    ///
    /// `id` is the id of this end's socket, 1 to `2^31 - 1` and unique on its port; `initial` is the
    /// first sequence number. Both should be random: who can guess them can interfere.
    pub fn connect(config: &Config, now: Time, id: u32, initial: Seq, to: IpAddr) -> Self {
        let opening = Opening::new(&config.sound(), now, (id, initial), to, false);
        Connection::new(config, now, id, State::Opening(opening))
    }

    /// One end of a rendezvous: both connect to each other, and none listens. UDT4 gives it 30 s, ten
    /// times what it gives a client.
    pub fn rendezvous(config: &Config, now: Time, id: u32, initial: Seq, to: IpAddr) -> Self {
        let opening = Opening::new(&config.sound(), now, (id, initial), to, true);
        Connection::new(config, now, id, State::Opening(opening))
    }

    /// The accepting end of a connection that a [`crate::Listener`] let in. It is open at once.
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

    /// Opens the connection with `peer`; this end's sequence begins at `initial`.
    fn open(&mut self, now: Time, peer: &Handshake, initial: Seq, packet_size: u32) {
        let payload = payload_of(packet_size);
        let window = peer.flow_window.min(MAX_FLOW_WINDOW);
        // UDT4 takes over the packet size of a rendezvous peer: it may send what this end offered.
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

    /// Takes in a datagram that arrived at `now` from the peer's address; checking that address, and
    /// that the datagram is for this socket, is the caller's part ([`crate::Routes`] does both).
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

    /// Takes in datagrams that arrived together, one behind the other in `datagrams`: all of `segment`
    /// bytes but the last, as the system's receive offload delivers them.
    pub fn handle_batch(&mut self, now: Time, datagrams: &[u8], segment: usize) {
        for datagram in datagrams.chunks(segment.max(1)) {
            self.handle_datagram(now, datagram);
        }
    }

    /// Takes in a [reset](crate::reset) from the peer's address that repeats `header`. It ends the connection
    /// if a packet with exactly this header was sent: one of the data packets that are outstanding, or one of
    /// the last control packets. Returns whether it did.
    pub fn handle_reset(&mut self, now: Time, header: &[u8; HEADER]) -> bool {
        let Some(halves) = &self.halves else { return false };
        let sent = halves.sender.buffer.is_outstanding(header) || self.recent.contains(header);
        if !sent || !header.ends_with(&halves.peer.to_be_bytes()) {
            return false;
        }
        self.end_unknown(now)
    }

    /// The peer does not know this connection any more, which its driver has made sure of. Returns whether the
    /// connection ended, and had not before.
    pub(crate) fn end_unknown(&mut self, now: Time) -> bool {
        let reason = match self.state {
            State::Open => CloseReason::Reset,
            State::Lingering(_) if self.unacknowledged() > 0 => CloseReason::Reset,
            State::Lingering(_) => CloseReason::Local,
            _ => return false,
        };
        self.close(now, reason);
        // Nobody is there to be told.
        self.state = State::Closed(reason, None);
        true
    }

    fn handle_opening(&mut self, now: Time, packet: &Packet) {
        let State::Opening(opening) = &mut self.state else { return };
        let (mine, rendezvous) = (*opening.request(), opening.is_rendezvous());
        let step = match packet.body {
            Body::Control(Control::Handshake(answer)) => opening.handle(now, &answer),
            // A rendezvous peer that sends data or is alive is open already.
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
                    // The peer may still be asking: it need not wait until it asks again.
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
                    // The peer asks again: it has not heard the answer.
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

    /// The connection ends. What has arrived can still be read.
    fn close(&mut self, now: Time, reason: CloseReason) {
        self.account(now);
        // A peer that closed needs no telling, and one that never answered cannot be told.
        let drains = reason != CloseReason::Peer && self.halves.is_some();
        self.state = State::Closed(reason, drains.then(|| now + DRAIN));
        self.waiting.closed = true;
        self.waiting.writable = false;
    }

    /// Brings the account of what limits the sender up to date; it ends with the connection.
    fn account(&mut self, now: Time) {
        if let (true, Some(halves)) = (self.is_open(), &mut self.halves) {
            halves.sender.account(now, &mut self.counters);
        }
    }

    /// Does what is due by `now`. Call it at [`next_wakeup`](Self::next_wakeup), then
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

    /// The time without hearing from the peer that counts (UDT4's EXP).
    fn expiry_interval(&self) -> Dur {
        let answer = self.expiries * self.rtt.patience().as_nanos() + SYN.as_nanos();
        Dur::from_nanos(answer.max(self.expiries * MIN_EXPIRY))
    }

    fn expiry(&self) -> Time {
        self.heard + self.expiry_interval()
    }

    /// Tells the peer that this end is gone.
    fn finish(&mut self, now: Time, reason: CloseReason) {
        self.owed.shutdown = true;
        self.close(now, reason);
    }

    /// When [`handle_timeout`](Self::handle_timeout) and [`poll_transmit`](Self::poll_transmit) are due
    /// next, if nothing else happens before. Ask after `poll_transmit` has returned nothing. `None`
    /// once the connection has ended for good and can be forgotten; a time in the past means now.
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

    /// Whether a closed connection can be forgotten: its peer has had time to hear of it.
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
