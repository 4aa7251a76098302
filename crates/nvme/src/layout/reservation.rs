//! Data of reservation commands (Base 7.4 to 7.7).

/// Reservation Register (Base 7.5).
pub(crate) mod register {
    use wire::Le;

    /// Bytes of it.
    pub(crate) const BYTES: usize = 16;

    pub(crate) const CRKEY: Le<u64> = Le::at(0); // Current Reservation Key
    pub(crate) const NRKEY: Le<u64> = Le::at(8); // New Reservation Key
}

/// Reservation Acquire (Base 7.4).
pub(crate) mod acquire {
    use wire::Le;

    /// Bytes of it.
    pub(crate) const BYTES: usize = 16;

    pub(crate) const CRKEY: Le<u64> = Le::at(0); // Current Reservation Key
    pub(crate) const PRKEY: Le<u64> = Le::at(8); // Preempt Reservation Key
}

/// Reservation Release (Base 7.7).
pub(crate) mod release {
    use wire::Le;

    /// Bytes of it.
    pub(crate) const BYTES: usize = 8;

    pub(crate) const CRKEY: Le<u64> = Le::at(0); // Current Reservation Key
}

/// Reservation Status, extended (Base 7.6): a header, then registered controllers.
pub(crate) mod status {
    use wire::{Bit, Byte, Bytes, Le};

    /// Bytes of the header, and of a registered controller.
    pub(crate) const HEADER_BYTES: usize = 64;
    pub(crate) const ENTRY_BYTES: usize = 64;

    pub(crate) const GEN: Le<u32> = Le::at(0); // Generation
    pub(crate) const RTYPE: Byte = Byte::at(4); // Reservation Type
    pub(crate) const REGSTRNT: Le<u16> = Le::at(5); // Number of Registrants
    pub(crate) const PTPLS: Byte = Byte::at(9); // Persist Through Power Loss State

    // Of a registered controller.
    pub(crate) const CNTLID: Le<u16> = Le::at(0); // Controller ID
    pub(crate) const RCSTS_HOLDER: Bit = Bit::at(2, 0); // Reservation Status: it holds it
    pub(crate) const RKEY: Le<u64> = Le::at(8); // Reservation Key
    pub(crate) const HOSTID: Bytes<16> = Bytes::at(16); // Host Identifier
}
