//! afar's policies against the true ones, which know every access.
//!
//! The figures are counts, which do not depend on the speed of the machine, so other programs do
//! not disturb them.

use std::ffi::OsString;

use paging::PolicyKind;
use serde_json::{Value, json};

use super::sequence::Sequence;
use super::truth;
use crate::context::Context;
use crate::failure::Failure;
use crate::far::Place;
use crate::flags::Pattern;
use crate::process::LONG;
use crate::report::{Bound, Found, Table, Verdict};
use crate::stats::{Spread, float, mean};

const FLAGS: [&str; 4] = ["--trap", "bpf", "--rtt", "5us"];
/// Shares of local pages, in per cent.
const LOCAL: [u64; 4] = [10, 25, 50, 80];
const PAGES_PER_MIB: u64 = 256;
const SEEDS: [u64; 3] = [1, 2, 3];
/// Patterns of accesses, reads or writes.
const LOADS: [Load; 7] = [
    Load::reads(Pattern::Skewed),
    Load { pattern: Pattern::Skewed, write: true },
    Load::reads(Pattern::Zipf),
    Load::reads(Pattern::Window),
    Load::reads(Pattern::Loop),
    Load::reads(Pattern::Uniform),
    Load::reads(Pattern::Sequential),
];

/// Patterns that share a verdict.
const GROUPS: [&[Pattern]; 3] = [
    &[Pattern::Skewed],
    &[Pattern::Zipf, Pattern::Window, Pattern::Loop],
    &[Pattern::Uniform, Pattern::Sequential],
];

/// Cells with known larger deviations, not judged: policy, pattern, local memory in per cent, and
/// why.
const EXCEPTIONS: [(PolicyKind, Pattern, u64, &str); 2] = [
    (PolicyKind::CLOCK, Pattern::Window, 25, "all of the window is in use, and barely fits"),
    (PolicyKind::CLOCK, Pattern::Loop, 50, "a touch on probation outlives a round of the loop"),
];
/// Why S3-FIFO is not judged: it counts accesses up to 3, of which afar sees one on probation.
const S3FIFO_NOTE: &str = "s3fifo but on uniform and sequential: it sees one access of many";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Load {
    pattern: Pattern,
    write: bool,
}

impl Load {
    const fn reads(pattern: Pattern) -> Self {
        Self { pattern, write: false }
    }

    /// The pattern, and whether it writes, as text.
    fn name(self) -> String {
        let suffix = if self.write { ", written" } else { "" };
        format!("{}{suffix}", self.pattern.name())
    }
}

/// The memory of a run and its number of accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    mib: u64,
    accesses: u64,
}

impl Size {
    const fn pages(self) -> u64 {
        self.mib * PAGES_PER_MIB
    }
}

/// One policy with one load and one share of local memory.
#[derive(Debug)]
struct Cell {
    size: Size,
    policy: PolicyKind,
    load: Load,
    local: u64,
    /// The results, one for each seed.
    samples: Vec<Sample>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    fetches: u64,
    truth: u64,
    soft: u64,
    took_ns: u64,
}

impl Cell {
    /// The spread of a figure over all seeds.
    fn spread(&self, value: impl Fn(&Sample) -> f64) -> Spread {
        Spread::of(self.samples.iter().map(value))
    }

    /// Fetches as a percentage of those of the true policy.
    fn percent(&self) -> Spread {
        self.spread(|sample| float(sample.fetches) / float(sample.truth) * 100.0)
    }

    /// The mean deviation of fetches from the true policy over all seeds, in per cent.
    fn off(&self) -> f64 {
        let share = |sample: &Sample| float(sample.fetches) / float(sample.truth);
        (mean(self.samples.iter().map(share)) - 1.0) * 100.0
    }

    /// The median number of soft faults per fetch.
    fn soft_per_fetch(&self) -> f64 {
        self.spread(|sample| float(sample.soft) / float(sample.fetches)).median
    }

    /// Why this cell is not judged; `None` if it is.
    fn exception(&self) -> Option<&'static str> {
        let is_this = |(policy, pattern, local, _): &&(PolicyKind, Pattern, u64, &str)| {
            (*policy, *pattern, *local) == (self.policy, self.load.pattern, self.local)
        };
        EXCEPTIONS.iter().find(is_this).map(|(.., why)| *why)
    }

    /// The load and the local memory, in words.
    fn place(&self) -> String {
        format!("{} at {} %", self.load.name(), self.local)
    }
}

/// Runs this part.
///
/// # Errors
/// When a run fails.
pub(super) fn run(context: &Context) -> Result<Found, Failure> {
    let full = [Size { mib: 64, accesses: 200_000 }, Size { mib: 256, accesses: 800_000 }];
    let sizes = context.size(&full[..], &[Size { mib: 64, accesses: 60_000 }]);
    let seeds = context.size(&SEEDS[..], &SEEDS[..1]);
    let policies = context.size(&PolicyKind::ALL[..], &[PolicyKind::CLOCK, PolicyKind::LRU]);
    let quick = [Load::reads(Pattern::Skewed), Load::reads(Pattern::Uniform)];
    let loads = context.size(&LOADS[..], &quick);
    let mut cells = Vec::new();
    for &size in sizes {
        for &load in loads {
            for &policy in policies {
                for local in LOCAL {
                    let mut cell = Cell { size, policy, load, local, samples: Vec::new() };
                    context.progress.show(&format!(
                        "policies: {policy}, {}, {} MiB",
                        cell.place(),
                        size.mib
                    ));
                    for &seed in seeds {
                        let sample = sample(context, &cell, seed)?;
                        cell.samples.push(sample);
                    }
                    cells.push(cell);
                }
            }
        }
    }
    Ok(Found {
        name: "true",
        settings: json!({
            "flags": FLAGS,
            "seeds": seeds,
            "access_count": sizes.iter().map(|size| size.accesses).collect::<Vec<_>>(),
            "mib": sizes.iter().map(|size| size.mib).collect::<Vec<_>>(),
        }),
        results: cells.iter().map(record).collect(),
        text: text(&cells, sizes, seeds.len()),
        verdicts: sizes.iter().flat_map(|&size| verdicts(&cells, size)).collect(),
    })
}

/// Runs one cell with one seed, and the true policy on the same accesses.
fn sample(context: &Context, cell: &Cell, seed: u64) -> Result<Sample, Failure> {
    let Cell { size, policy, load, local, .. } = cell;
    let (share, of) = (format!("{local}%"), format!("{}MiB", size.mib));
    let drawn = seed.to_string();
    let mut flags = FLAGS.to_vec();
    flags.extend(["--policy", policy.name(), "--local", &share, "--of", &of, "--seed", &drawn]);
    let mut program = context.hidden("accesses");
    let words = [
        ("--pattern", load.pattern.name().to_owned()),
        ("--pages", size.pages().to_string()),
        ("--count", size.accesses.to_string()),
        ("--seed", seed.to_string()),
    ];
    program.extend(words.into_iter().flat_map(|(flag, value)| [flag.into(), value.into()]));
    program.extend(load.write.then(|| OsString::from("--write")));
    let outcome = Place::far(&flags).execute(context, &program, LONG)?;
    let took_ns = outcome.stdout.trim().parse();
    let (Ok(took_ns), Some(run)) = (took_ns, outcome.run) else {
        let (program, wanted) = ("bench", "nanoseconds");
        return Err(Failure::Unreadable { program, wanted, said: outcome.stdout });
    };
    let index = |page: u64| usize::try_from(page).unwrap_or(usize::MAX);
    let frames = size.pages() * local / 100;
    let sequence = Sequence::new(load.pattern, size.pages(), size.accesses, seed);
    let truth =
        truth::fetches(*policy, [size.pages(), frames].map(index), seed, sequence.map(index));
    let faults = run.figures.faults;
    Ok(Sample { fetches: faults.fetch_count, truth, soft: faults.soft_count, took_ns })
}

/// The largest deviation of a policy, in per cent; `None` if it is not judged.
fn bound(policy: PolicyKind, pattern: Pattern, size: Size) -> Option<f64> {
    match pattern {
        Pattern::Uniform | Pattern::Sequential => Some(1.0),
        _ if policy == PolicyKind::S3FIFO => None,
        // Pages on probation are a larger share of a small budget.
        Pattern::Skewed if policy == PolicyKind::LRU && size.mib < 256 => Some(5.0),
        Pattern::Skewed => Some(3.0),
        _ => Some(5.0),
    }
}

/// The most soft faults per fetch of a policy with skewed accesses; `None` for no bound.
fn soft_max(policy: PolicyKind) -> Option<f64> {
    let bounds = [(PolicyKind::CLOCK, 1.0), (PolicyKind::LRU, 3.3)];
    bounds.into_iter().find(|(of, _)| *of == policy).map(|(_, bound)| bound)
}

/// The verdicts of one size: the worst cell of each policy and group of patterns.
fn verdicts(cells: &[Cell], size: Size) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for policy in PolicyKind::ALL {
        let own: Vec<&Cell> =
            cells.iter().filter(|cell| cell.size == size && cell.policy == policy).collect();
        for patterns in GROUPS {
            let Some(limit) = bound(policy, patterns[0], size) else { continue };
            let judged = own
                .iter()
                .filter(|cell| patterns.contains(&cell.load.pattern) && cell.exception().is_none());
            let worst = judged.max_by(|one, other| one.off().abs().total_cmp(&other.off().abs()));
            let Some(worst) = worst else { continue };
            verdicts.push(Verdict {
                what: format!(
                    "{policy}, {}, {} MiB: fetches off the true policy's (at most {:+.1} %: {})",
                    patterns.iter().map(|one| one.name()).collect::<Vec<_>>().join(" "),
                    size.mib,
                    worst.off(),
                    worst.place()
                ),
                value: worst.off().abs(),
                bound: Bound::AtMost(limit),
                unit: "%",
            });
        }
        let skewed = own.iter().filter(|cell| cell.load.pattern == Pattern::Skewed);
        let softest = skewed.map(|cell| cell.soft_per_fetch()).max_by(f64::total_cmp);
        if let (Some(limit), Some(value)) = (soft_max(policy), softest) {
            verdicts.push(Verdict {
                what: format!("{policy}, skewed, {} MiB: soft faults a fetch", size.mib),
                value,
                bound: Bound::AtMost(limit),
                unit: "",
            });
        }
    }
    verdicts
}

/// The tables and notes as text.
fn text(cells: &[Cell], sizes: &[Size], seeds: usize) -> String {
    let mut text = String::new();
    for size in sizes {
        let header = [
            format!("{} MiB, {} accesses", size.mib, size.accesses),
            "policy".to_owned(),
            "local, %".to_owned(),
            "fetches".to_owned(),
            "% of true".to_owned(),
            "soft a fetch".to_owned(),
            "ms".to_owned(),
        ];
        let mut table = Table::new(&header.each_ref().map(String::as_str));
        for cell in cells.iter().filter(|cell| cell.size == *size) {
            let fetches = cell.spread(|sample| float(sample.fetches)).median;
            table.row(vec![
                cell.load.name(),
                cell.policy.to_string(),
                cell.local.to_string(),
                format!("{fetches:.0}"),
                cell.percent().show(1),
                format!("{:.2}", cell.soft_per_fetch()),
                cell.spread(|sample| float(sample.took_ns) / 1e6).show(0),
            ]);
        }
        text += &format!("{}\n", table.text());
    }
    for cell in cells {
        if let Some(why) = cell.exception() {
            let (policy, place, mib) = (cell.policy, cell.place(), cell.size.mib);
            text +=
                &format!("not judged: {policy}, {place}, {mib} MiB: {:+.1} %: {why}\n", cell.off());
        }
    }
    text + &format!(
        "not judged: {S3FIFO_NOTE}\n\
         true: told of every access, in as many frames; {seeds} seeds: median (least to most)\n\
         ms: of the accesses, for information: beside other work it is more, and nothing else is\n\
         flags: {}\n",
        FLAGS.join(" ")
    )
}

/// A cell for the record.
fn record(cell: &Cell) -> Value {
    let sample = |sample: &Sample| {
        json!({
            "fetch_count": sample.fetches,
            "true_count": sample.truth,
            "soft_count": sample.soft,
            "access_ns": sample.took_ns,
        })
    };
    json!({
        "mib": cell.size.mib,
        "policy": cell.policy.name(),
        "pattern": cell.load.pattern.name(),
        "write": cell.load.write,
        "local_percent": cell.local,
        "samples": cell.samples.iter().map(sample).collect::<Vec<_>>(),
    })
}
