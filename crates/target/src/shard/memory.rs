//! Freeing of memory to the system once hosts have gone.

use crate::mail::Message;
use crate::slab;

use super::Shard;

/// Approximate bytes of an idle connection.
const CONNECTION_BYTES: usize = 5 << 10;

impl Shard {
    /// Approximate bytes of memory that connections and their data take.
    pub(super) fn weight(&self) -> usize {
        let connections = self.connections.len() - self.free.len();
        self.pool.held() + connections * CONNECTION_BYTES
    }

    /// Has every shard free unused memory: shards share heap pages, which are released only when
    /// all have freed theirs.
    pub(super) fn all_give_back(&mut self) {
        self.give_back();
        self.others().for_each(|peer| peer.tell(Message::GiveBack));
    }

    /// Frees unused memory of this shard to the system.
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
