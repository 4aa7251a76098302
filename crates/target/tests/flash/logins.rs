//! Peers that send what no initiator would, to a target that others use meanwhile.

use std::io::{Read, Write};
use std::net::TcpStream;

use measure::Duration;
use target::Limits;

use crate::initiators::{Client, GOOD, dial, serve};

fn quick() -> Limits {
    Limits { handshake: Duration::from_ms(300), ..Limits::default() }
}

// Everything until the target closes the connection.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => bytes,
        Err(error) => panic!("it is still open: {error}"),
    }
}

/// A login request: flags, versions, and text that may not be all that its length says.
fn login(flags: u8, version_min: u8, length: u32, text: &[u8]) -> Vec<u8> {
    let mut pdu = vec![0; 48];
    (pdu[0], pdu[1], pdu[3]) = (0x43, flags, version_min);
    pdu[5..8].copy_from_slice(&length.to_be_bytes()[1..]);
    pdu.extend_from_slice(text);
    pdu.resize(pdu.len().next_multiple_of(4), 0);
    pdu
}

const WHO: &[u8] = b"InitiatorName=iqn.2026-11.example:x\0TargetName=iqn.2026-11.example:disk\0";

fn said(flags: u8, version_min: u8) -> Vec<u8> {
    login(flags, version_min, u32::try_from(WHO.len()).expect("it is short"), WHO)
}

#[test]
fn what_is_no_login_is_let_go() {
    let target = serve(1, quick());
    let mut ahs = said(0x87, 0);
    ahs[4] = 255;
    let cases: [(&str, Vec<u8>); 9] = [
        ("garbage", vec![0xa5; 4096]),
        ("http", b"GET / HTTP/1.1\r\nHost: disk\r\n\r\n".repeat(4)),
        ("tls", vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]),
        ("a piece of a header", said(0x87, 0)[..47].to_vec()),
        ("a command first", [&[0x01, 0x80][..], &[0; 46]].concat()),
        ("16 MiB of text", login(0x87, 0, 0xff_ffff, &[b'a'; 512])),
        ("additional headers", ahs),
        ("more text than fits", login(0x87, 0, 8200, &[b'a'; 8200])),
        ("nothing", Vec::new()),
    ];
    for (what, bytes) in cases {
        let mut stream = dial(&target);
        let _closed = stream.write_all(&bytes);
        let answer = rest(&mut stream);
        let is_login = answer.first().is_none_or(|opcode| *opcode == 0x23);
        assert!(is_login && answer.len() <= 48, "{what}: {answer:?}");
    }
    // Text may go on for long, but not for ever.
    let mut stream = dial(&target);
    let piece = login(0x44, 0, 4096, &[b'a'; 4096]);
    while stream.write_all(&piece).is_ok() {
        let mut answer = [0; 48];
        if stream.read_exact(&mut answer).is_err() || answer[36] != 0 {
            break;
        }
    }
    assert_eq!(Client::log_in(&target, 1).write(1), GOOD, "others are served");
    target.stop().expect("it has not failed");
}

#[test]
fn logins_that_cannot_be_are_told_why() {
    let target = serve(1, quick());
    let status = |bytes: &[u8]| {
        let mut stream = dial(&target);
        stream.write_all(bytes).expect("it takes them");
        let answer = rest(&mut stream);
        answer.get(36..38).map(|status| u16::from_be_bytes([status[0], status[1]]))
    };
    for version in [1, 2, 255] {
        assert_eq!(status(&said(0x87, version)), Some(0x0205), "version {version}");
    }
    // Stages: the second to the first, the same, one that is none; and both T and C.
    for flags in [0x84, 0x85, 0x80, 0x8e, 0x82, 0xc7] {
        let told = status(&said(flags, 0));
        assert!(matches!(told, Some(0x0200 | 0x020b)), "flags {flags:#x}: {told:x?}");
    }
    let nobody = b"TargetName=iqn.2026-11.example:disk\0";
    let length = u32::try_from(nobody.len()).expect("it is short");
    assert_eq!(status(&login(0x87, 0, length, nobody)), Some(0x0207));
    let other = b"InitiatorName=iqn.2026-11.example:x\0TargetName=iqn.2026-11.example:none\0";
    let length = u32::try_from(other.len()).expect("it is short");
    assert_eq!(status(&login(0x87, 0, length, other)), Some(0x0203));
    let mut untagged = said(0x87, 0);
    untagged[16..20].fill(0xff);
    assert_eq!(status(&untagged), Some(0x0200));
    assert_eq!(status(&login(0x87, 0, 8200, &[b'a'; 8200])), Some(0x0200));
    let mut unknown = said(0x87, 0);
    unknown[14] = 9;
    assert_eq!(status(&unknown), Some(0x020a), "a session that is not there");
    target.stop().expect("it has not failed");
}
