//! The profile of a program as a Parquet file of touches, with the facts as a note.

use std::fs::File;
use std::path::Path;

use paging::PageIndex;
use paging::reuse::{Part, Touch, TouchKind, Touches};
use records::{Fault, FaultKind, FaultReader, FaultWriter, RecordError};
use results::prediction::Facts;

use super::PredictError;
use super::profile::Profile;

const SCHEMA: &str = "afar.reuse/3";

/// The contents of the file.
///
/// # Errors
/// When the rows cannot be encoded.
pub(super) fn bytes(profile: &Profile) -> Result<Vec<u8>, RecordError> {
    let facts = serde_json::to_string(&profile.facts).expect("plain data has a JSON form");
    let notes = [("schema", SCHEMA), ("facts", facts.as_str())];
    let mut writer = FaultWriter::new(Vec::new(), &notes)?;
    let rows: Vec<Fault> = profile.touches.events.iter().map(row).collect();
    writer.write(&rows)?;
    writer.finish()
}

/// Reads a profile from a file.
///
/// # Errors
/// When there is no such file, or it is no profile.
pub(super) fn read(path: &Path) -> Result<Profile, PredictError> {
    let open = |source| PredictError::Open { path: path.to_owned(), source };
    let record = |source| PredictError::Record { path: path.to_owned(), source };
    let other = || PredictError::NoProfile { path: path.to_owned() };
    let mut reader = FaultReader::new(File::open(path).map_err(open)?).map_err(record)?;
    let facts = reader.note("facts").filter(|_| reader.note("schema") == Some(SCHEMA));
    let facts: Facts =
        facts.and_then(|facts| serde_json::from_str(facts).ok()).ok_or_else(other)?;
    let mut events = Vec::new();
    while let Some(rows) = reader.next_group().map_err(record)? {
        for row in rows {
            events.push(touch(&row).ok_or_else(other)?);
        }
    }
    let earlier: Vec<Part> =
        facts.earlier.iter().map(|&(end, rate, scale)| Part { end, rate, scale }).collect();
    let mut from = 0;
    for part in &earlier {
        if part.end < from || part.end > events.len() || !is_share(part.rate) || part.scale < 1.0 {
            return Err(other());
        }
        from = part.end;
    }
    if !is_share(facts.sampled_share) {
        return Err(other());
    }
    let touches = Touches {
        rate: facts.sampled_share,
        seed: facts.sample_seed,
        earlier: facts
            .earlier
            .iter()
            .map(|&(end, rate, scale)| Part { end, rate, scale })
            .collect(),
        blind_share: facts.blind_share,
        soft_count: facts.soft_count,
        events,
    };
    Ok(Profile { facts, touches })
}

fn is_share(rate: f64) -> bool {
    rate > 0.0 && rate <= 1.0
}

fn row(touch: &Touch) -> Fault {
    Fault {
        time_ns: touch.time_ns,
        process_slot: u32::try_from(touch.slot).unwrap_or(u32::MAX),
        page: touch.page.get().into(),
        kind: match touch.kind {
            TouchKind::First => FaultKind::FirstTouch,
            TouchKind::Again => FaultKind::Soft,
            TouchKind::Freed => FaultKind::Freed,
        },
        write: touch.write,
        thread: touch.tid,
        wait_ns: 0,
        requested_ns: 0,
        measured_ns: 0,
    }
}

// The touch of a row; `None` if its kind is not one of a profile.
fn touch(row: &Fault) -> Option<Touch> {
    Some(Touch {
        time_ns: row.time_ns,
        slot: usize::try_from(row.process_slot).ok()?,
        page: PageIndex::try_from(row.page).ok()?,
        tid: row.thread,
        kind: match row.kind {
            FaultKind::FirstTouch => TouchKind::First,
            FaultKind::Soft => TouchKind::Again,
            FaultKind::Freed => TouchKind::Freed,
            FaultKind::Fetch | FaultKind::Prefetch | FaultKind::Arrived | FaultKind::WriteBack => {
                return None;
            }
        },
        write: row.write,
    })
}
