//! Log pages (Base 5.1.12).

/// Supported log pages, commands and features with their effects: a dword for each number (Base
/// 5.1.12.1.1, 5.1.12.1.6, 5.1.12.1.18).
pub(crate) mod effects {
    use wire::Le;

    pub(crate) const LID: Le<u32> = Le::at(0); // page 00h: LID Supported and Effects
    pub(crate) const FID: Le<u32> = Le::at(0); // page 12h: FID Supported and Effects
    pub(crate) const ACS: Le<u32> = Le::at(0); // page 05h: Admin Command Supported
    pub(crate) const IOCS: Le<u32> = Le::at(1024); // page 05h: I/O Command Supported

    /// It is supported.
    pub(crate) const SUPPORTED: u32 = 1 << 0;
    /// LBCC: it changes blocks.
    pub(crate) const CHANGES_BLOCKS: u32 = 1 << 1;
    /// CSP, FSP: it is about a namespace, or about the controller.
    pub(crate) const OF_NAMESPACE: u32 = 1 << 20;
    pub(crate) const OF_CONTROLLER: u32 = 1 << 21;
}

/// SMART / Health Information, 02h (Base 5.1.12.1.3).
pub(crate) mod health {
    use wire::{Bit, Byte, Le};

    pub(crate) const CW_NDR: Bit = Bit::at(0, 2); // Critical Warning: reliability is degraded
    pub(crate) const CW_AMRO: Bit = Bit::at(0, 3); // Critical Warning: media are read-only
    pub(crate) const CTEMP: Le<u16> = Le::at(1); // Composite Temperature
    pub(crate) const AVSP: Byte = Byte::at(3); // Available Spare
    pub(crate) const AVSPT: Byte = Byte::at(4); // Available Spare Threshold
    pub(crate) const DUR: Le<u128> = Le::at(32); // Data Units Read
    pub(crate) const DUW: Le<u128> = Le::at(48); // Data Units Written
    pub(crate) const HRC: Le<u128> = Le::at(64); // Host Read Commands
    pub(crate) const HWC: Le<u128> = Le::at(80); // Host Write Commands
    pub(crate) const POH: Le<u128> = Le::at(128); // Power On Hours

    /// Bytes of a data unit.
    pub(crate) const UNIT_BYTES: u64 = 512_000;
}

/// Firmware Slot Information, 03h (Base 5.1.12.1.4).
pub(crate) mod firmware {
    use wire::{Byte, Text};

    pub(crate) const AFI: Byte = Byte::at(0); // Active Firmware Info
    pub(crate) const FRS1: Text<8> = Text::spaced(8); // Firmware Revision for Slot 1
}

/// Asymmetric Namespace Access, 0Ch (Base 5.1.12.1.13): a header, then groups.
pub(crate) mod ana {
    use wire::{Bits, Le};

    /// Bytes of the header, and of a group without its namespaces.
    pub(crate) const HEADER_BYTES: usize = 16;
    pub(crate) const GROUP_BYTES: usize = 32;

    pub(crate) const CHGC: Le<u64> = Le::at(0); // Change Count
    pub(crate) const NAGD: Le<u16> = Le::at(8); // Number of ANA Group Descriptors

    // Of a group.
    pub(crate) const AGID: Le<u32> = Le::at(0); // ANA Group ID
    pub(crate) const NNV: Le<u32> = Le::at(4); // Number of NSID Values
    pub(crate) const GROUP_CHGC: Le<u64> = Le::at(8); // Change Count
    pub(crate) const ANAS: Bits = Bits::at(16, 3, 0); // Asymmetric Namespace Access State
}

/// Discovery, 70h (Base 5.1.12.3.1): a header, then entries.
pub(crate) mod discovery {
    use wire::{Byte, Le, Text};

    /// Bytes of the header, and of each entry.
    pub(crate) const BYTES: usize = 1024;

    pub(crate) const GENCTR: Le<u64> = Le::at(0); // Generation Counter
    pub(crate) const NUMREC: Le<u64> = Le::at(8); // Number of Records

    // Of an entry.
    pub(crate) const TRTYPE: Byte = Byte::at(0); // Transport Type
    pub(crate) const ADRFAM: Byte = Byte::at(1); // Address Family
    pub(crate) const SUBTYPE: Byte = Byte::at(2); // Subsystem Type
    pub(crate) const TREQ: Byte = Byte::at(3); // Transport Requirements
    pub(crate) const PORTID: Le<u16> = Le::at(4); // Port ID
    pub(crate) const CNTLID: Le<u16> = Le::at(6); // Controller ID
    pub(crate) const ASQSZ: Le<u16> = Le::at(8); // Admin Max SQ Size
    pub(crate) const EFLAGS: Le<u16> = Le::at(10); // Entry Flags
    pub(crate) const TRSVCID: Text<32> = Text::spaced(32); // Transport Service Identifier
    pub(crate) const SUBNQN: Text<256> = Text::nul_ended(256); // Subsystem Qualified Name
    pub(crate) const TRADDR: Text<256> = Text::spaced(512); // Transport Address

    /// TRTYPE.
    pub(crate) const RDMA: u8 = 1;
    pub(crate) const FC: u8 = 2;
    pub(crate) const TCP: u8 = 3;
    pub(crate) const LOOP: u8 = 254;
    /// SUBTYPE: another discovery subsystem, an NVM subsystem, the discovery subsystem asked.
    pub(crate) const OTHER_DISCOVERY: u8 = 1;
    pub(crate) const NVM: u8 = 2;
    pub(crate) const THIS_DISCOVERY: u8 = 3;
}
