//! The mechanism of a run: its engine, and how faults are noticed there.

use farmem::{BPF_BUDGET_MIN, BPF_DELAY_MAX_NS, TrapKind};
use measure::{Bytes, Duration};
use swap::SWAP_BUDGET_MIN;

use crate::run::flags::Wait;

/// Longest delay and smallest local memory under the bpf trap.
pub(crate) const BPF_DELAY_MAX: Duration = Duration::from_ns(BPF_DELAY_MAX_NS);

pub(crate) const BPF_LOCAL_MIN: Bytes = BPF_BUDGET_MIN.bytes();

/// An engine, and the trap where there is a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanism {
    Arena(TrapKind),
    /// The arena with pages on a blade, for which a thread spins in the bpf trap before userfaultfd
    /// puts it to sleep.
    Spinning,
    Swap,
}

impl Mechanism {
    /// The engine's name.
    pub(crate) const fn engine(self) -> &'static str {
        match self {
            Self::Arena(_) | Self::Spinning => "arena",
            Self::Swap => "swap",
        }
    }

    /// The trap's name; for swap the tracepoint where requests are delayed.
    pub(crate) const fn trap(self) -> &'static str {
        match self {
            Self::Arena(trap) => trap.name(),
            Self::Spinning => TrapKind::Bpf.name(),
            Self::Swap => "block_bio_queue",
        }
    }

    /// How a thread waits: with both BPF programs it spins on its processor; with userfaultfd it
    /// sleeps.
    pub(crate) const fn wait(self) -> Wait {
        match self {
            Self::Arena(TrapKind::Userfault) => Wait::Sleep,
            Self::Arena(TrapKind::Bpf) | Self::Spinning | Self::Swap => Wait::Spin,
        }
    }

    /// The longest delay; `None` for no limit. Both BPF programs spin.
    pub(crate) const fn delay_max(self) -> Option<Duration> {
        match self {
            Self::Arena(TrapKind::Userfault) | Self::Spinning => None,
            Self::Arena(TrapKind::Bpf) | Self::Swap => Some(BPF_DELAY_MAX),
        }
    }

    /// The least local memory; `None` for no limit.
    pub(crate) const fn local_min(self) -> Option<Bytes> {
        match self {
            Self::Arena(TrapKind::Userfault) | Self::Spinning => None,
            Self::Arena(TrapKind::Bpf) => Some(BPF_LOCAL_MIN),
            Self::Swap => Some(SWAP_BUDGET_MIN),
        }
    }
}
