//! Encodes Identify data of a controller and its namespaces (Base 5.1.13; NVM Command Set 4.1.5).

use wire::{Opening, write_opening};

use super::connect::Nqn;
use super::instance::Instance;
use super::layout::identify::nvm_controller;
use super::layout::identify::{BYTES, controller, descriptor, independent, list, namespace};
use super::property::VERSION;

/// Bytes of every structure.
pub const IDENTIFY_BYTES: usize = BYTES;
/// VSL: Verify checks 4 KiB shifted by this at most.
const VERIFY_SHIFT: u8 = 11;
/// Bytes that Verify checks at most.
pub const VERIFY_BYTES: u32 = 4096 << VERIFY_SHIFT;

/// The kind of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerKind {
    /// An I/O controller.
    Io,
    /// A discovery controller.
    Discovery,
}

/// A controller's data for CNS 01h.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerData<'a> {
    /// Its kind.
    pub kind: ControllerKind,
    /// CNTLID, as Connect answered it, CIU and CIRN.
    pub instance: Instance,
    /// The subsystem it belongs to.
    pub subsystem: &'a Nqn,
    /// SN: ASCII, cut to 20 characters.
    pub serial: &'a str,
    /// MN: cut to 40 characters.
    pub model: &'a str,
    /// FR: cut to 8 characters.
    pub firmware: &'a str,
    /// MDTS: a command transfers 4 KiB shifted by this at most; 0 for no limit.
    pub transfer_shift: u8,
    /// Commands outstanding on a queue at most.
    pub commands_max: u16,
    /// The highest namespace identifier.
    pub namespaces_max: u32,
    /// Bytes of data in a command capsule of an I/O queue; a multiple of 16.
    pub capsule_data_bytes: u32,
    /// Writes may be lost at a power failure until they are flushed.
    pub has_volatile_cache: bool,
    /// Whether reservations are supported.
    pub has_reservations: bool,
    /// AERL: event requests outstanding at most, less one.
    pub event_requests: u8,
    /// Number of ANA groups; 0 without ANA.
    pub ana_groups: u32,
    /// CQT: milliseconds in which commands of a lost host end.
    pub quiesce_ms: u16,
    /// CCRL: resets of other controllers that this one takes at a time; 0 for none.
    pub resets_max: u8,
}

/// A namespace's data for CNS 00h and 03h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamespaceData {
    /// Number of blocks.
    pub block_count: u64,
    /// Allocated blocks of a thin namespace, where further writes may find no space; `None` if all
    /// blocks are allocated.
    pub used_blocks: Option<u64>,
    /// The size of a block as a power of two: 9 or 12.
    pub block_shift: u8,
    /// NGUID.
    pub nguid: [u8; 16],
    /// UUID.
    pub uuid: [u8; 16],
    /// Blocks that are written atomically, also at a power failure, less one.
    pub atomic_blocks: u16,
    /// Preferred size of writes in blocks, less one; 0 for no preference.
    pub optimal_write_blocks: u16,
    /// Whether deallocated blocks read as zeros.
    pub discards_to_zero: bool,
    /// RESCAP.
    pub reservation_kinds: u8,
    /// ANAGRPID: its ANA group; 0 for none.
    pub ana_group: u32,
    /// Whether several controllers may use it.
    pub is_shared: bool,
    /// Whether it is write-protected (NSATTR).
    pub is_read_only: bool,
    /// The opening of its medium.
    pub opening: Opening,
}

impl ControllerData<'_> {
    /// CNS 01h (Base 5.1.13.2.1).
    #[must_use]
    pub fn write(&self) -> [u8; IDENTIFY_BYTES] {
        use controller::*;
        let mut data = [0; IDENTIFY_BYTES];
        let has_ana = self.ana_groups > 0;
        SN.put(&mut data, printable(self.serial));
        MN.put(&mut data, printable(self.model));
        FR.put(&mut data, printable(self.firmware));
        let access_states = if has_ana { CMIC_ANA } else { 0 };
        CMIC.put(&mut data, CMIC_PORTS | CMIC_CONTROLLERS | access_states);
        MDTS.put(&mut data, self.transfer_shift);
        CNTLID.put(&mut data, self.instance.controller);
        VER.put(&mut data, VERSION);
        OAES.put(&mut data, self.events());
        CTRATT.put(&mut data, CTRATT_HIDS);
        // Concurrent Aborts, less one.
        ACL.put(&mut data, 3);
        AERL.put(&mut data, self.event_requests);
        LPA.put(&mut data, LPA_EFFECTS | LPA_EXTENDED | LPA_SUPPORTED);
        // Keep-alive times in steps of 100 ms.
        KAS.put(&mut data, 1);
        if has_ana {
            // A transition takes up to 10 s; every state is reported.
            ANATT.put(&mut data, 10);
            ANACAP.put(&mut data, 0x1f);
            ANAGRPMAX.put(&mut data, self.ana_groups);
            NANAGRPID.put(&mut data, self.ana_groups);
            // Linux sizes the ANA log page by MNAN, and refuses 0.
            MNAN.put(&mut data, self.namespaces_max);
        }
        MAXCMD.put(&mut data, self.commands_max);
        SGLS.put(&mut data, SGLS_SUPPORTED | SGLS_OFFSET | SGLS_TRANSPORT);
        SUBNQN.put(&mut data, self.subsystem.as_str().bytes());
        // ICDOFF is 0, and a command has one SGL descriptor.
        IOCCSZ.put(&mut data, ENTRY_UNITS + self.capsule_data_bytes / CAPSULE_UNIT);
        IORCSZ.put(&mut data, 1);
        MSDBD.put(&mut data, 1);
        match self.kind {
            ControllerKind::Discovery => CNTRLTYPE.put(&mut data, TYPE_DISCOVERY),
            ControllerKind::Io => self.write_io(&mut data),
        }
        data
    }

    // Sets the fields of I/O controllers.
    fn write_io(&self, data: &mut [u8; IDENTIFY_BYTES]) {
        use controller::*;
        CNTRLTYPE.put(data, TYPE_IO);
        CIU.put(data, self.instance.uniquifier);
        CIRN.put(data, self.instance.random);
        CQT.put(data, self.quiesce_ms);
        CCRL.put(data, self.resets_max);
        // One firmware slot, which is read-only.
        FRMW.put(data, 1 << 1 | 1);
        // Entries of 64 and 16 bytes, minimum and maximum.
        SQES.put(data, 0x66);
        CQES.put(data, 0x44);
        NN.put(data, self.namespaces_max);
        let reservations = if self.has_reservations { ONCS_RESERVATIONS } else { 0 };
        let optional = ONCS_COMPARE | ONCS_DATASET_MANAGEMENT | ONCS_WRITE_ZEROES | ONCS_VERIFY;
        ONCS.put(data, optional | reservations);
        FUSES.put(data, FUSES_COMPARE_AND_WRITE);
        let cache = if self.has_volatile_cache { VWC_PRESENT } else { 0 };
        VWC.put(data, VWC_FLUSH_ALL | cache);
    }

    // OAES: the supported notices.
    const fn events(&self) -> u32 {
        match self.kind {
            ControllerKind::Io if self.ana_groups > 0 => {
                controller::OAES_NAMESPACE | controller::OAES_ANA
            }
            ControllerKind::Io => controller::OAES_NAMESPACE,
            ControllerKind::Discovery => controller::OAES_DISCOVERY,
        }
    }
}

impl NamespaceData {
    /// CNS 00h (NVM Command Set 4.1.5.1).
    #[must_use]
    pub fn write(&self) -> [u8; IDENTIFY_BYTES] {
        use namespace::*;
        let mut data = [0; IDENTIFY_BYTES];
        for field in [NSZE, NCAP] {
            field.put(&mut data, self.block_count);
        }
        NUSE.put(&mut data, self.used_blocks.unwrap_or(self.block_count));
        let thin = if self.used_blocks.is_some() { NSFEAT_THIN } else { 0 };
        let has_preference = self.optimal_write_blocks > 0;
        let preferred = if has_preference { NSFEAT_PREFERRED } else { 0 };
        NSFEAT.put(&mut data, NSFEAT_ATOMIC | preferred | thin);
        NMIC_SHARED.put(&mut data, self.is_shared);
        RESCAP.put(&mut data, self.reservation_kinds);
        let zeros = DLFEAT_READS_ZEROS | DLFEAT_WRITE_ZEROES;
        DLFEAT.put(&mut data, if self.discards_to_zero { zeros } else { 0 });
        for field in [NAWUN, NAWUPF, NACWU] {
            field.put(&mut data, self.atomic_blocks);
        }
        if has_preference {
            for field in [NPWG, NPWA, NPDG, NPDA, NOWS] {
                field.put(&mut data, self.optimal_write_blocks);
            }
        }
        ANAGRPID.put(&mut data, self.ana_group);
        NSATTR_PROTECTED.put(&mut data, self.is_read_only);
        NGUID.put(&mut data, &self.nguid);
        // The only format has no metadata.
        LBADS.put(&mut data, self.block_shift);
        VS.put(&mut data, &write_opening(&self.opening));
        data
    }

    /// CNS 08h: fields that do not depend on the command set (Base 5.1.13.2.8).
    #[must_use]
    pub fn write_independent(&self) -> [u8; IDENTIFY_BYTES] {
        use independent::*;
        let mut data = [0; IDENTIFY_BYTES];
        NMIC_SHARED.put(&mut data, self.is_shared);
        RESCAP.put(&mut data, self.reservation_kinds);
        ANAGRPID.put(&mut data, self.ana_group);
        NSATTR_PROTECTED.put(&mut data, self.is_read_only);
        NSTAT_READY.put(&mut data, true);
        data
    }

    /// CNS 03h: its identifiers (Base 5.1.13.2.3).
    #[must_use]
    pub fn write_descriptors(&self) -> [u8; IDENTIFY_BYTES] {
        use descriptor::*;
        let mut data = [0; IDENTIFY_BYTES];
        let mut rest = &mut data[..];
        let nvm = [0];
        for (kind, id) in [(NGUID, &self.nguid[..]), (UUID, &self.uuid), (CSI, &nvm)] {
            let (one, after) = rest.split_at_mut(HEADER_BYTES + id.len());
            NIDT.put(one, kind);
            // None is longer than 16 bytes.
            NIDL.put(one, u8::try_from(id.len()).unwrap_or(0));
            one[HEADER_BYTES..].copy_from_slice(id);
            rest = after;
        }
        data
    }
}

/// CNS 06h of the NVM command set (NVM Command Set 4.1.5.4).
#[must_use]
pub(crate) fn write_nvm_controller() -> [u8; IDENTIFY_BYTES] {
    let mut data = [0; IDENTIFY_BYTES];
    // In pages of 4 KiB; only Verify has a limit of its own.
    nvm_controller::VSL.put(&mut data, VERIFY_SHIFT);
    data
}

/// CNS 02h: identifiers of active namespaces above `after`, which are in order (Base 5.1.13.2.2).
#[must_use]
pub fn write_namespace_list(
    active: impl IntoIterator<Item = u32>,
    after: u32,
) -> [u8; IDENTIFY_BYTES] {
    let mut data = [0; IDENTIFY_BYTES];
    let above = active.into_iter().filter(|&nsid| nsid > after);
    for (index, nsid) in (0..list::ENTRIES).zip(above) {
        list::NSID.nth(index).put(&mut data, nsid);
    }
    data
}

// The printable ASCII characters of a text (Base 1.8).
fn printable(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(|byte| (0x20..0x7f).contains(byte))
}
