//! Mode pages: settings of a logical unit (SPC-4 6.9 to 6.12, 7.5; SBC-3 6.5).
//!
//! Two bits can be changed, both of the control page: the format of sense data, and whether
//! initiators may write.

use super::cdb::PageControl;
use super::inquiry::UnitData;
use super::layout::cdb::mode_sense;
use super::layout::mode::{
    DPOFUA, PAGE_CODE, PAGE_HEADER_BYTES, PAGE_LENGTH, SPF_AND_CODE, WP, block, caching, control,
    long, short,
};
use super::sense::Sense;

/// The settings that initiators can change; the default is that after a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModeState {
    /// D_SENSE: sense data has descriptor format.
    pub has_descriptors: bool,
    /// SWP: the unit is software write-protected.
    pub is_write_protected: bool,
}

/// Supported pages, in order; none has subpages.
const PAGES: [u8; 4] = [0x01, caching::CODE, control::CODE, 0x1c];

/// The fields of a MODE SENSE command.
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
        return Err(Sense::wrong(mode_sense::SUBPAGE_CODE));
    }
    let pages: Vec<u8> = match asked.page {
        0x3f => PAGES.to_vec(),
        page if PAGES.contains(&page) => vec![page],
        _ => return Err(Sense::wrong(mode_sense::PAGE_CODE)),
    };
    let mut data = vec![0; header_bytes(asked.is_long)];
    let blocks = if asked.without_blocks { 0 } else { block::BYTES };
    if blocks > 0 {
        data.extend_from_slice(&block_descriptor(unit));
    }
    for page in pages {
        data.extend(values(page, asked.control, state, unit));
    }
    let mut specific = [0];
    WP.put(&mut specific, unit.is_read_only || state.is_write_protected);
    DPOFUA.put(&mut specific, true);
    let [specific] = specific;
    if asked.is_long {
        let length = u16::try_from(data.len() - long::BEFORE).unwrap_or(u16::MAX);
        long::LENGTH.put(&mut data, length);
        long::SPECIFIC.put(&mut data, specific);
        long::DESCRIPTORS.put(&mut data, u16::try_from(blocks).unwrap_or(0));
    } else {
        let length = u8::try_from(data.len() - short::BEFORE).unwrap_or(u8::MAX);
        short::LENGTH.put(&mut data, length);
        short::SPECIFIC.put(&mut data, specific);
        short::DESCRIPTORS.put(&mut data, u8::try_from(blocks).unwrap_or(0));
    }
    Ok(data)
}

// Bytes of a mode parameter header.
const fn header_bytes(is_long: bool) -> usize {
    if is_long { long::BYTES } else { short::BYTES }
}

// The block descriptor of a unit.
fn block_descriptor(unit: &UnitData) -> [u8; block::BYTES] {
    let mut descriptor = [0; block::BYTES];
    block::COUNT.put(&mut descriptor, u32::try_from(unit.block_count).unwrap_or(u32::MAX));
    block::LENGTH.put(&mut descriptor, unit.block_bytes());
    descriptor
}

/// A page with its header and the values that `control` selects.
fn values(page: u8, control: PageControl, state: ModeState, unit: &UnitData) -> Vec<u8> {
    let state = match control {
        PageControl::Current => state,
        PageControl::Default | PageControl::Saved => ModeState::default(),
        PageControl::Changeable => ModeState { has_descriptors: true, is_write_protected: true },
    };
    let is_mask = control == PageControl::Changeable;
    let length = if page == caching::CODE { 18 } else { 10 };
    let mut bytes = vec![0; PAGE_HEADER_BYTES + usize::from(length)];
    PAGE_CODE.put(&mut bytes, page);
    PAGE_LENGTH.put(&mut bytes, length);
    match page {
        caching::CODE if !is_mask => caching::WCE.put(&mut bytes, unit.has_write_cache),
        control::CODE => {
            control::D_SENSE.put(&mut bytes, state.has_descriptors);
            control::SWP.put(&mut bytes, state.is_write_protected);
            if !is_mask {
                // Unrestricted reordering (SPC-4 7.5.8); no limit to busy times.
                control::ALGORITHM.put(&mut bytes, 1);
                control::BUSY_TIMEOUT.put(&mut bytes, u16::MAX);
            }
        }
        _ => {}
    }
    bytes
}

/// The state after a MODE SELECT with the parameter list `data`.
pub(super) fn select(
    state: ModeState,
    unit: &UnitData,
    is_long: bool,
    data: &[u8],
) -> Result<ModeState, Sense> {
    if data.is_empty() {
        return Ok(state);
    }
    let header = header_bytes(is_long);
    if data.len() < header {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    // Only short block descriptors are supported.
    if is_long && long::LONGLBA.get(data) {
        return Err(Sense::wrong_parameter(0, long::LONGLBA));
    }
    let blocks = match is_long {
        true => usize::from(long::DESCRIPTORS.get(data)),
        false => usize::from(short::DESCRIPTORS.get(data)),
    };
    if blocks != 0 && blocks != block::BYTES {
        return Err(match is_long {
            true => Sense::wrong_parameter(0, long::DESCRIPTORS),
            false => Sense::wrong_parameter(0, short::DESCRIPTORS),
        });
    }
    let descriptor = data.get(header..header + blocks).ok_or(Sense::PARAMETER_LIST_LENGTH)?;
    if blocks > 0 {
        check_blocks(descriptor, unit, header)?;
    }
    let (mut at, mut state) = (header + blocks, state);
    while at < data.len() {
        let page = data.get(at..at + PAGE_HEADER_BYTES).ok_or(Sense::PARAMETER_LIST_LENGTH)?;
        // PS has no meaning here; no page has subpages.
        let (code, length) = (SPF_AND_CODE.get(page), usize::from(PAGE_LENGTH.get(page)));
        if !PAGES.contains(&code) {
            return Err(Sense::wrong_parameter(at, SPF_AND_CODE));
        }
        let current = values(code, PageControl::Current, state, unit);
        if PAGE_HEADER_BYTES + length != current.len() {
            return Err(Sense::wrong_parameter(at, PAGE_LENGTH));
        }
        let page = data.get(at..at + current.len()).ok_or(Sense::PARAMETER_LIST_LENGTH)?;
        let mask = values(code, PageControl::Changeable, state, unit);
        let bytes = page.iter().zip(&current).zip(&mask).enumerate().skip(PAGE_HEADER_BYTES);
        for (index, ((new, old), mask)) in bytes {
            if (new ^ old) & !mask != 0 {
                let byte = u16::try_from(at + index).unwrap_or(u16::MAX);
                return Err(Sense::in_parameters(byte, None));
            }
        }
        if code == control::CODE {
            state = ModeState {
                has_descriptors: control::D_SENSE.get(page),
                is_write_protected: control::SWP.get(page),
            };
        }
        at += current.len();
    }
    Ok(state)
}

// Checks that a block descriptor changes nothing: the number of blocks, 0 or FFFFFFFFh, and their
// length or 0 (SBC-3 6.5.2.2).
fn check_blocks(descriptor: &[u8], unit: &UnitData, at: usize) -> Result<(), Sense> {
    let count = block::COUNT.get(descriptor);
    let own = u32::try_from(unit.block_count).unwrap_or(u32::MAX);
    if count != 0 && count != u32::MAX && count != own {
        return Err(Sense::wrong_parameter(at, block::COUNT));
    }
    let length = block::LENGTH.get(descriptor);
    if length != 0 && length != unit.block_bytes() {
        return Err(Sense::wrong_parameter(at, block::LENGTH));
    }
    Ok(())
}
