//! What every block says of itself, and what it may say when it is read.
//!
//! A block begins with a number that marks it, the place it was written to, which write it was, and
//! a check of the whole; the rest is drawn from those. So what is read tells apart: never written,
//! written elsewhere, an older write, parts of two writes.
//!
//! Invariants:
//! - What was on the device before is never wrong: of a place that was not written to, only a block
//!   that was written for another says anything.
//! - Writes that were begun after the last that was answered may or may not have been done: any of
//!   them is right until it is seen which, or the place is written again.
//! - A write is promised when it was forced, or a flush that began after its answer has ended well.
//!   When the device has been opened anew, whatever was not promised may be gone.

use std::collections::HashMap;

use workload::fnv64;

/// Marks a block that was written here.
const MARK: u64 = 0x6166_6172_5f73_7461;
const HEADER_BYTES: usize = 32;

/// What is wrong with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It says that it was never written, or says nothing.
    Lost,
    /// It says that it belongs elsewhere.
    Misdirected,
    /// Its parts do not belong together.
    Torn,
    /// It is an older write than the last that was answered.
    Stale,
}

/// Writes of one place.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// The last that was answered, or was seen, from 1; 0 for none.
    done: u32,
    /// The last that was begun.
    begun: u32,
    /// The last that is on the medium for certain.
    promised: u32,
    /// Requests under way there.
    busy: bool,
}

/// See the module's description.
#[derive(Default)]
pub(super) struct Stamps {
    block_bytes: usize,
    nonce: u64,
    places: HashMap<u64, Known>,
    /// Writes that were answered and are not promised: where, and which.
    answered: Vec<(u64, u32)>,
    /// Those that the flush under way promises.
    flushing: Vec<(u64, u32)>,
}

impl Stamps {
    pub(super) fn new(block_bytes: u32, nonce: u64) -> Self {
        Self { block_bytes: block_bytes as usize, nonce, ..Self::default() }
    }

    /// Takes a place for a request; false if one is under way there.
    pub(super) fn take(&mut self, offset: u64) -> bool {
        let known = self.places.entry(offset).or_default();
        !std::mem::replace(&mut known.busy, true)
    }

    /// Fills what is to be written there next.
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

    /// A write there has ended; whether it was done for certain, and is on the medium.
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

    /// A flush begins: it promises what has been answered.
    pub(super) fn flush(&mut self) {
        self.flushing.append(&mut self.answered);
    }

    /// The flush has ended; whether well.
    pub(super) fn flushed(&mut self, is_done: bool) {
        if !is_done {
            self.answered.append(&mut self.flushing);
        }
        for (offset, number) in self.flushing.drain(..) {
            let known = self.places.entry(offset).or_default();
            known.promised = known.promised.max(number);
        }
    }

    /// The device has been opened anew: it has what it promised, and perhaps more.
    pub(super) fn reopened(&mut self) {
        for known in self.places.values_mut() {
            known.done = known.promised;
        }
        self.answered.clear();
        self.flushing.clear();
    }

    /// A read there has ended, with this; what is wrong with the first block that is.
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
        // What was seen cannot be undone. Of several blocks that were written at once and not
        // answered, some may be there.
        if (known.done..=known.begun).contains(&oldest) {
            self.places.entry(offset).or_default().done = oldest;
        }
        Ok(())
    }

    /// Places that were written to, the last first.
    pub(super) fn written_places(&self) -> Vec<u64> {
        let written = self.places.iter().filter(|(_, known)| known.begun > 0);
        let mut places: Vec<u64> = written.map(|(offset, _)| *offset).collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        places
    }

    // Which write of a place a block is of: 0 for none.
    fn number(&self, block: &[u8], at: u64, known: &Known) -> Result<u32, Wrong> {
        let Some((its, number)) = self.header(block) else {
            // The end of a write without its beginning.
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

    // Where a block of this load was written to, and as which write.
    fn header(&self, block: &[u8]) -> Option<(u64, u32)> {
        let (at, number) = (field(block, 1), u32::try_from(field(block, 2)).ok()?);
        let is_own = field(block, 0) == MARK && field(block, 3) == self.identity(at, number);
        is_own.then_some((at, number))
    }

    fn identity(&self, at: u64, number: u32) -> u64 {
        identity(self.nonce, at, number)
    }
}

fn identity(nonce: u64, at: u64, number: u32) -> u64 {
    fnv64(nonce ^ at ^ u64::from(number) << 40)
}

fn field(block: &[u8], index: usize) -> u64 {
    let bytes = block.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}

fn put(block: &mut [u8], index: usize, value: u64) {
    block[index * 8..index * 8 + 8].copy_from_slice(&value.to_le_bytes());
}

// What follows the header, by place.
fn words(block: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    (HEADER_BYTES / 8..block.len() / 8).map(|index| (index as u64, field(block, index)))
}

// Every eight bytes depend on their place and on which write it is.
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
