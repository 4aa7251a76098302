//! When a shard looks at its connections and hosts although nothing has happened to them.

/// When connections and hosts are to be looked at because nothing has happened to them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) looked_ns: u64,
    /// The first that was known then.
    pub(crate) deadline_ns: Option<u64>,
    /// Something has happened since; none of what can begin is due sooner than `LOOK_NS`.
    pub(crate) is_stale: bool,
}

/// Time between two looks.
pub(crate) const LOOK_NS: u64 = 10_000_000;

impl Times {
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let soon = self.is_stale.then_some(self.looked_ns + LOOK_NS);
        [self.deadline_ns, soon].into_iter().flatten().min()
    }
}
