//! The receiving half of a connection: reassembly, acknowledgements and loss reports.

use crate::buffer::{Arrival, Reassembly, ReceiveBuffer};
use crate::cast::{low32, saturate32};
use crate::config::{Config, Counters};
use crate::estimate::{Arrivals, Rtt};
use crate::handshake::SocketType;
use crate::packet::{Ack, Control, Data, DropRequest, HEADER, NakWriter, Progress, Range};
use crate::sender::SYN;
use crate::seq::{AckNo, Seq};
use cwnd::{Dur, Time};

/// The number of packets after which a light acknowledgement is sent at the latest (UDT4).
const LIGHT_PACKETS: u32 = 64;
/// The shortest interval between light acknowledgements. Packets further apart are acknowledged one
/// by one, which window laws need.
const LIGHT_SPACING: Dur = Dur::from_nanos(100_000);
/// The number of sent acknowledgements that are remembered to measure round-trip times (UDT4).
const REMEMBERED_ACKS: usize = 1024;
/// The smallest advertised window: the packets with which a sender probes a full receiver (UDT4).
const MIN_WINDOW: u64 = 2;
/// The shortest interval between two reports of a missing packet.
const MIN_NAK_INTERVAL: Dur = Dur::from_millis(20);
const MILLI: u64 = 1_000_000;

/// An acknowledgement that was sent.
#[derive(Clone, Copy, Debug, Default)]
struct SentAck {
    number: Option<AckNo>,
    next: u64,
    at: Time,
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub buffer: ReceiveBuffer,
    pub messages: Option<Reassembly>,
    arrivals: Arrivals,
    start: Time,
    /// Packets that arrived since the last acknowledgement of any kind.
    unacknowledged_packets: u32,
    /// When the last acknowledgement of any kind was sent.
    last_ack: Time,
    /// When a full acknowledgement is due.
    full_due: Option<Time>,
    /// When the last full acknowledgement was sent.
    last_full: Option<Time>,
    /// When the last full acknowledgement with rates was sent.
    last_rates: Option<Time>,
    /// The cumulative acknowledgement in the last full acknowledgement.
    acknowledged: u64,
    /// The window in the last full acknowledgement.
    available: u64,
    /// The highest cumulative acknowledgement that the sender has acknowledged.
    confirmed: u64,
    /// Send a full acknowledgement even if the sender has confirmed the last one.
    force_full_ack: bool,
    number: AckNo,
    sent: Vec<SentAck>,
    /// The first packet after the last loss report: later missing packets have not been reported.
    unreported: u64,
    /// When packets that are still missing are reported again.
    nak_repeat_at: Option<Time>,
}

impl Receiver {
    /// Creates a receiver of packets with up to `payload` bytes. The first packet has the sequence
    /// number `initial`.
    pub(crate) fn new(config: &Config, now: Time, initial: Seq, payload: usize) -> Self {
        let packets = config.receive_buffer;
        let messages = config.socket_type == SocketType::Message;
        Receiver {
            buffer: ReceiveBuffer::new(packets, (payload, config.same_payload), initial),
            messages: messages.then(|| Reassembly::new(packets)),
            arrivals: Arrivals::new(),
            start: now,
            unacknowledged_packets: 0,
            last_ack: Time::ZERO,
            full_due: None,
            last_full: None,
            last_rates: None,
            acknowledged: 0,
            available: u64::from(packets),
            confirmed: 0,
            force_full_ack: false,
            number: AckNo::default(),
            sent: vec![SentAck::default(); REMEMBERED_ACKS],
            unreported: 0,
            nak_repeat_at: None,
        }
    }

    /// Whether data or a message can be read.
    pub(crate) fn is_readable(&mut self) -> bool {
        match &self.messages {
            Some(messages) => messages.has_message(),
            None => self.buffer.is_readable(),
        }
    }

    /// Processes a data packet.
    #[inline]
    pub(crate) fn handle_data(
        &mut self,
        now: Time,
        data: &Data,
        regular: usize,
        count: &mut Counters,
    ) {
        count.pkt_recv += 1;
        self.arrivals.packet(now, data.seq);
        match self.buffer.insert(data.seq, data.message, data.payload) {
            Arrival::New { at, gap } => {
                count.byte_recv += data.payload.len() as u64;
                self.unacknowledged_packets += 1;
                if gap > 0 {
                    self.record_missing(now, at - gap, gap, count);
                }
                if let Some(messages) = &mut self.messages {
                    let filled = at + 1 < self.buffer.highest();
                    messages.arrived(&mut self.buffer, at, filled);
                }
                // A packet that is not full often ends a message: acknowledge it soon.
                let soon = if data.payload.len() == regular { SYN } else { LIGHT_SPACING };
                let due = self.last_full.map_or(now, |last| (last + soon).max(now));
                self.full_due = Some(self.full_due.map_or(due, |already| already.min(due)));
                self.update_window(now);
            }
            Arrival::Duplicate => {
                count.pkt_duplicate += 1;
                self.repeat_ack(now);
            }
            Arrival::Refused => {
                count.pkt_ignored += 1;
                self.repeat_ack(now);
            }
        }
    }

    /// Schedules an acknowledgement for a sender that seems to have missed one: at most one each
    /// SYN.
    fn repeat_ack(&mut self, now: Time) {
        self.force_full_ack = true;
        let due = self.last_full.map_or(now, |last| (last + SYN).max(now));
        self.full_due = Some(self.full_due.map_or(due, |already| already.min(due)));
    }

    fn record_missing(&mut self, now: Time, from: u64, packets: u64, count: &mut Counters) {
        count.pkt_rcv_loss += packets;
        self.unreported = self.unreported.min(from);
        self.nak_repeat_at.get_or_insert(now);
    }

    /// Processes a drop request.
    pub(crate) fn handle_drop_request(
        &mut self,
        now: Time,
        request: &DropRequest,
        count: &mut Counters,
    ) {
        // Ignored in a stream: bytes would be missing.
        let Some(messages) = &mut self.messages else { return };
        let (from, to) =
            (self.buffer.packet_of(request.first), self.buffer.packet_of(request.last));
        let Some(last) = to else { return };
        let from = from.unwrap_or(0);
        if from > last || from >= self.buffer.end() {
            return;
        }
        count.msg_dropped += 1;
        messages.drop_message(&mut self.buffer, from, last + 1, request.message);
        let gap = self.buffer.drop_missing(from, last + 1);
        messages.scan(&mut self.buffer);
        if gap > 0 {
            self.record_missing(now, from - gap, gap, count);
        }
        self.unacknowledged_packets += 1;
        self.repeat_ack(now);
    }

    /// Processes the acknowledgement of an acknowledgement and returns the round-trip time that it
    /// measures.
    pub(crate) fn handle_ack2(&mut self, now: Time, number: AckNo) -> Option<Dur> {
        let sent = &mut self.sent[number.value() as usize % REMEMBERED_ACKS];
        if sent.number.take()? != number {
            return None;
        }
        self.confirmed = self.confirmed.max(sent.next);
        Some(now.since(sent.at).max(Dur::from_nanos(1000)))
    }

    /// Schedules an early window update if the advertised window is small and the buffer has much
    /// more room. Otherwise the sender could send at most one buffer each SYN.
    pub(crate) fn update_window(&mut self, now: Time) {
        let (limit, known) = (self.buffer.limit(), self.acknowledged + self.available);
        let left = known.saturating_sub(self.buffer.highest());
        let more = self.buffer.end().saturating_sub(known);
        if left <= limit / 2 && more >= (limit / 4).max(1) {
            self.force_full_ack = true;
            self.full_due = Some(now);
        }
    }

    /// Limits the receive window to `packets`. Call it before a packet arrives.
    pub(crate) fn limit_receive_window(&mut self, packets: u32) {
        self.buffer.set_limit(Some(packets));
        self.available = self.buffer.available();
    }

    /// Removes the limit of the receive window, and advertises the whole buffer at once if less was
    /// advertised.
    pub(crate) fn restore_receive_window(&mut self, now: Time) {
        self.buffer.set_limit(None);
        if self.last_full.is_some() {
            self.update_window(now);
        }
    }

    /// Schedules a last acknowledgement before the connection ends. Returns false if nothing is
    /// unacknowledged.
    pub(crate) fn flush(&mut self, now: Time) -> bool {
        let due = self.acknowledged < self.buffer.next();
        if due {
            self.full_due = Some(now);
        }
        due
    }

    /// Writes the next control packet that is due to `out` and returns its length; 0 if none is
    /// due.
    pub(crate) fn poll(
        &mut self,
        now: Time,
        rtt: &Rtt,
        (timestamp, destination): (u32, u32),
        out: &mut [u8],
        count: &mut Counters,
    ) -> usize {
        if self.buffer.missing() > 0 {
            let length = self.encode_nak(now, rtt, timestamp, destination, out);
            if length > 0 {
                count.pkt_sent_nak += 1;
                return length;
            }
        }
        let control = self
            .full_ack(now, rtt)
            .inspect(|_| count.pkt_sent_ack += 1)
            .or_else(|| self.light_ack(now).inspect(|_| count.pkt_sent_light_ack += 1));
        control.map_or(0, |control| control.encode(timestamp, destination, out))
    }

    fn millis(&self, now: Time) -> u32 {
        // Zero means that a packet was not reported.
        low32(now.since(self.start).as_nanos() / MILLI) | 1
    }

    fn encode_nak(
        &mut self,
        now: Time,
        rtt: &Rtt,
        timestamp: u32,
        destination: u32,
        out: &mut [u8],
    ) -> usize {
        let repeat = self.nak_repeat_at.is_some_and(|at| at <= now);
        let from = if repeat { self.buffer.next() } else { self.unreported };
        if from >= self.buffer.highest() {
            return 0;
        }
        let interval = self.nak_interval(rtt);
        let millis = self.millis(now);
        let least = saturate32(interval.as_nanos() / MILLI);
        let mut info = [0; 1456];
        // UDT4 reads at most one packet's payload of a loss report.
        let room = self.buffer.payload().min(info.len());
        let mut writer = NakWriter::new(&mut info[..room]);
        let mut at = from;
        let mut full = false;
        while let Some((first, end)) = self.buffer.hole(at) {
            // Split a hole into parts that were reported at the same time.
            let reported = self.buffer.reported(first);
            let same = |at: &u64| self.buffer.reported(*at) == reported;
            let part = (first + 1..end).take_while(same).last().map_or(first + 1, |last| last + 1);
            at = part;
            if reported != 0 && millis.wrapping_sub(reported) < least {
                continue;
            }
            let range = Range { first: self.buffer.seq(first), last: self.buffer.seq(part - 1) };
            if !writer.push(range) {
                at = first;
                full = true;
                break;
            }
            (first..part).for_each(|at| self.buffer.set_reported(at, millis));
        }
        if full {
            self.unreported = self.unreported.max(at);
            self.nak_repeat_at = Some(now);
        } else {
            self.unreported = self.buffer.highest();
            if repeat {
                self.nak_repeat_at = Some(now + interval);
            }
        }
        writer.finish().map_or(0, |losses| Control::Nak(losses).encode(timestamp, destination, out))
    }

    /// The time after which a packet that is still missing is reported again.
    fn nak_interval(&self, rtt: &Rtt) -> Dur {
        let queued =
            self.arrivals.speed().map_or(0.0, |speed| self.buffer.missing() as f64 / speed);
        (rtt.rto() + SYN + Dur::from_secs(queued.min(1.0))).max(MIN_NAK_INTERVAL)
    }

    fn full_ack(&mut self, now: Time, rtt: &Rtt) -> Option<Control<'static>> {
        if self.full_due.is_none_or(|due| due > now) {
            return None;
        }
        let next = self.buffer.next();
        let force_full_ack = std::mem::take(&mut self.force_full_ack);
        let repeat = rtt.rto().max(SYN);
        if next == self.confirmed && !force_full_ack {
            self.full_due = None;
            return None;
        }
        if next == self.acknowledged && !force_full_ack {
            let due = self.last_full.map_or(now, |last| last + repeat);
            if due > now {
                self.full_due = Some(due);
                return None;
            }
        }
        let with_rates = self.last_rates.is_none_or(|last| now.since(last) >= SYN);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float-to-integer cast saturates"
        )]
        let whole = |rate: Option<f64>| rate.map_or(0, |rate| rate.min(f64::from(i32::MAX)) as u32);
        let rates =
            with_rates.then(|| (whole(self.arrivals.speed()), whole(self.arrivals.capacity())));
        if with_rates {
            self.last_rates = Some(now);
        }
        self.number = self.number.next();
        self.sent[self.number.value() as usize % REMEMBERED_ACKS] =
            SentAck { number: Some(self.number), next, at: now };
        self.acknowledged = next;
        self.available = self.buffer.available();
        self.last_full = Some(now);
        self.last_ack = now;
        self.unacknowledged_packets = 0;
        // Repeat until acknowledged.
        self.full_due = Some(now + repeat);
        let micros = |span: Dur| saturate32(span.as_nanos() / 1000).min(i32::MAX as u32);
        Some(Control::Ack(Ack {
            number: self.number,
            next: self.buffer.seq(next),
            rtt_us: micros(rtt.smoothed),
            rtt_var_us: micros(rtt.deviation),
            available: saturate32(self.available.max(MIN_WINDOW)),
            rates,
        }))
    }

    fn light_due(&self) -> Option<Time> {
        match self.unacknowledged_packets {
            0 => None,
            LIGHT_PACKETS.. => Some(Time::ZERO),
            _ => Some(self.last_ack + LIGHT_SPACING),
        }
    }

    fn light_ack(&mut self, now: Time) -> Option<Control<'static>> {
        self.light_due().filter(|due| *due <= now)?;
        self.unacknowledged_packets = 0;
        self.last_ack = now;
        let next = self.buffer.seq(self.buffer.next());
        Some(match self.buffer.missing() {
            0 => Control::LightAck(next),
            missing => Control::Progress(Progress {
                next,
                highest: self.buffer.seq(self.buffer.highest()),
                missing: saturate32(missing),
            }),
        })
    }

    /// The earliest timer; `Time::NEVER` if none is armed.
    pub(crate) fn next_wakeup(&self) -> Time {
        let due = |at: Option<Time>| at.unwrap_or(Time::NEVER);
        let answers = due(self.full_due).min(due(self.light_due()));
        match self.buffer.missing() {
            0 => answers,
            _ if self.unreported < self.buffer.highest() => Time::ZERO,
            _ => answers.min(due(self.nak_repeat_at)),
        }
    }

    /// The free space in the buffer in bytes of user data.
    pub(crate) fn room(&self) -> u64 {
        self.buffer.available() * self.buffer.payload() as u64
    }
}

/// The largest control packet that is sent.
pub(crate) const CONTROL_PACKET: usize = HEADER + 1456;
