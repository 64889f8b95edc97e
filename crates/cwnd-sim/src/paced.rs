//! The endpoints of a paced controller: UDT's feedback without its wire protocol (Gu, Hong and
//! Grossman; draft-gg-udt-03).
//!
//! The receiver sends a report every 10 ms and a negative acknowledgement (NAK) for each gap. The
//! sender paces and retransmits the packets listed in NAKs. If the controller uses the receiver's
//! estimate of the link capacity, every sixteenth packet starts a packet pair.

use crate::cast::{low32, saturate16, saturate32, to_index, whole32};
use crate::clock::Clock;
use crate::driver::{Driver, Meter, Payload};
use crate::endpoint::{Endpoint, Idle, Progress, Writable};
use crate::engine::net::{Net, Place, TIMERS};
use crate::engine::schedule::NONE;
use crate::network::Tcp;
use crate::packet::{Extra, Packet, SINK, SOURCE, flags};
use crate::record::FlowRecord;
use crate::segment_size::{SegmentSize, SizeChanges};
use crate::tcp::scoreboard::{Losses, Scoreboard};
use cwnd::{AnyController, Controller, Event, Limit, Lost, Needs, Output, Rate, Report};
use cwnd_udt::{MIN_EXPIRY, MedianFilter, PAIR_EVERY};
use std::collections::VecDeque;

/// UDT's SYN in nanoseconds: the interval of reports and of rate control.
const SYN: u64 = cwnd_udt::SYN.as_nanos();
/// Intervals in the median filters.
const HISTORY: usize = 16;
/// Nanoseconds in a unit of packet timestamps.
const MICRO: u64 = 1000;

/// A paced flow.
#[derive(Clone)]
pub(crate) struct PacedFlow {
    sender: PacedSender,
    receiver: PacedReceiver,
}

impl PacedFlow {
    /// Creates a flow. `back` is the first hop of the return route.
    pub(crate) fn new(tcp: &Tcp, driver: Driver, place: Place, back: u32) -> Self {
        let receiver = PacedReceiver::new(tcp, place.clock, back, place.timer + SINK);
        PacedFlow { sender: PacedSender::new(tcp, driver, place, back), receiver }
    }
}

impl Endpoint for PacedFlow {
    fn fork(&self) -> Option<Box<dyn Endpoint>> {
        Some(Box::new(self.clone()))
    }

    fn start(&mut self, net: &mut Net, now: u64) {
        self.sender.start(net, now);
    }

    fn stop(&mut self, _: &mut Net, now: u64) {
        self.sender.stop(now);
    }

    fn wake(&mut self, net: &mut Net, now: u64, side: usize) {
        if side == SINK {
            self.receiver.wake(net, now, self.sender.driver.meter.last_rtt);
        } else {
            self.sender.wake(net, now);
        }
    }

    fn receive(&mut self, net: &mut Net, now: u64, packet: Packet) -> bool {
        if packet.flags() & flags::ACK != 0 {
            self.sender.feedback(net, now, packet);
        } else {
            self.receiver.data(net, now, packet);
        }
        false
    }

    fn replace_law(&mut self, now: u64, other: AnyController) {
        self.sender.driver.replace_law(now, other);
        self.sender.output = RoundedOutput::of(&self.sender.driver);
    }

    fn progress(&self) -> Progress {
        let PacedSender { total, open, ref driver, .. } = self.sender;
        let PacedReceiver { header, new, received, last_new, .. } = self.receiver;
        Progress {
            sent: driver.sent(header),
            total: (total != u32::MAX && !open).then_some(u64::from(total)),
            arrived: new,
            received,
            last_new,
            marked: 0,
        }
    }

    fn begin_measurement(&mut self, now: u64, side: usize) {
        if side == SOURCE {
            self.sender.driver.meter.reset(now);
        }
    }

    fn measured(&self) -> Option<(&Meter, Output)> {
        Some(self.sender.driver.measured())
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.sender.driver.controller.gauges(emit);
    }

    fn needs(&self) -> Needs {
        self.sender.driver.controller.needs()
    }

    fn finish(self: Box<Self>, end: u64, _: Clock, record: &mut FlowRecord) {
        self.sender.driver.finish(end, record);
    }
}

impl Writable for PacedFlow {
    fn copy(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn open(&mut self) {
        (self.sender.open, self.sender.total) = (true, 0);
    }

    fn make_available(&mut self, net: &mut Net, now: u64, packets: u64, _: Option<Idle>) -> u64 {
        let sender = &mut self.sender;
        sender.total = saturate32(to_index(packets)).max(sender.board.high());
        sender.send(net, now);
        if sender.total == u32::MAX { u64::MAX } else { u64::from(sender.total) }
    }

    fn acknowledged(&self) -> u64 {
        u64::from(self.sender.board.una())
    }
}

#[derive(Clone)]
struct PacedSender {
    hop: u32,
    timer: usize,
    sizes: SegmentSize,
    size_changes: Option<SizeChanges>,
    receiver_window: u32,
    /// Whether the controller uses packet pairs.
    pairs: bool,
    board: Scoreboard,
    total: u32,
    /// Whether the application may write more.
    open: bool,
    /// The earliest time for the next packet.
    next_send: u64,
    /// Whether the next packet completes a pair and is sent without pacing.
    pair: bool,
    /// Time of the next timeout if no feedback arrives; [`NONE`] before the first packet.
    expiry: u64,
    /// Expiries since the last feedback.
    expiries: u32,
    /// Time of the next timer action; [`NONE`] after the transfer.
    due: u64,
    smoothed_rtt: u64,
    output: RoundedOutput,
    /// The first hop of the return route.
    back: u32,
    driver: Driver,
}

/// The controller's output after the last event, in whole ticks and packets.
#[derive(Clone, Default)]
struct RoundedOutput {
    /// The pacing interval; 0 without pacing.
    period: u64,
    /// Packets that may be outstanding.
    window: u32,
    /// Time of the controller's next Tick; [`NONE`] without one.
    tick: u64,
}

impl RoundedOutput {
    fn of(driver: &Driver) -> Self {
        RoundedOutput {
            period: driver.period().unwrap_or(0),
            // A fraction of a packet cannot be sent.
            window: whole32(driver.output().window.get()),
            tick: driver.next_tick(),
        }
    }
}

impl PacedSender {
    fn new(tcp: &Tcp, driver: Driver, place: Place, back: u32) -> Self {
        let Place { clock, hop, timer, .. } = place;
        let (sizes, total) = SegmentSize::new(tcp.bytes, tcp.packet, tcp.header);
        PacedSender {
            hop,
            timer,
            sizes,
            size_changes: SizeChanges::new(tcp, clock, 0),
            receiver_window: tcp.window,
            pairs: driver.controller.needs().capacity,
            board: Scoreboard::default(),
            total,
            open: false,
            next_send: 0,
            pair: false,
            expiry: NONE,
            expiries: 0,
            due: 0,
            smoothed_rtt: clock.ticks(10 * SYN),
            output: RoundedOutput::default(),
            back,
            driver,
        }
    }

    fn start(&mut self, net: &mut Net, now: u64) {
        self.driver.meter.start(now);
        if let Some(changes) = &mut self.size_changes {
            changes.start(now);
        }
        self.next_send = now;
        self.output = RoundedOutput::of(&self.driver);
        self.send(net, now);
    }

    fn stop(&mut self, now: u64) {
        self.total = self.total.min(self.board.high());
        // Without data in flight no report completes the transfer.
        if std::mem::take(&mut self.open) && self.board.una() >= self.total {
            self.complete(now);
        }
    }

    /// All data is acknowledged, and there will be no more.
    fn complete(&mut self, now: u64) {
        self.driver.meter.complete(now);
        self.due = NONE;
    }

    /// Handles an expired timer.
    fn wake(&mut self, net: &mut Net, now: u64) {
        if now < self.due {
            // The timer was armed for an earlier deadline. Packets may have been sent ahead of the
            // clock for later times.
            if self.due != NONE {
                net.arm(self.timer, self.due);
            }
            return;
        }
        if self.output.tick <= now {
            self.driver.report(now, Event::Tick);
            self.output = RoundedOutput::of(&self.driver);
        }
        if self.expiry <= now && self.board.high() > self.board.una() {
            self.driver.meter.counters.timeouts += 1;
            let found = self.board.mark_all_lost();
            let lost = self.lost(found);
            self.driver.report_congestion(now, Event::Timeout(lost));
            self.output = RoundedOutput::of(&self.driver);
            self.expiries += 1;
            self.restart_expiry(now);
        }
        self.send(net, now);
    }

    /// Handles a report or a NAK.
    fn feedback(&mut self, net: &mut Net, now: u64, packet: Packet) {
        // Feedback that was overtaken by too much has no contents.
        let Some(extra) = net.extras[self.timer / TIMERS].take(packet.aux()) else { return };
        let answers = std::mem::take(&mut self.expiries) > 0;
        self.restart_expiry(now);
        if packet.flags() & flags::NAK != 0 {
            self.handle_nak(now, &extra);
        } else {
            self.handle_report(now, packet.seq(), &extra);
        }
        self.output = RoundedOutput::of(&self.driver);
        if answers {
            // The path works again: the next packet does not wait for an interval of the rate in
            // the outage.
            self.next_send = self.next_send.min(now.saturating_add(self.output.period));
        }
        self.send(net, now);
    }

    /// Restarts the timer as UDT4 does (EXP): the n-th expiry without feedback follows n intervals
    /// after the one before. UDT4 closes the connection after 16; here it goes on.
    fn restart_expiry(&mut self, now: u64) {
        let clock = self.driver.meter.clock;
        let times = u64::from(self.expiries) + 1;
        let answer = times * 4 * self.smoothed_rtt + clock.ticks(SYN);
        self.expiry = now + answer.max(times * clock.ticks(MIN_EXPIRY));
    }

    fn handle_nak(&mut self, now: u64, extra: &Extra) {
        let mut found = Losses::default();
        for &range in &extra.blocks[..extra.count as usize] {
            found = found.and(self.board.mark_lost(range));
        }
        if found.packets > 0 {
            let lost = self.lost(found);
            self.driver.report_congestion(now, Event::Lost(lost));
        }
    }

    /// Lost packets as an event has them.
    fn lost(&self, found: Losses) -> Lost {
        let sent_at = self.driver.meter.clock.time(found.sent_at);
        Lost::new(found.packets, sent_at, self.driver.packets_sent)
    }

    fn handle_report(&mut self, now: u64, ack: u32, extra: &Extra) {
        let newly = ack.saturating_sub(self.board.una());
        self.board.acked(ack);
        // The receiver sent the report `extra.stamp` microseconds after the packet with timestamp
        // `extra.echo` arrived.
        let micros = low32(self.driver.meter.clock.nanos(now) / MICRO);
        let rtt = micros.wrapping_sub(extra.echo).wrapping_sub(extra.stamp).max(1);
        let rtt = self.driver.meter.clock.ticks(u64::from(rtt) * MICRO);
        self.smoothed_rtt = (7 * self.smoothed_rtt + rtt) / 8;
        let measured = self.driver.meter.measured(rtt);
        let [arrival, capacity] = extra.rates();
        let mut report = Report::new(newly, self.driver.packets_sent, measured);
        report.arrival = arrival.map(Rate::per_sec);
        report.capacity = capacity.map(Rate::per_sec);
        self.driver.report_congestion(now, Event::Report(report));
        if self.board.una() >= self.total && self.driver.meter.acknowledged == NONE && !self.open {
            self.complete(now);
        }
    }

    /// Sends all due packets and arms the timer for the next one.
    fn send(&mut self, net: &mut Net, now: u64) {
        let (mut at, mut safe_until) = (now, None);
        loop {
            let limit = self.send_due(net, at);
            // A delayed second packet would not measure the capacity.
            self.pair = false;
            self.driver.meter.limited_by(at, limit);
            // Time during which the window was closed gives no pacing credit.
            if limit != Limit::Pacing {
                self.next_send = self.next_send.max(at);
            }
            if self.driver.meter.acknowledged != NONE {
                return;
            }
            let paced = if limit == Limit::Pacing { self.next_send } else { NONE };
            let expiry = if outstanding(&self.board) { self.expiry } else { NONE };
            let other = self.output.tick.min(expiry);
            if paced < other && paced < *safe_until.get_or_insert_with(|| self.safe_until(net, now))
            {
                at = paced;
                continue;
            }
            self.due = paced.min(other);
            net.arm(self.timer, self.due.max(at + 1));
            return;
        }
    }

    /// Time before which the sender may send ahead of the clock. An application may write at any
    /// time.
    fn safe_until(&self, net: &Net, now: u64) -> u64 {
        if self.open || !net.may_send_ahead(self.hop) {
            return now;
        }
        net.source_safe_until(now, self.timer / TIMERS, [self.hop, self.back])
    }

    /// Sends all packets due at `now` and returns what limits the sender then.
    fn send_due(&mut self, net: &mut Net, now: u64) -> Limit {
        while self.next_send <= now || self.pair {
            if let Some(changes) = &mut self.size_changes
                && let Some(packet) =
                    changes.apply(now, self.board.high(), &mut self.sizes, &mut self.total)
            {
                self.driver.report(now, Event::Mtu { packet });
                self.output = RoundedOutput::of(&self.driver);
            }
            let repair = self.board.next_lost();
            let outstanding = self.board.high() - self.board.una();
            let seq = match repair {
                Some(seq) => seq,
                None if self.board.high() >= self.total => return Limit::Application,
                None if outstanding >= self.receiver_window => return Limit::Receiver,
                None if outstanding >= self.output.window => return Limit::Window,
                None => self.board.high(),
            };
            self.transmit(net, now, seq, repair.is_some());
            // The second packet of a pair also advances the pacing time: a pair does not raise the
            // rate.
            self.next_send = self.next_send.max(now).saturating_add(self.output.period);
        }
        Limit::Pacing
    }

    fn transmit(&mut self, net: &mut Net, now: u64, seq: u32, again: bool) {
        // Start the timer if it is not running (RFC 6298 section 5.1).
        if self.expiry == NONE || !outstanding(&self.board) {
            self.restart_expiry(now);
        }
        let mut bits = 0;
        if again {
            self.board.resent(now, seq);
            self.driver.meter.counters.retransmitted += 1;
            self.pair = false;
        } else {
            self.board.sent(now);
            if self.pair {
                bits |= flags::PAIR;
            }
            self.pair = self.pairs && seq.is_multiple_of(PAIR_EVERY);
        }
        self.driver.packets_sent += 1;
        let aux = low32(self.driver.meter.clock.nanos(now) / MICRO);
        let size = self.sizes.of(seq, self.total, self.size_changes.as_ref());
        self.driver.bytes_sent += u64::from(size);
        let hop = self.hop;
        net.send(now, Packet::new(seq, hop, aux, size, bits));
    }
}

fn outstanding(board: &Scoreboard) -> bool {
    board.high() > board.una()
}

/// The receiver of a paced flow.
#[derive(Clone)]
struct PacedReceiver {
    clock: Clock,
    hop: u32,
    timer: usize,
    ack_size: u16,
    /// Gaps below `highest`: first sequence number, one past the last, and the time of the last
    /// NAK.
    missing: VecDeque<(u32, u32, u64)>,
    /// One past the highest sequence number received.
    highest: u32,
    last_arrival: u64,
    last_stamp: u32,
    intervals: MedianFilter<HISTORY>,
    pairs: MedianFilter<HISTORY>,
    fresh: bool,
    reporting: bool,
    /// Bytes of headers in a packet.
    header: u16,
    received: u64,
    /// Data that arrived for the first time, and the time of the last of these arrivals.
    new: Payload,
    last_new: u64,
}

impl PacedReceiver {
    fn new(tcp: &Tcp, clock: Clock, hop: u32, timer: usize) -> Self {
        PacedReceiver {
            clock,
            hop,
            timer,
            ack_size: saturate16(tcp.ack as usize),
            missing: VecDeque::new(),
            highest: 0,
            last_arrival: 0,
            last_stamp: 0,
            intervals: MedianFilter::new(),
            pairs: MedianFilter::new(),
            fresh: false,
            reporting: false,
            header: saturate16(tcp.header as usize),
            received: 0,
            new: Payload::default(),
            last_new: 0,
        }
    }

    /// Packets received in order.
    fn in_order(&self) -> u32 {
        self.missing.front().map_or(self.highest, |range| range.0)
    }

    /// Handles a data packet.
    fn data(&mut self, net: &mut Net, now: u64, packet: Packet) {
        let (seq, highest) = (packet.seq(), self.highest);
        self.record(now, packet);
        if seq > highest {
            self.missing.push_back((highest, seq, now));
            self.send_nak(net, now, &[(highest, seq)]);
        }
        if !self.reporting {
            self.reporting = true;
            net.arm(self.timer, now + self.clock.ticks(SYN));
        }
    }

    /// Records the packet and updates the link estimates.
    #[inline]
    fn record(&mut self, at: u64, packet: Packet) {
        self.received += 1;
        if self.received > 1 {
            let gap = self.clock.nanos(at - self.last_arrival);
            if packet.flags() & flags::PAIR != 0 {
                self.pairs.add(gap, 1);
            }
            self.intervals.add(gap, 1);
        }
        self.last_arrival = at;
        self.last_stamp = packet.aux();
        self.fresh = true;
        let seq = packet.seq();
        let new = seq >= self.highest || self.fill_gap(seq);
        self.highest = self.highest.max(seq + 1);
        if new {
            self.new.packets += 1;
            self.new.bytes += u64::from(packet.size()) - u64::from(self.header);
            self.last_new = at;
        }
    }

    /// Removes packet `seq` from the gaps. Returns whether it was missing.
    fn fill_gap(&mut self, seq: u32) -> bool {
        let at = self.missing.partition_point(|range| range.1 <= seq);
        let Some(&(start, end, named)) = self.missing.get(at) else { return false };
        if seq < start {
            return false;
        }
        match (seq == start, seq + 1 == end) {
            (true, true) => {
                self.missing.remove(at);
            }
            (true, false) => self.missing[at].0 = seq + 1,
            (false, true) => self.missing[at].1 = seq,
            (false, false) => {
                self.missing[at].1 = seq;
                self.missing.insert(at + 1, (seq + 1, end, named));
            }
        }
        true
    }

    /// Handles the report timer. A NAK is repeated after four times `rtt`, the sender's estimate,
    /// plus SYN.
    fn wake(&mut self, net: &mut Net, now: u64, rtt: u64) {
        let syn = self.clock.ticks(SYN);
        let patience = 4 * rtt + syn;
        let mut ranges = [(0, 0); 3];
        let mut count = 0;
        for range in &mut self.missing {
            if now - range.2 >= patience {
                range.2 = now;
                ranges[count] = (range.0, range.1);
                count += 1;
                if count == ranges.len() {
                    break;
                }
            }
        }
        if count > 0 {
            self.send_nak(net, now, &ranges[..count]);
        }
        if std::mem::take(&mut self.fresh) {
            let extra = Extra {
                stamp: low32(self.clock.nanos(now - self.last_arrival) / MICRO),
                echo: self.last_stamp,
                ..Extra::NONE
            }
            .with_rates([self.intervals.rate(HISTORY / 2), self.pairs.rate(0)]);
            self.send_feedback(net, now, extra, flags::REPORT);
        }
        self.reporting = now - self.last_arrival < syn || !self.missing.is_empty();
        if self.reporting {
            net.arm(self.timer, now + syn);
        }
    }

    fn send_nak(&mut self, net: &mut Net, now: u64, ranges: &[(u32, u32)]) {
        let mut extra = Extra { count: saturate32(ranges.len()), ..Extra::default() };
        extra.blocks[..ranges.len()].copy_from_slice(ranges);
        self.send_feedback(net, now, extra, flags::NAK);
    }

    fn send_feedback(&mut self, net: &mut Net, now: u64, extra: Extra, kind: u16) {
        let aux = net.extras[self.timer / TIMERS].put(extra);
        let (hop, seq, size) = (self.hop, self.in_order(), self.ack_size);
        net.send(now, Packet::new(seq, hop, aux, size, flags::ACK | kind));
    }
}
