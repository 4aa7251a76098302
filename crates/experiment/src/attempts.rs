//! Repeats a run until the machine does not disturb it.

use crate::noise::Noise;

/// A run with the noise that it was measured beside.
pub trait Measured {
    /// The noise during the run.
    fn noise(&self) -> &Noise;
    /// Whether the noise exceeds the tolerance.
    fn is_disturbed(&self) -> bool;
    /// Whether the run has a figure. A run without one would not get one by repetition, and may
    /// have waited for its time-out.
    fn has_figure(&self) -> bool;
}

/// Calls `once` until a run is undisturbed, at most `attempts` times. Returns the least disturbed
/// run and how many runs were dropped.
///
/// # Errors
/// The first error of `once`.
pub fn least_disturbed<R: Measured, E>(
    attempts: u32,
    mut once: impl FnMut() -> Result<R, E>,
) -> Result<(R, u32), E> {
    let mut best = once()?;
    let mut repeated_count = 0;
    while repeated_count + 1 < attempts && best.is_disturbed() && best.has_figure() {
        let next = once()?;
        repeated_count += 1;
        if next.noise().taken() < best.noise().taken() {
            best = next;
        }
    }
    Ok((best, repeated_count))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ran {
        noise: Noise,
        value: Option<f64>,
    }

    impl Measured for Ran {
        fn noise(&self) -> &Noise {
            &self.noise
        }

        fn is_disturbed(&self) -> bool {
            self.noise.stolen > 0.05
        }

        fn has_figure(&self) -> bool {
            self.value.is_some()
        }
    }

    /// What is kept of runs that lose so much, how often it was repeated, and how often it ran.
    fn kept(runs: &[(f64, Option<f64>)]) -> (f64, u32, usize) {
        let mut ran = 0;
        let kept = least_disturbed(3, || {
            let (stolen, value) = runs[ran];
            ran += 1;
            Ok::<_, ()>(Ran { noise: Noise { stolen, ..Noise::default() }, value })
        });
        let (row, repeated_count) = kept.expect("nobody interrupts");
        (row.noise.stolen, repeated_count, ran)
    }

    #[test]
    fn disturbed_runs_are_repeated_whatever_they_measured() {
        let run = |stolen| (stolen, Some(1.0));
        assert_eq!(kept(&[run(0.05)]), (0.05, 0, 1));
        assert_eq!(kept(&[run(0.2), run(0.01)]), (0.01, 1, 2));
        assert_eq!(kept(&[run(0.2), run(0.1), run(0.3)]), (0.1, 2, 3));
        assert_eq!(kept(&[(0.2, None)]), (0.2, 0, 1), "a failure stands");
    }
}
