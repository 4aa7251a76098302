//! What all ports did over time, interval by interval, in memory that a run cannot exceed.
//!
//! When there is no room for another interval, each two are merged into one, and intervals are
//! twice as long from then on. What is recorded of an interval can be merged: its deepest queue,
//! the queue at its end, sums of bytes sent and packets dropped.

use measure::{Duration, Instant};

use crate::fabric::PortStats;
use crate::port::Port;

/// What a port did in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortInterval {
    /// Bytes queued at its end.
    pub queued_bytes: u32,
    /// The most bytes queued in it.
    pub deepest_bytes: u32,
    /// Bytes whose sending began in it.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub dropped_packets: u32,
    /// Packets whose payload was cut off.
    pub trimmed_packets: u32,
}

/// What all ports did over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSeries {
    /// When the first interval begins.
    pub from: Instant,
    /// Length of an interval; the last one ends with the run.
    pub every: Duration,
    port_count: usize,
    /// By interval, then by port.
    cells: Vec<PortInterval>,
}

/// The most cells that are stored: 48 MiB of them.
const CELLS_MAX: usize = 1 << 21;
/// Bounds on the number of intervals: at least the first is always stored, at most the second.
const INTERVALS: (usize, usize) = (64, 2048);

impl PortSeries {
    /// How many intervals there are.
    #[must_use]
    pub fn interval_count(&self) -> usize {
        self.cells.len() / self.port_count
    }

    /// How many ports there are.
    #[must_use]
    pub const fn port_count(&self) -> usize {
        self.port_count
    }

    /// What a port did in an interval.
    ///
    /// # Panics
    /// If there is no such interval or port.
    #[must_use]
    pub fn at(&self, interval: usize, port: usize) -> PortInterval {
        assert!(port < self.port_count, "a port of the series");
        self.cells[interval * self.port_count + port]
    }
}

/// A series under construction.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) series: PortSeries,
    /// When the current interval ends.
    next: Instant,
    interval_max: usize,
    /// The counters of ports when the current interval began; their deepest queues so far.
    before: Vec<PortStats>,
}

impl Keeper {
    /// A series that begins at `from` with intervals of `every`, which is not zero.
    pub(crate) fn new(from: Instant, every: Duration, port_count: usize) -> Self {
        let (fewest, most) = INTERVALS;
        // Even, so that two can become one.
        let interval_max = (CELLS_MAX / port_count.max(1)).clamp(fewest, most) / 2 * 2;
        Self {
            series: PortSeries { from, every, port_count, cells: Vec::new() },
            next: from.saturating_add(every),
            interval_max,
            before: vec![PortStats::default(); port_count],
        }
    }

    /// Ends the intervals that are over at `at`, the time of the next event.
    pub(super) fn look_until(&mut self, at: Instant, ports: &mut [Port]) {
        while self.next <= at && self.next < Instant::MAX {
            if self.series.interval_count() == self.interval_max {
                self.halve();
                continue;
            }
            self.take(ports);
            self.next = self.next.saturating_add(self.series.every);
        }
    }

    /// Ends the last interval at `now`, the end of the run, and restores the ports' deepest queues.
    pub(super) fn end(&mut self, now: Instant, ports: &mut [Port]) {
        self.look_until(now, ports);
        self.take(ports);
        for (port, before) in ports.iter_mut().zip(&self.before) {
            port.stats.queued_bytes_max = before.queued_bytes_max;
        }
    }

    /// Appends the current interval.
    fn take(&mut self, ports: &mut [Port]) {
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        for (port, before) in ports.iter_mut().zip(&mut self.before) {
            let stats = port.stats;
            self.series.cells.push(PortInterval {
                queued_bytes: short(port.queued_bytes),
                deepest_bytes: short(stats.queued_bytes_max),
                sent_bytes: stats.sent_bytes - before.sent_bytes,
                dropped_packets: short(stats.dropped_packets - before.dropped_packets),
                trimmed_packets: short(stats.trimmed_packets - before.trimmed_packets),
            });
            let queued_bytes_max = before.queued_bytes_max.max(stats.queued_bytes_max);
            *before = PortStats { queued_bytes_max, ..stats };
            port.stats.queued_bytes_max = port.queued_bytes;
        }
    }

    /// Merges each two intervals into one, and doubles the length of those to come.
    fn halve(&mut self) {
        let count = self.series.port_count;
        for interval in 0..self.interval_max / 2 {
            for port in 0..count {
                let one = self.series.at(2 * interval, port);
                let other = self.series.at(2 * interval + 1, port);
                self.series.cells[interval * count + port] = one.then(other);
            }
        }
        self.series.cells.truncate(self.interval_max / 2 * count);
        self.series.every = self.series.every.saturating_mul(2);
        let kept = u64::try_from(self.interval_max / 2).unwrap_or(u64::MAX);
        let end = self.series.every.saturating_mul(kept.saturating_add(1));
        self.next = self.series.from.saturating_add(end);
    }
}

impl PortInterval {
    /// Merges this interval with the one after it.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        Self {
            queued_bytes: later.queued_bytes,
            deepest_bytes: self.deepest_bytes.max(later.deepest_bytes),
            sent_bytes: self.sent_bytes + later.sent_bytes,
            dropped_packets: self.dropped_packets.saturating_add(later.dropped_packets),
            trimmed_packets: self.trimmed_packets.saturating_add(later.trimmed_packets),
        }
    }
}
