//! What a logical unit says of itself: standard INQUIRY data and vital product data (SPC-4 6.6,
//! 7.8; SBC-3 6.6), READ CAPACITY (SBC-3 5.15, 5.16), all from one description.

use wire::{Opening, write_opening};

use super::layout::cdb;
use super::layout::inquiry::{
    characteristics, designator as layout, extended, limits, page, provisioning, standard,
};
use super::layout::report::{capacity, capacity_long, lba_status};
use super::ports::PortState;
use super::sense::Sense;

/// A logical unit as its initiators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitData {
    /// A block has two to the power of this many bytes: 9 or 12.
    pub block_shift: u8,
    /// Its blocks; above 0.
    pub block_count: u64,
    /// Bytes that are best written at once are two to the power of this; not below a block.
    pub physical_shift: u8,
    /// What tells it from every other logical unit, as a namespace's globally unique identifier.
    pub id: [u8; 16],
    /// Who made it, what it is called, its revision: ASCII, padded with spaces.
    pub vendor: [u8; 8],
    /// See `vendor`.
    pub product: [u8; 16],
    /// See `vendor`.
    pub revision: [u8; 4],
    /// Blocks can be given back, and read as zeros then.
    pub is_thin: bool,
    /// What is written is on the medium only when it was flushed or forced.
    pub has_write_cache: bool,
    /// It is not to be written.
    pub is_read_only: bool,
    /// How much may be asked for at once.
    pub limits: BlockLimits,
    /// Blocks that are written all or not at all, as others see it; 0 if none are.
    pub atomic_blocks: u16,
    /// Target ports that it is reached through, at least 1; initiators know how if there are more.
    pub ports: u16,
    /// Which opening of its medium it is.
    pub opening: Opening,
}

/// How much may be asked for at once, in blocks (SBC-3 6.6.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockLimits {
    /// Read or written.
    pub transfer_blocks: u32,
    /// Read or written without being slower than in smaller parts.
    pub optimal_blocks: u32,
    /// Given back by one command.
    pub unmap_blocks: u32,
    /// Ranges of one command.
    pub unmap_ranges: u32,
    /// Written by one WRITE SAME.
    pub write_same_blocks: u32,
    /// Compared and written.
    pub compare_blocks: u8,
}

/// The target port that an initiator has come through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitPort<'a> {
    /// The target's name.
    pub target: &'a str,
    /// Portal group tag, and number of its target port group.
    pub group: u16,
    /// Relative target port identifier; above 0.
    pub relative: u16,
    /// How the logical unit is reached through each port, by its relative identifier; optimized
    /// where nothing is said.
    pub states: &'a [PortState],
}

impl UnitPort<'_> {
    /// How the logical unit is reached through this one.
    #[must_use]
    pub fn state(&self) -> PortState {
        let place = usize::from(self.relative).checked_sub(1);
        place.and_then(|place| self.states.get(place)).copied().unwrap_or_default()
    }
}

/// Pages of vital product data there are, in order.
const PAGES: [u8; 8] = [
    page::SUPPORTED,
    page::SERIAL,
    page::IDENTIFICATION,
    page::EXTENDED,
    page::LIMITS,
    page::CHARACTERISTICS,
    page::PROVISIONING,
    page::OPENING,
];
/// Bytes of a serial number: the identifier in hexadecimal digits.
const SERIAL_BYTES: usize = 32;
/// Names that a target may have (RFC 7143 4.2.7.1).
const TARGET_NAME_BYTES_MAX: usize = 223;

impl UnitData {
    /// Bytes of a block.
    #[must_use]
    pub const fn block_bytes(&self) -> u32 {
        1 << self.block_shift
    }

    /// Whether initiators know how it is reached through each port.
    pub(super) const fn has_port_states(&self) -> bool {
        self.ports > 1
    }

    /// Its serial number.
    #[must_use]
    pub fn serial(&self) -> String {
        format!("{:0SERIAL_BYTES$x}", u128::from_be_bytes(self.id))
    }

    /// Whether blocks lie inside.
    #[must_use]
    pub fn holds(&self, first: u64, count: u64) -> bool {
        first.checked_add(count).is_some_and(|end| end <= self.block_count)
    }

    /// Standard INQUIRY data (SPC-4 6.6.2).
    #[must_use]
    pub fn inquiry(&self) -> Vec<u8> {
        let mut data = vec![0; standard::BYTES];
        begin_standard(&mut data);
        // Implicit.
        standard::TPGS.put(&mut data, u8::from(self.has_port_states()));
        standard::VENDOR.put(&mut data, self.vendor);
        standard::PRODUCT.put(&mut data, self.product);
        standard::REVISION.put(&mut data, self.revision);
        // SAM-5, iSCSI, SPC-4, SBC-3 (SPC-4 6.6.2, table "Version descriptor values").
        for (index, version) in (0..).zip([0x00a0, 0x0960, 0x0460, 0x04c0]) {
            standard::VERSION_DESCRIPTOR.nth(index).put(&mut data, version);
        }
        data
    }

    /// A page of vital product data.
    ///
    /// # Errors
    /// When there is no such page.
    pub fn page(&self, code: u8, port: UnitPort<'_>) -> Result<Vec<u8>, Sense> {
        let mut data = match code {
            page::SUPPORTED => with_body(&PAGES),
            page::SERIAL => with_body(self.serial().as_bytes()),
            page::IDENTIFICATION => with_body(&self.designators(port)),
            page::EXTENDED => extended_page(),
            page::LIMITS => self.limits_page(),
            page::CHARACTERISTICS => characteristics_page(),
            page::PROVISIONING => self.provisioning_page(),
            page::OPENING => with_body(&write_opening(&self.opening)),
            _ => return Err(Sense::wrong(cdb::inquiry::PAGE_CODE)),
        };
        let length = u16::try_from(data.len() - page::HEADER_BYTES).unwrap_or(u16::MAX);
        page::PAGE_CODE.put(&mut data, code);
        page::PAGE_LENGTH.put(&mut data, length);
        Ok(data)
    }

    // SPC-4 7.8.6: of the logical unit, then of the port.
    fn designators(&self, port: UnitPort<'_>) -> Vec<u8> {
        use layout::*;
        let of_unit = |codes, kind| Designator { codes, kind, is_of_port: false };
        let of_port = |codes, kind| Designator { codes, kind, is_of_port: true };
        let mut all = Vec::new();
        // Locally assigned, 60 bits (SPC-4 7.8.6.6.4).
        let mut local = [0; 8];
        local.copy_from_slice(&self.id[8..]);
        NAA.put(&mut local, LOCAL);
        of_unit(BINARY, OF_NAA).append(&local, &mut all);
        // 16 bytes (SPC-4 7.8.6.5.4).
        of_unit(BINARY, EUI_64).append(&self.id, &mut all);
        let mut vendor = self.vendor.to_vec();
        vendor.extend(self.product);
        vendor.extend(self.serial().into_bytes());
        of_unit(ASCII, T10_VENDOR).append(&vendor, &mut all);
        for (kind, number) in [(RELATIVE_PORT, port.relative), (PORT_GROUP, port.group)] {
            let mut bytes = [0; PORT_BYTES];
            PORT.put(&mut bytes, number);
            of_port(BINARY, kind).append(&bytes, &mut all);
        }
        let target = &port.target[..port.target.len().min(TARGET_NAME_BYTES_MAX)];
        // SCSI name strings end with NUL and are padded to a multiple of four.
        let mut name = format!("{target},t,0x{:04x}\0", port.group).into_bytes();
        name.resize(name.len().next_multiple_of(4), 0);
        of_port(UTF_8, NAME_STRING).append(&name, &mut all);
        all
    }

    // SBC-3 6.6.4.
    fn limits_page(&self) -> Vec<u8> {
        use limits::*;
        let (most, mut page) = (&self.limits, vec![0; BYTES]);
        // WSNZ is 0: a WRITE SAME of no blocks is one of all.
        COMPARE.put(&mut page, most.compare_blocks);
        let granularity = 1_u16 << (self.physical_shift - self.block_shift).min(15);
        GRANULARITY.put(&mut page, granularity);
        TRANSFER.put(&mut page, most.transfer_blocks);
        OPTIMAL.put(&mut page, most.optimal_blocks);
        if self.is_thin {
            UNMAP_BLOCKS.put(&mut page, most.unmap_blocks);
            UNMAP_RANGES.put(&mut page, most.unmap_ranges);
            UNMAP_GRANULARITY.put(&mut page, granularity.into());
            // Aligned to the granularity.
            UGAVALID.put(&mut page, true);
        }
        WRITE_SAME.put(&mut page, most.write_same_blocks.into());
        ATOMIC.put(&mut page, self.atomic_blocks.into());
        page
    }

    // SBC-3 6.6.5.
    fn provisioning_page(&self) -> Vec<u8> {
        use provisioning::*;
        let mut page = vec![0; BYTES];
        if self.is_thin {
            LBPU.put(&mut page, true);
            LBPWS.put(&mut page, true);
            LBPRZ.put(&mut page, 1);
            TYPE.put(&mut page, THIN);
        }
        page
    }

    /// The data of READ CAPACITY(10) (SBC-3 5.15.2).
    #[must_use]
    pub fn capacity(&self) -> [u8; 8] {
        let mut data = [0; capacity::BYTES];
        capacity::LAST.put(&mut data, u32::try_from(self.block_count - 1).unwrap_or(u32::MAX));
        capacity::BLOCK_BYTES.put(&mut data, self.block_bytes());
        data
    }

    /// The data of READ CAPACITY(16) (SBC-3 5.16.2).
    #[must_use]
    pub fn capacity_long(&self) -> [u8; 32] {
        use capacity_long::*;
        let mut data = [0; BYTES];
        LAST.put(&mut data, self.block_count - 1);
        BLOCK_BYTES.put(&mut data, self.block_bytes());
        EXPONENT.put(&mut data, self.physical_shift - self.block_shift);
        LBPME.put(&mut data, self.is_thin);
        LBPRZ.put(&mut data, self.is_thin);
        data
    }

    /// The data of GET LBA STATUS (SBC-3 5.5): what is mapped is not known, so all of it counts as
    /// that, from `first` on.
    ///
    /// # Errors
    /// When `first` is beyond the end.
    pub fn lba_status(&self, first: u64) -> Result<[u8; 24], Sense> {
        if first >= self.block_count {
            return Err(Sense::LBA_OUT_OF_RANGE);
        }
        use lba_status::*;
        let mut data = [0; BYTES];
        LENGTH.put(&mut data, u32::try_from(BYTES).unwrap_or(0) - BEFORE);
        LBA.put(&mut data, first);
        COUNT.put(&mut data, u32::try_from(self.block_count - first).unwrap_or(u32::MAX));
        Ok(data)
    }
}

/// Standard INQUIRY data where there is no logical unit (SPC-4 6.6.2: qualifier 011b, type 1Fh).
pub(super) fn absent() -> Vec<u8> {
    let mut data = vec![0; standard::BYTES_MIN];
    begin_standard(&mut data);
    standard::QUALIFIER.put(&mut data, 3);
    standard::DEVICE_TYPE.put(&mut data, 0x1f);
    standard::VENDOR.put(&mut data, []);
    standard::PRODUCT.put(&mut data, []);
    standard::REVISION.put(&mut data, []);
    data
}

// SPC-4; hierarchical LUNs, response data format 2; more than one command at a time.
fn begin_standard(data: &mut [u8]) {
    use standard::*;
    VERSION.put(data, SPC_4);
    HISUP.put(data, true);
    DATA_FORMAT.put(data, 2);
    ADDITIONAL_LENGTH.put(data, u8::try_from(data.len()).unwrap_or(u8::MAX) - BEFORE);
    CMDQUE.put(data, true);
}

// A page of which only the header is still missing.
fn with_body(body: &[u8]) -> Vec<u8> {
    [&[0; page::HEADER_BYTES], body].concat()
}

/// What stands before a designator.
struct Designator {
    codes: u8,
    kind: u8,
    is_of_port: bool,
}

impl Designator {
    fn append(self, bytes: &[u8], all: &mut Vec<u8>) {
        use layout::*;
        let mut header = [0; HEADER_BYTES];
        CODE_SET.put(&mut header, self.codes);
        TYPE.put(&mut header, self.kind);
        if self.is_of_port {
            PROTOCOL.put(&mut header, ISCSI);
            PIV.put(&mut header, true);
            ASSOCIATION.put(&mut header, OF_PORT);
        }
        LENGTH.put(&mut header, u8::try_from(bytes.len()).unwrap_or(u8::MAX));
        all.extend_from_slice(&header);
        all.extend_from_slice(bytes);
    }
}

// SPC-4 7.8.7.
fn extended_page() -> Vec<u8> {
    let mut page = vec![0; extended::BYTES];
    // V_SUP is not there: a cache is flushed or not.
    extended::SIMPSUP.put(&mut page, true);
    // A unit attention is cleared for one initiator.
    extended::LUICLR.put(&mut page, true);
    page
}

// SBC-3 6.6.2.
fn characteristics_page() -> Vec<u8> {
    let mut page = vec![0; characteristics::BYTES];
    characteristics::ROTATION_RATE.put(&mut page, characteristics::NONE);
    page
}
