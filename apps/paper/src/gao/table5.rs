//! §5.1 and Table 5: the parts of a remote page's cost, and the ladder from one page at a time to
//! requests that are merged and answered one by one, on far memory of our own.
//!
//! ```text
//! cells × blocks, shuffled ─► afar run ─► touches, record ─► Turn, kept ─► Runs ─► report
//!                             └─► afar serve over NVMe/TCP, on the loopback interface
//! ```
//!
//! A run counts only if its record says that its pages were far. Each is kept in a file, and is not
//! run again.

use std::time::{Duration, Instant};

use console::{Progress, terminal};
use experiment::machine::{Measuring, class};
use experiment::order;
use ladder::{Bench, Cell, Lack, PAGE, Runs, SPIN_MAX, Size, Step, THREADS, Turn};
use serde_json::json;

use super::table5_report::report;
use crate::flags::Options;
use crate::store::Kept;
use crate::{Measured, ReproduceError};

/// Seed of the orders within blocks.
const SEED: u64 = 1;
/// With `--quick` no run begins after this time.
const QUICK: Duration = Duration::from_secs(100);
/// The name under which the class of the machine is kept.
const MACHINE: &str = "machine";

/// How much is run.
struct Plan {
    pace: &'static str,
    blocks: u32,
    attempts: u32,
    deadline: Option<Instant>,
}

/// Measures the figure; `None` if it was interrupted before any result.
///
/// # Errors
/// When the target cannot be started, or runs cannot be kept.
pub(crate) fn run(options: &Options) -> Result<Option<Measured>, ReproduceError> {
    crate::programs::check(&[("taskset", "util-linux")])?;
    let signals = console::interrupts()?;
    let _measuring = Measuring::begin()?;
    let plan = Plan::new(options);
    let size = Size::new(options.quick, options.duration);
    let directory = options.output.join(format!("gao-table5-{}.runs", plan.pace));
    let kept = Kept::new(directory)?;
    check_machine(&kept)?;
    let bench = Bench::start(size, kept.path().join("run"), &signals)?;
    let (runs, ended) = plan.run(&kept, |cell| bench.run(cell, plan.attempts))?;
    if !runs.has_far() {
        return match runs.reason().filter(|_| !ended.is_interrupted) {
            Some(why) => Err(ReproduceError::NothingRan(why)),
            None => Ok(None),
        };
    }
    let (count, disturbed_count) = runs.counts();
    Ok(Some(Measured {
        report: report(&runs, bench.spins()),
        described: described(&bench, size, &ended, &runs, &kept),
        bed: json!({
            "pages": size.pages,
            "local_pages": size.local(),
            "touches": size.touches,
            "first_touches": size.fresh,
            "threads": THREADS,
            "blocks": plan.blocks,
            "processors": bench.places(),
            "spins": bench.spins(),
            "runs": count,
            "runs_before": ended.before,
            "runs_left": ended.left,
            "runs_disturbed": disturbed_count,
        }),
        is_interrupted: ended.is_interrupted,
    }))
}

// Refuses runs of another class of machines.
fn check_machine(kept: &Kept) -> Result<(), ReproduceError> {
    let own = class(&console::machine::describe());
    match kept.read::<String>(MACHINE) {
        None => kept.write(MACHINE, &own),
        Some(class) if class == own => Ok(()),
        Some(class) => {
            let directory = kept.path().display().to_string();
            Err(ReproduceError::OtherMachine { directory, class })
        }
    }
}

/// How the runs have ended.
#[derive(Debug, Default, PartialEq)]
struct Ended {
    is_interrupted: bool,
    /// How many runs existed before,
    before: usize,
    /// and how many were left out for lack of time.
    left: usize,
}

impl Plan {
    fn new(options: &Options) -> Self {
        let deadline = options.quick.then(|| Instant::now() + QUICK);
        let (pace, blocks, attempts) =
            if options.quick { ("quick", 5, 1) } else { ("full", 15, 3) };
        // Who wants runs of moments does not want intervals.
        let blocks = if options.duration.is_some() { 1 } else { blocks };
        Self { pace, blocks, attempts, deadline }
    }

    /// Runs all cells that are not kept, block by block in shuffled order.
    ///
    /// # Errors
    /// When a run cannot be kept.
    fn run(
        &self,
        kept: &Kept,
        mut one: impl FnMut(Cell) -> Result<Turn, Lack>,
    ) -> Result<(Runs, Ended), ReproduceError> {
        let (cells, mut runs, mut ended) = (Cell::all(), Runs::default(), Ended::default());
        let name = |cell: Cell, block: u32| format!("{block}-{}", cell.name());
        let all = (0..self.blocks).flat_map(|block| cells.iter().map(move |&cell| (cell, block)));
        for (cell, block) in all {
            if let Some(turn) = kept.read::<Turn>(&name(cell, block)) {
                runs.add(cell, block, turn);
                ended.before += 1;
            }
        }
        let whole = cells.len() * self.blocks as usize;
        let mut progress = Progress::new("run", whole - ended.before);
        'blocks: for block in 0..self.blocks {
            for index in order(cells.len(), SEED, block) {
                let cell = cells[index];
                if runs.of(cell).any(|(known, _)| known == block) || is_absent(&runs, cell) {
                    continue;
                }
                if self.deadline.is_some_and(|deadline| Instant::now() > deadline) {
                    ended.left += 1;
                    continue;
                }
                progress.show(&cell.name());
                match one(cell) {
                    Ok(turn) => {
                        kept.write(&name(cell, block), &turn)?;
                        runs.add(cell, block, turn);
                    }
                    Err(Lack::Interrupted) => {
                        ended.is_interrupted = true;
                        break 'blocks;
                    }
                    Err(lack) => note(&mut runs, cell, lack),
                }
                progress.end(&cell.name());
            }
        }
        progress.close();
        Ok((runs, ended))
    }
}

// Whether this machine has shown that it cannot measure a cell.
fn is_absent(runs: &Runs, cell: Cell) -> bool {
    match cell {
        Cell::Far(Step { way, .. }) => runs.absence(way).is_some(),
        Cell::Echo | Cell::Minor => false,
    }
}

// Notes why a cell has no figure.
fn note(runs: &mut Runs, cell: Cell, lack: Lack) {
    match (lack, cell) {
        (Lack::Absent(why), Cell::Far(Step { way, .. })) => runs.lacks(way, why),
        (Lack::Absent(why) | Lack::Failed(why), _) => {
            terminal::note(&format!("afar reproduce: {}: {why}\n", cell.name()));
            runs.fails(cell, why);
        }
        (Lack::Interrupted, _) => {}
    }
}

// The lines that say how it was measured.
fn described(bench: &Bench<'_>, size: Size, ended: &Ended, runs: &Runs, kept: &Kept) -> String {
    let (count, disturbed) = runs.counts();
    let mib = |pages: u64| (pages * PAGE) >> 20;
    let mut text = format!(
        "{} MiB of pages, {} MiB local; {} touches of them in turn, or {} MiB touched for the \
         first time, timed inside the\nprogram; one page at a time: in a random order; merged: \
         next-7, or 8 written back at a time; asynchronous:\n{THREADS} threads, next-31, or 128 \
         written back at a time; swap reads 2^0, 2^3 and 2^5 pages at a time\n",
        mib(size.pages),
        mib(size.local()),
        size.touches,
        mib(size.fresh),
    );
    if let Some([first, other]) = bench.places() {
        text += &format!(
            "the program on processor {first}, supervisor, target and both ends of the echo on \
             {other}"
        );
        let how = if bench.spins() { format!("spins for {SPIN_MAX}") } else { "sleeps".to_owned() };
        text += &format!("; a thread {how} for a single page\n");
    }
    text += &format!("{count} runs, kept in {}", kept.path().display());
    if ended.before > 0 {
        let before = ended.before;
        text += &format!("\n{before} of them were there; remove it to run them anew");
    }
    if ended.left > 0 {
        let left = ended.left;
        text += &format!(
            "\n{left} more did not fit into the time of --quick; the same command goes on"
        );
    }
    if disturbed > 0 {
        text += &format!(
            "\n{disturbed} of them were disturbed by other programs or guests; they count only \
             where fewer than five others do"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use test_support::Scratch;

    use experiment::noise::Noise;
    use ladder::{Seen, Way};

    use super::*;

    fn turn() -> Turn {
        Turn { seen: Seen::default(), noise: Noise::default(), disturbed: None }
    }

    fn plan(deadline: Option<Instant>) -> Plan {
        Plan { pace: "test", blocks: 2, attempts: 1, deadline }
    }

    #[test]
    fn runs_are_kept_and_not_made_twice() {
        let scratch = Scratch::new("table5-kept");
        let kept = Kept::new(scratch.join("runs")).expect("a directory under target");
        let made = RefCell::new(Vec::new());
        let one = |limit: usize| {
            let made = &made;
            move |cell: Cell| {
                made.borrow_mut().push(cell.name());
                match made.borrow().len() > limit {
                    true => Err(Lack::Interrupted),
                    false => Ok(turn()),
                }
            }
        };
        let whole = 2 * Cell::all().len();
        let (runs, ended) = plan(None).run(&kept, one(7)).expect("it is kept");
        assert_eq!(ended, Ended { is_interrupted: true, before: 0, left: 0 });
        assert_eq!(runs.counts(), (7, 0));
        made.borrow_mut().clear();
        let (runs, ended) = plan(None).run(&kept, one(whole)).expect("it is kept");
        assert_eq!(ended, Ended { is_interrupted: false, before: 7, left: 0 });
        assert_eq!((runs.counts().0, made.borrow().len()), (whole, whole - 7));
        made.borrow_mut().clear();
        let (runs, _) = plan(None).run(&kept, one(whole)).expect("it is kept");
        assert_eq!((runs.counts().0, made.borrow().len()), (whole, 0));
        // Nothing begins too late, and what was left out is counted.
        let late = Kept::new(scratch.join("late")).expect("a directory under target");
        let (runs, ended) = plan(Some(Instant::now())).run(&late, one(whole)).expect("it is kept");
        assert_eq!((runs.counts().0, ended.left), (0, whole));
    }

    #[test]
    fn a_way_that_is_absent_is_asked_for_once_and_one_that_fails_again() {
        let scratch = Scratch::new("table5-absent");
        let kept = Kept::new(scratch.join("runs")).expect("a directory under target");
        let asked = RefCell::new(Vec::new());
        let one = |cell: Cell| {
            asked.borrow_mut().push(cell);
            match cell {
                Cell::Far(Step { way: Way::Swap, .. }) => Err(Lack::Absent("no zram".to_owned())),
                Cell::Minor => Err(Lack::Failed("no right".to_owned())),
                _ => Ok(turn()),
            }
        };
        let (runs, ended) = plan(None).run(&kept, one).expect("it is kept");
        assert_eq!((runs.absence(Way::Swap), ended.left), (Some("no zram"), 0));
        assert_eq!(runs.failures().collect::<Vec<_>>(), [("minor", "no right")]);
        let asked = asked.into_inner();
        let count = |is: fn(&&Cell) -> bool| asked.iter().filter(is).count();
        assert_eq!(count(|cell| matches!(cell, Cell::Far(Step { way: Way::Swap, .. }))), 1);
        assert_eq!(count(|cell| **cell == Cell::Minor), 2);
    }

    #[test]
    fn runs_of_another_machine_are_refused() {
        let scratch = Scratch::new("table5-machine");
        let kept = Kept::new(scratch.join("runs")).expect("a directory under target");
        check_machine(&kept).expect("it is the first");
        check_machine(&kept).expect("it is the same");
        kept.write(MACHINE, &"another".to_owned()).expect("it can be written");
        let error = check_machine(&kept).expect_err("it is another one").to_string();
        assert!(error.contains("machines of the class another"), "{error}");
    }
}
