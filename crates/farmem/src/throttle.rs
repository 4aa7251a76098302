//! The throttle: holds a processor whose faults find no free frame, until there is one.
//!
//! ```text
//! trap: no frame left -> bell of this processor -> hurry the supervisor and the helpers
//!                                               -> hold the processor until there is a frame
//! ```
//!
//! The trap itself cannot wait long: interrupts are off there, and a helper that drops pages needs
//! this processor's answer to its TLB shoot-down. So there is a thread for each processor that has
//! real-time priority and takes the processor, with interrupts on, as soon as the fault is over.
//! The program stands still meanwhile, as it does whenever something more urgent runs.
//!
//! It also lends that priority to the supervisor and to helpers with work to do. The scheduler lets
//! an ordinary thread that wakes go before the one that runs only if it has had less than its share
//! up to now. A supervisor that has just worked has had more, even with the highest weight and the
//! shortest slice, which these threads have: with program threads on every processor it may wait
//! for the next tick of the clock, for 4 ms.
//!
//! A thread that it waits for may wait in turn: in the kernel, for a lock of the thread that cannot
//! run. So the throttle lets go from time to time.
//!
//! They cannot have that priority all the time. A thread that has it does not move to an idle
//! processor when it wakes where the program runs, and waits for ever for an ordinary one on its
//! own processor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sys::bpf::ProcessorBell;
use sys::clock::monotonic_ns;
use sys::event::{Poll, Waker};

use tables::Lanes;
use tables::PROCS_MAX;

const BELL: u64 = 0;
const STOP: u64 = 1;
// Real-time priorities: of a thread that holds a processor, and lent to those it waits for.
const PRIORITY: u32 = 1;
const PRIORITY_LENT: u32 = 2;
/// Longest time a processor is held.
const HELD_MAX_NS: u64 = 10_000_000;
/// Longest time a processor is held at once, and how long it is then let go.
const HELD_AT_ONCE_NS: u64 = 400_000;
const LET_GO: Duration = Duration::from_micros(20);
/// How often the supervisor and helpers are hurried meanwhile.
const HURRY_NS: u64 = 50_000;

/// A thread that may be late. Uses no lock: its owner could be preempted while it lowers the
/// priority, and a waiter would then wait for an ordinary thread.
#[derive(Default)]
struct Worker {
    /// The thread while it has work; 0 otherwise.
    tid: AtomicU32,
    /// The thread may have been lent the priority.
    hurried: AtomicBool,
}

impl Worker {
    /// Lends the thread real-time priority. It may be dropping it at this moment, so this is
    /// repeated while the thread is waited for.
    fn hurry(&self) {
        let tid = self.tid.load(Ordering::Acquire);
        if tid != 0 && sys::priority::make_realtime(tid, PRIORITY_LENT).is_ok() {
            self.hurried.store(true, Ordering::Release);
        }
    }

    // Restores the priority of thread `tid` if it was lent one.
    fn calm(&self, tid: u32) {
        if self.hurried.load(Ordering::Acquire) {
            self.hurried.store(false, Ordering::Release);
            // The thread may have ended.
            let _gone = sys::priority::make_urgent(tid);
        }
    }
}

struct Workers {
    supervisor: Worker,
    /// By slot.
    helpers: Vec<Worker>,
    /// A bit for each helper that has work, so that the others cost nothing.
    busy: Vec<AtomicU64>,
}

impl Workers {
    fn new(slots: usize) -> Self {
        Self {
            supervisor: Worker::default(),
            helpers: (0..slots).map(|_| Worker::default()).collect(),
            busy: (0..slots.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn hurry_helpers(&self) {
        for (place, word) in self.busy.iter().enumerate() {
            let mut bits = word.load(Ordering::Acquire);
            while bits != 0 {
                self.helpers[place * 64 + bits.trailing_zeros() as usize].hurry();
                bits &= bits - 1;
            }
        }
    }
}

/// The throttling threads; dropping this handle ends them.
pub(crate) struct Throttle {
    workers: Arc<Workers>,
    stop: Waker,
    threads: Vec<JoinHandle<()>>,
}

impl Throttle {
    /// Starts a thread for each of `bells`, which hurries the caller from now on.
    ///
    /// # Errors
    /// When real-time priority is refused.
    pub(crate) fn start(bells: Vec<ProcessorBell>, lanes: &Lanes) -> Result<Self, sys::Error> {
        let workers = Arc::new(Workers::new(PROCS_MAX));
        workers.supervisor.tid.store(sys::process::thread(), Ordering::Release);
        let mut throttle = Self { workers, stop: Waker::new()?, threads: Vec::new() };
        let (tell, begun) = std::sync::mpsc::channel();
        for bell in bells {
            let (workers, stop) = (Arc::clone(&throttle.workers), throttle.stop.clone());
            let (lanes, tell) = (lanes.clone(), tell.clone());
            let builder = std::thread::Builder::new().name("afar-throttle".to_owned());
            let thread = builder.spawn(move || match begin(&bell, &stop) {
                Ok(poll) => {
                    let _heard = tell.send(Ok(()));
                    if let Some(poll) = poll {
                        listen(bell, poll, &workers, &lanes);
                    }
                }
                Err(error) => {
                    let _heard = tell.send(Err(error));
                }
            });
            let thread = thread.map_err(|source| sys::Error::new("start a thread", source))?;
            throttle.threads.push(thread);
            begun.recv().unwrap_or(Ok(()))?;
        }
        Ok(throttle)
    }

    /// Notes that the helper of `slot` has work.
    pub(crate) fn helper_works(&self, slot: usize, tid: u32) {
        self.workers.helpers[slot].tid.store(tid, Ordering::Release);
        self.workers.busy[slot / 64].fetch_or(1 << (slot % 64), Ordering::AcqRel);
    }

    /// Notes that the helper of `slot` has no more work, and restores its priority.
    pub(crate) fn helper_rests(&self, slot: usize) {
        self.workers.busy[slot / 64].fetch_and(!(1 << (slot % 64)), Ordering::AcqRel);
        let tid = self.workers.helpers[slot].tid.swap(0, Ordering::AcqRel);
        self.workers.helpers[slot].calm(tid);
    }

    /// Restores the supervisor's priority after urgent work.
    pub(crate) fn supervisor_rests(&self) {
        self.workers.supervisor.calm(0);
    }

    /// Whether the supervisor was late, so that it was hurried.
    pub(crate) fn hurries_supervisor(&self) -> bool {
        self.workers.supervisor.hurried.load(Ordering::Acquire)
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        self.stop.wake();
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

// Prepares a throttling thread. `None` for a processor that afar may not use.
fn begin(bell: &ProcessorBell, stop: &Waker) -> Result<Option<Poll>, sys::Error> {
    if sys::processors::pin(bell.processor()).is_err() {
        return Ok(None);
    }
    sys::priority::make_realtime(0, PRIORITY)?;
    let poll = Poll::new()?;
    poll.add(bell, BELL)?;
    poll.add(stop.descriptor(), STOP)?;
    Ok(Some(poll))
}

// Holds the processor whenever its bell rings and the lane is short, until it is told to stop.
fn listen(mut bell: ProcessorBell, mut poll: Poll, workers: &Workers, lanes: &Lanes) {
    let mut ready = Vec::new();
    while poll.wait(None, &mut ready).is_ok() {
        if ready.iter().any(|event| event.token == STOP) {
            return;
        }
        let Some(number) = bell.answer() else {
            continue;
        };
        let lane = lanes.lane(number as usize);
        if !lane.is_short() {
            continue;
        }
        let begun = monotonic_ns();
        let (mut now, mut hurry_at, mut let_go_at) = (begun, begun, begun + HELD_AT_ONCE_NS);
        while lane.is_short() && now - begun < HELD_MAX_NS {
            if now >= hurry_at {
                workers.supervisor.hurry();
                workers.hurry_helpers();
                hurry_at = now + HURRY_NS;
            }
            if now >= let_go_at {
                // Or until the next bell, which the outer loop handles.
                if poll.wait(Some(LET_GO), &mut ready).is_err() {
                    return;
                }
                let_go_at = monotonic_ns() + HELD_AT_ONCE_NS;
            }
            std::hint::spin_loop();
            now = monotonic_ns();
        }
        lane.stall_ns().fetch_add(now - begun, Ordering::Relaxed);
        lane.stall_max_ns().fetch_max(now - begun, Ordering::Relaxed);
    }
}
