//! Other reports: capacity, logical units, ports, commands, log pages; and UNMAP's parameter list.

/// READ CAPACITY(10) (SBC-3 5.15.2).
pub(crate) mod capacity {
    use wire::Be;

    /// Bytes of it.
    pub(crate) const BYTES: usize = 8;

    pub(crate) const LAST: Be<u32> = Be::at(0); // RETURNED LOGICAL BLOCK ADDRESS
    pub(crate) const BLOCK_BYTES: Be<u32> = Be::at(4); // LOGICAL BLOCK LENGTH IN BYTES
}

/// READ CAPACITY(16) (SBC-3 5.16.2).
pub(crate) mod capacity_long {
    use wire::{Be, Bit, Bits};

    /// Bytes of the data, and bytes up to the last used field.
    pub(crate) const BYTES: usize = 32;
    pub(crate) const BYTES_MIN: usize = 16;

    pub(crate) const LAST: Be<u64> = Be::at(0); // RETURNED LOGICAL BLOCK ADDRESS
    pub(crate) const BLOCK_BYTES: Be<u32> = Be::at(8); // LOGICAL BLOCK LENGTH IN BYTES
    pub(crate) const PROT_EN: Bit = Bit::at(12, 0); // PROT_EN
    pub(crate) const EXPONENT: Bits = Bits::at(13, 3, 0); // LOGICAL BLOCKS PER PHYSICAL BLOCK ...
    pub(crate) const LBPME: Bit = Bit::at(14, 7); // LBPME
    pub(crate) const LBPRZ: Bit = Bit::at(14, 6); // LBPRZ
}

/// GET LBA STATUS (SBC-3 5.5.2), of one descriptor.
pub(crate) mod lba_status {
    use wire::Be;

    /// Bytes of it, and before what PARAMETER DATA LENGTH counts.
    pub(crate) const BYTES: usize = 24;
    pub(crate) const BEFORE: u32 = 4;

    pub(crate) const LENGTH: Be<u32> = Be::at(0); // PARAMETER DATA LENGTH
    pub(crate) const LBA: Be<u64> = Be::at(8); // LBA STATUS LOGICAL BLOCK ADDRESS
    pub(crate) const COUNT: Be<u32> = Be::at(16); // NUMBER OF LOGICAL BLOCKS
}

/// Parameters of UNMAP (SBC-3 5.28.2): a header, then descriptors.
pub(crate) mod unmap {
    use wire::Be;

    /// Bytes of the header, and of each descriptor.
    pub(crate) const HEADER_BYTES: usize = 8;
    pub(crate) const DESCRIPTOR_BYTES: usize = 16;
    /// Bytes before what UNMAP DATA LENGTH counts.
    pub(crate) const BEFORE: usize = 2;

    pub(crate) const DATA_LENGTH: Be<u16> = Be::at(0); // UNMAP DATA LENGTH
    pub(crate) const LENGTH: Be<u16> = Be::at(2); // UNMAP BLOCK DESCRIPTOR DATA LENGTH

    // Of a descriptor.
    pub(crate) const LBA: Be<u64> = Be::at(0); // UNMAP LOGICAL BLOCK ADDRESS
    pub(crate) const COUNT: Be<u32> = Be::at(8); // NUMBER OF LOGICAL BLOCKS
}

/// REPORT LUNS (SPC-4 6.33): a header, then LUN fields.
pub(crate) mod luns {
    use wire::Be;

    /// Bytes of the header.
    pub(crate) const HEADER_BYTES: usize = 8;

    pub(crate) const LIST_LENGTH: Be<u32> = Be::at(0); // LUN LIST LENGTH
}

/// A LUN field, of one level (SAM-5 4.7).
pub(crate) mod lun {
    use wire::{Be, Bits, Byte, Bytes};

    /// Bytes of it.
    pub(crate) const BYTES: usize = 8;

    pub(crate) const METHOD: Bits = Bits::at(0, 7, 6); // ADDRESS METHOD
    pub(crate) const BUS: Bits = Bits::at(0, 5, 0); // peripheral: BUS IDENTIFIER
    pub(crate) const PERIPHERAL: Byte = Byte::at(1); // peripheral: TARGET OR LUN
    pub(crate) const FLAT: Be<u16> = Be::at(0); // flat: LUN, below ADDRESS METHOD
    pub(crate) const LEVELS: Bytes<6> = Bytes::at(2); // levels below, and null

    /// ADDRESS METHOD.
    pub(crate) const IS_PERIPHERAL: u8 = 0;
    pub(crate) const IS_FLAT: u8 = 1;
    /// Bits of FLAT.
    pub(crate) const FLAT_MASK: u16 = 0x3fff;
}

/// REPORT TARGET PORT GROUPS (SPC-4 6.37): a header, then groups of one port.
pub(crate) mod port_groups {
    use wire::{Be, Bits, Byte};

    /// Bytes of the header, of the extended header, and of a group of one port.
    pub(crate) const HEADER_BYTES: usize = 4;
    pub(crate) const EXTENDED_BYTES: usize = 8;
    pub(crate) const GROUP_BYTES: usize = 12;

    pub(crate) const LENGTH: Be<u32> = Be::at(0); // RETURN DATA LENGTH
    pub(crate) const FORMAT: Bits = Bits::at(4, 6, 4); // extended: RETURN DATA FORMAT

    // Of a group.
    pub(crate) const STATE: Bits = Bits::at(0, 3, 0); // ASYMMETRIC ACCESS STATE
    pub(crate) const SUPPORTED: Byte = Byte::at(1); // T_SUP to AO_SUP
    pub(crate) const GROUP: Be<u16> = Be::at(2); // TARGET PORT GROUP
    pub(crate) const COUNT: Byte = Byte::at(7); // TARGET PORT COUNT
    pub(crate) const PORT: Be<u16> = Be::at(10); // of the first: RELATIVE TARGET PORT IDENTIFIER
}

/// REPORT SUPPORTED OPERATION CODES (SPC-4 6.35).
pub(crate) mod opcodes {
    use wire::{Be, Bit, Bits, Byte};

    /// Bytes of the header, before descriptors or the usage data of one command; bytes of a
    /// descriptor.
    pub(crate) const HEADER_BYTES: usize = 4;
    pub(crate) const DESCRIPTOR_BYTES: usize = 8;

    pub(crate) const LENGTH: Be<u32> = Be::at(0); // COMMAND DATA LENGTH

    // Of a descriptor.
    pub(crate) const CODE: Byte = Byte::at(0); // OPERATION CODE
    pub(crate) const ACTION: Be<u16> = Be::at(2); // SERVICE ACTION
    pub(crate) const CTDP: Bit = Bit::at(5, 1); // CTDP
    pub(crate) const SERVACTV: Bit = Bit::at(5, 0); // SERVACTV
    pub(crate) const CDB_LENGTH: Be<u16> = Be::at(6); // CDB LENGTH

    // Of one command.
    pub(crate) const ONE_CTDP: Bit = Bit::at(1, 7); // CTDP
    pub(crate) const SUPPORT: Bits = Bits::at(1, 2, 0); // SUPPORT
    pub(crate) const CDB_SIZE: Be<u16> = Be::at(2); // CDB SIZE

    /// SUPPORT: not supported; as in the standard; vendor-specific.
    pub(crate) const MISSING: u8 = 1;
    pub(crate) const STANDARD: u8 = 3;
    pub(crate) const VENDORS: u8 = 5;
}

/// REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS (SPC-4 6.36).
pub(crate) mod management {
    use wire::{Bit, Byte};

    /// Bytes of it, and of the extended form.
    pub(crate) const BYTES: usize = 4;
    pub(crate) const EXTENDED_BYTES: usize = 16;

    pub(crate) const ATS: Bit = Bit::at(0, 7); // abort task
    pub(crate) const ATSS: Bit = Bit::at(0, 6); // abort task set
    pub(crate) const CTSS: Bit = Bit::at(0, 4); // clear task set
    pub(crate) const LURS: Bit = Bit::at(0, 3); // logical unit reset
    pub(crate) const TRS: Bit = Bit::at(0, 1); // target reset
    pub(crate) const ADDITIONAL_LENGTH: Byte = Byte::at(3); // ... PARAMETER DATA LENGTH
}

/// LOG SENSE (SPC-4 7.3): a page, and its parameters.
pub(crate) mod log {
    use wire::{Be, Bit, Bits, Byte};

    /// Bytes before what PAGE LENGTH counts, and before the value of a parameter.
    pub(crate) const HEADER_BYTES: usize = 4;
    pub(crate) const PARAMETER_HEADER_BYTES: usize = 4;

    pub(crate) const DS: Bit = Bit::at(0, 7); // DS
    pub(crate) const SPF: Bit = Bit::at(0, 6); // SPF
    pub(crate) const PAGE_CODE: Bits = Bits::at(0, 5, 0); // PAGE CODE
    pub(crate) const SUBPAGE_CODE: Byte = Byte::at(1); // SUBPAGE CODE
    pub(crate) const PAGE_LENGTH: Be<u16> = Be::at(2); // PAGE LENGTH

    // Of a parameter.
    pub(crate) const PARAMETER_CODE: Be<u16> = Be::at(0); // PARAMETER CODE
    pub(crate) const FORMAT: Bits = Bits::at(2, 1, 0); // FORMAT AND LINKING
    pub(crate) const PARAMETER_LENGTH: Byte = Byte::at(3); // PARAMETER LENGTH

    // General statistics and performance: parameters 0001h and 0003h (SPC-4 7.3.9).
    pub(crate) const COUNTS_BYTES: usize = 64;
    pub(crate) const COUNTS: Be<u64> = Be::at(0); // NUMBER OF READ COMMANDS, and those behind it
    pub(crate) const INTERVAL_BYTES: usize = 8;
    pub(crate) const EXPONENT: Be<u32> = Be::at(0); // EXPONENT
    pub(crate) const INTEGER: Be<u32> = Be::at(4); // INTEGER

    // Informational exceptions: parameter 0000h (SPC-4 7.3.11).
    pub(crate) const EXCEPTIONS_BYTES: usize = 4;
    pub(crate) const EXCEPTION: Be<u16> = Be::at(0); // ... ADDITIONAL SENSE CODE, and QUALIFIER
    pub(crate) const TEMPERATURE: Byte = Byte::at(2); // MOST RECENT TEMPERATURE READING
}
