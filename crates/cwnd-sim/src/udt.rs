//! The two ends of a UDT connection: the protocol implementation ([`cwnd_udt`]) in simulated time.
//!
//! Payloads are zeros, which messages in flight do not contain.

use crate::cast::{low32, saturate16, to_index};
use crate::datagrams::{Codepoint, Datagram, Datagrams, End, Feedback};
use crate::network::{UDT_HEADERS, Udt};
use crate::record::{FlowRecord, PacketKind};
use crate::rng::Rng;
use cwnd::{AnyController, Controller, Limit, MakeController, Needs, Output, Settings, Spec, Time};
use cwnd_udt::packet::{Ack, Body, Control, HEADER, IP_UDP_HEADERS, Packet, Progress, Range};
use cwnd_udt::{Answer, Config, Connection, Counters, Listener, Seq, SocketType};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// A client retries for a day, so that a flow does not give up under heavy loss.
const CONNECT_TIMEOUT: cwnd::Dur = cwnd::Dur::from_millis(24 * 3_600_000);
/// Packets written ahead of the transmission: two, so that both packets of a pair are available.
const AHEAD: u64 = 2;
/// The bit of the first byte that marks a control packet.
const CONTROL: u8 = 0x80;
/// The ports of the listener and of the client.
const PORTS: [u16; 2] = [9, 49_152];

/// Returns the connection's configuration for flow `index`.
fn config(udt: &Udt, make: Arc<dyn MakeController>, seed: u64, index: usize) -> Config {
    Config {
        packet_size: udt.packet + UDT_HEADERS,
        flow_window: udt.window,
        send_buffer: udt.window,
        receive_buffer: udt.window,
        connect_timeout: CONNECT_TIMEOUT,
        same_payload: true,
        seed: Rng::new(seed, "law", index as u64).bits(),
        ..Config::new(make)
    }
}

/// Returns the controller's settings for flow `index`; `None` if the controller is not in the
/// registry.
pub(crate) fn settings(udt: &Udt, seed: u64, index: usize) -> Option<Settings> {
    let make = Spec::parse(&udt.controller).ok()?;
    let config = config(udt, Arc::new(make), seed, index);
    Some(config.settings(config.packet_size, config.flow_window))
}

/// The receiving end.
#[derive(Clone)]
enum Sink {
    Listening(Listener),
    Open(Box<Connection>),
}

#[derive(Clone)]
pub(crate) struct UdtConnection {
    config: Config,
    /// Bytes of link-layer framing in each packet.
    below: usize,
    source: Connection,
    sink: Sink,
    /// The listener's reply to the last datagram.
    reply: Option<Message>,
    /// The controller until the connection is open.
    stand_in: AnyController,
    /// Buffer for a received data packet. The payload is all zeros.
    data: Box<[u8]>,
    /// Bytes still to write.
    left: u64,
    /// Whether the application may write more.
    open: bool,
    /// Bytes written.
    written: u64,
    /// The connection's counters at the end of the warm-up.
    before: Counters,
    /// The source's first sequence number, and what has arrived after it, for the record.
    initial: Seq,
    arrivals: Arrivals,
}

impl UdtConnection {
    /// Creates the connection of flow `index`, which starts at `start`.
    pub(crate) fn new(
        udt: &Udt,
        make: Arc<dyn MakeController>,
        index: usize,
        (seed, start): (u64, Time),
        record_events: bool,
    ) -> Self {
        let config = Config { record: record_events, ..config(udt, make, seed, index) };
        let mut rng = Rng::new(seed, "udt", index as u64);
        let [id, initial] = [rng.bits(), rng.bits()].map(|bits| low32(bits) >> 1);
        let mut key = [0; 16];
        key.chunks_exact_mut(8).for_each(|half| half.copy_from_slice(&rng.bits().to_le_bytes()));
        let stand_in =
            config.controller.controller(&config.settings(config.packet_size, udt.window));
        let listener = address(End::Sink).ip();
        UdtConnection {
            below: (udt.header - UDT_HEADERS) as usize,
            source: Connection::connect(&config, start, id, Seq::new(initial), listener),
            sink: Sink::Listening(Listener::new(key, SocketType::Stream)),
            reply: None,
            stand_in,
            data: vec![0; HEADER + udt.packet as usize].into(),
            left: udt.bytes.unwrap_or(u64::MAX),
            open: false,
            written: 0,
            before: Counters::default(),
            initial: Seq::new(initial),
            arrivals: Arrivals::default(),
            config,
        }
    }

    /// Payload of a full data packet in bytes.
    fn payload(&self) -> u64 {
        u64::from(self.config.packet_size - UDT_HEADERS)
    }

    /// Before the connection is open, the controller is one with the same settings.
    fn controller(&self) -> &AnyController {
        self.source.controller().unwrap_or(&self.stand_in)
    }

    /// Writes data up to [`AHEAD`] packets ahead of the transmission.
    fn write(&mut self, now: Time) {
        let payload = self.payload();
        while self.left > 0 && self.written - self.source.counters().byte_sent < AHEAD * payload {
            let most = to_index(payload.min(self.left));
            let zeros = &self.data[HEADER..HEADER + most];
            let Ok(count @ 1..) = self.source.write(zeros) else { return };
            self.left -= count as u64;
            self.written += count as u64;
        }
        if self.left == 0 && !self.open {
            self.source.shutdown(now);
        }
    }

    /// Returns a message as a datagram on the wire.
    #[inline(always)]
    fn datagram(&self, message: Message) -> Datagram<Message> {
        Datagram {
            size: self.below + IP_UDP_HEADERS + message.len(),
            data: match message {
                Message::Data(_, length) => Some(u64::from(length) - HEADER as u64),
                Message::Control(_) => None,
            },
            ecn: Codepoint::NotEct,
            message,
        }
    }
}

impl Datagrams for UdtConnection {
    type Message = Message;

    fn fork(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn stop(&mut self, _: Time) {
        (self.left, self.open) = (0, false);
    }

    #[inline(always)]
    fn receive(&mut self, now: Time, end: End, _: Codepoint, message: Message) -> u64 {
        let datagram = match &message {
            Message::Data(header, length) => {
                self.data[..HEADER].copy_from_slice(header);
                &self.data[..usize::from(*length)]
            }
            Message::Control(bytes) => bytes,
        };
        match (end, &mut self.sink) {
            (End::Source, _) => self.source.handle_datagram(now, datagram),
            (End::Sink, Sink::Open(connection)) => {
                let before = connection.counters().byte_recv;
                connection.handle_datagram(now, datagram);
                let new = connection.counters().byte_recv - before;
                read(connection, now);
                return new;
            }
            (End::Sink, Sink::Listening(listener)) => {
                match listener.handle(now, address(End::Source), datagram) {
                    Answer::Ignore => {}
                    Answer::Reply(reply) => self.reply = Some(Message::new(&reply)),
                    Answer::Accept(invitation) => {
                        let accepted = Connection::accept(&self.config, now, 1, &invitation);
                        self.sink = Sink::Open(Box::new(accepted));
                    }
                }
            }
        }
        0
    }

    fn wake(&mut self, now: Time, end: End) {
        match (end, &mut self.sink) {
            (End::Source, _) => self.source.handle_timeout(now),
            (End::Sink, Sink::Open(connection)) => connection.handle_timeout(now),
            (End::Sink, Sink::Listening(_)) => {}
        }
    }

    #[inline(always)]
    fn poll(&mut self, now: Time, end: End) -> Option<Datagram<Message>> {
        if end == End::Source {
            self.write(now);
        }
        let connection = match (end, &mut self.sink) {
            (End::Source, _) => &mut self.source,
            (End::Sink, Sink::Open(connection)) => connection,
            (End::Sink, Sink::Listening(_)) => {
                let reply = self.reply.take()?;
                return Some(self.datagram(reply));
            }
        };
        let message = Message::new(connection.poll_transmit(now, 1)?.datagrams);
        Some(self.datagram(message))
    }

    #[inline(always)]
    fn deadline(&mut self, end: End) -> Option<Time> {
        match (end, &mut self.sink) {
            (End::Source, _) => self.source.next_wakeup(),
            (End::Sink, Sink::Open(connection)) => connection.next_wakeup(),
            (End::Sink, Sink::Listening(_)) => None,
        }
    }

    #[inline(always)]
    fn feedback(&mut self) -> Feedback {
        let acknowledged = self.left == 0 && !self.open && self.source.unacknowledged() == 0;
        Feedback {
            rtt: self.source.take_rtt(),
            cut: self.source.take_cut(),
            complete: acknowledged && self.source.controller().is_some(),
        }
    }

    #[inline(always)]
    fn limit(&self) -> Limit {
        self.source.limit()
    }

    fn output(&self) -> Output {
        self.controller().output()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.controller().gauges(emit);
    }

    fn contents(&mut self, received: bool, message: &Message) -> Option<PacketKind> {
        let number = |seq| u32::try_from(self.initial.to(seq)).ok();
        let bytes = match message {
            Message::Data(header, _) => {
                let Ok(Packet { body: Body::Data(data), .. }) = Packet::parse(header) else {
                    return None;
                };
                return Some(PacketKind::Data(Some(number(data.seq)?)));
            }
            Message::Control(bytes) => bytes,
        };
        let Ok(Packet { body: Body::Control(control), .. }) = Packet::parse(bytes) else {
            return None;
        };
        Some(match control {
            _ if !received => return None,
            Control::LightAck(next) | Control::Ack(Ack { next, .. }) => {
                self.arrivals.report(number(next)?, number(next)?, 0)
            }
            Control::Progress(Progress { next, highest, missing }) => {
                self.arrivals.report(number(next)?, number(highest)?, missing)
            }
            Control::Nak(losses) => {
                let range = |range: Range| Some((number(range.first)?, number(range.last)? + 1));
                self.arrivals.lost(losses.filter_map(range).collect())
            }
            _ => return None,
        })
    }

    fn needs(&self) -> Needs {
        self.controller().needs()
    }

    fn total(&self) -> Option<u64> {
        (self.left == 0 && !self.open).then(|| self.written.div_ceil(self.payload()))
    }

    fn open(&mut self) {
        (self.open, self.left) = (true, 0);
    }

    fn make_available(&mut self, packets: u64) -> u64 {
        let (payload, written) = (self.payload(), self.written);
        let left = packets.saturating_mul(payload).saturating_sub(written);
        let (left, available) = match packets {
            u64::MAX => (u64::MAX, u64::MAX),
            _ => (left, (written + left) / payload),
        };
        self.left = left;
        available
    }

    fn acknowledged(&self) -> u64 {
        (self.written - self.source.unacknowledged()) / self.payload()
    }

    fn begin_measurement(&mut self) {
        self.before = *self.source.counters();
    }

    fn finish(self, record: &mut FlowRecord) {
        let since = self.source.counters().since(&self.before);
        record.retransmissions = since.pkt_retrans;
        record.timeouts = since.timeouts;
        record.events = self.source.record().cloned();
    }
}

/// The packets that have arrived, by the receiver's reports. A progress report has the number of
/// packets that arrived after the first missing one, not which: those that were never reported as
/// lost count before the retransmissions, and of these the oldest ones.
#[derive(Clone, Default)]
struct Arrivals {
    next: u32,
    /// Packets from `next` on that have arrived, and those that were reported as lost.
    arrived: BTreeSet<u32>,
    lost: BTreeSet<u32>,
}

impl Arrivals {
    /// All packets before `next` have arrived, and all but `missing` ones between it and `highest`.
    fn report(&mut self, next: u32, highest: u32, missing: u32) -> PacketKind {
        if next > self.next {
            self.next = next;
            self.arrived = self.arrived.split_off(&next);
            self.lost = self.lost.split_off(&next);
        }
        let count = to_index(highest.saturating_sub(self.next).saturating_sub(missing).into());
        let new = count.saturating_sub(self.arrived.len());
        let mut ranges = Vec::new();
        if new > 0 {
            let others = (self.next + 1..highest).filter(|at| !self.lost.contains(at));
            let all = others.chain(self.lost.range(self.next + 1..highest).copied());
            let new: Vec<_> = all.filter(|at| !self.arrived.contains(at)).take(new).collect();
            ranges.extend(new.iter().map(|&at| (at, at + 1)));
            self.arrived.extend(new);
        }
        PacketKind::Acknowledgement { next: Some(self.next), ranges: ranges.into() }
    }

    fn lost(&mut self, ranges: Box<[(u32, u32)]>) -> PacketKind {
        for &(from, to) in &ranges {
            self.lost.extend(from.max(self.next)..to);
        }
        PacketKind::Losses(ranges)
    }
}

/// Reads all available data.
fn read(connection: &mut Connection, now: Time) {
    while let Ok(count @ 1..) = connection.peek().map(<[u8]>::len) {
        connection.consume(now, count);
    }
}

fn address(end: End) -> SocketAddr {
    let (host, port) = if end == End::Sink { (1, PORTS[0]) } else { (2, PORTS[1]) };
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port)
}

/// The contents of a datagram in flight.
#[derive(Clone)]
pub(crate) enum Message {
    /// The header and the length of the datagram in bytes.
    Data([u8; HEADER], u16),
    Control(Box<[u8]>),
}

impl Default for Message {
    /// An empty datagram.
    fn default() -> Self {
        Message::Control(Box::default())
    }
}

impl Message {
    fn new(datagram: &[u8]) -> Self {
        match datagram.first_chunk() {
            Some(header) if header[0] & CONTROL == 0 => {
                Message::Data(*header, saturate16(datagram.len()))
            }
            _ => Message::Control(datagram.into()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Message::Data(_, length) => usize::from(*length),
            Message::Control(bytes) => bytes.len(),
        }
    }
}
