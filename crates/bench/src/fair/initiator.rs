//! A minimal iSCSI initiator: it sends only what it is told to.

use std::io::{Error, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use scsi::iscsi::{Entered, Entry, EntryConfig, Initiator, Nonce, Request, Transfer, Wishes};
use scsi::{Extent, ask};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most outstanding commands of a session.
const DEPTH: u16 = 128;
const BLOCK: u32 = 512;
const MIB: usize = 1 << 20;

/// A session of one connection.
pub(super) struct Session {
    initiator: Initiator,
    stream: TcpStream,
}

impl Session {
    /// Logs in: the `number`-th session of the initiator `name` with `target`.
    pub(super) fn log_in(
        address: SocketAddr,
        target: &str,
        name: &str,
        number: u16,
    ) -> Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let [high, low] = number.to_be_bytes();
        let config = EntryConfig {
            initiator: name.to_owned(),
            target: Some(target.to_owned()),
            isid: [0x40, 0, 0, 0, high, low],
            tsih: 0,
            cid: 0,
            cmd_sn: 1,
            wishes: Wishes::default(),
            chap: None,
            algorithms: Vec::new(),
            nonce: Nonce { id: 0, challenge: [0; 32] },
        };
        let Entered { link, .. } = enter(&mut stream, config)?;
        Ok(Self { initiator: Initiator::new(DEPTH, link), stream })
    }

    /// Sends up to `count` reads or writes of 1 MiB, but only unsolicited data of writes, and
    /// receives nothing.
    pub(super) fn begin(&mut self, count: u16, writes: bool) -> Result<()> {
        let blocks = u32::try_from(MIB).unwrap_or(0) / BLOCK;
        let extent = Extent { first: 0, count: blocks, forced: false };
        let bytes = vec![0; MIB];
        for _ in 0..count {
            let (cdb, transfer) = if writes {
                (ask::write(extent), Transfer::Send(&bytes))
            } else {
                (ask::read(extent), Transfer::Receive(blocks * BLOCK))
            };
            let mut out = Vec::new();
            let request = Request { lun: [0; 8], cdb, transfer };
            // The target's command window may be smaller than `count`.
            if self.initiator.submit(0, request, &mut out).is_none() {
                break;
            }
            self.stream.write_all(&out)?;
        }
        Ok(())
    }

    /// The connection of the session.
    pub(super) fn into_stream(self) -> TcpStream {
        self.stream
    }
}

/// Performs the login phase on `stream`.
fn enter(stream: &mut TcpStream, config: EntryConfig) -> Result<Entered> {
    let refused = |error| Error::other(format!("the target refuses: {error}"));
    let mut out = Vec::new();
    let mut entry = Entry::begin(config, &mut out);
    let mut input = Vec::new();
    loop {
        stream.write_all(&std::mem::take(&mut out))?;
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return Err(Error::other("the target hung up in the middle of a login"));
        }
        input.extend_from_slice(&bytes[..count]);
        let mut rest = &input[..];
        let entered = entry.receive(&mut rest, &mut out).map_err(refused)?;
        let used = input.len() - rest.len();
        input.drain(..used);
        if let Some(entered) = entered {
            return Ok(entered);
        }
    }
}
