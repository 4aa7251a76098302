//! What only the variant as-published-2016 needs of the network: its sums, its events, its marks.

use measure::Duration;

use super::{Net, arrival};
use crate::event::{Timer, What};
use crate::moment::{Moment, seconds};
use crate::packet::{Kind, Packet};

impl Net<'_> {
    /// Queues a packet that was sent at its host's port.
    pub(crate) fn queue(&mut self, port: u32, packet: u32) {
        self.ledger.flying -= u64::from(self.packets.get(packet).bytes);
        self.enqueue(port, packet);
    }

    /// The current time, with its floating-point sum.
    pub(crate) const fn moment(&self) -> Moment {
        Moment { at: self.now, sum: self.now_sum }
    }

    /// Sets a timer for `moment`; under `Order::Heap` that may have passed.
    pub(crate) fn timer_at(&mut self, moment: Moment, timer: Timer) {
        self.add(moment.at, moment.sum, What::Timer(timer));
    }

    /// Sets a timer for one picosecond after `moment`.
    pub(crate) fn timer_past(&mut self, moment: Moment, timer: Timer) {
        const PAST: Duration = Duration::from_ps(1);
        let Moment { at, sum } = moment.after(PAST, 1);
        self.add(at, sum, What::Timer(timer));
    }

    /// Sets a timer for one picosecond after all that is queued at `host` will have been sent.
    pub(crate) fn timer_past_queue(&mut self, host: u32, timer: Timer) {
        let port = &self.ports[host as usize];
        let queued = u32::try_from(port.queued_bytes).unwrap_or(u32::MAX);
        let free = match port.is_called {
            true => Moment { at: port.free_at, sum: port.free_sum },
            false => self.moment(),
        };
        self.timer_past(free.after(port.time(queued), 1), timer);
    }

    /// Whether the port of `host` is sending.
    pub(crate) fn host_is_busy(&self, host: u32) -> bool {
        self.ports[host as usize].is_called
    }

    /// Stores the mark of a data packet whose memory is freed.
    pub(super) fn free_mark(&mut self, packet: &Packet) {
        if let Some(marks) = &mut self.stale_marks
            && packet.kind == Kind::Data
        {
            marks.give(packet.is_marked);
        }
    }

    /// As `transmit`, at the current time, with the sums and the events of `Order::Heap`.
    pub(super) fn transmit_published(&mut self, index: u32, packet: u32) {
        let bytes = self.packets.get(packet).bytes;
        self.ledger.flying += u64::from(bytes);
        let port = &mut self.ports[index as usize];
        port.stats.sent_packets += 1;
        port.stats.sent_bytes += u64::from(bytes);
        let time = port.time(bytes);
        let ahead = port.ahead(time);
        port.is_called = true;
        (port.free_at, port.free_sum) = (self.now + time, self.now_sum + seconds(time));
        let serve = What::Serve { port: index };
        self.events.add_published(port.free_at, port.free_sum, serve);
        let there = self.now + ahead + port.delay;
        let there_sum = self.now_sum + seconds(ahead) + seconds(port.delay);
        self.events.add_published(there, there_sum, arrival(port, index, packet));
    }
}
