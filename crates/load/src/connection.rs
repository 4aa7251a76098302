use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use workload::Request;

use crate::config::Address;
use crate::protocol::Command;

const READ_BYTES: usize = 64 << 10;

/// An outstanding request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) request: Request,
    /// The command that was sent for it last.
    pub(crate) command: Command,
    /// When it was meant to be sent, by the monotonic clock, in ns.
    pub(crate) meant_ns: u64,
    /// When it was sent.
    pub(crate) sent_ns: u64,
}

/// A connection with its output buffer, its input buffer and its outstanding requests.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    out: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    begin: usize,
    end: usize,
    pub(crate) sent: VecDeque<Sent>,
    /// Whether part of `out` waits until the socket has room.
    pub(crate) blocked: bool,
    pub(crate) failed: bool,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connection {
    /// Connects to `address`; the socket does not block.
    pub(crate) fn open(address: &Address) -> io::Result<Self> {
        let stream = match address {
            Address::Tcp(name) => {
                let stream = TcpStream::connect(name.as_str())?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Stream::Tcp(stream)
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Stream::Unix(stream)
            }
        };
        Ok(Self {
            stream,
            out: Vec::new(),
            written: 0,
            input: vec![0; READ_BYTES],
            begin: 0,
            end: 0,
            sent: VecDeque::new(),
            blocked: false,
            failed: false,
        })
    }

    /// The output buffer, to append to.
    pub(crate) const fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Writes as much of the output buffer as the socket takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.blocked = false;
        while self.written < self.out.len() {
            let rest = &self.out[self.written..];
            let result = match &mut self.stream {
                Stream::Tcp(stream) => stream.write(rest),
                Stream::Unix(stream) => stream.write(rest),
            };
            match result {
                Ok(length) => self.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads once into the input buffer. Returns whether the socket may have more.
    pub(crate) fn read(&mut self) -> io::Result<bool> {
        self.make_room();
        let room = &mut self.input[self.end..];
        let asked = room.len();
        let result = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(room),
            Stream::Unix(stream) => stream.read(room),
        };
        match result {
            Ok(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed it")),
            Ok(length) => {
                self.end += length;
                Ok(length == asked)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Makes free space at the end of the input buffer: moves unread bytes to its front, or grows.
    fn make_room(&mut self) {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        } else if self.end == self.input.len() {
            if self.begin > 0 {
                self.input.copy_within(self.begin..self.end, 0);
                (self.begin, self.end) = (0, self.end - self.begin);
            }
            if self.end > self.input.len() / 2 {
                self.input.resize(self.input.len() * 2, 0);
            }
        }
    }

    /// The bytes that have been read from the socket and not been consumed.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.input[self.begin..self.end]
    }

    /// Consumes the first `length` unread bytes.
    pub(crate) const fn used(&mut self, length: usize) {
        self.begin += length;
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}
