//! `afar predict`: from one run with all memory local to the slowdown with any less, over any
//! network.
//!
//! ```text
//! program ─ watched ─► Profile ─ file ─► Profile
//!                         │ local memory, policy: replay ─► fetches, write-backs
//!                         └──────────── network: planner ─► slowdown ─► table, JSON, picture
//! ```
//!
//! `paging` computes what would be fetched, `planner` what waiting for it costs; this module passes
//! the numbers from one to the other.

mod error;
mod file;
pub(crate) mod flags;
mod model;
mod picture;
mod profile;
mod told;

use std::process::ExitCode;

use console::{Failure, Output};
use measure::{BitsPerSec, Duration, Fraction, LocalSize, ShareOf};

use crate::predict::flags::PredictFlags;
use document::Bandwidth;
use document::NotRecorded;

use model::{Grid, predict_all};
use profile::Profile;

pub(crate) use error::PredictError;

/// Watches a program or reads its profile, and predicts.
///
/// # Errors
/// When the program cannot be run, the profile not be read, or the results not be written.
pub fn predict(flags: &PredictFlags) -> Result<ExitCode, Failure> {
    let grid = grid(flags)?;
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    let csv = Output::wanted(flags.csv.as_deref())?;
    let svg = flags.svg.as_deref().map(Output::open).transpose()?;
    let mut profile = match &flags.file {
        Some(path) => file::read(path)?,
        None => watch(flags)?,
    };
    profile.facts.known_ns = flags.alone.map(Duration::as_ns);
    let prediction = predict_all(&profile, &grid);
    let facts = &profile.facts;
    let picture = || picture::draw(facts, &prediction);
    let (record, rows) = (|| told::json(facts, &prediction), || told::csv(&prediction));
    let forms: Vec<console::Form<'_>> = vec![(svg, &picture), (json, &record), (csv, &rows)];
    console::answer(|| told::text(facts, &prediction), forms)?;
    Ok(ExitCode::SUCCESS)
}

// Watches the program of `flags`, and records its profile if requested.
fn watch(flags: &PredictFlags) -> Result<Profile, Failure> {
    let record = flags.record.as_deref().map(Output::open).transpose()?;
    let profile = profile::watch(&flags.program, flags.allow_unmanaged)?;
    if let Some(record) = record {
        let path = flags.record.clone().unwrap_or_default();
        let bytes = file::bytes(&profile);
        record.write_bytes(&bytes.map_err(|source| NotRecorded { path, source })?)?;
    }
    Ok(profile)
}

/// The points to predict.
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

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};
    use paging::PageIndex;
    use paging::reuse::{Touch, TouchKind, Touches};
    use results::prediction::{Facts, Prediction};

    use super::*;

    fn asked(flags: &str) -> Grid {
        let command =
            PredictFlags::augment_args(clap::Command::new("predict").no_binary_name(true));
        let words = flags.split_whitespace().chain(["--rtt", "5us", "x.reuse"]);
        let matches = command.try_get_matches_from(words).unwrap();
        grid(&PredictFlags::from_arg_matches(&matches).unwrap()).unwrap()
    }

    /// A program that has two hundred pages, uses them in turn, and then grows to a thousand.
    fn grows() -> Profile {
        let golden = include_str!("../../../../crates/results/tests/golden/prediction.json");
        let record: Prediction = results::read(golden).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let pages = (0..5).flat_map(|_| 0..200).chain(200..1000);
        let touch = |(at, page): (u64, u32)| Touch {
            time_ns: at * 1000,
            slot: 0,
            page: PageIndex::new(page),
            tid: 1,
            kind: if seen.insert(page) { TouchKind::First } else { TouchKind::Again },
            write: false,
        };
        let events = (0..).zip(pages).map(touch).collect();
        let facts = Facts {
            trap: "userfaultfd".to_owned(),
            managed_peak_bytes: 1000 * 4096,
            first_touch_count: 1000,
            sampled_share: 1.0,
            earlier: Vec::new(),
            blind_share: 0.0,
            ..record.profile
        };
        Profile { facts, touches: Touches { rate: 1.0, events, ..Touches::default() } }
    }

    #[test]
    fn a_share_is_of_the_most_in_use_unless_told_otherwise() {
        let profile = grows();
        let told = |flags: &str| {
            let prediction = predict_all(&profile, &asked(flags));
            let text = told::text(&profile.facts, &prediction);
            let json = told::json(&profile.facts, &prediction);
            (text, results::read::<Prediction>(&json).unwrap())
        };
        let (text, peak) = told("--local 30%");
        assert!(text.contains("local memory is a share of 3.9 MiB (the most it used)\n"), "{text}");
        assert_eq!((peak.of.as_deref(), peak.of_bytes), (Some("peak"), Some(1000 * 4096)));
        // Three hundred pages are enough for two hundred, and sixty are not.
        assert_eq!(peak.curve[0].fetch_count, 0.0);
        let (text, live) = told("--local 30% --of live");
        assert!(text.contains("in use at each moment (live footprint)\n"), "{text}");
        assert_eq!((live.of.as_deref(), live.of_bytes), (Some("live"), None));
        assert!(live.curve[0].fetch_count > 500.0, "{:?}", live.curve[0]);
        let (_, fixed) = told("--local 30% --of 4096000");
        assert_eq!((fixed.of.as_deref(), fixed.of_bytes), (Some("fixed"), Some(1000 * 4096)));
        assert_eq!(fixed.curve[0].fetch_count, 0.0);
        let (text, size) = told("--local 1MiB");
        assert!(!text.contains("is a share of") && size.of.is_none(), "{text}");
    }
}
