//! Hosts that do not read, and hosts that disconnect.

use std::time::{Duration, Instant};

use super::super::case::{Case, Row, Seen, Trouble, Want, row};
use super::super::wire::Filled;
use super::data::{write, writing};
use super::io::transfer_bytes;
use super::peer::{ANSWER, Asked, Peer, Said, ic_req, read};
use super::sqe::Sqe;

use Want::{Close, Served};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("N62", n62, &[Close],
        "1,000 large reads, and nothing of them is read"),
    row("N63", n63, &[Close, Served],
        "the same, read at a byte a second"),
    row("N64", n64, &[Served],
        "a reset in each state of the protocol"),
];

// A queue with up to 1,000 large reads, whose data is not received.
fn flooded(case: &Case<'_>) -> Result<(Peer, Peer), Trouble> {
    let mut admin = Peer::admin(case, 0)?;
    let most = transfer_bytes(&mut admin)?.min(1 << 20);
    let seen = admin.ask(Sqe::fabrics(0x04).byte(40, 1), &[]);
    if seen != Seen::Served {
        return Err(Trouble::Failed(format!("read CAP: {seen}")));
    }
    let entries = u16::try_from(admin.result & 0xffff).unwrap_or(0).min(1000);
    let said = Said { size: entries, ..Said::of(case, 1, admin.controller) };
    let mut io = Peer::io_of(case, 0, &said)?;
    let disk = u32::try_from(case.site.block_count).unwrap_or(u32::MAX);
    let count = (most / case.site.block_bytes).min(disk).max(1);
    let sqe = read(case, 0, u16::try_from(count).unwrap_or(u16::MAX));
    let all: Vec<u8> = (0..entries.max(1)).flat_map(|n| io.capsule(&sqe.cid(n), &[])).collect();
    // The target may stop reading, so not all may be sent.
    io.wire.send(&all, Duration::from_secs(1));
    Ok((io, admin))
}

/// Case N62: a host that reads nothing.
fn n62(case: &mut Case<'_>) -> Done {
    let (mut io, _admin) = flooded(case)?;
    let began = Instant::now();
    while !io.wire.is_reset() && began.elapsed() < case.patience() {
        case.pause(Duration::from_millis(50))?;
    }
    let seen = if io.wire.ends(ANSWER) { Seen::Closed } else { Seen::Stalled };
    case.saw("a host that reads nothing", &seen);
    Ok(())
}

/// Case N63: a host that reads a byte a second.
fn n63(case: &mut Case<'_>) -> Done {
    let (mut io, _admin) = flooded(case)?;
    let began = Instant::now();
    let mut seen = Seen::Served;
    while began.elapsed() < case.patience() {
        if io.wire.is_reset() || io.wire.sip() == Filled::Ended {
            seen = Seen::Closed;
            break;
        }
        case.pause(Duration::from_secs(1))?;
    }
    case.saw("a host that reads a byte a second", &seen);
    Ok(())
}

/// States of the protocol in which a host disconnects.
const STATES: [&str; 13] = [
    "connected",
    "within ICReq",
    "ICReq sent",
    "greeted",
    "within Connect",
    "Connect sent",
    "admin queue",
    "within a command",
    "I/O queue",
    "read under way",
    "write waits for data",
    "within H2CData",
    "within C2HData",
];

/// Case N64: a TCP reset in each state of the protocol.
fn n64(case: &mut Case<'_>) -> Done {
    for _ in 0..case.times(1000).div_ceil(20) {
        for (state, way) in STATES.iter().enumerate() {
            gone(case, state)?;
            if state % 4 == 3 {
                case.go_on()?;
            }
            let mut next = Peer::greet(case, 0)?;
            let seen = next.connect(&Said::of(case, 0, 0xffff));
            case.saw(format!("after a reset: {way}"), &seen);
        }
    }
    Ok(())
}

// A host that proceeds to a state (an index of `STATES`) and resets its connection.
fn gone(case: &Case<'_>, state: usize) -> Done {
    let peer = match state {
        0 => Peer::dial(case)?,
        1 | 2 => {
            let mut peer = Peer::dial(case)?;
            peer.send(&ic_req(0)[..if state == 1 { 77 } else { 128 }]);
            peer
        }
        3 => Peer::greet(case, 0)?,
        4 | 5 => {
            let mut peer = Peer::greet(case, 0)?;
            let said = Said::of(case, 0, 0xffff);
            let pdu = peer.capsule(&said.sqe(), &said.data());
            peer.send(&pdu[..if state == 4 { 500 } else { pdu.len() }]);
            peer
        }
        6 => Peer::admin(case, 0)?,
        7 => {
            let mut peer = Peer::admin(case, 0)?;
            let pdu = peer.capsule(&Sqe::new(super::sqe::IDENTIFY), &[]);
            peer.send(&pdu[..40]);
            peer
        }
        8 => Peer::io(case, 0)?.0,
        9 | 12 => {
            let (mut peer, _admin) = Peer::io(case, 0)?;
            for _ in 0..if state == 9 { 1 } else { 16 } {
                peer.submit(write(case).byte(0, super::sqe::READ), &[]);
            }
            if state == 12 {
                peer.wire.fill(100, ANSWER);
            }
            peer
        }
        _ => {
            let mut writing = writing(case, 0)?;
            if state == 11 {
                let whole = Asked { ..writing.asked };
                let bytes = usize::try_from(whole.length).unwrap_or(0);
                let pdu = writing.io.h2c(whole, 0, &vec![0; bytes], true);
                // Less than a block: nothing is written.
                writing.io.send(&pdu[..100]);
            }
            writing.io
        }
    };
    peer.wire.reset();
    Ok(())
}
