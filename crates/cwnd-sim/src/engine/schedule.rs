//! The event queue: a 4-ary heap of 64-bit keys, a time in the upper bits and a source in the
//! lower ones. It holds one entry for each busy link and armed timer, never one for each packet.
//! Entries at the same time come out in the order of their sources.

/// Larger than any key.
pub(crate) const NONE: u64 = u64::MAX;

/// A min-heap. Element `e` has its four children together in block `e + 1`, so that a step down
/// reads one cache line and picks the least without branching.
pub(crate) struct Schedule {
    blocks: Vec<[u64; 4]>,
    len: usize,
    /// The root has been taken and not yet filled: most events schedule their successor at once.
    hole: bool,
}

impl Schedule {
    pub fn new() -> Self {
        Schedule { blocks: vec![[NONE; 4]], len: 0, hole: false }
    }

    #[inline(always)]
    fn set(&mut self, element: usize, key: u64) {
        let flat = element + 3;
        self.blocks[flat >> 2][flat & 3] = key;
    }

    #[inline(always)]
    fn get(&self, element: usize) -> u64 {
        let flat = element + 3;
        self.blocks[flat >> 2][flat & 3]
    }

    /// Takes the least key; [`NONE`] when there is none.
    #[inline(always)]
    pub fn pop(&mut self) -> u64 {
        if self.hole {
            self.fill_hole();
        }
        if self.len == 0 {
            return NONE;
        }
        self.hole = true;
        self.get(0)
    }

    /// The least key, which stays; [`NONE`] when there is none.
    pub fn first(&mut self) -> u64 {
        if self.hole {
            self.fill_hole();
        }
        if self.len == 0 { NONE } else { self.get(0) }
    }

    #[inline(always)]
    pub fn push(&mut self, key: u64) {
        if self.hole {
            self.hole = false;
            self.sift_down(key);
        } else {
            self.sift_up(key);
        }
    }

    fn sift_up(&mut self, key: u64) {
        let mut at = self.len;
        self.len += 1;
        if (at + 3) >> 2 >= self.blocks.len() {
            self.blocks.push([NONE; 4]);
        }
        while at > 0 {
            let parent = (at - 1) >> 2;
            let above = self.get(parent);
            if above <= key {
                break;
            }
            self.set(at, above);
            at = parent;
        }
        self.set(at, key);
    }

    #[inline(always)]
    fn fill_hole(&mut self) {
        self.hole = false;
        self.len -= 1;
        let last = self.get(self.len);
        self.set(self.len, NONE);
        if self.len > 0 {
            self.sift_down(last);
        }
    }

    #[inline(always)]
    fn sift_down(&mut self, key: u64) {
        let mut at = 0;
        while let Some(&[a, b, c, d]) = self.blocks.get(at + 1) {
            let (x, i) = if b < a { (b, 1) } else { (a, 0) };
            let (y, j) = if d < c { (d, 3) } else { (c, 2) };
            let (least, slot) = if y < x { (y, j) } else { (x, i) };
            if least >= key {
                break;
            }
            self.set(at, least);
            at = 4 * at + 1 + slot;
        }
        self.set(at, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_come_out_in_order(steps in proptest::collection::vec((any::<bool>(), 0u64..1000), 0..400)) {
            let mut schedule = Schedule::new();
            let mut model = std::collections::BinaryHeap::new();
            for (take, key) in steps {
                if take {
                    let expected = model.pop().map_or(NONE, |std::cmp::Reverse(key)| key);
                    prop_assert_eq!(schedule.pop(), expected);
                } else {
                    schedule.push(key);
                    model.push(std::cmp::Reverse(key));
                }
            }
            while let Some(std::cmp::Reverse(key)) = model.pop() {
                prop_assert_eq!(schedule.pop(), key);
            }
            prop_assert_eq!(schedule.pop(), NONE);
        }
    }
}
