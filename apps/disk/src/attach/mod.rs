//! `afar attach`: mounts a namespace or logical unit of a target as a file, until it is detached.
//!
//! ```text
//! flags ─► plan ─► Disk ─► mount ─► agree ─► a Taker for each lane of the disk ◄── kernel
//!
//! signal, umount ─► unmount ─► flush ─► good-bye
//! ```

mod error;
mod files;
pub(crate) mod flags;
mod plan;
mod protocol;
mod reply;
mod session;

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use backend::{Failure as DiskFailure, Operation, Request};
use console::{Failure, terminal};
use host::{Disk, DiskConfig, DiskEvent, DiskPath, HostError, patiently};
use measure::{Bytes, Duration};
use sys::event::{Poll, Signals, Waker};
use sys::fuse::FuseDevice;

use crate::attach::flags::AttachFlags;
use client::Unserved;

pub use plan::KIND;

use files::{FILE, NAME};
use session::Served;

pub(crate) use error::AttachError;

/// The shell command that gives a user access to /dev/fuse.
pub const FUSE_REMEDY: &str = "sudo chgrp $(id -g) /dev/fuse && sudo chmod g+rw /dev/fuse";

/// For how long, and how often, unmounting is retried while the directory is in use: a process that
/// was just forked has the files of its parent open until it calls execve.
const BUSY_MAX: std::time::Duration = std::time::Duration::from_secs(1);
const BUSY_RETRY: std::time::Duration = std::time::Duration::from_millis(20);
const SIGNAL: u64 = 0;
const OTHER: u64 = 1;

/// Runs `afar attach`.
///
/// # Errors
/// When the flags contradict one another, the target cannot be reached, or nothing can be mounted.
pub fn attach(flags: &AttachFlags) -> Result<ExitCode, Failure> {
    let config = plan::disk(flags)?;
    let directory = plan::directory(&flags.directory)?;
    let device = open_device()?;
    // Signals are taken over before any thread is started, so that none is interrupted.
    let signals = console::interrupts_and_hangups().map_err(AttachError::from)?;
    let notified = Arc::new(OnceLock::new());
    let disk = Arc::new(connect(flags, config, &notified, &signals)?);
    sys::mount::mount_fuse(&device, &directory, KIND, &flags.target).map_err(|error| {
        AttachError::Mount {
            directory: flags.directory.display().to_string(),
            source: error.source,
        }
    })?;
    // Detaches the mount if a later step fails. Forgotten once the mount has ended: to detach again
    // would unmount what lies beneath.
    let mounted = Mounted(&directory);
    let served = Served::begin(&device, &disk)?;
    let _only_one = notified.set(device);
    if !console::is_quiet() {
        let text = welcome(flags, &disk);
        terminal::answer(&text)?;
    }
    watch(&signals, served.ended(), &directory, flags)?;
    served.result()?;
    std::mem::forget(mounted);
    flush(&disk, &signals)?;
    Ok(ExitCode::SUCCESS)
}

/// A mounted directory; dropping it detaches the mount.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _gone = sys::mount::detach(self.0);
    }
}

// Opens /dev/fuse; the error says how to get access to it.
fn open_device() -> Result<FuseDevice, AttachError> {
    FuseDevice::open().map_err(|source| {
        let is_absent = source.source.kind() == io::ErrorKind::NotFound;
        let remedy = if is_absent { "sudo modprobe fuse" } else { FUSE_REMEDY };
        AttachError::Fuse { source, remedy }
    })
}

// Attaches the disk; retries for `--ctrl-loss-tmo` if that was given, until a signal.
fn connect(
    flags: &AttachFlags,
    config: DiskConfig,
    notified: &Arc<OnceLock<FuseDevice>>,
    signals: &Signals,
) -> Result<Disk, AttachError> {
    let first = config.paths[0].clone();
    let teller = Arc::new(Teller::new(&config, Arc::clone(notified)));
    let mut poll = Poll::new()?;
    poll.add(signals, SIGNAL)?;
    let is_told_to_end = Cell::new(false);
    let wait = |pause| {
        let waited = poll.wait(Some(pause), &mut Vec::new());
        is_told_to_end.set(waited.is_err() || signals.next().is_some());
    };
    // Only who has set a time waits for a target that is not there: the address may be wrong.
    let patience = flags.ctrl_loss_tmo.unwrap_or(Duration::ZERO);
    let attached = patiently(patience, wait, || {
        if is_told_to_end.get() {
            let reason = "it was told to end".to_owned();
            return Err(HostError::Protocol { operation: "look for the target", reason });
        }
        let teller = Arc::clone(&teller);
        Disk::attach(config.clone(), Box::new(move |event| teller.tell(event)))
    });
    let address = match first {
        DiskPath::Nvme(first, _) => first.address,
        DiskPath::Iscsi(first, _) => first.address,
        DiskPath::Local(first) => first.name,
    };
    attached.map_err(|source| match Unserved::of(&source, &flags.target, &address) {
        Some(unserved) => unserved.into(),
        None => AttachError::Connect { uri: flags.target.clone(), source },
    })
}

/// Prints events of the disk, and notifies the kernel of a new size.
struct Teller {
    paths: Vec<(DiskPath, AtomicBool)>,
    loss_timeout: Duration,
    notified: Arc<OnceLock<FuseDevice>>,
}

impl Teller {
    fn new(config: &DiskConfig, notified: Arc<OnceLock<FuseDevice>>) -> Self {
        let paths = config.paths.iter();
        let paths = paths.map(|path| (path.clone(), AtomicBool::new(false))).collect();
        Self { paths, loss_timeout: config.loss_timeout, notified }
    }

    // Prints an event; a new size makes the kernel drop its cached attributes.
    fn tell(&self, event: DiskEvent<'_>) {
        let text = match event {
            DiskEvent::PathUp { path, state } => {
                let (uri, was_lost) = &self.paths[path];
                // The first connection is not reported.
                if !was_lost.swap(false, Ordering::Relaxed) {
                    return;
                }
                format!("{uri}: it is there again, {}", state.name())
            }
            DiskEvent::PathDown { path, reason } => {
                let (uri, was_lost) = &self.paths[path];
                was_lost.store(true, Ordering::Relaxed);
                format!("{uri}: {reason}; it is looked for")
            }
            DiskEvent::PathState { path, state } => {
                format!("{}: it is {} now", self.paths[path].0, state.name())
            }
            DiskEvent::Resized { bytes } => {
                if let Some(device) = self.notified.get() {
                    let (head, rest) = protocol::stale(FILE);
                    let _unknown = device.answer(&head, &rest);
                }
                format!("the disk has {} now", Bytes::new(bytes))
            }
            DiskEvent::Fenced { path } => {
                format!(
                    "{}: nothing that was lost on its way there can arrive now",
                    self.paths[path].0
                )
            }
            DiskEvent::Lost => {
                let time = self.loss_timeout;
                format!("there was no way to the disk for {time}: every request fails from now on")
            }
        };
        terminal::note(&format!("afar: {text}\n"));
    }
}

// What is printed once the disk is attached.
fn welcome(flags: &AttachFlags, disk: &Disk) -> String {
    let geometry = disk.geometry();
    let (bytes, block) = (Bytes::new(geometry.bytes()), geometry.block_bytes());
    let file = flags.directory.join(NAME);
    let (file, directory) = (file.display(), flags.directory.display());
    format!(
        "afar: {file} is {}: {bytes} in blocks of {block}, until Ctrl-C or umount {directory}\n\
         afar: losetup --direct-io=on -f {file} makes it a disk that caches nothing twice\n",
        flags.target
    )
}

// Waits until the directory is unmounted: here, after a signal, or by another process.
fn watch(
    signals: &Signals,
    ended: &Waker,
    directory: &Path,
    flags: &AttachFlags,
) -> Result<(), AttachError> {
    let mut poll = Poll::new()?;
    poll.add(signals, SIGNAL)?;
    poll.add(ended.descriptor(), OTHER)?;
    let mut ready = Vec::new();
    // Until when unmounting is retried while the directory is in use.
    let mut until: Option<Instant> = None;
    loop {
        poll.wait(until.map(|_| BUSY_RETRY), &mut ready)?;
        if ready.iter().any(|one| one.token == OTHER) {
            return Ok(());
        }
        while signals.next().is_some() {
            until = Some(Instant::now() + BUSY_MAX);
        }
        let Some(last) = until else { continue };
        match sys::mount::unmount(directory) {
            Err(error) if error.is_busy() && Instant::now() < last => {}
            Err(error) if error.is_busy() => {
                until = None;
                let directory = flags.directory.display();
                terminal::say(&format!(
                    "afar attach: {directory} is in use; end what uses it (fuser -vm {directory} \
                     lists that), then press Ctrl-C again\n"
                ));
            }
            // Unmounted, here or by another process: `ended` will say so.
            Ok(()) | Err(_) => until = None,
        }
    }
}

// Flushes the disk. A signal while it waits is an error: `GivenUp`.
fn flush(disk: &Disk, signals: &Signals) -> Result<(), AttachError> {
    let flushed = Waker::new()?;
    let (sender, told) = channel();
    let waker = flushed.clone();
    let done = move |result: Result<&[u8], DiskFailure>| {
        let _gone = sender.send(result.map(|_| ()));
        waker.wake();
    };
    disk.submit(Request { operation: Operation::Flush, offset: 0, length: 0 }, &[], Box::new(done));
    let mut poll = Poll::new()?;
    poll.add(signals, SIGNAL)?;
    poll.add(flushed.descriptor(), OTHER)?;
    let mut ready = Vec::new();
    loop {
        poll.wait(None, &mut ready)?;
        if let Ok(result) = told.try_recv() {
            return result.map_err(AttachError::Flush);
        }
        if signals.next().is_some() {
            return Err(AttachError::GivenUp);
        }
    }
}
