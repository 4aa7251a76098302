//! Word count, as of MapReduce: text in memory, a hash map of words.
//!
//! Gao Table 2 has it three times (Hadoop, Spark, Spark Streaming) over the edit history of
//! Wikipedia. Here the words are drawn from a Zipf distribution, which natural language nearly has.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use workload::{Draw, Zipf};

use crate::checksum::hash;

/// Skew of the distribution of words: that of YCSB, as its method of drawing needs less than the 1
/// of natural language.
pub const SKEW: f64 = 0.99;

/// Longest spelling of a word: 26^14 > 2^64.
const LETTERS_MAX: usize = 14;
/// Memory per bucket of the map at its fullest: 25 bytes in the table (key, count, control byte)
/// and, for 5 in 6, the word on the heap.
const BUCKET_BYTES: u64 = 52;
/// The inverse of the map's largest share of all data. As a table doubles, its share is from a
/// sixth to a third; a fifth if the size is a power of two.
const MAP_SHARE: u64 = 3;

/// Text in memory: words with a space after each.
#[derive(Debug)]
pub struct Text {
    bytes: Vec<u8>,
    word_count: u64,
    vocabulary_count: u64,
    checksum: u64,
}

/// How often each word occurs.
#[derive(Debug)]
pub struct Counts {
    // Hashed without a random seed, so that every run touches the same memory.
    by_word: HashMap<Box<[u8]>, u64, BuildHasherDefault<DefaultHasher>>,
}

/// Counts that are not those of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// Words were lost or counted twice.
    #[error("{found} words were counted, but the text has {expected}")]
    Total {
        /// Words counted.
        found: u64,
        /// Words of the text.
        expected: u64,
    },
    /// The total is right, single counts are not.
    #[error("the counts have checksum {found:016x}, but the text's is {expected:016x}")]
    Checksum {
        /// The checksum of the counts.
        found: u64,
        /// The checksum of the text.
        expected: u64,
    },
}

impl Text {
    /// Generates text which takes, with the map of its words, about `size_bytes` bytes.
    #[must_use]
    pub fn generate(size_bytes: u64, seed: u64) -> Self {
        let buckets = (size_bytes / (MAP_SHARE * BUCKET_BYTES)).max(2).ilog2();
        // A map grows when 7 of 8 buckets are in use.
        let vocabulary_count = ((5_u64 << buckets) / 6).max(1);
        let text_bytes = size_bytes.saturating_sub(BUCKET_BYTES << buckets).max(1);
        Self::of_words(text_bytes, vocabulary_count, seed)
    }

    /// Generates at most `bytes` bytes of text, with words from a vocabulary of `vocabulary_count`.
    fn of_words(bytes: u64, vocabulary_count: u64, seed: u64) -> Self {
        let capacity = usize::try_from(bytes).expect("an address space holds the text");
        let zipf = Zipf::new(vocabulary_count, SKEW);
        let mut draw = Draw::new(seed);
        let mut text = Self {
            bytes: Vec::with_capacity(capacity),
            word_count: 0,
            vocabulary_count,
            checksum: 0,
        };
        loop {
            let mut letters = [0; LETTERS_MAX];
            let word = spell(zipf.next(&mut draw), &mut letters);
            if text.bytes.len() + word.len() + 1 > capacity {
                return text;
            }
            text.bytes.extend_from_slice(word);
            text.bytes.push(b' ');
            text.word_count += 1;
            text.checksum = text.checksum.wrapping_add(hash(word));
        }
    }

    /// Length of the text in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Whether the text has no word.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many words the text has, repeated ones included.
    #[must_use]
    pub const fn word_count(&self) -> u64 {
        self.word_count
    }

    /// How many words were drawn from; the rarest may not occur.
    #[must_use]
    pub const fn vocabulary_count(&self) -> u64 {
        self.vocabulary_count
    }

    /// The job: counts every word.
    #[must_use]
    pub fn count(&self) -> Counts {
        count(&self.bytes)
    }

    /// Checks counts against the words that were generated.
    ///
    /// # Errors
    /// If the total or the checksum differs.
    pub fn verify(&self, counts: &Counts) -> Result<(), CountError> {
        let (found, expected) = (counts.total(), self.word_count);
        if found != expected {
            return Err(CountError::Total { found, expected });
        }
        let (found, expected) = (counts.checksum(), self.checksum);
        if found != expected {
            return Err(CountError::Checksum { found, expected });
        }
        Ok(())
    }
}

impl Counts {
    /// How many different words occur.
    #[must_use]
    pub fn distinct_count(&self) -> u64 {
        self.by_word.len() as u64
    }

    /// How often `word` occurs.
    #[must_use]
    pub fn of(&self, word: &[u8]) -> u64 {
        self.by_word.get(word).copied().unwrap_or(0)
    }

    /// How many words were counted, repeated ones included.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_word.values().sum()
    }

    /// Sum of the hashes of all words, repeated ones included, modulo 2^64.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        let hashes = self.by_word.iter().map(|(word, count)| hash(word).wrapping_mul(*count));
        hashes.fold(0, u64::wrapping_add)
    }
}

/// Counts the words of `text`.
fn count(text: &[u8]) -> Counts {
    let mut by_word: HashMap<Box<[u8]>, u64, _> = HashMap::default();
    for word in text.split(|&byte| byte == b' ').filter(|word| !word.is_empty()) {
        // Not `entry`, which would need a copy of every word.
        match by_word.get_mut(word) {
            Some(count) => *count += 1,
            None => {
                by_word.insert(word.into(), 1);
            }
        }
    }
    Counts { by_word }
}

/// The word of a rank: base 26 without a zero, so that spellings are unique and frequent words are
/// short, as in natural language.
fn spell(rank: u64, letters: &mut [u8; LETTERS_MAX]) -> &[u8] {
    let mut at = LETTERS_MAX;
    let mut left = rank + 1;
    while left > 0 {
        left -= 1;
        at -= 1;
        letters[at] = b'a' + u8::try_from(left % 26).unwrap_or(0);
        left /= 26;
    }
    &letters[at..]
}

#[cfg(test)]
mod tests {
    use workload::zeta;

    use super::*;

    #[test]
    fn count_of_known_text() {
        let counts = count(b"to be or not to  be ");
        assert_eq!((counts.total(), counts.distinct_count()), (6, 4));
        assert_eq!((counts.of(b"to"), counts.of(b"not"), counts.of(b"tobe")), (2, 1, 0));
        assert_eq!(count(b"").total(), 0);
    }

    #[test]
    fn spell_counts_in_letters() {
        let word = |rank| String::from_utf8(spell(rank, &mut [0; LETTERS_MAX]).to_vec()).unwrap();
        let words = [0, 25, 26, 701, 702].map(word);
        assert_eq!(words, ["a", "z", "aa", "zz", "aaa"]);
        assert_eq!(word(u64::MAX - 1).len(), LETTERS_MAX);
    }

    #[test]
    fn generate_is_what_was_asked_for_and_follows_from_the_seed() {
        let size = 4 << 20;
        let text = Text::generate(size, 1);
        let map = text.vocabulary_count() * 6 / 5 * BUCKET_BYTES;
        assert!((text.len() + map).abs_diff(size) < 100, "{} + {map}", text.len());
        assert!(map * 3 <= size && map * 6 > size - 6 * 100, "{map}");
        assert_eq!(text.bytes, Text::generate(size, 1).bytes);
        assert_ne!(text.bytes, Text::generate(size, 2).bytes);
    }

    #[test]
    fn count_frequencies_are_those_of_zipf() {
        let text = Text::of_words(8 << 20, 10_000, 3);
        let counts = text.count();
        assert_eq!(counts.total(), text.word_count());
        let share = |word: &[u8]| counts.of(word) as f64 / text.word_count() as f64;
        // The two first ranks are exact in the method of drawing: p = rank^-θ / ζ(n, θ).
        let first = 1.0 / zeta(10_000, SKEW);
        assert!((share(b"a") / first - 1.0).abs() < 0.01, "{} and {first}", share(b"a"));
        let second = first * 0.5_f64.powf(SKEW);
        assert!((share(b"b") / second - 1.0).abs() < 0.01, "{} and {second}", share(b"b"));
    }

    #[test]
    fn verify_finds_what_was_lost_and_what_was_mixed_up() {
        let text = Text::of_words(1 << 16, 100, 1);
        let mut counts = text.count();
        assert_eq!(text.verify(&counts), Ok(()));
        *counts.by_word.get_mut(&b"a"[..]).unwrap() -= 1;
        assert!(matches!(text.verify(&counts), Err(CountError::Total { .. })));
        *counts.by_word.get_mut(&b"b"[..]).unwrap() += 1;
        assert!(matches!(text.verify(&counts), Err(CountError::Checksum { .. })));
    }
}
