//! Every fault of a run: how many over time, how long they took, where in memory they were.

use chart::{Axis, Cell, Heat, Kind, Look, Plot, Point, Series, in_bytes, short};
use records::{Fault, FaultKind, FaultReader, RecordError};

use super::run::{distribution, distributions};
use super::section::{Chart, Picture, Section, Table};
use super::words::{exact, list, time_ns};
use console::layout::count;

/// The most faults that are read; a record may have any number.
const FAULTS_MAX: usize = 20_000_000;
/// The most rows of the table of faults, so that the page stays small enough to be sent.
const ROWS_MAX: usize = 1_000;
/// How many pieces time and memory are divided into.
const COLUMNS: usize = 240;
const RANGES: usize = 48;

const TITLE: &str = "Every fault of a run";
const KIND: &str = "faults";
const PAGE_BYTES: f64 = 4096.0;

/// The section of an invalid record of faults.
pub(super) fn invalid(why: String) -> Section {
    let title = TITLE.to_owned();
    Section { title, kind: KIND, invalid: Some(why), ..Section::default() }
}

/// The section of faults that `afar run --record` has written.
pub(super) fn section(mut reader: FaultReader) -> Result<Section, RecordError> {
    let all = reader.row_count();
    let command = reader.note("command").unwrap_or_default().to_owned();
    let mut faults = Vec::new();
    while faults.len() < FAULTS_MAX {
        let Some(group) = reader.next_group()? else { break };
        faults.extend(group);
    }
    faults.truncate(FAULTS_MAX);
    faults.sort_by_key(|fault| fault.time_ns);
    let mut section = Section {
        title: TITLE.to_owned(),
        kind: KIND,
        answer: answer(&faults),
        // The note has the words of the command joined, and is shown as it is.
        command: if command.is_empty() { Vec::new() } else { vec![command] },
        ..Section::default()
    };
    if (faults.len() as u64) < all {
        let read = count(faults.len() as u64);
        section.warnings.push(format!("the first {read} of {} faults are shown", count(all)));
    }
    if let (Some(first), Some(last)) = (faults.first(), faults.last()) {
        let time = Time { from: first.time_ns, to: last.time_ns.max(first.time_ns + 1) };
        section.pictures.push(rate(&faults, &time));
        section.pictures.extend(latency(&faults, &time, all));
        section.pictures.extend(cdf(&faults));
        section.pictures.extend(places(&faults, &time));
    }
    Ok(section)
}

/// The time of the record, divided into `COLUMNS` pieces.
struct Time {
    from: u64,
    to: u64,
}

impl Time {
    /// The piece of time in which a fault was.
    fn column(&self, fault: &Fault) -> usize {
        let share = (fault.time_ns - self.from) as f64 / (self.to - self.from) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a column")]
        let column = (share * COLUMNS as f64) as usize;
        column.min(COLUMNS - 1)
    }

    /// The length of a piece, ns.
    fn piece_ns(&self) -> f64 {
        (self.to - self.from) as f64 / COLUMNS as f64
    }

    // The middle of a column, in seconds.
    fn middle_s(&self, column: usize) -> f64 {
        (self.from as f64 + (column as f64 + 0.5) * self.piece_ns()) / 1e9
    }
}

/// Whether a fault is a fetch whose time was measured.
fn is_timed(fault: &&Fault) -> bool {
    fault.kind == FaultKind::Fetch && fault.measured_ns > 0
}

/// Sentences on the number, kinds and times of faults.
fn answer(faults: &[Fault]) -> Vec<String> {
    let is_fault = |kind: &FaultKind| *kind != FaultKind::WriteBack;
    let kinds = FaultKind::ALL.into_iter().filter(is_fault).filter_map(|kind| {
        let number = faults.iter().filter(|fault| fault.kind == kind).count() as u64;
        let name = kind.name().replace('_', " ");
        (number > 0).then(|| format!("{} {name}", count(number)))
    });
    let kinds = list(&kinds.collect::<Vec<_>>());
    let mut times: Vec<u32> = faults.iter().filter(is_timed).map(|one| one.measured_ns).collect();
    times.sort_unstable();
    let left = |fault: &&Fault| fault.kind == FaultKind::WriteBack;
    let mut answer = vec![match faults.len() - faults.iter().filter(left).count() {
        0 => "The record has no faults: everything the program touched was local.".to_owned(),
        number => format!("{} faults: {kinds}.", count(number as u64)),
    }];
    match faults.iter().filter(left).count() as u64 {
        0 => {}
        1 => answer.push("One page was written back.".to_owned()),
        number => answer.push(format!("{} pages were written back.", count(number))),
    }
    if !times.is_empty() {
        let at = |share: f64| quantile(&times, share);
        answer.push(format!(
            "Half of the fetches took up to {}, one in a hundred more than {}, the longest {}.",
            time_ns(at(0.5)),
            time_ns(at(0.99)),
            time_ns(at(1.0))
        ));
    }
    answer
}

// A quantile of sorted times, ns.
fn quantile(times: &[u32], share: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let index = ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1;
    f64::from(times[index])
}

/// The picture of faults per millisecond over time, by kind.
fn rate(faults: &[Fault], time: &Time) -> Picture {
    let mut counts = vec![[0_u64; FaultKind::ALL.len()]; COLUMNS];
    for fault in faults {
        let kind = FaultKind::ALL.iter().position(|kind| *kind == fault.kind).unwrap_or(0);
        counts[time.column(fault)][kind] += 1;
    }
    let per_ms = |number: u64| number as f64 / (time.piece_ns() / 1e6);
    let mut table = Table::new(["time_s"]);
    let kinds: Vec<usize> = (0..FaultKind::ALL.len())
        .filter(|kind| counts.iter().any(|column| column[*kind] > 0))
        .collect();
    let name = |kind: &usize| FaultKind::ALL[*kind].name().replace('_', " ");
    table.columns.extend(kinds.iter().map(|kind| format!("{} per ms", name(kind))));
    for (column, counts) in counts.iter().enumerate() {
        let mut row = vec![exact(time.middle_s(column))];
        row.extend(kinds.iter().map(|kind| exact(per_ms(counts[*kind]))));
        table.rows.push(row);
    }
    let series = kinds.iter().map(|kind| {
        let points = counts.iter().enumerate();
        let points = points.map(|(column, counts)| (time.middle_s(column), per_ms(counts[*kind])));
        Series::new(name(kind), Look::Steps, points.collect())
    });
    let chart = Plot {
        title: "Faults over time".to_owned(),
        x: Axis::new("time, s", Kind::Linear),
        y: Axis::new("faults per ms", Kind::Linear).showing(&[0.0]),
        series: series.collect(),
        bounds: Vec::new(),
        marks: Vec::new(),
    };
    Picture {
        name: "faults-over-time".to_owned(),
        title: "Faults over time".to_owned(),
        caption: format!("By kind, counted in pieces of {}.", time_ns(time.piece_ns())),
        chart: Chart::Plot(chart),
        table,
    }
}

/// The picture of fetch times over time; `None` without a measured fetch.
fn latency(faults: &[Fault], time: &Time, all: u64) -> Option<Picture> {
    let timed: Vec<&Fault> = faults.iter().filter(is_timed).collect();
    if timed.is_empty() {
        return None;
    }
    let mut points = Vec::new();
    for shared in timed.chunk_by(|one, other| time.column(one) == time.column(other)) {
        let mut times: Vec<u32> = shared.iter().map(|one| one.measured_ns).collect();
        times.sort_unstable();
        let us = |share: f64| quantile(&times, share) / 1e3;
        let interval = Some((us(0.0), us(1.0)));
        points.push(Point { x: time.middle_s(time.column(shared[0])), y: us(0.5), interval });
    }
    let mut table = Table::new([
        "time_ns",
        "process",
        "page",
        "kind",
        "write",
        "wait_ns",
        "requested_ns",
        "measured_ns",
    ]);
    for fault in faults.iter().take(ROWS_MAX) {
        table.push([
            fault.time_ns.to_string(),
            fault.process_slot.to_string(),
            fault.page.to_string(),
            fault.kind.to_string(),
            u8::from(fault.write).to_string(),
            fault.wait_ns.to_string(),
            fault.requested_ns.to_string(),
            fault.measured_ns.to_string(),
        ]);
    }
    table.cut_from = (all > ROWS_MAX as u64).then_some(all);
    let series =
        vec![Series { name: "median, shortest to longest".to_owned(), points, look: Look::Band }];
    let chart = Plot {
        title: "Time of a fetch over time".to_owned(),
        x: Axis::new("time, s", Kind::Linear),
        y: Axis::new("fetch, µs", Kind::Either),
        series,
        bounds: Vec::new(),
        marks: Vec::new(),
    };
    let (number, piece) = (count(timed.len() as u64), time_ns(time.piece_ns()));
    Some(Picture {
        name: "latency-over-time".to_owned(),
        title: "Time of a fetch over time".to_owned(),
        caption: format!(
            "{number} fetches in pieces of {piece}: the line is the median of each, the band \
             reaches from its shortest to its longest."
        ),
        chart: Chart::Plot(chart),
        table,
    })
}

/// The picture of the distributions of fetch times, of reads and of writes; `None` without any.
fn cdf(faults: &[Fault]) -> Option<Picture> {
    let mut series = Vec::new();
    for (name, is_write) in [("reads", false), ("writes", true)] {
        let ours = faults.iter().filter(is_timed).filter(|fault| fault.write == is_write);
        let mut times: Vec<u32> = ours.map(|fault| fault.measured_ns).collect();
        times.sort_unstable();
        let shared = times.chunk_by(|one, other| one == other);
        let bins: Vec<(u64, u64)> =
            shared.map(|same| (u64::from(same[0]), same.len() as u64)).collect();
        if !bins.is_empty() {
            series.push(distribution(name, &bins));
        }
    }
    let caption = "The share of fetches that took no longer, by the access that caused them.";
    let title = "Time of a fetch, reads and writes";
    (!series.is_empty()).then(|| distributions(title, caption, series))
}

/// A map of fetches by time and place in memory. Its rows are ranges of equally many pages, in the
/// order of addresses; pages that were never fetched are left out.
fn places(faults: &[Fault], time: &Time) -> Option<Picture> {
    let fetched: Vec<&Fault> =
        faults.iter().filter(|fault| fault.kind == FaultKind::Fetch).collect();
    let mut pages: Vec<(u32, u64)> =
        fetched.iter().map(|one| (one.process_slot, one.page)).collect();
    pages.sort_unstable();
    pages.dedup();
    let ranges = RANGES.min(pages.len());
    if ranges == 0 {
        return None;
    }
    let columns = COLUMNS / 4;
    let mut counts = vec![vec![0_u64; columns]; ranges];
    for fault in &fetched {
        let index = pages.partition_point(|page| *page < (fault.process_slot, fault.page));
        counts[index * ranges / pages.len()][time.column(fault) * columns / COLUMNS] += 1;
    }
    let most = counts.iter().flatten().copied().max().unwrap_or(1).max(1) as f64;
    let bytes = pages.len() as f64 * PAGE_BYTES;
    let at = |range: usize| in_bytes(bytes * range as f64 / ranges as f64);
    let mut table = Table::new(["from", "time_s", "fetches"]);
    let second = |column: usize| short(time.middle_s(column * COLUMNS / columns + 2));
    let mut rows = Vec::new();
    for (range, counts) in counts.iter().enumerate().rev() {
        let mut cells = Vec::new();
        for (column, number) in counts.iter().enumerate() {
            if *number > 0 {
                table.push([at(range), second(column), number.to_string()]);
            }
            let depth = (*number as f64).ln_1p() / most.ln_1p();
            let text = format!("{number} fetches");
            let cell = Cell { depth, text, is_within: false, is_doubtful: false };
            cells.push((*number > 0).then_some(cell));
        }
        rows.push((at(range), cells));
    }
    Some(Picture {
        name: "fetches-by-place".to_owned(),
        title: "Fetches by time and place in memory".to_owned(),
        caption: format!(
            "{} of memory was fetched at some time; it lies from bottom to top in the order of its \
             addresses. Deeper is more, by its logarithm.",
            in_bytes(bytes)
        ),
        chart: Chart::Heat(Heat {
            title: "Fetches by time and place in memory".to_owned(),
            axes: ("time, s".to_owned(), "memory".to_owned()),
            columns: (0..columns).map(second).collect(),
            rows,
            edge: None,
            key: vec![(0.05, "few".to_owned()), (1.0, format!("{} fetches", short(most)))],
            ..Heat::default()
        }),
        table,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(time_ns: u64, page: u64, measured_ns: u32) -> Fault {
        Fault {
            time_ns,
            process_slot: 0,
            page,
            kind: FaultKind::Fetch,
            write: page.is_multiple_of(2),
            thread: 1,
            wait_ns: 0,
            requested_ns: 5_000,
            measured_ns,
        }
    }

    #[test]
    fn the_longest_fetch_is_in_the_picture_however_many_there_are() {
        let mut faults: Vec<Fault> =
            (0..100_000).map(|at| fault(at * 10, at % 999, 5_000)).collect();
        faults[33_333].measured_ns = 77_000_000;
        let time = Time { from: 0, to: 1_000_000 };
        let picture = latency(&faults, &time, 300_000).expect("there are fetches");
        let Chart::Plot(plot) = &picture.chart else { panic!("it is a plot") };
        let highest = plot.series[0].points.iter().filter_map(|one| one.interval);
        assert_eq!(highest.fold(0.0, |most: f64, one| most.max(one.1)), 77_000.0);
        assert!(picture.chart.draw().svg.len() < 60_000);
        assert_eq!((picture.table.rows.len(), picture.table.cut_from), (ROWS_MAX, Some(300_000)));
    }

    #[test]
    fn every_fetch_has_a_place() {
        let faults: Vec<Fault> = (0..5_000).map(|at| fault(at, at * 31 % 997, 5_000)).collect();
        let time = Time { from: 0, to: 4_999 };
        let picture = places(&faults, &time).expect("there are fetches");
        let sum: u64 = picture.table.rows.iter().filter_map(|row| row[2].parse::<u64>().ok()).sum();
        assert_eq!(sum, 5_000);
        let rates = rate(&faults, &time);
        let per_ms: f64 =
            rates.table.rows.iter().filter_map(|row| row[1].parse::<f64>().ok()).sum();
        assert!((per_ms * time.piece_ns() / 1e6 - 5_000.0).abs() < 1.0, "{per_ms}");
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        assert_eq!(
            [0.0, 0.5, 0.99, 1.0].map(|share| quantile(&[1, 2, 3, 4], share)),
            [1.0, 2.0, 4.0, 4.0]
        );
    }
}
