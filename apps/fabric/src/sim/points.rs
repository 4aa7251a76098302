//! Single runs of a planned sweep, as engines have other machines do them.

use std::process::ExitCode;

use console::{Class, Failure};
use dispatch::PointFlags;
use experiment::Log;
use experiment::journal::{self, Journal};

use super::row::Row;
use super::setting::Settings;
use super::{SimError, kept};

/// Runs the points that `flags` name and that have no row yet, one after another.
///
/// # Errors
/// If a point does not exist, or its row cannot be stored. A failed run has a row, too.
pub fn points(flags: &PointFlags) -> Result<ExitCode, Failure> {
    let directory = &flags.directory;
    let planned = journal::points(directory).map_err(SimError::from)?;
    let mut journal = Journal::<Row>::join_blind(directory).map_err(SimError::from)?;
    let signals = console::interrupts().map_err(SimError::from)?;
    let log = Log::open(directory);
    for id in &flags.ids {
        let point = planned.iter().find(|point| point.id == *id).ok_or_else(|| {
            SimError::at("ID", format!("{} has no point {id}", directory.display()))
        })?;
        if journal.is_there(id) {
            continue;
        }
        log.began(id);
        let settings = Settings::of_plan(&point.settings)?;
        let mut watch = |_: &netsim::Progress| signals.next().is_none();
        let Some(row) = kept::once(&point.cell, &settings, &mut watch)? else {
            return Ok(Class::Interrupted.into());
        };
        journal.add(row).map_err(SimError::from)?;
        log.ended(id);
    }
    Ok(ExitCode::SUCCESS)
}
