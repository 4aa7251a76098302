//! Malformed and invalid logins (RFC 7143 6.3, 11.12).

use std::time::{Duration, Instant};

use super::super::case::{Case, Row, Seen, Trouble, Want, row};
use super::bhs::{Bhs, COMMAND, IMMEDIATE, LOGIN};
use super::entry::{CONTINUES, Entry, OPERATIONAL, OPERATIONAL_TO_FULL};
use super::peer::{ANSWER, Peer};

use Want::{AnyLogin, AnyReject, Close, Ignored, Login, Served};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("I1", i1, &[Close, AnyLogin, AnyReject],
        "random bytes"),
    row("I2", i2, &[Close, AnyLogin, AnyReject],
        "HTTP, and the hello of TLS"),
    row("I3", i3, &[Close],
        "1 to 47 bytes of a header, then nothing"),
    row("I4", i4, &[Close],
        "another opcode than Login first"),
    row("I5", i5, &[Close, AnyLogin],
        "a login of 16 MiB, without the data and with it"),
    row("I6", i6, &[Close, AnyLogin, Served],
        "1 to 255 words of additional headers, without them and with them"),
    row("I7", i7, &[Close, AnyLogin],
        "data and additional headers of more than 8 KiB"),
    row("I8", i8, &[Close],
        "a header that FIN cuts off"),
    row("I9", i9, &[Login(0x0205)],
        "Version-min 1 to 255"),
    row("I10", i10, &[Login(0x0200), Login(0x020b)],
        "stages that are none, backwards, or the same"),
    row("I11", i11, &[AnyLogin],
        "a login that transits and continues"),
    row("I12", i12, &[AnyLogin, Close],
        "10,000 requests that continue, full and empty"),
    row("I14", i14, &[Login(0x020a)],
        "a session that is not there"),
    row("I15", i15, &[Served],
        "a session replaced by its own ISID 1,000 times"),
    row("I16", i16, &[Served, AnyLogin],
        "a connection identifier that the session has"),
    row("I18", i18, &[Close, Ignored],
        "CmdSN that jumps within the window"),
];

/// The reaction to `bytes` on a new connection.
fn junk(case: &Case<'_>, bytes: &[u8]) -> Result<Seen, Trouble> {
    let mut peer = Peer::dial(case)?;
    peer.send(bytes);
    Ok(peer.end(case.patience().max(ANSWER)))
}

/// Case I1: random bytes.
fn i1(case: &mut Case<'_>) -> Done {
    for round in 0..case.times(200) {
        let mut noise = case.noise(4096);
        // An opcode that is not Login.
        noise[0] = noise[0] & 0xc0 | 0x20;
        let seen = junk(case, &noise)?;
        case.saw(format!("round {round}"), &seen);
    }
    Ok(())
}

/// Case I2: HTTP, and a TLS ClientHello.
fn i2(case: &mut Case<'_>) -> Done {
    let hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[7; 506]].concat();
    let http = b"GET / HTTP/1.1\r\nHost: disk\r\nAccept: everything that there is\r\n\r\n";
    for (way, bytes) in [("HTTP", &http[..]), ("TLS", &hello)] {
        let seen = junk(case, bytes)?;
        case.saw(way, &seen);
    }
    Ok(())
}

// Peers that send `bytes` and stop. They run side by side, because each waits for the target's
// time limit.
fn stalled(case: &mut Case<'_>, all: Vec<(String, Vec<u8>)>) -> Done {
    let mut peers = Vec::new();
    for (way, bytes) in all {
        let mut peer = Peer::dial(case)?;
        peer.send(&bytes);
        peers.push((way, peer));
    }
    let began = Instant::now();
    for (way, mut peer) in peers {
        let left = case.patience().saturating_sub(began.elapsed()).max(Duration::from_secs(1));
        let seen = peer.end(left);
        case.saw(way, &seen);
        case.go_on()?;
    }
    Ok(())
}

// The bytes of a correct login request.
fn whole(case: &Case<'_>) -> Result<Vec<u8>, Trouble> {
    let entry = Entry::new(2);
    let all = [entry.names(case), entry.wishes()].concat();
    Ok(Peer::dial(case)?.pdu(&entry.bhs(OPERATIONAL_TO_FULL), &all))
}

/// Case I3: part of a header, then nothing.
fn i3(case: &mut Case<'_>) -> Done {
    let login = whole(case)?;
    let pieces = [1, 2, 4, 8, 16, 24, 32, 40, 46, 47];
    let all = pieces.map(|count| (format!("{count} bytes"), login[..count].to_vec()));
    stalled(case, all.to_vec())
}

/// Case I4: another opcode than Login first.
fn i4(case: &mut Case<'_>) -> Done {
    for opcode in (0..0x20).filter(|opcode| *opcode != LOGIN) {
        let mut peer = Peer::dial(case)?;
        let pdu = peer.pdu(&Bhs::new(opcode | IMMEDIATE).itt(1).word(24, 1), &[]);
        peer.send(&pdu);
        let seen = peer.end(ANSWER);
        case.saw(format!("opcode {opcode:02x}h"), &seen);
    }
    let mut peer = Peer::dial(case)?;
    let read = Bhs::new(COMMAND).byte(32, 0x28).word(20, 512);
    let pdu = peer.pdu(&read, &[]);
    peer.send(&pdu);
    let seen = peer.end(ANSWER);
    case.saw("a read", &seen);
    Ok(())
}

/// Case I5: a login request of 16 MiB, without the data and with it.
fn i5(case: &mut Case<'_>) -> Done {
    let bhs = Entry::new(2).bhs(OPERATIONAL_TO_FULL).length(0xff_ffff);
    for (way, bytes) in [("without the data", 0), ("with it", 0xff_ffff)] {
        let mut peer = Peer::dial(case)?;
        let pdu = peer.raw(&bhs, &[], &vec![b'a'; bytes]);
        peer.send(&pdu);
        let seen = peer.end(case.patience());
        case.saw(way, &seen);
    }
    Ok(())
}

/// Case I6: login requests with 1 to 255 words of additional headers, sent or only announced.
fn i6(case: &mut Case<'_>) -> Done {
    let entry = Entry::new(2);
    let login = [entry.names(case), entry.wishes()].concat();
    let length = u32::try_from(login.len()).unwrap_or(0);
    let words = [1, 2, 64, 128, 254, 255];
    let mut all = Vec::new();
    for count in words {
        let bhs = entry.bhs(OPERATIONAL_TO_FULL).byte(4, count);
        let peer = Peer::dial(case)?;
        let additional = vec![0; usize::from(count) * 4];
        let with = peer.raw(&bhs.length(length), &additional, &login);
        all.push((format!("{count} words"), with));
        all.push((format!("{count} words that do not come"), peer.raw(&bhs, &[], &[])));
    }
    // Only variants that stall wait for the target's time limit.
    let mut waiting = Vec::new();
    for (way, bytes) in all {
        let mut peer = Peer::dial(case)?;
        peer.send(&bytes);
        if way.ends_with("come") {
            waiting.push((way, bytes));
            continue;
        }
        let seen = peer.login_answer();
        case.saw(way, &seen);
    }
    stalled(case, waiting)
}

/// Case I7: login requests of more than 8 KiB.
fn i7(case: &mut Case<'_>) -> Done {
    let bhs = Entry::new(2).bhs(OPERATIONAL_TO_FULL);
    for (way, words, bytes) in
        [("8,196 bytes of data", 0, 8196), ("1,020 and 8,192", 255, 8192), ("64 KiB", 0, 65_536)]
    {
        let mut peer = Peer::dial(case)?;
        let bhs = bhs.byte(4, words).length(bytes);
        let data = vec![b'a'; usize::try_from(bytes).unwrap_or(0)];
        let pdu = peer.raw(&bhs, &vec![0; usize::from(words) * 4], &data);
        peer.send(&pdu);
        let seen = peer.end(case.patience());
        case.saw(way, &seen);
    }
    Ok(())
}

/// Case I8: part of a header, then FIN.
fn i8(case: &mut Case<'_>) -> Done {
    let login = whole(case)?;
    for count in [0, 1, 24, 47] {
        let mut peer = Peer::dial(case)?;
        peer.send(&login[..count]);
        peer.wire.finish();
        let seen = peer.end(ANSWER);
        case.saw(format!("{count} bytes"), &seen);
    }
    Ok(())
}

// The reaction to a login request with `bhs` and the names.
fn request(case: &Case<'_>, bhs: &Bhs) -> Result<Seen, Trouble> {
    let names = Entry::new(2).names(case);
    Ok(Peer::dial(case)?.step(bhs, &names))
}

/// Case I9: unknown protocol versions.
fn i9(case: &mut Case<'_>) -> Done {
    for version in [1, 2, 3, 16, 127, 128, 254, 255] {
        let bhs = Entry::new(2).bhs(OPERATIONAL_TO_FULL).byte(2, version).byte(3, version);
        let seen = request(case, &bhs)?;
        case.saw(format!("version {version}"), &seen);
    }
    Ok(())
}

/// Case I10: invalid stages and transitions.
fn i10(case: &mut Case<'_>) -> Done {
    let mut flags = vec![0x08, 0x0c];
    for now in 0..4_u8 {
        for next in 0..4_u8 {
            if !matches!((now, next), (0, 1 | 3) | (1, 3)) {
                flags.push(0x80 | now << 2 | next);
            }
        }
    }
    for flags in flags {
        let seen = request(case, &Entry::new(2).bhs(flags))?;
        case.saw(format!("flags {flags:02x}h"), &seen);
    }
    Ok(())
}

/// Case I11: both transit and continue set.
fn i11(case: &mut Case<'_>) -> Done {
    for flags in [0xc7, 0xc1, 0xc3] {
        let seen = request(case, &Entry::new(2).bhs(flags))?;
        case.saw(format!("flags {flags:02x}h"), &seen);
    }
    Ok(())
}

/// Case I12: login requests that continue without end.
fn i12(case: &mut Case<'_>) -> Done {
    // Most bytes sent, more than any negotiation needs.
    const BYTES_MAX: usize = 1 << 20;
    for (way, data) in [("4 KiB each", vec![b'a'; 4096]), ("nothing in them", Vec::new())] {
        let mut peer = Peer::dial(case)?;
        let bhs = Entry::new(2).bhs(OPERATIONAL | CONTINUES);
        let mut seen = Seen::Served;
        let mut count = 0;
        while seen == Seen::Served && count < 10_000 && count * data.len() <= BYTES_MAX {
            seen = peer.step(&bhs, &data);
            count += 1;
            if count % 64 == 0 {
                case.go_on()?;
            }
        }
        if seen == Seen::Served {
            seen = Seen::Wrong(format!("{count} requests are taken"));
        }
        case.saw(way, &seen);
    }
    Ok(())
}

/// Case I14: a TSIH of no session.
fn i14(case: &mut Case<'_>) -> Done {
    for tsih in [0x7ffe, 0xffff] {
        let entry = Entry { tsih, ..Entry::new(0x99) };
        let mut peer = Peer::dial(case)?;
        let seen = peer.logs_in(case, &entry);
        case.saw(format!("TSIH {tsih}"), &seen);
    }
    Ok(())
}

/// Case I15: a session replaced by a login with the same ISID, 1,000 times.
fn i15(case: &mut Case<'_>) -> Done {
    let mut last = Peer::log_in(case)?;
    for round in 0..case.times(1000) {
        let mut next = Peer::dial(case)?;
        let seen = next.logs_in(case, &Entry::new(1));
        case.saw(format!("round {round}"), &seen);
        last.wire.ends(ANSWER);
        last = next;
    }
    let seen = last.alive(Seen::Served);
    case.saw("the last one", &seen);
    Ok(())
}

/// Case I16: a second connection with the CID of the first.
fn i16(case: &mut Case<'_>) -> Done {
    let entry = Entry::new(3).with("MaxConnections", "4");
    let mut first = Peer::enter(case, &entry)?;
    let again = Entry { tsih: first.tsih, ..entry.clone() };
    let mut second = Peer::dial(case)?;
    let seen = second.logs_in(case, &again);
    case.saw("the same", &seen);
    if seen == Seen::Served {
        let seen = second.alive(Seen::Served);
        case.saw("the connection that has it now", &seen);
        first.wire.ends(ANSWER);
    }
    Ok(())
}

/// Case I18: CmdSN that jumps ahead within the window.
fn i18(case: &mut Case<'_>) -> Done {
    for jump in [1, 5] {
        let mut peer = Peer::log_in(case)?;
        peer.cmd_sn = peer.cmd_sn.wrapping_add(jump);
        let ready = peer.reading(&[0; 16], 0);
        let itt = peer.submit(ready, &[]);
        let seen = peer.end_of(itt, super::peer::SILENCE);
        let seen = peer.alive(seen);
        case.saw(format!("{jump} ahead"), &seen);
    }
    Ok(())
}
