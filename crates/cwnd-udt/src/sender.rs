//! The sending half of a connection: scheduling of packets, processing of acknowledgements, and
//! controller events.

mod flight;
mod recovery;

use self::flight::Flight;
use self::recovery::TimedOut;
use crate::buffer::SendBuffer;
use crate::cast::{low32, saturate32};
use crate::config::{Config, Counters};
use crate::estimate::{PAIR_EVERY, PairTrust, Rtt};
use crate::keep_alive::KeepAliveTimer;
use crate::limit_times::LimitTimes;
use crate::packet::{Ack, DropRequest, HEADER, Progress};
use crate::seq::{AckNo, Seq};
use cwnd::record::{Entry, Record};
use cwnd::{Acked, AnyController, Controller, Cut, Dur, Event, Limit, Output, Rate, Report, Time};

/// SYN: UDT's interval of acknowledgements and of rate control.
pub const SYN: Dur = Dur::from_millis(10);
/// The shortest retransmission timeout, in nanoseconds.
pub const MIN_EXPIRY: u64 = 300_000_000;
/// Losses of a packet in a row that suggest a black hole: MAX_PROBES of RFC 8899 (section 5.1.2).
const BLACK_HOLE_LOSSES: u8 = 3;
/// The longest delay that the pacer compensates: a system timer may be one tick of 4 ms late.
const CATCH_UP: Dur = Dur::from_millis(5);
/// The number of packets before UDT4's arrival rate is usable: its filter of intervals starts with
/// values of one second.
const FILLED: u64 = 16;

/// The next transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Next {
    /// Consecutive packets in the buffer: the first, their number, and the size in bytes of each
    /// but the last.
    Run { at: u64, count: u64, size: usize },
    /// A drop request for an expired message.
    Drop(DropRequest),
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub buffer: SendBuffer,
    controller: AnyController,
    output: Output,
    /// The controller's last Tick.
    ticked: Option<Time>,
    record: Option<Record>,
    /// The last round-trip time passed to the controller.
    sample: Option<Dur>,
    /// Whether the controller receives acknowledgements and its window covers the packets in
    /// flight. Otherwise it receives the receiver's reports and its window covers all
    /// unacknowledged packets, as in UDT.
    windowed: bool,
    /// The packets in flight for the delivery-rate estimator, if the controller needs one.
    flight: Option<Box<Flight>>,
    rate_limit: Option<Rate>,
    destination: u32,
    /// The right edge of the peer's receive window: one past the last packet that it has room for.
    window_edge: u64,
    /// The cumulative acknowledgement that reported `window_edge`.
    window_edge_ack: u64,
    /// The cumulative acknowledgement last reported to the controller.
    acked_reported: u64,
    /// The number of packets known to have arrived, in any order.
    delivered: u64,
    next_send: Time,
    /// The next packet completes a packet pair and is not paced.
    pair: bool,
    limit: Limit,
    limit_times: LimitTimes,
    /// When the window that limited the last poll opened.
    window_opened: Option<Time>,
    /// Recovery ends when all packets before this one have arrived.
    recovery: Option<u64>,
    timed_out: Option<TimedOut>,
    /// One past the highest packet that the receiver has reported as arrived in a progress report;
    /// 0 if it sends none (UDT4).
    highest: u64,
    /// The number of retransmissions that the next [`repair`](Self::repair) assumes lost.
    repair_batch: u32,
    /// The start of the retransmission timer.
    timer_start: Time,
    /// The expiries of the retransmission timer since the last progress.
    expiries: u64,
    /// The start of the time that is added to `us_snd_duration` next.
    snd_duration_start: Time,
    /// When the last data packet was sent.
    last_sent: Time,
    keep_alive: KeepAliveTimer,
    ack2: Option<AckNo>,
    last_ack2: Option<(AckNo, Time)>,
    /// The receiver's estimate of the path's capacity.
    pub capacity: Option<Rate>,
    pairs: PairTrust,
    packets_sent: u64,
}

impl Sender {
    /// Creates the sender of a connection to the socket `destination`, whose flow window is
    /// `window` packets.
    pub(crate) fn new(
        config: &Config,
        now: Time,
        (destination, initial): (u32, Seq),
        packet_size: u32,
        window: u32,
    ) -> Self {
        let payload = crate::handshake::payload_of(packet_size);
        let messages = config.socket_type == crate::handshake::SocketType::Message;
        let controller = config.controller.controller(&config.settings(packet_size, window));
        let needs = controller.needs();
        Sender {
            buffer: SendBuffer::new(
                config.send_buffer,
                (payload, config.same_payload),
                initial,
                messages,
            ),
            output: controller.output(),
            ticked: None,
            windowed: !needs.reports,
            flight: needs.delivery_rate.then(Box::default),
            controller,
            record: config.record.then(Record::default),
            sample: None,
            rate_limit: config.rate_limit.map(|bits| Rate::from_bits(bits, packet_size)),
            destination,
            window_edge: u64::from(window),
            window_edge_ack: 0,
            acked_reported: 0,
            delivered: 0,
            next_send: now,
            pair: false,
            limit: Limit::Application,
            limit_times: LimitTimes::new(now),
            window_opened: None,
            recovery: None,
            timed_out: None,
            highest: 0,
            repair_batch: 1,
            timer_start: now,
            expiries: 0,
            snd_duration_start: now,
            last_sent: now,
            keep_alive: KeepAliveTimer::new(now),
            ack2: None,
            last_ack2: None,
            capacity: None,
            pairs: PairTrust::default(),
            packets_sent: 0,
        }
    }

    pub(crate) fn controller(&self) -> &AnyController {
        &self.controller
    }

    pub(crate) fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    pub(crate) fn output(&self) -> Output {
        self.output
    }

    /// Whether the first missing packet was lost several times in a row, as if the path did not
    /// carry packets of its size any more: a black hole (RFC 8899, section 4.3). Smaller packets
    /// may arrive, and so may loss reports. A full receiver drops packets of any size.
    pub(crate) fn suspects_black_hole(&self) -> bool {
        let una = self.buffer.una();
        let missing = una < self.buffer.next() && self.flow_window() > 2;
        missing && self.buffer.sends(una) > BLACK_HOLE_LOSSES
    }

    pub(crate) fn limit(&self) -> Limit {
        self.limit
    }

    /// The peer's receive window: the number of packets after the acknowledged ones that it has
    /// room for.
    pub(crate) fn flow_window(&self) -> u64 {
        self.window_edge.saturating_sub(self.buffer.una())
    }

    /// Takes the last round-trip time passed to the controller.
    pub(crate) fn take_sample(&mut self) -> Option<Dur> {
        self.sample.take()
    }

    pub(crate) fn take_cut(&mut self) -> Option<Cut> {
        self.controller.take_cut()
    }

    fn report(&mut self, now: Time, event: Event) {
        match event {
            Event::Acked(Acked { rtt: Some(rtt), .. }) | Event::Report(Report { rtt, .. }) => {
                self.sample = Some(rtt);
            }
            _ => {}
        }
        self.controller.on(now, &event);
        self.output = self.controller.output();
        if let Some(record) = &mut self.record {
            record.entries.push(Entry { at: now, event, output: self.output });
        }
    }

    /// The pacing interval between two packets; zero without pacing.
    pub(crate) fn period(&self) -> Dur {
        match (self.output.pace, self.rate_limit) {
            (Some(pace), Some(limit)) => pace.period().max(limit.period()),
            (pace, limit) => pace.or(limit).map_or(Dur::ZERO, Rate::period),
        }
    }

    /// The number of packets in flight; for a controller that receives reports, of unacknowledged
    /// packets.
    fn in_flight(&self) -> u64 {
        let outstanding = self.buffer.outstanding() - self.buffer.dropped_count();
        if !self.windowed {
            return outstanding;
        }
        if let Some(timed_out) = self.timed_out {
            return timed_out.in_flight;
        }
        let ahead = self.delivered.saturating_sub(self.buffer.una());
        outstanding.saturating_sub(self.buffer.lost_count() + ahead)
    }

    /// Whether the window allows `more` packets in flight.
    fn window_allows(&self, more: u64) -> bool {
        (self.in_flight() + more) as f64 <= self.output.window.get()
    }

    /// Whether the packet `lost` is retransmitted at once, even if the window is closed. A rate law
    /// paces retransmissions. A receiver without progress reports acknowledges nothing before they
    /// have arrived. The first missing packet does not wait either (RFC 6675 section 5, step 4.3):
    /// without it the window may never open. After a timeout, a window law's retransmissions wait
    /// for the window.
    fn bypasses_window(&self, lost: u64) -> bool {
        let first = lost == self.buffer.una();
        !self.windowed || (self.timed_out.is_none() && (self.highest == 0 || first))
    }

    /// Selects the next packet and whether it is a retransmission. The error is the limit if none
    /// may be sent.
    #[inline]
    fn next_packet(&mut self) -> Result<(u64, bool), Limit> {
        if let Some(lost) = self.buffer.first_lost() {
            let free = self.bypasses_window(lost) || self.window_allows(1);
            return if free { Ok((lost, true)) } else { Err(Limit::Window) };
        }
        let next = self.buffer.next();
        if next == self.buffer.end() {
            Err(Limit::Application)
        } else if next >= self.window_edge {
            Err(Limit::Receiver)
        } else if !self.window_allows(1) {
            Err(Limit::Window)
        } else {
            Ok((next, false))
        }
    }

    /// Prepares the next transmission allowed now: up to `max_packets` packets that are contiguous
    /// in memory.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        now: Time,
        start: Time,
        max_packets: u64,
        count: &mut Counters,
    ) -> Option<Next> {
        let timestamp = low32(now.since(start).as_nanos() / 1000);
        let period = self.period();
        self.attribute_lateness(now, count);
        self.skip_ahead(now, count);
        let mut run: Option<(u64, u64, usize)> = None;
        loop {
            let (at, again) = match self.next_packet() {
                Ok(choice) => choice,
                Err(limit) => {
                    self.limit = limit;
                    self.pair = false;
                    self.record_application_limit();
                    // The pacer compensates its own delays only.
                    self.next_send = self.next_send.max(now);
                    break;
                }
            };
            if self.next_send > now && (again || !self.pair) {
                self.limit = Limit::Pacing;
                self.pair = false;
                break;
            }
            if let Some((first, packets, _)) = run
                && (at != first + packets || !self.buffer.follows(at) || packets == max_packets)
            {
                break;
            }
            if self.buffer.is_expired(at, now) {
                if run.is_some() {
                    break;
                }
                return Some(Next::Drop(self.drop_expired(now, at, count)));
            }
            self.send(now, (at, again), timestamp, count);
            self.next_send += period;
            let (first, packets, size) = run.unwrap_or((at, 0, self.buffer.size(at)));
            run = Some((first, packets + 1, size));
            // The packet after a shorter one is not contiguous.
            if !self.buffer.is_full(at) {
                break;
            }
        }
        self.limit_times.switch(now, run.is_none().then_some(self.limit), count);
        run.map(|(at, count, size)| Next::Run { at, count, size })
    }

    /// Skips the part of a delay that the pacer does not compensate, and attributes it to the
    /// processor.
    fn skip_ahead(&mut self, now: Time, count: &mut Counters) {
        let earliest = now - CATCH_UP;
        if self.next_send < earliest {
            if self.limit_times.limit() == Some(Limit::Pacing) {
                self.limit_times.switch(self.next_send + CATCH_UP, None, count);
            }
            self.next_send = earliest;
        }
    }

    /// Records when the receiver's feedback opens a closed window.
    #[inline]
    pub(crate) fn record_open_window(&mut self, now: Time) {
        let closed = matches!(self.limit_times.limit(), Some(Limit::Window | Limit::Receiver));
        if closed && self.window_opened.is_none() && self.next_packet().is_ok() {
            self.window_opened = Some(now);
        }
    }

    /// Attributes the time since a window opened to the processor, unless it is shorter than an
    /// eighth of the round-trip time: then it reduces the rate by less than an eighth.
    fn attribute_lateness(&mut self, now: Time, count: &mut Counters) {
        let Some(window_opened) = self.window_opened.take() else { return };
        let short = Dur::from_nanos(self.keep_alive.min_rtt().as_nanos() / 8);
        if now.since(window_opened) > short.min(CATCH_UP) {
            self.limit_times.switch(window_opened, None, count);
        }
    }

    /// Attributes the time up to `now` to the current limit.
    pub(crate) fn account(&mut self, now: Time, count: &mut Counters) {
        self.limit_times.elapse(now, count);
    }

    /// Attributes the time from `polled` to `now`, in which packets were passed to the system, to
    /// the processor. Only if they were the last packets of the data: more data from the
    /// application would not have been sent earlier.
    pub(crate) fn transmit_finished(&mut self, polled: Time, now: Time, count: &mut Counters) {
        if self.limit_times.limit() == Some(Limit::Application) && self.last_sent == polled {
            self.limit_times.busy_until(now, count);
        }
    }

    #[inline]
    fn send(&mut self, now: Time, (at, again): (u64, bool), timestamp: u32, count: &mut Counters) {
        if self.buffer.outstanding() == 0 {
            // Start the timer with the first outstanding packet (RFC 6298 section 5.1).
            self.timer_start = now;
            self.snd_duration_start = now;
        }
        self.buffer.send(now, at, again, timestamp, self.destination);
        self.packets_sent += 1;
        if let Some(timed_out) = &mut self.timed_out {
            timed_out.in_flight += 1;
        }
        if self.flight.is_some() {
            self.record_sent(now, at);
        }
        self.last_sent = now;
        count.pkt_sent += 1;
        if again {
            count.pkt_retrans += 1;
            self.pair = false;
        } else {
            count.byte_sent += (self.buffer.size(at) - HEADER) as u64;
            self.pair = self.buffer.seq(at).value().is_multiple_of(PAIR_EVERY);
        }
    }

    fn drop_expired(&mut self, now: Time, at: u64, count: &mut Counters) -> DropRequest {
        if self.buffer.outstanding() == 0 {
            self.timer_start = now;
            self.snd_duration_start = now;
        }
        let (message, packets, fresh) = self.buffer.drop_message(now, at, self.window_edge);
        count.msg_dropped += u64::from(fresh);
        let (first, last) = (self.buffer.seq(packets.start), self.buffer.seq(packets.end - 1));
        DropRequest { message, first, last }
    }

    /// Returns the number of the acknowledgement to answer, if an answer is due.
    pub(crate) fn poll_ack2(&mut self, now: Time) -> Option<AckNo> {
        let number = self.ack2.take()?;
        self.last_ack2 = Some((number, now));
        Some(number)
    }

    /// Processes a full acknowledgement. Returns false if it covers packets that were never sent.
    pub(crate) fn handle_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        rtt: &mut Rtt,
        count: &mut Counters,
    ) -> bool {
        let Some(at) = self.buffer.packet_of(ack.next).filter(|at| *at <= self.buffer.next())
        else {
            return false;
        };
        count.pkt_recv_ack += 1;
        self.answer(now, ack);
        self.keep_alive.full_ack_received(now);
        if at < self.window_edge_ack {
            return true;
        }
        let edge = at + u64::from(ack.available);
        if edge > self.window_edge {
            self.keep_alive.reset_backoff();
        }
        self.window_edge = edge;
        self.window_edge_ack = at;
        let reported = Dur::from_nanos(u64::from(ack.rtt_us) * 1000);
        let assumed = reported == Rtt::INITIAL.smoothed;
        let newest = self.newest_rtt(now, at);
        if !assumed {
            // UDT4's average starts at 100 ms and takes a second to converge to the measured value.
            rtt.sample(newest.map_or(reported, |newest| newest.min(reported)));
        } else if let Some(sample) = newest.filter(|_| !rtt.measured) {
            rtt.sample(sample);
        }
        let known = |rate: u32| (rate > 0).then(|| Rate::per_sec(f64::from(rate)));
        let (arrival, capacity) = ack.rates.map_or((None, None), |(a, c)| (known(a), known(c)));
        let arrival = arrival.filter(|_| at > FILLED);
        let broken = count.pkt_snd_loss + count.pkt_retrans;
        let capacity = capacity.filter(|_| self.pairs.is_reliable(self.packets_sent, broken));
        self.capacity = capacity.or(self.capacity);
        self.advance(now, (at, at, at), count);
        if !self.windowed && at > self.acked_reported {
            let packets = saturate32(at - self.acked_reported);
            self.acked_reported = at;
            let rtt = if assumed { newest.unwrap_or(rtt.smoothed) } else { reported };
            let mut report = Report::new(packets, self.packets_sent, rtt);
            report.arrival = arrival;
            report.capacity = capacity;
            self.report(now, Event::Report(report));
        }
        true
    }

    fn answer(&mut self, now: Time, ack: &Ack) {
        let due = match self.last_ack2 {
            Some((last, at)) => last == ack.number || ack.rates.is_some() || now.since(at) > SYN,
            None => true,
        };
        if due {
            self.ack2 = Some(ack.number);
        }
    }

    /// Processes a light acknowledgement. Returns false if it covers packets that were never sent.
    pub(crate) fn handle_light_ack(&mut self, now: Time, next: Seq, count: &mut Counters) -> bool {
        let at = self.buffer.packet_of(next).filter(|at| *at <= self.buffer.next());
        if let Some(at) = at {
            self.advance(now, (at, at, at), count);
        }
        at.is_some()
    }

    /// Processes a progress report. Returns false if it is inconsistent.
    pub(crate) fn handle_progress(
        &mut self,
        now: Time,
        progress: &Progress,
        count: &mut Counters,
    ) -> bool {
        let limit = self.buffer.next();
        let at = self.buffer.packet_of(progress.next).filter(|at| *at <= limit);
        let highest = self.buffer.packet_of(progress.highest).filter(|at| *at <= limit);
        let (Some(at), Some(highest)) = (at, highest) else { return false };
        let Some(arrived) = highest.checked_sub(u64::from(progress.missing)) else { return false };
        if arrived < at {
            return false;
        }
        self.highest = self.highest.max(highest);
        self.advance(now, (at, arrived, highest), count);
        true
    }

    /// The round-trip time measured by the acknowledgement of packet `at - 1` (Karn's rule).
    fn newest_rtt(&self, now: Time, at: u64) -> Option<Dur> {
        let newest = at.checked_sub(1).filter(|newest| *newest >= self.buffer.una())?;
        (self.buffer.sends(newest) == 1).then(|| now.since(self.buffer.sent_at(newest)))
    }

    /// Processes feedback about arrivals: all packets before `at` have arrived, `arrived` packets
    /// in total, and none from `highest` on.
    fn advance(
        &mut self,
        now: Time,
        (at, arrived, highest): (u64, u64, u64),
        count: &mut Counters,
    ) {
        let una = self.buffer.una();
        let sent_at = self.buffer.sent_at(highest.saturating_sub(1).max(una));
        let rtt = self.newest_rtt(now, at);
        if let Some(rtt) = rtt {
            self.keep_alive.rtt_sample(rtt);
        }
        let delivery = self.delivery_sample(now, (at, arrived, highest), rtt);
        if at > una {
            self.keep_alive.reset_backoff();
            self.remove_arrived_from_flight(at);
            self.buffer.acknowledge(at);
            count.us_snd_duration += now.since(self.snd_duration_start).as_nanos() / 1000;
            self.snd_duration_start = now;
            self.timer_start = now;
            self.expiries = 0;
            if at == self.buffer.next() || self.buffer.sends(at) <= 1 {
                self.repair_batch = 1;
            }
        }
        let arrived = arrived.max(at);
        let packets = arrived.saturating_sub(self.delivered);
        self.delivered = self.delivered.max(arrived);
        if packets > 0 {
            self.timer_start = now;
            self.expiries = 0;
        }
        if self.windowed && packets > 0 {
            let mut acked = Acked::new(saturate32(packets), sent_at);
            acked.in_flight = saturate32(self.in_flight());
            acked.sent = self.packets_sent;
            acked.rtt = rtt.map(|rtt| rtt.max(Dur::from_nanos(1)));
            acked.limit = self.controller_limit();
            acked.delivery = delivery;
            self.report(now, Event::Acked(acked));
        }
        if self.recovery.is_some_and(|point| at >= point) {
            self.recovery = None;
            self.report(now, Event::Recovered);
        }
    }

    /// The limit as reported to the controller: the configured rate limit counts as the
    /// application.
    fn controller_limit(&self) -> Limit {
        let own = match (self.output.pace, self.rate_limit) {
            (Some(pace), Some(limit)) => pace <= limit,
            (pace, _) => pace.is_some(),
        };
        if self.limit == Limit::Pacing && !own { Limit::Application } else { self.limit }
    }

    /// One SYN after everything written was acknowledged; `None` before.
    pub(crate) fn delivered_until(&self) -> Option<Time> {
        (self.buffer.una() == self.buffer.end()).then(|| self.timer_start + SYN)
    }

    /// When a keep-alive is due that makes the receiver send an acknowledgement.
    fn keep_alive_due(&self) -> Option<Time> {
        let closed = matches!(self.limit, Limit::Window | Limit::Receiver);
        (closed && self.buffer.outstanding() > 0 && self.buffer.lost_count() == 0)
            .then(|| self.keep_alive.due(self.last_sent))
    }

    /// Processes the timers due at `now`. Returns true if a keep-alive is due.
    pub(crate) fn handle_timeout(&mut self, now: Time, rtt: &Rtt, count: &mut Counters) -> bool {
        if self.next_tick().is_some_and(|at| at <= now) {
            self.ticked = Some(now);
            self.report(now, Event::Tick);
        }
        if self.expiry(rtt).is_some_and(|at| at <= now) {
            self.expire(now, count);
        } else if self.repair_expiry(rtt).is_some_and(|at| at <= now) {
            self.repair(now, rtt, count);
        }
        self.record_open_window(now);
        let keep_alive = self.keep_alive_due().is_some_and(|at| at <= now);
        if keep_alive {
            self.keep_alive.sent(now);
        }
        keep_alive
    }

    fn next_tick(&self) -> Option<Time> {
        self.output.next_tick(self.ticked)
    }

    /// The earliest timer; `Time::NEVER` if none is armed.
    pub(crate) fn next_wakeup(&self, rtt: &Rtt) -> Time {
        let paced = (self.limit == Limit::Pacing).then_some(self.next_send);
        let due = |at: Option<Time>| at.unwrap_or(Time::NEVER);
        due(paced)
            .min(due(self.next_tick()))
            .min(due(self.expiry(rtt)))
            .min(due(self.repair_expiry(rtt)))
            .min(due(self.keep_alive_due()))
    }
}
