//! Waiting for events: a poll set, with signals and a timer as descriptors.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, epoll, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::Result;
use crate::error::{During, check};

/// A set of descriptors to wait on, each with the caller's number.
pub struct Poll {
    fd: OwnedFd,
    buffer: Vec<epoll::Event>,
}

/// A descriptor that is ready.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    /// The number it was added under.
    pub token: u64,
    /// The other end has closed, or failed.
    pub hung_up: bool,
}

impl Poll {
    /// An empty set.
    ///
    /// # Errors
    /// When the kernel is out of descriptors.
    pub fn new() -> Result<Self> {
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC).during("create a poll set")?;
        Ok(Self { fd, buffer: Vec::with_capacity(64) })
    }

    /// Waits for `fd` to become readable, reported as `token`.
    ///
    /// # Errors
    /// When the descriptor cannot be waited on or is in the set already.
    pub fn add(&self, fd: &impl AsFd, token: u64) -> Result<()> {
        let data = epoll::EventData::new_u64(token);
        epoll::add(&self.fd, fd, data, epoll::EventFlags::IN).during("wait on a descriptor")
    }

    /// As [`Poll::add`], but reports `fd` once each time that it becomes readable, even if it is
    /// not read from.
    ///
    /// # Errors
    /// As [`Poll::add`].
    pub fn add_once_each(&self, fd: &impl AsFd, token: u64) -> Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(token);
        epoll::add(&self.fd, fd, data, flags).during("wait on a descriptor")
    }

    /// As [`Poll::add`] for a descriptor known by number, which the caller keeps open while it is
    /// in the set.
    ///
    /// # Errors
    /// As [`Poll::add`].
    #[expect(unsafe_code, reason = "borrows a descriptor by number")]
    pub fn add_raw(&self, fd: RawFd, token: u64) -> Result<()> {
        // SAFETY: the borrow ends with this call; a closed number would be an error of epoll, not
        // of memory.
        self.add(&unsafe { BorrowedFd::borrow_raw(fd) }, token)
    }

    /// Waits for new input of `fd`, and for room to write to it after there was none, reported as
    /// `token` once for each time: cheaper than [`Poll::add`] if the caller reads all input after
    /// each report.
    ///
    /// # Errors
    /// As [`Poll::add`].
    pub fn add_changes(&self, fd: &impl AsFd, token: u64) -> Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(token);
        epoll::add(&self.fd, fd, data, flags).during("wait on a descriptor")
    }

    /// Stops waiting for `fd`. A descriptor that is closed leaves the set by itself.
    pub fn remove(&self, fd: &impl AsFd) {
        let _absent = epoll::delete(&self.fd, fd);
    }

    /// Waits until something is ready or `timeout` has passed (`None`: for ever) and fills `ready`.
    ///
    /// # Errors
    /// Never in practice; interruptions by signals are not errors and leave `ready` empty.
    pub fn wait(&mut self, timeout: Option<Duration>, ready: &mut Vec<Ready>) -> Result<()> {
        ready.clear();
        self.buffer.clear();
        let limit = timeout.map(timespec);
        let spare = rustix::buffer::spare_capacity(&mut self.buffer);
        match epoll::wait(&self.fd, spare, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(crate::Error::new("wait for events", error)),
        }
        ready.extend(self.buffer.iter().map(|event| {
            let flags = event.flags;
            let gone = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
            Ready { token: event.data.u64(), hung_up: flags.intersects(gone) }
        }));
        Ok(())
    }
}

/// Waits until one of a few descriptors is readable or `timeout` has passed (`None`: for ever).
/// Returns which of them are readable or have come to their end.
///
/// # Errors
/// Never in practice; interruptions by signals are not errors, and nothing is readable then.
pub fn wait_for<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    timeout: Option<Duration>,
) -> Result<[bool; N]> {
    let mut polled = descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let limit = timeout.map(timespec);
    match rustix::event::poll(&mut polled, limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(crate::Error::new("wait for descriptors", error)),
    }
    Ok(polled.map(|one| !one.revents().is_empty()))
}

/// Waits until one of any number of descriptors is readable or has come to its end, or `timeout`
/// has passed (`None`: for ever).
///
/// # Errors
/// Never in practice; interruptions by signals are not errors.
pub fn wait_any(descriptors: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Result<()> {
    let polled = descriptors.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN));
    let mut polled: Vec<PollFd<'_>> = polled.collect();
    let limit = timeout.map(timespec);
    match rustix::event::poll(&mut polled, limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(crate::Error::new("wait for descriptors", error)),
    }
}

/// The terminal was closed, or a service is to read its files again (signal(7)).
pub const SIGHUP: i32 = libc::SIGHUP;
/// Ctrl-C.
pub const SIGINT: i32 = libc::SIGINT;
/// The request to end.
pub const SIGTERM: i32 = libc::SIGTERM;

/// Signals received as messages instead of interruptions.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Blocks `signals` in the calling thread (and threads it starts later) and receives them here.
    ///
    /// # Errors
    /// When the kernel is out of descriptors.
    #[expect(unsafe_code, reason = "signal sets and signalfd have no safe wrapper")]
    pub fn receive(signals: &[i32]) -> Result<Self> {
        // SAFETY: `set` is initialised by sigemptyset before use; all pointers are to locals.
        let fd = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for &signal in signals {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        check("receive signals", fd.into())?;
        // SAFETY: a descriptor the kernel has just given us.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// The next signal that has arrived, if any.
    pub fn next(&self) -> Option<i32> {
        let mut message = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let length = rustix::io::read(&self.fd, &mut message).ok()?;
        if length < 4 {
            return None;
        }
        // `ssi_signo` is the first field.
        let number = u32::from_ne_bytes([message[0], message[1], message[2], message[3]]);
        i32::try_from(number).ok()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Unblocks signals that [`Signals::receive`] has blocked in the calling thread; those that arrived
/// meanwhile and were not received are delivered at once.
#[expect(unsafe_code, reason = "signal masks have no safe wrapper")]
pub fn take_again(signals: &[i32]) {
    // SAFETY: `set` is initialised by sigemptyset before use, and a local.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for &signal in signals {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Runs `work` with all signals blocked, so that threads that it starts never take a signal of this
/// process: a thread that takes one takes it from the thread that waits for it.
#[expect(unsafe_code, reason = "signal masks have no safe wrapper")]
pub fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are locals, and initialised before use.
    let before = unsafe {
        let (mut all, mut before) = std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    let done = work();
    // SAFETY: the set that was in force.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    done
}

/// A timer that can be waited on.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
}

impl Timer {
    /// A timer that is not running.
    ///
    /// # Errors
    /// When the kernel is out of descriptors.
    pub fn new() -> Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags).during("create a timer")?;
        Ok(Self { fd })
    }

    /// Fires every `period`.
    ///
    /// # Errors
    /// Never for a period the kernel can represent.
    pub fn every(&self, period: Duration) -> Result<()> {
        let span = timespec(period);
        self.set(Itimerspec { it_interval: span, it_value: span }, TimerfdTimerFlags::empty())
    }

    /// Fires once when the monotonic clock reaches `at_ns`.
    ///
    /// # Errors
    /// Never for an instant the kernel can represent.
    pub fn at(&self, at_ns: u64) -> Result<()> {
        let value = timespec(Duration::from_nanos(at_ns.max(1)));
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.set(Itimerspec { it_interval: never, it_value: value }, TimerfdTimerFlags::ABSTIME)
    }

    /// Reads the expiry, so that the timer is no longer ready.
    pub fn acknowledge(&self) {
        let mut count = [0_u8; 8];
        let _not_expired = rustix::io::read(&self.fd, &mut count);
    }

    /// Starts or stops the timer.
    fn set(&self, when: Itimerspec, flags: TimerfdTimerFlags) -> Result<()> {
        timerfd_settime(&self.fd, flags, &when).map(|_before| ()).during("set a timer")
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// A duration as the kernel takes it.
fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
/// An event counter that wakes a thread which reads from it.
#[derive(Debug, Clone)]
pub struct Waker {
    fd: Arc<OwnedFd>,
}

impl Waker {
    /// A waker that is not readable yet.
    ///
    /// # Errors
    /// When the kernel is out of descriptors.
    pub fn new() -> Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC).during("create an event counter")?;
        Ok(Self { fd: Arc::new(fd) })
    }

    /// Makes the waker readable: eight bytes, once for all calls before they are read.
    pub fn wake(&self) {
        let _interrupted = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
    }

    /// Reads the eight bytes; waits for them if the waker is not readable.
    pub fn acknowledge(&self) {
        let mut count = [0_u8; 8];
        let _interrupted = rustix::io::read(&self.fd, &mut count);
    }

    /// Whether the waker is readable.
    #[must_use]
    pub fn is_used(&self) -> bool {
        wait_for([self.fd.as_fd()], Some(Duration::ZERO)).is_ok_and(|[is_used]| is_used)
    }

    /// The descriptor to read from.
    #[must_use]
    pub const fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
}
