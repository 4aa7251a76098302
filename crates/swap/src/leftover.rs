//! Changes to this host that killed runs have left behind, and their repair.

use std::path::Path;

use crate::journal;

/// Changes to this host by one run that was killed together with its keeper.
#[derive(Debug)]
pub struct Leftover {
    journal: journal::Journal,
}

/// Finds all leftovers on this host.
#[must_use]
pub fn leftovers() -> Vec<Leftover> {
    let dead = |journal: &journal::Journal| !journal.is_answered_for();
    journal::all().into_iter().filter(dead).map(|journal| Leftover { journal }).collect()
}

/// Whether the control group at `path` belongs to a live run or to one of [`leftovers`].
#[must_use]
pub fn is_known(path: &Path) -> bool {
    let is_it =
        |step: &journal::Step| matches!(step, journal::Step::Group { path: it } if it == path);
    journal::all().iter().any(|journal| journal.has(is_it))
}

impl Leftover {
    /// The process id of the keeper that died.
    #[must_use]
    pub fn keeper(&self) -> u32 {
        self.journal.owner()
    }

    /// What was changed, in a sentence for the user.
    #[must_use]
    pub fn describe(&self) -> String {
        self.journal.describe()
    }

    /// Undoes the changes. Returns a sentence for each that could not be undone.
    #[must_use]
    pub fn undo(&self) -> Vec<String> {
        self.journal.undo()
    }
}
