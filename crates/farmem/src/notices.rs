//! Warnings about programs that do what cannot work with managed memory, with the remedy.

use sys::seccomp::Notification;

use super::RunError;
use super::arena::Arena;
use super::supervisor::Supervisor;
use sys::usage::name_of;

/// The argument of a Chromium process that makes others (its zygote).
const ZYGOTE: &[u8] = b"--type=zygote";

impl Supervisor<'_> {
    /// Warns if a newly managed image is Chromium's zygote.
    pub(crate) fn notice_image(&mut self, pid: u32) {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // Chromium's zygote writes over all its arguments, with blanks between them.
        if words.split(|&byte| byte == 0 || byte == b' ').any(|word| word == ZYGOTE) {
            let name = name_of(pid);
            self.books.totals.warn_once(&format!(
                "{name} starts its zygote, which ends if it has threads that it does not know, as \
                 managed programs have: give it the flag --no-zygote, with --no-sandbox"
            ));
        }
    }

    /// Acts on `UFFDIO_REGISTER`: warns if the range is managed.
    pub(crate) fn registers(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let managed = self.people.arenas[slot].as_ref().is_some_and(|arena| {
            let pieces =
                range_of(arena, call).map(|(start, end)| arena.space.regions.pieces(start, end));
            pieces.is_some_and(|pieces| pieces.iter().any(|piece| !piece.traits.foreign))
        });
        if managed {
            let name = name_of(call.tid);
            self.books.totals.warn_once(&format!(
                "{name} handles page faults itself (UFFDIO_REGISTER), which the kernel refuses for \
                 managed memory (EBUSY): run it with --engine swap"
            ));
        }
        Ok(self.kernel.listener.proceed(call.id)?)
    }

    /// Acts on `io_uring_setup`: warns that no filter sees the ring's requests.
    pub(crate) fn sets_up_ring(&mut self, call: &Notification) -> Result<(), RunError> {
        let name = name_of(call.tid);
        self.books.totals.warn_once(&format!(
            "{name} uses io_uring, whose requests no filter sees: memory that it empties by \
             IORING_OP_MADVISE would hold its old contents; if it does that, run it with --engine \
             swap"
        ));
        Ok(self.kernel.listener.proceed(call.id)?)
    }

    /// Warns on `unshare(CLONE_NEWUSER)`, which the kernel refuses to a process with threads.
    pub(crate) fn unshares_users(&mut self, call: &Notification) -> Result<(), RunError> {
        let name = name_of(call.tid);
        self.books.totals.warn_once(&format!(
            "{name} unshares its namespace of users (CLONE_NEWUSER), which the kernel refuses to \
             managed processes (EINVAL), because they have a thread more: run it with --engine swap"
        ));
        Ok(self.kernel.listener.proceed(call.id)?)
    }
}

// The range (start, end) of a `struct uffdio_register`: address and bytes come first.
fn range_of(arena: &Arena, call: &Notification) -> Option<(u64, u64)> {
    let mut range = [[0_u8; 8]; 2];
    arena.read(range.as_flattened_mut(), call.args[2], call.tid).ok()?;
    let [start, bytes] = range.map(u64::from_ne_bytes);
    Some((start, start.saturating_add(bytes)))
}
