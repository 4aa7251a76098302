//! Log pages of a logical unit: its statistics and its health (LOG SENSE, SPC-4 6.8, 7.3).
//!
//! Initiators cannot set anything (there is no LOG SELECT), and no value is stored: all count from
//! the opening of the medium.

use super::layout::cdb::log_sense;
use super::layout::report::log;
use super::sense::Sense;

/// The fields of a LOG SENSE command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogAsked {
    /// The page.
    pub page: u8,
    /// Its subpage.
    pub subpage: u8,
    /// PARAMETER POINTER: the first parameter code that is wanted.
    pub first: u16,
}

/// Counts of a logical unit, over all initiators and hosts of both protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogFigures {
    /// Reads, and writes, that have ended.
    pub commands: [u64; 2],
    /// Blocks that were read, and written.
    pub blocks: [u64; 2],
    /// Microseconds that all reads took together, and all writes.
    pub times_us: [u64; 2],
    /// Whether the medium has lost data that it had accepted.
    pub has_lost: bool,
}

// Supported pages, with subpages or without; general statistics and performance; informational
// exceptions (SPC-4 7.3.2).
const PAGES: u8 = 0x00;
const STATISTICS: u8 = 0x19;
const EXCEPTIONS: u8 = 0x2f;
const ALL: u8 = 0xff;
/// FORMAT AND LINKING: a list of binary values.
const LIST: u8 = 3;
/// FAILURE PREDICTION THRESHOLD EXCEEDED.
const FAILING: u16 = 0x5d00;
/// Temperature unknown.
const NO_TEMPERATURE: u8 = 0xff;

impl LogAsked {
    /// Builds the requested log page, with these figures.
    ///
    /// # Errors
    /// The sense for a page, subpage or parameter that does not exist.
    pub fn page(self, figures: &LogFigures) -> Result<Vec<u8>, Sense> {
        let mut data = vec![0; log::HEADER_BYTES];
        log::PAGE_CODE.put(&mut data, self.page);
        log::SUBPAGE_CODE.put(&mut data, self.subpage);
        match (self.page, self.subpage) {
            (PAGES, 0) => data.extend([PAGES, STATISTICS, EXCEPTIONS]),
            (PAGES, ALL) => {
                log::SPF.put(&mut data, true);
                data.extend([PAGES, 0, PAGES, ALL, STATISTICS, 0, EXCEPTIONS, 0]);
            }
            (STATISTICS, 0) => self.parameters(&statistics(figures), &mut data)?,
            (EXCEPTIONS, 0) => self.parameters(&[exceptions(figures)], &mut data)?,
            (PAGES | STATISTICS | EXCEPTIONS, _) => {
                return Err(Sense::wrong(log_sense::SUBPAGE_CODE));
            }
            _ => return Err(Sense::wrong(log_sense::PAGE_CODE)),
        }
        let length = u16::try_from(data.len() - log::HEADER_BYTES).unwrap_or(u16::MAX);
        log::PAGE_LENGTH.put(&mut data, length);
        Ok(data)
    }

    // Appends parameters with their codes and lengths, from PARAMETER POINTER on (SPC-4 7.3.2.2).
    fn parameters(self, all: &[(u16, Vec<u8>)], data: &mut Vec<u8>) -> Result<(), Sense> {
        // DISABLE SAVE: no value outlives the process.
        log::DS.put(data, true);
        if all.iter().all(|(code, _)| *code < self.first) {
            return Err(Sense::wrong(log_sense::PARAMETER_POINTER));
        }
        for (code, bytes) in all.iter().filter(|(code, _)| *code >= self.first) {
            let mut header = [0; log::PARAMETER_HEADER_BYTES];
            log::PARAMETER_CODE.put(&mut header, *code);
            log::FORMAT.put(&mut header, LIST);
            log::PARAMETER_LENGTH.put(&mut header, u8::try_from(bytes.len()).unwrap_or(u8::MAX));
            data.extend(header);
            data.extend(bytes);
        }
        Ok(())
    }
}

// Parameters of the statistics page: counts and times, and the unit of times (1 µs).
fn statistics(figures: &LogFigures) -> [(u16, Vec<u8>); 2] {
    let LogFigures { commands, blocks: [read, written], times_us, .. } = figures;
    let mut counts = vec![0; log::COUNTS_BYTES];
    // Blocks received, then those transmitted.
    let all = commands.iter().chain([written, read]).chain(times_us);
    for (index, value) in (0..).zip(all) {
        log::COUNTS.nth(index).put(&mut counts, *value);
    }
    // 1 times 10 to the power of -6 seconds.
    let mut interval = vec![0; log::INTERVAL_BYTES];
    log::EXPONENT.put(&mut interval, 6);
    log::INTEGER.put(&mut interval, 1);
    [(1, counts), (3, interval)]
}

// The parameter of the informational exceptions page: whether the unit is failing.
fn exceptions(figures: &LogFigures) -> (u16, Vec<u8>) {
    let mut bytes = vec![0; log::EXCEPTIONS_BYTES];
    log::EXCEPTION.put(&mut bytes, if figures.has_lost { FAILING } else { 0 });
    log::TEMPERATURE.put(&mut bytes, NO_TEMPERATURE);
    (0, bytes)
}
