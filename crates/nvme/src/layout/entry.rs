//! Submission queue entries (Base 4.1.1) and completion queue entries (Base 4.2.1).

/// Fields of every submission queue entry (Base 4.1.1), and its one SGL descriptor (Base 4.3.2).
pub(crate) mod submission {
    use wire::{Bits, Byte, Le};

    /// Bytes of it.
    pub(crate) const BYTES: usize = 64;

    pub(crate) const OPC: Byte = Byte::at(0); // Opcode
    pub(crate) const FUSE: Bits = Bits::at(1, 1, 0); // Fused Operation
    pub(crate) const PSDT: Bits = Bits::at(1, 7, 6); // PRP or SGL for Data Transfer
    pub(crate) const CID: Le<u16> = Le::at(2); // Command Identifier
    pub(crate) const NSID: Le<u32> = Le::at(4); // Namespace Identifier
    pub(crate) const SGL_ADDRESS: Le<u64> = Le::at(24); // SGL1: Address, or Offset
    pub(crate) const SGL_LENGTH: Le<u32> = Le::at(32); // SGL1: Length
    pub(crate) const SGL_IDENTIFIER: Byte = Byte::at(39); // SGL1: type and subtype

    /// PSDT: SGLs are used, for data and for nothing else.
    pub(crate) const PSDT_SGL: u8 = 1;
    /// PSDT: SGLs are used, for metadata too.
    pub(crate) const PSDT_SGL_METADATA: u8 = 2;
    /// SGL1 of a command without data, as some hosts leave it.
    pub(crate) const UNSET: u8 = 0x00;
    /// Data block (0h) in the capsule, at an offset (1h).
    pub(crate) const IN_CAPSULE: u8 = 0x01;
    /// Transport data block (5h) that PDUs of its own move (Ah; TCP 3.3.3).
    pub(crate) const TRANSPORT: u8 = 0x5a;
    /// Opcode of every Fabrics command.
    pub(crate) const FABRICS: u8 = 0x7f;
}

/// Fabrics commands (Base 6).
pub(crate) mod fabrics {
    use wire::{Bits, Byte, Le};

    pub(crate) const FCTYPE: Byte = Byte::at(4); // Fabrics Command Type, where others have NSID

    // Connect (Base 6.3).
    pub(crate) const RECFMT: Le<u16> = Le::at(40); // Record Format
    pub(crate) const QID: Le<u16> = Le::at(42); // Queue ID
    pub(crate) const SQSIZE: Le<u16> = Le::at(44); // Submission Queue Size
    pub(crate) const CATTR: Byte = Byte::at(46); // Connect Attributes
    pub(crate) const KATO: Le<u32> = Le::at(48); // Keep Alive Timeout

    // Property Get and Property Set (Base 6.5, 6.6).
    pub(crate) const SIZE: Bits = Bits::at(40, 2, 0); // ATTRIB: Property Size
    pub(crate) const OFST: Le<u32> = Le::at(44); // Offset
    pub(crate) const VALUE: Le<u64> = Le::at(48); // Value

    // Authentication Send and Receive (Base 6.1, 6.2).
    pub(crate) const SPSP: Le<u16> = Le::at(41); // SP Specific 0, SP Specific 1
    pub(crate) const SECP: Byte = Byte::at(43); // Security Protocol
    pub(crate) const TL: Le<u32> = Le::at(44); // Transfer Length, or Allocation Length

    /// CATTR: completions do not report the submission queue's head.
    pub(crate) const NO_FLOW_CONTROL: u8 = 1 << 2;
}

/// Admin commands (Base 5).
pub(crate) mod admin {
    use wire::{Bit, Bits, Byte, Le};

    // Get Log Page (Base 5.1.12).
    pub(crate) const LID: Byte = Byte::at(40); // Log Page Identifier
    pub(crate) const LSP: Bits = Bits::at(41, 6, 0); // Log Specific Parameter
    pub(crate) const RAE: Bit = Bit::at(41, 7); // Retain Asynchronous Event
    pub(crate) const NUMDL: Le<u16> = Le::at(42); // Number of Dwords Lower
    pub(crate) const NUMDU: Le<u16> = Le::at(44); // Number of Dwords Upper
    pub(crate) const LPO: Le<u64> = Le::at(48); // Log Page Offset
    pub(crate) const OT: Bit = Bit::at(58, 7); // Offset Type

    // Identify (Base 5.1.13).
    pub(crate) const CNS: Byte = Byte::at(40); // Controller or Namespace Structure
    pub(crate) const CNTID: Le<u16> = Le::at(42); // Controller Identifier
    pub(crate) const CSI: Byte = Byte::at(47); // Command Set Identifier

    // Abort (Base 5.1.1).
    pub(crate) const SQID: Le<u16> = Le::at(40); // Submission Queue Identifier
    pub(crate) const CID: Le<u16> = Le::at(42); // Command Identifier

    // Set Features and Get Features (Base 5.1.25, 5.1.11).
    pub(crate) const FID: Byte = Byte::at(40); // Feature Identifier
    pub(crate) const SEL: Bits = Bits::at(41, 2, 0); // Select
    pub(crate) const SV: Bit = Bit::at(43, 7); // Save
    pub(crate) const CDW11: Le<u32> = Le::at(44); // Command Dword 11

    // Cross-Controller Reset (Base 2.3 5.4.3).
    pub(crate) const ICID: Le<u16> = Le::at(40); // Impacted Controller ID
    pub(crate) const CIU: Byte = Byte::at(42); // Controller Instance Uniquifier
    pub(crate) const CIRN: Le<u64> = Le::at(48); // Controller Instance Random Number
}

/// The result of Asynchronous Event Request: completion dword 0 (Base 5.1.2).
pub(crate) mod event {
    use crate::layout::part::Part;

    pub(crate) const AET: Part = Part::at(2, 0); // Asynchronous Event Type
    pub(crate) const AEI: Part = Part::at(15, 8); // Asynchronous Event Information
    pub(crate) const LID: Part = Part::at(23, 16); // Log Page Identifier

    /// AET.
    pub(crate) const NOTICE: u64 = 2;
}

/// Commands of namespaces (NVM Command Set 3; reservations: Base 7).
pub(crate) mod io {
    use wire::{Bit, Bits, Byte, Le};

    // Read, Write, Compare, Verify, Write Zeroes.
    pub(crate) const SLBA: Le<u64> = Le::at(40); // Starting LBA
    pub(crate) const NLB: Le<u16> = Le::at(48); // Number of Logical Blocks, less one
    pub(crate) const DEAC: Bit = Bit::at(51, 1); // Deallocate
    pub(crate) const FUA: Bit = Bit::at(51, 6); // Force Unit Access

    // Dataset Management (NVM Command Set 3.2.3).
    pub(crate) const NR: Byte = Byte::at(40); // Number of Ranges, less one
    pub(crate) const AD: Bit = Bit::at(44, 2); // Attribute - Deallocate

    // Reservation Register, Acquire and Release (Base 7.5, 7.4, 7.7).
    pub(crate) const ACTION: Bits = Bits::at(40, 2, 0); // RREGA, RACQA, RRELA
    pub(crate) const IEKEY: Bit = Bit::at(40, 3); // Ignore Existing Key
    pub(crate) const RTYPE: Byte = Byte::at(41); // Reservation Type
    pub(crate) const CPTPL: Bits = Bits::at(43, 7, 6); // Change Persist Through Power Loss State

    // Reservation Report (Base 7.6).
    pub(crate) const NUMD: Le<u32> = Le::at(40); // Number of Dwords, less one
    pub(crate) const EDS: Bit = Bit::at(44, 0); // Extended Data Structure
}

/// A range of Dataset Management (NVM Command Set 3.2.3).
pub(crate) mod range {
    use wire::Le;

    /// Bytes of it.
    pub(crate) const BYTES: usize = 16;

    pub(crate) const CATTR: Le<u32> = Le::at(0); // Context Attributes
    pub(crate) const NLB: Le<u32> = Le::at(4); // Length in logical blocks
    pub(crate) const SLBA: Le<u64> = Le::at(8); // Starting LBA
}

/// Completion queue entries (Base 4.2.1).
pub(crate) mod completion {
    use wire::Le;

    /// Bytes of it.
    pub(crate) const BYTES: usize = 16;

    pub(crate) const RESULT: Le<u64> = Le::at(0); // Dwords 0 and 1, of the command
    pub(crate) const SQHD: Le<u16> = Le::at(8); // SQ Head Pointer
    pub(crate) const CID: Le<u16> = Le::at(12); // Command Identifier
    pub(crate) const STATUS: Le<u16> = Le::at(14); // Status, above the phase tag

    /// Bits of the phase tag, which is 0 over fabrics.
    pub(crate) const PHASE_BITS: u32 = 1;
}
