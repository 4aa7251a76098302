//! Measures a curve, point by point.

use console::layout::kilo;

use client::Session;

use super::super::error::BenchError;
use super::super::run::{self, Phase, Ready};
use super::point::{self, Point};

/// The points of a curve.
pub(super) struct Curve {
    /// The closed loop, whose rate is 100 %; `None` if rates were given.
    pub(super) closed: Option<Phase>,
    pub(super) points: Vec<Point>,
    /// Why the curve ends early, if requests failed.
    pub(super) failure: Option<String>,
}

impl Curve {
    // Measures a point at `rate`. Returns false if interrupted or failed: no more points follow.
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
        // An interrupted point does not count.
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

    // Whether the last point's latency is a multiple of the first one's.
    pub(super) fn has_exploded(&self) -> bool {
        let ends = self.points.first().zip(self.points.last());
        ends.is_some_and(|(first, last)| last.has_exploded(first))
    }
}
