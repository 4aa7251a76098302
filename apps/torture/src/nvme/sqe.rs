//! Submission queue entries, field by field (NVM Express Base Specification 2.1, 4.1.1).

/// A submission queue entry; its command identifier is set when it is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sqe(pub(super) [u8; 64]);

pub(super) const FLUSH: u8 = 0x00;
pub(super) const WRITE: u8 = 0x01;
pub(super) const READ: u8 = 0x02;
pub(super) const COMPARE: u8 = 0x05;
pub(super) const WRITE_ZEROES: u8 = 0x08;
pub(super) const DATASET: u8 = 0x09;
pub(super) const REGISTER: u8 = 0x0d;
pub(super) const ACQUIRE: u8 = 0x11;
pub(super) const RELEASE: u8 = 0x15;
pub(super) const COPY: u8 = 0x19;
pub(super) const GET_LOG: u8 = 0x02;
pub(super) const IDENTIFY: u8 = 0x06;
pub(super) const ABORT: u8 = 0x08;
pub(super) const EVENT_REQUEST: u8 = 0x0c;
pub(super) const KEEP_ALIVE: u8 = 0x18;
pub(super) const FABRICS: u8 = 0x7f;

// The offset of dword 10.
const DWORD_10: usize = 40;

impl Sqe {
    /// A command without data: PSDT for SGLs, and a transport SGL descriptor of 0 bytes.
    pub(super) fn new(opcode: u8) -> Self {
        let mut bytes = [0; 64];
        (bytes[0], bytes[1], bytes[39]) = (opcode, 0x40, 0x5a);
        Self(bytes)
    }

    /// A Fabrics command of type `kind`.
    pub(super) fn fabrics(kind: u8) -> Self {
        Self::new(FABRICS).byte(4, kind)
    }

    /// This entry with one byte replaced.
    pub(super) const fn byte(mut self, at: usize, value: u8) -> Self {
        self.0[at] = value;
        self
    }

    /// This entry with the 16-bit number at `at` replaced.
    pub(super) fn word(mut self, at: usize, value: u16) -> Self {
        self.0[at..at + 2].copy_from_slice(&value.to_le_bytes());
        self
    }

    /// This entry with the 32-bit number at `at` replaced.
    pub(super) fn dword(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
        self
    }

    /// This entry with the 64-bit number at `at` replaced.
    pub(super) fn wide(mut self, at: usize, value: u64) -> Self {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
        self
    }

    /// This entry with a command dword from 10 to 15 replaced.
    pub(super) fn cdw(self, number: usize, value: u32) -> Self {
        self.dword(DWORD_10 + 4 * (number - 10), value)
    }

    /// This entry with a namespace identifier.
    pub(super) fn nsid(self, nsid: u32) -> Self {
        self.dword(4, nsid)
    }

    /// This entry with a command identifier.
    pub(super) fn cid(self, cid: u16) -> Self {
        self.word(2, cid)
    }

    /// This entry with a descriptor of data in PDUs of its own (type 5h, subtype Ah).
    pub(super) fn moved(self, length: u32) -> Self {
        self.dword(32, length).byte(39, 0x5a)
    }

    /// This entry with a descriptor of in-capsule data (type 0h, subtype 1h).
    pub(super) fn in_capsule(self, length: u32) -> Self {
        self.dword(32, length).byte(39, 0x01)
    }

    /// This entry with SLBA `first` and NLB `count`, which is one less than the number of blocks.
    pub(super) fn blocks(self, first: u64, count: u16) -> Self {
        self.wide(DWORD_10, first).cdw(12, u32::from(count))
    }
}
