//! Loss: what the receiver reports, repairs that fail, and the retransmission timer.

use super::{MIN_EXPIRY, SYN, Sender};
use crate::config::Counters;
use crate::estimate::Rtt;
use crate::packet::Losses;
use cwnd::{Dur, Event, Lost, Time};

/// What follows a timeout: all packets before `point` that are not known to have arrived are sent again, within
/// the window that the timeout leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedOut {
    /// The first packet that had not been sent when the timer expired.
    pub point: u64,
    /// When the timer expired.
    at: Time,
    /// Packets sent since that are neither acknowledged nor lost again.
    pub in_flight: u64,
}

impl Sender {
    /// Marks a sent packet as lost; false if it was.
    fn lose(&mut self, at: u64) -> bool {
        let fresh = self.buffer.lose(at);
        if let Some(timed_out) = self.timed_out.as_mut().filter(|_| fresh)
            && self.buffer.sent_at(at) >= timed_out.at
        {
            timed_out.in_flight = timed_out.in_flight.saturating_sub(1);
        }
        fresh
    }

    /// Counts the packets before `at`, which have arrived, out of those sent since the last timeout.
    pub(super) fn leave_timeout(&mut self, at: u64) {
        let Some(timed_out) = &mut self.timed_out else { return };
        let buffer = &self.buffer;
        let sent = (buffer.una()..at).filter(|at| buffer.sent_at(*at) >= timed_out.at);
        timed_out.in_flight = timed_out.in_flight.saturating_sub(sent.count() as u64);
        if at >= timed_out.point {
            self.timed_out = None;
        }
    }

    /// A loss report arrived. False if it names what was never sent, or not in order.
    pub fn nacked(&mut self, now: Time, losses: Losses, rtt: &Rtt, count: &mut Counters) -> bool {
        count.pkt_recv_nak += 1;
        // A packet that was sent again less than a round trip ago cannot have been missed yet.
        let moment = rtt.smoothed;
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
                if !again && self.lose(at) {
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

    /// When the retransmission timer expires.
    pub(super) fn expiry(&self, rtt: &Rtt) -> Option<Time> {
        let times = self.expiries + 1;
        let answer = times * rtt.patience().as_nanos() + SYN.as_nanos();
        (self.buffer.outstanding() > 0)
            .then(|| self.since + Dur::from_nanos(answer.max(times * MIN_EXPIRY)))
    }

    /// How long a repair may take.
    pub(super) fn repair_patience(rtt: &Rtt) -> Dur {
        Dur::from_nanos(2 * rtt.patience().as_nanos() + 2 * SYN.as_nanos())
    }

    /// When a repair of the first missing packet must have failed: a UDT4 receiver reports a loss only
    /// once, and all else waits for this packet.
    pub(super) fn repair_expiry(&self, rtt: &Rtt) -> Option<Time> {
        let una = self.buffer.una();
        let waits = una < self.buffer.next() && self.buffer.sends(una) > 1;
        let patience = Sender::repair_patience(rtt);
        (waits && !self.buffer.is_lost(una)).then(|| self.buffer.sent_at(una) + patience)
    }

    /// Repairs the first missing packet once more. As often as the next one that is missing turns out to
    /// have been repaired in vain too, twice as many are: a burst of losses would take for ever one by one.
    pub(super) fn repair(&mut self, now: Time, rtt: &Rtt, count: &mut Counters) {
        let before = now - Sender::repair_patience(rtt);
        let (mut packets, mut newest) = (0, Time::ZERO);
        for at in self.buffer.una()..self.buffer.next() {
            let sent_at = self.buffer.sent_at(at);
            if self.buffer.sends(at) > 1 && sent_at <= before && self.lose(at) {
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

    pub(super) fn expire(&mut self, now: Time, count: &mut Counters) {
        self.since = now;
        if self.buffer.is_lost(self.buffer.una()) && self.choose().is_ok() {
            // The repair waits for the pacer: that is no news of the path.
            return;
        }
        self.expiries += 1;
        count.timeouts += 1;
        // A second expiry doubts the receiver's reports as well: some may have been lost.
        count.pkt_snd_loss += if self.expiries == 1 && self.highest > self.buffer.una() {
            self.buffer.lose_missing(self.highest)
        } else {
            self.delivered = self.buffer.una();
            self.buffer.lose_all()
        };
        self.recovery = None;
        self.timed_out = Some(TimedOut { point: self.buffer.next(), at: now, in_flight: 0 });
        // A receiver without room drops the two packets that UDT lets through to ask for some, and what
        // was dropped here says nothing of the path.
        if self.flow_window() > 2 && self.buffer.dropped_count() < self.buffer.outstanding() {
            self.tell(now, Event::Timeout { sent: self.packets_sent });
        }
    }
}
