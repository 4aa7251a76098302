//! Flags into a load.

use flash::backend::{BackendUri, Geometry, OpenError, UriError};
use flash::host::{HostConfig, HostError, NvmeUri, NvmeUriError};
use flash::load::{LoadConfig, LoadError, Order, Pace};
use measure::{Bytes, Duration};
use proto::nvme::{Digests, Nqn};
use workload::Spacing;

use crate::flags::{BenchFlags, Pattern, SpacingFlag};
use crate::setting::per_second;

const RUNTIME: Duration = Duration::from_ms(10_000);
const BUSY_POLL_MOST: Duration = Duration::from_ms(1);
/// KATO of a host that lives as long as its load.
const KEEP_ALIVE_MS: u32 = 10_000;

/// Flags that make no load, or a disk that cannot be reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error(transparent)]
    Nvme(#[from] NvmeUriError),
    #[error(transparent)]
    Backend(#[from] UriError),
    #[error("--rate_iops {0}: give requests per second, above 0: 5000, 5k or 1.5M")]
    Rate(String),
    #[error("--host {0}: an NQN has 1 to 223 bytes")]
    Host(String),
    #[error("--busy-poll {0}: at most 1ms; longer is better slept")]
    BusyPoll(Duration),
    #[error(
        "--rw {rw} would overwrite {name}; add --overwrite if nothing there is needed any more"
    )]
    Overwrite { rw: String, name: String },
    #[error("--verify with requests that only read: nothing is written to check; use --rw randrw")]
    NothingToVerify,
    #[error("--bs {bytes}: this disk takes multiples of {block}, {most} at most")]
    Request { bytes: Bytes, block: Bytes, most: Bytes },
    #[error("{what} {bytes}: this disk has {disk}, and each job needs room for {needed}")]
    Region { what: &'static str, bytes: Bytes, disk: Bytes, needed: Bytes },
    #[error("{name}: {source}; check the path and its permissions")]
    Open { name: String, source: OpenError },
    #[error("{name}: {source}")]
    Connect { name: String, source: HostError },
    #[error("{name}: there is no such subsystem; afar discover {address} lists those there are")]
    NoSubsystem { name: String, address: String },
    #[error("{name}: it takes {queues} queues, not --numjobs {jobs}")]
    Queues { name: String, jobs: u16, queues: u16 },
    #[error(transparent)]
    Load(LoadError),
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl BenchError {
    /// Whether it is about what was asked, not about the disk or this machine.
    pub(crate) const fn is_usage(&self) -> bool {
        !matches!(
            self,
            Self::Open { .. }
                | Self::Connect { .. }
                | Self::NoSubsystem { .. }
                | Self::Load(_)
                | Self::System(_)
        )
    }
}

/// Where the disk is.
pub(crate) enum Source {
    Local(BackendUri),
    Remote(NvmeUri, HostConfig),
}

/// A load that is complete but for what the disk says.
pub(crate) struct Plan<'a> {
    pub(crate) source: Source,
    pub(crate) target: String,
    pub(crate) jobs: u16,
    flags: &'a BenchFlags,
    pace: Pace,
    order: Order,
    read_percent: u8,
}

impl<'a> Plan<'a> {
    /// # Errors
    /// The first flag that cannot be.
    pub(crate) fn resolve(flags: &'a BenchFlags) -> Result<Self, BenchError> {
        let source = source(flags)?;
        let (order, read_percent) = match flags.rw {
            Pattern::Randread => (Order::Random, 100),
            Pattern::Randwrite => (Order::Random, 0),
            Pattern::Randrw => (Order::Random, flags.rwmixread),
            Pattern::Read => (Order::Sequential, 100),
            Pattern::Write => (Order::Sequential, 0),
            Pattern::Mixed => (Order::Sequential, flags.rwmixread),
        };
        if flags.verify && read_percent == 100 {
            return Err(BenchError::NothingToVerify);
        }
        let is_file = matches!(&source, Source::Local(uri) if uri.file().is_some());
        if read_percent < 100 && is_file && !flags.overwrite {
            let rw = flags.rw.name();
            return Err(BenchError::Overwrite { rw, name: flags.target.clone() });
        }
        if flags.busy_poll > BUSY_POLL_MOST {
            return Err(BenchError::BusyPoll(flags.busy_poll));
        }
        let (target, jobs) = (flags.target.clone(), flags.numjobs);
        Ok(Self { source, target, jobs, flags, pace: pace(flags)?, order, read_percent })
    }

    /// The load on a disk of this shape, which moves so many bytes in a request.
    ///
    /// # Errors
    /// When the requests do not fit.
    pub(crate) fn config(
        &self,
        geometry: Geometry,
        request_bytes_max: u32,
    ) -> Result<LoadConfig, BenchError> {
        let flags = self.flags;
        let block = u64::from(geometry.block_bytes());
        let bytes = flags.bs.get();
        let most = u64::from(request_bytes_max);
        if bytes == 0 || !bytes.is_multiple_of(block) || bytes > most {
            let [block, most] = [block, most].map(Bytes::new);
            return Err(BenchError::Request { bytes: flags.bs, block, most });
        }
        let disk = geometry.bytes();
        let offset = flags.offset.get();
        let needed = bytes * u64::from(flags.numjobs);
        let wrong = |what, bytes| {
            let [disk, needed] = [disk, needed].map(Bytes::new);
            Err(BenchError::Region { what, bytes, disk, needed })
        };
        let Some(rest) = disk.checked_sub(offset).filter(|rest| *rest >= needed) else {
            return wrong("--offset", flags.offset);
        };
        if !offset.is_multiple_of(block) {
            return wrong("--offset", flags.offset);
        }
        let size = flags.size.map_or(rest, Bytes::get);
        if size > rest || size < needed {
            return wrong("--size", Bytes::new(size));
        }
        let unlimited = flags.number_ios.is_none();
        Ok(LoadConfig {
            order: self.order,
            read_percent: self.read_percent,
            request_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            region: [offset, size / bytes * bytes],
            depth: flags.iodepth,
            jobs: flags.numjobs,
            pace: self.pace,
            ramp: flags.ramp_time,
            runtime: flags.runtime.or_else(|| unlimited.then_some(RUNTIME)),
            request_count: flags.number_ios,
            reconnect: flags.ctrl_loss_tmo,
            busy_poll: flags.busy_poll,
            forced: flags.fua,
            verifies: flags.verify,
            reads_back: flags.verify,
            seed: flags.seed,
            ..LoadConfig::reads(disk)
        })
    }
}

fn source(flags: &BenchFlags) -> Result<Source, BenchError> {
    if !flags.target.starts_with("nvme+") {
        return Ok(Source::Local(flags.target.parse()?));
    }
    let host = Nqn::new(&flags.host).ok_or_else(|| BenchError::Host(flags.host.clone()))?;
    let digests = Digests { header: flags.header_digest, data: flags.data_digest };
    // The same host whenever it comes: an identifier made of its name.
    let mut host_id = [0; 16];
    let digest =
        host.as_str().bytes().fold(0, |state, byte| workload::fnv64(state ^ u64::from(byte)));
    host_id[..8].copy_from_slice(&digest.to_be_bytes());
    host_id[8..].copy_from_slice(&workload::fnv64(digest).to_be_bytes());
    let config = HostConfig { host, host_id, keep_alive_ms: KEEP_ALIVE_MS, digests };
    Ok(Source::Remote(flags.target.parse()?, config))
}

fn pace(flags: &BenchFlags) -> Result<Pace, BenchError> {
    let Some(text) = &flags.rate_iops else { return Ok(Pace::Closed) };
    let rate = per_second(text).ok_or_else(|| BenchError::Rate(text.clone()))?;
    let spacing = match flags.spacing {
        SpacingFlag::Poisson => Spacing::Poisson,
        SpacingFlag::Even => Spacing::Even,
    };
    let mean_ps = 1e12 * f64::from(flags.numjobs) / rate;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cast saturates")]
    let mean = Duration::from_ps((mean_ps as u64).max(1));
    Ok(Pace::Open { mean, spacing })
}
