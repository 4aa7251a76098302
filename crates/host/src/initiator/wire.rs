//! A blocking iSCSI connection.

use std::io::ErrorKind;
use std::time::Duration as StdDuration;

use measure::Duration;
use scsi::iscsi::{Entered, Entry, EntryConfig, Fatal};
use sys::stream::Stream;
use sys::world::World;

use crate::HostError;

/// See the module's description.
pub(super) struct Wire {
    pub(super) stream: Stream,
    input: Vec<u8>,
    unread: [usize; 2],
}

const INPUT_BYTES: usize = 64 << 10;
const LOG_IN: &str = "log in to the target";

/// Makes a network error of an operation.
pub(super) fn network(operation: &'static str) -> impl Fn(std::io::Error) -> HostError {
    move |source| HostError::Network { operation, source }
}

/// Makes a login or protocol error of an operation.
pub(super) fn protocol(operation: &'static str, fatal: Fatal) -> HostError {
    match fatal {
        Fatal::Login(status) => HostError::Login { status },
        fatal @ (Fatal::NoDigests | Fatal::NoProof) => {
            HostError::Protocol { operation, reason: fatal.to_string() }
        }
        fatal => HostError::Protocol { operation, reason: format!("it speaks no iSCSI: {fatal}") },
    }
}

/// When an operation times out, by the world's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(u64);

impl Deadline {
    /// `time` after `now_ns`.
    pub(super) const fn after(now_ns: u64, time: Duration) -> Self {
        Self(now_ns.saturating_add(time.as_ns()))
    }

    // The time left; a time-out error if none is.
    fn left(self, now_ns: u64) -> std::io::Result<StdDuration> {
        match self.0.saturating_sub(now_ns) {
            0 => Err(ErrorKind::TimedOut.into()),
            left => Ok(StdDuration::from_nanos(left)),
        }
    }
}

impl Wire {
    /// Connects to an address.
    pub(super) fn connect(
        world: &dyn World,
        address: &str,
        deadline: Deadline,
    ) -> Result<Self, HostError> {
        let failed = network("connect to the target");
        let left = deadline.left(world.now_ns());
        let stream = left.and_then(|left| world.dial(address, left)).map_err(failed)?;
        Ok(Self { stream, input: vec![0; INPUT_BYTES], unread: [0, 0] })
    }

    /// The deadline `time` from now.
    pub(super) fn deadline(&self, time: Duration) -> Deadline {
        Deadline::after(self.stream.now_ns(), time)
    }

    /// Logs the connection in.
    pub(super) fn enter(
        &mut self,
        config: EntryConfig,
        deadline: Deadline,
    ) -> Result<Entered, HostError> {
        let mut out = Vec::new();
        let mut entry = Entry::begin(config, &mut out);
        loop {
            self.send(&out, LOG_IN)?;
            out.clear();
            let mut rest = self.unread();
            let entered = entry.receive(&mut rest, &mut out);
            let left = rest.len();
            self.keep(left);
            if let Some(entered) = entered.map_err(|fatal| protocol(LOG_IN, fatal))? {
                return Ok(entered);
            }
            if out.is_empty() {
                self.fill(LOG_IN, deadline)?;
            }
        }
    }

    /// Writes all bytes to the connection.
    pub(super) fn send(&mut self, bytes: &[u8], operation: &'static str) -> Result<(), HostError> {
        self.stream.write_all(bytes).map_err(network(operation))
    }

    /// Received bytes that have not been decoded.
    pub(super) fn unread(&self) -> &[u8] {
        &self.input[self.unread[0]..self.unread[1]]
    }

    /// Marks all unread bytes but the last `left` as decoded.
    pub(super) const fn keep(&mut self, left: usize) {
        self.unread[0] = self.unread[1] - left;
    }

    /// Reads more bytes, waiting until `deadline`; all earlier bytes have been decoded.
    pub(super) fn fill(
        &mut self,
        operation: &'static str,
        deadline: Deadline,
    ) -> Result<(), HostError> {
        let failed = network(operation);
        let left = deadline.left(self.stream.now_ns()).map_err(&failed)?;
        self.stream.wait_to_read(Some(left)).map_err(&failed)?;
        let count = self.stream.read(&mut self.input).map_err(|error| match error.kind() {
            // A socket reports a time-out as WouldBlock.
            ErrorKind::WouldBlock => failed(ErrorKind::TimedOut.into()),
            _ => failed(error),
        })?;
        if count == 0 {
            let reason = "it closed the connection";
            let source = std::io::Error::new(ErrorKind::UnexpectedEof, reason);
            return Err(HostError::Network { operation, source });
        }
        self.unread = [0, count];
        Ok(())
    }
}
