//! Sorting, as of TeraSort: records of 100 bytes by their first ten.
//!
//! Gao Table 2 has it twice (Hadoop, Spark) over the records of the sort benchmark's generator,
//! whose binary format (gensort; sortbenchmark.org) this is. The keys are drawn here, not by
//! gensort's own generator.

use workload::Draw;

use crate::checksum::hash;

/// Bytes of a record.
pub const RECORD_BYTES: usize = 100;
const KEY_BYTES: usize = 10;

type Record = [u8; RECORD_BYTES];

/// Records in memory.
#[derive(Debug, Clone)]
pub struct Records {
    records: Vec<Record>,
    checksum: u64,
}

/// Why records are not the sorted records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// A record has a larger key than the next one.
    #[error("record {0} has a larger key than the next one")]
    Unordered(usize),
    /// The records are not those that were generated.
    #[error("the records have checksum {found:016x} after and {expected:016x} before")]
    Changed {
        /// After sorting.
        found: u64,
        /// Before.
        expected: u64,
    },
}

impl Records {
    /// Generates as many records as fit into `size_bytes` bytes.
    #[must_use]
    pub fn generate(size_bytes: u64, seed: u64) -> Self {
        let count = size_bytes / RECORD_BYTES as u64;
        let mut draw = Draw::new(seed);
        let records: Vec<Record> = (0..count).map(|number| record(number, &mut draw)).collect();
        let checksum = sum(&records);
        Self { records, checksum }
    }

    /// How many records there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.records.len() as u64
    }

    /// The job: puts the records in order of their keys, moving whole records.
    pub fn sort(&mut self) {
        self.records.sort_unstable_by(|one, other| key(one).cmp(key(other)));
    }

    /// Checks that the records are in order and are those that were generated.
    ///
    /// # Errors
    /// If two are out of order, or the checksum differs.
    pub fn verify(&self) -> Result<(), OrderError> {
        let mut pairs = self.records.windows(2);
        if let Some(at) = pairs.position(|pair| key(&pair[0]) > key(&pair[1])) {
            return Err(OrderError::Unordered(at));
        }
        let (found, expected) = (sum(&self.records), self.checksum);
        if found != expected {
            return Err(OrderError::Changed { found, expected });
        }
        Ok(())
    }

    /// Sum of the records' hashes when they were generated, modulo 2^64; independent of order, as
    /// valsort's.
    #[must_use]
    pub const fn checksum(&self) -> u64 {
        self.checksum
    }
}

/// The key of a record.
fn key(record: &Record) -> &[u8] {
    &record[..KEY_BYTES]
}

/// The sum of the records' hashes, modulo 2^64.
fn sum(records: &[Record]) -> u64 {
    records.iter().fold(0, |sum, record| sum.wrapping_add(hash(record)))
}

/// Generates record `number`: key, separator, number in hexadecimal, separator, filler, separator.
fn record(number: u64, draw: &mut Draw) -> Record {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(&draw.bits().to_be_bytes());
    let more = draw.bits().to_be_bytes();
    record[8..KEY_BYTES].copy_from_slice(&more[..2]);
    record[10..12].copy_from_slice(&[0x00, 0x11]);
    let digit = |number: u64| HEX[(number & 15) as usize];
    for (place, byte) in record[12..44].iter_mut().rev().enumerate() {
        *byte = if place < 16 { digit(number >> (4 * place)) } else { b'0' };
    }
    record[44..48].copy_from_slice(&[0x88, 0x99, 0xaa, 0xbb]);
    let mut filler = u64::from_be_bytes(more) & 0xffff_ffff_ffff;
    for byte in record[48..96].chunks_exact_mut(4) {
        byte.fill(digit(filler));
        filler >>= 4;
    }
    record[96..].copy_from_slice(&[0xcc, 0xdd, 0xee, 0xff]);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_has_the_format_of_gensort() {
        let record = record(0x2a, &mut Draw::new(1));
        assert_eq!(&record[10..12], b"\x00\x11");
        assert_eq!(&record[12..44], b"0000000000000000000000000000002A");
        assert_eq!(&record[44..48], b"\x88\x99\xaa\xbb");
        let is_one_digit = |four: &[u8]| four[0].is_ascii_hexdigit() && four == [four[0]; 4];
        assert!(record[48..96].chunks(4).all(is_one_digit));
        assert_eq!(&record[96..], b"\xcc\xdd\xee\xff");
    }

    #[test]
    fn sort_orders_and_keeps() {
        let mut records = Records::generate(1_000_099, 1);
        assert_eq!(records.count(), 10_000);
        let mut expected = records.records.clone();
        assert!(matches!(records.verify(), Err(OrderError::Unordered(_))));
        let before = records.checksum();
        records.sort();
        assert_eq!((records.verify(), records.checksum()), (Ok(()), before));
        // By another algorithm.
        expected.sort_by_key(|record| record[..KEY_BYTES].to_vec());
        assert!(records.records == expected);
        assert_eq!(Records::generate(1_000_000, 1).checksum(), before);
        assert_ne!(Records::generate(1_000_000, 2).checksum(), before);
    }

    #[test]
    fn verify_finds_a_record_that_was_replaced_by_another() {
        let mut records = Records::generate(1000, 1);
        records.sort();
        records.records[3] = records.records[4];
        assert!(matches!(records.verify(), Err(OrderError::Changed { .. })));
    }

    #[test]
    fn verify_finds_a_value_under_another_key() {
        let mut records = Records::generate(1000, 1);
        records.sort();
        let (one, other) = records.records.split_at_mut(1);
        one[0][KEY_BYTES..].swap_with_slice(&mut other[0][KEY_BYTES..]);
        assert!(matches!(records.verify(), Err(OrderError::Changed { .. })));
    }
}
