//! A backend around any other with a write cache that is lost with the process.
//!
//! A process that is killed loses nothing that the kernel already has, so a device that never
//! flushes looks durable. This one keeps written data in the memory of the process until a flush:
//! `kill -9` is to it what a power failure is to a drive.
//!
//! Invariants:
//! - After a flush, the device inside has all written data; after a forced write, that write's
//!   data.
//! - Data that was not flushed may reach the device inside or not, in any order, in whole blocks:
//!   some is written early at random, and more when the cache is full.
//!
//! The calling thread does all work and waits for it: this device is meant to be correct, not fast.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use measure::Bytes;
use sys::block::Block;
use sys::disk::Claim;
use workload::Draw;

use crate::device::{Action, Backend, Call, Failure, Geometry, Operation, Request, Start, Work};
use crate::named::{Around, BackendUri, Device, Kind, Parse, same};
use crate::open_error::OpenError;

/// A device behind a volatile write cache.
pub struct VolatileBackend {
    inner: Arc<dyn Backend>,
    blocks_most: usize,
    state: Mutex<State>,
}

struct State {
    /// Blocks that the device inside does not have yet, by offset.
    dirty: BTreeMap<u64, Box<[u8]>>,
    draw: Draw,
}

/// One of this many block writes, on average, writes a random block out early.
const EARLY: u64 = 8;

/// `volatile:SIZE:DEVICE`.
pub(crate) static KIND: Kind = Kind {
    scheme: "volatile",
    example: "volatile:4MiB:",
    remedy: "write volatile:SIZE:DEVICE, the size of the cache, \
        e.g. volatile:4MiB:file:/data/disk.img",
    parse: Parse::Around(named),
};

/// The parsed device, not yet open.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    bytes: u64,
    inner: BackendUri,
}

// Parses the size of the cache in `volatile:SIZE:`.
fn named(place: &str) -> Result<Around, String> {
    let bytes: Bytes = place.parse().map_err(|error| format!("{error}"))?;
    let bytes = bytes.get();
    if bytes < 4096 {
        return Err(format!("a cache of {bytes} bytes holds no block; give 4KiB or more"));
    }
    Ok(Box::new(move |inner| Ok(BackendUri::new(Named { bytes, inner }))))
}

impl Device for Named {
    fn open(&self, claim: Claim) -> Result<Arc<dyn Backend>, OpenError> {
        let mut seed = [0; 8];
        sys::random::fill(&mut seed);
        let inner = self.inner.open(claim)?;
        Ok(Arc::new(VolatileBackend::new(inner, self.bytes, u64::from_le_bytes(seed))))
    }

    fn inside(&self) -> Option<&BackendUri> {
        Some(&self.inner)
    }

    fn equals(&self, other: &dyn Any) -> bool {
        same(self, other)
    }
}

impl VolatileBackend {
    /// Wraps `inner` with a cache of `bytes`; `seed` determines which blocks are written early.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, bytes: u64, seed: u64) -> Self {
        let blocks = bytes / u64::from(inner.geometry().block_bytes());
        let blocks_most = usize::try_from(blocks).unwrap_or(usize::MAX).max(1);
        let state = Mutex::new(State { dirty: BTreeMap::new(), draw: Draw::new(seed) });
        Self { inner, blocks_most, state }
    }

    fn block_bytes(&self) -> usize {
        self.inner.geometry().block_bytes() as usize
    }

    // Executes a request on the device inside and waits for its end.
    fn perform(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Result<(), Failure> {
        let mut block = Block::new(data.len());
        block[..data.len()].copy_from_slice(data);
        let start = self.inner.start(request, &mut block[..data.len()], now_ns);
        let done = match start.work {
            Work::Done(result) => result,
            Work::Kernel(call) => perform(&call, request.offset, &mut block[..data.len()]),
        };
        let result = self.inner.end(request, done, now_ns);
        data.copy_from_slice(&block[..data.len()]);
        result
    }

    // Writes the dirty block at `offset` to the device inside; it stays dirty if that fails.
    fn write_out(&self, state: &mut State, offset: u64, now_ns: u64) -> Result<(), Failure> {
        let Some(mut data) = state.dirty.remove(&offset) else { return Ok(()) };
        let operation = Operation::Write { forced: false };
        let request = Request { operation, offset, length: data.len() as u64 };
        let result = self.perform(&request, &mut data, now_ns);
        if result.is_err() {
            state.dirty.insert(offset, data);
        }
        result
    }

    // Writes out a random dirty block: the next one from a random offset.
    fn write_out_any(&self, state: &mut State, now_ns: u64) -> Result<(), Failure> {
        let from = state.draw.below(self.inner.geometry().bytes().max(1));
        let next = state.dirty.range(from..).next().or_else(|| state.dirty.first_key_value());
        let Some(offset) = next.map(|(offset, _)| *offset) else { return Ok(()) };
        self.write_out(state, offset, now_ns)
    }

    // Caches a block, and perhaps writes others out.
    fn keep(
        &self,
        state: &mut State,
        offset: u64,
        data: Box<[u8]>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        state.dirty.insert(offset, data);
        if state.draw.below(EARLY) == 0 {
            self.write_out_any(state, now_ns)?;
        }
        while state.dirty.len() > self.blocks_most {
            self.write_out_any(state, now_ns)?;
        }
        Ok(())
    }

    // Writes out all dirty blocks and flushes the device inside.
    fn flush(&self, state: &mut State, now_ns: u64) -> Result<(), Failure> {
        while let Some(offset) = state.dirty.first_key_value().map(|(offset, _)| *offset) {
            self.write_out(state, offset, now_ns)?;
        }
        let request = Request { operation: Operation::Flush, offset: 0, length: 0 };
        self.perform(&request, &mut [], now_ns)
    }

    // Executes a request.
    fn act(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Result<(), Failure> {
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = self.block_bytes();
        let places = || (request.offset..request.offset + request.length).step_by(bytes);
        match request.operation {
            Operation::Read => {
                self.perform(request, data, now_ns)?;
                for (offset, block) in places().zip(data.chunks_exact_mut(bytes)) {
                    if let Some(kept) = state.dirty.get(&offset) {
                        block.copy_from_slice(kept);
                    }
                }
                Ok(())
            }
            Operation::Write { forced: true } => {
                self.perform(request, data, now_ns)?;
                places().for_each(|offset| drop(state.dirty.remove(&offset)));
                Ok(())
            }
            Operation::Write { forced: false } => {
                for (offset, block) in places().zip(data.chunks_exact(bytes)) {
                    self.keep(state, offset, block.into(), now_ns)?;
                }
                Ok(())
            }
            Operation::Flush => self.flush(state, now_ns),
            Operation::Zero { .. } | Operation::Discard => {
                for offset in places() {
                    self.keep(state, offset, vec![0; bytes].into(), now_ns)?;
                }
                let is_forced = matches!(request.operation, Operation::Zero { forced: true, .. });
                if is_forced { self.flush(state, now_ns) } else { Ok(()) }
            }
        }
    }
}

// Executes a system call of the device inside, and waits for it.
fn perform(call: &Call, offset: u64, data: &mut [u8]) -> Result<(), Failure> {
    let file = call.file.try_clone().map(File::from);
    let done = file.and_then(|file| match call.action {
        Action::Read => file.read_exact_at(data, offset),
        Action::Write { forced } => {
            file.write_all_at(data, offset)?;
            if forced { file.sync_data() } else { Ok(()) }
        }
        Action::Sync => file.sync_data(),
        // Never called: zeros are cached and written as data.
        Action::Clear { .. } | Action::WriteZeros { .. } => {
            Err(std::io::ErrorKind::Unsupported.into())
        }
    });
    done.map_err(|error| Failure::of(&error))
}

impl Backend for VolatileBackend {
    fn geometry(&self) -> Geometry {
        Geometry { atomic_bytes: self.inner.geometry().block_bytes(), ..self.inner.geometry() }
    }

    fn is_immediate(&self) -> bool {
        true
    }

    fn start(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Start {
        Start::done(self.act(request, data, now_ns))
    }

    fn refresh(&self) {
        self.inner.refresh();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryBackend;

    const BLOCK: usize = 512;

    struct Both {
        inner: Arc<dyn Backend>,
        cache: VolatileBackend,
    }

    fn both(cache_bytes: u64) -> Both {
        let inner = Arc::new(MemoryBackend::new(1 << 20, 9).expect("there is memory"));
        let cache = VolatileBackend::new(Arc::clone(&inner) as _, cache_bytes, 1);
        Both { inner, cache }
    }

    fn ask(device: &dyn Backend, operation: Operation, block: u64, data: &mut [u8]) {
        let (offset, length) = (block * BLOCK as u64, data.len() as u64);
        let start = device.start(&Request { operation, offset, length }, data, 0);
        assert!(matches!(start.work, Work::Done(Ok(()))), "{operation:?}");
    }

    fn write(device: &dyn Backend, block: u64, byte: u8, forced: bool) {
        ask(device, Operation::Write { forced }, block, &mut [byte; BLOCK]);
    }

    fn read(device: &dyn Backend, block: u64) -> u8 {
        let mut data = [0; BLOCK];
        ask(device, Operation::Read, block, &mut data);
        data[0]
    }

    #[test]
    fn what_is_not_flushed_may_be_lost_and_what_is_never() {
        let Both { inner, cache } = both(1 << 20);
        (0..100).for_each(|block| write(&cache, block, 1, false));
        assert!((0..100).all(|block| read(&cache, block) == 1));
        let there = (0..100).filter(|block| read(&*inner, *block) == 1).count();
        assert!((1..50).contains(&there), "{there} of 100 were written early");
        ask(&cache, Operation::Flush, 0, &mut []);
        assert!((0..100).all(|block| read(&*inner, block) == 1));
        (0..100).for_each(|block| write(&cache, block, 2, false));
        write(&cache, 7, 3, true);
        assert_eq!((read(&*inner, 7), read(&cache, 7)), (3, 3), "it was forced");
        // Of each block, that or what was flushed.
        assert!((0..100).all(|block| matches!(read(&*inner, block), 1..=3)));
    }

    #[test]
    fn a_full_cache_writes_out() {
        let Both { inner, cache } = both(10 * BLOCK as u64);
        (0..100).for_each(|block| write(&cache, block, 1, false));
        let there = (0..100).filter(|block| read(&*inner, *block) == 1).count();
        assert!((90..100).contains(&there), "{there}");
        assert!((0..100).all(|block| read(&cache, block) == 1));
    }

    #[test]
    fn zeros_are_data() {
        for operation in [Operation::Discard, Operation::Zero { deallocates: true, forced: false }]
        {
            let Both { inner, cache } = both(1 << 20);
            write(&cache, 3, 1, true);
            let request = Request { operation, offset: 0, length: 8 * BLOCK as u64 };
            cache.start(&request, &mut [], 0);
            assert_eq!(read(&cache, 3), 0, "{operation:?}");
            ask(&cache, Operation::Flush, 0, &mut []);
            assert_eq!(read(&*inner, 3), 0, "{operation:?}");
        }
        let Both { inner, cache } = both(1 << 20);
        write(&cache, 3, 1, false);
        let operation = Operation::Zero { deallocates: false, forced: true };
        cache.start(&Request { operation, offset: 0, length: 8 * BLOCK as u64 }, &mut [], 0);
        assert_eq!(read(&*inner, 3), 0, "it was forced");
    }
}
