//! A file system with a store in it, filled once: what each turn begins with a copy of.

use std::thread::sleep;
use std::time::Duration as WallDuration;

use launch::{Child, KvServed, KvSpec};
use measure::{Bytes, Duration};

use super::loads::{Asked, Kind, Loads};
use super::place::Place;
use crate::ReproduceError;

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Image;

/// An eighth of the store, so that 10 to 15 % of blocks are found there.
const BLOCK_CACHE: Bytes = Bytes::from_mib(25);
/// RocksDB's 64 MiB, scaled about as the drive is: a flush takes a tenth of a second of it. Few
/// come in a turn, and no compaction of the whole store, which is not scaled.
const WRITE_BUFFER: Bytes = Bytes::from_mib(4);

pub(super) const DRIVE: &str = "drive.img";
const WHOLE: &str = "whole.img";
const BYTES: &str = "1G";
/// Where the file system is mounted, and the store in it.
pub(super) const MOUNTED: &str = "mounted";
const STORE: &str = "mounted/store";
pub(super) const RECORD: &str = "kv.json";
/// A server that uses less than this of a processor has nothing to compact.
const CALM: f64 = 0.02;
const CALM_LOOK: WallDuration = WallDuration::from_millis(400);
const CALM_LOOKS_MAX: usize = 75;

impl Image {
    /// Makes it, on memory; `None` if that was interrupted.
    ///
    /// # Errors
    /// When a program refuses, or there is no RocksDB.
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
            // What the log has is put into tables when the store is opened, and so not later.
            let kv = serve(place, false, Duration::ZERO)?;
            wait_until_calm(&kv.child);
            end(kv)?;
        }
        place.run(&["umount", &at.display().to_string()])?;
        Ok(filled.map(|_| Self))
    }

    /// A copy of it, as the content of the drive.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn copy(&self, place: &Place) -> Result<(), ReproduceError> {
        let [from, to] = [WHOLE, DRIVE].map(|name| place.path(name).display().to_string());
        place.run(&["cp", "--sparse=always", &from, &to]).map(drop)
    }
}

/// A server of the store that is mounted.
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

/// Ends a server, which closes its store.
pub(super) fn end(mut kv: KvServed) -> Result<(), ReproduceError> {
    kv.child.terminate();
    Ok(kv.child.finish().map(drop)?)
}

// What was filled is put in order by threads of the server.
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
