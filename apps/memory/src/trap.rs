//! Chooses the trap of a run.

use console::{Class, Classed};
use farmem::TrapKind;
use measure::EngineKind;
use swap::Obstacle;

use crate::demand::budget;
use crate::experiment::Experiment;
use crate::lack::{Lack, bpf_trap, userfaultfd_trap};
use crate::mechanism::Mechanism;
use crate::mechanism::{BPF_DELAY_MAX, BPF_LOCAL_MIN};
use crate::run::flags::{Trap, Wait};

/// A trap and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) mechanism: Mechanism,
    /// Why not the faster trap; `None` if it is used or the user chose.
    pub(crate) reason: Option<String>,
}

/// Why the requested trap cannot be used here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrapError {
    #[error("use the bpf trap: {0}")]
    Bpf(#[source] Lack),
    #[error("use the userfaultfd trap: {0}")]
    Userfaultfd(#[source] Lack),
    #[error("--wait spin, with {0}; leave it out, or use --wait sleep")]
    Spin(String),
    #[error("use the userfaultfd trap, in place of bpf ({bpf}): {userfaultfd}")]
    Neither {
        /// Why not the bpf trap.
        bpf: String,
        #[source]
        userfaultfd: Lack,
    },
    #[error("use the swap engine: {0}")]
    Swap(#[from] Obstacle),
}

impl Classed for TrapError {
    fn class(&self) -> Class {
        match self {
            Self::Spin(_) => Class::Usage,
            Self::Bpf(_) | Self::Userfaultfd(_) | Self::Neither { .. } | Self::Swap(_) => {
                Class::Environment
            }
        }
    }
}

/// Chooses a trap for `experiment` by its flags and what this machine can do.
///
/// # Errors
/// When this machine cannot do what is requested.
pub(crate) fn choose(experiment: &Experiment) -> Result<Choice, TrapError> {
    let plain = |kind| Choice { mechanism: Mechanism::Arena(kind), reason: None };
    if experiment.engine == EngineKind::Swap {
        swap::probe()?;
        return Ok(Choice { mechanism: Mechanism::Swap, reason: None });
    }
    if experiment.far.is_some() {
        return far(experiment);
    }
    match experiment.trap {
        Trap::Bpf => {
            bpf_trap().map_err(TrapError::Bpf)?;
            return Ok(plain(TrapKind::Bpf));
        }
        Trap::Userfaultfd => {
            userfaultfd_trap().map_err(TrapError::Userfaultfd)?;
            return Ok(plain(TrapKind::Userfault));
        }
        Trap::Auto => {}
    }
    if experiment.wait == Some(Wait::Sleep) {
        userfaultfd_trap().map_err(TrapError::Userfaultfd)?;
        return Ok(plain(TrapKind::Userfault));
    }
    let reason = match obstacle(experiment) {
        Some(obstacle) => obstacle,
        None => match bpf_trap() {
            Ok(()) => return Ok(plain(TrapKind::Bpf)),
            Err(lack) if experiment.wait == Some(Wait::Spin) => return Err(TrapError::Bpf(lack)),
            Err(lack) => lack.found,
        },
    };
    if experiment.wait == Some(Wait::Spin) {
        return Err(TrapError::Spin(reason));
    }
    match userfaultfd_trap() {
        Ok(()) => {
            let mechanism = Mechanism::Arena(TrapKind::Userfault);
            Ok(Choice { mechanism, reason: Some(reason) })
        }
        Err(userfaultfd) => Err(TrapError::Neither { bpf: reason, userfaultfd }),
    }
}

/// The trap of a run with pages on a blade: userfaultfd takes their faults, and a thread spins in
/// the bpf trap before, if that may be used.
fn far(experiment: &Experiment) -> Result<Choice, TrapError> {
    userfaultfd_trap().map_err(TrapError::Userfaultfd)?;
    let sleeping = Mechanism::Arena(TrapKind::Userfault);
    if experiment.wait == Some(Wait::Sleep) || experiment.trap == Trap::Userfaultfd {
        return Ok(Choice { mechanism: sleeping, reason: None });
    }
    match bpf_trap() {
        Ok(()) => Ok(Choice { mechanism: Mechanism::Spinning, reason: None }),
        Err(lack) if experiment.wants_spin() => Err(TrapError::Bpf(lack)),
        Err(lack) => Ok(Choice { mechanism: sleeping, reason: Some(lack.found) }),
    }
}

/// The fastest trap of the arena that this machine has.
///
/// # Errors
/// When this machine has none.
pub(crate) fn any() -> Result<TrapKind, TrapError> {
    match bpf_trap() {
        Ok(()) => Ok(TrapKind::Bpf),
        Err(bpf) => match userfaultfd_trap() {
            Ok(()) => Ok(TrapKind::Userfault),
            Err(userfaultfd) => Err(TrapError::Neither { bpf: bpf.found, userfaultfd }),
        },
    }
}

/// Why the bpf trap cannot run the experiment; `None` if it can.
fn obstacle(experiment: &Experiment) -> Option<String> {
    experiment.tiers.iter().find_map(|tier| {
        let local = budget(tier, experiment.of).filter(|&local| local < BPF_LOCAL_MIN);
        if let Some(local) = local {
            return Some(format!(
                "{local} of local memory: bpf can hold no less than {BPF_LOCAL_MIN}"
            ));
        }
        let delay = tier.link.longest_page_delay();
        (delay > BPF_DELAY_MAX)
            .then(|| format!("a delay of {delay}: bpf can wait no longer than {BPF_DELAY_MAX}"))
    })
}
