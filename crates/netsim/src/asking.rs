//! Readers: the request that a flow of [`Exchange::Read`] begins with, and asking again.
//!
//! A request is no packet of a transport: it is sent as acknowledgements are, most urgent and
//! without a grant, whatever the transport is. A reader repeats its request when it has received
//! nothing of the flow for the timeout, which doubles each time; a duplicate changes nothing. The
//! sender's transport starts the flow when the first request arrives.

use measure::Duration;

use crate::fabric::Requests;
use crate::flow::Exchange;
use crate::net::Net;
use crate::packet::{Kind, Packet};

/// The timer of readers, after those of transports.
pub(crate) const READER: u8 = 15;
/// Doublings of the timeout.
const BACKOFF_MAX: u8 = 6;

/// What is known of the reader of a flow.
#[derive(Debug, Clone, Copy, Default)]
struct Reader {
    /// Whether the sender has received the request.
    is_begun: bool,
    /// Whether the reader has received a packet of the flow.
    is_heard: bool,
    tries: u8,
}

/// The readers of all flows.
#[derive(Debug)]
pub(crate) struct Asking {
    requests: Requests,
    /// By flow; empty if no flow is a read.
    readers: Vec<Reader>,
}

impl Asking {
    pub(crate) fn new(net: &Net<'_>, requests: Requests) -> Self {
        let is_read = net.flows.iter().any(|flow| flow.exchange == Exchange::Read);
        let count = if is_read { net.flows.len() } else { 0 };
        Self { requests, readers: vec![Reader::default(); count] }
    }

    /// Sends the request of `flow`'s reader and sets the timer that repeats it.
    pub(crate) fn ask(&mut self, net: &mut Net<'_>, flow: u32) {
        let Some(reader) = self.readers.get_mut(flow as usize) else { return };
        let wait = self.requests.timeout.as_ps().saturating_mul(1 << reader.tries);
        reader.tries = (reader.tries + 1).min(BACKOFF_MAX);
        let &crate::Flow { src, dst, .. } = net.flow(flow);
        net.send(dst, Packet::control(self.requests.bytes, flow, Kind::Read, src));
        net.timer(net.now().saturating_add(Duration::from_ps(wait)), READER, flow);
    }

    /// Repeats the request of `flow` after a timeout, unless its reader has received a packet.
    pub(crate) fn again(&mut self, net: &mut Net<'_>, flow: u32) {
        if self.readers.get(flow as usize).is_some_and(|reader| !reader.is_heard) {
            self.ask(net, flow);
        }
    }

    /// Notes that a request reached the sender of `flow`. Returns whether it was the first.
    pub(crate) fn came(&mut self, flow: u32) -> bool {
        let Some(reader) = self.readers.get_mut(flow as usize) else { return false };
        !std::mem::replace(&mut reader.is_begun, true)
    }

    /// Notes that a packet of `flow` reached `host`; it counts if `host` is the reader.
    #[inline]
    pub(crate) fn heard(&mut self, net: &Net<'_>, host: u32, flow: u32) {
        if let Some(reader) = self.readers.get_mut(flow as usize)
            && net.flow(flow).dst == host
        {
            reader.is_heard = true;
        }
    }
}
