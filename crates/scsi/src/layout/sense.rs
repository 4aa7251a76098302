//! Sense data (SPC-4 4.5).

use wire::Bits;

pub(crate) const RESPONSE_CODE: Bits = Bits::at(0, 6, 0); // RESPONSE CODE

/// RESPONSE CODE: of current errors, in either format.
pub(crate) const FIXED: u8 = 0x70;
pub(crate) const DESCRIPTORS: u8 = 0x72;

/// Fixed format (SPC-4 4.5.3).
pub(crate) mod fixed {
    use wire::{Be, Bit, Bits, Byte, Bytes};

    /// Bytes of the data, bytes that ADDITIONAL SENSE LENGTH does not count, and bytes up to CODE.
    pub(crate) const BYTES: usize = 18;
    pub(crate) const BEFORE: usize = 8;
    pub(crate) const BYTES_MIN: usize = 14;

    pub(crate) const VALID: Bit = Bit::at(0, 7); // VALID
    pub(crate) const KEY: Bits = Bits::at(2, 3, 0); // SENSE KEY
    pub(crate) const INFORMATION: Be<u32> = Be::at(3); // INFORMATION
    pub(crate) const ADDITIONAL_LENGTH: Byte = Byte::at(7); // ADDITIONAL SENSE LENGTH
    pub(crate) const CODE: Be<u16> = Be::at(12); // ADDITIONAL SENSE CODE, and QUALIFIER
    pub(crate) const SPECIFIC: Bytes<3> = Bytes::at(15); // SENSE KEY SPECIFIC
}

/// Descriptor format (SPC-4 4.5.2): a header, then descriptors.
pub(crate) mod header {
    use wire::{Be, Bits, Byte};

    /// Bytes of the header.
    pub(crate) const BYTES: usize = 8;

    pub(crate) const KEY: Bits = Bits::at(1, 3, 0); // SENSE KEY
    pub(crate) const CODE: Be<u16> = Be::at(2); // ADDITIONAL SENSE CODE, and QUALIFIER
    pub(crate) const ADDITIONAL_LENGTH: Byte = Byte::at(7); // ADDITIONAL SENSE LENGTH
}

/// A descriptor (SPC-4 4.5.2.1).
pub(crate) mod descriptor {
    use wire::{Be, Bit, Byte, Bytes};

    /// Bytes before what ADDITIONAL LENGTH counts.
    pub(crate) const BEFORE: usize = 2;
    /// Bytes of the supported descriptors.
    pub(crate) const INFORMATION_BYTES: usize = 12;
    pub(crate) const SPECIFIC_BYTES: usize = 8;

    pub(crate) const TYPE: Byte = Byte::at(0); // DESCRIPTOR TYPE
    pub(crate) const LENGTH: Byte = Byte::at(1); // ADDITIONAL LENGTH
    pub(crate) const VALID: Bit = Bit::at(2, 7); // information: VALID
    pub(crate) const INFORMATION: Be<u64> = Be::at(4); // information: INFORMATION
    pub(crate) const SPECIFIC: Bytes<3> = Bytes::at(4); // sense key specific: SENSE KEY SPECIFIC

    /// DESCRIPTOR TYPE.
    pub(crate) const OF_INFORMATION: u8 = 0x00;
    pub(crate) const OF_SPECIFIC: u8 = 0x02;
}

/// SENSE KEY SPECIFIC of an invalid field (SPC-4 4.5.2.4.2).
pub(crate) mod pointer {
    use wire::{Be, Bit, Bits};

    pub(crate) const SKSV: Bit = Bit::at(0, 7); // SKSV
    pub(crate) const C_D: Bit = Bit::at(0, 6); // C/D
    pub(crate) const BPV: Bit = Bit::at(0, 3); // BPV
    pub(crate) const BIT_POINTER: Bits = Bits::at(0, 2, 0); // BIT POINTER
    pub(crate) const FIELD_POINTER: Be<u16> = Be::at(1); // FIELD POINTER
}
