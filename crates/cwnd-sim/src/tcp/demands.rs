//! Pacing, timers and delivery-rate samples, for the controllers that use them.

use super::scoreboard::Newly;
use super::sender::{Ack, Core};
use crate::driver::Driver;
use crate::engine::net::Net;
use crate::engine::ring::Ring;
use crate::engine::schedule::NONE;
use cwnd::delivery::{DeliveryEstimator, LossSample, RateSample, Sent};
use cwnd::{AnyController, Controller, Dur, Event, Limit, Time};

/// Data packets that Linux sends before it paces (`tcp_update_skb_after_send`).
const UNPACED: u64 = 10;

/// Sender state for a controller with pacing, timers or delivery-rate samples.
#[derive(Clone)]
pub(super) struct Demands {
    /// The departure time of the next packet.
    next_send: u64,
    /// The packets in flight, if the controller needs delivery-rate samples.
    flight: Option<Flight>,
}

/// The delivery-rate estimator and its state of each packet from the first unacknowledged one on.
#[derive(Clone, Default)]
struct Flight {
    estimator: DeliveryEstimator,
    /// The first packet of `sent`.
    first: u32,
    sent: Ring<Sent>,
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
        let paced = self.driver.meter.limit == Limit::Pacing && !demands.delays(now);
        let ticks = self.driver.next_tick() <= now;
        if ticks {
            self.driver.report_congestion(now, Event::Tick);
        }
        ticks || paced
    }

    /// Arms the timer for the controller's Tick and the next paced packet.
    #[inline(never)]
    pub(super) fn arm_demands(&mut self, net: &mut Net, now: u64) {
        net.arm(self.timer as usize, self.demands_due().max(now));
    }

    /// Time of the next timer action for the controller. A burst that the host delays contains the
    /// next paced packet.
    #[inline(always)]
    pub(super) fn demands_due(&self) -> u64 {
        let Some(demands) = &self.demands else { return NONE };
        let paced = self.driver.meter.limit == Limit::Pacing && !self.burst_waits();
        let departure = if paced { demands.next_send } else { NONE };
        departure.min(self.driver.next_tick())
    }

    /// Records the transmission or retransmission of packet `seq` at `now`.
    pub(super) fn record_sent(&mut self, now: u64, seq: u32) {
        let clock = self.driver.meter.clock;
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

    /// Reports an acknowledgement with a delivery-rate sample. In Linux a controller that is not a
    /// window law also gets the departure time of the next packet with it. A separate function,
    /// because the sample would force the acknowledgement out of registers in the common case.
    #[inline(never)]
    pub(super) fn report_acked_with_delivery(
        &mut self,
        now: u64,
        newly: Newly,
        ack: &Ack,
        grows: bool,
        (limit, linux): (Limit, bool),
    ) {
        let mut acked = self.acked::<true>(now, newly, ack, grows);
        acked.limit = limit;
        let whole = !matches!(self.driver.controller, AnyController::Window(_));
        if let Some(demands) = self.demands.as_ref().filter(|it| it.flight.is_some())
            && linux
            && whole
        {
            acked.departure = Some(self.driver.meter.clock.time(demands.next_send));
        }
        self.driver.report_in_place(now, &Event::Acked(acked));
    }

    /// Returns the delivery-rate sample of an acknowledgement that covers `newly`.
    #[inline(always)]
    pub(super) fn delivery_sample(&mut self, now: u64, newly: Newly) -> Option<RateSample> {
        let now = self.driver.meter.clock.time(now);
        let min_rtt = match self.driver.meter.min_rtt {
            u64::MAX => Dur::ZERO,
            ticks => self.driver.meter.clock.dur(ticks),
        };
        let flight = self.demands.as_mut()?.flight.as_mut()?;
        let Newly { packets, newest, .. } = newly;
        let newest = if packets > 0 { flight.packet(newest) } else { None };
        let sample =
            newest.map(|newest| flight.estimator.sample_newest(now, packets, &newest, min_rtt));
        flight.advance(self.board.una());
        sample
    }
}

impl Flight {
    #[inline(always)]
    fn sent(&mut self, now: Time, seq: u32, una: u32, in_flight: u32) {
        if self.sent.len() == 0 {
            self.first = una;
        }
        let sent = self.estimator.sent(now, in_flight);
        let place = self.place(seq);
        if place < self.sent.len() {
            *self.sent.get_mut(place) = sent;
        } else {
            self.sent.push(sent);
        }
    }

    /// The index of packet `seq`, beyond the last one if it has been acknowledged.
    #[inline(always)]
    fn place(&self, seq: u32) -> usize {
        seq.wrapping_sub(self.first) as usize
    }

    #[inline(always)]
    fn packet(&self, seq: u32) -> Option<Sent> {
        let place = self.place(seq);
        (place < self.sent.len()).then(|| self.sent.get(place))
    }

    /// Removes the packets below `una`, which are acknowledged.
    #[inline(always)]
    fn advance(&mut self, una: u32) {
        let covered = (una.saturating_sub(self.first) as usize).min(self.sent.len());
        self.sent.skip(covered);
        self.first = una;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::scoreboard::Scoreboard;
    use cwnd::Dur;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Every packet that is not acknowledged has the state of its last transmission.
        #[test]
        fn packets_that_may_yield_a_sample_have_their_state(
            steps in proptest::collection::vec((0u8..5, 0u32..40, 1u32..12), 0..200),
        ) {
            let (mut board, mut flight) = (Scoreboard::default(), Flight::default());
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
                flight.advance(board.una());
                for seq in board.una()..board.high() {
                    prop_assert_eq!(flight.packet(seq), expected[&seq], "{}", seq);
                }
            }
        }
    }
}
