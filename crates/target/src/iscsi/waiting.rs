//! Commands of a session that have waited for memory, a range or their R2T, and continue.

use scsi::iscsi::Task;

use super::super::site::{Order, Site};
use super::session::IscsiSession;

impl IscsiSession {
    /// Tries again commands of connection `number` that wait for memory or for a range. Returns how
    /// many jobs have begun. `out` is that connection's.
    pub(super) fn feed(&mut self, number: u16, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let mut jobs = 0;
        let is_here = |session: &Self, task: Task| {
            session.session.connection_of(task).is_none_or(|of| of == number)
        };
        let (parked, others) = std::mem::take(&mut self.waiting.parked)
            .into_iter()
            .partition(|task| is_here(self, *task));
        self.waiting.parked = others;
        for task in Vec::into_iter(parked) {
            jobs += self.begin(task, out, site);
        }
        while let Some(task) = self.waiting.starving.front().copied() {
            if !is_here(self, task) {
                break;
            }
            if self.pending(task).is_some_and(|one| one.wanted > 0) && !self.may_ask(task, site) {
                self.waiting.starving.pop_front();
                self.waiting.unasked.push_back(task);
                continue;
            }
            let Some(pending) = self.pending(task) else {
                self.waiting.starving.pop_front();
                continue;
            };
            if !pending.execution.fill(site.pool) {
                break;
            }
            self.waiting.starving.pop_front();
            jobs += self.expect(task, out, site);
        }
        jobs
    }

    /// Whether the data of a command may be requested now.
    pub(super) fn may_ask(&mut self, task: Task, site: &Site<'_>) -> bool {
        let bytes = self.pending(task).map_or(0, |one| one.execution.own_bytes());
        self.waiting.solicited.may_ask(bytes, site.pool.share(), site.now_ns)
    }

    /// Requests data for commands of one connection as far as the window allows. Returns how many
    /// jobs have begun.
    pub(super) fn ask_on(&mut self, number: u16, out: &mut Vec<u8>, site: &mut Site<'_>) -> u32 {
        let mut jobs = 0;
        while let Some(task) = self.waiting.unasked.front().copied() {
            if !self.may_ask(task, site) {
                break;
            }
            let link = self.session.connection_of(task);
            if link != Some(number) {
                let link =
                    link.and_then(|one| self.ways.links.get(usize::from(one)).copied().flatten());
                site.wishes.orders.extend(link.map(|(connection, _)| Order::Wake(connection)));
                break;
            }
            self.waiting.unasked.pop_front();
            jobs += self.lend(task, out, site);
        }
        jobs
    }
}
