//! A minimal NVMe/TCP host: it sends only what it is told to, no keep-alives and no data.

use std::io::{Error, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use nvme::{
    Command, ConnectData, Data, Digests, Direction, Fabrics, Fused, Header, IcReq, Io, Layout, Nqn,
    Property, Range, Status, Submission,
};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Entries of an I/O queue.
pub(super) const ENTRIES: u16 = 128;
const BLOCK: u32 = 512;
const ICRESP_BYTES: usize = 128;
const RESPONSE_BYTES: usize = 24;

/// The address and the subsystem that hosts connect to.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub(super) address: SocketAddr,
    pub(super) subsystem: String,
}

/// A controller with I/O queues.
pub(super) struct Host {
    admin: TcpStream,
    pub(super) queues: Vec<TcpStream>,
}

impl Host {
    /// Connects a host named `name` with `queue_count` I/O queues.
    pub(super) fn connect(way: &Way, name: &str, queue_count: u16) -> Result<Self> {
        let (mut admin, controller) = queue(way, name, [0, 0xffff], 31)?;
        let property = Property { offset: 0x14, is_wide: false };
        let enable = Command::Fabrics(Fabrics::PropertySet { property, value: 0x0046_0001 });
        send(&mut admin, 0, enable, Data::None, Direction::None, &[])?;
        ended(&mut admin)?;
        let queues = (1..=queue_count)
            .map(|number| Ok(queue(way, name, [number, controller], ENTRIES - 1)?.0))
            .collect::<Result<_>>()?;
        Ok(Self { admin, queues })
    }

    /// Connects a host to the discovery controller and sends nothing more.
    pub(super) fn discover(way: &Way, name: &str) -> Result<TcpStream> {
        let way = Way { subsystem: Nqn::DISCOVERY.to_owned(), ..way.clone() };
        Ok(queue(&way, name, [0, 0xffff], 31)?.0)
    }

    /// Sends `count` reads or writes of 1 MiB on the first I/O queue, but neither sends nor reads
    /// their data.
    pub(super) fn begin(&mut self, count: u16, writes: bool) -> Result<()> {
        let range = Range { first: 0, count: (1 << 20) / BLOCK, forced: false };
        let (io, direction) = if writes {
            (Io::Write(range), Direction::ToController)
        } else {
            (Io::Read(range), Direction::ToHost)
        };
        let data = Data::Transport { length: 1 << 20 };
        for cid in 0..count {
            send(&mut self.queues[0], cid, Command::Io(io), data, direction, &[])?;
        }
        Ok(())
    }

    /// Registers `key` in place of the key `before` (0: of none), with persistence through power
    /// loss.
    pub(super) fn register(&mut self, before: u64, key: u64) -> Result<()> {
        let action = if before == 0 { 0 } else { 2 };
        let io = Io::ReservationRegister { action, ignores_key: false, persistence: 3 };
        let keys: Vec<u8> = [before, key].iter().flat_map(|key| key.to_le_bytes()).collect();
        let data = in_capsule(&keys);
        let queue = &mut self.queues[0];
        send(queue, 0, Command::Io(io), data, Direction::ToController, &keys)?;
        ended(queue).map(drop)
    }

    /// All of its connections.
    pub(super) fn into_streams(mut self) -> Vec<TcpStream> {
        self.queues.push(self.admin);
        self.queues
    }
}

/// Connects a queue. Returns its stream and the controller ID.
fn queue(
    way: &Way,
    name: &str,
    [number, controller_id]: [u16; 2],
    size: u16,
) -> Result<(TcpStream, u16)> {
    let mut stream = TcpStream::connect(way.address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut hello = Vec::new();
    let digests = Digests { header: false, data: false };
    let request = IcReq { hpda: 0, digests, maxr2t: 0 };
    Header::IcReq(request).encode(Layout::default(), 0, &mut hello);
    stream.write_all(&hello)?;
    stream.read_exact(&mut [0; ICRESP_BYTES])?;
    let connect =
        Fabrics::Connect { format: 0, queue: number, size, attributes: 0, keep_alive_ms: 0 };
    let nqn = |text: &str| Nqn::new(text).ok_or_else(|| Error::other("it is no NQN"));
    let mut host_id = [0; 16];
    name.bytes().rev().zip(&mut host_id).for_each(|(byte, place)| *place = byte);
    let (subsystem, host) = (nqn(&way.subsystem)?, nqn(name)?);
    let data = ConnectData { host_id, controller_id, subsystem, host }.write();
    let command = Command::Fabrics(connect);
    send(&mut stream, 0, command, in_capsule(&data), Direction::ToController, &data)?;
    let id = ended(&mut stream)?;
    Ok((stream, u16::try_from(id & 0xffff).unwrap_or(0)))
}

/// A description of data that follows the command in its capsule.
fn in_capsule(bytes: &[u8]) -> Data {
    Data::InCapsule { offset: 0, length: u32::try_from(bytes.len()).unwrap_or(0) }
}

/// Sends a command capsule with `bytes` as in-capsule data.
fn send(
    stream: &mut TcpStream,
    cid: u16,
    command: Command,
    data: Data,
    direction: Direction,
    bytes: &[u8],
) -> Result<()> {
    let submission = Submission { cid, fused: Fused::No, nsid: 1, data, direction, command };
    let mut capsule = Vec::new();
    Header::CapsuleCmd(submission.write()).encode(Layout::default(), bytes.len(), &mut capsule);
    capsule.extend_from_slice(bytes);
    stream.write_all(&capsule)
}

// Receives a completion. Returns the first dword of its result; an error if it failed.
fn ended(stream: &mut TcpStream) -> Result<u32> {
    let mut capsule = [0; RESPONSE_BYTES];
    stream.read_exact(&mut capsule)?;
    let status = Status::from_bits(u16::from_le_bytes([capsule[22], capsule[23]]) >> 1);
    if !status.is_success() {
        return Err(Error::other(format!("the target answered {status:?}")));
    }
    Ok(u32::from_le_bytes([capsule[8], capsule[9], capsule[10], capsule[11]]))
}
