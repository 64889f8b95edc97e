//! The received or acknowledged bytes of a stream.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of byte offsets.
#[derive(Default)]
pub(crate) struct Ranges {
    /// All bytes below are in the set.
    next: u64,
    /// Ranges above, disjoint and not adjacent: their ends by their starts.
    above: BTreeMap<u64, u64>,
}

impl Ranges {
    /// All bytes below are in the set.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Adds a range. Returns the number of its bytes that are new.
    pub(crate) fn add(&mut self, range: Range<u64>) -> u64 {
        let (mut start, mut end) = (range.start.max(self.next), range.end);
        if start >= end {
            return 0;
        }
        if self.above.is_empty() && start == self.next {
            self.next = end;
            return end - start;
        }
        let mut new = end - start;
        // Ranges that overlap or touch this one, the highest first.
        while let Some((&low, &high)) = self.above.range(..=end).next_back() {
            if high < start {
                break;
            }
            let overlap = high.min(range.end).saturating_sub(low.max(range.start.max(self.next)));
            new -= overlap;
            (start, end) = (start.min(low), end.max(high));
            self.above.remove(&low);
        }
        if start == self.next {
            self.next = end;
        } else {
            self.above.insert(start, end);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cwnd_sim::rng::Rng;

    #[test]
    fn each_byte_is_new_once() {
        let mut rng = Rng::new(1, "test", 0);
        for _ in 0..200 {
            let (mut ranges, mut seen) = (Ranges::default(), vec![false; 64]);
            for _ in 0..40 {
                let start = rng.bits() % 64;
                let end = (start + rng.bits() % 12).min(64);
                let of_range = &mut seen[start as usize..end as usize];
                let new = of_range.iter().filter(|seen| !**seen).count() as u64;
                of_range.fill(true);
                assert_eq!(ranges.add(start..end), new);
            }
            let all = seen.iter().filter(|seen| !**seen).count() as u64;
            assert_eq!(ranges.add(0..64), all);
            assert!(ranges.above.is_empty() && ranges.next == 64);
        }
    }
}
