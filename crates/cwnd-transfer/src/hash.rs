//! Block hashes: subtrees of one BLAKE3 tree.
//!
//! A file is divided into blocks of [`BLOCK`] bytes. The value of a block is the non-root chaining
//! value of the BLAKE3 subtree over its bytes, at its position in the file. The hash of a file of
//! two or more blocks results from the values of its blocks, so one pass over a file gives both.

use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// Bytes of a block: a power of two times BLAKE3's chunk of 1024 bytes.
pub const BLOCK: u64 = 1 << 20;

/// The chaining value of a block.
pub type Value = [u8; 32];

/// The value of a block that is sent as a hole: it is not hashed.
pub const HOLE: Value = [0; 32];

/// Returns the number of blocks of a file of `size` bytes.
#[must_use]
pub const fn blocks(size: u64) -> u64 {
    size.div_ceil(BLOCK)
}

/// Returns the length in bytes of block `index` of a file of `size` bytes.
#[must_use]
pub const fn block_len(size: u64, index: u64) -> u64 {
    let left = size.saturating_sub(index.saturating_mul(BLOCK));
    if left < BLOCK { left } else { BLOCK }
}

/// Returns the value of block `index`, whose bytes are `data`: 1 to [`BLOCK`] bytes.
#[must_use]
pub fn block_value(index: u64, data: &[u8]) -> Value {
    if data.is_empty() {
        return [0; 32];
    }
    let mut hasher = Hasher::new();
    hasher.set_input_offset(index * BLOCK).update(data);
    hasher.finalize_non_root()
}

/// Combines the values of a file's blocks, in order, into the BLAKE3 hash of the file. It is
/// another hash if blocks were sent as holes.
///
/// Memory: one value for each level of the tree.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    stack: Vec<Value>,
    count: u64,
}

impl Tree {
    /// Adds the value of the next block.
    pub fn push(&mut self, value: Value) {
        self.push_subtree(value, 1);
    }

    /// Adds a subtree of `blocks`, a power of two that divides the number of blocks before it.
    fn push_subtree(&mut self, value: Value, blocks: u64) {
        // Merge only when another block follows: the last merge is that of the root.
        while self.stack.len() > self.count.count_ones() as usize {
            self.merge();
        }
        self.stack.push(value);
        self.count += blocks;
    }

    /// Adds [`HOLE`] for each of `count` blocks, in a number of steps that is logarithmic in
    /// `count`.
    pub fn push_holes(&mut self, count: u64) {
        // Subtrees of 2^n holes. The last block is added by itself: the last merge may be that of
        // the root.
        let mut subtrees = vec![HOLE];
        let mut left = count.saturating_sub(1);
        while left > 0 {
            let largest = self.count.trailing_zeros().min(left.ilog2());
            while subtrees.len() <= largest as usize {
                let half = &subtrees[subtrees.len() - 1];
                subtrees.push(merge_subtrees_non_root(half, half, Mode::Hash));
            }
            self.push_subtree(subtrees[largest as usize], 1 << largest);
            left -= 1 << largest;
        }
        if count > 0 {
            self.push(HOLE);
        }
    }

    /// Whether two files have the same values.
    #[must_use]
    pub fn is_equal(&self, other: &Tree) -> bool {
        let value = |tree: &Tree| match tree.count {
            0 | 1 => tree.stack.first().copied(),
            _ => tree.clone().root(),
        };
        self.count == other.count && value(self) == value(other)
    }

    fn merge(&mut self) {
        if let (Some(right), Some(left)) = (self.stack.pop(), self.stack.pop()) {
            self.stack.push(merge_subtrees_non_root(&left, &right, Mode::Hash));
        }
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.count
    }

    /// Returns the hash of the file; `None` for fewer than two blocks, whose value suffices.
    #[must_use]
    pub fn root(mut self) -> Option<Value> {
        while self.stack.len() > 2 {
            self.merge();
        }
        let (right, left) = (self.stack.pop()?, self.stack.pop()?);
        Some(*merge_subtrees_root(&left, &right, Mode::Hash).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_blake3s_own() {
        let mut data = Vec::new();
        for (index, size) in [2, 3, 4, 5, 7, 8, 9].into_iter().enumerate() {
            data.resize((size - 1) * BLOCK as usize + 1 + 1000 * index, index as u8);
            data.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 777) as u8);
            let mut tree = Tree::default();
            for (index, block) in data.chunks(BLOCK as usize).enumerate() {
                tree.push(block_value(index as u64, block));
            }
            assert_eq!(tree.root(), Some(*blake3::hash(&data).as_bytes()), "{size} blocks");
        }
        assert_eq!(Tree::default().root(), None);
    }

    #[test]
    fn holes_are_added_as_one_by_one() {
        for (before, holes, after) in
            [(0, 2, 0), (0, 4, 0), (1, 1, 1), (3, 9, 0), (2, 64, 5), (5, 131, 2), (8, 8, 0)]
        {
            let (mut one, mut many) = (Tree::default(), Tree::default());
            for tree in [&mut one, &mut many] {
                (0..before).for_each(|at| tree.push([at as u8 + 1; 32]));
            }
            (0..holes).for_each(|_| one.push(HOLE));
            many.push_holes(holes);
            for tree in [&mut one, &mut many] {
                (0..after).for_each(|at| tree.push([at as u8 + 100; 32]));
            }
            assert!(one.is_equal(&many), "{before}, {holes}, {after}");
            assert!(one.root().is_some());
        }
        let mut huge = Tree::default();
        huge.push_holes(1 << 24);
        assert_eq!(huge.blocks(), 1 << 24);
    }

    #[test]
    fn blocks_cover_a_file() {
        assert_eq!((blocks(0), blocks(1), blocks(BLOCK), blocks(BLOCK + 1)), (0, 1, 1, 2));
        assert_eq!((block_len(BLOCK + 1, 0), block_len(BLOCK + 1, 1)), (BLOCK, 1));
        assert_eq!(block_len(5, u64::MAX), 0);
    }
}
