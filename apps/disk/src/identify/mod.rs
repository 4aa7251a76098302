//! `afar identify`: shows the identify data of a controller or of logical units.

mod controller;
mod error;
pub(crate) mod flags;
mod unit;

use std::process::ExitCode;

use client::SCHEME;
use console::{Failure, Output};

use flags::IdentifyFlags;

/// Runs `afar identify`.
///
/// # Errors
/// When the URI is invalid, or the target cannot be reached.
pub fn identify(flags: &IdentifyFlags) -> Result<ExitCode, Failure> {
    let uri = flags.target.as_str();
    let json = Output::wanted(flags.json.as_deref())?;
    flags.initiator.fit(&[uri]).map_err(error::IdentifyError::from)?;
    let [table, record] = match uri.starts_with(SCHEME) {
        true => unit::identify_unit(uri, &flags.initiator)?,
        false => controller::identify(uri, &flags.host)?,
    };
    console::answer(|| table, vec![(json, &|| record.clone())])?;
    Ok(ExitCode::SUCCESS)
}
