//! Identify data (Base 5.1.13; NVM Command Set 4.1.5).

/// Bytes of every structure.
pub(crate) const BYTES: usize = 4096;

/// Identify Controller, CNS 01h (Base 5.1.13.2.1).
pub(crate) mod controller {
    use wire::{Byte, Le, Text};

    pub(crate) const SN: Text<20> = Text::spaced(4); // Serial Number
    pub(crate) const MN: Text<40> = Text::spaced(24); // Model Number
    pub(crate) const FR: Text<8> = Text::spaced(64); // Firmware Revision
    pub(crate) const CMIC: Byte = Byte::at(76); // Multi-Path I/O and Namespace Sharing
    pub(crate) const MDTS: Byte = Byte::at(77); // Maximum Data Transfer Size
    pub(crate) const CNTLID: Le<u16> = Le::at(78); // Controller ID
    pub(crate) const VER: Le<u32> = Le::at(80); // Version
    pub(crate) const OAES: Le<u32> = Le::at(92); // Optional Asynchronous Events Supported
    pub(crate) const CTRATT: Le<u32> = Le::at(96); // Controller Attributes
    pub(crate) const CNTRLTYPE: Byte = Byte::at(111); // Controller Type
    pub(crate) const CIU: Byte = Byte::at(135); // Controller Instance Uniquifier (Base 2.3)
    pub(crate) const CIRN: Le<u64> = Le::at(136); // Controller Instance Random Number (Base 2.3)
    pub(crate) const ACL: Byte = Byte::at(258); // Abort Command Limit
    pub(crate) const AERL: Byte = Byte::at(259); // Asynchronous Event Request Limit
    pub(crate) const FRMW: Byte = Byte::at(260); // Firmware Updates
    pub(crate) const LPA: Byte = Byte::at(261); // Log Page Attributes
    pub(crate) const KAS: Le<u16> = Le::at(320); // Keep Alive Support
    pub(crate) const ANATT: Byte = Byte::at(342); // ANA Transition Time
    pub(crate) const ANACAP: Byte = Byte::at(343); // ANA Capabilities
    pub(crate) const ANAGRPMAX: Le<u32> = Le::at(344); // ANA Group Identifier Maximum
    pub(crate) const NANAGRPID: Le<u32> = Le::at(348); // Number of ANA Group Identifiers
    pub(crate) const CQT: Le<u16> = Le::at(386); // Command Quiesce Time
    pub(crate) const SQES: Byte = Byte::at(512); // Submission Queue Entry Size
    pub(crate) const CQES: Byte = Byte::at(513); // Completion Queue Entry Size
    pub(crate) const MAXCMD: Le<u16> = Le::at(514); // Maximum Outstanding Commands
    pub(crate) const NN: Le<u32> = Le::at(516); // Number of Namespaces
    pub(crate) const ONCS: Le<u16> = Le::at(520); // Optional NVM Command Support
    pub(crate) const FUSES: Le<u16> = Le::at(522); // Fused Operation Support
    pub(crate) const VWC: Byte = Byte::at(525); // Volatile Write Cache
    pub(crate) const SGLS: Le<u32> = Le::at(536); // SGL Support
    pub(crate) const MNAN: Le<u32> = Le::at(540); // Maximum Number of Allowed Namespaces
    pub(crate) const SUBNQN: Text<256> = Text::nul_ended(768); // NVM Subsystem Qualified Name
    pub(crate) const IOCCSZ: Le<u32> = Le::at(1792); // I/O Queue Command Capsule Supported Size
    pub(crate) const IORCSZ: Le<u32> = Le::at(1796); // I/O Queue Response Capsule Supported Size
    pub(crate) const MSDBD: Byte = Byte::at(1803); // Maximum SGL Data Block Descriptors
    pub(crate) const CCRL: Byte = Byte::at(1807); // Cross-Controller Reset Limit (Base 2.3)

    /// CMIC: several ports; several controllers; access states are reported.
    pub(crate) const CMIC_PORTS: u8 = 1 << 0;
    pub(crate) const CMIC_CONTROLLERS: u8 = 1 << 1;
    pub(crate) const CMIC_ANA: u8 = 1 << 3;
    /// OAES: namespace attributes; access states; the discovery log page.
    pub(crate) const OAES_NAMESPACE: u32 = 1 << 8;
    pub(crate) const OAES_ANA: u32 = 1 << 11;
    pub(crate) const OAES_DISCOVERY: u32 = 1 << 31;
    /// CTRATT: host identifiers have 128 bits.
    pub(crate) const CTRATT_HIDS: u32 = 1 << 0;
    /// CNTRLTYPE.
    pub(crate) const TYPE_IO: u8 = 1;
    pub(crate) const TYPE_DISCOVERY: u8 = 2;
    /// LPA: commands supported and effects; extended data (offsets); pages 00h, 12h and 13h.
    pub(crate) const LPA_EFFECTS: u8 = 1 << 1;
    pub(crate) const LPA_EXTENDED: u8 = 1 << 2;
    pub(crate) const LPA_SUPPORTED: u8 = 1 << 5;
    /// ONCS.
    pub(crate) const ONCS_COMPARE: u16 = 1 << 0;
    pub(crate) const ONCS_DATASET_MANAGEMENT: u16 = 1 << 2;
    pub(crate) const ONCS_WRITE_ZEROES: u16 = 1 << 3;
    pub(crate) const ONCS_RESERVATIONS: u16 = 1 << 5;
    pub(crate) const ONCS_VERIFY: u16 = 1 << 7;
    /// FUSES: Compare and Write.
    pub(crate) const FUSES_COMPARE_AND_WRITE: u16 = 1 << 0;
    /// VWC: there is a cache; Flush of all namespaces is done.
    pub(crate) const VWC_PRESENT: u8 = 1 << 0;
    pub(crate) const VWC_FLUSH_ALL: u8 = 3 << 1;
    /// SGLS: supported; offsets in the capsule; transport data blocks.
    pub(crate) const SGLS_SUPPORTED: u32 = 1 << 0;
    pub(crate) const SGLS_OFFSET: u32 = 1 << 20;
    pub(crate) const SGLS_TRANSPORT: u32 = 1 << 21;
    /// IOCCSZ and IORCSZ: their unit, and how many of it a submission queue entry takes.
    pub(crate) const CAPSULE_UNIT: u32 = 16;
    pub(crate) const ENTRY_UNITS: u32 = 4;
}

/// Identify Namespace, CNS 00h (NVM Command Set 4.1.5.1).
pub(crate) mod namespace {
    use wire::{Bit, Bits, Byte, Bytes, Le, OPENING_BYTES};

    pub(crate) const NSZE: Le<u64> = Le::at(0); // Namespace Size
    pub(crate) const NCAP: Le<u64> = Le::at(8); // Namespace Capacity
    pub(crate) const NUSE: Le<u64> = Le::at(16); // Namespace Utilization
    pub(crate) const NSFEAT: Byte = Byte::at(24); // Namespace Features
    pub(crate) const FLBAS_LOW: Bits = Bits::at(26, 3, 0); // Formatted LBA Size: Format Index
    pub(crate) const FLBAS_HIGH: Bits = Bits::at(26, 6, 5); // and its upper bits
    pub(crate) const NMIC_SHARED: Bit = Bit::at(30, 0); // Multi-path I/O and Sharing: SHRNS
    pub(crate) const RESCAP: Byte = Byte::at(31); // Reservation Capabilities
    pub(crate) const DLFEAT: Byte = Byte::at(33); // Deallocate Logical Block Features
    pub(crate) const NAWUN: Le<u16> = Le::at(34); // Atomic Write Unit Normal
    pub(crate) const NAWUPF: Le<u16> = Le::at(36); // Atomic Write Unit Power Fail
    pub(crate) const NACWU: Le<u16> = Le::at(38); // Atomic Compare & Write Unit
    pub(crate) const NPWG: Le<u16> = Le::at(64); // Preferred Write Granularity
    pub(crate) const NPWA: Le<u16> = Le::at(66); // Preferred Write Alignment
    pub(crate) const NPDG: Le<u16> = Le::at(68); // Preferred Deallocate Granularity
    pub(crate) const NPDA: Le<u16> = Le::at(70); // Preferred Deallocate Alignment
    pub(crate) const NOWS: Le<u16> = Le::at(72); // Optimal Write Size
    pub(crate) const ANAGRPID: Le<u32> = Le::at(92); // ANA Group Identifier
    pub(crate) const NSATTR_PROTECTED: Bit = Bit::at(99, 0); // Attributes: Write Protected
    pub(crate) const NGUID: Bytes<16> = Bytes::at(104); // Globally Unique Identifier
    pub(crate) const EUI64: Bytes<8> = Bytes::at(120); // IEEE Extended Unique Identifier
    pub(crate) const MS: Le<u16> = Le::at(128); // Metadata Size, of the first LBA format
    pub(crate) const LBADS: Byte = Byte::at(130); // LBA Data Size, of the first LBA format
    pub(crate) const VS: Bytes<OPENING_BYTES> = Bytes::at(384); // Vendor Specific: the opening

    /// Bytes of an LBA format.
    pub(crate) const LBAF_BYTES: u16 = 4;
    /// NSFEAT: thin (THINP); atomic units of its own (NSABP); preferred sizes (OPTPERF).
    pub(crate) const NSFEAT_THIN: u8 = 1;
    pub(crate) const NSFEAT_ATOMIC: u8 = 1 << 1;
    pub(crate) const NSFEAT_PREFERRED: u8 = 1 << 4;
    /// DLFEAT: what reads of blocks given back see, where 1 is zeros; Write Zeroes may give back.
    pub(crate) const DLFEAT_READ: u8 = 7;
    pub(crate) const DLFEAT_READS_ZEROS: u8 = 1;
    pub(crate) const DLFEAT_WRITE_ZEROES: u8 = 1 << 3;
}

/// I/O Command Set Independent Identify Namespace, CNS 08h (Base 5.1.13.2.8).
pub(crate) mod independent {
    use wire::{Bit, Byte, Le};

    pub(crate) const NMIC_SHARED: Bit = Bit::at(1, 0); // Multi-path I/O and Sharing: SHRNS
    pub(crate) const RESCAP: Byte = Byte::at(2); // Reservation Capabilities
    pub(crate) const ANAGRPID: Le<u32> = Le::at(4); // ANA Group Identifier
    pub(crate) const NSATTR_PROTECTED: Bit = Bit::at(8, 0); // Attributes: Write Protected
    pub(crate) const NSTAT_READY: Bit = Bit::at(14, 0); // Namespace Status: NRDY
}

/// Identify Controller of the NVM command set, CNS 06h (NVM Command Set 4.1.5.4).
pub(crate) mod nvm_controller {
    use wire::Byte;

    pub(crate) const VSL: Byte = Byte::at(0); // Verify Size Limit
}

/// Namespace Identification Descriptors, CNS 03h (Base 5.1.13.2.3): one after the other.
pub(crate) mod descriptor {
    use wire::Byte;

    /// Bytes before the identifier of each.
    pub(crate) const HEADER_BYTES: usize = 4;

    pub(crate) const NIDT: Byte = Byte::at(0); // Namespace Identifier Type
    pub(crate) const NIDL: Byte = Byte::at(1); // Namespace Identifier Length

    /// NIDT.
    pub(crate) const EUI64: u8 = 1;
    pub(crate) const NGUID: u8 = 2;
    pub(crate) const UUID: u8 = 3;
    pub(crate) const CSI: u8 = 4;
}

/// Namespace lists, CNS 02h and 07h (Base 5.1.13.2.2).
pub(crate) mod list {
    use wire::Le;

    /// Bytes of an identifier.
    pub(crate) const ENTRY_BYTES: usize = 4;
    /// Identifiers in a list at most.
    pub(crate) const ENTRIES: u16 = 1024;

    pub(crate) const NSID: Le<u32> = Le::at(0); // the first
}
