use std::str::FromStr;

use measure::{Duration, Instant};

use crate::draw::Draw;

/// How requests of a given rate follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spacing {
    /// At equal distances.
    Even,
    /// At exponentially distributed distances: a Poisson process.
    #[default]
    Poisson,
}

impl Spacing {
    /// All spacings, in the order in which they are listed to users.
    pub const ALL: [Self; 2] = [Self::Poisson, Self::Even];

    /// The name that [`FromStr`] accepts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Poisson => "poisson",
        }
    }
}

impl FromStr for Spacing {
    type Err = ParseSpacingError;

    fn from_str(text: &str) -> Result<Self, ParseSpacingError> {
        let spacing = Self::ALL.into_iter().find(|one| one.name() == text);
        spacing.ok_or_else(|| ParseSpacingError { given: text.to_owned() })
    }
}

/// A text is not the name of a [`Spacing`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no spacing \"{given}\"; use poisson or even")]
pub struct ParseSpacingError {
    /// The text that was given.
    pub given: String,
}

/// The arrival times of requests in an open loop.
#[derive(Debug, Clone)]
pub struct Arrivals {
    spacing: Spacing,
    mean: Duration,
    next: Instant,
    draw: Draw,
}

impl Arrivals {
    /// Arrivals with a mean distance of `mean`, from `start` on.
    ///
    /// # Panics
    /// If `mean` is zero: all requests would arrive at once.
    #[must_use]
    pub fn new(spacing: Spacing, mean: Duration, start: Instant, seed: u64) -> Self {
        assert!(!mean.is_zero(), "requests arrive at some distance");
        let mut arrivals = Self { spacing, mean, next: start, draw: Draw::new(seed) };
        arrivals.advance();
        arrivals
    }

    /// When the next request arrives.
    #[must_use]
    pub const fn peek(&self) -> Instant {
        self.next
    }

    /// Returns the time of the next arrival and moves on to the one after it.
    pub fn advance(&mut self) -> Instant {
        let now = self.next;
        let gap = match self.spacing {
            Spacing::Even => self.mean,
            Spacing::Poisson => {
                let scale = -(1.0 - self.draw.unit()).ln();
                let ps = self.mean.as_ps() as f64 * scale;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "neither negative nor, at 37 means, too long"
                )]
                Duration::from_ps(ps as u64)
            }
        };
        self.next = now + gap;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(spacing: Spacing) -> Vec<f64> {
        let mut arrivals = Arrivals::new(spacing, Duration::from_ns(1000), Instant::from_ps(0), 9);
        let times: Vec<u64> = (0..20_000).map(|_| arrivals.advance().as_ps()).collect();
        times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1000.0).collect()
    }

    #[test]
    fn even_arrivals_are_even() {
        assert!(gaps(Spacing::Even).iter().all(|&gap| gap == 1000.0));
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_deviation_of_an_exponential() {
        let gaps = gaps(Spacing::Poisson);
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count).sqrt();
        assert!((mean / 1000.0 - 1.0).abs() < 0.03 && (deviation / mean - 1.0).abs() < 0.03);
    }
}
