//! **AIAD**, additive increase, adaptive decrease to an estimated rate; with the rate of the
//! acknowledgements it is TCP Westwood.
//!
//! Xu and Ansari, *Stability and fairness of rate estimation-based AIAD congestion control in TCP*,
//! IEEE Communications Letters 2005; filter and TCP Westwood: Casetti, Gerla, Mascolo, Sanadidi and
//! Wang, MobiCom 2001.
//!
//! ```text
//! each ACK: w <- w + 1 / w                                                                      (1)
//! at a loss: w <- r d, at most w, at least 2                                                    (1)
//! threshold: ssthresh <- r d, at least 2, at a loss, in slow start and after a timeout
//! sample k: b_k = packets acknowledged in D_k / D_k, D_k = t_k - t_(k-1)
//! filter: r <- ((2 tau / D_k - 1) r + b_k + b_(k-1)) / (2 tau / D_k + 1)
//! filter=fixed: r <- (19 r + b_k + b_(k-1)) / 21
//! no sample for tau / 2: a sample of 0 with D = tau / 2
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `r` | estimated rate | packets/s | | |
//! | `d` | round-trip propagation delay: the smallest sample | s | | |
//! | `t_k` | time of sample k by the clock of `rate` | s | | |
//! | `rate` | arrival of the ACK at the sender (AIAD_kappa) or of the packet at the receiver (AIAD_phi) | | ack, receiver | ack |
//! | `tau` | 1/tau is the filter's cut-off frequency | s | 0.001s <= tau <= 100s | 0.5s |
//! | `filter` | gains that follow the interval of the sample, or fixed ones | | interval, fixed | interval |
//!
//! TCP-friendly where r d is half of the window, that is with a buffer of one bandwidth-delay
//! product (not stated in the letter).
//!
//! The threshold in slow start and after a timeout is that of TCP Westwood's algorithm and its ns-2
//! code; the letter has Eq. 1 alone. Where r d exceeds the window, slow start continues to r d.
//!
//! `filter=fixed` is the filter that the constructor of the published ns-2 code of TCP Westwood
//! (UCLA, 2002) chooses: the one above with D = tau / 10 whatever the interval, without samples of
//! 0, and with at most 2 packets for an ACK.
//!
//! Known deviations:
//!
//! * Eq. 1 has no bounds: here a loss does not increase the window, and r d counts as at least 2
//!   packets.
//! * Samples at one instant of their clock are combined.
//! * The remainder of a gap shorter than tau / 50 after its samples of 0 is added to the last of
//!   them, as in the ns-2 code of TCP Westwood (10 ms there).
//! * The estimate starts at 0, as in that code. Without an estimate or a round-trip time a loss
//!   halves the window.
//! * That code divides the threshold of a timeout in slow start by a factor of 1 to 4, which grows
//!   with each timeout; the letter does not, and neither does this law.
//! * With byte counting (RFC 3465) an ACK of n packets counts as n ACKs.

use crate::event::Acked;
use crate::law::{Context, Signal, WindowLaw};
use crate::units::{Dur, Time};

/// The clock of an AIAD law's rate estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateClock {
    /// The arrivals of acknowledgements at the sender: AIAD_κ, TCP Westwood.
    Ack,
    /// The arrivals of packets at the receiver, by its timestamps: AIAD_φ.
    Receiver,
}

/// The low pass of an AIAD law's rate samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateFilter {
    /// Its gains follow the interval of the sample (MobiCom 2001).
    Interval,
    /// Gains of 19/21 and 1/21, as in the published ns-2 code by default.
    Fixed,
}

/// `2 tau / D` of [`RateFilter::Fixed`], and the most packets that it counts for an ACK.
const FIXED: f64 = 20.0;
const MAX_PACKETS: u32 = 2;
/// After τ / m without an acknowledgement the filter receives a sample of 0: the paper's m.
const M: f64 = 2.0;
/// The shortest remainder of a gap that is a separate sample, as a fraction of τ.
const MIN_REMAINDER: f64 = 0.02;
/// The most samples of 0 for a gap: the estimate has decayed to nothing after them.
const MAX_ZEROS: f64 = 128.0;

/// AIAD: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aiad {
    clock: RateClock,
    filter: RateFilter,
    /// In seconds.
    tau: f64,
    /// In packets per second: the estimate r, and the last sample.
    rate: f64,
    sample: f64,
    last: Option<Time>,
    /// Packets acknowledged since `last`.
    pending: f64,
}

impl Aiad {
    /// AIAD whose filter has the time constant `tau`.
    pub fn new(clock: RateClock, filter: RateFilter, tau: Dur) -> Self {
        let tau = tau.as_secs();
        Aiad { clock, filter, tau, rate: 0.0, sample: 0.0, last: None, pending: 0.0 }
    }

    /// The estimated rate in packets per second.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Westwood's filter: the bilinear transform of a first-order low pass.
    #[inline]
    fn filter(&mut self, sample: f64, interval: f64) {
        let k = match self.filter {
            RateFilter::Interval => 2.0 * self.tau / interval,
            RateFilter::Fixed => FIXED,
        };
        self.rate = ((k - 1.0) * self.rate + sample + self.sample) / (k + 1.0);
        self.sample = sample;
    }

    /// Filters the samples of 0 of a gap and returns its remainder in seconds.
    #[cold]
    fn idle(&mut self, gap: f64) -> f64 {
        let step = self.tau / M;
        let mut zeros = libm::floor(gap / step);
        let mut rest = gap - zeros * step;
        if rest < MIN_REMAINDER * self.tau {
            zeros -= 1.0;
            rest = step;
        }
        let mut fed = 0.0;
        while fed < zeros.min(MAX_ZEROS) {
            self.filter(0.0, step);
            fed += 1.0;
        }
        rest
    }
}

impl WindowLaw for Aiad {
    #[inline]
    fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
        w + acked / w
    }

    fn cut(&mut self, w: f64, _why: Signal, cx: &Context) -> f64 {
        match cx.rtt {
            Some(rtt) if self.rate > 0.0 && rtt.min < Dur::MAX => {
                (self.rate * rtt.min.as_secs()).max(2.0)
            }
            _ => w / 2.0,
        }
    }

    fn threshold(&self, cut: f64, _why: Signal) -> Option<f64> {
        Some(cut)
    }

    #[inline]
    fn observe(&mut self, acked: &Acked, cx: &Context) {
        let now = match self.clock {
            RateClock::Ack => Some(cx.now),
            RateClock::Receiver => acked.received_at,
        };
        self.pending += f64::from(match self.filter {
            RateFilter::Interval => acked.packets,
            RateFilter::Fixed => acked.packets.min(MAX_PACKETS),
        });
        let Some(now) = now else { return };
        let Some(last) = self.last else {
            self.last = Some(now);
            self.pending = 0.0;
            return;
        };
        if now <= last || self.pending == 0.0 {
            return;
        }
        let mut gap = now.since(last).as_secs();
        if gap > self.tau / M && self.filter == RateFilter::Interval {
            gap = self.idle(gap);
        }
        let sample = self.pending / gap;
        self.filter(sample, gap);
        self.last = Some(now);
        self.pending = 0.0;
    }

    fn rescale(&mut self, factor: f64) {
        self.rate *= factor;
        self.sample *= factor;
        self.pending *= factor;
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("rate", self.rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::at;
    use crate::testing::{at_ms, ms};

    fn ack(packets: u32, received_at: Option<Time>) -> Acked {
        Acked { received_at, ..Acked::new(packets, Time::ZERO) }
    }

    /// 2 tau / D = 2 * 0.5 s / 0.1 s = 10: r = (9 r + b_k + b_(k-1)) / 11, at 20 packets/s.
    #[test]
    fn the_filter_follows_its_equation() {
        let mut law = Aiad::new(RateClock::Ack, RateFilter::Interval, ms(500));
        law.observe(&ack(2, None), &at(at_ms(0)));
        law.observe(&ack(2, None), &at(at_ms(100)));
        assert!((law.rate() - 20.0 / 11.0).abs() < 1e-9);
        law.observe(&ack(2, None), &at(at_ms(200)));
        assert!((law.rate() - (9.0 * 20.0 / 11.0 + 40.0) / 11.0).abs() < 1e-9);
    }

    #[test]
    fn a_loss_reduces_the_window_to_a_steady_rate() {
        let mut law = Aiad::new(RateClock::Ack, RateFilter::Interval, ms(500));
        for millis in (0..10_000).step_by(5) {
            law.observe(&ack(1, None), &at(at_ms(millis)));
        }
        assert!((law.rate() - 200.0).abs() < 1e-6);
        // 200 packets/s in 100 millis.
        assert!((law.cut(50.0, Signal::Loss, &at(at_ms(0))) - 20.0).abs() < 1e-6);
        // The machine does not increase a smaller window; the threshold is 20.
        assert!((law.cut(15.0, Signal::Timeout, &at(at_ms(0))) - 20.0).abs() < 1e-6);
    }

    /// Between two samples of 20 packets/s, 600 millis pass: two samples of 0 at 250 millis, each
    /// r = (3 r + b_(k-1)) / 5, and one of 2 packets in 100 millis.
    #[test]
    fn samples_of_zero_lower_the_estimate() {
        let mut law = Aiad::new(RateClock::Ack, RateFilter::Interval, ms(500));
        law.observe(&ack(2, None), &at(at_ms(0)));
        law.observe(&ack(2, None), &at(at_ms(100)));
        law.observe(&ack(2, None), &at(at_ms(700)));
        let first = (3.0 * 20.0 / 11.0 + 20.0) / 5.0;
        let second = 3.0 * first / 5.0;
        assert!((law.rate() - (9.0 * second + 20.0) / 11.0).abs() < 1e-9);
    }

    /// Compression of acknowledgements on the reverse path does not affect AIAD_phi.
    #[test]
    fn the_receivers_clock_is_independent_of_the_reverse_path() {
        let tau = ms(500);
        let (mut kappa, mut phi) = (
            Aiad::new(RateClock::Ack, RateFilter::Interval, tau),
            Aiad::new(RateClock::Receiver, RateFilter::Interval, tau),
        );
        for n in 0..2000_u64 {
            // One packet in 10 millis, but pairs of acknowledgements 1 millis apart.
            let acked = ack(1, Some(at_ms(10 * n)));
            let now = at_ms(20 * (n / 2) + n % 2 + 40);
            kappa.observe(&acked, &at(now));
            phi.observe(&acked, &at(now));
        }
        assert!((phi.rate() - 100.0).abs() < 1e-6, "{}", phi.rate());
        assert!(kappa.rate() > 200.0, "{}", kappa.rate());
    }

    /// With a clock of 10 millis, the packets of one tick are one sample.
    #[test]
    fn packets_of_one_tick_are_one_sample() {
        let mut law = Aiad::new(RateClock::Receiver, RateFilter::Interval, ms(500));
        for n in 0..20_000_u64 {
            law.observe(&ack(1, Some(at_ms(2 * n / 10 * 10))), &at(at_ms(2 * n + 50)));
        }
        assert!((law.rate() - 500.0).abs() < 1e-6, "{}", law.rate());
    }

    /// Packets of half the size: twice the rate from the same bytes.
    #[test]
    fn rescaling_doubles_the_estimate() {
        let run = |early: u32, factor: f64| {
            let mut law = Aiad::new(RateClock::Receiver, RateFilter::Interval, ms(500));
            for millis in (0..1000).step_by(10) {
                law.observe(&ack(early, Some(at_ms(millis))), &at(at_ms(millis)));
            }
            // Waits for the next tick of the receiver's clock.
            law.observe(&ack(early, Some(at_ms(990))), &at(at_ms(995)));
            law.rescale(factor);
            for millis in (1000..1200).step_by(10) {
                law.observe(&ack(6, Some(at_ms(millis))), &at(at_ms(millis)));
            }
            law.rate()
        };
        assert!((run(3, 2.0) - run(6, 1.0)).abs() < 1e-9);
    }

    #[test]
    fn without_an_estimate_it_halves() {
        let mut law = Aiad::new(RateClock::Receiver, RateFilter::Interval, ms(500));
        assert_eq!(law.cut(30.0, Signal::Loss, &at(at_ms(0))), 15.0);
    }

    /// 19/21 of the estimate and 1/21 of two samples, of at most 2 packets each, whatever the
    /// interval.
    #[test]
    fn the_fixed_filter_has_the_gains_of_the_published_code() {
        let mut law = Aiad::new(RateClock::Ack, RateFilter::Fixed, ms(500));
        let mut expected = 0.0;
        let mut last = 0.0;
        let mut now = 0;
        law.observe(&Acked::new(1, Time::ZERO), &at(Time::ZERO));
        for (gap, packets) in [(10, 1), (900, 2), (20, 5)] {
            now += gap;
            let time = Time::from_nanos(now * 1_000_000);
            law.observe(&Acked::new(packets, Time::ZERO), &at(time));
            let sample = f64::from(packets.min(2)) / (gap as f64 / 1000.0);
            expected = (19.0 * expected + sample + last) / 21.0;
            last = sample;
            assert!((law.rate() - expected).abs() < 1e-9, "{} {expected}", law.rate());
        }
    }
}
