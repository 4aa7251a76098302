//! Written by one end, read by the other.

use proptest::prelude::*;

use nvme::{Digests, End, Header, IcReq, IcResp, Kind, Layout, TermReq};

use crate::{Got, agreed, layout, pdu, read};

/// A header of this kind and the data that goes with it.
fn header(kind: Kind, [cid, ttag]: [u16; 2], number: u32, data: &[u8]) -> Header {
    let length = u32::try_from(data.len()).expect("data here is short");
    let term = TermReq { status: cid, information: number };
    let offset = number.min(u32::MAX - length);
    let last = number.is_multiple_of(2);
    match kind {
        Kind::IcReq => Header::IcReq(IcReq { maxr2t: number, ..IcReq::default() }),
        Kind::IcResp => Header::IcResp(IcResp { maxh2cdata: 4096, ..IcResp::default() }),
        Kind::H2cTermReq => Header::H2cTermReq(term),
        Kind::C2hTermReq => Header::C2hTermReq(term),
        Kind::CapsuleCmd => Header::CapsuleCmd([ttag.to_le_bytes()[0]; 64]),
        Kind::CapsuleResp => Header::CapsuleResp([cid.to_le_bytes()[0]; 16]),
        Kind::H2cData => Header::H2cData { cid, ttag, offset, length, last },
        Kind::C2hData => {
            let success = last && ttag.is_multiple_of(2);
            Header::C2hData { cid, offset, length, last, success }
        }
        Kind::R2t => Header::R2t { cid, ttag, offset, length: number },
    }
}

/// PDUs that one end may send after the first, with their data.
fn pdus(to: End) -> impl Strategy<Value = Vec<(Header, Vec<u8>)>> {
    let kinds: &[Kind] = match to {
        End::Controller => &[Kind::CapsuleCmd, Kind::H2cData, Kind::H2cTermReq],
        End::Host => &[Kind::CapsuleResp, Kind::C2hData, Kind::R2t, Kind::C2hTermReq],
    };
    let kind = proptest::sample::select(kinds);
    let data = proptest::collection::vec(any::<u8>(), 0..3000);
    let one =
        (kind, any::<[u16; 2]>(), any::<u32>(), data).prop_map(|(kind, ids, number, mut data)| {
            match kind {
                _ if !kind.has_data() => data.clear(),
                Kind::H2cTermReq | Kind::C2hTermReq => data.truncate(128),
                Kind::H2cData | Kind::C2hData if data.is_empty() => data.push(1),
                _ => {}
            }
            (header(kind, ids, number, &data), data)
        });
    proptest::collection::vec(one, 1..8)
}

fn layouts() -> impl Strategy<Value = Layout> {
    (any::<bool>(), any::<bool>(), 0..=31_u8).prop_map(|(h, d, alignment)| layout(h, d, alignment))
}

fn expected(pdus: &[(Header, Vec<u8>)]) -> Vec<Got> {
    let of = |(header, data): &(Header, Vec<u8>)| {
        let length = u32::try_from(data.len()).expect("data here is short");
        let end = (length > 0).then(|| Got::Data(data.clone(), true));
        std::iter::once(Got::Header(*header, length)).chain(end)
    };
    pdus.iter().flat_map(of).collect()
}

fn check(to: End, layout: Layout, pdus: &[(Header, Vec<u8>)], cuts: &[usize]) {
    let bytes: Vec<u8> =
        pdus.iter().flat_map(|(header, data)| pdu(*header, layout, data)).collect();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
    let mut decoder = agreed(to, layout);
    assert_eq!(read(&mut decoder, pieces), (expected(pdus), Ok(())));
    assert!(!decoder.is_within_pdu());
}

proptest! {
    #[test]
    fn what_a_host_sends_arrives(
        layout in layouts(),
        pdus in pdus(End::Controller),
        cuts in proptest::collection::vec(any::<usize>(), 0..20),
    ) {
        check(End::Controller, layout, &pdus, &cuts);
    }

    #[test]
    fn what_a_controller_sends_arrives(
        layout in layouts(),
        pdus in pdus(End::Host),
        cuts in proptest::collection::vec(any::<usize>(), 0..20),
    ) {
        check(End::Host, layout, &pdus, &cuts);
    }

    // One changed bit in the header or the data: with digests, it never passes for something else.
    #[test]
    fn no_changed_bit_passes_for_what_was_sent(
        pdus in pdus(End::Controller),
        at in any::<usize>(),
        bit in 0..8_u32,
    ) {
        let layout = layout(true, true, 0);
        let (header, data) = pdus[0].clone();
        prop_assume!(header.kind().has_header_digest());
        let mut bytes = pdu(header, layout, &data);
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let (got, result) = read(&mut agreed(End::Controller, layout), [&bytes[..]]);
        let header_end = usize::from(header.kind().header_bytes()) + 4;
        if at < header_end {
            // An enlarged PLEN waits for the rest of the header or of data at most.
            prop_assert!(result.is_err() || got.is_empty(), "{got:?}");
        } else {
            prop_assert_eq!(got, [
                Got::Header(header, u32::try_from(data.len()).expect("data here is short")),
                Got::Data(
                    {
                        let mut data = data.clone();
                        if let Some(byte) = data.get_mut(at - header_end) {
                            *byte ^= 1 << bit;
                        }
                        data
                    },
                    false,
                ),
            ]);
        }
    }

    #[test]
    fn no_bytes_panic(
        layout in layouts(),
        is_agreed in any::<bool>(),
        to_host in any::<bool>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let end = if to_host { End::Host } else { End::Controller };
        let mut decoder = nvme::Decoder::new(end, crate::LIMITS);
        if is_agreed {
            decoder = agreed(end, layout);
        }
        let (_, result) = read(&mut decoder, [&bytes[..]]);
        if let Err(fatal) = result {
            let mut more = &bytes[..];
            prop_assert_eq!(decoder.next(&mut more), Err(fatal), "it stays so");
            prop_assert!(decoder.offending_header().len() <= 128);
        }
    }
}

#[test]
fn digests_are_crc32c() {
    // RFC 3720 B.4: 32 bytes of zeros, and of ones.
    assert_eq!(nvme::data_digest(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
    assert_eq!(nvme::data_digest(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
}

#[test]
fn a_request_of_a_linux_host_is_read() {
    // 128 bytes: type 0, HLEN 128, PLEN 128, both digests, one R2T at a time.
    let mut bytes = [0_u8; 128];
    (bytes[2], bytes[4], bytes[11]) = (128, 128, 3);
    let mut decoder = nvme::Decoder::new(End::Controller, crate::LIMITS);
    let (got, result) = read(&mut decoder, bytes.chunks(1));
    let digests = Digests { header: true, data: true };
    let request = Header::IcReq(IcReq { hpda: 0, digests, maxr2t: 0 });
    assert_eq!((got, result), (vec![Got::Header(request, 0)], Ok(())));
    assert_eq!(pdu(request, Layout::default(), &[]), bytes);
}

#[test]
fn a_pdu_in_4096_segments_arrives() {
    let (layout, data) = (layout(true, true, 31), vec![0x5a; 8192]);
    let header = Header::CapsuleCmd([9; 64]);
    let bytes = pdu(header, layout, &data);
    let mut decoder = agreed(End::Controller, layout);
    let (got, result) = read(&mut decoder, bytes.chunks(2));
    assert_eq!((got, result), (vec![Got::Header(header, 8192), Got::Data(data, true)], Ok(())));
}
