//! NVMe/TCP: what is written is read, however it is cut; what cannot be is refused as the
//! specification says.

mod duel;
mod entries;
mod headers;
mod hostile;
mod identify;
mod nvmet;
mod queue;
mod round_trip;

use nvme::{Decoder, Digests, End, Event, Fatal, Header, IcReq, IcResp, Layout, Limits};

pub(crate) const LIMITS: Limits = Limits { capsule_data_bytes: 8192, data_bytes: 131_072 };

/// An event whose data is its own, data in one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Got {
    Header(Header, u32),
    Data(Vec<u8>, bool),
}

/// Everything that comes of bytes which arrive in these pieces.
pub(crate) fn read<'a>(
    decoder: &mut Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Got>, Result<(), Fatal>) {
    let (mut got, mut data) = (Vec::new(), Vec::new());
    for mut piece in pieces {
        loop {
            match decoder.next(&mut piece) {
                Ok(None) => break,
                Ok(Some(Event::Header(header, length))) => got.push(Got::Header(header, length)),
                Ok(Some(Event::Data(bytes))) => {
                    assert!(!bytes.is_empty(), "a piece of data is one");
                    data.extend_from_slice(bytes);
                }
                Ok(Some(Event::End { is_intact })) => {
                    got.push(Got::Data(std::mem::take(&mut data), is_intact));
                }
                Err(fatal) => return (got, Err(fatal)),
            }
        }
        assert!(piece.is_empty(), "nothing is left over without an event");
    }
    (got, Ok(()))
}

/// A PDU as a peer would send it.
pub(crate) fn pdu(header: Header, layout: Layout, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.encode(layout, data.len(), &mut bytes);
    bytes.extend_from_slice(data);
    if layout.digests.data && header.kind().has_data_digest() && !data.is_empty() {
        bytes.extend_from_slice(&nvme::data_digest(data));
    }
    bytes
}

/// A decoder that has agreed on a layout.
pub(crate) fn agreed(end: End, layout: Layout) -> Decoder {
    let mut decoder = Decoder::new(end, LIMITS);
    let first = match end {
        End::Controller => Header::IcReq(IcReq::default()),
        End::Host => Header::IcResp(IcResp { maxh2cdata: 4096, ..IcResp::default() }),
    };
    let bytes = pdu(first, Layout::default(), &[]);
    let (got, result) = read(&mut decoder, [&bytes[..]]);
    assert_eq!((got, result), (vec![Got::Header(first, 0)], Ok(())));
    decoder.agree(layout);
    decoder
}

pub(crate) fn layout(header: bool, data: bool, alignment: u8) -> Layout {
    Layout { digests: Digests { header, data }, alignment }
}
