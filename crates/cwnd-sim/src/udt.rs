//! The two ends of a UDT connection: the protocol itself ([`cwnd_udt`]), in simulated time. The network
//! sees its datagrams as packets of their sizes; what they say goes by beside, in order.

use crate::cast::{low32, saturate16, saturate32, to_index};
use crate::driver::Driver;
use crate::engine::clock::Clock;
use crate::engine::net::{Net, SINK, SOURCE};
use crate::engine::packet::{Packet, flags};
use crate::engine::schedule::NONE;
use crate::network::Udt;
use crate::record::CutRecord;
use crate::rng::Rng;
use crate::tcp::sender::Place;
use cwnd::{AnyController, MakeController, Settings, Spec, Time};
use cwnd_udt::packet::{HEADER, IP_UDP_HEADERS};
use cwnd_udt::{Answer, Config, Connection, Counters, Listener, Seq, SocketType};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Bytes of IP, UDP and UDT in every packet.
pub(crate) const HEADERS: u32 = low32((HEADER + IP_UDP_HEADERS) as u64);
/// A client asks until it is answered: a flow that gave up would measure nothing.
const CONNECT_TIMEOUT: cwnd::Dur = cwnd::Dur::from_millis(24 * 3_600_000);
/// A packet and the one behind it, in case they are a pair: the source writes no further ahead.
const AHEAD: u64 = 2;
/// Set in the first byte of a control packet.
const CONTROL: u8 = 0x80;
/// The port of the listener, and any other.
const PORTS: [u16; 2] = [9, 49_152];

/// What a flow's connection is made with.
fn config(udt: &Udt, make: Arc<dyn MakeController>, seed: u64, index: usize) -> Config {
    Config {
        packet_size: udt.packet + HEADERS,
        flow_window: udt.window,
        send_buffer: udt.window,
        receive_buffer: udt.window,
        connect_timeout: CONNECT_TIMEOUT,
        same_payload: true,
        seed: Rng::new(seed, "law", index as u64).bits(),
        ..Config::new(make)
    }
}

/// What surrounds the law of flow number `index`.
pub(crate) fn settings(udt: &Udt, seed: u64, index: usize) -> Option<Settings> {
    let make = Spec::parse(&udt.controller).ok()?;
    let config = config(udt, Arc::new(make), seed, index);
    Some(config.settings(config.packet_size, config.flow_window))
}

/// The end that data goes to.
enum Sink {
    Listening(Listener),
    Open(Box<Connection>),
}

pub(crate) struct UdtFlow {
    clock: Clock,
    /// The first hops of the ways there and back.
    hops: [u32; 2],
    timer: usize,
    config: Config,
    /// Bytes on the wire besides IP's packet.
    below: usize,
    source: Connection,
    sink: Sink,
    /// When each end has something to do again.
    due: [u64; 2],
    /// Datagrams on their way from either end.
    mail: [Mail; 2],
    /// A data packet as it arrives. Nobody looks at the payload: it is all zeros.
    datagram: Box<[u8]>,
    /// Bytes still to write, and written.
    left: u64,
    written: u64,
    delivered: u64,
    /// The controller as it is before the connection is open, and what is known of the sender.
    pub driver: Driver,
    /// What the connection had counted when the measurement began.
    before: Counters,
}

impl UdtFlow {
    /// A flow that starts at `start` and is answered along the route that begins at `back`.
    pub(crate) fn new(
        udt: &Udt,
        make: Arc<dyn MakeController>,
        place: Place,
        back: u32,
        (seed, start): (u64, Time),
        tell: bool,
    ) -> Self {
        let Place { clock, flow, hop, timer } = place;
        let config = Config { record: tell, ..config(udt, make, seed, flow as usize) };
        let mut rng = Rng::new(seed, "udt", u64::from(flow));
        let [id, initial] = [rng.bits(), rng.bits()].map(|bits| low32(bits) >> 1);
        let mut key = [0; 16];
        key.chunks_exact_mut(8).for_each(|half| half.copy_from_slice(&rng.bits().to_le_bytes()));
        let controller =
            config.controller.controller(&config.settings(config.packet_size, udt.window));
        UdtFlow {
            clock,
            hops: [hop, back],
            timer,
            below: (udt.header - HEADERS) as usize,
            source: Connection::connect(&config, start, id, Seq::new(initial), address(SINK).ip()),
            sink: Sink::Listening(Listener::new(key, SocketType::Stream)),
            due: [NONE; 2],
            mail: [Mail::new(), Mail::new()],
            datagram: vec![0; HEADER + udt.packet as usize].into(),
            left: udt.bytes.unwrap_or(u64::MAX),
            written: 0,
            delivered: 0,
            driver: Driver::new(clock, controller, false),
            before: Counters::default(),
            config,
        }
    }

    pub(crate) fn start(&mut self, net: &mut Net, now: u64) {
        self.driver.start(now);
        self.send(net, now, SOURCE);
    }

    /// The source writes no more.
    pub(crate) fn stop(&mut self, net: &mut Net, now: u64) {
        self.left = 0;
        self.send(net, now, SOURCE);
    }

    pub(crate) fn reset(&mut self, now: u64) {
        self.driver.reset(now);
        self.before = *self.source.counters();
    }

    /// Data packets that arrived in order.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The controller, once the connection is open; until then another like it.
    pub(crate) fn controller(&self) -> &AnyController {
        self.source.controller().unwrap_or(&self.driver.controller)
    }

    /// What is known of the sender at the end.
    pub(crate) fn into_driver(mut self) -> Driver {
        let since = self.source.counters().since(&self.before);
        self.driver.counters.retransmitted = since.pkt_retrans;
        self.driver.counters.timeouts = saturate32(to_index(since.timeouts));
        self.driver.told = self.source.record().cloned().map(Box::new);
        self.driver
    }

    /// A datagram arrives at one end.
    pub(crate) fn arrive(&mut self, net: &mut Net, now: u64, packet: Packet) {
        let end = if packet.flags() & flags::ACK != 0 { SOURCE } else { SINK };
        let Some(letter) = self.mail[1 - end].take(packet.aux()) else { return };
        let at = self.clock.time(now);
        let datagram = match &letter {
            Letter::Data(header, length) => {
                self.datagram[..HEADER].copy_from_slice(header);
                &self.datagram[..usize::from(*length)]
            }
            Letter::Control(whole) => whole,
        };
        if end == SOURCE {
            self.source.handle_datagram(at, datagram);
            self.look(now);
            self.send(net, now, SOURCE);
            return;
        }
        match &mut self.sink {
            Sink::Open(connection) => {
                connection.handle_datagram(at, datagram);
                self.delivered += read(connection, at);
            }
            Sink::Listening(listener) => match listener.handle(at, address(SOURCE), datagram) {
                Answer::Ignore => return,
                Answer::Reply(reply) => return self.post(net, now, SINK, Letter::new(&reply)),
                Answer::Accept(invitation) => {
                    let accepted = Connection::accept(&self.config, at, 1, &invitation);
                    self.sink = Sink::Open(Box::new(accepted));
                }
            },
        }
        self.send(net, now, SINK);
    }

    /// The timer of one end fired.
    pub(crate) fn wake(&mut self, net: &mut Net, now: u64, end: usize) {
        if now < self.due[end] {
            // It had been set to this time before.
            if self.due[end] != NONE {
                net.arm(self.timer + end, self.due[end]);
            }
            return;
        }
        let at = self.clock.time(now);
        match (end, &mut self.sink) {
            (SOURCE, _) => {
                self.source.handle_timeout(at);
                self.look(now);
            }
            (_, Sink::Open(connection)) => connection.handle_timeout(at),
            (_, Sink::Listening(_)) => {}
        }
        self.send(net, now, end);
    }

    /// Notes what the source has learned.
    fn look(&mut self, now: u64) {
        if let Some(rtt) = self.source.take_rtt() {
            self.driver.measured(self.clock.ticks(rtt.as_nanos()));
        }
        let cut = self.source.take_cut();
        let at = self.clock.time(now);
        self.driver.cuts.extend(cut.map(|cut| CutRecord { at, cut }));
        let acknowledged = self.left == 0 && self.source.unacknowledged() == 0;
        if acknowledged && self.source.controller().is_some() && self.driver.completed == NONE {
            self.driver.settle(now);
            self.driver.completed = now;
        }
    }

    /// Sends what an end may send now, and asks to be woken for the rest.
    fn send(&mut self, net: &mut Net, now: u64, end: usize) {
        let at = self.clock.time(now);
        loop {
            if end == SOURCE {
                self.write(at);
            }
            let connection = match (end, &mut self.sink) {
                (SOURCE, _) => &mut self.source,
                (_, Sink::Open(connection)) => connection,
                (_, Sink::Listening(_)) => return,
            };
            let Some(transmit) = connection.poll_transmit(at, 1) else {
                let next =
                    connection.next_wakeup().map_or(NONE, |at| self.clock.ticks(at.as_nanos()));
                // What is due in the past has just been asked for.
                self.due[end] = next.max(now + self.clock.ticks(1));
                break;
            };
            let letter = Letter::new(transmit.datagrams);
            self.post(net, now, end, letter);
        }
        if end == SOURCE {
            self.driver.packets_sent = self.source.counters().pkt_sent;
            self.driver.limited_by(now, self.source.limit());
        }
        if self.due[end] != NONE {
            net.arm(self.timer + end, self.due[end]);
        }
    }

    /// Hands a datagram to the network.
    fn post(&mut self, net: &mut Net, now: u64, end: usize, letter: Letter) {
        let bits = match (end, &letter) {
            (SOURCE, Letter::Data(..)) => 0,
            (SOURCE, Letter::Control(_)) => flags::CONTROL,
            _ => flags::ACK,
        };
        let size = saturate16(self.below + IP_UDP_HEADERS + letter.len());
        let number = self.mail[end].put(letter);
        net.send(now, Packet::new(0, self.hops[end], number, size, bits));
    }

    /// Writes just ahead of what is sent.
    fn write(&mut self, now: Time) {
        let payload = u64::from(self.config.packet_size - HEADERS);
        while self.left > 0 && self.written - self.source.counters().byte_sent < AHEAD * payload {
            let most = to_index(payload.min(self.left));
            let zeros = &self.datagram[HEADER..HEADER + most];
            let Ok(count @ 1..) = self.source.write(zeros) else { return };
            self.left -= count as u64;
            self.written += count as u64;
        }
        if self.left == 0 {
            self.source.shutdown(now);
        }
    }
}

/// Takes out what can be read: whole packets, which are counted.
fn read(connection: &mut Connection, now: Time) -> u64 {
    let mut packets = 0;
    while let Ok(count @ 1..) = connection.peek().map(<[u8]>::len) {
        connection.consume(now, count);
        packets += 1;
    }
    packets
}

fn address(end: usize) -> SocketAddr {
    let host = if end == SINK { 1 } else { 2 };
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), PORTS[1 - end])
}

/// A datagram on its way.
enum Letter {
    /// A header, and the length of the whole.
    Data([u8; HEADER], u16),
    Control(Box<[u8]>),
}

impl Letter {
    fn new(datagram: &[u8]) -> Self {
        match datagram.first_chunk() {
            Some(header) if header[0] & CONTROL == 0 => {
                Letter::Data(*header, saturate16(datagram.len()))
            }
            _ => Letter::Control(datagram.into()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Letter::Data(_, length) => usize::from(*length),
            Letter::Control(whole) => whole.len(),
        }
    }
}

/// Datagrams of one end on their way, in order: those before one that arrives are lost.
struct Mail {
    queue: VecDeque<Letter>,
    /// The number of the first in the queue.
    first: u32,
}

impl Mail {
    const fn new() -> Self {
        Mail { queue: VecDeque::new(), first: 0 }
    }

    /// Adds what is sent next; tells its number.
    fn put(&mut self, letter: Letter) -> u32 {
        self.queue.push_back(letter);
        self.first.wrapping_add(low32(self.queue.len() as u64) - 1)
    }

    /// Takes what arrives.
    fn take(&mut self, number: u32) -> Option<Letter> {
        let lost = number.wrapping_sub(self.first) as usize;
        self.queue.drain(..lost.min(self.queue.len()));
        self.first = number.wrapping_add(1);
        self.queue.pop_front()
    }
}
