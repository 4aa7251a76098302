//! The sessions of a shard, and actions that wait until commands of sessions have ended.
//!
//! The caller takes a session out while it works with it, so that it can borrow the others too.

use crate::slab;

use super::ending::Then;
use super::session::IscsiSession;

/// An action that is due once commands, here and on other shards, have ended.
#[derive(Debug)]
struct Wait {
    number: u64,
    /// Commands, and other shards, that have yet to end.
    left: usize,
    then: Then,
}

/// See the module's description.
#[derive(Default)]
pub(crate) struct Sessions {
    places: Vec<Option<Box<IscsiSession>>>,
    free: Vec<u32>,
    waits: Vec<Wait>,
    next_wait: u64,
    next_serial: u64,
    /// Connections that wait for another session to end before theirs begins.
    pub(crate) entering: Vec<u32>,
}

impl Sessions {
    /// A number that no other session of this shard has.
    pub(crate) const fn serial(&mut self) -> u64 {
        self.next_serial += 1;
        self.next_serial
    }

    /// Stores a new session. Returns its slot.
    pub(crate) fn add(&mut self, session: Box<IscsiSession>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            u32::try_from(self.places.len() - 1).expect("sessions are bounded")
        });
        self.places[slot as usize] = Some(session);
        slot
    }

    /// Takes a session out, to be put back; `None` if the slot has none.
    pub(crate) fn take(&mut self, slot: u32) -> Option<Box<IscsiSession>> {
        self.places.get_mut(slot as usize)?.take()
    }

    /// Puts a session back.
    pub(crate) fn put(&mut self, slot: u32, session: Box<IscsiSession>) {
        if let Some(place) = self.places.get_mut(slot as usize) {
            *place = Some(session);
        }
    }

    /// Frees the memory of free slots at the end.
    pub(crate) fn shrink(&mut self) {
        slab::shrink(&mut self.places, &mut self.free);
    }

    /// Frees the slot of a session that was taken out and has ended.
    pub(crate) fn remove(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// The session of a slot; `None` if there is none or it is taken out.
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut IscsiSession> {
        self.places.get_mut(slot as usize)?.as_deref_mut()
    }

    /// The slot of the session with this TSIH, unless that is taken out.
    pub(crate) fn find(&self, tsih: u16) -> Option<u32> {
        let is = |place: &Option<Box<IscsiSession>>| {
            place.as_ref().is_some_and(|session| session.tsih == tsih)
        };
        self.places.iter().position(is).and_then(|slot| u32::try_from(slot).ok())
    }

    /// All slots, whether their sessions are taken out or not.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32::try_from(self.places.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut IscsiSession> {
        self.places.iter_mut().flatten().map(|session| &mut **session)
    }

    /// Registers `then`, to be done once `others` other shards have reported and all commands that
    /// [`Self::wait_more`] adds have ended. Returns its number. The caller itself calls
    /// [`Self::ended`] once, when it has added all commands.
    pub(crate) fn wait(&mut self, then: Then, others: usize) -> u64 {
        self.next_wait += 1;
        // One more, for the caller.
        self.waits.push(Wait { number: self.next_wait, left: others + 1, then });
        self.next_wait
    }

    /// Adds commands that must end before a wait is over.
    pub(crate) fn wait_more(&mut self, number: u64, commands: usize) {
        if let Some(wait) = self.waits.iter_mut().find(|wait| wait.number == number) {
            wait.left += commands;
        }
    }

    /// Counts the end of a command, or of another shard. Returns what is due if that was the last.
    pub(crate) fn ended(&mut self, number: u64) -> Option<Then> {
        let index = self.waits.iter().position(|wait| wait.number == number)?;
        self.waits[index].left -= 1;
        (self.waits[index].left == 0).then(|| self.waits.swap_remove(index).then)
    }
}
