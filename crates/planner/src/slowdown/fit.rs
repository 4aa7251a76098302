use super::model::{Estimate, Network};

/// A measured slowdown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The network of the run.
    pub network: Network,
    /// The slowdown minus 1: 0.05 for a slowdown of 1.05.
    pub degradation: f64,
}

/// The two terms of one program at one local size, by non-negative least squares.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Round trips that the program waits for, per second of its run with all memory local.
    pub batches_per_sec: f64,
    /// Pages that it waits for, per second of the same run.
    pub pages_per_sec: f64,
    // The error of each measurement against the fit to the others; ascending.
    misses: Vec<f64>,
}

/// The control: degradation is a line over the bandwidth of the swap device (Gao et al. 2016,
/// Fig. 6), whatever the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SwapLine {
    /// The degradation without any swapping.
    pub base: f64,
    /// The degradation for each unit of bandwidth.
    pub slope: f64,
}

/// Why nothing can be fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// There are too few measurements to tell noise.
    #[error("a fit of two terms needs three measurements; {0} were given")]
    Few(usize),
    /// A degradation is not a finite number.
    #[error("a degradation that is no number cannot be fitted; leave it out")]
    Number,
}

/// Picoseconds to seconds.
const SECONDS: f64 = 1e-12;

impl Fit {
    /// Fits the terms to `measured`.
    ///
    /// # Errors
    /// When there are fewer than three measurements, or one is no number.
    pub fn new(measured: &[Measured]) -> Result<Self, FitError> {
        if measured.len() < 3 {
            return Err(FitError::Few(measured.len()));
        }
        let rows: Vec<Row> = measured.iter().map(Row::new).collect();
        if rows.iter().any(|row| !row.wanted.is_finite()) {
            return Err(FitError::Number);
        }
        let miss = |left_out: usize| {
            let others: Vec<Row> =
                (0..rows.len()).filter(|&row| row != left_out).map(|row| rows[row]).collect();
            rows[left_out].error(terms(&others)).abs()
        };
        let mut misses: Vec<f64> = (0..rows.len()).map(miss).collect();
        misses.sort_unstable_by(f64::total_cmp);
        let [batches_per_sec, pages_per_sec] = terms(&rows);
        Ok(Self { batches_per_sec, pages_per_sec, misses })
    }

    /// The degradation over `network`, with an interval that holds about nine of ten measurements
    /// if their errors are like those of the fit's own measurements, each left out (the jackknife).
    #[must_use]
    pub fn degradation(&self, network: &Network) -> Estimate {
        let at = |rtt_ps| {
            (self.batches_per_sec * rtt_ps + self.pages_per_sec * network.page_ps()) * SECONDS
        };
        let margin = self.miss_p90();
        let rtt = network.rtt_ps;
        Estimate {
            low: (at(rtt.low) - margin).max(0.0),
            value: at(rtt.value),
            high: at(rtt.high) + margin,
        }
    }

    /// The mean error of a measurement against the fit to the others.
    #[must_use]
    pub fn miss_mean(&self) -> f64 {
        self.misses.iter().sum::<f64>() / self.misses.len() as f64
    }

    /// The 90th percentile of those errors; the largest if there are fewer than ten.
    fn miss_p90(&self) -> f64 {
        let rank = ((self.misses.len() + 1) * 9).div_ceil(10).min(self.misses.len());
        self.misses[rank - 1]
    }
}

impl SwapLine {
    /// The line through (bandwidth, degradation) by least squares; level if there is only one
    /// bandwidth. `None` without a point.
    #[must_use]
    pub fn new(points: &[(f64, f64)]) -> Option<Self> {
        if points.is_empty() {
            return None;
        }
        let mean =
            |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let products = |of: fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|point| of(point.0 - x, point.1 - y)).sum()
        };
        let spread = products(|dx, _| dx * dx);
        let slope = if spread > 0.0 { products(|dx, dy| dx * dy) / spread } else { 0.0 };
        Some(Self { base: y - slope * x, slope })
    }

    /// The degradation of a program with this bandwidth.
    #[must_use]
    pub fn degradation(&self, bandwidth: f64) -> f64 {
        self.base + self.slope * bandwidth
    }
}

/// A measurement as a linear equation: the factors of the two terms, and their wanted sum.
#[derive(Debug, Clone, Copy)]
struct Row {
    rtt: f64,
    page: f64,
    wanted: f64,
}

impl Row {
    fn new(measured: &Measured) -> Self {
        let network = &measured.network;
        Self {
            rtt: network.rtt_ps.value * SECONDS,
            page: network.page_ps() * SECONDS,
            wanted: measured.degradation,
        }
    }

    /// By how much the terms exceed the measurement.
    fn error(&self, [batches, pages]: [f64; 2]) -> f64 {
        batches * self.rtt + pages * self.page - self.wanted
    }
}

/// The terms (batches, pages) by non-negative least squares: both free, or one of them at 0.
fn terms(rows: &[Row]) -> [f64; 2] {
    let sum = |of: fn(&Row) -> f64| rows.iter().map(of).sum::<f64>();
    let (aa, ab, bb) = (
        sum(|row| row.rtt * row.rtt),
        sum(|row| row.rtt * row.page),
        sum(|row| row.page * row.page),
    );
    let (ay, by) = (sum(|row| row.rtt * row.wanted), sum(|row| row.page * row.wanted));
    let determinant = aa * bb - ab * ab;
    // A singular system, as with a single network, is fitted with one term.
    let apart = determinant > 1e-12 * aa * bb;
    let both = [(ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant];
    if apart && both.iter().all(|&term| term >= 0.0) {
        return both;
    }
    let alone =
        |product: f64, square: f64| if square > 0.0 { (product / square).max(0.0) } else { 0.0 };
    let candidates = [[alone(ay, aa), 0.0], [0.0, alone(by, bb)]];
    let missed = |terms| rows.iter().map(|row| row.error(terms).powi(2)).sum::<f64>();
    if missed(candidates[0]) <= missed(candidates[1]) { candidates[0] } else { candidates[1] }
}

#[cfg(test)]
mod tests {
    use measure::{BitsPerSec, Duration};

    use super::*;

    fn network(us: u64, gbps: u64) -> Network {
        Network::exact(Duration::from_us(us), BitsPerSec::from_gbps(gbps))
    }

    fn grid(of: impl Fn(u64, u64) -> f64) -> Vec<Measured> {
        let cells = [1, 5, 10].into_iter().flat_map(|us| [10, 40, 100].map(|gbps| (us, gbps)));
        let measured =
            |(us, gbps)| Measured { network: network(us, gbps), degradation: of(us, gbps) };
        cells.map(measured).collect()
    }

    /// 20,000 batches and 50,000 pages a second: 0.02 a microsecond, 0.16384 at 10 Gb/s.
    fn exact(us: u64, gbps: u64) -> f64 {
        0.02 * us as f64 + 1.6384 / gbps as f64
    }

    #[test]
    fn terms_without_noise_are_found_again() {
        let fit = Fit::new(&grid(exact)).expect("nine points");
        assert!((fit.batches_per_sec / 20_000.0 - 1.0).abs() < 1e-9, "{fit:?}");
        assert!((fit.pages_per_sec / 50_000.0 - 1.0).abs() < 1e-9, "{fit:?}");
        assert!(fit.miss_mean() < 1e-12);
        let found = fit.degradation(&network(3, 25));
        assert!((found.value - (0.06 + 0.065_536)).abs() < 1e-9);
        assert!(found.high - found.low < 1e-9);
    }

    /// Degradation that falls with the round trip: the best term for that is none, and the other
    /// is what it would be alone, Σ(page · wanted) / Σ(page²).
    #[test]
    fn terms_are_not_negative() {
        let measured = grid(|us, gbps| 1.0 / gbps as f64 - 0.001 * us as f64);
        let fit = Fit::new(&measured).expect("nine points");
        let (mut product, mut square) = (0.0, 0.0);
        for one in &measured {
            let page = one.network.page_ps() * 1e-12;
            product += page * one.degradation;
            square += page * page;
        }
        assert_eq!(fit.batches_per_sec, 0.0);
        assert!((fit.pages_per_sec - product / square).abs() < 1e-6 * fit.pages_per_sec);
    }

    /// One of nine is off by 0.1: the fit to the others misses it by just that, and with fewer
    /// than ten measurements the worst is the margin.
    #[test]
    fn margin_is_what_was_missed() {
        let mut measured = grid(exact);
        measured[4].degradation += 0.1;
        let fit = Fit::new(&measured).expect("nine points");
        let found = fit.degradation(&network(5, 40));
        assert!((found.high - found.value - 0.1).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn one_network_alone_is_one_term() {
        let measured =
            [0.1, 0.2, 0.3].map(|degradation| Measured { network: network(5, 40), degradation });
        let fit = Fit::new(&measured).expect("three points");
        assert!((fit.degradation(&network(5, 40)).value - 0.2).abs() < 1e-12);
        assert_eq!(Fit::new(&measured[1..]), Err(FitError::Few(2)));
        let unknown = measured.map(|one| Measured { degradation: f64::NAN, ..one });
        assert_eq!(Fit::new(&unknown), Err(FitError::Number));
    }

    #[test]
    fn control_is_the_line_through_its_points() {
        let line = SwapLine::new(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]).expect("three points");
        assert!((line.degradation(10.0) - 21.0).abs() < 1e-12, "{line:?}");
        assert_eq!(SwapLine::new(&[(2.0, 0.5)]), Some(SwapLine { base: 0.5, slope: 0.0 }));
        assert_eq!(SwapLine::new(&[]), None);
    }
}
