//! The URIs of blades in `--far`.

use std::fmt;
use std::str::FromStr;

use blades::PAGE_BYTES;
use host::{NvmeUri, NvmeUriError};
use measure::{Bytes, Duration};

const MEMORY: &str = "memory:";
const DELAY: &str = "delay=";
/// Far longer than any network takes.
const DELAY_MAX: Duration = Duration::from_ms(1_000);
const NVME: &str = "nvme+tcp://";
const PAGE: u64 = PAGE_BYTES as u64;

/// A blade of `--far`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FarUri {
    /// Memory of afar itself: its size, and the delay of its answers.
    Memory(Bytes, Duration),
    /// A namespace of an NVMe/TCP target, and its URI as written.
    Nvme(NvmeUri, String),
}

/// Why a text is no URI of a blade.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FarUriError {
    #[error(
        "{text:?}: {reason}; write memory:SIZE[?delay=TIME], or \
         nvme+tcp://HOST[:PORT]/NQN[/NSID]"
    )]
    Text { text: String, reason: &'static str },
    #[error(transparent)]
    Nvme(#[from] NvmeUriError),
}

impl FarUri {
    /// Whether another program stores the pages, here or on another machine.
    pub(crate) const fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Nvme(..))
    }
}

impl FromStr for FarUri {
    type Err = FarUriError;

    fn from_str(text: &str) -> Result<Self, FarUriError> {
        let fail = |reason| FarUriError::Text { text: text.to_owned(), reason };
        if text.starts_with(NVME) {
            return Ok(Self::Nvme(text.parse()?, text.to_owned()));
        }
        let rest = text.strip_prefix(MEMORY).ok_or_else(|| fail("it is neither kind of blade"))?;
        let (size, setting) =
            rest.split_once('?').map_or((rest, None), |(size, setting)| (size, Some(setting)));
        let size: Bytes = size.parse().map_err(|_not_one| fail("it names no size"))?;
        let delay = setting.map_or(Ok(Duration::ZERO), |setting| {
            let time =
                setting.strip_prefix(DELAY).ok_or_else(|| fail("its setting is no delay"))?;
            let time = time.parse().ok().filter(|&time| time <= DELAY_MAX);
            time.ok_or_else(|| fail("its delay is no time of at most 1 s"))
        })?;
        match size.get() >= PAGE {
            true => Ok(Self::Memory(size, delay)),
            false => Err(fail("it is smaller than a page")),
        }
    }
}

/// Parses the URI of a flag.
pub(crate) fn far_uri(text: &str) -> Result<FarUri, String> {
    text.parse().map_err(|error: FarUriError| error.to_string())
}

impl fmt::Display for FarUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(size, Duration::ZERO) => write!(f, "{MEMORY}{}", size.get()),
            Self::Memory(size, delay) => {
                write!(f, "{MEMORY}{}?{DELAY}{}ns", size.get(), delay.as_ns())
            }
            Self::Nvme(_, text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_names_the_same_blade() {
        for text in ["memory:1MiB", "memory:1MiB?delay=20us", "nvme+tcp://a:9/nqn.x/2"] {
            let uri: FarUri = text.parse().expect(text);
            assert_eq!(uri.to_string().parse::<FarUri>().expect("it was shown"), uri);
        }
        let delay = "memory:1MiB?delay=20us".parse::<FarUri>().expect("it is one");
        assert_eq!(delay, FarUri::Memory(Bytes::from_mib(1), Duration::from_us(20)));
    }

    #[test]
    fn what_names_no_blade_is_refused_with_the_reason() {
        let refused = |text: &str| text.parse::<FarUri>().expect_err(text).to_string();
        assert!(refused("memory:1MiB?speed=2").contains("its setting is no delay"));
        for text in ["memory:1MiB?delay=", "memory:1MiB?delay=2s", "memory:1MiB?delay=-1us"] {
            assert!(refused(text).contains("no time of at most 1 s"), "{text}");
        }
        assert!(refused("memory:100").contains("smaller than a page"));
    }
}
