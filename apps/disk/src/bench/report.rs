//! Jobs as they are reported: each by itself, or those of a group together.

use diskload::Tally;

use super::run::{Outcome, Phase};

/// One job, or several that are reported as one.
pub(crate) struct Reported<'a> {
    /// The jobs. The first one's name and settings are reported.
    pub(crate) members: Vec<&'a Outcome>,
    pub(crate) tally: Tally,
}

impl<'a> Reported<'a> {
    /// The jobs and groups of a phase, in order.
    pub(crate) fn of(phase: &'a Phase) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for outcome in &phase.outcomes {
            let joins = |last: &&mut Self| {
                let first = last.first();
                first.group == outcome.group
                    && first.ready.job.is_grouped
                    && outcome.ready.job.is_grouped
            };
            match all.last_mut().filter(joins) {
                Some(last) => {
                    last.members.push(outcome);
                    last.tally.merge(&outcome.tally);
                }
                None => {
                    let tally = outcome.tally.clone();
                    all.push(Self { members: vec![outcome], tally });
                }
            }
        }
        all
    }

    pub(crate) fn first(&self) -> &'a Outcome {
        self.members[0]
    }

    /// The time of all threads together, in nanoseconds.
    pub(crate) fn thread_ns(&self) -> f64 {
        let of = |one: &&Outcome| one.tally.elapsed.as_ns_f64() * f64::from(one.ready.config.jobs);
        self.members.iter().map(of).sum()
    }
}

/// The tally of all jobs of all phases; `None` if there are none.
pub(crate) fn total<'a>(phases: impl IntoIterator<Item = &'a Phase>) -> Option<Tally> {
    let mut tallies = phases.into_iter().flat_map(|phase| &phase.outcomes).map(|one| &one.tally);
    let mut total = tallies.next()?.clone();
    tallies.for_each(|tally| total.merge(tally));
    Some(total)
}
