//! INQUIRY data and vital product data (SPC-4 6.6, 7.8; SBC-3 6.6).

/// Standard data (SPC-4 6.6.2).
pub(crate) mod standard {
    use wire::{Be, Bit, Bits, Byte, Text};

    /// Bytes that every target sends, and bytes that this one sends.
    pub(crate) const BYTES_MIN: usize = 36;
    pub(crate) const BYTES: usize = 96;

    pub(crate) const QUALIFIER: Bits = Bits::at(0, 7, 5); // PERIPHERAL QUALIFIER
    pub(crate) const DEVICE_TYPE: Bits = Bits::at(0, 4, 0); // PERIPHERAL DEVICE TYPE
    pub(crate) const VERSION: Byte = Byte::at(2); // VERSION
    pub(crate) const HISUP: Bit = Bit::at(3, 4); // HISUP
    pub(crate) const DATA_FORMAT: Bits = Bits::at(3, 3, 0); // RESPONSE DATA FORMAT
    pub(crate) const ADDITIONAL_LENGTH: Byte = Byte::at(4); // ADDITIONAL LENGTH
    pub(crate) const TPGS: Bits = Bits::at(5, 5, 4); // TPGS
    pub(crate) const CMDQUE: Bit = Bit::at(7, 1); // CMDQUE
    pub(crate) const VENDOR: Text<8> = Text::spaced(8); // T10 VENDOR IDENTIFICATION
    pub(crate) const PRODUCT: Text<16> = Text::spaced(16); // PRODUCT IDENTIFICATION
    pub(crate) const REVISION: Text<4> = Text::spaced(32); // PRODUCT REVISION LEVEL
    pub(crate) const VERSION_DESCRIPTOR: Be<u16> = Be::at(58); // VERSION DESCRIPTOR 1, of eight

    /// VERSION: SPC-4.
    pub(crate) const SPC_4: u8 = 6;
    /// Bytes before what ADDITIONAL LENGTH counts.
    pub(crate) const BEFORE: u8 = 5;
}

/// Every page of vital product data (SPC-4 7.8.2).
pub(crate) mod page {
    use wire::{Be, Byte};

    /// Bytes before what PAGE LENGTH counts.
    pub(crate) const HEADER_BYTES: usize = 4;

    pub(crate) const PAGE_CODE: Byte = Byte::at(1); // PAGE CODE
    pub(crate) const PAGE_LENGTH: Be<u16> = Be::at(2); // PAGE LENGTH

    /// Codes of supported pages.
    pub(crate) const SUPPORTED: u8 = 0x00;
    pub(crate) const SERIAL: u8 = 0x80;
    pub(crate) const IDENTIFICATION: u8 = 0x83;
    pub(crate) const EXTENDED: u8 = 0x86;
    pub(crate) const LIMITS: u8 = 0xb0;
    pub(crate) const CHARACTERISTICS: u8 = 0xb1;
    pub(crate) const PROVISIONING: u8 = 0xb2;
    /// The first vendor-specific page: the opening of the medium.
    pub(crate) const OPENING: u8 = 0xc0;
}

/// A designation descriptor of page 83h (SPC-4 7.8.6).
pub(crate) mod designator {
    use wire::{Be, Bit, Bits, Byte};

    /// Bytes before the designator.
    pub(crate) const HEADER_BYTES: usize = 4;

    pub(crate) const PROTOCOL: Bits = Bits::at(0, 7, 4); // PROTOCOL IDENTIFIER
    pub(crate) const CODE_SET: Bits = Bits::at(0, 3, 0); // CODE SET
    pub(crate) const PIV: Bit = Bit::at(1, 7); // PIV
    pub(crate) const ASSOCIATION: Bits = Bits::at(1, 5, 4); // ASSOCIATION
    pub(crate) const TYPE: Bits = Bits::at(1, 3, 0); // DESIGNATOR TYPE
    pub(crate) const LENGTH: Byte = Byte::at(3); // DESIGNATOR LENGTH

    // Of the designator itself.
    pub(crate) const NAA: Bits = Bits::at(0, 7, 4); // NAA
    pub(crate) const PORT: Be<u16> = Be::at(2); // RELATIVE TARGET PORT, TARGET PORT GROUP
    pub(crate) const PORT_BYTES: usize = 4;

    /// CODE SET.
    pub(crate) const BINARY: u8 = 1;
    pub(crate) const ASCII: u8 = 2;
    pub(crate) const UTF_8: u8 = 3;
    /// ASSOCIATION.
    pub(crate) const OF_UNIT: u8 = 0;
    pub(crate) const OF_PORT: u8 = 1;
    /// DESIGNATOR TYPE.
    pub(crate) const T10_VENDOR: u8 = 1;
    pub(crate) const EUI_64: u8 = 2;
    pub(crate) const OF_NAA: u8 = 3;
    pub(crate) const RELATIVE_PORT: u8 = 4;
    pub(crate) const PORT_GROUP: u8 = 5;
    pub(crate) const NAME_STRING: u8 = 8;
    /// NAA: locally assigned.
    pub(crate) const LOCAL: u8 = 3;
    /// PROTOCOL IDENTIFIER (SPC-4 7.6.1).
    pub(crate) const ISCSI: u8 = 5;
}

/// Extended INQUIRY data, page 86h (SPC-4 7.8.7).
pub(crate) mod extended {
    use wire::Bit;

    /// Bytes of it.
    pub(crate) const BYTES: usize = 64;

    pub(crate) const SIMPSUP: Bit = Bit::at(5, 0); // SIMPSUP
    pub(crate) const LUICLR: Bit = Bit::at(7, 0); // LUICLR
}

/// Block limits, page B0h (SBC-3 6.6.4).
pub(crate) mod limits {
    use wire::{Be, Bit, Byte};

    /// Bytes of it.
    pub(crate) const BYTES: usize = 64;

    pub(crate) const COMPARE: Byte = Byte::at(5); // MAXIMUM COMPARE AND WRITE LENGTH
    pub(crate) const GRANULARITY: Be<u16> = Be::at(6); // OPTIMAL TRANSFER LENGTH GRANULARITY
    pub(crate) const TRANSFER: Be<u32> = Be::at(8); // MAXIMUM TRANSFER LENGTH
    pub(crate) const OPTIMAL: Be<u32> = Be::at(12); // OPTIMAL TRANSFER LENGTH
    pub(crate) const UNMAP_BLOCKS: Be<u32> = Be::at(20); // MAXIMUM UNMAP LBA COUNT
    pub(crate) const UNMAP_RANGES: Be<u32> = Be::at(24); // MAXIMUM UNMAP BLOCK DESCRIPTOR COUNT
    pub(crate) const UNMAP_GRANULARITY: Be<u32> = Be::at(28); // OPTIMAL UNMAP GRANULARITY
    pub(crate) const UGAVALID: Bit = Bit::at(32, 7); // UGAVALID
    pub(crate) const WRITE_SAME: Be<u64> = Be::at(36); // MAXIMUM WRITE SAME LENGTH
    pub(crate) const ATOMIC: Be<u32> = Be::at(44); // MAXIMUM ATOMIC TRANSFER LENGTH
}

/// Block device characteristics, page B1h (SBC-3 6.6.2).
pub(crate) mod characteristics {
    use wire::Be;

    /// Bytes of it.
    pub(crate) const BYTES: usize = 64;

    pub(crate) const ROTATION_RATE: Be<u16> = Be::at(4); // MEDIUM ROTATION RATE

    /// MEDIUM ROTATION RATE: none.
    pub(crate) const NONE: u16 = 1;
}

/// Logical block provisioning, page B2h (SBC-3 6.6.5).
pub(crate) mod provisioning {
    use wire::{Bit, Bits};

    /// Bytes of the page, and bytes up to the last used field.
    pub(crate) const BYTES: usize = 8;
    pub(crate) const BYTES_MIN: usize = 7;

    pub(crate) const LBPU: Bit = Bit::at(5, 7); // LBPU
    pub(crate) const LBPWS: Bit = Bit::at(5, 6); // LBPWS
    pub(crate) const LBPRZ: Bits = Bits::at(5, 4, 2); // LBPRZ
    pub(crate) const TYPE: Bits = Bits::at(6, 2, 0); // PROVISIONING TYPE

    /// PROVISIONING TYPE: thin.
    pub(crate) const THIN: u8 = 2;
}
