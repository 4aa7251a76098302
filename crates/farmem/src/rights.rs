//! The program becomes another user, or gives up capabilities: its helper does first.
//!
//! A helper that had more rights than its program would be the way to have them. So a call that
//! changes them is made by the helper before the program makes it; what the helper cannot do, the
//! program cannot do either.

use sys::seccomp::Notification;

use super::RunError;
use super::arena::Arena;
use super::pending::Pending;
use super::protocol::command;
use super::supervisor::Supervisor;
use sys::nr;

impl Supervisor<'_> {
    /// The process of `slot` is about to change its users, groups or capabilities.
    pub(crate) fn follow(
        &mut self,
        slot: usize,
        tgid: u32,
        call: &Notification,
    ) -> Result<(), RunError> {
        let pending = Pending::Follow { id: call.id };
        let sent = match self.people.arenas[slot].as_mut() {
            // One that only borrows the memory changes its own rights, not those of its parent.
            Some(arena) if arena.tgid == tgid => {
                if i64::from(call.nr) == nr::CAPSET {
                    let Some(mask) = permitted(arena, call) else {
                        return Ok(self.kernel.listener.proceed(call.id)?);
                    };
                    arena.command(command::RESTRICT, &[mask], pending)
                } else {
                    let number = u64::from(call.nr.unsigned_abs());
                    let words: Vec<u64> = [number].into_iter().chain(call.args).collect();
                    arena.command(command::FOLLOW, &words, pending)
                }
            }
            _ => return Ok(self.kernel.listener.proceed(call.id)?),
        };
        if sent.is_err() {
            // The process is on its way out; so is the caller.
            self.kernel.listener.proceed(call.id)?;
        }
        Ok(())
    }
}

// The lower half of the capabilities that a `capset` would permit; none if the kernel will refuse.
fn permitted(arena: &Arena, call: &Notification) -> Option<u64> {
    const PERMITTED_AT: u64 = 4;
    let mut mask = [0_u8; 4];
    arena.read(&mut mask, call.args[1].wrapping_add(PERMITTED_AT), call.tid).ok()?;
    Some(u64::from(u32::from_ne_bytes(mask)))
}
