//! What a report has, before it is a page or a file.

use super::section::Section;

/// Everything that is told.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) title: String,
    pub(super) command: Vec<String>,
    /// With the names of the files they were read from.
    pub(super) sections: Vec<(String, Section)>,
}
