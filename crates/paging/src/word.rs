//! The state word of a page. Crate `farmem` shares it with the kernel: its `bpf/shared.h` has the
//! same layout.

/// The state word of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word(
    /// Its bits.
    pub u32,
);

/// Where a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// Never touched, or emptied.
    Absent = 0,
    /// In a frame of local memory, mapped.
    Local = 1,
    /// In a frame, unmapped to see whether it is used, or leaving.
    Probation = 2,
    /// In far memory.
    Remote = 3,
    /// In a frame, fetched ahead of use.
    Prefetched = 4,
    /// On its way into a frame.
    Fetching = 5,
    /// Unmanaged memory of the program is mapped there.
    Foreign = 6,
}

impl Word {
    const DIRTY: u32 = 1 << 3;
    const UNTRACKED: u32 = 1 << 4;
    const WRITE_FETCHED: u32 = 1 << 8;
    const TIER_SHIFT: u32 = 5;
    const TICKET_SHIFT: u32 = 9;
    const READY_SHIFT: u32 = 8;
    const READY_MASK: u64 = 0xff_ffff;
    const READY_UNIT_SHIFT: u32 = 6;

    /// Entries of a ring of outgoing pages that have a ticket of their own.
    pub const TICKETS: u32 = 1 << 22;

    /// Where the page is.
    #[inline]
    pub fn state(self) -> State {
        match self.0 & 7 {
            1 => State::Local,
            2 => State::Probation,
            3 => State::Remote,
            4 => State::Prefetched,
            5 => State::Fetching,
            6 => State::Foreign,
            _ => State::Absent,
        }
    }

    /// Whether the page was written to since it became local, or counts as if.
    #[inline]
    pub const fn dirty(self) -> bool {
        self.0 & Self::DIRTY != 0
    }

    /// Whether writes to the page are not tracked, so that it counts as dirty once it is local.
    #[inline]
    pub const fn untracked(self) -> bool {
        self.0 & Self::UNTRACKED != 0
    }

    /// Whether the access that fetched the page was a write.
    #[inline]
    pub const fn write_fetched(self) -> bool {
        self.0 & Self::WRITE_FETCHED != 0
    }

    /// The page's entry in the order of leaving; `None` if it is not leaving.
    #[inline]
    pub fn ticket(self) -> Option<u32> {
        let ticket = self.0 >> Self::TICKET_SHIFT;
        (self.state() == State::Probation && ticket != 0).then_some(ticket)
    }

    /// The same page on probation, with another entry.
    #[inline]
    pub const fn with_ticket(self, ticket: u32) -> Self {
        Self(self.0 & ((1 << Self::TICKET_SHIFT) - 1) | ticket << Self::TICKET_SHIFT)
    }

    /// The same page, unmapped to see whether it is used.
    #[inline]
    pub const fn unmapped(self) -> Self {
        Self(self.0 & (0xf8 | Self::WRITE_FETCHED) | State::Probation as u32)
    }

    /// The same page, with writes tracked or not.
    #[inline]
    pub const fn with_untracked(self, untracked: bool) -> Self {
        Self(if untracked { self.0 | Self::UNTRACKED } else { self.0 & !Self::UNTRACKED })
    }

    /// The page after a fault has made it local.
    #[inline]
    pub const fn made_local(self, write: bool) -> Self {
        let dirty = self.dirty() || write || self.untracked();
        let word = self.with_state(State::Local).with_dirty(dirty).with_untracked(false);
        Self(if write { word.0 | Self::WRITE_FETCHED } else { word.0 })
    }

    /// The tier of the page.
    #[inline]
    pub const fn tier(self) -> usize {
        ((self.0 >> Self::TIER_SHIFT) & 7) as usize
    }

    /// The same page in another state; the time of arrival is forgotten.
    #[inline]
    pub const fn with_state(self, state: State) -> Self {
        Self((self.0 & 0xf8) | state as u32)
    }

    /// The same prefetched page without its time of arrival; `None` unless it was to arrive
    /// `ready_ns` after the start of the run.
    #[inline]
    pub fn arrived(self, ready_ns: u64) -> Option<Self> {
        let ticks = (ready_ns >> Self::READY_UNIT_SHIFT) & Self::READY_MASK;
        let due = u64::from(self.0 >> Self::READY_SHIFT) == ticks.max(1);
        (self.state() == State::Prefetched && due).then(|| self.with_state(State::Prefetched))
    }

    /// The same page, dirty or clean.
    #[inline]
    pub const fn with_dirty(self, dirty: bool) -> Self {
        Self(if dirty { self.0 | Self::DIRTY } else { self.0 & !Self::DIRTY })
    }

    /// The same page in another of the eight tiers.
    #[inline]
    pub const fn with_tier(self, tier: u32) -> Self {
        Self((self.0 & !(7 << Self::TIER_SHIFT)) | (tier & 7) << Self::TIER_SHIFT)
    }

    /// An absent page of the same tier.
    #[inline]
    pub const fn emptied(self) -> Self {
        Self(self.0 & (7 << Self::TIER_SHIFT))
    }

    /// Whether the page has a frame of local memory.
    #[inline]
    pub fn resident(self) -> bool {
        !matches!(self.state(), State::Absent | State::Remote | State::Foreign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_keeps_what_a_change_of_state_does_not_touch() {
        let word = Word(0).with_tier(5).with_state(State::Remote).with_untracked(true);
        assert_eq!((word.tier(), word.state(), word.dirty()), (5, State::Remote, false));
        let read = word.made_local(false);
        assert_eq!((read.tier(), read.state()), (5, State::Local));
        assert!(read.dirty() && !read.untracked() && !read.write_fetched());
        let written = word.with_untracked(false).made_local(true);
        assert!(written.dirty() && written.write_fetched());
        assert!(!word.with_untracked(false).made_local(false).dirty());
        assert_eq!(written.emptied(), Word(0).with_tier(5));
    }

    #[test]
    fn only_the_awaited_arrival_counts() {
        let at = |ns: u64| {
            let ticks = u32::try_from(ns >> 6 & 0xff_ffff).expect("24 bits").max(1);
            Word(ticks << 8).with_tier(3).0 | State::Prefetched as u32
        };
        let word = Word(at(5_000_000_000));
        let there = word.arrived(5_000_000_000).expect("it was to arrive then");
        assert_eq!((there.state(), there.tier(), there.0 >> 8), (State::Prefetched, 3, 0));
        assert_eq!(word.arrived(5_000_100_000), None);
        assert_eq!(word.with_state(State::Local).arrived(5_000_000_000), None);
        assert!(Word(at(0)).arrived(0).is_some());
    }

    #[test]
    fn resident_means_that_a_frame_is_taken() {
        let resident = [State::Local, State::Probation, State::Prefetched, State::Fetching];
        for state in resident {
            assert!(Word(0).with_state(state).resident());
            assert_eq!(Word(0xff00).with_state(state).state(), state);
        }
        for state in [State::Absent, State::Remote, State::Foreign] {
            assert!(!Word(0).with_state(state).resident());
        }
    }
}
