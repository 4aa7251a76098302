//! A FUSE directory with one file, the disk: serves the kernel's requests for both.
//!
//! ```text
//! /dev/fuse ─► Taker (one for each lane of the disk) ─► Files ─► Desk ─► Reply ─► /dev/fuse
//!                                                         └─► stretches, by a thread of their own
//! ```
//!
//! The thread that takes a request also sends it to the disk and receives its answer: only a write
//! to blocks of another lane is handed over. No request waits for another. A request to change the
//! size of the file succeeds and leaves the disk's size as it is.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use backend::{Failure, Operation, Request};
use host::{Desk, Disk, Guest};
use sys::event::Waker;
use sys::fuse::{FuseDevice, Taken};

use super::protocol::{
    Asked, Attributes, Entries, Kind, MESSAGE_BYTES, Message, ROOT, attributes, decode, entry,
    opened, statistics, written,
};
use super::reply::{Errno, Reply};

/// Name and node number of the file.
pub(super) const NAME: &str = "disk";
pub(super) const FILE: u64 = 2;

/// How long the kernel may cache attributes, so the size.
const FRESH: Duration = Duration::from_secs(1);
/// Requests that a lane takes at most before it receives answers of the disk.
const AT_ONCE: usize = 64;
/// Modes of fallocate(2).
const KEEP_SIZE: u32 = 1;
const PUNCH_HOLE: u32 = 2;
const ZERO_RANGE: u32 = 0x10;

/// A range of the disk to make zeros.
struct Stretch {
    offset: u64,
    length: u64,
    deallocates: bool,
    reply: Reply,
}

/// The directory and its file, as the kernel sees them.
pub(super) struct Files {
    since: SystemTime,
    /// The owner of directory and file.
    user: u32,
    group: u32,
    /// To the thread that zeroes stretches, which may take long.
    stretches: Sender<Stretch>,
}

impl Files {
    /// The files, owned by the effective user; starts the thread that zeroes stretches.
    pub(super) fn new(disk: &Arc<Disk>) -> Self {
        let (stretches, mail) = channel();
        let of = Arc::downgrade(disk);
        std::thread::spawn(move || clear(&of, &mail));
        let (user, group) =
            (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self { since: SystemTime::now(), user, group, stretches }
    }

    // Attributes of a node; `None` if there is no such node.
    fn attributes(&self, node: u64, disk_bytes: u64) -> Option<Attributes> {
        let (kind, rights, bytes) = match node {
            ROOT => (Kind::Directory, 0o700, 0),
            FILE => (Kind::File, 0o600, disk_bytes),
            _ => return None,
        };
        let Self { since, user, group, .. } = *self;
        Some(Attributes { node, kind, rights, bytes, since, user, group })
    }

    // Begins the request of a message; `reply` is sent when the request has ended.
    fn begin(&self, message: &Message<'_>, reply: Reply, desk: &mut dyn Desk) {
        let node = message.node;
        let disk_bytes = desk.geometry().bytes();
        let before_end = |offset: u64, length: u64| disk_bytes.saturating_sub(offset).min(length);
        match message.asked {
            Asked::Read { offset, bytes } => {
                read(offset, before_end(offset, bytes.into()), reply, desk);
            }
            Asked::Write { offset, data, is_forced } => {
                let length = before_end(offset, data.len() as u64);
                write([offset, length], data, is_forced, reply, desk);
            }
            Asked::Sync => {
                let request = Request { operation: Operation::Flush, offset: 0, length: 0 };
                let done = |result: Result<&[u8], Failure>| reply.end(result.map(|_| ()));
                desk.submit(request, &[], Box::new(done));
            }
            Asked::Allocate { offset, bytes, mode } => {
                let span = [offset, bytes];
                self.allocate(span, before_end(offset, bytes), mode, reply);
            }
            Asked::LookUp(name) => {
                let is_it = node == ROOT && name == NAME.as_bytes();
                let found = self.attributes(FILE, disk_bytes).filter(|_| is_it);
                reply.with(found.map(|of| entry(&of, FRESH)).ok_or(Errno::NOENT));
            }
            // Mode and owner are fixed.
            Asked::Change { is_of_rights: true } => reply.fail(Errno::PERM),
            // As with a block device, setting the size (O_TRUNC does) changes nothing.
            Asked::Attributes | Asked::Change { .. } => {
                let found = self.attributes(node, disk_bytes);
                reply.with(found.map(|of| attributes(&of, FRESH)).ok_or(Errno::NOENT));
            }
            Asked::Open => reply.with(Ok(opened(Kind::File))),
            Asked::OpenDirectory => reply.with(Ok(opened(Kind::Directory))),
            Asked::ReadDirectory { offset, bytes } if node == ROOT => list(offset, bytes, reply),
            Asked::ReadDirectory { .. } => reply.fail(Errno::NOTDIR),
            Asked::Statistics => reply.with(Ok(statistics(disk_bytes))),
            Asked::Over => reply.end(Ok(())),
            Asked::Forget => reply.drop_silently(),
            Asked::Start(_) | Asked::Other => reply.fail(Errno::NOSYS),
        }
    }

    // fallocate(2): makes `length` bytes zeros by a mode that asks for that; `asked` is the length
    // before it was cut at the end of the disk.
    fn allocate(&self, [offset, asked]: [u64; 2], length: u64, mode: u32, reply: Reply) {
        let deallocates = match mode & !KEEP_SIZE {
            // All bytes of the disk are allocated; there are none behind its end.
            0 if length < asked => return reply.fail(Errno::NOSPC),
            0 => return reply.end(Ok(())),
            PUNCH_HOLE => true,
            ZERO_RANGE => false,
            _ => return reply.fail(Errno::OPNOTSUPP),
        };
        // If the thread has ended, the reply is dropped, which answers EIO.
        let _gone = self.stretches.send(Stretch { offset, length, deallocates, reply });
    }
}

// The thread that zeroes stretches, until `Files` is dropped. It does not keep the disk alive.
fn clear(disk: &Weak<Disk>, mail: &Receiver<Stretch>) {
    while let Ok(Stretch { offset, length, deallocates, reply }) = mail.recv() {
        let Some(disk) = disk.upgrade() else { return };
        reply.end(disk.zero(offset, length, deallocates));
    }
}

// Submits a read; behind the end of the disk there are no bytes.
fn read(offset: u64, length: u64, reply: Reply, desk: &mut dyn Desk) {
    if length == 0 {
        return reply.end(Ok(()));
    }
    let request = Request { operation: Operation::Read, offset, length };
    let done = |result: Result<&[u8], Failure>| match result {
        Ok(data) => reply.data(data),
        Err(failure) => reply.end(Err(failure)),
    };
    desk.submit(request, &[], Box::new(done));
}

// Submits a write of the first `length` bytes of `data`, those within the disk; ENOSPC if none are.
fn write([offset, length]: [u64; 2], data: &[u8], forced: bool, reply: Reply, desk: &mut dyn Desk) {
    if length == 0 && !data.is_empty() {
        return reply.fail(Errno::NOSPC);
    }
    let (data, _beyond) = data.split_at(usize::try_from(length).unwrap_or(data.len()));
    let count = u32::try_from(length).unwrap_or(u32::MAX);
    let done = move |result: Result<&[u8], Failure>| match result {
        Ok(_) => reply.data(&written(count)),
        Err(failure) => reply.end(Err(failure)),
    };
    let operation = Operation::Write { forced };
    desk.submit(Request { operation, offset, length }, data, Box::new(done));
}

// Answers a readdir: entries after entry number `offset`, in at most `bytes`.
fn list(offset: u64, bytes: u32, reply: Reply) {
    let all =
        [(ROOT, Kind::Directory, "."), (ROOT, Kind::Directory, ".."), (FILE, Kind::File, NAME)];
    let mut entries = Entries::new(bytes);
    for ((node, kind, name), number) in all.into_iter().zip(1..) {
        if number > offset && !entries.add(node, number, kind, name) {
            break;
        }
    }
    reply.data(entries.bytes());
}

/// Takes requests of the kernel for one lane of the disk.
pub(super) struct Taker {
    device: FuseDevice,
    room: Box<[u8]>,
    files: Arc<Files>,
    end: End,
}

/// Wakes who waits for the end of requests; `failed` gets the error, if one ended them.
#[derive(Clone)]
pub(super) struct End {
    pub(super) failed: Sender<sys::Error>,
    pub(super) waker: Waker,
}

impl Taker {
    /// Takes requests from `device`, whose descriptor is non-blocking.
    pub(super) fn new(device: FuseDevice, files: Arc<Files>, end: End) -> Self {
        Self { device, room: vec![0; MESSAGE_BYTES].into_boxed_slice(), files, end }
    }

    // Takes and begins one request. Returns whether there was one; `None` if no more can be taken.
    fn take(&mut self, desk: &mut dyn Desk) -> Option<bool> {
        let count = match self.device.take(&mut self.room) {
            Ok(Taken::Message(count)) => count,
            Ok(Taken::Nothing) => return Some(false),
            Ok(Taken::Ended) => return None,
            Err(error) => {
                let _gone = self.end.failed.send(error);
                return None;
            }
        };
        match decode(&self.room[..count]) {
            Ok(message) => {
                let reply = Reply::new(&self.device, message.unique);
                self.files.begin(&message, reply, desk);
            }
            Err(malformed) => {
                // Without its number, a request cannot be answered.
                if let Some(unique) = malformed.unique {
                    Reply::new(&self.device, unique).fail(Errno::INVAL);
                }
            }
        }
        Some(true)
    }
}

impl Guest for Taker {
    fn descriptor(&self) -> &Arc<OwnedFd> {
        self.device.descriptor()
    }

    fn serve(&mut self, desk: &mut dyn Desk) -> bool {
        for _ in 0..AT_ONCE {
            match self.take(desk) {
                Some(true) => {}
                Some(false) => break,
                None => return false,
            }
        }
        true
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        self.end.waker.wake();
    }
}
