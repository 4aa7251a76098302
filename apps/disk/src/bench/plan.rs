//! Resolves a job to a load on a disk.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;

use backend::{BackendUri, Claim, Geometry};
use diskload::{Device, LoadConfig, Order, Pace, Think};
use host::initiator::{InitiatorConfig, IscsiUri, LogicalUnit};
use host::{Controller, HostConfig, HostError, NvmeUri, patiently};
use measure::{Bytes, Duration};
use nvme::Digests;

use super::error::BenchError;
use super::job::{Extent, Job, Place};
use crate::bench::flags::BenchFlags;
use client::{InitiatorError, SCHEME, Unserved, host_name, initiator};

const BUSY_POLL_MOST: Duration = Duration::from_ms(1);
/// Keep Alive Timeout (KATO) of the host.
const KEEP_ALIVE_MS: u32 = 10_000;

/// How the disk is reached.
#[derive(Clone)]
pub(crate) enum Source {
    Local(BackendUri),
    Remote(NvmeUri, HostConfig),
    Iscsi(IscsiUri, InitiatorConfig),
}

/// A job whose disk is known but not yet opened.
pub(crate) struct Plan<'a> {
    pub(crate) job: &'a Job,
    pub(crate) source: Source,
    pub(crate) target: String,
    flags: &'a BenchFlags,
}

/// Devices that this process has opened, by name: jobs that name the same disk share one.
#[derive(Default)]
pub(crate) struct Devices {
    local: HashMap<String, Device>,
    /// Files that this process has claimed: another device of this process may use one, too.
    held: HashSet<PathBuf>,
}

impl<'a> Plan<'a> {
    /// Checks a job and finds its disk, without opening it.
    ///
    /// # Errors
    /// The first setting that is invalid.
    pub(crate) fn resolve(job: &'a Job, flags: &'a BenchFlags) -> Result<Self, BenchError> {
        let target = target(job, flags)?;
        // With several disks, a CHAP secret may be for only one of them.
        match &flags.targets[..] {
            several @ [_, _, ..] => {
                flags.initiator.fit(&several.iter().map(String::as_str).collect::<Vec<_>>())?;
            }
            _ => flags.initiator.fit(&[&target])?,
        }
        let source = source(&target, flags)?;
        if job.verifies && job.read_percent == 100 {
            return Err(BenchError::NothingToVerify);
        }
        if job.verifies && job.rw.trims() {
            return Err(BenchError::TrimToVerify);
        }
        let file = match &source {
            Source::Local(uri) => uri.file(),
            Source::Remote(..) | Source::Iscsi(..) => None,
        };
        // A file that does not exist yet has no data to protect.
        let keeps = file.is_some_and(Path::exists) && !flags.overwrite;
        if flags.layout && matches!(&source, Source::Local(uri) if uri.is_read_only()) {
            return Err(BenchError::LayoutReadOnly(target));
        }
        if flags.layout && keeps {
            return Err(BenchError::LayoutOver(target));
        }
        if job.read_percent < 100 && keeps {
            return Err(BenchError::Overwrite { rw: job.rw.name(), name: target });
        }
        if flags.busy_poll > BUSY_POLL_MOST {
            return Err(BenchError::BusyPoll(flags.busy_poll));
        }
        Ok(Self { job, source, target, flags })
    }

    /// The load on a disk of this geometry, which takes up to `request_bytes_max` in a request.
    ///
    /// # Errors
    /// When the size of requests or the region does not fit the disk.
    pub(crate) fn config(
        &self,
        geometry: Geometry,
        request_bytes_max: u32,
    ) -> Result<LoadConfig, BenchError> {
        let Self { job, flags, .. } = self;
        let block = u64::from(geometry.block_bytes());
        let bytes = job.block_bytes;
        let most = u64::from(request_bytes_max);
        if bytes == 0 || !bytes.is_multiple_of(block) || bytes > most {
            let [bytes, block, most] = [bytes, block, most].map(Bytes::new);
            return Err(BenchError::Request { bytes, block, most });
        }
        let region = self.region(geometry)?;
        let order = match (job.rw.is_sequential(), job.zipf) {
            (true, _) => Order::Sequential,
            (false, Some(skew)) => Order::Zipf(skew),
            (false, None) => Order::Random,
        };
        Ok(LoadConfig {
            order,
            read_percent: job.read_percent,
            trims: job.rw.trims(),
            request_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            region,
            depth: job.depth,
            jobs: job.threads,
            pace: pace(job),
            think: job.think.map(|(time, requests)| Think { time, requests }),
            delay: job.delay,
            ramp: job.ramp,
            runtime: job.runtime,
            request_count: request_count(job, region[1]),
            reconnect: flags.ctrl_loss_tmo,
            busy_poll: flags.busy_poll,
            forced: job.is_forced,
            flush_every: job.flush_every,
            verifies: job.verifies,
            reads_back: job.verifies && job.reads_back,
            seed: job.seed.unwrap_or_else(sys::clock::unix_ns),
            ..LoadConfig::reads(geometry.bytes())
        })
    }

    // Offset and bytes of the region for requests: whole requests, at least one for each thread.
    fn region(&self, geometry: Geometry) -> Result<[u64; 2], BenchError> {
        let job = self.job;
        let bytes = job.block_bytes;
        let disk = geometry.bytes();
        let block = u64::from(geometry.block_bytes());
        let needed = bytes * u64::from(job.threads);
        let wrong = |what, bytes| {
            let [bytes, disk, needed] = [bytes, disk, needed].map(Bytes::new);
            Err(BenchError::Region { what, bytes, disk, needed })
        };
        // A share of the disk is rounded down to whole blocks.
        let extent = |extent: Extent| match extent {
            Extent::Bytes(bytes) => bytes,
            Extent::Percent(_) => extent.of(disk) / block * block,
        };
        let offset = extent(job.offset);
        let Some(rest) = disk.checked_sub(offset).filter(|rest| *rest >= needed) else {
            return wrong("--offset", offset);
        };
        if !offset.is_multiple_of(block) {
            return wrong("--offset", offset);
        }
        let size = job.size.map_or(rest, extent);
        if size > rest || size < needed {
            return wrong("--size", size);
        }
        Ok([offset, size / bytes * bytes])
    }
}

// How many requests each thread makes at most; `None` if only time ends the job. By default each
// thread makes as many as the region has.
fn request_count(job: &Job, region_bytes: u64) -> Option<u64> {
    if job.is_time_based {
        return job.number_ios;
    }
    let bytes = job.io_size.map_or(region_bytes, |extent| extent.of(region_bytes));
    let count = (bytes / job.block_bytes).max(1);
    Some(job.number_ios.map_or(count, |number| number.min(count)))
}

/// The pace of each thread: a closed loop, or arrivals at the job's rate.
pub(super) fn pace(job: &Job) -> Pace {
    let Some(rate) = job.rate else { return Pace::Closed };
    let mean_ps = 1e12 * f64::from(job.threads) / rate;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cast saturates")]
    let mean = Duration::from_ps((mean_ps as u64).max(1));
    Pace::Open { mean, spacing: job.spacing }
}

// The URI of the job's disk. A missing file is created if the job writes and gives its size.
fn target(job: &Job, flags: &BenchFlags) -> Result<String, BenchError> {
    let path = match &job.place {
        Some(Place::Uri(uri)) => return Ok(uri.clone()),
        Some(Place::Path(path)) => path,
        None => {
            let given = flags.targets.first().cloned().filter(|_| flags.job.is_some());
            return given.ok_or(BenchError::NoDisk);
        }
    };
    let size = match (job.size, job.offset) {
        (Some(Extent::Bytes(size)), Extent::Bytes(offset)) => size.checked_add(offset),
        _ => None,
    };
    match size {
        Some(size) if job.read_percent < 100 && !Path::new(path).exists() => {
            Ok(format!("file:{path}?size={size}"))
        }
        _ => Ok(format!("file:{path}")),
    }
}

// Parses the URI of a disk.
fn source(target: &str, flags: &BenchFlags) -> Result<Source, BenchError> {
    if target.starts_with(SCHEME) {
        let uri = target.parse().map_err(InitiatorError::from)?;
        let digests = scsi::iscsi::Digests { header: flags.header_digest, data: flags.data_digest };
        let config = initiator(&flags.initiator, &uri, digests)?;
        return Ok(Source::Iscsi(uri, config));
    }
    if !target.starts_with("nvme+") {
        // URIs of local devices have no slashes behind their scheme.
        if target.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(':')) {
            return Err(BenchError::Scheme(target.to_owned()));
        }
        return Ok(Source::Local(target.parse()?));
    }
    let host = host_name(&flags.host)?;
    let digests = Digests { header: flags.header_digest, data: flags.data_digest };
    let config = HostConfig { keep_alive_ms: KEEP_ALIVE_MS, digests, ..HostConfig::named(host) };
    Ok(Source::Remote(target.parse()?, config))
}

impl Devices {
    /// Opens the disk of a load, or returns the one that is open.
    ///
    /// # Errors
    /// When the disk cannot be opened or reached.
    pub(crate) fn open(&mut self, plan: &Plan<'_>) -> Result<Device, BenchError> {
        let name = || plan.target.clone();
        match &plan.source {
            Source::Local(uri) => {
                if let Some(device) = self.local.get(&plan.target) {
                    return Ok(device.clone());
                }
                // Two names may lead to one file.
                let file = || uri.file().and_then(|path| path.canonicalize().ok());
                let is_held = file().is_some_and(|file| self.held.contains(&file));
                if let Some(text) = uri.fills().and_then(crate::holes::filling) {
                    console::terminal::note(&format!("afar bench: {text}\n"));
                }
                let opened = uri.open(if is_held { Claim::Held } else { Claim::Alone });
                let device = opened
                    .map(Device::Local)
                    .map_err(|source| BenchError::Open { name: name(), source })?;
                warn_of_holes(plan, uri.file());
                self.held.extend(file().filter(|_| !uri.is_read_only()));
                self.local.insert(name(), device.clone());
                Ok(device)
            }
            Source::Remote(uri, host) => {
                connect(uri, host, plan.job.threads, name(), plan.flags.ctrl_loss_tmo)
            }
            Source::Iscsi(uri, config) => {
                match patiently(plan.flags.ctrl_loss_tmo, sleep, || {
                    LogicalUnit::connect(uri, config)
                }) {
                    Ok(unit) => Ok(Device::Iscsi(Arc::new(unit))),
                    Err(source) => Err(unreached(source, name(), &uri.address)),
                }
            }
        }
    }
}

// Warns of holes in a file that is read: a read of a hole does not reach the medium, so it is
// faster than the medium.
fn warn_of_holes(plan: &Plan<'_>, file: Option<&Path>) {
    let holes = file.and_then(crate::holes::told);
    let asks_none = plan.job.read_percent > 0 && !plan.flags.layout;
    if let (Some(holes), Some(file), true) = (holes, file, asks_none) {
        console::terminal::say(&format!(
            "afar bench: {}{holes}; to measure its medium, write all of it first (--layout, which \
             overwrites what is there) or let the file have all its room (?fill, which keeps it)\n",
            file.display()
        ));
    }
}

// The error for a target that cannot be connected to.
fn unreached(source: HostError, name: String, address: &str) -> BenchError {
    match Unserved::of(&source, &name, address) {
        Some(unserved) => unserved.into(),
        None => BenchError::Connect { name, source },
    }
}

// Connects to a namespace with a queue for each of `jobs`; retries for up to `patience`.
fn connect(
    uri: &NvmeUri,
    host: &HostConfig,
    jobs: u16,
    name: String,
    patience: Duration,
) -> Result<Device, BenchError> {
    let controller = match patiently(patience, sleep, || Controller::connect(uri, host, jobs)) {
        Ok(controller) => controller,
        Err(source) => return Err(unreached(source, name, &uri.address)),
    };
    let queues = controller.io_queues();
    if queues < jobs {
        return Err(BenchError::Queues { name, jobs, queues });
    }
    Ok(Device::Remote(Arc::new(controller)))
}
