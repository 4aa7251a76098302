//! A connection on which an answer is waited for.

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

pub(super) fn network(operation: &'static str) -> impl Fn(std::io::Error) -> HostError {
    move |source| HostError::Network { operation, source }
}

pub(super) fn protocol(operation: &'static str, fatal: Fatal) -> HostError {
    match fatal {
        Fatal::Login(status) => HostError::Login { status },
        fatal @ (Fatal::NoDigests | Fatal::NoProof) => {
            HostError::Protocol { operation, reason: fatal.to_string() }
        }
        fatal => HostError::Protocol { operation, reason: format!("it speaks no iSCSI: {fatal}") },
    }
}

/// Until when something may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(u64);

impl Deadline {
    pub(super) const fn after(now_ns: u64, time: Duration) -> Self {
        Self(now_ns.saturating_add(time.as_ns()))
    }

    fn left(self, now_ns: u64) -> std::io::Result<StdDuration> {
        match self.0.saturating_sub(now_ns) {
            0 => Err(ErrorKind::TimedOut.into()),
            left => Ok(StdDuration::from_nanos(left)),
        }
    }
}

impl Wire {
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

    /// So long from now on.
    pub(super) fn deadline(&self, time: Duration) -> Deadline {
        Deadline::after(self.stream.now_ns(), time)
    }

    /// Logs in.
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

    pub(super) fn send(&mut self, bytes: &[u8], operation: &'static str) -> Result<(), HostError> {
        self.stream.write_all(bytes).map_err(network(operation))
    }

    /// What has come and was not taken.
    pub(super) fn unread(&self) -> &[u8] {
        &self.input[self.unread[0]..self.unread[1]]
    }

    /// All of that but the last `left` bytes was taken.
    pub(super) const fn keep(&mut self, left: usize) {
        self.unread[0] = self.unread[1] - left;
    }

    /// Waits for bytes, once everything has been taken that came before.
    pub(super) fn fill(
        &mut self,
        operation: &'static str,
        deadline: Deadline,
    ) -> Result<(), HostError> {
        let failed = network(operation);
        let left = deadline.left(self.stream.now_ns()).map_err(&failed)?;
        self.stream.wait_to_read(Some(left)).map_err(&failed)?;
        let count = self.stream.read(&mut self.input).map_err(|error| match error.kind() {
            // What a time-out of a socket is called.
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
