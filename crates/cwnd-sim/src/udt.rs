//! The two ends of a UDT connection: the protocol implementation ([`cwnd_udt`]) in simulated time.
//!
//! The simulated network carries packets of the datagrams' sizes. The contents are passed outside
//! the network, in order.

use crate::cast::{low32, saturate16, saturate32, to_index};
use crate::clock::Clock;
use crate::driver::{Driver, Payload};
use crate::endpoint::{Endpoint, Idle, Progress, Writable};
use crate::engine::net::{Net, Place};
use crate::engine::schedule::NONE;
use crate::network::{UDT_HEADERS, Udt};
use crate::packet::{Contents, Packet, SINK, SOURCE, flags};
use crate::record::{CutRecord, FlowRecord};
use crate::rng::Rng;
use cwnd::{AnyController, MakeController, Settings, Spec, Time};
use cwnd_udt::packet::{HEADER, IP_UDP_HEADERS};
use cwnd_udt::{Answer, Config, Connection, Counters, Listener, Seq, SocketType};
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
enum Sink {
    Listening(Listener),
    Open(Box<Connection>),
}

pub(crate) struct UdtFlow {
    clock: Clock,
    /// The first hops of the forward route and the return route.
    hops: [u32; 2],
    timer: usize,
    config: Config,
    /// Bytes of link-layer framing in each packet.
    below: usize,
    source: Connection,
    sink: Sink,
    /// Time of the next timer action of each end.
    due: [u64; 2],
    /// Datagrams in flight from each end.
    in_flight: [Contents<Datagram>; 2],
    /// Buffer for a received data packet. The payload is all zeros.
    data: Box<[u8]>,
    /// Bytes still to write.
    left: u64,
    /// Whether the application may write more.
    open: bool,
    /// Bytes written.
    written: u64,
    /// Data that arrived for the first time, and the time of the last of these arrivals.
    arrived: Payload,
    last_new: u64,
    /// The sender's measurements. Its controller stands in for the connection's one until the
    /// connection is open.
    pub driver: Driver,
    /// The connection's counters at the end of the warm-up.
    before: Counters,
}

impl UdtFlow {
    /// Creates a flow that starts at `start`. `back` is the first hop of the return route.
    pub(crate) fn new(
        udt: &Udt,
        make: Arc<dyn MakeController>,
        place: Place,
        back: u32,
        (seed, start): (u64, Time),
        record_events: bool,
    ) -> Self {
        let Place { clock, flow, hop, timer, reordered } = place;
        let config = Config { record: record_events, ..config(udt, make, seed, flow as usize) };
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
            below: (udt.header - UDT_HEADERS) as usize,
            source: Connection::connect(&config, start, id, Seq::new(initial), address(SINK).ip()),
            sink: Sink::Listening(Listener::new(key, SocketType::Stream)),
            due: [NONE; 2],
            in_flight: [(); 2].map(|()| Contents::new(reordered)),
            data: vec![0; HEADER + udt.packet as usize].into(),
            left: udt.bytes.unwrap_or(u64::MAX),
            open: false,
            written: 0,
            arrived: Payload::default(),
            last_new: 0,
            driver: Driver::new(clock, controller, false),
            before: Counters::default(),
            config,
        }
    }

    /// Handles a datagram that arrives at one end.
    fn handle_datagram(&mut self, net: &mut Net, now: u64, packet: Packet) {
        let end = packet.side();
        let Some(taken) = self.in_flight[1 - end].take(packet.aux()) else { return };
        let at = self.clock.time(now);
        let datagram = match &taken {
            Datagram::Data(header, length) => {
                self.data[..HEADER].copy_from_slice(header);
                &self.data[..usize::from(*length)]
            }
            Datagram::Control(bytes) => bytes,
        };
        if end == SOURCE {
            self.source.handle_datagram(at, datagram);
            self.update_driver(now);
            self.send(net, now, SOURCE);
            return;
        }
        match &mut self.sink {
            Sink::Open(connection) => {
                let before = connection.counters().byte_recv;
                connection.handle_datagram(at, datagram);
                let bytes = connection.counters().byte_recv - before;
                if bytes > 0 {
                    self.arrived.packets += 1;
                    self.arrived.bytes += bytes;
                    self.last_new = now;
                }
                read(connection, at);
            }
            Sink::Listening(listener) => match listener.handle(at, address(SOURCE), datagram) {
                Answer::Ignore => return,
                Answer::Reply(reply) => {
                    return self.transmit(net, now, SINK, Datagram::new(&reply));
                }
                Answer::Accept(invitation) => {
                    let accepted = Connection::accept(&self.config, at, 1, &invitation);
                    self.sink = Sink::Open(Box::new(accepted));
                }
            },
        }
        self.send(net, now, SINK);
    }

    /// Copies new measurements of the source to the driver.
    fn update_driver(&mut self, now: u64) {
        if let Some(rtt) = self.source.take_rtt() {
            self.driver.measured(self.clock.ticks(rtt.as_nanos()));
        }
        let cut = self.source.take_cut();
        let at = self.clock.time(now);
        self.driver.cuts.extend(cut.map(|cut| CutRecord { at, cut }));
        let acknowledged = self.left == 0 && !self.open && self.source.unacknowledged() == 0;
        if acknowledged && self.source.controller().is_some() && self.driver.acknowledged == NONE {
            self.driver.settle(now);
            self.driver.acknowledged = now;
        }
    }

    /// Sends all datagrams that an end may send at `now` and arms its timer.
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
                // A deadline that has passed was handled by this poll.
                self.due[end] = next.max(now + self.clock.ticks(1));
                break;
            };
            let datagram = Datagram::new(transmit.datagrams);
            self.transmit(net, now, end, datagram);
        }
        if end == SOURCE {
            self.driver.packets_sent = self.source.counters().pkt_sent;
            self.driver.limited_by(now, self.source.limit());
        }
        if self.due[end] != NONE {
            net.arm(self.timer + end, self.due[end]);
        }
    }

    /// Passes a datagram to the network.
    fn transmit(&mut self, net: &mut Net, now: u64, end: usize, datagram: Datagram) {
        let bits = match (end, &datagram) {
            (SOURCE, Datagram::Data(..)) => 0,
            (SOURCE, Datagram::Control(_)) => flags::CONTROL,
            _ => flags::ACK,
        };
        let size = saturate16(self.below + IP_UDP_HEADERS + datagram.len());
        if let Datagram::Data(_, length) = datagram {
            self.driver.bytes_sent += u64::from(length) - HEADER as u64;
        }
        let number = self.in_flight[end].put(datagram);
        net.send(now, Packet::new(0, self.hops[end], number, size, bits));
    }

    /// Writes data up to [`AHEAD`] packets ahead of the transmission.
    fn write(&mut self, now: Time) {
        let payload = u64::from(self.config.packet_size - UDT_HEADERS);
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
}

impl Endpoint for UdtFlow {
    fn start(&mut self, net: &mut Net, now: u64) {
        self.driver.start(now);
        self.send(net, now, SOURCE);
    }

    fn stop(&mut self, net: &mut Net, now: u64) {
        self.left = 0;
        if std::mem::take(&mut self.open) {
            // Without data in flight no acknowledgement completes the transfer.
            self.update_driver(now);
        }
        self.send(net, now, SOURCE);
    }

    fn wake(&mut self, net: &mut Net, now: u64, end: usize) {
        if now < self.due[end] {
            // The timer was armed for an earlier deadline.
            if self.due[end] != NONE {
                net.arm(self.timer + end, self.due[end]);
            }
            return;
        }
        let at = self.clock.time(now);
        match (end, &mut self.sink) {
            (SOURCE, _) => {
                self.source.handle_timeout(at);
                self.update_driver(now);
            }
            (_, Sink::Open(connection)) => connection.handle_timeout(at),
            (_, Sink::Listening(_)) => {}
        }
        self.send(net, now, end);
    }

    fn receive(&mut self, net: &mut Net, now: u64, packet: Packet) -> bool {
        self.handle_datagram(net, now, packet);
        false
    }

    fn progress(&self) -> Progress {
        let payload = u64::from(self.config.packet_size - UDT_HEADERS);
        Progress {
            sent: self.driver.sent(0),
            total: (self.left == 0 && !self.open).then(|| self.written.div_ceil(payload)),
            arrived: self.arrived,
            received: match &self.sink {
                Sink::Open(connection) => connection.counters().pkt_recv,
                Sink::Listening(_) => 0,
            },
            last_new: self.last_new,
            marked: 0,
        }
    }

    fn begin_measurement(&mut self, now: u64, side: usize) {
        if side == SOURCE {
            self.driver.reset(now);
            self.before = *self.source.counters();
        }
    }

    /// Before the connection is open, the driver has a controller with the same settings.
    fn controller(&self) -> Option<(&Driver, &AnyController)> {
        Some((&self.driver, self.source.controller().unwrap_or(&self.driver.controller)))
    }

    fn finish(mut self: Box<Self>, end: u64, _: Clock, record: &mut FlowRecord) {
        let since = self.source.counters().since(&self.before);
        self.driver.counters.retransmitted = saturate32(to_index(since.pkt_retrans));
        self.driver.counters.timeouts = saturate32(to_index(since.timeouts));
        self.driver.events = self.source.record().cloned().map(Box::new);
        self.driver.finish(end, record);
    }
}

impl Writable for UdtFlow {
    fn open(&mut self) {
        (self.open, self.left) = (true, 0);
    }

    fn make_available(&mut self, net: &mut Net, now: u64, packets: u64, _: Option<Idle>) -> u64 {
        let payload = u64::from(self.config.packet_size - UDT_HEADERS);
        let left = packets.saturating_mul(payload).saturating_sub(self.written);
        let (left, available) = match packets {
            u64::MAX => (u64::MAX, u64::MAX),
            _ => (left, (self.written + left) / payload),
        };
        self.left = left;
        self.send(net, now, SOURCE);
        available
    }

    fn acknowledged(&self) -> u64 {
        let payload = u64::from(self.config.packet_size - UDT_HEADERS);
        (self.written - self.source.unacknowledged()) / payload
    }
}

/// Reads all available data.
fn read(connection: &mut Connection, now: Time) {
    while let Ok(count @ 1..) = connection.peek().map(<[u8]>::len) {
        connection.consume(now, count);
    }
}

fn address(end: usize) -> SocketAddr {
    let host = if end == SINK { 1 } else { 2 };
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), PORTS[1 - end])
}

/// The contents of a datagram in flight.
enum Datagram {
    /// The header and the length of the datagram in bytes.
    Data([u8; HEADER], u16),
    Control(Box<[u8]>),
}

impl Default for Datagram {
    /// An empty datagram.
    fn default() -> Self {
        Datagram::Control(Box::default())
    }
}

impl Datagram {
    fn new(datagram: &[u8]) -> Self {
        match datagram.first_chunk() {
            Some(header) if header[0] & CONTROL == 0 => {
                Datagram::Data(*header, saturate16(datagram.len()))
            }
            _ => Datagram::Control(datagram.into()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Datagram::Data(_, length) => usize::from(*length),
            Datagram::Control(bytes) => bytes.len(),
        }
    }
}
