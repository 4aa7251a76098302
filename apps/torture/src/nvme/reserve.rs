//! Reservations by hundreds of hosts, with wrong keys, and preempted (NVM Express Base 7).

use super::super::case::{Case, Row, Seen, Trouble, Want, may_write};
use super::peer::{Peer, Said};
use super::sqe::{ACQUIRE, IDENTIFY, REGISTER, RELEASE, Sqe};

use Want::{AnyStatus, Served, Status};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    may_write("N47", n47, &[Served, AnyStatus],
        "reservations: hundreds of hosts, wrong keys, PTPL, hosts that preempt one another \
         1,000 times"),
];

const CONFLICT: Want = Status(0x083);
const KEY: u64 = 0x1122_3344_5566_7788;
/// The type Write Exclusive, which lets the neighbour read.
const WRITE_EXCLUSIVE: u8 = 1;

/// A host with an admin queue and an I/O queue.
struct Host {
    io: Peer,
    _admin: Peer,
}

/// Connects a host with an identifier and a name that contain `number`.
fn host(case: &Case<'_>, number: u16) -> Result<Host, Trouble> {
    let mut host_id = [0x5a; 16];
    host_id[..2].copy_from_slice(&number.to_be_bytes());
    let named = |said: Said| {
        let host = [&said.host[..], b".", number.to_string().as_bytes()].concat();
        Said { host_id, host, ..said }
    };
    let admin = Peer::admin_of(case, 0, &named(Said::of(case, 0, 0xffff)))?;
    let io = Peer::io_of(case, 0, &named(Said::of(case, 1, admin.controller)))?;
    Ok(Host { io, _admin: admin })
}

impl Host {
    /// Sends a reservation command with bytes 40 and 41 and two keys, then checks that the
    /// connection lives.
    fn ask(&mut self, case: &Case<'_>, opcode: u8, [ten, kind]: [u8; 2], keys: [u64; 2]) -> Seen {
        let mut data = Vec::new();
        for key in keys {
            data.extend_from_slice(&key.to_le_bytes());
        }
        // Release has only the current key.
        data.truncate(if opcode == RELEASE { 8 } else { 16 });
        let bytes = u32::try_from(data.len()).unwrap_or(0);
        let sqe = Sqe::new(opcode)
            .nsid(case.site.nvme().nsid)
            .byte(40, ten)
            .byte(41, kind)
            .in_capsule(bytes);
        self.io.try_out(case, sqe, &data)
    }

    /// Registers the second of `keys`.
    fn register(&mut self, case: &Case<'_>, keys: [u64; 2]) -> Seen {
        self.ask(case, REGISTER, [0, 0], keys)
    }
}

/// Case N47: reservations of many hosts with right and wrong keys.
fn n47(case: &mut Case<'_>) -> Done {
    let mut admin = Peer::admin(case, 0)?;
    let identify = Sqe::new(IDENTIFY).cdw(10, 1).moved(4096);
    let has_any = admin.ask(identify, &[]) == Seen::Served
        && admin.data.get(520).is_some_and(|oncs| oncs & 1 << 5 != 0);
    if !has_any {
        return Err(Trouble::NotOffered("the controller has no reservations".to_owned()));
    }
    let mut first = host(case, 1)?;
    // Replaces a registration that an earlier run has left.
    first.ask(case, REGISTER, [1 << 3, 0], [0, KEY]);
    let result = tried(case, &mut first);
    // Removes all registrants.
    first.ask(case, REGISTER, [1 << 3, 0], [0, KEY]);
    let seen = first.ask(case, RELEASE, [1, WRITE_EXCLUSIVE], [KEY, 0]);
    case.saw_as("all is cleared", &seen, &[Served]);
    result
}

/// The commands of case N47, with `first` registered.
fn tried(case: &mut Case<'_>, first: &mut Host) -> Done {
    let seen = first.ask(case, ACQUIRE, [0, WRITE_EXCLUSIVE], [KEY + 1, 0]);
    case.saw_as("acquire with a wrong key", &seen, &[CONFLICT]);
    let seen = first.ask(case, ACQUIRE, [0, 99], [KEY, 0]);
    case.saw_as("acquire of a kind that is none", &seen, &[AnyStatus]);
    let seen = first.ask(case, ACQUIRE, [7, WRITE_EXCLUSIVE], [KEY, 0]);
    case.saw_as("an action that is none", &seen, &[AnyStatus]);
    // CPTPL in dword 10: persistence through power loss on, off, and a reserved value.
    for persistence in [3_u8, 2, 1] {
        let mut data = KEY.to_le_bytes().to_vec();
        data.extend_from_slice(&KEY.to_le_bytes());
        let sqe = Sqe::new(REGISTER)
            .nsid(case.site.nvme().nsid)
            .cdw(10, 2 | u32::from(persistence) << 30)
            .in_capsule(16);
        let seen = first.io.try_out(case, sqe, &data);
        case.saw(format!("CPTPL {persistence}"), &seen);
    }
    let short = Sqe::new(REGISTER).nsid(case.site.nvme().nsid).in_capsule(8);
    let seen = first.io.try_out(case, short, &[0; 8]);
    case.saw_as("half a register", &seen, &[AnyStatus]);
    for number in 2..=if case.site.quick { 20 } else { 300 } {
        let mut other = host(case, number)?;
        let seen = other.register(case, [0, KEY + u64::from(number)]);
        case.saw(format!("host {number}"), &seen);
    }
    let mut second = host(case, 2)?;
    second.register(case, [0, KEY + 2]);
    for round in 0..case.times(1000) {
        for (host, own, other) in [(&mut *first, KEY, KEY + 2), (&mut second, KEY + 2, KEY)] {
            host.register(case, [0, own]);
            let seen = host.ask(case, ACQUIRE, [1, WRITE_EXCLUSIVE], [own, other]);
            case.saw(format!("preempt, round {round}"), &seen);
        }
        case.go_on()?;
    }
    Ok(())
}
