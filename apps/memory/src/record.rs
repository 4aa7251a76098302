//! Writes every fault to a file, without delaying the run.
//!
//! ```text
//! engine ─► Recorder ─► bounded channel ─► thread ─► records::FaultWriter ─► file
//! ```
//!
//! When the disk cannot keep up and the channel is full, faults are dropped and counted: a run
//! that waits for its own record measures the disk.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use farmem::{FaultEvent, FaultKind};
use measure::InvalidRun;
use records::{Fault, FaultWriter, RecordError};

use results::validity;

/// Faults per batch.
const BATCH: usize = 4096;
/// Batches that may wait for the disk: a million faults.
const BATCHES_MAX: usize = 256;

/// Receives faults and passes them to a thread that writes them.
#[derive(Debug)]
pub(crate) struct Recorder {
    path: PathBuf,
    batch: Vec<Fault>,
    state: State,
    dropped_count: u64,
    /// The end of a page fault, after the trap, in nanoseconds.
    constant_ns: u32,
}

#[derive(Debug)]
enum State {
    /// The thread starts with the first faults: by then the engine has blocked the signals that
    /// the thread must not receive.
    Waiting(File, Vec<(&'static str, String)>),
    Writing(SyncSender<Batch>, JoinHandle<Result<u64, RecordError>>),
    Over,
}

/// A message to the thread.
#[derive(Debug)]
enum Batch {
    Faults(Vec<Fault>),
    /// Why nothing may be concluded from the faults.
    Invalid(String),
}

/// How many faults were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) row_count: u64,
    /// Faults that were dropped because the disk was too slow.
    pub(crate) dropped_count: u64,
}

impl Recorder {
    /// Creates the file.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub(crate) fn create(
        path: &Path,
        constant_ns: u64,
        notes: Vec<(&'static str, String)>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            batch: Vec::with_capacity(BATCH),
            state: State::Waiting(File::create(path)?, notes),
            dropped_count: 0,
            constant_ns: u32::try_from(constant_ns).unwrap_or(u32::MAX),
        })
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds faults to the record.
    pub(crate) fn take(&mut self, faults: &[FaultEvent]) {
        for fault in faults {
            self.batch.push(row(fault, self.constant_ns));
            if self.batch.len() == BATCH {
                self.hand_over();
            }
        }
    }

    /// Waits until everything is written. Returns how much. The file says why nothing may be
    /// concluded from it, if `verdict` is an error, or `None` because the run was aborted.
    ///
    /// # Errors
    /// When the file could not be written to.
    pub(crate) fn finish(
        mut self,
        verdict: Option<&Result<(), InvalidRun>>,
    ) -> Result<Recorded, RecordError> {
        self.start();
        let invalid = match verdict {
            Some(Ok(())) => None,
            Some(Err(invalid)) => Some(validity::told(invalid)),
            None => Some("invalid: the run did not come to its end".to_owned()),
        };
        let State::Writing(sender, thread) = std::mem::replace(&mut self.state, State::Over) else {
            return Ok(Recorded { row_count: 0, dropped_count: self.dropped_count });
        };
        // The run is over, so this send may wait. If the thread has ended, its result says why.
        let _ended = sender.send(Batch::Faults(std::mem::take(&mut self.batch)));
        let _ended = invalid.map(|why| sender.send(Batch::Invalid(why)));
        drop(sender);
        match thread.join() {
            Ok(written) => Ok(Recorded { row_count: written?, dropped_count: self.dropped_count }),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    // Sends the batch to the thread; drops it if the channel is full.
    fn hand_over(&mut self) {
        self.start();
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        if let State::Writing(sender, _) = &self.state
            && let count = batch.len() as u64
            && let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
                sender.try_send(Batch::Faults(batch))
        {
            self.dropped_count += count;
        }
    }

    // Starts the thread if it does not run yet.
    fn start(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Over) {
            State::Waiting(file, notes) => {
                let (sender, receiver) = sync_channel(BATCHES_MAX);
                let thread = std::thread::spawn(move || write(file, &notes, &receiver));
                State::Writing(sender, thread)
            }
            started => started,
        };
    }
}

// The thread's work: writes batches until the channel closes. Returns the number of rows.
fn write(
    file: File,
    notes: &[(&'static str, String)],
    batches: &Receiver<Batch>,
) -> Result<u64, RecordError> {
    let notes: Vec<(&str, &str)> = notes.iter().map(|(key, text)| (*key, text.as_str())).collect();
    let mut writer = FaultWriter::new(file, &notes)?;
    while let Ok(batch) = batches.recv() {
        match batch {
            Batch::Faults(faults) => writer.write(&faults)?,
            Batch::Invalid(why) => writer.invalidate(&why),
        }
    }
    let rows = writer.row_count();
    writer.finish()?;
    Ok(rows)
}

fn row(event: &FaultEvent, constant_ns: u32) -> Fault {
    let timed = event.measured_ns > 0;
    Fault {
        time_ns: event.time_ns,
        process_slot: u32::try_from(event.slot).unwrap_or(u32::MAX),
        page: event.address / measure::PAGE_BYTES,
        kind: match event.kind {
            FaultKind::FirstTouch => records::FaultKind::FirstTouch,
            FaultKind::Fetch => records::FaultKind::Fetch,
            FaultKind::Soft => records::FaultKind::Soft,
            FaultKind::Prefetch => records::FaultKind::Prefetch,
            FaultKind::Arrived => records::FaultKind::Arrived,
            FaultKind::WriteBack => records::FaultKind::WriteBack,
        },
        write: event.write,
        thread: event.tid,
        wait_ns: event.wait_ns,
        requested_ns: event.requested_ns,
        measured_ns: if timed { event.measured_ns.saturating_add(constant_ns) } else { 0 },
    }
}

#[cfg(test)]
mod tests {
    use paging::PageIndex;

    use super::*;

    fn event(measured_ns: u32) -> FaultEvent {
        FaultEvent {
            time_ns: 7,
            address: 0x7b00_0000_3000,
            page: PageIndex::new(3),
            slot: 1,
            tid: 99,
            kind: FaultKind::Fetch,
            write: true,
            wait_ns: 5,
            requested_ns: 5000,
            measured_ns,
        }
    }

    #[test]
    fn a_disk_that_is_too_slow_costs_rows_and_they_are_counted() {
        let (sender, receiver) = sync_channel::<Batch>(1);
        let (go, wait) = sync_channel::<()>(0);
        let thread = std::thread::spawn(move || {
            let _closed = wait.recv();
            let count = |batch| match batch {
                Batch::Faults(faults) => faults.len() as u64,
                Batch::Invalid(_) => 0,
            };
            Ok(receiver.iter().map(count).sum())
        });
        let mut recorder = Recorder {
            path: PathBuf::new(),
            batch: Vec::new(),
            state: State::Writing(sender, thread),
            dropped_count: 0,
            constant_ns: 0,
        };
        let batches = 3;
        recorder.take(&vec![event(1); batches * BATCH + 1]);
        drop(go);
        let batch = BATCH as u64;
        let recorded = recorder.finish(Some(&Ok(()))).unwrap();
        assert_eq!(recorded.row_count, batch + 1, "one batch fits, and the end may wait");
        assert_eq!(recorded.dropped_count, 2 * batch);
    }

    #[test]
    fn row_adds_what_the_trap_does_not_see_to_timed_faults_only() {
        assert_eq!(row(&event(4000), 900).measured_ns, 4900);
        assert_eq!(row(&event(0), 900).measured_ns, 0);
        let row = row(&event(4000), 900);
        assert_eq!((row.process_slot, row.page, row.thread), (1, 0x7_b000_0003, 99));
        assert_eq!((row.wait_ns, row.requested_ns, row.write), (5, 5000, true));
    }
}
