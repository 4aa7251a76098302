//! The server's thread, which owns all connections and runs one event loop.
//!
//! ```text
//! wait ─► connection | bytes | room | answers ─► advance: flush, next command ─► pool
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration as WallDuration, Instant};

use measure::Duration;
use sys::clock::monotonic_ns;
use sys::event::{Poll, Waker};
use sys::rocks::{Settings, Store, StoreError};

use crate::command::{Command, Operation};
use crate::connection::{Came, Connection};
use crate::counters::{Counters, Outcome, Work};
use crate::execute::Scan;
use crate::pool::{Answer, Bench, Job, Pool};
use crate::resp;
use crate::statistics::StoreCounters;

/// Connections at most; the next gets an error and is closed.
const CONNECTIONS_MAX: usize = 10_000;
/// Steps of one connection before it is another's turn.
const TURN: usize = 64;
const READ_BYTES: usize = 64 << 10;
/// How long the end of a server waits for peers that have yet to read their answers.
const PATIENCE: WallDuration = WallDuration::from_secs(2);
// Tokens of `Poll`: the listener, the waker of the pools, and the first connection.
const LISTENER: u64 = 0;
const MAIL: u64 = 1;
const FIRST: u64 = 2;

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Settings of the store.
    pub store: Settings,
    /// Threads that read, at least 1.
    pub readers: usize,
    /// Threads that write, at least 1.
    pub writers: usize,
    /// Processor time that a thread uses before each command.
    pub work: Duration,
}

/// Why a server did not start or has ended.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The kernel refused a request.
    #[error(transparent)]
    System(#[from] sys::Error),
    /// The kernel cannot start a thread, or the listening socket cannot be used.
    #[error("start the server: {0}")]
    Start(#[from] io::Error),
    /// A thread has panicked.
    #[error("a thread of the server was lost")]
    Lost,
}

/// A running server. [`Server::stop`] ends it; dropped, it runs until the process ends.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    library: &'static str,
    thread: JoinHandle<Result<Outcome, ServerError>>,
    stop: Arc<AtomicBool>,
    mail: Waker,
    ended: Waker,
    counters: Arc<Counters>,
}

impl Server {
    /// Opens the store and serves it to connections that `listener` accepts.
    ///
    /// # Errors
    /// When the RocksDB library or the store cannot be opened, or the kernel cannot start a thread.
    pub fn start(config: &ServerConfig, listener: TcpListener) -> Result<Self, ServerError> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let store = Arc::new(Store::open(&config.store)?);
        let (answers, arrived) = channel();
        let (mail, ended) = (Waker::new()?, Waker::new()?);
        let counters = Arc::new(Counters::default());
        let library = store.library();
        let bench = Bench {
            store,
            counters: Arc::clone(&counters),
            work: config.work,
            answers,
            waker: mail.clone(),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let readers = Pool::start(config.readers, false, &bench)?;
        let writers = Pool::start(config.writers, true, &bench)?;
        let told = Arc::clone(&stop);
        let has_ended = ended.clone();
        let thread = std::thread::Builder::new().name("kv-connections".to_owned());
        let thread = thread.spawn(move || {
            let owner = Owner::new((readers, writers), listener, bench, arrived, told);
            let outcome = owner.and_then(Owner::run);
            has_ended.wake();
            outcome
        })?;
        Ok(Self { address, library, thread, stop, mail, ended, counters })
    }

    /// The address on which the server listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The name of the RocksDB library.
    #[must_use]
    pub const fn library(&self) -> &'static str {
        self.library
    }

    /// The server's live counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The waker that fires when the server's thread has ended, also by itself after an error.
    #[must_use]
    pub const fn ended(&self) -> &Waker {
        &self.ended
    }

    /// Stops the server: it reads no more, completes the commands in execution, answers whoever
    /// reads within two seconds, and closes the store.
    ///
    /// # Errors
    /// When the server had ended by itself.
    pub fn stop(self) -> Result<Outcome, ServerError> {
        self.stop.store(true, Ordering::Relaxed);
        self.mail.wake();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The state of the event loop.
struct Owner {
    readers: Pool,
    writers: Pool,
    poll: Poll,
    listener: TcpListener,
    is_listening: bool,
    connections: BTreeMap<u64, Connection>,
    /// The number of the next connection; numbers are not reused.
    next: u64,
    /// Connections whose turn ended before their requests did.
    again: VecDeque<u64>,
    room: Vec<u8>,
    /// Jobs in execution or queued.
    at_work: usize,
    own: Work,
    outcome: Outcome,
    bench: Bench,
    arrived: Receiver<Answer>,
    stop: Arc<AtomicBool>,
}

impl Owner {
    // Called in the server's thread, where the poll set stays.
    fn new(
        (readers, writers): (Pool, Pool),
        listener: TcpListener,
        bench: Bench,
        arrived: Receiver<Answer>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, ServerError> {
        let poll = Poll::new()?;
        poll.add(&listener, LISTENER)?;
        poll.add(bench.waker.descriptor(), MAIL)?;
        Ok(Self {
            readers,
            writers,
            poll,
            listener,
            is_listening: true,
            connections: BTreeMap::new(),
            next: FIRST,
            again: VecDeque::new(),
            room: vec![0; READ_BYTES],
            at_work: 0,
            own: Work::default(),
            outcome: Outcome::new(),
            bench,
            arrived,
            stop,
        })
    }

    // Runs the event loop until `stop` is set.
    fn run(mut self) -> Result<Outcome, ServerError> {
        let began_ns = monotonic_ns();
        let mut ready = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let timeout = (!self.again.is_empty()).then_some(WallDuration::ZERO);
            self.poll.wait(timeout, &mut ready)?;
            for event in &ready {
                match event.token {
                    LISTENER => self.accept(),
                    MAIL => self.take_answers()?,
                    number => self.advance(number),
                }
            }
            for _ in 0..self.again.len() {
                if let Some(number) = self.again.pop_front() {
                    self.advance(number);
                }
            }
        }
        self.finish(began_ns)
    }

    // Completes the commands in execution, writes their answers, ends the threads and sums up the
    // outcome.
    fn finish(mut self, began_ns: u64) -> Result<Outcome, ServerError> {
        self.poll.remove(&self.listener);
        while self.at_work > 0 {
            match self.arrived.recv() {
                Ok(answer) => self.take(answer)?,
                Err(_) => return Err(ServerError::Lost),
            }
        }
        let until = Instant::now() + PATIENCE;
        for connection in self.connections.values_mut() {
            // Whoever has gone, or does not read, does without.
            let _gone = connection.finish(until);
        }
        let Self { readers, writers, bench, own, mut outcome, connections, .. } = self;
        drop(connections);
        for work in readers.end().iter().chain(&writers.end()).chain([&own]) {
            outcome.merge(work);
        }
        outcome.elapsed = Duration::from_ns(monotonic_ns().saturating_sub(began_ns));
        outcome.connection_count = bench.counters.connections();
        outcome.store = StoreCounters::of(&bench.store.statistics());
        Ok(outcome)
    }

    // Accepts all connections that are waiting.
    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) if self.connections.len() < CONNECTIONS_MAX => self.admit(stream),
                Ok((stream, _)) => {
                    self.outcome.turned_away_count += 1;
                    turn_away(stream);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Most likely no descriptors are left: stop listening until a connection closes.
                Err(_) => {
                    if !self.connections.is_empty() {
                        self.poll.remove(&self.listener);
                        self.is_listening = false;
                    }
                    return;
                }
            }
        }
    }

    // Registers a new connection.
    fn admit(&mut self, stream: TcpStream) {
        let Ok(connection) = Connection::new(stream) else { return };
        let number = self.next;
        if self.poll.add_changes(&connection, number).is_err() {
            return;
        }
        self.next += 1;
        self.bench.counters.connected();
        self.connections.insert(number, connection);
        self.advance(number);
    }

    // Takes all answers that the threads have sent.
    fn take_answers(&mut self) -> Result<(), ServerError> {
        self.bench.waker.acknowledge();
        while let Ok(answer) = self.arrived.try_recv() {
            self.take(answer)?;
        }
        Ok(())
    }

    // Frees the answer's thread and writes the answer to its connection.
    fn take(&mut self, answer: Answer) -> Result<(), ServerError> {
        let Answer::Done { worker, connection: number, done } = answer else {
            return Err(ServerError::Lost);
        };
        self.at_work -= 1;
        let pool = if worker.writes { &mut self.writers } else { &mut self.readers };
        pool.is_free(worker);
        // The connection may have closed.
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.is_busy = false;
            connection.answer(done.bytes);
            if let Some(next) = done.scan_next {
                connection.scanned(next);
            }
            self.advance(number);
        }
        Ok(())
    }

    /// Writes a connection's answers, then reads and begins its next command, until either would
    /// block.
    fn advance(&mut self, number: u64) {
        for _ in 0..TURN {
            let Some(connection) = self.connections.get_mut(&number) else { return };
            match connection.flush() {
                Err(_) => return self.close(number),
                Ok(false) => return,
                Ok(true) if connection.is_ending => return self.close(number),
                Ok(true) if connection.is_busy => return,
                Ok(true) => {}
            }
            // A stopping server begins no command.
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            match connection.parser.next() {
                Ok(Some(words)) => self.begin(number, words),
                Ok(None) => match connection.read(&mut self.room) {
                    Came::Bytes => {}
                    Came::Nothing => return,
                    Came::End => return self.close(number),
                },
                Err(violation) => {
                    let text = format!("Protocol error: {violation}");
                    resp::error(connection.out(), &text);
                    connection.is_ending = true;
                    self.outcome.violation_count += 1;
                    self.outcome.first_violation.get_or_insert_with(|| violation.to_string());
                }
            }
        }
        self.again.push_back(number);
    }

    // Passes the command of `words` to a pool, or answers it at once: PING and errors.
    fn begin(&mut self, number: u64, words: Vec<Vec<u8>>) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let arrived_ns = monotonic_ns();
        let command = match Command::of(words) {
            Ok(command) => command,
            Err(refusal) => {
                self.outcome.refused_count += 1;
                return resp::error(connection.out(), &refusal.to_string());
            }
        };
        let scan = match command {
            Command::Scan { cursor, .. } => connection.scan(cursor),
            _ => Some(Scan::default()),
        };
        let Some(scan) = scan else {
            self.outcome.refused_count += 1;
            let text = "invalid cursor: it is not the one that this connection was given last";
            return resp::error(connection.out(), text);
        };
        if let Command::Ping(text) = &command {
            match text {
                None => resp::simple(connection.out(), "PONG"),
                Some(text) => resp::bulk(connection.out(), Some(text)),
            }
            let none = (Duration::ZERO, Duration::ZERO);
            self.own.count(Operation::Ping, none, None);
            return self.bench.counters.count(Operation::Ping, true);
        }
        connection.is_busy = true;
        self.at_work += 1;
        let writes = command.operation().writes();
        let pool = if writes { &mut self.writers } else { &mut self.readers };
        pool.give(Job { connection: number, command, scan, arrived_ns });
    }

    // Closes a connection, and listens again if that had stopped.
    fn close(&mut self, number: u64) {
        self.connections.remove(&number);
        if !self.is_listening && self.poll.add(&self.listener, LISTENER).is_ok() {
            self.is_listening = true;
        }
    }
}

// Answers that there are too many connections, and closes `stream`.
fn turn_away(mut stream: TcpStream) {
    let mut out = Vec::new();
    resp::error(&mut out, &format!("this server has {CONNECTIONS_MAX} connections, and no more"));
    // Nonblocking: what does not fit into the socket's buffer is dropped.
    let _told = stream.set_nonblocking(true).and_then(|()| io::Write::write(&mut stream, &out));
}
