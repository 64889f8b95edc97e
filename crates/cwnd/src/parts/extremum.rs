//! Maximum and minimum over a sliding window.

/// The value and the time of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample<V> {
    value: V,
    at: u64,
}

/// The three best samples of a window, each more recent and no better than the one before it (K. Nichols' windowed
/// filter, as in Linux's `lib/minmax.c`): constant space, exact for the best sample, approximate for its successors.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Best<V> {
    length: u64,
    best: Option<[Sample<V>; 3]>,
}

impl<V: Copy> Best<V> {
    /// Adds a sample; `better` says whether its first argument is at least as good as its second.
    fn add(&mut self, at: u64, value: V, better: impl Fn(V, V) -> bool) -> V {
        let new = Sample { value, at };
        let best = match self.best {
            Some(best)
                if !better(value, best[0].value)
                    && at.saturating_sub(best[2].at) <= self.length =>
            {
                self.insert(best, new, better)
            }
            _ => [new; 3],
        };
        self.best = Some(best);
        best[0].value
    }

    /// A new sample that is worse than the best one.
    fn insert(
        &self,
        mut best: [Sample<V>; 3],
        new: Sample<V>,
        better: impl Fn(V, V) -> bool,
    ) -> [Sample<V>; 3] {
        if better(new.value, best[1].value) {
            best[1] = new;
            best[2] = new;
        } else if better(new.value, best[2].value) {
            best[2] = new;
        }
        let age = |sample: Sample<V>| new.at.saturating_sub(sample.at);
        if age(best[0]) > self.length {
            // The best sample leaves the window: its successors move up, twice if the second has left as well.
            best = [best[1], best[2], new];
            if age(best[0]) > self.length {
                best = [best[1], best[2], new];
            }
        } else if best[1].at == best[0].at && age(best[0]) > self.length / 4 {
            // A quarter of the window without a second-best sample: take one from the second quarter.
            best[1] = new;
            best[2] = new;
        } else if best[2].at == best[1].at && age(best[0]) > self.length / 2 {
            // Half of the window without a third-best sample: take one from the second half.
            best[2] = new;
        }
        best
    }
}

macro_rules! extremum {
    ($(#[$doc:meta])* $name:ident, $operator:tt) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name<V>(Best<V>);

        impl<V: Copy + PartialOrd> $name<V> {
            /// An empty filter over a window of `length`, in the unit of the samples' times: rounds,
            /// or nanoseconds.
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

            /// Forgets all samples.
            pub fn clear(&mut self) {
                self.0.best = None;
            }
        }
    };
}

extremum! {
    /// The maximum of the samples of a sliding window, such as BBR's bandwidth filter over ten rounds.
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
    /// The minimum of the samples of a sliding window, such as the smallest round-trip time of ten seconds.
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

    proptest! {
        /// The filter never exceeds the true maximum of the window, and is exact while the best sample is in it.
        #[test]
        fn the_maximum_is_bounded_by_the_exact_one(samples in prop::collection::vec((0_u64..5, 0_u32..100), 1..200)) {
            const LENGTH: u64 = 20;
            let mut filter = WindowedMax::new(LENGTH);
            let mut seen: Vec<(u64, u32)> = Vec::new();
            let mut now = 0;
            for (gap, value) in samples {
                now += gap;
                seen.push((now, value));
                let found = filter.add(now, value);
                let inside = seen.iter().filter(|(at, _)| now - at <= LENGTH).map(|(_, value)| *value);
                let exact = inside.max().unwrap();
                prop_assert!(found <= exact && found >= value, "{found} {exact}");
                let overall = seen.iter().map(|(_, value)| *value).max().unwrap();
                if exact == overall {
                    prop_assert_eq!(found, exact);
                }
            }
        }
    }

    #[test]
    fn samples_older_than_the_window_are_forgotten() {
        let mut filter = WindowedMin::new(10);
        assert_eq!(filter.get(), None);
        filter.add(0, 5);
        assert_eq!(filter.add(11, 9), 9);
        filter.clear();
        assert_eq!(filter.get(), None);
    }
}
