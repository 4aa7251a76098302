//! Loads at rates, one after another.

use console::layout::kilo;

use client::Session;

use super::super::error::BenchError;
use super::super::run::{self, Phase, Ready};
use super::point::{self, Point};

/// What was measured.
pub(super) struct Curve {
    /// What a closed loop reached, unless rates were given.
    pub(super) closed: Option<Phase>,
    pub(super) points: Vec<Point>,
    /// Why it ends here, if something has failed.
    pub(super) failure: Option<String>,
}

impl Curve {
    // Measures another point; whether there may be more.
    pub(super) fn add(
        &mut self,
        session: &mut Session,
        ready: &Ready,
        name: &str,
        (share, rate): (Option<f64>, f64),
    ) -> Result<bool, BenchError> {
        if session.is_interrupted() {
            return Ok(false);
        }
        let load = ready.named(name).at(rate);
        let what = format!("{}/s  ", kilo(rate));
        let phase = run::run_together(session, &[load], &[0], what)?;
        // A point that was cut short is none.
        if session.is_interrupted() {
            return Ok(false);
        }
        self.failure = point::failure(&phase.outcomes[0].tally);
        if self.failure.is_some() {
            return Ok(false);
        }
        self.points.push(Point::of(share, rate, phase));
        session.end_part(&format!("{}/s", kilo(rate)));
        Ok(true)
    }

    pub(super) fn has_exploded(&self) -> bool {
        let ends = self.points.first().zip(self.points.last());
        ends.is_some_and(|(first, last)| last.has_exploded(first))
    }
}
