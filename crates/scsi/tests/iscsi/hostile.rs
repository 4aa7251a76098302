//! What an initiator may not send in full feature phase, and what it is told (RFC 7143 7, 11.17).

use proptest::prelude::*;

use scsi::iscsi::{
    DataOut, DigestWish, Fatal, Header, NO_TAG, Numbers, ScsiCommand, TaskRequest, TextRequest,
    Wishes,
};
use scsi::{Sense, Status};

use crate::session::{Came, LIMITS, Pair, data_out, r2ts, small};
use crate::{Got, pdu};

const PROTOCOL: u8 = 0x04;
const INVALID: u8 = 0x09;

#[test]
fn every_opcode_is_taken_or_rejected() {
    for opcode in 0..64_u8 {
        for fill in [0, 0x5a, 0xff] {
            let mut pair = Pair::new(small());
            let mut bytes = [fill; 48];
            // No data, no additional segments.
            (bytes[0], bytes[4]) = (0x40 | opcode, 0);
            bytes[5..8].fill(0);
            let result = pair.send_raw(&bytes);
            match opcode {
                0x00..=0x02 | 0x04..=0x06 => assert!(result.is_ok(), "{opcode:#x} {fill:#x}"),
                0x03 => assert_eq!(result, Err(Fatal::Sequence { opcode })),
                0x10 => assert_eq!(pair.rejects(), [0x03]),
                _ => assert_eq!(pair.rejects(), [0x05], "{opcode:#x}"),
            }
        }
    }
}

#[test]
fn commands_come_in_their_turn_and_in_the_window() {
    let mut pair = Pair::new(small());
    let [exp_cmd_sn, max_cmd_sn] = pair.session.window();
    assert_eq!(max_cmd_sn - exp_cmd_sn, u32::from(LIMITS.commands) - 1);
    let numbered = |pair: &Pair, cmd_sn: u32| {
        let numbers = Numbers { cmd_sn, exp_stat_sn: 0 };
        Header::Command(ScsiCommand { numbers, ..pair.command(7, 0) })
    };
    // Outside the window they are as if they had not come.
    for cmd_sn in [
        exp_cmd_sn.wrapping_sub(1),
        max_cmd_sn + 1,
        exp_cmd_sn.wrapping_add(1 << 31),
        exp_cmd_sn.wrapping_sub(1 << 31),
        u32::MAX,
        0,
    ] {
        assert_eq!(pair.send(numbered(&pair, cmd_sn), &[]), [], "{cmd_sn}");
        assert_eq!(pair.heard(), []);
    }
    // A full window takes no more, until a place is free.
    for itt in 0..u32::from(LIMITS.commands) {
        assert_eq!(pair.begin(pair.command(itt, 0), &[]).1.len(), 1);
    }
    let next = Header::Command(pair.command(99, 0));
    assert_eq!((pair.send(next, &[]), pair.heard()), (vec![], vec![]));
    // Nothing brings what is missing on the only connection there is.
    let mut pair = Pair::new(small());
    let bytes = pdu(numbered(&pair, exp_cmd_sn + 1), pair.session.digests(0), &[]);
    let missing = Fatal::MissingCommands { came: exp_cmd_sn + 1, expected: exp_cmd_sn };
    assert_eq!(pair.send_raw(&bytes), Err(missing));
}

#[test]
fn commands_that_cannot_be_are_rejected_and_the_session_goes_on() {
    let mut pair = Pair::new(small());
    pair.begin(pair.command(1, 0), &[]);
    let both = ScsiCommand { reads: true, writes: true, ..pair.command(2, 512) };
    for (command, reason) in
        [(pair.command(1, 0), PROTOCOL), (pair.command(NO_TAG, 0), INVALID), (both, INVALID)]
    {
        let numbers = Numbers { cmd_sn: pair.session.window()[0], exp_stat_sn: 0 };
        let header = Header::Command(ScsiCommand { numbers, ..command });
        let bytes = pdu(header, pair.session.digests(0), &[]);
        assert_eq!(pair.send_raw(&bytes), Ok(vec![]));
        let got = pair.heard();
        let [Got::Header(Header::Reject { reason: said, .. }, 48), Got::Data(about, true)] =
            &got[..]
        else {
            panic!("{got:?}")
        };
        assert_eq!((*said, &about[..]), (reason, &bytes[..]), "it says which");
    }
    // Additional segments: a longer command, both directions, anything else.
    for (kind, length) in [(1, 17), (2, 5), (9, 8), (0, 0)] {
        let mut bytes = pdu(Header::Command(pair.command(5, 0)), pair.session.digests(0), &[]);
        bytes[4] = 5;
        bytes.extend_from_slice(&[0, length, kind, 0]);
        bytes.extend_from_slice(&[0; 16]);
        assert_eq!(pair.send_raw(&bytes), Ok(vec![]), "kind {kind}");
        assert_eq!(pair.rejects(), [INVALID]);
    }
    assert_eq!(pair.begin(pair.command(2, 0), &[]).1, [Came::AllData(Ok(()))]);
    // What does not wait for its turn has few places.
    for itt in 50..52 {
        let command = ScsiCommand { is_immediate: true, ..pair.command(itt, 0) };
        assert_eq!(pair.begin(command, &[]).1.len(), 1);
    }
    let command = ScsiCommand { is_immediate: true, ..pair.command(52, 0) };
    assert_eq!(pair.send(Header::Command(command), &[]), []);
    assert_eq!(pair.rejects(), [0x06]);
    let request = TaskRequest { is_immediate: true, function: 99, ..TaskRequest::default() };
    let asked: usize = (0..100).map(|_| pair.send(Header::TaskRequest(request), &[]).len()).sum();
    assert_eq!((asked, pair.rejects()), (2, vec![0x06; 98]));
}

#[test]
fn data_that_nobody_asked_for_fails_its_command() {
    let unexpected = [Came::AllData(Err(Sense::UNEXPECTED_UNSOLICITED_DATA))];
    // More than a first burst, more than the command has, without a direction, of a read.
    let mut pair = Pair::of(Wishes { first_burst_bytes: 512, ..small() }, small());
    for (command, bytes) in [
        (pair.write(1, 4096), 1024),
        (pair.write(1, 100), 104),
        (pair.command(1, 512), 512),
        (ScsiCommand { reads: true, ..pair.command(1, 512) }, 512),
    ] {
        let numbers = Numbers { cmd_sn: pair.session.window()[0], exp_stat_sn: 0 };
        let (task, came) = pair.begin(ScsiCommand { numbers, ..command }, &vec![1; bytes]);
        assert_eq!(came, unexpected, "{bytes}");
        pair.session.respond(task, Status::CheckCondition, &[], 0, &mut pair.out);
    }
    // Where none may come with a command, or after it unasked.
    let wishes = Wishes { immediate_data: false, initial_r2t: true, ..small() };
    let mut pair = Pair::new(wishes);
    let (_, came) = pair.begin(pair.write(1, 512), &[1; 512]);
    assert_eq!(came, unexpected);
    let follows = ScsiCommand { is_final: false, ..pair.write(2, 512) };
    assert_eq!(pair.begin(follows, &[]).1, unexpected);
    // More than was agreed on in one PDU.
    let mut pair = Pair::new(small());
    let bytes = pdu(Header::Command(pair.write(1, 4096)), pair.session.digests(0), &[1; 1028]);
    assert_eq!(pair.send_raw(&bytes), Err(Fatal::TooMuchData { length: 1028, limit: 1024 }));
}

#[test]
fn data_out_of_order_fails_its_command() {
    let broken = Some(Sense::PROTOCOL_SERVICE_CRC_ERROR);
    let amount = Some(Sense::NOT_ENOUGH_UNSOLICITED_DATA);
    let last = |data: DataOut| DataOut { is_final: true, ..data };
    type Case = (&'static str, fn(u32) -> DataOut, usize, bool, Option<Sense>, Option<u8>);
    let cases: [Case; 12] = [
        ("a gap", |ttt| data_out(5, ttt, 0, 4), 1024, false, broken, None),
        ("backwards", |ttt| data_out(5, ttt, 0, u32::MAX), 1024, false, broken, None),
        ("a number left out", |ttt| data_out(5, ttt, 1, 0), 1024, false, broken, None),
        ("the number before", |ttt| data_out(5, ttt, u32::MAX, 0), 1024, false, broken, None),
        ("an early end", |ttt| data_out(5, ttt, 0, 0), 1024, true, amount, None),
        ("nothing", |ttt| data_out(5, ttt, 0, 0), 0, false, amount, None),
        ("another tag", |ttt| data_out(5, ttt ^ 1, 0, 0), 1024, false, None, Some(INVALID)),
        ("a tag far away", |ttt| data_out(5, ttt ^ 1 << 31, 0, 0), 4, false, None, Some(INVALID)),
        ("another command", |ttt| data_out(6, ttt, 0, 0), 1024, false, None, Some(INVALID)),
        ("of a read", |ttt| data_out(7, ttt, 0, 0), 1024, false, None, Some(PROTOCOL)),
        (
            "another logical unit",
            |ttt| DataOut { lun: [0, 1, 0, 0, 0, 0, 0, 0], ..data_out(5, ttt, 0, 0) },
            1024,
            false,
            None,
            Some(INVALID),
        ),
        (
            "unasked",
            |_| data_out(5, NO_TAG, 0, 0),
            1024,
            false,
            Some(Sense::UNEXPECTED_UNSOLICITED_DATA),
            None,
        ),
    ];
    for (name, data, bytes, is_last, sense, reject) in cases {
        let mut pair = Pair::new(small());
        let read = ScsiCommand { reads: true, ..pair.command(7, 512) };
        pair.begin(read, &[]);
        let (task, _) = pair.begin(pair.write(5, 4096), &[]);
        let ttt = r2ts(&pair.heard())[0].ttt;
        let data = if is_last { last(data(ttt)) } else { data(ttt) };
        let came = pair.send(Header::DataOut(data), &vec![1; bytes]);
        let expected: Vec<_> = sense.iter().map(|sense| Came::AllData(Err(*sense))).collect();
        assert_eq!(came, expected, "{name}");
        assert_eq!(pair.rejects(), reject.into_iter().collect::<Vec<_>>(), "{name}");
        // What else comes for a command that has failed, or was answered, goes to nobody.
        if sense.is_some() {
            let more = Header::DataOut(data_out(5, ttt, 0, 0));
            assert_eq!(pair.send(more, &[1; 512]), [], "{name}");
            pair.session.respond(task, Status::CheckCondition, &[], 0, &mut pair.out);
            assert_eq!(pair.send(more, &[1; 512]), [], "{name}");
            assert_eq!(pair.rejects(), []);
        }
    }
    // More than was asked for, and more after its end.
    let mut pair = Pair::new(small());
    let (_, _) = pair.begin(pair.write(5, 512), &[]);
    let ttt = r2ts(&pair.heard())[0].ttt;
    let came = pair.send(Header::DataOut(last(data_out(5, ttt, 0, 0))), &[1; 516]);
    assert_eq!(came, [Came::AllData(Err(Sense::NOT_ENOUGH_UNSOLICITED_DATA))]);
    let mut pair = Pair::new(small());
    pair.begin(pair.write(5, 512), &[]);
    let ttt = r2ts(&pair.heard())[0].ttt;
    let data = Header::DataOut(last(data_out(5, ttt, 0, 0)));
    assert_eq!(pair.send(data, &[1; 512]).len(), 2);
    assert_eq!((pair.send(data, &[1; 512]), pair.rejects()), (vec![], vec![INVALID]));
}

#[test]
fn broken_data_fails_its_command_and_a_broken_header_the_session() {
    let digests = DigestWish::Required;
    let wishes = Wishes { header_digest: digests, data_digest: digests, ..small() };
    let mut pair = Pair::new(wishes);
    let mut bytes = pdu(Header::Command(pair.write(5, 1024)), pair.session.digests(0), &[1; 512]);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let came = pair.send_raw(&bytes).expect("the session goes on");
    assert_eq!(came.last(), Some(&Came::AllData(Err(Sense::PROTOCOL_SERVICE_CRC_ERROR))));
    assert_eq!(pair.rejects(), [0x02]);
    let mut bytes = pdu(Header::Command(pair.write(6, 1024)), pair.session.digests(0), &[]);
    bytes[20] ^= 1;
    assert_eq!(pair.send_raw(&bytes), Err(Fatal::HeaderDigest));
}

#[test]
fn pings_are_sent_back_as_far_as_they_are_taken() {
    let mut pair = Pair::of(Wishes { data_bytes: 512, ..small() }, small());
    assert_eq!(pair.wishes.data_bytes, 512);
    let numbers = Numbers { cmd_sn: pair.session.window()[0], exp_stat_sn: 0 };
    let ping = |itt| Header::NopOut { is_immediate: true, lun: [0; 8], itt, ttt: NO_TAG, numbers };
    assert_eq!(pair.send(ping(3), &[9; 1024]), []);
    let got = pair.heard();
    let [Got::Header(Header::NopIn { itt: 3, .. }, 512), Got::Data(data, true)] = &got[..] else {
        panic!("{got:?}")
    };
    assert!(data.iter().all(|byte| *byte == 9));
    // The answer to a ping that was not sent says nothing.
    assert_eq!((pair.send(ping(NO_TAG), &[]), pair.heard()), (vec![], vec![]));
}

#[test]
fn text_is_bounded_and_bears_its_tag() {
    let mut pair = Pair::new(small());
    let numbers = Numbers { cmd_sn: pair.session.window()[0], exp_stat_sn: 0 };
    let request = TextRequest {
        is_immediate: true,
        is_final: true,
        continues: false,
        itt: 4,
        ttt: NO_TAG,
        numbers,
    };
    let mut send = |request, data: &[u8]| {
        let came = pair.send(Header::TextRequest(request), data);
        (came, pair.heard())
    };
    let (came, _) = send(request, b"SendTargets=iqn.x\0");
    assert_eq!(came, [Came::SendTargets("iqn.x".to_owned())]);
    let (_, got) = send(TextRequest { ttt: 77, ..request }, b"");
    assert!(matches!(got[0], Got::Header(Header::Reject { reason: INVALID, .. }, _)), "{got:?}");
    let (_, got) = send(request, b"MaxBurstLength=512\0MaxRecvDataSegmentLength=511\0");
    let [_, Got::Data(text, true)] = &got[..] else { panic!("{got:?}") };
    assert_eq!(text, b"MaxBurstLength=NotUnderstood\0MaxRecvDataSegmentLength=Reject\0");
    let nothing_we_have: [&[u8]; 4] = [
        b"SendTargetsPlease=All\0",
        b"SendTargets=Alle\0",
        b"sENDtARGETS=aLL\0",
        b"SendTargets=A\0MaxRecvDataSegmentLength=512\0",
    ];
    for text in nothing_we_have {
        let (came, got) = send(request, text);
        assert!(came.is_empty(), "{came:?}");
        assert!(matches!(got[0], Got::Header(Header::Reject { reason: PROTOCOL, .. }, _)));
    }
    let (came, _) = send(request, b"SendTargets=All\0");
    assert_eq!(came, [Came::SendTargets("All".to_owned())]);
    let (_, got) = send(request, b"no pair");
    assert!(matches!(got[0], Got::Header(Header::Reject { reason: PROTOCOL, .. }, _)));
    // More and more of one text.
    let more = TextRequest { is_final: false, continues: true, ..request };
    let (_, got) = send(more, &[b'a'; 1024]);
    let [Got::Header(Header::TextResponse(response), 0)] = got[..] else { panic!("{got:?}") };
    assert!(!response.is_final && response.ttt != NO_TAG);
    let more = TextRequest { ttt: response.ttt, ..more };
    for _ in 0..1000 {
        assert_eq!(send(more, &[b'a'; 1024]).1.len(), 1);
    }
    let (came, got) = send(TextRequest { continues: false, ..more }, b"");
    assert_eq!(came, []);
    assert!(matches!(got[0], Got::Header(Header::Reject { reason: PROTOCOL, .. }, _)));
}

proptest! {
    // Any PDUs whose lengths are right, with numbers that may be.
    #[test]
    fn no_pdus_panic(
        pdus in proptest::collection::vec(
            (any::<[u8; 48]>(), proptest::collection::vec(any::<u8>(), 0..100), 0..4_u8), 1..60),
    ) {
        let mut pair = Pair::new(small());
        let mut tasks = Vec::new();
        for (mut bytes, data, choice) in pdus {
            bytes[0] &= 0x47;
            bytes[4..8].copy_from_slice(&[0, 0, 0, u8::try_from(data.len()).expect("few")]);
            // Tags and numbers that others have too.
            bytes[16..19].fill(0);
            bytes[19] &= 3;
            if choice > 0 {
                bytes[24..28].copy_from_slice(&pair.session.window()[0].to_be_bytes());
                bytes[20..23].fill(0);
            }
            if choice == 2 {
                bytes[20..24].fill(0xff);
                bytes[36..44].fill(0);
            }
            let mut pdu = bytes.to_vec();
            pdu.extend_from_slice(&data);
            pdu.resize(pdu.len().next_multiple_of(4), 0);
            let Ok(came) = pair.send_raw(&pdu) else { break };
            tasks.extend(came.into_iter().filter_map(|one| match one {
                Came::Command(task, _) => Some(task),
                _ => None,
            }));
            if choice == 3 && let Some(task) = tasks.pop() {
                pair.session.send_data(task, &[1; 3000], 3000, &mut pair.out);
            }
            prop_assert!(pair.session.outstanding() <= 10);
            pair.heard();
        }
    }
}

#[test]
fn the_reserved_tag_is_no_request_s() {
    let mut pair = Pair::new(small());
    let (itt, numbers) = (NO_TAG, Numbers { cmd_sn: 100, exp_stat_sn: 0 });
    let logout = Header::LogoutRequest { is_immediate: true, reason: 0, itt, cid: 0, numbers };
    let task = TaskRequest { is_immediate: true, function: 6, itt, numbers, ..Default::default() };
    let command = ScsiCommand { is_immediate: true, ..pair.read(itt, 512) };
    let text = TextRequest {
        is_immediate: true,
        is_final: true,
        itt,
        ttt: NO_TAG,
        numbers,
        ..Default::default()
    };
    let all =
        [logout, Header::TaskRequest(task), Header::Command(command), Header::TextRequest(text)];
    for header in all {
        assert_eq!((pair.send(header, &[]), pair.rejects()), (vec![], vec![INVALID]), "{header:?}");
    }
}
