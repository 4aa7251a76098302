//! SCSI: a disk beside initiators that keep to the rules and ones that do not.

mod ask;
mod commands;
mod data;
mod lio;
mod log;
mod ports;
mod reservations;
mod tgt;

use scsi::{
    BlockLimits, LogicalUnit, Nexus, Outcome, PersistentReservations, Sense, Step, TransportId,
    UnitData, UnitPort,
};

pub(crate) const BLOCKS: u64 = 1 << 16;
pub(crate) const PORT: UnitPort<'static> =
    UnitPort { target: "iqn.2001-04.com.example:disk", group: 1, relative: 1, states: &[] };
pub(crate) const A: Nexus = Nexus(1);
pub(crate) const B: Nexus = Nexus(2);

pub(crate) fn unit_data() -> UnitData {
    UnitData {
        block_shift: 9,
        block_count: BLOCKS,
        physical_shift: 12,
        id: [0x11; 16],
        vendor: *b"afar    ",
        product: *b"disk            ",
        revision: *b"1   ",
        is_thin: true,
        has_write_cache: true,
        is_read_only: false,
        limits: BlockLimits {
            transfer_blocks: 2048,
            optimal_blocks: 256,
            unmap_blocks: 8192,
            unmap_ranges: 16,
            write_same_blocks: 8192,
            compare_blocks: 8,
        },
        atomic_blocks: 8,
        ports: 1,
        opening: [0x22; 16],
    }
}

pub(crate) fn port_of(nexus: Nexus) -> TransportId {
    let last = nexus.0.to_le_bytes()[0];
    TransportId::iscsi("iqn.2001-04.com.example:host", [0, 0, 0, 0, 0, last])
}

/// A logical unit that A and B have been told about.
pub(crate) fn quiet(data: UnitData) -> LogicalUnit {
    let mut unit = LogicalUnit::new(data, PersistentReservations::new(true));
    for nexus in [A, B] {
        unit.attach(nexus, port_of(nexus).through(1));
        assert_eq!(answer(&mut unit, nexus, &[0]).sense.map(|sense| sense.code), Some(0x2900));
    }
    unit
}

pub(crate) fn cdb(bytes: &[u8]) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[..bytes.len()].copy_from_slice(bytes);
    cdb
}

/// What is to be done for a command with as much data as it takes: more than that, unless that is
/// too much.
pub(crate) fn step(unit: &mut LogicalUnit, nexus: Nexus, bytes: &[u8]) -> Step {
    let step = unit.begin(nexus, &cdb(bytes), 1 << 30, PORT);
    match &step {
        Step::Answer(outcome)
            if outcome.sense == Some(Sense::INVALID_FIELD_IN_INFORMATION_UNIT) =>
        {
            let wanted = u32::try_from(outcome.about_bytes).expect("short");
            unit.begin(nexus, &cdb(bytes), wanted, PORT)
        }
        _ => step,
    }
}

pub(crate) fn answer(unit: &mut LogicalUnit, nexus: Nexus, bytes: &[u8]) -> Outcome {
    match step(unit, nexus, bytes) {
        Step::Answer(outcome) => outcome,
        other => panic!("it is answered at once: {other:?}"),
    }
}

/// A command and its parameters.
pub(crate) fn with_parameters(
    unit: &mut LogicalUnit,
    nexus: Nexus,
    bytes: &[u8],
    data: &[u8],
) -> Step {
    let sent = u32::try_from(data.len()).expect("short");
    match unit.begin(nexus, &cdb(bytes), sent, PORT) {
        Step::Parameters(command, length) => {
            assert!(length <= sent);
            unit.parameters(nexus, &command, &data[..length as usize])
        }
        other => other,
    }
}
