//! Maximum and minimum over a sliding window.

/// The value and the time of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample<V> {
    value: V,
    at: u64,
}

/// The three best samples of a window, each more recent and no better than the one before it (K.
/// Nichols' windowed filter, as in Linux's `lib/minmax.c`): constant space, exact for the best
/// sample, approximate for its successors.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Best<V> {
    length: u64,
    best: Option<[Sample<V>; 3]>,
}

impl<V: Copy> Best<V> {
    /// Adds a sample; `better` says whether its first argument is at least as good as its second.
    #[inline]
    fn add(&mut self, at: u64, value: V, better: impl Fn(V, V) -> bool) -> V {
        let new = Sample { value, at };
        let best = self.best.get_or_insert([new; 3]);
        let age = |sample: Sample<V>| at.saturating_sub(sample.at);
        if better(value, best[0].value) || age(best[2]) > self.length {
            *best = [new; 3];
            return value;
        }
        if better(value, best[1].value) {
            best[1] = new;
            best[2] = new;
        } else if better(value, best[2].value) {
            best[2] = new;
        }
        if age(best[0]) > self.length {
            // The best sample leaves the window: its successors move up, twice if the second has
            // left as well.
            *best = [best[1], best[2], new];
            if age(best[0]) > self.length {
                *best = [best[1], best[2], new];
            }
        } else if best[1].at == best[0].at && age(best[0]) > self.length / 4 {
            // A quarter of the window without a second-best sample: take one from the second
            // quarter.
            best[1] = new;
            best[2] = new;
        } else if best[2].at == best[1].at && age(best[0]) > self.length / 2 {
            // Half of the window without a third-best sample: take one from the second half.
            best[2] = new;
        }
        best[0].value
    }
}

macro_rules! extremum {
    ($(#[$doc:meta])* $name:ident, $operator:tt) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name<V>(Best<V>);

        impl<V: Copy + PartialOrd> $name<V> {
            /// An empty filter over a window of `length`, in the unit of the samples' times:
            /// rounds, or nanoseconds. A sample leaves the window when it is older than `length`.
            pub const fn new(length: u64) -> Self {
                $name(Best { length, best: None })
            }

            /// Adds a sample taken at `at`, which never decreases, and returns the extremum.
            pub fn add(&mut self, at: u64, value: V) -> V {
                self.0.add(at, value, |new, old| new $operator old)
            }

            /// The extremum as of the last sample; `None` before the first.
            pub fn get(&self) -> Option<V> {
                self.0.best.map(|best| best[0].value)
            }

            /// Changes the length of the window, from the next sample on: for windows in round-trip
            /// times.
            pub fn set_length(&mut self, length: u64) {
                self.0.length = length;
            }

            /// Forgets all samples.
            pub fn clear(&mut self) {
                self.0.best = None;
            }

            /// Applies `change` to all samples, whose order it keeps: for a change of their unit.
            pub fn map(&mut self, change: impl Fn(V) -> V) {
                for sample in self.0.best.iter_mut().flatten() {
                    sample.value = change(sample.value);
                }
            }
        }
    };
}

extremum! {
    /// The maximum of the samples of a sliding window, such as BBR's bandwidth filter over ten
    /// rounds.
    ///
    /// ```
    /// use cwnd::parts::WindowedMax;
    ///
    /// let mut bandwidth = WindowedMax::new(10);
    /// bandwidth.add(1, 40.0);
    /// assert_eq!(bandwidth.add(5, 30.0), 40.0);
    /// assert_eq!(bandwidth.add(12, 20.0), 30.0);
    /// ```
    WindowedMax, >=
}

extremum! {
    /// The minimum of the samples of a sliding window, such as the smallest round-trip time of ten
    /// seconds.
    ///
    /// ```
    /// use cwnd::parts::WindowedMin;
    ///
    /// let mut rtt = WindowedMin::new(10);
    /// rtt.add(1, 40.0);
    /// assert_eq!(rtt.add(5, 50.0), 40.0);
    /// assert_eq!(rtt.add(12, 60.0), 50.0);
    /// ```
    WindowedMin, <=
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const LENGTH: u64 = 20;

    fn samples() -> impl Strategy<Value = Vec<(u64, i64)>> {
        prop::collection::vec((0_u64..8, 0_i64..100), 1..200)
    }

    proptest! {
        /// The filter never exceeds the true maximum of the window, and is exact while the best
        /// sample is in it.
        #[test]
        fn the_maximum_is_bounded_by_the_exact_one(samples in samples()) {
            let mut filter = WindowedMax::new(LENGTH);
            let mut seen: Vec<(u64, i64)> = Vec::new();
            let mut now = 0;
            for (gap, value) in samples {
                now += gap;
                seen.push((now, value));
                let found = filter.add(now, value);
                let inside = seen.iter().filter(|(at, _)| now - at <= LENGTH).map(|(_, value)| *value);
                let exact = inside.max().unwrap();
                prop_assert!(found <= exact && found >= value, "{found} {exact}");
                prop_assert_eq!(filter.get(), Some(found));
                let overall = seen.iter().map(|(_, value)| *value).max().unwrap();
                if exact == overall {
                    prop_assert_eq!(found, exact);
                }
            }
        }

        /// The minimum is the maximum of the negated samples.
        #[test]
        fn the_minimum_mirrors_the_maximum(samples in samples()) {
            let (mut least, mut most) = (WindowedMin::new(LENGTH), WindowedMax::new(LENGTH));
            let mut now = 0;
            for (gap, value) in samples {
                now += gap;
                prop_assert_eq!(least.add(now, value), -most.add(now, -value));
            }
        }
    }

    /// Of falling samples the second best is of the window's second quarter or later, the third
    /// best of its second half.
    #[test]
    fn successors_come_from_later_parts_of_the_window() {
        let mut filter = WindowedMax::new(20);
        let found: Vec<u32> =
            [(0, 90), (5, 89), (6, 80), (10, 79), (11, 70), (20, 10), (21, 9), (27, 8)]
                .into_iter()
                .map(|(at, value)| filter.add(at, value))
                .collect();
        // Neither 89, in the first quarter, nor 79, in the first half, is a successor.
        assert_eq!(found, [90, 90, 90, 90, 90, 90, 80, 70]);
    }

    #[test]
    fn a_shorter_window_forgets_earlier() {
        let mut filter = WindowedMin::new(10);
        filter.add(0, 5);
        filter.set_length(4);
        assert_eq!(filter.add(4, 9), 5);
        assert_eq!(filter.add(5, 8), 8);
    }

    /// As large as the best sample: a newer one lasts longer.
    #[test]
    fn an_equal_sample_renews_the_extremum() {
        let mut filter = WindowedMax::new(10);
        filter.add(0, 5);
        filter.add(8, 5);
        assert_eq!(filter.add(18, 1), 5);
        assert_eq!(filter.add(19, 1), 1);
    }

    #[test]
    fn samples_older_than_the_window_are_forgotten() {
        let mut filter = WindowedMin::new(10);
        assert_eq!(filter.get(), None);
        filter.add(0, 5);
        assert_eq!(filter.add(11, 9), 9);
        filter.map(|value| 2 * value);
        assert_eq!(filter.get(), Some(18));
        filter.clear();
        assert_eq!(filter.get(), None);
    }
}
