//! Memory that several threads read and write without waiting for one another.
//!
//! Every 4096 bytes have a version, which is odd while a thread writes to them. A reader that has
//! seen a version change reads again, so within 4096 aligned bytes it gets all of a write or
//! nothing of it.
//!
//! Invariants:
//! - A version is made odd by one writer at a time, which makes it even again.
//! - Bytes are accessed by instructions that the compiler does not reason about: a reader may read
//!   while a writer writes, and drops what it has read.
//!
//! DESIGN NOTES
//!
//! * The copy is a loop of vector loads and stores. `rep movsb` takes 2 us for 4096 bytes, twenty
//!   times as long, where the destination is less than 32 bytes beyond the source modulo 4096
//!   (AMD EPYC, bytes in the cache). A page that is copied behind the header of an answer is such
//!   a case.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::Result;
use crate::error::During;

/// The unit of an atomic write, in bytes.
const PIECE: usize = 4096;
/// How many versions there are; pieces share them.
const VERSIONS: usize = 4096;
/// Polls of an odd version before the thread yields.
const SPINS: u32 = 200;

/// Memory of zeros at first; pages that were never written to take no memory.
pub struct SharedMemory {
    start: NonNull<u8>,
    bytes: usize,
    versions: Box<[AtomicU32]>,
}

impl SharedMemory {
    /// Memory of `bytes` zeros (at least 1).
    ///
    /// # Errors
    /// If the address space or the commit limit does not suffice.
    #[expect(unsafe_code, reason = "maps memory")]
    pub fn new(bytes: usize) -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }
            .during("reserve memory")?;
        // SAFETY: it is the mapping just made. Huge pages are optional; without them it is slower.
        let _slower = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        let start = NonNull::new(start.cast()).expect("a mapping is not at zero");
        let versions = (0..VERSIONS).map(|_| AtomicU32::new(0)).collect();
        Ok(Self { start, bytes, versions })
    }

    /// The size in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Always false: a size is at least 1.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Reads `into.len()` bytes from `offset` on.
    ///
    /// # Panics
    /// If these are not all inside.
    #[expect(unsafe_code, reason = "uninitialised bytes are never read")]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        // SAFETY: the same bytes, of which `read_to` writes all and reads none.
        let into = unsafe { &mut *(std::ptr::from_mut(into) as *mut [MaybeUninit<u8>]) };
        self.read_to(offset, into);
    }

    /// Appends `bytes` bytes from `offset` on to `into`.
    ///
    /// # Panics
    /// If they are not all inside.
    #[expect(unsafe_code, reason = "makes a vector longer without filling it first")]
    pub fn append(&self, offset: usize, bytes: usize, into: &mut Vec<u8>) {
        into.reserve(bytes);
        let length = into.len() + bytes;
        self.read_to(offset, &mut into.spare_capacity_mut()[..bytes]);
        // SAFETY: there is room, and all of it has been written to.
        unsafe { into.set_len(length) };
    }

    // Reads from `offset` on, and writes to all of `into`.
    fn read_to(&self, offset: usize, into: &mut [MaybeUninit<u8>]) {
        self.check(offset, into.len());
        let mut at = offset;
        let mut rest = into;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at_mut(rest.len().min(PIECE - at % PIECE));
            let version = self.version(at);
            loop {
                let before = stable(version);
                self.copy_out(at, piece);
                fence(Ordering::Acquire);
                if version.load(Ordering::Relaxed) == before {
                    break;
                }
            }
            at += piece.len();
            rest = after;
        }
    }

    /// Writes `from` at `offset`.
    ///
    /// # Panics
    /// If that is not all inside.
    pub fn write(&self, offset: usize, from: &[u8]) {
        self.check(offset, from.len());
        let mut at = offset;
        let mut rest = from;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(PIECE - at % PIECE));
            self.change(at, || self.copy_in(at, piece));
            at += piece.len();
            rest = after;
        }
    }

    /// Sets `bytes` bytes from `offset` on to zero.
    ///
    /// # Panics
    /// If that is not all inside.
    pub fn zero(&self, offset: usize, bytes: usize) {
        const ZEROS: [u8; PIECE] = [0; PIECE];
        self.check(offset, bytes);
        let end = offset + bytes;
        let mut at = offset;
        while at < end {
            let length = (end - at).min(PIECE - at % PIECE);
            self.change(at, || self.copy_in(at, &ZEROS[..length]));
            at += length;
        }
    }

    /// As [`SharedMemory::zero`], and frees whole pages. A concurrent reader may get some of the
    /// old bytes.
    ///
    /// # Panics
    /// If that is not all inside.
    #[expect(unsafe_code, reason = "gives pages back")]
    pub fn discard(&self, offset: usize, bytes: usize) {
        self.check(offset, bytes);
        let end = offset + bytes;
        let [first, last] = [offset.next_multiple_of(PIECE), end / PIECE * PIECE];
        if first >= last {
            return self.zero(offset, bytes);
        }
        self.zero(offset, first - offset);
        self.zero(last, end - last);
        // SAFETY: whole pages inside the mapping, which then read as zeros.
        let given = unsafe {
            let start = self.start.as_ptr().add(first);
            madvise(start.cast(), last - first, Advice::LinuxDontNeed)
        };
        if given.is_err() {
            self.zero(first, last - first);
        }
    }

    /// Panics if the range is not inside.
    fn check(&self, offset: usize, bytes: usize) {
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(is_inside, "{bytes} bytes at {offset} are not inside {}", self.bytes);
    }

    /// The version of the piece at `at`.
    fn version(&self, at: usize) -> &AtomicU32 {
        &self.versions[at / PIECE % VERSIONS]
    }

    /// Runs `copy`, which writes within the piece at `at`, while its version is odd.
    fn change(&self, at: usize, copy: impl FnOnce()) {
        let version = self.version(at);
        let mut before = stable(version);
        while let Err(_other) = version.compare_exchange_weak(
            before,
            before.wrapping_add(1),
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            before = stable(version);
        }
        fence(Ordering::Release);
        copy();
        version.store(before.wrapping_add(2), Ordering::Release);
    }

    /// Copies from `at` to `into`.
    #[expect(unsafe_code, reason = "reads what others may be writing")]
    fn copy_out(&self, at: usize, into: &mut [MaybeUninit<u8>]) {
        // SAFETY: checked to be inside, and `into` is as long.
        unsafe { copy(self.start.as_ptr().add(at), into.as_mut_ptr().cast(), into.len()) }
    }

    /// Copies `from` to `at`.
    #[expect(unsafe_code, reason = "writes what others may be reading")]
    fn copy_in(&self, at: usize, from: &[u8]) {
        // SAFETY: checked to be inside, and `from` is as long.
        unsafe { copy(from.as_ptr(), self.start.as_ptr().add(at), from.len()) }
    }
}

/// Waits until no thread writes under a version. Returns the version.
fn stable(version: &AtomicU32) -> u32 {
    let mut looks = 0;
    loop {
        let now = version.load(Ordering::Acquire);
        if now.is_multiple_of(2) {
            return now;
        }
        looks += 1;
        if looks % SPINS == 0 {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

/// Copies bytes that other threads may access meanwhile.
#[expect(unsafe_code, reason = "the compiler may not assume that nobody else touches the bytes")]
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's: both are valid for this many bytes and do not overlap. The direction
    // flag is clear by the calling convention.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "jmp 3f",
            "2:",
            "movups {one}, [rsi]",
            "movups {two}, [rsi + 16]",
            "movups {three}, [rsi + 32]",
            "movups {four}, [rsi + 48]",
            "movups [rdi], {one}",
            "movups [rdi + 16], {two}",
            "movups [rdi + 32], {three}",
            "movups [rdi + 48], {four}",
            "add rsi, 64",
            "add rdi, 64",
            "sub rcx, 64",
            "3:",
            "cmp rcx, 64",
            "jae 2b",
            "rep movsb",
            one = out(xmm_reg) _,
            two = out(xmm_reg) _,
            three = out(xmm_reg) _,
            four = out(xmm_reg) _,
            inout("rcx") bytes => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for index in 0..bytes {
        // SAFETY: as above.
        unsafe { to.add(index).write_volatile(from.add(index).read_volatile()) }
    }
}

impl Drop for SharedMemory {
    #[expect(unsafe_code, reason = "unmaps what was mapped")]
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; nothing borrows it any more.
        let _kept = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

// SAFETY: it owns its mapping.
#[expect(unsafe_code, reason = "an owned mapping may change threads")]
unsafe impl Send for SharedMemory {}
// SAFETY: shared bytes are touched only as the module's description says.
#[expect(unsafe_code, reason = "made to be shared")]
unsafe impl Sync for SharedMemory {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let memory = SharedMemory::new(64 << 10).expect("there is memory");
        assert!(!memory.is_empty());
        memory.write(4000, &[7; 5000]);
        let mut bytes = vec![1; 64 << 10];
        memory.read(0, &mut bytes);
        assert!(
            bytes
                .iter()
                .enumerate()
                .all(|(at, &byte)| { byte == if (4000..9000).contains(&at) { 7 } else { 0 } })
        );
        memory.zero(4100, 10);
        memory.discard(4500, 4400);
        memory.read(0, &mut bytes);
        let kept = |at: usize| match at {
            4000..4100 | 4110..4500 | 8900..9000 => 7,
            _ => 0,
        };
        assert!(bytes.iter().enumerate().all(|(at, &byte)| byte == kept(at)));
    }

    #[test]
    fn what_is_appended_is_read_behind_what_was_there() {
        let memory = SharedMemory::new(64 << 10).expect("there is memory");
        memory.write(4000, &[7; 5000]);
        let mut bytes = vec![1; 3];
        memory.append(3999, 5002, &mut bytes);
        assert_eq!(bytes.len(), 5005);
        assert_eq!(bytes[..5], [1, 1, 1, 0, 7]);
        assert_eq!(bytes[5002..], [7, 7, 0]);
        assert!(bytes[4..5004].iter().all(|&byte| byte == 7));
    }

    #[test]
    fn every_length_is_copied_from_and_to_every_place() {
        let memory = SharedMemory::new(4096).expect("there is memory");
        let all: Vec<u8> = (0..400_u32).map(|at| at.wrapping_mul(37).to_le_bytes()[0]).collect();
        for from in 0..20 {
            for bytes in 0..200 {
                memory.zero(0, 4096);
                memory.write(from + 1, &all[from..from + bytes]);
                let mut copied = [0xee; 240];
                memory.read(from + 1, &mut copied[3..3 + bytes]);
                assert_eq!(copied[3..3 + bytes], all[from..from + bytes]);
                let around = [&copied[..3], &copied[3 + bytes..]].concat();
                assert!(around.iter().all(|&byte| byte == 0xee), "{bytes} bytes at {from}");
                let mut stored = [0; 4096];
                memory.read(0, &mut stored);
                assert_eq!(stored[from], 0, "before {bytes} bytes at {from}");
                let after = &stored[from + 1 + bytes..];
                assert!(after.iter().all(|&byte| byte == 0), "after {bytes} bytes at {from}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "10 bytes at 65530 are not inside 65536")]
    fn nothing_outside_is_touched() {
        SharedMemory::new(64 << 10).expect("there is memory").read(65530, &mut [0; 10]);
    }

    // Two writers of one piece, each with bytes of its own, beside a reader.
    #[test]
    fn a_piece_is_written_whole_or_not_at_all() {
        let memory = SharedMemory::new(16 << 10).expect("there is memory");
        std::thread::scope(|scope| {
            for value in [1, 2] {
                let memory = &memory;
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        memory.write(4096, &[value; 4096]);
                    }
                });
            }
            let mut bytes = [0; 4096];
            for _ in 0..20_000 {
                memory.read(4096, &mut bytes);
                assert!(bytes.iter().all(|&byte| byte == bytes[0]), "some of two writes");
            }
        });
    }
}
