//! Pacing, timers and delivery-rate samples, for the controllers that use them.

use super::scoreboard::Scoreboard;
use super::sender::Core;
use crate::driver::Driver;
use crate::engine::net::Net;
use crate::engine::schedule::NONE;
use cwnd::delivery::{DeliveryEstimator, LossSample, RateSample, Sent};
use cwnd::{Controller, Dur, Event, Limit, Time};
use std::collections::VecDeque;

/// Data packets that Linux sends before it paces (`tcp_update_skb_after_send`).
const UNPACED: u64 = 10;

/// Sender state for a controller with pacing, timers or delivery-rate samples.
pub(super) struct Demands {
    /// The departure time of the next packet.
    next_send: u64,
    /// The packets in flight, if the controller needs delivery-rate samples.
    flight: Option<Flight>,
}

/// The delivery-rate estimator and its state of each packet that may yield a sample: one that is
/// neither acknowledged nor SACKed. Thousands of SACKed packets may follow a lost one.
#[derive(Default)]
struct Flight {
    estimator: DeliveryEstimator,
    /// The packets below `first`, in ascending order. One that is SACKed later remains until it is
    /// acknowledged.
    holes: VecDeque<(u32, Sent)>,
    /// One past the highest SACKed packet, or the first unacknowledged one.
    first: u32,
    /// The packets from `first` on.
    sent: VecDeque<Sent>,
}

impl Demands {
    /// Returns the state for a controller; `None` if it needs neither pacing, timers nor
    /// delivery-rate samples.
    pub(super) fn of(driver: &Driver) -> Option<Box<Self>> {
        let flight = driver.controller.needs().delivery_rate.then(Flight::default);
        (flight.is_some() || !driver.is_ack_clocked())
            .then(|| Box::new(Demands { next_send: 0, flight }))
    }

    /// Whether the pacing rate delays the next packet.
    pub(super) fn delays(&self, now: u64) -> bool {
        self.next_send > now
    }
}

impl<E> Core<E> {
    /// Reports the controller's Tick if it is due. Returns whether to send what the window allows:
    /// after the Tick, or if a paced packet departs.
    pub(super) fn wake_demands(&mut self, now: u64) -> bool {
        let Some(demands) = &self.demands else { return false };
        let paced = self.driver.limit == Limit::Pacing && !demands.delays(now);
        let ticks = self.driver.next_tick() <= now;
        if ticks {
            self.driver.report_congestion(now, Event::Tick);
        }
        ticks || paced
    }

    /// Arms the timer for the controller's Tick and the next paced packet.
    #[inline(always)]
    pub(super) fn arm_demands(&mut self, net: &mut Net, now: u64) {
        net.arm(self.timer as usize, self.demands_due().max(now));
    }

    /// Time of the next timer action for the controller. A burst that the host delays contains the
    /// next paced packet.
    #[inline(always)]
    pub(super) fn demands_due(&self) -> u64 {
        let Some(demands) = &self.demands else { return NONE };
        let paced = self.driver.limit == Limit::Pacing && !self.burst_waits();
        let departure = if paced { demands.next_send } else { NONE };
        departure.min(self.driver.next_tick())
    }

    /// Records the transmission or retransmission of packet `seq` at `now`.
    pub(super) fn record_sent(&mut self, now: u64, seq: u32) {
        let clock = self.driver.clock;
        let period = self.driver.period();
        let in_flight = self.board.in_flight();
        let una = self.board.una();
        let connected = self.connected;
        let Some(demands) = &mut self.demands else { return };
        if let Some(period) = period {
            demands.next_send = demands.next_send.max(now).saturating_add(period);
        }
        // A SYN has no data: `C.delivered` does not count it, and it yields no sample.
        if let Some(flight) = &mut demands.flight
            && connected
        {
            flight.sent(clock.time(now), seq, una, in_flight);
        }
    }

    /// The departure time of the next packet at the pacing rate; `None` for a sender that is not
    /// paced.
    pub(super) fn departure(&self) -> Option<u64> {
        self.demands.as_ref().map(|demands| demands.next_send)
    }

    /// Completes the pacing of a segment of Linux that was due at `due` and has been sent at `now`
    /// (`tcp_update_skb_after_send`): a late sender makes up for its delay by at most half of the
    /// segment's time, and the first packets are not paced.
    pub(super) fn segment_sent(&mut self, now: u64, due: u64) {
        let paced = self.data_sent() >= UNPACED;
        let Some(demands) = &mut self.demands else { return };
        let start = due.max(now);
        let time = demands.next_send.saturating_sub(start);
        let credit = if paced { (start - due).min(time / 2) } else { time };
        demands.next_send -= credit;
    }

    /// Records the start of an application-limited phase if the window has room.
    pub(super) fn record_application_limit(&mut self) {
        let in_flight = self.board.in_flight();
        let room = f64::from(in_flight) < self.window();
        if let Some(flight) = self.demands.as_mut().and_then(|demands| demands.flight.as_mut())
            && room
        {
            flight.estimator.application_limited(in_flight);
        }
    }

    /// Records the loss of `packets` packets.
    pub(super) fn record_lost(&mut self, packets: u32) {
        if let Some(flight) = self.demands.as_mut().and_then(|demands| demands.flight.as_mut()) {
            flight.estimator.lost(packets);
        }
    }

    /// Returns the state of lost packet `seq` at its transmission; `None` if the packet is not in
    /// flight.
    pub(super) fn loss_sample(&self, seq: u32) -> Option<LossSample> {
        let flight = self.demands.as_ref()?.flight.as_ref()?;
        Some(flight.estimator.loss_sample(&flight.packet(seq)?))
    }

    /// Returns the delivery-rate sample of an acknowledgement that newly covers `packets` packets.
    /// `newest` is the most recently sent of them.
    pub(super) fn delivery_sample(
        &mut self,
        now: u64,
        packets: u32,
        newest: u32,
    ) -> Option<RateSample> {
        let now = self.driver.clock.time(now);
        let min_rtt = match self.driver.min_rtt {
            u64::MAX => Dur::ZERO,
            ticks => self.driver.clock.dur(ticks),
        };
        let flight = self.demands.as_mut()?.flight.as_mut()?;
        let mut sample = None;
        if packets > 0
            && let Some(newest) = flight.packet(newest)
        {
            flight.estimator.counted(now, packets - 1);
            flight.estimator.acked(now, &newest);
            sample = flight.estimator.sample(min_rtt);
        }
        flight.advance(&mut self.board);
        sample
    }
}

impl Flight {
    fn sent(&mut self, now: Time, seq: u32, una: u32, in_flight: u32) {
        if self.sent.is_empty() {
            self.first = self.first.max(una);
        }
        let sent = self.estimator.sent(now, in_flight);
        let Some(place) = seq.checked_sub(self.first) else {
            match self.hole(seq) {
                Ok(place) => self.holes[place].1 = sent,
                Err(place) => self.holes.insert(place, (seq, sent)),
            }
            return;
        };
        match self.sent.get_mut(place as usize) {
            Some(again) => *again = sent,
            None => self.sent.push_back(sent),
        }
    }

    /// The place of packet `seq` among the holes, or where it would be.
    fn hole(&self, seq: u32) -> Result<usize, usize> {
        self.holes.binary_search_by_key(&seq, |&(hole, _)| hole)
    }

    fn packet(&self, seq: u32) -> Option<Sent> {
        match seq.checked_sub(self.first) {
            Some(place) => self.sent.get(place as usize).copied(),
            None => self.hole(seq).ok().map(|place| self.holes[place].1),
        }
    }

    /// Removes the packets that an acknowledgement covers.
    #[inline(always)]
    fn advance(&mut self, board: &mut Scoreboard) {
        let una = board.una();
        let first = board.highest_sacked().max(una);
        while self.first < first
            && let Some(sent) = self.sent.pop_front()
        {
            if self.first >= una && !board.is_sacked(self.first) {
                self.holes.push_back((self.first, sent));
            }
            self.first += 1;
        }
        while self.holes.front().is_some_and(|&(hole, _)| hole < una) {
            self.holes.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cwnd::Dur;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Every packet that is neither acknowledged nor SACKed has the state of its last
        /// transmission.
        #[test]
        fn packets_that_may_yield_a_sample_have_their_state(
            steps in proptest::collection::vec((0u8..5, 0u32..40, 1u32..12), 0..200),
        ) {
            let (mut board, mut flight) = (Scoreboard::new(), Flight::default());
            let mut expected = BTreeMap::new();
            for (at, (kind, place, length)) in steps.into_iter().enumerate() {
                let now = at as u64 + 1;
                let (una, high) = (board.una(), board.high());
                let seq = una + place;
                match kind {
                    0 | 1 => {
                        let seq = if kind == 1 && seq < high { seq } else { high };
                        if seq == high { board.sent(now) } else { board.resent(now, seq) }
                        flight.sent(Time::ZERO + Dur::from_nanos(now), seq, una, board.in_flight());
                        expected.insert(seq, flight.packet(seq));
                        prop_assert!(flight.packet(seq).is_some());
                    }
                    2 => { board.sack(&[(seq, seq + length)]); }
                    3 => { board.acked((una + length).min(high)); }
                    _ => { board.mark_all_lost(); }
                }
                flight.advance(&mut board);
                for seq in board.una()..board.high() {
                    if !board.is_sacked(seq) {
                        prop_assert_eq!(flight.packet(seq), expected[&seq], "{}", seq);
                    }
                }
            }
        }
    }
}
