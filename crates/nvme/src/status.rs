//! How a command ended (Base 4.2.3).

use std::fmt;

/// The status field of a completion: status code type, status code, "do not retry".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Status(u16);

const DNR: u16 = 1 << 14;

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $type:literal, $code:literal;)*) => {
        impl Status {
            $($(#[$doc])* pub const $name: Self = Self($type << 8 | $code);)*

            const fn name(self) -> Option<&'static str> {
                match self.0 & !DNR {
                    $(bits if bits == Self::$name.0 => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    /// It was done.
    SUCCESS = 0, 0x00;
    /// There is no such command.
    INVALID_OPCODE = 0, 0x01;
    /// A field has a value that is not supported.
    INVALID_FIELD = 0, 0x02;
    /// The identifier is in use on its queue.
    COMMAND_ID_CONFLICT = 0, 0x03;
    /// Data could not be moved.
    DATA_TRANSFER_ERROR = 0, 0x04;
    /// Something inside failed.
    INTERNAL_ERROR = 0, 0x06;
    /// It was aborted at the host's wish.
    ABORTED_BY_REQUEST = 0, 0x07;
    /// Its queue was deleted.
    ABORTED_QUEUE_DELETION = 0, 0x08;
    /// The other of two fused commands failed.
    ABORTED_FAILED_FUSED = 0, 0x09;
    /// The other of two fused commands is not there.
    ABORTED_MISSING_FUSED = 0, 0x0a;
    /// There is no such namespace, or it cannot be used so.
    INVALID_NAMESPACE = 0, 0x0b;
    /// It may not come now.
    SEQUENCE_ERROR = 0, 0x0c;
    /// A descriptor says how long it is, and that cannot be.
    INVALID_SGL_DESCRIPTOR_COUNT = 0, 0x0e;
    /// Data that is shorter or longer than what the command is about.
    SGL_LENGTH_INVALID = 0, 0x0f;
    /// A kind of descriptor that is not used here.
    SGL_TYPE_INVALID = 0, 0x11;
    /// An offset that is outside, or not where data may begin.
    SGL_OFFSET_INVALID = 0, 0x16;
    /// More than what is written all or not at all.
    ATOMIC_UNIT_EXCEEDED = 0, 0x14;
    /// Identifiers of a host do not fit together.
    HOST_ID_INCONSISTENT = 0, 0x18;
    /// The keep-alive timer ran out.
    KEEP_ALIVE_EXPIRED = 0, 0x19;
    /// It was aborted because another command preempted it.
    ABORTED_PREEMPT = 0, 0x1b;
    /// The namespace is not to be written.
    NAMESPACE_WRITE_PROTECTED = 0, 0x20;
    /// Data did not arrive as it was sent; worth another try.
    TRANSIENT_TRANSPORT_ERROR = 0, 0x22;
    /// Blocks beyond the end.
    LBA_OUT_OF_RANGE = 0, 0x80;
    /// No room left.
    CAPACITY_EXCEEDED = 0, 0x81;
    /// The namespace is not ready.
    NAMESPACE_NOT_READY = 0, 0x82;
    /// Another host has it reserved.
    RESERVATION_CONFLICT = 0, 0x83;
    /// As many commands are being aborted as may be.
    ABORT_LIMIT = 1, 0x03;
    /// As many event requests are outstanding as there may be.
    ASYNC_EVENT_LIMIT = 1, 0x05;
    /// There is no such log page.
    INVALID_LOG_PAGE = 1, 0x09;
    /// The value of a feature does not outlast a reset.
    FEATURE_NOT_SAVEABLE = 1, 0x0d;
    /// A feature has the one value that it can have.
    FEATURE_NOT_CHANGEABLE = 1, 0x0e;
    /// There is no such controller, or it is not this host's.
    INVALID_CONTROLLER = 1, 0x1f;
    /// The controller that is to be reset has not come to rest yet (Base 2.3).
    RESET_IN_PROGRESS = 1, 0x3f;
    /// As many controllers are being reset as may be (Base 2.3).
    RESET_LIMIT = 1, 0x41;
    /// Format of Connect's data that is not supported (Fabrics).
    CONNECT_INCOMPATIBLE_FORMAT = 1, 0x80;
    /// The controller has a host (Fabrics).
    CONNECT_CONTROLLER_BUSY = 1, 0x81;
    /// Connect's parameters cannot be (Fabrics); the result says which.
    CONNECT_INVALID_PARAMETERS = 1, 0x82;
    /// Try discovery again (Fabrics).
    CONNECT_RESTART_DISCOVERY = 1, 0x83;
    /// This host may not (Fabrics).
    CONNECT_INVALID_HOST = 1, 0x84;
    /// The type of queue cannot be deleted or disconnected (Fabrics).
    INVALID_QUEUE_TYPE = 1, 0x85;
    /// Who asks must say who it is first (Fabrics).
    AUTHENTICATION_REQUIRED = 1, 0x91;
    /// The data could not be written.
    WRITE_FAULT = 2, 0x80;
    /// The data could not be read.
    UNRECOVERED_READ_ERROR = 2, 0x81;
    /// The data is not what it was compared with.
    COMPARE_FAILURE = 2, 0x85;
    /// Nothing was ever written there.
    DEALLOCATED_BLOCK = 2, 0x87;
    /// The path is gone; there may be another.
    PATH_INTERNAL_ERROR = 3, 0x00;
    /// This path cannot be used, and will not be.
    ANA_PERSISTENT_LOSS = 3, 0x01;
    /// This path cannot be used now.
    ANA_INACCESSIBLE = 3, 0x02;
    /// Whether this path can be used is being changed.
    ANA_TRANSITION = 3, 0x03;
}

impl Status {
    /// The same, and another try would not help.
    #[must_use]
    pub const fn do_not_retry(self) -> Self {
        Self(self.0 | DNR)
    }

    /// The same without "do not retry".
    #[must_use]
    pub const fn cause(self) -> Self {
        Self(self.0 & !DNR)
    }

    /// Whether the command was done.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 & 0x7ff == 0
    }

    /// Whether another try would not help.
    #[must_use]
    pub const fn is_final(self) -> bool {
        self.0 & DNR != 0
    }

    /// Whether it is about the path, not about what was asked: that was not done, and may be asked
    /// over another (status code type 3h).
    #[must_use]
    pub const fn is_of_path(self) -> bool {
        self.0 >> 8 & 7 == 3
    }

    /// The fifteen bits of the status field, without phase tag.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The status with these fifteen bits.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & 0x7fff)
    }

    /// Whether both are the same but for what they say of another try.
    #[must_use]
    pub const fn is(self, other: Self) -> bool {
        self.0 & 0x7ff == other.0 & 0x7ff
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name)?,
            None => write!(f, "{:x}h/{:02x}h", self.0 >> 8 & 7, self.0 & 0xff)?,
        }
        if self.is_final() { f.write_str(" (do not retry)") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_where_the_specification_has_them() {
        assert_eq!(Status::LBA_OUT_OF_RANGE.bits(), 0x080);
        assert_eq!(Status::CONNECT_INVALID_PARAMETERS.bits(), 0x182);
        assert_eq!(Status::ANA_INACCESSIBLE.do_not_retry().bits(), 0x4302);
        assert!(Status::SUCCESS.is_success() && !Status::COMPARE_FAILURE.is_success());
        assert!(Status::INVALID_FIELD.do_not_retry().is(Status::INVALID_FIELD));
        assert_eq!(format!("{:?}", Status::from_bits(0x4001)), "INVALID_OPCODE (do not retry)");
        assert_eq!(format!("{:?}", Status::from_bits(0x7fe)), "7h/feh");
        assert!(Status::ANA_TRANSITION.do_not_retry().is_of_path());
        assert!(!Status::SUCCESS.is_of_path() && !Status::from_bits(0x700).is_of_path());
    }
}
