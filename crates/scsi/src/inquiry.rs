//! A logical unit's description, encoded as standard INQUIRY data and vital product data (SPC-4
//! 6.6, 7.8; SBC-3 6.6) and READ CAPACITY data (SBC-3 5.15, 5.16).

use wire::{Opening, write_opening};

use super::layout::cdb;
use super::layout::inquiry::{
    characteristics, designator as layout, extended, limits, page, provisioning, standard,
};
use super::layout::report::{capacity, capacity_long, lba_status};
use super::ports::PortState;
use super::sense::Sense;

/// The description of a logical unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitData {
    /// The size of a block as a power of two: 9 or 12.
    pub block_shift: u8,
    /// Number of blocks; above 0.
    pub block_count: u64,
    /// The size of a physical block as a power of two; not below `block_shift`.
    pub physical_shift: u8,
    /// Globally unique identifier, a namespace's NGUID.
    pub id: [u8; 16],
    /// Vendor, product and revision: ASCII, padded with spaces.
    pub vendor: [u8; 8],
    /// See `vendor`.
    pub product: [u8; 16],
    /// See `vendor`.
    pub revision: [u8; 4],
    /// Blocks can be deallocated, and read as zeros then.
    pub is_thin: bool,
    /// Writes are on the medium only after a flush or with FUA.
    pub has_write_cache: bool,
    /// The unit is write-protected.
    pub is_read_only: bool,
    /// Limits of one command.
    pub limits: BlockLimits,
    /// Blocks that WRITE ATOMIC writes atomically at most; 0 if it is not supported.
    pub atomic_blocks: u16,
    /// Number of target ports, at least 1; with more than one, access states are reported.
    pub ports: u16,
    /// The opening of its medium.
    pub opening: Opening,
}

/// Limits of one command, in blocks (SBC-3 6.6.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockLimits {
    /// Of a read or write at most.
    pub transfer_blocks: u32,
    /// Of a read or write that is not slower than smaller ones.
    pub optimal_blocks: u32,
    /// Of an UNMAP at most.
    pub unmap_blocks: u32,
    /// Ranges of an UNMAP at most.
    pub unmap_ranges: u32,
    /// Of a WRITE SAME at most.
    pub write_same_blocks: u32,
    /// Of a COMPARE AND WRITE at most.
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
    /// The access state of each port, by relative identifier; optimized for ports beyond the list.
    pub states: &'a [PortState],
}

impl UnitPort<'_> {
    /// The access state of this port.
    #[must_use]
    pub fn state(&self) -> PortState {
        let place = usize::from(self.relative).checked_sub(1);
        place.and_then(|place| self.states.get(place)).copied().unwrap_or_default()
    }
}

/// Supported pages of vital product data, in order.
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
/// Bytes of a target's name at most (RFC 7143 4.2.7.1).
const TARGET_NAME_BYTES_MAX: usize = 223;

impl UnitData {
    /// Bytes of a block.
    #[must_use]
    pub const fn block_bytes(&self) -> u32 {
        1 << self.block_shift
    }

    /// Whether access states of ports are reported.
    pub(super) const fn has_port_states(&self) -> bool {
        self.ports > 1
    }

    /// The serial number.
    #[must_use]
    pub fn serial(&self) -> String {
        format!("{:0SERIAL_BYTES$x}", u128::from_be_bytes(self.id))
    }

    /// Whether the blocks lie within the unit.
    #[must_use]
    pub fn holds(&self, first: u64, count: u64) -> bool {
        first.checked_add(count).is_some_and(|end| end <= self.block_count)
    }

    /// Standard INQUIRY data (SPC-4 6.6.2).
    #[must_use]
    pub fn inquiry(&self) -> Vec<u8> {
        let mut data = vec![0; standard::BYTES];
        begin_standard(&mut data);
        // Implicit asymmetric access.
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

    // The designators of page 83h (SPC-4 7.8.6): of the logical unit, then of the port.
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

    // The block limits page (SBC-3 6.6.4).
    fn limits_page(&self) -> Vec<u8> {
        use limits::*;
        let (most, mut page) = (&self.limits, vec![0; BYTES]);
        // WSNZ is 0: a WRITE SAME with a count of 0 writes all blocks.
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

    // The logical block provisioning page (SBC-3 6.6.5).
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

    /// The data of GET LBA STATUS (SBC-3 5.5): all blocks from `first` on count as mapped, since it
    /// is not known which are.
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

/// Standard INQUIRY data for a LUN without a logical unit (SPC-4 6.6.2: qualifier 011b, type 1Fh).
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

// Fields of all standard data: SPC-4, hierarchical LUNs, response data format 2, command queueing.
fn begin_standard(data: &mut [u8]) {
    use standard::*;
    VERSION.put(data, SPC_4);
    HISUP.put(data, true);
    DATA_FORMAT.put(data, 2);
    ADDITIONAL_LENGTH.put(data, u8::try_from(data.len()).unwrap_or(u8::MAX) - BEFORE);
    CMDQUE.put(data, true);
}

// A page with room for its header before `body`.
fn with_body(body: &[u8]) -> Vec<u8> {
    [&[0; page::HEADER_BYTES], body].concat()
}

/// The header of a designator.
struct Designator {
    codes: u8,
    kind: u8,
    is_of_port: bool,
}

impl Designator {
    // Appends header and designator.
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

// The extended INQUIRY data page (SPC-4 7.8.7).
fn extended_page() -> Vec<u8> {
    let mut page = vec![0; extended::BYTES];
    // V_SUP is 0: the volatile cache is not reported.
    extended::SIMPSUP.put(&mut page, true);
    // LUICLR: a unit attention is cleared for one initiator only.
    extended::LUICLR.put(&mut page, true);
    page
}

// The block device characteristics page (SBC-3 6.6.2): non-rotating.
fn characteristics_page() -> Vec<u8> {
    let mut page = vec![0; characteristics::BYTES];
    characteristics::ROTATION_RATE.put(&mut page, characteristics::NONE);
    page
}
