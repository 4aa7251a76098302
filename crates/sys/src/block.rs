//! Memory that a device can read and write: aligned to pages, of a fixed size.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The strictest alignment of direct I/O (the largest page and logical block in use).
const ALIGNMENT: usize = 4096;

/// Bytes aligned to 4096.
pub struct Block {
    start: NonNull<u8>,
    bytes: usize,
}

impl Block {
    /// A block of zeros, `bytes` long, rounded up to a multiple of 4096.
    #[must_use]
    #[expect(unsafe_code, reason = "allocates with an alignment")]
    pub fn new(bytes: usize) -> Self {
        let layout = layout(bytes);
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        Self { start, bytes: layout.size() }
    }
}

/// Returns freed memory of this process to the system, where the allocator can do that
/// (malloc_trim(3)). It visits all free memory, and other threads that allocate wait meanwhile.
#[cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "calls the C library's allocator"))]
pub fn give_back() {
    empty_cache();
    // SAFETY: it may be called at any time, and moves nothing that is in use.
    #[cfg(target_env = "gnu")]
    let _had_any = unsafe { libc::malloc_trim(0) };
}

// Empties the calling thread's cache of freed blocks. The C library has one for each thread and
// size (tcache; 7 blocks per size in glibc 2.41, 16 in 2.42, up to 1032 bytes), and each block
// prevents its page from being freed. No call empties the cache, but it is emptied when a thread
// ends: so all that it may hold is allocated, and freed by a thread that ends.
fn empty_cache() {
    const SIZES: std::ops::RangeInclusive<usize> = 24..=1032;
    const OF_EACH: usize = 16;
    let sizes = SIZES.step_by(16).flat_map(|bytes| [bytes; OF_EACH]);
    let blocks: Vec<Vec<u8>> = sizes.map(Vec::with_capacity).collect();
    let blocks = std::hint::black_box(blocks);
    // If no thread can be started, the blocks are freed here and nothing has changed.
    let emptier = std::thread::Builder::new().spawn(move || drop(blocks));
    let _ended = emptier.map(std::thread::JoinHandle::join);
}

/// Makes the allocator return memory of allocations from `bytes` on to the system as soon as they
/// are freed, where it can do that (mallopt(3), `M_MMAP_THRESHOLD`): otherwise it retains what lies
/// between smaller ones.
#[cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "sets up the C library's allocator"))]
pub fn give_back_from(bytes: u32) {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    // SAFETY: it may be called at any time; what is allocated already stays as it is.
    #[cfg(target_env = "gnu")]
    let _did = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, bytes) };
    #[cfg(not(target_env = "gnu"))]
    let _has_none = bytes;
}

/// The layout of a block of `bytes`.
fn layout(bytes: usize) -> Layout {
    let bytes = bytes.max(1).next_multiple_of(ALIGNMENT);
    Layout::from_size_align(bytes, ALIGNMENT).expect("no buffer is as large as the address space")
}

impl Drop for Block {
    #[expect(unsafe_code, reason = "frees what was allocated with an alignment")]
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout, whose size it has kept.
        unsafe { dealloc(self.start.as_ptr(), layout(self.bytes)) }
    }
}

impl Deref for Block {
    type Target = [u8];

    #[expect(unsafe_code, reason = "views its own allocation")]
    fn deref(&self) -> &[u8] {
        // SAFETY: the allocation is this long, initialised to zeros, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Block {
    #[expect(unsafe_code, reason = "views its own allocation")]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and nobody else has it while `self` is borrowed so.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

// SAFETY: it owns its allocation, as a boxed slice does.
#[expect(unsafe_code, reason = "an owned allocation may change threads")]
unsafe impl Send for Block {}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes)", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_whole_pages_of_zeros() {
        for (asked, got) in [(0, 4096), (1, 4096), (4096, 4096), (4097, 8192), (1 << 20, 1 << 20)] {
            let mut block = Block::new(asked);
            assert_eq!(block.len(), got);
            assert_eq!(block.as_ptr().addr() % ALIGNMENT, 0);
            assert!(block.iter().all(|&byte| byte == 0));
            block.fill(7);
            assert_eq!(block[got - 1], 7);
        }
    }
}
