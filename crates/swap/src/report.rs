//! The results of a run under the swap engine.

use std::collections::BTreeMap;

use measure::{
    BudgetHeld, Bytes, Carried, Duration, FaultCounts, FaultTimes, Figures, ImageSummary, LinkUse,
    MechanismTime, PAGE_BYTES, RunResults, StallCounts,
};
use sys::group::Group;
use sys::process::Change;

use crate::SwapConfig;
use crate::budget::Footprint;
use crate::tables::{Counts, SwapEvent};
use farmem::{Outcome, Snapshot};
use sys::usage::name_of;

/// Counts and histograms of a run.
pub(crate) struct Totals {
    start_ns: u64,
    latencies: FaultTimes,
    budget: BudgetHeld,
    excess: u64,
    batch: u64,
    footprint_peak: u64,
    lost: u64,
    processes: BTreeMap<u32, ImageSummary>,
    pub(crate) warnings: Vec<String>,
}

impl Totals {
    pub(crate) fn new() -> Self {
        Self {
            start_ns: sys::clock::monotonic_ns(),
            latencies: FaultTimes::default(),
            budget: BudgetHeld { held: true, ..BudgetHeld::default() },
            excess: 0,
            batch: batch_bytes(),
            footprint_peak: 0,
            lost: 0,
            processes: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }

    pub(crate) fn elapsed_ns(&self) -> u64 {
        sys::clock::monotonic_ns().saturating_sub(self.start_ns)
    }

    /// Counts a fault, and notes its process.
    pub(crate) fn note(&mut self, event: &SwapEvent) {
        // The process may end before the next sample, and has executed its program by now.
        if self.processes.get(&event.tgid).is_none_or(|process| process.fetch_count == 0) {
            self.process(event.tgid);
        }
        if let Some(process) = self.processes.get_mut(&event.tgid) {
            process.fetch_count += 1;
        }
        let total_ns = Some(u64::from(event.total_ns)).filter(|&total_ns| total_ns > 0);
        self.latencies.record(total_ns, event.wait_ns, event.requested_ns);
    }

    /// Counts faults that the log had no room for.
    pub(crate) fn lost(&mut self, count: u64) {
        self.lost += count;
    }

    /// Compares the group's memory with the limit in force; `None` for no limit.
    pub(crate) fn footprint(&mut self, footprint: Footprint, limit: Option<u64>) {
        self.footprint_peak = self.footprint_peak.max(footprint.total());
        let Some(limit) = limit else { return };
        let excess = footprint.resident.saturating_sub(limit);
        self.excess = self.excess.max(excess);
        let budget = &mut self.budget;
        budget.batch_bytes = self.batch;
        budget.held &= excess <= self.batch;
        if footprint.resident >= budget.peak_resident_bytes {
            budget.peak_resident_bytes = footprint.resident;
            budget.budget_bytes = limit;
        }
    }

    /// Samples the processes of the group.
    pub(crate) fn processes(&mut self, group: &Group) {
        for pid in group.processes().unwrap_or_default() {
            self.process(pid);
        }
    }

    // Samples the memory of one process.
    fn process(&mut self, pid: u32) {
        let name = name_of(pid);
        if name.is_empty() {
            // It has ended since; what earlier samples have seen stays.
            return;
        }
        let process = self.processes.entry(pid).or_insert_with(|| ImageSummary {
            pid,
            managed: true,
            ..ImageSummary::default()
        });
        // A process has its parent's name until it executes something.
        process.name = name;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        process.managed_peak_bytes = process.managed_peak_bytes.max(managed_bytes(&status));
        process.file_bytes = process.file_bytes.max(bytes_of(&status, &["RssFile:"]));
    }

    /// Adds the program itself, which may have ended before any sample.
    pub(crate) fn program(&mut self, pid: u32, name: &str) {
        self.processes.entry(pid).or_insert_with(|| ImageSummary {
            pid,
            name: name.to_owned(),
            managed: true,
            ..ImageSummary::default()
        });
    }

    pub(crate) fn snapshot(&self, group: &Group, counts: Counts, now: Footprint) -> Snapshot {
        Snapshot {
            processes: group.processes().map_or(0, |pids| pids.len() as u64),
            populated_pages: now.total() / PAGE_BYTES,
            resident_pages: now.resident / PAGE_BYTES,
            fetch_count: counts.fetches,
            fault_count: counts.fetches + counts.silent,
            stall_count: group.limited_count(),
            fetch_p99_ns: self.latencies.p99_ns(),
            elapsed_ns: self.elapsed_ns(),
        }
    }

    /// Sums up the run.
    pub(crate) fn finish(
        mut self,
        change: Change,
        group: &Group,
        config: &SwapConfig,
        counts: Counts,
    ) -> Outcome {
        let elapsed_ns = self.elapsed_ns();
        self.conclude(group);
        let (exit_status, signal) = match change {
            Change::Exited(status) => (Some(status), None),
            Change::Killed(signal) => (None, Some(signal)),
            Change::Stopped { .. } => (None, None),
        };
        let page =
            config.link.bandwidth.map_or(Duration::ZERO, |rate| rate.transfer_time(Bytes::PAGE));
        let read_pages = counts.read_bytes / PAGE_BYTES;
        let figures = Figures {
            elapsed_ns,
            faults: FaultCounts {
                fetch_count: counts.fetches,
                prefetch_count: read_pages.saturating_sub(counts.fetches),
                silent_count: counts.silent,
                ..FaultCounts::default()
            },
            fetched_bytes: counts.read_bytes,
            written_back_bytes: counts.write_bytes,
            links: vec![carried(config, self.start_ns, counts)],
            dirty_share: None,
            fault_latency: self.latencies.summary(page),
            mechanism: MechanismTime::default(),
            stall: StallCounts { stall_count: group.limited_count(), ..StallCounts::default() },
            budget: self.budget,
            managed_peak_bytes: self.footprint_peak,
        };
        let images = self.processes.into_values().collect();
        let mut results = RunResults::judged(figures, images, &[], config.share_min());
        (results.exit_status, results.signal) = (exit_status, signal);
        results.warnings = self.warnings;
        Outcome { change, results, pace: 0, touches: None, order: None }
    }

    // Adds the group's peak and the warnings.
    fn conclude(&mut self, group: &Group) {
        if self.budget.budget_bytes > 0
            && let Some(peak) = group.resident_peak_bytes()
        {
            self.footprint_peak = self.footprint_peak.max(peak);
        }
        if self.lost > 0 {
            let lost = self.lost;
            self.warnings.push(format!("{lost} faults were not logged one by one: it was full"));
        }
        if !self.budget.held {
            let excess = Bytes::new(self.excess);
            self.warnings.push(format!(
                "the budget was exceeded by up to {excess}: the kernel had no more pages to give \
                 up when it became smaller"
            ));
        }
        let killed = group.oom_kill_count();
        if killed > 0 {
            self.warnings.push(format!(
                "the kernel ended {killed} processes, because it found no page to give up; give \
                 more --local"
            ));
        }
    }
}

// The use of the link. The kernel writes pages when it likes, and no thread waits for that.
fn carried(config: &SwapConfig, start_ns: u64, counts: Counts) -> LinkUse {
    let mut carried = Carried::new("", &config.link, false, start_ns);
    carried.fetched(counts.read_bytes / PAGE_BYTES);
    carried.written(counts.write_bytes / PAGE_BYTES);
    carried.finish(sys::clock::monotonic_ns(), 0)
}

// By how many bytes the kernel itself exceeds a limit: a thread that makes room takes what it needs
// for that, and memory is charged by 64 pages for a processor (MEMCG_CHARGE_BATCH).
fn batch_bytes() -> u64 {
    const PAGES: u64 = 64;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    processors as u64 * PAGES * PAGE_BYTES
}

// The memory of a process that the kernel may swap, wherever it is, from its status file.
fn managed_bytes(status: &str) -> u64 {
    bytes_of(status, &["RssAnon:", "RssShmem:", "VmSwap:"])
}

// The sum of `fields` in a status file, in bytes.
fn bytes_of(status: &str, fields: &[&str]) -> u64 {
    let field = |name: &&str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    fields.iter().filter_map(field).sum::<u64>() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(total_ns: u32) -> SwapEvent {
        SwapEvent {
            time_ns: 0,
            slot: 1,
            tid: 5,
            tgid: 4,
            pages: 1,
            wait_ns: 0,
            requested_ns: 10_000,
            delayed_ns: 10_020,
            total_ns,
        }
    }

    #[test]
    fn a_fault_whose_end_was_not_seen_has_no_latency() {
        let mut totals = Totals::new();
        totals.note(&event(14_000));
        totals.note(&event(0));
        let latency = totals.latencies.summary(Duration::ZERO);
        assert_eq!((latency.total.count, latency.requested.count), (1, 2));
        assert!(latency.overhead.p50_ns.abs_diff(4_000) < 100);
    }

    #[test]
    fn a_process_is_known_from_its_first_fault_and_after_its_end() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it is there");
        // The kernel lets the parent go on before it has given the child its new name.
        while name_of(child.id()) != "sleep" {
            std::thread::yield_now();
        }
        let mut totals = Totals::new();
        totals.note(&SwapEvent { tgid: child.id(), ..event(14_000) });
        child.kill().and_then(|()| child.wait()).expect("it is ours");
        totals.note(&SwapEvent { tgid: child.id(), ..event(14_000) });
        totals.process(child.id());
        let seen: Vec<_> = totals.processes.values().collect();
        let [process] = seen[..] else { panic!("{seen:?}") };
        assert_eq!((process.name.as_str(), process.fetch_count), ("sleep", 2));
    }

    #[test]
    fn the_budget_is_held_unless_a_look_found_more() {
        let mut totals = Totals::new();
        totals.footprint(Footprint { resident: 10, swapped: 5 }, None);
        assert_eq!((totals.budget.budget_bytes, totals.footprint_peak), (0, 15));
        totals.batch = 2;
        totals.footprint(Footprint { resident: 10, swapped: 9 }, Some(8));
        assert!(totals.budget.held, "the kernel's own batch");
        totals.footprint(Footprint { resident: 11, swapped: 9 }, Some(8));
        assert!(!totals.budget.held);
        assert_eq!((totals.excess, totals.budget.peak_resident_bytes), (3, 11));
    }

    #[test]
    fn anonymous_and_shared_memory_counts_wherever_it_is() {
        let status = "VmRSS:\t 9 kB\nRssAnon:\t     100 kB\nRssFile:\t 7 kB\nRssShmem:\t 3 kB\n\
                      VmSwap:\t  20 kB\n";
        assert_eq!(managed_bytes(status), 123 * 1024);
        assert_eq!(bytes_of(status, &["RssFile:"]), 7 * 1024);
        assert_eq!(managed_bytes(""), 0);
    }

    #[test]
    fn a_program_that_nobody_saw_was_managed_all_the_same() {
        let mut totals = Totals::new();
        totals.program(4, "true");
        totals.program(4, "again");
        let seen: Vec<_> = totals.processes.values().map(|image| image.name.as_str()).collect();
        assert_eq!(seen, ["true"]);
    }
}
