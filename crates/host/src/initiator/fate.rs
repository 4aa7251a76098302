//! The outcome of a SCSI command for its request.
//!
//! A command is done if its status is good and every byte was transferred; anything else is a
//! failure. Failures are NVMe statuses, so that callers need not know the protocol.

use nvme::Status as NvmeStatus;
use scsi::iscsi::Ended;
use scsi::{Residual, Sense, SenseKey, Status};

use backend::Failure;

/// See the module's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    /// It was not done because of a unit attention; it can be sent again.
    Told,
    /// It was not done because the task set is full.
    Full,
    Failed(Failure),
}

/// Sense codes of asymmetric access states (SPC-4 5.15.2): in transition, standby, unavailable.
pub(super) const IN_TRANSITION: u16 = 0x040a;
const STANDBY: u16 = 0x040b;
const UNAVAILABLE: u16 = 0x040c;

/// Whether a not-ready code is about this path, not the logical unit.
pub(super) const fn is_of_path(code: u16) -> bool {
    matches!(code, IN_TRANSITION | STANDBY | UNAVAILABLE)
}

impl Fate {
    /// The fate of an ended command; `has_data` says whether it transfers data.
    pub(super) fn of(ended: &Ended, has_data: bool) -> Self {
        let is_whole = ended.is_intact && (!has_data || ended.residual == Residual::None);
        let key = ended.sense.map(|sense| sense.key);
        match (ended.status, key) {
            // SPC-4 4.5.6: a command with a recovered error was done, too.
            (Some(Status::Good), _)
            | (Some(Status::CheckCondition), Some(SenseKey::RecoveredError)) => {
                if is_whole {
                    Self::Done
                } else {
                    refused(NvmeStatus::TRANSIENT_TRANSPORT_ERROR)
                }
            }
            (Some(Status::CheckCondition), _) => checked(ended.sense),
            (Some(Status::TaskSetFull), _) => Self::Full,
            (Some(Status::ReservationConflict), _) => {
                refused(NvmeStatus::RESERVATION_CONFLICT.do_not_retry())
            }
            (Some(Status::TaskAborted), _) => refused(NvmeStatus::ABORTED_BY_REQUEST),
            (Some(Status::Busy | Status::AcaActive), _) => refused(NvmeStatus::NAMESPACE_NOT_READY),
            (Some(Status::ConditionMet) | None, _) => refused(NvmeStatus::INTERNAL_ERROR),
        }
    }
}

/// The failure of a command that a logical unit does not support.
pub(super) const IMPOSSIBLE: Failure =
    Failure::Refused(NvmeStatus::INVALID_OPCODE.do_not_retry().bits());
/// The failure of a command that was not accepted after all tries.
pub(super) const NOT_READY: Failure = Failure::Refused(NvmeStatus::NAMESPACE_NOT_READY.bits());

// The fate of a command that failed as with this NVMe status.
const fn refused(status: NvmeStatus) -> Fate {
    Fate::Failed(Failure::Refused(status.bits()))
}

// The fate of a command that ended with CHECK CONDITION.
fn checked(sense: Option<Sense>) -> Fate {
    // The sense data is missing or damaged.
    let Some(Sense { key, code, .. }) = sense else {
        return refused(NvmeStatus::INTERNAL_ERROR);
    };
    match key {
        SenseKey::UnitAttention => Fate::Told,
        SenseKey::NotReady => refused(match code {
            IN_TRANSITION => NvmeStatus::ANA_TRANSITION,
            STANDBY | UNAVAILABLE => NvmeStatus::ANA_INACCESSIBLE,
            _ => NvmeStatus::NAMESPACE_NOT_READY,
        }),
        SenseKey::MediumError | SenseKey::BlankCheck => Fate::Failed(Failure::Medium),
        SenseKey::DataProtect if code == Sense::SPACE_ALLOCATION_FAILED.code => {
            Fate::Failed(Failure::NoSpace)
        }
        SenseKey::DataProtect => Fate::Failed(Failure::WriteProtected),
        SenseKey::IllegalRequest => match code {
            _ if code == Sense::LBA_OUT_OF_RANGE.code => Fate::Failed(Failure::OutOfRange),
            _ if code == Sense::INVALID_OPCODE.code => {
                refused(NvmeStatus::INVALID_OPCODE.do_not_retry())
            }
            _ if code == Sense::LOGICAL_UNIT_NOT_SUPPORTED.code => {
                refused(NvmeStatus::INVALID_NAMESPACE.do_not_retry())
            }
            _ => refused(NvmeStatus::INVALID_FIELD.do_not_retry()),
        },
        SenseKey::AbortedCommand => refused(NvmeStatus::TRANSIENT_TRANSPORT_ERROR),
        SenseKey::Miscompare => refused(NvmeStatus::COMPARE_FAILURE.do_not_retry()),
        SenseKey::HardwareError | SenseKey::NoSense | SenseKey::RecoveredError => {
            refused(NvmeStatus::INTERNAL_ERROR)
        }
    }
}

#[cfg(test)]
mod tests {
    use scsi::iscsi::Tag;

    use super::*;

    fn good() -> Ended {
        let (status, residual) = (Some(Status::Good), Residual::None);
        Ended { tag: Tag(1), status, sense: None, residual, is_intact: true }
    }

    fn with(key: SenseKey, code: u16) -> Fate {
        let (status, sense) = (Some(Status::CheckCondition), Some(Sense::new(key, code)));
        Fate::of(&Ended { status, sense, ..good() }, true)
    }

    #[test]
    fn only_what_is_certain_is_done() {
        assert_eq!(Fate::of(&good(), true), Fate::Done);
        let again = refused(NvmeStatus::TRANSIENT_TRANSPORT_ERROR);
        assert_eq!(Fate::of(&Ended { is_intact: false, ..good() }, true), again);
        for residual in [Residual::Underflow(1), Residual::Overflow(1)] {
            let ended = Ended { residual, ..good() };
            assert_eq!(Fate::of(&ended, true), again);
            assert_eq!(Fate::of(&ended, false), Fate::Done, "there was nothing to move");
        }
        let unknown = refused(NvmeStatus::INTERNAL_ERROR);
        for status in [None, Some(Status::ConditionMet), Some(Status::CheckCondition)] {
            assert_eq!(Fate::of(&Ended { status, ..good() }, true), unknown);
        }
        assert_eq!(with(SenseKey::RecoveredError, 0x1700), Fate::Done);
        assert_eq!(with(SenseKey::NoSense, 0), unknown);
    }

    #[test]
    fn failures_are_those_of_nvme() {
        assert_eq!(with(SenseKey::UnitAttention, 0x2900), Fate::Told);
        for (sense, failure) in [
            (Sense::UNRECOVERED_READ_ERROR, Failure::Medium),
            (Sense::WRITE_ERROR, Failure::Medium),
            (Sense::LBA_OUT_OF_RANGE, Failure::OutOfRange),
            (Sense::WRITE_PROTECTED, Failure::WriteProtected),
            (Sense::SPACE_ALLOCATION_FAILED, Failure::NoSpace),
        ] {
            assert_eq!(with(sense.key, sense.code), Fate::Failed(failure));
        }
        let status = |fate| match fate {
            Fate::Failed(Failure::Refused(bits)) => NvmeStatus::from_bits(bits),
            other => panic!("{other:?}"),
        };
        let Sense { key, code, .. } = Sense::INVALID_FIELD_IN_CDB;
        assert!(status(with(key, code)).is_final(), "asked again it would be no better");
        assert!(!status(with(SenseKey::AbortedCommand, 0x4705)).is_final());
        assert!(status(with(SenseKey::NotReady, 0x040b)).is_of_path());
        assert!(!status(with(SenseKey::NotReady, 0x0401)).is_of_path());
        let conflict = Ended { status: Some(Status::ReservationConflict), ..good() };
        let conflict = status(Fate::of(&conflict, true));
        assert!(conflict.is(NvmeStatus::RESERVATION_CONFLICT) && conflict.is_final());
    }
}
