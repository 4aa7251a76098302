//! What another target says, byte for byte: the kernel's (LIO of Linux 6.12.117, a file of 64 MiB),
//! asked by sg3-utils, which says what it means. So a layout that both of our ends have wrong is
//! found.
//!
//! `lio/*.hex` have the lines that are not all zeros. One initiator is registered with key 7 and
//! holds a reservation for those that are (type 5).

use scsi::found::{
    self, FoundCapacity, FoundIds, FoundInquiry, FoundLimits, FoundMode, FoundProvisioning,
};
use scsi::{LogicalUnit, Lun, Nexus, PersistentReservations, Step, TransportId, UnitData};
use test_support::read_hex;

use crate::{A, answer, unit_data, with_parameters};

/// Two answers differ in these bytes, each for a reason, and nowhere else.
fn differ(ours: &[u8], theirs: &[u8], why: &[(usize, &str)]) {
    assert_eq!(ours.len(), theirs.len(), "{ours:x?}");
    let places: Vec<usize> = (0..ours.len()).filter(|&at| ours[at] != theirs[at]).collect();
    let named: Vec<usize> = why.iter().map(|(at, _)| *at).collect();
    assert_eq!(places, named, "ours {ours:x?}");
}

fn unit() -> LogicalUnit {
    let data = UnitData { block_count: 131_072, physical_shift: 9, ..unit_data() };
    let mut unit = LogicalUnit::new(data, PersistentReservations::new(true));
    let isid = [0, 2, 0x3d, 0, 0, 1];
    let port = TransportId::iscsi("iqn.2024-01.test.guest:initiator", isid);
    unit.attach(A, port.through(1));
    let _powered_on = answer(&mut unit, A, &[0]);
    unit
}

#[test]
fn the_kernel_s_disk_is_read() {
    let inquiry =
        FoundInquiry::read(&read_hex(include_str!("lio/inquiry.hex"))).expect("long enough");
    assert!(inquiry.is_disk());
    assert_eq!((&*inquiry.vendor, &*inquiry.product), ("LIO-ORG", "FILEIO"));
    assert_eq!((&*inquiry.revision, inquiry.version), ("4.0", 6));
    let long = FoundCapacity::read_long(&read_hex(include_str!("lio/capacity16.hex")));
    let capacity = FoundCapacity {
        block_count: 131_072,
        block_bytes: 512,
        physical_exponent: 0,
        is_thin: true,
        reads_zeros: false,
        is_protected: false,
    };
    assert_eq!(long, Some(capacity));
    let short = FoundCapacity::read(&read_hex(include_str!("lio/capacity10.hex")));
    assert_eq!(short, Some(FoundCapacity { is_thin: false, ..capacity }));
    let limits = FoundLimits {
        transfer_blocks: 0x4000,
        optimal_blocks: 0x4000,
        unmap_blocks: 0x2000,
        unmap_ranges: 1,
        write_same_blocks: 0x1000,
        compare_blocks: 1,
    };
    assert_eq!(FoundLimits::read(&read_hex(include_str!("lio/inquiry-b0.hex"))), Some(limits));
    let provisioning =
        FoundProvisioning { has_unmap: true, has_write_same: true, reads_zeros: false, kind: 0 };
    let page = read_hex(include_str!("lio/inquiry-b2.hex"));
    assert_eq!(FoundProvisioning::read(&page), Some(provisioning));
    let mode =
        FoundMode { is_write_protected: false, has_forced: false, has_write_cache: Some(false) };
    assert_eq!(FoundMode::read(&read_hex(include_str!("lio/mode6.hex"))), Some(mode));
}

#[test]
fn the_kernel_s_names_are_read() {
    let pages = read_hex(include_str!("lio/inquiry-00.hex"));
    assert_eq!(found::read_pages(&pages), [0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2, 0xb3]);
    let serial = found::read_serial(&read_hex(include_str!("lio/inquiry-80.hex")));
    assert_eq!(serial.as_deref(), Some("golden-serial"));
    let ids = FoundIds::read(&read_hex(include_str!("lio/inquiry-83.hex")));
    let naa = [0x60, 0x01, 0x40, 0x5d, 0xee, 0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(ids.naa_long, Some(naa));
    assert_eq!(ids.vendor.as_deref(), Some("LIO-ORG FILEIO:golden-serial"));
    assert_eq!((ids.eui, ids.eui_long, ids.naa), (None, None, None));
    let luns = found::read_luns(&read_hex(include_str!("lio/luns.hex")));
    assert_eq!(luns, [Lun::new(0).expect("it is small")]);
}

#[test]
fn our_capacity_is_laid_out_as_the_kernel_s() {
    let mut unit = unit();
    let mut ask = |cdb: &[u8]| answer(&mut unit, A, cdb).data;
    let short = ask(&[0x25]);
    differ(&short, &read_hex(include_str!("lio/capacity10.hex")), &[]);
    let long = ask(&[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32]);
    let why = [(14, "LBPRZ: what was given back is zeros")];
    differ(&long, &read_hex(include_str!("lio/capacity16.hex")), &why);
}

#[test]
fn our_reservations_are_laid_out_as_the_kernel_s() {
    let mut unit = unit();
    let mut parameters = [0; 24];
    parameters[15] = 7;
    let mut out = |unit: &mut LogicalUnit, nexus: Nexus, what: [u8; 2]| {
        let step =
            with_parameters(unit, nexus, &[0x5f, what[0], what[1], 0, 0, 0, 0, 0, 24], &parameters);
        assert!(matches!(step, Step::Answer(outcome) if outcome.sense.is_none()));
        parameters = [0; 24];
        parameters[7] = 7;
    };
    // REGISTER, and RESERVE.
    out(&mut unit, A, [0, 0]);
    out(&mut unit, A, [1, 5]);
    let mut report = |action| answer(&mut unit, A, &[0x5e, action, 0, 0, 0, 0, 0, 16, 0]).data;
    differ(&report(0), &read_hex(include_str!("lio/keys.hex")), &[]);
    differ(&report(1), &read_hex(include_str!("lio/reservation.hex")), &[]);
    differ(&report(3), &read_hex(include_str!("lio/status.hex")), &[]);
    let why = [
        (2, "no SPEC_I_PT, and RESERVE(6) is not handled as a persistent one (CRH)"),
        (3, "ALLOW COMMANDS: nothing is said"),
    ];
    differ(&report(2), &read_hex(include_str!("lio/capabilities.hex")), &why);
}
