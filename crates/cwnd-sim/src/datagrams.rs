//! Protocols of datagrams: the interface of a protocol, whose two ends are one state machine, and
//! its endpoint in the network.
//!
//! The simulated network carries packets of the datagrams' sizes. Their messages are passed outside
//! the network, in order.

use crate::application::with_application;
use crate::cast::saturate16;
use crate::clock::Clock;
use crate::driver::{Meter, Payload};
use crate::endpoint::{Endpoint, Idle, Progress, Writable};
use crate::engine::net::{Net, Place};
use crate::engine::schedule::NONE;
use crate::network::{Flow, PacketChange, Traffic};
use crate::packet::{Contents, Packet, SINK, SOURCE, flags};
use crate::record::{FlowRecord, PacketKind};
use cwnd::{Cut, Dur, Limit, Needs, Output, Settings, Time};
use cwnd_udt::packet::IP_UDP_HEADERS;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Sends the data.
    Source,
    /// Receives the data.
    Sink,
}

impl End {
    fn of(side: usize) -> Self {
        if side == SINK { End::Sink } else { End::Source }
    }

    fn side(self) -> usize {
        if self == End::Sink { SINK } else { SOURCE }
    }
}

/// The ECN field of an IP packet (RFC 3168). Senders of ECT(1) are not simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codepoint {
    /// Not ECN-capable.
    NotEct,
    /// ECT(0): ECN-capable.
    Ect0,
    /// Congestion experienced.
    Ce,
}

/// A datagram to send.
#[derive(Clone, Debug)]
pub struct Datagram<M> {
    /// Bytes on the wire, headers included.
    pub size: usize,
    /// Bytes of the source's data in it, retransmissions included; `None` without data.
    pub data: Option<u64>,
    /// The ECN field.
    pub ecn: Codepoint,
    /// What the other end receives.
    pub message: M,
}

/// What the source has learned since the last call of [`Datagrams::feedback`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Feedback {
    /// The last round-trip time sample.
    pub rtt: Option<Dur>,
    /// A reduction of the window or the rate.
    pub cut: Option<Cut>,
    /// Whether all data is acknowledged and there will be no more.
    pub complete: bool,
}

/// The two ends of a connection, as a state machine without I/O. An end reacts only to the
/// datagrams that it receives, to its deadline, and the source to the stop of the flow. After each
/// call, the end is polled for its datagrams.
pub trait Datagrams: Send + 'static {
    /// The contents of a datagram in flight. Those of lost datagrams are dropped.
    type Message: Clone + Default + Send;

    /// Returns a copy of the connection; `None` if the protocol cannot be copied.
    fn fork(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Ends the data: the source sends no new data.
    fn stop(&mut self, now: Time);

    /// Handles a datagram at `end`. Returns the bytes of data that arrived for the first time.
    fn receive(&mut self, now: Time, end: End, ecn: Codepoint, message: Self::Message) -> u64;

    /// Handles the deadline of `end`.
    fn wake(&mut self, now: Time, end: End);

    /// Returns the next datagram that `end` sends at `now`.
    fn poll(&mut self, now: Time, end: End) -> Option<Datagram<Self::Message>>;

    /// Time of the next action of `end` after it was polled; `None` without one. A time that has
    /// passed is a nanosecond later.
    fn deadline(&mut self, end: End) -> Option<Time>;

    /// Takes the feedback of the source.
    fn feedback(&mut self) -> Feedback;

    /// What limits the source after it was polled.
    fn limit(&self) -> Limit;

    /// The window, and the pacing rate if there is one, of the source.
    fn output(&self) -> Output;

    /// Emits the controller's own variables, always the same ones.
    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64));

    /// Returns the contents of a datagram for the record of the source's packets: one that the
    /// source sends or, if `received`, one that it is about to receive. It is called for each of
    /// them, in order, if packets are recorded. `None`: the network's view of it.
    fn contents(&mut self, _received: bool, _message: &Self::Message) -> Option<PacketKind> {
        None
    }

    /// What the controller needs; nothing if its driver is not cwnd's.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The controller's settings if the protocol determines them and the events are recorded.
    fn settings(&self) -> Option<Settings> {
        None
    }

    /// Data packets of the whole flow; `None` if there may be more than now.
    fn total(&self) -> Option<u64>;

    /// Leaves the data to an application, before the start: there is none until it is
    /// [available](Self::make_available).
    fn open(&mut self);

    /// Makes the first `units` packets of UDT, or bytes of QUIC, available; [`u64::MAX`] for no end.
    /// A smaller number than before withdraws data that has not been written. Returns the number
    /// available then.
    fn make_available(&mut self, units: u64) -> u64;

    /// Packets of UDT, or bytes of QUIC, from the start up to the first unacknowledged one.
    fn acknowledged(&self) -> u64;

    /// The warm-up ends: [`finish`](Self::finish) counts from here.
    fn begin_measurement(&mut self);

    /// Writes what the protocol alone knows: retransmissions, timeouts, reductions in response to
    /// marks, and the controller's events.
    fn finish(self, record: &mut FlowRecord);
}

/// A connection of any protocol, to be placed in a network.
pub struct Connection(Box<Placement>);

/// Places a connection in a network. The number is that of the first hop of the return route.
type Placement = dyn FnOnce(&Flow, Place, u32, u64) -> Box<dyn Endpoint>;

impl Connection {
    /// Wraps the connection of a protocol.
    pub fn new(protocol: impl Datagrams) -> Self {
        Connection(Box::new(|flow, place, back, seed| {
            let endpoint = DatagramFlow::new(protocol, flow, place, back);
            with_application(flow, endpoint, place, seed)
        }))
    }

    /// Returns the endpoints. `back` is the first hop of the return route.
    pub(crate) fn endpoint(
        self,
        flow: &Flow,
        place: Place,
        back: u32,
        seed: u64,
    ) -> Box<dyn Endpoint> {
        self.0(flow, place, back, seed)
    }
}

/// The endpoints of a flow whose protocol sends datagrams.
pub(crate) struct DatagramFlow<P: Datagrams> {
    protocol: P,
    clock: Clock,
    /// The first hops of the forward route and the return route.
    hops: [u32; 2],
    flow: u32,
    timer: usize,
    /// Time of the next timer action of each end.
    due: [u64; 2],
    /// Datagrams in flight from each end.
    in_flight: [Contents<P::Message>; 2],
    sent: Payload,
    /// Data that arrived for the first time, and the time of the last of these arrivals.
    arrived: Payload,
    last_new: u64,
    /// Data packets that arrived.
    received: u64,
    /// CE-marked data packets received since the end of the warm-up.
    marked: u64,
    meter: Meter,
    path_mtu: PathMtu,
}

impl<P: Datagrams> DatagramFlow<P> {
    /// Creates the endpoints of `flow`. `back` is the first hop of the return route.
    pub(crate) fn new(protocol: P, flow: &Flow, place: Place, back: u32) -> Self {
        let Place { clock, flow: number, hop, timer, reordered, .. } = place;
        DatagramFlow {
            protocol,
            clock,
            hops: [hop, back],
            flow: number,
            timer,
            due: [NONE; 2],
            in_flight: [(); 2].map(|()| Contents::new(reordered)),
            sent: Payload::default(),
            arrived: Payload::default(),
            last_new: 0,
            received: 0,
            marked: 0,
            meter: Meter::new(clock),
            path_mtu: PathMtu::new(&flow.traffic, clock),
        }
    }

    /// Takes over new measurements of the source.
    #[inline(always)]
    fn measure(&mut self, now: u64) {
        let Feedback { rtt, cut, complete } = self.protocol.feedback();
        if let Some(rtt) = rtt {
            self.meter.measured(self.clock.ticks(rtt.as_nanos()));
        }
        self.meter.record_cut(now, cut);
        if complete && self.meter.acknowledged == NONE {
            self.meter.complete(now);
        }
    }

    /// Sends all datagrams that an end may send at `now` and arms its timer.
    fn send(&mut self, net: &mut Net, now: u64, end: End) {
        let (at, side) = (self.clock.time(now), end.side());
        while let Some(datagram) = self.protocol.poll(at, end) {
            self.transmit(net, now, end, datagram);
        }
        if end == End::Source {
            self.meter.limited_by(now, self.protocol.limit());
        }
        let next = self.protocol.deadline(end);
        let next = next.map_or(NONE, |at| self.clock.ticks(at.as_nanos()));
        self.due[side] = next.max(now + self.clock.ticks(1));
        if next != NONE {
            net.arm(self.timer + side, self.due[side]);
        }
    }

    /// Passes a datagram to the network.
    #[inline(always)]
    fn transmit(&mut self, net: &mut Net, now: u64, end: End, datagram: Datagram<P::Message>) {
        let Datagram { size, data, ecn, message } = datagram;
        let mut bits = match (end, data) {
            (End::Source, Some(bytes)) => {
                self.sent.packets += 1;
                self.sent.bytes += bytes;
                0
            }
            (End::Source, None) => flags::CONTROL,
            (End::Sink, _) => flags::ACK,
        };
        if ecn == Codepoint::Ect0 {
            bits |= flags::ECT;
        }
        let side = end.side();
        let recorded = end == End::Source && net.records_packets();
        let contents = recorded.then(|| self.protocol.contents(false, &message)).flatten();
        let wire = saturate16(size);
        if size > self.path_mtu.at(now) {
            let packet = Packet::new(0, self.hops[side], 0, wire, bits);
            net.record_departure(now, packet);
            net.count_loss(now, packet);
        } else {
            let number = self.in_flight[side].put(message);
            net.send(now, Packet::new(0, self.hops[side], number, wire, bits));
        }
        net.describe(self.flow, contents);
    }
}

/// The largest datagram that the path of a flow carries.
#[derive(Clone)]
struct PathMtu {
    /// Times of changes in ticks, and bytes on the wire from then on.
    changes: Vec<(u64, usize)>,
}

impl PathMtu {
    fn new(traffic: &Traffic, clock: Clock) -> Self {
        let (changes, below) = match traffic {
            Traffic::Quic(quic) => (&quic.packet_changes[..], IP_UDP_HEADERS),
            _ => (&[][..], 0),
        };
        let change = |change: &PacketChange| {
            (clock.ticks(change.at.as_nanos()), below + change.packet as usize)
        };
        PathMtu { changes: changes.iter().map(change).collect() }
    }

    /// The flow starts at `now`: the times of the changes count from there.
    fn start(&mut self, now: u64) {
        self.changes.iter_mut().for_each(|change| change.0 += now);
    }

    /// Returns the bytes at `now`. One end may be ahead of the other in time.
    #[inline(always)]
    fn at(&self, now: u64) -> usize {
        let last = self.changes.iter().rev().find(|change| change.0 <= now);
        last.map_or(usize::MAX, |change| change.1)
    }
}

impl<P: Datagrams> Writable for DatagramFlow<P> {
    fn copy(&self) -> Option<Self> {
        let (in_flight, meter, path_mtu) =
            (self.in_flight.clone(), self.meter.clone(), self.path_mtu.clone());
        Some(DatagramFlow { protocol: self.protocol.fork()?, in_flight, meter, path_mtu, ..*self })
    }

    fn open(&mut self) {
        self.protocol.open();
    }

    fn make_available(&mut self, net: &mut Net, now: u64, units: u64, _: Option<Idle>) -> u64 {
        let available = self.protocol.make_available(units);
        self.send(net, now, End::Source);
        available
    }

    fn acknowledged(&self) -> u64 {
        self.protocol.acknowledged()
    }
}

impl<P: Datagrams> Endpoint for DatagramFlow<P> {
    fn fork(&self) -> Option<Box<dyn Endpoint>> {
        Some(Box::new(self.copy()?))
    }

    fn start(&mut self, net: &mut Net, now: u64) {
        self.meter.start(now);
        self.path_mtu.start(now);
        self.send(net, now, End::Source);
    }

    fn stop(&mut self, net: &mut Net, now: u64) {
        self.protocol.stop(self.clock.time(now));
        // Without data in flight no acknowledgement completes the transfer.
        self.measure(now);
        self.send(net, now, End::Source);
    }

    fn wake(&mut self, net: &mut Net, now: u64, side: usize) {
        if now < self.due[side] {
            // The timer was armed for an earlier deadline.
            if self.due[side] != NONE {
                net.arm(self.timer + side, self.due[side]);
            }
            return;
        }
        let end = End::of(side);
        self.protocol.wake(self.clock.time(now), end);
        if end == End::Source {
            self.measure(now);
        }
        self.send(net, now, end);
    }

    fn receive(&mut self, net: &mut Net, now: u64, packet: Packet) -> bool {
        let (side, bits) = (packet.side(), packet.flags());
        let Some(message) = self.in_flight[1 - side].take(packet.aux()) else { return false };
        let ecn = match bits & (flags::ECT | flags::CE) {
            0 => Codepoint::NotEct,
            flags::ECT => Codepoint::Ect0,
            _ => Codepoint::Ce,
        };
        let end = End::of(side);
        if end == End::Source && net.records_packets() {
            let contents = self.protocol.contents(true, &message);
            net.describe(self.flow, contents);
        }
        let new = self.protocol.receive(self.clock.time(now), end, ecn, message);
        if bits & flags::DATALESS == 0 {
            self.received += 1;
            self.marked += u64::from(ecn == Codepoint::Ce);
        }
        if new > 0 {
            self.arrived.packets += 1;
            self.arrived.bytes += new;
            self.last_new = now;
        }
        if end == End::Source {
            self.measure(now);
        }
        self.send(net, now, end);
        false
    }

    fn progress(&self) -> Progress {
        Progress {
            sent: self.sent,
            total: self.protocol.total(),
            arrived: self.arrived,
            received: self.received,
            last_new: self.last_new,
            marked: self.marked,
        }
    }

    fn begin_measurement(&mut self, now: u64, side: usize) {
        if side == SINK {
            self.marked = 0;
        } else {
            self.meter.reset(now);
            self.protocol.begin_measurement();
        }
    }

    fn measured(&self) -> Option<(&Meter, Output)> {
        Some((&self.meter, self.protocol.output()))
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.protocol.gauges(emit);
    }

    fn needs(&self) -> Needs {
        self.protocol.needs()
    }

    fn settings(&self) -> Option<Settings> {
        self.protocol.settings()
    }

    fn finish(self: Box<Self>, end: u64, _: Clock, record: &mut FlowRecord) {
        self.meter.finish(end, record);
        self.protocol.finish(record);
    }
}
