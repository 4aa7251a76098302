//! The summary at the end of a run: one screen, aligned, only what is known.

use std::fmt::Write;

use console::layout::count;
use measure::{
    BitsPerSec, Bytes, Duration, FaultLatency, Figures, Invalid, LatencySummary, Params, Run,
    RunResults,
};

use crate::mechanism::Mechanism;
use crate::record::Recorded;
use results::validity;

/// Width of the column of names.
const NAME: usize = 14;

/// What the summary has beside the record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extra<'a> {
    pub(crate) program: &'a str,
    /// The file of the record of faults and how many it has, if there is one.
    pub(crate) recorded: Option<(&'a str, Recorded)>,
}

/// The whole summary.
pub(crate) fn text(run: &Run, extra: &Extra<'_>) -> String {
    let (params, results) = (&run.params, &run.results);
    let figures = results.seen();
    let mut out = format!("\n{}afar: {}\n\n", verdict(results), end(results, extra.program));
    let mut row = |name: &str, text: String| {
        let _infallible = writeln!(out, "{name:<NAME$}{text}");
    };
    row("local memory", local_memory(params, figures));
    if let Some(budget) = budget(figures) {
        row("budget", budget);
    }
    match &params.far {
        Some(uris) => row("blade", blade(uris, params.replicas)),
        None => row("link", link(params, figures)),
    }
    if is_swap(params) {
        row("engine", swap(params));
        row("faults", swap_faults(figures));
        row("traffic", traffic(figures));
        row("reclaim", reclaim(figures));
    } else {
        row("trap", trap(params, results));
        if let Some(spins) = spins(figures) {
            row("spins", spins);
        }
        row("faults", faults(figures));
        if let Some(text) = remembered(params, results) {
            row("remembered", text);
        }
        row("traffic", traffic(figures));
        row("stalls", stalls(figures));
        row("fetches took", fetches_took(figures));
        row("mechanism", mechanism(figures));
    }
    row("coverage", validity::covered(&results.coverage));
    for loss in &results.coverage.lost {
        row("lost", format!("{}: {}", loss.what, count(loss.count)));
    }
    for text in unmanaged_images(results) {
        row("not managed", text);
    }
    if let Some((path, recorded)) = extra.recorded {
        row("record", format!("{} faults in {path}", count(recorded.row_count)));
    }
    for warning in &results.warnings {
        row("warning", warning.clone());
    }
    out.push_str(&latency(&figures.fault_latency, params.far.is_some()));
    out
}

/// The first line: why nothing may be concluded from the run, or that memory stayed local and the
/// user allowed it; empty for a valid run.
fn verdict(results: &RunResults) -> String {
    let (label, reasons): (_, Vec<String>) = match (&results.invalid[..], &results.allowed[..]) {
        ([], []) => return String::new(),
        ([], allowed) => {
            (validity::ALLOWED, allowed.iter().map(|one| one.reason.clone()).collect())
        }
        (invalid, _) => {
            let label = if results.tells_nothing() { validity::NOTHING } else { "INVALID" };
            (label, invalid.iter().map(Invalid::to_string).collect())
        }
    };
    // Further reasons are indented like the text behind the program's name.
    format!("afar: {label}: {}\n", reasons.join("\n      "))
}

// How the program ended.
fn end(results: &RunResults, program: &str) -> String {
    let elapsed = Duration::from_ns(results.seen().elapsed_ns);
    match (results.exit_status, results.signal) {
        (_, Some(signal)) => format!("{program} was ended by signal {signal} after {elapsed}"),
        (Some(status), None) => format!("{program} ended with status {status} after {elapsed}"),
        (None, None) => format!("{program} ran for {elapsed}"),
    }
}

fn local_memory(params: &Params, figures: &Figures) -> String {
    let managed = Bytes::new(figures.managed_peak_bytes);
    if let Some(share) = params.share_told() {
        return match params.local_bytes {
            Some(bytes) => format!("{}, {share}; {managed} in use at most", Bytes::new(bytes)),
            None => format!("{share}; {managed} in use at most"),
        };
    }
    match params.local_bytes {
        Some(bytes) => format!("{} of {managed} in use at most", Bytes::new(bytes)),
        None => format!("{} of {managed} in use at most", params.local),
    }
}

/// The budget and whether it was held; `None` if no limit was in force.
fn budget(figures: &Figures) -> Option<String> {
    let budget = &figures.budget;
    let held = if budget.held { "held" } else { "NOT HELD" };
    (budget.budget_bytes > 0).then(|| {
        format!(
            "{held}: {} resident at peak, {} allowed and {} in flight",
            Bytes::new(budget.peak_resident_bytes),
            Bytes::new(budget.budget_bytes),
            Bytes::new(budget.batch_bytes),
        )
    })
}

fn link(params: &Params, figures: &Figures) -> String {
    let mut text = match &params.profile {
        Some(profile) => format!("times from {profile}"),
        None if params.rtt_ns == 0 && params.bandwidth_bps.is_none() => "no delay".to_owned(),
        None => format!("rtt {}", Duration::from_ns(params.rtt_ns)),
    };
    if let Some(rate) = params.bandwidth_bps.filter(|&rate| rate > 0) {
        let _infallible = write!(text, ", {}, {}", BitsPerSec::new(rate), params.link);
        if figures.links.first().is_some_and(|link| !link.conserves) {
            text.push_str(" (a delay, no bound: more may move than the bandwidth allows)");
        }
    }
    match params.write_back.as_str() {
        "free" => text.push_str("; pages are written back without a delay"),
        "changed" => text.push_str("; pages are written back that have changed"),
        _ => {}
    }
    for tier in &params.tiers {
        let _infallible = write!(text, "; {}: rtt {}", tier.name, Duration::from_ns(tier.rtt_ns));
        if let Some(rate) = tier.bandwidth_bps.filter(|&rate| rate > 0) {
            let _infallible = write!(text, ", {}", BitsPerSec::new(rate));
        }
    }
    text
}

fn trap(params: &Params, results: &RunResults) -> String {
    let mut text = format!("{}, where a thread that waits {}s", params.trap, params.wait);
    if let Some(longest) = params.spin_max_ns {
        let _infallible = write!(text, " for {} at most, then sleeps", Duration::from_ns(longest));
    }
    if let Some(calibration) = &results.calibration {
        let _infallible = write!(
            text,
            "; shortest delay {}, median error {:+} ns",
            Duration::from_ns(calibration.floor_ns),
            calibration.median_error_ns,
        );
    }
    text
}

fn is_swap(params: &Params) -> bool {
    params.engine == Mechanism::Swap.engine()
}

// The row of the swap engine.
fn swap(params: &Params) -> String {
    let ahead = params.page_cluster.map_or(1, |exponent| 1_u64 << exponent.min(63));
    format!(
        "swap; the delay comes on top of the kernel's own; it reads up to {ahead} pages at once \
         where it reads ahead at all"
    )
}

fn swap_faults(figures: &Figures) -> String {
    let faults = &figures.faults;
    let mut text = format!("fetched {}", count(faults.fetch_count));
    if faults.prefetch_count > 0 {
        let _infallible = write!(text, ", and ahead {}", count(faults.prefetch_count));
    }
    if faults.silent_count > 0 {
        let silent = count(faults.silent_count);
        let _infallible = write!(text, ", without a transfer {silent} (pages of zeros, files)");
    }
    text
}

// How often the group was at its limit.
fn reclaim(figures: &Figures) -> String {
    let times = count(figures.stall.stall_count);
    format!("{times} times at the limit, where the thread that needs memory makes room itself")
}

fn faults(figures: &Figures) -> String {
    let faults = &figures.faults;
    let mut text = format!(
        "fetched {}, first touch {}, soft {}",
        count(faults.fetch_count),
        count(faults.first_touch_count),
        count(faults.soft_count),
    );
    let rest = [
        ("prefetched", faults.prefetch_count),
        ("used of these", faults.prefetch_used_count),
        ("joined a fetch under way", faults.duplicate_count),
        ("not seen", faults.silent_count),
    ];
    for (what, number) in rest.into_iter().filter(|&(_, number)| number > 0) {
        let _infallible = write!(text, ", {what} {}", count(number));
    }
    text
}

/// What was recorded of the order of first fetches, or what its replay did; `None` without
/// `--remember`.
fn remembered(params: &Params, results: &RunResults) -> Option<String> {
    let (file, counts) = (params.remember.as_deref()?, results.remembered?);
    let pages = count(counts.page_count);
    if !counts.is_replayed {
        return Some(format!("the order of {pages} pages, which were fetched"));
    }
    let [ahead, demand, all, watched, used, unused] = [
        counts.ahead_count,
        counts.demand_count,
        counts.prefetch_count,
        counts.watched_count,
        counts.used_count,
        counts.unused_count,
    ]
    .map(count);
    Some(format!(
        "{pages} pages in {file}: {ahead} first came ahead, {demand} on demand; {all} fetched \
         ahead in all, and of {watched} that were watched {used} were used before they left, \
         {unused} were not"
    ))
}

fn traffic(figures: &Figures) -> String {
    let (fetched, written) = (figures.fetched_bytes, figures.written_back_bytes);
    let mut text = format!("{} in, {} out", Bytes::new(fetched), Bytes::new(written));
    if let Some(share) = figures.dirty_share {
        let _infallible = write!(text, " ({:.1} % of evicted pages were dirty)", share * 100.0);
    }
    text
}

/// The total time of all fetches of all threads.
fn fetches_took(figures: &Figures) -> String {
    let achieved = &figures.fault_latency.achieved;
    let all = Duration::from_ns(achieved.mean_ns.saturating_mul(achieved.count));
    format!("{all} in all")
}

fn blade(uris: &str, replicas: Option<u64>) -> String {
    let copies = replicas.map_or_else(String::new, |count| format!("; each page on {count}"));
    format!("{uris}{copies}: times are measured, nothing is delayed")
}

/// The time that afar itself took, which a real network would not.
fn mechanism(figures: &Figures) -> String {
    let own = &figures.mechanism;
    let [late, soft, supervisor] =
        [own.late_ns, own.soft_ns, own.supervisor_ns].map(Duration::from_ns);
    let mut text = format!(
        "took {:.1} % of the run beyond delays: {late} of fetches that ended late, {soft} of soft \
         faults; the supervisor ran for {supervisor}",
        own.share(figures.elapsed_ns) * 100.0,
    );
    if own.interrupts_off_max_ns > 0 {
        let most = Duration::from_ns(own.interrupts_off_max_ns);
        let _infallible = write!(text, "; interrupts were off for {most} at a time at most");
    }
    text
}

fn stalls(figures: &Figures) -> String {
    let stall = &figures.stall;
    if stall.stall_count == 0 {
        return "0".to_owned();
    }
    format!(
        "{} (faults that found no free frame), {} of waiting in all, {} at most",
        count(stall.stall_count),
        Duration::from_ns(stall.stall_ns_total),
        Duration::from_ns(stall.stall_ns_max),
    )
}

/// How often threads spun for pages on a blade; `None` if none did.
fn spins(figures: &Figures) -> Option<String> {
    let spins = figures.mechanism.spins?;
    let all = count(spins.answered_count + spins.expired_count);
    Some(format!(
        "{all}, {:.1} % of them expired, and the thread slept",
        spins.expired_share() * 100.0
    ))
}

/// A line for each process image that was not managed.
fn unmanaged_images(results: &RunResults) -> Vec<String> {
    let unmanaged = results.images.iter().filter(|image| !image.managed);
    let mut lines: Vec<String> = Vec::new();
    for image in unmanaged {
        let why = image.why_unmanaged.as_deref().unwrap_or("for reasons unknown");
        let line = format!("{} (pid {}): {why}", image.name, image.pid);
        lines.push(line);
    }
    const SHOWN: usize = 4;
    if lines.len() > SHOWN {
        let rest = lines.len() - SHOWN;
        lines.truncate(SHOWN);
        lines.push(format!("and {rest} more, see --json"));
    }
    lines
}

/// The table of quantiles, in microseconds; with pages on a blade only the achieved times.
fn latency(latency: &FaultLatency, is_far: bool) -> String {
    if latency.total.count == 0 {
        return String::new();
    }
    let mut out = format!(
        "\n{:<NAME$}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
        "fetch, µs", "mean", "p50", "p95", "p99", "p99.9", "max"
    );
    let rows = [
        ("requested", &latency.requested),
        ("achieved", &latency.achieved),
        ("  wait", &latency.wait),
        ("  transfer", &latency.transfer),
        ("  overhead", &latency.overhead),
    ];
    for (name, summary) in rows.into_iter().filter(|(name, _)| !is_far || *name == "achieved") {
        let _infallible = writeln!(out, "{name:<NAME$}{}", quantiles(summary));
    }
    out
}

fn quantiles(latency: &LatencySummary) -> String {
    let quantiles = [
        latency.mean_ns,
        latency.p50_ns,
        latency.p95_ns,
        latency.p99_ns,
        latency.p999_ns,
        latency.max_ns,
    ];
    quantiles.map(|ns| format!("{:>10}", micros(ns))).concat()
}

/// Microseconds with one decimal, rounded half up.
fn micros(ns: u64) -> String {
    let tenths = (ns + 50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_an_order_is_told() {
        let mut run = run();
        assert_eq!(remembered(&run.params, &run.results), None);
        run.params.remember = Some("order.json".to_owned());
        let recorded = measure::Remembered { page_count: 4096, ..Default::default() };
        run.results.remembered = Some(recorded);
        let told = |run: &Run| remembered(&run.params, &run.results).unwrap();
        assert_eq!(told(&run), "the order of 4,096 pages, which were fetched");
        run.results.remembered = Some(measure::Remembered {
            is_replayed: true,
            ahead_count: 3000,
            demand_count: 500,
            prefetch_count: 7000,
            watched_count: 900,
            used_count: 880,
            unused_count: 15,
            ..recorded
        });
        let wanted = "4,096 pages in order.json: 3,000 first came ahead, 500 on demand; 7,000 \
                      fetched ahead in all, and of 900 that were watched 880 were used before they \
                      left, 15 were not";
        assert_eq!(told(&run), wanted);
        let extra = Extra { program: "sort", recorded: None };
        assert!(text(&run, &extra).contains(&format!("\nremembered    {wanted}\n")));
    }

    #[test]
    fn micros_round_half_up() {
        for (ns, text) in [(0, "0.0"), (49, "0.0"), (50, "0.1"), (5_849, "5.8"), (5_850, "5.9")] {
            assert_eq!(micros(ns), text);
        }
    }

    fn run() -> Run {
        let golden = include_str!("../../../crates/measure/tests/golden/run.json");
        Run::from_json(golden).unwrap()
    }

    #[test]
    fn text_of_a_whole_run() {
        let extra = Extra { program: "redis-server", recorded: None };
        let text = text(&run(), &extra);
        let wanted = "
afar: INVALID: redis-server (pid 77) was not managed, its 20.0 KiB stayed local: statically \
linked; use --engine swap
      the page-state table was full: 4 touches in 10 went unmanaged, and 1 in 100 may; --engine \
swap manages every process, --allow-unmanaged accepts the run as it is
afar: redis-server ended with status 0 after 1.5 s

local memory  512.0 MiB of 2.0 GiB in use at most
budget        held: 512.0 MiB resident at peak, 512.0 MiB allowed and 256.0 KiB in flight
link          rtt 5.0 µs, 40 Gb/s, half-duplex; far: rtt 9.0 µs
trap          bpf, where a thread that waits spins; shortest delay 900.0 ns, median error -12 ns
faults        fetched 2, first touch 1, soft 3, prefetched 4, used of these 5, \
joined a fetch under way 7, not seen 6
traffic       8.0 KiB in, 4.0 KiB out (50.0 % of evicted pages were dirty)
stalls        1 (faults that found no free frame), 20.0 ns of waiting in all, 30.0 ns at most
fetches took  1.8 µs in all
mechanism     took 0.3 % of the run beyond delays: 1.5 ms of fetches that ended late, 3.0 ms of \
soft faults; the supervisor ran for 2.0 ms; interrupts were off for 18.0 µs at a time at most
coverage      0.0 % managed: 0 B; local: 12.0 KiB anonymous, 8.0 KiB shared, and 4.0 KiB of files
lost          the page-state table was full: 4
not managed   redis-server (pid 77): statically linked
warning       one processor was busy

fetch, µs           mean       p50       p95       p99     p99.9       max
requested            0.5       0.5       0.5       0.5       0.5       0.5
achieved             0.6       0.6       0.6       0.6       0.6       0.6
  wait               0.2       0.2       0.2       0.2       0.2       0.2
  transfer           0.3       0.3       0.3       0.3       0.3       0.3
  overhead           0.4       0.4       0.4       0.4       0.4       0.4
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn a_share_is_told_with_what_it_is_a_share_of() {
        let mut run = run();
        let told = |run: &Run| local_memory(&run.params, run.results.seen());
        (run.params.of, run.params.of_bytes) = (Some("fixed".to_owned()), Some(2 << 30));
        assert_eq!(told(&run), "512.0 MiB, 25 % of 2.0 GiB; 2.0 GiB in use at most");
        (run.params.of, run.params.of_bytes) = (Some("live".to_owned()), None);
        run.params.local_bytes = None;
        assert_eq!(
            told(&run),
            "25 % of what is in use at each moment (live footprint); 2.0 GiB in use at most"
        );
    }

    #[test]
    fn text_of_an_allowed_run_says_so_first_and_of_another_nothing() {
        let extra = Extra { program: "redis-server", recorded: None };
        let mut run = run();
        run.results = run.results.allowing_unmanaged();
        let allowed = text(&run, &extra);
        let first = "\nafar: part of the program ran with local memory only (allowed): \
                     redis-server \
                     (pid 77) was not managed, ";
        assert!(allowed.starts_with(first), "{allowed}");
        assert!(!allowed.contains("INVALID"), "{allowed}");
        run.results.allowed.clear();
        let valid = text(&run, &extra);
        assert!(valid.starts_with("\nafar: redis-server ended with status 0"), "{valid}");
    }

    #[test]
    fn text_of_the_swap_engine_says_what_the_kernel_did() {
        let mut run = run();
        (run.params.engine, run.params.page_cluster) = ("swap".to_owned(), Some(3));
        let extra = Extra { program: "true", recorded: None };
        let text = text(&run, &extra);
        assert!(text.contains("\nengine        swap; the delay comes on top"), "{text}");
        assert!(text.contains("reads up to 8 pages at once"), "{text}");
        let faults = "\nfaults        fetched 2, and ahead 4, without a transfer 6 (pages of zeros";
        assert!(text.contains(faults), "{text}");
        assert!(text.contains("\nreclaim       1 times at the limit"), "{text}");
        assert!(!text.contains("\ntrap") && !text.contains("\nstalls"), "{text}");
    }

    #[test]
    fn text_without_far_memory_leaves_out_what_is_not_known() {
        let mut run = run();
        run.results = RunResults::default();
        run.results.signal = Some(9);
        (run.params.rtt_ns, run.params.bandwidth_bps) = (0, None);
        run.params.tiers.clear();
        let extra = Extra { program: "true", recorded: None };
        let text = text(&run, &extra);
        assert!(text.contains("afar: true was ended by signal 9 after "), "{text}");
        assert!(text.contains("\nlink          no delay\n"), "{text}");
        assert!(!text.contains("budget") && !text.contains("p99"), "{text}");
    }

    #[test]
    fn text_of_pages_on_a_blade_has_times_that_were_measured() {
        let mut run = run();
        run.params.far = Some("nvme+tcp://10.0.0.2/nqn.x".to_owned());
        let text = text(&run, &Extra { program: "true", recorded: None });
        assert!(text.contains("\nblade         nvme+tcp://10.0.0.2/nqn.x: times are"), "{text}");
        assert!(text.contains("\nachieved ") && !text.contains("\nrequested"), "{text}");
        assert!(!text.contains("\nlink"), "{text}");
    }
}
