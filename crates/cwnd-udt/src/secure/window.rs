//! The replay window (RFC 6479): a ring of bits that advances by whole words.

/// Words of the ring, a power of two. One of them is being filled.
const WORDS: usize = 256;
/// The size of the window in counters, 16 ms at a million packets per second. Older counters are refused.
pub(super) const SIZE: u64 = (WORDS as u64 - 1) * 64;

/// The counters that have arrived.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// One past the highest.
    top: u64,
    words: Box<[u64; WORDS]>,
}

impl Window {
    pub(super) fn new() -> Self {
        Window { top: 0, words: Box::new([0; WORDS]) }
    }

    /// One past the highest counter that has arrived.
    pub(super) fn top(&self) -> u64 {
        self.top
    }

    /// Whether `counter` is known not to have arrived.
    pub(super) fn is_new(&self, counter: u64) -> bool {
        if counter >= self.top {
            return true;
        }
        self.top - counter <= SIZE && self.words[word(counter)] & bit(counter) == 0
    }

    /// `counter`, which [is new](Self::is_new), has arrived.
    pub(super) fn mark(&mut self, counter: u64) {
        if counter >= self.top {
            let filling = self.top.div_ceil(64);
            let last = counter / 64;
            for block in filling..=last.min(filling + WORDS as u64) {
                self.words[word(64 * block)] = 0;
            }
            self.top = counter + 1;
        }
        self.words[word(counter)] |= bit(counter);
    }
}

fn word(counter: u64) -> usize {
    (counter / 64) as usize % WORDS
}

fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn a_counter_is_new_once_and_within_the_window() {
        let mut window = Window::new();
        window.mark(SIZE);
        assert!(window.is_new(1) && !window.is_new(0) && !window.is_new(SIZE));
        window.mark(1);
        assert!(!window.is_new(1) && window.is_new(2));
    }

    proptest! {
        /// The window agrees with a set of all counters that have arrived.
        #[test]
        fn the_window_agrees_with_a_set(
            steps in prop::collection::vec((prop::bool::ANY, 0u64..3 * SIZE / 2, 0u64..200), 1..400),
        ) {
            let (mut window, mut seen, mut top) = (Window::new(), HashSet::new(), 0u64);
            for (back, far, near) in steps {
                let counter = match (back, near) {
                    (true, _) => top.saturating_sub(far),
                    (false, 0) => top + far,
                    (false, _) => (top + near).saturating_sub(100),
                };
                let new = counter >= top || top - counter <= SIZE && !seen.contains(&counter);
                prop_assert_eq!(window.is_new(counter), new, "{} below {}", counter, top);
                if new {
                    window.mark(counter);
                    seen.insert(counter);
                    top = top.max(counter + 1);
                }
                prop_assert_eq!(window.top(), top);
            }
        }
    }
}
