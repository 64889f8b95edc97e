//! A FIFO queue in a ring buffer whose capacity is a power of two, indexed from the front.

#[derive(Clone, Default)]
pub(crate) struct Ring<T: Copy> {
    buffer: Vec<T>,
    head: usize,
    len: usize,
}

impl<T: Copy + Default> Ring<T> {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> usize {
        (self.head + index) & (self.buffer.len().wrapping_sub(1))
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, item: T) {
        if self.len == self.buffer.len() {
            self.grow();
        }
        let slot = self.slot(self.len);
        self.buffer[slot] = item;
        self.len += 1;
    }

    /// Returns the item `index` places behind the front. The ring must be longer than `index`.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> T {
        debug_assert!(index < self.len);
        self.buffer[self.slot(index)]
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, index: usize) -> &mut T {
        debug_assert!(index < self.len);
        let slot = self.slot(index);
        &mut self.buffer[slot]
    }

    /// Returns the index of the first item from `from` on that is `wanted`.
    pub(crate) fn position(&self, from: usize, wanted: impl Fn(T) -> bool) -> Option<usize> {
        let left = self.len.saturating_sub(from);
        let (wrapped, ahead) = self.buffer.split_at(self.slot(from).min(self.buffer.len()));
        let ahead = &ahead[..left.min(ahead.len())];
        let wrapped = &wrapped[..left - ahead.len()];
        let found = ahead.iter().position(|&item| wanted(item));
        let found =
            found.or_else(|| Some(ahead.len() + wrapped.iter().position(|&item| wanted(item))?));
        found.map(|behind| from + behind)
    }

    /// Removes the front item and returns it. The ring must not be empty.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> T {
        debug_assert!(self.len > 0);
        let item = self.buffer[self.slot(0)];
        self.skip(1);
        item
    }

    /// Removes `count` items from the front. An empty ring begins again at its first slot, so that
    /// the memory of one that is often empty stays in the cache.
    #[inline(always)]
    pub(crate) fn skip(&mut self, count: usize) {
        debug_assert!(count <= self.len);
        self.len -= count;
        self.head = if self.len == 0 { 0 } else { self.head.wrapping_add(count) };
    }

    #[cold]
    fn grow(&mut self) {
        let size = (2 * self.buffer.len()).max(8);
        let mut larger = Vec::with_capacity(size);
        larger.extend((0..self.len).map(|index| self.get(index)));
        larger.resize(size, T::default());
        self.buffer = larger;
        self.head = 0;
    }
}
