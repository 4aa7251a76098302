//! Parses the bound of a search, `p95=1ms`, and its range of rates, `100..1M`.

use std::fmt;
use std::str::FromStr;

use document::per_second;
use measure::{Duration, Histogram};
use workload::Spacing;

/// A search: the bound, the range of rates, and the spacing of arrivals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slo {
    pub(crate) bound: Bound,
    pub(crate) limits: Limits,
    pub(crate) spacing: Spacing,
}

/// A bound on a statistic of the latency of all requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) quantity: Quantity,
    pub(crate) time: Duration,
}

/// The statistic that is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    Mean,
    P50,
    P90,
    P95,
    P99,
    P999,
}

/// Lowest and highest rate to try, in requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// An invalid bound or range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BoundError {
    #[error(
        "write a quantity and a time above 0, such as p95=1ms; quantities are mean, p50, p90, p95, \
         p99, p99.9"
    )]
    Bound,
    #[error("write two rates, the lower one first, such as 100..100k")]
    Limits,
}

impl Quantity {
    const ALL: [Self; 6] = [Self::Mean, Self::P50, Self::P90, Self::P95, Self::P99, Self::P999];

    const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }
}

impl Bound {
    /// The bounded statistic of a distribution.
    pub(crate) fn of(self, latency: &Histogram) -> Duration {
        match self.quantity {
            Quantity::Mean => latency.mean(),
            Quantity::P50 => latency.quantile(0.5),
            Quantity::P90 => latency.quantile(0.9),
            Quantity::P95 => latency.quantile(0.95),
            Quantity::P99 => latency.quantile(0.99),
            Quantity::P999 => latency.quantile(0.999),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.quantity, self.time)
    }
}

impl FromStr for Bound {
    type Err = BoundError;

    fn from_str(text: &str) -> Result<Self, BoundError> {
        let (name, time) = text.split_once('=').ok_or(BoundError::Bound)?;
        let quantity = Quantity::ALL.into_iter().find(|one| one.name() == name);
        let quantity = quantity.ok_or(BoundError::Bound)?;
        let time: Duration = time.parse().map_err(|_| BoundError::Bound)?;
        if time.is_zero() { Err(BoundError::Bound) } else { Ok(Self { quantity, time }) }
    }
}

impl FromStr for Limits {
    type Err = BoundError;

    fn from_str(text: &str) -> Result<Self, BoundError> {
        let (least, most) = text.split_once("..").ok_or(BoundError::Limits)?;
        let rates = per_second(least).zip(per_second(most));
        let (least, most) = rates.ok_or(BoundError::Limits)?;
        if least > most { Err(BoundError::Limits) } else { Ok(Self { least, most }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        let bound = |text: &str| text.parse::<Bound>();
        let p95 = Bound { quantity: Quantity::P95, time: Duration::from_ms(1) };
        assert_eq!(bound("p95=1ms"), Ok(p95));
        let mean = Bound { quantity: Quantity::Mean, time: Duration::from_us(1500) };
        assert_eq!(bound("mean=1.5ms"), Ok(mean));
        assert_eq!(bound("p99.9=2s").map(|one| one.quantity), Ok(Quantity::P999));
        for wrong in ["", "p95", "p95=", "p95=0ms", "p94=1ms", "p95<1ms", "1ms=p95"] {
            assert_eq!(bound(wrong), Err(BoundError::Bound), "{wrong}");
        }
        assert_eq!(p95.to_string().parse(), Ok(p95));
    }

    #[test]
    fn limits() {
        let limits = |text: &str| text.parse::<Limits>();
        assert_eq!(limits("100..1M"), Ok(Limits { least: 100.0, most: 1e6 }));
        assert_eq!(limits("2k..2k"), Ok(Limits { least: 2e3, most: 2e3 }));
        for wrong in ["", "100", "100..", "..100", "0..1", "2..1", "1-2"] {
            assert_eq!(limits(wrong), Err(BoundError::Limits), "{wrong}");
        }
    }

    #[test]
    fn what_is_bounded_is_what_is_looked_at() {
        let mut latency = Histogram::new();
        (1..=100).for_each(|us| latency.record(Duration::from_us(us)));
        let of = |quantity| {
            Bound { quantity, time: Duration::from_us(1) }.of(&latency).as_ns_f64() / 1e3
        };
        assert_eq!(Quantity::ALL.map(|one| of(one).round()), [51.0, 50.0, 90.0, 95.0, 99.0, 100.0]);
    }
}
