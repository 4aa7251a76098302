//! Basic header segments, field by field (RFC 7143 11).

/// The 48 bytes of a basic header segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bhs(pub(super) [u8; 48]);

pub(super) const NOP_OUT: u8 = 0x00;
pub(super) const COMMAND: u8 = 0x01;
pub(super) const TASK: u8 = 0x02;
pub(super) const LOGIN: u8 = 0x03;
pub(super) const TEXT: u8 = 0x04;
pub(super) const DATA_OUT: u8 = 0x05;
pub(super) const LOGOUT: u8 = 0x06;
pub(super) const SNACK: u8 = 0x10;
pub(super) const NOP_IN: u8 = 0x20;
pub(super) const RESPONSE: u8 = 0x21;
pub(super) const TASK_RESPONSE: u8 = 0x22;
pub(super) const LOGIN_RESPONSE: u8 = 0x23;
pub(super) const TEXT_RESPONSE: u8 = 0x24;
pub(super) const DATA_IN: u8 = 0x25;
pub(super) const LOGOUT_RESPONSE: u8 = 0x26;
pub(super) const R2T: u8 = 0x31;
pub(super) const ASYNC: u8 = 0x32;
pub(super) const REJECT: u8 = 0x3f;

pub(super) const IMMEDIATE: u8 = 0x40;
pub(super) const FINAL: u8 = 0x80;
pub(super) const CONTINUE: u8 = 0x40;
pub(super) const READS: u8 = 0x40;
pub(super) const WRITES: u8 = 0x20;
pub(super) const NO_TAG: u32 = u32::MAX;

impl Bhs {
    /// A header with `opcode`, the flag F and the reserved target transfer tag.
    pub(super) fn new(opcode: u8) -> Self {
        Self([0; 48]).byte(0, opcode).byte(1, FINAL).word(20, NO_TAG)
    }

    /// This header with one byte replaced.
    pub(super) const fn byte(mut self, at: usize, value: u8) -> Self {
        self.0[at] = value;
        self
    }

    /// This header with the bytes from `at` on replaced.
    pub(super) fn bytes(mut self, at: usize, value: &[u8]) -> Self {
        self.0[at..at + value.len()].copy_from_slice(value);
        self
    }

    /// This header with the big-endian 32-bit word at `at` replaced.
    pub(super) fn word(self, at: usize, value: u32) -> Self {
        self.bytes(at, &value.to_be_bytes())
    }

    /// This header with an initiator task tag.
    pub(super) fn itt(self, itt: u32) -> Self {
        self.word(16, itt)
    }

    /// This header with a DataSegmentLength.
    pub(super) fn length(self, length: u32) -> Self {
        self.bytes(5, &length.to_be_bytes()[1..])
    }
}

/// The big-endian 32-bit word at `at`; bytes beyond the end count as 0.
pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    u32::from_be_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)])
}

/// A text data segment with `pairs` of keys and values.
pub(super) fn text(pairs: &[(&str, &str)]) -> Vec<u8> {
    pairs.iter().flat_map(|(key, value)| format!("{key}={value}\0").into_bytes()).collect()
}
