//! The delivery-rate estimation of a connection, for controllers that need it.

use super::Sender;
use cwnd::delivery::{DeliveryEstimator, LossSample, RateSample, Sent};
use cwnd::{Dur, Limit, Time};
use std::collections::VecDeque;

/// The estimator, and its state of each packet from the first unacknowledged one on.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    estimator: DeliveryEstimator,
    /// The first packet of `sent`.
    una: u64,
    sent: VecDeque<Sent>,
    min_rtt: Dur,
}

impl Default for Flight {
    fn default() -> Self {
        let estimator = DeliveryEstimator::default();
        Flight { estimator, una: 0, sent: VecDeque::new(), min_rtt: Dur::MAX }
    }
}

impl Flight {
    fn packet(&self, at: u64) -> Option<&Sent> {
        self.sent.get(usize::try_from(at.checked_sub(self.una)?).ok()?)
    }

    /// Records the loss of `packets` packets, and returns the sample of packet `newest`, which was
    /// sent last.
    pub(super) fn lost(&mut self, packets: u32, newest: u64) -> Option<LossSample> {
        self.estimator.lost(packets);
        Some(self.estimator.loss_sample(self.packet(newest)?))
    }
}

impl Sender {
    /// Records a transmission of packet `at`.
    pub(super) fn record_sent(&mut self, now: Time, at: u64) {
        let in_flight = u32::try_from(self.in_flight()).unwrap_or(u32::MAX);
        let una = self.buffer.una();
        let Some(flight) = &mut self.flight else { return };
        if flight.sent.is_empty() {
            flight.una = una;
        }
        let sent = flight.estimator.sent(now, in_flight);
        let index = usize::try_from(at.saturating_sub(flight.una)).unwrap_or(usize::MAX);
        match flight.sent.get_mut(index) {
            Some(again) => *again = sent,
            // Packets of dropped messages may have been skipped: they take the state of this one.
            None => flight.sent.resize(index.saturating_add(1), sent),
        }
    }

    /// Records an application-limited phase: the window is open, and there is nothing to send.
    pub(super) fn record_application_limit(&mut self) {
        if self.flight.is_none() || self.limit != Limit::Application || !self.window_allows(1) {
            return;
        }
        let in_flight = u32::try_from(self.in_flight()).unwrap_or(u32::MAX);
        if let Some(flight) = &mut self.flight {
            flight.estimator.application_limited(in_flight);
        }
    }

    /// The rate sample of feedback that all packets before `at` have arrived, `arrived` in total
    /// and none from `highest` on. Of the packets after `at`, the feedback identifies only the
    /// highest: the sample is that of packet `at - 1` or `highest - 1`, whichever was sent last.
    pub(super) fn delivery_sample(
        &mut self,
        now: Time,
        (at, arrived, highest): (u64, u64, u64),
        rtt: Option<Dur>,
    ) -> Option<RateSample> {
        let more = arrived.max(at).saturating_sub(self.delivered);
        let una = self.buffer.una();
        let candidates = [at, highest].map(|end| end.checked_sub(1).filter(|&last| last >= una));
        let newest = candidates.into_iter().flatten().max_by_key(|&at| self.buffer.sent_at(at));
        let flight = self.flight.as_mut()?;
        if let Some(rtt) = rtt {
            flight.min_rtt = flight.min_rtt.min(rtt);
        }
        let mut sample = None;
        if let Some(newest) = newest.and_then(|at| flight.packet(at).copied())
            && more > 0
        {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let min_rtt = if flight.min_rtt == Dur::MAX { Dur::ZERO } else { flight.min_rtt };
            sample = Some(flight.estimator.sample_newest(now, more, &newest, min_rtt));
        }
        let gone = usize::try_from(at.saturating_sub(flight.una)).unwrap_or(usize::MAX);
        flight.sent.drain(..gone.min(flight.sent.len()));
        flight.una = flight.una.max(at);
        sample
    }
}
