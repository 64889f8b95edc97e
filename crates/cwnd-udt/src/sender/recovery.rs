//! Loss recovery: loss reports, lost retransmissions, and the retransmission timer.

use super::{MIN_EXPIRY, SYN, Sender};
use crate::config::Counters;
use crate::estimate::Rtt;
use crate::packet::Losses;
use cwnd::{Dur, Event, Lost, Time};

/// The state after a timeout, until all packets before `point` have arrived. Only packets sent
/// since the timeout count as in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedOut {
    /// The first packet that had not been sent when the timer expired.
    pub point: u64,
    /// When the timer expired.
    at: Time,
    /// Packets sent since then that are neither acknowledged nor reported lost.
    pub in_flight: u64,
}

impl Sender {
    /// Marks a sent packet as lost. Returns false if it was marked before.
    fn mark_lost(&mut self, at: u64) -> bool {
        let fresh = self.buffer.mark_lost(at);
        if let Some(timed_out) = self.timed_out.as_mut().filter(|_| fresh)
            && self.buffer.sent_at(at) >= timed_out.at
        {
            timed_out.in_flight = timed_out.in_flight.saturating_sub(1);
        }
        fresh
    }

    /// Removes the packets before `at`, which have arrived, from those in flight since the last
    /// timeout.
    pub(super) fn remove_arrived_from_flight(&mut self, at: u64) {
        let Some(timed_out) = &mut self.timed_out else { return };
        let buffer = &self.buffer;
        let sent = (buffer.una()..at).filter(|at| buffer.sent_at(*at) >= timed_out.at);
        timed_out.in_flight = timed_out.in_flight.saturating_sub(sent.count() as u64);
        if at >= timed_out.point {
            self.timed_out = None;
        }
    }

    /// Processes a loss report. Returns false if it names packets never sent, or out of order.
    pub(crate) fn handle_nak(
        &mut self,
        now: Time,
        losses: Losses,
        rtt: &Rtt,
        count: &mut Counters,
    ) -> bool {
        count.pkt_recv_nak += 1;
        // A report cannot be about a retransmission sent less than a round trip ago.
        let min_age = rtt.smoothed;
        let (mut packets, mut newest, mut from) = (0, (Time::ZERO, 0), 0);
        let mut valid = true;
        for range in losses {
            let ends = self.buffer.packet_of(range.last);
            let Some(last) = ends.filter(|last| *last < self.buffer.next()) else {
                valid = ends.is_none() && valid;
                continue;
            };
            let first = self.buffer.packet_of(range.first).unwrap_or(0).max(self.buffer.una());
            if first < from || last + 1 < first {
                valid = false;
                break;
            }
            from = last + 1;
            for at in first..from {
                let sent_at = self.buffer.sent_at(at);
                let again = self.buffer.sends(at) > 1 && now.since(sent_at) < min_age;
                if !again && self.mark_lost(at) {
                    packets += 1;
                    newest = newest.max((sent_at, at));
                }
            }
        }
        if packets > 0 {
            self.timer_start = now;
        }
        self.report_lost(now, packets, newest, count);
        valid
    }

    /// Reports `packets` packets as lost. `newest` is the transmission time and the number of the
    /// one that was sent last.
    fn report_lost(&mut self, now: Time, packets: u32, newest: (Time, u64), count: &mut Counters) {
        if packets == 0 {
            return;
        }
        count.pkt_snd_loss += u64::from(packets);
        self.recovery.get_or_insert(self.buffer.next());
        let lost = self.lost(packets, newest);
        self.report(now, Event::Lost(lost));
    }

    /// Counts lost packets for the delivery rate. Returns them as an event has them.
    fn lost(&mut self, packets: u32, (sent_at, newest): (Time, u64)) -> Lost {
        let mut lost = Lost::new(packets, sent_at, self.packets_sent);
        let flight = self.flight.as_mut().filter(|_| packets > 0);
        lost.delivery = flight.and_then(|flight| flight.lost(packets, newest));
        lost
    }

    /// When the retransmission timer expires; `None` with nothing outstanding.
    pub(super) fn expiry(&self, rtt: &Rtt) -> Option<Time> {
        let times = self.expiries + 1;
        let answer = times * rtt.rto().as_nanos() + SYN.as_nanos();
        (self.buffer.outstanding() > 0)
            .then(|| self.timer_start + Dur::from_nanos(answer.max(times * MIN_EXPIRY)))
    }

    /// The time after which an unacknowledged retransmission counts as lost.
    pub(super) fn repair_timeout(rtt: &Rtt) -> Dur {
        Dur::from_nanos(2 * rtt.rto().as_nanos() + 2 * SYN.as_nanos())
    }

    /// When the retransmission of the first missing packet counts as lost. A UDT4 receiver reports
    /// a loss only once, and delivers no later packet before this one.
    pub(super) fn repair_expiry(&self, rtt: &Rtt) -> Option<Time> {
        let una = self.buffer.una();
        let waits = una < self.buffer.next() && self.buffer.sends(una) > 1;
        let rto = Sender::repair_timeout(rtt);
        (waits && !self.buffer.is_lost(una)).then(|| self.buffer.sent_at(una) + rto)
    }

    /// Declares the retransmission of the first missing packet lost. The number of retransmissions
    /// declared lost doubles with each consecutive call: one per call would be too slow after a
    /// burst of losses.
    pub(super) fn repair(&mut self, now: Time, rtt: &Rtt, count: &mut Counters) {
        let before = now - Sender::repair_timeout(rtt);
        let (mut packets, mut newest) = (0, (Time::ZERO, 0));
        for at in self.buffer.una()..self.buffer.next() {
            let sent_at = self.buffer.sent_at(at);
            if self.buffer.sends(at) > 1 && sent_at <= before && self.mark_lost(at) {
                packets += 1;
                newest = newest.max((sent_at, at));
                if packets == self.repair_batch {
                    break;
                }
            }
        }
        self.repair_batch = self.repair_batch.saturating_mul(2);
        if self.flow_window() > 2 {
            self.report_lost(now, packets, newest, count);
        } else {
            // A full receiver drops the two packets with which UDT probes its window: this is no
            // congestion signal.
            count.pkt_snd_loss += u64::from(packets);
        }
    }

    pub(super) fn expire(&mut self, now: Time, count: &mut Counters) {
        self.timer_start = now;
        if self.buffer.is_lost(self.buffer.una()) && self.next_packet().is_ok() {
            // The retransmission waits for the pacer: this is no congestion signal.
            return;
        }
        self.expiries += 1;
        count.timeouts += 1;
        let (una, next) = (self.buffer.una(), self.buffer.next());
        // After a second expiry, ignore the receiver's earlier reports: some may have been lost.
        let ahead = if self.expiries == 1 && self.highest > una {
            self.highest
        } else {
            self.delivered = una;
            una
        };
        let (mut packets, mut newest) = (0, (Time::ZERO, 0));
        for at in una..next {
            // Packets before `highest` that were never retransmitted have arrived. The first
            // unacknowledged packet is missing even if its loss report was lost.
            let missing = at >= ahead || at == una || self.buffer.sends(at) > 1;
            if missing && self.buffer.mark_lost(at) {
                packets += 1;
                newest = newest.max((self.buffer.sent_at(at), at));
            }
        }
        count.pkt_snd_loss += u64::from(packets);
        self.recovery = None;
        self.timed_out = Some(TimedOut { point: next, at: now, in_flight: 0 });
        // Probes dropped by a full receiver and messages dropped at this end are no congestion
        // signals.
        if self.flow_window() > 2 && self.buffer.dropped_count() < self.buffer.outstanding() {
            let lost = self.lost(packets, newest);
            self.report(now, Event::Timeout(lost));
        }
    }
}
