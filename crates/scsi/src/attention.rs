//! Unit attentions: events that an initiator learns with its next command (SAM-5 5.14).

use super::sense::{Sense, SenseKey};

/// A unit attention condition; the first of this list is reported first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Attention {
    /// The logical unit is new to this initiator.
    PowerOn,
    /// The logical unit was reset.
    Reset,
    /// Another initiator has ended commands of this one.
    CommandsCleared,
    /// Mode parameters were changed.
    ModeChanged,
    /// Another initiator has preempted or cleared the reservation.
    ReservationsPreempted,
    /// Another initiator has released the reservation.
    ReservationsReleased,
    /// Another initiator has preempted this one's registration.
    RegistrationsPreempted,
    /// The access state of some ports has changed.
    PortStatesChanged,
    /// The logical unit has another size.
    CapacityChanged,
    /// Logical units were added or removed.
    LunsChanged,
}

impl Attention {
    const ALL: [Self; 10] = [
        Self::PowerOn,
        Self::Reset,
        Self::CommandsCleared,
        Self::ModeChanged,
        Self::ReservationsPreempted,
        Self::ReservationsReleased,
        Self::RegistrationsPreempted,
        Self::PortStatesChanged,
        Self::CapacityChanged,
        Self::LunsChanged,
    ];

    /// The sense data that reports the condition.
    #[must_use]
    pub const fn sense(self) -> Sense {
        let code = match self {
            Self::PowerOn => 0x2900,
            Self::Reset => 0x2903,
            Self::CommandsCleared => 0x2f00,
            Self::ModeChanged => 0x2a01,
            Self::ReservationsPreempted => 0x2a03,
            Self::ReservationsReleased => 0x2a04,
            Self::RegistrationsPreempted => 0x2a05,
            Self::PortStatesChanged => 0x2a06,
            Self::CapacityChanged => 0x2a09,
            Self::LunsChanged => 0x3f0e,
        };
        Sense::new(SenseKey::UnitAttention, code)
    }
}

/// The pending unit attentions of one initiator, each at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attentions(u16);

impl Attentions {
    /// Adds a unit attention.
    pub fn raise(&mut self, attention: Attention) {
        // A reset replaces all earlier conditions (SAM-5 5.14.1).
        if attention <= Attention::Reset {
            self.0 = 0;
        }
        self.0 |= 1 << attention as u8;
    }

    /// Takes the next unit attention, to report it.
    pub fn take(&mut self) -> Option<Attention> {
        let next = Attention::ALL.into_iter().find(|one| self.0 >> *one as u8 & 1 == 1)?;
        self.0 &= !(1 << next as u8);
        Some(next)
    }

    /// Removes a unit attention.
    pub fn clear(&mut self, attention: Attention) {
        self.0 &= !(1 << attention as u8);
    }

    /// Whether none is pending.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
