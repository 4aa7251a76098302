//! Mode parameters (SPC-4 7.5; SBC-3 6.5).

use wire::{Bit, Bits, Byte};

// DEVICE-SPECIFIC PARAMETER of a disk (SBC-3 6.5.1), by itself.
pub(crate) const WP: Bit = Bit::at(0, 7); // WP
pub(crate) const DPOFUA: Bit = Bit::at(0, 4); // DPOFUA

/// The header of MODE SENSE(6) and MODE SELECT(6) (SPC-4 7.5.5).
pub(crate) mod short {
    use wire::Byte;

    /// Bytes of it, and before what MODE DATA LENGTH counts.
    pub(crate) const BYTES: usize = 4;
    pub(crate) const BEFORE: usize = 1;

    pub(crate) const LENGTH: Byte = Byte::at(0); // MODE DATA LENGTH
    pub(crate) const SPECIFIC: Byte = Byte::at(2); // DEVICE-SPECIFIC PARAMETER
    pub(crate) const DESCRIPTORS: Byte = Byte::at(3); // BLOCK DESCRIPTOR LENGTH
}

/// The header of MODE SENSE(10) and MODE SELECT(10) (SPC-4 7.5.5).
pub(crate) mod long {
    use wire::{Be, Bit, Byte};

    /// Bytes of it, and before what MODE DATA LENGTH counts.
    pub(crate) const BYTES: usize = 8;
    pub(crate) const BEFORE: usize = 2;

    pub(crate) const LENGTH: Be<u16> = Be::at(0); // MODE DATA LENGTH
    pub(crate) const SPECIFIC: Byte = Byte::at(3); // DEVICE-SPECIFIC PARAMETER
    pub(crate) const LONGLBA: Bit = Bit::at(4, 0); // LONGLBA
    pub(crate) const DESCRIPTORS: Be<u16> = Be::at(6); // BLOCK DESCRIPTOR LENGTH
}

/// A short block descriptor (SBC-3 6.5.2.2).
pub(crate) mod block {
    use wire::{Be, Be24};

    /// Bytes of it.
    pub(crate) const BYTES: usize = 8;

    pub(crate) const COUNT: Be<u32> = Be::at(0); // NUMBER OF LOGICAL BLOCKS
    pub(crate) const LENGTH: Be24 = Be24::at(5); // LOGICAL BLOCK LENGTH
}

/// Bytes of a page before what PAGE LENGTH counts.
pub(crate) const PAGE_HEADER_BYTES: usize = 2;

// Of every page without subpages (SPC-4 7.5.7).
pub(crate) const SPF_AND_CODE: Bits = Bits::at(0, 6, 0); // SPF, PAGE CODE
pub(crate) const PAGE_CODE: Bits = Bits::at(0, 5, 0); // PAGE CODE
pub(crate) const PAGE_LENGTH: Byte = Byte::at(1); // PAGE LENGTH

/// Caching (SBC-3 6.5.5).
pub(crate) mod caching {
    use wire::Bit;

    pub(crate) const CODE: u8 = 0x08;

    pub(crate) const WCE: Bit = Bit::at(2, 2); // WCE
}

/// Control (SPC-4 7.5.8).
pub(crate) mod control {
    use wire::{Be, Bit, Bits};

    pub(crate) const CODE: u8 = 0x0a;

    pub(crate) const D_SENSE: Bit = Bit::at(2, 2); // D_SENSE
    pub(crate) const ALGORITHM: Bits = Bits::at(3, 7, 4); // QUEUE ALGORITHM MODIFIER
    pub(crate) const SWP: Bit = Bit::at(4, 3); // SWP
    pub(crate) const BUSY_TIMEOUT: Be<u16> = Be::at(8); // BUSY TIMEOUT PERIOD
}
