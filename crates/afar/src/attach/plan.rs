//! Flags into a disk and a directory.

use std::fs;
use std::path::{Path, PathBuf};

use flash::host::{Disk, DiskConfig, HostConfig, NvmeUri};
use measure::Duration;
use proto::nvme::{Digests, Nqn};

use crate::flags::AttachFlags;

use super::AttachError;

const KEEP_ALIVE_LEAST: Duration = Duration::from_ms(1000);
const KEEP_ALIVE_MOST: Duration = Duration::from_ms(3_600_000);
const IO_LEAST: Duration = Duration::from_ms(100);

/// The disk that flags name.
///
/// # Errors
/// The first flag that cannot be.
pub(super) fn disk(flags: &AttachFlags) -> Result<DiskConfig, AttachError> {
    let texts = [&flags.target].into_iter().chain(&flags.path);
    let paths = texts.map(|text| text.parse()).collect::<Result<Vec<NvmeUri>, _>>()?;
    if paths.len() > Disk::PATHS_MAX {
        return Err(AttachError::Paths(paths.len()));
    }
    let host = Nqn::new(&flags.host).ok_or_else(|| AttachError::Host(flags.host.clone()))?;
    let keep_alive = flags.keep_alive_tmo;
    if !(KEEP_ALIVE_LEAST..=KEEP_ALIVE_MOST).contains(&keep_alive) {
        let reason = "give 1s to 3600s";
        return Err(AttachError::Time { flag: "keep-alive-tmo", time: keep_alive, reason });
    }
    if flags.io_timeout < IO_LEAST {
        let reason = "give 100ms or more";
        return Err(AttachError::Time { flag: "io-timeout", time: flags.io_timeout, reason });
    }
    let host = HostConfig {
        keep_alive_ms: u32::try_from(keep_alive.as_ns() / 1_000_000).unwrap_or(u32::MAX),
        digests: Digests { header: flags.header_digest, data: flags.data_digest },
        ..HostConfig::named(host)
    };
    Ok(DiskConfig {
        paths,
        host,
        queues: flags.queues,
        depth: flags.queue_size,
        reconnect_delay: flags.reconnect_delay,
        loss_timeout: flags.ctrl_loss_tmo,
        io_timeout: flags.io_timeout,
    })
}

/// The whole path of a directory that nothing of afar is mounted on.
///
/// # Errors
/// Why nothing can be mounted there.
pub(super) fn directory(directory: &Path) -> Result<PathBuf, AttachError> {
    let named = || directory.display().to_string();
    let found = fs::metadata(directory);
    let found = found.map_err(|source| match source.raw_os_error() {
        Some(NOT_CONNECTED) => AttachError::Abandoned { directory: named() },
        _ => AttachError::Directory { directory: named(), source },
    })?;
    if !found.is_dir() {
        return Err(AttachError::NoDirectory { directory: named() });
    }
    let whole = fs::canonicalize(directory);
    let whole = whole.map_err(|source| AttachError::Directory { directory: named(), source })?;
    if sys::mount::mounts_of(KIND).any(|mounted| mounted == whole) {
        return Err(AttachError::Attached { directory: named() });
    }
    Ok(whole)
}

/// ENOTCONN.
const NOT_CONNECTED: i32 = 107;
/// What mounts are known by: `fuse.afar`.
pub(crate) const KIND: &str = "afar";
