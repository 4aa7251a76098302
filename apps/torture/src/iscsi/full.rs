//! Malformed PDUs in full feature phase (RFC 7143 11).

use super::super::case::{Case, Row, Seen, Trouble, Want, may_write, row};
use super::bhs::{Bhs, COMMAND, FINAL, IMMEDIATE, LOGOUT, NO_TAG, NOP_OUT, READS, WRITES, be32};
use super::entry::{Entry, UNKNOWN};
use super::peer::{ANSWER, Peer, SILENCE};

use Want::{AnyReject, Check, Close, Ignored, Reject, Served, Task};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("I40", i40, &[Served, Ignored, AnyReject, Check, Task(5), Task(255), Close],
        "every opcode, with a body of 0 and a random one"),
    row("I41", i41, &[Served, AnyReject, Check],
        "reserved bits"),
    row("I42", i42, &[Check, Served],
        "logical units that are not there, in every way to write one"),
    row("I43", i43, &[AnyReject, Check, Close],
        "additional headers of long commands and both directions, too short, too long, \
         unasked"),
    row("I44", i44, &[AnyReject, Check, Close, Served],
        "additional headers of an unknown type"),
    row("I45", i45, &[Served],
        "ExpectedDataTransferLength above and below what is read; residuals are exact"),
    row("I48", i48, &[Close, AnyReject],
        "a header with 16 MiB of data that do not come"),
    may_write("I53", i53, &[Close, Reject(2)],
        "wrong digests of headers and of data; digests that were not agreed on"),
    row("I54", i54, &[Served, Ignored, Close, AnyReject],
        "NOP-Out without a tag, with 16 MiB, 100,000 times"),
];

/// Case I40: every opcode, with a header of zeros and a random one.
fn i40(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    for opcode in 0..0x40_u8 {
        for is_random in [false, true] {
            let mut bhs = Bhs([0; 48]);
            if is_random {
                let noise = case.noise(48);
                bhs = bhs.bytes(0, &noise);
            }
            // No data, no additional headers, and TEST UNIT READY as the only SCSI command.
            bhs = bhs.byte(0, opcode | IMMEDIATE).byte(1, FINAL | bhs.0[1] & 0x0f).word(4, 0);
            bhs = if opcode == COMMAND { bhs.byte(32, 0) } else { bhs };
            let itt = peer.tag();
            let bhs = peer.numbered(bhs.itt(itt));
            let bytes = peer.pdu(&bhs, &[]);
            peer.send(&bytes);
            let seen = peer.end_of(itt, SILENCE);
            let ends = opcode == LOGOUT || seen == Seen::Closed;
            let seen = if ends { seen } else { peer.alive(seen) };
            // Only targets send these.
            let wants: &[Want] = if opcode >= 0x20 {
                &[Reject(4), Reject(5), Reject(9), Close]
            } else {
                &[Served, Ignored, AnyReject, Check, Task(5), Task(255), Close]
            };
            let what = if is_random { "random" } else { "of 0" };
            case.saw_as(format!("opcode {opcode:02x}h, body {what}"), &seen, wants);
            if ends || matches!(seen, Seen::Wrong(_)) {
                peer = Peer::log_in(case)?;
            }
        }
    }
    Ok(())
}

/// Case I41: reserved bits set in NOP-Out and in a command.
fn i41(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    for bit in 0..7 {
        let ping = peer.ping().byte(1, FINAL | 1 << bit).byte(2, 0xff).byte(3, 0xff);
        let seen = peer.try_out(ping, &[]);
        case.saw(format!("NOP-Out, bit {bit}"), &seen);
    }
    for (at, value) in [(1, FINAL | 0x18), (2, 0xff), (3, 0xff)] {
        let ready = peer.reading(&[0; 16], 0).byte(at, value);
        let seen = peer.try_out(ready, &[]);
        case.saw(format!("a command, byte {at}"), &seen);
    }
    Ok(())
}

/// Case I42: logical units that do not exist, in every addressing method.
fn i42(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    let units: [(&str, [u8; 8]); 9] = [
        ("LUN 255", [0, 255, 0, 0, 0, 0, 0, 0]),
        ("LUN 16383", [0x3f, 0xff, 0, 0, 0, 0, 0, 0]),
        ("flat", [0x7f, 0xfe, 0, 0, 0, 0, 0, 0]),
        ("logical", [0x80, 1, 2, 3, 0, 0, 0, 0]),
        ("extended", [0xd2, 1, 2, 3, 4, 5, 6, 7]),
        ("extended, not there", [0xff; 8]),
        ("of a bus", [0x01, 0x77, 0, 0, 0, 0, 0, 0]),
        ("of levels", [0, 250, 0, 1, 0, 2, 0, 3]),
        ("well known", [0xc1, 0x01, 0, 0, 0, 0, 0, 0]),
    ];
    for (way, lun) in units {
        let ready = peer.reading(&[0; 16], 0).bytes(8, &lun);
        let seen = peer.try_out(ready, &[]);
        case.saw_as(format!("{way}, TEST UNIT READY"), &seen, &[Check, Served]);
        let inquiry = peer.reading(&[0x12, 0, 0, 0, 96], 96).bytes(8, &lun);
        let seen = peer.try_out(inquiry, &[]);
        case.saw(format!("{way}, INQUIRY"), &seen);
        let read = peer.reading(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1], 512).bytes(8, &lun);
        let seen = peer.try_out(read, &[]);
        case.saw_as(format!("{way}, READ(10)"), &seen, &[Check]);
    }
    Ok(())
}

// The reaction to a read with the additional headers `bytes` and TotalAHSLength `words`.
fn additional(case: &Case<'_>, flags: u8, words: u8, bytes: &[u8]) -> Result<Seen, Trouble> {
    let mut peer = Peer::log_in(case)?;
    let itt = peer.tag();
    let cdb = [0x28, 0, 0, 0, 0, 0, 0, 0, 1];
    let read = peer.command(&cdb, flags, case.site.block_bytes).byte(4, words).itt(itt);
    let bhs = peer.numbered(read);
    let pdu = peer.raw(&bhs, bytes, &[]);
    peer.send(&pdu);
    let seen = peer.end_of(itt, ANSWER);
    Ok(peer.alive(seen))
}

/// Case I43: malformed additional headers for long CDBs and bidirectional commands.
fn i43(case: &mut Case<'_>) -> Done {
    let both = READS | WRITES;
    let bidirectional = [0, 5, 2, 0, 0, 0, 2, 0];
    let ways: [(&str, u8, &[u8], &[Want]); 7] = [
        ("a command of 0 bytes more", READS, &[0, 1, 1, 0], &[]),
        ("a command of 20 bytes, of which 4 are there", READS, &[0, 21, 1, 0, 1, 2, 3, 4], &[]),
        ("a command of 64 KiB", READS, &[0xff, 0xff, 1, 0, 1, 2, 3, 4], &[]),
        ("a command of 16 bytes in all", READS, &[0, 2, 1, 0], &[]),
        ("both directions of a read", READS, &bidirectional, &[Served]),
        ("both directions", both, &bidirectional, &[]),
        ("both directions, and none said", both, &[0, 1, 2, 0], &[]),
    ];
    for (way, flags, bytes, more) in ways {
        let words = (bytes.len() / 4).to_le_bytes()[0];
        let seen = additional(case, flags, words, bytes)?;
        let wants = [&[AnyReject, Check, Close][..], more].concat();
        case.saw_as(way, &seen, &wants);
    }
    Ok(())
}

/// Case I44: additional headers of unknown types.
fn i44(case: &mut Case<'_>) -> Done {
    for kind in [0, 3, 0x3f, 0xff] {
        let seen = additional(case, READS, 2, &[0, 5, kind, 0, 1, 2, 3, 4])?;
        case.saw(format!("type {kind:02x}h"), &seen);
    }
    let seen = additional(case, READS, 255, &[0; 1020])?;
    case.saw("1,020 bytes of 0", &seen);
    Ok(())
}

/// Case I45: reads whose ExpectedDataTransferLength differs; checks data and residual counts.
fn i45(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    let block = case.site.block_bytes;
    let moved = 8 * block;
    let cdb = [0x28, 0, 0, 0, 0, 0, 0, 0, 8];
    for expected in [0, 1, block - 1, block, moved - 1, moved, moved + 1, 16 * block, u32::MAX] {
        let read = peer.command(&cdb, READS, expected);
        let seen = peer.try_out(read, &[]);
        let (flags, count) = (peer.last[1] & 6, be32(&peer.last, 44));
        let right = match expected {
            less if less < moved => (4, moved - less),
            same if same == moved => (0, 0),
            more => (2, more - moved),
        };
        let data = u32::try_from(peer.data.len()).unwrap_or(u32::MAX);
        let seen = match seen {
            Seen::Served if (flags, count) != right => {
                Seen::Wrong(format!("residual {count} with flags {flags}, not {right:?}"))
            }
            Seen::Served if data != expected.min(moved) => {
                Seen::Wrong(format!("{data} bytes of {}", expected.min(moved)))
            }
            seen => seen,
        };
        case.saw(format!("{expected} for {moved} bytes"), &seen);
    }
    Ok(())
}

/// Case I48: headers that announce 16 MiB of data that never come.
fn i48(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    for bhs in [Bhs::new(NOP_OUT), Bhs::new(COMMAND).byte(1, FINAL | WRITES)] {
        let itt = peer.tag();
        let bhs = peer.numbered(bhs.itt(itt)).length(0xff_ffff);
        let pdu = peer.raw(&bhs, &[], &[]);
        peer.send(&pdu);
        let seen = peer.end(case.patience());
        case.saw(format!("opcode {:02x}h", bhs.0[0] & 0x3f), &seen);
        peer = Peer::log_in(case)?;
    }
    Ok(())
}

/// Case I53: wrong digests, and digests that were not negotiated.
fn i53(case: &mut Case<'_>) -> Done {
    let entry = Entry::new(6).with("HeaderDigest", "CRC32C,None").with("DataDigest", "CRC32C,None");
    let has = Peer::enter(case, &entry)?.digests;
    if has[0] {
        for at in [8, 24, 47, 48, 51] {
            let mut other = Peer::enter(case, &entry)?;
            let itt = other.tag();
            let bhs = other.numbered(other.ping().itt(itt));
            let mut pdu = other.pdu(&bhs, &[]);
            pdu[at] ^= 0x10;
            other.send(&pdu);
            let seen = other.end(ANSWER);
            case.saw_as(format!("header, byte {at}"), &seen, &[Close]);
        }
    }
    if has[1] {
        let mut peer = Peer::enter(case, &entry)?;
        let data = vec![0x55; usize::try_from(case.site.block_bytes).unwrap_or(512)];
        let write = peer.writing(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 1], case.site.block_bytes);
        for (way, bhs) in [("ping", peer.ping()), ("write", write)] {
            let itt = peer.tag();
            let bhs = peer.numbered(bhs.itt(itt));
            let mut pdu = peer.pdu(&bhs, &data);
            let last = pdu.len() - 1;
            pdu[last] ^= 1;
            peer.send(&pdu);
            let seen = peer.end_of(itt, ANSWER);
            let seen = peer.alive(seen);
            case.saw_as(format!("data of a {way}"), &seen, &[Reject(2)]);
        }
    }
    let mut plain = Peer::log_in(case)?;
    // Four unexpected bytes: the target reads the next header at the wrong place.
    let ping = plain.ping();
    let bytes = [plain.pdu(&ping.itt(NO_TAG), &[]), vec![0xff; 4], plain.pdu(&ping, &[])].concat();
    plain.send(&bytes);
    let seen = plain.end(ANSWER);
    case.saw_as("a digest that was not agreed on", &seen, &[Close, AnyReject]);
    if has == [false; 2] {
        return Err(Trouble::NotOffered("digests".to_owned()));
    }
    Ok(())
}

/// Case I54: NOP-Out without a tag, 100,000 times, and with 16 MiB.
fn i54(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    let pong = peer.ping().itt(NO_TAG).word(20, UNKNOWN);
    let pong = peer.numbered(pong);
    let bytes = peer.pdu(&pong, &[]);
    peer.send(&bytes);
    let seen = peer.end_of(NO_TAG - 1, SILENCE);
    let seen = peer.alive(seen);
    case.saw_as("an answer to no ping", &seen, &[Ignored, AnyReject]);
    const AT_ONCE: u32 = 100;
    for round in 0..case.times(100_000).div_ceil(AT_ONCE) {
        let mut all = Vec::new();
        let mut last = 0;
        for _ in 0..AT_ONCE {
            last = peer.tag();
            let ping = peer.numbered(peer.ping().itt(last));
            all.extend_from_slice(&peer.pdu(&ping, &[]));
        }
        peer.send(&all);
        let seen = peer.end_of(last, ANSWER);
        case.saw_as(format!("ping {}", round * AT_ONCE), &seen, &[Served]);
        case.go_on()?;
    }
    let itt = peer.tag();
    let huge = peer.numbered(peer.ping().itt(itt)).length(0xff_ffff);
    let pdu = peer.raw(&huge, &[], &vec![0; 0xff_ffff]);
    peer.send(&pdu);
    let seen = peer.end(ANSWER);
    case.saw_as("a ping of 16 MiB", &seen, &[Close, AnyReject]);
    Ok(())
}
