//! Writes the qlog of a flow from its record.

use super::{
    APPLICATION_LIMITED, CommonFields, Data, Event, FORMAT, Frame, Header, LOST, METRICS,
    PARAMETERS, PERSISTENT_CONGESTION, PacketHeader, RECEIVED, RECOVERY, Raw, SENT, SEPARATOR,
    STATE, Trace, VERSION, VantagePoint,
};
use crate::cast::{saturate16, whole};
use crate::network::{Network, Traffic};
use crate::record::{FlowRecord, PacketKind, PacketRecord, QuicKind, QuicPacket};
use cwnd::laws::AnyLaw;
use cwnd::record::Entry;
use cwnd::{AnyController, Controller, Dur, Limit, Lost, Packets, Rtt, Time, Windowed};
use cwnd_udt::packet::IP_UDP_HEADERS;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

/// Writes the qlog of flow number `flow` to `out`. `record` has its events and packets.
/// `controller` is new, with the flow's specification and settings: its replay shows the states of
/// a window law, which are not written without it.
///
/// # Errors
/// When `out` cannot be written to, or the flow is a source without feedback.
pub fn write(
    out: impl Write,
    network: &Network,
    flow: usize,
    record: &FlowRecord,
    controller: Option<AnyController>,
) -> io::Result<()> {
    let of_network = &network.flows[flow];
    let (protocol, payload, header) = match &*of_network.traffic {
        Traffic::Tcp(tcp) => ("TCP", tcp.packet, tcp.header),
        Traffic::Udt(udt) => ("UDT", udt.packet, udt.header),
        Traffic::Quic(quic) => ("QUIC", quic.mtu, saturate16(IP_UDP_HEADERS).into()),
        Traffic::Cbr { .. } | Traffic::Pareto { .. } => {
            return Err(io::Error::other(format!("{} has no feedback", of_network.name)));
        }
    };
    // The clock of a stack's controller starts with its connection.
    let quic = protocol == "QUIC";
    let epoch = if quic { of_network.start.since(Time::ZERO) } else { Dur::ZERO };
    let mut writer = Writer::new(out, controller, payload, header);
    (writer.quic, writer.epoch) = (quic, epoch);
    writer.record(&Header {
        qlog_version: VERSION.into(),
        qlog_format: FORMAT.into(),
        title: network.name.clone(),
        trace: Trace {
            title: of_network.name.clone(),
            common_fields: CommonFields {
                time_format: "relative".into(),
                protocol_type: vec![protocol.into()],
            },
            vantage_point: VantagePoint { name: "cwnd".into(), kind: "client".into() },
        },
    })?;
    writer.parameters(of_network.start)?;
    let entries = record.events.as_ref().map_or(&[][..], |events| &events.entries);
    let mut packets = record.packets.iter().peekable();
    for entry in entries {
        let at = entry.at + epoch;
        // Of the packets of the same time, those received caused the event, and those sent before it
        // are in its count.
        let sent = sent_before(&entry.event);
        while let Some(packet) = packets.next_if(|packet| {
            let received = !matches!(
                packet.kind,
                PacketKind::Data(_) | PacketKind::Control | PacketKind::QuicSent(_)
            );
            packet.at < at || packet.at == at && (received || writer.sent < sent)
        }) {
            writer.packet(packet)?;
        }
        writer.entry(entry)?;
    }
    packets.try_for_each(|packet| writer.packet(packet))?;
    writer.out.flush()
}

/// The number of packets sent before an event, as far as it tells.
fn sent_before(event: &cwnd::Event) -> u64 {
    match event {
        cwnd::Event::Acked(acked) => acked.sent,
        cwnd::Event::Lost(lost) | cwnd::Event::Timeout(lost) => lost.sent,
        cwnd::Event::Marked(marked) => marked.sent,
        cwnd::Event::Report(report) => report.sent,
        _ => 0,
    }
}

/// A segment that is not acknowledged cumulatively.
struct Segment {
    offset: u64,
    /// The packet number of its last transmission.
    number: u64,
    acked: bool,
}

/// A transmission in flight.
struct Transmission {
    at: Time,
    again: bool,
}

/// A packet number in its space.
type Number = (QuicKind, u64);

/// The metrics that were written last.
#[derive(Clone, Copy, Default)]
struct Metrics {
    congestion_window: Option<u64>,
    bytes_in_flight: Option<u64>,
    ssthresh: Option<u64>,
    pacing_rate: Option<u64>,
    latest_rtt: Option<Dur>,
    min_rtt: Option<Dur>,
    smoothed_rtt: Option<Dur>,
}

struct Writer<W> {
    out: W,
    controller: Option<AnyController>,
    /// Bytes of payload of a packet, and of its headers.
    payload: u32,
    header: u32,
    sent: u64,
    received: u64,
    /// The first segment that is not acknowledged, and those from there on.
    first: u32,
    segments: VecDeque<Segment>,
    /// The offset of the next new segment.
    offset: u64,
    /// By packet number.
    in_flight: BTreeMap<Number, Transmission>,
    /// Transmissions that a report named as lost, with its time.
    reported: (Time, Vec<u64>),
    quic: bool,
    /// The start of the controller's clock.
    epoch: Dur,
    rtt: Option<Rtt>,
    metrics: Metrics,
    limit: Limit,
    state: Option<&'static str>,
}

impl<W: Write> Writer<W> {
    fn new(out: W, controller: Option<AnyController>, payload: u32, header: u32) -> Self {
        Writer {
            out,
            controller,
            payload,
            header,
            sent: 0,
            received: 0,
            first: 0,
            segments: VecDeque::new(),
            offset: 0,
            in_flight: BTreeMap::new(),
            reported: (Time::ZERO, Vec::new()),
            quic: false,
            epoch: Dur::ZERO,
            rtt: None,
            metrics: Metrics::default(),
            limit: Limit::Window,
            state: None,
        }
    }

    fn record(&mut self, record: &impl Serialize) -> io::Result<()> {
        self.out.write_all(&[SEPARATOR])?;
        serde_json::to_writer(&mut self.out, record)?;
        self.out.write_all(b"\n")
    }

    fn event(&mut self, at: Time, name: &'static str, data: Data) -> io::Result<()> {
        self.record(&Event { time: at.as_nanos() as f64 / 1e6, name, data })
    }

    fn bytes(&self, packets: f64) -> Option<u64> {
        packets.is_finite().then(|| Packets::new(packets).as_bytes(self.payload))
    }

    fn parameters(&mut self, at: Time) -> io::Result<()> {
        let window = self.controller.as_ref().map(|controller| controller.output().window.get());
        let data = Data {
            max_datagram_size: Some(u64::from(self.payload)),
            initial_congestion_window: window.and_then(|window| self.bytes(window)),
            ..Data::default()
        };
        self.event(at, PARAMETERS, data)
    }

    fn packet(&mut self, packet: &PacketRecord) -> io::Result<()> {
        let raw = Some(Raw { length: u64::from(packet.size) });
        let (name, number, frames) = match &packet.kind {
            PacketKind::Acknowledgement { next, ranges } => {
                let acked_ranges = next.and_then(|next| self.acknowledge(next, ranges));
                self.received += 1;
                let frame = Frame { frame_type: "ack".into(), acked_ranges, ..Frame::default() };
                (RECEIVED, self.received - 1, Some(vec![frame]))
            }
            PacketKind::Data(segment) => {
                let payload = u64::from(packet.size).saturating_sub(u64::from(self.header));
                self.sent += 1;
                let frame = segment.map(|segment| self.transmit(packet.at, segment, payload));
                (SENT, self.sent - 1, frame.map(|frame| vec![frame]))
            }
            PacketKind::Losses(ranges) => {
                self.reported = (packet.at, self.transmissions(ranges));
                self.received += 1;
                let frame = Frame { frame_type: "ack".into(), ..Frame::default() };
                (RECEIVED, self.received - 1, Some(vec![frame]))
            }
            PacketKind::Control => {
                self.sent += 1;
                (SENT, self.sent - 1, Some(Vec::new()))
            }
            PacketKind::QuicSent(packets) | PacketKind::QuicReceived(packets) => {
                let sent = matches!(packet.kind, PacketKind::QuicSent(_));
                return packets.iter().try_for_each(|each| self.quic(packet.at, sent, each));
            }
        };
        let number = (QuicKind::OneRtt, number);
        let data = Data { header: Some(numbered(number)), raw, frames, ..Data::default() };
        self.event(packet.at, name, data)
    }

    /// Writes a packet of QUIC.
    fn quic(&mut self, at: Time, sent: bool, packet: &QuicPacket) -> io::Result<()> {
        let number = (packet.kind, packet.number);
        let mut frames = Vec::new();
        if sent && packet.eliciting {
            self.sent += 1;
            self.in_flight.insert(number, Transmission { at, again: false });
        }
        if !packet.acked.is_empty() {
            // An acknowledgement repeats ranges.
            let mut numbers = Vec::new();
            for &(first, last) in packet.acked.iter().filter(|_| !sent) {
                let known = self.in_flight.range((packet.kind, first)..=(packet.kind, last));
                numbers.extend(known.map(|(&(_, number), _)| number));
            }
            for &number in &numbers {
                self.in_flight.remove(&(packet.kind, number));
            }
            let acked_ranges = ranges(numbers);
            frames.push(Frame { frame_type: "ack".into(), acked_ranges, ..Frame::default() });
        }
        frames.extend(packet.streams.iter().map(|&(id, offset, length)| Frame {
            frame_type: "stream".into(),
            stream_id: Some(id),
            offset: Some(offset),
            length: Some(length),
            ..Frame::default()
        }));
        if packet.eliciting && packet.streams.is_empty() {
            frames.push(Frame { frame_type: "ping".into(), ..Frame::default() });
        }
        let data = Data {
            header: Some(numbered(number)),
            raw: Some(Raw { length: u64::from(packet.size) }),
            frames: Some(frames),
            ..Data::default()
        };
        self.event(at, if sent { SENT } else { RECEIVED }, data)
    }

    /// The last transmissions of the segments in `ranges` that have not arrived.
    fn transmissions(&self, ranges: &[(u32, u32)]) -> Vec<u64> {
        let index = |segment: u32| (segment.max(self.first) - self.first) as usize;
        let known = |&(from, to): &(u32, u32)| {
            let end = index(to).min(self.segments.len());
            self.segments.range(index(from).min(end)..end)
        };
        ranges
            .iter()
            .flat_map(known)
            .filter(|known| !known.acked)
            .map(|known| known.number)
            .collect()
    }

    /// Notes the transmission of a segment, and returns its frame.
    fn transmit(&mut self, at: Time, segment: u32, payload: u64) -> Frame {
        let number = self.sent - 1;
        let index = segment.wrapping_sub(self.first) as usize;
        // Behind the first segment of the queue: it is acknowledged, and its offset forgotten.
        let acknowledged = segment < self.first;
        let again = acknowledged || index < self.segments.len();
        if !again {
            self.segments.push_back(Segment { offset: self.offset, number, acked: false });
            self.offset += payload;
        }
        self.in_flight.insert((QuicKind::OneRtt, number), Transmission { at, again });
        let offset = self.segments.get_mut(index).map(|known| {
            known.number = number;
            known.offset
        });
        match offset {
            Some(offset) if payload > 0 => Frame {
                frame_type: "stream".into(),
                stream_id: Some(0),
                offset: Some(offset),
                length: Some(payload),
                ..Frame::default()
            },
            // A SYN, and a segment that is acknowledged already.
            _ => Frame { frame_type: "ping".into(), ..Frame::default() },
        }
    }

    /// Removes the segments before `next` and marks those in `blocks`. Returns the ranges of packet
    /// numbers that are newly acknowledged.
    fn acknowledge(&mut self, next: u32, blocks: &[(u32, u32)]) -> Option<Vec<Vec<u64>>> {
        let mut numbers = Vec::new();
        for &(from, to) in blocks {
            for segment in from.max(self.first)..to {
                let index = (segment - self.first) as usize;
                let Some(known) = self.segments.get_mut(index) else { break };
                if !std::mem::replace(&mut known.acked, true) {
                    numbers.push(known.number);
                }
            }
        }
        while self.first < next {
            let Some(known) = self.segments.pop_front() else { break };
            self.first += 1;
            if !known.acked {
                numbers.push(known.number);
            }
        }
        for &number in &numbers {
            self.in_flight.remove(&(QuicKind::OneRtt, number));
        }
        ranges(numbers)
    }

    /// Writes what an event of the controller changed.
    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        if let Some(controller) = &mut self.controller {
            controller.on(entry.at, &entry.event);
        }
        let at = entry.at + self.epoch;
        let (mut metrics, mut trigger) = (self.metrics, None);
        match &entry.event {
            cwnd::Event::Acked(acked) => {
                self.measured(acked.rtt);
                metrics.bytes_in_flight = self.bytes(f64::from(acked.in_flight));
                // Written also if it has not changed: each acknowledgement has its metrics.
                self.metrics.bytes_in_flight = None;
                self.limit = acked.limit;
            }
            cwnd::Event::Report(report) => self.measured(Some(report.rtt)),
            cwnd::Event::Lost(lost) | cwnd::Event::Timeout(lost) => {
                let bytes = u64::from(lost.packets) * u64::from(self.payload);
                metrics.bytes_in_flight =
                    metrics.bytes_in_flight.map(|before| before.saturating_sub(bytes));
                let timeout = matches!(entry.event, cwnd::Event::Timeout(_));
                self.lose(at, lost, timeout.then_some("pto_expired"))?;
            }
            cwnd::Event::PersistentCongestion => trigger = Some(PERSISTENT_CONGESTION),
            cwnd::Event::Marked(_) => trigger = Some("ECN"),
            cwnd::Event::Mtu { packet } => {
                self.payload = *packet;
                let size = Some(u64::from(*packet));
                self.event(at, PARAMETERS, Data { max_datagram_size: size, ..Data::default() })?;
            }
            _ => {}
        }
        metrics.congestion_window = self.bytes(entry.output.window.get());
        metrics.ssthresh =
            self.machine().map(|machine| machine.ssthresh().get()).and_then(|w| self.bytes(w));
        let bits = entry.output.pace.map(|pace| pace.as_bits(self.payload));
        metrics.pacing_rate = bits.filter(|bits| bits.is_finite()).map(|bits| whole(bits.round()));
        if let Some(rtt) = self.rtt {
            metrics.latest_rtt = Some(rtt.latest);
            metrics.min_rtt = (rtt.min < Dur::MAX).then_some(rtt.min);
            metrics.smoothed_rtt = Some(rtt.smoothed);
        }
        self.update(at, metrics)?;
        self.update_state(at, trigger)
    }

    fn measured(&mut self, sample: Option<Dur>) {
        let Some(sample) = sample else { return };
        self.rtt = Some(self.rtt.map_or(Rtt::first(sample), |known| known.after(sample)));
    }

    /// The machine of a window law.
    fn machine(&self) -> Option<&Windowed<AnyLaw>> {
        match &self.controller {
            Some(AnyController::Window(machine)) => Some(machine),
            _ => None,
        }
    }

    /// Writes the losses of one event: the transmissions that a report at its time has named, or
    /// those in flight that were sent until the newest of them. If there are more than the event
    /// counts, a stack of QUIC has not counted the oldest ones, which are probes of the MTU.
    fn lose(&mut self, at: Time, lost: &Lost, trigger: Option<&str>) -> io::Result<()> {
        let (reported_at, reported) = std::mem::take(&mut self.reported);
        let reported = if reported_at == at { reported } else { Vec::new() };
        let newest = lost.sent_at + self.epoch;
        let named = |number: u64| reported.is_empty() || reported.contains(&number);
        let sent = self.in_flight.iter();
        let sent = sent.filter(|((_, number), sent)| sent.at <= newest && named(*number));
        let mut numbers: Vec<_> = sent.map(|(&number, sent)| (sent.again, number)).collect();
        let surplus = numbers.len().saturating_sub(lost.packets as usize);
        if self.quic {
            numbers.drain(..surplus);
        } else if surplus > 0 {
            numbers.sort_unstable();
            numbers.truncate(lost.packets as usize);
        }
        for (_, number) in numbers {
            self.in_flight.remove(&number);
            let header = Some(numbered(number));
            let data = Data { header, trigger: trigger.map(String::from), ..Data::default() };
            self.event(at, LOST, data)?;
        }
        Ok(())
    }

    /// Writes the metrics that differ from those written last.
    fn update(&mut self, at: Time, metrics: Metrics) -> io::Result<()> {
        let before = std::mem::replace(&mut self.metrics, metrics);
        fn changed<T: PartialEq>(before: Option<T>, now: Option<T>) -> Option<T> {
            now.filter(|now| before.as_ref() != Some(now))
        }
        let millis = |before, now| changed(before, now).map(|rtt: Dur| rtt.as_nanos() as f64 / 1e6);
        let data = Data {
            congestion_window: changed(before.congestion_window, metrics.congestion_window),
            bytes_in_flight: changed(before.bytes_in_flight, metrics.bytes_in_flight),
            ssthresh: changed(before.ssthresh, metrics.ssthresh),
            pacing_rate: changed(before.pacing_rate, metrics.pacing_rate),
            latest_rtt: millis(before.latest_rtt, metrics.latest_rtt),
            min_rtt: millis(before.min_rtt, metrics.min_rtt),
            smoothed_rtt: millis(before.smoothed_rtt, metrics.smoothed_rtt),
            ..Data::default()
        };
        if data == Data::default() {
            return Ok(());
        }
        self.event(at, METRICS, data)
    }

    /// Writes the state of a window law if it has changed.
    fn update_state(&mut self, at: Time, trigger: Option<&str>) -> io::Result<()> {
        let Some(machine) = self.machine() else { return Ok(()) };
        let state = if machine.in_recovery() {
            RECOVERY
        } else if matches!(self.limit, Limit::Application | Limit::Receiver) {
            APPLICATION_LIMITED
        } else if machine.in_slow_start() {
            "slow_start"
        } else {
            "congestion_avoidance"
        };
        let old = self.state.replace(state);
        if old == Some(state) {
            return Ok(());
        }
        let data = Data {
            old: old.map(String::from),
            new: Some(state.into()),
            trigger: trigger.map(String::from),
            ..Data::default()
        };
        self.event(at, STATE, data)
    }
}

/// Returns the ranges of numbers; `None` without one.
fn ranges(mut numbers: Vec<u64>) -> Option<Vec<Vec<u64>>> {
    numbers.sort_unstable();
    let runs = numbers.chunk_by(|one, other| one + 1 == *other).map(|run| match *run {
        [only] => vec![only],
        _ => vec![run[0], run[run.len() - 1]],
    });
    (!numbers.is_empty()).then(|| runs.collect())
}

/// The header of a packet.
fn numbered((kind, number): Number) -> PacketHeader {
    let packet_type = match kind {
        QuicKind::Initial => "initial",
        QuicKind::Handshake => "handshake",
        QuicKind::OneRtt => "1RTT",
    };
    PacketHeader { packet_type: packet_type.into(), packet_number: Some(number) }
}
