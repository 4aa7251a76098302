//! Errors of `afar serve`.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;

use backend::{OpenError, UriError};
use console::{Class, Classed};
use target::{IdentityError, ReservedError};

/// Why a target cannot start, or cannot follow another plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error("{0}: write NAME=URI, e.g. disk=file:/data/disk.img, or a file that ends in .toml")]
    Disk(String),
    #[error("{file} says everything: {flag} cannot be beside it; write it in the file")]
    Beside { file: String, flag: &'static str },
    #[error("{name}: a name has letters, digits, '.', '_' and '-', or is an NQN of 223 bytes")]
    Name { name: String },
    #[error("{name}: two disks have this name; give each its own")]
    Twice { name: String },
    #[error("{name}: {source}")]
    Uri { name: String, source: UriError },
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{name}: {source}{}", source.remedy())]
    Open { name: String, source: OpenError },
    #[error("{name}: {source}")]
    Identity { name: String, source: IdentityError },
    #[error("{name}: {source}")]
    Kept { name: String, source: ReservedError },
    #[error("{0}")]
    Flag(String),
    #[error("{source}; {}", remedy(source, addresses))]
    Listen { addresses: String, source: sys::Error },
    #[error("listen for metrics at {address}: {source}; give another address")]
    Metrics { address: SocketAddr, source: std::io::Error },
    #[error("become user {name}: {source}; start it as root, or leave --user out")]
    User { name: String, source: sys::Error },
    #[error(
        "user {user} cannot write in {}, where reservations are kept; give {user} that directory, \
         or give --state another",
        directory.display()
    )]
    Unwritable { user: String, directory: PathBuf },
    #[error("--sandbox on: this kernel has no landlock; boot one that has it, or take auto")]
    NoLandlock,
    #[error("--ready-fd {number}: {source}; give a descriptor that is open for writing")]
    ReadyFd { number: i32, source: std::io::Error },
    #[error("take the sockets that systemd listens at: {0}; check the .socket unit")]
    Inherited(std::io::Error),
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl ServeError {
    // Whether the error is a permission denied for a file.
    pub(super) fn is_denied(&self) -> bool {
        let source = match self {
            Self::Open { source: OpenError::System(error), .. } => &error.source,
            Self::Open { source: OpenError::Trace { source, .. }, .. }
            | Self::Identity { source: IdentityError::Keep { source, .. }, .. }
            | Self::Kept { source: ReservedError::Read { source, .. }, .. }
            | Self::File(FileError::Unreadable { source, .. }) => source,
            _ => return false,
        };
        source.kind() == ErrorKind::PermissionDenied
    }
}

impl Classed for ServeError {
    fn class(&self) -> Class {
        match self {
            Self::Open { .. }
            | Self::Identity { .. }
            | Self::Kept { .. }
            | Self::Listen { .. }
            | Self::Metrics { .. }
            | Self::User { .. }
            | Self::Unwritable { .. }
            | Self::NoLandlock
            | Self::Inherited(_)
            | Self::System(_) => Class::Failed,
            _ => Class::Usage,
        }
    }
}

// What to do when listening at an address fails.
fn remedy(error: &sys::Error, addresses: &str) -> String {
    match error.source.kind() {
        ErrorKind::AddrInUse => format!("is another target at {addresses}? ss -ltnp names it"),
        ErrorKind::AddrNotAvailable => {
            format!("this machine has no such address ({addresses}); ip address shows those it has")
        }
        ErrorKind::PermissionDenied => {
            "ports below 1024 are for root and CAP_NET_BIND_SERVICE; give a higher one".to_owned()
        }
        _ => format!("it was to listen at {addresses}"),
    }
}

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("{}: {source}; give a file that can be read", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: {what}", path.display())]
    Value { path: PathBuf, what: String },
}
