//! How the network reports to the observers of a `Looker`.

use measure::Instant;

use super::Net;
use super::look::Looker;
use crate::event::{Order, What};

impl Net<'_> {
    /// Reports to `looker` from now on.
    pub(crate) fn told_to(mut self, looker: Looker) -> Self {
        self.is_special |= looker.tracer.is_some();
        self.looker = Some(Box::new(looker));
        self
    }

    /// Reports `what`, which is about to happen at `at`, to the observers, if there are any.
    #[inline]
    pub(crate) fn look(&mut self, at: Instant, what: Option<What>) {
        if self.looker.is_some() {
            self.look_closely(at, what);
        }
    }

    /// As `look`, where there are observers.
    #[cold]
    #[inline(never)]
    fn look_closely(&mut self, at: Instant, what: Option<What>) {
        let Some(looker) = &mut self.looker else { return };
        if let Some(sampler) = &mut looker.sampler {
            sampler.look_until(at, &self.ports);
        }
        if let Some(keeper) = &mut looker.keeper {
            keeper.look_until(at, &mut self.ports);
        }
        let Some(tracer) = &mut looker.tracer else { return };
        let (Some(What::Pass { port, packet }) | Some(What::Arrive { port, packet })) = what else {
            return;
        };
        let held = self.packets.get(packet);
        let link = &self.ports[port as usize];
        let took = link.ahead(link.time(held.bytes)) + link.delay;
        let left = Instant::from_ps(at.as_ps().saturating_sub(took.as_ps()));
        tracer.crossed(packet, held, port, [left, at]);
    }

    /// Ends the last interval and returns the observers with their records.
    pub(crate) fn last_look(&mut self) -> Looker {
        let Some(mut looker) = self.looker.take() else { return Looker::default() };
        if let Some(keeper) = &mut looker.keeper {
            keeper.end(self.now, &mut self.ports);
        }
        *looker
    }

    /// The last step of `send` where packets are traced or the order is `Order::Heap`.
    #[inline(never)]
    pub(super) fn send_special(&mut self, host: u32, index: u32) {
        if let Some(tracer) = self.looker.as_mut().and_then(|looker| looker.tracer.as_mut()) {
            tracer.sent(index, self.packets.get(index), host, self.now);
        }
        if self.order == Order::Heap {
            self.ledger.flying += u64::from(self.packets.get(index).bytes);
            let what = What::Queue { port: host, packet: index };
            self.events.add_published(self.now, self.now_sum, what);
        } else {
            self.enqueue(host, index);
        }
    }

    /// Reports that `packet` is about to be dropped at `port`.
    #[cold]
    pub(super) fn look_at_drop(&mut self, port: u32, packet: u32) {
        if let Some(tracer) = self.looker.as_mut().and_then(|looker| looker.tracer.as_mut()) {
            tracer.dropped(packet, self.packets.get(packet), port, self.now);
        }
    }
}
