//! Connections and listeners: with sockets during recording, without during replay.

use std::io::{ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sys::event::Waker;
use sys::stream::{End, Listener, SimulatedListener, SimulatedStream, Stream};

use super::turns::{Effect, Tape};

/// One end of a connection, closed when the last handle is dropped. Only a ring sends and receives.
pub(crate) struct TapedStream {
    tape: Arc<Tape>,
    number: usize,
    addresses: [SocketAddr; 2],
}

impl TapedStream {
    pub(crate) fn new(tape: &Arc<Tape>, number: usize, addresses: [SocketAddr; 2]) -> Self {
        Self { tape: Arc::clone(tape), number, addresses }
    }

    /// The number of a stream on the tape.
    pub(crate) fn number_of(stream: &Stream) -> usize {
        let number = stream.simulated_number().and_then(|number| usize::try_from(number).ok());
        number.expect("a stream of this tape")
    }

    /// The socket; `None` during replay.
    fn real(&self) -> Option<Stream> {
        self.tape.lock().streams.get(self.number).cloned().flatten()
    }
}

impl SimulatedStream for TapedStream {
    fn number(&self) -> u64 {
        self.number as u64
    }

    fn now_ns(&self) -> u64 {
        self.tape.lock().now_ns
    }

    fn read(&self, _into: &mut [u8]) -> Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }

    fn wait_to_read(&self, _patience: Option<Duration>) {}

    fn write_all(&self, _bytes: &[u8]) -> Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn wait(&self, _waker: &Waker, _timeout: Option<Duration>) -> [bool; 2] {
        [false, false]
    }

    fn end(&self, end: End) {
        self.tape.ask(Effect::End { stream: self.number, end });
        let Some(real) = self.real() else { return };
        match end {
            End::Writing => real.shut_writing(),
            End::Both => real.shut(),
            End::Abort => real.abort(),
            End::Forget => real.forget_unsent(),
        }
    }

    fn addresses(&self) -> [SocketAddr; 2] {
        self.addresses
    }

    fn acknowledged_bytes(&self) -> u64 {
        self.tape.ask(Effect::Acknowledged(self.number));
        let real = self.real();
        self.tape.count(|| real.and_then(|real| real.acknowledged_bytes().ok()).unwrap_or(0))
    }
}

impl Drop for TapedStream {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.tape.ask(Effect::Close(self.number));
        }
        let real = self.tape.lock().streams.get_mut(self.number).and_then(Option::take);
        drop(real);
    }
}

/// A listener of a tape.
pub(crate) struct TapedListener {
    tape: Arc<Tape>,
    place: usize,
}

impl TapedListener {
    pub(crate) fn new(tape: &Arc<Tape>, place: usize) -> Self {
        Self { tape: Arc::clone(tape), place }
    }

    /// The number of a listener on the tape.
    pub(crate) fn number_of(listener: &Listener) -> usize {
        let number = listener.simulated_number().and_then(|number| usize::try_from(number).ok());
        number.expect("a listener of this tape")
    }
}

impl SimulatedListener for TapedListener {
    fn number(&self) -> u64 {
        self.place as u64
    }

    fn shut(&self) {
        self.tape.ask(Effect::Shut(self.place));
        if let Some(real) = self.tape.lock().places.get(self.place).and_then(Option::as_ref) {
            real.shut();
        }
    }
}

impl Drop for TapedListener {
    fn drop(&mut self) {
        let real = self.tape.lock().places.get_mut(self.place).and_then(Option::take);
        drop(real);
    }
}
