//! Backends by one conformance suite, and the target with the host over loopback.

mod aborts;
mod backends;
mod conformance;
mod disk;
mod fair;
mod hostile;
mod initiators;
mod iscsi;
mod little;
mod logins;
mod losses;
mod newcomers;
mod paths;
mod ports;
mod proxy;
mod remote;
mod reservations;
mod reserve;
mod resets;
mod views;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use target::Identity;

/// The same for the same text.
pub(crate) fn identity(text: &str) -> Identity {
    let mut bytes = [0; 16];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    Identity::of(bytes)
}

/// A path of its own, gone when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(directory: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("afar-flash-{}-{number}", std::process::id());
        Self(Path::new(directory).join(name))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _absent = std::fs::remove_file(&self.0);
    }
}
