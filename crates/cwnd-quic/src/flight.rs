//! The packets in flight, for the delivery-rate samples of the controllers that need them.

use cwnd::delivery::{DeliveryEstimator, LossSample, RateSample, Sent};
use cwnd::{Dur, Time};
use std::collections::VecDeque;

/// A packet, or the packets that a stack reports together.
#[derive(Clone, Copy, Debug)]
struct Entry {
    sent_at: Time,
    /// Its number, which packets of other number spaces may have too.
    number: Option<u64>,
    /// Bytes in flight.
    bytes: u64,
    /// The state when the last of the packets was sent.
    sent: Sent,
}

/// The packets in flight in the order of sending, and the estimator.
///
/// A stack forgets packets without a callback: those of a discarded number space and lost probes of
/// the path's MTU. [`limit`](Self::limit) removes them: they are the oldest ones when the stack
/// says how many bytes are in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    entries: VecDeque<Entry>,
    /// Bytes of all entries.
    bytes: u64,
    estimator: DeliveryEstimator,
    /// The most recently sent of the packets that were lost.
    lost: Option<Entry>,
}

impl Flight {
    /// `packets` packets with `bytes` bytes in all are sent while `in_flight` packets are in
    /// flight.
    pub(crate) fn sent(
        &mut self,
        now: Time,
        packets: u32,
        bytes: u64,
        number: Option<u64>,
        in_flight: u32,
    ) {
        let mut sent = Sent::default();
        for packet in 1..=packets {
            sent = self.estimator.sent(now, in_flight.saturating_add(packet));
        }
        self.entries.push_back(Entry { sent_at: now, number, bytes, sent });
        self.bytes += bytes;
    }

    /// Bytes in flight.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// At most `bytes` are in flight: removes the oldest packets above.
    pub(crate) fn limit(&mut self, bytes: u64) {
        while self.bytes > bytes
            && let Some(oldest) = self.entries.front_mut()
        {
            let surplus = oldest.bytes.min(self.bytes - bytes);
            oldest.bytes -= surplus;
            self.bytes -= surplus;
            if oldest.bytes == 0 {
                self.entries.pop_front();
            }
        }
    }

    /// Removes `bytes` of the entry at `position`; returns it.
    fn take(&mut self, position: usize, bytes: u64) -> Entry {
        let entry = &mut self.entries[position];
        let taken = *entry;
        let bytes = if entry.number.is_some() { entry.bytes } else { entry.bytes.min(bytes) };
        entry.bytes -= bytes;
        self.bytes -= bytes;
        while self.entries.front().is_some_and(|oldest| oldest.bytes == 0) {
            self.entries.pop_front();
        }
        taken
    }

    /// The entry of a packet that was sent at `sent_at`. Packets of two number spaces may be equal
    /// in time and number if they share a datagram; either entry does.
    fn find(&self, sent_at: Time, bytes: u64, number: Option<u64>) -> Option<usize> {
        let least = if number.is_some() { 1 } else { bytes.max(1) };
        let is_it = |entry: &Entry| {
            entry.sent_at == sent_at && entry.number == number && entry.bytes >= least
        };
        // Most acknowledgements cover the oldest packets.
        if self.entries.front().is_some_and(is_it) {
            return Some(0);
        }
        let first = self.entries.partition_point(|entry| entry.sent_at < sent_at);
        let same = self.entries.range(first..).take_while(|entry| entry.sent_at == sent_at);
        same.enumerate().find(|(_, entry)| is_it(entry)).map(|(at, _)| first + at)
    }

    /// A packet of `bytes` bytes that was sent at `sent_at` is acknowledged.
    pub(crate) fn acked(&mut self, now: Time, sent_at: Time, bytes: u64, number: Option<u64>) {
        match self.find(sent_at, bytes, number) {
            Some(position) => {
                let entry = self.take(position, bytes);
                self.estimator.acked(now, &entry.sent);
            }
            None => self.estimator.counted(now, 1),
        }
    }

    /// The packet `number` of `bytes` bytes is lost.
    #[cfg(feature = "noq")]
    pub(crate) fn lost(&mut self, number: u64, bytes: u64) {
        let is_it = |entry: &Entry| entry.number == Some(number) && entry.bytes == bytes;
        if let Some(position) = self.entries.iter().position(is_it) {
            self.lost = Some(self.take(position, bytes));
        }
    }

    /// The oldest `bytes` bytes, of packets that were sent at `until` or before, are lost. A stack
    /// declares packets lost in the order of sending, and has reported the acknowledged ones
    /// before.
    #[cfg(feature = "quinn")]
    pub(crate) fn oldest_lost(&mut self, mut bytes: u64, until: Time) {
        while bytes > 0
            && let Some(oldest) = self.entries.front()
            && oldest.sent_at <= until
        {
            let taken = oldest.bytes.min(bytes);
            bytes -= taken;
            self.lost = Some(self.take(0, taken));
        }
    }

    /// The losses of `packets` packets are complete; the most recently sent of them was sent at
    /// `sent_at`. Returns its state.
    pub(crate) fn losses_end(&mut self, packets: u32, sent_at: Time) -> Option<LossSample> {
        self.estimator.lost(packets);
        let newest = self.lost.take().filter(|entry| entry.sent_at == sent_at)?;
        Some(self.estimator.loss_sample(&newest.sent))
    }

    /// The application has no more data while `in_flight` packets are in flight.
    pub(crate) fn application_limited(&mut self, in_flight: u32) {
        self.estimator.application_limited(in_flight);
    }

    /// The sample of the acknowledgement.
    pub(crate) fn sample(&mut self, min_rtt: Dur) -> Option<RateSample> {
        self.estimator.sample(min_rtt)
    }
}
