//! When a shard checks the deadlines of its connections and hosts.

/// See the module's description.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) looked_ns: u64,
    /// The first deadline that was known at the last look.
    pub(crate) deadline_ns: Option<u64>,
    /// Whether there were events since; deadlines that they begin are at least `LOOK_NS` away.
    pub(crate) is_stale: bool,
}

/// Time between two looks.
pub(crate) const LOOK_NS: u64 = 10_000_000;

impl Times {
    /// When the next look is due; `None` if never.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let soon = self.is_stale.then_some(self.looked_ns + LOOK_NS);
        [self.deadline_ns, soon].into_iter().flatten().min()
    }
}
