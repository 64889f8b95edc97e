//! Sets of block numbers as ranges.

use crate::frame::RANGES;
use std::ops::Range;

/// A set of block numbers: disjoint ranges in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// Creates the set of the numbers of `range`.
    pub(crate) fn of(range: Range<u64>) -> Self {
        Ranges(if range.is_empty() { Vec::new() } else { vec![range] })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        let at = self.0.partition_point(|range| range.end <= number);
        self.0.get(at).is_some_and(|range| range.contains(&number))
    }

    /// Whether all numbers of `range` are in the set.
    pub(crate) fn covers(&self, range: Range<u64>) -> bool {
        let at = self.0.partition_point(|range_in_set| range_in_set.end <= range.start);
        self.0.get(at).is_some_and(|range_in_set| {
            range_in_set.start <= range.start && range.end <= range_in_set.end
        })
    }

    /// Returns the number of ranges.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds a number that is larger than all others. If there are [`RANGES`] ranges, also adds the
    /// numbers between the last range and this one.
    pub(crate) fn push(&mut self, number: u64) {
        let full = self.0.len() >= RANGES;
        match self.0.last_mut() {
            Some(range) if range.end == number || full => range.end = number + 1,
            _ => self.0.push(number..number + 1),
        }
    }

    /// Adds a range of numbers that are larger than all others.
    pub(crate) fn append(&mut self, range: Range<u64>) {
        match self.0.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.0.push(range),
        }
    }

    /// Removes the numbers of a range.
    pub(crate) fn remove(&mut self, removed: Range<u64>) {
        let first = self.0.partition_point(|range| range.end <= removed.start);
        let behind = self.0.partition_point(|range| range.start < removed.end);
        if first >= behind {
            return;
        }
        let (start, end) = (self.0[first].start, self.0[behind - 1].end);
        let remaining = [start..removed.start.max(start), removed.end.min(end)..end];
        self.0.splice(first..behind, remaining.into_iter().filter(|range| !range.is_empty()));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_are_a_set(added in proptest::collection::btree_set(0u64..40, 0..30),
                            removed in proptest::collection::vec((0u64..45, 0u64..10), 0..8)) {
            let mut ranges = Ranges::default();
            let mut model: BTreeSet<u64> = added.clone();
            added.iter().for_each(|&number| ranges.push(number));
            for (start, count) in removed {
                ranges.remove(start..start + count);
                model.retain(|number| !(start..start + count).contains(number));
            }
            let found: BTreeSet<u64> = (0..50).filter(|&number| ranges.contains(number)).collect();
            prop_assert_eq!(&found, &model);
            prop_assert_eq!(ranges.is_empty(), model.is_empty());
            prop_assert_eq!(ranges.iter().map(|range| range.end - range.start).sum::<u64>(), model.len() as u64);
        }
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let mut ranges = Ranges::default();
        (0..20_000).step_by(2).for_each(|number| ranges.push(number));
        assert!(ranges.count() <= RANGES && ranges.contains(0) && ranges.contains(19_998));
    }
}
