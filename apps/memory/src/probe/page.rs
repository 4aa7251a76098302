//! The pages that are touched.

use std::sync::atomic::AtomicU64;

/// Words of a page.
pub(super) const WORDS_PER_PAGE: usize = 512;

/// One page, of which the first word is touched, or every line.
#[repr(align(4096))]
pub(super) struct Page(pub(super) [AtomicU64; WORDS_PER_PAGE]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_pages() {
        assert_eq!(size_of::<Page>(), 4096);
    }
}
