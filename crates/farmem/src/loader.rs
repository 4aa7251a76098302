//! The dynamic loader of an image, whose own memory is not managed.
//!
//! The loader's own memory (lists of objects, thread-local storage) is little, exists before the
//! program begins, and would be among the pages of the smallest budgets. Its calls come from
//! instructions of the loader's own file. It is bounded, because the loader of some C libraries
//! (musl) is the library, with the program's `malloc` in it.

use std::ops::Range;

use sys::maps;

/// The most memory that a loader may have for itself, in bytes.
const LOADER_BYTES_MAX: u64 = 512 << 10;
/// The address of the loader, among the values that the kernel gives a program.
const AT_BASE: u64 = 7;

/// The addresses of the loader's instructions, and the bytes that it has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loader {
    text: Range<u64>,
    bytes: u64,
}

impl Loader {
    /// The loader of process `pid`, which has just made its first call for memory at `address`.
    /// `None` if the image has no loader or another object makes the call.
    pub(crate) fn of(pid: u32, address: u64) -> Option<Self> {
        let base = given(pid, AT_BASE)?;
        // Objects that are loaded next lie elsewhere; the loader's segments follow its base.
        const LOADER_MAX: u64 = 4 << 20;
        let text = maps::read(pid, address, address + 1).first().map(|m| m.start..m.end)?;
        let own = text.start >= base && text.start - base < LOADER_MAX;
        own.then_some(Self { text, bytes: 0 })
    }

    /// Whether an `mmap` of `bytes`, called from `address`, is the loader's own. Counts it then.
    pub(crate) fn takes(&mut self, address: u64, bytes: u64) -> bool {
        let own = self.text.contains(&address) && self.bytes + bytes <= LOADER_BYTES_MAX;
        if own {
            self.bytes += bytes;
        }
        own
    }
}

/// The entry `key` of the auxiliary vector of process `pid` (`getauxval(3)`); `None` if it is 0.
pub(crate) fn given(pid: u32, key: u64) -> Option<u64> {
    find(&std::fs::read(format!("/proc/{pid}/auxv")).ok()?, key)
}

// The value of `key` in an auxiliary vector; `None` if it is missing or 0.
fn find(vector: &[u8], key: u64) -> Option<u64> {
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).ok();
    let mut pairs = vector.chunks_exact(16);
    let pair = pairs.find(|pair| word(&pair[..8]) == Some(key))?;
    word(&pair[8..]).filter(|&value| value != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_memory_is_bounded() {
        let mut loader = Loader { text: 0x1000..0x2000, bytes: 0 };
        assert!(!loader.takes(0x2000, 4096), "asked for elsewhere");
        assert!(loader.takes(0x1fff, LOADER_BYTES_MAX - 4096));
        assert!(!loader.takes(0x1000, 8192));
        assert!(loader.takes(0x1000, 4096));
        assert!(!loader.takes(0x1000, 1));
    }

    #[test]
    fn base_is_that_of_a_loader() {
        let vector = |base: u64| [6, 4096, AT_BASE, base, 0, 0_u64].map(u64::to_ne_bytes).concat();
        assert_eq!(find(&vector(0x7f00), AT_BASE), Some(0x7f00));
        assert_eq!(find(&vector(0), AT_BASE), None, "a static program");
        assert_eq!(find(&[], AT_BASE), None);
    }
}
