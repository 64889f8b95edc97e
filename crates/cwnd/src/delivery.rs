//! Delivery-rate samples, as draft-ietf-ccwg-bbr section 4.1 defines them: the rate at which the
//! network delivered the most recent flight of packets.
//!
//! A driver keeps one [`DeliveryEstimator`] for a connection and one [`Sent`] for each packet in
//! flight. Volumes are in packets, whatever their size: for up to two round trips after a change of
//! the maximum packet size ([`Event::Mtu`](crate::Event::Mtu)) samples count packets of the old
//! size, and a controller converts them ([`PacketSizes`](crate::parts::PacketSizes)).
//!
//! ```
//! use cwnd::delivery::DeliveryEstimator;
//! use cwnd::{Dur, Time};
//!
//! let at = |millis| Time::ZERO + Dur::from_millis(millis);
//! let mut estimator = DeliveryEstimator::default();
//! // Ten packets leave at once; the bottleneck forwards one each millisecond.
//! let sent: Vec<_> = (1..=10).map(|in_flight| estimator.sent(at(0), in_flight)).collect();
//! for (packet, millis) in sent.iter().zip(50..60) {
//!     estimator.acked(at(millis), packet);
//! }
//! let sample = estimator.sample(Dur::from_millis(50)).unwrap();
//! assert_eq!((sample.delivered, sample.interval()), (10, Dur::from_millis(59)));
//! ```

use crate::units::{Dur, Rate, Time};

/// The state of a connection when a packet was sent: P in the draft. A driver stores it with the
/// packet and replaces it at a retransmission.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sent {
    delivered_time: Time,
    first_sent_time: Time,
    sent_time: Time,
    /// The lower bits of the counts: a packet is in flight for less than 2^31 others.
    delivered: u32,
    lost: u32,
    /// The packet's number in order of sending (P.packet_id).
    number: u32,
    /// Packets in flight, and [`LIMITED`].
    in_flight: u32,
}

/// Set in `in_flight` of packets sent in an application-limited phase.
const LIMITED: u32 = 1 << 31;

/// A delivery-rate sample: RS in the draft, of the most recently sent packet that an
/// acknowledgement covers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RateSample {
    /// Packets delivered between the transmission of the packet and this acknowledgement
    /// (RS.delivered).
    pub delivered: u64,
    /// Packets delivered before the packet was sent (RS.prior_delivered).
    pub prior_delivered: u64,
    /// The time in which the packets of the sample were sent (RS.send_elapsed).
    pub send_elapsed: Dur,
    /// The time in which they were acknowledged (RS.ack_elapsed).
    pub ack_elapsed: Dur,
    /// Packets declared lost between the transmission of the packet and this acknowledgement
    /// (RS.lost).
    pub lost: u64,
    /// Packets in flight just after the transmission of the packet (RS.tx_in_flight).
    pub in_flight: u32,
    /// Whether the packet was sent in an application-limited phase (RS.is_app_limited).
    pub application_limited: bool,
    /// Whether the interval is at least the smallest round-trip time: a shorter one overestimates
    /// the rate.
    pub reliable: bool,
}

impl Sent {
    /// When the packet was last sent (P.send_time).
    pub const fn sent_at(&self) -> Time {
        self.sent_time
    }
}

impl RateSample {
    /// An unreliable sample of nothing, for drivers that fill in the fields from another estimator,
    /// such as the kernel's.
    pub const fn new() -> Self {
        RateSample {
            delivered: 0,
            prior_delivered: 0,
            send_elapsed: Dur::ZERO,
            ack_elapsed: Dur::ZERO,
            lost: 0,
            in_flight: 0,
            application_limited: false,
            reliable: false,
        }
    }

    /// The sampling interval: the longer of `send_elapsed` and `ack_elapsed` (RS.interval).
    pub fn interval(&self) -> Dur {
        self.send_elapsed.max(self.ack_elapsed)
    }

    /// The delivery rate (RS.delivery_rate); `None` where the sample is not reliable.
    pub fn rate(&self) -> Option<Rate> {
        let interval = self.interval();
        let known = self.reliable && !interval.is_zero();
        known.then(|| Rate::over(self.delivered as f64, interval))
    }
}

impl Default for RateSample {
    fn default() -> Self {
        RateSample::new()
    }
}

/// The state of a lost packet when it was sent: P in the draft's HandleLostPacket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LossSample {
    /// Packets declared lost since the packet was sent, with it (C.lost - P.lost).
    pub lost: u64,
    /// Packets in flight just after the transmission of the packet (P.tx_in_flight).
    pub in_flight: u32,
    /// Whether the packet was sent in an application-limited phase (P.is_app_limited).
    pub application_limited: bool,
}

impl LossSample {
    /// A sample of nothing, for drivers that fill in the fields from another estimator.
    pub const fn new() -> Self {
        LossSample { lost: 0, in_flight: 0, application_limited: false }
    }
}

/// What the acknowledgement being processed has covered so far.
#[derive(Clone, Copy, Debug)]
struct Newest {
    packet: Sent,
    ack_elapsed: Dur,
}

/// The delivery-rate estimator of a connection: C in the draft.
///
/// For each acknowledgement a driver calls [`acked`](Self::acked) for each newly acknowledged
/// packet, then [`sample`](Self::sample).
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryEstimator {
    delivered: u64,
    lost: u64,
    /// Packets sent, with retransmissions, modulo 2^32.
    sent: u32,
    delivered_time: Time,
    first_sent_time: Time,
    /// The delivered count at which the application-limited phase is over.
    limited_until: Option<u64>,
    newest: Option<Newest>,
}

impl DeliveryEstimator {
    /// Packets delivered since the connection began (C.delivered).
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Packets declared lost since the connection began (C.lost).
    pub fn lost_total(&self) -> u64 {
        self.lost
    }

    /// A packet is transmitted or retransmitted at `now`; `in_flight` counts the packets in flight
    /// with it.
    #[inline]
    pub fn sent(&mut self, now: Time, in_flight: u32) -> Sent {
        if in_flight <= 1 {
            self.first_sent_time = now;
            self.delivered_time = now;
        }
        self.sent = self.sent.wrapping_add(1);
        Sent {
            delivered: self.delivered as u32,
            lost: self.lost as u32,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            sent_time: now,
            number: self.sent,
            in_flight: in_flight & !LIMITED | u32::from(self.limited_until.is_some()) << 31,
        }
    }

    /// The acknowledgement that arrived at `now` newly acknowledges `packet`.
    pub fn acked(&mut self, now: Time, packet: &Sent) {
        self.counted(now, 1);
        // IsNewestPacket: numbers follow the times of sending, and order packets sent at the same
        // time.
        let later = |than: Sent| packet.number.wrapping_sub(than.number).cast_signed() > 0;
        if self.newest.is_none_or(|newest| later(newest.packet)) {
            let ack_elapsed = now.since(packet.delivered_time);
            self.newest = Some(Newest { packet: *packet, ack_elapsed });
            self.first_sent_time = packet.sent_time;
        }
    }

    /// The acknowledgement that arrived at `now` counts `packets` more packets as delivered without
    /// identifying them.
    #[inline]
    pub fn counted(&mut self, now: Time, packets: u32) {
        self.delivered += u64::from(packets);
        self.delivered_time = now;
    }

    /// `packets` packets are declared lost.
    pub fn lost(&mut self, packets: u32) {
        self.lost += u64::from(packets);
    }

    /// The state of a packet that [`lost`](Self::lost) has counted.
    pub fn loss_sample(&self, packet: &Sent) -> LossSample {
        LossSample {
            lost: since(self.lost, packet.lost),
            in_flight: packet.in_flight & !LIMITED,
            application_limited: packet.in_flight & LIMITED != 0,
        }
    }

    /// The application has no data to send while the window has room: `in_flight` packets are in
    /// flight.
    pub fn application_limited(&mut self, in_flight: u32) {
        self.limited_until = Some(self.delivered + u64::from(in_flight));
    }

    /// The sample of the acknowledgement whose packets [`acked`](Self::acked) has counted; `None`
    /// if there were none. `min_rtt` is the smallest round-trip time of the connection, with the
    /// sample of this acknowledgement.
    pub fn sample(&mut self, min_rtt: Dur) -> Option<RateSample> {
        self.end_limited_phase();
        let Newest { packet, ack_elapsed } = self.newest.take()?;
        Some(self.sample_of(&packet, ack_elapsed, min_rtt))
    }

    /// The sample of an acknowledgement that arrived at `now` and newly covers `packets` packets;
    /// `newest` is the most recently sent of them. In place of [`acked`](Self::acked) and
    /// [`sample`](Self::sample).
    #[inline]
    pub fn sample_newest(
        &mut self,
        now: Time,
        packets: u32,
        newest: &Sent,
        min_rtt: Dur,
    ) -> RateSample {
        self.counted(now, packets);
        self.first_sent_time = newest.sent_time;
        self.end_limited_phase();
        self.sample_of(newest, now.since(newest.delivered_time), min_rtt)
    }

    #[inline]
    fn end_limited_phase(&mut self) {
        if self.limited_until.is_some_and(|until| self.delivered > until) {
            self.limited_until = None;
        }
    }

    #[inline]
    fn sample_of(&self, packet: &Sent, ack_elapsed: Dur, min_rtt: Dur) -> RateSample {
        let send_elapsed = packet.sent_time.since(packet.first_sent_time);
        let delivered = since(self.delivered, packet.delivered);
        RateSample {
            delivered,
            prior_delivered: self.delivered.saturating_sub(delivered),
            send_elapsed,
            ack_elapsed,
            lost: since(self.lost, packet.lost),
            in_flight: packet.in_flight & !LIMITED,
            application_limited: packet.in_flight & LIMITED != 0,
            reliable: send_elapsed.max(ack_elapsed) >= min_rtt,
        }
    }
}

/// The growth of a count since it had the lower bits `before`; 0 for a count of another connection
/// that is ahead.
fn since(count: u64, before: u32) -> u64 {
    (count as u32).wrapping_sub(before).cast_signed().max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, ms};
    use alloc::vec::Vec;

    const RTT: Dur = ms(50);

    /// A window of 10 in steady state at 1 packet/ms: each acknowledgement releases a packet.
    #[test]
    fn a_steady_sender_measures_the_bottleneck() {
        let mut estimator = DeliveryEstimator::default();
        let mut flight: Vec<Sent> = (1..=50).map(|n| estimator.sent(at_ms(0), n)).collect();
        let mut last = None;
        for millis in 50..400 {
            let packet = flight.remove(0);
            estimator.acked(at_ms(millis), &packet);
            last = estimator.sample(RTT);
            flight.push(estimator.sent(at_ms(millis), 50));
        }
        let sample = last.unwrap();
        assert_eq!(sample.rate(), Some(Rate::per_sec(1000.0)));
        assert_eq!((sample.delivered, sample.in_flight, sample.lost), (50, 50, 0));
        assert_eq!(sample.delivered + sample.prior_delivered, estimator.delivered());
    }

    /// Acknowledgements compressed into an instant do not raise the rate above the send rate.
    #[test]
    fn compressed_acknowledgements_are_bounded_by_the_send_rate() {
        let mut estimator = DeliveryEstimator::default();
        let first = estimator.sent(at_ms(0), 1);
        let flight: Vec<Sent> = (1..=100).map(|n| estimator.sent(at_ms(n), 1 + n as u32)).collect();
        estimator.acked(at_ms(200), &first);
        estimator.sample(RTT);
        for packet in &flight {
            estimator.acked(at_ms(200), packet);
        }
        let sample = estimator.sample(RTT).unwrap();
        assert_eq!(
            (sample.send_elapsed, sample.ack_elapsed),
            (ms(100), at_ms(200).since(at_ms(0)))
        );
        assert_eq!(sample.interval(), ms(200));
    }

    #[test]
    fn a_retransmission_acknowledged_too_early_is_not_reliable() {
        let mut estimator = DeliveryEstimator::default();
        let _ = estimator.sent(at_ms(0), 1);
        let other = estimator.sent(at_ms(0), 2);
        estimator.acked(at_ms(50), &other);
        estimator.sample(RTT);
        estimator.lost(1);
        let again = estimator.sent(at_ms(55), 1);
        // The original arrives: its acknowledgement comes 5 ms after the retransmission.
        estimator.acked(at_ms(60), &again);
        let sample = estimator.sample(RTT).unwrap();
        assert_eq!((sample.reliable, sample.rate()), (false, None));
        assert_eq!(sample.lost, 0);
        assert!(estimator.sample(RTT).is_none(), "nothing is newly acknowledged");
    }

    #[test]
    fn losses_count_between_transmission_and_acknowledgement() {
        let mut estimator = DeliveryEstimator::default();
        let flight: Vec<Sent> = (1..=4).map(|n| estimator.sent(at_ms(0), n)).collect();
        estimator.acked(at_ms(50), &flight[3]);
        estimator.lost(2);
        let sample = estimator.sample(RTT).unwrap();
        assert_eq!((sample.lost, sample.in_flight, sample.delivered), (2, 4, 1));
        assert_eq!(estimator.lost_total(), 2);
        let lost = estimator.loss_sample(&flight[1]);
        assert_eq!((lost.lost, lost.in_flight, lost.application_limited), (2, 2, false));
        estimator.application_limited(1);
        let again = estimator.sent(at_ms(60), 2);
        estimator.lost(1);
        let lost = estimator.loss_sample(&again);
        assert_eq!((lost.lost, lost.in_flight, lost.application_limited), (1, 2, true));
    }

    /// The bubble lasts until the packets that were in flight when it began, and one more, are
    /// delivered.
    #[test]
    fn samples_of_an_application_limited_phase_say_so() {
        let mut estimator = DeliveryEstimator::default();
        let before = estimator.sent(at_ms(0), 1);
        estimator.application_limited(1);
        let within = estimator.sent(at_ms(10), 2);
        estimator.acked(at_ms(50), &before);
        assert!(!estimator.sample(RTT).unwrap().application_limited);
        estimator.acked(at_ms(60), &within);
        assert!(estimator.sample(RTT).unwrap().application_limited);
        let after = estimator.sent(at_ms(60), 1);
        estimator.acked(at_ms(110), &after);
        assert!(!estimator.sample(RTT).unwrap().application_limited);
    }

    /// The most recently sent packet counts, whatever the order in which a range of packets is
    /// processed.
    #[test]
    fn the_newest_packet_gives_the_sample() {
        let mut estimator = DeliveryEstimator::default();
        let old = estimator.sent(at_ms(0), 1);
        let new = estimator.sent(at_ms(7), 2);
        estimator.acked(at_ms(60), &new);
        estimator.acked(at_ms(60), &old);
        let sample = estimator.sample(RTT).unwrap();
        assert_eq!((sample.send_elapsed, sample.delivered), (ms(7), 2));
    }
}
