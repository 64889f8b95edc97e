//! A histogram of durations.

use crate::cast::{to_index, whole};

const SUB_BITS: u32 = 5;
const SUBS: usize = 1 << SUB_BITS;
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) * SUBS;

/// A histogram of durations with a relative resolution of 1/32. Quantiles interpolate linearly in a
/// bucket. Memory is allocated at the first entry: most links of a large network never queue.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
}

impl Histogram {
    /// Returns the bucket of a duration: exact below 32 ns, then 32 buckets for each power of two.
    #[inline(always)]
    fn bucket(nanos: u64) -> usize {
        if nanos < SUBS as u64 {
            return to_index(nanos);
        }
        let octave = 63 - nanos.leading_zeros() - SUB_BITS;
        ((octave as usize + 1) << SUB_BITS) + to_index(nanos >> octave & (SUBS as u64 - 1))
    }

    /// Returns the least duration of a bucket in nanoseconds.
    fn least(bucket: usize) -> f64 {
        if bucket < SUBS {
            return bucket as f64;
        }
        let octave = (bucket >> SUB_BITS) - 1;
        (((SUBS + (bucket & (SUBS - 1))) as u64) << octave) as f64
    }

    /// Adds a duration in nanoseconds.
    #[inline(always)]
    pub fn add(&mut self, nanos: u64) {
        match self.counts.get_mut(Self::bucket(nanos)) {
            Some(count) => *count += 1,
            None => self.first(nanos),
        }
    }

    #[cold]
    fn first(&mut self, nanos: u64) {
        self.counts = vec![0; BUCKETS];
        self.add(nanos);
    }

    /// Removes an entry, which was added before.
    pub(crate) fn remove(&mut self, nanos: u64) {
        if let Some(count) = self.counts.get_mut(Self::bucket(nanos)) {
            *count = count.saturating_sub(1);
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// Returns the number of entries.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the quantile `fraction` in nanoseconds of the entries and `zeros` further entries of
    /// zero; NaN if there are none.
    pub fn quantile(&self, fraction: f64, zeros: u64) -> f64 {
        let total = zeros + self.count();
        let wanted = whole((fraction * total as f64).ceil().max(1.0));
        let mut seen = zeros;
        if zeros > 0 && seen >= wanted {
            return 0.0;
        }
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += count;
            if count > 0 && seen >= wanted {
                let part = (count + wanted - seen) as f64 / count as f64;
                let (from, to) = (Self::least(bucket), Self::least(bucket + 1));
                return from + part * (to - from);
            }
        }
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_within_the_resolution() {
        let mut histogram = Histogram::default();
        assert!(histogram.quantile(0.5, 0).is_nan());
        // Up to a power of two every bucket is full.
        for nanos in 1..1 << 17 {
            histogram.add(nanos);
        }
        for fraction in [0.01, 0.5, 0.95, 0.99, 1.0] {
            let expected = fraction * f64::from(1 << 17);
            assert!((histogram.quantile(fraction, 0) / expected - 1.0).abs() < 1e-3);
        }
        assert_eq!(histogram.quantile(0.5, 1 << 18), 0.0);
        assert_eq!(Histogram::bucket(u64::MAX), BUCKETS - 1);
    }
}
