//! Whether reservations and the port's access state allow a command.

use reservations::Access;

use super::cdb::Command;
use super::ports::PortState;
use super::sense::Sense;

/// The access that reservations check for a command (SPC-4 5.13.1, SBC-3 4.18); `None` if they
/// never bar it.
pub(super) const fn access(command: &Command) -> Option<Access> {
    match command {
        Command::TestUnitReady
        | Command::RequestSense { .. }
        | Command::Inquiry { .. }
        | Command::ReportLuns { .. }
        | Command::ReportPortGroups { .. }
        | Command::LogSense { .. }
        | Command::ReadCapacity
        | Command::ReadCapacityLong { .. }
        | Command::StartStopUnit { .. }
        | Command::ReservationIn { .. }
        | Command::ReservationOut { .. }
        | Command::Reserve
        | Command::Release => None,
        Command::ModeSense { .. }
        | Command::GetLbaStatus { .. }
        | Command::Read(_)
        | Command::Verify { .. }
        | Command::PreFetch(_)
        | Command::ReportOpcodes { .. }
        | Command::ReportManagementFunctions { .. } => Some(Access::Read),
        Command::ModeSelect { .. }
        | Command::SendDiagnostic
        | Command::Write(_)
        | Command::WriteAndVerify { .. }
        | Command::SynchronizeCache(_)
        | Command::WriteSame { .. }
        | Command::Unmap { .. }
        | Command::CompareAndWrite(_)
        | Command::OrWrite(_)
        | Command::WriteAtomic(_) => Some(Access::Write),
    }
}

/// Checks that a port in this state lets a command through.
///
/// Commands that report units and ports always pass; in standby further ones that access no blocks
/// do (SPC-4 5.15.2.4), so that an initiator can prepare the path.
///
/// # Errors
/// The sense with which the command ends.
pub(super) const fn reaches(state: PortState, command: &Command) -> Result<(), Sense> {
    match command {
        Command::Inquiry { .. }
        | Command::ReportLuns { .. }
        | Command::RequestSense { .. }
        | Command::ReportPortGroups { .. } => Ok(()),
        Command::ModeSense { .. }
        | Command::ModeSelect { .. }
        | Command::LogSense { .. }
        | Command::SendDiagnostic
        | Command::ReadCapacity
        | Command::ReadCapacityLong { .. }
        | Command::ReportOpcodes { .. }
        | Command::ReportManagementFunctions { .. }
        | Command::ReservationIn { .. }
        | Command::ReservationOut { .. }
            if matches!(state, PortState::Standby) =>
        {
            Ok(())
        }
        _ => state.check(),
    }
}
