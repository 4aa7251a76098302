//! Ends of connections, and listeners, for threads of a simulated world.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sys::event::Waker;
use sys::stream::{End, Listener, SimulatedListener, SimulatedStream, Stream};

use super::schedule::Stage;
use super::state::Wait;

/// One end of a connection, closed when the last handle is dropped.
pub(crate) struct SimStream {
    stage: Arc<Stage>,
    end: usize,
}

impl SimStream {
    pub(crate) fn new(stage: &Arc<Stage>, end: usize) -> Self {
        Self { stage: Arc::clone(stage), end }
    }

    /// The number of the end behind a stream of this world.
    pub(crate) fn number_of(stream: &Stream) -> usize {
        let number = stream.simulated_number().and_then(|number| usize::try_from(number).ok());
        number.expect("a stream of this world")
    }
}

impl SimulatedStream for SimStream {
    fn number(&self) -> u64 {
        self.end as u64
    }

    fn now_ns(&self) -> u64 {
        self.stage.lock().now_ns
    }

    fn read(&self, into: &mut [u8]) -> Result<usize> {
        let state = self.stage.lock();
        let until_ns = state.ends[self.end].patience_ns.map(|patience| state.now_ns + patience);
        drop(state);
        self.stage.block(Wait::Stream(self.end, None), until_ns);
        let mut guard = self.stage.lock();
        let state = &mut *guard;
        let end = &mut state.ends[self.end];
        if !end.inbox.is_empty() {
            let count = end.take(into, &mut state.draw);
            state.go_on_sending(self.end ^ 1);
            return Ok(count);
        }
        match end.state {
            now if now.is_reset => Err(ErrorKind::ConnectionReset.into()),
            now if now.is_finished || now.is_deaf => Ok(0),
            _ => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn wait_to_read(&self, patience: Option<Duration>) {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.stage.lock().ends[self.end].patience_ns = patience.map(ns);
    }

    fn write_all(&self, bytes: &[u8]) -> Result<()> {
        let mut state = self.stage.lock();
        let now = state.ends[self.end].state;
        if now.is_reset || now.has_shut {
            return Err(Error::from(ErrorKind::BrokenPipe));
        }
        state.transmit(self.end, bytes);
        Ok(())
    }

    fn wait(&self, waker: &Waker, timeout: Option<Duration>) -> [bool; 2] {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = timeout.map(|time| self.now_ns().saturating_add(ns(time)));
        self.stage.block(Wait::Stream(self.end, Some(waker.clone())), until_ns);
        [self.stage.lock().ends[self.end].is_readable(), waker.is_used()]
    }

    fn end(&self, end: End) {
        let mut state = self.stage.lock();
        match end {
            End::Writing => state.shut_writing(self.end),
            End::Both => state.shut(self.end),
            End::Abort => state.reset(self.end),
            End::Forget => state.ends[self.end].state.forgets = true,
        }
    }

    fn addresses(&self) -> [SocketAddr; 2] {
        let state = self.stage.lock();
        [state.ends[self.end].address, state.ends[self.end ^ 1].address]
    }

    fn acknowledged_bytes(&self) -> u64 {
        self.stage.lock().ends[self.end].acknowledged
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        self.stage.lock().close(self.end);
    }
}

/// A listener of a simulated world.
pub(crate) struct SimListener {
    stage: Arc<Stage>,
    place: usize,
}

impl SimListener {
    pub(crate) fn new(stage: &Arc<Stage>, place: usize) -> Self {
        Self { stage: Arc::clone(stage), place }
    }

    /// The number of the place behind a listener of this world.
    pub(crate) fn number_of(listener: &Listener) -> usize {
        let number = listener.simulated_number().and_then(|number| usize::try_from(number).ok());
        number.expect("a listener of this world")
    }
}

impl SimulatedListener for SimListener {
    fn number(&self) -> u64 {
        self.place as u64
    }

    fn shut(&self) {
        self.stage.lock().shut_place(self.place);
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        self.shut();
    }
}
