//! The benchmark `writes`: whether write-backs take as long as their bytes on the link. The program
//! writes four times its local memory, twice.
//!
//! ```text
//! bench overwrite under afar run ─► time of both passes ──────────────┐
//!                               └► bytes out, bytes in / bandwidth ───┴► verdicts
//! ```
//!
//! The first pass only sends pages, the second fetches each page before it sends one. If the same
//! program without a bandwidth takes less than half of the bytes' time on the link, it waits for
//! the link, and must take as long as its bytes. Otherwise it must not take less.

use std::iter;

use serde_json::{Value, json};
use sys::clock::monotonic_ns;

use crate::context::Context;
use crate::failure::Failure;
use crate::far::Place;
use crate::flags::OverwriteFlags;
use crate::process::LONG;
use crate::progress;
use crate::report::{Bound, Report, Table, Verdict};
use crate::stats::{Spread, float};

/// Default number of rounds: at the lowest bandwidth a run takes seconds.
pub(crate) const ROUNDS: u16 = 3;
const TRAPS: [&str; 2] = ["bpf", "userfaultfd"];
const FULL_DUPLEX: &str = "full-duplex";
const HALF_DUPLEX: &str = "half-duplex";
const LINKS: [&str; 2] = [FULL_DUPLEX, HALF_DUPLEX];
/// On fast links a transfer is shorter than a fault, which this flag allows.
const FLAGS: [&str; 1] = ["--allow-below-floor"];
/// How many times its local memory the program writes.
const MEMORY_OVER_LOCAL: u64 = 4;
const PAGE_BYTES: u64 = 4096;
const WORDS_PER_PAGE: usize = 512;
/// Most pages that are still being sent when the program ends.
const WINDOW_PAGES: u64 = 128;
/// The program waits for the link if it takes less than this share of the link's time without one.
const PROGRAM_MAX: f64 = 0.5;
/// Bound of the time of a program that waits for the link over that of its bytes.
const RATIO_MAX: f64 = 1.05;

/// A bandwidth, and local memory so large that a run takes a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rate {
    name: &'static str,
    bits_per_sec: u64,
    local_mib: u64,
}

const fn rate(name: &'static str, bits_per_sec: u64, local_mib: u64) -> Rate {
    Rate { name, bits_per_sec, local_mib }
}

const RATES: [Rate; 4] = [
    rate("100Mbps", 100_000_000, 8),
    rate("1Gbps", 1_000_000_000, 16),
    rate("10Gbps", 10_000_000_000, 64),
    rate("40Gbps", 40_000_000_000, 64),
];

#[derive(Debug, Clone, Copy)]
struct Variant {
    trap: &'static str,
    local_mib: u64,
    /// Bandwidth and kind of link; `None` for an unlimited link.
    wire: Option<(Rate, &'static str)>,
}

/// The results of one run: time of both passes, and bytes over the link in both directions.
#[derive(Debug, Clone, Copy)]
struct Sample {
    took_ns: f64,
    out_bytes: u64,
    in_bytes: u64,
}

impl Sample {
    /// How long the link takes for all bytes minus `less`, in nanoseconds.
    fn link_ns(&self, (rate, link): (Rate, &str), less: u64) -> f64 {
        let bytes = if link == HALF_DUPLEX {
            self.out_bytes + self.in_bytes
        } else {
            self.out_bytes.max(self.in_bytes)
        };
        float(bytes.saturating_sub(less)) * 8e9 / float(rate.bits_per_sec)
    }
}

/// The results with one bandwidth, and those of the same program without.
struct Compared {
    variant: Variant,
    wire: (Rate, &'static str),
    took_ms: Spread,
    link_ms: Spread,
    /// Median time of the program without a bandwidth.
    free_ms: f64,
    /// The program's time over that of its bytes.
    ratio: Spread,
    /// The smallest ratio of the program's time to that of its bytes minus a window.
    least: f64,
}

impl Compared {
    /// Compares the runs with a bandwidth with those without (`free`).
    fn of(variant: Variant, wire: (Rate, &'static str), runs: &[Sample], free: &[Sample]) -> Self {
        let ms = |ns: f64| ns / 1e6;
        let window = WINDOW_PAGES * PAGE_BYTES;
        Self {
            variant,
            wire,
            took_ms: Spread::of(runs.iter().map(|run| ms(run.took_ns))),
            link_ms: Spread::of(runs.iter().map(|run| ms(run.link_ns(wire, 0)))),
            free_ms: Spread::of(free.iter().map(|run| ms(run.took_ns))).median,
            ratio: Spread::of(runs.iter().map(|run| run.took_ns / run.link_ns(wire, 0))),
            least: Spread::of(runs.iter().map(|run| run.took_ns / run.link_ns(wire, window))).min,
        }
    }

    /// Whether the program waits for the link.
    fn waits_for_link(&self) -> bool {
        self.free_ms < self.link_ms.median * PROGRAM_MAX
    }

    /// The trap, the bandwidth and the kind of link, as text.
    fn name(&self) -> String {
        let (rate, link) = self.wire;
        format!("{}, {}, {link}", self.variant.trap, rate.name)
    }

    // Its row of the table.
    fn row(&self) -> Vec<String> {
        let is_bound = if self.waits_for_link() { "link" } else { "program" };
        vec![
            self.name(),
            self.took_ms.show(1),
            format!("{:.1}", self.link_ms.median),
            format!("{:.1}", self.free_ms),
            self.ratio.show(3),
            is_bound.to_owned(),
        ]
    }

    /// The verdicts: not too short, and not too long if the program waits for the link.
    fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let name = self.name();
        let close = self.waits_for_link().then(|| Verdict {
            what: format!("{name}: time over that of its bytes"),
            value: self.ratio.median,
            bound: Bound::AtMost(RATIO_MAX),
            unit: "",
        });
        let long_enough = Verdict {
            what: format!("{name}: least time over that of its bytes but a window"),
            value: self.least,
            bound: Bound::AtLeast(1.0),
            unit: "",
        };
        close.into_iter().chain(iter::once(long_enough))
    }

    /// The results for the record.
    fn json(&self) -> Value {
        let (rate, link) = self.wire;
        json!({
            "trap": self.variant.trap,
            "bandwidth": rate.name,
            "link": link,
            "local_mib": self.variant.local_mib,
            "program_ms": self.took_ms.json(),
            "link_ms": self.link_ms.json(),
            "unlimited_ms": self.free_ms,
            "ratio": self.ratio.json(),
            "least_ratio": self.least,
            "waits_for_link": self.waits_for_link(),
        })
    }
}

/// Runs the benchmark.
///
/// # Errors
/// When a run fails.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let rates = context.size(&RATES[..], &RATES[1..2]);
    let traps = context.size(&TRAPS[..], &TRAPS[..1]);
    let variants = variants(traps, rates);
    let runs = context.alternate("writes", &variants, |variant| sample(context, variant))?;
    let all = || variants.iter().zip(&runs);
    let free = |of: &Variant| {
        let is_free = |(variant, _): &(&Variant, &Vec<Sample>)| {
            let alike = (variant.trap, variant.local_mib) == (of.trap, of.local_mib);
            alike && variant.wire.is_none()
        };
        all().find(is_free).map_or(&[][..], |(_, runs)| runs)
    };
    let compared: Vec<Compared> = all()
        .filter_map(|(variant, runs)| {
            Some(Compared::of(*variant, variant.wire?, runs, free(variant)))
        })
        .collect();
    let header = ["trap, bandwidth, link", "ms", "bytes, ms", "unlimited, ms", "ratio", "bound"];
    let mut table = Table::new(&header);
    compared.iter().for_each(|one| table.row(one.row()));
    let note = "ms: both passes over four times the local memory (8 MiB at 100 Mb/s, 16 at 1,\n\
                \x20   64 above), by the program's clock; bytes: out and in, of the record, over\n\
                \x20   the bandwidth: the larger (full-duplex) or both (half-duplex)\n\
                ratio: ms over bytes; unlimited: the same program without a bandwidth\n\
                bound: the link, if unlimited takes less than half of the bytes' time\n";
    Ok(Report {
        name: "writes",
        settings: json!({
            "flags": FLAGS,
            "memory_over_local": MEMORY_OVER_LOCAL,
            "window_page_count": WINDOW_PAGES,
        }),
        results: compared.iter().map(Compared::json).collect(),
        text: table.text() + note,
        verdicts: compared.iter().flat_map(Compared::verdicts).collect(),
    })
}

/// All runs of a round: for each trap and local memory one without a bandwidth, and every link.
fn variants(traps: &[&'static str], rates: &[Rate]) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    for &trap in traps {
        for &rate in rates {
            let local_mib = rate.local_mib;
            // Rates with the same local memory share one run without a bandwidth.
            let is_new = variants.iter().all(|one| (one.trap, one.local_mib) != (trap, local_mib));
            variants.extend(is_new.then_some(Variant { trap, local_mib, wire: None }));
            let wired = |link| Variant { trap, local_mib, wire: Some((rate, link)) };
            variants.extend(LINKS.map(wired));
        }
    }
    variants
}

/// One run of the program.
fn sample(context: &Context, variant: &Variant) -> Result<Sample, Failure> {
    let local = format!("{}MiB", variant.local_mib);
    let mut flags = vec!["--trap", variant.trap, "--local", &local];
    if let Some((rate, link)) = variant.wire {
        flags.extend(["--bandwidth", rate.name, "--link", link]);
        flags.extend(FLAGS);
    }
    let pages = (variant.local_mib << 20) / PAGE_BYTES * MEMORY_OVER_LOCAL;
    let mut program = context.hidden("overwrite");
    program.extend(["--pages".into(), pages.to_string().into()]);
    let outcome = Place::far(&flags).execute(context, &program, LONG)?;
    let (Ok(took_ns), Some(run)) = (outcome.stdout.trim().parse::<u64>(), outcome.run) else {
        let (program, wanted) = ("bench", "nanoseconds");
        return Err(Failure::Unreadable { program, wanted, said: outcome.stdout });
    };
    let figures = run.figures;
    // The second pass must have fetched every page.
    let (touched, fetched) = (pages, figures.faults.fetch_count);
    if fetched < touched - touched / 1000 {
        return Err(Failure::NotFetched { touched, fetched });
    }
    Ok(Sample {
        took_ns: float(took_ns),
        out_bytes: figures.written_back_bytes,
        in_bytes: figures.fetched_bytes,
    })
}

/// The hidden command `overwrite`: writes a word of each page, twice, in order, and prints how many
/// nanoseconds both passes took.
pub(crate) fn overwrite(flags: &OverwriteFlags) {
    let mut memory = vec![0_u64; flags.pages * WORDS_PER_PAGE];
    let before = monotonic_ns();
    for pass in 1..=2 {
        memory.iter_mut().step_by(WORDS_PER_PAGE).for_each(|word| *word = pass);
        std::hint::black_box(&mut memory);
    }
    progress::answer(&format!("{}\n", monotonic_ns() - before));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_sum_in_half_duplex_and_the_larger_direction_in_full() {
        let run = Sample { took_ns: 0.0, out_bytes: 3_000_000, in_bytes: 1_000_000 };
        let gigabit = rate("1Gbps", 1_000_000_000, 16);
        assert_eq!(run.link_ns((gigabit, FULL_DUPLEX), 0), 24e6);
        assert_eq!(run.link_ns((gigabit, HALF_DUPLEX), 0), 32e6);
        assert_eq!(run.link_ns((gigabit, HALF_DUPLEX), 500_000), 28e6);
    }

    #[test]
    fn the_program_without_a_bandwidth_is_run_once_for_each_trap_and_memory() {
        let variants = variants(&TRAPS, &RATES);
        let free = variants.iter().filter(|variant| variant.wire.is_none()).count();
        assert_eq!((free, variants.len()), (6, 6 + 16));
    }

    #[test]
    fn a_fast_program_waits_for_the_link_and_a_slow_one_for_itself() {
        let wire = (rate("1Gbps", 1_000_000_000, 16), FULL_DUPLEX);
        let variant = Variant { trap: "bpf", local_mib: 16, wire: Some(wire) };
        let sample = |took_ns| Sample { took_ns, out_bytes: 1_000_000, in_bytes: 0 };
        // 8 ms of bytes, half of them but for the window.
        let compared = |free| Compared::of(variant, wire, &[sample(8.2e6)], &[sample(free)]);
        assert_eq!(compared(3.9e6).verdicts().count(), 2);
        assert_eq!(compared(4.1e6).verdicts().count(), 1);
        assert!(compared(3.9e6).verdicts().all(|verdict| verdict.passes()));
        let early = Compared::of(variant, wire, &[sample(3.81e6)], &[sample(1e6)]);
        assert_eq!(early.verdicts().filter(|verdict| !verdict.passes()).count(), 0);
        let early = Compared::of(variant, wire, &[sample(3.8e6)], &[sample(1e6)]);
        assert_eq!(early.verdicts().filter(|verdict| !verdict.passes()).count(), 1);
    }
}
