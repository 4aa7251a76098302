//! Lists of flows, from CSV or Parquet; distributions of sizes, from text.

use std::fs::File;
use std::path::Path;

use measure::Instant;
use netsim::{Exchange, Flow};
use workload::Sizes;

use super::{SimError, exchange};
use document::DocumentError;
use document::csv::{Row, rows};
use document::toml_text;

/// Columns of a list, as CSV; a time may be in another unit, and an exchange need not be there.
const COLUMNS: &str = "start_ps (or start_ns, start_us), src, dst and bytes";

/// Reads a list of flows between `host_count` hosts; Parquet if its name ends in `.parquet`.
///
/// # Errors
/// The first invalid flow, with its place.
pub(super) fn flows(path: &Path, host_count: u32) -> Result<Vec<Flow>, SimError> {
    let is_parquet = path.extension().is_some_and(|ending| ending == "parquet");
    let flows = if is_parquet {
        parquet(path, host_count)?
    } else {
        csv(&path.display().to_string(), &super::read_text(path)?, host_count)?
    };
    if flows.is_empty() {
        let message = format!("there are no flows; give rows of {COLUMNS}");
        return Err(SimError::at(path.display().to_string(), message));
    }
    Ok(flows)
}

/// Reads the flows of a Parquet list.
fn parquet(path: &Path, host_count: u32) -> Result<Vec<Flow>, SimError> {
    let unreadable = |source| DocumentError::Unreadable { path: path.to_owned(), source };
    let wrong = |source| DocumentError::Table { place: path.display().to_string(), source };
    let rows = records::read_flows(File::open(path).map_err(unreadable)?).map_err(wrong)?;
    let flow = |(row, flow): (usize, records::FlowStart)| {
        let start = Instant::from_ps(flow.start_ps);
        let exchange = flow.exchange.map_or(Exchange::OneWay, exchange::read);
        let flow = Flow { start, src: flow.src, dst: flow.dst, bytes: flow.bytes, exchange };
        check(&flow, host_count).map_err(|(column, message)| {
            let place = format!("{}: row {}, column {column}", path.display(), row + 1);
            SimError::at(place, message)
        })?;
        Ok(flow)
    };
    rows.into_iter().enumerate().map(flow).collect()
}

/// Checks a flow; the error names the invalid column and says what is wrong.
fn check(flow: &Flow, host_count: u32) -> Result<(), (&'static str, String)> {
    for (column, host) in [("src", flow.src), ("dst", flow.dst)] {
        if host >= host_count {
            let last = host_count - 1;
            let message = format!("there is no host {host}; hosts are 0 to {last}");
            return Err((column, message));
        }
    }
    if flow.src == flow.dst {
        return Err(("dst", "a flow to its own host; give it another destination".to_owned()));
    }
    if flow.bytes == 0 {
        return Err(("bytes", "a flow of no bytes; give it at least 1".to_owned()));
    }
    Ok(())
}

/// Where the columns are, and picoseconds of a unit of time.
struct Header {
    places: [usize; 4],
    exchange: Option<usize>,
    unit_ps: f64,
}

/// Reads the flows of a CSV list; a line that begins with `#` is a comment.
fn csv(name: &str, text: &str, host_count: u32) -> Result<Vec<Flow>, SimError> {
    let wrong =
        |at: usize, message: String| SimError::at(toml_text::place(name, text, at), message);
    let is_note = |row: &Row| row.cells().next().is_some_and(|cell| cell.1.starts_with('#'));
    let mut lines = rows(text).filter(|row| !is_note(row));
    let Some(first) = lines.next() else { return Ok(Vec::new()) };
    let header = header(&first).map_err(|missing| {
        wrong(first.at, format!("the first line names no column {missing}; it needs {COLUMNS}"))
    })?;
    let mut flows = Vec::new();
    for line in lines {
        let fields: Vec<(usize, &str)> = line.cells().collect();
        let field = |index: usize| {
            let place = header.places[index];
            fields.get(place).copied().unwrap_or((line.end, ""))
        };
        let whole = |index: usize| {
            let (at, text) = field(index);
            let what = ["start", "src", "dst", "bytes"][index];
            text.parse::<u64>()
                .map_err(|_| wrong(at, format!("\"{text}\" is no {what}; give a whole number")))
        };
        let host = |index| whole(index).map(|host| u32::try_from(host).unwrap_or(u32::MAX));
        let start = if header.unit_ps == 1.0 {
            whole(0)?
        } else {
            let (at, text) = field(0);
            picoseconds(text, header.unit_ps)
                .ok_or_else(|| wrong(at, format!("\"{text}\" is no start; give a time from 0")))?
        };
        let start = Instant::from_ps(start);
        let exchange = match header.exchange.and_then(|place| fields.get(place)) {
            Some(&(at, text)) => {
                let read = text.parse().map(exchange::read);
                read.map_err(|error: records::RecordError| wrong(at, error.to_string()))?
            }
            None => Exchange::OneWay,
        };
        let flow = Flow { start, src: host(1)?, dst: host(2)?, bytes: whole(3)?, exchange };
        check(&flow, host_count).map_err(|(column, message)| {
            let index = ["src", "dst", "bytes"].iter().position(|name| *name == column);
            wrong(field(index.map_or(3, |index| index + 1)).0, message)
        })?;
        flows.push(flow);
    }
    Ok(flows)
}

// Where each column is, by the first line; the error is the name of one that is missing.
fn header(line: &Row) -> Result<Header, &'static str> {
    let names: Vec<&str> = line.cells().map(|(_, name)| name).collect();
    let place = |name: &str| names.iter().position(|other| *other == name);
    let starts = [("start_ps", 1.0), ("start_ns", 1e3), ("start_us", 1e6)];
    let (start, unit_ps) = starts
        .into_iter()
        .find_map(|(name, unit_ps)| Some((place(name)?, unit_ps)))
        .ok_or("start_ps")?;
    let needed = |name: &'static str| place(name).ok_or(name);
    let places = [start, needed("src")?, needed("dst")?, needed("bytes")?];
    Ok(Header { places, exchange: place("exchange"), unit_ps })
}

/// A time in a unit of `unit_ps`, as picoseconds; `None` if it is no number, or out of range.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be from 0 to what a picosecond in 64 bits holds"
)]
fn picoseconds(text: &str, unit_ps: f64) -> Option<u64> {
    let ps = (text.parse::<f64>().ok()? * unit_ps).round();
    (0.0..1.8e19).contains(&ps).then_some(ps as u64)
}

/// Reads a distribution: on each line a size in bytes first, and its cumulative share last. Words
/// in between, empty lines and lines that begin with `#` are skipped.
///
/// # Errors
/// The first invalid word or point, with its place.
pub(super) fn sizes(path: &Path) -> Result<Sizes, SimError> {
    let name = path.display().to_string();
    let text = super::read_text(path)?;
    let wrong =
        |at: usize, message: String| SimError::at(toml_text::place(&name, &text, at), message);
    let (mut points, mut last, mut starts) = (Vec::new(), (0.0, 0.0), Vec::new());
    let mut next = 0;
    for line in text.split('\n') {
        let start = next;
        next += line.len() + 1;
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let words = words(start, line);
        let (Some(&first), Some(&end)) = (words.first(), words.last().filter(|_| words.len() > 1))
        else {
            let message = "a line is a size in bytes and its cumulative share".to_owned();
            return Err(wrong(start, message));
        };
        let number = |(at, word): (usize, &str)| {
            let number: Option<f64> = word.parse().ok().filter(|number: &f64| number.is_finite());
            number.ok_or_else(|| wrong(at, format!("\"{word}\" is no number")))
        };
        let point = (number(first)?, number(end)?);
        if point.0 <= 0.0 || point.0 < last.0 || point.1 < last.1 {
            let message = "sizes must be above 0, and both must rise".to_owned();
            return Err(wrong(start, message));
        }
        last = point;
        points.push(point);
        starts.push(start);
    }
    let at = starts.last().copied().unwrap_or(0);
    Sizes::new(points).map_err(|error| wrong(at, error.to_string()))
}

/// The words of a line, each with its offset in the text; the line begins at `start`.
fn words(start: usize, line: &str) -> Vec<(usize, &str)> {
    let is_between = |c: char| c.is_whitespace() || c == ',';
    let mut words = Vec::new();
    let mut at = 0;
    for word in line.split(is_between) {
        if !word.is_empty() {
            words.push((start + at, word));
        }
        // A separator is one byte long, except rare white space.
        at += word.len() + 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_their_columns_by_name() {
        let flows = csv("f", "bytes,note,dst,src,start_us\n# no\n100,x,1,0,1.5\n", 2).unwrap();
        let start = Instant::from_ps(1_500_000);
        let flow = Flow { start, dst: 1, bytes: 100, ..Flow::default() };
        assert_eq!(flows, [flow]);
        let read = csv("f", "start_us,src,dst,bytes,exchange\n1.5,0,1,100,read\n", 2).unwrap();
        assert_eq!(read, [Flow { exchange: Exchange::Read, ..flow }]);
        let said = |text: &str| csv("f", text, 4).unwrap_err().to_string();
        assert!(said("src,dst\n0,1").starts_with("f:1:1: the first line names no column start_ps"));
        let source = "start_us,source,destination,bytes\n0,1,2,5";
        assert!(said(source).starts_with("f:1:1: the first line names no column src; it needs"));
        assert_eq!(
            said("start_ps,src,dst,bytes\n0,1,9,5"),
            "f:2:5: there is no host 9; hosts are 0 to 3"
        );
        assert!(said("start_ps,src,dst,bytes\n0,1,2,0").starts_with("f:2:7: a flow of no bytes"));
        assert!(said("start_ps,src,dst,bytes\n0,1").starts_with("f:2:4: \"\" is no dst"));
        assert!(said("start_ns,src,dst,bytes\n-1,1,2,5").starts_with("f:2:1: \"-1\" is no start"));
        assert!(said("start_ps,src,dst,bytes\n0,2,2,5").starts_with("f:2:5: a flow to its own"));
        assert_eq!(
            said("start_ps,src,dst,bytes,exchange\n0,1,2,5,rread"),
            "f:2:9: there is no exchange \"rread\"; give one-way, read or write"
        );
    }
}
