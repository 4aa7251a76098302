//! The runs of a comparison: blocks in shuffled order, with the noise during each run.

use std::time::Duration;

use ::experiment::noise::{Noise, Reading, Tolerance};
use ::experiment::{Measured, least_disturbed, order};
use client::Session;
use console::layout::kilo;
use diskload::Tally;
use measure::Histogram;
use results::disks::DiskRun;
use sys::usage;

use super::super::error::BenchError;
use super::super::letters::LETTERS;
use super::super::processors::Processors;
use super::super::run::{self, Ready};

/// How often a run is made at most while it is disturbed.
const ATTEMPTS: u32 = 3;
const TOLERANCE: Tolerance = Tolerance { stolen_max: 0.05, others_max: 0.05 };

/// The runs of all whole blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Blocks that the flags request.
    pub(super) repetitions: u32,
    /// The runs, by disk, then by block.
    pub(super) runs: Vec<Vec<DiskRun>>,
    pub(super) interrupted: bool,
    /// Why the comparison ended early, if a load failed.
    pub(super) failure: Option<String>,
}

/// Why a run was not made, or does not count.
enum Stopped {
    Interrupted,
    Failed(String),
    Error(BenchError),
}

/// A run, and the noise during it.
struct Once {
    run: DiskRun,
    noise: Noise,
}

impl Measured for Once {
    fn noise(&self) -> &Noise {
        &self.noise
    }

    fn is_disturbed(&self) -> bool {
        self.run.disturbed.is_some()
    }

    // A run without figures is an error, which ends the comparison.
    fn has_figure(&self) -> bool {
        true
    }
}

/// Runs every disk once in each block.
///
/// # Errors
/// When a load cannot begin.
pub(super) fn measure(
    session: &mut Session,
    disks: &[Ready],
    repetitions: u32,
    seed: u64,
) -> Result<Blocks, BenchError> {
    session.expect("run", disks.len() * repetitions as usize);
    let mut once = |disk: usize, block: u32| of_disk(session, &disks[disk], disk, block, seed);
    in_blocks(disks.len(), repetitions, seed, &mut once)
}

/// Makes runs in blocks until one fails or is interrupted; keeps whole blocks only.
fn in_blocks(
    disk_count: usize,
    repetitions: u32,
    seed: u64,
    once: &mut dyn FnMut(usize, u32) -> Result<DiskRun, Stopped>,
) -> Result<Blocks, BenchError> {
    let mut blocks = Blocks { repetitions, ..Blocks::default() };
    blocks.runs.resize_with(disk_count, Vec::new);
    for block in 0..repetitions {
        let mut whole = vec![None; disk_count];
        for (turn, disk) in (1..).zip(order(disk_count, seed, block)) {
            match once(disk, block) {
                Ok(run) => whole[disk] = Some(DiskRun { turn, ..run }),
                Err(Stopped::Error(error)) => return Err(error),
                Err(Stopped::Interrupted) => {
                    blocks.interrupted = true;
                    return Ok(blocks);
                }
                Err(Stopped::Failed(why)) => {
                    blocks.failure = Some(why);
                    return Ok(blocks);
                }
            }
        }
        for (runs, run) in blocks.runs.iter_mut().zip(whole) {
            runs.extend(run);
        }
    }
    Ok(blocks)
}

// Runs a disk in a block; repeats a disturbed run, and returns the least disturbed one.
fn of_disk(
    session: &mut Session,
    disk: &Ready,
    number: usize,
    block: u32,
    seed: u64,
) -> Result<DiskRun, Stopped> {
    let letter = LETTERS[number];
    let what = format!("block {}: {letter}", block + 1);
    let mut ready = disk.clone();
    // The same requests on every disk of a block, others in the next block.
    ready.config.seed = seed.wrapping_add(u64::from(block));
    let (once, repeated_count) = least_disturbed(ATTEMPTS, || {
        let (tally, noise, others_max) = load(session, &ready, &what)?;
        let failed = failure(&tally).map(|why| {
            let uri = disk.target.clone();
            Stopped::Failed(BenchError::Run { letter, uri, why }.to_string())
        });
        if let Some(failed) = failed {
            return Err(failed);
        }
        let disturbed = noise.disturbance(Tolerance { others_max, ..TOLERANCE });
        Ok(Once { run: DiskRun { disturbed, ..figures(&tally, block) }, noise })
    })?;
    session.end_part(&format!("{what}, {}/s", kilo(once.run.iops)));
    Ok(DiskRun { repeated_count: repeated_count.into(), ..once.run })
}

// Runs one load. Returns its tally, the noise during it, and the share of processor time that
// other programs may have had.
fn load(session: &mut Session, ready: &Ready, what: &str) -> Result<(Tally, Noise, f64), Stopped> {
    let target = Processors::of(std::iter::once(&ready.source), String::new());
    let used = || {
        let of = |pid: &u32| usage::of_process(*pid).map_or(0, |usage| usage.processor_ns());
        let all = target.answering().map(|pids| pids.iter().map(of).sum::<u64>());
        Duration::from_nanos(all.unwrap_or(0))
    };
    let (before, reading) = (used(), Reading::now());
    let one = std::slice::from_ref(ready);
    let phase = run::run_together(session, one, &[0], format!("{what}  "));
    let noise = reading.until_now_beside(used().saturating_sub(before));
    let mut outcomes = phase.map_err(Stopped::Error)?.outcomes;
    // A load that was interrupted is no run.
    if session.is_interrupted() {
        return Err(Stopped::Interrupted);
    }
    // The processor time of a target that cannot be found counts as that of other programs, so no
    // share of others is a disturbance.
    let others_max = if target.answering().is_some() { TOLERANCE.others_max } else { 1.0 };
    Ok((outcomes.remove(0).tally, noise, others_max))
}

// Why a load does not count as a run; `None` if it does.
fn failure(tally: &Tally) -> Option<String> {
    let first = tally.first_failure.as_deref();
    let (failed, uncertain) = (tally.failure_count(), tally.losses.uncertain_count);
    match (failed, uncertain, tally.count()) {
        (0, 0, 0) => Some(first.unwrap_or("no request was answered").to_owned()),
        (0, 0, _) => None,
        (0, lost, _) => Some(format!("its connection was lost, and {lost} requests with it")),
        (count, ..) => Some(format!("{count} requests failed: {}", first.unwrap_or("unknown"))),
    }
}

// The figures of a load.
fn figures(tally: &Tally, block: u32) -> DiskRun {
    let mut latency = Histogram::new();
    let operations = tally.operations();
    operations.into_iter().for_each(|of| latency.merge(&of.latency));
    let bytes: u64 = operations.iter().map(|of| of.bytes).sum();
    let quantile = |share: f64| latency.quantile(share).as_ns_f64() / 1e3;
    DiskRun {
        block: u64::from(block) + 1,
        turn: 0,
        request_count: tally.count(),
        unmade_count: tally.unmade_count,
        iops: tally.per_second(),
        bytes_per_s: bytes as f64 * 1e9 / tally.elapsed.as_ns_f64().max(1.0),
        mean_us: latency.mean().as_ns_f64() / 1e3,
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
        p999_us: quantile(0.999),
        repeated_count: 0,
        disturbed: None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A run with so many requests a second, one after another.
    pub(in super::super) fn run(block: u64, iops: f64) -> DiskRun {
        DiskRun {
            block,
            turn: 1,
            request_count: 100,
            unmade_count: 0,
            iops,
            bytes_per_s: iops * 4096.0,
            mean_us: 1e6 / iops,
            p50_us: 1e6 / iops,
            p99_us: 2e6 / iops,
            p999_us: 0.0,
            repeated_count: 0,
            disturbed: None,
        }
    }

    /// What is kept of three disks, if the run of this number ends it so, and which disks ran.
    fn kept(end: usize, how: fn() -> Stopped) -> (Blocks, Vec<usize>) {
        let mut ran = Vec::new();
        let blocks = in_blocks(3, 3, 1, &mut |disk, block| {
            ran.push(disk);
            if ran.len() == end { Err(how()) } else { Ok(run(block.into(), disk as f64)) }
        });
        let Ok(blocks) = blocks else { panic!("nothing is wrong") };
        (blocks, ran)
    }

    #[test]
    fn every_disk_runs_once_in_each_block_in_an_order_of_its_own() {
        let (blocks, ran) = kept(0, || Stopped::Interrupted);
        let orders: Vec<&[usize]> = ran.chunks(3).collect();
        for (order, block) in orders.iter().zip(0..) {
            assert_eq!(*order, ::experiment::order(3, 1, block));
        }
        assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
        for (disk, runs) in blocks.runs.iter().enumerate() {
            assert!(runs.iter().all(|run| run.iops == disk as f64), "runs are of their disk");
            let turns: Vec<u64> = runs.iter().map(|run| run.turn).collect();
            let meant = orders.iter().map(|order| {
                order.iter().position(|one| *one == disk).map_or(0, |place| place as u64 + 1)
            });
            assert_eq!(turns, meant.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_block_that_is_not_whole_is_not_kept() {
        let (blocks, ran) = kept(5, || Stopped::Interrupted);
        assert_eq!((ran.len(), blocks.interrupted), (5, true));
        assert!(blocks.runs.iter().all(|runs| runs.len() == 1), "{blocks:?}");
        let (blocks, ran) = kept(2, || Stopped::Failed("it broke".to_owned()));
        assert_eq!((ran.len(), blocks.interrupted), (2, false));
        assert_eq!(blocks.failure.as_deref(), Some("it broke"));
        assert!(blocks.runs.iter().all(Vec::is_empty), "{blocks:?}");
    }
}
