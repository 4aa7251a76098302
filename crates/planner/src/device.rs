//! A flash device that tenants share: the cost of a write, the load that a tail latency allows, and
//! the admission of tenants.
//!
//! The model is that of ReFlex (ASPLOS 2017): the tail of read latencies follows from the load in
//! tokens per second, where a read is one token and a write as many as make the loads of all mixes
//! lie on one curve. A promised tail holds below the load at which the curve exceeds it, and the
//! strictest promise limits the device. Klimovic et al. §4.2 add two rules: a core that serves
//! flash has three tenants at most, and a promised tail at most one bursty writer beside it.

use measure::Duration;

use crate::queue::{QueueError, mg1_wait};

/// A measured load and its tail latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Reads per second.
    pub reads: f64,
    /// Writes per second.
    pub writes: f64,
    /// 95th percentile of read latencies, in microseconds.
    pub tail_us: f64,
}

/// A measured flash device.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// Tokens of a write; a read is one.
    pub write_tokens: f64,
    /// Tokens per second and the tail in microseconds; neither falls from point to point.
    pub curve: Vec<(f64, f64)>,
    /// How many tenants its processors can serve; `None` for no limit.
    pub tenants_max: Option<u32>,
    /// How long a read and a write keep it busy; `None` if that is not known.
    pub service: Option<[Duration; 2]>,
}

/// A tenant that asks to share a device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Applicant {
    /// Its name, for output.
    pub name: String,
    /// Reads per second that it needs.
    pub reads: f64,
    /// Writes per second that it needs.
    pub writes: f64,
    /// The tail in microseconds that it asks for; `None` if any tail will do.
    pub tail_us: Option<f64>,
    /// Whether it writes in bursts.
    pub bursty: bool,
}

/// Whether an applicant is admitted, or why not.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Admitted, with these tokens per second.
    Admitted(f64),
    /// The device exceeds its tail at every measured load.
    Tail {
        /// The tail at the lowest measured load, in microseconds.
        least_us: f64,
    },
    /// It needs more tokens than are left.
    Tokens {
        /// The tokens per second that it needs.
        wanted: f64,
        /// The tokens per second that are left below the strictest tail.
        left: f64,
    },
    /// The processors already serve this many tenants, which is their limit.
    Cores(u32),
    /// Two bursty writers would share the device with a promised tail.
    Bursty,
    /// The device would be overloaded.
    Busy {
        /// Its load, in percent.
        load: f64,
    },
}

/// How writes delay reads on a device that serves one request after another (M/G/1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interference {
    /// The share of the time in which the device is busy.
    pub load: f64,
    /// The mean wait of a request.
    pub wait: Duration,
    /// The mean wait of a read if there were no writes.
    pub wait_of_reads: Duration,
}

/// Why no curve can be fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// Fewer than 3 points, or one that is not a number above 0.
    #[error("a device needs 3 points or more, all numbers above 0; measure more loads")]
    Points,
}

/// How many costs of a write the fit tries: from 1 in steps of 1 %, up to about 320.
const STEPS: i32 = 580;

impl Device {
    /// Fits a device to measured points: finds the cost of a write with which they lie nearest to
    /// one rising curve. The cost is 1 if no point has writes.
    ///
    /// # Errors
    /// When the points are too few or are not numbers above 0; reads or writes may be 0.
    pub fn fit(points: &[Point], tenants_max: Option<u32>) -> Result<Self, DeviceError> {
        let is_point = |point: &Point| {
            let load = point.reads + point.writes;
            load.is_finite()
                && point.reads >= 0.0
                && point.writes >= 0.0
                && load > 0.0
                && point.tail_us.is_finite()
                && point.tail_us > 0.0
        };
        if points.len() < 3 || !points.iter().all(is_point) {
            return Err(DeviceError::Points);
        }
        let has_writes = points.iter().any(|point| point.writes > 0.0);
        let steps = if has_writes { STEPS } else { 0 };
        let mut best: Option<(f64, i32, i32)> = None;
        for step in 0..=steps {
            let error = rising(points, 1.01_f64.powi(step)).0;
            match &mut best {
                Some((least, _, last)) if (error - *least).abs() <= 1e-9 => *last = step,
                Some((least, _, _)) if error > *least => {}
                _ => best = Some((error, step, step)),
            }
        }
        // Several costs may fit equally well: the middle one is taken.
        let (_, first, last) = best.ok_or(DeviceError::Points)?;
        let write_tokens = 1.01_f64.powf(f64::from(first + last) / 2.0);
        let curve = rising(points, write_tokens).1;
        Ok(Self { write_tokens, curve, tenants_max, service: None })
    }

    /// Tokens per second up to which the tail is at most `tail_us`; `None` if it is longer at every
    /// load. At most the highest measured load.
    #[must_use]
    pub fn tokens(&self, tail_us: f64) -> Option<f64> {
        let beyond = self.curve.partition_point(|(_, us)| *us <= tail_us);
        let (low, low_us) = *self.curve.get(beyond.checked_sub(1)?)?;
        let Some((high, high_us)) = self.curve.get(beyond) else { return Some(low) };
        Some(low + (high - low) * (tail_us - low_us) / (high_us - low_us))
    }

    /// Tokens per second of a load of `reads` and `writes` per second.
    #[must_use]
    pub fn cost(&self, reads: f64, writes: f64) -> f64 {
        reads + writes * self.write_tokens
    }

    /// The mean wait of requests for one another; `None` if service times are not known.
    ///
    /// # Errors
    /// When the device would be overloaded.
    pub fn interference(
        &self,
        reads: f64,
        writes: f64,
    ) -> Result<Option<Interference>, QueueError> {
        let Some([read, write]) = self.service.filter(|_| reads + writes > 0.0) else {
            return Ok(None);
        };
        let (wait, load) = mg1_wait(&[(read, reads), (write, writes)], reads + writes)?;
        let alone = if reads > 0.0 { mg1_wait(&[(read, 1.0)], reads)?.0 } else { Duration::ZERO };
        Ok(Some(Interference { load, wait, wait_of_reads: alone }))
    }

    /// Judges `applicants` in their order: rejects those that would break a promise to one that was
    /// admitted before.
    #[must_use]
    pub fn admit(&self, applicants: &[Applicant]) -> Vec<Verdict> {
        let mut inside: Vec<&Applicant> = Vec::new();
        let mut verdicts = Vec::new();
        for applicant in applicants {
            let verdict = self.judge(&inside, applicant);
            if matches!(verdict, Verdict::Admitted(_)) {
                inside.push(applicant);
            }
            verdicts.push(verdict);
        }
        verdicts
    }

    /// Whether `applicant` is admitted beside the tenants `inside`.
    fn judge(&self, inside: &[&Applicant], applicant: &Applicant) -> Verdict {
        let count = u32::try_from(inside.len()).unwrap_or(u32::MAX);
        if let Some(most) = self.tenants_max.filter(|most| count >= *most) {
            return Verdict::Cores(most);
        }
        let all = || inside.iter().copied().chain([applicant]);
        let bursty = all().filter(|one| one.bursty).count();
        if bursty > 1 && all().any(|one| one.tail_us.is_some()) {
            return Verdict::Bursty;
        }
        let strictest = all().filter_map(|one| one.tail_us).fold(f64::INFINITY, f64::min);
        let Some(most) = self.tokens(strictest) else {
            let least_us = self.curve.first().map_or(0.0, |(_, us)| *us);
            return Verdict::Tail { least_us };
        };
        let taken: f64 = inside.iter().map(|one| self.cost(one.reads, one.writes)).sum();
        let wanted = self.cost(applicant.reads, applicant.writes);
        if taken + wanted > most {
            return Verdict::Tokens { wanted, left: (most - taken).max(0.0) };
        }
        let sum = |of: fn(&Applicant) -> f64| all().map(of).sum::<f64>();
        match self.interference(sum(|one| one.reads), sum(|one| one.writes)) {
            Err(QueueError::Overload(load)) => Verdict::Busy { load },
            Ok(_) => Verdict::Admitted(wanted),
        }
    }
}

/// The sum of squared distances of the points from the rising curve nearest to the logarithms of
/// their tails (pool adjacent violators), and that curve.
fn rising(points: &[Point], write_tokens: f64) -> (f64, Vec<(f64, f64)>) {
    let mut loads: Vec<(f64, f64)> = points
        .iter()
        .map(|point| (point.reads + point.writes * write_tokens, point.tail_us.ln()))
        .collect();
    loads.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    // Blocks: the mean of their points, and how many points they have.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (_, tail) in &loads {
        blocks.push((*tail, 1));
        while let [.., (low, few), (high, many)] = blocks[..]
            && low > high
        {
            let count = few + many;
            let mean = (low * few as f64 + high * many as f64) / count as f64;
            blocks.truncate(blocks.len() - 2);
            blocks.push((mean, count));
        }
    }
    let means = blocks.iter().flat_map(|(mean, count)| std::iter::repeat_n(*mean, *count));
    let mut error = 0.0;
    let mut curve = Vec::new();
    for ((load, tail), mean) in loads.iter().zip(means) {
        error += (tail - mean).powi(2);
        curve.push((*load, mean.exp()));
    }
    (error, curve)
}

/// A claim to a part of a capacity: at least a reservation, then by weight, up to a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// At least this, if the sum of all reservations is below the capacity.
    pub reservation: f64,
    /// The weight against the other shares.
    pub weight: f64,
    /// At most this, unless the reservation is higher.
    pub limit: f64,
}

/// Divides a capacity as mClock does (OSDI 2010): each share gets its weight times a common level,
/// clamped to its reservation and limit. Reservations beyond the capacity shrink in proportion.
#[must_use]
pub fn divide(capacity: f64, shares: &[Share]) -> Vec<f64> {
    let reserved: f64 = shares.iter().map(|one| one.reservation).sum();
    if reserved >= capacity {
        return shares.iter().map(|one| one.reservation / reserved * capacity).collect();
    }
    let at = |level: f64| -> Vec<f64> {
        let of = |one: &Share| (one.weight * level).min(one.limit).max(one.reservation);
        shares.iter().map(of).collect()
    };
    let lightest = shares.iter().map(|one| one.weight).fold(f64::INFINITY, f64::min);
    let (mut low, mut high) = (0.0, capacity / lightest.max(f64::MIN_POSITIVE));
    // Bisects the level; limits may leave a part of the capacity unused.
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if at(middle).iter().sum::<f64>() <= capacity {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mclock_divides_as_published() {
        let share = |reservation, weight, limit| Share { reservation, weight, limit };
        let shares = [
            share(250.0, 2.0, f64::INFINITY),
            share(250.0, 1.0, f64::INFINITY),
            share(0.0, 1.0, 300.0),
        ];
        for (capacity, expected) in [
            (1500.0, [800, 400, 300]),
            (1000.0, [500, 250, 250]),
            (500.0, [250, 250, 0]),
            (300.0, [150, 150, 0]),
        ] {
            let found = divide(capacity, &shares);
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - f64::from(expected)).abs() < 1e-6, "{capacity}: {found}");
            }
        }
    }

    // A device whose tail follows from reads + 10 · writes alone.
    fn device() -> Device {
        let mut points = Vec::new();
        for (reads, writes) in [(0.99, 0.01), (0.9, 0.1), (0.75, 0.25), (0.5, 0.5), (1.0, 0.0)] {
            for load in [20_000.0, 50_000.0, 90_000.0, 140_000.0, 200_000.0, 240_000.0] {
                let per_token = load / (reads + 10.0 * writes);
                let tail_us = 100.0 / (1.0 - load / 250_000.0);
                let (reads, writes) = (reads * per_token, writes * per_token);
                points.push(Point { reads, writes, tail_us });
            }
        }
        Device::fit(&points, Some(3)).expect("they are enough")
    }

    #[test]
    fn the_cost_of_a_write_is_found() {
        let device = device();
        assert!((device.write_tokens / 10.0 - 1.0).abs() < 0.05, "{}", device.write_tokens);
        let tokens = device.tokens(500.0).expect("it can be");
        assert!((tokens / 200_000.0 - 1.0).abs() < 0.05, "{tokens}");
        assert_eq!(device.tokens(100.0), None, "an idle device has more");
        assert!(device.tokens(1e9).expect("all that was measured") < 260_000.0);
    }

    fn applicant(reads: f64, tail_us: Option<f64>, bursty: bool) -> Applicant {
        Applicant { name: String::new(), reads, writes: 0.0, tail_us, bursty }
    }

    #[test]
    fn every_refusal_has_its_reason() {
        let device = device();
        let of = |applicants: &[Applicant]| device.admit(applicants);
        let strict = applicant(50_000.0, Some(200.0), false);
        let loose = applicant(100_000.0, Some(2_000.0), false);
        // 200 µs are kept up to some 125,000 tokens, also for those who would stand more.
        let verdicts = of(&[strict.clone(), loose.clone()]);
        assert_eq!(verdicts[0], Verdict::Admitted(50_000.0));
        assert!(matches!(verdicts[1], Verdict::Tokens { left, .. } if left < 80_000.0));
        // Who comes later cannot make the device stricter than those inside have load for.
        let verdicts = of(&[loose, strict]);
        assert!(matches!(verdicts[1], Verdict::Tokens { .. }));
        let verdicts = of(&[applicant(1.0, Some(50.0), false)]);
        assert!(matches!(verdicts[0], Verdict::Tail { .. }));
        let quiet = applicant(1.0, None, false);
        assert_eq!(of(&[quiet.clone(), quiet.clone(), quiet.clone(), quiet])[3], Verdict::Cores(3));
        let bursty = applicant(1.0, None, true);
        let tail = applicant(1.0, Some(900.0), true);
        assert_eq!(of(&[bursty.clone(), tail])[1], Verdict::Bursty);
        assert_eq!(of(&[bursty.clone(), bursty])[1], Verdict::Admitted(1.0));
    }

    /// Reads of 10 µs and writes of 100 µs: 20,000 a second, a tenth of them writes.
    #[test]
    fn writes_make_reads_wait() {
        let mut device = device();
        assert_eq!(device.interference(18_000.0, 2_000.0), Ok(None));
        device.service = Some([Duration::from_us(10), Duration::from_us(100)]);
        let found = device.interference(18_000.0, 2_000.0).expect("it ends").expect("it is known");
        assert_eq!(format!("{:.3}", found.wait.as_ns_f64() / 1e3), "17.581");
        assert_eq!(
            found.wait_of_reads,
            crate::queue::md1_wait(Duration::from_us(10), 0.18).unwrap()
        );
        assert!((found.load - 0.38).abs() < 1e-12);
        let writer = Applicant { writes: 9_000.0, ..applicant(1_000.0, None, false) };
        assert_eq!(
            device.admit(std::slice::from_ref(&writer))[0],
            Verdict::Admitted(device.cost(1e3, 9e3))
        );
        let more = Applicant { writes: 1_000.0, ..writer.clone() };
        let verdicts = device.admit(&[writer, more]);
        assert!(matches!(verdicts[1], Verdict::Busy { load } if load > 100.0), "{verdicts:?}");
    }

    #[test]
    fn points_that_mean_nothing_are_refused() {
        let point = Point { reads: 1.0, writes: 0.0, tail_us: 1.0 };
        assert_eq!(Device::fit(&[point; 2], None), Err(DeviceError::Points));
        for tail_us in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
            let bad = Point { tail_us, ..point };
            assert_eq!(Device::fit(&[point, point, bad], None), Err(DeviceError::Points));
        }
    }
}
