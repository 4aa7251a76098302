//! memcached, in its text protocol (doc/protocol.txt of its source).
//!
//! One `get` requests many keys. memcached answers each request with a system call of its own,
//! which wakes the client. With a request for each key those would be much of the measured time,
//! and the more the slower the server is.

use std::io::Write;
use std::path::Path;

use super::wire::{BATCH, Store, VALUE_BYTES, Wire, value};
use crate::failure::Failure;

/// A connection to memcached.
pub(crate) struct Memcached {
    wire: Wire,
    line: Vec<u8>,
    request: Vec<u8>,
}

impl Memcached {
    /// Connects, and checks that memcached answers.
    ///
    /// # Errors
    /// When nobody answers at `socket`.
    pub(crate) fn connect(socket: &Path) -> Result<Self, Failure> {
        let mut memcached = Self {
            wire: Wire::connect("memcached", socket)?,
            line: Vec::new(),
            request: Vec::new(),
        };
        memcached.wire.send(b"verbosity 0\r\n")?;
        memcached.wire.expect_line(b"OK", "verbosity")?;
        Ok(memcached)
    }
}

impl Store for Memcached {
    fn fill(&mut self, keys: u64) -> Result<(), Failure> {
        for first in (0..keys).step_by(usize::try_from(BATCH).unwrap_or(1)) {
            let batch = first..keys.min(first + BATCH);
            self.request.clear();
            for key in batch.clone() {
                // One answer for all: a set that failed shows when its key is read.
                let quiet = if key + 1 < batch.end { " noreply" } else { "" };
                let head = format!("set key:{key:012} 0 0 {VALUE_BYTES}{quiet}\r\n");
                self.request.extend_from_slice(head.as_bytes());
                self.request.extend_from_slice(&value(key));
                self.request.extend_from_slice(b"\r\n");
            }
            self.wire.send(&self.request)?;
            self.wire.expect_line(b"STORED", "set")?;
        }
        Ok(())
    }

    fn get(&mut self, keys: &[u64]) -> Result<(), Failure> {
        self.request.clear();
        self.request.extend_from_slice(b"get");
        for key in keys {
            let _in_memory = write!(self.request, " key:{key:012}");
        }
        self.request.extend_from_slice(b"\r\n");
        self.wire.send(&self.request)?;
        for &key in keys {
            self.wire.line(&mut self.line)?;
            if self.line != format!("VALUE key:{key:012} 0 {VALUE_BYTES}").as_bytes() {
                return Err(Failure::WrongAnswer {
                    server: "memcached",
                    key,
                    answer: String::from_utf8_lossy(&self.line).into_owned(),
                });
            }
            self.wire.expect_value(key)?;
        }
        self.wire.expect_line(b"END", "get")
    }

    fn shut_down(&mut self) -> Result<(), Failure> {
        self.wire.send(b"shutdown\r\n")
    }
}
