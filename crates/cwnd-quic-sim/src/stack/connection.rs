//! Both ends of a connection. Compiled for each stack.

use super::application::{Application, Applications};
use super::observed::{Observing, Shared, Source};
use super::session::ResetKey;
use super::{keys, proto};
use crate::acks::Acks;
use crate::frames::{Frame, frames, packets};
use crate::ranges::Ranges;
use crate::seed::{Identifiers, bytes};
use crate::sender::{Stream, streams};
use crate::time::{instant, time};
use bytes::{Bytes, BytesMut};
use cwnd::{Limit, Output, Rate, Settings, Time};
use cwnd_quic::{Controllers, Recordings};
use cwnd_sim::QuicFlow;
use cwnd_sim::datagrams::{Codepoint, Datagram, Datagrams, End, Feedback};
use cwnd_sim::network::{Quic, own_name};
use cwnd_sim::record::{Closed, FlowRecord, PacketKind};
use cwnd_sim::rng::Rng;
use proto::{
    AckFrequencyConfig, ClientConfig, ConnectionError, ConnectionHandle, ConnectionId,
    ConnectionIdGenerator, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig, Event,
    IdleTimeout, MtuDiscoveryConfig, ServerConfig, Side, StreamEvent, StreamId, TransportConfig,
    VarInt,
};
use std::collections::{BTreeMap, VecDeque};
use std::iter::once;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of the IP and UDP headers.
const IP_UDP: usize = 28;
/// Full packets that are written ahead of the transmission at least: a packet is filled, and the
/// stack never takes the sender for one without data.
const AHEAD: u64 = 2;
/// Data is written in this part of the window: the stacks search a list of what was written.
const PART: u64 = 16;
/// The ratio of the send buffer to a stream's window in both stacks.
const SEND_WINDOW: u64 = 8;
/// Bytes of the identifier by which a client addresses a server first.
const FIRST_CID: usize = 20;
/// UDP payloads that an end accepts by default.
const ACCEPTED: u16 = 1472;
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Returns the connection of a flow.
pub(crate) fn connect(flow: QuicFlow) -> Result<Connection, String> {
    let quic = flow.quic;
    let recordings = Recordings::new();
    let make = match (flow.controller, own_name(&quic.controller)) {
        (Some(make), _) => {
            let seed = Rng::new(flow.seed, "law", flow.index as u64).bits();
            let mut controllers = Controllers::from(make).seed(seed);
            if flow.record_events {
                controllers = controllers.record(&recordings);
            }
            Source::ours(controllers)?
        }
        (None, Some(name)) => Source::own(name)?,
        (None, None) => return Err(format!("no controller {}", quic.controller)),
    };
    let configs = [transport_config(quic)?, transport_config(quic)?];
    let rng = Rng::new(flow.seed, "quic", flow.index as u64);
    open(quic, flow.start, configs, make, recordings, rng)
}

/// Returns the transport configuration of an end.
pub(super) type Transport<'a> = dyn Fn(Side) -> TransportConfig + Sync + 'a;

/// Returns the connection of a flow whose ends have these transport configurations.
pub(super) fn connect_with(flow: QuicFlow, config: &Transport<'_>) -> Result<Connection, String> {
    let quic = flow.quic;
    // A factory cannot be read from a configuration: a first connection calls it.
    let client = Arc::new(config(Side::Client));
    let rng = Rng::new(flow.seed, "quic", flow.index as u64);
    let mut first = Peer::new(quic, None, &mut rng.clone())?;
    first.open(flow.start, client.clone(), [0; FIRST_CID])?;
    let made = first.connection.as_ref().and_then(|(_, made)| super::congestion(made));
    let make = Source::Made(made.ok_or("the connection has no controller")?);
    drop(first);
    let client = Arc::into_inner(client).ok_or("the stack keeps its configuration")?;
    open(quic, flow.start, [client, config(Side::Server)], make, Recordings::new(), rng)
}

/// Opens a connection whose client has a controller of `make`.
fn open(
    quic: &Quic,
    start: Time,
    [mut client, server]: [TransportConfig; 2],
    make: Source,
    recordings: Recordings,
    mut rng: Rng,
) -> Result<Connection, String> {
    let controllers = Arc::new(Observing::new(make));
    client.congestion_controller_factory(controllers.clone());
    let mut source = Peer::new(quic, None, &mut rng)?;
    let sink = Peer::new(quic, Some(Arc::new(server)), &mut rng)?;
    source.open(start, Arc::new(client), bytes::<FIRST_CID>(&mut rng))?;
    let shared = controllers.made().ok_or("the connection has no controller")?;
    let settings = recordings.to_vec().first().map(|own| own.settings);
    Ok(Connection {
        settings,
        ends: [source, sink],
        shared,
        recordings,
        streams: streams(quic.stream_bytes()),
        ids: Vec::new(),
        applications: [None, None],
        open: false,
        acks: None,
        received: BTreeMap::new(),
        arrived: [0; 2],
        retransmissions: 0,
        complete: false,
        closed: None,
        before: [0; 3],
        buffer: Vec::new(),
    })
}

/// Returns the transport configuration of an end.
pub fn transport_config(quic: &Quic) -> Result<TransportConfig, String> {
    let integer = |value: u64| VarInt::from_u64(value).map_err(|error| error.to_string());
    let mtu = |bytes: u32| u16::try_from(bytes).map_err(|error| error.to_string());
    let mut config = TransportConfig::default();
    // Unacknowledged data of all streams shares the buffer.
    let buffer = quic.receive_window.saturating_mul(SEND_WINDOW);
    let buffer = buffer.max(quic.admitted().saturating_mul(2));
    let idle = Duration::from_nanos(quic.idle_timeout.as_nanos());
    let idle = IdleTimeout::try_from(idle).map_err(|error| error.to_string())?;
    let discovery = quic.mtu_discovery.then(|| -> Result<_, String> {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(mtu(quic.largest_mtu())?);
        Ok(discovery)
    });
    config
        .max_idle_timeout(Some(idle))
        .stream_receive_window(integer(quic.receive_window)?)
        .send_window(buffer)
        .initial_mtu(mtu(quic.mtu)?)
        .mtu_discovery_config(discovery.transpose()?);
    if let Some(packets) = quic.ack_frequency {
        let mut frequency = AckFrequencyConfig::default();
        frequency.ack_eliciting_threshold(VarInt::from_u32(packets));
        config.ack_frequency_config(Some(frequency));
    }
    Ok(config)
}

/// Returns the largest UDP payload that an end accepts, in bytes.
pub fn accepted(quic: &Quic) -> u16 {
    u16::try_from(quic.mtu).unwrap_or(u16::MAX).max(ACCEPTED)
}

fn address(end: End) -> SocketAddr {
    let (host, port) = if end == End::Sink { (1, 443) } else { (2, 49_152) };
    SocketAddr::new(Ipv4Addr::new(10, 0, 0, host).into(), port)
}

struct Cids(Identifiers);

impl ConnectionIdGenerator for Cids {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.next())
    }

    fn cid_len(&self) -> usize {
        crate::seed::CID
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// An end of a connection.
struct Peer {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, proto::Connection)>,
    /// Answers to datagrams that belong to no connection.
    replies: VecDeque<BytesMut>,
}

impl Peer {
    /// Returns an end, with a transport configuration if it is a server.
    fn new(
        quic: &Quic,
        transport: Option<Arc<TransportConfig>>,
        rng: &mut Rng,
    ) -> Result<Self, String> {
        let mut config = EndpointConfig::new(Arc::new(ResetKey(rng.bits())));
        let identifiers = Identifiers::new(rng);
        super::set_cid_generator(&mut config, move || Box::new(Cids(identifiers.clone())));
        config.max_udp_payload_size(accepted(quic)).map_err(|error| error.to_string())?;
        config.rng_seed(Some(bytes(rng)));
        let server = transport.map(|transport| {
            let mut server = ServerConfig::new(
                Arc::new(keys::Plain::default()),
                Arc::new(keys::Plain::default()),
            );
            server.transport_config(transport);
            Arc::new(server)
        });
        let endpoint = super::endpoint(Arc::new(config), server);
        Ok(Peer { endpoint, connection: None, replies: VecDeque::new() })
    }

    /// Opens a connection of a client. `first` addresses the server in its first packets.
    fn open(
        &mut self,
        start: Time,
        transport: Arc<TransportConfig>,
        first: [u8; FIRST_CID],
    ) -> Result<(), String> {
        let mut config = ClientConfig::new(Arc::new(keys::Plain::default()));
        config.transport_config(transport);
        let first = ConnectionId::new(&first);
        config.initial_dst_cid_provider(Arc::new(move || first));
        let opened = self.endpoint.connect(instant(start), config, address(End::Sink), "localhost");
        self.connection = Some(opened.map_err(|error| error.to_string())?);
        Ok(())
    }

    fn handle(
        &mut self,
        now: Instant,
        from: SocketAddr,
        ecn: Option<EcnCodepoint>,
        data: BytesMut,
    ) {
        let mut reply = Vec::new();
        match super::handle(&mut self.endpoint, now, from, ecn, data, &mut reply) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                match self.endpoint.accept(incoming, now, &mut reply, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(error) => {
                        let size = error.response.map_or(0, |transmit| transmit.size);
                        self.reply(&reply[..size]);
                    }
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(transmit)) => self.reply(&reply[..transmit.size]),
            None => {}
        }
        self.route();
    }

    fn reply(&mut self, datagram: &[u8]) {
        if !datagram.is_empty() {
            self.replies.push_back(datagram.into());
        }
    }

    /// Passes events between the connection and its endpoint.
    fn route(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
    }
}

/// Both ends of a connection.
pub(crate) struct Connection {
    ends: [Peer; 2],
    /// The source's controller.
    shared: Shared,
    recordings: Recordings,
    /// The data of each stream by its identifier; the open streams without an application.
    streams: BTreeMap<u64, Stream>,
    ids: Vec<StreamId>,
    /// The applications of the ends.
    applications: [Option<Box<dyn Application>>; 2],
    /// Whether an application may write more.
    open: bool,
    /// What is acknowledged, for an application.
    acks: Option<Acks>,
    /// What the sink has received of each stream.
    received: BTreeMap<u64, Ranges>,
    /// Packets with new data, and their new bytes.
    arrived: [u64; 2],
    /// Packets that repeat data.
    retransmissions: u64,
    /// Whether all data is acknowledged and there will be no more.
    complete: bool,
    closed: Option<Closed>,
    /// Retransmissions, timeouts and reductions by marks at the end of the warm-up.
    before: [u64; 3],
    buffer: Vec<u8>,
    /// The settings of a recorded controller.
    settings: Option<Settings>,
}

fn side(end: End) -> usize {
    usize::from(end == End::Sink)
}

impl Connection {
    /// Leaves the ends to applications, before the start.
    pub(super) fn run(&mut self, make: &Applications<'_>) {
        self.applications = [Side::Client, Side::Server].map(make);
        if self.has_client() {
            self.streams.clear();
        }
    }

    /// Whether the client has an application.
    fn has_client(&self) -> bool {
        self.applications[0].is_some()
    }

    /// Notes that the application of the client has closed the connection.
    fn closed_by_application(&mut self, end: End) {
        if let (End::Source, Some((_, connection))) = (end, &self.ends[0].connection) {
            let closed = self.has_client() && self.closed.is_none() && connection.is_closed();
            self.complete |= closed;
        }
    }

    /// Handles the events of an end.
    fn handle_events(&mut self, now: Time, end: End) {
        let has_client = self.has_client();
        loop {
            let Some((_, connection)) = &mut self.ends[side(end)].connection else { return };
            let Some(event) = connection.poll() else { break };
            let lost = match &event {
                Event::ConnectionLost { reason } => Some(reason.clone()),
                _ => None,
            };
            if let Some(reason) = lost.filter(|_| !self.complete) {
                if has_client && is_end(&reason) {
                    self.complete = true;
                } else {
                    let end = if end == End::Source { "sender" } else { "receiver" };
                    let reason = format!("{end}: {reason}");
                    self.closed.get_or_insert(Closed { at: now.as_secs(), reason });
                }
            }
            if let Some(application) = &mut self.applications[side(end)] {
                application.handle(instant(now), Some(event), connection);
                continue;
            }
            match (event, end) {
                (Event::Connected, End::Source) => {
                    let open = |_: &Stream| connection.streams().open(Dir::Uni);
                    self.ids = self.streams.values().map_while(open).collect();
                }
                (Event::Stream(StreamEvent::Finished { id }), End::Source) => {
                    self.acknowledged(now, id);
                }
                (Event::Stream(StreamEvent::Opened { dir }), End::Sink) => {
                    while let Some(id) = connection.streams().accept(dir) {
                        read(connection, id);
                    }
                }
                (Event::Stream(StreamEvent::Readable { id }), End::Sink) => read(connection, id),
                _ => {}
            }
        }
        self.closed_by_application(end);
        self.ends[side(end)].route();
    }

    /// All data of a stream is acknowledged. The connection is closed after the last one.
    fn acknowledged(&mut self, now: Time, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&VarInt::from(id).into_inner()) {
            stream.acknowledged = true;
        }
        self.complete = self.streams.values().all(|stream| stream.acknowledged);
        if let (true, Some((_, connection))) = (self.complete, &mut self.ends[0].connection) {
            connection.close(instant(now), VarInt::from_u32(0), Bytes::new());
        }
    }

    /// Writes data if less than [`AHEAD`] packets are left to send.
    fn write(&mut self) {
        let Some((_, connection)) = &mut self.ends[0].connection else { return };
        let packet = u64::from(connection.current_mtu());
        let parts = PART * self.ids.len() as u64;
        for (stream, &id) in self.streams.values_mut().zip(&self.ids) {
            while stream.left > 0 && stream.unsent() < AHEAD * packet {
                let part = self.shared.lock().window() / parts;
                let most = stream.left.min(part.max(packet)).min(ZEROS.len() as u64);
                let zeros = Bytes::from_static(&ZEROS[..usize::try_from(most).unwrap_or(0)]);
                let written = super::write(&mut connection.send_stream(id), zeros);
                stream.blocked = written < most;
                stream.written += written;
                if stream.left != u64::MAX {
                    stream.left -= written;
                }
                if stream.blocked {
                    break;
                }
            }
            if stream.left == 0 && !self.open && !stream.finished {
                stream.finished = true;
                // A connection that was closed has no streams.
                let _ = connection.send_stream(id).finish();
            }
        }
    }

    /// Returns the bytes of data in a datagram of the source, and counts retransmissions.
    fn transmitted(&mut self, datagram: &[u8]) -> Option<u64> {
        let (mut data, mut again) = (None, false);
        let streams = &mut self.streams;
        frames(datagram, |_, frame| {
            let Frame::Stream(frame) = frame else { return };
            let bytes = frame.range.end - frame.range.start;
            if bytes > 0 {
                data = Some(data.unwrap_or(0) + bytes);
                again |= streams.entry(frame.id).or_default().transmitted(frame.range);
            }
        });
        self.retransmissions += u64::from(again);
        data
    }
}

/// Whether an application ended a connection as intended.
fn is_end(reason: &ConnectionError) -> bool {
    match reason {
        ConnectionError::LocallyClosed => true,
        ConnectionError::ApplicationClosed(close) => close.error_code == VarInt::from_u32(0),
        _ => false,
    }
}

/// Reads all available data of a stream, in order.
fn read(connection: &mut proto::Connection, id: StreamId) {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return };
    while let Ok(Some(_)) = chunks.next(usize::MAX) {}
    // The connection is polled in any case.
    let _ = chunks.finalize();
}

impl Datagrams for Connection {
    type Message = BytesMut;

    fn stop(&mut self, _: Time) {
        self.open = false;
        self.streams.values_mut().for_each(|stream| stream.left = 0);
    }

    fn receive(&mut self, now: Time, end: End, ecn: Codepoint, message: BytesMut) -> u64 {
        let mut new = 0;
        if end == End::Sink {
            let received = &mut self.received;
            frames(&message, |_, frame| {
                let Frame::Stream(frame) = frame else { return };
                new += received.entry(frame.id).or_default().add(frame.range);
            });
            self.arrived[0] += u64::from(new > 0);
            self.arrived[1] += new;
        } else if let Some(acks) = &mut self.acks {
            acks.received(&message);
        }
        let ecn = match ecn {
            Codepoint::NotEct => None,
            Codepoint::Ect0 => Some(EcnCodepoint::Ect0),
            Codepoint::Ce => Some(EcnCodepoint::Ce),
        };
        let from = address(if end == End::Sink { End::Source } else { End::Sink });
        self.ends[side(end)].handle(instant(now), from, ecn, message);
        self.handle_events(now, end);
        new
    }

    fn wake(&mut self, now: Time, end: End) {
        if let Some((_, connection)) = &mut self.ends[side(end)].connection {
            connection.handle_timeout(instant(now));
            if let Some(application) = &mut self.applications[side(end)]
                && !connection.is_closed()
                && application.timeout().is_some_and(|due| due <= instant(now))
            {
                application.handle(instant(now), None, connection);
            }
        }
        self.handle_events(now, end);
    }

    fn poll(&mut self, now: Time, end: End) -> Option<Datagram<BytesMut>> {
        if end == End::Source {
            self.write();
        }
        let peer = &mut self.ends[side(end)];
        if let Some(reply) = peer.replies.pop_front() {
            let size = IP_UDP + reply.len();
            return Some(Datagram { size, data: None, ecn: Codepoint::NotEct, message: reply });
        }
        let (_, connection) = peer.connection.as_mut()?;
        self.buffer.clear();
        let transmit = super::poll_transmit(connection, instant(now), &mut self.buffer)?;
        let message = BytesMut::from(&self.buffer[..transmit.size]);
        let data = if end == End::Source { self.transmitted(&message) } else { None };
        if let (Some(_), Some(acks)) = (data, &mut self.acks) {
            acks.sent(&message);
        }
        Some(Datagram {
            size: IP_UDP + message.len(),
            data,
            ecn: match transmit.ecn {
                Some(EcnCodepoint::Ect0) => Codepoint::Ect0,
                _ => Codepoint::NotEct,
            },
            message,
        })
    }

    fn deadline(&mut self, end: End) -> Option<Time> {
        let (_, connection) = self.ends[side(end)].connection.as_mut()?;
        let application = self.applications[side(end)].as_ref().filter(|_| !connection.is_closed());
        let application = application.and_then(|application| application.timeout());
        connection.poll_timeout().into_iter().chain(application).min().map(time)
    }

    fn feedback(&mut self) -> Feedback {
        let mut observed = self.shared.lock();
        let meter = &mut observed.meter;
        Feedback { rtt: meter.rtt.take(), cut: meter.cuts.pop_front(), complete: self.complete }
    }

    fn limit(&self) -> Limit {
        let full = self.shared.lock().is_full();
        // What an application has written is not known.
        if self.has_client() {
            return if full { Limit::Window } else { Limit::Application };
        }
        let unsent = self.streams.values().any(|stream| stream.unsent() > 0);
        if !unsent {
            let blocked = self.streams.values().any(|stream| stream.blocked);
            return if blocked { Limit::Receiver } else { Limit::Application };
        }
        if full { Limit::Window } else { Limit::Pacing }
    }

    fn output(&self) -> Output {
        let observed = self.shared.lock();
        let mut output = Output::window(observed.meter.packets(observed.window()));
        let packet = observed.meter.packet;
        output.pace = observed.pace().map(|bytes| Rate::from_bytes(bytes as f64, packet));
        output
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.shared.lock().gauges(emit);
    }

    fn contents(&mut self, received: bool, message: &BytesMut) -> Option<PacketKind> {
        let kind = if received { PacketKind::QuicReceived } else { PacketKind::QuicSent };
        Some(kind(packets(message)))
    }

    fn settings(&self) -> Option<Settings> {
        self.settings
    }

    fn total(&self) -> Option<u64> {
        if self.has_client() {
            return self.complete.then_some(self.arrived[0]);
        }
        let written: u64 = self.streams.values().map(|stream| stream.written).sum();
        let ended = !self.open && self.streams.values().all(|stream| stream.left == 0);
        (ended && self.arrived[1] == written).then_some(self.arrived[0])
    }

    fn open(&mut self) {
        self.open = true;
        self.acks = Some(Acks::default());
        self.streams = streams(once(0));
    }

    fn make_available(&mut self, bytes: u64) -> u64 {
        let Some(stream) = self.streams.values_mut().next() else { return 0 };
        if bytes == u64::MAX {
            stream.left = u64::MAX;
            return u64::MAX;
        }
        stream.left = bytes.saturating_sub(stream.written);
        stream.written + stream.left
    }

    fn acknowledged(&self) -> u64 {
        self.acks.as_ref().map_or(0, Acks::next)
    }

    fn begin_measurement(&mut self) {
        let observed = self.shared.lock();
        self.before = [self.retransmissions, observed.meter.timeouts, observed.meter.mark_cuts];
    }

    fn finish(self, record: &mut FlowRecord) {
        let observed = self.shared.lock();
        record.retransmissions = self.retransmissions - self.before[0];
        record.timeouts = observed.meter.timeouts - self.before[1];
        record.ecn_cuts = observed.meter.mark_cuts - self.before[2];
        record.events = self.recordings.to_vec().into_iter().next().map(|own| own.record);
        record.closed = self.closed;
    }
}
