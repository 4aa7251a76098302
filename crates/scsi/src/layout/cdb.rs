//! Command descriptor blocks (SPC-4 6; SBC-3 5).

use wire::{Bits, Byte};

pub(crate) const OPERATION_CODE: Byte = Byte::at(0); // OPERATION CODE
pub(crate) const SERVICE_ACTION: Bits = Bits::at(1, 4, 0); // SERVICE ACTION, where there is one

/// REQUEST SENSE (SPC-4 6.39).
pub(crate) mod request_sense {
    use wire::{Bit, Byte};

    pub(crate) const DESC: Bit = Bit::at(1, 0); // DESC
    pub(crate) const ALLOCATION_LENGTH: Byte = Byte::at(4); // ALLOCATION LENGTH
}

/// INQUIRY (SPC-4 6.6).
pub(crate) mod inquiry {
    use wire::{Be, Bit, Byte};

    pub(crate) const EVPD: Bit = Bit::at(1, 0); // EVPD
    pub(crate) const PAGE_CODE: Byte = Byte::at(2); // PAGE CODE
    pub(crate) const ALLOCATION_LENGTH: Be<u16> = Be::at(3); // ALLOCATION LENGTH
}

/// MODE SELECT(6) and (10) (SPC-4 6.9, 6.10).
pub(crate) mod mode_select {
    use wire::{Be, Bit, Byte};

    pub(crate) const PF: Bit = Bit::at(1, 4); // PF
    pub(crate) const SP: Bit = Bit::at(1, 0); // SP
    pub(crate) const LENGTH_6: Byte = Byte::at(4); // PARAMETER LIST LENGTH
    pub(crate) const LENGTH_10: Be<u16> = Be::at(7); // PARAMETER LIST LENGTH
}

/// MODE SENSE(6) and (10) (SPC-4 6.11, 6.12).
pub(crate) mod mode_sense {
    use wire::{Be, Bit, Bits, Byte};

    pub(crate) const DBD: Bit = Bit::at(1, 3); // DBD
    pub(crate) const PC: Bits = Bits::at(2, 7, 6); // PC
    pub(crate) const PAGE_CODE: Bits = Bits::at(2, 5, 0); // PAGE CODE
    pub(crate) const SUBPAGE_CODE: Byte = Byte::at(3); // SUBPAGE CODE
    pub(crate) const LENGTH_6: Byte = Byte::at(4); // ALLOCATION LENGTH
    pub(crate) const LENGTH_10: Be<u16> = Be::at(7); // ALLOCATION LENGTH
}

/// START STOP UNIT (SBC-3 5.25).
pub(crate) mod start_stop {
    use wire::Bit;

    pub(crate) const START: Bit = Bit::at(4, 0); // START
}

/// LOG SENSE (SPC-4 6.8).
pub(crate) mod log_sense {
    use wire::{Be, Bits, Byte};

    pub(crate) const PC: Bits = Bits::at(2, 7, 6); // PC
    pub(crate) const PAGE_CODE: Bits = Bits::at(2, 5, 0); // PAGE CODE
    pub(crate) const SUBPAGE_CODE: Byte = Byte::at(3); // SUBPAGE CODE
    pub(crate) const PARAMETER_POINTER: Be<u16> = Be::at(5); // PARAMETER POINTER
    pub(crate) const ALLOCATION_LENGTH: Be<u16> = Be::at(7); // ALLOCATION LENGTH
}

/// PERSISTENT RESERVE IN and OUT (SPC-4 6.15, 6.16).
pub(crate) mod reserve {
    use wire::{Be, Bits};

    pub(crate) const ALLOCATION_LENGTH: Be<u16> = Be::at(7); // of IN: ALLOCATION LENGTH
    pub(crate) const SCOPE: Bits = Bits::at(2, 7, 4); // of OUT: SCOPE
    pub(crate) const TYPE: Bits = Bits::at(2, 3, 0); // of OUT: TYPE
    pub(crate) const LENGTH: Be<u32> = Be::at(5); // of OUT: PARAMETER LIST LENGTH
}

/// READ CAPACITY(16) and GET LBA STATUS (SBC-3 5.16, 5.5).
pub(crate) mod capacity {
    use wire::{Be, Bit};

    pub(crate) const LBA: Be<u64> = Be::at(2); // LOGICAL BLOCK ADDRESS, STARTING ...
    pub(crate) const ALLOCATION_LENGTH: Be<u32> = Be::at(10); // ALLOCATION LENGTH
    pub(crate) const PMI: Bit = Bit::at(14, 0); // of READ CAPACITY(16): PMI
}

/// REPORT LUNS, and other 12-byte commands that report (SPC-4 6.33 to 6.37).
pub(crate) mod report {
    use wire::{Be, Bit, Bits, Byte};

    pub(crate) const ALLOCATION_LENGTH: Be<u32> = Be::at(6); // of all: ALLOCATION LENGTH
    pub(crate) const SELECT_REPORT: Byte = Byte::at(2); // LUNS: SELECT REPORT
    pub(crate) const FORMAT: Bits = Bits::at(1, 7, 5); // port groups: PARAMETER DATA FORMAT
    pub(crate) const RCTD: Bit = Bit::at(2, 7); // operation codes: RCTD
    pub(crate) const OPTIONS: Bits = Bits::at(2, 2, 0); // operation codes: REPORTING OPTIONS
    pub(crate) const REQUESTED_CODE: Byte = Byte::at(3); // REQUESTED OPERATION CODE
    pub(crate) const REQUESTED_ACTION: Be<u16> = Be::at(4); // REQUESTED SERVICE ACTION
    pub(crate) const REPD: Bit = Bit::at(2, 7); // management functions: REPD

    /// REPORTING OPTIONS: all; one without service actions; one with; either.
    pub(crate) const ALL: u8 = 0;
    pub(crate) const CODE: u8 = 1;
    pub(crate) const ACTION: u8 = 2;
    pub(crate) const EITHER: u8 = 3;
}

/// Commands about blocks (SBC-3 5), where commands of the same length have the same fields.
pub(crate) mod blocks {
    use wire::{Be, Be24, Bit, Bits, Byte};

    pub(crate) const LBA_6: Be24 = Be24::at(1); // LOGICAL BLOCK ADDRESS, of 21 bits
    pub(crate) const LENGTH_6: Byte = Byte::at(4); // TRANSFER LENGTH
    pub(crate) const LBA_10: Be<u32> = Be::at(2); // LOGICAL BLOCK ADDRESS
    pub(crate) const LENGTH_10: Be<u16> = Be::at(7); // TRANSFER LENGTH; of UNMAP, of its list
    pub(crate) const LBA_12: Be<u32> = Be::at(2); // LOGICAL BLOCK ADDRESS
    pub(crate) const LENGTH_12: Be<u32> = Be::at(6); // TRANSFER LENGTH
    pub(crate) const LBA_16: Be<u64> = Be::at(2); // LOGICAL BLOCK ADDRESS
    pub(crate) const LENGTH_16: Be<u32> = Be::at(10); // TRANSFER LENGTH
    pub(crate) const COMPARE_LENGTH: Byte = Byte::at(13); // COMPARE AND WRITE: NUMBER OF ...
    pub(crate) const ATOMIC_LENGTH: Be<u16> = Be::at(12); // WRITE ATOMIC(16): TRANSFER LENGTH
    pub(crate) const FUA: Bit = Bit::at(1, 3); // FUA
    pub(crate) const BYTCHK: Bits = Bits::at(1, 2, 1); // VERIFY, WRITE AND VERIFY: BYTCHK
    pub(crate) const UNMAP: Bit = Bit::at(1, 3); // WRITE SAME: UNMAP
    pub(crate) const NDOB: Bit = Bit::at(1, 0); // WRITE SAME(16): NDOB

    /// Bits of LBA_6.
    pub(crate) const LBA_6_MASK: u32 = 0x1f_ffff;
}
