//! Resolves flags to a disk and a directory.

use std::fs;
use std::path::{Path, PathBuf};

use backend::{BackendUri, Claim};
use host::initiator::InitiatorConfig;
use host::{Disk, DiskConfig, DiskPath, HostConfig, LocalDevice};
use measure::Duration;
use nvme::Digests;

use crate::attach::flags::AttachFlags;
use client::{InitiatorError, SCHEME, host_name, initiator};

use super::AttachError;

const KEEP_ALIVE_LEAST: Duration = Duration::from_ms(1000);
const KEEP_ALIVE_MOST: Duration = Duration::from_ms(3_600_000);
const IO_LEAST: Duration = Duration::from_ms(100);
/// How long Linux' NVMe/TCP host and iSCSI initiator wait for a lost target.
const NVME_LOSS: Duration = Duration::from_ms(600_000);
const ISCSI_LOSS: Duration = Duration::from_ms(120_000);

/// The configuration of the disk that the flags name; opens a device of this machine.
///
/// # Errors
/// The first flag that is invalid, or a device that cannot be opened.
pub(super) fn disk(flags: &AttachFlags) -> Result<DiskConfig, AttachError> {
    let keep_alive = flags.keep_alive_tmo;
    if !(KEEP_ALIVE_LEAST..=KEEP_ALIVE_MOST).contains(&keep_alive) {
        let reason = "give 1s to 3600s";
        return Err(AttachError::Time { flag: "keep-alive-tmo", time: keep_alive, reason });
    }
    if flags.io_timeout < IO_LEAST {
        let reason = "give 100ms or more";
        return Err(AttachError::Time { flag: "io-timeout", time: flags.io_timeout, reason });
    }
    let texts: Vec<&str> =
        [&flags.target].into_iter().chain(&flags.path).map(String::as_str).collect();
    flags.initiator.fit(&texts)?;
    if let Some(device) = local(flags)? {
        return Ok(config(flags, vec![device]));
    }
    let paths = texts.iter().map(|text| path(text, flags)).collect::<Result<Vec<_>, _>>()?;
    if paths.len() > Disk::PATHS_MAX {
        return Err(AttachError::Paths(paths.len()));
    }
    Ok(config(flags, paths))
}

// The configuration of a disk with these paths, the rest from flags.
fn config(flags: &AttachFlags, paths: Vec<DiskPath>) -> DiskConfig {
    DiskConfig {
        loss_timeout: loss_timeout(&paths[0], flags),
        paths,
        queues: flags.queues,
        depth: flags.queue_size,
        reconnect_delay: flags.reconnect_delay,
        io_timeout: flags.io_timeout,
        trusts_identity: flags.trust_identity,
    }
}

// Opens the device of this machine that the target names; `None` if it names a URI of a target.
fn local(flags: &AttachFlags) -> Result<Option<DiskPath>, AttachError> {
    let name = flags.target.clone();
    let is_uri = name.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(':'));
    // A name without a colon is no device; it is parsed as the URI of a namespace.
    if name.starts_with(SCHEME) || name.starts_with("nvme+") || is_uri || !name.contains(':') {
        return Ok(None);
    }
    if !flags.path.is_empty() {
        return Err(AttachError::OneWay { name });
    }
    let uri: BackendUri = name.parse()?;
    if uri.is_leased() {
        return Err(AttachError::Leased { name });
    }
    if let Some(text) = uri.fills().and_then(crate::holes::filling) {
        console::terminal::note(&format!("afar attach: {text}\n"));
    }
    let opened = uri.open(Claim::Alone);
    let backend = opened.map_err(|source| AttachError::Open { name: name.clone(), source })?;
    Ok(Some(DiskPath::Local(LocalDevice { name, backend })))
}

/// How long there may be no path before requests fail: by a flag, or as Linux has it.
pub(super) fn loss_timeout(first: &DiskPath, flags: &AttachFlags) -> Duration {
    flags.ctrl_loss_tmo.unwrap_or(match first {
        DiskPath::Nvme(..) => NVME_LOSS,
        DiskPath::Iscsi(..) => ISCSI_LOSS,
        // A device of this machine has no path to lose.
        DiskPath::Local(_) => NVME_LOSS,
    })
}

// Parses the URI of a target, iSCSI or NVMe/TCP, with the flags of its protocol.
fn path(text: &str, flags: &AttachFlags) -> Result<DiskPath, AttachError> {
    let (header, data) = (flags.header_digest, flags.data_digest);
    if text.starts_with(SCHEME) {
        let uri = text.parse().map_err(InitiatorError::from)?;
        let digests = scsi::iscsi::Digests { header, data };
        let config = initiator(&flags.initiator, &uri, digests)?;
        let time = flags.keep_alive_tmo;
        return Ok(DiskPath::Iscsi(
            uri,
            InitiatorConfig { ping_after: time, ping_timeout: time, ..config },
        ));
    }
    let uri = text.parse()?;
    let host = host_name(&flags.host)?;
    let host = HostConfig {
        keep_alive_ms: u32::try_from(flags.keep_alive_tmo.as_ns() / 1_000_000).unwrap_or(u32::MAX),
        digests: Digests { header, data },
        ..HostConfig::named(host)
    };
    Ok(DiskPath::Nvme(uri, host))
}

/// The canonical path of the directory to mount on.
///
/// # Errors
/// When it is missing or no directory, or `afar attach` has mounted on it.
pub(super) fn directory(directory: &Path) -> Result<PathBuf, AttachError> {
    let named = || directory.display().to_string();
    let found = fs::metadata(directory);
    let found = found.map_err(|source| match sys::mount::is_abandoned(directory) {
        true => AttachError::Abandoned { directory: named() },
        false => AttachError::Directory { directory: named(), source },
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

/// The subtype of afar's mounts in /proc/mounts: `fuse.afar`.
pub const KIND: &str = "afar";
