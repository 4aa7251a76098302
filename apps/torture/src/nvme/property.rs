//! Accesses to all properties, and fast changes of CC (NVM Express Base 3.1.4, 6.4, 6.6).

use super::super::case::{Case, Row, Seen, Trouble, Want, row};
use super::peer::{ANSWER, Peer, read};
use super::sqe::Sqe;

use Want::{AnyStatus, Served};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("N29", n29, &[Served, AnyStatus],
        "Property Get and Set at every offset in both sizes; CC.EN 1,000 times; CC.SHN with \
         reads under way"),
];

const CC: u32 = 0x14;
const ENABLED: u32 = 0x0046_0001;
const SHUTDOWN: u32 = 1 << 14;

/// Case N29: Property Get and Set at every offset; 1,000 resets; a shutdown during reads.
fn n29(case: &mut Case<'_>) -> Done {
    every_offset(case)?;
    let mut admin = Peer::admin(case, 0)?;
    for round in 0..case.times(1000) {
        for value in [0, ENABLED] {
            let seen = admin.ask(set(CC, value), &[]);
            case.saw(format!("CC.EN, round {round}"), &seen);
        }
        case.go_on()?;
    }
    let seen = admin.alive(case, Seen::Served);
    case.saw_as("the controller after that", &seen, &[Served]);
    shutdown(case)
}

/// A Property Set of 4 bytes.
fn set(offset: u32, value: u32) -> Sqe {
    Sqe::fabrics(0x00).dword(44, offset).dword(48, value)
}

/// Property Get and Set at every offset, in both sizes.
fn every_offset(case: &mut Case<'_>) -> Done {
    let mut admin = Peer::admin(case, 0)?;
    let step = if case.site.quick { 0x404 } else { 4 };
    // All defined properties, and further offsets.
    let offsets = (0..0x78).step_by(4).chain((0x78..0xfffd).step_by(step));
    for offset in offsets {
        for wide in [0, 1] {
            let get = Sqe::fabrics(0x04).byte(40, wide).dword(44, offset);
            let seen = admin.ask(get, &[]);
            case.saw(format!("Get {offset:x}h"), &seen);
            let seen = admin.ask(set(offset, 0).byte(40, wide), &[]);
            case.saw(format!("Set {offset:x}h"), &seen);
            if !matches!(seen, Seen::Served | Seen::Status(_)) {
                admin = Peer::admin(case, 0)?;
            }
        }
        if offset % 0x400 == 0 {
            case.go_on()?;
        }
    }
    for offset in [1, 2, 0x15, 0xffff, 0x1_0000, u32::MAX] {
        let seen = admin.ask(Sqe::fabrics(0x04).dword(44, offset), &[]);
        case.saw(format!("Get {offset:x}h"), &seen);
    }
    let seen = admin.alive(case, Seen::Served);
    case.saw_as("the controller after that", &seen, &[Served]);
    Ok(())
}

/// CC.SHN with 16 outstanding reads.
fn shutdown(case: &mut Case<'_>) -> Done {
    let (mut io, mut admin) = Peer::io(case, 0)?;
    let most = 4096_u16.min(u16::try_from(case.site.block_count).unwrap_or(u16::MAX));
    let count = (16_384 / case.site.block_bytes.max(1)).max(1);
    let count = u16::try_from(count).unwrap_or(1).min(most);
    for _ in 0..16 {
        io.submit(read(case, 0, count), &[]);
    }
    let seen = admin.ask(set(CC, ENABLED | SHUTDOWN), &[]);
    case.saw("CC.SHN", &seen);
    let seen = admin.ask(Sqe::fabrics(0x04).dword(44, 0x1c), &[]);
    case.saw("CSTS", &seen);
    // The reads end, or their connection does.
    let _either: Seen = io.end_of(16, ANSWER);
    Ok(())
}
