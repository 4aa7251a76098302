//! What traces of clusters have in common: rows of CSV without names, read one by one, and stays
//! that begin and end.
//!
//! A row is bounded before it is read whole, and so are tenants, servers and stays: a file says how
//! large it is, and is not believed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use document::DocumentError;
use planner::cost::{Demand, Dimension, Server};
use planner::fleet::{Fleet, Stay};

const LINE_MAX: u64 = 1 << 16;
const NAMES_MAX: usize = 8_000_000;
const STAYS_MAX: usize = 20_000_000;
/// Ten years.
const HOURS_MAX: f64 = 87_600.0;

/// A row with its file and line.
pub(super) struct Row<'a> {
    pub(super) name: &'a str,
    pub(super) line: u64,
    pub(super) cells: Vec<&'a str>,
}

impl Row<'_> {
    /// An error about a cell, with its place.
    pub(super) fn wrong(&self, cell: usize, message: impl Into<String>) -> DocumentError {
        let before: usize = self.cells.iter().take(cell).map(|one| one.chars().count() + 1).sum();
        let place = format!("{}:{}:{}", self.name, self.line, before + 1);
        DocumentError::At { place, message: message.into() }
    }

    /// A number from `low` to `high`; an empty cell is `empty`, if that may be.
    pub(super) fn number(
        &self,
        cell: usize,
        (low, high): (f64, f64),
        empty: Option<f64>,
    ) -> Result<f64, DocumentError> {
        let text = self.cells[cell].trim();
        if let (true, Some(empty)) = (text.is_empty(), empty) {
            return Ok(empty);
        }
        let number = text.parse().ok().filter(|number| (low..=high).contains(number));
        number.ok_or_else(|| {
            self.wrong(cell, format!("\"{text}\": there should be a number from {low} to {high}"))
        })
    }

    /// The text of a cell; an empty cell is an error.
    pub(super) fn text(&self, cell: usize) -> Result<&str, DocumentError> {
        let text = self.cells[cell].trim();
        if text.is_empty() { Err(self.wrong(cell, "there should be a name")) } else { Ok(text) }
    }
}

/// Hands each row of a file to `take`; a row must have `count` cells.
pub(super) fn each_row(
    path: &Path,
    count: usize,
    take: impl FnMut(&Row<'_>) -> Result<(), DocumentError>,
) -> Result<(), DocumentError> {
    let unreadable = |source| DocumentError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    read_rows(BufReader::new(file), path, count, take)
}

/// The same for any reader; `path` stands for it in errors.
pub(super) fn read_rows(
    mut reader: impl BufRead,
    path: &Path,
    count: usize,
    mut take: impl FnMut(&Row<'_>) -> Result<(), DocumentError>,
) -> Result<(), DocumentError> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let read = (&mut reader).take(LINE_MAX).read_until(b'\n', &mut bytes);
        let read =
            read.map_err(|source| DocumentError::Unreadable { path: path.to_owned(), source })?;
        if read == 0 {
            break;
        }
        let wrong =
            |message: String| Err(DocumentError::At { place: format!("{name}:{line}:1"), message });
        if read as u64 == LINE_MAX {
            return wrong(format!("a row of {LINE_MAX} bytes or more; this is no such trace"));
        }
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return wrong("this is no text; unpack the file, or give another".to_owned());
        };
        let text = text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            continue;
        }
        let cells: Vec<&str> = text.split(',').collect();
        if cells.len() != count {
            let found = cells.len();
            return wrong(format!("a row of such a trace has {count} cells, this one has {found}"));
        }
        take(&Row { name: &name, line, cells })?;
    }
    Ok(())
}

/// The stays of a trace, as read so far.
#[derive(Debug, Default)]
pub(super) struct Stays {
    tenants: BTreeMap<String, u32>,
    servers: BTreeMap<String, u32>,
    stays: Vec<Stay>,
    /// Stays in which no hour begins, which are left out.
    pub(super) short_count: u64,
}

/// The time of a stay, in hours; without an end it lasts for ever.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    pub(super) from: f64,
    pub(super) to: Option<f64>,
}

impl Stays {
    /// Adds a stay, which covers the hours that begin in it.
    ///
    /// # Errors
    /// If there are too many tenants, machines or stays.
    pub(super) fn add(
        &mut self,
        row: &Row<'_>,
        (tenant, server): (&str, Option<&str>),
        time: Time,
        wants: Demand,
    ) -> Result<(), DocumentError> {
        let (from, to) = (hour(time.from), time.to.map_or(u32::MAX, hour));
        if from >= to {
            self.short_count += 1;
            return Ok(());
        }
        let too_many = |what: &str, most| too_many(row, what, most);
        self.room(row, 1)?;
        let tenant = number(&mut self.tenants, tenant);
        let tenant = tenant.ok_or_else(|| too_many("tenants", NAMES_MAX))?;
        let server = match server {
            None => None,
            Some(name) => {
                let server = number(&mut self.servers, name);
                Some(server.ok_or_else(|| too_many("machines", NAMES_MAX))?)
            }
        };
        self.stays.push(Stay { tenant, server, from, to, wants, day: None });
        Ok(())
    }

    /// Checks that there is room for `more` stays, some of which may not have ended yet.
    ///
    /// # Errors
    /// If there is no room.
    pub(super) fn room(&self, row: &Row<'_>, more: usize) -> Result<(), DocumentError> {
        let is_full = self.stays.len() + more > STAYS_MAX;
        if is_full { Err(too_many(row, "stays", STAYS_MAX)) } else { Ok(()) }
    }

    /// The fleet of all stays within `hours`; stays without a machine get one.
    pub(super) fn finish(self, hours: u32, server: &Server) -> Fleet {
        let names = |numbers: BTreeMap<String, u32>| {
            let mut names = vec![String::new(); numbers.len()];
            for (name, number) in numbers {
                names[number as usize] = name;
            }
            names
        };
        let mut stays = self.stays;
        stays.iter_mut().for_each(|stay| stay.to = stay.to.min(hours));
        stays.retain(|stay| stay.from < stay.to);
        let (tenants, servers) = (names(self.tenants), names(self.servers));
        let mut fleet = Fleet { tenants, servers, stays, hours };
        fleet.settle(server);
        fleet
    }
}

/// The error of a trace with more than `most` of something.
fn too_many(row: &Row<'_>, what: &str, most: usize) -> DocumentError {
    row.wrong(0, format!("there are more than {most} {what}; give a part of the trace"))
}

/// The number of a name, a new one for a new name; `None` if there are too many names.
fn number(numbers: &mut BTreeMap<String, u32>, name: &str) -> Option<u32> {
    if let Some(number) = numbers.get(name) {
        return Some(*number);
    }
    let next = u32::try_from(numbers.len()).ok().filter(|next| (*next as usize) < NAMES_MAX)?;
    numbers.insert(name.to_owned(), next);
    Some(next)
}

/// The first full hour from a time on.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to ten years")]
pub(super) fn hour(hours: f64) -> u32 {
    hours.ceil().clamp(0.0, HOURS_MAX) as u32
}

/// Shares of a machine as amounts.
pub(super) fn wants(server: &Server, shares: &[(Dimension, f64)]) -> Demand {
    let mut wants = Demand::default();
    for &(dimension, share) in shares {
        let each = server.get(dimension).unwrap_or(0) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of a u64")]
        let amount = (each * share).ceil() as u64;
        wants = wants.with(dimension, amount);
    }
    wants
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<u64, String> {
        let mut count = 0;
        let read = read_rows(text, Path::new("t.csv"), 2, |row| {
            row.text(0)?;
            row.number(1, (0.0, 1.0), None)?;
            count += 1;
            Ok(())
        });
        read.map(|()| count).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_are_read_one_by_one() {
        assert_eq!(read(b"a,1\n\nb,0.5\r\n"), Ok(2));
        let refused = |text: &[u8]| read(text).expect_err("it cannot be");
        assert_eq!(
            refused("a,1\né,2".as_bytes()),
            "t.csv:2:3: \"2\": there should be a number from 0 to 1"
        );
        assert!(refused(b"a,nan").starts_with("t.csv:1:3: \"nan\""));
        assert!(refused(b",1").starts_with("t.csv:1:1: there should be a name"));
        assert!(refused(b"a,1,2").contains("has 2 cells, this one has 3"));
        assert!(refused(b"\xff\xfe").contains("this is no text"));
        assert!(refused(&[b'x'; 1 << 17]).contains("a row of 65536 bytes or more"));
    }

    #[test]
    fn hours_are_looked_at_as_they_begin() {
        assert_eq!([-3.0, 0.0, 0.1, 1.0, 1e300].map(hour), [0, 0, 1, 1, 87_600]);
    }
}
