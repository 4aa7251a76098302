//! What hosts that fence one another off ask.

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Read,
    Write,
    Forced,
    Flush,
    Zero,
    Swap,
    Register,
    Preempt,
    Abort,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Read,
        Self::Write,
        Self::Forced,
        Self::Flush,
        Self::Zero,
        Self::Swap,
        Self::Register,
        Self::Preempt,
        Self::Abort,
    ];
}
