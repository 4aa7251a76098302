//! What can be set: mode pages (SPC-4 6.9 to 6.12, 7.5; SBC-3 6.5).
//!
//! Two bits can be changed, both of the control page: the format of sense data, and whether
//! initiators may write.

use wire::{be16_at, be24_at, be32_at, put};

use super::cdb::PageControl;
use super::inquiry::UnitData;
use super::sense::Sense;

/// What initiators have set; as after a reset at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModeState {
    /// D_SENSE: sense data has descriptors.
    pub has_descriptors: bool,
    /// SWP: it is not to be written.
    pub is_write_protected: bool,
}

const D_SENSE: u8 = 1 << 2;
const SWP: u8 = 1 << 3;
/// Pages there are, in order; all of them have no subpages.
const PAGES: [u8; 4] = [0x01, 0x08, 0x0a, 0x1c];
/// Bytes of a short block descriptor (SBC-3 6.5.2.2).
const BLOCK_BYTES: usize = 8;

/// Which pages are asked for, and which of their values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) is_long: bool,
    pub(super) without_blocks: bool,
    pub(super) control: PageControl,
    pub(super) page: u8,
    pub(super) subpage: u8,
}

/// The data of MODE SENSE.
pub(super) fn sense(state: ModeState, unit: &UnitData, asked: Asked) -> Result<Vec<u8>, Sense> {
    if asked.control == PageControl::Saved {
        return Err(Sense::SAVING_NOT_SUPPORTED);
    }
    if !matches!(asked.subpage, 0x00 | 0xff) {
        return Err(Sense::in_cdb(3, None));
    }
    let pages: Vec<u8> = match asked.page {
        0x3f => PAGES.to_vec(),
        page if PAGES.contains(&page) => vec![page],
        _ => return Err(Sense::in_cdb(2, Some(5))),
    };
    let header = if asked.is_long { 8 } else { 4 };
    let mut data = vec![0; header];
    let blocks = if asked.without_blocks { 0 } else { BLOCK_BYTES };
    if blocks > 0 {
        data.extend_from_slice(&block_descriptor(unit));
    }
    for page in pages {
        data.extend(values(page, asked.control, state, unit));
    }
    // WP, DPOFUA (SBC-3 6.5.1).
    let is_protected = unit.is_read_only || state.is_write_protected;
    let specific = u8::from(is_protected) << 7 | 0x10;
    if asked.is_long {
        let length = u16::try_from(data.len() - 2).unwrap_or(u16::MAX);
        put(&mut data, 0, &length.to_be_bytes());
        (data[3], data[7]) = (specific, u8::try_from(blocks).unwrap_or(0));
    } else {
        data[0] = u8::try_from(data.len() - 1).unwrap_or(u8::MAX);
        (data[2], data[3]) = (specific, u8::try_from(blocks).unwrap_or(0));
    }
    Ok(data)
}

fn block_descriptor(unit: &UnitData) -> [u8; BLOCK_BYTES] {
    let mut descriptor = [0; BLOCK_BYTES];
    let count = u32::try_from(unit.block_count).unwrap_or(u32::MAX);
    put(&mut descriptor, 0, &count.to_be_bytes());
    put(&mut descriptor, 5, &unit.block_bytes().to_be_bytes()[1..]);
    descriptor
}

/// A page with its header.
fn values(page: u8, control: PageControl, state: ModeState, unit: &UnitData) -> Vec<u8> {
    let state = match control {
        PageControl::Current => state,
        PageControl::Default | PageControl::Saved => ModeState::default(),
        PageControl::Changeable => ModeState { has_descriptors: true, is_write_protected: true },
    };
    let is_mask = control == PageControl::Changeable;
    let length = if page == 0x08 { 18 } else { 10 };
    let mut bytes = vec![0; usize::from(length) + 2];
    (bytes[0], bytes[1]) = (page, length);
    match page {
        // WCE (SBC-3 6.5.5).
        0x08 if !is_mask => bytes[2] = u8::from(unit.has_write_cache) << 2,
        0x0a => {
            bytes[2] = if state.has_descriptors { D_SENSE } else { 0 };
            bytes[4] = if state.is_write_protected { SWP } else { 0 };
            if !is_mask {
                // Commands are reordered at will (SPC-4 7.5.8); no limit to how long one is busy.
                bytes[3] = 0x10;
                put(&mut bytes, 8, &u16::MAX.to_be_bytes());
            }
        }
        _ => {}
    }
    bytes
}

/// What MODE SELECT leaves, having brought `data`.
pub(super) fn select(
    state: ModeState,
    unit: &UnitData,
    is_long: bool,
    data: &[u8],
) -> Result<ModeState, Sense> {
    if data.is_empty() {
        return Ok(state);
    }
    let header = if is_long { 8 } else { 4 };
    if data.len() < header {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    // LONGLBA: descriptors are short here.
    if is_long && data[4] & 1 != 0 {
        return Err(Sense::in_parameters(4, Some(0)));
    }
    let blocks = if is_long { usize::from(be16_at(data, 6)) } else { usize::from(data[3]) };
    let blocks_at = if is_long { 6 } else { 3 };
    if blocks != 0 && blocks != BLOCK_BYTES {
        return Err(Sense::in_parameters(blocks_at, None));
    }
    let descriptor = data.get(header..header + blocks).ok_or(Sense::PARAMETER_LIST_LENGTH)?;
    if blocks > 0 {
        check_blocks(descriptor, unit, header)?;
    }
    let (mut at, mut state) = (header + blocks, state);
    while at < data.len() {
        let page = data.get(at..at + 2).ok_or(Sense::PARAMETER_LIST_LENGTH)?;
        let byte = u16::try_from(at).unwrap_or(u16::MAX);
        // PS has no meaning here; SPF: no page has subpages.
        let (code, length) = (page[0] & 0x7f, usize::from(page[1]));
        if !PAGES.contains(&code) {
            return Err(Sense::in_parameters(byte, Some(6)));
        }
        let current = values(code, PageControl::Current, state, unit);
        if length + 2 != current.len() {
            return Err(Sense::in_parameters(byte + 1, None));
        }
        let page = data.get(at..at + current.len()).ok_or(Sense::PARAMETER_LIST_LENGTH)?;
        let mask = values(code, PageControl::Changeable, state, unit);
        for (index, ((new, old), mask)) in page.iter().zip(&current).zip(&mask).enumerate().skip(2)
        {
            if (new ^ old) & !mask != 0 {
                let offset = u16::try_from(index).unwrap_or(0);
                return Err(Sense::in_parameters(byte + offset, None));
            }
        }
        if code == 0x0a {
            state = ModeState {
                has_descriptors: page[2] & D_SENSE != 0,
                is_write_protected: page[4] & SWP != 0,
            };
        }
        at += current.len();
    }
    Ok(state)
}

// Blocks as they are: their number or 0 or all, their length or 0 (SBC-3 6.5.2.2).
fn check_blocks(descriptor: &[u8], unit: &UnitData, at: usize) -> Result<(), Sense> {
    let count = be32_at(descriptor, 0);
    let own = u32::try_from(unit.block_count).unwrap_or(u32::MAX);
    let byte = u16::try_from(at).unwrap_or(0);
    if count != 0 && count != u32::MAX && count != own {
        return Err(Sense::in_parameters(byte, None));
    }
    let length = be24_at(descriptor, 5);
    if length != 0 && length != unit.block_bytes() {
        return Err(Sense::in_parameters(byte + 5, None));
    }
    Ok(())
}
