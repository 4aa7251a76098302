//! A file system with a store in it, filled once; each turn begins with a copy.

use std::thread::sleep;
use std::time::Duration as WallDuration;

use launch::{Child, KvServed, KvSpec};
use measure::{Bytes, Duration};

use super::loads::{Asked, Kind, Loads};
use super::place::Place;
use crate::ReproduceError;

/// A filled image, in the files of a [`Place`].
#[derive(Debug)]
pub(crate) struct Image;

/// An eighth of the store, so that 10 to 15 % of blocks are in the cache.
const BLOCK_CACHE: Bytes = Bytes::from_mib(25);
/// RocksDB's 64 MiB, scaled about as the drive is: a flush takes a tenth of a second of the drive.
/// A turn has few flushes, and no compaction of the whole store, which is not scaled.
const WRITE_BUFFER: Bytes = Bytes::from_mib(4);

pub(super) const DRIVE: &str = "drive.img";
const WHOLE: &str = "whole.img";
const BYTES: &str = "1G";
/// Where the file system is mounted,
pub(super) const MOUNTED: &str = "mounted";
/// and the store in it.
const STORE: &str = "mounted/store";
pub(super) const RECORD: &str = "kv.json";
/// A server that uses less than this share of a processor is not compacting.
const CALM: f64 = 0.02;
const CALM_LOOK: WallDuration = WallDuration::from_millis(400);
const CALM_LOOKS_MAX: usize = 75;

impl Image {
    /// Creates the file system in memory and fills the store; `None` if that was interrupted.
    ///
    /// # Errors
    /// When a program fails, or RocksDB is missing.
    pub(crate) fn make(
        place: &Place,
        loads: &mut Loads<'_>,
    ) -> Result<Option<Self>, ReproduceError> {
        let at = place.make(MOUNTED)?;
        let file = place.path(WHOLE);
        let name = file.display().to_string();
        place.run(&["truncate", "-s", BYTES, &name])?;
        let inodes = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
        place.run(&["mkfs.ext4", "-q", "-F", "-E", inodes, &name])?;
        place.mount(&file, &at)?;
        let kv = serve(place, false, Duration::ZERO)?;
        let fill = Asked { kind: Kind::Fill, ..Asked::reads() };
        let filled = loads.run("filling the store", kv.address, &fill)?;
        if filled.is_some() {
            wait_until_calm(&kv.child);
        }
        end(kv)?;
        if filled.is_some() {
            // Opens the store once more, which moves the log into tables, so that no turn does.
            let kv = serve(place, false, Duration::ZERO)?;
            wait_until_calm(&kv.child);
            end(kv)?;
        }
        place.run(&["umount", &at.display().to_string()])?;
        Ok(filled.map(|_| Self))
    }

    /// Copies the image to the file of the drive.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn copy(&self, place: &Place) -> Result<(), ReproduceError> {
        let [from, to] = [WHOLE, DRIVE].map(|name| place.path(name).display().to_string());
        place.run(&["cp", "--sparse=always", &from, &to]).map(drop)
    }
}

/// Starts a server of the mounted store.
pub(super) fn serve(
    place: &Place,
    direct: bool,
    work: Duration,
) -> Result<KvServed, ReproduceError> {
    let spec = KvSpec {
        directory: &place.path(STORE),
        block_cache: BLOCK_CACHE,
        write_buffer: WRITE_BUFFER,
        direct,
        work,
        json: &place.path(RECORD),
    };
    Ok(spec.start(place.command(&launch::program()))?)
}

/// Ends a server, so that it closes its store.
pub(super) fn end(mut kv: KvServed) -> Result<(), ReproduceError> {
    kv.child.terminate();
    Ok(kv.child.finish().map(drop)?)
}

// Waits until the background threads of a server have compacted the store.
fn wait_until_calm(child: &Child) {
    let used = || sys::usage::of_process(child.id()).map_or(0, |usage| usage.processor_ns());
    let mut before = used();
    for _ in 0..CALM_LOOKS_MAX {
        sleep(CALM_LOOK);
        let now = used();
        if ((now - before) as f64) < CALM * CALM_LOOK.as_nanos() as f64 {
            return;
        }
        before = now;
    }
}
