//! Flows that end, and which of them a run waits for.

use measure::Instant;

use super::Net;
use crate::error::SimError;
use crate::flow::Flow;

impl Net<'_> {
    /// Records that the receiver has every byte of `flow`.
    pub(crate) fn received(&mut self, flow: u32) {
        self.records[flow as usize].received.get_or_insert(self.now);
        self.progress_at = self.now;
    }

    /// Records that the sender of `flow` knows of its end.
    pub(crate) fn finished(&mut self, flow: u32) {
        let now = self.now;
        let record = &mut self.records[flow as usize];
        if !record.has_ended() {
            record.finished = Some(now);
            self.ended(flow);
        }
        self.progress_at = now;
    }

    /// Records that `flow` ended with its last byte: its sender learns it later, with others.
    pub(crate) fn over(&mut self, flow: u32) {
        let record = &mut self.records[flow as usize];
        if !record.has_ended() {
            record.is_told_later = true;
            self.ended(flow);
        }
    }

    /// Counts an ended flow.
    fn ended(&mut self, flow: u32) {
        self.ended_count += 1;
        if self.is_awaited_flow(self.flow(flow)) {
            self.left_count -= 1;
        }
    }

    /// Whether the run waits for `flow`.
    fn is_awaited_flow(&self, flow: &Flow) -> bool {
        self.awaited.is_none_or(|[from, to]| (from..to).contains(&flow.start))
    }

    /// Called when the last flow has started. An error if awaited flows have not ended: they would
    /// end in a network that empties.
    pub(crate) fn check_load(&self) -> Result<(), SimError> {
        match self.awaited {
            Some(_) if self.left_count > 0 => {
                Err(SimError::Emptied { at: self.now, left: self.left_count })
            }
            _ => Ok(()),
        }
    }

    /// Lets the run wait only for the flows that start in `time` (start included, end not).
    pub(crate) fn await_only(&mut self, time: [Instant; 2]) {
        self.awaited = Some(time);
        let count = self.flows.iter().filter(|flow| self.is_awaited_flow(flow)).count();
        self.left_count = u32::try_from(count).unwrap_or(u32::MAX);
    }

    /// Records that `flow` will never finish, and why.
    pub(crate) fn stranded(&mut self, flow: u32, why: &'static str) {
        let record = &mut self.records[flow as usize];
        if !record.has_ended() && record.stranded.is_none() {
            record.stranded = Some(why);
            self.ended(flow);
        }
    }
}
