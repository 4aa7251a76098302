//! What an initiator asks, and what it makes of the answers: beside this end's logical unit, and
//! beside bytes that mean nothing.

use scsi::ask::{self, Cdb};
use scsi::found::{
    self, FoundCapacity, FoundIds, FoundInquiry, FoundLimits, FoundMode, FoundProvisioning,
};
use scsi::{Command, Extent, ReportedCodes, UnmapRange, unmap_ranges};

use crate::{A, BLOCKS, answer, quiet, unit_data};

/// Bytes that mean nothing, the same for the same seed.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

fn understood(cdb: Cdb) -> Command {
    Command::read(&cdb, &unit_data()).expect("it can be asked so")
}

#[test]
fn commands_are_read_as_they_were_meant() {
    let small = Extent { first: 7, count: 9, forced: true };
    let far = Extent { first: 1 << 40, count: 9, forced: false };
    let long = Extent { first: 7, count: 1 << 16, forced: true };
    for extent in [small, far, long] {
        assert_eq!(understood(ask::read(extent)), Command::Read(extent));
        assert_eq!(understood(ask::write(extent)), Command::Write(extent));
    }
    assert_eq!((ask::read(small)[0], ask::read(far)[0], ask::write(long)[0]), (0x28, 0x88, 0x8a));
    for unmaps in [false, true] {
        let extent = Extent { forced: false, ..long };
        let same = Command::WriteSame { extent, unmaps, has_data: true };
        assert_eq!(understood(ask::write_same(extent, unmaps)), same);
    }
    let all = Extent { first: 0, count: 0, forced: false };
    assert_eq!(understood(ask::SYNCHRONIZE_CACHE), Command::SynchronizeCache(all));
    assert_eq!(understood(ask::TEST_UNIT_READY), Command::TestUnitReady);
    assert_eq!(understood(ask::READ_CAPACITY), Command::ReadCapacity);
    let long = Command::ReadCapacityLong { allocation: 32 };
    assert_eq!(understood(ask::read_capacity_long(32)), long);
    let page = Command::Inquiry { page: Some(0x83), allocation: 300 };
    assert_eq!(understood(ask::inquiry(Some(0x83), 300)), page);
    let luns = Command::ReportLuns { select: 0, allocation: 512 };
    assert_eq!(understood(ask::report_luns(512)), luns);
    let asked = ReportedCodes::Code(0x93);
    let one = Command::ReportOpcodes { asked, has_timeouts: false, allocation: 20 };
    assert_eq!(understood(ask::report_opcode(0x93, 20)), one);
    let length = u32::try_from(ask::UNMAP_BYTES).expect("short");
    assert_eq!(understood(ask::unmap()), Command::Unmap { length });
    let range = ask::unmap_range(Extent { first: 16, count: 8, forced: false });
    let expected = UnmapRange { offset: 16 * 512, length: 8 * 512 };
    assert_eq!(unmap_ranges(&range, &unit_data()), Ok(vec![expected]));
}

fn told(cdb: &Cdb) -> Vec<u8> {
    answer(&mut quiet(unit_data()), A, cdb).data
}

#[test]
fn answers_are_read_as_they_were_meant() {
    let inquiry = FoundInquiry::read(&told(&ask::inquiry(None, 96))).expect("it is whole");
    assert!(inquiry.is_disk());
    let texts = [&inquiry.vendor, &inquiry.product, &inquiry.revision];
    assert_eq!(texts, ["afar", "disk", "1"]);
    let long = FoundCapacity::read_long(&told(&ask::read_capacity_long(32))).expect("it is whole");
    assert_eq!((long.block_count, long.block_shift()), (BLOCKS, Some(9)));
    assert!(long.is_thin && long.reads_zeros && !long.is_protected);
    assert_eq!(long.physical_exponent, 3);
    let short = FoundCapacity::read(&told(&ask::READ_CAPACITY)).expect("it is whole");
    assert_eq!((short.block_count, short.block_bytes), (BLOCKS, 512));
    let page = |page| told(&ask::inquiry(Some(page), 255));
    assert_eq!(found::read_pages(&page(0)), [0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2, 0xc0]);
    assert_eq!(found::read_serial(&page(0x80)).as_deref(), Some(&*unit_data().serial()));
    let limits = FoundLimits::read(&page(0xb0)).expect("it is this page");
    let own = unit_data().limits;
    assert_eq!([limits.transfer_blocks, limits.optimal_blocks], [2048, 256]);
    assert_eq!([limits.unmap_blocks, limits.unmap_ranges], [own.unmap_blocks, own.unmap_ranges]);
    assert_eq!((limits.write_same_blocks, limits.compare_blocks), (8192, 8));
    let provisioning = FoundProvisioning::read(&page(0xb2)).expect("it is this page");
    assert!(provisioning.has_unmap && provisioning.has_write_same && provisioning.reads_zeros);
    let ids = FoundIds::read(&page(0x83));
    assert_eq!((ids.eui_long, ids.eui, ids.naa_long), (Some([0x11; 16]), None, None));
    assert_eq!(ids.naa, Some([0x31, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11]));
    assert!(ids.vendor.is_some_and(|vendor| vendor.starts_with("afar")));
    let mode = FoundMode::read(&told(&ask::mode_sense(0x3f, 255))).expect("it is whole");
    let expected =
        FoundMode { is_write_protected: false, has_forced: true, has_write_cache: Some(true) };
    assert_eq!(mode, expected);
    assert!(found::is_supported(&told(&ask::report_opcode(0x93, 20))));
    assert!(!found::is_supported(&told(&ask::report_opcode(0x94, 20))));
}

#[test]
fn anything_may_be_answered() {
    for seed in 0..20_000 {
        let length = usize::try_from(seed % 90).expect("short");
        let mut data = bytes(seed, length);
        if let [_, page, ..] = &mut data[..] {
            // As likely as anything else, the page that was asked for.
            *page = [0x00, 0x80, 0x83, 0xb0, 0xb2][usize::try_from(seed % 5).expect("short")];
        }
        let _any = FoundInquiry::read(&data);
        let _any = FoundCapacity::read_long(&data).and_then(|found| found.block_shift());
        let _any = FoundCapacity::read(&data);
        let _any = (found::read_pages(&data), found::read_serial(&data), found::read_luns(&data));
        let _any = (FoundLimits::read(&data), FoundProvisioning::read(&data));
        let _any = (FoundIds::read(&data), FoundMode::read(&data), found::is_supported(&data));
    }
    // As many blocks as there can be are too many.
    assert_eq!(FoundCapacity::read_long(&[0xff; 32]), None);
    assert_eq!(FoundCapacity::read(&[0xff; 8]), None);
}
