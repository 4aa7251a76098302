//! Commands as an initiator writes them (SPC-4 6; SBC-3 5), and their parameter lists.

use super::cdb::Extent;
use super::layout::cdb as layout;
use super::layout::report::unmap as list;

/// A command descriptor block; a shorter one is padded with zeros.
pub type Cdb = [u8; 16];

/// Bytes of the parameters of UNMAP with one range (SBC-3 5.28.2).
pub const UNMAP_BYTES: usize = list::HEADER_BYTES + list::DESCRIPTOR_BYTES;

/// TEST UNIT READY (00h).
pub const TEST_UNIT_READY: Cdb = [0; 16];
/// READ CAPACITY(10) (25h).
pub const READ_CAPACITY: Cdb = with(0x25);
/// SYNCHRONIZE CACHE(10) (35h) of all blocks (SBC-3 5.22: a count of 0).
pub const SYNCHRONIZE_CACHE: Cdb = with(0x35);

// A CDB with this operation code.
const fn with(code: u8) -> Cdb {
    let mut cdb = [0; 16];
    layout::OPERATION_CODE.put(&mut cdb, code);
    cdb
}

// A CDB with this operation code and service action.
const fn with_action(code: u8, action: u8) -> Cdb {
    let mut cdb = with(code);
    layout::SERVICE_ACTION.put(&mut cdb, action);
    cdb
}

/// INQUIRY (12h): a page of vital product data; `None` for standard data.
#[must_use]
pub fn inquiry(page: Option<u8>, allocation: u16) -> Cdb {
    use layout::inquiry::{ALLOCATION_LENGTH, EVPD, PAGE_CODE};
    let mut cdb = with(0x12);
    EVPD.put(&mut cdb, page.is_some());
    PAGE_CODE.put(&mut cdb, page.unwrap_or(0));
    ALLOCATION_LENGTH.put(&mut cdb, allocation);
    cdb
}

/// MODE SENSE(6) (1Ah): the current values of a page, without block descriptors.
#[must_use]
pub const fn mode_sense(page: u8, allocation: u8) -> Cdb {
    use layout::mode_sense::{DBD, LENGTH_6, PAGE_CODE};
    let mut cdb = with(0x1a);
    DBD.put(&mut cdb, true);
    PAGE_CODE.put(&mut cdb, page);
    LENGTH_6.put(&mut cdb, allocation);
    cdb
}

/// READ CAPACITY(16) (9Eh/10h).
#[must_use]
pub fn read_capacity_long(allocation: u32) -> Cdb {
    let mut cdb = with_action(0x9e, 0x10);
    layout::capacity::ALLOCATION_LENGTH.put(&mut cdb, allocation);
    cdb
}

/// REPORT LUNS (A0h), without well-known logical units.
#[must_use]
pub fn report_luns(allocation: u32) -> Cdb {
    let mut cdb = with(0xa0);
    layout::report::ALLOCATION_LENGTH.put(&mut cdb, allocation);
    cdb
}

/// REPORT SUPPORTED OPERATION CODES (A3h/0Ch) for one command without service actions.
#[must_use]
pub fn report_opcode(code: u8, allocation: u32) -> Cdb {
    use layout::report::{ALLOCATION_LENGTH, CODE, OPTIONS, REQUESTED_CODE};
    let mut cdb = with_action(0xa3, 0x0c);
    OPTIONS.put(&mut cdb, CODE);
    REQUESTED_CODE.put(&mut cdb, code);
    ALLOCATION_LENGTH.put(&mut cdb, allocation);
    cdb
}

/// READ(10) (28h), or READ(16) (88h) if the extent does not fit.
#[must_use]
pub fn read(extent: Extent) -> Cdb {
    on_blocks([0x28, 0x88], extent)
}

/// WRITE(10) (2Ah), or WRITE(16) (8Ah) if the extent does not fit.
#[must_use]
pub fn write(extent: Extent) -> Cdb {
    on_blocks([0x2a, 0x8a], extent)
}

// The 10-byte command, which every target has, if the extent fits; otherwise the 16-byte one.
fn on_blocks([short, long]: [u8; 2], Extent { first, count, forced }: Extent) -> Cdb {
    use layout::blocks::{FUA, LBA_10, LBA_16, LENGTH_10, LENGTH_16};
    if let (Ok(first), Ok(count)) = (u32::try_from(first), u16::try_from(count)) {
        let mut cdb = with(short);
        FUA.put(&mut cdb, forced);
        LBA_10.put(&mut cdb, first);
        LENGTH_10.put(&mut cdb, count);
        return cdb;
    }
    let mut cdb = with(long);
    FUA.put(&mut cdb, forced);
    LBA_16.put(&mut cdb, first);
    LENGTH_16.put(&mut cdb, count);
    cdb
}

/// WRITE SAME(16) (93h): writes one block repeatedly; with `unmaps` blocks may be deallocated.
#[must_use]
pub fn write_same(extent: Extent, unmaps: bool) -> Cdb {
    use layout::blocks::{LBA_16, LENGTH_16, UNMAP};
    let mut cdb = with(0x93);
    UNMAP.put(&mut cdb, unmaps);
    LBA_16.put(&mut cdb, extent.first);
    LENGTH_16.put(&mut cdb, extent.count);
    cdb
}

/// UNMAP (42h) of one range.
#[must_use]
pub fn unmap() -> Cdb {
    let mut cdb = with(0x42);
    layout::blocks::LENGTH_10.put(&mut cdb, length(UNMAP_BYTES));
    cdb
}

/// The parameter list of [`unmap`].
#[must_use]
pub fn unmap_range(extent: Extent) -> [u8; UNMAP_BYTES] {
    use list::{BEFORE, COUNT, DATA_LENGTH, DESCRIPTOR_BYTES, HEADER_BYTES, LBA, LENGTH};
    let mut bytes = [0; UNMAP_BYTES];
    DATA_LENGTH.put(&mut bytes, length(UNMAP_BYTES - BEFORE));
    LENGTH.put(&mut bytes, length(DESCRIPTOR_BYTES));
    let descriptor = &mut bytes[HEADER_BYTES..];
    LBA.put(descriptor, extent.first);
    COUNT.put(descriptor, extent.count);
    bytes
}

// A length for a 16-bit field, which is always large enough.
fn length(bytes: usize) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}
