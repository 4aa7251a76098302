//! Malformed PDUs (NVMe/TCP 3.3 to 3.6).

use std::time::Duration;

use super::super::case::{Case, Row, Seen, Trouble, Want, row};
use super::super::wire::Filled;
use super::peer::{
    ANSWER, C2H_DATA, C2H_TERM, CAPSULE, DDGST, H2C_DATA, H2C_TERM, HDGST, Heard, IC_RESP, Peer,
    R2T, RESPONSE, Said, ic_req, put_length, read,
};
use super::sqe::{DATASET, KEEP_ALIVE, Sqe};

use Want::{AnyStatus, AnyTerm, Close, Served, Term};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("N1", n1, &[Close],
        "1 to 7 bytes, then nothing"),
    row("N2", n2, &[Served],
        "ICReq byte by byte"),
    row("N3", n3, &[AnyTerm, Close],
        "random bytes"),
    row("N4", n4, &[AnyTerm, Close],
        "HTTP, and the hello of TLS"),
    row("N5", n5, &[Term(1)],
        "unknown types of PDUs, before and after ICReq"),
    row("N6", n6, &[Term(1), Term(2)],
        "types that only controllers send, before and after ICReq"),
    row("N7", n7, &[Term(1), Close],
        "HLEN 0, 7, 255, one off, for each type"),
    row("N8", n8, &[Term(1)],
        "PLEN 0, below HLEN, of no room for data with a digest, 4 GiB"),
    row("N9", n9, &[Served, Term(1)],
        "reserved flags"),
    row("N10", n10, &[Term(1), Term(3)],
        "flags of digests that were not agreed on, or left out"),
    row("N11", n11, &[Term(1)],
        "PDO within the header, behind the PDU, not aligned, 255"),
    row("N12", n12, &[Served],
        "two PDUs in a segment; one in 4,096 segments"),
    row("N13", n13, &[Term(1), Term(6)],
        "ICReq of another version, with an alignment of 32 and 255"),
    row("N14", n14, &[Served, Term(1), Term(6)],
        "ICReq with reserved digests"),
    row("N15", n15, &[Served],
        "ICReq with MAXR2T FFFFFFFFh"),
    row("N17", n17, &[Term(2)],
        "a command before ICReq"),
    row("N18", n18, &[Served, AnyStatus],
        "ICReq, then FIN or reset, 10,000 times"),
];

/// Case N1: 1 to 7 bytes, then nothing.
fn n1(case: &mut Case<'_>) -> Done {
    // Side by side, because each waits for the target's time limit.
    let mut peers = Vec::new();
    for count in 1..=7 {
        let mut peer = Peer::dial(case)?;
        peer.send(&ic_req(0)[..count]);
        peers.push((count, peer));
    }
    let began = std::time::Instant::now();
    for (count, mut peer) in peers {
        let left = case.patience().saturating_sub(began.elapsed()).max(ANSWER);
        let seen = if peer.wire.ends(left) { Seen::Closed } else { Seen::Stalled };
        case.saw(format!("{count} bytes"), &seen);
        case.go_on()?;
    }
    Ok(())
}

/// Case N2: ICReq byte by byte.
fn n2(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::dial(case)?;
    for byte in ic_req(0) {
        peer.send(&[byte]);
    }
    let seen = peer.greeted().map_or(Seen::Stalled, |()| Seen::Served);
    case.saw("ICReq", &seen);
    Ok(())
}

/// Case N3: random bytes.
fn n3(case: &mut Case<'_>) -> Done {
    for round in 0..case.times(200) {
        let mut peer = Peer::dial(case)?;
        // A PDU type that is not ICReq.
        let mut noise = case.noise(4096);
        noise[0] |= 0x80;
        peer.send(&noise);
        let seen = peer.end(ANSWER);
        case.saw(format!("round {round}"), &seen);
    }
    Ok(())
}

/// Case N4: HTTP, and a TLS ClientHello.
fn n4(case: &mut Case<'_>) -> Done {
    let hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[7; 506]].concat();
    let http = b"GET / HTTP/1.1\r\nHost: disk\r\n\r\n".to_vec();
    for (way, bytes) in [("HTTP", http), ("TLS", hello)] {
        let mut peer = Peer::dial(case)?;
        peer.send(&bytes);
        let seen = peer.end(ANSWER);
        case.saw(way, &seen);
    }
    Ok(())
}

// Sends an otherwise correct PDU of type `kind` before ICReq or after it.
fn typed(case: &mut Case<'_>, kind: u8, is_greeted: bool, wants: &[Want]) -> Done {
    let mut peer = if is_greeted { Peer::greet(case, 0)? } else { Peer::dial(case)? };
    let size = if kind == IC_RESP { 120 } else { 16 };
    let pdu = peer.pdu(kind, 0, &vec![0; size], &[]);
    peer.send(&pdu);
    let seen = peer.end(ANSWER);
    let when = if is_greeted { "after" } else { "before" };
    case.saw_as(format!("{kind:02x}h {when} ICReq"), &seen, wants);
    Ok(())
}

/// Case N5: unknown PDU types.
fn n5(case: &mut Case<'_>) -> Done {
    let step = if case.site.quick { 16 } else { 1 };
    for kind in (0x08..=0xff).step_by(step).filter(|kind| *kind != R2T) {
        for is_greeted in [false, true] {
            typed(case, kind, is_greeted, &[Term(1)])?;
        }
    }
    Ok(())
}

/// Case N6: PDU types that only controllers send.
fn n6(case: &mut Case<'_>) -> Done {
    for kind in [IC_RESP, C2H_TERM, RESPONSE, C2H_DATA, R2T] {
        for is_greeted in [false, true] {
            typed(case, kind, is_greeted, &[Term(1), Term(2)])?;
        }
    }
    Ok(())
}

/// Case N7: wrong HLEN.
fn n7(case: &mut Case<'_>) -> Done {
    for (kind, hlen) in [(0x00, 128), (CAPSULE, 72), (H2C_DATA, 24), (H2C_TERM, 24)] {
        for wrong in [0, 7, hlen - 1, hlen + 1, 255] {
            let mut peer = if kind == 0 { Peer::dial(case)? } else { Peer::greet(case, 0)? };
            let mut pdu = peer.pdu(kind, 0, &vec![0; usize::from(hlen) - 8], &[]);
            pdu[2] = wrong;
            peer.send(&pdu);
            let seen = peer.end(ANSWER);
            // A terminate request need not be answered.
            let wants: &[Want] = if kind == H2C_TERM { &[Term(1), Close] } else { &[Term(1)] };
            case.saw_as(format!("type {kind:02x}h, HLEN {wrong}"), &seen, wants);
        }
    }
    Ok(())
}

/// Case N8: wrong PLEN.
fn n8(case: &mut Case<'_>) -> Done {
    let keep_alive = Sqe::new(KEEP_ALIVE);
    let mut lengths = vec![("0", 0, 0), ("71", 71, 0), ("4 GiB", usize::MAX, 0)];
    if Peer::greet(case, 2)?.digests[1] {
        lengths.push(("HLEN + 3 with a data digest", 75, 2));
    }
    for (way, length, digests) in lengths {
        let mut peer = Peer::greet(case, digests)?;
        let mut pdu = peer.capsule(&keep_alive, &[]);
        if length > 72 {
            (pdu[1], pdu[3]) = (if digests > 0 { DDGST } else { 0 }, 72);
        }
        put_length(&mut pdu, length);
        peer.send(&pdu);
        let seen = peer.end(ANSWER);
        case.saw(format!("PLEN {way}"), &seen);
    }
    Ok(())
}

/// Case N9: reserved flags.
fn n9(case: &mut Case<'_>) -> Done {
    for bit in 2..8 {
        let mut peer = Peer::dial(case)?;
        let mut pdu = ic_req(0);
        pdu[1] = 1 << bit;
        peer.send(&pdu);
        let seen = greeting(&mut peer);
        case.saw(format!("bit {bit} of ICReq"), &seen);
        let mut peer = Peer::admin(case, 0)?;
        let mut pdu = peer.capsule(&Sqe::new(KEEP_ALIVE).cid(0x7777), &[]);
        pdu[1] = 1 << bit;
        peer.send(&pdu);
        let seen = peer.end_of(0x7777, ANSWER);
        case.saw(format!("bit {bit} of a capsule"), &seen);
    }
    Ok(())
}

// The reaction to ICReq.
fn greeting(peer: &mut Peer) -> Seen {
    match peer.hear(ANSWER) {
        Heard::Pdu { head, .. } if head[0] == IC_RESP => Seen::Served,
        Heard::Pdu { head, .. } if head[0] == C2H_TERM => Seen::Term(head[8].into()),
        Heard::Pdu { head, .. } => Seen::Wrong(format!("PDU of type {:02x}h", head[0])),
        Heard::Ended => Seen::Closed,
        Heard::Late => Seen::Stalled,
    }
}

/// Case N10: digest flags that contradict the negotiation.
fn n10(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::greet(case, 0)?;
    let mut pdu = peer.capsule(&Sqe::new(KEEP_ALIVE), &[]);
    pdu[1] |= HDGST;
    peer.send(&pdu);
    let seen = peer.end(ANSWER);
    case.saw("a digest that was not agreed on", &seen);
    let mut peer = Peer::greet(case, 1)?;
    if peer.digests[0] {
        let mut pdu = peer.capsule(&Sqe::new(KEEP_ALIVE), &[]);
        pdu[1] &= !HDGST;
        peer.send(&pdu);
        let seen = peer.end(ANSWER);
        case.saw("a digest that is left out", &seen);
    }
    Ok(())
}

/// Case N11: wrong PDO.
fn n11(case: &mut Case<'_>) -> Done {
    for wrong in [0, 8, 71, 73, 74, 255] {
        let mut peer = Peer::greet(case, 0)?;
        let said = Said::of(case, 0, 0xffff);
        // Little data, so that PDO 255 is behind the PDU.
        let mut pdu = peer.capsule(&said.sqe(), &said.data()[..64]);
        pdu[3] = wrong;
        peer.send(&pdu);
        let seen = peer.end(ANSWER);
        case.saw(format!("PDO {wrong}"), &seen);
    }
    Ok(())
}

/// Case N12: two PDUs in a TCP segment, and one PDU in 4,096 segments.
fn n12(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::admin(case, 0)?;
    let ping = Sqe::fabrics(0x04).dword(44, 0x08);
    let two = [peer.capsule(&ping.cid(0x7001), &[]), peer.capsule(&ping.cid(0x7002), &[])].concat();
    peer.send(&two);
    for cid in [0x7001, 0x7002] {
        let seen = peer.end_of(cid, ANSWER);
        case.saw("two in a segment", &seen);
    }
    let (mut io, _admin) = Peer::io(case, 0)?;
    // Dataset Management with 256 ranges fills a capsule; its hints change no data.
    let nsid = case.site.nvme().nsid;
    let hints = Sqe::new(DATASET).nsid(nsid).cdw(10, 255).in_capsule(4096).cid(0x7003);
    let pdu = io.capsule(&hints, &[0; 4096]);
    for byte in pdu {
        if !io.send(&[byte]) {
            break;
        }
    }
    let seen = io.end_of(0x7003, ANSWER);
    let seen = io.alive(case, seen);
    // A target may refuse the hints; only their arrival counts.
    let seen = if matches!(seen, Seen::Status(_)) { Seen::Served } else { seen };
    case.saw("one in 4,096 segments", &seen);
    Ok(())
}

/// Case N13: ICReq with unknown PFV and with HPDA above 31.
fn n13(case: &mut Case<'_>) -> Done {
    for (way, at, value) in
        [("PFV 1", 8, 1), ("PFV 256", 9, 1), ("HPDA 32", 10, 32), ("HPDA 255", 10, 255)]
    {
        let mut peer = Peer::dial(case)?;
        let mut pdu = ic_req(0);
        pdu[at] = value;
        peer.send(&pdu);
        let seen = peer.end(ANSWER);
        case.saw(way, &seen);
    }
    Ok(())
}

/// Case N14: ICReq with reserved bits of DGST.
fn n14(case: &mut Case<'_>) -> Done {
    for bits in [0x04, 0x80, 0xfc] {
        let mut peer = Peer::dial(case)?;
        peer.send(&ic_req(bits));
        let seen = greeting(&mut peer);
        case.saw(format!("digests {bits:02x}h"), &seen);
    }
    Ok(())
}

/// Case N15: ICReq with MAXR2T FFFFFFFFh.
fn n15(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::dial(case)?;
    let mut pdu = ic_req(0);
    pdu[12..16].fill(0xff);
    peer.send(&pdu);
    peer.greeted()?;
    let seen = peer.connect(&Said::of(case, 0, 0xffff));
    case.saw("Connect", &seen);
    Ok(())
}

/// Case N17: a command before ICReq.
fn n17(case: &mut Case<'_>) -> Done {
    for (way, sqe) in [("Keep Alive", Sqe::new(KEEP_ALIVE)), ("Read", read(case, 0, 1))] {
        let mut peer = Peer::dial(case)?;
        let pdu = peer.capsule(&sqe, &[]);
        peer.send(&pdu);
        let seen = peer.end(ANSWER);
        case.saw(way, &seen);
    }
    Ok(())
}

/// Case N18: ICReq, then FIN or a reset, 10,000 times.
fn n18(case: &mut Case<'_>) -> Done {
    for round in 0..case.times(10_000) {
        let mut peer = Peer::dial(case)?;
        peer.send(&ic_req(0));
        if round % 2 == 0 {
            // Reads a little, then resets, so that the connection keeps no port in TIME_WAIT.
            peer.wire.finish();
            let _came: Filled = peer.wire.fill(64, Duration::from_millis(20));
        }
        peer.wire.reset();
    }
    let seen = Peer::greet(case, 0)?.connect(&Said::of(case, 0, 0xffff));
    case.saw("a host that comes after them", &seen);
    Ok(())
}
