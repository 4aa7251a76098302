//! Block I/O as blkparse writes it, and the trace backend of `afar serve`: columns that one program
//! prints, for which no library is needed.

use std::path::Path;

use super::SimError;
use super::transfer::{Place, Transfer};

const SECTOR_BYTES: u64 = 512;
const PS_PER_SEC: f64 = 1e12;

/// Reads block I/O from a trace: events of issue (D) if there are any, else of queueing (Q).
///
/// # Errors
/// The first invalid event, with its place.
pub(super) fn read(path: &Path) -> Result<Vec<Transfer>, SimError> {
    let text = super::read_text(path)?;
    let wrong = |line: usize, what: &str| {
        SimError::at(
            format!("{}:{line}:1", path.display()),
            format!("{what}; give what blkparse or trace: has written"),
        )
    };
    let (mut issued, mut queued) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Lines of totals at the end have no device number.
        let is_event = words.first().is_some_and(|word| {
            word.split_once(',').is_some_and(|(major, _)| major.parse::<u32>().is_ok())
        });
        if !is_event {
            continue;
        }
        let [_, _, _, time, _, action, kind, rest @ ..] = &words[..] else {
            return Err(wrong(number, "an event of fewer than seven words"));
        };
        let list = match *action {
            "D" => &mut issued,
            "Q" => &mut queued,
            _ => continue,
        };
        let is_read = kind.contains('R');
        let [sector, "+", count, ..] = rest else { continue };
        if !is_read && !kind.contains('W') {
            continue;
        }
        let (Some(at_ps), Ok(sector), Ok(count)) =
            (picoseconds(time), sector.parse::<u64>(), count.parse::<u64>())
        else {
            return Err(wrong(number, "a time, sector or count that is no number"));
        };
        let bytes = count.saturating_mul(SECTOR_BYTES);
        if bytes > 0 {
            let (place, address_end) = (Place::Disk, sector.saturating_add(count));
            list.push(Transfer { at_ps, place, address: sector, address_end, bytes, is_read });
        }
    }
    let mut moved = if issued.is_empty() { queued } else { issued };
    let end = moved.iter().map(|transfer| transfer.address_end).max().unwrap_or(1);
    moved.iter_mut().for_each(|transfer| transfer.address_end = end);
    Ok(moved)
}

/// Seconds in a text as picoseconds; `None` if the text is no number, or out of range.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be from 0 to half a year"
)]
fn picoseconds(text: &str) -> Option<u64> {
    let ps = (text.parse::<f64>().ok()? * PS_PER_SEC).round();
    (0.0..1.6e19).contains(&ps).then_some(ps as u64)
}
