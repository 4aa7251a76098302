use std::fmt;

use crate::draw::Draw;

/// A distribution of flow sizes: points of its cumulative distribution, with linear interpolation.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Payload bytes and the share of flows that carry at most as many, rising to 1.
    points: Vec<(f64, f64)>,
}

/// Why points are not a distribution of sizes.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SizesError {
    /// Fewer than 2 points.
    #[error("a distribution of sizes with {count} points says nothing; give it at least 2")]
    TooFew {
        /// How many points there are.
        count: usize,
    },
    /// A point is below the one before, or is no number.
    #[error(
        "point {index} of a distribution of sizes, {bytes} bytes at {share}, is not above the \
         one before; sizes must be positive and both must rise"
    )]
    Falls {
        /// Its index, from 0.
        index: usize,
        /// Its size.
        bytes: f64,
        /// Its cumulative share.
        share: f64,
    },
    /// The last cumulative share is not 1.
    #[error("a distribution of sizes ends at {share}; its last point must be at 1")]
    Open {
        /// The last cumulative share.
        share: f64,
    },
    /// A line that is not two numbers.
    #[error("line {line} of a distribution of sizes is not a size and its cumulative share")]
    Line {
        /// The line, from 1.
        line: usize,
    },
}

/// Names of published distributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizesName {
    /// Enterprise data centres (Benson et al., IMC 2010), as in pHost's evaluation.
    Imc10,
    /// Web search (Alizadeh et al., SIGCOMM 2010).
    WebSearch,
    /// Data mining (Greenberg et al., SIGCOMM 2009).
    DataMining,
}

/// Payload bytes of a packet, the unit of the published distributions.
const PACKET_BYTES: f64 = 1460.0;

/// Packets of a flow and cumulative share of flows; the other tables likewise.
const IMC10: [(f64, f64); 12] = [
    (1.0, 0.0),
    (1.0, 0.5),
    (2.0, 0.6),
    (3.0, 0.7),
    (5.0, 0.75),
    (7.0, 0.8),
    (40.0, 0.8125),
    (72.0, 0.825),
    (137.0, 0.85),
    (267.0, 0.9),
    (1187.0, 0.95),
    (2107.0, 1.0),
];
const WEB_SEARCH: [(f64, f64); 12] = [
    (6.0, 0.0),
    (6.0, 0.15),
    (13.0, 0.2),
    (19.0, 0.3),
    (33.0, 0.4),
    (53.0, 0.53),
    (133.0, 0.6),
    (667.0, 0.7),
    (1333.0, 0.8),
    (3333.0, 0.9),
    (6667.0, 0.97),
    (20000.0, 1.0),
];
const DATA_MINING: [(f64, f64); 9] = [
    (1.0, 0.0),
    (1.0, 0.5),
    (2.0, 0.6),
    (3.0, 0.7),
    (7.0, 0.8),
    (267.0, 0.9),
    (2107.0, 0.95),
    (66667.0, 0.99),
    (666_667.0, 1.0),
];

impl Sizes {
    /// A distribution through `points`: bytes, and the share of flows that carry at most as many.
    ///
    /// # Errors
    /// If the points do not rise to 1.
    pub fn new(points: Vec<(f64, f64)>) -> Result<Self, SizesError> {
        if points.len() < 2 {
            return Err(SizesError::TooFew { count: points.len() });
        }
        let mut before = (f64::MIN_POSITIVE, 0.0);
        for (index, &(bytes, share)) in points.iter().enumerate() {
            let is_number = bytes.is_finite() && share.is_finite();
            if !is_number || bytes < before.0 || share < before.1 {
                return Err(SizesError::Falls { index, bytes, share });
            }
            before = (bytes, share);
        }
        if (before.1 - 1.0).abs() > 1e-9 {
            return Err(SizesError::Open { share: before.1 });
        }
        Ok(Self { points })
    }

    /// The published distribution `name`.
    #[must_use]
    pub fn named(name: SizesName) -> Self {
        let packets: &[(f64, f64)] = match name {
            SizesName::Imc10 => &IMC10,
            SizesName::WebSearch => &WEB_SEARCH,
            SizesName::DataMining => &DATA_MINING,
        };
        let points = packets.iter().map(|&(packets, share)| (packets * PACKET_BYTES, share));
        Self { points: points.collect() }
    }

    /// A distribution in which every flow has `bytes`.
    #[must_use]
    pub fn fixed(bytes: u64) -> Self {
        let bytes = bytes.max(1) as f64;
        Self { points: vec![(bytes, 0.0), (bytes, 1.0)] }
    }

    /// Parses lines of a size in bytes and its cumulative share from 0 to 1. Skips columns between
    /// the two, empty lines and lines that begin with `#`.
    ///
    /// # Errors
    /// If a line has other content, or the points do not rise to 1.
    pub fn parse(text: &str) -> Result<Self, SizesError> {
        let mut points = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let words: Vec<&str> = text.split([' ', '\t', ',']).filter(|w| !w.is_empty()).collect();
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            let (Some(first), Some(last)) = (words.first(), words.last()) else {
                return Err(SizesError::Line { line });
            };
            match (words.len(), first.parse(), last.parse()) {
                (2.., Ok(bytes), Ok(share)) => points.push((bytes, share)),
                _ => return Err(SizesError::Line { line }),
            }
        }
        Self::new(points)
    }

    /// The mean size of a flow, in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let first = self.points[0];
        let between = |pair: &[(f64, f64)]| (pair[0].0 + pair[1].0) / 2.0 * (pair[1].1 - pair[0].1);
        first.0 * first.1 + self.points.windows(2).map(between).sum::<f64>()
    }

    /// The mean square of a flow's size, in bytes².
    #[must_use]
    pub fn mean_square(&self) -> f64 {
        let first = self.points[0];
        // The mean square of a uniform distribution between two sizes.
        let square = |from: f64, to: f64| (from * from + from * to + to * to) / 3.0;
        let between = |pair: &[(f64, f64)]| square(pair[0].0, pair[1].0) * (pair[1].1 - pair[0].1);
        first.0 * first.0 * first.1 + self.points.windows(2).map(between).sum::<f64>()
    }

    /// The size of the largest flow, in bytes.
    #[must_use]
    pub fn largest(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.0)
    }

    /// Draws the size of a flow, in bytes, at least 1.
    pub fn draw(&self, draw: &mut Draw) -> u64 {
        let share = draw.unit();
        let place = self.points.partition_point(|&(_, until)| until < share);
        let (bytes, until) = self.points[place.min(self.points.len() - 1)];
        let bytes = match place.checked_sub(1).map(|before| self.points[before]) {
            Some((from, since)) => from + (bytes - from) * (share - since) / (until - since),
            None => bytes,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "sizes are positive, and a cast of too much is the most there is"
        )]
        let bytes = bytes.round() as u64;
        bytes.max(1)
    }
}

impl fmt::Display for SizesName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Imc10 => "imc10",
            Self::WebSearch => "web-search",
            Self::DataMining => "data-mining",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn draws_have_the_mean_and_the_shares_of_the_distribution() {
        for name in [SizesName::Imc10, SizesName::WebSearch] {
            let sizes = Sizes::named(name);
            let mut draw = Draw::new(5);
            let drawn: Vec<u64> = (0..400_000).map(|_| sizes.draw(&mut draw)).collect();
            let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
            assert!((mean / sizes.mean() - 1.0).abs() < 0.02, "{name}: {mean}");
            let squares = drawn.iter().map(|&bytes| (bytes as f64).powi(2)).sum::<f64>();
            let square = squares / drawn.len() as f64 / sizes.mean_square();
            assert!((square - 1.0).abs() < 0.02, "{name}: {square}");
            let largest = *drawn.iter().max().expect("some are drawn") as f64;
            assert!(largest <= sizes.largest() && largest > 0.99 * sizes.largest(), "{largest}");
            for &(bytes, share) in &sizes.points[1..] {
                let within = drawn.iter().filter(|&&drawn| drawn as f64 <= bytes).count();
                let got = within as f64 / drawn.len() as f64;
                assert!((got - share).abs() < 0.005, "{name}: {got} up to {bytes}, not {share}");
            }
        }
        assert_eq!(Sizes::fixed(4096).draw(&mut Draw::new(1)), 4096);
    }

    #[test]
    fn imc10_has_the_mean_of_its_points() {
        // 1 packet for half of flows, then trapezes, by hand.
        let packets =
            0.5 + 0.15 + 0.25 + 0.2 + 0.3 + 0.293_75 + 0.7 + 2.6125 + 10.1 + 36.35 + 82.35;
        let mean = Sizes::named(SizesName::Imc10).mean();
        assert!((mean / 1460.0 - packets).abs() < 1e-9, "{}", mean / 1460.0);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        assert_eq!(
            Sizes::parse("# bytes share\n\n100 0.5\n200,1\n"),
            Sizes::new(vec![(100.0, 0.5), (200.0, 1.0),])
        );
        assert_eq!(Sizes::parse("100 1 0.5\nno"), Err(SizesError::Line { line: 2 }));
        assert_eq!(Sizes::parse(""), Err(SizesError::TooFew { count: 0 }));
        assert_eq!(Sizes::parse("1 0\n2 0.9"), Err(SizesError::Open { share: 0.9 }));
        let falls = SizesError::Falls { index: 1, bytes: 1.0, share: 1.0 };
        assert_eq!(Sizes::parse("2 0\n1 1"), Err(falls));
        assert!(Sizes::parse("NaN 0\n1 1").is_err() && Sizes::parse("0 0\n1 1").is_err());
    }

    proptest! {
        #[test]
        fn parse_never_panics_and_draws_stay_within(text in "([0-9.]{1,5}[ ,][0-9.]{1,4}\n){0,6}") {
            if let Ok(sizes) = Sizes::parse(&text) {
                let mut draw = Draw::new(2);
                let most = sizes.points.last().map_or(0.0, |point| point.0);
                for _ in 0..20 {
                    let bytes = sizes.draw(&mut draw);
                    prop_assert!(bytes >= 1 && bytes as f64 <= most.max(1.0).round());
                }
            }
        }
    }
}
