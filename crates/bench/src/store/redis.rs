//! Redis, in RESP (Redis serialization protocol specification, version 2).

use std::io::Write;
use std::path::Path;

use super::wire::{BATCH, Store, VALUE_BYTES, Wire, value};
use crate::failure::Failure;

/// A connection to Redis.
pub(crate) struct Redis {
    wire: Wire,
    line: Vec<u8>,
    request: Vec<u8>,
}

impl Redis {
    /// Connects, and checks that Redis answers.
    ///
    /// # Errors
    /// When nobody answers at `socket`.
    pub(crate) fn connect(socket: &Path) -> Result<Self, Failure> {
        let mut redis =
            Self { wire: Wire::connect("Redis", socket)?, line: Vec::new(), request: Vec::new() };
        redis.wire.send(b"*1\r\n$4\r\nPING\r\n")?;
        redis.wire.expect_line(b"+PONG", "PING")?;
        Ok(redis)
    }
}

impl Store for Redis {
    fn fill(&mut self, keys: u64) -> Result<(), Failure> {
        for first in (0..keys).step_by(usize::try_from(BATCH).unwrap_or(1)) {
            let batch = first..keys.min(first + BATCH);
            self.request.clear();
            for key in batch.clone() {
                put_set(&mut self.request, key);
            }
            self.wire.send(&self.request)?;
            for _ in batch {
                self.wire.expect_line(b"+OK", "SET")?;
            }
        }
        Ok(())
    }

    fn get(&mut self, keys: &[u64]) -> Result<(), Failure> {
        self.request.clear();
        for key in keys {
            let _in_memory = write!(self.request, "*2\r\n$3\r\nGET\r\n$16\r\nkey:{key:012}\r\n");
        }
        self.wire.send(&self.request)?;
        for &key in keys {
            self.wire.line(&mut self.line)?;
            if self.line != format!("${VALUE_BYTES}").as_bytes() {
                return Err(Failure::WrongAnswer {
                    server: "Redis",
                    key,
                    answer: String::from_utf8_lossy(&self.line).into_owned(),
                });
            }
            self.wire.expect_value(key)?;
        }
        Ok(())
    }

    fn shut_down(&mut self) -> Result<(), Failure> {
        self.wire.send(b"*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n")
    }
}

// Appends the SET of a key; keys are those of redis-benchmark -r.
fn put_set(request: &mut Vec<u8>, key: u64) {
    let _in_memory =
        write!(request, "*3\r\n$3\r\nSET\r\n$16\r\nkey:{key:012}\r\n${VALUE_BYTES}\r\n");
    request.extend_from_slice(&value(key));
    request.extend_from_slice(b"\r\n");
}
