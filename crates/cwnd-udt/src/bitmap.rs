//! A bitmap of the packets of a window, stored as a ring buffer.

/// A bitmap indexed by packet number modulo its capacity. The packets in use must span at most the
/// capacity.
#[derive(Clone, Debug)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
    mask: u64,
}

impl Bitmap {
    /// Creates a bitmap of clear bits. `capacity` is a power of two, at least 64.
    pub(crate) fn new(capacity: u64) -> Self {
        Bitmap { words: vec![0; (capacity / 64) as usize], mask: capacity - 1 }
    }

    #[inline]
    fn index(&self, at: u64) -> (usize, u64) {
        let at = at & self.mask;
        ((at >> 6) as usize, 1 << (at & 63))
    }

    #[inline]
    pub(crate) fn get(&self, at: u64) -> bool {
        let (word, bit) = self.index(at);
        self.words[word] & bit != 0
    }

    /// Sets a bit. Returns whether it was clear.
    #[inline]
    pub(crate) fn set(&mut self, at: u64) -> bool {
        let (word, bit) = self.index(at);
        let clear = self.words[word] & bit == 0;
        self.words[word] |= bit;
        clear
    }

    /// Clears a bit. Returns whether it was set.
    #[inline]
    pub(crate) fn clear(&mut self, at: u64) -> bool {
        let (word, bit) = self.index(at);
        let set = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        set
    }

    /// Clears the bits of `from..to` and counts those that were set.
    #[inline]
    pub(crate) fn clear_range(&mut self, from: u64, to: u64) -> u64 {
        let mut cleared = 0;
        self.each_word(from, to, |word, bits| {
            cleared += u64::from((*word & bits).count_ones());
            *word &= !bits;
        });
        cleared
    }

    /// Sets the bits of `from..to` and counts those that were clear.
    pub(crate) fn set_range(&mut self, from: u64, to: u64) -> u64 {
        let mut set = 0;
        self.each_word(from, to, |word, bits| {
            set += u64::from((!*word & bits).count_ones());
            *word |= bits;
        });
        set
    }

    #[inline]
    fn each_word(&mut self, mut from: u64, to: u64, mut each: impl FnMut(&mut u64, u64)) {
        while from < to {
            let shift = from & 63;
            let count = (64 - shift).min(to - from);
            let bits = (u64::MAX >> (64 - count)) << shift;
            each(&mut self.words[((from & self.mask) >> 6) as usize], bits);
            from += count;
        }
    }

    /// The first set bit of `from..to`.
    #[inline]
    pub(crate) fn next_set(&self, from: u64, to: u64) -> Option<u64> {
        self.find(from, to, 0)
    }

    /// The first clear bit of `from..to`.
    #[inline]
    pub(crate) fn next_clear(&self, from: u64, to: u64) -> Option<u64> {
        self.find(from, to, u64::MAX)
    }

    #[inline]
    fn find(&self, mut from: u64, to: u64, flip: u64) -> Option<u64> {
        while from < to {
            let shift = from & 63;
            let word = (self.words[((from & self.mask) >> 6) as usize] ^ flip) >> shift;
            if word != 0 {
                let at = from + u64::from(word.trailing_zeros());
                return (at < to).then_some(at);
            }
            from += 64 - shift;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_bitmap_agrees_with_a_set(
            base in 0u64..1000,
            ranges in prop::collection::vec((any::<bool>(), 0u64..128, 0u64..128), 1..30),
        ) {
            let (mut bits, mut set) = (Bitmap::new(128), BTreeSet::new());
            for (add, a, b) in ranges {
                let (from, to) = (base + a.min(b), base + a.max(b));
                let before = set.len() as u64;
                if add {
                    let added = bits.set_range(from, to);
                    set.extend(from..to);
                    prop_assert_eq!(added, set.len() as u64 - before);
                } else {
                    let cleared = bits.clear_range(from, to);
                    set.retain(|at| !(from..to).contains(at));
                    prop_assert_eq!(cleared, before - set.len() as u64);
                }
                prop_assert_eq!(bits.next_set(from, base + 128), set.range(from..).next().copied());
                let hole = (from..base + 128).find(|at| !set.contains(at));
                prop_assert_eq!(bits.next_clear(from, base + 128), hole);
                prop_assert_eq!(bits.get(from), set.contains(&from));
            }
        }
    }
}
