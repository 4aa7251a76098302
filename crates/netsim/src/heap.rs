//! The binary heap of the C++ library that the simulator of 2016 was built with.
//!
//! Where elements are equal, or change while they are inside, the heap's own steps decide what
//! comes out. That simulator's results hang on it, so the steps are these and no others.

/// A heap. `is_after(a, b)` says that `a` comes out later than `b`; it is evaluated anew each time.
#[derive(Debug)]
pub(crate) struct Heap<T> {
    items: Vec<T>,
}

impl<T> Default for Heap<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

impl<T: Copy> Heap<T> {
    pub(crate) const fn new() -> Self {
        Self { items: Vec::new() }
    }

    /// The item that comes out next; `None` if the heap is empty.
    pub(crate) fn peek(&self) -> Option<T> {
        self.items.first().copied()
    }

    /// Adds `item`.
    pub(crate) fn push(&mut self, item: T, is_after: impl Fn(T, T) -> bool) {
        self.items.push(item);
        self.rise(self.items.len() - 1, item, &is_after);
    }

    /// Removes and returns the item that comes out next; `None` if the heap is empty.
    pub(crate) fn pop(&mut self, is_after: impl Fn(T, T) -> bool) -> Option<T> {
        let first = *self.items.first()?;
        let item = self.items.pop()?;
        if !self.items.is_empty() {
            self.sink(item, &is_after);
        }
        Some(first)
    }

    /// Moves `hole` up past the parents that come out after `item`, and puts `item` there.
    fn rise(&mut self, mut hole: usize, item: T, is_after: &impl Fn(T, T) -> bool) {
        while hole > 0 {
            let parent = (hole - 1) / 2;
            if !is_after(self.items[parent], item) {
                break;
            }
            self.items[hole] = self.items[parent];
            hole = parent;
        }
        self.items[hole] = item;
    }

    /// Fills the hole at the top from below, down to a leaf, and lets `item` rise from there.
    fn sink(&mut self, item: T, is_after: &impl Fn(T, T) -> bool) {
        let count = self.items.len();
        let (mut hole, mut child) = (0, 0);
        while child < (count - 1) / 2 {
            child = 2 * (child + 1);
            if is_after(self.items[child], self.items[child - 1]) {
                child -= 1;
            }
            self.items[hole] = self.items[child];
            hole = child;
        }
        if count.is_multiple_of(2) && child == (count - 2) / 2 {
            child = 2 * (child + 1);
            self.items[hole] = self.items[child - 1];
            hole = child - 1;
        }
        self.rise(hole, item, is_after);
    }
}
