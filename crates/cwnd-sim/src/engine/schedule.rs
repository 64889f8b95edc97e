//! The event queue: a 4-ary heap of 64-bit keys, a time in the upper bits and a source in the
//! lower ones. It holds one entry for each busy link and armed timer, never one for each packet.
//! Entries at the same time come out in the order of their sources.

/// Larger than any key.
pub(crate) const NONE: u64 = u64::MAX;

/// A min-heap. The children of the root are block 0, those of the key at `at` of all blocks' are block
/// `at + 1`: a step down reads one cache line and picks the least without branching.
pub(crate) struct Schedule {
    /// The least key; [`NONE`] when there is none.
    root: u64,
    blocks: Vec<[u64; 4]>,
    len: usize,
    /// The root has been taken and not yet filled: many events schedule another at once.
    hole: bool,
}

impl Schedule {
    pub(crate) fn new() -> Self {
        Schedule { root: NONE, blocks: vec![[NONE; 4]], len: 0, hole: false }
    }

    /// The least key, which stays; [`NONE`] when there is none.
    #[inline(always)]
    pub(crate) fn first(&mut self) -> u64 {
        if self.hole {
            self.fill_hole();
        }
        self.root
    }

    /// Takes the least key, which [`first`](Self::first) has just told.
    #[inline(always)]
    pub(crate) fn take_first(&mut self) {
        self.hole = true;
    }

    /// Takes the least key, which [`first`](Self::first) has just told, and puts in another.
    #[inline(always)]
    pub(crate) fn replace_first(&mut self, key: u64) {
        self.sift_down(key);
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, key: u64) {
        if self.hole {
            self.hole = false;
            self.sift_down(key);
        } else {
            self.sift_up(key);
        }
    }

    /// The key of an element: the root is number 0.
    fn element(&mut self, number: usize) -> &mut u64 {
        match number.checked_sub(1) {
            Some(at) => &mut self.blocks.as_flattened_mut()[at],
            None => &mut self.root,
        }
    }

    #[inline(never)]
    fn sift_up(&mut self, key: u64) {
        let mut number = self.len;
        self.len += 1;
        if number > 4 * self.blocks.len() {
            self.blocks.push([NONE; 4]);
        }
        while number > 0 {
            let parent = (number - 1) >> 2;
            let above = *self.element(parent);
            if above <= key {
                break;
            }
            *self.element(number) = above;
            number = parent;
        }
        *self.element(number) = key;
    }

    #[inline(never)]
    fn fill_hole(&mut self) {
        self.hole = false;
        self.len -= 1;
        let number = self.len;
        let last = std::mem::replace(self.element(number), NONE);
        if self.len > 0 {
            self.sift_down(last);
        }
    }

    /// Puts a key in the root's place.
    #[inline(always)]
    fn sift_down(&mut self, key: u64) {
        let (mut least, mut at) = least_of(&self.blocks[0]);
        if least >= key {
            self.root = key;
            return;
        }
        self.root = least;
        while let Some(children) = self.blocks.get(at + 1) {
            let slot;
            (least, slot) = least_of(children);
            if least >= key {
                break;
            }
            self.blocks.as_flattened_mut()[at] = least;
            at = 4 * (at + 1) + slot;
        }
        self.blocks.as_flattened_mut()[at] = key;
    }
}

/// The least of four keys, and its place.
#[inline(always)]
fn least_of(&[a, b, c, d]: &[u64; 4]) -> (u64, usize) {
    let (x, i) = if b < a { (b, 1) } else { (a, 0) };
    let (y, j) = if d < c { (d, 3) } else { (c, 2) };
    if y < x { (y, j) } else { (x, i) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Step {
        Take,
        Put,
        Replace,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![Just(Step::Take), Just(Step::Put), Just(Step::Replace)]
    }

    proptest! {
        #[test]
        fn keys_come_out_in_order(steps in proptest::collection::vec((step(), 0u64..1000), 0..400)) {
            let mut schedule = Schedule::new();
            let mut model = std::collections::BinaryHeap::new();
            for (step, key) in steps {
                let expected = model.peek().map_or(NONE, |&std::cmp::Reverse(key)| key);
                prop_assert_eq!(schedule.first(), expected);
                if step != Step::Put && expected != NONE {
                    model.pop();
                }
                match step {
                    Step::Take if expected != NONE => schedule.take_first(),
                    Step::Replace if expected != NONE => schedule.replace_first(key),
                    Step::Take => {}
                    Step::Put | Step::Replace => schedule.push(key),
                }
                if step != Step::Take {
                    model.push(std::cmp::Reverse(key));
                }
            }
            while let Some(std::cmp::Reverse(key)) = model.pop() {
                prop_assert_eq!(schedule.first(), key);
                schedule.take_first();
            }
            prop_assert_eq!(schedule.first(), NONE);
        }
    }
}
