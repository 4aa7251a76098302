//! A line on the terminal with the state of the run, removed at its end.

use std::fmt::Write;

use console::Line;
use farmem::Snapshot;
use measure::{Bytes, Duration, Pages};

/// Time between two updates; a faster line cannot be read.
const PERIOD_NS: u64 = 500_000_000;
/// The line, with the counts at its last update.
#[derive(Debug)]
pub(crate) struct LiveLine {
    last: Option<Look>,
    line: Line,
}

#[derive(Debug, Clone, Copy)]
struct Look {
    elapsed_ns: u64,
    fault_count: u64,
}

impl LiveLine {
    /// A new line; `None` if progress is not to be shown.
    pub(crate) fn if_watched() -> Option<Self> {
        Line::if_watched().map(|line| Self { last: None, line })
    }

    /// Removes the line until it is drawn again.
    pub(crate) fn clear(&mut self) {
        self.line.clear();
    }

    /// Redraws the line if it is due.
    pub(crate) fn update(&mut self, snapshot: &Snapshot) {
        let now = Look { elapsed_ns: snapshot.elapsed_ns, fault_count: snapshot.fault_count };
        let Some(last) = self.last else {
            self.last = Some(now);
            return;
        };
        if now.elapsed_ns - last.elapsed_ns < PERIOD_NS {
            return;
        }
        self.last = Some(now);
        self.line.draw(&text(snapshot, last));
    }
}

// The text of the line.
fn text(snapshot: &Snapshot, last: Look) -> String {
    let far = snapshot.populated_pages.saturating_sub(snapshot.resident_pages);
    let size = |pages| Pages::new(pages).bytes();
    let faults = snapshot.fault_count.saturating_sub(last.fault_count);
    let ns = snapshot.elapsed_ns.saturating_sub(last.elapsed_ns).max(1);
    let rate = u128::from(faults) * 1_000_000_000 / u128::from(ns);
    let mut text = String::from("afar");
    let _infallible = write!(
        text,
        "  local {}  far {}  {rate} faults/s",
        mib(size(snapshot.resident_pages)),
        mib(size(far)),
    );
    if snapshot.fetch_p99_ns > 0 {
        let p99 = Duration::from_ns(snapshot.fetch_p99_ns);
        let _infallible = write!(text, "  fetch p99 {p99}");
    }
    let _infallible = write!(text, "  stalls {}", snapshot.stall_count);
    text
}

/// A size in MiB whatever it is, so that the columns keep their places.
fn mib(size: Bytes) -> String {
    let tenths = size.get() * 10 / (1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_moment() {
        let last = Look { elapsed_ns: 1_000_000_000, fault_count: 1000 };
        let snapshot = Snapshot {
            processes: 1,
            populated_pages: 1024,
            resident_pages: 256,
            fetch_count: 5000,
            fault_count: 7000,
            stall_count: 3,
            fetch_p99_ns: 5_800,
            elapsed_ns: 1_500_000_000,
        };
        assert_eq!(
            text(&snapshot, last),
            "afar  local 1.0 MiB  far 3.0 MiB  12000 faults/s  fetch p99 5.8 µs  stalls 3"
        );
    }
}
