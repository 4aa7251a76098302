//! Rows and cells of CSV (RFC 4180, quoted cells included) with their places in the text.

use std::ops::Range;

use csv_core::{ReadFieldResult, Reader};

/// A row of CSV.
#[derive(Debug, Default)]
pub struct Row {
    /// Offset of its first cell.
    pub at: usize,
    /// Offset of its end: the place of a cell that it lacks.
    pub end: usize,
    // The text of all cells, one after another, and for each cell where it begins in the source and
    // its range in `text`.
    text: String,
    cells: Vec<(usize, Range<usize>)>,
}

impl Row {
    /// The cells, trimmed, each with its offset in the source.
    pub fn cells(&self) -> impl Iterator<Item = (usize, &str)> {
        self.cells.iter().map(|(at, place)| (*at, self.text[place.clone()].trim()))
    }
}

/// The rows that are not blank. A quote that is not closed extends to the end of the text.
pub fn rows(text: &str) -> impl Iterator<Item = Row> {
    Rows { text, at: 0, reader: Reader::new() }
        .filter(|row| row.cells().any(|(_, cell)| !cell.is_empty()))
}

/// The parts between commas, trimmed, each with its offset: `a=1, b=2`.
pub fn list(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(',').scan(0, |at, part| {
        let here = *at + (part.len() - part.trim_start().len());
        *at += part.len() + 1;
        Some((here, part.trim()))
    })
}

struct Rows<'a> {
    text: &'a str,
    at: usize,
    reader: Reader,
}

impl Rows<'_> {
    // Offset of the next cell's text: after line ends if it is a row's first, white space and a
    // quote.
    fn start(&self, is_first: bool) -> usize {
        let rest = &self.text[self.at..];
        let line = if is_first { rest.trim_start_matches(['\r', '\n']) } else { rest };
        let cell = line.trim_start_matches([' ', '\t']);
        self.at + (rest.len() - cell.len()) + usize::from(cell.starts_with('"'))
    }
}

impl Iterator for Rows<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let mut row = Row { at: self.start(true), ..Row::default() };
        let mut bytes = Vec::new();
        let mut buffer = [0; 256];
        let (mut start, mut from) = (row.at, 0);
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let (result, read, written) = self.reader.read_field(rest, &mut buffer);
            self.at += read;
            bytes.extend_from_slice(&buffer[..written]);
            match result {
                // An empty input makes the reader end the last cell.
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
                ReadFieldResult::End => return None,
                ReadFieldResult::Field { record_end } => {
                    row.cells.push((start, from..bytes.len()));
                    from = bytes.len();
                    if record_end {
                        break;
                    }
                    start = self.start(false);
                }
            }
        }
        row.end = self.text[..self.at].trim_end_matches(['\r', '\n']).len();
        // Only quotes were removed, so it is still valid UTF-8.
        row.text = String::from_utf8(bytes).unwrap_or_default();
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Vec<(usize, String)>> {
        let cells = |row: Row| row.cells().map(|(at, cell)| (at, cell.to_owned())).collect();
        rows(text).map(cells).collect()
    }

    #[test]
    fn cells_have_places() {
        let text = "a, b\r\n\n  \n1,2\n,3";
        let wanted = [
            vec![(0, "a".to_owned()), (3, "b".to_owned())],
            vec![(10, "1".to_owned()), (12, "2".to_owned())],
            vec![(14, String::new()), (15, "3".to_owned())],
        ];
        assert_eq!(read(text), wanted);
        let places: Vec<_> = rows(text).map(|row| [row.at, row.end]).collect();
        assert_eq!(places, [[0, 4], [10, 13], [14, 16]]);
        assert_eq!(read(""), Vec::<Vec<_>>::new());
    }

    #[test]
    fn cells_may_be_quoted() {
        let long = "x".repeat(1000);
        let text = format!("\"a,b\",\"say \"\"no\"\"\"\n\"two\nlines\", {long}\n");
        let wanted = [
            vec![(1, "a,b".to_owned()), (7, "say \"no\"".to_owned())],
            vec![(20, "two\nlines".to_owned()), (32, long)],
        ];
        assert_eq!(read(&text), wanted);
    }

    #[test]
    fn lists_have_places() {
        let all: Vec<_> = list("a=1, b=2").collect();
        assert_eq!(all, [(0, "a=1"), (5, "b=2")]);
    }
}
