//! Pools of threads that execute commands.

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

/// A command of a connection, to be executed.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) connection: u64,
    pub(crate) command: Command,
    pub(crate) scan: Scan,
    /// When the command had arrived, by the monotonic clock.
    pub(crate) arrived_ns: u64,
}

/// A thread's report to the owner of the connections.
#[derive(Debug)]
pub(crate) enum Answer {
    Done {
        worker: Worker,
        connection: u64,
        done: Done,
    },
    /// A thread has panicked; the server ends.
    Lost,
}

/// A thread of one of the pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Worker {
    pub(crate) writes: bool,
    index: usize,
}

/// What all threads share.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    pub(crate) store: Arc<Store>,
    pub(crate) counters: Arc<Counters>,
    /// Processor time before each command.
    pub(crate) work: Duration,
    pub(crate) answers: Sender<Answer>,
    pub(crate) waker: Waker,
}

/// The readers or the writers. The thread that became idle last gets the next job, since its
/// processor's caches are still warm.
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
    /// When the kernel cannot start a thread.
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

    /// Passes `job` to an idle thread, or queues it.
    pub(crate) fn give(&mut self, job: Job) {
        match self.idle.pop() {
            // Sending fails only if the thread has panicked, which `Guard` reports.
            Some(index) => drop(self.threads[index].0.send(job)),
            None => self.waiting.push_back(job),
        }
    }

    /// Marks `worker` as idle and starts the job that has waited longest.
    pub(crate) fn is_free(&mut self, worker: Worker) {
        self.idle.push(worker.index);
        if let Some(job) = self.waiting.pop_front() {
            self.give(job);
        }
    }

    /// Ends the threads, which must be idle. Returns their tallies.
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

/// Reports on drop if its thread panics.
struct Guard<'a>(&'a Bench);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _nobody_waits = self.0.answers.send(Answer::Lost);
            self.0.waker.wake();
        }
    }
}

// Executes jobs until the pool ends. Returns the thread's tallies.
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

/// Spins until this thread has used `work` of processor time; waiting for a processor is not
/// counted.
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
