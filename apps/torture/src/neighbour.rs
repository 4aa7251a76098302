//! A well-behaved host: one read of 4 KiB after another while a case runs.

use std::sync::Arc;
use std::thread::JoinHandle;

use diskload::{Device, LoadConfig, LoadError, Progress, Tally};
use measure::Duration;
use results::torture::Felt;

/// Time to reconnect after a lost connection, which counts as an error in any case.
const RECONNECT: Duration = Duration::from_ms(10_000);

/// A running load of the well-behaved host.
pub(super) struct Neighbour {
    progress: Arc<Progress>,
    thread: JoinHandle<Result<Tally, LoadError>>,
}

impl Neighbour {
    /// Starts the load in a thread.
    pub(super) fn begin(device: &Device) -> Self {
        let progress = Arc::new(Progress::default());
        let bytes = device.geometry().bytes();
        let config = LoadConfig { reconnect: RECONNECT, ..LoadConfig::reads(bytes) };
        let (told, device) = (Arc::clone(&progress), device.clone());
        let thread = std::thread::spawn(move || diskload::run(&config, &device, &told));
        Self { progress, thread }
    }

    /// How many reads have ended.
    pub(super) fn ended(&self) -> u64 {
        self.progress.ended()
    }

    /// Whether the load has ended by itself, because of an error.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops the load. Returns its reads, errors and latencies.
    pub(super) fn end(self) -> Felt {
        self.progress.stop();
        let tally = match self.thread.join() {
            Ok(Ok(tally)) => tally,
            Ok(Err(error)) => {
                let first_failure = Some(error.to_string());
                return Felt { error_count: 1, first_failure, ..Felt::default() };
            }
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let latency = &tally.reads.latency;
        let p99 = if latency.is_empty() { Duration::ZERO } else { latency.quantile(0.99) };
        let lost = tally.losses.reconnect_count.saturating_add(tally.losses.uncertain_count);
        Felt {
            read_count: tally.count(),
            error_count: tally.failure_count().saturating_add(lost),
            p99_ns: p99.as_ns(),
            max_ns: if latency.is_empty() { 0 } else { latency.max().as_ns() },
            first_failure: tally.first_failure,
        }
    }
}
