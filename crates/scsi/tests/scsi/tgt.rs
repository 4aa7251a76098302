//! What a third target says, byte for byte: tgtd 1.0.85 of Debian, a file of 64 MiB in blocks of
//! 4096 bytes as LUN 1 and another as LUN 258, asked over iSCSI by commands written by hand. So a
//! layout that our ends and the kernel's target (`lio`) have alike is not alone.
//!
//! `tgt/*.hex` have the lines that are not all zeros. Asked of LUN 1:
//!
//! ```text
//! tgtd -f -C NUMBER --iscsi portal=127.0.0.1:PORT
//! tgtadm ... --op new --lun 1 --backing-store FILE --blocksize 4096
//! tgtadm ... --op update --lun 1 --params vendor_id=GOLDEN,product_id="Golden Disk",
//!     product_rev=1.2,scsi_sn=golden-serial,scsi_id=golden-id,lbppbe=2,thin_provisioning=1
//! tgtadm ... --op new --lun 258 --backing-store OTHER
//! ```
//!
//! One initiator is registered with key 7 and holds a reservation for those that are (type 5).
//! `attention`, `beyond` and `invalid-field` are sense data: of the first command, of a read of
//! what is not there, and of an INQUIRY for a page without EVPD.

use scsi::found::{
    self, FoundCapacity, FoundIds, FoundInquiry, FoundLimits, FoundMode, FoundProvisioning,
};
use scsi::{Attention, BlockLimits, LogicalUnit, Lun, Sense, Step, UnitData, report_luns};
use test_support::read_hex;

use crate::{A, answer, quiet, unit_data, with_parameters};

macro_rules! golden {
    ($name:literal) => {
        read_hex(include_str!(concat!("tgt/", $name, ".hex")))
    };
}

/// Two answers differ in these bytes, each for a reason, and nowhere else.
fn differ(ours: &[u8], theirs: &[u8], why: &[(usize, &str)]) {
    assert_eq!(ours.len(), theirs.len(), "{ours:x?}");
    let places: Vec<usize> = (0..ours.len()).filter(|&at| ours[at] != theirs[at]).collect();
    let named: Vec<usize> = why.iter().map(|(at, _)| *at).collect();
    assert_eq!(places, named, "ours {ours:x?}");
}

/// A logical unit that is as theirs.
fn unit() -> LogicalUnit {
    quiet(UnitData {
        block_shift: 12,
        block_count: 16_384,
        physical_shift: 14,
        vendor: *b"GOLDEN  ",
        product: *b"Golden Disk     ",
        revision: *b"1.2 ",
        limits: BlockLimits {
            transfer_blocks: 0,
            optimal_blocks: 0,
            unmap_blocks: u32::MAX,
            unmap_ranges: u32::MAX,
            write_same_blocks: 0,
            compare_blocks: 128,
        },
        atomic_blocks: 0,
        ..unit_data()
    })
}

#[test]
fn its_disk_is_read() {
    let inquiry = FoundInquiry::read(&golden!("inquiry")).expect("long enough");
    assert!(inquiry.is_disk());
    assert_eq!((&*inquiry.vendor, &*inquiry.product), ("GOLDEN", "Golden Disk"));
    assert_eq!((&*inquiry.revision, inquiry.version), ("1.2", 5));
    let capacity = FoundCapacity {
        block_count: 16_384,
        block_bytes: 4096,
        physical_exponent: 2,
        is_thin: true,
        reads_zeros: true,
        is_protected: false,
    };
    assert_eq!(FoundCapacity::read_long(&golden!("capacity16")), Some(capacity));
    let short =
        FoundCapacity { physical_exponent: 0, is_thin: false, reads_zeros: false, ..capacity };
    assert_eq!(FoundCapacity::read(&golden!("capacity10")), Some(short));
    let limits = FoundLimits {
        unmap_blocks: u32::MAX,
        unmap_ranges: u32::MAX,
        compare_blocks: 128,
        ..FoundLimits::default()
    };
    assert_eq!(FoundLimits::read(&golden!("inquiry-b0")), Some(limits));
    let provisioning =
        FoundProvisioning { has_unmap: true, has_write_same: true, reads_zeros: true, kind: 2 };
    assert_eq!(FoundProvisioning::read(&golden!("inquiry-b2")), Some(provisioning));
    let mode =
        FoundMode { is_write_protected: false, has_forced: true, has_write_cache: Some(true) };
    assert_eq!(FoundMode::read(&golden!("mode6")), Some(mode));
    assert!(found::is_supported(&golden!("opcode")), "WRITE SAME(16)");
}

#[test]
fn its_names_are_read() {
    let pages = found::read_pages(&golden!("inquiry-00"));
    assert_eq!(pages, [0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2]);
    assert_eq!(found::read_serial(&golden!("inquiry-80")).as_deref(), Some("golden-serial"));
    let ids = FoundIds::read(&golden!("inquiry-83"));
    assert_eq!(ids.vendor.as_deref(), Some("golden-id"));
    assert_eq!(ids.naa, Some([0x30, 0, 0, 1, 0, 0, 0, 1]));
    assert_eq!(ids.naa_long.map(|naa| naa[0]), Some(0x60));
    assert_eq!((ids.eui, ids.eui_long), (None, None));
    let luns = [0, 1, 258].map(|number| Lun::new(number).expect("it is small"));
    assert_eq!(found::read_luns(&golden!("luns")), luns, "one in flat addressing");
    assert_eq!(report_luns(luns, 0, 256), Ok(golden!("luns")));
}

#[test]
fn its_sense_data_is_read_and_ours_is_the_same_bytes() {
    let all = [
        (golden!("attention"), Attention::PowerOn.sense()),
        (golden!("beyond"), Sense::LBA_OUT_OF_RANGE),
        (golden!("invalid-field"), Sense::INVALID_FIELD_IN_CDB),
    ];
    for (theirs, sense) in all {
        assert_eq!(Sense::read(&theirs), Some(sense));
        differ(&sense.write(false), &theirs, &[]);
    }
}

#[test]
fn our_sizes_and_limits_are_laid_out_as_its() {
    let mut unit = unit();
    let mut ask = |cdb: &[u8]| answer(&mut unit, A, cdb).data;
    differ(&ask(&[0x25]), &golden!("capacity10"), &[]);
    let long = ask(&[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32]);
    differ(&long, &golden!("capacity16"), &[]);
    let why = [(20, "PROVISIONING STATUS: what is mapped is not known here")];
    let status = ask(&[0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24]);
    differ(&status, &golden!("lba-status"), &why);
    let why = [
        (7, "OPTIMAL TRANSFER LENGTH GRANULARITY: a physical block"),
        (31, "OPTIMAL UNMAP GRANULARITY: the same"),
        (32, "UGAVALID: aligned to that"),
    ];
    differ(&ask(&[0x12, 1, 0xb0, 1, 0]), &golden!("inquiry-b0"), &why);
    let why = [
        (3, "PAGE LENGTH: 60 bytes, as SBC-3 has it"),
        (5, "MEDIUM ROTATION RATE: it does not rotate"),
    ];
    differ(&ask(&[0x12, 1, 0xb1, 1, 0]), &golden!("inquiry-b1")[..64], &why);
    let why = [(5, "LBPWS10: WRITE SAME(10) gives nothing back")];
    differ(&ask(&[0x12, 1, 0xb2, 1, 0]), &golden!("inquiry-b2"), &why);
}

#[test]
fn our_other_answers_are_laid_out_as_its() {
    let mut unit = unit();
    let mut ask = |cdb: &[u8]| answer(&mut unit, A, cdb).data;
    let (ours, theirs) = (ask(&[0x12, 0, 0, 0, 96]), golden!("inquiry"));
    assert_eq!(ours[8..36], theirs[8..36], "vendor, product, revision");
    assert_eq!(ours[60..62], theirs[60..62], "the second VERSION DESCRIPTOR: iSCSI");
    assert_eq!(ours[7], theirs[7], "CMDQUE");
    let (ours, theirs) = (ask(&[0x1a, 0, 8, 0, 255]), golden!("mode6"));
    assert_eq!(ours[2..4], theirs[2..4], "DPOFUA, and one block descriptor");
    assert_eq!(ours[8..12], theirs[8..12], "LOGICAL BLOCK LENGTH");
    let (ours, theirs) = (ask(&[0xa3, 0x0c, 1, 0x93, 0, 0, 0, 0, 0, 64]), golden!("opcode"));
    assert_eq!((ours.len(), &ours[..5]), (theirs.len(), &theirs[..5]), "SUPPORT, CDB SIZE");
}

#[test]
fn our_reservations_are_laid_out_as_its() {
    let mut unit = unit();
    let key = [0, 0, 0, 0, 0, 0, 0, 7];
    // REGISTER, and RESERVE.
    for (action, kind, at) in [(0, 0, 8), (1, 5, 0)] {
        let mut parameters = [0; 24];
        parameters[at..at + 8].copy_from_slice(&key);
        let cdb = [0x5f, action, kind, 0, 0, 0, 0, 0, 24];
        let step = with_parameters(&mut unit, A, &cdb, &parameters);
        assert!(matches!(step, Step::Answer(outcome) if outcome.sense.is_none()));
    }
    let mut report = |action| answer(&mut unit, A, &[0x5e, action, 0, 0, 0, 0, 0, 1, 0]).data;
    differ(&report(0), &golden!("keys"), &[]);
    differ(&report(1), &golden!("reservation"), &[]);
    let why = [(2, "ATP_C and PTPL_C: all target ports, and over a loss of power")];
    differ(&report(2), &golden!("capabilities"), &why);
}
