//! Compare and Write: two fused commands (Base 3.4.2; NVM Command Set 2.1.4).
//!
//! ```text
//! Compare ─► its data ─┐
//!                      ├─► nobody else writes there ─► compare ─► answer ─► write ─► answer
//! Write ───► its data ─┘                                  └─► another: Write is aborted
//! ```
//!
//! Invariants:
//! - The second command follows the first directly, or the first is aborted.
//! - When one of them fails the other is aborted, but not while its data may still come.

use nvme::{Data, Slot, Status, Submission};

use super::{IoSession, Pending, Wire};
use crate::pairs::{Awaited, Pair, Paired, Stage};
use crate::site::Site;
use crate::work::Work;

const FAILED: Status = Status::ABORTED_FAILED_FUSED.do_not_retry();
const MISSING: Status = Status::ABORTED_MISSING_FUSED.do_not_retry();

impl IoSession {
    // The pair state of a fused command; `None` for another command.
    fn pair_mut(&mut self, slot: Slot) -> Option<&mut Pair> {
        self.pending.get_mut(usize::from(slot.number()))?.as_mut()?.pair.as_mut()
    }

    /// Begins the first of two fused commands. Its R2T waits for the second command: after the R2T
    /// the first could not be aborted.
    pub(super) fn begin_first(
        &mut self,
        slot: Slot,
        wire: &mut Wire<'_>,
        site: &mut Site<'_>,
    ) -> u32 {
        self.awaited = Awaited::Second(slot);
        match self.pending.get(usize::from(slot.number())) {
            Some(Some(Pending { plan, .. })) if matches!(plan.data, Data::InCapsule { .. }) => {
                self.come_in(slot, wire, site)
            }
            _ => 0,
        }
    }

    /// Aborts the first of two fused commands if a command that is not the second has followed.
    pub(super) fn is_missing(&mut self, before: Awaited, wire: &mut Wire<'_>, site: &mut Site<'_>) {
        if let Awaited::Second(first) = before {
            self.answer(first, MISSING, wire, site);
        }
    }

    /// Takes the second of two fused commands. Returns how many jobs that has begun.
    pub(super) fn second(
        &mut self,
        before: Awaited,
        slot: Slot,
        submission: &Submission,
        wire: &mut Wire<'_>,
        site: &mut Site<'_>,
    ) -> u32 {
        let first = match before {
            Awaited::Second(first) => Ok(first),
            Awaited::Aborted => Err(FAILED),
            Awaited::Any => Err(MISSING),
        };
        let prepared = first.and_then(|first| {
            let (namespace, plan) = self.prepare(submission)?;
            let place = self.pending.get(usize::from(first.number()));
            let is_same = matches!(place, Some(Some(other))
                if other.execution.namespace.id == namespace.id
                    && other.execution.work().map(Work::place)
                        == plan.work.as_ref().map(Work::place));
            let invalid = Status::INVALID_FIELD.do_not_retry();
            if is_same { Ok((first, namespace, plan)) } else { Err(invalid) }
        });
        match prepared {
            Err(status) => {
                self.refuse(submission, site);
                wire.queue.complete(slot, status, 0, wire.out);
                if let Ok(first) = first {
                    self.abort_first(first, wire, site);
                }
                0
            }
            Ok((first, namespace, plan)) => {
                let pair = Pair { other: Some(first), is_second: true, stage: Stage::Coming };
                self.admit(slot, namespace, plan, Some(pair), site);
                let is_failed = self.pair_mut(first).is_none_or(|pair| {
                    pair.other = Some(slot);
                    pair.stage == Stage::Failed
                });
                if is_failed {
                    self.fail(slot, wire, site);
                    return self.come_in(slot, wire, site);
                }
                let is_unasked = self.is_unasked(first);
                let jobs = if is_unasked { self.come_in(first, wire, site) } else { 0 };
                jobs + self.come_in(slot, wire, site)
            }
        }
    }

    // Whether the first of two fused commands gets its data by R2T.
    fn is_unasked(&self, first: Slot) -> bool {
        let place = self.pending.get(usize::from(first.number()));
        matches!(place, Some(Some(pending)) if pending.is_asked_for())
    }

    // Aborts the first of two fused commands, since the second was refused.
    fn abort_first(&mut self, first: Slot, wire: &mut Wire<'_>, site: &mut Site<'_>) {
        if self.is_unasked(first) {
            self.answer(first, FAILED, wire, site);
        } else {
            self.fail(first, wire, site);
        }
    }

    /// Notes that a command's data is complete. Returns what can begin.
    pub(super) fn pair_up(&mut self, slot: Slot) -> Paired {
        let Some(pair) = self.pair_mut(slot) else { return Paired::Begins(slot) };
        if pair.stage == Stage::Failed {
            return Paired::Failed;
        }
        pair.stage = Stage::Ready;
        let (other, is_second) = (pair.other, pair.is_second);
        let Some(other) = other else { return Paired::Waits };
        match self.pair_mut(other).map(|pair| pair.stage) {
            Some(Stage::Ready) => Paired::Begins(if is_second { other } else { slot }),
            _ => Paired::Waits,
        }
    }

    /// Completes a Compare that matched, and begins the Write with the range that Compare has held.
    pub(super) fn go_on(&mut self, first: Slot, wire: &mut Wire<'_>, site: &mut Site<'_>) -> u32 {
        let place = self.pending.get_mut(usize::from(first.number()));
        let Some(Some(pending)) = place else { return 0 };
        let second = pending.pair.take().and_then(|pair| pair.other);
        let range = pending.execution.pass_range();
        self.answer(first, Status::SUCCESS, wire, site);
        let place = second.and_then(|slot| self.pending.get_mut(usize::from(slot.number())));
        let (Some(slot), Some(Some(pending))) = (second, place) else { return 0 };
        pending.pair = None;
        pending.execution.set_range(range);
        self.step(slot, wire, site)
    }

    /// Fails the other of two fused commands after one has failed.
    pub(super) fn fail_other(
        &mut self,
        slot: Slot,
        pair: Option<Pair>,
        wire: &mut Wire<'_>,
        site: &mut Site<'_>,
    ) {
        if self.awaited == Awaited::Second(slot) {
            self.awaited = Awaited::Aborted;
        }
        if let Some(other) = pair.and_then(|pair| pair.other) {
            self.fail(other, wire, site);
        }
    }

    // Aborts a command whose partner has failed, once its data is complete.
    fn fail(&mut self, slot: Slot, wire: &mut Wire<'_>, site: &mut Site<'_>) {
        let Some(pair) = self.pair_mut(slot) else { return };
        pair.other = None;
        if pair.stage == Stage::Ready {
            self.answer(slot, FAILED, wire, site);
        } else {
            pair.stage = Stage::Failed;
        }
    }
}
