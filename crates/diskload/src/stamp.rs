//! Stamps on blocks that are written, and their verification on reads.
//!
//! A block begins with a mark, its offset, the number of the write, and a hash of offset, number
//! and nonce; the rest follows from that hash. So a read can distinguish a block that was never
//! written, that belongs elsewhere, that is an older write, or that has parts of two writes.
//!
//! Invariants:
//! - What was on the device before is never wrong: at a place that was not written, only a block of
//!   this load that belongs elsewhere is an error.
//! - Writes that began after the last answered one may or may not have been executed: a read may
//!   return any of them, until one read shows which, or the place is written again.
//! - A write is promised if it was forced, or if a flush that began after its answer has succeeded.
//!   A device that was reopened may have lost every write that was not promised.

use std::collections::HashMap;

use workload::fnv64;

/// The first eight bytes of a stamped block.
const MARK: u64 = 0x6166_6172_5f73_7461;
const HEADER_BYTES: usize = 32;

/// What is wrong with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It has no stamp of this load although a write of its place was answered.
    Lost,
    /// It has the stamp of another place.
    Misdirected,
    /// Its parts do not belong together.
    Torn,
    /// It is an older write than the last answered one.
    Stale,
}

/// The writes of one place, numbered from 1.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// The last write that was answered or read; 0 for none.
    done: u32,
    /// The last write that was begun.
    begun: u32,
    /// The last write that is durable.
    promised: u32,
    /// Whether a request is outstanding there.
    busy: bool,
}

/// The writes of all places of a job.
#[derive(Default)]
pub(super) struct Stamps {
    block_bytes: usize,
    nonce: u64,
    places: HashMap<u64, Known>,
    /// Writes that were answered and are not promised: offset and number.
    answered: Vec<(u64, u32)>,
    /// The writes that the outstanding flush will promise.
    flushing: Vec<(u64, u32)>,
}

impl Stamps {
    pub(super) fn new(block_bytes: u32, nonce: u64) -> Self {
        Self { block_bytes: block_bytes as usize, nonce, ..Self::default() }
    }

    /// Reserves a place for a request. Returns false if one is outstanding there.
    pub(super) fn take(&mut self, offset: u64) -> bool {
        let known = self.places.entry(offset).or_default();
        !std::mem::replace(&mut known.busy, true)
    }

    /// Fills `data` with the next write of the place at `offset`.
    pub(super) fn write(&mut self, offset: u64, data: &mut [u8]) {
        let known = self.places.entry(offset).or_default();
        known.begun += 1;
        let (number, nonce) = (known.begun, self.nonce);
        for (block, at) in
            data.chunks_exact_mut(self.block_bytes).zip((offset..).step_by(self.block_bytes))
        {
            fill(block, at, number, identity(nonce, at, number));
        }
    }

    /// Notes that a write at `offset` has ended. `is_done`: it succeeded; `is_forced`: it is
    /// durable, too.
    pub(super) fn written(&mut self, offset: u64, is_done: bool, is_forced: bool) {
        let known = self.places.entry(offset).or_default();
        known.busy = false;
        if is_done {
            known.done = known.begun;
            if is_forced {
                known.promised = known.done;
            } else {
                self.answered.push((offset, known.done));
            }
        }
    }

    /// Notes that a flush begins, which will promise all writes that have been answered.
    pub(super) fn flush(&mut self) {
        self.flushing.append(&mut self.answered);
    }

    /// Notes that the flush has ended, and whether it succeeded.
    pub(super) fn flushed(&mut self, is_done: bool) {
        if !is_done {
            self.answered.append(&mut self.flushing);
        }
        for (offset, number) in self.flushing.drain(..) {
            let known = self.places.entry(offset).or_default();
            known.promised = known.promised.max(number);
        }
    }

    /// Notes that the device was reopened: it has the promised writes and perhaps later ones.
    pub(super) fn reopened(&mut self) {
        for known in self.places.values_mut() {
            known.done = known.promised;
        }
        self.answered.clear();
        self.flushing.clear();
    }

    /// Notes that a read at `offset` has ended and verifies its data (`None`: it failed). The error
    /// is that of the first wrong block.
    pub(super) fn read(&mut self, offset: u64, data: Option<&[u8]>) -> Result<(), Wrong> {
        let known = self.places.entry(offset).or_default();
        known.busy = false;
        let Some(data) = data else { return Ok(()) };
        let known = *known;
        let mut oldest = u32::MAX;
        for (block, at) in
            data.chunks_exact(self.block_bytes).zip((offset..).step_by(self.block_bytes))
        {
            let number = self.number(block, at, &known)?;
            if !(known.done..=known.begun).contains(&number) {
                return Err(if number == 0 { Wrong::Lost } else { Wrong::Stale });
            }
            oldest = oldest.min(number);
        }
        // A write that was read cannot disappear again. An unanswered write of several blocks may
        // have been executed in part, so the oldest counts.
        if (known.done..=known.begun).contains(&oldest) {
            self.places.entry(offset).or_default().done = oldest;
        }
        Ok(())
    }

    /// The offsets of all places that were written, in descending order.
    pub(super) fn written_places(&self) -> Vec<u64> {
        let written = self.places.iter().filter(|(_, known)| known.begun > 0);
        let mut places: Vec<u64> = written.map(|(offset, _)| *offset).collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        places
    }

    // The number of the write that `block` is from; 0 if it has no stamp of this load.
    fn number(&self, block: &[u8], at: u64, known: &Known) -> Result<u32, Wrong> {
        let Some((its, number)) = self.header(block) else {
            // The block may have the end of a write without its header.
            let is_part = (known.done.max(1)..=known.begun).any(|number| {
                let identity = self.identity(at, number);
                words(block).any(|(index, word)| word == identity.wrapping_mul(index | 1))
            });
            return if is_part { Err(Wrong::Torn) } else { Ok(0) };
        };
        if its != at {
            return Err(Wrong::Misdirected);
        }
        let identity = self.identity(at, number);
        let is_whole = words(block).all(|(index, word)| word == identity.wrapping_mul(index | 1));
        if is_whole { Ok(number) } else { Err(Wrong::Torn) }
    }

    // Offset and number in the stamp of a block; `None` if it has no valid stamp of this load.
    fn header(&self, block: &[u8]) -> Option<(u64, u32)> {
        let (at, number) = (field(block, 1), u32::try_from(field(block, 2)).ok()?);
        let is_own = field(block, 0) == MARK && field(block, 3) == self.identity(at, number);
        is_own.then_some((at, number))
    }

    // The hash of a write at `at`, from which its filler follows.
    fn identity(&self, at: u64, number: u32) -> u64 {
        identity(self.nonce, at, number)
    }
}

// The hash of nonce, offset and number of a write.
fn identity(nonce: u64, at: u64, number: u32) -> u64 {
    fnv64(nonce ^ at ^ u64::from(number) << 40)
}

// The eight-byte word `index` of a block; 0 beyond its end.
fn field(block: &[u8], index: usize) -> u64 {
    let bytes = block.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}

// Writes the eight-byte word `index` of a block.
fn put(block: &mut [u8], index: usize, value: u64) {
    block[index * 8..index * 8 + 8].copy_from_slice(&value.to_le_bytes());
}

// The eight-byte words that follow the header, with their indexes.
fn words(block: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    (HEADER_BYTES / 8..block.len() / 8).map(|index| (index as u64, field(block, index)))
}

// Stamps a block. Every word of the filler depends on its index and on the write.
fn fill(block: &mut [u8], at: u64, number: u32, identity: u64) {
    put(block, 0, MARK);
    put(block, 1, at);
    put(block, 2, u64::from(number));
    put(block, 3, identity);
    for index in HEADER_BYTES / 8..block.len() / 8 {
        put(block, index, identity.wrapping_mul(index as u64 | 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_block_is_told_apart() {
        let mut stamps = Stamps::new(512, 7);
        let mut data = vec![0; 1024];
        assert_eq!(stamps.read(4096, Some(&data)), Ok(()), "never written");
        stamps.write(4096, &mut data);
        stamps.written(4096, true, false);
        assert_eq!(stamps.read(4096, Some(&data)), Ok(()));
        assert_eq!(stamps.read(4096, Some(&[0; 1024])), Err(Wrong::Lost));
        assert_eq!(stamps.read(8192, Some(&data)), Err(Wrong::Misdirected));
        let mut torn = data.clone();
        torn[700] ^= 1;
        assert_eq!(stamps.read(4096, Some(&torn)), Err(Wrong::Torn));
        let old = data.clone();
        stamps.write(4096, &mut data);
        stamps.written(4096, true, false);
        assert_eq!(stamps.read(4096, Some(&old)), Err(Wrong::Stale));
        assert_eq!(stamps.read(4096, Some(&data)), Ok(()));
    }

    #[test]
    fn a_write_that_was_not_answered_may_be_there_or_not() {
        let mut stamps = Stamps::new(512, 7);
        let (mut first, mut second) = (vec![0; 512], vec![0; 512]);
        stamps.write(0, &mut first);
        stamps.written(0, true, false);
        stamps.write(0, &mut second);
        stamps.written(0, false, false);
        assert_eq!(stamps.read(0, Some(&first)), Ok(()));
        assert_eq!(stamps.read(0, Some(&second)), Ok(()));
        assert_eq!(stamps.read(0, Some(&first)), Err(Wrong::Stale), "it was there already");
    }

    #[test]
    fn what_was_there_before_is_not_wrong() {
        let mut stamps = Stamps::new(512, 7);
        let other = |at: u64| {
            let mut block = vec![0; 512];
            fill(&mut block, at, 3, identity(8, at, 3));
            block
        };
        for old in [vec![0x55; 512], other(0), other(512)] {
            assert_eq!(stamps.read(0, Some(&old)), Ok(()), "nothing was written there");
        }
        let mut new = vec![0; 512];
        stamps.write(512, &mut new);
        assert_eq!(stamps.read(0, Some(&new)), Err(Wrong::Misdirected), "but this was");
        assert_eq!(stamps.read(512, Some(&other(512))), Ok(()), "it may not have been done");
        stamps.written(512, true, false);
        for old in [vec![0x55; 512], other(512)] {
            assert_eq!(stamps.read(512, Some(&old)), Err(Wrong::Lost));
        }
        let torn = [&other(512)[..256], &new[256..]].concat();
        assert_eq!(stamps.read(512, Some(&torn)), Err(Wrong::Torn), "its end is there");
        assert_eq!(stamps.written_places(), [512]);
    }

    #[test]
    fn what_was_promised_is_there_after_the_device_was_opened_anew() {
        let mut stamps = Stamps::new(512, 7);
        let write = |stamps: &mut Stamps, is_forced| {
            let mut data = vec![0; 512];
            stamps.write(0, &mut data);
            stamps.written(0, true, is_forced);
            data
        };
        let first = write(&mut stamps, true);
        let second = write(&mut stamps, false);
        stamps.flush();
        let third = write(&mut stamps, false);
        stamps.flushed(true);
        assert_eq!(stamps.read(0, Some(&second)), Err(Wrong::Stale), "the third was answered");
        stamps.reopened();
        assert_eq!(stamps.read(0, Some(&first)), Err(Wrong::Stale), "it was promised");
        assert_eq!(stamps.read(0, Some(&second)), Ok(()), "and no more");
        assert_eq!(stamps.read(0, Some(&third)), Ok(()), "but it may be there");
        assert_eq!(stamps.read(0, Some(&second)), Err(Wrong::Stale), "it was seen");
        stamps.reopened();
        // A flush that fails promises nothing; one that ends later does.
        write(&mut stamps, false);
        stamps.flush();
        stamps.flushed(false);
        stamps.reopened();
        assert_eq!(stamps.read(0, Some(&third)), Ok(()));
        let last = write(&mut stamps, false);
        stamps.flush();
        stamps.flushed(false);
        stamps.flush();
        stamps.flushed(true);
        stamps.reopened();
        assert_eq!(stamps.read(0, Some(&third)), Err(Wrong::Stale));
        assert_eq!(stamps.read(0, Some(&last)), Ok(()));
    }

    #[test]
    fn one_request_at_a_time_is_at_a_place() {
        let mut stamps = Stamps::new(512, 7);
        assert!(stamps.take(0) && !stamps.take(0) && stamps.take(512));
        stamps.read(0, None).expect("nothing came");
        assert!(stamps.take(0));
    }
}
