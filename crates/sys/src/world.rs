//! The surroundings of a target's or a disk's threads: this machine, or a simulation.
//!
//! Threads wait only by a [`World`], or by a [`Ring`] or a [`Stream`] of it. So a simulation knows
//! when no thread can run, and advances its time.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use crate::clock::monotonic_ns;
use crate::event::{Poll, Waker, wait_for};
use crate::ring::Ring;
use crate::stream::{Listener, Stream};
use crate::{Error, Result};

/// A machine or a simulation.
pub trait World: Send + Sync + fmt::Debug {
    /// The time, in nanoseconds.
    fn now_ns(&self) -> u64;

    /// A ring for the calling thread, with room to submit `entries` requests at once.
    ///
    /// # Errors
    /// As [`Ring::new`].
    fn ring(&self, entries: u32) -> Result<Ring>;

    /// Starts a thread.
    ///
    /// # Errors
    /// If no more threads can be started.
    fn start(&self, name: String, work: Work) -> Result<Thread>;

    /// As [`Stream::connect`].
    ///
    /// # Errors
    /// As [`Stream::connect`].
    fn dial(&self, address: &str, patience: Duration) -> io::Result<Stream>;

    /// Listens at `address`. Returns the listener and its address, whose port may have been chosen.
    ///
    /// # Errors
    /// If the address is taken, or not of this world.
    fn listen(&self, address: SocketAddr) -> io::Result<(Listener, SocketAddr)>;

    /// Waits until the waker is used, or until `until_ns` (`None`: for ever). Returns whether it
    /// was used.
    ///
    /// # Errors
    /// Never in practice.
    fn wait(&self, waker: &Waker, until_ns: Option<u64>) -> Result<bool>;
}

/// The function of a thread.
pub type Work = Box<dyn FnOnce() + Send>;

/// A thread that has been started.
pub struct Thread(Box<dyn FnOnce() -> std::thread::Result<()> + Send + Sync>);

impl Thread {
    /// A thread whose end `join` waits for.
    #[must_use]
    pub fn new(join: Box<dyn FnOnce() -> std::thread::Result<()> + Send + Sync>) -> Self {
        Self(join)
    }

    /// Waits for the thread's end.
    ///
    /// # Errors
    /// The value that it panicked with.
    pub fn join(self) -> std::thread::Result<()> {
        (self.0)()
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Thread")
    }
}

/// A channel for messages to one thread, which waits for them by its world.
///
/// # Errors
/// When the kernel is out of descriptors.
pub fn channel<T>() -> Result<(Sender<T>, Receiver<T>)> {
    let (sender, mail) = mpsc::channel();
    let waker = Waker::new()?;
    let farewell = Arc::new(Farewell(waker.clone()));
    Ok((Sender { sender, farewell }, Receiver { mail, waker }))
}

/// One end of a [`channel`].
#[derive(Debug)]
pub struct Sender<T> {
    sender: mpsc::Sender<T>,
    /// Dropped after the sender, so that a waiting receiver finds that there is no sender left.
    farewell: Arc<Farewell>,
}

impl<T> Sender<T> {
    /// Sends a message.
    ///
    /// # Errors
    /// The message, if the receiver was dropped.
    pub fn send(&self, message: T) -> std::result::Result<(), T> {
        self.sender.send(message).map_err(|mpsc::SendError(message)| message)?;
        self.farewell.0.wake();
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), farewell: Arc::clone(&self.farewell) }
    }
}

/// The other end of a [`channel`].
#[derive(Debug)]
pub struct Receiver<T> {
    mail: mpsc::Receiver<T>,
    waker: Waker,
}

impl<T> Receiver<T> {
    /// Waits for a message; `None` once all senders were dropped.
    ///
    /// # Errors
    /// As [`World::wait`].
    pub fn receive(&self, world: &dyn World) -> Result<Option<T>> {
        loop {
            match self.mail.try_recv() {
                Ok(message) => return Ok(Some(message)),
                Err(mpsc::TryRecvError::Disconnected) => return Ok(None),
                Err(mpsc::TryRecvError::Empty) => {}
            }
            if world.wait(&self.waker, None)? {
                self.waker.acknowledge();
            }
        }
    }
}

/// Uses a waker when it is dropped.
#[derive(Debug)]
pub struct Farewell(pub Waker);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// This machine.
#[derive(Debug, Clone, Copy)]
pub struct Machine;

impl Machine {
    /// This machine as a world.
    #[must_use]
    pub fn world() -> Arc<dyn World> {
        Arc::new(Self)
    }
}

/// How long to retry an address that is taken, and the time between two tries: the kernel closes
/// the sockets of a killed process a moment after its end.
const REBIND: [Duration; 2] = [Duration::from_secs(1), Duration::from_millis(10)];

impl World for Machine {
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn ring(&self, entries: u32) -> Result<Ring> {
        Ring::new(entries)
    }

    fn start(&self, name: String, work: Work) -> Result<Thread> {
        let thread = std::thread::Builder::new().name(name).spawn(work);
        let thread = thread.map_err(|error| Error::new("start a thread", error))?;
        Ok(Thread::new(Box::new(move || thread.join())))
    }

    fn dial(&self, address: &str, patience: Duration) -> io::Result<Stream> {
        Stream::connect(address, patience)
    }

    fn listen(&self, address: SocketAddr) -> io::Result<(Listener, SocketAddr)> {
        let (listener, local) = listen(address)?;
        Ok((listener.into(), local))
    }

    fn wait(&self, waker: &Waker, until_ns: Option<u64>) -> Result<bool> {
        let timeout =
            until_ns.map(|until| Duration::from_nanos(until.saturating_sub(monotonic_ns())));
        wait_for([waker.descriptor().as_fd()], timeout).map(|[is_used]| is_used)
    }
}

/// Listens at an address of this machine. Returns the listener and its address. Retries for a
/// second if the address is taken.
///
/// # Errors
/// If the address stays taken, or is none of this machine's.
pub fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let [patience, pause] = REBIND;
    let until_ns = monotonic_ns() + u64::try_from(patience.as_nanos()).unwrap_or(0);
    loop {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && monotonic_ns() < until_ns => {
                let mut none = Poll::new().map_err(|error| error.source)?;
                none.wait(Some(pause), &mut Vec::new()).map_err(|error| error.source)?;
            }
            bound => {
                let listener = bound?;
                let local = listener.local_addr()?;
                return Ok((listener, local));
            }
        }
    }
}
