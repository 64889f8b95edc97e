//! The sending half: what goes out when, what comes back about it, and what the controller is told.

use crate::buffer::SendBuffer;
use crate::config::{Config, Counters};
use crate::estimate::{PAIR_EVERY, PairTrust, Rtt};
use crate::nudge::Nudge;
use crate::packet::{Ack, DropRequest, HEADER, Losses, Progress};
use crate::seq::{AckNo, Seq};
use crate::shares::Shares;
use cwnd::record::{Entry, Record};
use cwnd::{
    Acked, AnyController, Controller, Cut, Dur, Event, Limit, Lost, Output, Rate, Report, Time,
};

/// SYN, UDT's interval of acknowledgements and of rate control.
pub(crate) const SYN: Dur = Dur::from_millis(10);
/// The shortest time without an answer that counts as a timeout.
pub(crate) const MIN_EXPIRY: u64 = 300_000_000;
/// A late sender makes up for this much, and no more: a system timer may be a tick of 4 ms late.
const CATCH_UP: Dur = Dur::from_millis(5);
/// Until so many packets have arrived, UDT4 fills its filter of arrival intervals up with whole seconds.
const FILLED: u64 = 16;

/// What to send next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Next {
    /// A run of packets in the buffer: the first, how many, and the bytes of each but the last.
    Run { at: u64, count: u64, size: usize },
    /// A message whose time is over.
    Drop(DropRequest),
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub buffer: SendBuffer,
    controller: AnyController,
    output: Output,
    told: Option<Record>,
    /// The last round-trip time that it was told.
    sample: Option<Dur>,
    /// The law is for a window: it counts what is in the network, packet by packet.
    windowed: bool,
    rate_limit: Option<Rate>,
    destination: u32,
    /// One past the last packet that the receiver has room for, and the packet acknowledged with it.
    edge: u64,
    edge_at: u64,
    /// The packet up to which the controller was told of acknowledgements, and how many are known to
    /// have arrived in any order.
    reported: u64,
    delivered: u64,
    next_send: Time,
    /// The next packet completes a pair: it does not wait.
    pair: bool,
    limit: Limit,
    shares: Shares,
    /// Recovery ends when all before this packet has arrived.
    recovery: Option<u64>,
    /// All before this packet is sent again after a timeout, within the window.
    timed_out: Option<u64>,
    /// Packets whose repair is taken to have failed together, when the first one's has.
    batch: u32,
    /// The retransmission timer runs from here; how often it expired since anything arrived.
    since: Time,
    expiries: u64,
    busy_since: Time,
    /// When a packet last left.
    last_sent: Time,
    nudge: Nudge,
    ack2: Option<AckNo>,
    last_ack2: Option<(AckNo, Time)>,
    /// The receiver's estimate of the capacity, averaged.
    pub capacity: Option<Rate>,
    pairs: PairTrust,
    packets_sent: u64,
}

impl Sender {
    /// A sender to the socket `destination`, that has room for `window` packets of `payload` bytes.
    pub fn new(
        config: &Config,
        now: Time,
        (destination, initial): (u32, Seq),
        packet_size: u32,
        window: u32,
    ) -> Self {
        let payload = crate::handshake::payload_of(packet_size);
        let messages = config.socket_type == crate::handshake::SocketType::Message;
        let controller = config.controller.controller(config.settings(packet_size, window));
        Sender {
            buffer: SendBuffer::new(
                config.send_buffer,
                (payload, config.same_payload),
                initial,
                messages,
            ),
            output: controller.output(),
            windowed: matches!(controller, AnyController::Window(_)),
            controller,
            told: config.record.then(Record::default),
            sample: None,
            rate_limit: config.rate_limit.map(|bits| Rate::from_bits(bits, packet_size)),
            destination,
            edge: u64::from(window),
            edge_at: 0,
            reported: 0,
            delivered: 0,
            next_send: now,
            pair: false,
            limit: Limit::Application,
            shares: Shares::new(now),
            recovery: None,
            timed_out: None,
            batch: 1,
            since: now,
            expiries: 0,
            busy_since: now,
            last_sent: now,
            nudge: Nudge::new(now),
            ack2: None,
            last_ack2: None,
            capacity: None,
            pairs: PairTrust::default(),
            packets_sent: 0,
        }
    }

    pub fn controller(&self) -> &AnyController {
        &self.controller
    }

    pub fn told(&self) -> Option<&Record> {
        self.told.as_ref()
    }

    pub fn output(&self) -> Output {
        self.output
    }

    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Packets that the receiver has room for.
    pub fn flow_window(&self) -> u64 {
        self.edge.saturating_sub(self.buffer.una())
    }

    /// The last round-trip time that the controller was told, once.
    pub fn take_sample(&mut self) -> Option<Dur> {
        self.sample.take()
    }

    pub fn take_cut(&mut self) -> Option<Cut> {
        self.controller.take_cut()
    }

    fn tell(&mut self, now: Time, event: Event) {
        match event {
            Event::Acked(Acked { rtt: Some(rtt), .. }) | Event::Report(Report { rtt, .. }) => {
                self.sample = Some(rtt);
            }
            _ => {}
        }
        self.controller.on(now, &event);
        self.output = self.controller.output();
        if let Some(told) = &mut self.told {
            told.entries.push(Entry { at: now, event, output: self.output });
        }
    }

    /// The time between two packets.
    pub fn period(&self) -> Dur {
        match (self.output.pace, self.rate_limit) {
            (Some(pace), Some(limit)) => pace.period().max(limit.period()),
            (pace, limit) => pace.or(limit).map_or(Dur::ZERO, Rate::period),
        }
    }

    /// Packets in the network: a rate law's window is for all that is not acknowledged, as in UDT.
    fn in_flight(&self) -> u64 {
        let outstanding = self.buffer.outstanding() - self.buffer.dropped_count();
        if !self.windowed {
            return outstanding;
        }
        let ahead = self.delivered.saturating_sub(self.buffer.una());
        outstanding.saturating_sub(self.buffer.lost_count() + ahead)
    }

    /// Whether `more` packets are allowed in the network.
    fn window_allows(&self, more: u64) -> bool {
        (self.in_flight() + more) as f64 <= self.output.window
    }

    /// The next packet to send, and whether it was sent before; what keeps it back, if nothing may go.
    #[inline]
    fn choose(&mut self) -> Result<(u64, bool), Limit> {
        if let Some(lost) = self.buffer.first_lost() {
            // What is reported lost is sent at once; after a timeout the window opens anew.
            let free = self.timed_out.is_none() || !self.windowed || self.window_allows(1);
            return if free { Ok((lost, true)) } else { Err(Limit::Window) };
        }
        let next = self.buffer.next();
        if next == self.buffer.end() {
            Err(Limit::Application)
        } else if next >= self.edge {
            Err(Limit::Receiver)
        } else if !self.window_allows(1) {
            Err(Limit::Window)
        } else {
            Ok((next, false))
        }
    }

    /// Prepares what may be sent now: up to `most` packets that stand one behind the other.
    #[inline]
    pub fn poll(
        &mut self,
        now: Time,
        start: Time,
        most: u64,
        count: &mut Counters,
    ) -> Option<Next> {
        let timestamp = (now.since(start).as_nanos() / 1000) as u32;
        let period = self.period();
        self.skip_ahead(now, count);
        let mut run: Option<(u64, u64, usize)> = None;
        loop {
            let (at, again) = match self.choose() {
                Ok(choice) => choice,
                Err(limit) => {
                    self.limit = limit;
                    self.pair = false;
                    // What was held back by anything else is not caught up on.
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
                && (at != first + packets || !self.buffer.follows(at) || packets == most)
            {
                break;
            }
            if self.buffer.is_over(at, now) {
                if run.is_some() {
                    break;
                }
                return Some(Next::Drop(self.give_up(now, at, count)));
            }
            self.send(now, (at, again), timestamp, count);
            self.next_send += period;
            let (first, packets, size) = run.unwrap_or((at, 0, self.buffer.size(at)));
            run = Some((first, packets + 1, size));
            // Behind a shorter packet there is a gap.
            if !self.buffer.is_full(at) {
                break;
            }
        }
        self.shares.switch(now, run.is_none().then_some(self.limit), count);
        run.map(|(at, count, size)| Next::Run { at, count, size })
    }

    /// Gives up the part of a delay that the pacer does not make up for: the processor was too late.
    fn skip_ahead(&mut self, now: Time, count: &mut Counters) {
        let earliest = now - CATCH_UP;
        if self.next_send < earliest {
            if self.shares.state() == Some(Limit::Pacing) {
                self.shares.switch(self.next_send + CATCH_UP, None, count);
            }
            self.next_send = earliest;
        }
    }

    /// Ends the time in which a window was the limit, once news from the receiver allows another packet.
    #[inline]
    pub fn unblock(&mut self, now: Time, count: &mut Counters) {
        let closed = matches!(self.shares.state(), Some(Limit::Window | Limit::Receiver));
        if closed && self.choose().is_ok() {
            self.shares.switch(now, (self.next_send > now).then_some(Limit::Pacing), count);
        }
    }

    /// Attributes the time up to `now` to what limits the sender.
    pub fn account(&mut self, now: Time, count: &mut Counters) {
        self.shares.elapse(now, count);
    }

    /// Attributes the time in which the packets of the poll at `polled` were sent to the processor if they
    /// were the last ones: the application could not have supplied packets that leave earlier.
    pub fn sent_by(&mut self, polled: Time, now: Time, count: &mut Counters) {
        if self.shares.state() == Some(Limit::Application) && self.last_sent == polled {
            self.shares.busy_until(now, count);
        }
    }

    #[inline]
    fn send(&mut self, now: Time, (at, again): (u64, bool), timestamp: u32, count: &mut Counters) {
        if self.buffer.outstanding() == 0 {
            // Nothing was expected before (RFC 6298 section 5.1).
            self.since = now;
            self.busy_since = now;
        }
        self.buffer.send(now, at, again, timestamp, self.destination);
        self.packets_sent += 1;
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

    fn give_up(&mut self, now: Time, at: u64, count: &mut Counters) -> DropRequest {
        if self.buffer.outstanding() == 0 {
            self.since = now;
            self.busy_since = now;
        }
        let (message, packets, fresh) = self.buffer.drop_message(now, at, self.edge);
        count.msg_dropped += u64::from(fresh);
        let (first, last) = (self.buffer.seq(packets.start), self.buffer.seq(packets.end - 1));
        DropRequest { message, first, last }
    }

    /// The answer to an acknowledgement, if one is due.
    pub fn poll_ack2(&mut self, now: Time) -> Option<AckNo> {
        let number = self.ack2.take()?;
        self.last_ack2 = Some((number, now));
        Some(number)
    }

    /// An acknowledgement arrived. False if it acknowledges what was never sent.
    pub fn acked(&mut self, now: Time, ack: &Ack, rtt: &mut Rtt, count: &mut Counters) -> bool {
        let Some(at) = self.buffer.packet_of(ack.next).filter(|at| *at <= self.buffer.next())
        else {
            return false;
        };
        count.pkt_recv_ack += 1;
        self.answer(now, ack);
        self.nudge.heard(now);
        if at < self.edge_at {
            return true;
        }
        let edge = at + u64::from(ack.available);
        if edge > self.edge {
            self.nudge.answered();
        }
        self.edge = edge;
        self.edge_at = at;
        let reported = Dur::from_nanos(u64::from(ack.rtt_us) * 1000);
        let assumed = reported == Rtt::INITIAL.smoothed;
        let newest = self.newest_rtt(now, at);
        if !assumed {
            rtt.sample(reported);
        } else if let Some(sample) = newest.filter(|_| !rtt.measured) {
            rtt.sample(sample);
        }
        let known = |rate: u32| (rate > 0).then(|| Rate::per_sec(f64::from(rate)));
        let (arrival, capacity) = ack.rates.map_or((None, None), |(a, c)| (known(a), known(c)));
        let arrival = arrival.filter(|_| at > FILLED);
        let broken = count.pkt_snd_loss + count.pkt_retrans;
        let capacity = capacity.filter(|_| self.pairs.believes(self.packets_sent, broken));
        self.capacity = capacity.or(self.capacity);
        self.advance(now, (at, at, at), count);
        if !self.windowed && at > self.reported {
            let packets = (at - self.reported) as u32;
            self.reported = at;
            let report = Report {
                packets,
                sent: self.packets_sent,
                arrival,
                capacity,
                rtt: if assumed { newest.unwrap_or(rtt.smoothed) } else { reported },
            };
            self.tell(now, Event::Report(report));
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

    /// A light acknowledgement arrived.
    pub fn light_acked(&mut self, now: Time, next: Seq, count: &mut Counters) -> bool {
        let at = self.buffer.packet_of(next).filter(|at| *at <= self.buffer.next());
        if let Some(at) = at {
            self.advance(now, (at, at, at), count);
        }
        at.is_some()
    }

    /// The receiver tells how far a window with holes has come.
    pub fn progressed(&mut self, now: Time, progress: &Progress, count: &mut Counters) -> bool {
        let limit = self.buffer.next();
        let at = self.buffer.packet_of(progress.next).filter(|at| *at <= limit);
        let highest = self.buffer.packet_of(progress.highest).filter(|at| *at <= limit);
        let (Some(at), Some(highest)) = (at, highest) else { return false };
        let Some(arrived) = highest.checked_sub(u64::from(progress.missing)) else { return false };
        if arrived < at {
            return false;
        }
        self.advance(now, (at, arrived, highest), count);
        true
    }

    /// The round-trip time that the acknowledgement of all before `at` measures (Karn's rule).
    fn newest_rtt(&self, now: Time, at: u64) -> Option<Dur> {
        let newest = at.checked_sub(1).filter(|newest| *newest >= self.buffer.una())?;
        (self.buffer.sends(newest) == 1).then(|| now.since(self.buffer.sent_at(newest)))
    }

    /// All before `at` has arrived, `arrived` packets in all, and none from `highest` on.
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
            self.nudge.sample(rtt);
        }
        if at > una {
            self.nudge.answered();
            self.buffer.acknowledge(at);
            count.us_snd_duration += now.since(self.busy_since).as_nanos() / 1000;
            self.busy_since = now;
            self.since = now;
            self.expiries = 0;
            if self.timed_out.is_some_and(|point| at >= point) {
                self.timed_out = None;
            }
            if at == self.buffer.next() || self.buffer.sends(at) <= 1 {
                self.batch = 1;
            }
        }
        let arrived = arrived.max(at);
        let packets = arrived.saturating_sub(self.delivered);
        self.delivered = self.delivered.max(arrived);
        if self.windowed && packets > 0 {
            let acked = Acked {
                packets: packets as u32,
                credit: packets as u32,
                in_flight: self.in_flight() as u32,
                sent: self.packets_sent,
                sent_at,
                rtt: rtt.map(|rtt| rtt.max(Dur::from_nanos(1))),
                received_at: None,
                echo: false,
                limit: self.limit,
            };
            self.tell(now, Event::Acked(acked));
        }
        if self.recovery.is_some_and(|point| at >= point) {
            self.recovery = None;
            self.tell(now, Event::Recovered);
        }
    }

    /// A loss report arrived. False if it names what was never sent, or not in order.
    pub fn nacked(&mut self, now: Time, losses: Losses, rtt: &Rtt, count: &mut Counters) -> bool {
        count.pkt_recv_nak += 1;
        // What was sent again a moment ago cannot have been missed yet.
        let moment = Dur::from_nanos(rtt.smoothed.as_nanos() / 2);
        let (mut packets, mut newest, mut from) = (0, Time::ZERO, 0);
        let mut sound = true;
        for range in losses {
            let ends = self.buffer.packet_of(range.last);
            let Some(last) = ends.filter(|last| *last < self.buffer.next()) else {
                sound = ends.is_none() && sound;
                continue;
            };
            let first = self.buffer.packet_of(range.first).unwrap_or(0).max(self.buffer.una());
            if first < from || last + 1 < first {
                sound = false;
                break;
            }
            from = last + 1;
            for at in first..from {
                let sent_at = self.buffer.sent_at(at);
                let again = self.buffer.sends(at) > 1 && now.since(sent_at) < moment;
                if !again && self.buffer.lose(at) {
                    packets += 1;
                    newest = newest.max(sent_at);
                }
            }
        }
        if packets > 0 {
            self.since = now;
        }
        self.tell_lost(now, packets, newest, count);
        sound
    }

    fn tell_lost(&mut self, now: Time, packets: u32, sent_at: Time, count: &mut Counters) {
        if packets == 0 {
            return;
        }
        count.pkt_snd_loss += u64::from(packets);
        self.recovery.get_or_insert(self.buffer.next());
        self.tell(now, Event::Lost(Lost { packets, sent_at, sent: self.packets_sent }));
    }

    /// When all that was written has been acknowledged for one SYN, if it has been.
    pub fn delivered_until(&self) -> Option<Time> {
        (self.buffer.una() == self.buffer.end()).then(|| self.since + SYN)
    }

    /// When to wake a receiver whose silence keeps the sender from sending.
    fn nudge(&self) -> Option<Time> {
        let closed = matches!(self.limit, Limit::Window | Limit::Receiver);
        (closed && self.buffer.outstanding() > 0 && self.buffer.lost_count() == 0)
            .then(|| self.nudge.due(self.last_sent))
    }

    /// When the retransmission timer expires.
    fn expiry(&self, rtt: &Rtt) -> Option<Time> {
        let times = self.expiries + 1;
        let answer = times * rtt.patience().as_nanos() + SYN.as_nanos();
        (self.buffer.outstanding() > 0)
            .then(|| self.since + Dur::from_nanos(answer.max(times * MIN_EXPIRY)))
    }

    /// How long a repair may take.
    fn repair_patience(rtt: &Rtt) -> Dur {
        Dur::from_nanos(2 * rtt.patience().as_nanos() + 2 * SYN.as_nanos())
    }

    /// When a repair of the first missing packet must have failed: a UDT4 receiver reports a loss only
    /// once, and all else waits for this packet.
    fn repair_expiry(&self, rtt: &Rtt) -> Option<Time> {
        let una = self.buffer.una();
        let waits = una < self.buffer.next() && self.buffer.sends(una) > 1;
        let patience = Sender::repair_patience(rtt);
        (waits && !self.buffer.is_lost(una)).then(|| self.buffer.sent_at(una) + patience)
    }

    /// Repairs the first missing packet once more. As often as the next one that is missing turns out to
    /// have been repaired in vain too, twice as many are: a burst of losses would take for ever one by one.
    fn repair(&mut self, now: Time, rtt: &Rtt, count: &mut Counters) {
        let before = now - Sender::repair_patience(rtt);
        let (mut packets, mut newest) = (0, Time::ZERO);
        for at in self.buffer.una()..self.buffer.next() {
            let sent_at = self.buffer.sent_at(at);
            if self.buffer.sends(at) > 1 && sent_at <= before && self.buffer.lose(at) {
                packets += 1;
                newest = newest.max(sent_at);
                if packets == self.batch {
                    break;
                }
            }
        }
        self.batch = self.batch.saturating_mul(2);
        if self.flow_window() > 2 {
            self.tell_lost(now, packets, newest, count);
        } else {
            // A receiver without room drops the two packets that UDT lets through to ask for some.
            count.pkt_snd_loss += u64::from(packets);
        }
    }

    /// Does what is due by now. True if the receiver is to be nudged with a keep-alive.
    pub fn handle_timeout(&mut self, now: Time, rtt: &Rtt, count: &mut Counters) -> bool {
        if self.output.wake.is_some_and(|at| at <= now) {
            self.tell(now, Event::Tick);
        }
        if self.expiry(rtt).is_some_and(|at| at <= now) {
            self.expire(now, count);
        } else if self.repair_expiry(rtt).is_some_and(|at| at <= now) {
            self.repair(now, rtt, count);
        }
        self.unblock(now, count);
        let nudges = self.nudge().is_some_and(|at| at <= now);
        if nudges {
            self.nudge.sent(now);
        }
        nudges
    }

    fn expire(&mut self, now: Time, count: &mut Counters) {
        self.since = now;
        if self.buffer.is_lost(self.buffer.una()) {
            // It waits for its turn: that is no news of the path.
            return;
        }
        self.expiries += 1;
        count.timeouts += 1;
        count.pkt_snd_loss += self.buffer.lose_all();
        self.delivered = self.buffer.una();
        self.recovery = None;
        self.timed_out = Some(self.buffer.next());
        // A receiver without room drops the two packets that UDT lets through to ask for some, and what
        // was dropped here says nothing of the path.
        if self.flow_window() > 2 && self.buffer.dropped_count() < self.buffer.outstanding() {
            self.tell(now, Event::Timeout { sent: self.packets_sent });
        }
    }

    /// When something is due; never, if nothing is.
    pub fn next_wakeup(&self, rtt: &Rtt) -> Time {
        let paced = (self.limit == Limit::Pacing).then_some(self.next_send);
        let due = |at: Option<Time>| at.unwrap_or(Time::NEVER);
        due(paced)
            .min(due(self.output.wake))
            .min(due(self.expiry(rtt)))
            .min(due(self.repair_expiry(rtt)))
            .min(due(self.nudge()))
    }
}
