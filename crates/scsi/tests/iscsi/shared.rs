//! Two initiators, each with a session of its own, and one disk: what one of them does, the other
//! sees whole. Both count in one block, by COMPARE AND WRITE or under a reservation.

use std::collections::BTreeMap;

use scsi::iscsi::{
    Answer, Arrival, Ended, EntryConfig, Expectation, Initiator, Request, ScsiCommand, Session,
    SessionLimits, Task, Transfer, Wishes,
};
use scsi::{
    LogicalUnit, Nexus, Operation, Outcome, PersistentReservations, Sense, Status, Step,
    TransportId, UnitPort, compare,
};

use crate::duel::{BLOCK, Draw, unit_data};
use crate::{Handshake, INITIATOR, TARGET, entry_config};

const ROUNDS: u64 = 12;

/// What is shared.
struct Disk {
    unit: LogicalUnit,
    block: Vec<u8>,
}

/// How an initiator counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Compare,
    Reserve,
}

/// What an initiator has asked for last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Ready,
    Register,
    Reserve,
    Read,
    Write,
    Release,
}

/// An initiator, its session at the target, and what is between them.
struct Side {
    nexus: Nexus,
    way: Way,
    initiator: Initiator,
    session: Session,
    wires: [Vec<u8>; 2],
    open: BTreeMap<Task, (ScsiCommand, Step, Vec<u8>, bool)>,
    asked: Asked,
    data: Vec<u8>,
    seen: u64,
    counted: u64,
    refused: usize,
}

fn block_of(count: u64) -> Vec<u8> {
    count.to_le_bytes().repeat(BLOCK / 8)
}

impl Side {
    fn new(number: u64, way: Way, disk: &mut Disk) -> Self {
        let isid = [0x80, 0, 0, 0, 0, number.to_le_bytes()[0]];
        let wishes = Wishes { immediate_data: number == 1, ..Wishes::default() };
        let config = EntryConfig { isid, ..entry_config(wishes) };
        let (link, entered) =
            Handshake::default().run(config, Wishes::default()).expect("they agree");
        let nexus = Nexus(number);
        disk.unit.attach(nexus, TransportId::iscsi(INITIATOR, isid).through(1));
        Self {
            nexus,
            way,
            initiator: Initiator::new(2, entered.link),
            session: Session::new(SessionLimits { commands: 4, immediate: 1 }, link),
            wires: Default::default(),
            open: BTreeMap::new(),
            asked: Asked::Nothing,
            data: Vec::new(),
            seen: 0,
            counted: 0,
            refused: 0,
        }
    }

    fn is_done(&self) -> bool {
        self.counted == ROUNDS && self.asked == Asked::Nothing
    }

    /// Asks for the next thing, if nothing is under way.
    fn ask(&mut self) {
        if self.initiator.outstanding() > 0 || self.is_done() {
            return;
        }
        let mut cdb = [0; 16];
        let key = self.nexus.0;
        let mut parameters = vec![0; 24];
        parameters[..8].copy_from_slice(&key.to_be_bytes());
        let both = [block_of(self.seen), block_of(self.seen + 1)].concat();
        let transfer = match self.asked {
            Asked::Nothing | Asked::Ready => Transfer::None,
            Asked::Register => {
                parameters.rotate_left(16);
                (cdb[0], cdb[8]) = (0x5f, 24);
                Transfer::Send(&parameters)
            }
            Asked::Reserve | Asked::Release => {
                let action = if self.asked == Asked::Reserve { 1 } else { 2 };
                (cdb[0], cdb[1], cdb[2], cdb[8]) = (0x5f, action, 3, 24);
                Transfer::Send(&parameters)
            }
            Asked::Read => {
                (cdb[0], cdb[8]) = (0x28, 1);
                self.data = vec![0; BLOCK];
                Transfer::Receive(512)
            }
            Asked::Write if self.way == Way::Compare => {
                (cdb[0], cdb[13]) = (0x89, 1);
                Transfer::Send(&both)
            }
            Asked::Write => {
                (cdb[0], cdb[8]) = (0x2a, 1);
                Transfer::Send(&both[BLOCK..])
            }
        };
        if self.asked == Asked::Nothing {
            self.asked = Asked::Ready;
        }
        // Kept until it is wanted.
        if let Transfer::Send(data) = transfer {
            self.data = data.to_vec();
        }
        let request = Request { lun: [0; 8], cdb, transfer };
        self.initiator.submit(0, request, &mut self.wires[0]).expect("nothing is under way");
    }

    fn hear(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        let out = &mut self.wires[0];
        while let Some(answer) = self.initiator.receive(0, &mut input, out).expect("it is right") {
            match answer {
                Answer::Wants { tag, offset, length } => {
                    let at = offset as usize;
                    let data = self.data[at..at + length as usize].to_vec();
                    self.initiator.send_data(tag, offset, &data, out);
                }
                Answer::Data(_, offset, bytes) => {
                    let at = offset as usize;
                    self.data[at..at + bytes.len()].copy_from_slice(bytes);
                }
                Answer::Ended(ended) => {
                    let (asked, seen) = (self.next(&ended), &self.data);
                    if self.asked == Asked::Read {
                        self.seen = u64::from_le_bytes(seen[..8].try_into().expect("eight"));
                        assert!(*seen == block_of(self.seen), "a block is seen whole");
                    }
                    self.asked = asked;
                    return assert!(input.is_empty(), "one at a time");
                }
                other => panic!("nobody has asked for {other:?}"),
            }
        }
    }

    /// What follows the end of what was asked for.
    fn next(&mut self, ended: &Ended) -> Asked {
        let code = ended.sense.map(|sense| sense.code);
        match (ended.status, self.asked, self.way) {
            // What is new is told before anything else.
            (Some(Status::CheckCondition), asked, _) if code != Some(0x1d00) => {
                assert_eq!(ended.sense.map(|sense| sense.key), Some(scsi::SenseKey::UnitAttention));
                asked
            }
            (Some(Status::CheckCondition), Asked::Write, Way::Compare) => {
                self.refused += 1;
                Asked::Read
            }
            (Some(Status::ReservationConflict), Asked::Reserve, Way::Reserve) => {
                self.refused += 1;
                Asked::Reserve
            }
            (Some(Status::Good), Asked::Nothing | Asked::Ready, Way::Compare) => Asked::Read,
            (Some(Status::Good), Asked::Nothing | Asked::Ready, Way::Reserve) => Asked::Register,
            (Some(Status::Good), Asked::Register | Asked::Release, _) if self.counted < ROUNDS => {
                Asked::Reserve
            }
            (Some(Status::Good), Asked::Release, _) => Asked::Nothing,
            (Some(Status::Good), Asked::Reserve, _) => Asked::Read,
            (Some(Status::Good), Asked::Read, _) => Asked::Write,
            (Some(Status::Good), Asked::Write, way) => {
                self.counted += 1;
                match way {
                    Way::Reserve => Asked::Release,
                    Way::Compare if self.counted < ROUNDS => Asked::Read,
                    Way::Compare => Asked::Nothing,
                }
            }
            other => panic!("{other:?} {ended:?}"),
        }
    }

    /// The target's end of it.
    fn serve(&mut self, bytes: &[u8], disk: &mut Disk) {
        let mut input = bytes;
        let port = UnitPort { target: TARGET, group: 1, relative: 1, states: &[] };
        while let Some(arrival) =
            self.session.receive(0, &mut input, &mut self.wires[1]).expect("it is right")
        {
            match arrival {
                Arrival::Command(task, command) => {
                    let sent = if command.writes { command.expected_bytes } else { 0 };
                    let step = disk.unit.begin(self.nexus, &command.cdb, sent, port);
                    let wanted = if matches!(step, Step::Answer(_)) { 0 } else { sent };
                    let expected = self.session.expect(task, wanted, &mut self.wires[1]);
                    let is_ready = expected == Expectation::Met || matches!(step, Step::Answer(_));
                    let data = vec![0; wanted as usize];
                    self.open.insert(task, (command, step, data, is_ready));
                }
                Arrival::Data(task, offset, bytes) => {
                    let at = offset as usize;
                    let open = self.open.get_mut(&task).expect("it is open");
                    open.2[at..at + bytes.len()].copy_from_slice(bytes);
                }
                Arrival::AllData(task, result) => {
                    assert_eq!(result, Ok(()));
                    // Answered already, if its data was not wanted.
                    if let Some(open) = self.open.get_mut(&task) {
                        open.3 = true;
                    }
                }
                other => panic!("nobody asks for {other:?}"),
            }
        }
    }

    /// Does what is there to be done.
    fn work(&mut self, disk: &mut Disk) {
        let ready = self.open.iter().find(|(_, open)| open.3).map(|(task, _)| *task);
        let Some(task) = ready else { return };
        let (command, mut step, data, _) = self.open.remove(&task).expect("it is there");
        if let Step::Parameters(command, _) = step {
            step = disk.unit.parameters(self.nexus, &command, &data);
        }
        let out = &mut self.wires[1];
        let outcome = match step {
            Step::Answer(outcome) => outcome,
            Step::Device(plan) => {
                let result = match plan.operation {
                    Operation::Read => {
                        let about = plan.about_bytes;
                        return self.session.send_data(task, &disk.block, about, out);
                    }
                    Operation::CompareAndWrite { .. } => {
                        let (old, new) = data.split_at(BLOCK);
                        compare(&disk.block, old).map(|()| disk.block.copy_from_slice(new))
                    }
                    _ => {
                        disk.block.copy_from_slice(&data);
                        Ok(())
                    }
                };
                result.map_or_else(Outcome::check, |()| Outcome::good(plan.about_bytes))
            }
            other => panic!("{other:?}"),
        };
        let sense = outcome.sense.map(|sense: Sense| sense.write(false)).unwrap_or_default();
        assert!(command.expected_bytes < 4096);
        self.session.respond(task, outcome.status, &sense, outcome.about_bytes, out);
    }
}

/// Commands that were refused because the other initiator was there first.
fn count(seed: u64, way: Way) -> usize {
    let mut draw = Draw(seed * 2 + 1);
    let unit = LogicalUnit::new(unit_data(), PersistentReservations::new(false));
    let mut disk = Disk { unit, block: block_of(0) };
    let mut sides = [1, 2].map(|number| Side::new(number, way, &mut disk));
    while !sides.iter().all(Side::is_done) {
        let side = &mut sides[draw.below(2)];
        side.ask();
        let bytes = std::mem::take(&mut side.wires[0]);
        let cut = draw.below(bytes.len() + 1);
        side.serve(&bytes[..cut], &mut disk);
        side.wires[0].splice(..0, bytes[cut..].iter().copied());
        if draw.below(2) == 0 {
            side.work(&mut disk);
        }
        let bytes = std::mem::take(&mut side.wires[1]);
        let cut = if draw.below(2) == 0 { bytes.len() } else { 0 };
        side.wires[1] = bytes[cut..].to_vec();
        side.hear(&bytes[..cut]);
    }
    assert!(disk.block == block_of(2 * ROUNDS), "seed {seed}: nothing is counted twice, or lost");
    sides.iter().map(|side| side.refused).sum()
}

#[test]
fn compare_and_write_counts_for_two() {
    let refused: usize = (0..500).map(|seed| count(seed, Way::Compare)).sum();
    assert!(refused > 500, "they are in one another's way: {refused}");
}

#[test]
fn a_reservation_keeps_the_other_out() {
    let refused: usize = (0..500).map(|seed| count(seed, Way::Reserve)).sum();
    assert!(refused > 500, "they are in one another's way: {refused}");
}
