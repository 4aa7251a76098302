//! Why a host cannot reach a disk.

use std::io::ErrorKind;

use nvme::Status;

/// Why a host cannot reach a namespace.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The network has failed.
    #[error("{operation}: {}", unanswered(source))]
    Network {
        /// What was being done.
        operation: &'static str,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The controller refuses a command.
    #[error("{operation}: the controller answers {status:?}")]
    Refused {
        /// The purpose of the command.
        operation: &'static str,
        /// Its status.
        status: Status,
    },
    /// The target refuses the login (RFC 7143 11.13.5).
    #[error("log in to the target: {}", login_text(*status))]
    Login {
        /// Status class and detail.
        status: u16,
    },
    /// An answer violates the protocol or is not what was requested.
    #[error("{operation}: {reason}")]
    Protocol {
        /// What was being done.
        operation: &'static str,
        /// What is wrong.
        reason: String,
    },
}

impl HostError {
    /// What the user can do when a disk cannot be reached, after a semicolon; empty where the
    /// message itself says that.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Network { source, .. } if source.kind() == ErrorKind::UnexpectedEof => {
                "; check that the port is one of this protocol: NVMe/TCP usually has 4420, iSCSI \
                 3260"
            }
            Self::Network { source, .. } if is_silence(source) => {
                "; something listens there that is no target of this protocol, or a firewall is in \
                 between"
            }
            Self::Network { .. } => "; check the address, and that a target listens there",
            Self::Protocol { reason, .. } if reason.ends_with(" is not there") => {
                "; leave the number out, or take one that afar identify lists"
            }
            Self::Login { status: 0x0202 } => "; the target's allow list names those that may",
            Self::Login { status: 0x0302 } => "; try again when others have logged out",
            Self::Protocol { .. } | Self::Refused { .. } | Self::Login { .. } => "",
        }
    }
}

/// Whether an error is a socket's time-out.
fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

// An error in words, a time-out as a missing answer.
fn unanswered(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock => "no answer in time".to_owned(),
        _ => error.to_string(),
    }
}

/// A login status in words (RFC 7143 11.13.5).
fn login_text(status: u16) -> String {
    let what = match status {
        0x0101 | 0x0102 => "it is at another address",
        0x0201 => "it does not accept the user or the secret; check both",
        0x0202 => "this initiator may not log in",
        0x0203 => "there is no such target",
        0x0204 => "the target is there no longer",
        0x0206 => "it lets a session have no more connections",
        0x0301 => "the target cannot do that now",
        0x0302 => "the target has no room",
        0x0300 | 0x0303..=0x03ff => "something inside the target has failed",
        _ => "it refuses the login",
    };
    format!("{what} (status {status:#06x})")
}
