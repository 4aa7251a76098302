//! Identification of a logical unit.

use nvme::log::AnaState;
use nvme::{NamespaceIds, Opening};
use scsi::found::{
    FoundCapacity, FoundIds, FoundInquiry, FoundLimits, FoundMode, FoundProvisioning, is_supported,
    opening, read_luns, read_pages, read_serial,
};
use scsi::{Lun, SenseKey, ask};
use workload::{fnv64, fnv64_text};

use crate::{HostError, Shape as DiskShape};
use backend::Geometry;
use sys::world::Machine;

use super::IscsiUri;
use super::command::Shape;
use super::config::{InitiatorConfig, SessionNumber};
use super::fate::IN_TRANSITION;
use super::session::Session;

/// A logical unit that is a disk, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentifiedUnit {
    /// Its LUN.
    pub lun: Lun,
    /// INQUIRY.
    pub inquiry: FoundInquiry,
    /// READ CAPACITY.
    pub capacity: FoundCapacity,
    /// Page 80h of vital product data.
    pub serial: Option<String>,
    /// Page 83h.
    pub ids: FoundIds,
    /// Page C0h, if the target is afar's.
    pub opening: Option<Opening>,
    /// Page B0h.
    pub limits: FoundLimits,
    /// Page B2h.
    pub provisioning: FoundProvisioning,
    /// MODE SENSE, if the unit supports it.
    pub mode: Option<FoundMode>,
    /// Whether the unit supports WRITE SAME(16).
    pub has_write_same: bool,
}

/// Allocation lengths: what every target supports, and for REPORT LUNS.
const ANSWER_BYTES: u16 = 252;
const LUNS_BYTES: u32 = 8 + 8 * 1024;
/// Bytes that a command transfers at most, also if the unit sets no limit.
const TRANSFER_MOST: u32 = 8 << 20;
/// Blocks of an UNMAP or WRITE SAME if the unit sets no limit: the most that other initiators use.
const BLOCKS_MOST: u32 = 0x7f_ffff;
const LOOK: &str = "look at a logical unit";

/// Logs in, identifies the logical unit that the URI names, or all disks of the target, and logs
/// out.
///
/// # Errors
/// When it cannot be reached, does not exist, or is no disk.
pub fn identify(
    uri: &IscsiUri,
    config: &InitiatorConfig,
) -> Result<Vec<IdentifiedUnit>, HostError> {
    let mut session = Session::begin(&Machine, uri, config, SessionNumber(0), 1)?;
    let mut found = Vec::new();
    match uri.lun {
        Some(lun) => found.push(look(&mut session, lun)?),
        None => {
            for lun in luns(&mut session)? {
                if is_disk(&mut session, lun)? {
                    found.push(look(&mut session, lun)?);
                }
            }
        }
    }
    session.log_out();
    if found.is_empty() { Err(no_disk()) } else { Ok(found) }
}

// The error for an answer that violates the protocol.
fn wrong(reason: String) -> HostError {
    HostError::Protocol { operation: LOOK, reason }
}

// The error that the target has no disk.
fn no_disk() -> HostError {
    wrong("the target has no disk".to_owned())
}

// REPORT LUNS.
fn luns(session: &mut Session) -> Result<Vec<Lun>, HostError> {
    let first = Lun::FIRST;
    let data =
        session.ask("ask for logical units", first, ask::report_luns(LUNS_BYTES), LUNS_BYTES)?;
    Ok(read_luns(&data))
}

// The standard INQUIRY data.
fn inquiry(session: &mut Session, lun: Lun) -> Result<FoundInquiry, HostError> {
    let bytes = u16::from(u8::MAX);
    let data = session.ask("INQUIRY", lun, ask::inquiry(None, bytes), bytes.into())?;
    FoundInquiry::read(&data).ok_or_else(|| wrong("INQUIRY brings too little".to_owned()))
}

// Returns whether the logical unit is a disk, by its INQUIRY data.
fn is_disk(session: &mut Session, lun: Lun) -> Result<bool, HostError> {
    inquiry(session, lun).map(|found| found.is_disk())
}

/// The LUN that a URI names, or the first one that is a disk.
pub(super) fn find(session: &mut Session, uri: &IscsiUri) -> Result<Lun, HostError> {
    if let Some(lun) = uri.lun {
        return Ok(lun);
    }
    for lun in luns(session)? {
        if is_disk(session, lun)? {
            return Ok(lun);
        }
    }
    Err(no_disk())
}

/// Identifies a logical unit.
pub(super) fn look(session: &mut Session, lun: Lun) -> Result<IdentifiedUnit, HostError> {
    let inquiry = inquiry(session, lun)?;
    if !inquiry.is_disk() {
        let is_there = inquiry.qualifier == 0;
        let what = if is_there { "is no disk" } else { "is not there" };
        return Err(wrong(format!("logical unit {} {what}", lun.number())));
    }
    session.settle(lun)?;
    let capacity = capacity(session, lun)?;
    // Only listed pages are requested: some targets fail otherwise.
    let pages = page(session, lun, 0x00)?.map_or_else(Vec::new, |data| read_pages(&data));
    let mut listed = |of: u8| match pages.contains(&of) {
        true => page(session, lun, of),
        false => Ok(None),
    };
    let serial = listed(0x80)?.and_then(|data| read_serial(&data));
    let ids = listed(0x83)?.map(|data| FoundIds::read(&data)).unwrap_or_default();
    let limits = listed(0xb0)?.and_then(|data| FoundLimits::read(&data)).unwrap_or_default();
    let opening = listed(0xc0)?.and_then(|data| opening(&data));
    let provisioning = listed(0xb2)?.and_then(|data| FoundProvisioning::read(&data));
    let mode = mode(session, lun)?;
    let has_write_same = has_write_same(session, lun)? || limits.write_same_blocks > 0;
    let provisioning = provisioning.unwrap_or_default();
    Ok(IdentifiedUnit {
        lun,
        inquiry,
        capacity,
        serial,
        ids,
        opening,
        limits,
        provisioning,
        mode,
        has_write_same,
    })
}

/// The opening of a logical unit's medium; `None` if the target does not report it.
pub(super) fn ask_opening(session: &mut Session, lun: Lun) -> Result<Option<Opening>, HostError> {
    Ok(page(session, lun, 0xc0)?.and_then(|data| opening(&data)))
}

// A page of vital product data; `None` if the unit refuses it.
fn page(session: &mut Session, lun: Lun, page: u8) -> Result<Option<Vec<u8>>, HostError> {
    let cdb = ask::inquiry(Some(page), ANSWER_BYTES);
    session.try_ask("INQUIRY of a page", lun, cdb, ANSWER_BYTES.into()).map(Result::ok)
}

/// The unit's current capacity, if its blocks are supported.
pub(super) fn capacity(session: &mut Session, lun: Lun) -> Result<FoundCapacity, HostError> {
    let long = session.try_ask("READ CAPACITY(16)", lun, ask::read_capacity_long(32), 32)?;
    let found = match long {
        Ok(data) => FoundCapacity::read_long(&data),
        // Disks of less than 2 TiB need not have it.
        Err(_) => FoundCapacity::read(&session.ask("READ CAPACITY", lun, ask::READ_CAPACITY, 8)?),
    };
    let found = found.ok_or_else(|| wrong("READ CAPACITY says what cannot be".to_owned()))?;
    let reason = match found.block_shift() {
        _ if found.is_protected => "protection information in its blocks".to_owned(),
        Some(9..=16) => return Ok(found),
        _ => format!("blocks of {} bytes, which are not supported", found.block_bytes),
    };
    Err(wrong(format!("logical unit {} has {reason}", lun.number())))
}

/// The unit's access state over this path, as an ANA state (SPC-4 5.15.2).
pub(super) fn access_state(session: &mut Session, lun: Lun) -> Result<AnaState, HostError> {
    let operation = "ask whether the logical unit is ready";
    match session.try_ask(operation, lun, ask::TEST_UNIT_READY, 0)? {
        Err(Some(sense)) if sense.key == SenseKey::NotReady => Ok(match sense.code {
            IN_TRANSITION => AnaState::Change,
            _ => AnaState::Inaccessible,
        }),
        // A reservation conflict means that the unit is accessible, too.
        Ok(_) | Err(_) => Ok(AnaState::Optimized),
    }
}

// The mode parameters, from the caching page or all pages; `None` if neither is supported.
fn mode(session: &mut Session, lun: Lun) -> Result<Option<FoundMode>, HostError> {
    for page in [0x08, 0x3f] {
        let allocation = u8::try_from(ANSWER_BYTES).unwrap_or(u8::MAX);
        let cdb = ask::mode_sense(page, allocation);
        if let Ok(data) = session.try_ask("MODE SENSE", lun, cdb, ANSWER_BYTES.into())? {
            return Ok(FoundMode::read(&data));
        }
    }
    Ok(None)
}

// Whether the unit lists WRITE SAME(16) among its operation codes.
fn has_write_same(session: &mut Session, lun: Lun) -> Result<bool, HostError> {
    const BYTES: u32 = 64;
    let cdb = ask::report_opcode(0x93, BYTES);
    let told = session.try_ask("REPORT SUPPORTED OPERATION CODES", lun, cdb, BYTES)?;
    Ok(told.is_ok_and(|data| is_supported(&data)))
}

impl IdentifiedUnit {
    /// The unit's size and blocks.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        let block_shift = self.capacity.block_shift().unwrap_or(9);
        let block_bytes = 1 << block_shift;
        Geometry {
            block_shift,
            block_count: self.capacity.block_count,
            optimal_bytes: block_bytes,
            atomic_bytes: block_bytes,
            is_read_only: false,
        }
    }

    /// Bytes that one command may transfer.
    #[must_use]
    pub fn transfer_bytes(&self) -> u32 {
        let blocks = match self.limits.transfer_blocks {
            0 => u64::from(u32::MAX),
            blocks => u64::from(blocks),
        };
        let bytes = blocks << self.geometry().block_shift;
        u32::try_from(bytes).unwrap_or(u32::MAX).min(TRANSFER_MOST)
    }

    /// Whether deallocated blocks read as zeros.
    #[must_use]
    pub const fn reads_zeros(&self) -> bool {
        self.provisioning.reads_zeros || self.capacity.reads_zeros
    }

    /// The properties that shape its commands.
    pub(super) fn shape(&self) -> Shape {
        let or_most = |blocks: u64| match blocks {
            0 => BLOCKS_MOST,
            blocks => u32::try_from(blocks).unwrap_or(u32::MAX).min(BLOCKS_MOST),
        };
        let has_unmap = self.provisioning.has_unmap;
        let mode = self.mode;
        Shape {
            lun: self.lun,
            block_shift: self.geometry().block_shift,
            // A unit that does not report it may have a volatile cache.
            has_write_cache: mode.and_then(|mode| mode.has_write_cache).unwrap_or(true),
            has_forced: mode.is_some_and(|mode| mode.has_forced),
            unmap_blocks: if has_unmap { or_most(self.limits.unmap_blocks.into()) } else { 0 },
            write_same_blocks: match self.has_write_same {
                true => or_most(self.limits.write_same_blocks),
                false => 0,
            },
            same_unmaps: self.provisioning.has_write_same,
            reads_zeros: self.reads_zeros(),
        }
    }

    /// The properties that shape requests of a disk.
    pub(super) fn disk_shape(&self) -> DiskShape {
        let shape = self.shape();
        DiskShape {
            block_shift: shape.block_shift,
            transfer_bytes: self.transfer_bytes(),
            has_write_zeroes: shape.write_same_blocks > 0,
            zeroes_deallocate: shape.same_unmaps && shape.reads_zeros,
            has_dataset_management: shape.has_discard(),
            reads_zeros: shape.reads_zeros,
        }
    }

    /// Its identifiers in the form of a namespace's: a medium served over both protocols has the
    /// same.
    pub(super) fn namespace_ids(&self) -> NamespaceIds {
        let FoundIds { eui_long, eui, naa_long, naa, vendor } = &self.ids;
        let nguid = eui_long.or(*naa_long).unwrap_or_default();
        let mut ids = NamespaceIds { nguid, ..NamespaceIds::default() };
        if ids.nguid == [0; 16] {
            ids.eui64 = eui.or(*naa).unwrap_or_default();
        }
        let text = vendor.as_ref().or(self.serial.as_ref());
        if let (true, Some(text)) = (ids.is_unknown(), text.filter(|text| !text.is_empty())) {
            let digest = fnv64_text(text);
            ids.uuid[..8].copy_from_slice(&digest.to_be_bytes());
            ids.uuid[8..].copy_from_slice(&fnv64(digest).to_be_bytes());
        }
        ids
    }
}
