//! Reads a qlog as the record of a controller's events and answers.

use super::{
    APPLICATION_LIMITED, Data, Event, FORMAT, Frame, Header, LOST, METRICS, PARAMETERS,
    PERSISTENT_CONGESTION, PacketHeader, RECEIVED, RECOVERY, SENT, SEPARATOR, STATE, VERSION,
};
use crate::cast::low32;
use cwnd::record::{Entry, Record};
use cwnd::{Acked, Dur, Limit, Lost, Marked, Output, Packets, Rate, Time};
use std::collections::BTreeMap;

/// A qlog that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Qlog {
    /// The first name of the protocol, such as `QUIC`; empty if the file names none.
    pub protocol: String,
    /// The title of the trace, or that of the file.
    pub title: String,
    /// Bytes of a packet: `max_datagram_size`, or those of the largest packet sent.
    pub packet: u32,
    /// The window at the start, if the file has it.
    pub initial_window: Option<Packets>,
    /// Acknowledgements, losses, marks and persistent congestion with the window after each, from
    /// the start of the trace.
    pub record: Record,
}

/// Why a file is no qlog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QlogError {
    /// The first record is no header of this version and format.
    #[error("expected a qlog of the version 0.3 in the format JSON-SEQ{0}")]
    Header(String),
    /// A record is no event.
    #[error("record {0}: {1}")]
    Event(usize, String),
    /// There is no packet size.
    #[error("there is no max_datagram_size and no transport:packet_sent with raw.length")]
    NoPacketSize,
    /// There is no window.
    #[error("there is no recovery:metrics_updated with congestion_window")]
    NoWindow,
    /// No packet is acknowledged.
    #[error("no transport:packet_received acknowledges a packet: there are no acked_ranges")]
    NoAcknowledgement,
}

/// Reads a qlog. An acknowledgement counts the packets that it newly acknowledges.
///
/// What limits the sender is taken from the state `application_limited`, if the file has it.
/// Otherwise a sender is limited by its application while at most half of its window is in flight,
/// by its window while no further packet fits, and by pacing in between.
///
/// # Errors
/// A file that is no qlog of the version 0.3, has a record that is cut (RFC 7464 section 2.2: a line
/// feed ends each record), or has no packet size, no window or no acknowledged packet.
pub fn read(text: &str) -> Result<Qlog, QlogError> {
    if text.trim_start().starts_with(['{', '[']) {
        return Err(QlogError::Header(", whose records begin with U+001E, not in JSON".into()));
    }
    let records = text.split(char::from(SEPARATOR)).filter(|record| !record.trim().is_empty());
    let mut records = records.enumerate();
    let header = records.next().map(|(_, record)| serde_json::from_str::<Header>(record));
    let header = match header {
        Some(Ok(header)) => header,
        Some(Err(error)) => return Err(QlogError::Header(format!(": {error}"))),
        None => return Err(QlogError::Header(String::new())),
    };
    if header.qlog_version != VERSION || header.qlog_format != FORMAT {
        let (version, format) = (header.qlog_version, header.qlog_format);
        return Err(QlogError::Header(format!(", not {version:?} in {format:?}")));
    }
    let event = |(number, record): (usize, &str)| {
        let event = match record.ends_with('\n') {
            true => {
                serde_json::from_str::<Event<String>>(record).map_err(|error| error.to_string())
            }
            false => Err("expected a line feed at the end of the record, which is cut".into()),
        };
        event.map_err(|error| QlogError::Event(number + 1, error))
    };
    let mut events = records.map(event).collect::<Result<Vec<_>, _>>()?;
    set_times(&mut events, header.trace.common_fields.time_format == "delta");
    let size = |event: &Event<String>| event.data.max_datagram_size;
    let sent = events.iter().filter(|event| event.name == SENT);
    let largest = sent.filter_map(|event| Some(event.data.raw.as_ref()?.length)).max();
    let packet = events.iter().find_map(size).or(largest).filter(|&size| size > 0);
    let packet = low32(packet.ok_or(QlogError::NoPacketSize)?.min(u64::from(u32::MAX)));
    let states = |event: &Event<String>| event.data.new.as_deref() == Some(APPLICATION_LIMITED);
    let initial = events.iter().find_map(|event| event.data.initial_congestion_window);
    let initial_window = initial.map(|bytes| Packets::from_bytes(bytes, packet));
    let mut reader = Reader::new(packet, events.iter().any(states));
    reader.timeouts =
        header.trace.common_fields.protocol_type.iter().any(|name| name == "TCP" || name == "UDT");
    events.iter().for_each(|event| reader.event(event));
    reader.close();
    if !reader.windows {
        return Err(QlogError::NoWindow);
    }
    let acked = |entry: &Entry| matches!(entry.event, cwnd::Event::Acked(_));
    if !reader.record.entries.iter().any(acked) {
        return Err(QlogError::NoAcknowledgement);
    }
    let title = if header.trace.title.is_empty() { header.title } else { header.trace.title };
    let protocol = header.trace.common_fields.protocol_type.into_iter().next().unwrap_or_default();
    Ok(Qlog { protocol, title, packet, initial_window, record: reader.record })
}

/// Makes the times milliseconds since the first event.
fn set_times(events: &mut [Event<String>], differences: bool) {
    let start = events.first().map_or(0.0, |event| event.time);
    let mut before = 0.0;
    for event in events {
        before = if differences { before + event.time } else { event.time - start };
        event.time = before;
    }
}

/// A packet number in its space.
type Number = (String, u64);

/// A packet that is not acknowledged.
struct Flight {
    at: Time,
    bytes: u64,
    /// It is declared lost, and may arrive still.
    lost: bool,
}

/// What happened since the last entry.
#[derive(Default)]
struct Step {
    acked: Option<Acked>,
    lost: Option<(Lost, bool)>,
    marked: bool,
    restarted: bool,
    /// Whether the metrics after it are known.
    answered: bool,
}

struct Reader {
    packet: u32,
    /// Whether states tell that the application limits the sender.
    states: bool,
    /// Whether losses of an expired timer are those of a retransmission timeout.
    timeouts: bool,
    flights: BTreeMap<Number, Flight>,
    sent: u64,
    in_flight: u32,
    bytes_in_flight: u64,
    limit: Limit,
    state: Option<String>,
    at: Time,
    output: Output,
    /// The window before the step.
    before: Packets,
    rtt: Option<Dur>,
    windows: bool,
    step: Step,
    record: Record,
}

impl Reader {
    fn new(packet: u32, states: bool) -> Self {
        Reader {
            packet,
            states,
            timeouts: false,
            flights: BTreeMap::new(),
            in_flight: 0,
            sent: 0,
            bytes_in_flight: 0,
            limit: Limit::Window,
            state: None,
            at: Time::ZERO,
            output: Output::window(Packets::new(f64::INFINITY)),
            before: Packets::new(f64::INFINITY),
            rtt: None,
            windows: false,
            step: Step::default(),
            record: Record::default(),
        }
    }

    fn event(&mut self, event: &Event<String>) {
        let at = Time::ZERO + Dur::from_secs(event.time / 1e3);
        let data = &event.data;
        match event.name.as_str() {
            SENT => {
                self.advance(at, self.step.answered);
                self.send(data);
            }
            RECEIVED => {
                let acks =
                    data.frames.iter().flatten().filter_map(|frame| frame.acked_ranges.as_ref());
                let ranges: Vec<_> = acks.flatten().collect();
                if !ranges.is_empty() {
                    self.advance(at, self.step.answered || self.step.lost.is_some());
                    self.acknowledge(data.header.as_ref(), &ranges);
                }
            }
            LOST => {
                self.advance(at, self.step.answered);
                self.lose(data);
            }
            PARAMETERS => {
                if let Some(size) = data.max_datagram_size.filter(|&size| size > 0) {
                    self.resize(at, low32(size.min(u64::from(u32::MAX))));
                }
                if let Some(window) = data.initial_congestion_window {
                    self.set_window(self.packets(window));
                    self.before = self.output.window;
                }
            }
            METRICS => {
                let window = data.congestion_window.map(|bytes| self.packets(bytes));
                if window.is_some_and(|window| window < self.output.window) {
                    self.explain_reduction(at);
                }
                self.step.answered = true;
                self.rtt = data.latest_rtt.map(|millis| Dur::from_secs(millis / 1e3)).or(self.rtt);
                if let Some(window) = window {
                    self.set_window(window);
                }
                if let Some(bits) = data.pacing_rate {
                    self.output.pace = Some(Rate::from_bits(bits as f64, self.packet));
                }
            }
            STATE => self.change_state(at, data),
            _ => {}
        }
    }

    /// Begins what happens at `at`. Closes the step before it if it `ends`.
    fn advance(&mut self, at: Time, ends: bool) {
        if ends {
            self.close();
        }
        self.at = at;
    }

    /// Adds an event for a reduction that follows none: the restart of an idle sender, or the
    /// recovery of packets that were reported as lost in the one before.
    fn explain_reduction(&mut self, at: Time) {
        let Step { acked, lost, marked, answered, .. } = &self.step;
        let explained = lost.is_some() || *marked || acked.is_some() && !answered;
        if explained || !self.windows {
            return;
        }
        self.advance(at, true);
        if self.in_flight == 0 {
            self.step.restarted = true;
        } else {
            self.step.lost = Some((Lost::new(0, at, self.sent), false));
        }
    }

    fn packets(&self, bytes: u64) -> Packets {
        Packets::from_bytes(bytes, self.packet)
    }

    fn set_window(&mut self, window: Packets) {
        self.output.window = window;
        self.windows = true;
    }

    /// Sets another packet size; the window stays the same number of bytes.
    fn resize(&mut self, at: Time, packet: u32) {
        if packet != self.packet {
            // The size is set before the window, while an acknowledgement is processed.
            self.advance(at, self.step.answered);
            let window = self.output.window;
            let bytes = window.as_bytes(self.packet);
            self.packet = packet;
            if window.get().is_finite() {
                self.output.window = self.packets(bytes);
                self.before = self.output.window;
                self.push(cwnd::Event::Mtu { packet }, self.before);
            }
        }
    }

    fn send(&mut self, data: &Data) {
        let Some(number) = numbered(data.header.as_ref()) else { return };
        // Packets without an ACK-eliciting frame do not count (RFC 9002 section 2).
        let eliciting = |frame: &Frame| {
            !matches!(frame.frame_type.as_str(), "ack" | "padding" | "connection_close")
        };
        if data.frames.as_ref().is_some_and(|frames| !frames.iter().any(eliciting)) {
            return;
        }
        let bytes = data.raw.as_ref().map_or(u64::from(self.packet), |raw| raw.length);
        let bytes = bytes.min(u64::from(self.packet));
        self.flights.insert(number, Flight { at: self.at, bytes, lost: false });
        self.in_flight += 1;
        self.sent += 1;
        self.bytes_in_flight += bytes;
        let window = self.output.window.as_bytes(self.packet);
        self.limit = if self.bytes_in_flight + u64::from(self.packet) > window {
            Limit::Window
        } else if self.bytes_in_flight > window / 2 {
            Limit::Pacing
        } else {
            Limit::Application
        };
    }

    /// Takes a packet out of those in flight.
    fn land(&mut self, bytes: u64) {
        self.bytes_in_flight -= bytes;
        self.in_flight -= 1;
    }

    fn acknowledge(&mut self, header: Option<&PacketHeader>, ranges: &[&Vec<u64>]) {
        let Some((space, _)) = numbered(header) else { return };
        for range in ranges {
            let [from, to] = match ***range {
                [only] => [only; 2],
                [from, to, ..] => [from, to],
                [] => continue,
            };
            // Acknowledgements repeat ranges: only packets that are not acknowledged are new.
            let known = self.flights.range((space.clone(), from)..=(space.clone(), to.max(from)));
            let numbers: Vec<_> = known.map(|(number, _)| number.clone()).collect();
            for number in numbers {
                let Some(flight) = self.flights.remove(&number) else { continue };
                if !flight.lost {
                    self.land(flight.bytes);
                }
                let acked = self.step.acked.get_or_insert(Acked::new(0, flight.at));
                acked.packets += 1;
                acked.credit += 1;
                acked.sent_at = acked.sent_at.max(flight.at);
            }
        }
        let in_flight = self.in_flight;
        if let Some(acked) = &mut self.step.acked {
            (acked.in_flight, acked.sent, acked.limit) = (in_flight, self.sent, self.limit);
        }
    }

    fn lose(&mut self, data: &Data) {
        let known = numbered(data.header.as_ref()).and_then(|number| self.flights.get_mut(&number));
        let Some(flight) = known.filter(|flight| !flight.lost) else { return };
        flight.lost = true;
        let (at, bytes) = (flight.at, flight.bytes);
        self.land(bytes);
        let expired = self.timeouts && data.trigger.as_deref() == Some("pto_expired");
        let new = (Lost::new(0, at, self.sent), expired);
        let (lost, timeout) = self.step.lost.get_or_insert(new);
        lost.packets += 1;
        lost.sent_at = lost.sent_at.max(at);
        *timeout |= expired;
    }

    fn change_state(&mut self, at: Time, data: &Data) {
        let Some(new) = &data.new else { return };
        let old = self.state.replace(new.clone());
        // A timeout and persistent congestion end a recovery themselves.
        let mut ended = old.as_deref() != Some(RECOVERY) || new == RECOVERY;
        match data.trigger.as_deref() {
            Some(PERSISTENT_CONGESTION) => {
                self.advance(at, true);
                self.push(cwnd::Event::PersistentCongestion, self.output.window);
                ended = true;
            }
            // As draft-04 has it, and as the crate `qlog` writes it.
            Some("ECN" | "ecn") => self.step.marked = true,
            _ => ended |= matches!(self.step.lost, Some((_, true))),
        }
        if !ended {
            self.close();
            self.at = at;
            self.push(cwnd::Event::Recovered, self.output.window);
        }
    }

    /// Makes entries of the step.
    fn close(&mut self) {
        let Step { acked, lost, marked, restarted, .. } = std::mem::take(&mut self.step);
        let after = self.output.window;
        if let Some(mut acked) = acked {
            acked.rtt = self.rtt;
            if self.states {
                let limited = self.state.as_deref() == Some(APPLICATION_LIMITED);
                acked.limit = if limited { Limit::Application } else { Limit::Window };
            }
            let reduced = lost.is_some() || marked;
            self.push(cwnd::Event::Acked(acked), if reduced { self.before } else { after });
        }
        if marked {
            self.push(cwnd::Event::Marked(Marked::new(1, self.at, self.sent)), after);
        }
        if restarted {
            self.push(cwnd::Event::Reduced { window: after, idle: true }, after);
        }
        if let Some((lost, timeout)) = lost {
            let event = if timeout { cwnd::Event::Timeout(lost) } else { cwnd::Event::Lost(lost) };
            self.push(event, after);
        }
        self.before = after;
    }

    fn push(&mut self, event: cwnd::Event, window: Packets) {
        // Without a window yet there is nothing to compare.
        if window.get().is_finite() {
            let mut output = self.output;
            output.window = window;
            self.record.entries.push(Entry { at: self.at, event, output });
        }
    }
}

/// The number of a packet in its space.
fn numbered(header: Option<&PacketHeader>) -> Option<Number> {
    let header = header?;
    Some((header.packet_type.clone(), header.packet_number?))
}
