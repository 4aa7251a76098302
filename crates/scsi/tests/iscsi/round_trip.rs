//! Written by one end, read by the other.

use proptest::prelude::*;

use scsi::Residual;
use scsi::iscsi::{
    AsyncMessage, DEFAULT_DATA_BYTES, DataIn, DataOut, Decoder, Digests, Fatal, Header,
    LoginRequest, LoginResponse, LoginStage, NO_TAG, Numbers, R2t, ScsiCommand, ScsiResponse,
    TaskRequest, TextRequest, TextResponse, Window, trailer,
};

use crate::{Got, pdu, read};

/// A header of each kind, of these numbers.
fn header(kind: usize, numbers: [u32; 4], lun: [u8; 8], flags: u8) -> Header {
    if kind < 8 { request(kind, numbers, lun, flags) } else { answer(kind, numbers, lun, flags) }
}

const CID: u16 = 0x1234;

const fn stage(flags: u8) -> LoginStage {
    let (current, next) = (flags >> 2 & 3, flags >> 4 & 3);
    LoginStage { transits: flags & 1 == 1, continues: flags & 2 == 2, current, next }
}

fn request(kind: usize, [a, b, c, d]: [u32; 4], lun: [u8; 8], flags: u8) -> Header {
    let bit = |at: u8| flags >> at & 1 == 1;
    let (byte, is_immediate) = (a.to_le_bytes()[0], bit(0));
    let numbers = Numbers { cmd_sn: c, exp_stat_sn: d };
    match kind {
        0 => Header::NopOut { is_immediate, lun, itt: a, ttt: b, numbers },
        1 => Header::Command(ScsiCommand {
            is_immediate,
            is_final: bit(1),
            reads: bit(2),
            writes: bit(3),
            attribute: flags >> 4 & 7,
            lun,
            itt: a,
            expected_bytes: b,
            numbers,
            cdb: [byte; 16],
        }),
        2 => Header::TaskRequest(TaskRequest {
            is_immediate,
            function: flags & 0x7f,
            lun,
            itt: a,
            referenced: b,
            numbers,
            ref_cmd_sn: a ^ b,
        }),
        3 => Header::LoginRequest(LoginRequest {
            stage: stage(flags),
            version_max: byte,
            version_min: flags,
            isid: [1, 2, 3, 4, 5, byte],
            tsih: 77,
            itt: a,
            cid: CID,
            numbers,
        }),
        4 => Header::TextRequest(TextRequest {
            is_immediate,
            is_final: bit(1),
            continues: bit(2),
            itt: a,
            ttt: b,
            numbers,
        }),
        5 => Header::DataOut(DataOut {
            is_final: bit(1),
            lun,
            itt: a,
            ttt: b,
            exp_stat_sn: c,
            data_sn: d,
            offset: a ^ b,
        }),
        6 => {
            Header::LogoutRequest { is_immediate, reason: flags & 0x7f, itt: a, cid: CID, numbers }
        }
        _ => Header::Snack { itt: a, exp_stat_sn: b },
    }
}

fn answer(kind: usize, [a, b, c, d]: [u32; 4], lun: [u8; 8], flags: u8) -> Header {
    let bit = |at: u8| flags >> at & 1 == 1;
    let byte = a.to_le_bytes()[0];
    let window = Window { stat_sn: b, exp_cmd_sn: c, max_cmd_sn: d };
    let residual = match flags >> 6 {
        0 | 3 => Residual::None,
        1 => Residual::Overflow(c),
        _ => Residual::Underflow(d),
    };
    match kind {
        8 => Header::NopIn { lun, itt: a, ttt: b, window },
        9 => Header::Response(ScsiResponse {
            residual,
            response: byte,
            status: flags,
            itt: a,
            window,
            exp_data_sn: b,
        }),
        10 => Header::TaskResponse { response: byte, itt: a, window },
        11 => {
            let (stage, isid) = (stage(flags), [1, 2, 3, 4, 5, byte]);
            let status = u16::from(flags) << 8 | u16::from(byte);
            Header::LoginResponse(LoginResponse { stage, isid, tsih: 7, itt: a, window, status })
        }
        12 => Header::TextResponse(TextResponse {
            is_final: bit(0),
            continues: bit(1),
            itt: a,
            ttt: b,
            window,
        }),
        13 => Header::DataIn(DataIn {
            is_final: bit(0),
            status: bit(1).then_some(byte),
            residual: if bit(1) { residual } else { Residual::None },
            lun,
            itt: a,
            window,
            data_sn: c,
            offset: d,
        }),
        14 => Header::LogoutResponse { response: byte, itt: a, window },
        15 => Header::R2t(R2t { lun, itt: a, ttt: b, window, r2t_sn: c, offset: d, length: a ^ d }),
        16 => Header::Async(AsyncMessage { lun, window, event: byte, parameters: [1, 2, CID] }),
        17 => Header::Reject { reason: byte, window },
        _ => Header::Other { opcode: 0x1e, is_immediate: bit(0), itt: a, cmd_sn: b },
    }
}

fn headers() -> impl Strategy<Value = Header> {
    (0..19_usize, any::<[u32; 4]>(), any::<[u8; 8]>(), any::<u8>())
        .prop_map(|(kind, numbers, lun, flags)| header(kind, numbers, lun, flags))
}

fn digests() -> impl Strategy<Value = Digests> {
    any::<[bool; 2]>().prop_map(|[header, data]| Digests { header, data })
}

fn agreed(digests: Digests) -> Decoder {
    let mut decoder = Decoder::new();
    decoder.agree(digests, 4096);
    decoder
}

proptest! {
    #[test]
    fn what_is_sent_arrives(
        digests in digests(),
        pdus in proptest::collection::vec(
            (headers(), proptest::collection::vec(any::<u8>(), 0..600)), 1..8),
        cuts in proptest::collection::vec(any::<usize>(), 0..20),
    ) {
        let bytes: Vec<u8> =
            pdus.iter().flat_map(|(header, data)| pdu(*header, digests, data)).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
        let expected: Vec<Got> = pdus
            .iter()
            .flat_map(|(header, data)| {
                let length = u32::try_from(data.len()).expect("short");
                let end = (length > 0).then(|| Got::Data(data.clone(), true));
                std::iter::once(Got::Header(*header, length)).chain(end)
            })
            .collect();
        let mut decoder = agreed(digests);
        prop_assert_eq!(read(&mut decoder, pieces), (expected, Ok(())));
        prop_assert!(!decoder.is_within_pdu());
    }

    // One changed bit: with digests, it never passes for something else.
    #[test]
    fn no_changed_bit_passes_for_what_was_sent(
        header in headers(),
        data in proptest::collection::vec(any::<u8>(), 0..600),
        at in any::<usize>(),
        bit in 0..8_u32,
    ) {
        let digests = Digests { header: true, data: true };
        let mut bytes = pdu(header, digests, &data);
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let (got, result) = read(&mut agreed(digests), [&bytes[..]]);
        if at < 52 {
            // An enlarged header waits for the rest of it.
            prop_assert!(result.is_err() || got.is_empty(), "{:?}", got);
        } else {
            let length = u32::try_from(data.len()).expect("short");
            prop_assert_eq!(&got[0], &Got::Header(header, length));
            prop_assert!(matches!(&got[1], Got::Data(_, false)));
        }
    }

    #[test]
    fn no_bytes_panic(
        digests in digests(),
        bytes in proptest::collection::vec(any::<u8>(), 0..3000),
    ) {
        let mut decoder = agreed(digests);
        let (_, result) = read(&mut decoder, [&bytes[..]]);
        if let Err(fatal) = result {
            prop_assert_eq!(decoder.next(&mut &bytes[..]), Err(fatal), "it stays so");
        }
        prop_assert!(decoder.additional().len() <= 1020);
    }
}

#[test]
fn lengths_are_bounded_before_anything_is_taken() {
    let ping = Header::NopOut {
        is_immediate: true,
        lun: [0; 8],
        itt: 1,
        ttt: NO_TAG,
        numbers: Numbers::default(),
    };
    let mut bytes = pdu(ping, Digests::default(), &[]);
    for (length, limit) in [(8193, DEFAULT_DATA_BYTES), (0xff_ffff, DEFAULT_DATA_BYTES)] {
        bytes[5..8].copy_from_slice(&u32::to_be_bytes(length)[1..]);
        let (got, result) = read(&mut Decoder::new(), [&bytes[..]]);
        assert_eq!((got, result), (vec![], Err(Fatal::TooMuchData { length, limit })));
    }
    // Additional segments of every length are waited for, and nothing else.
    bytes[5..8].fill(0);
    for words in [1, 254, 255_u8] {
        bytes[4] = words;
        let mut decoder = Decoder::new();
        assert_eq!(read(&mut decoder, [&bytes[..]]), (vec![], Ok(())));
        let more = vec![0; usize::from(words) * 4];
        let (got, result) = read(&mut decoder, [&more[..]]);
        assert_eq!((got, result), (vec![Got::Header(ping, 0)], Ok(())));
        assert_eq!(decoder.additional(), more);
    }
}

#[test]
fn digests_are_crc32c_with_padding() {
    // RFC 7143 Appendix A.4: 32 bytes of zeros.
    let mut out = Vec::new();
    trailer(&[0; 32], Digests { header: false, data: true }, &mut out);
    assert_eq!(out, [0xaa, 0x36, 0x91, 0x8a]);
    // 29 of them and three of padding are the same.
    out.clear();
    trailer(&[0; 29], Digests { header: false, data: true }, &mut out);
    assert_eq!(out, [0, 0, 0, 0xaa, 0x36, 0x91, 0x8a]);
}

#[test]
fn a_read_of_open_iscsi_is_read() {
    let mut bytes = [0; 48];
    bytes[..2].copy_from_slice(&[0x01, 0xc1]);
    bytes[9] = 1;
    bytes[16..24].copy_from_slice(&[0x10, 0, 0, 5, 0, 0, 0x10, 0]);
    bytes[24..32].copy_from_slice(&[0, 0, 0, 9, 0, 0, 0, 3]);
    bytes[32] = 0x28;
    let (got, _) = read(&mut Decoder::new(), bytes.chunks(1));
    let [Got::Header(Header::Command(command), 0)] = got[..] else { panic!("{got:?}") };
    assert!(command.is_final && command.reads && !command.writes && !command.is_immediate);
    assert_eq!((command.itt, command.expected_bytes), (0x1000_0005, 4096));
    assert_eq!((command.numbers, command.lun[1]), (Numbers { cmd_sn: 9, exp_stat_sn: 3 }, 1));
    assert_eq!((command.attribute, command.cdb[0]), (1, 0x28));
}
