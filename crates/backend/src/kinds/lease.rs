//! Memory that is leased to hosts: each host has its own disk in it while it is connected, and for
//! the lease's time after that.
//!
//! DESIGN NOTE
//!
//! * A host (its NQN and its identifier) sees a *view*: a disk of `quota` bytes that holds zeros at
//!   first, and that no other host can address. So hosts cannot read, overwrite or free others'
//!   data, whatever they send; and blocks need no fencing.
//! * Views allocate memory as they are written, all together at most the memory that is leased. A
//!   write that finds none fails with [`Failure::NoSpace`] and changes nothing. Discarding blocks
//!   frees their memory at once.
//! * Memory is counted in pieces of 4096 bytes that were written and not discarded whole. The
//!   kernel may use huge pages for them, which are larger.
//! * A view outlives the last connection of its host by the TTL of the lease; then its memory is
//!   freed. `target::Views` keeps the time: this module has no clock.
//! * A host that connects after that gets a new disk with a new identity, which its old writes
//!   cannot reach.
//!
//! Invariants:
//! - Exactly the pieces that have memory in a view are counted, each once.
//! - The memory of all views is at most the memory that is leased.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use measure::{Bytes, Duration};
use sys::disk::Claim;
use sys::shared::SharedMemory;

use crate::device::{Backend, Failure, Geometry, Operation, Request, Start};
use crate::lease::{Lease, PIECE, Room};
use crate::named::{Around, BackendUri, Device, Kind, Parse, same};
use crate::open_error::OpenError;

/// A chunk of words of marks, allocated on first use.
type Chunk = OnceLock<Box<[AtomicU64]>>;

/// Pieces of a word of marks, and words of a chunk: 128 MiB of a view.
const WORD: u64 = 64;
const WORDS: usize = 512;
/// Bytes that one step of a discard frees, while writes to the same view wait.
const GIVEN_AT_ONCE: u64 = 1 << 20;
const TTL: Duration = Duration::from_ms(60_000);
const TTL_MOST: Duration = Duration::from_ms(24 * 3_600_000);
const TTL_LEAST: Duration = Duration::from_ms(100);

/// The leased memory as a device. No host is served it; hosts get views of its lease.
pub struct LeaseBackend(Lease);

/// The disk of one host.
pub struct ViewBackend {
    memory: SharedMemory,
    geometry: Geometry,
    /// One bit for each piece: whether it has memory. Writes share the lock and set bits; discards
    /// hold it exclusively and clear them.
    marks: RwLock<Box<[Chunk]>>,
    used: AtomicU64,
    refused: AtomicU64,
    room: Arc<Room>,
}

/// `lease:TERMS:memory:SIZE`.
pub(crate) static KIND: Kind = Kind {
    scheme: "lease",
    example: "lease:ttl=60s,quota=4GiB:",
    remedy: "write lease:ttl=TIME,quota=SIZE:memory:SIZE, either term or both, \
        e.g. lease:ttl=60s,quota=4GiB:memory:64GiB",
    parse: Parse::Around(named),
};

/// The parsed device, not yet open.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    ttl: Duration,
    quota: Option<Bytes>,
    inner: BackendUri,
}

// Parses the terms of `lease:TERMS:`.
fn named(place: &str) -> Result<Around, String> {
    let (mut ttl, mut quota) = (TTL, None);
    for term in place.split(',') {
        match term.split_once('=').unwrap_or((term, "")) {
            ("ttl", time) => ttl = time.parse().map_err(|error| format!("ttl: {error}"))?,
            ("quota", size) => {
                let size: Bytes = size.parse().map_err(|error| format!("quota: {error}"))?;
                quota = Some(size);
            }
            _ => return Err(format!("a lease has no term {term:?}")),
        }
    }
    if ttl < TTL_LEAST || ttl > TTL_MOST {
        return Err(format!("ttl {ttl}: 100 ms to 24 h"));
    }
    Ok(Box::new(move |inner| {
        let Some((total, _)) = inner.memory() else {
            return Err("only memory:SIZE can be leased".to_owned());
        };
        let most = quota.unwrap_or(total);
        if most > total || most.get() < PIECE {
            return Err(format!("quota {most}: 4 KiB to the {total} of the memory"));
        }
        Ok(BackendUri::new(Named { ttl, quota, inner }))
    }))
}

impl Device for Named {
    fn open(&self, _claim: Claim) -> Result<Arc<dyn Backend>, OpenError> {
        let (total, block_shift) = self.inner.memory().expect("it was looked at");
        let quota = self.quota.unwrap_or(total);
        Ok(Arc::new(LeaseBackend(Lease::new(self.ttl, total.get(), quota.get(), block_shift))))
    }

    fn inside(&self) -> Option<&BackendUri> {
        Some(&self.inner)
    }

    fn is_leased(&self) -> bool {
        true
    }

    fn equals(&self, other: &dyn Any) -> bool {
        same(self, other)
    }
}

impl LeaseBackend {
    /// The device of `lease`.
    #[must_use]
    pub const fn new(lease: Lease) -> Self {
        Self(lease)
    }
}

impl Backend for LeaseBackend {
    fn geometry(&self) -> Geometry {
        geometry(&self.0)
    }

    fn is_immediate(&self) -> bool {
        true
    }

    // No host is served this device, so every request fails.
    fn start(&self, _request: &Request, _data: &mut [u8], _now_ns: u64) -> Start {
        Start::done(Err(Failure::WriteProtected))
    }

    fn lease(&self) -> Option<&Lease> {
        Some(&self.0)
    }
}

impl ViewBackend {
    /// The disk of a new host, all zeros.
    ///
    /// # Errors
    /// When the kernel cannot reserve the address space.
    pub fn new(lease: &Lease) -> sys::Result<Self> {
        let words = lease.quota_bytes().div_ceil(PIECE * WORD);
        let chunks = words.div_ceil(WORDS as u64);
        let marks = (0..chunks).map(|_| OnceLock::new()).collect();
        Ok(Self {
            memory: SharedMemory::new(index(lease.quota_bytes()))?,
            geometry: geometry(lease),
            marks: RwLock::new(marks),
            used: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            room: Arc::clone(&lease.room),
        })
    }

    /// How many writes of its host found no memory.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    // Calls `act` with the word and the bit of each piece from `first` to before `end`.
    fn each(marks: &[Chunk], [first, end]: [u64; 2], mut act: impl FnMut(&AtomicU64, u64)) {
        for piece in first..end {
            let word = index(piece / WORD);
            let chunk =
                marks[word / WORDS].get_or_init(|| (0..WORDS).map(|_| AtomicU64::new(0)).collect());
            act(&chunk[word % WORDS], 1 << (piece % WORD));
        }
    }

    // Allocates the pieces of a range that have no memory, then calls `write`.
    fn write(&self, [offset, length]: [u64; 2], write: impl FnOnce()) -> Result<(), Failure> {
        let pieces = [offset / PIECE, (offset + length).div_ceil(PIECE)];
        let marks = self.marks.read().unwrap_or_else(PoisonError::into_inner);
        let mut missing = 0;
        Self::each(&marks, pieces, |word, bit| {
            missing += u64::from(word.load(Ordering::Relaxed) & bit == 0);
        });
        // Memory is taken before a mark is set, so that nothing must be undone if there is too
        // little.
        if missing > 0 && !self.room.take(missing * PIECE) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            self.room.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Failure::NoSpace);
        }
        let mut marked = 0;
        if missing > 0 {
            Self::each(&marks, pieces, |word, bit| {
                marked += u64::from(word.fetch_or(bit, Ordering::Relaxed) & bit == 0);
            });
        }
        // Releases memory for pieces that another write has marked meanwhile.
        self.room.give((missing - marked) * PIECE);
        self.used.fetch_add(marked * PIECE, Ordering::Relaxed);
        write();
        Ok(())
    }

    // Zeros a range, step by step, and frees the memory of its whole pieces.
    fn discard(&self, [offset, length]: [u64; 2]) {
        let (mut at, end) = (offset, offset + length);
        while at < end {
            let next = end.min((at / GIVEN_AT_ONCE + 1) * GIVEN_AT_ONCE);
            self.discard_some([at, next]);
            at = next;
        }
    }

    // One step of `discard`.
    fn discard_some(&self, [start, end]: [u64; 2]) {
        let marks = self.marks.write().unwrap_or_else(PoisonError::into_inner);
        let whole = [start.div_ceil(PIECE), end / PIECE];
        let mut given = 0;
        Self::each(&marks, whole, |word, bit| {
            given += u64::from(word.fetch_and(!bit, Ordering::Relaxed) & bit != 0);
        });
        // Zeros part of a piece, unless the piece has no memory and so holds zeros already.
        let part = |from: u64, to: u64| {
            if from == to {
                return;
            }
            let mut is_there = false;
            let piece = from / PIECE;
            Self::each(&marks, [piece, piece + 1], |word, bit| {
                is_there = word.load(Ordering::Relaxed) & bit != 0;
            });
            if is_there {
                self.memory.zero(index(from), index(to - from));
            }
        };
        let [first, last] = whole.map(|piece| piece * PIECE);
        if first >= last {
            // No whole piece: the range lies in one piece, or in two neighbors.
            let middle = first.clamp(start, end);
            part(start, middle);
            part(middle, end);
            return;
        }
        part(start, first);
        self.memory.discard(index(first), index(last - first));
        part(last, end);
        self.used.fetch_sub(given * PIECE, Ordering::Relaxed);
        self.room.give(given * PIECE);
    }
}

impl Drop for ViewBackend {
    fn drop(&mut self) {
        self.room.give(self.used.load(Ordering::Relaxed));
    }
}

// Never saturates: offsets and lengths are checked against a size that fits into `usize`.
fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

// The geometry of a view.
const fn geometry(lease: &Lease) -> Geometry {
    Geometry {
        block_shift: lease.block_shift,
        block_count: lease.quota_bytes() >> lease.block_shift,
        optimal_bytes: 4096,
        atomic_bytes: 1 << lease.block_shift,
        is_read_only: false,
    }
}

impl Backend for ViewBackend {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn is_immediate(&self) -> bool {
        true
    }

    fn start(&self, request: &Request, data: &mut [u8], _now_ns: u64) -> Start {
        let place = [request.offset, request.length];
        let [offset, length] = place.map(index);
        let result = match request.operation {
            Operation::Read => {
                self.memory.read(offset, data);
                Ok(())
            }
            Operation::Write { .. } => self.write(place, || self.memory.write(offset, data)),
            // Memory has no medium to flush to.
            Operation::Flush => Ok(()),
            Operation::Zero { deallocates: false, .. } => {
                self.write(place, || self.memory.zero(offset, length))
            }
            Operation::Zero { deallocates: true, .. } | Operation::Discard => {
                self.discard(place);
                Ok(())
            }
        };
        Start::done(result)
    }

    fn append(&self, request: &Request, out: &mut Vec<u8>, _now_ns: u64) -> Start {
        self.memory.append(index(request.offset), index(request.length), out);
        Start::done(Ok(()))
    }

    fn used_bytes(&self) -> Option<u64> {
        Some(self.used.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::Work;

    const VIEW: u64 = 32 * PIECE;
    const TOTAL: u64 = 40 * PIECE;

    fn lease() -> Lease {
        Lease::new(Duration::from_ms(1000), TOTAL, VIEW, 9)
    }

    fn ask(view: &ViewBackend, operation: Operation, place: [u64; 2], data: &mut [u8]) -> bool {
        let [offset, length] = place;
        let start = view.start(&Request { operation, offset, length }, data, 0);
        let Work::Done(result) = start.work else { panic!("it waits for nothing") };
        assert!(matches!(result, Ok(()) | Err(Failure::NoSpace)), "{result:?}");
        result.is_ok()
    }

    /// What is asked of one of two views.
    #[derive(Debug, Clone)]
    enum Step {
        Write(u8),
        Zero,
        Discard,
    }

    fn step() -> impl Strategy<Value = (usize, Step, u64, u64)> {
        let step = prop_oneof![
            4 => (1..=255_u8).prop_map(Step::Write),
            1 => Just(Step::Zero),
            3 => Just(Step::Discard),
        ];
        let blocks = VIEW / 512;
        (0..2_usize, step, 0..blocks, 1..120_u64).prop_map(move |(view, step, first, count)| {
            (view, step, first * 512, count.min(blocks - first) * 512)
        })
    }

    proptest! {
        /// Two views and a map from piece to bytes for each: bytes, what each has, and what both
        /// have are always equal, and a write ends well exactly if there is room for it.
        #[test]
        fn views_are_alone_and_counted(steps in prop::collection::vec(step(), 1..60)) {
            let lease = lease();
            let view = || ViewBackend::new(&lease).expect("there is room");
            let views = [view(), view()];
            let mut models: [BTreeMap<u64, Vec<u8>>; 2] = Default::default();
            for (number, step, offset, length) in steps {
                let have: usize = models.iter().map(BTreeMap::len).sum();
                let model = &mut models[number];
                let pieces = offset / PIECE..(offset + length).div_ceil(PIECE);
                let view = &views[number];
                match step {
                    Step::Write(_) | Step::Zero => {
                        let byte = if let Step::Write(byte) = step { byte } else { 0 };
                        let new = pieces.clone().filter(|one| !model.contains_key(one)).count();
                        let fits = (have + new) as u64 * PIECE <= TOTAL;
                        let (operation, mut data) = match step {
                            Step::Write(_) => {
                                (Operation::Write { forced: false }, vec![byte; index(length)])
                            }
                            _ => (Operation::Zero { deallocates: false, forced: false }, vec![]),
                        };
                        let done = ask(view, operation, [offset, length], &mut data);
                        prop_assert_eq!(done, fits);
                        if fits {
                            for piece in pieces {
                                model.entry(piece).or_insert_with(|| vec![0; 4096]);
                            }
                            fill(model, [offset, length], byte);
                        }
                    }
                    Step::Discard => {
                        ask(view, Operation::Discard, [offset, length], &mut []);
                        fill(model, [offset, length], 0);
                        let whole = offset.div_ceil(PIECE)..(offset + length) / PIECE;
                        model.retain(|piece, _| !whole.contains(piece));
                    }
                }
                let bytes = models.each_ref().map(|model| model.len() as u64 * PIECE);
                prop_assert_eq!(lease.used_bytes(), bytes.iter().sum::<u64>());
                for (view, (model, bytes)) in views.iter().zip(models.iter().zip(bytes)) {
                    prop_assert_eq!(view.used_bytes(), Some(bytes));
                    let mut read = vec![1; index(VIEW)];
                    ask(view, Operation::Read, [0, VIEW], &mut read);
                    for (piece, read) in (0..).zip(read.chunks(4096)) {
                        let zeros = vec![0; 4096];
                        prop_assert_eq!(read, &model.get(&piece).unwrap_or(&zeros)[..]);
                    }
                }
            }
            drop(views);
            prop_assert_eq!(lease.used_bytes(), 0);
        }
    }

    // Of pieces that are there.
    fn fill(model: &mut BTreeMap<u64, Vec<u8>>, [offset, length]: [u64; 2], byte: u8) {
        for (piece, bytes) in model.range_mut(offset / PIECE..) {
            let start = piece * PIECE;
            let [from, to] = [offset.max(start), (offset + length).min(start + PIECE)];
            if from < to {
                bytes[index(from - start)..index(to - start)].fill(byte);
            }
        }
    }

    /// The last piece of a view is at the end of its marks.
    #[test]
    fn a_view_ends_where_its_marks_end() {
        let bytes = PIECE * WORD * WORDS as u64;
        let lease = Lease::new(Duration::from_ms(1000), bytes, bytes, 9);
        let view = ViewBackend::new(&lease).expect("there is room");
        let place = [bytes - PIECE, PIECE];
        assert!(ask(&view, Operation::Write { forced: false }, place, &mut [1; 4096]));
        assert_eq!(lease.used_bytes(), PIECE);
        ask(&view, Operation::Discard, [0, bytes], &mut []);
        assert_eq!(lease.used_bytes(), 0);
    }

    /// Writes of one view by many threads count each piece once.
    #[test]
    fn threads_count_a_piece_once() {
        let lease = Lease::new(Duration::from_ms(1000), VIEW, VIEW, 12);
        let view = ViewBackend::new(&lease).expect("there is room");
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let view = &view;
                scope.spawn(move || {
                    for round in 0..2000_u64 {
                        let piece = (round * 7 + thread) % 32;
                        let place = [piece * PIECE, PIECE];
                        let done = match (round + thread) % 3 {
                            0 => ask(view, Operation::Discard, place, &mut []),
                            _ => {
                                let write = Operation::Write { forced: false };
                                ask(view, write, place, &mut [9; 4096])
                            }
                        };
                        // Another may hold room for a moment that it gives back.
                        let _full = done;
                    }
                });
            }
        });
        let mut read = vec![0; index(VIEW)];
        ask(&view, Operation::Read, [0, VIEW], &mut read);
        let there = read.chunks(4096).filter(|piece| piece[0] == 9).count() as u64;
        assert_eq!(view.used_bytes(), Some(there * PIECE));
        assert_eq!(lease.used_bytes(), there * PIECE);
        ask(&view, Operation::Discard, [0, VIEW], &mut []);
        assert_eq!(lease.used_bytes(), 0);
    }
}
