//! Invalid SCSI commands (SPC-5, SBC-4).

use super::super::case::{Case, Row, Seen, Trouble, Want, may_write};
use super::peer::Peer;

use Want::{Check, Sense, Served};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    may_write("I58", i58, &[Sense(0x2100), Check],
        "reads and writes past the end and around the end of the numbers, with 6, 10, 12 and \
         16 bytes"),
    may_write("I59", i59, &[Check, Served],
        "lists that say more than there is: UNMAP, PERSISTENT RESERVE OUT, MODE SELECT, WRITE \
         SAME, COMPARE AND WRITE, EXTENDED COPY, REPORT LUNS, every VPD page"),
    may_write("I60", i60, &[Check],
        "SANITIZE, FORMAT UNIT and ATA PASS-THROUGH"),
];

const OUT_OF_RANGE: &[Want] = &[Sense(0x2100)];

// The CDB of a READ or WRITE of 10, 12 or 16 bytes, padded to 16.
fn cdb(opcode: u8, lba: u64, count: u32) -> Vec<u8> {
    let mut bytes = vec![opcode, 0];
    let short = u32::try_from(lba).unwrap_or(u32::MAX).to_be_bytes();
    match opcode {
        0x88 | 0x8a => {
            bytes.extend_from_slice(&lba.to_be_bytes());
            bytes.extend_from_slice(&count.to_be_bytes());
        }
        0xa8 | 0xaa => {
            bytes.extend_from_slice(&short);
            bytes.extend_from_slice(&count.to_be_bytes());
        }
        _ => {
            bytes.extend_from_slice(&short);
            bytes.push(0);
            bytes.extend_from_slice(&count.to_be_bytes()[2..]);
        }
    }
    bytes.resize(16, 0);
    bytes
}

/// Case I58: reads and writes past the end and with addresses that overflow.
fn i58(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    let (end, block) = (case.site.block_count, case.site.block_bytes);
    let places =
        [("one behind", end, 1), ("across the end", end - 1, 2), ("2^32 - 1", 0xffff_ffff, 1)];
    for opcode in [0x28, 0x2a, 0xa8, 0xaa, 0x88, 0x8a, 0x8f, 0x2f] {
        for (way, lba, count) in places {
            if lba + u64::from(count) <= end {
                continue;
            }
            let seen = moves(&mut peer, opcode, &cdb(opcode, lba, count), count * block);
            case.saw_as(format!("opcode {opcode:02x}h, {way}"), &seen, OUT_OF_RANGE);
        }
    }
    for opcode in [0x88, 0x8a] {
        for (way, lba, count) in [("around 2^64", u64::MAX, 2), ("2^64 - 1", u64::MAX, 1)] {
            let seen = moves(&mut peer, opcode, &cdb(opcode, lba, count), count * block);
            case.saw_as(format!("opcode {opcode:02x}h, {way}"), &seen, OUT_OF_RANGE);
        }
        let all = cdb(opcode, 0, u32::MAX);
        let seen = moves(&mut peer, opcode, &all, block);
        case.saw(format!("opcode {opcode:02x}h, 2^32 - 1 blocks"), &seen);
    }
    // READ(6) and WRITE(6) of 256 blocks from 2^21 - 1 on.
    if end <= 0x1f_ffff {
        for opcode in [0x08, 0x0a] {
            let cdb = [opcode, 0x1f, 0xff, 0xff, 0, 0];
            let seen = moves(&mut peer, opcode, &cdb, 256 * block);
            case.saw_as(format!("opcode {opcode:02x}h, 2^21 - 1"), &seen, OUT_OF_RANGE);
        }
    }
    Ok(())
}

// The reaction to a command that transfers data; no unsolicited data is sent.
fn moves(peer: &mut Peer, opcode: u8, cdb: &[u8], bytes: u32) -> Seen {
    let bhs = match opcode {
        0x2a | 0xaa | 0x8a | 0x0a => peer.writing(cdb, bytes),
        0x8f | 0x2f => peer.reading(cdb, 0),
        _ => peer.reading(cdb, bytes),
    };
    peer.try_out(bhs, &[])
}

// The reaction to a command with parameters as immediate data.
fn tells(peer: &mut Peer, cdb: &[u8], data: &[u8]) -> Seen {
    let bytes = u32::try_from(data.len()).unwrap_or(0);
    let bhs = if bytes > 0 { peer.writing(cdb, bytes) } else { peer.reading(cdb, 0) };
    peer.try_out(bhs, data)
}

/// Case I59: parameter lists with wrong lengths, and every VPD page.
fn i59(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    unmaps(case, &mut peer);
    reservations(case, &mut peer);
    modes(case, &mut peer);
    writes(case, &mut peer);
    copies(case, &mut peer);
    looks(case, &mut peer);
    Ok(())
}

/// UNMAP with wrong parameter lists.
fn unmaps(case: &mut Case<'_>, peer: &mut Peer) {
    let end = case.site.block_count;
    // Data length, descriptor length, then `times` descriptors.
    let list = |all: u16, descriptors: u16, lba: u64, count: u32, times: usize| {
        let mut data = [all.to_be_bytes(), descriptors.to_be_bytes()].concat();
        data.extend_from_slice(&[0; 4]);
        for _ in 0..times {
            data.extend_from_slice(&lba.to_be_bytes());
            data.extend_from_slice(&count.to_be_bytes());
            data.extend_from_slice(&[0; 4]);
        }
        data
    };
    let ways: [(&str, Vec<u8>, &[Want]); 7] = [
        ("more descriptors than data", list(0xffff, 0xfff0, 0, 1, 1), &[Check, Served]),
        ("lengths that differ", list(6, 32, 0, 1, 1), &[Check, Served]),
        ("half a descriptor", list(14, 8, 0, 1, 1)[..16].to_vec(), &[Check, Served]),
        ("4,000 descriptors", list(64_006, 64_000, 0, 1, 4000), &[Check, Served]),
        ("behind the end", list(22, 16, end, 1, 1), &[Check]),
        ("around 2^64", list(22, 16, u64::MAX, u32::MAX, 1), &[Check]),
        ("7 bytes", vec![0; 7], &[Check, Served]),
    ];
    for (way, data, wants) in ways {
        let [high, low] = u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes();
        let seen = tells(peer, &[0x42, 0, 0, 0, 0, 0, 0, high, low, 0], &data);
        case.saw_as(format!("UNMAP, {way}"), &seen, wants);
    }
}

/// PERSISTENT RESERVE OUT with wrong lengths and actions.
fn reservations(case: &mut Case<'_>, peer: &mut Peer) {
    for (way, action, said, sent) in [
        ("23 bytes", 0, 23_u32, 23_usize),
        ("nothing", 0, 0, 0),
        ("4 GiB said", 0, u32::MAX, 24),
        ("an action that is none", 31, 24, 24),
        ("REGISTER AND MOVE, short", 7, 8, 8),
    ] {
        let mut cdb = vec![0x5f, action, 0, 0, 0];
        cdb.extend_from_slice(&said.to_be_bytes());
        cdb.push(0);
        let seen = tells(peer, &cdb, &vec![0; sent]);
        case.saw_as(format!("PERSISTENT RESERVE OUT, {way}"), &seen, &[Check]);
    }
}

/// MODE SELECT with wrong pages.
fn modes(case: &mut Case<'_>, peer: &mut Peer) {
    // MODE SELECT(6) and (10): a header, then pages.
    let pages: [(&str, &[u8]); 5] = [
        ("a page of 0 bytes", &[0x08, 0]),
        ("a page that says 255", &[0x08, 255, 0, 0]),
        ("pages within pages", &[0x48, 1, 0, 4, 0x48, 1, 0, 0]),
        ("page 3Fh", &[0x3f, 2, 0, 0]),
        ("block descriptors of 255 bytes", &[0xff; 8]),
    ];
    for (way, page) in pages {
        for (opcode, head) in [(0x15, 4), (0x55, 8)] {
            let mut data = vec![0; head];
            if way.starts_with("block") {
                data[head - 1] = 255;
            }
            data.extend_from_slice(page);
            let length = data.len().to_le_bytes()[0];
            let mut cdb = [0; 10];
            (cdb[0], cdb[1], cdb[if opcode == 0x15 { 4 } else { 8 }]) = (opcode, 0x10, length);
            let seen = tells(peer, &cdb, &data);
            case.saw(format!("MODE SELECT {opcode:02x}h, {way}"), &seen);
        }
    }
}

/// WRITE SAME and COMPARE AND WRITE with wrong numbers of blocks.
fn writes(case: &mut Case<'_>, peer: &mut Peer) {
    let block = usize::try_from(case.site.block_bytes).unwrap_or(512);
    let mut same = cdb(0x8a, 0, 0);
    same[0] = 0x93;
    let one = vec![0; block];
    let seen = tells(peer, &same, &one);
    case.saw("WRITE SAME(16) of 0 blocks", &seen);
    same[1] = 1;
    let seen = tells(peer, &same, &[]);
    case.saw("WRITE SAME(16) of 0 blocks without data", &seen);
    let mut beyond = cdb(0x8a, case.site.block_count, 1);
    (beyond[0], beyond[1]) = (0x93, 1);
    let seen = tells(peer, &beyond, &[]);
    case.saw_as("WRITE SAME(16) behind the end", &seen, &[Check]);
    // COMPARE AND WRITE of 255 blocks with data for one (to compare and to write).
    let mut compare = cdb(0x8a, 0, 0);
    (compare[0], compare[13]) = (0x89, 255);
    let seen = tells(peer, &compare, &vec![0; block * 2]);
    case.saw_as("COMPARE AND WRITE of 255 blocks with 1", &seen, &[Check]);
}

/// EXTENDED COPY from a device that is not the target's.
fn copies(case: &mut Case<'_>, peer: &mut Peer) {
    // One target descriptor (E4h) that names an unknown device.
    let mut list = vec![0; 16];
    list[3] = 32;
    list.extend_from_slice(&[0xe4, 0, 0, 0, 1, 3, 0, 16]);
    list.extend_from_slice(&[0x6f; 24]);
    for (action, way) in [(0, "LID1"), (1, "LID4"), (16, "POPULATE TOKEN"), (17, "USING TOKEN")] {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[13]) = (0x83, action, list.len().to_le_bytes()[0]);
        let seen = tells(peer, &cdb, &list);
        case.saw_as(format!("EXTENDED COPY, {way}, of a foreign device"), &seen, &[Check]);
    }
}

// REPORT LUNS and INQUIRY of every VPD page: no answer may exceed its allocation length.
fn looks(case: &mut Case<'_>, peer: &mut Peer) {
    for room in [0, 1, 8, 15, 16] {
        let cdb = [0xa0, 0, 0, 0, 0, 0, 0, 0, 0, room, 0, 0];
        let inquired = peer.reading(&cdb, u32::from(room));
        let seen = peer.try_out(inquired, &[]);
        case.saw(format!("REPORT LUNS, room for {room}"), &seen);
    }
    let rooms: &[u8] =
        if case.site.quick { &[0, 3, 4, 255] } else { &[0, 1, 3, 4, 5, 36, 64, 255] };
    for page in 0..=255 {
        for room in rooms {
            let inquiry = peer.reading(&[0x12, 1, page, 0, *room, 0], 4096);
            let seen = peer.try_out(inquiry, &[]);
            let count = peer.data.len();
            let seen = match seen {
                Seen::Served if count > usize::from(*room) => {
                    Seen::Wrong(format!("{count} bytes for room of {room}"))
                }
                seen => seen,
            };
            case.saw(format!("INQUIRY, VPD {page:02x}h, room for {room}"), &seen);
        }
    }
}

/// Case I60: commands that would erase the disk, or bypass SCSI.
fn i60(case: &mut Case<'_>) -> Done {
    let mut peer = Peer::log_in(case)?;
    let commands: [(&str, &[u8]); 6] = [
        ("SANITIZE, OVERWRITE", &[0x48, 1]),
        ("SANITIZE, BLOCK ERASE", &[0x48, 2]),
        ("SANITIZE, CRYPTOGRAPHIC ERASE", &[0x48, 3]),
        ("FORMAT UNIT", &[0x04, 0x10]),
        ("ATA PASS-THROUGH(16)", &[0x85, 8, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0]),
        ("ATA PASS-THROUGH(12)", &[0xa1, 8, 0x0e, 0, 1, 0, 0, 0, 0, 0xec]),
    ];
    for (way, cdb) in commands {
        let bhs = peer.reading(cdb, 0);
        let seen = peer.try_out(bhs, &[]);
        case.saw(way, &seen);
    }
    Ok(())
}
