//! The status of a command (Base 4.2.3).

use std::fmt;

/// The status field of a completion: status code type, status code, "do not retry".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Status(u16);

const DNR: u16 = 1 << 14;

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $type:literal, $code:literal;)*) => {
        impl Status {
            $($(#[$doc])* pub const $name: Self = Self($type << 8 | $code);)*

            // The name of the constant with this status, if any.
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
    /// The command succeeded.
    SUCCESS = 0, 0x00;
    /// The command is not supported.
    INVALID_OPCODE = 0, 0x01;
    /// A field has a value that is not supported.
    INVALID_FIELD = 0, 0x02;
    /// The CID is in use on its queue.
    COMMAND_ID_CONFLICT = 0, 0x03;
    /// Data could not be transferred.
    DATA_TRANSFER_ERROR = 0, 0x04;
    /// An internal error.
    INTERNAL_ERROR = 0, 0x06;
    /// The host has aborted the command.
    ABORTED_BY_REQUEST = 0, 0x07;
    /// The command's queue was deleted.
    ABORTED_QUEUE_DELETION = 0, 0x08;
    /// The other of two fused commands failed.
    ABORTED_FAILED_FUSED = 0, 0x09;
    /// The other of two fused commands is missing.
    ABORTED_MISSING_FUSED = 0, 0x0a;
    /// The namespace or its format is invalid for the command.
    INVALID_NAMESPACE = 0, 0x0b;
    /// The command is not allowed now.
    SEQUENCE_ERROR = 0, 0x0c;
    /// The number of SGL descriptors is invalid.
    INVALID_SGL_DESCRIPTOR_COUNT = 0, 0x0e;
    /// The length of the data does not fit the command.
    SGL_LENGTH_INVALID = 0, 0x0f;
    /// The type of an SGL descriptor is not supported.
    SGL_TYPE_INVALID = 0, 0x11;
    /// The offset of an SGL descriptor is invalid.
    SGL_OFFSET_INVALID = 0, 0x16;
    /// The command exceeds the atomic write unit.
    ATOMIC_UNIT_EXCEEDED = 0, 0x14;
    /// The formats of host identifiers are inconsistent.
    HOST_ID_INCONSISTENT = 0, 0x18;
    /// The keep-alive timer ran out.
    KEEP_ALIVE_EXPIRED = 0, 0x19;
    /// The command was aborted by Preempt and Abort.
    ABORTED_PREEMPT = 0, 0x1b;
    /// The namespace is write-protected.
    NAMESPACE_WRITE_PROTECTED = 0, 0x20;
    /// Data was damaged in transit; a retry may succeed.
    TRANSIENT_TRANSPORT_ERROR = 0, 0x22;
    /// Blocks are beyond the end of the namespace.
    LBA_OUT_OF_RANGE = 0, 0x80;
    /// No space is left.
    CAPACITY_EXCEEDED = 0, 0x81;
    /// The namespace is not ready.
    NAMESPACE_NOT_READY = 0, 0x82;
    /// A reservation bars the command.
    RESERVATION_CONFLICT = 0, 0x83;
    /// Too many Aborts are outstanding.
    ABORT_LIMIT = 1, 0x03;
    /// Too many event requests are outstanding.
    ASYNC_EVENT_LIMIT = 1, 0x05;
    /// The log page is not supported.
    INVALID_LOG_PAGE = 1, 0x09;
    /// The feature's value cannot be saved.
    FEATURE_NOT_SAVEABLE = 1, 0x0d;
    /// The feature's value cannot be changed.
    FEATURE_NOT_CHANGEABLE = 1, 0x0e;
    /// The controller does not exist, or belongs to another host.
    INVALID_CONTROLLER = 1, 0x1f;
    /// The reset of another controller is still in progress (Base 2.3).
    RESET_IN_PROGRESS = 1, 0x3f;
    /// Too many controllers are being reset (Base 2.3).
    RESET_LIMIT = 1, 0x41;
    /// The format of Connect's data is not supported (Fabrics).
    CONNECT_INCOMPATIBLE_FORMAT = 1, 0x80;
    /// The controller is busy, or has another host (Fabrics).
    CONNECT_CONTROLLER_BUSY = 1, 0x81;
    /// A parameter of Connect is invalid (Fabrics); the result gives its offset.
    CONNECT_INVALID_PARAMETERS = 1, 0x82;
    /// The host should repeat discovery (Fabrics).
    CONNECT_RESTART_DISCOVERY = 1, 0x83;
    /// The host is not allowed to connect (Fabrics).
    CONNECT_INVALID_HOST = 1, 0x84;
    /// The type of queue cannot be deleted or disconnected (Fabrics).
    INVALID_QUEUE_TYPE = 1, 0x85;
    /// The host has to authenticate first (Fabrics).
    AUTHENTICATION_REQUIRED = 1, 0x91;
    /// The data could not be written.
    WRITE_FAULT = 2, 0x80;
    /// The data could not be read.
    UNRECOVERED_READ_ERROR = 2, 0x81;
    /// Compared data differs.
    COMPARE_FAILURE = 2, 0x85;
    /// The blocks are deallocated or were never written.
    DEALLOCATED_BLOCK = 2, 0x87;
    /// An internal error of the path; another path may work.
    PATH_INTERNAL_ERROR = 3, 0x00;
    /// The namespace is permanently inaccessible over this path.
    ANA_PERSISTENT_LOSS = 3, 0x01;
    /// The namespace is not accessible over this path now.
    ANA_INACCESSIBLE = 3, 0x02;
    /// The ANA state of this path is in transition.
    ANA_TRANSITION = 3, 0x03;
}

impl Status {
    /// The status with "do not retry" set.
    #[must_use]
    pub const fn do_not_retry(self) -> Self {
        Self(self.0 | DNR)
    }

    /// The status without "do not retry".
    #[must_use]
    pub const fn cause(self) -> Self {
        Self(self.0 & !DNR)
    }

    /// Whether the command succeeded.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 & 0x7ff == 0
    }

    /// Whether "do not retry" is set.
    #[must_use]
    pub const fn is_final(self) -> bool {
        self.0 & DNR != 0
    }

    /// Whether it is a path related status (status code type 3h): the command was not executed, and
    /// may be sent over another path.
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

    /// Whether both are equal apart from "do not retry".
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
