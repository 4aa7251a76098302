//! Memory that comes and goes with what hosts do, and is given back once they have gone.

use crate::mail::Message;
use crate::slab;

use super::Shard;

/// Of an idle connection, about.
const CONNECTION_BYTES: usize = 5 << 10;

impl Shard {
    /// How much there is of it, about.
    pub(super) fn weight(&self) -> usize {
        let connections = self.connections.len() - self.free.len();
        self.pool.held() + connections * CONNECTION_BYTES
    }

    /// Has every shard give back what nobody needs any more: what each has freed keeps pages of
    /// the others'.
    pub(super) fn all_give_back(&mut self) {
        self.give_back();
        self.others().for_each(|peer| peer.tell(Message::GiveBack));
    }

    /// Gives back what nobody needs any more.
    pub(super) fn give_back(&mut self) {
        self.pool.shrink();
        self.connections.iter_mut().flatten().for_each(|connection| connection.shrink());
        slab::shrink(&mut self.connections, &mut self.free);
        self.due_ns.truncate(self.connections.len());
        self.due_ns.shrink_to_fit();
        self.sessions.shrink();
        self.ring.shrink();
        self.newcomers.shrink_to_fit();
        self.touched.shrink_to_fit();
        sys::block::give_back();
    }
}
