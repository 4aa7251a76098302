//! A connection on which anything may be sent.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::case::{Case, Trouble};

/// Time of one wait for the socket; between two it is looked whether to stop.
const SLICE: Duration = Duration::from_millis(50);
const DIAL: Duration = Duration::from_secs(5);
const READ_BYTES: usize = 64 << 10;

/// See the module's description.
pub(super) struct Wire {
    pub(super) stream: TcpStream,
    /// Bytes that came and were not taken.
    input: Vec<u8>,
    has_ended: bool,
}

/// Whether as much has come as was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    Enough,
    /// The other end has closed or reset the connection.
    Ended,
    Late,
}

impl Wire {
    /// Connects to the target.
    ///
    /// # Errors
    /// When it does not take connections.
    pub(super) fn dial(case: &Case<'_>) -> Result<Self, Trouble> {
        case.go_on()?;
        let stream = TcpStream::connect_timeout(&case.site.address, DIAL)
            .map_err(|error| Trouble::Failed(format!("connect: {error}")))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SLICE))?;
        stream.set_write_timeout(Some(SLICE))?;
        Ok(Self { stream, input: Vec::new(), has_ended: false })
    }

    /// Sends bytes as far as the other end takes them; whether it took all.
    pub(super) fn send(&mut self, mut bytes: &[u8], time: Duration) -> bool {
        let end = Instant::now() + time;
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(count) if count > 0 => bytes = &bytes[count..],
                Err(error) if is_late(error.kind()) && Instant::now() < end => {}
                _ => return false,
            }
        }
        true
    }

    /// Waits until so many bytes are there.
    pub(super) fn fill(&mut self, count: usize, time: Duration) -> Filled {
        let end = Instant::now() + time;
        let mut bytes = vec![0; READ_BYTES];
        while self.input.len() < count {
            if self.has_ended {
                return Filled::Ended;
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => self.has_ended = true,
                Ok(came) => self.input.extend_from_slice(&bytes[..came]),
                Err(error) if is_late(error.kind()) => {
                    if Instant::now() >= end {
                        return Filled::Late;
                    }
                }
                // A reset is an end, too.
                Err(_) => self.has_ended = true,
            }
        }
        Filled::Enough
    }

    /// The next bytes, which are there.
    pub(super) fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.input.split_off(count.min(self.input.len()));
        std::mem::replace(&mut self.input, rest)
    }

    /// What is there, and not taken.
    pub(super) fn peek(&self) -> &[u8] {
        &self.input
    }

    /// Reads on until the connection ends; whether it did in time.
    pub(super) fn ends(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.has_ended && Instant::now() < end {
            self.input.clear();
            let left = end.saturating_duration_since(Instant::now());
            self.fill(1, left);
        }
        self.has_ended
    }

    /// Reads one byte, if there is one.
    pub(super) fn sip(&mut self) -> Filled {
        match self.stream.read(&mut [0; 1]) {
            Ok(1) => Filled::Enough,
            Err(error) if is_late(error.kind()) => Filled::Late,
            _ => Filled::Ended,
        }
    }

    /// Whether the kernel knows of a reset, without reading what came before it.
    pub(super) fn is_reset(&self) -> bool {
        !matches!(self.stream.take_error(), Ok(None))
    }

    /// Ends the connection with a reset.
    pub(super) fn reset(self) {
        sys::stream::forget_unsent(&self.stream);
    }

    /// Ends what is sent; the other end may go on.
    pub(super) fn finish(&self) {
        let _gone = self.stream.shutdown(std::net::Shutdown::Write);
    }
}

const fn is_late(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
