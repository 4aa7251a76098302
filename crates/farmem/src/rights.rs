//! A program becomes another user, or drops capabilities: its helper does so first.
//!
//! A helper with more rights than its program would be a way to get them. So the helper makes a
//! call that changes rights before the program does; what the helper cannot do, the program cannot
//! do either.

use sys::seccomp::Notification;

use super::RunError;
use super::arena::Arena;
use super::pending::Pending;
use super::protocol::command;
use super::supervisor::Supervisor;
use sys::nr;

impl Supervisor<'_> {
    /// Has the helper of `slot` change its rights as the program is about to.
    pub(crate) fn follow(
        &mut self,
        slot: usize,
        tgid: u32,
        call: &Notification,
    ) -> Result<(), RunError> {
        let pending = Pending::Follow { id: call.id };
        let sent = match self.people.arenas[slot].as_mut() {
            // A process that only borrows the memory changes its own rights alone.
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
            // The process ends, and the caller with it.
            self.kernel.listener.proceed(call.id)?;
        }
        Ok(())
    }
}

// The lower half of the capabilities that a `capset` permits. `None` if they cannot be read.
fn permitted(arena: &Arena, call: &Notification) -> Option<u64> {
    const PERMITTED_AT: u64 = 4;
    let mut mask = [0_u8; 4];
    arena.read(&mut mask, call.args[1].wrapping_add(PERMITTED_AT), call.tid).ok()?;
    Some(u64::from(u32::from_ne_bytes(mask)))
}
