//! Who may read and write, of two initiators.

use scsi::{Attention, LogicalUnit, Nexus, Outcome, PersistentReservations, Sense, Status, Step};

use crate::{A, B, PORT, answer, cdb, port_of, quiet, unit_data, with_parameters};

const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const RELEASE: u8 = 2;
const CLEAR: u8 = 3;
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;
const REGISTER_ANYHOW: u8 = 6;
const READ: [u8; 9] = [0x28, 0, 0, 0, 0, 0, 0, 0, 1];
const WRITE: [u8; 9] = [0x2a, 0, 0, 0, 0, 0, 0, 0, 1];

fn parameters(key: u64, new: u64, flags: u8) -> [u8; 24] {
    let mut data = [0; 24];
    data[..8].copy_from_slice(&key.to_be_bytes());
    data[8..16].copy_from_slice(&new.to_be_bytes());
    data[20] = flags;
    data
}

fn out_step(unit: &mut LogicalUnit, nexus: Nexus, [action, kind]: [u8; 2], data: &[u8]) -> Step {
    with_parameters(unit, nexus, &[0x5f, action, kind, 0, 0, 0, 0, 0, 24], data)
}

fn out(unit: &mut LogicalUnit, nexus: Nexus, what: [u8; 2], [key, new]: [u64; 2]) -> Outcome {
    match out_step(unit, nexus, what, &parameters(key, new, 0)) {
        Step::Answer(outcome) => outcome,
        other => panic!("nothing is left to do: {other:?}"),
    }
}

fn done(unit: &mut LogicalUnit, nexus: Nexus, what: [u8; 2], keys: [u64; 2]) {
    let outcome = out(unit, nexus, what, keys);
    assert_eq!(outcome.status, Status::Good, "{what:?} {keys:x?}: {:?}", outcome.sense);
}

fn conflicts(unit: &mut LogicalUnit, nexus: Nexus, what: [u8; 2], keys: [u64; 2]) {
    assert_eq!(out(unit, nexus, what, keys), Outcome::conflict(), "{what:?} {keys:x?}");
}

fn report(unit: &mut LogicalUnit, action: u8) -> Vec<u8> {
    answer(unit, A, &[0x5e, action, 0, 0, 0, 0, 0, 0xff, 0xff]).data
}

fn keys(unit: &mut LogicalUnit) -> Vec<u64> {
    let data = report(unit, 0);
    data[8..].chunks(8).map(|key| u64::from_be_bytes(key.try_into().expect("eight"))).collect()
}

/// The type that is held, and the key that holds it.
fn held(unit: &mut LogicalUnit) -> Option<(u8, u64)> {
    let data = report(unit, 1);
    let key = data.get(8..16)?;
    Some((data[21], u64::from_be_bytes(key.try_into().expect("eight"))))
}

fn is_admitted(unit: &mut LogicalUnit, nexus: Nexus, bytes: &[u8]) -> bool {
    match unit.begin(nexus, &cdb(bytes), 512, PORT) {
        Step::Device(_) => true,
        Step::Answer(outcome) => {
            assert_eq!(outcome.status, Status::ReservationConflict);
            false
        }
        other => panic!("{other:?}"),
    }
}

fn told(unit: &mut LogicalUnit, nexus: Nexus) -> Option<Sense> {
    answer(unit, nexus, &[0]).sense
}

/// A (key 1) and B (key 2) are registered, A holds it.
fn reserved(kind: u8) -> LogicalUnit {
    let mut unit = quiet(unit_data());
    done(&mut unit, A, [REGISTER, 0], [0, 1]);
    done(&mut unit, B, [REGISTER, 0], [0, 2]);
    done(&mut unit, A, [RESERVE, kind], [1, 0]);
    unit
}

// The table of the standard: reads and writes of the holder, a registrant, anybody.
#[test]
fn each_type_admits_whom_it_should() {
    let table = [
        (1, [1, 1, 1, 0, 1, 0]),
        (3, [1, 1, 0, 0, 0, 0]),
        (5, [1, 1, 1, 1, 1, 0]),
        (6, [1, 1, 1, 1, 0, 0]),
        (7, [1, 1, 1, 1, 1, 0]),
        (8, [1, 1, 1, 1, 0, 0]),
    ];
    const C: Nexus = Nexus(3);
    for (kind, expected) in table {
        let mut unit = reserved(kind);
        unit.attach(C, port_of(C).through(1));
        assert!(told(&mut unit, C).is_some());
        let admitted = [A, B, C].map(|nexus| {
            [READ, WRITE].map(|bytes| u8::from(is_admitted(&mut unit, nexus, &bytes)))
        });
        assert_eq!(admitted.concat(), expected, "type {kind}");
        assert_eq!(answer(&mut unit, C, &[0x12, 0, 0, 0, 96]).status, Status::Good);
        assert_eq!(answer(&mut unit, C, &[0x25]).status, Status::Good);
        let key = if kind < 7 { 1 } else { 0 };
        assert_eq!(held(&mut unit), Some((kind, key)));
    }
}

#[test]
fn a_port_registers_once_and_knows_its_key() {
    let mut unit = quiet(unit_data());
    conflicts(&mut unit, A, [REGISTER, 0], [9, 1]);
    done(&mut unit, A, [REGISTER, 0], [0, 1]);
    conflicts(&mut unit, A, [REGISTER, 0], [0, 2]);
    conflicts(&mut unit, A, [REGISTER, 0], [2, 3]);
    done(&mut unit, A, [REGISTER, 0], [1, 3]);
    done(&mut unit, A, [REGISTER_ANYHOW, 0], [77, 4]);
    assert_eq!(keys(&mut unit), [4]);
    assert_eq!(report(&mut unit, 0)[..4], [0, 0, 0, 3], "three changes");
    conflicts(&mut unit, B, [RESERVE, 1], [0, 0]);
    done(&mut unit, B, [REGISTER, 0], [0, 0]);
    assert_eq!(report(&mut unit, 0)[..4], [0, 0, 0, 3], "nothing was changed");
    done(&mut unit, A, [REGISTER, 0], [4, 0]);
    assert_eq!(keys(&mut unit), []);
    // Room for keys, not for all of them: the length is told whole.
    done(&mut unit, A, [REGISTER, 0], [0, 5]);
    let cut = answer(&mut unit, A, &[0x5e, 0, 0, 0, 0, 0, 0, 0, 8]).data;
    assert_eq!(cut[4..], [0, 0, 0, 8]);
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    let mut unit = quiet(unit_data());
    for (action, length) in [(0, 0), (0, 1), (6, 23), (1, 25), (5, 255)] {
        let outcome = answer(&mut unit, A, &[0x5f, action, 0, 0, 0, 0, 0, 0, length]);
        assert_eq!(outcome.sense, Some(Sense::PARAMETER_LIST_LENGTH), "{length}");
    }
    // Names of other ports follow, or should not.
    for (action, flags, expected) in [
        (0, 0, Sense::PARAMETER_LIST_LENGTH),
        (6, 0, Sense::PARAMETER_LIST_LENGTH),
        (0, 8, Sense::in_parameters(20, Some(3))),
        (6, 8, Sense::in_parameters(20, Some(3))),
    ] {
        let mut data = parameters(0, 1, flags).to_vec();
        data.resize(300, 0);
        let bytes = [0x5f, action, 0, 0, 0, 0, 0, 1, 44];
        let step = with_parameters(&mut unit, A, &bytes, &data);
        assert_eq!(step, Step::Answer(Outcome::check(expected)), "{action} {flags}");
    }
    assert_eq!(keys(&mut unit), []);
    assert_eq!(
        report(&mut unit, 2)[2..4],
        [5, 0x80],
        "kept over a loss of power, through all ports"
    );
    let refused = |unit: &mut LogicalUnit, what, data: &[u8]| match out_step(unit, A, what, data) {
        Step::Answer(outcome) => outcome.sense.expect("it says why"),
        other => panic!("{other:?}"),
    };
    let flagged = |flags| parameters(0, 1, flags);
    for flags in [8, 0xc] {
        let sense = refused(&mut unit, [REGISTER, 0], &flagged(flags));
        assert_eq!(sense, Sense::in_parameters(20, Some(3)));
    }
    done(&mut unit, A, [REGISTER, 0], [0, 1]);
    let own = parameters(1, 0, 0);
    for kind in [0, 2, 4, 9, 15] {
        assert_eq!(refused(&mut unit, [RESERVE, kind], &own), Sense::in_cdb(2, Some(3)), "{kind}");
    }
    assert_eq!(refused(&mut unit, [RESERVE, 0x11], &own), Sense::in_cdb(2, Some(7)));
    assert_eq!(refused(&mut unit, [PREEMPT, 1], &own), Sense::in_parameters(8, None));
    done(&mut unit, A, [RESERVE, 1], [1, 0]);
    assert_eq!(refused(&mut unit, [RELEASE, 3], &own), Sense::INVALID_RELEASE);
    for action in 7..32 {
        let outcome = answer(&mut unit, A, &[0x5f, action, 0, 0, 0, 0, 0, 0, 24]);
        assert_eq!(outcome.sense, Some(Sense::in_cdb(1, Some(4))), "{action}");
    }
    // There is room for so many.
    for number in 100..355_u64 {
        unit.attach(
            Nexus(number),
            scsi::TransportId::iscsi(&number.to_string(), [0; 6]).through(1),
        );
        assert!(told(&mut unit, Nexus(number)).is_some());
        done(&mut unit, Nexus(number), [REGISTER, 0], [0, number]);
    }
    let outcome = out(&mut unit, B, [REGISTER, 0], [0, 9]);
    assert_eq!(outcome.sense, Some(Sense::NO_ROOM_FOR_REGISTRATION));
}

#[test]
fn a_reservation_is_its_holders_to_give_up() {
    for kind in [1, 3, 5, 6, 7, 8] {
        let mut unit = reserved(kind);
        done(&mut unit, A, [RESERVE, kind], [1, 0]);
        conflicts(&mut unit, A, [RESERVE, if kind == 1 { 3 } else { 1 }], [1, 0]);
        let is_shared = kind >= 7;
        if is_shared {
            done(&mut unit, B, [RESERVE, kind], [2, 0]);
        } else {
            conflicts(&mut unit, B, [RESERVE, kind], [2, 0]);
            done(&mut unit, B, [RELEASE, kind], [2, 0]);
            assert!(held(&mut unit).is_some(), "it was not B's");
        }
        conflicts(&mut unit, A, [RELEASE, kind], [2, 0]);
        done(&mut unit, A, [RELEASE, kind], [1, 0]);
        assert_eq!(held(&mut unit), None);
        let expected = (kind >= 5).then_some(Attention::ReservationsReleased.sense());
        assert_eq!((told(&mut unit, A), told(&mut unit, B)), (None, expected), "type {kind}");
        // It goes with its holder; one of all registrants stays with the rest.
        let mut unit = reserved(kind);
        done(&mut unit, A, [REGISTER, 0], [1, 0]);
        assert_eq!(held(&mut unit).is_some(), is_shared, "type {kind}");
    }
    let mut unit = reserved(3);
    done(&mut unit, B, [CLEAR, 0], [2, 0]);
    assert_eq!(told(&mut unit, A), Some(Attention::ReservationsPreempted.sense()));
    assert_eq!((keys(&mut unit), held(&mut unit)), (vec![], None));
}

#[test]
fn whoever_knows_the_holders_key_takes_it() {
    let mut unit = reserved(3);
    conflicts(&mut unit, B, [PREEMPT, 3], [2, 9]);
    done(&mut unit, B, [PREEMPT, 1], [2, 1]);
    assert_eq!(told(&mut unit, A), Some(Attention::RegistrationsPreempted.sense()));
    assert_eq!((held(&mut unit), keys(&mut unit)), (Some((1, 2)), vec![2]));
    assert!(is_admitted(&mut unit, A, &READ) && !is_admitted(&mut unit, A, &WRITE));
    // A key that is no holder's only unregisters.
    done(&mut unit, A, [REGISTER, 0], [0, 1]);
    done(&mut unit, B, [PREEMPT, 3], [2, 1]);
    assert!(told(&mut unit, A).is_some());
    assert_eq!((held(&mut unit), keys(&mut unit)), (Some((1, 2)), vec![2]));
    // Its own key changes the type.
    done(&mut unit, B, [PREEMPT, 6], [2, 2]);
    assert_eq!(held(&mut unit), Some((6, 2)));
    // Of all registrants, nobody's key takes it from all the others.
    let mut unit = reserved(7);
    done(&mut unit, B, [PREEMPT, 3], [2, 0]);
    assert!(told(&mut unit, A).is_some());
    assert_eq!((held(&mut unit), keys(&mut unit)), (Some((3, 2)), vec![2]));
    // The commands of whom it was taken from are to end.
    let mut unit = reserved(3);
    let step = out_step(&mut unit, B, [PREEMPT_AND_ABORT, 3], &parameters(2, 1, 0));
    assert_eq!(step, Step::Abort(vec![A], Outcome::good(24)));
}

#[test]
fn whoever_comes_back_is_still_registered() {
    let mut unit = reserved(3);
    unit.detach(A);
    assert!(!is_admitted(&mut unit, B, &READ));
    const AGAIN: Nexus = Nexus(7);
    unit.attach(AGAIN, port_of(A).through(1));
    assert!(told(&mut unit, AGAIN).is_some());
    assert!(is_admitted(&mut unit, AGAIN, &WRITE));
    let full = answer(&mut unit, AGAIN, &[0x5e, 3, 0, 0, 0, 0, 0, 4, 0]).data;
    assert_eq!((full[8 + 12], full[8 + 13]), (1, 3));
    let id = port_of(A).bytes().to_vec();
    assert_eq!(full[32..32 + id.len()], id);
    assert!(id.len().is_multiple_of(4) && id.starts_with(&[0x45, 0, 0]));
    assert!(id[4..].starts_with(b"iqn.2001-04.com.example:host,i,0x000000000001\0"));
}

// SPC-4 5.13.7: who registers does so through one port, or through all of them at once.
#[test]
fn a_registration_is_of_one_port_or_of_all() {
    const BESIDE: Nexus = Nexus(7);
    let mut unit = quiet(scsi::UnitData { ports: 2, ..unit_data() });
    unit.attach(BESIDE, port_of(A).through(2));
    assert!(told(&mut unit, BESIDE).is_some());
    let all = |unit: &mut LogicalUnit, [key, new]: [u64; 2]| {
        out_step(unit, A, [REGISTER, 0], &parameters(key, new, 4))
    };
    done(&mut unit, A, [REGISTER, 0], [0, 1]);
    done(&mut unit, A, [RESERVE, 1], [1, 0]);
    assert!(is_admitted(&mut unit, A, &WRITE) && !is_admitted(&mut unit, BESIDE, &WRITE));
    // One of them has another key than is said, and nothing is changed.
    assert_eq!(all(&mut unit, [1, 9]), Step::Answer(Outcome::conflict()));
    assert_eq!((keys(&mut unit), report(&mut unit, 0)[3]), (vec![1], 1));
    done(&mut unit, A, [CLEAR, 0], [1, 0]);
    assert_eq!(all(&mut unit, [0, 9]), Step::Answer(Outcome::good(24)));
    assert_eq!((keys(&mut unit), report(&mut unit, 0)[3]), (vec![9, 9], 3), "one change");
    done(&mut unit, A, [RESERVE, 5], [9, 0]);
    assert!(is_admitted(&mut unit, BESIDE, &WRITE) && !is_admitted(&mut unit, B, &WRITE));
    let full = report(&mut unit, 3);
    let entry = 24 + port_of(A).bytes().len();
    let descriptors = full[8..].chunks(entry).map(|one| (one[19], one[12], one[13]));
    assert_eq!(descriptors.collect::<Vec<_>>(), [(1, 1, 5), (2, 0, 0)], "port, holder, type");
    // They are kept so.
    let kept = out_step(&mut unit, A, [REGISTER_ANYHOW, 0], &parameters(0, 9, 1));
    assert_eq!(kept, Step::Answer(Outcome::good(24)));
    let text = unit.unsaved().expect("it is to be kept");
    assert_eq!(PersistentReservations::read(&text), Some(unit.reservations().clone()));
    for other in ["1", "0", "x", "2:3"] {
        let damaged = text.replace(":2 ", &format!(":{other} "));
        assert_eq!(PersistentReservations::read(&damaged), None, "{other}");
    }
    // What it has itself given up it need not be told.
    assert_eq!(all(&mut unit, [9, 0]), Step::Answer(Outcome::good(24)));
    assert_eq!((keys(&mut unit), held(&mut unit), told(&mut unit, BESIDE)), (vec![], None, None));
}

#[test]
fn what_is_kept_is_read_after_a_restart() {
    let mut unit = reserved(6);
    assert_eq!(unit.unsaved(), None, "it was not to be kept");
    let Step::Answer(outcome) = out_step(&mut unit, A, [REGISTER_ANYHOW, 0], &parameters(0, 1, 1))
    else {
        panic!("it is answered");
    };
    assert_eq!(outcome.status, Status::Good);
    assert_eq!(report(&mut unit, 2), [0, 8, 5, 0x81, 0xea, 1, 0, 0]);
    let text = unit.unsaved().expect("it is now");
    let kept = PersistentReservations::read(&text).expect("it was written so");
    assert_eq!(kept.write(), text);
    for cut in 0..text.len() - 1 {
        assert_eq!(PersistentReservations::read(&text[..cut]), None, "cut off at {cut}");
    }
    let mut after = LogicalUnit::new(unit_data(), kept);
    for nexus in [A, B] {
        after.attach(nexus, port_of(nexus).through(1));
        assert!(told(&mut after, nexus).is_some());
    }
    assert_eq!((held(&mut after), keys(&mut after)), (Some((6, 1)), vec![1, 2]));
    // Not to be kept any more is a change too.
    done(&mut after, B, [REGISTER_ANYHOW, 0], [0, 2]);
    assert!(after.unsaved().is_some());
    done(&mut after, B, [RELEASE, 6], [2, 0]);
    assert_eq!(after.unsaved(), None);
    let mut volatile = LogicalUnit::new(unit_data(), PersistentReservations::new(false));
    volatile.attach(A, port_of(A).through(1));
    assert!(told(&mut volatile, A).is_some());
    let step = out_step(&mut volatile, A, [REGISTER, 0], &parameters(0, 1, 1));
    let refused = Outcome::check(Sense::in_parameters(20, Some(0)));
    assert_eq!(step, Step::Answer(refused));
}

#[test]
fn the_old_way_to_reserve_excludes_everybody() {
    let mut unit = quiet(unit_data());
    assert_eq!(answer(&mut unit, A, &[0x16]).status, Status::Good);
    assert_eq!(answer(&mut unit, A, &[0x16]).status, Status::Good, "again");
    for bytes in [&[0x16][..], &[0], &READ, &WRITE, &[0x1a, 0, 0x3f, 0, 255]] {
        let outcome = unit.begin(B, &cdb(bytes), 512, PORT);
        assert_eq!(outcome, Step::Answer(Outcome::conflict()), "{bytes:x?}");
    }
    assert_eq!(answer(&mut unit, B, &[0x12, 0, 0, 0, 96]).status, Status::Good);
    assert_eq!(answer(&mut unit, B, &[0x17]).status, Status::Good, "nothing of its own");
    assert!(!is_admitted(&mut unit, B, &READ));
    assert!(is_admitted(&mut unit, A, &WRITE));
    unit.detach(A);
    assert!(is_admitted(&mut unit, B, &WRITE));
    // Who has registered in the new way cannot reserve in the old one.
    done(&mut unit, B, [REGISTER, 0], [0, 2]);
    assert_eq!(answer(&mut unit, B, &[0x16]), Outcome::conflict());
}
