//! The sequence of turns, and which thread has its turn.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sys::stream::{End, Listener, Stream};

/// A request of a thread to its world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Start(String),
    Listen(SocketAddr),
    Shut(usize),
    Ring,
    Accept { place: usize, token: u64 },
    Receive { stream: usize, token: u64, room: usize },
    Send { stream: usize, token: u64, bytes: Vec<u8> },
    Hear { token: u64 },
    End { stream: usize, end: End },
    Acknowledged(usize),
    Close(usize),
}

/// A completion of a ring, in the tape's form.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    pub(crate) token: u64,
    pub(crate) result: Result<u32, ErrorKind>,
    /// The bytes of a receive.
    pub(crate) bytes: Vec<u8>,
    /// The addresses of both ends, for an accept.
    pub(crate) accepted: Option<[SocketAddr; 2]>,
    pub(crate) has_more: bool,
}

/// What has ended a wait.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// The thread starts.
    Began,
    /// Completions of its ring.
    Ring(Vec<Came>),
    /// A wait for a waker is over, and whether that was used.
    Waited(bool),
    /// Another thread has ended.
    Joined,
    /// Work outside the tape is done.
    Outside,
}

#[derive(Debug, Clone)]
enum Entry {
    Turn {
        thread: usize,
        now_ns: u64,
        input: Input,
    },
    Effect(Effect),
    /// The answer to a request that no thread waits for: an address, or a number of bytes.
    Address(SocketAddr),
    Count(u64),
}

impl Entry {
    /// The thread whose turn begins with this entry; `None` for other entries.
    const fn thread(&self) -> Option<usize> {
        match self {
            Self::Turn { thread, .. } => Some(*thread),
            _ => None,
        }
    }
}

/// A recording.
#[derive(Debug, Clone, Default)]
pub struct Record(Vec<Entry>);

impl Record {
    /// How many turns there were.
    #[must_use]
    pub fn turns(&self) -> usize {
        self.0.iter().filter(|entry| matches!(entry, Entry::Turn { .. })).count()
    }

    /// How many bytes were sent.
    #[must_use]
    pub fn sent_bytes(&self) -> usize {
        let sent = |entry: &Entry| match entry {
            Entry::Effect(Effect::Send { bytes, .. }) => bytes.len(),
            _ => 0,
        };
        self.0.iter().map(sent).sum()
    }

    /// How many connections were accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        let accepted = |entry: &Entry| match entry {
            Entry::Turn { input: Input::Ring(came), .. } => {
                came.iter().filter(|one| one.accepted.is_some()).count()
            }
            _ => 0,
        };
        self.0.iter().map(accepted).sum()
    }
}

#[derive(Debug, Default)]
pub(crate) struct State {
    entries: Vec<Entry>,
    /// The next entry to replay; `None` during recording.
    next: Option<usize>,
    /// The thread whose turn it is; `None` while all wait.
    running: Option<usize>,
    pub(crate) now_ns: u64,
    threads: usize,
    /// During recording, the kernel's listeners and streams.
    pub(crate) places: Vec<Option<Listener>>,
    pub(crate) streams: Vec<Option<Stream>>,
    /// How many accepted streams were handed out.
    pub(crate) given: usize,
    /// A request that differs from the recorded one, as a message.
    difference: Option<String>,
}

/// The state of a tape, shared by all of its threads.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    state: Mutex<State>,
    bell: Condvar,
}

/// After so long a turn is taken for one that never comes.
const PATIENCE: Duration = Duration::from_secs(20);

impl Tape {
    /// A tape that records.
    pub(crate) fn to_record() -> Arc<Self> {
        let state = State { running: Some(0), threads: 1, ..State::default() };
        Arc::new(Self { state: Mutex::new(state), bell: Condvar::new() })
    }

    /// A tape that replays `record`.
    pub(crate) fn to_play(record: &Record) -> Arc<Self> {
        let Record(entries) = record.clone();
        let state =
            State { entries, next: Some(0), running: Some(0), threads: 1, ..State::default() };
        Arc::new(Self { state: Mutex::new(state), bell: Condvar::new() })
    }

    /// Locks the state.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the tape replays.
    pub(crate) fn is_played(&self) -> bool {
        self.lock().next.is_some()
    }

    /// Returns the recording.
    /// Panics if a replay has entries left.
    pub(crate) fn end(&self) -> Record {
        let mut state = self.lock();
        let left = state.next.map(|next| state.entries.len() - next);
        let next = state.next.and_then(|next| state.entries.get(next)).cloned();
        assert!(left.is_none_or(|left| left == 0), "{left:?} entries are left, the first {next:?}");
        Record(std::mem::take(&mut state.entries))
    }

    /// Records a request of the running thread, or compares it with the recorded one.
    pub(crate) fn ask(&self, effect: Effect) {
        let mut state = self.lock();
        let Some(next) = state.next else {
            state.entries.push(Entry::Effect(effect));
            return;
        };
        match state.entries.get(next) {
            Some(Entry::Effect(recorded)) if *recorded == effect => state.next = Some(next + 1),
            recorded => {
                let text = format!("entry {next}: recorded {recorded:?}, now {effect:?}");
                self.fail(state, &text);
            }
        }
    }

    /// An address: that of `now`, which is recorded, or the recorded one.
    pub(crate) fn address(&self, now: impl FnOnce() -> SocketAddr) -> SocketAddr {
        self.answer(
            || Entry::Address(now()),
            |entry| match entry {
                Entry::Address(address) => Some(*address),
                _ => None,
            },
        )
    }

    /// A number: that of `now`, which is recorded, or the recorded one.
    pub(crate) fn count(&self, now: impl FnOnce() -> u64) -> u64 {
        self.answer(
            || Entry::Count(now()),
            |entry| match entry {
                Entry::Count(count) => Some(*count),
                _ => None,
            },
        )
    }

    /// Records the entry that `now` makes, or takes the next recorded one.
    fn answer<T>(&self, now: impl FnOnce() -> Entry, take: impl Fn(&Entry) -> Option<T>) -> T {
        let recorded = (!self.is_played()).then(now);
        let mut state = self.lock();
        let next = match (state.next, recorded) {
            (Some(next), _) => {
                state.next = Some(next + 1);
                next
            }
            (None, entry) => {
                state.entries.extend(entry);
                state.entries.len() - 1
            }
        };
        let taken = state.entries.get(next).and_then(take);
        taken.unwrap_or_else(|| {
            self.fail(state, &format!("entry {next} is no answer"));
            unreachable!("it has failed")
        })
    }

    /// Ends the turn of the running thread, which is about to wait. Returns its number.
    pub(crate) fn let_go(&self) -> usize {
        let mut state = self.lock();
        let own = state.running.take();
        self.bell.notify_all();
        drop(state);
        own.unwrap_or(0)
    }

    /// Waits for a turn of thread `own`: during recording, until no other thread runs; `input` then
    /// says what has ended its wait. During replay, until its entry is next.
    pub(crate) fn turn(&self, own: usize, input: impl FnOnce(&mut State) -> Input) -> Input {
        let mut state = self.lock();
        let is_on = |state: &State| match state.next {
            _ if state.running.is_some() => false,
            None => true,
            Some(next) => state.entries.get(next).and_then(Entry::thread) == Some(own),
        };
        while !is_on(&state) && state.difference.is_none() {
            let waited = self.bell.wait_timeout(state, PATIENCE);
            let (again, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = again;
            let is_over = timeout.timed_out() && state.next.is_some() && state.running.is_none();
            if is_over && !is_on(&state) && state.difference.is_none() {
                let next = state.next.unwrap_or(0);
                let recorded = state.entries.get(next);
                let text = format!("thread {own} waits; entry {next} is {recorded:?}");
                self.fail(state, &text);
                unreachable!("it has failed");
            }
        }
        if let Some(difference) = state.difference.clone() {
            drop(state);
            panic!("{difference}");
        }
        state.running = Some(own);
        if let Some(next) = state.next
            && let Some(Entry::Turn { now_ns, input, .. }) = state.entries.get(next).cloned()
        {
            (state.next, state.now_ns) = (Some(next + 1), now_ns);
            return input;
        }
        state.now_ns = sys::clock::monotonic_ns();
        let (thread, now_ns, input) = (own, state.now_ns, input(&mut state));
        state.entries.push(Entry::Turn { thread, now_ns, input: input.clone() });
        input
    }

    /// Adds a thread. Returns its number.
    pub(crate) fn thread(&self) -> usize {
        let mut state = self.lock();
        state.threads += 1;
        state.threads - 1
    }

    /// Whether a request differed from the recorded one: no thread has a turn any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.lock().difference.is_some()
    }

    /// Stops all threads with a message.
    fn fail(&self, mut state: MutexGuard<'_, State>, text: &str) {
        state.difference.get_or_insert_with(|| text.to_owned());
        drop(state);
        self.bell.notify_all();
        assert!(std::thread::panicking(), "{text}");
    }
}
