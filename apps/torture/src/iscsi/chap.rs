//! Initiators that authenticate wrongly or not at all (CHAP; RFC 7143 12.1).

use std::collections::HashSet;
use std::time::Instant;

use super::super::case::{Case, Row, Seen, Trouble, Want, row};
use super::bhs::text;
use super::entry::{Entry, SECURITY, SECURITY_TO_OPERATIONAL, hex};
use super::peer::Peer;

use Want::{AnyLogin, Close, Login, Served};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("I33", i33, &[AnyLogin],
        "CHAP_N or CHAP_R left out, or too early"),
    row("I34", i34, &[AnyLogin],
        "CHAP_I of 256, -1 and 4e9 to the target"),
    row("I35", i35, &[AnyLogin, Served],
        "CHAP_C of 0, 1 and 1,025 bytes, and in wrong digits, to the target"),
    row("I37", i37, &[AnyLogin],
        "CHAP_A without an algorithm that there is"),
    row("I38", i38, &[Login(0x0201), Close],
        "10,000 wrong secrets"),
    row("I39", i39, &[Served],
        "100,000 challenges, all of them different"),
];

// Checks that the target requires CHAP; `NotOffered` if it does not.
fn asks(case: &Case<'_>) -> Result<(), Trouble> {
    let entry = Entry::new(5);
    let mut peer = Peer::dial(case)?;
    let both = text(&[("AuthMethod", "CHAP,None")]);
    let seen = peer.step(&entry.bhs(SECURITY), &[entry.names(case), both].concat());
    match peer.keys.get("AuthMethod").map(String::as_str) {
        Some("CHAP") => Ok(()),
        _ if seen == Seen::Served => {
            Err(Trouble::NotOffered("the target asks for no proof (CHAP)".to_owned()))
        }
        _ => Err(Trouble::Failed(format!("AuthMethod=CHAP,None: {seen}"))),
    }
}

// A peer that has received a CHAP challenge, with the right CHAP_N and CHAP_R if the secret is
// known.
fn challenged(case: &Case<'_>) -> Result<(Peer, Entry, Option<[String; 2]>), Trouble> {
    let entry = Entry::new(5);
    let mut peer = Peer::dial(case)?;
    let names = entry.names(case);
    let (algorithm, id, challenge) = peer
        .challenged(&entry, names, "7,5")
        .map_err(|seen| Trouble::Failed(format!("CHAP_A=7,5: {seen}")))?;
    let answer = case
        .site
        .iscsi()
        .user
        .as_ref()
        .map(|(name, secret)| [name.clone(), hex(&algorithm.response(id, secret, &challenge))]);
    Ok((peer, entry, answer))
}

/// Case I33: CHAP_N or CHAP_R missing, invalid or too early; a login without CHAP.
fn i33(case: &mut Case<'_>) -> Done {
    asks(case)?;
    let wrong = "0x00112233445566778899aabbccddeeff";
    let answers: [(&str, Vec<(&str, &str)>); 5] = [
        ("no CHAP_N", vec![("CHAP_R", wrong)]),
        ("no CHAP_R", vec![("CHAP_N", "somebody")]),
        ("neither", vec![("CHAP_I", "7")]),
        ("an empty CHAP_R", vec![("CHAP_N", "somebody"), ("CHAP_R", "0x")]),
        ("a CHAP_R of a byte", vec![("CHAP_N", "somebody"), ("CHAP_R", "0x00")]),
    ];
    for (way, pairs) in answers {
        let (mut peer, entry, _) = challenged(case)?;
        let seen = peer.step(&entry.bhs(SECURITY_TO_OPERATIONAL), &text(&pairs));
        case.saw(way, &seen);
    }
    for (way, pairs) in [
        ("CHAP_R before CHAP_A", vec![("CHAP_N", "somebody"), ("CHAP_R", wrong)]),
        ("all at once", vec![("CHAP_A", "5"), ("CHAP_N", "somebody"), ("CHAP_R", wrong)]),
    ] {
        let entry = Entry::new(5);
        let mut peer = Peer::dial(case)?;
        let begin = [entry.names(case), text(&[("AuthMethod", "CHAP")])].concat();
        let seen = peer.step(&entry.bhs(SECURITY), &begin);
        if seen == Seen::Served {
            let seen = peer.step(&entry.bhs(SECURITY), &text(&pairs));
            case.saw(way, &seen);
        }
    }
    // A login without CHAP must be rejected.
    let entry = Entry::new(5);
    let mut peer = Peer::dial(case)?;
    let all = [entry.names(case), entry.wishes()].concat();
    let seen = peer.step(&entry.bhs(super::entry::OPERATIONAL_TO_FULL), &all);
    case.saw("no proof at all", &seen);
    Ok(())
}

// Authenticates rightly and sends the target a challenge (CHAP_I, CHAP_C) in each of `ways`.
fn ask_back(case: &mut Case<'_>, ways: &[(&str, &str, &str, &[Want])]) -> Done {
    asks(case)?;
    for (way, id, challenge, wants) in ways {
        let (mut peer, entry, answer) = challenged(case)?;
        let Some([name, response]) = answer else {
            return Err(Trouble::NotOffered("no secret is given (--chap-secret)".to_owned()));
        };
        let pairs =
            [("CHAP_N", &name[..]), ("CHAP_R", &response), ("CHAP_I", id), ("CHAP_C", challenge)];
        let seen = peer.step(&entry.bhs(SECURITY_TO_OPERATIONAL), &text(&pairs));
        case.saw_as(*way, &seen, wants);
    }
    Ok(())
}

const CHALLENGE: &str = "0x00112233445566778899aabbccddeeff";

/// Case I34: invalid CHAP_I in a challenge of the target.
fn i34(case: &mut Case<'_>) -> Done {
    let ids = ["256", "-1", "4000000000", "", "0x1ff", "18446744073709551615"];
    let ways = ids.map(|id| (id, id, CHALLENGE, &[AnyLogin][..]));
    ask_back(case, &ways)
}

/// Case I35: CHAP_C of invalid length or encoding in a challenge of the target.
fn i35(case: &mut Case<'_>) -> Done {
    let long = format!("0x{}", "ab".repeat(1025));
    let huge = format!("0x{}", "ab".repeat(3000));
    // Without a secret of its own the target cannot answer a valid challenge.
    let proves = case.site.iscsi().is_mutual;
    let good: &[Want] = if proves { &[Served] } else { &[AnyLogin, Served] };
    let ways: [(&str, &str, &str, &[Want]); 9] = [
        ("0 bytes", "1", "0x", &[AnyLogin]),
        ("nothing", "1", "", &[AnyLogin]),
        ("1 byte", "1", "0x77", good),
        ("1,025 bytes", "1", &long, &[AnyLogin]),
        ("3,000 bytes", "1", &huge, &[AnyLogin]),
        ("an odd digit", "1", "0x123", &[AnyLogin]),
        ("no digits", "1", "0xzz", &[AnyLogin]),
        ("base 64 of 3 characters", "1", "0bAAA", &[AnyLogin]),
        ("base 64 with too much padding", "1", "0bA===", &[AnyLogin]),
    ];
    ask_back(case, &ways)
}

/// Case I37: CHAP_A without any known algorithm.
fn i37(case: &mut Case<'_>) -> Done {
    asks(case)?;
    for list in ["0", "4,9,200", "", ",,,", "-5", "5x"] {
        let entry = Entry::new(5);
        let names = entry.names(case);
        let challenged = Peer::dial(case)?.challenged(&entry, names, list);
        let seen = challenged.err().unwrap_or(Seen::Served);
        case.saw(format!("CHAP_A={list}"), &seen);
    }
    Ok(())
}

/// Case I38: 10,000 wrong responses to challenges.
fn i38(case: &mut Case<'_>) -> Done {
    asks(case)?;
    let began = Instant::now();
    let count = case.times(10_000);
    for round in 0..count {
        let (mut peer, entry, answer) = challenged(case)?;
        let name = answer.map_or_else(|| "somebody".to_owned(), |[name, _]| name);
        let wrong = hex(&case.noise(16));
        let pairs = [("CHAP_N", &name[..]), ("CHAP_R", &wrong)];
        let seen = peer.step(&entry.bhs(SECURITY_TO_OPERATIONAL), &text(&pairs));
        case.saw(format!("guess {round}"), &seen);
        // Stops early with a target that delays its answers to wrong responses.
        if began.elapsed() > case.patience() {
            break;
        }
    }
    Ok(())
}

/// Case I39: challenges of 100,000 logins must be different and at least 16 bytes long.
fn i39(case: &mut Case<'_>) -> Done {
    asks(case)?;
    let mut all = HashSet::new();
    for _ in 0..case.times(100_000) {
        let entry = Entry::new(5);
        let names = entry.names(case);
        let mut peer = Peer::dial(case)?;
        let (_, _, challenge) = peer
            .challenged(&entry, names, "5")
            .map_err(|seen| Trouble::Failed(format!("CHAP_A=5: {seen}")))?;
        peer.wire.reset();
        let is_short = challenge.len() < 16;
        if is_short || !all.insert(challenge) {
            let what = if is_short { "a short challenge" } else { "a challenge came twice" };
            case.saw("a challenge", &Seen::Wrong(what.to_owned()));
            return Ok(());
        }
    }
    case.saw("all challenges", &Seen::Served);
    Ok(())
}
