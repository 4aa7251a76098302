//! What a logical unit has done, and how well it is: LOG SENSE (SPC-4 6.8, 7.3).
//!
//! Nothing is set and nothing is kept: what is counted is counted from the opening of the medium.

use super::sense::Sense;
use wire::put;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogAsked {
    /// The page.
    pub page: u8,
    /// Its subpage.
    pub subpage: u8,
    /// Parameters from this code on.
    pub first: u16,
}

/// What a logical unit has done, whoever has asked for it, and over what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogFigures {
    /// Commands that have ended: reads, and writes.
    pub commands: [u64; 2],
    /// Blocks that were read, and written.
    pub blocks: [u64; 2],
    /// Microseconds that reads took all together, and writes.
    pub times_us: [u64; 2],
    /// What it took is not there any more.
    pub has_lost: bool,
}

// Supported pages, with subpages or without; general statistics and performance; informational
// exceptions (SPC-4 7.3.2).
const PAGES: u8 = 0x00;
const STATISTICS: u8 = 0x19;
const EXCEPTIONS: u8 = 0x2f;
const ALL: u8 = 0xff;
/// DS: nothing is saved; SPF: there is a subpage.
const NOT_SAVED: u8 = 0x80;
const HAS_SUBPAGE: u8 = 0x40;
/// FORMAT AND LINKING: a list of binary values.
const LIST: u8 = 3;
/// FAILURE PREDICTION THRESHOLD EXCEEDED.
const FAILING: [u8; 2] = [0x5d, 0];
/// No temperature is known.
const NO_TEMPERATURE: u8 = 0xff;

impl LogAsked {
    /// The page of a logical unit that has done this.
    ///
    /// # Errors
    /// When there is no such page, or no such parameter.
    pub fn page(self, figures: &LogFigures) -> Result<Vec<u8>, Sense> {
        let mut data = vec![self.page, self.subpage, 0, 0];
        match (self.page, self.subpage) {
            (PAGES, 0) => data.extend([PAGES, STATISTICS, EXCEPTIONS]),
            (PAGES, ALL) => {
                data[0] |= HAS_SUBPAGE;
                data.extend([PAGES, 0, PAGES, ALL, STATISTICS, 0, EXCEPTIONS, 0]);
            }
            (STATISTICS, 0) => self.parameters(&statistics(figures), &mut data)?,
            (EXCEPTIONS, 0) => self.parameters(&[exceptions(figures)], &mut data)?,
            (PAGES | STATISTICS | EXCEPTIONS, _) => return Err(Sense::in_cdb(3, None)),
            _ => return Err(Sense::in_cdb(2, Some(5))),
        }
        let length = u16::try_from(data.len() - 4).unwrap_or(u16::MAX);
        put(&mut data, 2, &length.to_be_bytes());
        Ok(data)
    }

    // SPC-4 7.3.2.2: each with its code and length, from PARAMETER POINTER on.
    fn parameters(self, all: &[(u16, Vec<u8>)], data: &mut Vec<u8>) -> Result<(), Sense> {
        data[0] |= NOT_SAVED;
        if all.iter().all(|(code, _)| *code < self.first) {
            return Err(Sense::in_cdb(5, None));
        }
        for (code, bytes) in all.iter().filter(|(code, _)| *code >= self.first) {
            data.extend(code.to_be_bytes());
            data.extend([LIST, u8::try_from(bytes.len()).unwrap_or(u8::MAX)]);
            data.extend(bytes);
        }
        Ok(())
    }
}

// Times are told in microseconds; there are no weighted ones.
fn statistics(figures: &LogFigures) -> [(u16, Vec<u8>); 2] {
    let LogFigures { commands, blocks: [read, written], times_us, .. } = figures;
    let mut counts = vec![0; 64];
    // Blocks received, then those transmitted.
    let all = commands.iter().chain([written, read]).chain(times_us);
    for (index, value) in all.enumerate() {
        put(&mut counts, 8 * index, &value.to_be_bytes());
    }
    // EXPONENT, INTEGER: 1 times 10 to the power of -6 seconds.
    [(1, counts), (3, vec![0, 0, 0, 6, 0, 0, 0, 1])]
}

fn exceptions(figures: &LogFigures) -> (u16, Vec<u8>) {
    let [code, qualifier] = if figures.has_lost { FAILING } else { [0; 2] };
    (0, vec![code, qualifier, NO_TEMPERATURE, 0])
}
