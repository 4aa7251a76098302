//! What a logical unit says of itself, as an initiator reads it (SPC-4 6.6, 6.11, 7.8; SBC-3 5.15,
//! 5.16, 6.5, 6.6): anything may be in there, and any of it may be missing.

use wire::{Opening, array, be16_at, be32_at, be64_at, read_opening};

use super::lun::Lun;

/// Standard INQUIRY data (SPC-4 6.6.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundInquiry {
    /// PERIPHERAL QUALIFIER: 0 if there is a logical unit.
    pub qualifier: u8,
    /// PERIPHERAL DEVICE TYPE: 0 for a disk.
    pub kind: u8,
    /// VERSION: 5 for SPC-3, 6 for SPC-4.
    pub version: u8,
    /// T10 VENDOR IDENTIFICATION. What is no printable text has been replaced here and below.
    pub vendor: String,
    /// PRODUCT IDENTIFICATION.
    pub product: String,
    /// PRODUCT REVISION LEVEL.
    pub revision: String,
}

/// READ CAPACITY (SBC-3 5.15, 5.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundCapacity {
    /// Blocks there are.
    pub block_count: u64,
    /// Bytes of each.
    pub block_bytes: u32,
    /// So many blocks, as a power of two, are one of the medium's.
    pub physical_exponent: u8,
    /// LBPME: blocks can be given back.
    pub is_thin: bool,
    /// LBPRZ: blocks that were given back are zeros.
    pub reads_zeros: bool,
    /// PROT_EN: there is more to a block than its bytes.
    pub is_protected: bool,
}

/// Block limits (VPD page B0h; SBC-3 6.6.4); 0 where nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoundLimits {
    /// Blocks that are read or written at once.
    pub transfer_blocks: u32,
    /// The same without being slower than in smaller parts.
    pub optimal_blocks: u32,
    /// Given back by one command.
    pub unmap_blocks: u32,
    /// Ranges of one command.
    pub unmap_ranges: u32,
    /// Written by one WRITE SAME.
    pub write_same_blocks: u64,
    /// Compared and written.
    pub compare_blocks: u8,
}

/// Logical block provisioning (VPD page B2h; SBC-3 6.6.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoundProvisioning {
    /// LBPU: UNMAP gives blocks back.
    pub has_unmap: bool,
    /// LBPWS: WRITE SAME(16) does.
    pub has_write_same: bool,
    /// LBPRZ: they are zeros then.
    pub reads_zeros: bool,
    /// PROVISIONING TYPE: 1 for resource, 2 for thin.
    pub kind: u8,
}

/// What tells a logical unit from others (VPD page 83h; SPC-4 7.8.6); the first of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundIds {
    /// EUI-64 based, of 16 bytes: as an NVMe namespace's NGUID.
    pub eui_long: Option<[u8; 16]>,
    /// EUI-64.
    pub eui: Option<[u8; 8]>,
    /// NAA, of 16 bytes.
    pub naa_long: Option<[u8; 16]>,
    /// NAA, of 8 bytes.
    pub naa: Option<[u8; 8]>,
    /// T10 vendor identification.
    pub vendor: Option<String>,
}

/// What MODE SENSE(6) says of a disk (SBC-3 6.5.1, 6.5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundMode {
    /// WP.
    pub is_write_protected: bool,
    /// DPOFUA: writes can be forced to the medium.
    pub has_forced: bool,
    /// WCE of the caching page: what is written is on the medium only when it was flushed or
    /// forced; `None` if that page is not there.
    pub has_write_cache: Option<bool>,
}

impl FoundInquiry {
    /// Reads it; `None` if it is too short.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<Self> {
        let data: &[u8; 36] = data.first_chunk()?;
        Some(Self {
            qualifier: data[0] >> 5,
            kind: data[0] & 0x1f,
            version: data[2],
            vendor: text(&data[8..16]),
            product: text(&data[16..32]),
            revision: text(&data[32..36]),
        })
    }

    /// Whether it is a disk.
    #[must_use]
    pub const fn is_disk(&self) -> bool {
        self.qualifier == 0 && self.kind == 0
    }
}

impl FoundCapacity {
    /// Reads what READ CAPACITY(16) has brought; `None` if it cannot be.
    #[must_use]
    pub fn read_long(data: &[u8]) -> Option<Self> {
        let data: &[u8; 16] = data.first_chunk()?;
        Some(Self {
            block_count: be64_at(data, 0).checked_add(1)?,
            block_bytes: be32_at(data, 8),
            physical_exponent: data[13] & 0xf,
            is_thin: data[14] & 0x80 != 0,
            reads_zeros: data[14] & 0x40 != 0,
            is_protected: data[12] & 1 != 0,
        })
    }

    /// Reads what READ CAPACITY(10) has brought; `None` if it cannot be, or says that there is more
    /// than it can say.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<Self> {
        let data: &[u8; 8] = data.first_chunk()?;
        let last = Some(be32_at(data, 0)).filter(|last| *last != u32::MAX)?;
        Some(Self {
            block_count: u64::from(last) + 1,
            block_bytes: be32_at(data, 4),
            physical_exponent: 0,
            is_thin: false,
            reads_zeros: false,
            is_protected: false,
        })
    }

    /// A block has two to the power of this many bytes; `None` if it has another number.
    #[must_use]
    pub fn block_shift(&self) -> Option<u8> {
        let is_power = self.block_bytes.is_power_of_two();
        is_power.then(|| u8::try_from(self.block_bytes.trailing_zeros()).unwrap_or(0))
    }
}

// The body of a page of vital product data, as much of it as there is (SPC-4 7.8.2).
fn body(data: &[u8], page: u8) -> Option<&[u8]> {
    let (head, rest) = data.split_first_chunk::<4>()?;
    let length = usize::from(be16_at(head, 2)).min(rest.len());
    (head[1] == page).then(|| &rest[..length])
}

/// The pages of vital product data there are (VPD page 00h).
#[must_use]
pub fn read_pages(data: &[u8]) -> Vec<u8> {
    body(data, 0x00).unwrap_or_default().to_vec()
}

/// A serial number (VPD page 80h).
#[must_use]
pub fn read_serial(data: &[u8]) -> Option<String> {
    body(data, 0x80).map(text)
}

/// Which opening of its medium it is, if its target says that (VPD page C0h).
#[must_use]
pub fn opening(data: &[u8]) -> Option<Opening> {
    read_opening(body(data, 0xc0)?)
}

/// Logical units there are, as REPORT LUNS says (SPC-4 6.33); those that have a number here.
#[must_use]
pub fn read_luns(data: &[u8]) -> Vec<Lun> {
    let Some((head, rest)) = data.split_first_chunk::<8>() else { return Vec::new() };
    let length = usize::try_from(be32_at(head, 0)).unwrap_or(usize::MAX).min(rest.len());
    rest[..length].chunks_exact(8).filter_map(|field| Lun::read(array(field, 0))).collect()
}

/// Whether a command is there, as REPORT SUPPORTED OPERATION CODES says of one (SPC-4 6.35.3).
#[must_use]
pub fn is_supported(data: &[u8]) -> bool {
    matches!(data.get(1).map(|flags| flags & 7), Some(3 | 5))
}

impl FoundLimits {
    /// Reads page B0h; `None` if it is another.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<Self> {
        let mut page = [0; 60];
        let body = body(data, 0xb0)?;
        let length = body.len().min(page.len());
        page[..length].copy_from_slice(&body[..length]);
        Some(Self {
            compare_blocks: page[1],
            transfer_blocks: be32_at(&page, 4),
            optimal_blocks: be32_at(&page, 8),
            unmap_blocks: be32_at(&page, 16),
            unmap_ranges: be32_at(&page, 20),
            write_same_blocks: be64_at(&page, 32),
        })
    }
}

impl FoundProvisioning {
    /// Reads page B2h; `None` if it is another.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<Self> {
        let body: &[u8; 3] = body(data, 0xb2)?.first_chunk()?;
        Some(Self {
            has_unmap: body[1] & 0x80 != 0,
            has_write_same: body[1] & 0x40 != 0,
            reads_zeros: body[1] & 0x1c != 0,
            kind: body[2] & 7,
        })
    }
}

impl FoundIds {
    /// Reads page 83h: what it says of the logical unit, not of ports.
    #[must_use]
    pub fn read(data: &[u8]) -> Self {
        let mut ids = Self::default();
        let mut rest = body(data, 0x83).unwrap_or_default();
        while let [_, kind, _, length, ..] = *rest {
            let Some(bytes) = rest.get(4..4 + usize::from(length)) else { break };
            // ASSOCIATION 0, and DESIGNATOR TYPE.
            match kind & 0x3f {
                0x01 => ids.vendor = ids.vendor.or_else(|| Some(text(bytes))),
                0x02 => {
                    ids.eui_long = ids.eui_long.or_else(|| bytes.try_into().ok());
                    ids.eui = ids.eui.or_else(|| bytes.try_into().ok());
                }
                0x03 => {
                    ids.naa_long = ids.naa_long.or_else(|| bytes.try_into().ok());
                    ids.naa = ids.naa.or_else(|| bytes.try_into().ok());
                }
                _ => {}
            }
            rest = &rest[4 + bytes.len()..];
        }
        ids
    }
}

impl FoundMode {
    /// Reads what MODE SENSE(6) has brought; `None` if it is too short.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<Self> {
        let head: &[u8; 4] = data.first_chunk()?;
        let mut rest = data.get(4 + usize::from(head[3])..).unwrap_or_default();
        let mut has_write_cache = None;
        while let [code, length, ..] = *rest {
            if code & 0x3f == 0x08 && length > 0 {
                has_write_cache = rest.get(2).map(|flags| flags & 4 != 0);
            }
            rest = rest.get(2 + usize::from(length)..).unwrap_or_default();
        }
        let (is_write_protected, has_forced) = (head[2] & 0x80 != 0, head[2] & 0x10 != 0);
        Some(Self { is_write_protected, has_forced, has_write_cache })
    }
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let printable = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    String::from_utf8_lossy(&field[..end]).trim().chars().map(printable).collect()
}
