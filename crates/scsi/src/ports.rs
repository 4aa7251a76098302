//! Asymmetric access states of target ports, which the target alone sets (SPC-4 5.15.2, 6.37).
//!
//! Each port is a target port group of its own, numbered by its relative identifier.

use super::layout::report::port_groups as layout;
use super::sense::Sense;

/// The access state of a port (SPC-4 6.37: ASYMMETRIC ACCESS STATE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum PortState {
    /// Active/optimized: no other port performs better.
    #[default]
    Optimized = 0x0,
    /// Active/non-optimized: other ports perform better.
    NonOptimized = 0x1,
    /// Standby: no reads and writes now, but perhaps soon.
    Standby = 0x2,
    /// Unavailable.
    Unavailable = 0x3,
    /// In transition to another state.
    Transitioning = 0xf,
}

/// States that a port can have: T_SUP, U_SUP, S_SUP, AN_SUP, AO_SUP (SPC-4 6.37).
const SUPPORTED_STATES: u8 = 0x8f;
/// RETURN DATA FORMAT of the extended header.
const EXTENDED: u8 = 1;

impl PortState {
    /// Checks that a port in this state allows reads and writes.
    ///
    /// # Errors
    /// The sense with which reads and writes end.
    pub const fn check(self) -> Result<(), Sense> {
        match self {
            Self::Optimized | Self::NonOptimized => Ok(()),
            Self::Standby => Err(Sense::PORT_IN_STANDBY),
            Self::Unavailable => Err(Sense::PORT_UNAVAILABLE),
            Self::Transitioning => Err(Sense::PORT_IN_TRANSITION),
        }
    }
}

/// The data of REPORT TARGET PORT GROUPS (SPC-4 6.37), of all ports in order.
pub(super) fn report(states: &[PortState], is_extended: bool) -> Vec<u8> {
    use layout::*;
    let mut data = vec![0; if is_extended { EXTENDED_BYTES } else { HEADER_BYTES }];
    if is_extended {
        FORMAT.put(&mut data, EXTENDED);
    }
    for (state, number) in states.iter().zip(1_u16..) {
        let mut group = [0; GROUP_BYTES];
        STATE.put(&mut group, *state as u8);
        SUPPORTED.put(&mut group, SUPPORTED_STATES);
        GROUP.put(&mut group, number);
        COUNT.put(&mut group, 1);
        PORT.put(&mut group, number);
        data.extend_from_slice(&group);
    }
    let length = u32::try_from(data.len() - HEADER_BYTES).unwrap_or(u32::MAX);
    LENGTH.put(&mut data, length);
    data
}
