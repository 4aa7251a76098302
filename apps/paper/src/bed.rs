//! What figures are measured on: an emulated drive, how much of it, and the ways to it; or a disk
//! of the user's, as it is.
//!
//! The drive is opened in this process, and again in a target, which is reached over NVMe/TCP and
//! iSCSI (`target`, `way`). A figure loads it over each way in turn.

use backend::{BackendUri, Claim};
use console::layout::kilo;
use console::terminal;
use diskload::{Device, Tally};
use measure::{Duration, Fraction};
use serde_json::{Value, json};

use super::ReproduceError;
use super::session::{Load, Session};
use super::target::ServeChild;
use super::way::{PerWay, Way, in_turn};
use crate::flags::Options;

/// An emulated drive and the settings of loads on it.
pub(super) struct Bed {
    pub(super) session: Session,
    drive: Drive,
    /// The URI of the emulated share of the drive.
    pub(super) uri: String,
    share: Fraction,
    /// Whether the drive is a disk of the user's.
    is_own: bool,
    /// What this machine can serve, if that was looked at.
    served: Option<Served>,
    /// Processors of this machine.
    pub(super) processors: usize,
    /// Threads of a load,
    pub(super) jobs: u16,
    /// and outstanding requests of each, which keep the drive busy.
    pub(super) depth: u16,
    /// How often each load is repeated, alternating with the others.
    pub(super) repetitions: usize,
    pub(super) busy_poll: Duration,
    ramp: Duration,
    runtime: Duration,
}

/// A drive of a paper.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drive {
    /// Its name in the emulation.
    pub(super) name: &'static str,
    /// Its channels; an emulated share has a whole number of them.
    pub(super) channels: u32,
    /// Reads per second of one channel.
    pub(super) channel_iops: f64,
    /// The largest load of the figure, as a share of all reads of the drive.
    pub(super) used: f64,
}

/// Samsung PM1725, of Guz et al. 2017.
pub(super) const PM1725: Drive =
    Drive { name: "pm1725", channels: 60, channel_iops: 12_500.0, used: 1.0 };

/// How much this machine served of the whole drive.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Served {
    /// Reads per second with many outstanding.
    many_iops: PerWay<f64>,
    /// Processor time of host and target for a read with one outstanding, in microseconds.
    alone_us: PerWay<f64>,
}

/// The drive over each way, with the target.
pub(super) struct Opened {
    pub(super) devices: PerWay<Device>,
    target: ServeChild,
}

/// The results of a load over one way.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) tally: Tally,
    /// Processor time of the target; zero for the local way.
    target: Duration,
}

/// The share of what this machine can serve that is emulated; the rest is for other work.
const HEADROOM: f64 = 0.5;
/// Outstanding requests per channel: with fewer random requests some channels would idle.
const DEPTH: u32 = 32;
const DEPTH_MIN: u16 = 64;
/// A queue of a target takes 1024 requests.
const DEPTH_MAX: u16 = 1000;
const CALIBRATING: Duration = Duration::from_ms(800);
const JOBS_MAX: usize = 8;

impl Drive {
    // The URI of the emulated share of the drive.
    fn uri(&self, share: Fraction) -> String {
        format!("model:{}*{:.6}:memory:256MiB", self.name, f64::from(share.ppm()) / 1e6)
    }

    // The share that `channels` are, rounded down, because the emulation rounds up.
    fn share_of(&self, channels: u32) -> Fraction {
        let ppm = channels.clamp(1, self.channels) * (Fraction::ONE.ppm() / self.channels);
        Fraction::from_ppm(ppm).expect("one channel at least, and all at most")
    }

    // The number of channels of a share.
    const fn channels(&self, share: Fraction) -> u32 {
        // Rounded up, as in the emulation.
        let product = share.ppm() as u64 * self.channels as u64;
        #[expect(clippy::cast_possible_truncation, reason = "a share of a count is at most it")]
        let count = product.div_ceil(1_000_000) as u32;
        count
    }

    // How many channels this machine can serve with headroom, both with many outstanding requests,
    // which are processed in batches, and with single ones.
    fn fitting(&self, served: Served, processors: usize) -> u32 {
        let alone_iops = processors as f64 * 1e6 / served.alone_us.most().max(1.0);
        let least = served.many_iops.least().min(alone_iops);
        let served = least * HEADROOM / (self.channel_iops * self.used);
        let fits = |count: &u32| f64::from(*count) <= served;
        (1..=self.channels).take_while(fits).last().unwrap_or(1)
    }
}

impl Bed {
    /// Creates the bed, and calibrates the share of the drive unless the user set it. `None` if the
    /// calibration was interrupted.
    ///
    /// # Errors
    /// When the drive cannot be loaded, here or through a target.
    pub(super) fn new(
        session: Session,
        flags: &Options,
        drive: Drive,
    ) -> Result<Option<Self>, ReproduceError> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = u16::try_from((processors / 2).clamp(1, JOBS_MAX)).unwrap_or(1);
        let [runtime, ramp] = if flags.quick { [2_000, 300] } else { [5_000, 1_000] };
        let runtime = flags.duration.unwrap_or_else(|| Duration::from_ms(runtime));
        let mut bed = Self {
            session,
            drive,
            uri: String::new(),
            share: flags.scale.unwrap_or(Fraction::ONE),
            is_own: flags.disk.is_some(),
            served: None,
            processors,
            jobs,
            depth: DEPTH_MIN,
            busy_poll: flags.busy_poll,
            repetitions: if flags.quick { 1 } else { 3 },
            ramp: Duration::from_ms(ramp).min(runtime),
            runtime,
        };
        if let Some(disk) = &flags.disk {
            bed.uri = own_disk(disk)?;
            warn_of_holes(&bed.uri.parse()?);
            return Ok(Some(bed));
        }
        if flags.scale.is_none() {
            let Some(served) = bed.calibrate()? else { return Ok(None) };
            bed.share = drive.share_of(drive.fitting(served, processors));
            bed.served = Some(served);
        }
        bed.uri = drive.uri(bed.share);
        let depth = DEPTH * drive.channels(bed.share) / u32::from(jobs);
        bed.depth = u16::try_from(depth).unwrap_or(DEPTH_MAX).clamp(DEPTH_MIN, DEPTH_MAX);
        Ok(Some(bed))
    }

    // Measures how much this machine serves of the whole drive; `None` if that was interrupted.
    fn calibrate(&mut self) -> Result<Option<Served>, ReproduceError> {
        self.session.expect(2 * Way::ALL.len());
        let what = "how fast this machine is";
        let short = |load: Load| Load { ramp: Duration::ZERO, runtime: CALIBRATING, ..load };
        let opened = self.open_whole()?;
        let many = self.each_way(0, what, &opened, &short(self.full(100)))?;
        let alone = short(Load { busy_poll: Duration::ZERO, ..self.unloaded() });
        let alone = in_turn(0, |way| self.count(what, &opened, way, &alone))?;
        let (Some(many), Some(alone)) = (many, alone) else { return Ok(None) };
        let alone_us = alone.map(|one| one.host_us() + one.target_us());
        Ok(Some(Served { many_iops: many.map(Tally::per_second), alone_us }))
    }

    /// A load of reads and writes in a closed loop that keeps the drive busy.
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

    /// A load of reads with one outstanding.
    pub(super) const fn unloaded(&self) -> Load {
        Load { jobs: 1, depth: 1, ..self.full(100) }
    }

    /// A load of reads in an open loop, `rate` per second.
    pub(super) const fn arriving(&self, rate: f64) -> Load {
        Load { rate: Some(rate), depth: DEPTH_MAX, ..self.full(100) }
    }

    /// As [`Bed::arriving`], from one thread.
    pub(super) const fn one_arriving(&self, rate: f64) -> Load {
        Load { jobs: 1, ..self.arriving(rate) }
    }

    /// The reads per second of the emulated share of the drive.
    pub(super) fn reads_per_second(&self) -> f64 {
        f64::from(self.channels()) * self.drive.channel_iops
    }

    /// `bytes` of the whole drive, scaled to the emulated share.
    pub(super) fn share_of_bytes(&self, bytes: u64) -> u64 {
        bytes * u64::from(self.channels()) / u64::from(self.drive.channels)
    }

    /// The number of emulated channels.
    const fn channels(&self) -> u32 {
        self.drive.channels(self.share)
    }

    /// Opens the drive in this process.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn local(&self) -> Result<Device, ReproduceError> {
        self.open_local(&self.uri)
    }

    /// The disk of the user's that it is measured on, if it is one.
    pub(super) fn own_disk(&self) -> Option<&str> {
        self.is_own.then_some(self.uri.as_str())
    }

    fn open_local(&self, uri: &str) -> Result<Device, ReproduceError> {
        let parsed: BackendUri = uri.parse()?;
        parsed.open(Claim::Alone).map(Device::Local).map_err(|source| match self.is_own {
            true => ReproduceError::OpenDisk { uri: uri.to_owned(), source },
            false => source.into(),
        })
    }

    /// Opens the drive over all ways; the target has `processors`, or all if `None`.
    ///
    /// # Errors
    /// When there is no memory for it, or the target cannot be started.
    pub(super) fn open(&self, processors: Option<usize>) -> Result<Opened, ReproduceError> {
        self.opened(&self.uri, processors)
    }

    /// Opens the whole drive of the paper over all ways; this machine may be slower.
    ///
    /// # Errors
    /// As [`Bed::open`].
    pub(super) fn open_whole(&self) -> Result<Opened, ReproduceError> {
        self.opened(&self.drive.uri(Fraction::ONE), None)
    }

    // Opens a drive over all ways.
    fn opened(&self, uri: &str, processors: Option<usize>) -> Result<Opened, ReproduceError> {
        let local = self.open_local(uri)?;
        let target = ServeChild::start(uri, processors, self.busy_poll, false)?;
        let nvme = target.connect(Way::Nvme, self.jobs)?;
        let iscsi = target.connect(Way::Iscsi, self.jobs)?;
        Ok(Opened { devices: PerWay { local, nvme, iscsi }, target })
    }

    /// Runs a load over each way, in an order that depends on the repetition; `None` if it was
    /// interrupted.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub(super) fn each_way(
        &mut self,
        repetition: usize,
        what: &str,
        opened: &Opened,
        load: &Load,
    ) -> Result<Option<PerWay<Tally>>, ReproduceError> {
        in_turn(repetition, |way| {
            self.session.run(&format!("{what}, {}", way.name()), &opened.devices[way], load)
        })
    }

    /// As [`Bed::each_way`], with the processor time of the target. The ramp is a load of its own,
    /// so that processor time is only that of counted requests: two loads for each way.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub(super) fn measure(
        &mut self,
        repetition: usize,
        what: &str,
        opened: &Opened,
        load: &Load,
    ) -> Result<Option<PerWay<Measured>>, ReproduceError> {
        let before = Load { ramp: Duration::ZERO, runtime: load.ramp, ..*load };
        let counted = Load { ramp: Duration::ZERO, ..*load };
        in_turn(repetition, |way| {
            let what = format!("{what}, {}", way.name());
            let device = &opened.devices[way];
            let Some(_) = self.session.run(&what, device, &before)? else { return Ok(None) };
            self.count(&what, opened, way, &counted)
        })
    }

    // Runs a load over one way, and measures the processor time of the target.
    fn count(
        &mut self,
        what: &str,
        opened: &Opened,
        way: Way,
        load: &Load,
    ) -> Result<Option<Measured>, ReproduceError> {
        let begun = opened.target.processor_time();
        let tally = self.session.run(what, &opened.devices[way], load)?;
        let target = match way {
            Way::Local => Duration::ZERO,
            Way::Nvme | Way::Iscsi => opened.target.processor_time().saturating_sub(begun),
        };
        Ok(tally.map(|tally| Measured { tally, target }))
    }

    /// A description of the drive and the loads, in lines.
    pub(super) fn describe(&self) -> String {
        let loads = format!(
            "loads: 4 KiB at random, {} each, {} repetitions; {} processors for host and target",
            self.runtime, self.repetitions, self.processors
        );
        if let Some(uri) = self.own_disk() {
            return format!("drive: {uri}, as it is, not the paper's\n{loads}");
        }
        let count = self.channels();
        let drive = kilo(self.reads_per_second());
        let served = match &self.served {
            Some(Served { many_iops, alone_us }) => format!(
                "\nscale: the whole drive gives {} here; a read that is alone costs {} µs of \
                 processors",
                told(many_iops, kilo),
                told(alone_us, |us| format!("{us:.0}"))
            ),
            None => String::new(),
        };
        format!(
            "drive: {}, {count} of {} channels, {drive} reads/s{served}\n{loads}",
            self.uri, self.drive.channels
        )
    }

    /// The bed for the record.
    pub(super) fn record(&self) -> Value {
        // Of an emulated drive.
        let emulated = |value: Value| if self.is_own { Value::Null } else { value };
        json!({
            "device": self.uri,
            "share_ppm": emulated(self.share.ppm().into()),
            "channels": emulated(self.channels().into()),
            "drive_read_iops": emulated(self.reads_per_second().into()),
            "served": self.served.map(|Served { many_iops, alone_us }| {
                json!({"iops": many_iops, "alone_processor_us": alone_us})
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

/// The URI of a disk that is the user's. Its file is only read, so that this process and a target
/// can have it at the same time.
///
/// # Errors
/// When it is none.
pub(super) fn own_disk(text: &str) -> Result<String, ReproduceError> {
    let uri: BackendUri = text.parse()?;
    if uri.file().is_none() || uri.is_read_only() {
        return Ok(text.to_owned());
    }
    let text = format!("{text}{}readonly", if text.contains('?') { '&' } else { '?' });
    // Options that write do not go with that.
    let _only_read: BackendUri = text.parse()?;
    Ok(text)
}

/// The figures of all ways with their names, as text.
pub(super) fn told(figures: &PerWay<f64>, text: impl Fn(f64) -> String) -> String {
    Way::ALL.map(|way| format!("{} {}", text(figures[way]), way.name())).join(", ")
}

// What was never written is read without asking the medium.
fn warn_of_holes(uri: &BackendUri) {
    let file = uri.file();
    if let Some((file, holes)) = file.zip(file.and_then(disk::sparse)) {
        let file = file.display();
        terminal::say(&format!("afar reproduce: {file}{holes}; write all of it to measure it\n"));
    }
}

impl Opened {
    /// Opens the drive once more for a load beside others, with a session or controller of its own.
    ///
    /// # Errors
    /// When the connection to the target fails.
    pub(super) fn another(&self, way: Way) -> Result<Device, ReproduceError> {
        match way {
            Way::Local => Ok(self.devices.local.clone()),
            Way::Nvme | Way::Iscsi => self.target.connect(way, 1),
        }
    }
}

impl Measured {
    /// Processor time of a request in this process, in microseconds.
    pub(super) fn host_us(&self) -> f64 {
        self.each_us(self.tally.processor_time())
    }

    /// Processor time of a request at the target, in microseconds.
    pub(super) fn target_us(&self) -> f64 {
        self.each_us(self.target)
    }

    /// `time` divided by the number of requests, in microseconds.
    fn each_us(&self, time: Duration) -> f64 {
        time.as_ns_f64() / 1e3 / self.tally.count() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_channels() {
        for drive in [PM1725, Drive { name: "p3600", channels: 20, ..PM1725 }] {
            for count in 1..=drive.channels {
                assert_eq!(drive.channels(drive.share_of(count)), count);
            }
            assert!(drive.uri(drive.share_of(7)).parse::<BackendUri>().is_ok());
        }
        assert_eq!(PM1725.uri(PM1725.share_of(1)), "model:pm1725*0.016666:memory:256MiB");
    }

    #[test]
    fn a_disk_of_the_users_is_only_read() {
        let own = |text: &str| own_disk(text).map_err(|error| error.to_string());
        assert_eq!(own("file:/dev/x"), Ok("file:/dev/x?readonly".to_owned()));
        assert_eq!(own("file:/x?block=4096"), Ok("file:/x?block=4096&readonly".to_owned()));
        for kept in ["file:/x?readonly", "memory:1GiB", "model:pm1725:memory:1GiB"] {
            assert_eq!(own(kept), Ok(kept.to_owned()));
        }
        let error = own("file:/x?fill").expect_err("it writes");
        assert!(error.starts_with("--disk \"file:/x?fill&readonly\": fill writes"), "{error}");
        let error = own("/dev/x").expect_err("it has no scheme");
        assert!(error.starts_with("--disk \"/dev/x\": it names no kind of device; "), "{error}");
    }

    #[test]
    fn the_slowest_way_says_how_much_fits() {
        let even = |figure| PerWay { local: figure, nvme: figure, iscsi: figure };
        let served = |nvme, iscsi, alone_us| Served {
            many_iops: PerWay { local: 500_000.0, nvme, iscsi },
            alone_us: even(alone_us),
        };
        let fitting = |served, processors| PM1725.fitting(served, processors);
        assert_eq!(fitting(served(76_000.0, 400_000.0, 1.0), 2), 3);
        assert_eq!(fitting(served(400_000.0, 76_000.0, 1.0), 2), 3, "either way may be it");
        assert_eq!(fitting(served(500_000.0, 9_000.0, 1.0), 2), 1, "a channel is the least");
        let fast = Served { many_iops: even(9e6), alone_us: even(1.0) };
        assert_eq!(fitting(fast, 64), PM1725.channels);
        let slow = Served { alone_us: PerWay { iscsi: 40.0, ..even(1.0) }, ..fast };
        assert_eq!(fitting(slow, 2), 2, "50 000 alone, half of them");
        let light = Drive { used: 0.25, ..PM1725 };
        assert_eq!(light.fitting(slow, 2), 8, "a quarter of it is asked for");
    }
}
