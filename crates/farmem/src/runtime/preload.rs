//! The shared object that is loaded into the program, carried inside this binary.

use std::ffi::OsString;

use sys::memory::{MemoryFile, raw};

/// The object, built from the crate `farmem-preload` together with this one.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libafar.so"));

/// The object in memory, where the program's loader finds it for as long as this lives.
#[derive(Debug)]
pub(crate) struct Preload {
    file: MemoryFile,
}

impl Preload {
    pub(crate) fn new() -> Result<Self, sys::Error> {
        let file = MemoryFile::new("libafar.so", OBJECT.len() as u64)?;
        file.write_at(OBJECT, 0)?;
        Ok(Self { file })
    }

    /// The value of `LD_PRELOAD` for the program: the object first, then what was there.
    pub(crate) fn value(&self) -> OsString {
        let mut value =
            OsString::from(format!("/proc/{}/fd/{}", std::process::id(), raw(&self.file)));
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            value.push(":");
            value.push(others);
        }
        value
    }
}
