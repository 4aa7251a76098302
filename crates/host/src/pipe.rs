//! A connection on a ring, with its send and receive buffers.

use sys::ring::{Completed, Held, Ring};
use sys::stream::Stream;

/// See the module's description.
pub(crate) struct Pipe {
    socket: Stream,
    /// Bytes to send next.
    pub(crate) out: Vec<u8>,
    input: Vec<u8>,
    spare: Vec<u8>,
    is_sending: bool,
    is_receiving: bool,
    /// The tokens of its receives and sends: this number, which is even, and the next.
    token: u64,
}

/// The outcome of a completion.
pub(crate) enum Moved {
    /// So many bytes have come in this buffer, to be given back.
    Came(Vec<u8>, usize),
    /// Bytes were sent.
    Went,
    /// The connection is lost.
    Broken,
}

const INPUT_BYTES: usize = 256 << 10;

impl Pipe {
    pub(crate) fn new(socket: Stream, token: u64) -> Self {
        Self {
            socket,
            out: Vec::new(),
            input: vec![0; INPUT_BYTES],
            spare: Vec::new(),
            is_sending: false,
            is_receiving: false,
            token,
        }
    }

    /// Whether a completion with this token belongs to this connection.
    pub(crate) const fn has(&self, token: u64) -> bool {
        token & !1 == self.token
    }

    /// Whether the kernel has no operation of it.
    pub(crate) const fn is_idle(&self) -> bool {
        !self.is_sending && !self.is_receiving
    }

    /// Submits the send of `out` and the next receive.
    pub(crate) fn flush(&mut self, ring: &mut Ring) {
        if !self.is_sending && !self.out.is_empty() {
            let bytes = std::mem::replace(&mut self.out, std::mem::take(&mut self.spare));
            ring.send(&self.socket, self.token + 1, bytes, 0);
            self.is_sending = true;
        }
        if !self.is_receiving {
            let input = std::mem::take(&mut self.input);
            ring.receive(&self.socket, self.token, input, 0);
            self.is_receiving = true;
        }
    }

    /// Handles a completion with one of its tokens.
    pub(crate) fn complete(&mut self, completed: Completed) -> Moved {
        let Held::Bytes(bytes) = completed.held else { return Moved::Went };
        if completed.token == self.token {
            self.is_receiving = false;
            return match completed.result {
                Ok(count) if count > 0 => Moved::Came(bytes, count as usize),
                _ => Moved::Broken,
            };
        }
        self.is_sending = false;
        let is_whole = matches!(completed.result, Ok(count) if count as usize == bytes.len());
        self.spare = bytes;
        self.spare.clear();
        if is_whole { Moved::Went } else { Moved::Broken }
    }

    /// Takes back the buffer of [`Moved::Came`].
    pub(crate) fn give_back(&mut self, input: Vec<u8>) {
        self.input = input;
    }

    /// Closes the connection. If it `forgets`, bytes still in this machine are never sent.
    pub(crate) fn cut(&self, forgets: bool) {
        if forgets {
            self.socket.forget_unsent();
        }
        self.socket.shut();
    }
}
