//! Checksums.

/// 64-bit FNV-1a hash, mixed so that sums of hashes distinguish multisets.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 1_099_511_628_211;
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    mix(bytes.iter().fold(BASIS, step))
}

/// A bijection that spreads every bit over all (the finaliser of MurmurHash3).
pub(crate) const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let number = (number ^ (number >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ (number >> 33)
}

/// A checksum of numbers in order.
pub(crate) fn chain(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, |sum, number| mix(sum ^ number).wrapping_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_and_chain_tell_apart_what_is_alike() {
        assert_ne!(hash(b"ab"), hash(b"ba"));
        assert_ne!(hash(b""), hash(b"\0"));
        // A sum of FNV hashes alone would not tell these multisets apart as well.
        let sum =
            |words: [&[u8]; 2]| words.map(hash).iter().fold(0, |a: u64, b| a.wrapping_add(*b));
        assert_ne!(sum([b"ad", b"bc"]), sum([b"ac", b"bd"]));
        assert_ne!(chain([1, 2]), chain([2, 1]));
        assert_ne!(chain([0]), chain([0, 0]));
    }
}
