//! How `--far` names a blade.

use std::fmt;
use std::str::FromStr;

use blades::PAGE_BYTES;
use host::{NvmeUri, NvmeUriError};
use measure::Bytes;

const MEMORY: &str = "memory:";
const NVME: &str = "nvme+tcp://";
const PAGE: u64 = PAGE_BYTES as u64;

/// What `--far` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FarUri {
    /// Memory of afar itself, of this size.
    Memory(Bytes),
    /// A namespace behind a network.
    Nvme(NvmeUri, String),
}

/// Text that names no blade.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FarUriError {
    #[error("{text:?}: {reason}; write memory:SIZE, or nvme+tcp://HOST[:PORT]/NQN[/NSID]")]
    Text { text: String, reason: &'static str },
    #[error(transparent)]
    Nvme(#[from] NvmeUriError),
}

impl FromStr for FarUri {
    type Err = FarUriError;

    fn from_str(text: &str) -> Result<Self, FarUriError> {
        let fail = |reason| FarUriError::Text { text: text.to_owned(), reason };
        if text.starts_with(NVME) {
            return Ok(Self::Nvme(text.parse()?, text.to_owned()));
        }
        let size = text.strip_prefix(MEMORY).ok_or_else(|| fail("it is neither kind of blade"))?;
        let size: Bytes = size.parse().map_err(|_not_one| fail("it names no size"))?;
        match size.get() >= PAGE {
            true => Ok(Self::Memory(size)),
            false => Err(fail("it is smaller than a page")),
        }
    }
}

impl fmt::Display for FarUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(size) => write!(f, "{MEMORY}{}", size.get()),
            Self::Nvme(_, text) => f.write_str(text),
        }
    }
}
