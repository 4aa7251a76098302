//! Decodes a logical unit's description for an initiator (SPC-4 6.6, 6.11, 7.8; SBC-3 5.15, 5.16,
//! 6.5, 6.6). The data is not trusted: anything may be invalid or missing.

use wire::{Opening, Place as _, read_opening};

use super::layout::inquiry::{designator, limits, page, provisioning, standard};
use super::layout::mode::{self, caching};
use super::layout::report::{capacity, capacity_long, lun, luns, opcodes};
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
    /// T10 VENDOR IDENTIFICATION. Non-printable characters are replaced here and below.
    pub vendor: String,
    /// PRODUCT IDENTIFICATION.
    pub product: String,
    /// PRODUCT REVISION LEVEL.
    pub revision: String,
}

/// READ CAPACITY (SBC-3 5.15, 5.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundCapacity {
    /// Number of blocks.
    pub block_count: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Logical blocks of a physical block, as a power of two.
    pub physical_exponent: u8,
    /// LBPME: blocks can be deallocated.
    pub is_thin: bool,
    /// LBPRZ: deallocated blocks read as zeros.
    pub reads_zeros: bool,
    /// PROT_EN: blocks have protection information.
    pub is_protected: bool,
}

/// Block limits (VPD page B0h; SBC-3 6.6.4); 0 where the unit reports none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoundLimits {
    /// Blocks of a read or write at most.
    pub transfer_blocks: u32,
    /// Blocks of a read or write that is not slower than smaller ones.
    pub optimal_blocks: u32,
    /// Blocks of an UNMAP at most.
    pub unmap_blocks: u32,
    /// Ranges of an UNMAP at most.
    pub unmap_ranges: u32,
    /// Blocks of a WRITE SAME at most.
    pub write_same_blocks: u64,
    /// Blocks of a COMPARE AND WRITE at most.
    pub compare_blocks: u8,
}

/// Logical block provisioning (VPD page B2h; SBC-3 6.6.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoundProvisioning {
    /// LBPU: UNMAP deallocates blocks.
    pub has_unmap: bool,
    /// LBPWS: WRITE SAME(16) can deallocate blocks.
    pub has_write_same: bool,
    /// LBPRZ: deallocated blocks read as zeros.
    pub reads_zeros: bool,
    /// PROVISIONING TYPE: 1 for resource, 2 for thin.
    pub kind: u8,
}

/// Identifiers of a logical unit (VPD page 83h; SPC-4 7.8.6); the first of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundIds {
    /// EUI-64 based, of 16 bytes, like an NVMe namespace's NGUID.
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

/// A disk's mode parameters, from MODE SENSE(6) (SBC-3 6.5.1, 6.5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundMode {
    /// WP: the medium is write-protected.
    pub is_write_protected: bool,
    /// DPOFUA: writes can be forced to the medium.
    pub has_forced: bool,
    /// WCE of the caching page: writes are on the medium only after a flush or with FUA; `None`
    /// without that page.
    pub has_write_cache: Option<bool>,
}

impl FoundInquiry {
    /// Decodes standard INQUIRY data; `None` if it is too short.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<Self> {
        use standard::*;
        let data: &[u8; BYTES_MIN] = data.first_chunk()?;
        Some(Self {
            qualifier: QUALIFIER.get(data),
            kind: DEVICE_TYPE.get(data),
            version: VERSION.get(data),
            vendor: text(VENDOR.get(data)),
            product: text(PRODUCT.get(data)),
            revision: text(REVISION.get(data)),
        })
    }

    /// Whether the logical unit exists and is a disk.
    #[must_use]
    pub const fn is_disk(&self) -> bool {
        self.qualifier == 0 && self.kind == 0
    }
}

impl FoundCapacity {
    /// Decodes data of READ CAPACITY(16); `None` if it is invalid.
    #[must_use]
    pub fn read_long(data: &[u8]) -> Option<Self> {
        use capacity_long::*;
        let data: &[u8; BYTES_MIN] = data.first_chunk()?;
        Some(Self {
            block_count: LAST.get(data).checked_add(1)?,
            block_bytes: BLOCK_BYTES.get(data),
            physical_exponent: EXPONENT.get(data),
            is_thin: LBPME.get(data),
            reads_zeros: LBPRZ.get(data),
            is_protected: PROT_EN.get(data),
        })
    }

    /// Decodes data of READ CAPACITY(10); `None` if it is invalid or the disk has more than 2^32
    /// blocks.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<Self> {
        let data: &[u8; capacity::BYTES] = data.first_chunk()?;
        let last = Some(capacity::LAST.get(data)).filter(|last| *last != u32::MAX)?;
        Some(Self {
            block_count: u64::from(last) + 1,
            block_bytes: capacity::BLOCK_BYTES.get(data),
            physical_exponent: 0,
            is_thin: false,
            reads_zeros: false,
            is_protected: false,
        })
    }

    /// The size of a block as a power of two; `None` if it is none.
    #[must_use]
    pub fn block_shift(&self) -> Option<u8> {
        let is_power = self.block_bytes.is_power_of_two();
        is_power.then(|| u8::try_from(self.block_bytes.trailing_zeros()).unwrap_or(0))
    }
}

// A page of vital product data as far as present (SPC-4 7.8.2), and its body; `None` if it is
// another page.
fn page_of(data: &[u8], code: u8) -> Option<(&[u8], &[u8])> {
    let (header, rest) = data.split_at_checked(page::HEADER_BYTES)?;
    let length = usize::from(page::PAGE_LENGTH.get(header)).min(rest.len());
    let whole = &data[..page::HEADER_BYTES + length];
    (page::PAGE_CODE.get(header) == code).then_some((whole, &rest[..length]))
}

// The body of a page of vital product data.
fn body(data: &[u8], code: u8) -> Option<&[u8]> {
    page_of(data, code).map(|(_, body)| body)
}

/// The codes of supported pages (VPD page 00h).
#[must_use]
pub fn read_pages(data: &[u8]) -> Vec<u8> {
    body(data, page::SUPPORTED).unwrap_or_default().to_vec()
}

/// The serial number (VPD page 80h).
#[must_use]
pub fn read_serial(data: &[u8]) -> Option<String> {
    body(data, page::SERIAL).map(text)
}

/// The opening of its medium (VPD page C0h of afar); `None` if it is another page.
#[must_use]
pub fn opening(data: &[u8]) -> Option<Opening> {
    read_opening(body(data, page::OPENING)?)
}

/// Decodes data of REPORT LUNS (SPC-4 6.33); LUNs in unsupported formats are left out.
#[must_use]
pub fn read_luns(data: &[u8]) -> Vec<Lun> {
    let Some((header, rest)) = data.split_at_checked(luns::HEADER_BYTES) else {
        return Vec::new();
    };
    let length = usize::try_from(luns::LIST_LENGTH.get(header)).unwrap_or(usize::MAX);
    let (fields, _) = rest[..length.min(rest.len())].as_chunks::<{ lun::BYTES }>();
    fields.iter().filter_map(|field| Lun::read(*field)).collect()
}

/// Whether data of REPORT SUPPORTED OPERATION CODES says that the command is supported (SPC-4
/// 6.35.3).
#[must_use]
pub fn is_supported(data: &[u8]) -> bool {
    let is_long_enough = data.len() > usize::from(opcodes::SUPPORT.byte());
    is_long_enough && matches!(opcodes::SUPPORT.get(data), opcodes::STANDARD | opcodes::VENDORS)
}

impl FoundLimits {
    /// Decodes page B0h; `None` if it is another page.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<Self> {
        use limits::*;
        let (whole, _) = page_of(data, page::LIMITS)?;
        // The page is longer in each edition of SBC.
        let mut page = [0; BYTES];
        let length = whole.len().min(BYTES);
        page[..length].copy_from_slice(&whole[..length]);
        Some(Self {
            compare_blocks: COMPARE.get(&page),
            transfer_blocks: TRANSFER.get(&page),
            optimal_blocks: OPTIMAL.get(&page),
            unmap_blocks: UNMAP_BLOCKS.get(&page),
            unmap_ranges: UNMAP_RANGES.get(&page),
            write_same_blocks: WRITE_SAME.get(&page),
        })
    }
}

impl FoundProvisioning {
    /// Decodes page B2h; `None` if it is another page.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<Self> {
        use provisioning::*;
        let (whole, _) = page_of(data, page::PROVISIONING)?;
        let page: &[u8; BYTES_MIN] = whole.first_chunk()?;
        Some(Self {
            has_unmap: LBPU.get(page),
            has_write_same: LBPWS.get(page),
            reads_zeros: LBPRZ.get(page) != 0,
            kind: TYPE.get(page),
        })
    }
}

impl FoundIds {
    /// Decodes page 83h: designators of the logical unit, not those of ports.
    #[must_use]
    pub fn read(data: &[u8]) -> Self {
        use designator::*;
        let mut ids = Self::default();
        let mut rest = body(data, page::IDENTIFICATION).unwrap_or_default();
        while let Some((header, after)) = rest.split_at_checked(HEADER_BYTES) {
            let length = usize::from(LENGTH.get(header));
            let Some((bytes, next)) = after.split_at_checked(length) else { break };
            match (ASSOCIATION.get(header), TYPE.get(header)) {
                (OF_UNIT, T10_VENDOR) => ids.vendor = ids.vendor.or_else(|| Some(text(bytes))),
                (OF_UNIT, EUI_64) => {
                    ids.eui_long = ids.eui_long.or_else(|| bytes.try_into().ok());
                    ids.eui = ids.eui.or_else(|| bytes.try_into().ok());
                }
                (OF_UNIT, OF_NAA) => {
                    ids.naa_long = ids.naa_long.or_else(|| bytes.try_into().ok());
                    ids.naa = ids.naa.or_else(|| bytes.try_into().ok());
                }
                _ => {}
            }
            rest = next;
        }
        ids
    }
}

impl FoundMode {
    /// Decodes data of MODE SENSE(6); `None` if it is too short.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<Self> {
        use mode::{DPOFUA, PAGE_CODE, PAGE_HEADER_BYTES, PAGE_LENGTH, WP, short};
        let (header, rest) = data.split_at_checked(short::BYTES)?;
        let blocks = usize::from(short::DESCRIPTORS.get(header));
        let mut rest = rest.get(blocks..).unwrap_or_default();
        let mut has_write_cache = None;
        while rest.len() >= PAGE_HEADER_BYTES {
            let length = usize::from(PAGE_LENGTH.get(rest));
            if PAGE_CODE.get(rest) == caching::CODE && length > 0 {
                let is_there = rest.len() > PAGE_HEADER_BYTES;
                has_write_cache = is_there.then(|| caching::WCE.get(rest));
            }
            rest = rest.get(PAGE_HEADER_BYTES + length..).unwrap_or_default();
        }
        let specific = [short::SPECIFIC.get(header)];
        let (is_write_protected, has_forced) = (WP.get(&specific), DPOFUA.get(&specific));
        Some(Self { is_write_protected, has_forced, has_write_cache })
    }
}

// A text field up to its first NUL, trimmed, with control characters replaced.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let printable = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    String::from_utf8_lossy(&field[..end]).trim().chars().map(printable).collect()
}
