//! `afar predict`: from one run with all memory local to the slowdown with any less, over any
//! network.
//!
//! ```text
//! program ─ watched ─► Profile ─ file ─► Profile
//!                         │ local memory, policy: replay ─► fetches, write-backs
//!                         └──────────── network: planner ─► slowdown ─► table, JSON, picture
//! ```
//!
//! `paging` knows what would be fetched, `planner` what waiting for it costs; numbers go from one
//! to the other here.

mod error;
mod file;
pub(crate) mod flags;
mod model;
mod picture;
mod profile;
mod told;

use std::path::Path;
use std::process::ExitCode;

use console::{Failure, Output, terminal};
use measure::{BitsPerSec, Duration, Fraction, LocalSize, ShareOf};

use crate::predict::flags::PredictFlags;
use document::Bandwidth;
use document::NotRecorded;

use model::{Grid, predict_all};
use profile::Profile;

pub(crate) use error::PredictError;

/// Watches a program or reads what was seen of one, and predicts.
///
/// # Errors
/// When it cannot be run or read, or the results cannot be written.
pub fn predict(flags: &PredictFlags) -> Result<ExitCode, Failure> {
    let grid = grid(flags)?;
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    let svg = flags.svg.as_deref().map(Output::open).transpose()?;
    let mut profile = match &flags.file {
        Some(path) => file::read(path)?,
        None => watch(flags)?,
    };
    profile.facts.known_ns = flags.alone.map(Duration::as_ns);
    let prediction = predict_all(&profile, &grid);
    if let Some(svg) = svg {
        svg.write(&picture::draw(&profile.facts, &prediction))?;
    }
    let to_stdout = flags.json.as_deref() == Some(Path::new("-"));
    if let Some(json) = json {
        json.write(&told::json(&profile.facts, &prediction))?;
    }
    if !flags.quiet && !to_stdout {
        let text = told::text(&profile.facts, &prediction);
        terminal::answer(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn watch(flags: &PredictFlags) -> Result<Profile, Failure> {
    let record = flags.record.as_deref().map(Output::open).transpose()?;
    let profile = profile::watch(&flags.program, flags.allow_unmanaged, flags.quiet)?;
    if let Some(record) = record {
        let path = flags.record.clone().unwrap_or_default();
        let bytes = file::bytes(&profile);
        record.write_bytes(&bytes.map_err(|source| NotRecorded { path, source })?)?;
    }
    Ok(profile)
}

/// What is to be predicted.
fn grid(flags: &PredictFlags) -> Result<Grid, PredictError> {
    let shares = (1..10).filter_map(|tenth| Fraction::from_percent(tenth * 10));
    let local = if flags.local.is_empty() {
        shares.map(LocalSize::Fraction).collect()
    } else {
        flags.local.clone()
    };
    let nothing = |local: &&LocalSize| match local {
        LocalSize::Bytes(bytes) => *bytes < measure::Bytes::PAGE,
        LocalSize::Fraction(share) => share.ppm() == 0,
    };
    if let Some(local) = local.iter().find(nothing) {
        return Err(PredictError::NoLocal(*local));
    }
    let is_size = |local: &LocalSize| matches!(local, LocalSize::Bytes(_));
    if let Some(of) = flags.of.filter(|_| local.iter().any(is_size)) {
        return Err(PredictError::OfSize(of));
    }
    let or = |given: &[Duration]| {
        if given.is_empty() {
            [1, 3, 5, 10].map(Duration::from_us).to_vec()
        } else {
            given.to_vec()
        }
    };
    let bandwidth = if flags.bandwidth.is_empty() {
        vec![Bandwidth(Some(BitsPerSec::from_gbps(40)))]
    } else {
        flags.bandwidth.clone()
    };
    Ok(Grid {
        local,
        of: flags.of.unwrap_or(ShareOf::Peak),
        rtt: or(&flags.rtt),
        bandwidth: bandwidth.into_iter().map(|Bandwidth(rate)| rate).collect(),
        policy: flags.policy,
        link: flags.link,
    })
}
