//! Estimators of arrival rate, link capacity and round-trip time (draft-gg-udt-03 section 6.2).

use crate::seq::Seq;
use cwnd::{Dur, Time};

/// The number of arrival intervals in the median filter. More than `ENOUGH` of them must be near
/// the median.
const ARRIVALS: usize = 16;
const ENOUGH: usize = ARRIVALS / 2;
/// The number of packet pairs in the median filter of the capacity.
const PAIRS: usize = 64;
/// A packet pair begins at each sequence number that is a multiple of this.
pub const PAIR_EVERY: u32 = 16;
/// The filters discard values that differ from the median by more than this factor.
const OUTLIER: u64 = 8;
/// The resolution of UDT4's clock in nanoseconds. It is the assumed interval of a packet pair that
/// arrives in one batch, unless large batches arrive at more than one packet per tick.
const TICK: u64 = 1000;
/// The number of large batches remembered for that, and the smallest number of packets of a large
/// batch.
const BATCHES: usize = 4;
const LARGE: u64 = 16;

/// The time in nanoseconds in which `packets` packets arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    time: u64,
    packets: u64,
}

impl Interval {
    fn each(self) -> u64 {
        self.time / self.packets.max(1)
    }
}

/// The last `N` intervals, and the rate of those near their median.
#[derive(Clone, Debug)]
pub struct MedianFilter<const N: usize> {
    values: [Interval; N],
    count: usize,
}

impl<const N: usize> MedianFilter<N> {
    /// Returns a filter without intervals.
    pub const fn new() -> Self {
        MedianFilter { values: [Interval { time: 0, packets: 0 }; N], count: 0 }
    }

    /// Adds the `time` in nanoseconds in which `packets` packets arrived.
    #[inline]
    pub fn add(&mut self, time: u64, packets: u64) {
        self.values[self.count % N] = Interval { time, packets };
        // Once the ring buffer is full, only the position in it matters.
        self.count = if self.count + 1 == 2 * N { N } else { self.count + 1 };
    }

    /// The rate in packets per second, if more than `least` intervals are near the median.
    pub fn rate(&self, least: usize) -> Option<f64> {
        let known = self.count.min(N);
        if known == 0 {
            return None;
        }
        let each = self.values.map(Interval::each);
        let mut order = each;
        let (_, &mut median, _) = order[..known].select_nth_unstable(known / 2);
        let near = |each: u64| each < median.saturating_mul(OUTLIER) && each > median / OUTLIER;
        let (mut time, mut packets, mut count) = (0u64, 0u64, 0);
        for (value, _) in self.values[..known].iter().zip(each).filter(|(_, each)| near(*each)) {
            time = time.saturating_add(value.time);
            packets += value.packets;
            count += 1;
        }
        (count > least && time > 0).then(|| packets as f64 * 1e9 / time as f64)
    }
}

impl<const N: usize> Default for MedianFilter<N> {
    fn default() -> Self {
        MedianFilter::new()
    }
}

/// Estimates the arrival rate and the capacity of the path from arrival times.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    /// The arrival times of the last two batches, and the number of packets in the newest.
    before: Option<Time>,
    newest: Option<Time>,
    batch: u64,
    intervals: MedianFilter<ARRIVALS>,
    /// The time per packet in the last large batches.
    large: [u64; BATCHES],
    larges: usize,
    /// The first packet of a pair and its arrival time.
    first: Option<(Seq, Time)>,
    pairs: MedianFilter<PAIRS>,
}

impl Arrivals {
    pub(crate) const fn new() -> Self {
        Arrivals {
            before: None,
            newest: None,
            batch: 0,
            intervals: MedianFilter::new(),
            large: [TICK; BATCHES],
            larges: 0,
            first: None,
            pairs: MedianFilter::new(),
        }
    }

    /// Records the arrival of a data packet. Packets of one batch, which have the same arrival
    /// time, count as evenly spread over the time since the previous batch.
    #[inline]
    pub(crate) fn packet(&mut self, now: Time, seq: Seq) {
        if self.newest == Some(now) {
            self.batch += 1;
        } else {
            self.close_batch();
            self.before = self.newest;
            self.newest = Some(now);
            self.batch = 1;
        }
        match seq.value() % PAIR_EVERY {
            0 => self.first = Some((seq, now)),
            1 => {
                if let Some((first, at)) = self.first.take()
                    && first.plus(1) == seq
                {
                    let apart = now.since(at).as_nanos();
                    let least = if apart == 0 { self.min_spacing() } else { TICK };
                    self.pairs.add(apart.max(least), 1);
                }
            }
            _ => {}
        }
    }

    fn close_batch(&mut self) {
        if let (Some(before), Some(newest)) = (self.before, self.newest) {
            let time = newest.since(before).as_nanos();
            self.intervals.add(time, self.batch);
            if self.batch >= LARGE {
                self.large[self.larges % BATCHES] = time / self.batch;
                self.larges = self.larges.wrapping_add(1);
            }
        }
    }

    /// An upper bound of the spacing of two packets in one batch: a tick, or the shortest time per
    /// packet among the last large batches.
    fn min_spacing(&self) -> u64 {
        self.large.iter().fold(TICK, |least, each| least.min(*each)).max(1)
    }

    /// The arrival rate in packets per second.
    pub(crate) fn speed(&self) -> Option<f64> {
        self.intervals.rate(ENOUGH)
    }

    /// The capacity of the path in packets per second: at least the arrival rate.
    pub(crate) fn capacity(&self) -> Option<f64> {
        let pairs = self.pairs.rate(0)?;
        Some(self.speed().map_or(pairs, |speed| speed.max(pairs)))
    }
}

/// Decides whether the receiver's capacity estimate is reliable. UDT4 measures the time from any
/// packet 16 n to the next packet 16 m + 1. If a packet of a pair is lost or retransmitted, that
/// time includes pauses of the sender. The median filter tolerates up to half of such values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PairTrust {
    /// Packets sent, and packets lost or retransmitted, at the last two checks.
    checks: [(u64, u64); 2],
}

impl PairTrust {
    /// The number of packets between two checks: half of those that the receiver's filter covers.
    const CHECK_INTERVAL: u64 = PAIRS as u64 * PAIR_EVERY as u64 / 2;

    /// Whether the estimate is reliable after `sent` packets, of which `broken` were lost or
    /// retransmitted: at most a quarter of the recent ones.
    pub(crate) fn is_reliable(&mut self, sent: u64, broken: u64) -> bool {
        if sent - self.checks[1].0 >= PairTrust::CHECK_INTERVAL {
            self.checks = [self.checks[1], (sent, broken)];
        }
        let (sent_before, broken_before) = self.checks[0];
        4 * (broken - broken_before) <= sent - sent_before
    }
}

/// The smoothed round-trip time and its deviation, as UDT computes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    pub smoothed: Dur,
    pub deviation: Dur,
    pub measured: bool,
}

impl Rtt {
    /// UDT4's values before the first sample.
    pub(crate) const INITIAL: Rtt =
        Rtt { smoothed: Dur::from_millis(100), deviation: Dur::from_millis(50), measured: false };

    /// Adds a sample. The first one replaces the initial values, as in RFC 6298 section 2.2.
    pub(crate) fn sample(&mut self, sample: Dur) {
        let (old, new) = (self.smoothed.as_nanos(), sample.as_nanos());
        if self.measured {
            let deviation = self.deviation.as_nanos();
            self.deviation = Dur::from_nanos((3 * deviation + old.abs_diff(new)) / 4);
            self.smoothed = Dur::from_nanos((7 * old + new) / 8);
        } else {
            *self = Rtt { smoothed: sample, deviation: Dur::from_nanos(new / 2), measured: true };
        }
    }

    /// The retransmission timeout of RFC 6298: the smoothed round-trip time plus four deviations.
    pub(crate) fn rto(&self) -> Dur {
        Dur::from_nanos(self.smoothed.as_nanos() + 4 * self.deviation.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    /// One packet each 100 µs; the packets of a pair are 10 µs apart.
    #[test]
    fn arrival_rate_and_capacity_are_medians() {
        let mut arrivals = Arrivals::new();
        for n in 0..100u32 {
            let early = if n % 16 == 1 { 90 } else { 0 };
            let odd = if n == 50 { 20_000 } else { 0 };
            arrivals.packet(at(u64::from(n) * 100 - early + odd), Seq::new(n));
            if n == 4 {
                assert_eq!(arrivals.speed(), None);
            }
        }
        let speed = arrivals.speed().unwrap();
        assert!((9_000.0..11_000.0).contains(&speed), "{speed}");
        assert_eq!(arrivals.capacity(), Some(100_000.0));
    }

    #[test]
    fn packets_of_a_batch_are_spread_over_its_interval() {
        let mut arrivals = Arrivals::new();
        for n in 0..400u32 {
            arrivals.packet(at(u64::from(n / 10) * 100), Seq::new(n + 5));
        }
        assert_eq!(arrivals.speed(), Some(100_000.0));
        assert_eq!(arrivals.capacity(), Some(1e6));
    }

    /// Two batches of 44 packets, 10 µs apart, each 100 µs.
    #[test]
    fn capacity_is_estimated_from_the_interval_of_batches() {
        let mut arrivals = Arrivals::new();
        for n in 0..4400u32 {
            let (burst, second) = (u64::from(n / 88), u64::from(n / 44 % 2));
            arrivals.packet(at(burst * 100 + second * 10), Seq::new(n));
        }
        let capacity = arrivals.capacity().unwrap();
        assert!((4.3e6..4.5e6).contains(&capacity), "{capacity}");
    }

    /// A tenth of the packets is lost and retransmitted, then half of 1000 packets, then none.
    #[test]
    fn packet_pairs_are_unreliable_during_heavy_loss() {
        let mut pairs = PairTrust::default();
        let (mut sent, mut broken) = (0, 0);
        let mut believed = |packets: u64, percent: u64| {
            (sent, broken) = (sent + packets, broken + percent * packets / 100);
            pairs.is_reliable(sent, broken)
        };
        assert!((0..200).all(|_| believed(20, 20)));
        let stormy: Vec<_> = (0..50).map(|_| believed(20, 100)).collect();
        assert!(stormy[0] && stormy[4..].iter().all(|yes| !yes));
        let calm: Vec<_> = (0..100).map(|_| believed(20, 0)).collect();
        assert!(calm[..15].iter().all(|yes| !yes) && calm[60..].iter().all(|yes| *yes));
    }

    #[test]
    fn the_first_sample_replaces_the_initial_values() {
        let mut rtt = Rtt::INITIAL;
        rtt.sample(Dur::from_millis(8));
        assert_eq!((rtt.smoothed, rtt.deviation), (Dur::from_millis(8), Dur::from_millis(4)));
        rtt.sample(Dur::from_millis(16));
        assert_eq!((rtt.smoothed, rtt.deviation), (Dur::from_millis(9), Dur::from_millis(5)));
        assert_eq!(rtt.rto(), Dur::from_millis(29));
    }
}
