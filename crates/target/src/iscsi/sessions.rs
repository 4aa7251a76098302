//! The sessions of a shard, and what waits for commands of theirs to end.
//!
//! A session is taken out while something is done with it, so that it can be handed the rest.

use crate::slab;

use super::ending::Then;
use super::session::IscsiSession;

#[derive(Debug)]
struct Wait {
    number: u64,
    /// Commands, and other shards, that have not ended it.
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

    /// Keeps a new session; its place.
    pub(crate) fn add(&mut self, session: Box<IscsiSession>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            u32::try_from(self.places.len() - 1).expect("sessions are bounded")
        });
        self.places[slot as usize] = Some(session);
        slot
    }

    /// Takes a session out; it is to be put back.
    pub(crate) fn take(&mut self, slot: u32) -> Option<Box<IscsiSession>> {
        self.places.get_mut(slot as usize)?.take()
    }

    /// Puts it back.
    pub(crate) fn put(&mut self, slot: u32, session: Box<IscsiSession>) {
        if let Some(place) = self.places.get_mut(slot as usize) {
            *place = Some(session);
        }
    }

    /// Frees places that nobody needs.
    pub(crate) fn shrink(&mut self) {
        slab::shrink(&mut self.places, &mut self.free);
    }

    /// The session that was taken out is over.
    pub(crate) fn remove(&mut self, slot: u32) {
        self.free.push(slot);
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut IscsiSession> {
        self.places.get_mut(slot as usize)?.as_deref_mut()
    }

    /// The session of this identifier.
    pub(crate) fn find(&self, tsih: u16) -> Option<u32> {
        let is = |place: &Option<Box<IscsiSession>>| {
            place.as_ref().is_some_and(|session| session.tsih == tsih)
        };
        self.places.iter().position(is).and_then(|slot| u32::try_from(slot).ok())
    }

    /// Places of sessions, taken or not.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32::try_from(self.places.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut IscsiSession> {
        self.places.iter_mut().flatten().map(|session| &mut **session)
    }

    /// Waits for something from now on, which `others` shards have yet to end; its number.
    pub(crate) fn wait(&mut self, then: Then, others: usize) -> u64 {
        self.next_wait += 1;
        // One more until it is known what else there is to wait for.
        self.waits.push(Wait { number: self.next_wait, left: others + 1, then });
        self.next_wait
    }

    /// So many commands more.
    pub(crate) fn wait_more(&mut self, number: u64, commands: usize) {
        if let Some(wait) = self.waits.iter_mut().find(|wait| wait.number == number) {
            wait.left += commands;
        }
    }

    /// One of them has ended; what follows if it was the last.
    pub(crate) fn ended(&mut self, number: u64) -> Option<Then> {
        let index = self.waits.iter().position(|wait| wait.number == number)?;
        self.waits[index].left -= 1;
        (self.waits[index].left == 0).then(|| self.waits.swap_remove(index).then)
    }
}
