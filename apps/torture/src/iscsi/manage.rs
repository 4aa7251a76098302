//! CmdSN outside of the window, task management, and text without end (RFC 7143 4.2, 11.5).

use super::super::case::{Case, Row, Seen, Trouble, Want, may_write, row};
use super::bhs::{Bhs, CONTINUE, FINAL, IMMEDIATE, NO_TAG, TASK, TEXT, text};
use super::data::waiting;
use super::entry::{Entry, UNKNOWN};
use super::peer::{ANSWER, Heard, Peer, SILENCE};

use Want::{AnyReject, Close, Ignored, Reject, Served, Task};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("I51", i51, &[Ignored, Reject(6)],
        "CmdSN below and above the window; more immediate commands than there may be"),
    may_write("I55", i55, &[Task(0), Task(1), Task(2), Task(4), Task(5), Task(255), AnyReject],
        "tasks aborted that are others', unknown or the request itself; resets in a storm; \
         functions 0 and 9 to 127"),
    row("I56", i56, &[Served, AnyReject, Close],
        "SendTargets of another target; text that continues without end"),
];

/// Case I51: CmdSN outside of the window, and too many immediate commands.
fn i51(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    // Moves the window ahead.
    for _ in 0..4 {
        let ready = peer.reading(&[0; 16], 0);
        peer.ask(ready, &[]);
    }
    let now = peer.cmd_sn;
    let most = peer.max_cmd_sn;
    let ways = [
        ("one below", now.wrapping_sub(1)),
        ("2^31 below", now.wrapping_sub(1 << 31)),
        ("one above", most.wrapping_add(1)),
        ("1,000 above", most.wrapping_add(1000)),
        ("2^31 - 1 above", now.wrapping_add((1 << 31) - 1)),
    ];
    for (way, number) in ways {
        let itt = peer.tag();
        let ready = peer.reading(&[0; 16], 0).itt(itt).word(24, number).word(28, peer.exp_stat_sn);
        let pdu = peer.pdu(&ready, &[]);
        peer.send(&pdu);
        let seen = peer.end_of(itt, SILENCE);
        let seen = peer.alive(seen);
        case.saw_as(way, &seen, &[Ignored]);
    }
    // Writes whose data never comes, so nothing is written.
    let mut refused = Seen::Stalled;
    for _ in 0..2000 {
        let write = waiting(&peer, case.site.block_bytes, IMMEDIATE);
        let itt = peer.submit(write, &[]);
        match peer.hear(ANSWER) {
            Heard::Pdu { bhs, .. } if bhs[0] & 0x3f == super::bhs::REJECT => {
                refused = Seen::Reject(bhs[2]);
                break;
            }
            Heard::Pdu { .. } => {}
            _ => {
                refused = peer.end_of(itt, SILENCE);
                break;
            }
        }
    }
    case.saw_as("immediate commands", &refused, &[Reject(6)]);
    Ok(())
}

/// A task management request with `function` and the referenced task tag.
fn manage(peer: &Peer, function: u8, referenced: u32) -> Bhs {
    Bhs::new(TASK | IMMEDIATE)
        .byte(1, FINAL | function)
        .bytes(8, &peer.lun)
        .word(20, referenced)
        .word(32, peer.cmd_sn)
}

/// Case I55: aborts of foreign and unknown tasks, unknown functions, and 1,000 LUN resets.
fn i55(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    let mut other = Peer::enter(case, &Entry::new(9))?;
    let write = waiting(&other, case.site.block_bytes, 0);
    let others = other.submit(write, &[]);
    other.asked(others)?;
    let tag = peer.tag();
    let ways = [
        ("ABORT TASK of nobody", 1, UNKNOWN),
        ("ABORT TASK of another session", 1, others),
        ("ABORT TASK of itself", 1, tag + 1),
        ("TASK REASSIGN", 8, UNKNOWN),
    ];
    for (way, function, referenced) in ways {
        let bhs = manage(&peer, function, referenced);
        let seen = peer.try_out(bhs, &[]);
        case.saw(way, &seen);
    }
    let strange = manage(&peer, 5, NO_TAG).bytes(8, &[0xff; 8]);
    let seen = peer.try_out(strange, &[]);
    case.saw("LUN RESET of a unit that is not there", &seen);
    for function in std::iter::once(0).chain(9..=127) {
        let bhs = manage(&peer, function, NO_TAG);
        let seen = peer.try_out(bhs, &[]);
        case.saw_as(format!("function {function}"), &seen, &[Task(5), Task(255), AnyReject]);
    }
    let seen = other.alive(Seen::Served);
    case.saw_as("the other session", &seen, &[Served]);
    for round in 0..case.times(1000) {
        // A write that is outstanding at the reset; its data never comes.
        let write = waiting(&peer, case.site.block_bytes, 0);
        peer.submit(write, &[]);
        let bhs = manage(&peer, 5, NO_TAG);
        let seen = peer.try_out(bhs, &[]);
        case.saw(format!("LUN RESET, round {round}"), &seen);
        // Clears unit attentions.
        for _ in 0..2 {
            let ready = peer.reading(&[0; 16], 0);
            peer.ask(ready, &[]);
        }
        case.go_on()?;
    }
    Ok(())
}

/// Case I56: SendTargets of unknown targets, and a text request that continues without end.
fn i56(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    for name in ["iqn.2026-11.example:nobody", "All", "", "*", "\u{7f}"] {
        let bhs = Bhs::new(TEXT).bytes(8, &[0; 8]);
        let seen = peer.try_out(bhs, &text(&[("SendTargets", name)]));
        case.saw(format!("SendTargets={name}"), &seen);
    }
    let data = vec![b'a'; 8000];
    let mut ttt = NO_TAG;
    let mut seen = Seen::Served;
    let itt = peer.tag();
    let mut count = 0;
    while seen == Seen::Served && count < case.times(10_000).max(200) {
        let bhs = Bhs::new(TEXT).byte(1, CONTINUE).itt(itt).word(20, ttt);
        let bhs = peer.numbered(bhs);
        let pdu = peer.pdu(&bhs, &data);
        peer.send(&pdu);
        seen = peer.end_of(itt, ANSWER);
        ttt = super::bhs::be32(&peer.last, 20);
        count += 1;
        if count % 16 == 0 {
            case.go_on()?;
        }
    }
    if seen == Seen::Served {
        let last = peer.numbered(Bhs::new(TEXT).itt(itt).word(20, ttt));
        let pdu = peer.pdu(&last, &data);
        peer.send(&pdu);
        seen = peer.end_of(itt, ANSWER);
    }
    let seen = peer.alive(seen);
    case.saw_as("text without end", &seen, &[AnyReject, Close]);
    Ok(())
}
