//! Pacing, timers and delivery-rate samples, for the controllers that use them.

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

/// The delivery-rate estimator and its state of each packet from the first unacknowledged one on.
#[derive(Default)]
struct Flight {
    estimator: DeliveryEstimator,
    una: u32,
    sent: VecDeque<Sent>,
}

impl Demands {
    /// Returns the state for a controller; `None` if it needs neither pacing, timers nor delivery-rate samples.
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
    /// Reports the controller's Tick if it is due. Returns whether to send what the window allows: after the Tick, or if a paced
    /// packet departs.
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

    /// Time of the next timer action for the controller. A burst that the host delays contains the next paced packet.
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
        let Some(demands) = &mut self.demands else { return };
        if let Some(period) = period {
            demands.next_send = demands.next_send.max(now).saturating_add(period);
        }
        if let Some(flight) = &mut demands.flight {
            flight.sent(clock.time(now), seq, una, in_flight);
        }
    }

    /// The departure time of the next packet at the pacing rate; `None` for a sender that is not paced.
    pub(super) fn departure(&self) -> Option<u64> {
        self.demands.as_ref().map(|demands| demands.next_send)
    }

    /// Completes the pacing of a segment of Linux that was due at `due` and has been sent at `now` (`tcp_update_skb_after_send`): a
    /// late sender makes up for its delay by at most half of the segment's time, and the first packets are not paced.
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

    /// Returns the state of lost packet `seq` at its transmission; `None` if the packet is not in flight.
    pub(super) fn loss_sample(&self, seq: u32) -> Option<LossSample> {
        let flight = self.demands.as_ref()?.flight.as_ref()?;
        Some(flight.estimator.loss_sample(&flight.packet(seq)?))
    }

    /// Returns the delivery-rate sample of an acknowledgement that newly covers `packets` packets. `newest` is the most
    /// recently sent of them.
    pub(super) fn delivery_sample(
        &mut self,
        now: u64,
        packets: u32,
        newest: u32,
    ) -> Option<RateSample> {
        let now = self.driver.clock.time(now);
        let una = self.board.una();
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
        flight.advance(una);
        sample
    }
}

impl Flight {
    fn sent(&mut self, now: Time, seq: u32, una: u32, in_flight: u32) {
        if self.sent.is_empty() {
            self.una = una;
        }
        let sent = self.estimator.sent(now, in_flight);
        let place = (seq - self.una) as usize;
        match self.sent.get_mut(place) {
            Some(again) => *again = sent,
            None => self.sent.push_back(sent),
        }
    }

    fn packet(&self, seq: u32) -> Option<Sent> {
        self.sent.get(seq.checked_sub(self.una)? as usize).copied()
    }

    /// Removes the packets below `una`.
    fn advance(&mut self, una: u32) {
        let gone = (una.saturating_sub(self.una) as usize).min(self.sent.len());
        self.sent.drain(..gone);
        self.una = self.una.max(una);
    }
}
