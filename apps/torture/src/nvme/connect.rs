//! Hosts with a wrong Connect command, and commands out of order (NVM Express Base 6.3).

use super::super::case::{Case, Row, Seen, Trouble, Want, row};
use super::peer::{ANSWER, Asked, Peer, Said, read, u16_at};
use super::sqe::Sqe;

use Want::{AnyStatus, AnyTerm, Close, Served, Status, Term};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("N20", n20, &[AnyStatus, Term(2)],
        "a read before Connect"),
    row("N21", n21, &[Term(2)],
        "H2CData before Connect"),
    row("N22", n22, &[Status(0x182)],
        "Connect with SQSIZE 0, FFFFh, above MQES"),
    row("N23", n23, &[AnyStatus],
        "Connect of a queue twice, of one that is too high, of a controller of none"),
    row("N24", n24, &[AnyStatus, Served],
        "names without NUL, too long, empty, not UTF-8, of other kinds"),
    row("N26", n26, &[AnyStatus, AnyTerm],
        "Connect with data that is shorter or longer than 1,024 bytes"),
    row("N27", n27, &[AnyStatus, AnyTerm],
        "Connect with other SGL descriptors, and a huge one"),
    row("N28", n28, &[Served, AnyStatus, Close],
        "KATO 0, 1 ms, FFFFFFFFh"),
    row("N30", n30, &[Close, AnyStatus],
        "Disconnect, then commands"),
    row("N31", n31, &[AnyStatus, AnyTerm, Close],
        "Authentication Send and Receive out of order"),
    row("N32", n32, &[Status(0x003), AnyTerm],
        "the identifier of an outstanding command"),
];

/// Case N20: a read before Connect.
fn n20(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::greet(case, 0)?;
    let seen = peer.ask(read(case, 0, 1), &[]);
    case.saw("Read", &seen);
    Ok(())
}

/// Case N21: H2CData before Connect.
fn n21(case: &mut Case<'_>) -> Done {
    for ttag in [0, 1, 0xffff] {
        let mut peer = Peer::greet(case, 0)?;
        let asked = Asked { cid: 0, ttag, offset: 0, length: 512 };
        let pdu = peer.h2c(asked, 0, &[0; 512], true);
        peer.send(&pdu);
        let seen = peer.end(ANSWER);
        case.saw(format!("TTAG {ttag}"), &seen);
    }
    Ok(())
}

/// Case N22: Connect with SQSIZE 0, FFFFh and above MQES.
fn n22(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::greet(case, 0)?;
    for size in [0, 0xffff] {
        let seen = peer.connect(&Said { size, ..Said::of(case, 0, 0xffff) });
        case.saw(format!("SQSIZE {size} of the admin queue"), &seen);
    }
    let mut admin = Peer::admin(case, 0)?;
    // CAP.MQES.
    let seen = admin.ask(Sqe::fabrics(0x04).byte(40, 1), &[]);
    if seen != Seen::Served {
        return Err(Trouble::Failed(format!("read CAP: {seen}")));
    }
    let most = u16_at(&admin.result.to_le_bytes(), 0);
    for size in [0, most.saturating_add(1), 0xffff] {
        let mut io = Peer::greet(case, 0)?;
        let seen = io.connect(&Said { size, ..Said::of(case, 1, admin.controller) });
        case.saw(format!("SQSIZE {size} of an I/O queue"), &seen);
    }
    Ok(())
}

/// Case N23: Connect of connected queues, and of queues and controllers that do not exist.
fn n23(case: &mut Case<'_>) -> Done {
    let (mut io, mut admin) = Peer::io(case, 0)?;
    let seen = admin.try_out_connect(case, &Said::of(case, 0, 0xffff));
    case.saw("the admin queue again", &seen);
    let seen = io.try_out_connect(case, &Said::of(case, 1, admin.controller));
    case.saw("the I/O queue again", &seen);
    let others = [
        ("a queue that another connection has", 1, admin.controller),
        ("queue 65535", 0xffff, admin.controller),
        ("a controller that is not there", 2, 0xfffe),
    ];
    for (way, queue, controller) in others {
        let mut other = Peer::greet(case, 0)?;
        let seen = other.connect(&Said::of(case, queue, controller));
        case.saw(way, &seen);
    }
    Ok(())
}

/// Case N24: Connect with invalid host and subsystem names.
fn n24(case: &mut Case<'_>) -> Done {
    let own = Said::of(case, 0, 0xffff);
    let padded = [&own.host[..], b"\0what is behind it"].concat();
    let names: [(&str, Vec<u8>, &[Want]); 7] = [
        ("no NUL", vec![b'a'; 256], &[AnyStatus]),
        ("224 bytes", vec![b'a'; 224], &[AnyStatus]),
        ("255 bytes", vec![b'a'; 255], &[AnyStatus]),
        ("not UTF-8", b"nqn.2026-11.\xff\xfe\xc0".to_vec(), &[AnyStatus, Served]),
        ("empty", Vec::new(), &[AnyStatus]),
        ("a format", b"nqn.2026-11.example:%n%s".to_vec(), &[AnyStatus, Served]),
        ("bytes behind NUL", padded, &[AnyStatus, Served]),
    ];
    for (way, name, wants) in names {
        let mut peer = Peer::greet(case, 0)?;
        let seen = peer.connect(&Said { host: name.clone(), ..own.clone() });
        case.saw_as(format!("HOSTNQN, {way}"), &seen, wants);
        if way != "bytes behind NUL" {
            let mut peer = Peer::greet(case, 0)?;
            let seen = peer.connect(&Said { subsystem: name, ..own.clone() });
            case.saw_as(format!("SUBNQN, {way}"), &seen, &[AnyStatus]);
        }
    }
    let mut admin = Peer::admin(case, 0)?;
    let subsystem = b"nqn.2014-08.org.nvmexpress.discovery".to_vec();
    let mut peer = Peer::greet(case, 0)?;
    let seen = peer.connect(&Said { subsystem, ..Said::of(case, 1, admin.controller) });
    case.saw_as("an I/O queue of discovery", &seen, &[AnyStatus]);
    let seen = admin.alive(case, Seen::Served);
    case.saw_as("the controller it named", &seen, &[Served]);
    Ok(())
}

/// Case N26: Connect with data of other lengths than 1,024 bytes.
fn n26(case: &mut Case<'_>) -> Done {
    let said = Said::of(case, 0, 0xffff);
    let mut data = said.data();
    data.resize(2048, 0);
    for length in [0, 1, 255, 512, 1023, 1025, 2048] {
        let mut peer = Peer::greet(case, 0)?;
        let told = u32::try_from(length).unwrap_or(0);
        let seen = peer.ask(said.sqe().in_capsule(told), &data[..length]);
        case.saw(format!("{length} bytes, said so"), &seen);
        let mut peer = Peer::greet(case, 0)?;
        let seen = peer.ask(said.sqe(), &data[..length]);
        case.saw(format!("{length} bytes, said 1,024"), &seen);
    }
    Ok(())
}

/// Case N27: Connect with other SGL descriptors, and with huge ones.
fn n27(case: &mut Case<'_>) -> Done {
    let said = Said::of(case, 0, 0xffff);
    let ways = [
        ("data block", said.sqe().byte(39, 0x00)),
        ("bit bucket", said.sqe().byte(39, 0x10)),
        ("keyed", said.sqe().byte(39, 0x40)),
        ("a bad subtype", said.sqe().byte(39, 0x0f)),
        ("a vendor's", said.sqe().byte(39, 0xf0)),
        ("4 GiB", said.sqe().in_capsule(u32::MAX)),
        ("to be moved", said.sqe().moved(u32::MAX)),
        ("an offset", said.sqe().wide(24, 0xffff_ffff_ffff_fff0)),
    ];
    for (way, sqe) in ways {
        let mut peer = Peer::greet(case, 0)?;
        let seen = peer.ask(sqe, &said.data());
        case.saw(way, &seen);
    }
    Ok(())
}

/// Case N28: Connect with KATO 0, 1 ms and FFFFFFFFh.
fn n28(case: &mut Case<'_>) -> Done {
    for keep_alive_ms in [0, 1, u32::MAX] {
        let mut peer = Peer::greet(case, 0)?;
        let seen = peer.connect(&Said { keep_alive_ms, ..Said::of(case, 0, 0xffff) });
        case.saw(format!("KATO {keep_alive_ms} ms"), &seen);
    }
    Ok(())
}

/// Case N30: Disconnect, then a command; Disconnect before Connect.
fn n30(case: &mut Case<'_>) -> Done {
    let (mut io, mut admin) = Peer::io(case, 0)?;
    let disconnect = Sqe::fabrics(0x08);
    let seen = io.ask(disconnect, &[]);
    let seen = if seen == Seen::Served { io.ask(read(case, 0, 1), &[]) } else { seen };
    case.saw("a read after Disconnect", &seen);
    let seen = admin.ask(disconnect, &[]);
    case.saw("Disconnect of the admin queue", &seen);
    let mut early = Peer::greet(case, 0)?;
    let seen = early.ask(disconnect, &[]);
    case.saw("Disconnect before Connect", &seen);
    Ok(())
}

/// Case N31: Authentication Send and Receive out of order, with random messages.
fn n31(case: &mut Case<'_>) -> Done {
    let mut is_offered = false;
    for round in 0..case.times(1000) {
        let mut peer = Peer::greet(case, 0)?;
        if peer.connect(&Said::of(case, 0, 0xffff)) != Seen::Served {
            return Err(Trouble::Failed("Connect is refused".to_owned()));
        }
        is_offered |= peer.wants_proof;
        // Identifiers, DH-HMAC-CHAP's Negotiate and Reply with lengths of 0 and 255.
        let mut message = case.noise(256);
        (message[0], message[1]) = (1, [0, 1, 2, 3, 0xff][(round % 5) as usize]);
        (message[4], message[6]) = (if round % 2 == 0 { 0 } else { 255 }, 255);
        let send = Sqe::fabrics(0x05).word(42, 0xe901).dword(44, 256).in_capsule(256);
        let receive = Sqe::fabrics(0x06).word(42, 0xe901).dword(44, 256).moved(256);
        let seen = if round % 3 == 0 { peer.ask(receive, &[]) } else { peer.ask(send, &message) };
        // A Send may succeed; a later Receive then reports the failure.
        let wants = if is_offered { &[AnyStatus, AnyTerm, Close, Served][..] } else { &ROWS_N31 };
        case.saw_as(format!("round {round}"), &seen, wants);
    }
    if is_offered {
        return Ok(());
    }
    let nothing = "the controller asks nobody to authenticate; the commands are refused";
    Err(Trouble::NotOffered(nothing.to_owned()))
}

const ROWS_N31: [Want; 3] = [AnyStatus, AnyTerm, Close];

/// Case N32: a command with the identifier of an outstanding command.
fn n32(case: &mut Case<'_>) -> Done {
    let (mut io, mut admin) = Peer::io(case, 0)?;
    // The write's data never comes, so nothing is written.
    let write = read(case, 0, 1).byte(0, super::sqe::WRITE);
    let cid = io.submit(write, &[]);
    io.asked(cid)?;
    let again = io.capsule(&read(case, 0, 1).cid(cid), &[]);
    io.send(&again);
    let seen = io.end_of(cid, ANSWER);
    case.saw("of a write that waits for data", &seen);
    let cid = admin.submit(Sqe::new(super::sqe::EVENT_REQUEST), &[]);
    let again = admin.capsule(&Sqe::new(super::sqe::KEEP_ALIVE).cid(cid), &[]);
    admin.send(&again);
    let seen = admin.end_of(cid, ANSWER);
    case.saw("of an event request", &seen);
    Ok(())
}

impl Peer {
    // Sends Connect on a connected queue, then checks that the connection lives.
    fn try_out_connect(&mut self, case: &Case<'_>, said: &Said) -> Seen {
        self.try_out(case, said.sqe(), &said.data())
    }
}
