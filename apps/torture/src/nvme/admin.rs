//! Invalid admin commands, and too many of them (NVM Express Base 5).

use super::super::case::{Case, Row, Seen, Trouble, Want, row};
use super::peer::{ANSWER, Heard, Peer, RESPONSE, Said, read, u16_at};
use super::sqe::{ABORT, EVENT_REQUEST, GET_LOG, IDENTIFY, KEEP_ALIVE, Sqe};

use Want::{AnyStatus, Close, Served, Status};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("N42", n42, &[AnyStatus, Served],
        "Get Log Page of 16 GiB, past the end, at odd offsets, of pages that are none"),
    row("N43", n43, &[Served, AnyStatus],
        "Identify of every structure, with room and without"),
    row("N45", n45, &[Status(0x105)],
        "256 event requests"),
    row("N46", n46, &[Served, AnyStatus],
        "Abort of itself, of nobody, of what has ended, 10,000 times"),
    row("N48", n48, &[AnyStatus, Close],
        "Keep Alive on an I/O queue; none at all"),
];

/// Case N42: Get Log Page with wrong lengths, offsets and pages.
fn n42(case: &mut Case<'_>) -> Done {
    let mut admin = Peer::admin(case, 0)?;
    let page = |page: u32, dwords: u32, offset: u64| {
        Sqe::new(GET_LOG)
            .nsid(u32::MAX)
            .cdw(10, page | dwords << 16)
            .cdw(11, dwords >> 16)
            .wide(48, offset)
            .moved(512)
    };
    let ways: [(&str, Sqe, &[Want]); 9] = [
        ("16 GiB into 512 bytes", page(2, u32::MAX, 0), &[AnyStatus]),
        ("4 GiB into 512 bytes", page(2, 0x3fff_ffff, 0), &[AnyStatus]),
        ("16 GiB into 4 GiB", page(2, u32::MAX, 0).moved(u32::MAX), &[AnyStatus]),
        ("room for less", page(2, 127, 0).moved(508), &[AnyStatus]),
        // A controller may check the alignment of the offset (Base 5.1.12).
        ("offset 3", page(2, 127, 3), &[AnyStatus, Served]),
        ("offset 2^64 - 4", page(2, 127, u64::MAX - 3), &[AnyStatus]),
        ("offset 2^40", page(2, 127, 1 << 40), &[AnyStatus, Served]),
        ("page FFh", page(0xff, 127, 0), &[AnyStatus]),
        ("page 0Bh", page(0x0b, 127, 0), &[AnyStatus, Served]),
    ];
    for (way, sqe, wants) in ways {
        let seen = admin.try_out(case, sqe, &[]);
        case.saw_as(way, &seen, wants);
    }
    for number in 0..=255 {
        let seen = admin.try_out(case, page(number, 0, 0).moved(4), &[]);
        case.saw(format!("a dword of page {number:02x}h"), &seen);
    }
    Ok(())
}

/// Case N43: Identify with every CNS, namespaces and lengths.
fn n43(case: &mut Case<'_>) -> Done {
    let mut admin = Peer::admin(case, 0)?;
    for structure in 0..=255 {
        for (nsid, room) in [(0, 4096), (1, 4096), (u32::MAX, 4096), (1, 4095), (1, 0)] {
            let sqe = Sqe::new(IDENTIFY).nsid(nsid).cdw(10, structure).moved(room);
            let seen = admin.ask(sqe, &[]);
            case.saw(format!("CNS {structure:02x}h of {nsid:x}h, room for {room}"), &seen);
        }
    }
    let seen = admin.alive(case, Seen::Served);
    case.saw_as("the controller after that", &seen, &[Served]);
    Ok(())
}

/// Case N45: 256 Asynchronous Event Requests; those beyond AERL must fail.
fn n45(case: &mut Case<'_>) -> Done {
    let mut admin = Peer::admin(case, 0)?;
    let identify = Sqe::new(IDENTIFY).cdw(10, 1).moved(4096);
    if admin.ask(identify, &[]) != Seen::Served || admin.data.len() < 260 {
        return Err(Trouble::Failed("Identify Controller is refused".to_owned()));
    }
    // AERL is one less than the limit.
    let most = usize::from(admin.data[259]) + 1;
    let mut refused = 0;
    for number in 0..256_usize {
        admin.submit(Sqe::new(EVENT_REQUEST), &[]);
        if number < most {
            continue;
        }
        match admin.hear(ANSWER) {
            Heard::Pdu { head, .. } if head[0] == RESPONSE => {
                let status = u16_at(&head, 22) >> 1 & 0x7ff;
                case.saw(format!("request {number}"), &Seen::Status(status));
                refused += 1;
            }
            _ => break,
        }
    }
    if refused != 256 - most {
        let what = format!("{refused} of 256 are refused, with a limit of {most}");
        case.saw("all", &Seen::Wrong(what));
    }
    let seen = admin.alive(case, Seen::Served);
    case.saw_as("the controller after that", &seen, &[Served]);
    Ok(())
}

/// Case N46: Abort of itself, of unknown and of ended commands, and of 10,000 reads.
fn n46(case: &mut Case<'_>) -> Done {
    let (mut io, mut admin) = Peer::io(case, 0)?;
    let abort = |queue: u16, cid: u16| Sqe::new(ABORT).word(40, queue).word(42, cid);
    let ended = io.submit(read(case, 0, 1), &[]);
    io.end_of(ended, ANSWER);
    let ways = [
        ("of nobody", abort(1, 0x7abc)),
        ("of what has ended", abort(1, ended)),
        ("of a queue that is not there", abort(0xffff, 1)),
        ("of the admin queue", abort(0, 0x7abc)),
    ];
    for (way, sqe) in ways {
        let seen = admin.try_out(case, sqe, &[]);
        case.saw(way, &seen);
    }
    let own = admin.capsule(&abort(0, 0x7123).cid(0x7123), &[]);
    admin.send(&own);
    let seen = admin.end_of(0x7123, ANSWER);
    case.saw("of itself", &seen);
    for round in 0..case.times(10_000) {
        let cid = io.submit(read(case, 0, 1), &[]);
        let seen = admin.ask(abort(1, cid), &[]);
        case.saw(format!("round {round}"), &seen);
        let seen = io.end_of(cid, ANSWER);
        case.saw(format!("the read of round {round}"), &seen);
        if round % 64 == 0 {
            case.go_on()?;
        }
    }
    Ok(())
}

/// Case N48: Keep Alive on an I/O queue, and no Keep Alive within KATO.
fn n48(case: &mut Case<'_>) -> Done {
    let (mut io, _admin) = Peer::io(case, 0)?;
    let seen = io.try_out(case, Sqe::new(KEEP_ALIVE), &[]);
    case.saw_as("on an I/O queue", &seen, &[AnyStatus]);
    let said = Said { keep_alive_ms: 1000, ..Said::of(case, 0, 0xffff) };
    let mut admin = Peer::admin_of(case, 0, &said)?;
    let is_over = admin.wire.ends(case.patience());
    let seen = if is_over { Seen::Closed } else { Seen::Stalled };
    case.saw_as("none in KATO", &seen, &[Close]);
    Ok(())
}
