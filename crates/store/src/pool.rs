//! Threads that do commands, and which of them have none.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use measure::Duration;
use sys::clock::{monotonic_ns, thread_ns};
use sys::event::Waker;
use sys::rocks::Store;

use crate::command::Command;
use crate::counters::{Counters, Work};
use crate::execute::{Done, Scan, execute};

/// A command of a connection.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) connection: u64,
    pub(crate) command: Command,
    pub(crate) scan: Scan,
    /// When it had arrived, by the monotonic clock.
    pub(crate) arrived_ns: u64,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Answer {
    Done {
        worker: Worker,
        connection: u64,
        done: Done,
    },
    /// A thread has panicked; nothing is answered any more.
    Lost,
}

/// Which thread of which pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Worker {
    pub(crate) writes: bool,
    index: usize,
}

/// What every thread has.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    pub(crate) store: Arc<Store>,
    pub(crate) counters: Arc<Counters>,
    /// Processor time before each command.
    pub(crate) work: Duration,
    pub(crate) answers: Sender<Answer>,
    pub(crate) waker: Waker,
}

/// Readers, or writers. The thread that was busy last gets the next job: its processor has not
/// forgotten it.
#[derive(Debug)]
pub(crate) struct Pool {
    threads: Vec<(Sender<Job>, JoinHandle<Work>)>,
    idle: Vec<usize>,
    waiting: VecDeque<Job>,
}

impl Pool {
    /// Starts `count` threads.
    ///
    /// # Errors
    /// When the kernel has no more of them.
    pub(crate) fn start(count: usize, writes: bool, bench: &Bench) -> io::Result<Self> {
        let name = if writes { "kv-writer" } else { "kv-reader" };
        let mut threads = Vec::new();
        for index in 0..count {
            let (jobs, mine) = channel();
            let (bench, worker) = (bench.clone(), Worker { writes, index });
            let builder = std::thread::Builder::new().name(name.to_owned());
            threads.push((jobs, builder.spawn(move || serve(&bench, worker, &mine))?));
        }
        Ok(Self { threads, idle: (0..count).rev().collect(), waiting: VecDeque::new() })
    }

    /// Has it done as soon as a thread is free.
    pub(crate) fn give(&mut self, job: Job) {
        match self.idle.pop() {
            // It fails for a thread that is lost only, which has said so.
            Some(index) => drop(self.threads[index].0.send(job)),
            None => self.waiting.push_back(job),
        }
    }

    /// A thread has answered, and gets the job that has waited longest.
    pub(crate) fn is_free(&mut self, worker: Worker) {
        self.idle.push(worker.index);
        if let Some(job) = self.waiting.pop_front() {
            self.give(job);
        }
    }

    /// Ends the threads, which have no job; what they have done.
    pub(crate) fn end(self) -> Vec<Work> {
        let (jobs, threads): (Vec<_>, Vec<_>) = self.threads.into_iter().unzip();
        drop(jobs);
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(work) => work,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    }
}

/// Says that its thread is lost, if it is.
struct Guard<'a>(&'a Bench);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _nobody_waits = self.0.answers.send(Answer::Lost);
            self.0.waker.wake();
        }
    }
}

fn serve(bench: &Bench, worker: Worker, jobs: &Receiver<Job>) -> Work {
    let _guard = Guard(bench);
    let mut all = Work::default();
    for Job { connection, command, scan, arrived_ns } in jobs {
        let began_ns = monotonic_ns();
        spend(bench.work);
        let done = execute(&bench.store, &bench.counters, &command, &scan);
        let ended_ns = monotonic_ns();
        let operation = command.operation();
        let time = |from: u64, to: u64| Duration::from_ns(to.saturating_sub(from));
        let times = (time(arrived_ns, began_ns), time(began_ns, ended_ns));
        all.count(operation, times, done.error.as_deref());
        bench.counters.count(operation, done.error.is_none());
        let _nobody_waits = bench.answers.send(Answer::Done { worker, connection, done });
        bench.waker.wake();
    }
    all
}

/// Uses so much processor time: of this thread, so that waiting for a processor does not count.
fn spend(work: Duration) {
    if work.is_zero() {
        return;
    }
    let until_ns = thread_ns().saturating_add(work.as_ns());
    while thread_ns() < until_ns {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_processor_time() {
        let before = thread_ns();
        spend(Duration::from_us(300));
        let took = thread_ns() - before;
        assert!(took >= 300_000, "{took}");
        spend(Duration::ZERO);
    }
}
