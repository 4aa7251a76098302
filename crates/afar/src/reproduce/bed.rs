//! What figures are measured on: the emulated drive, how much of it, and the two ways to it.

use flash::backend::BackendUri;
use flash::load::{Device, Tally};
use measure::{Duration, Fraction};
use serde_json::{Value, json};

use super::ReproduceError;
use super::session::{Load, Session};
use super::target::ServeChild;
use crate::flags::ReproduceFlags;
use crate::layout::kilo;

/// See the module's description.
pub(super) struct Bed {
    pub(super) session: Session,
    /// Of the drive.
    pub(super) uri: String,
    share: Fraction,
    /// What this machine can serve, if that was looked at.
    served: Option<Served>,
    /// Processors of this machine.
    pub(super) processors: usize,
    /// Threads of a load, and requests under way in each that keep the drive busy.
    pub(super) jobs: u16,
    pub(super) depth: u16,
    /// How often everything is measured, alternating.
    pub(super) repetitions: usize,
    pub(super) busy_poll: Duration,
    ramp: Duration,
    runtime: Duration,
}

/// What this machine did with the whole drive.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Served {
    /// Reads a second with many under way, local and remote.
    many_iops: [f64; 2],
    /// Processor time of host and target for a remote read that is alone, in microseconds.
    alone_us: f64,
}

/// The drive of this process and that of a target, with the target.
pub(super) struct Pair {
    pub(super) local: Device,
    pub(super) remote: Device,
    pub(super) target: ServeChild,
}

/// Channels of the whole drive: shares are whole ones, which serve so many reads a second each.
const CHANNELS: u32 = 60;
const CHANNEL_IOPS: f64 = 12_500.0;
/// Of what this machine can serve: the rest is for what it does beside.
const HEADROOM: f64 = 0.5;
/// Requests under way for each channel: with random addresses fewer leave some without.
const DEPTH: u32 = 32;
const DEPTH_MIN: u16 = 64;
/// A target takes 1024 in a queue.
const DEPTH_MAX: u16 = 1000;
const CALIBRATING: Duration = Duration::from_ms(800);
const JOBS_MAX: usize = 8;

fn drive(share: Fraction) -> String {
    format!("model:pm1725*{:.6}:memory:256MiB", f64::from(share.ppm()) / 1e6)
}

// What channels are of the whole, rounded down, as the drive rounds up.
fn share_of(channels: u32) -> Fraction {
    let ppm = channels.clamp(1, CHANNELS) * (Fraction::ONE.ppm() / CHANNELS);
    Fraction::from_ppm(ppm).expect("one channel at least, and all at most")
}

const fn channels(share: Fraction) -> u32 {
    // As the drive counts them.
    let product = share.ppm() as u64 * CHANNELS as u64;
    #[expect(clippy::cast_possible_truncation, reason = "a share of 60 is at most 60")]
    let count = product.div_ceil(1_000_000) as u32;
    count
}

// As many channels as can be served with room to spare: with many requests under way, which are
// done in batches, and with those that come one by one, which are not.
fn fitting(served: Served, processors: usize) -> u32 {
    let alone_iops = processors as f64 * 1e6 / served.alone_us.max(1.0);
    let least = served.many_iops.into_iter().fold(alone_iops, f64::min);
    let served = least * HEADROOM / CHANNEL_IOPS;
    let fits = |count: &u32| f64::from(*count) <= served;
    (1..=CHANNELS).take_while(fits).last().unwrap_or(1)
}

impl Bed {
    /// Settles how much of the drive there is; `None` if that was interrupted.
    ///
    /// # Errors
    /// When the drive cannot be loaded, here or through a target.
    pub(super) fn new(
        session: Session,
        flags: &ReproduceFlags,
    ) -> Result<Option<Self>, ReproduceError> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = u16::try_from((processors / 2).clamp(1, JOBS_MAX)).unwrap_or(1);
        let [runtime, ramp] = if flags.quick { [2_000, 300] } else { [5_000, 1_000] };
        let runtime = flags.runtime.unwrap_or_else(|| Duration::from_ms(runtime));
        let mut bed = Self {
            session,
            uri: String::new(),
            share: flags.scale.unwrap_or(Fraction::ONE),
            served: None,
            processors,
            jobs,
            depth: DEPTH_MIN,
            busy_poll: flags.busy_poll,
            repetitions: if flags.quick { 1 } else { 3 },
            ramp: Duration::from_ms(ramp).min(runtime),
            runtime,
        };
        if flags.scale.is_none() {
            let Some(served) = bed.calibrate()? else { return Ok(None) };
            bed.share = share_of(fitting(served, processors));
            bed.served = Some(served);
        }
        bed.uri = drive(bed.share);
        let depth = DEPTH * channels(bed.share) / u32::from(jobs);
        bed.depth = u16::try_from(depth).unwrap_or(DEPTH_MAX).clamp(DEPTH_MIN, DEPTH_MAX);
        Ok(Some(bed))
    }

    // What this machine does with the whole drive.
    fn calibrate(&mut self) -> Result<Option<Served>, ReproduceError> {
        self.uri = drive(Fraction::ONE);
        self.session.expect(3);
        let what = "how fast this machine is";
        let short = |load: Load| Load { ramp: Duration::ZERO, runtime: CALIBRATING, ..load };
        let pair = self.open(None)?;
        let many = self.pair(0, what, &pair, &short(self.full(100)))?;
        let begun = pair.target.processor_time();
        let alone = short(Load { busy_poll: Duration::ZERO, ..self.unloaded() });
        let alone = self.session.run(what, &pair.remote, &alone)?;
        let (Some(many), Some(alone)) = (many, alone) else { return Ok(None) };
        let target = pair.target.processor_time().saturating_sub(begun);
        let time = alone.processor_time().saturating_add(target);
        let alone_us = time.as_ns_f64() / 1e3 / alone.count() as f64;
        Ok(Some(Served { many_iops: many.each_ref().map(Tally::per_second), alone_us }))
    }

    /// Reads and writes in a closed loop that keeps the drive busy.
    pub(super) const fn full(&self, read_percent: u8) -> Load {
        Load {
            read_percent,
            jobs: self.jobs,
            depth: self.depth,
            rate: None,
            ramp: self.ramp,
            runtime: self.runtime,
            busy_poll: self.busy_poll,
            traces: false,
        }
    }

    /// Reads, one after another.
    pub(super) const fn unloaded(&self) -> Load {
        Load { jobs: 1, depth: 1, ..self.full(100) }
    }

    /// Reads that arrive by themselves, so many a second.
    pub(super) const fn arriving(&self, rate: f64) -> Load {
        Load { rate: Some(rate), depth: DEPTH_MAX, ..self.full(100) }
    }

    /// The drive in this process.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn local(&self) -> Result<Device, ReproduceError> {
        let uri: BackendUri = self.uri.parse().expect("it is made of a share");
        Ok(Device::Local(uri.open()?))
    }

    /// Both ways to it; the target has so many processors, all if `None`.
    ///
    /// # Errors
    /// When there is no memory for it, or no target.
    pub(super) fn open(&self, processors: Option<usize>) -> Result<Pair, ReproduceError> {
        let local = self.local()?;
        let target = ServeChild::start(&self.uri, processors, self.busy_poll, false)?;
        let remote = target.connect(self.jobs)?;
        Ok(Pair { local, remote, target })
    }

    /// The same load local and remote, in turns that change with the repetition; `None` if it was
    /// interrupted.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub(super) fn pair(
        &mut self,
        repetition: usize,
        what: &str,
        pair: &Pair,
        load: &Load,
    ) -> Result<Option<[Tally; 2]>, ReproduceError> {
        let ways = [("local", &pair.local), ("NVMe/TCP", &pair.remote)];
        let first = repetition % 2;
        let mut run = |(name, device)| self.session.run(&format!("{what}, {name}"), device, load);
        let Some(one) = run(ways[first])? else { return Ok(None) };
        let Some(other) = run(ways[1 - first])? else { return Ok(None) };
        Ok(Some(if first == 0 { [one, other] } else { [other, one] }))
    }

    /// The drive and the loads, in two lines.
    pub(super) fn describe(&self) -> String {
        let count = channels(self.share);
        let drive = kilo(f64::from(count) * CHANNEL_IOPS);
        let served = match self.served {
            Some(Served { many_iops: [local, remote], alone_us }) => format!(
                "\nscale: the whole drive gives {} local, {} remote here; a remote read that is \
                 alone costs {alone_us:.0} µs of processors",
                kilo(local),
                kilo(remote)
            ),
            None => String::new(),
        };
        format!(
            "drive: {}, {count} of {CHANNELS} channels, {drive} reads/s{served}\n\
             loads: 4 KiB at random, {} each, {} repetitions; {} processors for host and target",
            self.uri, self.runtime, self.repetitions, self.processors
        )
    }

    pub(super) fn record(&self) -> Value {
        json!({
            "device": self.uri,
            "share_ppm": self.share.ppm(),
            "channels": channels(self.share),
            "drive_read_iops": f64::from(channels(self.share)) * CHANNEL_IOPS,
            "served": self.served.map(|served| {
                let [local, remote] = served.many_iops;
                json!({
                    "local_iops": local,
                    "remote_iops": remote,
                    "remote_alone_processor_us": served.alone_us,
                })
            }),
            "busy_poll_ns": self.busy_poll.as_ns(),
            "processors": self.processors,
            "jobs": self.jobs,
            "depth": self.depth,
            "repetitions": self.repetitions,
            "ramp_ns": self.ramp.as_ns(),
            "runtime_ns": self.runtime.as_ns(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_channels() {
        for count in 1..=CHANNELS {
            assert_eq!(channels(share_of(count)), count);
        }
        assert_eq!(drive(share_of(1)), "model:pm1725*0.016666:memory:256MiB");
        assert!(drive(share_of(7)).parse::<BackendUri>().is_ok());
    }

    #[test]
    fn the_slowest_way_says_how_much_fits() {
        let served = |local, remote, alone_us| Served { many_iops: [local, remote], alone_us };
        assert_eq!(fitting(served(500_000.0, 76_000.0, 1.0), 2), 3);
        assert_eq!(fitting(served(500_000.0, 9_000.0, 1.0), 2), 1, "a channel is the least");
        assert_eq!(fitting(served(9e6, 9e6, 1.0), 64), CHANNELS);
        assert_eq!(fitting(served(9e6, 9e6, 40.0), 2), 2, "50 000 alone, half of them");
    }
}
