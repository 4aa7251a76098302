//! Commands, beside bytes as initiators send them.

use proptest::prelude::*;

use scsi::{
    Attention, Check, Command, Extent, Operation, Plan, Sense, Status, Step, Transfer, absent,
};

use crate::{A, B, BLOCKS, PORT, answer, cdb, quiet, step, unit_data, with_parameters};

fn plan(bytes: &[u8]) -> Plan {
    match step(&mut quiet(unit_data()), A, bytes) {
        Step::Device(plan) => plan,
        other => panic!("a device does it: {other:?}"),
    }
}

fn refused(bytes: &[u8]) -> Sense {
    let outcome = answer(&mut quiet(unit_data()), A, bytes);
    assert_eq!(outcome.status, Status::CheckCondition, "{bytes:x?}");
    outcome.sense.expect("it says why")
}

const fn write(forced: bool) -> Operation {
    Operation::Write { forced, is_atomic: false }
}

#[test]
fn where_and_how_much_is_read_from_every_length() {
    let [out, read] = [Transfer::Out, Transfer::In];
    let cases: [(&[u8], Operation, u64, u64, Transfer); 16] = [
        (&[0x08, 0, 1, 2, 3], Operation::Read, 0x102, 3, read(3 * 512)),
        (&[0x0a, 0, 0, 0, 0], write(false), 0, 256, out(256 * 512)),
        (&[0x28, 0x18, 0, 0, 1, 2, 0, 1, 0], Operation::Read, 0x102, 256, read(256 * 512)),
        (&[0x2a, 0x08, 0, 0, 0, 9, 0, 0, 1], write(true), 9, 1, out(512)),
        (&[0xaa, 0x10, 0, 0, 0, 9, 0, 0, 0, 2], write(false), 9, 2, out(1024)),
        (&[0xa8, 0, 0, 0, 0, 9, 0, 0, 0, 2], Operation::Read, 9, 2, read(1024)),
        (&[0x88, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1], Operation::Read, 7, 1, read(512)),
        (&[0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1], write(true), 7, 1, out(512)),
        (
            &[0x2e, 2, 0, 0, 0, 7, 0, 0, 1],
            Operation::WriteAndVerify { compares: true },
            7,
            1,
            out(512),
        ),
        (&[0x2f, 0, 0, 0, 0, 7, 0, 0, 4], Operation::Verify(Check::Readable), 7, 4, Transfer::None),
        (&[0x2f, 2, 0, 0, 0, 7, 0, 0, 4], Operation::Verify(Check::Data), 7, 4, out(2048)),
        (&[0x2f, 6, 0, 0, 0, 7, 0, 0, 4], Operation::Verify(Check::Block), 7, 4, out(512)),
        (
            &[0x93, 8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 4],
            Operation::WriteSame { has_data: true, unmaps: true },
            7,
            4,
            out(512),
        ),
        (
            &[0x93, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 4],
            Operation::WriteSame { has_data: false, unmaps: false },
            7,
            4,
            Transfer::None,
        ),
        (
            &[0x89, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1],
            Operation::CompareAndWrite { forced: false },
            7,
            1,
            out(1024),
        ),
        (
            &[0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 8],
            Operation::Write { forced: false, is_atomic: true },
            8,
            8,
            out(4096),
        ),
    ];
    for (bytes, operation, first, count, transfer) in cases {
        let (offset, length) = (first * 512, count * 512);
        let (Transfer::Out(about_bytes) | Transfer::In(about_bytes)) = transfer else {
            assert_eq!(plan(bytes).about_bytes, 0);
            continue;
        };
        let expected = Plan { operation, offset, length, transfer, about_bytes };
        assert_eq!(plan(bytes), expected, "{bytes:x?}");
    }
}

#[test]
fn blocks_beyond_the_end_are_refused() {
    let end = u32::try_from(BLOCKS).expect("small").to_be_bytes();
    for code in [0x28, 0x2a, 0x2e, 0x2f, 0x34, 0x35, 0x41] {
        let at = |first: [u8; 4], count: u8| {
            let [a, b, c, d] = first;
            [code, 0, a, b, c, d, 0, 0, count]
        };
        let last = u32::try_from(BLOCKS - 1).expect("small").to_be_bytes();
        let inside = step(&mut quiet(unit_data()), A, &at(last, 1));
        let is_refused = matches!(&inside, Step::Answer(one) if one.status != Status::Good);
        assert!(!is_refused, "{code:x}: {inside:?}");
        assert_eq!(refused(&at(last, 2)), Sense::LBA_OUT_OF_RANGE.about(BLOCKS - 1), "{code:x}");
        assert_eq!(refused(&at(end, 1)).code, 0x2100, "{code:x}");
        assert_eq!(refused(&at([0xff; 4], 0)).code, 0x2100, "{code:x}");
    }
    for code in [0x88, 0x8a, 0x8b, 0x8e, 0x8f, 0x90, 0x91, 0x93, 0x89] {
        let mut bytes = [0xff; 14];
        (bytes[0], bytes[1]) = (code, 0);
        bytes[10..].copy_from_slice(&[0, 0, 0, 1]);
        assert_eq!(refused(&bytes).code, 0x2100, "{code:x}: it wraps around");
    }
    let status = [0x9e, 0x12, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 24];
    assert_eq!(refused(&status), Sense::LBA_OUT_OF_RANGE);
}

#[test]
fn more_than_may_be_is_refused_where_it_stands() {
    assert_eq!(refused(&[0x28, 0, 0, 0, 0, 0, 0, 0x08, 0x01]), Sense::in_cdb(7, None));
    let long = [0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x01];
    assert_eq!(refused(&long), Sense::in_cdb(10, None));
    assert_eq!(refused(&[0xa8, 0, 0, 0, 0, 0, 0, 0, 8, 1]), Sense::in_cdb(6, None));
    let compare = [0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    assert_eq!(refused(&compare), Sense::in_cdb(13, None));
    let atomic = [0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    assert_eq!(refused(&atomic), Sense::in_cdb(12, None));
    // All blocks are more than a WRITE SAME may write; those of the last part are not.
    assert_eq!(refused(&[0x41, 0, 0, 0, 0, 0, 0, 0, 0]), Sense::in_cdb(7, None));
    let plan = plan(&[0x41, 0, 0, 0, 0xff, 0xf0, 0, 0, 0]);
    assert_eq!((plan.offset, plan.length), (0xfff0 * 512, 16 * 512));
}

#[test]
fn bits_that_mean_nothing_are_refused_where_they_stand() {
    assert_eq!(
        refused(&[0x28, 0x20, 0, 0, 0, 0, 0, 0, 1]),
        Sense::in_cdb(1, Some(5)),
        "protection"
    );
    assert_eq!(refused(&[0x28, 0xe0, 0, 0, 0, 0, 0, 0, 1]), Sense::in_cdb(1, Some(7)));
    assert_eq!(refused(&[0x28, 0, 0, 0, 0, 0, 1, 0, 1]), Sense::in_cdb(6, Some(0)), "a group");
    assert_eq!(refused(&[0, 0, 0, 0, 0, 4]), Sense::in_cdb(5, Some(2)), "NACA");
    assert_eq!(refused(&[0x2f, 4, 0, 0, 0, 0, 0, 0, 1]), Sense::in_cdb(1, Some(2)), "BYTCHK 2");
    assert_eq!(refused(&[0x12, 0, 0x80, 0, 96]), Sense::in_cdb(2, None), "a page without EVPD");
    assert_eq!(refused(&[0x12, 1, 0xc7, 0, 96]), Sense::in_cdb(2, None), "no such page");
    assert_eq!(refused(&[0x5e, 4, 0, 0, 0, 0, 0, 0, 8]), Sense::in_cdb(1, Some(4)));
    assert_eq!(refused(&[0x9e, 0x11]), Sense::in_cdb(1, Some(4)));
    // FORMAT UNIT, SANITIZE, EXTENDED COPY, ATA PASS-THROUGH, a variable length.
    for code in [0x04, 0x48, 0x83, 0x84, 0xa1, 0x85, 0x7f, 0xff] {
        assert_eq!(refused(&[code]), Sense::INVALID_OPCODE, "{code:x}");
    }
    let mut thick = quiet(scsi::UnitData { is_thin: false, ..unit_data() });
    assert_eq!(answer(&mut thick, A, &[0x42]).sense, Some(Sense::INVALID_OPCODE));
    let same = [0x93, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(answer(&mut thick, A, &same).sense, Some(Sense::in_cdb(1, Some(3))));
}

#[test]
fn what_is_sent_is_written_and_no_more() {
    let mut unit = quiet(unit_data());
    let mut of = |bytes: &[u8], sent| unit.begin(A, &cdb(bytes), sent, PORT);
    let two = [0x2a, 8, 0, 0, 0, 3, 0, 0, 2];
    assert_eq!(of(&two, 0), Step::Answer(scsi::Outcome::good(1024)));
    let patch = Operation::Patch { forced: true };
    let cases = [
        (200, patch, 512, 200),
        (512, write(true), 512, 512),
        (1023, patch, 1024, 1023),
        (1024, write(true), 1024, 1024),
        (4096, write(true), 1024, 1024),
    ];
    for (sent, operation, length, bytes) in cases {
        let transfer = Transfer::Out(bytes);
        let plan = Plan { operation, offset: 1536, length, transfer, about_bytes: 1024 };
        assert_eq!(of(&two, sent), Step::Device(plan), "{sent}");
    }
    // Where all blocks get the same, or are compared, or seen at once, it is that or nothing.
    let compare = [0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let atomic = [0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    let cases: [(&[u8], u32, &[u32]); 4] = [
        (&[0x41, 0, 0, 0, 0, 0, 0, 0, 2], 512, &[0, 256, 1024]),
        (&compare, 1024, &[0, 512, 1536]),
        (&atomic, 1024, &[0, 512]),
        (&[0x2f, 2, 0, 0, 0, 0, 0, 0, 2], 1024, &[0, 512]),
    ];
    for (bytes, right, wrong) in cases {
        assert!(matches!(of(bytes, right), Step::Device(_)), "{bytes:x?}");
        for sent in wrong {
            let Step::Answer(outcome) = of(bytes, *sent) else { panic!("{bytes:x?} {sent}") };
            assert_eq!(outcome.sense, Some(Sense::INVALID_FIELD_IN_INFORMATION_UNIT));
            assert_eq!(outcome.about_bytes, u64::from(right));
        }
    }
    let none = [0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let Step::Answer(outcome) = of(&none, 1024) else { panic!("nothing to compare with") };
    assert_eq!(outcome.sense, Some(Sense::in_cdb(13, None)));
}

#[test]
fn an_attention_is_told_once_and_first() {
    let mut unit = quiet(unit_data());
    unit.resize(BLOCKS / 2);
    unit.luns_changed();
    // Who asks for sense data gets it so; INQUIRY is answered all the same.
    assert_eq!(answer(&mut unit, A, &[0x12, 0, 0, 0, 96]).status, Status::Good);
    let sense = answer(&mut unit, A, &[0x03, 0, 0, 0, 252]).data;
    assert_eq!(Sense::read(&sense), Some(Attention::CapacityChanged.sense()));
    // The list of logical units is news itself.
    assert!(matches!(step(&mut unit, A, &[0xa0, 0, 0, 0, 0, 0, 0, 0, 1]), Step::ReportLuns { .. }));
    assert_eq!(answer(&mut unit, A, &[0]).status, Status::Good);
    let told: Vec<_> = (0..3).map(|_| answer(&mut unit, B, &[0xff]).sense).collect();
    let expected =
        [Attention::CapacityChanged.sense(), Attention::LunsChanged.sense(), Sense::INVALID_OPCODE];
    assert_eq!(told, expected.map(Some));
    // What was set is as it was at first after a reset, which says everything else.
    unit.resize(BLOCKS);
    unit.reset(scsi::ResetKind::Wish);
    assert_eq!(answer(&mut unit, B, &[0]).sense, Some(Attention::Reset.sense()));
    assert_eq!(answer(&mut unit, B, &[0]).status, Status::Good);
}

#[test]
fn nobody_is_there() {
    let Step::Answer(outcome) = absent(&cdb(&[0x12, 0, 0, 0, 36])) else { panic!("INQUIRY") };
    assert_eq!((outcome.status, outcome.data[0], outcome.data.len()), (Status::Good, 0x7f, 36));
    let Step::Answer(outcome) = absent(&cdb(&[0x28])) else { panic!("READ") };
    assert_eq!(outcome.sense, Some(Sense::LOGICAL_UNIT_NOT_SUPPORTED));
    assert!(matches!(
        absent(&cdb(&[0xa0, 0, 2, 0, 0, 0, 0, 1])),
        Step::ReportLuns { select: 2, .. }
    ));
}

#[test]
fn commands_are_what_they_are_reported_as() {
    let mut unit = quiet(unit_data());
    let all = answer(&mut unit, A, &[0xa3, 0x0c, 0, 0, 0, 0, 0, 1, 0, 0]).data;
    let length = u32::from_be_bytes(all[..4].try_into().expect("four")) as usize;
    assert_eq!(length, all.len() - 4);
    assert_eq!(all[4..].len() % 8, 0);
    for entry in all[4..].chunks(8) {
        let (code, action, has_action) = (entry[0], entry[3], entry[5] & 1 == 1);
        let option = if has_action { 2 } else { 1 };
        let asked = [0xa3, 0x0c, option, code, 0, action, 0, 0, 1, 0];
        let one = answer(&mut unit, A, &asked).data;
        assert_eq!((one[1], one[3]), (3, entry[7]), "{code:x}/{action:x}");
        // The bits it names are taken; any other is not.
        let usage = &one[4..];
        for (at, mask) in usage.iter().enumerate().skip(1) {
            for bit in (0..8).filter(|bit| mask >> bit & 1 == 0) {
                let mut bytes = cdb(&[code, if has_action { action } else { 0 }]);
                bytes[at] |= 1 << bit;
                let is_field = at == 1 && has_action && bit < 5;
                let sense = Command::read(&bytes, &unit_data()).err();
                let expected = Sense::in_cdb(u16::try_from(at).expect("few"), Some(bit));
                assert!(sense == Some(expected) || is_field, "{bytes:x?}: {sense:?}");
            }
        }
        let other = [0xa3, 0x0c, 3 - option, code, 0, action, 0, 0, 1, 0];
        assert_eq!(answer(&mut unit, A, &other).sense, Some(Sense::in_cdb(2, Some(2))));
    }
    let unknown = answer(&mut unit, A, &[0xa3, 0x0c, 1, 0x04, 0, 0, 0, 0, 1, 0]).data;
    assert_eq!(unknown, [0, 1, 0, 0]);
}

#[test]
fn a_protected_disk_is_not_written() {
    let mut unit = quiet(unit_data());
    let swp: [u8; 16] = [0, 0, 0, 0, 0x0a, 10, 0, 0x10, 8, 0, 0, 0, 0xff, 0xff, 0, 0];
    let step = with_parameters(&mut unit, A, &[0x15, 0x10, 0, 0, 16], &swp);
    assert!(matches!(step, Step::Answer(outcome) if outcome.status == Status::Good));
    assert_eq!(answer(&mut unit, B, &[0]).sense, Some(Attention::ModeChanged.sense()));
    for bytes in [[0x2a, 0, 0, 0, 0, 0, 0, 0, 1], [0x41, 0, 0, 0, 0, 0, 0, 0, 1]] {
        let sense = answer(&mut unit, A, &bytes).sense;
        assert_eq!(sense, Some(Sense::SOFTWARE_WRITE_PROTECTED));
    }
    assert!(matches!(self::step(&mut unit, A, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1]), Step::Device(_)));
    let mut unit = quiet(scsi::UnitData { is_read_only: true, ..unit_data() });
    let sense = answer(&mut unit, A, &[0x8a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]).sense;
    assert_eq!(sense, Some(Sense::WRITE_PROTECTED));
    assert_eq!(answer(&mut unit, A, &[0x1a, 0, 0x3f, 0, 255]).data[2], 0x90);
}

proptest! {
    #[test]
    fn no_command_panics(
        bytes in any::<[u8; 16]>(),
        sent in any::<u32>(),
        data in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let mut unit = quiet(unit_data());
        match unit.begin(A, &bytes, sent, PORT) {
            Step::Parameters(command, length) => {
                let data = &data[..data.len().min(length as usize)];
                let _ = unit.parameters(A, &command, data);
            }
            Step::Device(plan) => {
                prop_assert!(plan.offset + plan.length <= BLOCKS << 9);
                prop_assert!(plan.length <= 8192 << 9 || plan.transfer == Transfer::None);
            }
            Step::Answer(outcome) => prop_assert!(outcome.data.len() < 4096),
            _ => {}
        }
        let _ = absent(&bytes);
    }

    #[test]
    fn extents_are_whole(first in any::<u64>(), count in any::<u32>()) {
        let mut bytes = [0; 16];
        bytes[0] = 0x88;
        bytes[2..10].copy_from_slice(&first.to_be_bytes());
        bytes[10..14].copy_from_slice(&count.to_be_bytes());
        let extent = Extent { first, count, forced: false };
        prop_assert_eq!(Command::read(&bytes, &unit_data()), Ok(Command::Read(extent)));
    }
}
