//! The common parts of stores: the trait, values, and connections.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::failure::Failure;

/// Bytes of every value.
pub(crate) const VALUE_BYTES: usize = 256;
/// Requests that are sent together while a store is filled.
pub(super) const BATCH: u64 = 500;
/// Longest wait for a store, which hangs if it takes longer.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// A connection to a store.
pub(crate) trait Store: Send {
    /// Stores the value of every key below `keys`.
    ///
    /// # Errors
    /// When the store answers with an error or has closed the connection.
    fn fill(&mut self, keys: u64) -> Result<(), Failure>;

    /// Reads `keys`, sending all requests before the first answer, and checks their values.
    ///
    /// # Errors
    /// When a value is wrong or missing, or the store has closed the connection.
    fn get(&mut self, keys: &[u64]) -> Result<(), Failure>;

    /// Tells the store to shut down.
    ///
    /// # Errors
    /// When the store has closed the connection already.
    fn shut_down(&mut self) -> Result<(), Failure>;
}

/// The value of a key: its number in 20 digits, then filler.
pub(super) fn value(key: u64) -> [u8; VALUE_BYTES] {
    let mut value = [b'x'; VALUE_BYTES];
    for (at, byte) in value[..20].iter_mut().rev().enumerate() {
        let digit = key / 10_u64.pow(u32::try_from(at).unwrap_or(0)) % 10;
        *byte = b'0' + u8::try_from(digit).unwrap_or(0);
    }
    value
}

/// A connection to a store, with read buffer and timeouts.
pub(super) struct Wire {
    stream: BufReader<UnixStream>,
    server: &'static str,
}

impl Wire {
    /// Connects to a server's socket.
    pub(super) fn connect(server: &'static str, socket: &Path) -> Result<Self, Failure> {
        let connected = UnixStream::connect(socket).and_then(|stream| {
            stream.set_read_timeout(Some(SILENCE_MAX))?;
            stream.set_write_timeout(Some(SILENCE_MAX))?;
            Ok(stream)
        });
        let stream = connected.map_err(|source| Failure::Talk { server, source })?;
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream), server })
    }

    /// Sends all `bytes`.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let server = self.server;
        let sent = self.stream.get_mut().write_all(bytes);
        sent.map_err(|source| Failure::Talk { server, source })
    }

    /// Reads a line into `line`, without its line end.
    pub(super) fn line(&mut self, line: &mut Vec<u8>) -> Result<(), Failure> {
        line.clear();
        let server = self.server;
        let read = self.stream.read_until(b'\n', line);
        let count = read.map_err(|source| Failure::Talk { server, source })?;
        if count == 0 {
            let source = std::io::ErrorKind::UnexpectedEof.into();
            return Err(Failure::Talk { server, source });
        }
        while matches!(line.last(), Some(b'\r' | b'\n')) {
            line.pop();
        }
        Ok(())
    }

    /// Reads as many bytes as `bytes` has.
    pub(super) fn exact(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        let server = self.server;
        let read = self.stream.read_exact(bytes);
        read.map_err(|source| Failure::Talk { server, source })
    }

    /// Reads the data block of an answer and checks that it is the value of `key`.
    pub(super) fn expect_value(&mut self, key: u64) -> Result<(), Failure> {
        let mut block = [0; VALUE_BYTES + 2];
        self.exact(&mut block)?;
        if block[..VALUE_BYTES] == value(key) {
            return Ok(());
        }
        Err(Failure::WrongAnswer {
            server: self.server,
            key,
            answer: String::from_utf8_lossy(&block).into_owned(),
        })
    }

    /// Reads a line and checks that it is `wanted`, the answer to `request`.
    pub(super) fn expect_line(
        &mut self,
        wanted: &[u8],
        request: &'static str,
    ) -> Result<(), Failure> {
        let mut line = Vec::new();
        self.line(&mut line)?;
        if line == wanted {
            return Ok(());
        }
        Err(Failure::Refused {
            server: self.server,
            request,
            answer: String::from_utf8_lossy(&line).into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_begins_with_its_key() {
        let value = value(1_234_567);
        assert_eq!(&value[..21], b"00000000000001234567x");
        assert_eq!(value.len(), VALUE_BYTES);
    }

    #[test]
    fn values_of_different_keys_differ() {
        assert_ne!(value(1), value(10));
        assert_ne!(value(0), value(u64::MAX));
    }
}
