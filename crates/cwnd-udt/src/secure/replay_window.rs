//! The replay window (RFC 6479): a bitmap in a ring buffer that advances by whole words.

/// The number of words in the ring buffer, a power of two. The last word is partially used.
const WORDS: usize = 256;
/// The size of the window in counters: 16 ms at a million packets per second. Older datagrams are
/// dropped.
pub(super) const SIZE: u64 = (WORDS as u64 - 1) * 64;

/// The counters of the datagrams that have arrived.
#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    /// One past the highest counter that has arrived.
    end: u64,
    words: Box<[u64; WORDS]>,
}

impl ReplayWindow {
    pub(super) fn new() -> Self {
        ReplayWindow { end: 0, words: Box::new([0; WORDS]) }
    }

    /// One past the highest counter that has arrived.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Whether `counter` is known not to have arrived.
    pub(super) fn is_new(&self, counter: u64) -> bool {
        if counter >= self.end {
            return true;
        }
        self.end - counter <= SIZE && self.words[word(counter)] & bit(counter) == 0
    }

    /// Records that `counter`, which must be [new](Self::is_new), has arrived.
    pub(super) fn mark(&mut self, counter: u64) {
        if counter >= self.end {
            let filling = self.end.div_ceil(64);
            let last = counter / 64;
            for block in filling..=last.min(filling + WORDS as u64) {
                self.words[word(64 * block)] = 0;
            }
            self.end = counter + 1;
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
        let mut window = ReplayWindow::new();
        window.mark(SIZE);
        assert!(window.is_new(1) && !window.is_new(0) && !window.is_new(SIZE));
        window.mark(1);
        assert!(!window.is_new(1) && window.is_new(2));
    }

    proptest! {
        /// The window agrees with a set of all recorded counters.
        #[test]
        fn the_window_agrees_with_a_set(
            steps in prop::collection::vec((prop::bool::ANY, 0u64..3 * SIZE / 2, 0u64..200), 1..400),
        ) {
            let (mut window, mut seen, mut end) = (ReplayWindow::new(), HashSet::new(), 0u64);
            for (back, far, near) in steps {
                let counter = match (back, near) {
                    (true, _) => end.saturating_sub(far),
                    (false, 0) => end + far,
                    (false, _) => (end + near).saturating_sub(100),
                };
                let new = counter >= end || end - counter <= SIZE && !seen.contains(&counter);
                prop_assert_eq!(window.is_new(counter), new, "{} below {}", counter, end);
                if new {
                    window.mark(counter);
                    seen.insert(counter);
                    end = end.max(counter + 1);
                }
                prop_assert_eq!(window.end(), end);
            }
        }
    }
}
