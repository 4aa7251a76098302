//! Invalid I/O commands (NVM Command Set 3).

use super::super::case::{Case, Row, Seen, Trouble, Want, may_write, row};
use super::peer::{ANSWER, Peer, read};
use super::sqe::{COMPARE, COPY, DATASET, FLUSH, READ, Sqe, WRITE, WRITE_ZEROES};

use Want::{AnyStatus, AnyTerm, Ignored, Served, Status};

type Done = Result<(), Trouble>;

#[rustfmt::skip] // one row, one case
pub(super) const ROWS: &[Row] = &[
    row("N34", n34, &[AnyStatus],
        "PRPs, both kinds of SGL, fused commands without a partner, namespaces that are none"),
    row("N36", n36, &[AnyStatus, Served],
        "reads past the end, around the end of the numbers, beyond MDTS"),
    row("N37", n37, &[AnyStatus, Served],
        "an SGL that is shorter or longer than the blocks"),
    row("N38", n38, &[AnyStatus, AnyTerm],
        "an SGL of 4 GiB"),
    may_write("N39", n39, &[AnyStatus, AnyTerm],
        "more data in a capsule than IOCCSZ, at an offset, of a read"),
    may_write("N40", n40, &[AnyStatus, Served],
        "Dataset Management with a short list, ranges past the end, 256 ranges of the same \
         blocks"),
    may_write("N41", n41, &[AnyStatus],
        "Compare, Write Zeroes and Copy with more blocks or ranges than data"),
    row("N49", n49, &[Served, AnyStatus],
        "Flush of all namespaces"),
    may_write("N35", n35, &[Served, AnyStatus, Ignored],
        "every opcode of both kinds of queues with fields of 0"),
];

const LBA_OUT_OF_RANGE: Want = Status(0x080);

/// Case N34: reads with wrong PSDT, FUSE or namespace.
fn n34(case: &mut Case<'_>) -> Done {
    let (mut io, _admin) = Peer::io(case, 0)?;
    let plain = read(case, 0, 1);
    let ways = [
        ("PSDT 00b", plain.byte(1, 0x00)),
        ("PSDT 11b", plain.byte(1, 0xc0)),
        ("fused 01b", plain.byte(1, 0x41)),
        ("fused 10b", plain.byte(1, 0x42)),
        ("fused 11b", plain.byte(1, 0x43)),
        ("NSID 0", plain.nsid(0)),
        ("NSID FFFFFFFFh", plain.nsid(u32::MAX)),
        ("NSID FFFFFFFEh", plain.nsid(u32::MAX - 1)),
        ("NSID 999999", plain.nsid(999_999)),
    ];
    for (way, sqe) in ways {
        let seen = io.try_out(case, sqe, &[]);
        case.saw(way, &seen);
    }
    Ok(())
}

/// Case N36: reads past the end, with addresses that overflow, and beyond MDTS.
fn n36(case: &mut Case<'_>) -> Done {
    let (mut io, mut admin) = Peer::io(case, 0)?;
    let end = case.site.block_count;
    let ways: [(&str, u64, u16, &[Want]); 6] = [
        ("the last block", end - 1, 1, &[Served]),
        ("one behind it", end, 1, &[LBA_OUT_OF_RANGE]),
        ("across the end", end - 1, 2, &[LBA_OUT_OF_RANGE]),
        ("block 2^64 - 1", u64::MAX, 1, &[LBA_OUT_OF_RANGE]),
        ("around 2^64", u64::MAX, 8, &[LBA_OUT_OF_RANGE]),
        (
            "bytes around 2^64",
            u64::MAX / u64::from(case.site.block_bytes) + 1,
            1,
            &[LBA_OUT_OF_RANGE],
        ),
    ];
    for (way, first, count, wants) in ways {
        let seen = io.try_out(case, read(case, first, count), &[]);
        case.saw_as(way, &seen, wants);
    }
    let most = transfer_bytes(&mut admin)?;
    let blocks = u64::from(most / case.site.block_bytes) + 1;
    if let Ok(blocks) = u16::try_from(blocks) {
        let seen = io.try_out(case, read(case, 0, blocks), &[]);
        case.saw_as("a block more than MDTS", &seen, &[AnyStatus]);
    }
    let every = Sqe::new(READ).nsid(case.site.nvme().nsid).blocks(0, 0xffff).moved(u32::MAX);
    let seen = io.try_out(case, every, &[]);
    case.saw_as("65,536 blocks", &seen, &[AnyStatus]);
    Ok(())
}

/// Most bytes that a command may transfer, by MDTS (Identify Controller); 1 MiB without a limit.
pub(super) fn transfer_bytes(admin: &mut Peer) -> Result<u32, Trouble> {
    let identify = Sqe::new(super::sqe::IDENTIFY).cdw(10, 1).moved(4096);
    match admin.ask(identify, &[]) {
        Seen::Served if admin.data.len() == 4096 => Ok(match admin.data[77] {
            shift @ 1..=12 => 4096 << shift,
            _ => 1 << 20,
        }),
        seen => Err(Trouble::Failed(format!("Identify Controller: {seen}"))),
    }
}

/// Case N37: SGLs whose length differs from that of the blocks.
fn n37(case: &mut Case<'_>) -> Done {
    let (mut io, _admin) = Peer::io(case, 0)?;
    let block = case.site.block_bytes;
    let eight = read(case, 0, 8);
    for (way, bytes, wants) in [
        ("nothing for 8 blocks", 0, &[AnyStatus][..]),
        ("a byte for 8 blocks", 1, &[AnyStatus]),
        ("7 blocks for 8", 7 * block, &[AnyStatus]),
        ("a byte less", 8 * block - 1, &[AnyStatus]),
        // The SGL has unused room.
        ("a byte more", 8 * block + 1, &[AnyStatus, Served]),
        ("9 blocks for 8", 9 * block, &[AnyStatus, Served]),
    ] {
        let seen = io.try_out(case, eight.moved(bytes), &[]);
        case.saw_as(way, &seen, wants);
    }
    Ok(())
}

/// Case N38: SGLs of 4 GiB.
fn n38(case: &mut Case<'_>) -> Done {
    for (way, opcode) in [("Read", READ), ("Write", WRITE), ("Compare", COMPARE)] {
        let (mut io, _admin) = Peer::io(case, 0)?;
        let seen = io.try_out(case, read(case, 0, 8).byte(0, opcode).moved(u32::MAX), &[]);
        case.saw(way, &seen);
    }
    Ok(())
}

/// Case N39: in-capsule data that is too long, at an offset, of a read, or of a wrong length.
fn n39(case: &mut Case<'_>) -> Done {
    let nsid = case.site.nvme().nsid;
    let block = usize::try_from(case.site.block_bytes).unwrap_or(4096);
    let data = vec![0; 64 << 10];
    let write = Sqe::new(WRITE).nsid(nsid);
    let many = u16::try_from(data.len() / block).unwrap_or(1);
    let length = u32::try_from(data.len()).unwrap_or(0);
    let own = u32::try_from(block).unwrap_or(0);
    let ways = [
        ("64 KiB", write.blocks(0, many - 1).in_capsule(length), data.len()),
        ("at offset 16", write.blocks(0, 0).in_capsule(own).wide(24, 16), block),
        ("at offset 2^64 - 16", write.blocks(0, 0).in_capsule(own).wide(24, !15), block),
        ("a read", read(case, 0, 1).in_capsule(own), block),
        ("a read, without the data", read(case, 0, 1).in_capsule(own), 0),
        ("less than it says", write.blocks(0, 0).in_capsule(own), block / 2),
        ("more than it says", write.blocks(0, 0).in_capsule(own), block + 4),
        ("4 GiB", write.blocks(0, 0).in_capsule(u32::MAX), block),
    ];
    for (way, sqe, bytes) in ways {
        let (mut io, _admin) = Peer::io(case, 0)?;
        let seen = io.try_out(case, sqe, &data[..bytes]);
        case.saw(way, &seen);
    }
    Ok(())
}

// `count` equal ranges of Dataset Management, with attributes 0.
fn ranges(count: usize, first: u64, blocks: u32) -> Vec<u8> {
    let mut one = vec![0; 4];
    one.extend_from_slice(&blocks.to_le_bytes());
    one.extend_from_slice(&first.to_le_bytes());
    one.repeat(count)
}

/// Case N40: Dataset Management (deallocate) with short lists and wrong ranges.
fn n40(case: &mut Case<'_>) -> Done {
    let (mut io, _admin) = Peer::io(case, 0)?;
    let end = case.site.block_count;
    let every = u32::try_from(end).unwrap_or(u32::MAX);
    // The attribute AD: deallocate.
    let dataset = Sqe::new(DATASET).nsid(case.site.nvme().nsid).cdw(11, 4);
    let ways: [(&str, u32, Vec<u8>, &[Want]); 7] = [
        ("256 ranges in 16 bytes", 255, ranges(1, 0, 1), &[AnyStatus]),
        ("2 ranges in 16 bytes", 1, ranges(1, 0, 1), &[AnyStatus]),
        ("half a range", 0, ranges(1, 0, 1)[..8].to_vec(), &[AnyStatus]),
        ("behind the end", 0, ranges(1, end, 1), &[AnyStatus]),
        ("around 2^64", 0, ranges(1, u64::MAX, u32::MAX), &[AnyStatus]),
        ("all of the disk, 256 times", 255, ranges(256, 0, every), &[Served, AnyStatus]),
        ("nothing, 256 times", 255, ranges(256, 0, 0), &[Served, AnyStatus]),
    ];
    for (way, number, data, wants) in ways {
        let bytes = u32::try_from(data.len()).unwrap_or(0);
        let cid = io.submit(dataset.cdw(10, number).in_capsule(bytes), &data);
        // Deallocation of the whole disk may take long.
        let seen = io.end_of(cid, case.patience());
        let seen = io.alive(case, seen);
        case.saw_as(way, &seen, wants);
    }
    Ok(())
}

/// Case N41: Compare, Write Zeroes and Copy with wrong lengths.
fn n41(case: &mut Case<'_>) -> Done {
    let (mut io, _admin) = Peer::io(case, 0)?;
    let nsid = case.site.nvme().nsid;
    let block = usize::try_from(case.site.block_bytes).unwrap_or(4096);
    let own = case.site.block_bytes;
    let end = case.site.block_count;
    let data = vec![0; block];
    let zeroes = Sqe::new(WRITE_ZEROES).nsid(nsid);
    let compare = Sqe::new(COMPARE).nsid(nsid).blocks(0, 7);
    let copy = Sqe::new(COPY).nsid(nsid).cdw(12, 127).in_capsule(32);
    let ways: [(&str, Sqe, &[u8]); 7] = [
        ("Compare of 8 blocks with 1", compare.in_capsule(own), &data),
        ("Compare without data", compare, &[]),
        ("Write Zeroes behind the end", zeroes.blocks(end, 0), &[]),
        ("Write Zeroes around 2^64", zeroes.blocks(u64::MAX, 0xffff), &[]),
        ("Write Zeroes with data", zeroes.blocks(0, 0).in_capsule(own), &data),
        ("Copy of 128 ranges in 32 bytes", copy, &data[..32]),
        ("Copy without ranges", Sqe::new(COPY).nsid(nsid), &[]),
    ];
    for (way, sqe, data) in ways {
        let seen = io.try_out(case, sqe, data);
        // A Compare with less data than blocks must not succeed, whatever the blocks contain.
        case.saw(way, &seen);
    }
    Ok(())
}

/// Case N49: Flush of all namespaces, and of ones that do not exist.
fn n49(case: &mut Case<'_>) -> Done {
    let (mut io, _admin) = Peer::io(case, 0)?;
    let cid = io.submit(Sqe::new(FLUSH).nsid(u32::MAX), &[]);
    let seen = io.end_of(cid, case.patience());
    let seen = io.alive(case, seen);
    case.saw("FFFFFFFFh", &seen);
    for nsid in [0, 999_999] {
        let seen = io.try_out(case, Sqe::new(FLUSH).nsid(nsid), &[]);
        case.saw(format!("NSID {nsid}"), &seen);
    }
    Ok(())
}

/// Case N35: every opcode on both kinds of queues, with all fields 0.
fn n35(case: &mut Case<'_>) -> Done {
    for is_admin in [true, false] {
        let (mut io, mut admin) = Peer::io(case, 0)?;
        for opcode in 0..=255 {
            let peer = if is_admin { &mut admin } else { &mut io };
            let time =
                if opcode == super::sqe::EVENT_REQUEST { super::peer::SILENCE } else { ANSWER };
            let cid = peer.submit(Sqe::new(opcode), &[]);
            let seen = peer.end_of(cid, time);
            let seen = peer.alive(case, seen);
            let of = if is_admin { "admin" } else { "I/O" };
            case.saw(format!("{opcode:02x}h on an {of} queue"), &seen);
            if !matches!(seen, Seen::Served | Seen::Status(_) | Seen::Ignored) {
                (io, admin) = Peer::io(case, 0)?;
            }
        }
    }
    Ok(())
}
