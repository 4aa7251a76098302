//! What an initiator is told before anything else (SAM-5 5.14).

use super::sense::{Sense, SenseKey};

/// Something that has happened to a logical unit; the first are told first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Attention {
    /// It is new to this initiator.
    PowerOn,
    /// It was reset.
    Reset,
    /// Another initiator has ended commands of this one.
    CommandsCleared,
    /// What can be set was set.
    ModeChanged,
    /// Another initiator has taken or cleared the reservation.
    ReservationsPreempted,
    /// Another initiator has given the reservation up.
    ReservationsReleased,
    /// Another initiator has taken this one's registration away.
    RegistrationsPreempted,
    /// It is reached otherwise through some ports.
    PortStatesChanged,
    /// It has another size.
    CapacityChanged,
    /// There are other logical units.
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

    /// What it is told as.
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

/// Those that wait for one initiator; each once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attentions(u16);

impl Attentions {
    /// One more.
    pub fn raise(&mut self, attention: Attention) {
        // A reset is news enough (SAM-5 5.14.1).
        if attention <= Attention::Reset {
            self.0 = 0;
        }
        self.0 |= 1 << attention as u8;
    }

    /// The next, which is told only once.
    pub fn take(&mut self) -> Option<Attention> {
        let next = Attention::ALL.into_iter().find(|one| self.0 >> *one as u8 & 1 == 1)?;
        self.0 &= !(1 << next as u8);
        Some(next)
    }

    /// This one need not be told.
    pub fn clear(&mut self, attention: Attention) {
        self.0 &= !(1 << attention as u8);
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
