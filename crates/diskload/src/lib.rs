//! The load generator: reads and writes any device and measures latencies.
//!
//! ```text
//! Pattern ─► request ─► Way (this process, or over the network) ─► Ended ─► Tally
//!    └────────── Stamps say what a block must hold ──────────────────┘
//! ```
//!
//! A job is a thread with a ring, a queue and requests of its own. It sends requests to a backend
//! of this process or to a queue of a host. A request whose connection was lost may or may not have
//! been executed: a block may then hold any write from the last answered one on (`stamp`).

mod checks;
mod config;
mod pacing;
mod pattern;
mod stamp;
mod under_way;
mod way;
mod worker;

mod depths;
mod device;
mod progress;
mod tally;

use sys::clock::monotonic_ns;

use host::Backoff;

pub use checks::Checks;
pub use config::{LoadConfig, Order, Pace, Think};
pub use depths::Depths;
pub use device::{Device, LoadError};
pub use progress::Progress;
pub use tally::{Losses, OperationTally, Tally};

use under_way::Made;
use way::Way;
use worker::{FIRST_PAUSE, LAST_PAUSE, Worker};

/// Runs a load until its time is over, all its requests are made, or `progress` is stopped.
///
/// # Errors
/// When a job fails; the other jobs, and every other load with the same `progress`, then stop.
pub fn run(config: &LoadConfig, device: &Device, progress: &Progress) -> Result<Tally, LoadError> {
    let tallies: Vec<Result<Tally, LoadError>> = std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..config.jobs)
            .map(|job| {
                scope.spawn(move || {
                    let tally = work(config, device, job, progress);
                    if tally.is_err() {
                        progress.stop();
                    }
                    tally
                })
            })
            .collect();
        let joined = jobs.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(|ended| ended.unwrap_or_else(|p| std::panic::resume_unwind(p))).collect()
    });
    let mut all = Tally::new();
    for tally in tallies {
        all.merge(&tally?);
    }
    Ok(all)
}

/// Runs one job.
fn work(
    config: &LoadConfig,
    device: &Device,
    job: u16,
    progress: &Progress,
) -> Result<Tally, LoadError> {
    let way = begin(config, device, job, progress)?;
    Worker::new(config, device.geometry(), way, job, progress)?.run()
}

// Connects a job to the device. Retries for `reconnect` if the target cannot be reached.
fn begin(
    config: &LoadConfig,
    device: &Device,
    job: u16,
    progress: &Progress,
) -> Result<Way<Made>, LoadError> {
    let until_ns = monotonic_ns().saturating_add(config.reconnect.as_ns());
    let mut backoff = Backoff::new(FIRST_PAUSE, LAST_PAUSE, config.seed ^ u64::from(job));
    loop {
        let generation = match device {
            Device::Remote(controller) => controller.generation(),
            Device::Local(_) | Device::Iscsi(_) => 0,
        };
        let opened = Way::open(device, job, config.depth);
        if opened.is_ok() || monotonic_ns() >= until_ns || progress.has_stopped() {
            return opened;
        }
        progress.pause(backoff.pause());
        if let Device::Remote(controller) = device {
            // Reconnects, unless another job has; an error shows again in `Way::open` above.
            let _again = controller.renew(generation);
        }
    }
}
