//! Logins, of initiators that keep to the rules and ones that do not.

use md5::{Digest as _, Md5};
use scsi::iscsi::{
    Admission, DigestWish, Digests, Fatal, Header, Identity, Login, LoginEvent, LoginRequest,
    LoginStage, LoginStatus, Numbers, Parameters, Wishes,
};

use crate::{Got, Handshake, INITIATOR, TARGET, chap, entry_config, nonce, pdu, read};

fn wishes(digest: DigestWish) -> Wishes {
    Wishes { header_digest: digest, data_digest: digest, ..Wishes::default() }
}

#[test]
fn both_ends_agree() {
    let small = Wishes { max_burst_bytes: 4096, max_connections: 4, ..wishes(DigestWish::Never) };
    let crc = wishes(DigestWish::Preferred);
    for (initiator, target, expected) in [
        (small, crc, (4096, 4096, 1, Digests::default())),
        (crc, crc, (1 << 20, 64 << 10, 1, Digests { header: true, data: true })),
        (
            Wishes { max_connections: 3, ..wishes(DigestWish::Required) },
            Wishes { max_connections: 2, ..wishes(DigestWish::Possible) },
            (1 << 20, 64 << 10, 2, Digests { header: true, data: true }),
        ),
    ] {
        let handshake = Handshake::default();
        let (_, entered) = handshake.run(entry_config(initiator), target).expect("they do");
        assert_eq!(entered.tsih, 7);
        let agreed: &Parameters = entered.link.parameters();
        let (burst, first, connections, digests) = expected;
        assert_eq!(agreed.max_burst_bytes, burst);
        assert_eq!(agreed.first_burst_bytes, first);
        assert_eq!((agreed.max_connections, agreed.digests), (connections, digests));
        assert_eq!(agreed.peer_data_bytes, 256 << 10);
        assert!(!agreed.initial_r2t && agreed.immediate_data);
    }
    let failed = Handshake::default()
        .run(entry_config(wishes(DigestWish::Required)), wishes(DigestWish::Never));
    assert_eq!(failed.map(|_| ()), Err(Fatal::Login(0x0200)));
}

#[test]
fn both_ends_prove_who_they_are() {
    let with = |at_initiator, at_target| {
        let admission = Admission { chap: at_target, ..Handshake::default().admission };
        let handshake = Handshake { admission, ..Handshake::default() };
        let config =
            scsi::iscsi::EntryConfig { chap: at_initiator, ..entry_config(Wishes::default()) };
        handshake.run(config, Wishes::default()).map(|_| ())
    };
    let (failed, bad) = (Err(Fatal::Login(0x0201)), Err(Fatal::NoProof));
    let (one, both) = (chap(false), chap(true));
    assert_eq!(with(Some(one.clone()), Some(one.clone())), Ok(()));
    assert_eq!(with(Some(both.clone()), Some(both.clone())), Ok(()));
    assert_eq!(with(Some(one.clone()), Some(both.clone())), Ok(()), "it need not ask");
    assert_eq!(with(None, Some(one.clone())), failed, "nothing is proved");
    assert_eq!(with(Some(both.clone()), Some(one.clone())), failed, "it has nothing to prove");
    assert_eq!(with(Some(one.clone()), None), failed, "nobody wants a proof");
    let mut wrong = both.clone();
    wrong.initiator.secret = scsi::iscsi::Secret::new(*b"another");
    assert_eq!(with(Some(wrong.clone()), Some(both.clone())), failed);
    wrong.initiator = both.initiator.clone();
    wrong.initiator.name.push('x');
    assert_eq!(with(Some(wrong), Some(both.clone())), failed);
    let mut other = both.clone();
    other.target.as_mut().expect("it is there").secret = scsi::iscsi::Secret::new(*b"another");
    assert_eq!(with(Some(other), Some(both.clone())), bad, "it is another target");
    let mut same = both.clone();
    same.target.as_mut().expect("it is there").secret = same.initiator.secret.clone();
    assert_eq!(with(Some(same.clone()), Some(same)), failed, "one secret for both ends");
}

/// A target's end, and what it has answered.
struct Door {
    login: Login,
    out: Vec<u8>,
}

const OPERATIONAL: LoginStage =
    LoginStage { transits: true, continues: false, current: 1, next: 3 };
const SECURITY: LoginStage = LoginStage { transits: false, continues: false, current: 0, next: 0 };

fn request(stage: LoginStage) -> LoginRequest {
    LoginRequest {
        stage,
        isid: [1; 6],
        numbers: Numbers { cmd_sn: 5, exp_stat_sn: 0 },
        ..LoginRequest::default()
    }
}

fn names() -> Vec<u8> {
    format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0").into_bytes()
}

impl Door {
    fn new() -> Self {
        Self { login: Login::new(Wishes::default(), nonce(1)), out: Vec::new() }
    }

    fn send(&mut self, request: LoginRequest, text: &[u8]) -> Result<Option<LoginEvent>, Fatal> {
        let bytes = pdu(Header::LoginRequest(request), Digests::default(), text);
        let mut input = &bytes[..];
        match self.login.receive(&mut input, &mut self.out)? {
            Some(LoginEvent::Identified(_)) => {
                let admission = Admission { chap: None, group: 3, alias: None };
                self.login.admit(admission, &mut self.out)
            }
            event => Ok(event),
        }
    }

    /// The status and the text of the latest answer.
    fn answer(&mut self) -> (u16, String) {
        let (got, _) = read(&mut scsi::iscsi::Decoder::new(), [&self.out[..]]);
        self.out.clear();
        match &got[..] {
            [Got::Header(Header::LoginResponse(response), 0)] => (response.status, String::new()),
            [Got::Header(Header::LoginResponse(response), _), Got::Data(text, true)] => {
                let text = String::from_utf8(text.clone()).expect("it is text");
                (response.status, text.replace('\0', "\n"))
            }
            other => panic!("one answer: {other:?}"),
        }
    }
}

/// The status with which a first request is refused.
fn refused(request: LoginRequest, text: &[u8]) -> u16 {
    let mut door = Door::new();
    let result = door.send(request, text);
    let (status, _) = door.answer();
    assert_eq!(result, Err(Fatal::Login(status)), "it was told so");
    status
}

fn with(text: &str) -> Vec<u8> {
    [names(), text.as_bytes().to_vec()].concat()
}

#[test]
fn a_first_request_says_who_asks() {
    let mut door = Door::new();
    let asked = LoginRequest { tsih: 9, cid: 3, ..request(OPERATIONAL) };
    let event = door.send(asked, &with("MaxBurstLength=512\0X-b=1\0")).expect("it may");
    let identity = Identity {
        initiator: INITIATOR.to_owned(),
        target: Some(TARGET.to_owned()),
        isid: [1; 6],
        tsih: 9,
        cid: 3,
    };
    let expected =
        Parameters { max_burst_bytes: 512, first_burst_bytes: 512, ..Parameters::default() };
    assert_eq!(event, Some(LoginEvent::Agreed(identity, expected)));
    let link = door.login.establish(9, Some([40, 47]), &mut door.out);
    assert!(!link.is_discovery());
    let (got, _) = read(&mut scsi::iscsi::Decoder::new(), [&door.out[..]]);
    let Got::Header(Header::LoginResponse(response), _) = got[0] else { panic!("{got:?}") };
    assert_eq!((response.stage, response.tsih, response.isid), (OPERATIONAL, 9, [1; 6]));
    assert_eq!((response.window.exp_cmd_sn, response.window.max_cmd_sn), (40, 47));
    let missing = LoginStatus::MissingParameter as u16;
    assert_eq!(refused(request(OPERATIONAL), b""), missing);
    assert_eq!(refused(request(OPERATIONAL), b"TargetName=a\0"), missing);
    assert_eq!(refused(request(OPERATIONAL), b"InitiatorName=a\0"), missing);
    assert_eq!(refused(request(OPERATIONAL), b"InitiatorName=\0TargetName=a\0"), 0x0200);
    let long = format!("InitiatorName={}\0TargetName=a\0", "a".repeat(224));
    assert_eq!(refused(request(OPERATIONAL), long.as_bytes()), 0x0200);
    assert_eq!(refused(request(OPERATIONAL), &with("SessionType=Other\0")), 0x0209);
    assert_eq!(refused(request(OPERATIONAL), b"InitiatorName=a\nb\0TargetName=a\0"), 0x0200);
}

#[test]
fn the_reserved_tag_is_no_request_s() {
    let tagged = |itt| LoginRequest { itt, ..request(OPERATIONAL) };
    assert_eq!(refused(tagged(u32::MAX), &names()), 0x0200);
    let mut door = Door::new();
    assert!(matches!(door.send(tagged(u32::MAX - 1), &names()), Ok(Some(_))));
}

#[test]
fn stages_go_forward() {
    for current in 0..4 {
        for next in 0..4 {
            let stage = LoginStage { transits: true, continues: false, current, next };
            let mut door = Door::new();
            let result = door.send(request(stage), &names());
            let is_right = matches!((current, next), (0, 1 | 3) | (1, 3));
            assert_eq!(result.is_ok(), is_right, "{current} to {next}");
            if !is_right {
                assert_eq!(door.answer().0, LoginStatus::InvalidRequest as u16);
            }
        }
    }
    assert_eq!(refused(LoginRequest { version_min: 1, ..request(OPERATIONAL) }, &names()), 0x0205);
    let both = LoginStage { continues: true, ..OPERATIONAL };
    assert_eq!(refused(request(both), &names()), 0x0200);
    // Back to the stage before, and another connection's identifiers.
    let forward = LoginStage { transits: true, next: 1, ..SECURITY };
    for (changed, status) in [
        (request(SECURITY), 0x020b),
        (LoginRequest { itt: 1, ..request(OPERATIONAL) }, 0x0200),
        (LoginRequest { isid: [2; 6], ..request(OPERATIONAL) }, 0x0200),
        (LoginRequest { cid: 1, ..request(OPERATIONAL) }, 0x0200),
    ] {
        let mut door = Door::new();
        assert_eq!(door.send(request(forward), &with("AuthMethod=None\0")), Ok(None));
        let (_, text) = door.answer();
        assert_eq!(text, "AuthMethod=None\nTargetPortalGroupTag=3\n");
        assert_eq!(door.send(changed, &[]), Err(Fatal::Login(status)));
    }
}

#[test]
fn keys_are_answered_once() {
    let stays = LoginStage { transits: false, next: 0, ..OPERATIONAL };
    let mut door = Door::new();
    let text = with("HeaderDigest=CRC32C,None\0InitialR2T=No\0IFMarker=No\0Unknown=1\0");
    assert_eq!(door.send(request(stays), &text), Ok(None));
    let (status, text) = door.answer();
    let expected = "HeaderDigest=CRC32C\nInitialR2T=No\nIFMarker=No\nUnknown=NotUnderstood\n\
                    TargetPortalGroupTag=3\nMaxRecvDataSegmentLength=262144\n";
    assert_eq!((status, text.as_str()), (0, expected));
    // The names again are nothing new; a key that was settled cannot be settled again.
    assert_eq!(door.send(request(stays), &names()), Ok(None));
    assert_eq!(door.answer(), (0, String::new()));
    assert_eq!(door.send(request(stays), b"InitialR2T=Yes\0"), Err(Fatal::Login(0x0200)));
    for bad in [
        "InitiatorAlias\0",
        "A=1",
        "=1\0",
        "MaxBurstLength=512\0MaxBurstLength=1024\0",
        "MaxRecvDataSegmentLength=511\0",
        "MaxRecvDataSegmentLength=16777216\0",
        "CHAP_A=5\0",
        "DataDigest=SHA1\0",
    ] {
        assert_eq!(refused(request(OPERATIONAL), &with(bad)), 0x0200, "{bad}");
    }
    // More answers than one PDU has room for.
    let many: String = (0..700).map(|number| format!("X-{number}=1\0")).collect();
    assert_eq!(refused(request(OPERATIONAL), &with(&many)), 0x0200);
}

#[test]
fn text_comes_in_several_pdus_and_not_in_many() {
    let more = LoginStage { transits: false, continues: true, current: 1, next: 0 };
    let mut door = Door::new();
    let all = with("MaxBurstLength=512\0");
    for piece in all.chunks(10) {
        assert_eq!(door.send(request(more), piece), Ok(None));
        assert_eq!(door.answer(), (0, String::new()));
    }
    let event = door.send(request(OPERATIONAL), &[]).expect("it may");
    assert!(matches!(event, Some(LoginEvent::Agreed(_, agreed)) if agreed.max_burst_bytes == 512));
    for piece in [0, 1, 8192] {
        let mut door = Door::new();
        let text = vec![b'a'; piece];
        let sent = (0..10_000).take_while(|_| door.send(request(more), &text).is_ok()).count();
        assert!(sent <= 64, "{sent} of {piece}");
        door.out.drain(..48 * sent);
        assert_eq!(door.answer().0, 0x0200);
    }
    // Rounds that lead nowhere.
    let stays = LoginStage { transits: false, next: 0, ..OPERATIONAL };
    let mut door = Door::new();
    assert_eq!(door.send(request(stays), &names()), Ok(None));
    let sent = (0..1000).take_while(|_| door.send(request(stays), &[]).is_ok()).count();
    assert!(sent < 64);
}

#[test]
fn a_request_with_more_data_than_may_be_is_answered() {
    for length in [8193, 0xff_ffff] {
        let mut bytes = pdu(
            Header::LoginRequest(LoginRequest { itt: 9, ..request(OPERATIONAL) }),
            Digests::default(),
            &[],
        );
        bytes[5..8].copy_from_slice(&u32::to_be_bytes(length)[1..]);
        let mut door = Door::new();
        let told = Err(Fatal::Login(0x0200));
        assert_eq!(door.login.receive(&mut &bytes[..], &mut door.out), told);
        assert_eq!((door.out[0], door.out[19]), (0x23, 9));
        assert_eq!(door.answer(), (0x0200, String::new()));
        // Nothing follows.
        assert_eq!(door.login.receive(&mut &bytes[..], &mut door.out), Ok(None));
        assert!(door.out.is_empty());
    }
}

#[test]
fn nothing_else_comes_before_the_end_of_a_login() {
    for opcode in (0..=255_u8).filter(|opcode| opcode & 0x3f != 0x03) {
        let mut bytes = [0; 48];
        bytes[0] = opcode;
        let mut login = Login::new(Wishes::default(), nonce(1));
        let mut out = Vec::new();
        let result = login.receive(&mut &bytes[..], &mut out);
        assert_eq!(result, Err(Fatal::Sequence { opcode: opcode & 0x3f }));
        assert!(out.is_empty());
    }
    for garbage in
        [b"GET / HTTP/1.1\r\nHost: disk.example.com:3260\r\n\r\n    ".as_slice(), &[0x16; 64]]
    {
        let mut login = Login::new(Wishes::default(), nonce(1));
        assert!(login.receive(&mut &garbage[..], &mut Vec::new()).is_err());
    }
    // Half a header waits.
    let bytes = pdu(Header::LoginRequest(request(OPERATIONAL)), Digests::default(), &names());
    for length in 0..48 {
        let mut login = Login::new(Wishes::default(), nonce(1));
        let mut out = Vec::new();
        assert_eq!(login.receive(&mut &bytes[..length], &mut out), Ok(None));
        assert!(out.is_empty());
    }
}

#[test]
fn a_proof_comes_in_order() {
    let admission = Admission { chap: Some(chap(true)), group: 1, alias: None };
    // Each list of texts ends with one that is refused.
    let (n, r) = ("CHAP_N=the host\0", "CHAP_R=0x00112233445566778899aabbccddeeff\0");
    let start = "AuthMethod=CHAP,None\0";
    let cases: [&[&str]; 13] = [
        &["AuthMethod=None\0"],
        &["AuthMethod=SRP,KRB5\0"],
        &["CHAP_A=5\0"],
        &[start, start],
        &[start, "CHAP_A=4,9\0"],
        &[start, r],
        &[start, "CHAP_A=5\0", "CHAP_A=5\0"],
        &[start, "CHAP_A=5\0", n],
        &[start, "CHAP_A=5\0", r],
        &[start, "CHAP_A=5\0", "CHAP_N=the host\0CHAP_R=0x001\0"],
        &[start, "CHAP_A=5\0", "CHAP_N=the host\0CHAP_R=0x\0"],
        &[start, "CHAP_A=7\0", "CHAP_N=the host\0CHAP_R=0x00112233445566778899aabbccddeeff\0"],
        &[start, "CHAP_A=5\0CHAP_N=a\0CHAP_R=0x00\0"],
    ];
    for texts in cases {
        let mut login = Login::new(Wishes::default(), nonce(1));
        let mut out = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let text = if index == 0 { with(text) } else { text.as_bytes().to_vec() };
            let bytes = pdu(Header::LoginRequest(request(SECURITY)), Digests::default(), &text);
            let mut result = login.receive(&mut &bytes[..], &mut out);
            if let Ok(Some(LoginEvent::Identified(_))) = result {
                result = login.admit(admission.clone(), &mut out);
            }
            let is_last = index + 1 == texts.len();
            assert_eq!(result, if is_last { Err(Fatal::Login(0x0201)) } else { Ok(None) });
        }
    }
    // Its own challenge sent back.
    let mut login = Login::new(Wishes::default(), nonce(1));
    let mut out = Vec::new();
    let challenge = format!("0x{}", "01".repeat(16));
    let secret = [&[1_u8][..], b"said by the host", &[1; 16]].concat();
    let answer: String = Md5::digest(&secret).iter().map(|byte| format!("{byte:02x}")).collect();
    let texts = [
        with(start),
        b"CHAP_A=5\0".to_vec(),
        format!("{n}CHAP_R=0x{answer}\0CHAP_I=9\0CHAP_C={challenge}\0").into_bytes(),
    ];
    let mut last = Ok(None);
    for text in texts {
        let bytes = pdu(Header::LoginRequest(request(SECURITY)), Digests::default(), &text);
        last = login.receive(&mut &bytes[..], &mut out);
        if let Ok(Some(LoginEvent::Identified(_))) = last {
            last = login.admit(admission.clone(), &mut out);
        }
    }
    assert_eq!(last, Err(Fatal::Login(0x0201)));
}
