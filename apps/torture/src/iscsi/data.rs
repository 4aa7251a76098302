//! Unsolicited and wrong data, and SNACKs (RFC 7143 11.7, 11.16).

use super::super::case::{Case, Row, Seen, Trouble, Want, may_write, row};
use super::bhs::{Bhs, COMMAND, DATA_OUT, FINAL, NO_TAG, READS, SNACK, TASK, WRITES};
use super::entry::{Entry, UNKNOWN};
use super::peer::{ANSWER, Asked, Peer, SILENCE};

use Want::{AnyReject, Check, Close, Ignored, Reject, Served};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    may_write("I47", i47, &[Check, AnyReject, Close],
        "immediate data above FirstBurstLength, above MaxRecvDataSegmentLength, not agreed on"),
    may_write("I49", i49, &[Check, AnyReject, Close, Ignored],
        "Data-Out with unknown tags, gaps and repetitions of DataSN and offsets, too long, \
         after the last, for a read, after an abort"),
    row("I50", i50, &[Reject(3), Reject(8)],
        "SNACK of all and of huge ranges"),
];

/// Bytes of a write whose data the target requests by R2T.
const BYTES: u32 = 64 << 10;

/// Case I47: immediate data that exceeds a limit, or that was not negotiated.
fn i47(case: &mut Case<'_>) -> Done {
    let block = case.site.block_bytes;
    let blocks = |bytes: u32| (bytes / block).to_be_bytes()[3];
    let cdb = |bytes: u32| [0x2a, 0, 0, 0, 0, 0, 0, 0, blocks(bytes)];
    let small = Entry::new(7).with("FirstBurstLength", "4096");
    let none = Entry::new(7).with("ImmediateData", "No");
    let ways = [
        ("above FirstBurstLength", small, 16 << 10, 16 << 10),
        ("ImmediateData=No", none, 4096, 4096),
        ("more than the command moves", Entry::new(7), 4096, 8192),
        ("above what the target takes in a PDU", Entry::new(7), 64 << 10, 4 << 20),
    ];
    for (way, entry, bytes, immediate) in ways {
        let mut peer = Peer::enter(case, &entry)?;
        let itt = peer.tag();
        let write = peer.command(&cdb(bytes), WRITES, bytes).itt(itt);
        let bhs = peer.numbered(write);
        let pdu = peer.pdu(&bhs, &vec![0x66; immediate]);
        peer.send(&pdu);
        let seen = peer.end_of(itt, ANSWER);
        let seen = peer.alive(seen);
        case.saw(way, &seen);
    }
    Ok(())
}

/// A write that waits for data after an R2T.
struct Writing {
    peer: Peer,
    itt: u32,
    asked: Asked,
}

/// Logs in and submits a write up to its first R2T.
fn writing(case: &Case<'_>) -> Result<Writing, Trouble> {
    let mut peer = Peer::log_in(case)?;
    let count = (BYTES / case.site.block_bytes).to_be_bytes()[3].max(1);
    let bytes = u32::from(count) * case.site.block_bytes;
    let write = peer.writing(&[0x2a, 0, 0, 0, 0, 0, 0, 0, count], bytes);
    let itt = peer.submit(write, &[]);
    let asked = peer.asked(itt)?;
    Ok(Writing { peer, itt, asked })
}

/// The fields of a Data-Out PDU.
#[derive(Debug, Clone, Copy)]
struct Piece {
    itt: u32,
    ttt: u32,
    sn: u32,
    offset: u32,
    bytes: usize,
    is_final: bool,
}

impl Writing {
    /// One PDU with all data of the R2T.
    fn whole(&self) -> Piece {
        let Asked { ttt, offset, length, .. } = self.asked;
        let bytes = usize::try_from(length).unwrap_or(0);
        Piece { itt: self.itt, ttt, sn: 0, offset, bytes, is_final: true }
    }

    /// A PDU with the first half of the data.
    fn half(&self) -> Piece {
        let whole = self.whole();
        Piece { bytes: whole.bytes / 2, is_final: false, ..whole }
    }

    /// A PDU with the second half of the data.
    fn rest(&self) -> Piece {
        let whole = self.whole();
        let half = u32::try_from(whole.bytes / 2).unwrap_or(0);
        let offset = whole.offset + half;
        Piece { sn: 1, offset, bytes: whole.bytes - whole.bytes / 2, ..whole }
    }

    /// Sends a Data-Out PDU.
    fn send(&mut self, piece: Piece) {
        let bhs = Bhs::new(DATA_OUT)
            .byte(1, if piece.is_final { FINAL } else { 0 })
            .bytes(8, &self.peer.lun)
            .itt(piece.itt)
            .word(20, piece.ttt)
            .word(28, self.peer.exp_stat_sn)
            .word(36, piece.sn)
            .word(40, piece.offset);
        let pdu = self.peer.pdu(&bhs, &vec![0x66; piece.bytes]);
        self.peer.send(&pdu);
    }

    // The target's reaction, and whether the session lives.
    fn end(&mut self) -> Seen {
        let seen = self.peer.end_of(self.itt, SILENCE);
        self.peer.alive(seen)
    }
}

/// Case I49: Data-Out PDUs with wrong tags, DataSN, offsets or lengths.
fn i49(case: &mut Case<'_>) -> Done {
    type Change = fn(&Writing) -> Vec<Piece>;
    // Each variant replaces the data of a write; none of these writes may succeed.
    let ways: [(&str, Change); 12] = [
        ("an unknown ITT", |w| vec![Piece { itt: UNKNOWN, ..w.whole() }]),
        ("an unknown TTT", |w| vec![Piece { ttt: w.asked.ttt ^ 0x5555, ..w.whole() }]),
        ("no TTT", |w| vec![Piece { ttt: NO_TAG, ..w.whole() }]),
        ("DataSN 1 first", |w| vec![Piece { sn: 1, ..w.whole() }]),
        ("DataSN -1", |w| vec![Piece { sn: u32::MAX, ..w.whole() }]),
        ("DataSN twice", |w| vec![w.half(), Piece { sn: 0, ..w.rest() }]),
        ("a gap in DataSN", |w| vec![w.half(), Piece { sn: 2, ..w.rest() }]),
        ("a gap", |w| vec![w.half(), Piece { offset: w.rest().offset + 512, ..w.rest() }]),
        ("an overlap", |w| vec![w.half(), Piece { offset: w.rest().offset - 512, ..w.rest() }]),
        ("backwards", |w| vec![w.rest(), w.half()]),
        ("around 2^32", |w| vec![w.half(), Piece { offset: u32::MAX - 511, ..w.rest() }]),
        ("more than the R2T", |w| vec![Piece { bytes: w.whole().bytes + 512, ..w.whole() }]),
    ];
    for (way, change) in ways {
        let mut writing = writing(case)?;
        for piece in change(&writing) {
            writing.send(piece);
        }
        let seen = writing.end();
        case.saw(way, &seen);
    }
    let mut early = writing(case)?;
    let half = early.half();
    early.send(Piece { is_final: true, ..half });
    let seen = early.end();
    case.saw("less than the R2T, marked final", &seen);
    others(case)
}

/// The rest of case I49: Data-Out for a command that has ended, reads, or was aborted.
fn others(case: &mut Case<'_>) -> Done {
    let mut after = writing(case)?;
    after.send(after.whole());
    let seen = after.peer.end_of(after.itt, ANSWER);
    case.saw_as("as it should be", &seen, &[Served]);
    after.send(after.whole());
    let seen = after.end();
    case.saw("after the last", &seen);
    // Data-Out with the tag of a read that is outstanding or has ended.
    let mut reads = writing(case)?;
    let read = reads.peer.command(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1], READS, case.site.block_bytes);
    let itt = reads.peer.submit(read, &[]);
    let piece = Piece { itt, bytes: 512, ..reads.whole() };
    reads.send(piece);
    let _read: Seen = reads.peer.end_of(itt, ANSWER);
    let seen = reads.end();
    case.saw("for a read", &seen);
    let mut aborted = writing(case)?;
    let abort = Bhs::new(TASK | 0x40)
        .byte(1, FINAL | 1)
        .bytes(8, &aborted.peer.lun)
        .word(20, aborted.itt)
        .word(32, aborted.peer.cmd_sn.wrapping_sub(1));
    let seen = aborted.peer.ask(abort, &[]);
    case.saw_as("ABORT TASK of a write", &seen, &[Want::Task(0), Want::Task(1)]);
    aborted.send(aborted.whole());
    let seen = aborted.end();
    case.saw("after an abort", &seen);
    Ok(())
}

/// Case I50: SNACKs of all types for data and status that cannot be resent.
fn i50(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    let read = peer.command(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1], READS, case.site.block_bytes);
    let itt = peer.submit(read, &[]);
    let _read: Seen = peer.end_of(itt, ANSWER);
    let ways = [
        ("data of a read that has ended", 0, itt, 0, 0),
        ("data from 2^32 - 1 on", 0, itt, u32::MAX, u32::MAX),
        ("status of everything", 1, NO_TAG, 0, u32::MAX),
        ("an acknowledgement", 2, NO_TAG, 1, 0),
        ("R2Ts of nobody", 3, UNKNOWN, 0, u32::MAX),
        ("a type that is none", 15, UNKNOWN, 0, 0),
    ];
    for (way, kind, itt, begin, length) in ways {
        let bhs = Bhs::new(SNACK)
            .byte(1, FINAL | kind)
            .itt(itt)
            .word(24, 0)
            .word(28, peer.exp_stat_sn)
            .word(40, begin)
            .word(44, length);
        let pdu = peer.pdu(&bhs, &[]);
        peer.send(&pdu);
        let seen = peer.end_of(UNKNOWN - 1, ANSWER);
        let seen = peer.alive(seen);
        case.saw(way, &seen);
    }
    Ok(())
}

/// A write of one block without its data; `opcode` adds flags such as `IMMEDIATE`.
pub(super) fn waiting(peer: &Peer, block_bytes: u32, opcode: u8) -> Bhs {
    let write = peer.writing(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 1], block_bytes);
    write.byte(0, COMMAND | opcode)
}
