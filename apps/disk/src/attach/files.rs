//! A directory with one file, which is a disk, served to the kernel over FUSE.
//!
//! Requests of the kernel are handed over and answered by threads of the disk, so that none waits
//! for another. What changes the size of a file leaves a disk as it is.

use std::ffi::OsStr;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use backend::{Failure, Operation, Request as DiskRequest};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use host::Disk;

/// Name and number of the file.
pub(super) const NAME: &str = "disk";
pub(super) const FILE: INodeNo = INodeNo(2);

/// Bytes in a request of the kernel at most.
const REQUEST_BYTES: u32 = 1 << 20;
/// Requests of the kernel that nobody waits for, at once.
const BACKGROUND: u16 = 64;
/// How long the kernel may think that the size is what it was.
const FRESH: Duration = Duration::from_secs(1);
/// O_DSYNC, which O_SYNC has in it, and modes of fallocate(2).
const O_DSYNC: i32 = 0o10000;
const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;
const ZERO_RANGE: i32 = 0x10;

/// A stretch that is to be zeros.
struct Stretch {
    offset: u64,
    length: u64,
    deallocates: bool,
    reply: ReplyEmpty,
}

/// See the module's description.
pub(super) struct Files {
    disk: Arc<Disk>,
    since: SystemTime,
    /// Whose they are.
    user: u32,
    group: u32,
    /// Stretches may be long, and are done by a thread of their own.
    stretches: Sender<Stretch>,
}

impl Files {
    /// The files of whoever runs this.
    pub(super) fn new(disk: Arc<Disk>) -> Self {
        let (stretches, mail) = channel();
        let of = Arc::downgrade(&disk);
        std::thread::spawn(move || clear(&of, &mail));
        let (user, group) =
            (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self { disk, since: SystemTime::now(), user, group, stretches }
    }

    fn size(&self) -> u64 {
        self.disk.geometry().bytes()
    }

    fn attributes(&self, number: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match number {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            FILE => (FileType::RegularFile, 0o600, self.size()),
            _ => return None,
        };
        Some(FileAttr {
            ino: number,
            size,
            blocks: size / 512,
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind,
            perm,
            nlink: 1,
            uid: self.user,
            gid: self.group,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    // How much of a request lies before the end.
    fn before_end(&self, offset: u64, length: u64) -> u64 {
        self.size().saturating_sub(offset).min(length)
    }
}

// Until there are no files any more; that keeps no disk.
fn clear(disk: &Weak<Disk>, mail: &Receiver<Stretch>) {
    while let Ok(Stretch { offset, length, deallocates, reply }) = mail.recv() {
        let Some(disk) = disk.upgrade() else { return };
        answer(reply, disk.zero(offset, length, deallocates));
    }
}

fn answer(reply: ReplyEmpty, result: Result<(), Failure>) {
    match result {
        Ok(()) => reply.ok(),
        Err(failure) => reply.error(errno(failure)),
    }
}

const fn errno(failure: Failure) -> Errno {
    match failure {
        Failure::NoSpace => Errno::ENOSPC,
        Failure::WriteProtected => Errno::EROFS,
        Failure::OutOfRange | Failure::Medium | Failure::Lost | Failure::Refused(_) => Errno::EIO,
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without one of them it is slower.
        let _older = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _smaller = config.set_max_write(REQUEST_BYTES);
        let _fewer = config.set_max_background(BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let is_it = parent == INodeNo::ROOT && name == NAME;
        match self.attributes(FILE).filter(|_| is_it) {
            Some(attributes) => reply.entry(&FRESH, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(number) {
            Some(attributes) => reply.attr(&FRESH, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    // As of a block device: a size that is set, which is what O_TRUNC does, stays what it was.
    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        _size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(number) {
            _ if mode.is_some() || user.is_some() || group.is_some() => reply.error(Errno::EPERM),
            Some(attributes) => reply.attr(&FRESH, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    // Past the page cache, whether O_DIRECT is asked for or not; several writes at once.
    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let length = self.before_end(offset, size.into());
        if length == 0 {
            return reply.data(&[]);
        }
        let request = DiskRequest { operation: Operation::Read, offset, length };
        let done = move |result: Result<&[u8], Failure>| match result {
            Ok(data) => reply.data(data),
            Err(failure) => reply.error(errno(failure)),
        };
        self.disk.submit(request, &[], Box::new(done));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let length = self.before_end(offset, data.len() as u64);
        if length == 0 && !data.is_empty() {
            return reply.error(Errno::ENOSPC);
        }
        let (data, _beyond) = data.split_at(usize::try_from(length).unwrap_or(data.len()));
        let operation = Operation::Write { forced: flags.0 & O_DSYNC != 0 };
        let written = u32::try_from(length).unwrap_or(u32::MAX);
        let done = move |result: Result<&[u8], Failure>| match result {
            Ok(_) => reply.written(written),
            Err(failure) => reply.error(errno(failure)),
        };
        self.disk.submit(DiskRequest { operation, offset, length }, data, Box::new(done));
    }

    // Of a close(2): nothing is kept back that would have to be written now.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let request = DiskRequest { operation: Operation::Flush, offset: 0, length: 0 };
        let done = move |result: Result<&[u8], Failure>| answer(reply, result.map(|_| ()));
        self.disk.submit(request, &[], Box::new(done));
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if number != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, NAME),
        ];
        for ((number, kind, name), next) in entries.into_iter().zip(1..) {
            if next > offset && reply.add(number, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(self.size() / 4096, 0, 0, 1, 0, 4096, 255, 4096);
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let deallocates = match mode & !KEEP_SIZE {
            // Room is there as far as the disk goes.
            0 if self.before_end(offset, length) < length => return reply.error(Errno::ENOSPC),
            0 => return reply.ok(),
            PUNCH_HOLE => true,
            ZERO_RANGE => false,
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        let length = self.before_end(offset, length);
        // If there is nobody who would do it, the reply says so when it is dropped.
        let _gone = self.stretches.send(Stretch { offset, length, deallocates, reply });
    }
}
