//! A directory with one file, which is a disk: what the kernel asks of it over FUSE, and answers.
//!
//! ```text
//! /dev/fuse ─► Taker (one for each lane of the disk) ─► Files ─► Desk ─► Reply ─► /dev/fuse
//!                                                         └─► stretches, by a thread of their own
//! ```
//!
//! The thread that takes a request also sends it and hears its answer, so that no request is handed
//! over but a write of blocks that are another lane's. None waits for another. What changes the
//! size of a file leaves a disk as it is.

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

/// Name and number of the file.
pub(super) const NAME: &str = "disk";
pub(super) const FILE: u64 = 2;

/// How long the kernel may think that the size is what it was.
const FRESH: Duration = Duration::from_secs(1);
/// Requests that are taken before answers of the disk are heard.
const AT_ONCE: usize = 64;
/// Modes of fallocate(2).
const KEEP_SIZE: u32 = 1;
const PUNCH_HOLE: u32 = 2;
const ZERO_RANGE: u32 = 0x10;

/// A stretch that is to be zeros.
struct Stretch {
    offset: u64,
    length: u64,
    deallocates: bool,
    reply: Reply,
}

/// See the module's description.
pub(super) struct Files {
    since: SystemTime,
    /// Whose they are.
    user: u32,
    group: u32,
    /// Stretches may be long, and are done by a thread of their own.
    stretches: Sender<Stretch>,
}

impl Files {
    /// The files of whoever runs this.
    pub(super) fn new(disk: &Arc<Disk>) -> Self {
        let (stretches, mail) = channel();
        let of = Arc::downgrade(disk);
        std::thread::spawn(move || clear(&of, &mail));
        let (user, group) =
            (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self { since: SystemTime::now(), user, group, stretches }
    }

    fn attributes(&self, node: u64, disk_bytes: u64) -> Option<Attributes> {
        let (kind, rights, bytes) = match node {
            ROOT => (Kind::Directory, 0o700, 0),
            FILE => (Kind::File, 0o600, disk_bytes),
            _ => return None,
        };
        let Self { since, user, group, .. } = *self;
        Some(Attributes { node, kind, rights, bytes, since, user, group })
    }

    // Begins what a message asks.
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
            // As of a block device: a size that is set, which is what O_TRUNC does, stays.
            Asked::Change { is_of_rights: true } => reply.fail(Errno::PERM),
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

    fn allocate(&self, [offset, asked]: [u64; 2], length: u64, mode: u32, reply: Reply) {
        let deallocates = match mode & !KEEP_SIZE {
            // Room is there as far as the disk goes.
            0 if length < asked => return reply.fail(Errno::NOSPC),
            0 => return reply.end(Ok(())),
            PUNCH_HOLE => true,
            ZERO_RANGE => false,
            _ => return reply.fail(Errno::OPNOTSUPP),
        };
        // If there is nobody who would do it, the reply says so when it is dropped.
        let _gone = self.stretches.send(Stretch { offset, length, deallocates, reply });
    }
}

// Until there are no files any more; that keeps no disk.
fn clear(disk: &Weak<Disk>, mail: &Receiver<Stretch>) {
    while let Ok(Stretch { offset, length, deallocates, reply }) = mail.recv() {
        let Some(disk) = disk.upgrade() else { return };
        reply.end(disk.zero(offset, length, deallocates));
    }
}

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

/// Is told when there will be no more requests.
#[derive(Clone)]
pub(super) struct End {
    pub(super) failed: Sender<sys::Error>,
    pub(super) waker: Waker,
}

impl Taker {
    /// One that takes by this handle, which does not wait.
    pub(super) fn new(device: FuseDevice, files: Arc<Files>, end: End) -> Self {
        Self { device, room: vec![0; MESSAGE_BYTES].into_boxed_slice(), files, end }
    }

    // Whether there was a request; `None` if there will be none any more.
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
                // One that nobody is known to wait for needs no answer.
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
