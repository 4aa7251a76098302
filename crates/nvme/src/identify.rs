//! What a controller and its namespaces say of themselves (Base 5.1.13; NVM Command Set 4.1.5).

use wire::{Opening, put, write_opening};

use super::connect::Nqn;
use super::property::VERSION;

/// Bytes of every structure.
pub const IDENTIFY_BYTES: usize = 4096;
/// Where what is the vendor's begins in CNS 00h.
pub(crate) const OPENING_AT: usize = 384;
/// VSL: Verify reads 4 KiB shifted by this at most.
const VERIFY_SHIFT: u8 = 11;
/// Bytes that Verify reads at most.
pub const VERIFY_BYTES: u32 = 4096 << VERIFY_SHIFT;
/// Namespace identifiers in a list at most.
const LIST_MAX: usize = IDENTIFY_BYTES / 4;

/// What a controller is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerKind {
    /// To read and write.
    Io,
    /// To find the others.
    Discovery,
}

/// A controller, as CNS 01h says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerData<'a> {
    /// What it is for.
    pub kind: ControllerKind,
    /// CNTLID: as Connect answered it.
    pub id: u16,
    /// The subsystem it belongs to.
    pub subsystem: &'a Nqn,
    /// SN: 20 characters of ASCII at most; the rest is cut off.
    pub serial: &'a str,
    /// MN: 40 at most.
    pub model: &'a str,
    /// FR: 8 at most.
    pub firmware: &'a str,
    /// MDTS: a command moves 4 KiB shifted by this at most; 0 for no limit.
    pub transfer_shift: u8,
    /// Commands outstanding on a queue at most.
    pub commands_max: u16,
    /// The highest namespace identifier.
    pub namespaces_max: u32,
    /// Bytes of data in a command capsule of an I/O queue; a multiple of 16.
    pub capsule_data_bytes: u32,
    /// What is written may be lost with the power until it is flushed.
    pub has_volatile_cache: bool,
    /// Namespaces can be reserved.
    pub has_reservations: bool,
    /// AERL: event requests outstanding at most, less one.
    pub event_requests: u8,
    /// Groups of namespaces with an access state of their own; 0 for none.
    pub ana_groups: u32,
}

/// A namespace, as CNS 00h and 03h say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamespaceData {
    /// Its blocks.
    pub block_count: u64,
    /// A block has two to the power of this many bytes: 9 or 12.
    pub block_shift: u8,
    /// NGUID: unlike any other's.
    pub nguid: [u8; 16],
    /// Its universally unique identifier.
    pub uuid: [u8; 16],
    /// Blocks that are written all or not at all, less one, also when the power fails.
    pub atomic_blocks: u16,
    /// Blocks of the size that is written best, less one; 0 for no preference.
    pub optimal_write_blocks: u16,
    /// Blocks that are given back read as zeros.
    pub discards_to_zero: bool,
    /// RESCAP.
    pub reservation_kinds: u8,
    /// Group whose access state it shares; 0 for none.
    pub ana_group: u32,
    /// Controllers other than one may use it.
    pub is_shared: bool,
    /// It is never written (NSATTR).
    pub is_read_only: bool,
    /// Which opening of its medium it is.
    pub opening: Opening,
}

impl ControllerData<'_> {
    /// CNS 01h (Base 5.1.13.2.1).
    #[must_use]
    pub fn write(&self) -> [u8; IDENTIFY_BYTES] {
        let mut data = [0; IDENTIFY_BYTES];
        let has_ana = self.ana_groups > 0;
        put_text(&mut data[4..24], self.serial);
        put_text(&mut data[24..64], self.model);
        put_text(&mut data[64..72], self.firmware);
        // CMIC: several ports, several controllers, access states.
        data[76] = 1 | 1 << 1 | u8::from(has_ana) << 3;
        data[77] = self.transfer_shift;
        put(&mut data, 78, &self.id.to_le_bytes());
        put(&mut data, 80, &VERSION.to_le_bytes());
        put(&mut data, 92, &self.events().to_le_bytes());
        // CTRATT: host identifiers have 128 bits.
        put(&mut data, 96, &1_u32.to_le_bytes());
        let [kind, is_io] = match self.kind {
            ControllerKind::Io => [1, 1],
            ControllerKind::Discovery => [2, 0],
        };
        data[111] = kind;
        // ACL: aborts at once, less one.
        data[258] = 3;
        data[259] = self.event_requests;
        // FRMW: one slot, which is read-only.
        data[260] = (1 << 1 | 1) * is_io;
        // LPA: commands supported and effects; extended data (offsets); the pages that say what is
        // supported, with the scope of each.
        data[261] = 1 << 1 | 1 << 2 | 1 << 5;
        // KAS: keep-alive times in steps of 100 ms.
        put(&mut data, 320, &1_u16.to_le_bytes());
        if has_ana {
            // ANATT in seconds; ANACAP: every state.
            data[342] = 10;
            data[343] = 0x1f;
            put(&mut data, 344, &self.ana_groups.to_le_bytes());
            put(&mut data, 348, &self.ana_groups.to_le_bytes());
            // MNAN: Linux sizes the access state page by it, and refuses 0.
            put(&mut data, 540, &self.namespaces_max.to_le_bytes());
        }
        // SQES, CQES: 64 and 16 bytes, least and most.
        (data[512], data[513]) = (0x66 * is_io, 0x44 * is_io);
        put(&mut data, 514, &self.commands_max.to_le_bytes());
        put(&mut data, 516, &(self.namespaces_max * u32::from(is_io)).to_le_bytes());
        // ONCS: Compare, Dataset Management, Write Zeroes, reservations, Verify.
        let optional = 1 | 1 << 2 | 1 << 3 | u16::from(self.has_reservations) << 5 | 1 << 7;
        put(&mut data, 520, &(optional * u16::from(is_io)).to_le_bytes());
        // FUSES: Compare and Write.
        put(&mut data, 522, &u16::from(is_io).to_le_bytes());
        // VWC: Flush of all namespaces is done (bits 2:1 = 3); bit 0: there is a cache.
        data[525] = (3 << 1 | u8::from(self.has_volatile_cache)) * is_io;
        // SGLS: supported; transport data blocks (bit 21); offsets in the capsule (bit 20).
        put(&mut data, 536, &(1_u32 | 1 << 20 | 1 << 21).to_le_bytes());
        put(&mut data, 768, self.subsystem.as_str().as_bytes());
        // IOCCSZ, IORCSZ in units of 16 bytes; ICDOFF is 0, one descriptor (MSDBD).
        put(&mut data, 1792, &(4 + self.capsule_data_bytes / 16).to_le_bytes());
        put(&mut data, 1796, &1_u32.to_le_bytes());
        data[1803] = 1;
        data
    }

    // OAES: namespace attributes, access states; for discovery its log page (Base 5.1.13.2.1).
    const fn events(&self) -> u32 {
        match self.kind {
            ControllerKind::Io => 1 << 8 | ((self.ana_groups > 0) as u32) << 11,
            ControllerKind::Discovery => 1 << 31,
        }
    }
}

impl NamespaceData {
    /// CNS 00h (NVM Command Set 4.1.5.1).
    #[must_use]
    pub fn write(&self) -> [u8; IDENTIFY_BYTES] {
        let mut data = [0; IDENTIFY_BYTES];
        // NSZE, NCAP, NUSE: nothing is thin for the host.
        for at in [0, 8, 16] {
            put(&mut data, at, &self.block_count.to_le_bytes());
        }
        // NSFEAT: atomic units of its own (bit 1), preferred sizes (bit 4).
        let has_preference = self.optimal_write_blocks > 0;
        data[24] = 1 << 1 | u8::from(has_preference) << 4;
        data[30] = u8::from(self.is_shared);
        data[31] = self.reservation_kinds;
        // DLFEAT: what reads of blocks given back see; Write Zeroes may give back.
        data[33] = u8::from(self.discards_to_zero) | u8::from(self.discards_to_zero) << 3;
        // NAWUN, NAWUPF, NACWU.
        for at in [34, 36, 38] {
            put(&mut data, at, &self.atomic_blocks.to_le_bytes());
        }
        if has_preference {
            // NPWG, NPWA, NPDG, NPDA, NOWS.
            for at in [64, 66, 68, 70, 72] {
                put(&mut data, at, &self.optimal_write_blocks.to_le_bytes());
            }
        }
        put(&mut data, 92, &self.ana_group.to_le_bytes());
        // NSATTR: write protected.
        data[99] = u8::from(self.is_read_only);
        put(&mut data, 104, &self.nguid);
        // The one format: no metadata, LBADS.
        data[130] = self.block_shift;
        put(&mut data, OPENING_AT, &write_opening(&self.opening));
        data
    }

    /// CNS 08h: what does not depend on the command set (Base 5.1.13.2.8).
    #[must_use]
    pub fn write_independent(&self) -> [u8; IDENTIFY_BYTES] {
        let mut data = [0; IDENTIFY_BYTES];
        // NMIC, RESCAP, ANAGRPID, NSATTR.
        (data[1], data[2]) = (u8::from(self.is_shared), self.reservation_kinds);
        put(&mut data, 4, &self.ana_group.to_le_bytes());
        data[8] = u8::from(self.is_read_only);
        // NSTAT: it is ready.
        data[14] = 1;
        data
    }

    /// CNS 03h: its identifiers (Base 5.1.13.2.3).
    #[must_use]
    pub fn write_descriptors(&self) -> [u8; IDENTIFY_BYTES] {
        let mut data = [0; IDENTIFY_BYTES];
        let mut at = 0;
        let nvm = [0];
        for (kind, id) in [(2, &self.nguid[..]), (3, &self.uuid), (4, &nvm)] {
            // None is longer than 16 bytes.
            (data[at], data[at + 1]) = (kind, u8::try_from(id.len()).unwrap_or(0));
            put(&mut data, at + 4, id);
            at += 4 + id.len();
        }
        data
    }
}

/// CNS 06h of the NVM command set (NVM Command Set 4.1.5.4).
#[must_use]
pub(crate) fn write_nvm_controller() -> [u8; IDENTIFY_BYTES] {
    let mut data = [0; IDENTIFY_BYTES];
    // VSL, in pages of 4 KiB; nothing else has a limit of its own.
    data[0] = VERIFY_SHIFT;
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
    for (index, nsid) in above.take(LIST_MAX).enumerate() {
        put(&mut data, index * 4, &nsid.to_le_bytes());
    }
    data
}

// ASCII, filled up with spaces (Base 1.8).
fn put_text(field: &mut [u8], text: &str) {
    field.fill(b' ');
    let printable = text.bytes().filter(|byte| (0x20..0x7f).contains(byte));
    for (place, byte) in field.iter_mut().zip(printable) {
        *place = byte;
    }
}
