//! How pages are hashed: the same on every machine, and good enough to sample by.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by page whose hash is the same in every run.
pub(super) type ByPage<T> = HashMap<u64, T, BuildHasherDefault<PageHasher>>;

/// Hashes page numbers.
#[derive(Debug, Default)]
pub(super) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mixed(self.0 ^ number);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The bits of a number, spread over all 64: a bijection (Steele et al. 2014, SplitMix64).
pub(super) const fn mixed(number: u64) -> u64 {
    let sum = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let first = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let second = (first ^ (first >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    second ^ (second >> 31)
}
