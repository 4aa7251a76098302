//! What a logical unit says of itself: standard INQUIRY data and vital product data (SPC-4 6.6,
//! 7.8; SBC-3 6.6), READ CAPACITY (SBC-3 5.15, 5.16), all from one description.

use wire::{Opening, put, write_opening};

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
const PAGES: [u8; 8] = [0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2, 0xc0];
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
        let mut data = vec![0; 96];
        // SPC-4; hierarchical LUNs, response data format 2.
        (data[2], data[3]) = (6, 0x12);
        data[4] = 91;
        // TPGS: implicit.
        data[5] = u8::from(self.has_port_states()) << 4;
        // CMDQUE.
        data[7] = 2;
        put(&mut data, 8, &self.vendor);
        put(&mut data, 16, &self.product);
        put(&mut data, 32, &self.revision);
        // SAM-5, iSCSI, SPC-4, SBC-3 (SPC-4 6.6.2, table "Version descriptor values").
        for (index, version) in [0x00a0_u16, 0x0960, 0x0460, 0x04c0].into_iter().enumerate() {
            put(&mut data, 58 + 2 * index, &version.to_be_bytes());
        }
        data
    }

    /// A page of vital product data.
    ///
    /// # Errors
    /// When there is no such page.
    pub fn page(&self, page: u8, port: UnitPort<'_>) -> Result<Vec<u8>, Sense> {
        let body = match page {
            0x00 => PAGES.to_vec(),
            0x80 => self.serial().into_bytes(),
            0x83 => self.designators(port),
            0x86 => extended(),
            0xb0 => self.limits_page(),
            0xb1 => characteristics(),
            0xb2 => self.provisioning(),
            // The first that is the vendor's.
            0xc0 => write_opening(&self.opening).to_vec(),
            _ => return Err(Sense::in_cdb(2, None)),
        };
        let [high, low] = u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes();
        let mut data = vec![0, page, high, low];
        data.extend(body);
        Ok(data)
    }

    // SPC-4 7.8.6: of the logical unit, then of the port.
    fn designators(&self, port: UnitPort<'_>) -> Vec<u8> {
        let mut all = Vec::new();
        // NAA 3h: locally assigned, 60 bits (SPC-4 7.8.6.6.4).
        let mut local = [0; 8];
        local.copy_from_slice(&self.id[8..]);
        local[0] = 0x30 | local[0] & 0xf;
        designator(&mut all, [0x01, 0x03], &local);
        // EUI-64 based, 16 bytes (SPC-4 7.8.6.5.4).
        designator(&mut all, [0x01, 0x02], &self.id);
        // T10 vendor identification, in ASCII.
        let mut vendor = self.vendor.to_vec();
        vendor.extend(self.product);
        vendor.extend(self.serial().into_bytes());
        designator(&mut all, [0x02, 0x01], &vendor);
        // PIV, and of the target port from here on; 5: iSCSI (SPC-4 7.6.1).
        let [high, low] = port.relative.to_be_bytes();
        designator(&mut all, [0x51, 0x94], &[0, 0, high, low]);
        let [high, low] = port.group.to_be_bytes();
        designator(&mut all, [0x51, 0x95], &[0, 0, high, low]);
        let target = &port.target[..port.target.len().min(TARGET_NAME_BYTES_MAX)];
        // SCSI name strings end with NUL and are padded to a multiple of four.
        let mut name = format!("{target},t,0x{:04x}\0", port.group).into_bytes();
        name.resize(name.len().next_multiple_of(4), 0);
        designator(&mut all, [0x53, 0x98], &name);
        all
    }

    // SBC-3 6.6.4.
    fn limits_page(&self) -> Vec<u8> {
        let (limits, mut body) = (&self.limits, vec![0; 60]);
        // WSNZ is 0: a WRITE SAME of no blocks is one of all.
        body[1] = limits.compare_blocks;
        let granularity = 1_u32 << (self.physical_shift - self.block_shift).min(15);
        put(&mut body, 2, &u16::try_from(granularity).unwrap_or(1).to_be_bytes());
        put(&mut body, 4, &limits.transfer_blocks.to_be_bytes());
        put(&mut body, 8, &limits.optimal_blocks.to_be_bytes());
        if self.is_thin {
            put(&mut body, 16, &limits.unmap_blocks.to_be_bytes());
            put(&mut body, 20, &limits.unmap_ranges.to_be_bytes());
            put(&mut body, 24, &granularity.to_be_bytes());
            // UGAVALID: aligned to the granularity.
            put(&mut body, 28, &0x8000_0000_u32.to_be_bytes());
        }
        put(&mut body, 32, &u64::from(limits.write_same_blocks).to_be_bytes());
        put(&mut body, 40, &u32::from(self.atomic_blocks).to_be_bytes());
        body
    }

    // SBC-3 6.6.5: LBPU, LBPWS, LBPRZ; thin.
    fn provisioning(&self) -> Vec<u8> {
        if self.is_thin { vec![0, 0xc4, 2, 0] } else { vec![0; 4] }
    }

    /// The data of READ CAPACITY(10) (SBC-3 5.15.2).
    #[must_use]
    pub fn capacity(&self) -> [u8; 8] {
        let mut data = [0; 8];
        let last = u32::try_from(self.block_count - 1).unwrap_or(u32::MAX);
        put(&mut data, 0, &last.to_be_bytes());
        put(&mut data, 4, &self.block_bytes().to_be_bytes());
        data
    }

    /// The data of READ CAPACITY(16) (SBC-3 5.16.2).
    #[must_use]
    pub fn capacity_long(&self) -> [u8; 32] {
        let mut data = [0; 32];
        put(&mut data, 0, &(self.block_count - 1).to_be_bytes());
        put(&mut data, 8, &self.block_bytes().to_be_bytes());
        data[13] = (self.physical_shift - self.block_shift) & 0xf;
        // LBPME, LBPRZ.
        data[14] = if self.is_thin { 0xc0 } else { 0 };
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
        let mut data = [0; 24];
        put(&mut data, 0, &20_u32.to_be_bytes());
        put(&mut data, 8, &first.to_be_bytes());
        let count = u32::try_from(self.block_count - first).unwrap_or(u32::MAX);
        put(&mut data, 16, &count.to_be_bytes());
        Ok(data)
    }
}

/// Standard INQUIRY data where there is no logical unit (SPC-4 6.6.2: qualifier 011b, type 1Fh).
pub(super) fn absent() -> Vec<u8> {
    let mut data = vec![0; 36];
    (data[0], data[2], data[3], data[4]) = (0x7f, 6, 0x12, 31);
    data[7] = 2;
    data[8..].fill(b' ');
    data
}

fn designator(all: &mut Vec<u8>, [codes, kind]: [u8; 2], bytes: &[u8]) {
    all.extend_from_slice(&[codes, kind, 0, u8::try_from(bytes.len()).unwrap_or(u8::MAX)]);
    all.extend_from_slice(bytes);
}

// SPC-4 7.8.7.
fn extended() -> Vec<u8> {
    let mut body = vec![0; 60];
    // SIMPSUP; V_SUP is not there: a cache is flushed or not.
    body[1] = 1;
    // LUICLR: a unit attention is cleared for one initiator.
    body[3] = 1;
    body
}

// SBC-3 6.6.2: no rotation.
fn characteristics() -> Vec<u8> {
    let mut body = vec![0; 60];
    body[1] = 1;
    body
}
