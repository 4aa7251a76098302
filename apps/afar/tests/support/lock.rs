//! The lock of measurements: a test measures nothing, and hinders none of those beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where it is for one command that is no `Launch`.
pub(crate) fn own_lock() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(1 << 16);
    lock_directory(NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Where it is for a launch.
pub(super) fn lock_directory(number: u32) -> PathBuf {
    let name = format!("locks/{}.{number}", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&path).expect("a directory under target");
    path
}
