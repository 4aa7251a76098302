//! Parameters of persistent reservations (SPC-4 6.15, 6.16), and names of initiator ports.

/// PERSISTENT RESERVE OUT (SPC-4 6.16.3).
pub(crate) mod out {
    use wire::{Be, Bit};

    /// Bytes of it.
    pub(crate) const BYTES: u32 = 24;

    pub(crate) const KEY: Be<u64> = Be::at(0); // RESERVATION KEY
    pub(crate) const ACTION_KEY: Be<u64> = Be::at(8); // SERVICE ACTION RESERVATION KEY
    pub(crate) const SPEC_I_PT: Bit = Bit::at(20, 3); // SPEC_I_PT
    pub(crate) const ALL_TG_PT: Bit = Bit::at(20, 2); // ALL_TG_PT
    pub(crate) const APTPL: Bit = Bit::at(20, 0); // APTPL
}

/// PERSISTENT RESERVE IN: what most of its answers begin with (SPC-4 6.15.2).
pub(crate) mod header {
    use wire::Be;

    /// Bytes of it.
    pub(crate) const BYTES: usize = 8;

    pub(crate) const GENERATION: Be<u32> = Be::at(0); // PRGENERATION
    pub(crate) const ADDITIONAL_LENGTH: Be<u32> = Be::at(4); // ADDITIONAL LENGTH
}

/// A key of READ KEYS (SPC-4 6.15.2).
pub(crate) mod key {
    use wire::Be;

    /// Bytes of it.
    pub(crate) const BYTES: usize = 8;

    pub(crate) const KEY: Be<u64> = Be::at(0); // RESERVATION KEY
}

/// The descriptor of READ RESERVATION (SPC-4 6.15.3).
pub(crate) mod held {
    use wire::{Be, Bits};

    /// Bytes of it.
    pub(crate) const BYTES: usize = 16;

    pub(crate) const KEY: Be<u64> = Be::at(0); // RESERVATION KEY
    pub(crate) const TYPE: Bits = Bits::at(13, 3, 0); // TYPE
}

/// REPORT CAPABILITIES (SPC-4 6.15.4).
pub(crate) mod capabilities {
    use wire::{Be, Bit};

    /// Bytes of it.
    pub(crate) const BYTES: u16 = 8;

    pub(crate) const LENGTH: Be<u16> = Be::at(0); // LENGTH
    pub(crate) const ATP_C: Bit = Bit::at(2, 2); // ATP_C
    pub(crate) const PTPL_C: Bit = Bit::at(2, 0); // PTPL_C
    pub(crate) const TMV: Bit = Bit::at(3, 7); // TMV
    pub(crate) const PTPL_A: Bit = Bit::at(3, 0); // PTPL_A
    pub(crate) const TYPE_MASK: Be<u16> = Be::at(4); // PERSISTENT RESERVATION TYPE MASK

    /// TYPE MASK: WR_EX_AR, EX_AC_RO, WR_EX_RO, EX_AC, WR_EX; EX_AC_AR.
    pub(crate) const ALL_TYPES: u16 = 0xea01;
}

/// A descriptor of READ FULL STATUS (SPC-4 6.15.5), without the transport identifier behind it.
pub(crate) mod status {
    use wire::{Be, Bit, Bits};

    /// Bytes of it.
    pub(crate) const BYTES: usize = 24;

    pub(crate) const KEY: Be<u64> = Be::at(0); // RESERVATION KEY
    pub(crate) const R_HOLDER: Bit = Bit::at(12, 0); // R_HOLDER
    pub(crate) const TYPE: Bits = Bits::at(13, 3, 0); // TYPE
    pub(crate) const PORT: Be<u16> = Be::at(18); // RELATIVE TARGET PORT IDENTIFIER
    pub(crate) const ADDITIONAL_LENGTH: Be<u32> = Be::at(20); // ADDITIONAL DESCRIPTOR LENGTH
}

/// A transport identifier (SPC-4 7.6.4.6).
pub(crate) mod transport_id {
    use wire::{Be, Bits};

    /// Bytes before the name.
    pub(crate) const HEADER_BYTES: usize = 4;

    pub(crate) const FORMAT: Bits = Bits::at(0, 7, 6); // FORMAT CODE
    pub(crate) const PROTOCOL: Bits = Bits::at(0, 3, 0); // PROTOCOL IDENTIFIER
    pub(crate) const ADDITIONAL_LENGTH: Be<u16> = Be::at(2); // ADDITIONAL LENGTH

    /// FORMAT CODE: a name and the identifier of a session.
    pub(crate) const WITH_SESSION: u8 = 1;
    /// PROTOCOL IDENTIFIER.
    pub(crate) const ISCSI: u8 = 5;
    /// ADDITIONAL LENGTH at least.
    pub(crate) const LENGTH_MIN: usize = 20;
}
