//! What a connection's peer owes the target: data that it was asked for, and reading what it is
//! sent. Whoever owes holds memory, so a peer that does neither for long is let go.
//!
//! Invariants:
//! - A due is over when nothing is owed any more, or begins again when enough has moved.

/// Bytes that begin a due again: a peer that moves fewer in its time is as good as silent.
pub(crate) const PROGRESS_BYTES: u64 = 64 << 10;

/// Since when something is owed, and how many bytes of it had moved then.
#[derive(Debug, Clone, Copy)]
struct Due {
    since_ns: u64,
    moved: Option<u64>,
}

/// Which of them has not been met in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// Data that was asked for has not come.
    Data,
    /// What is sent is not taken.
    Reading,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Dues {
    data: Option<Due>,
    reading: Option<Due>,
}

impl Dues {
    /// Data is owed, of which `came` bytes have come since the connection began; or none is.
    pub(crate) const fn data(&mut self, came: Option<u64>, now_ns: u64) {
        self.data = match (came, self.data) {
            (None, _) => None,
            (Some(came), Some(due)) if came < due.moved_to() => Some(due),
            (Some(came), _) => Some(Due { since_ns: now_ns, moved: Some(came) }),
        };
    }

    /// Something is being sent, or nothing is.
    pub(crate) const fn reading(&mut self, is_owed: bool, now_ns: u64) {
        match (is_owed, self.reading) {
            (false, _) => self.reading = None,
            (true, None) => self.reading = Some(Due { since_ns: now_ns, moved: None }),
            (true, Some(_)) => {}
        }
    }

    /// A send has ended: its peer reads.
    pub(crate) const fn has_read(&mut self) {
        self.reading = None;
    }

    /// When the first is due, if each has `patience_ns`; whether a peer reads is looked at twice in
    /// that time.
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

    /// What is late now. `acknowledged` says how many bytes the peer's system has ever taken.
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
    // So many bytes begin it again.
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
