//! What a connection's peer owes the target: data that the target requested, and reading what the
//! target sends. Both hold memory, so a peer without progress is disconnected.
//!
//! Invariants:
//! - A due ends when nothing is owed, and begins again when [`PROGRESS_BYTES`] have moved.

/// Progress that restarts a due; a peer that moves less in its time counts as silent.
pub(crate) const PROGRESS_BYTES: u64 = 64 << 10;

/// Since when something is owed, and how many bytes had moved then.
#[derive(Debug, Clone, Copy)]
struct Due {
    since_ns: u64,
    moved: Option<u64>,
}

/// Which due has passed its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// Requested data has not come.
    Data,
    /// The peer does not read what is sent.
    Reading,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Dues {
    data: Option<Due>,
    reading: Option<Due>,
}

impl Dues {
    /// Updates the due for data: `came` bytes have come since the connection began; `None` if no
    /// data is owed.
    pub(crate) const fn data(&mut self, came: Option<u64>, now_ns: u64) {
        self.data = match (came, self.data) {
            (None, _) => None,
            (Some(came), Some(due)) if came < due.moved_to() => Some(due),
            (Some(came), _) => Some(Due { since_ns: now_ns, moved: Some(came) }),
        };
    }

    /// Begins the due for reading if a send is under way (`is_owed`), and ends it if none is.
    pub(crate) const fn reading(&mut self, is_owed: bool, now_ns: u64) {
        match (is_owed, self.reading) {
            (false, _) => self.reading = None,
            (true, None) => self.reading = Some(Due { since_ns: now_ns, moved: None }),
            (true, Some(_)) => {}
        }
    }

    /// Ends the due for reading: a send has completed.
    pub(crate) const fn has_read(&mut self) {
        self.reading = None;
    }

    /// When the first due needs a look if each has `patience_ns`; reading is checked twice in that
    /// time. `u64::MAX` without dues.
    pub(crate) const fn deadline_ns(&self, patience_ns: u64) -> u64 {
        let mut first = u64::MAX;
        if let Some(due) = self.data {
            first = due.since_ns.saturating_add(patience_ns);
        }
        if let Some(due) = self.reading {
            let at = due.since_ns.saturating_add(patience_ns / 2);
            first = if at < first { at } else { first };
        }
        first
    }

    /// The due that is late now. `acknowledged` returns how many bytes the peer's TCP has ever
    /// acknowledged.
    pub(crate) fn late(
        &mut self,
        patience_ns: u64,
        now_ns: u64,
        acknowledged: impl FnOnce() -> Option<u64>,
    ) -> Option<Late> {
        if self.data.is_some_and(|due| due.since_ns.saturating_add(patience_ns) <= now_ns) {
            return Some(Late::Data);
        }
        let due = self.reading?;
        if due.since_ns.saturating_add(patience_ns / 2) > now_ns {
            return None;
        }
        let moved = acknowledged().unwrap_or(0);
        let is_late = due.moved.is_some() && moved < due.moved_to();
        self.reading = Some(Due { since_ns: now_ns, moved: Some(moved) });
        is_late.then_some(Late::Reading)
    }
}

impl Due {
    // How many bytes must have moved for the due to begin again.
    const fn moved_to(self) -> u64 {
        match self.moved {
            Some(moved) => moved.saturating_add(PROGRESS_BYTES),
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_does_not_come_is_late_and_data_that_comes_is_not() {
        let mut dues = Dues::default();
        assert_eq!(dues.deadline_ns(100), u64::MAX);
        dues.data(Some(0), 1000);
        assert_eq!(dues.deadline_ns(100), 1100);
        // A byte now and then is not enough.
        dues.data(Some(1), 1090);
        assert_eq!(dues.late(100, 1100, || None), Some(Late::Data));
        dues.data(Some(PROGRESS_BYTES), 1099);
        assert_eq!(dues.late(100, 1100, || None), None);
        dues.data(None, 1150);
        assert_eq!(dues.late(100, 9999, || None), None);
    }

    #[test]
    fn a_peer_that_reads_slowly_is_not_one_that_does_not_read() {
        let mut dues = Dues::default();
        dues.reading(true, 1000);
        dues.reading(true, 1040);
        assert_eq!(dues.deadline_ns(100), 1050);
        assert_eq!(dues.late(100, 1049, || panic!("it is too early")), None);
        assert_eq!(dues.late(100, 1050, || Some(500)), None, "nothing is known yet");
        assert_eq!(dues.late(100, 1100, || Some(500 + PROGRESS_BYTES)), None);
        assert_eq!(dues.late(100, 1150, || Some(501 + PROGRESS_BYTES)), Some(Late::Reading));
        dues.has_read();
        assert_eq!(dues.deadline_ns(100), u64::MAX);
    }
}
