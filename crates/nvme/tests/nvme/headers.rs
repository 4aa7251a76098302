//! Headers, entries and the data of Connect, beside bytes as the figures of the specification have
//! them (TCP 3.6.2, Base 4.2.1, 6.3): for what others have not been asked.

use nvme::{
    CONNECT_DATA_BYTES, Completion, ConnectData, Digests, End, FatalStatus, Header, IcReq, IcResp,
    Layout, Nqn, Status, TermReq,
};

use crate::{Got, agreed, pdu, read};

/// A header is written as these bytes, filled up with zeros to `hlen`, and read again. PLEN counts
/// `data` bytes that follow.
fn is(header: Header, end: End, begin: &[u8], hlen: usize, data: &[u8]) {
    let mut bytes = begin.to_vec();
    bytes.resize(hlen, 0);
    bytes.extend_from_slice(data);
    let layout = Layout::default();
    assert_eq!(pdu(header, layout, data), bytes, "{header:x?}");
    let length = u32::try_from(data.len()).expect("short");
    let mut expected = vec![Got::Header(header, length)];
    expected.extend((!data.is_empty()).then(|| Got::Data(data.to_vec(), true)));
    let mut decoder = agreed(end, layout);
    if matches!(header, Header::IcReq(_) | Header::IcResp(_)) {
        let limits = crate::LIMITS;
        decoder = nvme::Decoder::new(end, limits);
    }
    assert_eq!(read(&mut decoder, [&bytes[..]]), (expected, Ok(())));
}

#[test]
fn connections_begin_as_the_figures_have_it() {
    let digests = Digests { header: true, data: false };
    let request = IcReq { hpda: 3, digests, maxr2t: 0x0102_0304 };
    let bytes = [0, 0, 128, 0, 128, 0, 0, 0, 0, 0, 3, 1, 4, 3, 2, 1];
    is(Header::IcReq(request), End::Controller, &bytes, 128, &[]);
    let digests = Digests { header: false, data: true };
    let response = IcResp { cpda: 5, digests, maxh2cdata: 0x0102_0304 };
    let bytes = [1, 0, 128, 0, 128, 0, 0, 0, 0, 0, 5, 2, 4, 3, 2, 1];
    is(Header::IcResp(response), End::Host, &bytes, 128, &[]);
}

#[test]
fn connections_end_as_the_figures_have_it() {
    let status = FatalStatus::DataLimitExceeded as u16;
    let term = TermReq { status, information: 0x0102_0304 };
    // PDO is reserved in both (TCP 3.6.2.4, 3.6.2.5).
    let bytes = [2, 0, 24, 0, 26, 0, 0, 0, 5, 0, 4, 3, 2, 1];
    is(Header::H2cTermReq(term), End::Controller, &bytes, 24, &[7, 8]);
    let bytes = [3, 0, 24, 0, 26, 0, 0, 0, 5, 0, 4, 3, 2, 1];
    is(Header::C2hTermReq(term), End::Host, &bytes, 24, &[7, 8]);
}

#[test]
fn data_is_moved_as_the_figures_have_it() {
    let (cid, ttag, offset) = (0x0102, 0x0304, 0x0506_0708);
    let begin = |kind: u8, flags: u8, ttag: [u8; 2]| {
        let header = [kind, flags, 24, 24, 26, 0, 0, 0, 2, 1];
        [&header[..], &ttag, &[8, 7, 6, 5, 2, 0, 0, 0]].concat()
    };
    let header = Header::H2cData { cid, ttag, offset, length: 2, last: true };
    is(header, End::Controller, &begin(6, 1 << 2, [4, 3]), 24, &[7, 8]);
    let header = Header::C2hData { cid, offset, length: 2, last: true, success: true };
    is(header, End::Host, &begin(7, 1 << 2 | 1 << 3, [0, 0]), 24, &[7, 8]);
    let header = Header::R2t { cid, ttag, offset, length: 0x090a_0b0c };
    let bytes = [9, 0, 24, 0, 24, 0, 0, 0, 2, 1, 4, 3, 8, 7, 6, 5, 12, 11, 10, 9];
    is(header, End::Host, &bytes, 24, &[]);
}

#[test]
fn capsules_are_as_the_figures_have_it() {
    let mut entry = [0; 64];
    (entry[0], entry[63]) = (1, 2);
    let bytes = [&[4, 0, 72, 72, 74, 0, 0, 0][..], &entry].concat();
    is(Header::CapsuleCmd(entry), End::Controller, &bytes, 72, &[7, 8]);
    let completion = Completion {
        cid: 0x0102,
        status: Status::LBA_OUT_OF_RANGE.do_not_retry(),
        result: 0x0304_0506_0708_090a,
        head: 0x0b0c,
    };
    // Dwords 0 and 1, SQHD, SQID, CID, and the status above the phase tag: DNR, then 80h.
    let entry = [10, 9, 8, 7, 6, 5, 4, 3, 12, 11, 0, 0, 2, 1, 0, 0x81];
    assert_eq!((completion.write(), Completion::read(&entry)), (entry, completion));
    let bytes = [&[5, 0, 24, 0, 24, 0, 0, 0][..], &entry].concat();
    is(Header::CapsuleResp(entry), End::Host, &bytes, 24, &[]);
}

#[test]
fn connect_says_who_asks_where_the_figure_has_it() {
    let mut bytes = [0; CONNECT_DATA_BYTES];
    bytes[..16].fill(7);
    bytes[16..18].copy_from_slice(&[2, 1]);
    bytes[256..261].copy_from_slice(b"nqn.x");
    bytes[512..517].copy_from_slice(b"nqn.y");
    let [subsystem, host] = ["nqn.x", "nqn.y"].map(|name| Nqn::new(name).expect("a name"));
    let data = ConnectData { host_id: [7; 16], controller_id: 0x0102, subsystem, host };
    assert_eq!((data.write(), ConnectData::read(&bytes)), (bytes, Ok(data)));
}
