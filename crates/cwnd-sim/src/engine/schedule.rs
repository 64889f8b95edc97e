//! The event queue: a 4-ary heap of 64-bit keys, with a time in the upper bits and a source in the
//! lower ones. It holds one entry for each busy link and armed timer, not for each packet.
//! Simultaneous events are in the order of their sources.

/// Larger than any key.
pub(crate) const NONE: u64 = u64::MAX;
/// A time after the end of every run. Times beyond it need not be exact, and sums of a few of them
/// do not overflow.
pub(super) const AFTER_END: u64 = 1 << 62;

/// A min-heap. Block 0 holds the children of the root; block `at + 1` holds the children of the key
/// at index `at` of the flattened blocks. A step down reads one cache line and selects the least
/// key without a branch.
#[derive(Clone)]
pub(crate) struct Schedule {
    /// The least key; [`NONE`] if the heap is empty.
    root: u64,
    blocks: Vec<[u64; 4]>,
    len: usize,
    /// Whether the root has been removed and not replaced. Many events schedule another one, which
    /// fills it.
    hole: bool,
}

impl Schedule {
    pub(crate) fn new() -> Self {
        Schedule { root: NONE, blocks: vec![[NONE; 4]], len: 0, hole: false }
    }

    /// Returns the least key without removing it; [`NONE`] if the heap is empty.
    #[inline(always)]
    pub(crate) fn first(&mut self) -> u64 {
        if self.hole {
            self.fill_hole();
        }
        self.root
    }

    /// Removes the least key. [`first`](Self::first) must precede it.
    #[inline(always)]
    pub(crate) fn take_first(&mut self) {
        self.hole = true;
    }

    /// Replaces the least key. [`first`](Self::first) must precede it.
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

    /// Returns the key of an element; the root is number 0.
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

    /// Replaces the root by `key` and restores the heap order.
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

/// Returns the least of four keys and its index.
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
