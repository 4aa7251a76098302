//! What a command needs: that no reservation bars it, and that a port lets it through.

use reservations::Access;

use super::cdb::Command;
use super::ports::PortState;
use super::sense::Sense;

/// What others than the holder of a reservation may not do (SPC-4 5.13.1, SBC-3 4.18); `None` if
/// anybody may.
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

/// Whether a command is carried out that has come through a port in this state.
///
/// Who asks what there is, and through which ports, is answered always; in standby others may be
/// (SPC-4 5.15.2.4), and are if they read and write nothing: so a path is known for what it will
/// be.
///
/// # Errors
/// What it ends with.
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
