//! Which ports are to be served, now or when they are free.
//!
//! A port is called when a packet is queued there, or when its host's transport awaits the link:
//! then the transport is asked for a packet when the link is free, and not before.

use measure::Instant;

use super::Net;
use crate::event::{Order, SERVE, What};

impl Net<'_> {
    /// Registers that the transport has something to send from `host` when the link is free.
    #[inline]
    pub(crate) fn await_link(&mut self, host: u32) {
        self.ports[host as usize].is_awaited = true;
        self.call(host);
    }

    /// Registers that the transport has no more to send from `host`.
    #[inline]
    pub(crate) fn leave_link(&mut self, host: u32) {
        self.ports[host as usize].is_awaited = false;
    }

    /// Whether a port has an empty queue and its host's transport has something to send.
    #[inline]
    pub(crate) fn is_awaited(&self, port: u32) -> bool {
        let port = &self.ports[port as usize];
        port.is_awaited && port.queue.is_empty()
    }

    /// Has a port served as soon as it is free; nothing if that is due already.
    #[inline]
    pub(super) fn call(&mut self, index: u32) {
        let port = &mut self.ports[index as usize];
        if port.is_called {
            return;
        }
        port.is_called = true;
        let serve = What::Serve { port: index };
        if self.order == Order::Heap {
            (port.free_at, port.free_sum) = (self.now, self.now_sum);
            self.events.add_published(self.now, self.now_sum, serve);
        } else if port.free_at <= self.now {
            self.called.push(index);
        } else {
            self.events.add(port.free_at, serve);
        }
    }

    /// Whether ports were called at this instant and have not been served.
    #[inline]
    pub(crate) const fn has_called(&self) -> bool {
        !self.called.is_empty()
    }

    /// Whether called ports must be served before an event of `at` and `phase`.
    #[inline]
    pub(crate) fn must_serve(&self, at: Instant, phase: u8) -> bool {
        self.has_called() && (at > self.now || phase >= SERVE)
    }

    /// The port that was called as number `place` at this instant; `None` beyond the last.
    #[inline]
    pub(crate) fn called(&self, place: usize) -> Option<u32> {
        self.called.get(place).copied()
    }

    /// Forgets the called ports once all have been served.
    #[inline]
    pub(crate) fn all_served(&mut self) {
        self.called.clear();
    }
}
