//! What runs that were killed have left on this host.

use std::path::Path;

use crate::journal;

/// What runs that were killed, together with their keepers, have left on this host.
#[derive(Debug)]
pub struct Leftover {
    journal: journal::Journal,
}

/// Finds them.
#[must_use]
pub fn leftovers() -> Vec<Leftover> {
    let dead = |journal: &journal::Journal| !journal.is_answered_for();
    journal::all().into_iter().filter(dead).map(|journal| Leftover { journal }).collect()
}

/// Whether the control group at `path` is that of a run that goes on, or of one of [`leftovers`].
#[must_use]
pub fn is_known(path: &Path) -> bool {
    let is_it =
        |step: &journal::Step| matches!(step, journal::Step::Group { path: it } if it == path);
    journal::all().iter().any(|journal| journal.has(is_it))
}

impl Leftover {
    /// The keeper that died.
    #[must_use]
    pub fn keeper(&self) -> u32 {
        self.journal.owner()
    }

    /// What it is, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        self.journal.describe()
    }

    /// Puts the host back; answers what could not be put back, and why.
    #[must_use]
    pub fn undo(&self) -> Vec<String> {
        self.journal.undo()
    }
}
