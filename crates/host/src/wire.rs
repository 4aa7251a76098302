//! A blocking NVMe/TCP connection with one command at a time. An event request may be outstanding
//! beside it.

use std::collections::VecDeque;
use std::time::Duration;

use nvme::{Answer, Completion, Digests, HostQueue, Submission, Transfer};
use sys::stream::Stream;
use sys::world::World;

use super::HostError;

/// See the module's description.
pub(crate) struct Wire {
    pub(crate) stream: Stream,
    pub(crate) queue: HostQueue,
    input: Vec<u8>,
    unread: [usize; 2],
    /// The CID of the outstanding event request, and results of answered ones.
    request: Option<u16>,
    events: VecDeque<u64>,
}

/// The longest time to connect, and to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
const INPUT_BYTES: usize = 16 << 10;

// Makes a network error of an operation.
fn network(operation: &'static str) -> impl Fn(std::io::Error) -> HostError {
    move |source| HostError::Network { operation, source }
}

impl Wire {
    /// Connects, and agrees with the controller on digests (ICReq, ICResp).
    pub(crate) fn connect(
        world: &dyn World,
        address: &str,
        depth: u16,
        digests: Digests,
    ) -> Result<Self, HostError> {
        let operation = "connect to the target";
        let stream = world.dial(address, PATIENCE).map_err(network(operation))?;
        let mut out = Vec::new();
        let queue = HostQueue::begin(depth, digests, &mut out);
        let mut wire = Self {
            stream,
            queue,
            input: vec![0; INPUT_BYTES],
            unread: [0, 0],
            request: None,
            events: VecDeque::new(),
        };
        wire.send(&out, operation)?;
        let mut is_ready = false;
        while !is_ready {
            wire.hear(operation, |answer| is_ready |= matches!(answer, Answer::Ready { .. }))?;
        }
        Ok(wire)
    }

    /// Sets how long to wait for an answer from now on; `None` is for ever.
    pub(crate) fn be_patient(&self, time: Option<Duration>) -> Result<(), HostError> {
        self.stream.wait_to_read(time).map_err(network("set up a connection"))
    }

    // Writes all bytes to the connection.
    fn send(&mut self, bytes: &[u8], operation: &'static str) -> Result<(), HostError> {
        self.stream.write_all(bytes).map_err(network(operation))
    }

    // Decodes the next answer from bytes that were read. Returns whether there was one.
    fn next(
        &mut self,
        operation: &'static str,
        heard: impl FnOnce(Answer<'_>),
    ) -> Result<bool, HostError> {
        let [start, end] = self.unread;
        let mut rest = &self.input[start..end];
        let answer = self.queue.receive(&mut rest);
        self.unread[0] = end - rest.len();
        match answer {
            Ok(Some(Answer::Ended(completion))) if Some(completion.cid) == self.request => {
                self.request = None;
                if completion.status.is_success() {
                    self.events.push_back(completion.result);
                }
                Ok(true)
            }
            Ok(Some(answer)) => {
                heard(answer);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(fatal) => {
                let reason = format!("it speaks no NVMe/TCP: {:?}", fatal.status);
                Err(HostError::Protocol { operation, reason })
            }
        }
    }

    // Reads more bytes, waiting for them; all bytes read before have been decoded.
    fn fill(&mut self, operation: &'static str) -> Result<(), HostError> {
        let count = self.stream.read(&mut self.input).map_err(network(operation))?;
        if count == 0 {
            let reason = "it closed the connection";
            let source = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, reason);
            return Err(HostError::Network { operation, source });
        }
        self.unread = [0, count];
        Ok(())
    }

    // Waits for the next answer of the controller.
    fn hear(
        &mut self,
        operation: &'static str,
        mut heard: impl FnMut(Answer<'_>),
    ) -> Result<(), HostError> {
        while !self.next(operation, &mut heard)? {
            self.fill(operation)?;
        }
        Ok(())
    }

    /// Decodes events that have arrived while no command is under way. It reads from the connection
    /// only if that `is_readable`, so it does not wait.
    pub(crate) fn listen(&mut self, is_readable: bool) -> Result<(), HostError> {
        let operation = "listen to the controller";
        while self.next(operation, |_| {})? {}
        if is_readable {
            self.fill(operation)?;
            while self.next(operation, |_| {})? {}
        }
        Ok(())
    }

    /// Takes the result of an answered event request (Base 5.1.2).
    pub(crate) fn event(&mut self) -> Option<u64> {
        self.events.pop_front()
    }

    /// Sends an event request, unless one is outstanding.
    pub(crate) fn request_event(&mut self, submission: &Submission) -> Result<(), HostError> {
        if self.request.is_none() {
            let mut out = Vec::new();
            self.request = self.queue.submit(submission.write(), &[], Transfer::None, &mut out);
            self.send(&out, "ask for events")?;
        }
        Ok(())
    }

    /// Executes a command. Returns its result, and the data that it reads.
    pub(crate) fn ask(
        &mut self,
        operation: &'static str,
        submission: &Submission,
        sent: &[u8],
        transfer: Transfer,
    ) -> Result<(u64, Vec<u8>), HostError> {
        let mut out = Vec::new();
        let cid = self.queue.submit(submission.write(), sent, transfer, &mut out);
        if cid.is_none() {
            let reason = "too much is under way".to_owned();
            return Err(HostError::Protocol { operation, reason });
        }
        self.send(&out, operation)?;
        let mut data = Vec::new();
        let mut ended: Option<Completion> = None;
        while ended.is_none() {
            self.hear(operation, |answer| match answer {
                Answer::Data(of, _, bytes) if Some(of) == cid => data.extend_from_slice(bytes),
                Answer::Ended(completion) if Some(completion.cid) == cid => {
                    ended = Some(completion);
                }
                _ => {}
            })?;
        }
        match ended {
            Some(Completion { status, result, .. }) if status.is_success() => Ok((result, data)),
            Some(Completion { status, .. }) => Err(HostError::Refused { operation, status }),
            None => unreachable!("the loop ends with one"),
        }
    }
}
