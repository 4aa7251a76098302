//! The sequence of turns, and whose turn it is.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sys::stream::{End, Listener, Stream};

/// Something that a thread has asked of its world.
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

/// A request of a ring that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    pub(crate) token: u64,
    pub(crate) result: Result<u32, ErrorKind>,
    /// Of a receive.
    pub(crate) bytes: Vec<u8>,
    /// Of an accept: the addresses of both ends.
    pub(crate) accepted: Option<[SocketAddr; 2]>,
    pub(crate) has_more: bool,
}

/// What has ended a wait, or answers a question.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// A thread begins.
    Began,
    /// Requests of its ring have ended.
    Ring(Vec<Came>),
    /// It has waited for a waker: whether that was used.
    Waited(bool),
    /// Another thread has ended.
    Joined,
    /// What the tape is not about is over.
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
    /// An address that was given, or bytes that had come: no thread waits for it.
    Address(SocketAddr),
    Count(u64),
}

impl Entry {
    /// Whose turn it is from here on.
    const fn thread(&self) -> Option<usize> {
        match self {
            Self::Turn { thread, .. } => Some(*thread),
            _ => None,
        }
    }
}

/// What was recorded.
#[derive(Debug, Clone, Default)]
pub struct Record(Vec<Entry>);

impl Record {
    /// How often a thread had its turn.
    #[must_use]
    pub fn turns(&self) -> usize {
        self.0.iter().filter(|entry| matches!(entry, Entry::Turn { .. })).count()
    }

    /// Bytes that were sent.
    #[must_use]
    pub fn sent_bytes(&self) -> usize {
        let sent = |entry: &Entry| match entry {
            Entry::Effect(Effect::Send { bytes, .. }) => bytes.len(),
            _ => 0,
        };
        self.0.iter().map(sent).sum()
    }

    /// Connections that came.
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
    /// While it is played: the entry that is next.
    next: Option<usize>,
    /// Whose turn it is; nobody's while all wait.
    running: Option<usize>,
    pub(crate) now_ns: u64,
    threads: usize,
    /// While it is recorded: what they are to the kernel.
    pub(crate) places: Vec<Option<Listener>>,
    pub(crate) streams: Vec<Option<Stream>>,
    /// Streams that somebody was given.
    pub(crate) given: usize,
    /// What was asked in place of what was recorded.
    difference: Option<String>,
}

/// Where all threads of a tape meet.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    state: Mutex<State>,
    bell: Condvar,
}

/// A turn that does not come for so long never will.
const PATIENCE: Duration = Duration::from_secs(20);

impl Tape {
    pub(crate) fn to_record() -> Arc<Self> {
        let state = State { running: Some(0), threads: 1, ..State::default() };
        Arc::new(Self { state: Mutex::new(state), bell: Condvar::new() })
    }

    pub(crate) fn to_play(record: &Record) -> Arc<Self> {
        let Record(entries) = record.clone();
        let state =
            State { entries, next: Some(0), running: Some(0), threads: 1, ..State::default() };
        Arc::new(Self { state: Mutex::new(state), bell: Condvar::new() })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_played(&self) -> bool {
        self.lock().next.is_some()
    }

    /// What was recorded, all of which was played if it was played.
    pub(crate) fn end(&self) -> Record {
        let mut state = self.lock();
        let left = state.next.map(|next| state.entries.len() - next);
        let next = state.next.and_then(|next| state.entries.get(next)).cloned();
        assert!(left.is_none_or(|left| left == 0), "{left:?} entries are left, the first {next:?}");
        Record(std::mem::take(&mut state.entries))
    }

    /// The running thread has asked for something.
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

    /// An address that nobody waits for.
    pub(crate) fn address(&self, now: impl FnOnce() -> SocketAddr) -> SocketAddr {
        self.answer(
            || Entry::Address(now()),
            |entry| match entry {
                Entry::Address(address) => Some(*address),
                _ => None,
            },
        )
    }

    /// A number that nobody waits for.
    pub(crate) fn count(&self, now: impl FnOnce() -> u64) -> u64 {
        self.answer(
            || Entry::Count(now()),
            |entry| match entry {
                Entry::Count(count) => Some(*count),
                _ => None,
            },
        )
    }

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

    /// The running thread waits; another may have its turn. Its own number.
    pub(crate) fn let_go(&self) -> usize {
        let mut state = self.lock();
        let own = state.running.take();
        self.bell.notify_all();
        drop(state);
        own.unwrap_or(0)
    }

    /// Waits for the turn of a thread: while it is recorded, until nobody else runs; `input` says
    /// what its wait has brought then. While it is played, until it comes on the tape.
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

    /// A thread more; its number.
    pub(crate) fn thread(&self) -> usize {
        let mut state = self.lock();
        state.threads += 1;
        state.threads - 1
    }

    /// Whether something else was asked than was recorded: nobody has a turn any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.lock().difference.is_some()
    }

    fn fail(&self, mut state: MutexGuard<'_, State>, text: &str) {
        state.difference.get_or_insert_with(|| text.to_owned());
        drop(state);
        self.bell.notify_all();
        assert!(std::thread::panicking(), "{text}");
    }
}
