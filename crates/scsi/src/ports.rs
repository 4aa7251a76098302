//! How well a logical unit is reached through each target port: asymmetric access, which the
//! target alone decides about (SPC-4 5.15.2, 6.37).
//!
//! Each port is a target port group of its own, with its relative identifier for a number.

use super::layout::report::port_groups as layout;
use super::sense::Sense;

/// How well (SPC-4 6.37: ASYMMETRIC ACCESS STATE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum PortState {
    /// As well as through any other.
    #[default]
    Optimized = 0x0,
    /// Others do better.
    NonOptimized = 0x1,
    /// It is not read or written, but may be soon.
    Standby = 0x2,
    /// It is not there.
    Unavailable = 0x3,
    /// It is going to be another.
    Transitioning = 0xf,
}

/// States that a port can have: T_SUP, U_SUP, S_SUP, AN_SUP, AO_SUP (SPC-4 6.37).
const SUPPORTED_STATES: u8 = 0x8f;
/// RETURN DATA FORMAT of the extended header.
const EXTENDED: u8 = 1;

impl PortState {
    /// Whether it can be read and written through a port.
    ///
    /// # Errors
    /// What commands end with that read or write.
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
