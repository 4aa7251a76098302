//! The ring of the kernel (io_uring).
//!
//! Invariants:
//! - The ring owns the memory and a handle on the file of every request that the kernel has.
//! - It is not dropped before the kernel has released all of these.
//! - A message that the thread itself sends or receives completes as any other: by `take_ended`.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::event::{EventfdFlags, eventfd};

use crate::block::Block;
use crate::error::{During as _, Error, Result};
use crate::stream::Stream;

use super::alarm::{ALARM, Alarm, UNHEARD};
use super::completed::{Completed, Held, length_of};
use super::direct::{Direct, Receive};
use super::simulated::Stretch;

/// A request that the kernel has.
struct InFlight {
    token: u64,
    held: Held,
    /// Closing a file before its requests have been submitted would leave its number to another.
    _file: Option<Arc<OwnedFd>>,
    kind: Kind,
}

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    /// Accepts connections.
    Accept,
    Receive,
    /// Sends; so many bytes were sent before by a call of the thread's own.
    Send {
        before: u32,
    },
}

impl Kind {
    /// Whether it sends or receives on a connection.
    const fn is_message(self) -> bool {
        matches!(self, Self::Receive | Self::Send { .. })
    }
}

/// See the module's description.
pub(super) struct KernelRing {
    ring: IoUring,
    requests: Vec<Option<InFlight>>,
    free: Vec<usize>,
    /// Requests for files since the last submission.
    files: u32,
    /// Sends and receives that the kernel has.
    messages: usize,
    alarm: Alarm,
    direct: Direct,
    bell: Option<OwnedFd>,
}

/// How many requests for files may wait for submission.
const FILES_AT_ONCE: u32 = 8;

/// The longest message, in bytes, for which calls of the thread are faster than the ring: an answer
/// with a page.
const SHORT: usize = 8 << 10;

/// IORING_ENTER_GETEVENTS: finish the work of completed requests.
const ENTER_GETEVENTS: u32 = 1;

/// POLLIN, and wake only one of several waiters (EPOLLEXCLUSIVE).
const READABLE_FOR_ONE: u32 = 1 | 1 << 28;

/// MSG_NOSIGNAL, and continue until all is sent.
const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;

impl KernelRing {
    /// A ring for the calling thread, with room to submit `entries` requests at once.
    ///
    /// # Errors
    /// When the kernel has no io_uring for this user, or is older than 6.1.
    pub(super) fn new(entries: u32) -> Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_cqsize(entries * 4)
            .build(entries)
            .map_err(|source| Error::new("set up an io_uring", source))?;
        Ok(Self {
            ring,
            requests: Vec::new(),
            free: Vec::new(),
            files: 0,
            messages: 0,
            alarm: Alarm::new(),
            direct: Direct::default(),
            bell: None,
        })
    }

    /// See [`super::Ring::set_bell`]. Not the ring's own descriptor: with deferred task work the
    /// kernel does not wake a poller of that (seen on Linux 6.18).
    pub(super) fn set_bell(&mut self) -> Result<()> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let bell = bell.during("create an event counter")?;
        let set = self.ring.submitter().register_eventfd(bell.as_raw_fd());
        set.map_err(|source| Error::new("have an io_uring ring", source))?;
        self.bell = Some(bell);
        Ok(())
    }

    /// See [`super::Ring::bell`].
    pub(super) fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.bell.as_ref().map(AsFd::as_fd)
    }

    /// See [`super::Ring::acknowledge`].
    pub(super) fn acknowledge(&self) {
        if let Some(bell) = &self.bell {
            let mut count = [0_u8; 8];
            let _unrung = rustix::io::read(bell, &mut count);
        }
    }

    /// See [`super::Ring::set_direct`].
    pub(super) const fn set_direct(&mut self, is_direct: bool) {
        self.direct.is_on = is_direct;
    }

    /// How many requests have not ended.
    #[must_use]
    pub(super) fn in_flight(&self) -> usize {
        self.requests.len() - self.free.len() + self.direct.held()
    }

    /// See [`super::Ring::accept`].
    pub(super) fn accept(&mut self, listener: &Arc<OwnedFd>, token: u64) {
        let entry = opcode::AcceptMulti::new(types::Fd(listener.as_raw_fd()))
            .flags(libc::SOCK_CLOEXEC)
            .build();
        self.push(entry, token, Held::Nothing, Some(listener), Kind::Accept);
    }

    /// Receives into `bytes` from `from` on; 0 bytes when the peer has sent its last.
    ///
    /// # Panics
    /// If `from` is beyond the end of `bytes`.
    pub(super) fn receive(
        &mut self,
        socket: &Arc<OwnedFd>,
        token: u64,
        bytes: Vec<u8>,
        from: usize,
    ) {
        if self.direct.is_on && self.direct.held() == 0 && self.is_short() {
            let socket = Arc::clone(socket);
            self.direct.hold(Receive { socket, token, bytes, from });
        } else {
            self.receive_by_ring(socket, token, bytes, from);
        }
    }

    /// Submits a receive to the kernel.
    fn receive_by_ring(
        &mut self,
        socket: &Arc<OwnedFd>,
        token: u64,
        mut bytes: Vec<u8>,
        from: usize,
    ) {
        let room = &mut bytes[from..];
        let fd = types::Fd(socket.as_raw_fd());
        let entry = opcode::Recv::new(fd, room.as_mut_ptr(), length(room)).build();
        self.push(entry, token, Held::Bytes(bytes), Some(socket), Kind::Receive);
    }

    // Whether the thread may send or receive itself: the kernel has no message, and the last one
    // each way was short.
    const fn is_short(&self) -> bool {
        self.messages == 0 && self.direct.sent <= SHORT && self.direct.received <= SHORT
    }

    /// Sends `bytes` from `from` on, all of them unless it fails in between.
    ///
    /// # Panics
    /// If `from` is beyond the end of `bytes`.
    pub(super) fn send(&mut self, socket: &Arc<OwnedFd>, token: u64, bytes: Vec<u8>, from: usize) {
        self.direct.sent = bytes.len() - from;
        let left = if self.is_short() {
            self.direct.send(socket, token, bytes, from)
        } else {
            Some((bytes, 0))
        };
        let Some((bytes, before)) = left else { return };
        let rest = &bytes[from + before..];
        let fd = types::Fd(socket.as_raw_fd());
        let entry = opcode::Send::new(fd, rest.as_ptr(), length(rest)).flags(SEND_FLAGS).build();
        let kind = Kind::Send { before: length_of(before) };
        self.push(entry, token, Held::Bytes(bytes), Some(socket), kind);
    }

    /// See [`super::Ring::send_in_place`].
    pub(super) fn send_in_place(&mut self, socket: &Arc<OwnedFd>, token: u64, bytes: Vec<u8>) {
        let fd = types::Fd(socket.as_raw_fd());
        let entry =
            opcode::SendZc::new(fd, bytes.as_ptr(), length(&bytes)).flags(SEND_FLAGS).build();
        self.push(entry, token, Held::Bytes(bytes), Some(socket), Kind::Send { before: 0 });
    }

    /// See [`super::Ring::watch`].
    pub(super) fn watch(&mut self, file: &Arc<OwnedFd>, token: u64) {
        let fd = types::Fd(file.as_raw_fd());
        let entry = opcode::PollAdd::new(fd, READABLE_FOR_ONE).build();
        self.push(entry, token, Held::Nothing, Some(file), Kind::File);
    }

    /// Reads from `offset` of a file into part of `block`.
    ///
    /// # Panics
    /// If the block does not have that part.
    pub(super) fn read(
        &mut self,
        file: &Arc<OwnedFd>,
        token: u64,
        mut block: Block,
        part: Range<usize>,
        offset: u64,
    ) {
        let room = &mut block[part];
        let fd = types::Fd(file.as_raw_fd());
        let entry = opcode::Read::new(fd, room.as_mut_ptr(), length(room)).offset(offset).build();
        self.push(entry, token, Held::Block(block), Some(file), Kind::File);
        self.hand_over();
    }

    /// Writes part of `block` to `offset` of a file; with `forced` it has ended when that is on the
    /// medium.
    ///
    /// # Panics
    /// If the block does not have that part.
    pub(super) fn write(
        &mut self,
        file: &Arc<OwnedFd>,
        token: u64,
        block: Block,
        part: Range<usize>,
        (offset, forced): (u64, bool),
    ) {
        let data = &block[part];
        let fd = types::Fd(file.as_raw_fd());
        let entry = opcode::Write::new(fd, data.as_ptr(), length(data))
            .offset(offset)
            .rw_flags(if forced { libc::RWF_DSYNC } else { 0 })
            .build();
        self.push(entry, token, Held::Block(block), Some(file), Kind::File);
        self.hand_over();
    }

    /// See [`super::Ring::sync`].
    pub(super) fn sync(&mut self, file: &Arc<OwnedFd>, token: u64) {
        let entry = opcode::Fsync::new(types::Fd(file.as_raw_fd()))
            .flags(types::FsyncFlags::DATASYNC)
            .build();
        self.push(entry, token, Held::Nothing, Some(file), Kind::File);
    }

    /// See [`super::Ring::clear`].
    pub(super) fn clear(
        &mut self,
        file: &Arc<OwnedFd>,
        token: u64,
        stretch: Stretch,
        [offset, bytes]: [u64; 2],
    ) {
        let mode = libc::FALLOC_FL_KEEP_SIZE
            | match stretch {
                Stretch::Zero => libc::FALLOC_FL_ZERO_RANGE,
                Stretch::Punch => libc::FALLOC_FL_PUNCH_HOLE,
            };
        let entry = opcode::Fallocate::new(types::Fd(file.as_raw_fd()), bytes)
            .offset(offset)
            .mode(mode)
            .build();
        self.push(entry, token, Held::Nothing, Some(file), Kind::File);
    }

    /// Submits requests and waits for a completion, or until `until_ns` by the monotonic clock
    /// (`None`: for ever). It may return sooner: after a signal, or at an earlier deadline.
    ///
    /// # Errors
    /// When the kernel refuses the ring itself.
    pub(super) fn wait_until(&mut self, until_ns: Option<u64>) -> Result<()> {
        if self.direct.has_ended() {
            return self.poll();
        }
        if let Some(Receive { socket, token, bytes, from }) = self.direct.release() {
            self.receive_by_ring(&socket, token, bytes, from);
        }
        if let Some(entry) = until_ns.and_then(|until_ns| self.alarm.request(until_ns)) {
            self.submit(&entry);
        }
        self.files = 0;
        settle(self.ring.submit_and_wait(1))
    }

    /// Submits requests, if there are any, and looks for completions without waiting.
    ///
    /// # Errors
    /// As [`KernelRing::wait_until`].
    #[expect(unsafe_code, reason = "enters the kernel without waiting")]
    pub(super) fn poll(&mut self) -> Result<()> {
        self.direct.look();
        let queue = self.ring.submission();
        let count = length_of(queue.len());
        if count == 0 && !queue.taskrun() {
            return Ok(());
        }
        drop(queue);
        self.files = 0;
        // SAFETY: no argument is passed that would have to be of a certain kind.
        let submitted =
            unsafe { self.ring.submitter().enter::<()>(count, 0, ENTER_GETEVENTS, None) };
        settle(submitted)
    }

    /// Whether [`KernelRing::take_ended`] has a completion to return.
    pub(super) fn has_ended(&mut self) -> bool {
        self.direct.has_ended() || !self.ring.completion().is_empty()
    }

    /// Returns the next completion; `None` if there is none.
    pub(super) fn take_ended(&mut self) -> Option<Completed> {
        if let Some(ended) = self.direct.take_ended() {
            return Some(ended);
        }
        loop {
            let entry = self.ring.completion().next()?;
            match entry.user_data() {
                ALARM => self.alarm.ended(),
                UNHEARD => {}
                _ => return Some(self.complete(&entry)),
            }
        }
    }

    /// Turns an entry of the completion queue into a completion, and frees the request's place
    /// after its last one.
    #[expect(unsafe_code, reason = "takes over a descriptor that the kernel has made")]
    fn complete(&mut self, entry: &cqueue::Entry) -> Completed {
        let index = usize::try_from(entry.user_data()).expect("an index of ours");
        let has_more = cqueue::more(entry.flags());
        let place = &mut self.requests[index];
        let request = place.as_mut().expect("a request completes once");
        let (token, kind) = (request.token, request.kind);
        let mut held = Held::Nothing;
        if !has_more {
            held = std::mem::replace(&mut request.held, Held::Nothing);
            *place = None;
            self.free.push(index);
            self.messages -= usize::from(kind.is_message());
        }
        let before = if let Kind::Send { before } = kind { before } else { 0 };
        let result = u32::try_from(entry.result())
            .map(|count| before + count)
            .map_err(|_negative| io::Error::from_raw_os_error(-entry.result()));
        if let (Kind::Receive, Ok(count)) = (kind, &result) {
            self.direct.received = *count as usize;
        }
        // SAFETY: accept's result is a new descriptor that nobody else knows of.
        let accepted = (kind == Kind::Accept && result.is_ok())
            .then(|| Stream::from(unsafe { OwnedFd::from_raw_fd(entry.result()) }));
        let is_notice = cqueue::notif(entry.flags());
        Completed { token, result, held, accepted, has_more, is_notice }
    }

    /// Frees memory for requests that are not under way.
    pub(super) fn shrink(&mut self) {
        while self.requests.last().is_some_and(Option::is_none) {
            self.requests.pop();
        }
        let count = self.requests.len();
        self.free.retain(|index| *index < count);
        self.requests.shrink_to_fit();
        self.free.shrink_to_fit();
    }

    /// Stores a request and queues its entry for submission.
    fn push(
        &mut self,
        entry: squeue::Entry,
        token: u64,
        held: Held,
        file: Option<&Arc<OwnedFd>>,
        kind: Kind,
    ) {
        let request = InFlight { token, held, _file: file.cloned(), kind };
        self.messages += usize::from(kind.is_message());
        let index = self.free.pop().unwrap_or_else(|| {
            self.requests.push(None);
            self.requests.len() - 1
        });
        self.requests[index] = Some(request);
        self.submit(&entry.user_data(index as u64));
    }

    // Submits after every few requests for files, so that a device begins with the first ones while
    // the rest are still being made.
    fn hand_over(&mut self) {
        self.files += 1;
        if self.files == FILES_AT_ONCE {
            self.files = 0;
            settle(self.ring.submit()).expect("a ring that was set up takes requests");
        }
    }

    /// Queues an entry for submission; submits first if the queue is full.
    #[expect(unsafe_code, reason = "hands memory to the kernel")]
    fn submit(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: the memory and the file that the entry names are owned by a place in
            // `requests` until its completion has been taken; moving a `Vec` or a `Block` does not
            // move its bytes, and nobody can reach them there.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            // Full: the kernel takes the entries in the queue.
            settle(self.ring.submit()).expect("a ring that was set up takes requests");
        }
    }
}

impl Drop for KernelRing {
    fn drop(&mut self) {
        self.direct = Direct::default();
        if self.in_flight() == 0 {
            return;
        }
        let all = types::CancelBuilder::any();
        let entry = opcode::AsyncCancel2::new(all).build().user_data(UNHEARD);
        self.submit(&entry);
        while self.in_flight() > 0 {
            if self.wait_until(None).is_err() {
                // Memory that the kernel may still write to is not freed.
                std::mem::forget(std::mem::take(&mut self.requests));
                return;
            }
            while self.take_ended().is_some() {}
        }
    }
}

fn length(bytes: &[u8]) -> u32 {
    length_of(bytes.len())
}

// The result of entering the kernel. A signal, a timeout and a full completion queue are reasons to
// look for completions, not errors.
fn settle(submitted: io::Result<usize>) -> Result<()> {
    match submitted {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
            _ => Err(Error::new("wait on an io_uring", error)),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::RecvTimeoutError;
    use std::time::Duration;

    use rustix::net::sockopt;

    use super::*;
    use crate::clock::monotonic_ns;

    fn run(ring: &mut KernelRing) -> Completed {
        loop {
            if let Some(completed) = ring.take_ended() {
                return completed;
            }
            ring.wait_until(None).expect("it waits");
        }
    }

    fn connected(ring: &mut KernelRing) -> (Arc<OwnedFd>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has one");
        let listener = Arc::new(OwnedFd::from(listener));
        ring.accept(&listener, 1);
        ring.poll().expect("it submits");
        let peer = TcpStream::connect(address).expect("it listens");
        let accepted = run(ring);
        assert_eq!((accepted.token, accepted.has_more), (1, true));
        let accepted = accepted.accepted.expect("a connection");
        (Arc::clone(accepted.kernel().expect("it is of the kernel")), peer)
    }

    #[test]
    fn the_bell_rings_for_a_thread_that_waits_elsewhere() {
        let mut ring = KernelRing::new(8).expect("there is io_uring");
        ring.set_bell().expect("a descriptor is free");
        let rings = |ring: &KernelRing, wait| {
            let bell = ring.bell().expect("it was set");
            crate::event::wait_for([bell], Some(wait)).expect("it waits") == [true]
        };
        let (socket, mut peer) = connected(&mut ring);
        ring.acknowledge();
        ring.receive(&socket, 2, vec![0; 8], 0);
        ring.poll().expect("it submits");
        assert!(!rings(&ring, Duration::ZERO));
        // The peer sends while this thread is not in the ring.
        peer.write_all(b"abc").expect("it sends");
        assert!(rings(&ring, Duration::from_secs(10)));
        ring.acknowledge();
        ring.poll().expect("it looks");
        // It may ring once more, for what this has found.
        assert!(ring.has_ended());
        assert_eq!(run(&mut ring).result.ok(), Some(3));
    }

    #[test]
    fn a_socket_sends_and_receives() {
        let mut ring = KernelRing::new(8).expect("there is io_uring");
        let (socket, mut peer) = connected(&mut ring);
        ring.receive(&socket, 2, vec![0; 8], 3);
        ring.poll().expect("it submits");
        peer.write_all(b"abc").expect("it takes three bytes");
        let received = run(&mut ring);
        assert_eq!((received.token, received.result.expect("it worked")), (2, 3));
        let Held::Bytes(bytes) = received.held else { panic!("not what was given") };
        assert_eq!(bytes, b"\0\0\0abc\0\0");
        // More than a socket takes at once.
        let all: Vec<u8> = (0..8 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
        ring.send(&socket, 3, all.clone(), 1);
        ring.poll().expect("it submits");
        let reader = std::thread::spawn(move || {
            let mut bytes = vec![0; (8 << 20) - 1];
            peer.read_exact(&mut bytes).expect("they come");
            assert_eq!(bytes, all[1..]);
            peer
        });
        assert_eq!(run(&mut ring).result.expect("it worked"), (8 << 20) - 1);
        let mut peer = reader.join().expect("it ends");
        ring.send_in_place(&socket, 5, vec![9; 100_000]);
        ring.poll().expect("it submits");
        let mut bytes = vec![0; 100_000];
        peer.read_exact(&mut bytes).expect("they come");
        assert_eq!(bytes, [9; 100_000]);
        let first = run(&mut ring);
        assert_eq!((first.token, first.has_more, first.is_notice), (5, true, false));
        assert_eq!(first.result.expect("it worked"), 100_000);
        assert!(matches!(first.held, Held::Nothing), "the kernel has it");
        let notice = run(&mut ring);
        assert_eq!((notice.token, notice.has_more, notice.is_notice), (5, false, true));
        assert!(matches!(notice.held, Held::Bytes(bytes) if bytes.len() == 100_000));
        drop(peer);
        // The peer is gone; the listener's request is still there when the ring goes.
        ring.receive(&socket, 4, vec![0; 8], 0);
        assert_eq!(run(&mut ring).result.expect("it worked"), 0);
        assert_eq!(ring.in_flight(), 1);
    }

    // What ends by looking alone.
    fn look(ring: &mut KernelRing) -> Completed {
        let until_ns = monotonic_ns() + 20_000_000_000;
        loop {
            ring.poll().expect("it looks");
            if let Some(completed) = ring.take_ended() {
                return completed;
            }
            assert!(monotonic_ns() < until_ns, "it does not end");
        }
    }

    #[test]
    fn one_that_looks_sends_and_receives_itself() {
        let mut ring = KernelRing::new(8).expect("there is io_uring");
        let (socket, mut peer) = connected(&mut ring);
        ring.send(&socket, 1, b"w".to_vec(), 0);
        let sent = ring.take_ended().expect("a short message needs no ring");
        assert_eq!((sent.token, sent.result.expect("it worked")), (1, 1));
        ring.set_direct(true);
        ring.receive(&socket, 2, vec![0; 8], 3);
        assert_eq!((ring.in_flight(), ring.messages), (2, 0), "the kernel has none");
        ring.poll().expect("it looks");
        assert!(!ring.has_ended(), "nothing has come");
        peer.write_all(b"abc").expect("it takes three bytes");
        let received = look(&mut ring);
        assert_eq!((received.token, received.result.expect("it worked")), (2, 3));
        assert!(matches!(received.held, Held::Bytes(bytes) if bytes == b"\0\0\0abc\0\0"));
        ring.send(&socket, 3, b"xyz".to_vec(), 1);
        assert_eq!((ring.in_flight(), ring.has_ended()), (1, true));
        ring.wait_until(None).expect("something has ended");
        assert_eq!(ring.take_ended().expect("it was sent").result.expect("it worked"), 2);
        let mut three = [0; 3];
        peer.read_exact(&mut three).expect("they come");
        assert_eq!(&three, b"wyz");
        drop(peer);
        ring.receive(&socket, 5, vec![0; 8], 0);
        assert_eq!(look(&mut ring).result.expect("it worked"), 0, "its last has come");
    }

    #[test]
    fn the_kernel_sends_what_a_socket_does_not_take_at_once() {
        let mut ring = KernelRing::new(8).expect("there is io_uring");
        let (other, mut others_peer) = connected(&mut ring);
        let (socket, mut peer) = UnixStream::pair().expect("there is memory");
        sockopt::set_socket_send_buffer_size(&socket, 1).expect("a socket has one");
        let socket = Arc::new(OwnedFd::from(socket));
        let all: Vec<u8> = (0..SHORT).map(|at| at.to_le_bytes()[1]).collect();
        ring.send(&socket, 1, all.clone(), 0);
        assert_eq!((ring.messages, ring.has_ended()), (1, false));
        let mut bytes = vec![0; SHORT];
        peer.set_nonblocking(true).expect("a socket can");
        let first = peer.read(&mut bytes).expect("some have gone");
        assert!((1..SHORT).contains(&first), "{first} bytes");
        // Nothing passes those that the kernel has.
        ring.send(&other, 2, b"!".to_vec(), 0);
        others_peer.set_nonblocking(true).expect("a socket can");
        assert!(others_peer.read(&mut [0]).is_err(), "the ring has not been entered");
        peer.set_nonblocking(false).expect("a socket can");
        let reader = std::thread::spawn(move || {
            peer.read_exact(&mut bytes[first..]).expect("they come");
            bytes
        });
        let mut ended = [run(&mut ring), run(&mut ring)].map(|one| (one.token, one.result.ok()));
        ended.sort_unstable();
        assert_eq!(ended, [(1, Some(length_of(SHORT))), (2, Some(1))], "those before count");
        assert_eq!(reader.join().expect("it ends"), all);
    }

    #[test]
    fn long_messages_are_for_the_kernel() {
        let mut ring = KernelRing::new(8).expect("there is io_uring");
        let (socket, mut peer) = connected(&mut ring);
        ring.set_direct(true);
        ring.send(&socket, 1, vec![0; SHORT + 1], 0);
        assert_eq!(ring.messages, 1);
        assert_eq!(run(&mut ring).result.expect("it worked"), length_of(SHORT) + 1);
        peer.read_exact(&mut vec![0; SHORT + 1]).expect("they come");
        ring.send(&socket, 2, vec![0; 1], 0);
        assert_eq!(look(&mut ring).token, 2);
        ring.receive(&socket, 3, vec![0; SHORT + 1], 0);
        assert_eq!(ring.messages, 0, "the last was short");
    }

    #[test]
    fn the_kernel_receives_for_one_that_sleeps_or_has_several_connections() {
        let mut ring = KernelRing::new(8).expect("there is io_uring");
        let (one, mut its_peer) = connected(&mut ring);
        let (other, mut others_peer) = connected(&mut ring);
        ring.set_direct(true);
        ring.receive(&one, 2, vec![0; 8], 0);
        ring.receive(&other, 3, vec![0; 8], 0);
        assert_eq!((ring.in_flight(), ring.messages), (4, 1), "it holds one");
        others_peer.write_all(b"12").expect("it listens");
        its_peer.write_all(b"345").expect("it listens");
        let mut came = [look(&mut ring), look(&mut ring)].map(|one| (one.token, one.result.ok()));
        came.sort_unstable();
        assert_eq!(came, [(2, Some(3)), (3, Some(2))]);
        ring.receive(&one, 4, vec![0; 8], 0);
        let sender = std::thread::spawn(move || {
            its_peer.write_all(b"6").expect("it listens");
            its_peer
        });
        let until_ns = monotonic_ns() + 20_000_000_000;
        while !ring.has_ended() && monotonic_ns() < until_ns {
            ring.wait_until(Some(until_ns)).expect("it waits");
        }
        assert_eq!(ring.take_ended().map(|ended| ended.token), Some(4));
        assert_eq!(ring.messages, 0, "all have ended");
        // What it holds goes with it.
        ring.receive(&one, 5, vec![0; 8], 0);
        drop(ring);
        drop(sender.join().expect("it ends"));
        assert_eq!(Arc::strong_count(&one), 1);
    }

    #[test]
    fn of_rings_that_watch_one_is_told() {
        let mut rings = [8, 8].map(|entries| KernelRing::new(entries).expect("there is io_uring"));
        let waker = crate::event::Waker::new().expect("there is a descriptor");
        for ring in &mut rings {
            ring.watch(waker.descriptor(), 7);
            ring.poll().expect("it submits");
            assert!(!ring.has_ended(), "nothing has come");
        }
        waker.wake();
        let told = rings.each_mut().map(|ring| {
            ring.poll().expect("it looks");
            ring.take_ended().is_some_and(|ended| ended.token == 7 && ended.result.is_ok())
        });
        assert_eq!(told.iter().filter(|is_told| **is_told).count(), 1, "{told:?}");
        // What is there already ends it at once.
        let [ring, _] = &mut rings;
        if told[0] {
            ring.watch(waker.descriptor(), 8);
            assert_eq!(run(ring).token, 8);
        }
    }

    #[test]
    fn a_file_is_written_read_and_cleared() {
        let path = std::env::temp_dir().join(format!("afar-ring-{}", std::process::id()));
        let file = File::options().create_new(true).read(true).write(true).open(&path);
        let file = Arc::new(OwnedFd::from(file.expect("a new file")));
        std::fs::remove_file(&path).expect("it was there");
        let mut ring = KernelRing::new(8).expect("there is io_uring");
        let mut block = Block::new(8192);
        block.fill(5);
        ring.write(&file, 1, block, 0..8192, (4096, true));
        assert_eq!(run(&mut ring).result.expect("it worked"), 8192);
        ring.sync(&file, 2);
        assert_eq!(run(&mut ring).result.expect("it worked"), 0);
        ring.clear(&file, 3, Stretch::Punch, [8192, 4096]);
        let _unsupported_here = run(&mut ring).result;
        ring.read(&file, 4, Block::new(4096), 0..4096, 4096);
        let Held::Block(block) = run(&mut ring).held else { panic!("not what was given") };
        assert_eq!(block[..], [5; 4096]);
        ring.read(&file, 5, block, 0..4096, 1 << 40);
        assert_eq!(run(&mut ring).result.expect("it worked"), 0, "beyond the end");
    }

    fn waits(ring: &mut KernelRing, until_ns: u64) {
        while monotonic_ns() < until_ns {
            ring.wait_until(Some(until_ns)).expect("it waits");
            assert!(ring.take_ended().is_none(), "nobody has woken it in time");
        }
    }

    #[test]
    fn waiting_ends_with_its_time() {
        let mut ring = KernelRing::new(8).expect("there is io_uring");
        let (socket, mut peer) = connected(&mut ring);
        ring.receive(&socket, 2, vec![0; 8], 0);
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let watchdog = std::thread::spawn(move || {
            if is_done.recv_timeout(Duration::from_secs(20)) == Err(RecvTimeoutError::Timeout) {
                peer.write_all(b"late").expect("it listens");
            }
        });
        let began_ns = monotonic_ns();
        let after = |ms: u64| began_ns + ms * 1_000_000;
        ring.wait_until(Some(after(5))).expect("it waits");
        assert!(monotonic_ns() >= after(5), "nothing else can have ended it");
        assert!(ring.take_ended().is_none());
        ring.poll().expect("nothing to submit");
        // One that is armed for later ends sooner, and one that ends too soon is armed again.
        ring.alarm.request(after(3_600_000)).into_iter().for_each(|entry| ring.submit(&entry));
        waits(&mut ring, after(10));
        waits(&mut ring, after(15));
        waits(&mut ring, after(30));
        drop(done);
        watchdog.join().expect("it ends");
    }
}
