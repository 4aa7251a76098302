//! Initiators that do not read, and initiators that disconnect.

use std::time::{Duration, Instant};

use super::super::case::{Case, Row, Seen, Trouble, Want, row};
use super::super::wire::Filled;
use super::bhs::READS;
use super::data::waiting;
use super::entry::{Entry, OPERATIONAL_TO_FULL};
use super::peer::{ANSWER, Peer};

use Want::{Close, Served};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("I61", i61, &[Close, Served],
        "200 reads of 1 MiB, of which nothing is read; the same, read at a byte a second"),
    row("I62", i62, &[Served],
        "a reset in each state of the protocol; 1,000 silent connections"),
];

// A session that has sent 200 reads of 1 MiB and receives nothing.
fn flooded(case: &Case<'_>, number: u16) -> Result<Peer, Trouble> {
    let mut peer = Peer::enter(case, &Entry::new(number))?;
    let most = u32::try_from(case.site.block_count).unwrap_or(u32::MAX);
    let count = ((1 << 20) / case.site.block_bytes).min(most).min(0xffff);
    let [.., high, low] = count.to_be_bytes();
    let cdb = [0x28, 0, 0, 0, 0, 0, 0, high, low];
    let mut all = Vec::new();
    for _ in 0..200 {
        let itt = peer.tag();
        let read = peer.command(&cdb, READS, count * case.site.block_bytes).itt(itt);
        let bhs = peer.numbered(read);
        all.extend_from_slice(&peer.pdu(&bhs, &[]));
    }
    peer.wire.send(&all, Duration::from_secs(1));
    Ok(peer)
}

/// Case I61: initiators that read nothing, or a byte a second.
fn i61(case: &mut Case<'_>) -> Done {
    let mut silent = flooded(case, 11)?;
    let mut slow = flooded(case, 12)?;
    let began = Instant::now();
    let mut seen = Seen::Served;
    let (mut is_reset, mut sipped) = (false, began);
    while began.elapsed() < case.patience() {
        is_reset |= silent.wire.is_reset();
        if seen == Seen::Served && sipped.elapsed() >= Duration::from_secs(1) {
            sipped = Instant::now();
            if slow.wire.is_reset() || slow.wire.sip() == Filled::Ended {
                seen = Seen::Closed;
            }
        }
        if is_reset && seen == Seen::Closed {
            break;
        }
        case.pause(Duration::from_millis(50))?;
    }
    let ended = is_reset || silent.wire.ends(ANSWER);
    let silent = if ended { Seen::Closed } else { Seen::Stalled };
    case.saw_as("one that reads nothing", &silent, &[Close]);
    case.saw("one that reads a byte a second", &seen);
    Ok(())
}

const STATES: [&str; 8] = [
    "connected",
    "within a header",
    "within a login",
    "login sent",
    "logged in",
    "read under way",
    "write waits for data",
    "within Data-In",
];

/// Case I62: TCP resets in each state of the protocol, and 1,000 silent connections.
fn i62(case: &mut Case<'_>) -> Done {
    for _ in 0..case.times(1000).div_ceil(20) {
        for (state, way) in STATES.iter().enumerate() {
            gone(case, state)?;
            let mut next = Peer::dial(case)?;
            let seen = next.logs_in(case, &Entry::new(14));
            case.saw(format!("after a reset: {way}"), &seen);
            case.go_on()?;
        }
    }
    let count = if case.site.quick { 100 } else { 1000_u32 };
    sys::process::allow_descriptors(u64::from(count) * 2 + 200);
    let mut silent = Vec::new();
    for _ in 0..count {
        silent.push(Peer::dial(case)?);
    }
    let mut next = Peer::dial(case)?;
    let seen = next.logs_in(case, &Entry::new(14));
    case.saw(format!("beside {count} silent connections"), &seen);
    Ok(())
}

// An initiator that proceeds to a state (an index of `STATES`) and resets its connection.
fn gone(case: &Case<'_>, state: usize) -> Done {
    let entry = Entry::new(13);
    let peer = match state {
        0..4 => {
            let mut peer = Peer::dial(case)?;
            let all = [entry.names(case), entry.wishes()].concat();
            let pdu = peer.pdu(&entry.bhs(OPERATIONAL_TO_FULL), &all);
            peer.send(&pdu[..[0, 20, 100, pdu.len()][state]]);
            peer
        }
        6 => {
            let mut peer = Peer::enter(case, &entry)?;
            let write = waiting(&peer, case.site.block_bytes, 0);
            let itt = peer.submit(write, &[]);
            peer.asked(itt)?;
            peer
        }
        _ => {
            let mut peer = Peer::enter(case, &entry)?;
            for _ in 0..[0, 1, 0, 16][state - 4] {
                let read = peer.command(
                    &[0x28, 0, 0, 0, 0, 0, 0, 0, 64],
                    READS,
                    64 * case.site.block_bytes,
                );
                peer.submit(read, &[]);
            }
            if state == 7 {
                peer.wire.fill(100, ANSWER);
            }
            peer
        }
    };
    peer.wire.reset();
    Ok(())
}
