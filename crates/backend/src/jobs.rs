//! Requests in execution by backends, on one ring.
//!
//! Invariants:
//! - A job that was started ends once, and its memory is returned then.
//! - A job ends neither before its backend's work is done nor before the time the backend set.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;

use sys::block::Block;
use sys::ring::{Completed, Held, Ring};

use crate::{Action, Backend, Call, Failure, Operation, Request, Work};

/// A request with its backend, its memory, and its sender's tag.
pub struct Job<T> {
    /// The backend that executes it.
    pub backend: Arc<dyn Backend>,
    /// The request.
    pub request: Request,
    /// For a read or write, memory at least as long as the request.
    pub block: Option<Block>,
    /// The sender's tag.
    pub tag: T,
}

/// A request that has ended.
#[derive(Debug)]
pub struct Ended<T> {
    /// The request.
    pub request: Request,
    /// Its result.
    pub result: Result<(), Failure>,
    /// The memory of its job.
    pub block: Option<Block>,
    /// The sender's tag.
    pub tag: T,
}

/// How long reads and writes that have ended took, in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobTimes {
    /// Number of jobs.
    pub count: u64,
    /// Nanoseconds from their starts to the times that their devices set, or to their ends if the
    /// devices set none.
    pub device_ns: u64,
    /// Nanoseconds from the times that their devices set until their ends.
    pub late_ns: u64,
}

/// A job that has not ended.
struct Waiting<T> {
    job: Job<T>,
    started_ns: u64,
    not_before_ns: u64,
    /// The system call in progress, and the bytes that calls have moved so far.
    call: Option<Call>,
    moved: u64,
    /// The job's result, once it waits only for its time.
    result: Result<(), Failure>,
}

/// The jobs in execution on one ring.
pub struct Jobs<T> {
    places: Vec<Option<Waiting<T>>>,
    free: Vec<u32>,
    /// Times and places of the jobs that wait only for their time.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// The upper bits of all ring tokens of these jobs; the lower 32 are the place.
    token: u64,
    zeros: Option<Block>,
    times: Option<JobTimes>,
}

/// Bytes of one write of zeros, where the file system cannot zero a range.
const ZERO_BYTES: usize = 64 << 10;

impl<T> Jobs<T> {
    /// An empty set; its ring tokens are `token` with a place in the lower 32 bits.
    #[must_use]
    pub const fn new(token: u64) -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            token,
            zeros: None,
            times: None,
        }
    }

    /// Measures the times of jobs from now on.
    pub const fn trace(&mut self) {
        self.times = Some(JobTimes { count: 0, device_ns: 0, late_ns: 0 });
    }

    /// The measured times; `None` unless `trace` was called.
    #[must_use]
    pub const fn times(&self) -> Option<JobTimes> {
        self.times
    }

    /// Number of jobs that have not ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether all jobs have ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The earliest time of the jobs that wait only for their time; `None` if there are none.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Starts a job. Returns its end if it is done already.
    pub fn start(&mut self, ring: &mut Ring, mut job: Job<T>, now_ns: u64) -> Option<Ended<T>> {
        let length = match job.request.operation {
            Operation::Read | Operation::Write { .. } => index(job.request.length),
            _ => 0,
        };
        let data = job.block.as_deref_mut().map_or(&mut [][..], |block| &mut block[..length]);
        let start = job.backend.start(&job.request, data, now_ns);
        let not_before_ns = start.not_before_ns;
        let waiting = Waiting {
            job,
            started_ns: now_ns,
            not_before_ns,
            call: None,
            moved: 0,
            result: Ok(()),
        };
        match start.work {
            Work::Done(result) if not_before_ns <= now_ns => {
                Some(self.end(waiting, result, now_ns))
            }
            Work::Done(result) => {
                let place = self.keep(Waiting { result, ..waiting });
                self.due.push(Reverse((not_before_ns, place)));
                None
            }
            Work::Kernel(call) => {
                let place = self.keep(Waiting { call: Some(call), ..waiting });
                self.ask(ring, place);
                None
            }
        }
    }

    /// Handles a completion of the ring with a token of these jobs. Returns the job's end if it has
    /// ended.
    pub fn complete(
        &mut self,
        ring: &mut Ring,
        completed: Completed,
        now_ns: u64,
    ) -> Option<Ended<T>> {
        let place = u32::try_from(completed.token & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        let waiting = self.places.get_mut(index(u64::from(place)))?.as_mut()?;
        let action = waiting.call.as_ref()?.action;
        match completed.held {
            Held::Block(zeros) if matches!(action, Action::WriteZeros { .. }) => {
                self.zeros = Some(zeros);
            }
            Held::Block(block) => waiting.job.block = Some(block),
            Held::Bytes(_) | Held::Nothing => {}
        }
        let next = waiting.advance(completed.result);
        match next {
            None => {
                self.ask(ring, place);
                None
            }
            Some(result) => self.settle(place, result, now_ns),
        }
    }

    /// Ends one job whose time has come and returns it; `None` if none is due.
    pub fn next_due(&mut self, now_ns: u64) -> Option<Ended<T>> {
        if self.deadline_ns()? > now_ns {
            return None;
        }
        let Reverse((_, place)) = self.due.pop()?;
        let waiting = self.release(place)?;
        let result = waiting.result;
        Some(self.end(waiting, result, now_ns))
    }

    // Stores a job. Returns its place.
    fn keep(&mut self, waiting: Waiting<T>) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            u32::try_from(self.places.len() - 1).expect("jobs are bounded by queues")
        });
        self.places[index(u64::from(place))] = Some(waiting);
        place
    }

    // Removes the job at `place`.
    fn release(&mut self, place: u32) -> Option<Waiting<T>> {
        let waiting = self.places.get_mut(index(u64::from(place)))?.take()?;
        self.free.push(place);
        Some(waiting)
    }

    // Ends a job that the kernel is done with, or has it wait for its time.
    fn settle(&mut self, place: u32, result: Result<(), Failure>, now_ns: u64) -> Option<Ended<T>> {
        let waiting = self.places.get_mut(index(u64::from(place)))?.as_mut()?;
        if waiting.not_before_ns > now_ns {
            (waiting.call, waiting.result) = (None, result);
            self.due.push(Reverse((waiting.not_before_ns, place)));
            return None;
        }
        let waiting = self.release(place)?;
        Some(self.end(waiting, result, now_ns))
    }

    // Measures a job's time and reports its end to the backend.
    fn end(&mut self, waiting: Waiting<T>, result: Result<(), Failure>, now_ns: u64) -> Ended<T> {
        let moves =
            matches!(waiting.job.request.operation, Operation::Read | Operation::Write { .. });
        if let Some(times) = self.times.as_mut().filter(|_| moves) {
            times.add(waiting.started_ns, waiting.not_before_ns, now_ns);
        }
        let Job { backend, request, block, tag } = waiting.job;
        let result = backend.end(&request, result, now_ns);
        Ended { request, result, block, tag }
    }

    // Submits the rest of a job to the ring.
    fn ask(&mut self, ring: &mut Ring, place: u32) {
        let Some(Some(waiting)) = self.places.get_mut(index(u64::from(place))) else { return };
        let Some(Call { file, action }) = waiting.call.clone() else { return };
        let Request { offset, length, .. } = waiting.job.request;
        let token = self.token | u64::from(place);
        let (from, rest) = (offset + waiting.moved, length - waiting.moved);
        let part = index(waiting.moved)..index(length);
        match action {
            Action::Read | Action::Write { .. } => {
                let block = waiting.job.block.take();
                let block = block.expect("a request that moves data has memory");
                match action {
                    Action::Write { forced } => {
                        ring.write(&file, token, block, part, (from, forced));
                    }
                    _ => ring.read(&file, token, block, part, from),
                }
            }
            Action::Sync => ring.sync(&file, token),
            Action::Clear { stretch, .. } => ring.clear(&file, token, stretch, [from, rest]),
            Action::WriteZeros { forced } => {
                let zeros = self.zeros.take().unwrap_or_else(|| Block::new(ZERO_BYTES));
                let bytes = index(rest).min(ZERO_BYTES);
                ring.write(&file, token, zeros, 0..bytes, (from, forced));
            }
        }
    }
}

impl<T> Waiting<T> {
    // Evaluates the result of a system call. Returns the job's result, or `None` if another call is
    // needed.
    fn advance(&mut self, answer: io::Result<u32>) -> Option<Result<(), Failure>> {
        let call = self.call.as_mut()?;
        let moved = match answer {
            // The file system cannot zero a range without writing it.
            Err(error) => match (call.action, error.kind()) {
                (Action::Clear { forced, .. }, io::ErrorKind::Unsupported) => {
                    call.action = Action::WriteZeros { forced };
                    return None;
                }
                (_, io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => return None,
                _ => return Some(Err(Failure::of(&error))),
            },
            Ok(moved) => moved,
        };
        match call.action {
            Action::Sync => Some(Ok(())),
            Action::Clear { forced: false, .. } => Some(Ok(())),
            Action::Clear { forced: true, .. } => {
                call.action = Action::Sync;
                None
            }
            Action::Read if moved == 0 => Some(Err(Failure::OutOfRange)),
            // A device that writes nothing and reports no error is full.
            _ if moved == 0 => Some(Err(Failure::NoSpace)),
            _ => {
                self.moved += u64::from(moved);
                (self.moved >= self.job.request.length).then_some(Ok(()))
            }
        }
    }
}

impl JobTimes {
    /// Adds the times of another thread.
    pub const fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.device_ns += other.device_ns;
        self.late_ns += other.late_ns;
    }

    // Adds one job; `named_ns` is the time that its device set, or 0.
    const fn add(&mut self, started_ns: u64, named_ns: u64, now_ns: u64) {
        self.count += 1;
        if named_ns > started_ns {
            self.device_ns += named_ns - started_ns;
            self.late_ns += now_ns.saturating_sub(named_ns);
        } else {
            self.device_ns += now_ns.saturating_sub(started_ns);
        }
    }
}

// Converts lengths of requests and places; both fit into memory.
fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_apart() {
        let mut times = JobTimes::default();
        times.add(100, 150, 157);
        times.add(200, 0, 230);
        assert_eq!(times, JobTimes { count: 2, device_ns: 80, late_ns: 7 });
    }
}
