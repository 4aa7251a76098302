//! Wrong digests (NVMe/TCP 3.3.1).

use super::super::case::{Case, Row, Seen, Trouble, Want, may_write, row};
use super::data::writing;
use super::peer::{ANSWER, Peer, read};
use super::sqe::{KEEP_ALIVE, Sqe, WRITE};

use Want::{Status, Term};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("N59", n59, &[Term(3)],
        "a header that is not what its digest says"),
    may_write("N60", n60, &[Status(0x022)],
        "data that is not what its digest says, in a capsule and after an R2T"),
];

/// Case N59: a wrong header digest.
fn n59(case: &mut Case<'_>) -> Done {
    for at in [1, 8, 40, 71, 72, 75] {
        let mut peer = Peer::admin(case, 1)?;
        if !peer.digests[0] {
            return Err(Trouble::NotOffered("digests of headers".to_owned()));
        }
        let mut pdu = peer.capsule(&Sqe::new(KEEP_ALIVE), &[]);
        // A changed flag would be another error, so the digest is changed in its place.
        pdu[if at == 1 { 73 } else { at }] ^= 0x10;
        peer.send(&pdu);
        let seen = peer.end(ANSWER);
        case.saw(format!("byte {at}"), &seen);
    }
    Ok(())
}

/// Case N60: a wrong data digest, in a capsule and after an R2T; the data must not be written.
fn n60(case: &mut Case<'_>) -> Done {
    let (mut io, _admin) = Peer::io(case, 2)?;
    if !io.digests[1] {
        return Err(Trouble::NotOffered("digests of data".to_owned()));
    }
    let one = read(case, 0, 1);
    let mut before = content(&mut io, &one)?;
    before.iter_mut().for_each(|byte| *byte = !*byte);
    let block = case.site.block_bytes;
    let mut pdu = io.capsule(&one.byte(0, WRITE).in_capsule(block).cid(0x7001), &before);
    let last = pdu.len() - 1;
    pdu[last] ^= 1;
    io.send(&pdu);
    let seen = io.end_of(0x7001, ANSWER);
    let seen = io.alive(case, seen);
    case.saw("in a capsule", &seen);
    before.iter_mut().for_each(|byte| *byte = !*byte);
    if content(&mut io, &one)? != before {
        case.saw("in a capsule", &Seen::Wrong("the data was written".to_owned()));
    }
    let mut writing = writing(case, 2)?;
    let data = vec![0x33; usize::try_from(writing.asked.length).unwrap_or(0)];
    let mut pdu = writing.io.h2c(writing.asked, 0, &data, true);
    let last = pdu.len() - 1;
    pdu[last] ^= 1;
    writing.io.send(&pdu);
    let seen = writing.io.end_of(writing.cid, ANSWER);
    let seen = writing.io.alive(case, seen);
    case.saw("after an R2T", &seen);
    if content(&mut writing.io, &one)? != before {
        case.saw("after an R2T", &Seen::Wrong("the data was written".to_owned()));
    }
    Ok(())
}

/// The data that the read `one` returns.
fn content(io: &mut Peer, one: &Sqe) -> Result<Vec<u8>, Trouble> {
    match io.ask(*one, &[]) {
        Seen::Served => Ok(io.data.clone()),
        seen => Err(Trouble::Failed(format!("Read: {seen}"))),
    }
}
