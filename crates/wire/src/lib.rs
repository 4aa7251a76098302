//! Fields at fixed places of what a wire carries: little-endian as NVMe has them, big-endian (`be`)
//! as SCSI and iSCSI do.
//!
//! Inlined, since every PDU passes through them and callers are other crates: calls took 3 % of a
//! target that answers reads of 4 KiB.

mod field;
mod opening;

pub use field::{Be, Be24, Bit, Bits, Byte, Bytes, Le, Place, Text};
pub use opening::{OPENING_BYTES, Opening, read_opening, write_opening};

/// Two bytes at `at`, little-endian.
///
/// # Panics
/// When `bytes` ends before them.
#[inline]
#[must_use]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

/// Four bytes at `at`, little-endian.
///
/// # Panics
/// When `bytes` ends before them.
#[inline]
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

/// Eight bytes at `at`, little-endian.
///
/// # Panics
/// When `bytes` ends before them.
#[inline]
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// Two bytes at `at`, big-endian.
///
/// # Panics
/// When `bytes` ends before them.
#[inline]
#[must_use]
pub fn be16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

/// Three bytes at `at`, big-endian.
///
/// # Panics
/// When `bytes` ends before them.
#[inline]
#[must_use]
pub fn be24_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
}

/// Four bytes at `at`, big-endian.
///
/// # Panics
/// When `bytes` ends before them.
#[inline]
#[must_use]
pub fn be32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

/// Eight bytes at `at`, big-endian.
///
/// # Panics
/// When `bytes` ends before them.
#[inline]
#[must_use]
pub fn be64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

/// Copies `field` to `at`.
///
/// # Panics
/// When `bytes` ends before the end of it.
#[inline]
pub fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// The `N` bytes at `at`.
///
/// # Panics
/// When `bytes` ends before them.
#[inline]
#[must_use]
pub fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}
