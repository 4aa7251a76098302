//! Malformed and invalid text in logins (RFC 7143 6.1, 6.2, 13).

use super::super::case::{Case, Row, Seen, Trouble, Want, row};
use super::bhs::{Bhs, FINAL, TEXT, TEXT_RESPONSE, be32, text};
use super::entry::{Entry, OPERATIONAL, OPERATIONAL_TO_FULL};
use super::peer::{ANSWER, Heard, Peer};

use Want::{AnyLogin, Close, Login, Served};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("I19", i19, &[AnyLogin],
        "a pair without ="),
    row("I20", i20, &[AnyLogin, Served],
        "a pair that no NUL ends"),
    row("I21", i21, &[AnyLogin],
        "a pair without a key"),
    row("I22", i22, &[AnyLogin, Served],
        "keys of 64 bytes and more"),
    row("I23", i23, &[AnyLogin, Served],
        "values of 255, 256 and 8,000 bytes"),
    row("I25", i25, &[AnyLogin],
        "a key twice, with two values"),
    row("I26", i26, &[AnyLogin, Served],
        "numbers at the edges, and what is no number"),
    row("I27", i27, &[AnyLogin, Served],
        "FirstBurstLength above MaxBurstLength"),
    row("I28", i28, &[Served],
        "keys that are irrelevant, obsolete or unknown"),
    row("I29", i29, &[AnyLogin, Served],
        "names that are not UTF-8, with formats, with new lines"),
    row("I30", i30, &[AnyLogin, Served],
        "targets that are not there; SendTargets in a login, and after it in pieces"),
    row("I31", i31, &[AnyLogin, Close],
        "a negotiation without end"),
    row("I32", i32, &[Served],
        "MaxConnections 65535"),
];

// The reaction to a login with `extra` text after the required keys.
fn with(case: &Case<'_>, extra: &[u8]) -> Result<Seen, Trouble> {
    if case.site.iscsi().user.is_none() {
        let entry = Entry::new(2);
        let all = [&entry.names(case)[..], extra].concat();
        return Ok(Peer::dial(case)?.step(&entry.bhs(OPERATIONAL_TO_FULL), &all));
    }
    // CHAP comes first; the text belongs to the operational stage.
    let entry = Entry::new(2);
    let mut peer = Peer::dial(case)?;
    match peer.proved(case, &entry)? {
        Seen::Served => Ok(peer.step(&entry.bhs(OPERATIONAL_TO_FULL), extra)),
        seen => Ok(seen),
    }
}

impl Peer {
    // Logs in up to the operational stage.
    fn proved(&mut self, case: &Case<'_>, entry: &Entry) -> Result<Seen, Trouble> {
        let names = entry.names(case);
        match &case.site.iscsi().user {
            None => Ok(self.step(&entry.bhs(OPERATIONAL), &names)),
            Some((name, secret)) => Ok(self.proves(entry, names, name, secret)),
        }
    }
}

/// Case I19: text without `=`.
fn i19(case: &mut Case<'_>) -> Done {
    for pair in [&b"HeaderDigest\0"[..], b"none of them has one\0"] {
        let seen = with(case, pair)?;
        case.saw(String::from_utf8_lossy(pair), &seen);
    }
    Ok(())
}

/// Case I20: a pair without a NUL at its end.
fn i20(case: &mut Case<'_>) -> Done {
    let seen = with(case, b"HeaderDigest=None")?;
    case.saw("HeaderDigest=None", &seen);
    Ok(())
}

/// Case I21: pairs without a key.
fn i21(case: &mut Case<'_>) -> Done {
    for pair in [&b"=None\0"[..], b"=\0", b"==\0"] {
        let seen = with(case, pair)?;
        case.saw(String::from_utf8_lossy(pair), &seen);
    }
    Ok(())
}

/// Case I22: keys of 63 to 4,000 bytes.
fn i22(case: &mut Case<'_>) -> Done {
    for length in [63, 64, 255, 4000] {
        let seen = with(case, &text(&[(&"X".repeat(length), "1")]))?;
        case.saw(format!("{length} bytes"), &seen);
    }
    Ok(())
}

/// Case I23: values of 255 to 7,900 bytes.
fn i23(case: &mut Case<'_>) -> Done {
    for length in [255, 256, 4000, 7900] {
        let seen = with(case, &text(&[("X-org.example.key", &"1".repeat(length))]))?;
        case.saw(format!("{length} bytes"), &seen);
    }
    Ok(())
}

/// Case I25: a key twice with different values.
fn i25(case: &mut Case<'_>) -> Done {
    let names = [("HeaderDigest", "None", "CRC32C"), ("MaxBurstLength", "512", "1024")];
    for (key, one, other) in names {
        let seen = with(case, &text(&[(key, one), (key, other)]))?;
        case.saw(key, &seen);
    }
    Ok(())
}

/// Case I26: numeric keys with extreme and invalid values.
fn i26(case: &mut Case<'_>) -> Done {
    let values = [
        "0",
        "-1",
        "511",
        "16777216",
        "4294967295",
        "4294967296",
        "18446744073709551616",
        "0x",
        "0xg",
        "1e9",
        "+512",
        " 512",
        "512 ",
        "",
        "0x200",
        "00000000000000000512",
    ];
    let keys =
        ["MaxRecvDataSegmentLength", "MaxBurstLength", "FirstBurstLength", "MaxOutstandingR2T"];
    for key in keys {
        for value in values {
            let seen = with(case, &text(&[(key, value)]))?;
            case.saw(format!("{key}={value}"), &seen);
        }
    }
    Ok(())
}

/// Case I27: FirstBurstLength above MaxBurstLength.
fn i27(case: &mut Case<'_>) -> Done {
    let pairs = [("MaxBurstLength", "512"), ("FirstBurstLength", "16777215")];
    let seen = with(case, &text(&pairs))?;
    case.saw("16777215 above 512", &seen);
    Ok(())
}

/// Case I28: obsolete and unknown keys.
fn i28(case: &mut Case<'_>) -> Done {
    let keys = ["IFMarker", "OFMarkInt", "X-org.example.key", "Reserved", "X#NodeArchitecture"];
    for key in keys {
        let seen = with(case, &text(&[(key, "No")]))?;
        case.saw(key, &seen);
    }
    Ok(())
}

/// Case I29: invalid and dangerous initiator names.
fn i29(case: &mut Case<'_>) -> Done {
    let entry = Entry::new(2);
    let target = format!("TargetName={}\0", case.site.iscsi().target);
    let names: [(&str, &[u8], &[Want]); 5] = [
        ("not UTF-8", b"InitiatorName=iqn.2026-11.\xff\xfe\0", &[AnyLogin]),
        ("formats", b"InitiatorName=iqn.2026-11.example:%n%s%n\0", &[AnyLogin, Served]),
        ("a new line", b"InitiatorName=iqn.2026-11.example:a\nafar: served\0", &[AnyLogin]),
        ("an escape", b"InitiatorName=iqn.2026-11.example:\x1b[2J\0", &[AnyLogin]),
        ("no name", b"InitiatorName=\0", &[AnyLogin]),
    ];
    for (way, name, wants) in names {
        let all = [name, target.as_bytes()].concat();
        let seen = Peer::dial(case)?.step(&entry.bhs(OPERATIONAL_TO_FULL), &all);
        case.saw_as(way, &seen, wants);
    }
    let long = format!("InitiatorName=iqn.{}\0{target}", "a".repeat(230));
    let seen = Peer::dial(case)?.step(&entry.bhs(OPERATIONAL_TO_FULL), long.as_bytes());
    case.saw_as("234 bytes", &seen, &[AnyLogin]);
    Ok(())
}

/// Case I30: target names that do not exist; SendTargets in a login and in small pieces.
fn i30(case: &mut Case<'_>) -> Done {
    let place = case.site.iscsi();
    let upper = place.target.to_uppercase();
    let others = ["iqn.2026-11.example:nobody", upper.as_str(), "*", "../../etc/passwd"];
    for name in others {
        let all = text(&[("InitiatorName", &place.initiator), ("TargetName", name)]);
        let mut peer = Peer::dial(case)?;
        let seen = peer.step(&Entry::new(2).bhs(OPERATIONAL_TO_FULL), &all);
        let wants = [Login(0x0203), Login(0x0202), Login(0x0200), Login(0x0201)];
        case.saw_as(name, &seen, &wants);
    }
    let seen = with(case, &text(&[("SendTargets", "All")]))?;
    case.saw("SendTargets in a login", &seen);
    let mut entry = Entry::new(4).with("MaxRecvDataSegmentLength", "512");
    entry.is_discovery = true;
    let mut peer = Peer::dial(case)?;
    match peer.logs_in(case, &entry) {
        Seen::Served => {}
        // Discovery has secrets of its own, which are not known.
        Seen::Login(_) if place.user.is_some() => return Ok(()),
        seen => return Err(Trouble::Failed(format!("a discovery session: {seen}"))),
    }
    let seen = targets(&mut peer);
    case.saw_as("SendTargets in pieces of 512 bytes", &seen, &[Served]);
    Ok(())
}

// Sends SendTargets and receives all pieces of the answer.
fn targets(peer: &mut Peer) -> Seen {
    let mut ttt = super::bhs::NO_TAG;
    let itt = peer.tag();
    for piece in 0..10_000 {
        let data = if piece == 0 { text(&[("SendTargets", "All")]) } else { Vec::new() };
        let bhs = peer.numbered(Bhs::new(TEXT).itt(itt).word(20, ttt));
        let bytes = peer.pdu(&bhs, &data);
        peer.send(&bytes);
        match peer.hear(ANSWER) {
            Heard::Pdu { bhs, data } if bhs[0] & 0x3f == TEXT_RESPONSE => {
                if data.len() > 512 {
                    return Seen::Wrong(format!("a piece of {} bytes", data.len()));
                }
                if bhs[1] & FINAL != 0 {
                    return Seen::Served;
                }
                ttt = be32(&bhs, 20);
            }
            Heard::Ended => return Seen::Closed,
            _ => return Seen::Stalled,
        }
    }
    Seen::Wrong("an answer without end".to_owned())
}

/// Case I31: a negotiation that never ends.
fn i31(case: &mut Case<'_>) -> Done {
    let entry = Entry::new(2);
    let mut peer = Peer::dial(case)?;
    let mut seen = peer.proved(case, &entry)?;
    let mut count = 0;
    while seen == Seen::Served && count < 10_000 {
        let key = format!("X-org.example.{count}");
        seen = peer.step(&entry.bhs(OPERATIONAL), &text(&[(&key, "1")]));
        count += 1;
        if count % 64 == 0 {
            case.go_on()?;
        }
    }
    if seen == Seen::Served {
        seen = Seen::Wrong(format!("{count} rounds are taken"));
    }
    case.saw("a new key in each round", &seen);
    Ok(())
}

/// Case I32: MaxConnections 65535.
fn i32(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::dial(case)?;
    let seen = peer.logs_in(case, &Entry::new(2).with("MaxConnections", "65535"));
    case.saw("65535", &seen);
    Ok(())
}
