//! The data of Connect (Base 6.3).

use wire::{Bytes, Le, Text};

/// Bytes of it.
pub(crate) const BYTES: usize = 1024;

pub(crate) const HOSTID: Bytes<16> = Bytes::at(0); // Host Identifier
pub(crate) const CNTLID: Le<u16> = Le::at(16); // Controller ID
pub(crate) const SUBNQN: Text<256> = Text::nul_ended(256); // NVM Subsystem NVMe Qualified Name
pub(crate) const HOSTNQN: Text<256> = Text::nul_ended(512); // Host NVMe Qualified Name
