//! A TCP connection for arbitrary bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::case::{Case, Trouble};

/// Time limit of one system call on the socket.
const SLICE: Duration = Duration::from_millis(50);
const DIAL: Duration = Duration::from_secs(5);
const READ_BYTES: usize = 64 << 10;

/// A TCP connection with an input buffer.
pub(super) struct Wire {
    pub(super) stream: TcpStream,
    /// Bytes that were received and not taken.
    input: Vec<u8>,
    has_ended: bool,
}

/// The result of a wait for bytes.
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

    /// Sends bytes for up to `time`. Returns whether all were sent.
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

    /// Waits until `count` bytes have been received and not taken.
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

    /// Takes the next `count` bytes that were received.
    pub(super) fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.input.split_off(count.min(self.input.len()));
        std::mem::replace(&mut self.input, rest)
    }

    /// The bytes that were received and not taken.
    pub(super) fn peek(&self) -> &[u8] {
        &self.input
    }

    /// Discards all input until the connection ends. Returns whether it did within `time`.
    pub(super) fn ends(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.has_ended && Instant::now() < end {
            self.input.clear();
            let left = end.saturating_duration_since(Instant::now());
            self.fill(1, left);
        }
        self.has_ended
    }

    /// Receives and discards one byte.
    pub(super) fn sip(&mut self) -> Filled {
        match self.stream.read(&mut [0; 1]) {
            Ok(1) => Filled::Enough,
            Err(error) if is_late(error.kind()) => Filled::Late,
            _ => Filled::Ended,
        }
    }

    /// Whether the socket has an error, such as a reset; reads nothing.
    pub(super) fn is_reset(&self) -> bool {
        !matches!(self.stream.take_error(), Ok(None))
    }

    /// Ends the connection with a reset.
    pub(super) fn reset(self) {
        sys::stream::forget_unsent(&self.stream);
    }

    /// Shuts down the sending direction (FIN).
    pub(super) fn finish(&self) {
        let _gone = self.stream.shutdown(std::net::Shutdown::Write);
    }
}

/// Whether an error only means that the time limit of a system call was reached.
const fn is_late(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
