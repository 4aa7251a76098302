//! Programs that are added to those of a file: one for each prediction.

use std::path::{Path, PathBuf};

use document::{DocumentError, Source};

use super::curve;
use super::demand::{Day, Program};
use super::predicted::{points, read};

/// Predictions of programs, with how slow each may be and how many servers run it.
#[derive(Debug, Default)]
pub(super) struct Predicted<'a> {
    pub(super) files: &'a [PathBuf],
    /// `AXIS=VALUE` of the network.
    pub(super) held: &'a [String],
    /// How much slower each may be, as a share.
    pub(super) bound: f64,
    /// How many servers run each.
    pub(super) servers: u32,
}

impl Predicted<'_> {
    /// A program for each file, which wants the whole of its memory all the time.
    ///
    /// # Errors
    /// If a file is no prediction, or of several networks.
    pub(super) fn programs(&self) -> Result<Vec<Program>, DocumentError> {
        self.files.iter().map(|path| self.program(path)).collect()
    }

    /// The program of one prediction.
    fn program(&self, path: &Path) -> Result<Program, DocumentError> {
        let source = Source::read(path)?;
        let record = read(&source).map_err(|error| DocumentError::At {
            place: source.name.clone(),
            message: format!(
                "this is no prediction: {error}; give what afar predict --json has written"
            ),
        })?;
        let held = self.held.iter().map(|text| {
            let wrong = || DocumentError::At {
                place: format!("--network {text}"),
                message: "write AXIS=VALUE, such as rtt=5us".to_owned(),
            };
            text.split_once('=').ok_or_else(wrong)
        });
        let held: Vec<(&str, &str)> = held.collect::<Result<_, _>>()?;
        let memory = record.of_bytes.unwrap_or(record.profile.managed_peak_bytes);
        let curve = curve::of(&source, points(&source, &record)?, &held)?;
        let name = path.file_stem().map_or_else(String::new, |name| name.display().to_string());
        let alone = Some(Day { servers: self.servers, memory, low: 1.0, peak: 0 });
        Ok(Program { name, bound: self.bound, least_ppm: curve.least_ppm(self.bound), alone })
    }
}
