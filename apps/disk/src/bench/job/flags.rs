//! Makes a job of flags.

use measure::Duration;

use super::meaning::place_of;
use super::options::{Job, Place};
use super::units::Extent;
use crate::bench::BenchError;
use crate::bench::flags::BenchFlags;
use document::per_second;

/// Default runtime of a load that has no number of requests either.
const RUNTIME: Duration = Duration::from_ms(10_000);
/// Default runtime and warm-up of a point of a sweep or a run of a comparison, and the queue depth
/// of a sweep, which keeps a disk busy.
const POINT_RUNTIME: Duration = Duration::from_ms(3_000);
const POINT_RAMP: Duration = Duration::from_ms(300);
const POINT_DEPTH: u16 = 64;

impl Job {
    /// The job that flags describe.
    ///
    /// # Errors
    /// The first flag that is invalid.
    pub(crate) fn of_flags(flags: &BenchFlags) -> Result<Self, BenchError> {
        let read_percent = flags.rw.read_percent(flags.rwmixread);
        let rate = match (&flags.rate_iops, flags.rate) {
            (Some(text), _) => {
                let rate = per_second(text);
                Some(rate.ok_or_else(|| BenchError::Rate(text.clone()))?)
            }
            (None, Some(rate)) if rate.get() == 0 => return Err(BenchError::RateBytes),
            (None, Some(rate)) => Some(rate.get() as f64 / flags.bs.get().max(1) as f64),
            (None, None) => None,
        };
        if flags.duration.is_some_and(Duration::is_zero) {
            return Err(BenchError::Runtime);
        }
        let unlimited = flags.requests.is_none();
        let (runtime, ramp, depth) = match flags.sweep {
            Some(_) => (POINT_RUNTIME, POINT_RAMP, POINT_DEPTH),
            // No warm-up where requests are counted: all may have ended before it does.
            None if flags.targets.len() > 1 && unlimited => (POINT_RUNTIME, POINT_RAMP, 1),
            None => (RUNTIME, Duration::ZERO, 1),
        };
        let depth = flags.depth.unwrap_or(depth);
        let target = || flags.targets.first().cloned().map(Place::Uri);
        let options = [
            ("rw", flags.rw.name()),
            ("bs", flags.bs.get().to_string()),
            ("iodepth", depth.to_string()),
            ("numjobs", flags.threads.to_string()),
            ("rwmixread", read_percent.to_string()),
        ];
        Ok(Self {
            name: flags.name.clone(),
            line: 0,
            options: options.map(|(name, value)| (name.to_owned(), value)).into(),
            globals: Vec::new(),
            place: flags.filename.as_deref().map(place_of).or_else(target),
            rw: flags.rw,
            read_percent,
            zipf: flags.random_distribution.0,
            block_bytes: flags.bs.get(),
            size: flags.size.map(|size| Extent::Bytes(size.get())),
            offset: Extent::Bytes(flags.offset.get()),
            io_size: None,
            number_ios: flags.requests,
            depth,
            threads: flags.threads,
            rate,
            spacing: flags.spacing,
            think: None,
            delay: Duration::ZERO,
            ramp: flags.warm_up.unwrap_or(ramp),
            runtime: flags.duration.or_else(|| unlimited.then_some(runtime)),
            is_time_based: true,
            verifies: flags.verify,
            reads_back: flags.do_verify != 0,
            is_forced: flags.fua,
            flush_every: flags.fsync,
            seed: Some(flags.seed),
            percentiles: None,
            waits: false,
            begins_group: false,
            is_grouped: false,
        })
    }
}
