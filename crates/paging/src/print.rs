//! Fingerprints of pages, by which a page that leaves unchanged is recognised.
//!
//! DESIGN NOTES
//!
//! * The key is drawn anew for each run, and nothing that is made with it leaves the supervisor.
//!   So nobody can make two pages with one fingerprint, and for any two pages the chance of it is
//!   below 2⁻⁵⁹.
//! * NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, CRYPTO '99) of 64-bit words, whose 128
//!   bits are then a polynomial modulo 2⁶¹ − 1. SipHash, which the standard library has, takes ten
//!   times as long: 2 µs of each page that leaves.

const PAGE_BYTES: usize = 4096;

const WORDS: usize = PAGE_BYTES / 8;
const PRIME: u128 = (1 << 61) - 1;

/// The key of a run.
#[derive(Debug)]
pub struct PrintKey {
    words: Box<[u64; WORDS]>,
    fold: u128,
}

impl PrintKey {
    /// A key of random bits, which must be secret.
    #[must_use]
    pub fn new(bytes: &[u8; PAGE_BYTES], number: u64) -> Self {
        let mut words = Box::new([0; WORDS]);
        words.iter_mut().zip(words_of(bytes)).for_each(|(word, random)| *word = random);
        Self { words, fold: u128::from(number) % PRIME }
    }

    /// The fingerprint of a page.
    #[must_use]
    pub fn print(&self, page: &[u8; PAGE_BYTES]) -> u64 {
        let mut sum = 0_u128;
        let mut words = words_of(page);
        for key in self.words.chunks_exact(2) {
            let (Some(even), Some(odd)) = (words.next(), words.next()) else { break };
            let product =
                u128::from(even.wrapping_add(key[0])) * u128::from(odd.wrapping_add(key[1]));
            sum = sum.wrapping_add(product);
        }
        let [low, middle, high] = [sum & PRIME, sum >> 61 & PRIME, sum >> 122];
        let folded = (high * self.fold + middle) % PRIME;
        ((folded * self.fold + low) % PRIME) as u64
    }
}

// The 64-bit words of a page.
fn words_of(page: &[u8; PAGE_BYTES]) -> impl Iterator<Item = u64> {
    page.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use workload::Draw;

    use super::*;

    fn key(seed: u64) -> PrintKey {
        let mut draw = Draw::new(seed);
        let bytes = std::array::from_fn(|_| draw.below(256).to_le_bytes()[0]);
        PrintKey::new(&bytes, draw.below(u64::MAX))
    }

    #[test]
    fn each_bit_of_a_page_counts() {
        let key = key(1);
        let mut page = [0_u8; PAGE_BYTES];
        let zeros = key.print(&page);
        assert_eq!(key.print(&page), zeros);
        let mut prints = std::collections::BTreeSet::from([zeros]);
        for bit in 0..PAGE_BYTES * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(prints.insert(key.print(&page)), "bit {bit}");
            page[bit / 8] = 0;
        }
        // Two words in each other's place, or the same everywhere, are other pages.
        let mut swapped = [page; 2];
        (swapped[0][8], swapped[1][16]) = (1, 1);
        assert_ne!(key.print(&swapped[0]), key.print(&swapped[1]));
        assert_ne!(key.print(&[1; PAGE_BYTES]), key.print(&[2; PAGE_BYTES]));
    }

    #[test]
    fn another_key_gives_another_fingerprint() {
        let page = [7; PAGE_BYTES];
        assert_ne!(key(1).print(&page), key(2).print(&page));
    }
}
