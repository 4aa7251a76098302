//! A disk that is reached through several ports, not equally well.

use scsi::{LogicalUnit, Outcome, PortState, Sense, SenseKey, Status, Step, UnitPort};

use crate::{A, B, PORT, cdb, quiet, unit_data};

const TEST_UNIT_READY: [u8; 1] = [0];
const INQUIRY: [u8; 5] = [0x12, 0, 0, 0, 96];
const REPORT_LUNS: [u8; 10] = [0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16];
const REQUEST_SENSE: [u8; 5] = [3, 0, 0, 0, 18];
const GROUPS: [u8; 10] = [0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 255];
const EXTENDED: [u8; 10] = [0xa3, 0x2a, 0, 0, 0, 0, 0, 0, 0, 255];
const CAPACITY: [u8; 1] = [0x25];
const CAPACITY_LONG: [u8; 14] = [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32];
const MODE_SENSE: [u8; 5] = [0x1a, 0, 0x3f, 0, 255];
const LOG_SENSE: [u8; 9] = [0x4d, 0, 0x40, 0, 0, 0, 0, 0, 255];
const KEYS: [u8; 9] = [0x5e, 0, 0, 0, 0, 0, 0, 0, 8];
const OPCODES: [u8; 10] = [0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0, 4];
const READ: [u8; 9] = [0x28, 0, 0, 0, 0, 0, 0, 0, 1];
const WRITE: [u8; 9] = [0x2a, 0, 0, 0, 0, 0, 0, 0, 1];
const FLUSH: [u8; 1] = [0x35];
const UNMAP: [u8; 9] = [0x42, 0, 0, 0, 0, 0, 0, 0, 24];

fn unit() -> LogicalUnit {
    quiet(scsi::UnitData { ports: 2, ..unit_data() })
}

fn through(unit: &mut LogicalUnit, port: UnitPort<'_>, bytes: &[u8]) -> Step {
    unit.begin(A, &cdb(bytes), 512, port)
}

/// What a command is told through a port in this state; `None` if it is carried out.
fn told(state: PortState, bytes: &[u8]) -> Option<Sense> {
    let states = [PortState::Optimized, state];
    let port = UnitPort { group: 2, relative: 2, states: &states, ..PORT };
    match through(&mut unit(), port, bytes) {
        Step::Answer(Outcome { status: Status::CheckCondition, sense, .. }) => sense,
        Step::Answer(Outcome { status, .. }) => {
            assert_eq!(status, Status::Good);
            None
        }
        _ => None,
    }
}

#[test]
fn each_state_refuses_what_it_should() {
    let always: [&[u8]; 5] = [&INQUIRY, &REPORT_LUNS, &REQUEST_SENSE, &GROUPS, &EXTENDED];
    let in_standby: [&[u8]; 6] =
        [&CAPACITY, &CAPACITY_LONG, &MODE_SENSE, &LOG_SENSE, &KEYS, &OPCODES];
    let active: [&[u8]; 5] = [&TEST_UNIT_READY, &READ, &WRITE, &FLUSH, &UNMAP];
    for (state, code) in [
        (PortState::Optimized, None),
        (PortState::NonOptimized, None),
        (PortState::Standby, Some(0x040b)),
        (PortState::Unavailable, Some(0x040c)),
        (PortState::Transitioning, Some(0x040a)),
    ] {
        let refused = code.map(|code| Sense::new(SenseKey::NotReady, code));
        for bytes in always {
            assert_eq!(told(state, bytes), None, "{state:?} {bytes:x?}");
        }
        for bytes in in_standby {
            let refused = refused.filter(|_| state != PortState::Standby);
            assert_eq!(told(state, bytes), refused, "{state:?} {bytes:x?}");
        }
        for bytes in active {
            assert_eq!(told(state, bytes), refused, "{state:?} {bytes:x?}");
        }
    }
}

#[test]
fn groups_are_reported_with_both_headers() {
    let states = [PortState::NonOptimized, PortState::Transitioning];
    let port = UnitPort { states: &states, ..PORT };
    let data = |bytes: &[u8]| match through(&mut unit(), port, bytes) {
        Step::Answer(outcome) => outcome.data,
        other => panic!("{other:?}"),
    };
    let groups: [u8; 24] =
        [1, 0x8f, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 15, 0x8f, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(data(&GROUPS), [&[0, 0, 0, 24][..], &groups].concat());
    assert_eq!(data(&EXTENDED), [&[0, 0, 0, 28, 0x10, 0, 0, 0][..], &groups].concat());
    let mut cut = GROUPS;
    cut[9] = 5;
    assert_eq!(data(&cut), [0, 0, 0, 24, 1], "the length is told whole");
    // PARAMETER DATA FORMAT.
    for format in 2..8 {
        let mut bytes = GROUPS;
        bytes[1] = format << 5 | 0x0a;
        let refused = Step::Answer(Outcome::check(Sense::in_cdb(1, Some(7))));
        assert_eq!(through(&mut unit(), port, &bytes), refused, "{format}");
    }
}

#[test]
fn what_is_not_known_is_not_offered() {
    let one = [0xa3, 0x0c, 2, 0xa3, 0, 0x0a, 0, 0, 0, 255];
    let reported = |unit: &mut LogicalUnit| match through(unit, PORT, &one) {
        Step::Answer(outcome) => outcome.data,
        other => panic!("{other:?}"),
    };
    let tpgs = |unit: &mut LogicalUnit| match through(unit, PORT, &INQUIRY) {
        Step::Answer(outcome) => outcome.data[5] >> 4 & 3,
        other => panic!("{other:?}"),
    };
    let (mut with, mut without) = (unit(), quiet(unit_data()));
    let usage = [0xa3, 0xea, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0];
    assert_eq!(reported(&mut with), [&[0, 3, 0, 12][..], &usage].concat());
    assert_eq!(reported(&mut without)[1], 1);
    assert_eq!((tpgs(&mut with), tpgs(&mut without)), (1, 0));
    let refused = Step::Answer(Outcome::check(Sense::in_cdb(1, Some(4))));
    assert_eq!(through(&mut without, PORT, &GROUPS), refused);
}

#[test]
fn everybody_is_told_of_another_state_once() {
    let told =
        |unit: &mut LogicalUnit, nexus| match unit.begin(nexus, &cdb(&TEST_UNIT_READY), 0, PORT) {
            Step::Answer(outcome) => outcome.sense,
            other => panic!("{other:?}"),
        };
    let mut unit = unit();
    unit.port_states_changed();
    assert!(!unit.is_clear(A));
    for nexus in [A, B] {
        assert_eq!(told(&mut unit, nexus), Some(Sense::new(SenseKey::UnitAttention, 0x2a06)));
        assert_eq!(told(&mut unit, nexus), None);
    }
    let mut without = quiet(unit_data());
    without.port_states_changed();
    assert_eq!(told(&mut without, A), None);
}
