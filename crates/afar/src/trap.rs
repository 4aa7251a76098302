//! Which trap a run uses, and why.

use std::fs::OpenOptions;
use std::path::Path;

use farmem::runtime::swap::Obstacle;
use farmem::runtime::{TrapKind, probe, swap};
use sys::bpf::BpfError;

use crate::experiment::Experiment;
use crate::flags::{Engine, Trap};
use crate::mechanism::Mechanism;
use crate::tuning::{BPF_DELAY_MAX, BPF_LOCAL_MIN, budget, longest_delay};

/// How to get access to userfaultfd.
pub(crate) const USERFAULTFD_REMEDY: &str = "setfacl -m u:$USER:rw /dev/userfaultfd";
const DEVICE: &str = "/dev/userfaultfd";

/// A trap and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) mechanism: Mechanism,
    /// Why not the faster one, where the choice was ours.
    pub(crate) reason: Option<String>,
}

/// No trap that was asked for can be used here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrapError {
    #[error("use the bpf trap: {0}; run afar as root, or use --trap userfaultfd")]
    Bpf(#[source] BpfError),
    #[error(
        "use the userfaultfd trap: open {DEVICE}: {0}; grant access with: \
         sudo {USERFAULTFD_REMEDY}"
    )]
    Userfaultfd(#[source] std::io::Error),
    #[error(
        "notice page faults: the bpf trap needs root, and the userfaultfd trap gets {0} from \
         {DEVICE}; grant access with: sudo {USERFAULTFD_REMEDY}"
    )]
    Neither(#[source] std::io::Error),
    #[error("use the swap engine: {0}")]
    Swap(#[from] Obstacle),
}

/// Decides on a trap for `experiment` by what it asks for and what this machine can do.
///
/// # Errors
/// When this machine cannot do what was asked for.
pub(crate) fn choose(experiment: &Experiment) -> Result<Choice, TrapError> {
    let plain = |kind| Choice { mechanism: Mechanism::Arena(kind), reason: None };
    if experiment.engine == Engine::Swap {
        swap::probe()?;
        return Ok(Choice { mechanism: Mechanism::Swap, reason: None });
    }
    match experiment.trap {
        Trap::Bpf => {
            probe().map_err(TrapError::Bpf)?;
            return Ok(plain(TrapKind::Bpf));
        }
        Trap::Userfaultfd => {
            userfaultfd().map_err(TrapError::Userfaultfd)?;
            return Ok(plain(TrapKind::Userfault));
        }
        Trap::Auto => {}
    }
    let obstacle = obstacle(experiment);
    let probed = probe();
    let reason = match (obstacle, probed) {
        (None, Ok(())) => return Ok(plain(TrapKind::Bpf)),
        (None, Err(_)) => "bpf is not available here, see afar doctor".to_owned(),
        (Some(obstacle), _) => obstacle,
    };
    userfaultfd().map_err(TrapError::Neither)?;
    Ok(Choice { mechanism: Mechanism::Arena(TrapKind::Userfault), reason: Some(reason) })
}

/// The fastest trap of the arena that this machine has.
///
/// # Errors
/// When it has none.
pub(crate) fn any() -> Result<TrapKind, TrapError> {
    if probe().is_ok() {
        return Ok(TrapKind::Bpf);
    }
    userfaultfd().map_err(TrapError::Neither)?;
    Ok(TrapKind::Userfault)
}

/// Whether this process may create a userfaultfd that handles faults of the kernel's accesses too.
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn userfaultfd() -> std::io::Result<()> {
    if may_by_right() {
        return Ok(());
    }
    OpenOptions::new().read(true).write(true).open(Path::new(DEVICE)).map(drop)
}

// The system call works for everybody where the administrator has said so, and for root.
fn may_by_right() -> bool {
    let setting = std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd");
    let everybody = setting.is_ok_and(|text| text.trim() == "1");
    everybody || sys::process::effective_user() == 0
}

/// What about the experiment the bpf trap cannot do.
fn obstacle(experiment: &Experiment) -> Option<String> {
    experiment.tiers.iter().find_map(|tier| {
        let local = budget(tier, experiment.of).filter(|&local| local < BPF_LOCAL_MIN);
        if let Some(local) = local {
            return Some(format!(
                "{local} of local memory: bpf can hold no less than {BPF_LOCAL_MIN}"
            ));
        }
        let delay = longest_delay(&tier.link);
        (delay > BPF_DELAY_MAX)
            .then(|| format!("a delay of {delay}: bpf can wait no longer than {BPF_DELAY_MAX}"))
    })
}
