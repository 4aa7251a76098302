//! What is shown of one moment.

use crate::section::Section;

/// Something that is looked at again and again.
pub(super) trait Watched: Send {
    /// The name of what is watched, for people.
    fn name(&self) -> String;

    /// Looks once, and returns what to show.
    fn look(&mut self) -> Shown;
}

/// What is shown of one moment.
#[derive(Debug)]
pub(super) struct Shown {
    /// The state in a sentence.
    pub(super) state: String,
    /// Whether the look succeeded, even if what is watched has ended.
    pub(super) is_there: bool,
    /// Sections, each with the name of its source; `None` if those shown before still hold.
    pub(super) sections: Option<Vec<(String, Section)>>,
}

impl Shown {
    /// What was shown before, with the reason why nothing newer is known.
    pub(super) fn gone(state: String) -> Self {
        Self { state, is_there: false, sections: None }
    }
}
