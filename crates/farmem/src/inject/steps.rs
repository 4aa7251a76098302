//! The supervisor's steps of an injection.

use sys::remote::Remote;
use sys::seccomp::Notification;

use super::{EFAULT, ENOMEM, EPERM, Injection, SYSCALL, WAY_IN, free_place, way_in};
use crate::RunError;
use crate::images::Reason;
use crate::loader::Loader;
use crate::supervisor::Supervisor;

impl Supervisor<'_> {
    /// Diverts an image's first call to our code. Returns whether that worked.
    pub(crate) fn inject(&mut self, tgid: u32, call: &Notification) -> Result<bool, RunError> {
        match self.divert(tgid, call) {
            Ok(injection) => {
                self.programs.injections.insert(tgid, injection);
                self.kernel.listener.answer(call.id, 0)?;
                Ok(true)
            }
            Err(reason) => {
                self.programs.images.unmanaged(tgid, reason);
                Ok(false)
            }
        }
    }

    // Overwrites the instructions behind the call with our code; the error says why not.
    fn divert(&self, tgid: u32, call: &Notification) -> Result<Injection, Reason> {
        let threads = std::fs::read_dir(format!("/proc/{tgid}/task")).map(Iterator::count);
        if threads.unwrap_or(0) != 1 || call.tid != tgid {
            return Err(Reason::new("it had started threads before its first call for memory"));
        }
        let remote = Remote::open(tgid).map_err(|error| Reason::out_of_reach(&error))?;
        let refused = |error: sys::Error| Reason::out_of_reach(&error);
        let mut instruction = [0_u8; 2];
        remote.read(&mut instruction, call.return_to.wrapping_sub(2)).map_err(refused)?;
        if instruction != SYSCALL {
            return Err(Reason::new("it makes system calls in a way that is not known"));
        }
        let mut replaced = [0_u8; WAY_IN.len()];
        remote.read(&mut replaced, call.return_to).map_err(refused)?;
        let bytes = self.programs.object.bytes();
        let base = free_place(tgid, bytes)
            .ok_or_else(|| Reason::new("it has no room for the helper among its addresses"))?;
        remote.write(&way_in(base, bytes, call.nr), call.return_to).map_err(refused)?;
        let (behind, loader) = (call.return_to, Loader::of(tgid, call.return_to));
        Ok(Injection { remote, replaced, behind, base, loader, failed: None })
    }

    /// Writes the object into the room that the diverted thread has mapped, and answers its entry.
    pub(crate) fn fill(&mut self, tgid: u32, call: &Notification) -> Result<(), RunError> {
        let Some(injection) = self.programs.injections.get_mut(&tgid).filter(|_| call.tid == tgid)
        else {
            return Ok(self.kernel.listener.answer(call.id, -EPERM)?);
        };
        if call.args[2] != injection.base {
            let why = "it had no memory for the helper: is its address space limited?";
            injection.fail(Reason::new(why));
            return Ok(self.kernel.listener.answer(call.id, -ENOMEM)?);
        }
        for (at, page) in self.programs.object.at(injection.base) {
            if let Err(error) = injection.remote.write(&page, at) {
                injection.fail(Reason::out_of_reach(&error));
                return Ok(self.kernel.listener.answer(call.id, -EFAULT)?);
            }
        }
        let entry = injection.base + self.programs.object.entry();
        Ok(self.kernel.listener.answer(call.id, entry.cast_signed())?)
    }

    /// Restores a diverted thread's instructions, and notes why its image is not managed, if so.
    pub(crate) fn settle(&mut self, tgid: u32) {
        let Some(injection) = self.programs.injections.remove(&tgid) else {
            return;
        };
        if let Err(error) = injection.remote.write(&injection.replaced, injection.behind) {
            // The process must not go on among instructions that are not its own.
            let _gone = sys::process::kill(tgid, crate::signal::SIGKILL);
            self.books.totals.warn(&format!("process {tgid} was ended: {error}"));
        }
        if self.people.slots.contains_key(&tgid) {
            return;
        }
        let reason = injection.failed.unwrap_or_else(|| Reason::new("its helper did not start"));
        self.programs.images.unmanaged(tgid, reason);
    }
}
