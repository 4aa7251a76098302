//! What a peer may not send, and what it is told (TCP 3.5).

use nvme::{Decoder, End, Fatal, FatalStatus, Header, IcReq, Kind, Layout};

use crate::{LIMITS, agreed, layout, pdu, read};

const INVALID: FatalStatus = FatalStatus::InvalidHeaderField;

/// Why a controller that has agreed on `layout` ends the connection.
fn refused(layout: Layout, bytes: &[u8]) -> (FatalStatus, u32) {
    let mut decoder = agreed(End::Controller, layout);
    let (got, result) = read(&mut decoder, [bytes]);
    let Fatal { status, information } = result.expect_err("it may not be sent");
    assert!(got.is_empty(), "nothing of it is handed on: {got:?}");
    let Header::C2hTermReq(term) = Fatal { status, information }.term_req(End::Controller) else {
        panic!("a controller sends C2HTermReq");
    };
    assert_eq!((term.status, term.information), (status as u16, information));
    assert!(bytes.starts_with(decoder.offending_header()));
    (status, information)
}

fn capsule(layout: Layout, data: &[u8]) -> Vec<u8> {
    pdu(Header::CapsuleCmd([3; 64]), layout, data)
}

fn data(offset: u32, length: u32, bytes: &[u8]) -> Vec<u8> {
    let header = Header::H2cData { cid: 1, ttag: 2, offset, length, last: true };
    pdu(header, Layout::default(), bytes)
}

fn changed(mut bytes: Vec<u8>, at: usize, value: &[u8]) -> Vec<u8> {
    bytes[at..at + value.len()].copy_from_slice(value);
    bytes
}

#[test]
fn unknown_types_are_refused() {
    for kind in (0..=255).filter(|&kind| Kind::from_byte(kind).is_none()) {
        let bytes = changed(capsule(Layout::default(), &[]), 0, &[kind]);
        assert_eq!(refused(Layout::default(), &bytes), (INVALID, 0), "{kind:#x}");
    }
    for text in [b"GET / HTTP/1.1\r\n\r\n".as_slice(), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"] {
        assert_eq!(refused(Layout::default(), text).0, INVALID);
    }
}

#[test]
fn each_end_sends_its_own_types() {
    for kind in [Kind::IcResp, Kind::C2hTermReq, Kind::CapsuleResp, Kind::C2hData, Kind::R2t] {
        let bytes = changed(capsule(Layout::default(), &[]), 0, &[kind as u8]);
        assert_eq!(refused(Layout::default(), &bytes), (FatalStatus::Sequence, 0), "{kind:?}");
    }
    let bytes = capsule(Layout::default(), &[]);
    let (_, result) = read(&mut agreed(End::Host, Layout::default()), [&bytes[..]]);
    assert_eq!(result.expect_err("hosts get none").status, FatalStatus::Sequence);
}

#[test]
fn a_connection_begins_with_its_request_and_has_one() {
    let sequence = FatalStatus::Sequence;
    for bytes in [capsule(Layout::default(), &[]), data(0, 4, &[0; 4])] {
        let mut decoder = Decoder::new(End::Controller, LIMITS);
        let (_, result) = read(&mut decoder, [&bytes[..]]);
        assert_eq!(result.expect_err("too early").status, sequence);
    }
    let again = pdu(Header::IcReq(IcReq::default()), Layout::default(), &[]);
    assert_eq!(refused(Layout::default(), &again), (sequence, 0));
}

#[test]
fn requests_with_impossible_parameters_are_refused() {
    let request = pdu(Header::IcReq(IcReq::default()), Layout::default(), &[]);
    for (at, value, byte) in [(8, 1, 8), (9, 1, 8), (10, 32, 10), (10, 255, 10), (4, 127, 4)] {
        let bytes = changed(request.clone(), at, &[value]);
        let mut decoder = Decoder::new(End::Controller, LIMITS);
        let (_, result) = read(&mut decoder, [&bytes[..]]);
        let fatal = Fatal { status: INVALID, information: byte };
        assert_eq!(result, Err(fatal), "byte {at} = {value}");
    }
    // Reserved digest bits are ignored, and many R2Ts allowed are no promise to send so many.
    let bytes = changed(request, 11, &[0xfc, 0xff, 0xff, 0xff, 0xff]);
    let mut decoder = Decoder::new(End::Controller, LIMITS);
    assert_eq!(read(&mut decoder, [&bytes[..]]).1, Ok(()));
}

#[test]
fn header_lengths_are_those_of_the_type() {
    for bytes in [capsule(Layout::default(), &[]), data(0, 4, &[0; 4])] {
        let right = bytes[2];
        for wrong in [0, 7, right - 1, right + 1, 255] {
            let bytes = changed(bytes.clone(), 2, &[wrong]);
            assert_eq!(refused(Layout::default(), &bytes), (INVALID, 2), "{wrong}");
        }
    }
}

#[test]
fn pdu_lengths_are_bounded_before_anything_is_taken() {
    let plain = Layout::default();
    for wrong in [0_u32, 71] {
        let bytes = changed(capsule(plain, &[]), 4, &wrong.to_le_bytes());
        assert_eq!(refused(plain, &bytes), (INVALID, 4), "{wrong}");
    }
    let with_data = capsule(plain, &[1; 8192]);
    assert_eq!(read(&mut agreed(End::Controller, plain), [&with_data[..]]).1, Ok(()));
    let limit = (FatalStatus::DataLimitExceeded, 4);
    for wrong in [72 + 8193, u32::MAX] {
        let bytes = changed(with_data.clone(), 4, &wrong.to_le_bytes());
        assert_eq!(refused(plain, &bytes), (INVALID, 4), "{wrong}");
    }
    assert_eq!(refused(plain, &data(0, 131_073, &vec![0; 131_073])), limit);
    // Three of the four bytes of a digest and no data.
    let digests = layout(false, true, 0);
    let bytes = changed(capsule(digests, &[1]), 4, &75_u32.to_le_bytes());
    assert_eq!(refused(digests, &bytes), (INVALID, 4));
}

#[test]
fn digests_are_there_when_agreed_and_only_then() {
    let (plain, both) = (Layout::default(), layout(true, true, 0));
    assert_eq!(refused(plain, &capsule(both, &[])), (INVALID, 1));
    assert_eq!(refused(both, &capsule(plain, &[])), (INVALID, 1));
    let header_only = layout(true, false, 0);
    assert_eq!(refused(both, &capsule(header_only, &[1; 4])), (INVALID, 1));
    assert_eq!(refused(header_only, &capsule(both, &[1; 4])), (INVALID, 1));
    let bytes = changed(capsule(both, &[]), 72, &[0; 4]);
    assert_eq!(refused(both, &bytes), (FatalStatus::HeaderDigest, 0));
}

#[test]
fn data_begins_where_it_may() {
    let plain = Layout::default();
    for wrong in [0, 71, 73, 74, 255] {
        let bytes = changed(capsule(plain, &[1; 16]), 3, &[wrong]);
        assert_eq!(refused(plain, &bytes), (INVALID, 3), "{wrong}");
    }
    let coarse = layout(false, false, 31);
    let bytes = changed(capsule(coarse, &[1; 400]), 3, &[132]);
    assert_eq!(refused(coarse, &bytes), (INVALID, 3));
    // Without data it says nothing.
    let bytes = changed(capsule(plain, &[]), 3, &[255]);
    assert_eq!(read(&mut agreed(End::Controller, plain), [&bytes[..]]).1, Ok(()));
}

#[test]
fn data_is_as_long_as_it_says_and_within_its_command() {
    let plain = Layout::default();
    let out_of_range = FatalStatus::DataOutOfRange;
    assert_eq!(refused(plain, &data(0, 0, &[])), (out_of_range, 16));
    assert_eq!(refused(plain, &data(0, 5, &[0; 4])), (INVALID, 16));
    assert_eq!(refused(plain, &data(0, 4, &[])), (INVALID, 16));
    assert_eq!(refused(plain, &data(u32::MAX - 3, 4, &[0; 4])), (out_of_range, 12));
}

#[test]
fn reserved_flags_are_ignored() {
    let bytes = changed(capsule(Layout::default(), &[]), 1, &[0xfc]);
    assert_eq!(read(&mut agreed(End::Controller, Layout::default()), [&bytes[..]]).1, Ok(()));
}

#[test]
fn half_a_header_waits() {
    let bytes = capsule(Layout::default(), &[]);
    for length in 1..bytes.len() {
        let mut decoder = agreed(End::Controller, Layout::default());
        let (got, result) = read(&mut decoder, [&bytes[..length]]);
        assert_eq!((got, result), (vec![], Ok(())), "{length}");
        assert!(decoder.is_within_pdu());
    }
}
