//! Commands as an initiator writes them (SPC-4 6; SBC-3 5), and parameters that go with them.

use wire::put;

use super::cdb::Extent;

/// A command descriptor block; what is behind a shorter one is zeros.
pub type Cdb = [u8; 16];

const FUA: u8 = 1 << 3;
const UNMAP: u8 = 1 << 3;
/// Bytes of the parameters of UNMAP with one range (SBC-3 5.28.2).
pub const UNMAP_BYTES: usize = 24;

/// 00h.
pub const TEST_UNIT_READY: Cdb = [0; 16];
/// 25h.
pub const READ_CAPACITY: Cdb = with(0x25, 0);
/// 35h, of everything from the first block on (SBC-3 5.22: a count of 0).
pub const SYNCHRONIZE_CACHE: Cdb = with(0x35, 0);

const fn with(code: u8, second: u8) -> Cdb {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (code, second);
    cdb
}

/// 12h: a page of vital product data, or standard data.
#[must_use]
pub fn inquiry(page: Option<u8>, allocation: u16) -> Cdb {
    let mut cdb = with(0x12, u8::from(page.is_some()));
    cdb[2] = page.unwrap_or(0);
    put(&mut cdb, 3, &allocation.to_be_bytes());
    cdb
}

/// 1Ah: the values in force of a page, without block descriptors.
#[must_use]
pub const fn mode_sense(page: u8, allocation: u8) -> Cdb {
    let mut cdb = with(0x1a, 8);
    (cdb[2], cdb[4]) = (page, allocation);
    cdb
}

/// 9Eh/10h.
#[must_use]
pub fn read_capacity_long(allocation: u32) -> Cdb {
    let mut cdb = with(0x9e, 0x10);
    put(&mut cdb, 10, &allocation.to_be_bytes());
    cdb
}

/// A0h: logical units that are not well known.
#[must_use]
pub fn report_luns(allocation: u32) -> Cdb {
    let mut cdb = with(0xa0, 0);
    put(&mut cdb, 6, &allocation.to_be_bytes());
    cdb
}

/// A3h/0Ch: whether there is a command without service actions.
#[must_use]
pub fn report_opcode(code: u8, allocation: u32) -> Cdb {
    let mut cdb = with(0xa3, 0x0c);
    (cdb[2], cdb[3]) = (1, code);
    put(&mut cdb, 6, &allocation.to_be_bytes());
    cdb
}

/// 28h, or 88h where that has no room.
#[must_use]
pub fn read(extent: Extent) -> Cdb {
    on_blocks([0x28, 0x88], extent)
}

/// 2Ah, or 8Ah where that has no room.
#[must_use]
pub fn write(extent: Extent) -> Cdb {
    on_blocks([0x2a, 0x8a], extent)
}

// Commands of 10 bytes are those that every target has.
fn on_blocks([short, long]: [u8; 2], Extent { first, count, forced }: Extent) -> Cdb {
    let flags = if forced { FUA } else { 0 };
    if let (Ok(first), Ok(count)) = (u32::try_from(first), u16::try_from(count)) {
        let mut cdb = with(short, flags);
        put(&mut cdb, 2, &first.to_be_bytes());
        put(&mut cdb, 7, &count.to_be_bytes());
        return cdb;
    }
    let mut cdb = with(long, flags);
    put(&mut cdb, 2, &first.to_be_bytes());
    put(&mut cdb, 10, &count.to_be_bytes());
    cdb
}

/// 93h: the block that goes with it again and again; room may be given back if it `unmaps`.
#[must_use]
pub fn write_same(extent: Extent, unmaps: bool) -> Cdb {
    let mut cdb = with(0x93, if unmaps { UNMAP } else { 0 });
    put(&mut cdb, 2, &extent.first.to_be_bytes());
    put(&mut cdb, 10, &extent.count.to_be_bytes());
    cdb
}

/// 42h, of one range.
#[must_use]
pub const fn unmap() -> Cdb {
    let mut cdb = with(0x42, 0);
    // PARAMETER LIST LENGTH: [`UNMAP_BYTES`].
    cdb[8] = 24;
    cdb
}

/// What goes with [`unmap`].
#[must_use]
pub fn unmap_range(extent: Extent) -> [u8; UNMAP_BYTES] {
    let mut bytes = [0; UNMAP_BYTES];
    // What follows each of the lengths.
    (bytes[1], bytes[3]) = (22, 16);
    put(&mut bytes, 8, &extent.first.to_be_bytes());
    put(&mut bytes, 16, &extent.count.to_be_bytes());
    bytes
}
