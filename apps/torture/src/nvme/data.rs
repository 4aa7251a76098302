//! Unsolicited and wrong H2CData (NVMe/TCP 3.6.2.8).

use super::super::case::{Case, Row, Seen, Trouble, Want, may_write, row};
use super::peer::{ANSWER, Asked, H2C_DATA, LAST, Peer, SILENCE, h2c_fields, put_length, read};
use super::sqe::{Sqe, WRITE};

use Want::{AnyStatus, Term};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("N50", n50, &[Term(2)],
        "H2CData that no R2T has asked for"),
    may_write("N51", n51, &[Term(1), Term(2)],
        "TTAG 0, 1, of the last place, behind it, FFFFh, of a read, of what has ended"),
    may_write("N53", n53, &[Term(4)],
        "DATAO with a gap, an overlap, backwards"),
    may_write("N54", n54, &[Term(4)],
        "DATAL 0, more than the R2T, around 2^32"),
    may_write("N55", n55, &[Term(1), Term(4)],
        "DATAL that is not what PLEN says"),
    may_write("N56", n56, &[Term(1), Term(4), Term(5)],
        "DATAL above MAXH2CDATA"),
    may_write("N57", n57, &[Term(2), Term(1), AnyStatus],
        "the last PDU not marked so, or another"),
];

/// Bytes of a write whose data the target requests by R2T.
const BYTES: u32 = 16 << 10;
const DATA: [u8; BYTES as usize] = [0x77; BYTES as usize];

/// A write that waits for data after an R2T.
pub(super) struct Writing {
    pub(super) io: Peer,
    pub(super) asked: Asked,
    pub(super) cid: u16,
    _admin: Peer,
}

/// A write of `BYTES` from block 0 on.
pub(super) fn write(case: &Case<'_>) -> Sqe {
    let count = BYTES / case.site.block_bytes;
    read(case, 0, u16::try_from(count).unwrap_or(1).max(1)).byte(0, WRITE)
}

/// Connects and submits a write up to its first R2T.
pub(super) fn writing(case: &Case<'_>, digests: u8) -> Result<Writing, Trouble> {
    let (mut io, admin) = Peer::io(case, digests)?;
    let cid = io.submit(write(case), &[]);
    let asked = io.asked(cid)?;
    Ok(Writing { io, asked, cid, _admin: admin })
}

impl Writing {
    // Sends a PDU. Returns how the connection ends.
    fn sends(&mut self, pdu: &[u8]) -> Seen {
        self.io.send(pdu);
        self.io.end(ANSWER)
    }

    // Sends the first half of the data correctly. Returns its length.
    fn half(&mut self) -> u32 {
        let half = self.asked.length / 2;
        let pdu = self.io.h2c(self.asked, self.asked.offset, &DATA[..at(half)], false);
        self.io.send(&pdu);
        half
    }
}

/// `number` as an index.
fn at(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Case N50: H2CData without an R2T.
fn n50(case: &mut Case<'_>) -> Done {
    for admin in [false, true] {
        let (mut io, mut queue) = Peer::io(case, 0)?;
        let peer = if admin { &mut queue } else { &mut io };
        let asked = Asked { cid: 0, ttag: 0, offset: 0, length: 512 };
        let pdu = peer.h2c(asked, 0, &DATA[..512], true);
        peer.send(&pdu);
        let seen = peer.end(ANSWER);
        case.saw(if admin { "on the admin queue" } else { "on an I/O queue" }, &seen);
    }
    Ok(())
}

/// Case N51: H2CData with wrong TTAG or command identifier.
fn n51(case: &mut Case<'_>) -> Done {
    for step in [1_u16, 2, 30, 31, 32, 1024, 0x8000, 0xffff] {
        let mut writing = writing(case, 0)?;
        let ttag = writing.asked.ttag.wrapping_add(step);
        let wrong = Asked { ttag, ..writing.asked };
        let pdu = writing.io.h2c(wrong, 0, &DATA, true);
        let seen = writing.sends(&pdu);
        case.saw(format!("TTAG {ttag} for {}", writing.asked.ttag), &seen);
    }
    let mut writing = writing(case, 0)?;
    let wrong = Asked { cid: writing.cid.wrapping_add(1), ..writing.asked };
    let pdu = writing.io.h2c(wrong, 0, &DATA, true);
    let seen = writing.sends(&pdu);
    case.saw("the identifier of another command", &seen);
    let (mut io, _admin) = Peer::io(case, 0)?;
    let cid = io.submit(read(case, 0, 1), &[]);
    let of_read = Asked { cid, ttag: 0, offset: 0, length: 512 };
    let pdu = io.h2c(of_read, 0, &DATA[..512], true);
    io.send(&pdu);
    let seen = io.end(ANSWER);
    case.saw("of a read", &seen);
    let mut writing = self::writing(case, 0)?;
    let pdu = writing.io.h2c(writing.asked, 0, &DATA[..at(writing.asked.length)], true);
    writing.io.send(&pdu);
    let ended = writing.io.end_of(writing.cid, ANSWER);
    if ended == Seen::Served {
        let seen = writing.sends(&pdu);
        case.saw("of a write that has ended", &seen);
    }
    Ok(())
}

/// Case N53: H2CData with wrong offsets.
fn n53(case: &mut Case<'_>) -> Done {
    for (way, offset) in [("a gap", 512_i64), ("an overlap", -512), ("backwards", i64::MIN)] {
        let mut writing = writing(case, 0)?;
        let half = writing.half();
        let offset = if offset == i64::MIN { 0 } else { i64::from(half) + offset };
        let offset = u32::try_from(offset).unwrap_or(0);
        let rest = at(writing.asked.length - half);
        let pdu = writing.io.h2c(writing.asked, offset, &DATA[..rest], true);
        let seen = writing.sends(&pdu);
        case.saw(way, &seen);
    }
    let mut writing = writing(case, 0)?;
    let pdu = writing.io.h2c(writing.asked, 4, &DATA[..512], false);
    let seen = writing.sends(&pdu);
    case.saw("a gap at the beginning", &seen);
    Ok(())
}

/// Case N54: H2CData with DATAL 0, beyond the R2T, and with an offset that overflows.
fn n54(case: &mut Case<'_>) -> Done {
    let mut empty = writing(case, 0)?;
    let pdu = empty.io.pdu(H2C_DATA, 0, &h2c_fields(empty.asked, 0, 0), &[]);
    let seen = empty.sends(&pdu);
    case.saw("DATAL 0", &seen);
    let mut long = writing(case, 0)?;
    let data = vec![0; at(long.asked.length) + 4];
    let pdu = long.io.h2c(long.asked, 0, &data, true);
    let seen = long.sends(&pdu);
    case.saw("more than the R2T", &seen);
    let mut second = writing(case, 0)?;
    let half = second.half();
    let pdu = second.io.h2c(second.asked, half, &DATA[..at(half) + 4], true);
    let seen = second.sends(&pdu);
    case.saw("more than the R2T, in the second PDU", &seen);
    let mut around = writing(case, 0)?;
    around.half();
    let pdu = around.io.h2c(around.asked, u32::MAX - 3, &DATA[..512], true);
    let seen = around.sends(&pdu);
    case.saw("around 2^32", &seen);
    Ok(())
}

/// Case N55: DATAL that contradicts PLEN.
fn n55(case: &mut Case<'_>) -> Done {
    for (way, length) in [("less", 508), ("more", 516), ("4 GiB", u32::MAX)] {
        let mut writing = writing(case, 0)?;
        let fields = h2c_fields(writing.asked, 0, length);
        let pdu = writing.io.pdu(H2C_DATA, 0, &fields, &DATA[..512]);
        let seen = writing.sends(&pdu);
        case.saw(format!("{way} than what follows"), &seen);
    }
    Ok(())
}

/// Case N56: DATAL above MAXH2CDATA.
fn n56(case: &mut Case<'_>) -> Done {
    let mut writing = writing(case, 0)?;
    let length = writing.io.maxh2c.saturating_add(4);
    let mut pdu = writing.io.pdu(H2C_DATA, LAST, &h2c_fields(writing.asked, 0, length), &DATA);
    put_length(&mut pdu, at(length) + 24);
    let seen = writing.sends(&pdu);
    case.saw(format!("{length} bytes"), &seen);
    Ok(())
}

/// Case N57: LAST_PDU missing, or set too early.
fn n57(case: &mut Case<'_>) -> Done {
    let mut missing = writing(case, 0)?;
    let pdu = missing.io.h2c(missing.asked, 0, &DATA[..at(missing.asked.length)], false);
    let seen = missing.sends_or_ends(&pdu);
    case.saw("none is marked", &seen);
    let mut early = writing(case, 0)?;
    let pdu = early.io.h2c(early.asked, 0, &DATA[..512], true);
    let seen = early.sends_or_ends(&pdu);
    case.saw("the first is marked", &seen);
    Ok(())
}

impl Writing {
    // As `sends`, but the command may end instead of the connection.
    fn sends_or_ends(&mut self, pdu: &[u8]) -> Seen {
        self.io.send(pdu);
        match self.io.end_of(self.cid, ANSWER) {
            Seen::Stalled => self.io.end(SILENCE),
            seen => seen,
        }
    }
}
