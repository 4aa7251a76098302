//! A logical unit: its state, and how it executes commands.
//!
//! ```text
//! begin ─► reserved? ─► attention? ─► a command? ─► answer, parameters, or what a device does
//! ```
//!
//! Invariants:
//! - A command that is not executed has changed nothing, except that it may have taken a unit
//!   attention.
//! - An initiator gets a unit attention once, before any of its commands is executed.

use std::collections::BTreeMap;

use reservations::Access;

use super::attention::{Attention, Attentions};
use super::cdb::Command;
use super::demands::{access, reaches};
use super::inquiry::{UnitData, UnitPort};
use super::layout::cdb::{OPERATION_CODE, blocks, mode_select, start_stop};
use super::layout::report::management;
use super::mode::{self, Asked, ModeState};
use super::opcodes;
use super::outcome::{Nexus, Outcome, Step};
use super::plan::{self, unmap_ranges};
use super::ports;
use super::reservation::{self, Elsewhere, Out, PARAMETER_BYTES, PersistentReservations, Way};
use super::sense::{Sense, Status};

/// How a logical unit was reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetKind {
    /// As after power on.
    PowerOn,
    /// At an initiator's request.
    Wish,
}

/// An attached initiator.
#[derive(Debug)]
struct Seen {
    way: Way,
    attentions: Attentions,
}

/// See the module's description.
#[derive(Debug)]
pub struct LogicalUnit {
    data: UnitData,
    mode: ModeState,
    reservations: PersistentReservations,
    /// Whether reservations have changed and have to be stored.
    is_unsaved: bool,
    /// The holder of a RESERVE(6) reservation.
    reserved: Option<Nexus>,
    elsewhere: Elsewhere,
    seen: BTreeMap<Nexus, Seen>,
}

impl LogicalUnit {
    /// A logical unit with stored reservations.
    #[must_use]
    pub const fn new(data: UnitData, reservations: PersistentReservations) -> Self {
        Self {
            data,
            mode: ModeState { has_descriptors: false, is_write_protected: false },
            reservations,
            is_unsaved: false,
            reserved: None,
            elsewhere: Elsewhere {
                has_registrants: false,
                bars_reading: false,
                bars_writing: false,
            },
            seen: BTreeMap::new(),
        }
    }

    /// Its description.
    #[must_use]
    pub const fn unit_data(&self) -> &UnitData {
        &self.data
    }

    /// Whether sense data has descriptor format, for [`Sense::write`].
    #[must_use]
    pub const fn has_descriptors(&self) -> bool {
        self.mode.has_descriptors
    }

    /// Takes its reservations as text, if they have changed and have to be stored: the command that
    /// has changed them is answered afterwards.
    pub fn unsaved(&mut self) -> Option<String> {
        std::mem::take(&mut self.is_unsaved).then(|| self.reservations.write())
    }

    /// Its persistent reservations.
    #[must_use]
    pub const fn reservations(&self) -> &PersistentReservations {
        &self.reservations
    }

    /// Restores reservations whose change could not be stored. Unit attentions that the change has
    /// raised stay pending.
    pub fn restore(&mut self, reservations: PersistentReservations) {
        self.reservations = reservations;
        self.is_unsaved = false;
    }

    /// Sets the effect of reservations through the other protocol.
    pub const fn set_elsewhere(&mut self, elsewhere: Elsewhere) {
        self.elsewhere = elsewhere;
    }

    /// The effect of initiators' reservations on the other protocol.
    #[must_use]
    pub fn held(&self) -> Elsewhere {
        let held = self.reservations.held_for_strangers();
        let is_reserved = self.reserved.is_some();
        Elsewhere {
            has_registrants: held.has_registrants || is_reserved,
            bars_reading: held.bars_reading || is_reserved,
            bars_writing: held.bars_writing || is_reserved,
        }
    }

    /// Whether reads and writes of an initiator need no further checks until the unit changes:
    /// [`super::read_write`] then makes their plans.
    #[must_use]
    pub fn is_clear(&self, nexus: Nexus) -> bool {
        let has_none = |one: &Seen| one.attentions.is_empty();
        let is_held = self.reserved.is_some()
            || !self.reservations.is_free()
            || self.elsewhere != Elsewhere::default();
        let is_usual = self.is_writable().is_ok() && !self.mode.has_descriptors;
        !is_held && is_usual && self.seen.get(&nexus).is_some_and(has_none)
    }

    /// Whether a reservation of another initiator or protocol bars an initiator from writing now.
    #[must_use]
    pub fn bars_writing(&self, nexus: Nexus) -> bool {
        let is_known = |seen: &Seen| self.reservations.admits(&seen.way, Access::Write);
        self.elsewhere.bars_writing
            || self.reserved.is_some_and(|by| by != nexus)
            || !self.seen.get(&nexus).is_some_and(is_known)
    }

    /// Attaches an initiator, with a unit attention that the logical unit is new to it.
    pub fn attach(&mut self, nexus: Nexus, way: Way) {
        let mut attentions = Attentions::default();
        attentions.raise(Attention::PowerOn);
        self.seen.insert(nexus, Seen { way, attentions });
    }

    /// Detaches an initiator, and releases its RESERVE(6) reservation (SPC-2 5.5.1).
    pub fn detach(&mut self, nexus: Nexus) {
        self.seen.remove(&nexus);
        if self.reserved == Some(nexus) {
            self.reserved = None;
        }
    }

    /// Resets settings and RESERVE(6), with a unit attention for all; persistent reservations stay
    /// (SAM-5 6.3.3).
    pub fn reset(&mut self, kind: ResetKind) {
        self.mode = ModeState::default();
        self.reserved = None;
        self.raise_all(match kind {
            ResetKind::PowerOn => Attention::PowerOn,
            ResetKind::Wish => Attention::Reset,
        });
    }

    /// Sets the size, with a unit attention if it has changed.
    pub fn resize(&mut self, block_count: u64) {
        if self.data.block_count != block_count {
            self.data.block_count = block_count;
            self.raise_all(Attention::CapacityChanged);
        }
    }

    /// Raises a unit attention at all but `nexus`, which has aborted their commands (SAM-5 7.4:
    /// CLEAR TASK SET).
    pub fn commands_cleared(&mut self, nexus: Nexus) {
        self.raise_others(nexus, Attention::CommandsCleared);
    }

    /// Raises a unit attention that states of ports have changed.
    pub fn port_states_changed(&mut self) {
        if self.data.has_port_states() {
            self.raise_all(Attention::PortStatesChanged);
        }
    }

    /// Raises a unit attention that the list of logical units has changed.
    pub fn luns_changed(&mut self) {
        self.raise_all(Attention::LunsChanged);
    }

    // Raises a unit attention at all initiators.
    fn raise_all(&mut self, attention: Attention) {
        self.seen.values_mut().for_each(|one| one.attentions.raise(attention));
    }

    // Raises a unit attention at all initiators but one.
    fn raise_others(&mut self, nexus: Nexus, attention: Attention) {
        let others = self.seen.iter_mut().filter(|(other, _)| **other != nexus);
        others.for_each(|(_, one)| one.attentions.raise(attention));
    }

    /// Begins a command with `sent_bytes` bytes of data, according to its initiator. Returns its
    /// first step.
    pub fn begin(
        &mut self,
        nexus: Nexus,
        cdb: &[u8; 16],
        sent_bytes: u32,
        port: UnitPort<'_>,
    ) -> Step {
        let command = Command::read(cdb, &self.data);
        if command.is_ok_and(|command| self.is_in_conflict(nexus, &command)) {
            return Step::Answer(Outcome::conflict());
        }
        // SAM-5 5.14.1: these commands are executed despite a pending unit attention.
        let is_told = !matches!(OPERATION_CODE.get(cdb), 0x03 | 0x12 | 0xa0);
        let attention = match self.seen.get_mut(&nexus) {
            Some(seen) if is_told => seen.attentions.take(),
            Some(_) => None,
            None => return Step::Answer(Outcome::check(Sense::LOGICAL_UNIT_NOT_SUPPORTED)),
        };
        if let Some(attention) = attention {
            return Step::Answer(Outcome::check(attention.sense()));
        }
        let step = command.and_then(|command| {
            reaches(port.state(), &command)?;
            self.carry_out(nexus, command, cdb, port)
        });
        match step {
            Ok(step) => self.of_sent(step, sent_bytes, cdb),
            Err(sense) => Step::Answer(Outcome::check(sense)),
        }
    }

    // The step for the data that comes, which may be less than the command says.
    fn of_sent(&self, step: Step, sent_bytes: u32, cdb: &[u8; 16]) -> Step {
        let refused = |about_bytes| {
            let outcome = Outcome::check(Sense::INVALID_FIELD_IN_INFORMATION_UNIT);
            Step::Answer(Outcome { about_bytes, ..outcome })
        };
        match step {
            Step::Parameters(_, wanted) if sent_bytes < wanted => refused(u64::from(wanted)),
            Step::Device(plan) => match plan.of_sent(sent_bytes, &self.data) {
                Ok(Some(plan)) => Step::Device(plan),
                Ok(None) => Step::Answer(Outcome::good(plan.about_bytes)),
                Err(_) => refused(plan.about_bytes),
            },
            // COMPARE AND WRITE of 0 blocks with data: the count has only eight bits (SBC-3 5.2).
            Step::Answer(Outcome { status: Status::Good, .. })
                if OPERATION_CODE.get(cdb) == 0x89 && sent_bytes > 0 =>
            {
                Step::Answer(Outcome::check(Sense::wrong(blocks::COMPARE_LENGTH)))
            }
            other => other,
        }
    }

    // Whether a reservation bars the command (SPC-4 5.13.1 and its table of commands, SBC-3 4.18;
    // SPC-2 5.5.1 for RESERVE(6)).
    fn is_in_conflict(&self, nexus: Nexus, command: &Command) -> bool {
        let is_always = matches!(
            command,
            Command::Inquiry { .. } | Command::ReportLuns { .. } | Command::RequestSense { .. }
        );
        let is_old = matches!(command, Command::Reserve | Command::Release);
        if is_always {
            return false;
        }
        // RESERVE(6) and registrants exclude one another (SPC-4 5.13.3: CRH is 0).
        if is_old && self.reservations.has_registrants() {
            return true;
        }
        if self.reserved.is_some_and(|by| by != nexus) {
            return !matches!(command, Command::Release);
        }
        let is_barred = match access(command) {
            Some(Access::Read) => self.elsewhere.bars_reading,
            Some(Access::Write) => self.elsewhere.bars_writing,
            None => matches!(command, Command::Reserve) && self.elsewhere.has_registrants,
        };
        if is_barred || self.reservations.is_free() {
            return is_barred;
        }
        let Some(seen) = self.seen.get(&nexus) else { return false };
        access(command).is_some_and(|access| !self.reservations.admits(&seen.way, access))
    }

    // Executes a command that nothing bars.
    fn carry_out(
        &mut self,
        nexus: Nexus,
        command: Command,
        cdb: &[u8; 16],
        port: UnitPort<'_>,
    ) -> Result<Step, Sense> {
        let data = match command {
            Command::TestUnitReady
            | Command::SendDiagnostic
            | Command::StartStopUnit { starts: true } => Vec::new(),
            // The unit cannot be stopped for one initiator alone.
            Command::StartStopUnit { starts: false } => {
                return Err(Sense::wrong(start_stop::START));
            }
            Command::RequestSense { is_descriptor, allocation } => {
                let attention = self.seen.get_mut(&nexus).and_then(|one| one.attentions.take());
                let sense = attention.map_or(Sense::NONE, Attention::sense);
                cut(sense.write(is_descriptor), allocation)
            }
            Command::Inquiry { page: None, allocation } => cut(self.data.inquiry(), allocation),
            Command::Inquiry { page: Some(page), allocation } => {
                cut(self.data.page(page, port)?, allocation)
            }
            Command::ModeSense { is_long, without_blocks, control, page, subpage, allocation } => {
                let asked = Asked { is_long, without_blocks, control, page, subpage };
                cut(mode::sense(self.mode, &self.data, asked)?, allocation)
            }
            Command::ReadCapacity => self.data.capacity().to_vec(),
            Command::ReadCapacityLong { allocation } => {
                cut(self.data.capacity_long().to_vec(), allocation)
            }
            Command::GetLbaStatus { first, allocation } => {
                cut(self.data.lba_status(first)?.to_vec(), allocation)
            }
            Command::ReportPortGroups { is_extended, allocation } => {
                cut(ports::report(port.states, is_extended), allocation)
            }
            Command::ReportOpcodes { asked, has_timeouts, allocation } => {
                cut(opcodes::report(&self.data, asked, has_timeouts)?, allocation)
            }
            Command::ReportManagementFunctions { is_long, allocation } => {
                cut(management_functions(is_long), allocation)
            }
            Command::ReservationIn { action, allocation } => {
                cut(self.reservations.report(action), allocation)
            }
            Command::Reserve => {
                self.reserved = Some(nexus);
                Vec::new()
            }
            Command::Release => {
                self.reserved = self.reserved.filter(|by| *by != nexus);
                Vec::new()
            }
            Command::ReportLuns { select, allocation } => {
                if let Some(seen) = self.seen.get_mut(&nexus) {
                    seen.attentions.clear(Attention::LunsChanged);
                }
                return Ok(Step::ReportLuns { select, allocation });
            }
            Command::LogSense { asked, allocation } => return Ok(Step::Log { asked, allocation }),
            Command::ModeSelect { .. } | Command::ReservationOut { .. } | Command::Unmap { .. } => {
                return self.wants_parameters(command);
            }
            _ => return self.block(command, cdb),
        };
        Ok(Step::Answer(Outcome::data(data)))
    }

    // The step of a command with a parameter list.
    fn wants_parameters(&self, command: Command) -> Result<Step, Sense> {
        let length = match command {
            // Vendor-specific pages and saved pages are not supported (SPC-4 6.9).
            Command::ModeSelect { has_pages: false, .. } => {
                return Err(Sense::wrong(mode_select::PF));
            }
            Command::ModeSelect { saves: true, .. } => {
                return Err(Sense::wrong(mode_select::SP));
            }
            Command::ModeSelect { length, .. } => length,
            // A longer list of a REGISTER action is checked when it has come: it may set SPEC_I_PT.
            Command::ReservationOut { action, length, .. }
                if length < PARAMETER_BYTES
                    || length > PARAMETER_BYTES && !Out::registers(action) =>
            {
                return Err(Sense::PARAMETER_LIST_LENGTH);
            }
            Command::ReservationOut { .. } => PARAMETER_BYTES,
            Command::Unmap { length } => {
                self.is_writable()?;
                length
            }
            _ => 0,
        };
        Ok(Step::Parameters(command, length))
    }

    /// Continues a command with its parameter list. Returns the next step.
    pub fn parameters(&mut self, nexus: Nexus, command: &Command, data: &[u8]) -> Step {
        let length = data.len() as u64;
        match *command {
            Command::ModeSelect { is_long, .. } => {
                match mode::select(self.mode, &self.data, is_long, data) {
                    Ok(state) => {
                        if state != self.mode {
                            self.mode = state;
                            self.raise_others(nexus, Attention::ModeChanged);
                        }
                        Step::Answer(Outcome::good(length))
                    }
                    Err(sense) => Step::Answer(Outcome::check(sense)),
                }
            }
            Command::Unmap { .. } => match unmap_ranges(data, &self.data) {
                Ok(ranges) if ranges.is_empty() => Step::Answer(Outcome::good(length)),
                Ok(ranges) => Step::Unmap(ranges),
                Err(sense) => Step::Answer(Outcome::check(sense)),
            },
            Command::ReservationOut { action, scope, kind, length } => {
                self.reserve(nexus, Out { action, scope, kind, length }, data)
            }
            _ => Step::Answer(Outcome::good(length)),
        }
    }

    // Executes PERSISTENT RESERVE OUT.
    fn reserve(&mut self, nexus: Nexus, out: Out, data: &[u8]) -> Step {
        let Some(seen) = self.seen.get(&nexus) else { return Step::Answer(Outcome::conflict()) };
        // Another initiator or host may have reserved the unit while the parameter list came.
        if self.reserved.is_some_and(|by| by != nexus) || self.elsewhere.has_registrants {
            return Step::Answer(Outcome::conflict());
        }
        let way = seen.way.clone();
        let was_kept = self.reservations.persists();
        let changes = match self.reservations.change(&way, out, data, self.data.ports) {
            Ok(changes) => changes,
            Err(outcome) => return Step::Answer(outcome),
        };
        self.is_unsaved |= was_kept || self.reservations.persists();
        let mut aborted = Vec::new();
        for (who, change) in changes {
            let meant = self.seen.iter_mut().filter(|(_, one)| one.way == who);
            for (other, one) in meant {
                one.attentions.raise(reservation::attention(change));
                if out.action == 0x05 && !self.reservations.knows(&who) {
                    aborted.push(*other);
                }
            }
        }
        let outcome = Outcome::good(data.len() as u64);
        if aborted.is_empty() { Step::Answer(outcome) } else { Step::Abort(aborted, outcome) }
    }

    // The step of a block command. A length of 0 is no error (SBC-3 5).
    fn block(&self, command: Command, cdb: &[u8; 16]) -> Result<Step, Sense> {
        let plan = plan::plan(command, cdb, &self.data)?;
        if plan.is_some_and(|plan| plan.operation.writes()) {
            self.is_writable()?;
        }
        Ok(plan.map_or_else(|| Step::Answer(Outcome::good(0)), Step::Device))
    }

    // Fails if the unit is write-protected.
    fn is_writable(&self) -> Result<(), Sense> {
        match (self.data.is_read_only, self.mode.is_write_protected) {
            (true, _) => Err(Sense::WRITE_PROTECTED),
            (false, true) => Err(Sense::SOFTWARE_WRITE_PROTECTED),
            (false, false) => Ok(()),
        }
    }
}

// The data of REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS.
fn management_functions(is_long: bool) -> Vec<u8> {
    use management::*;
    let mut data = vec![0; if is_long { EXTENDED_BYTES } else { BYTES }];
    for function in [ATS, ATSS, CTSS, LURS, TRS] {
        function.put(&mut data, true);
    }
    let length = u8::try_from(data.len() - BYTES).unwrap_or(u8::MAX);
    ADDITIONAL_LENGTH.put(&mut data, length);
    data
}

// Cuts data to the allocation length.
fn cut(mut data: Vec<u8>, allocation: u32) -> Vec<u8> {
    data.truncate(usize::try_from(allocation).unwrap_or(usize::MAX));
    data
}
