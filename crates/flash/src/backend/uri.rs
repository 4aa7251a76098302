//! Devices by name: `memory:8GiB`, `file:/path`, `null:`.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use measure::Bytes;

use super::{Backend, FileBackend, MemoryBackend, NullBackend, OpenError};

/// What a namespace is made of, as text.
///
/// ```text
/// file:PATH     a file or block device
/// memory:SIZE   the target's own memory
/// null:[SIZE]   nothing; 1 TiB if not said
/// ```
///
/// Each may end in `?block=512` or `?block=4096`, its block; `file` also takes `size=SIZE`, which
/// makes the file if it is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendUri {
    kind: Kind,
    block_shift: Option<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    File { path: PathBuf, create: Option<Bytes> },
    Memory(Bytes),
    Null(Bytes),
}

/// Text that names no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: {reason}; write file:/PATH, memory:8GiB or null:, e.g. file:/data/disk.img")]
pub struct UriError {
    text: String,
    reason: String,
}

/// Size of nothing, if it has none.
const NULL_BYTES: u64 = 1 << 40;
/// Blocks that hosts take.
const BLOCK_SHIFTS: [u8; 2] = [9, 12];

impl FromStr for BackendUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let fail = |reason: String| UriError { text: text.to_owned(), reason };
        let (scheme, rest) =
            text.split_once(':').ok_or_else(|| fail("no kind of device".to_owned()))?;
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let mut block_shift = None;
        let mut create = None;
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match (name, scheme) {
                ("block", _) => {
                    let bytes: Bytes = value.parse().map_err(|e| fail(format!("{e}")))?;
                    let bytes = bytes.get();
                    let shift = BLOCK_SHIFTS.into_iter().find(|shift| 1 << shift == bytes);
                    let refused = || fail(format!("a block of {bytes} bytes: take 512 or 4096"));
                    block_shift = Some(shift.ok_or_else(refused)?);
                }
                ("size", "file") => create = Some(size(value).map_err(&fail)?),
                _ => return Err(fail(format!("{scheme} has no option {name:?}"))),
            }
        }
        let kind = match (scheme, place) {
            ("file", "") => return Err(fail("no path".to_owned())),
            ("file", path) => Kind::File { path: path.into(), create },
            ("memory", place) => Kind::Memory(size(place).map_err(&fail)?),
            ("null", "") => Kind::Null(Bytes::new(NULL_BYTES)),
            ("null", place) => Kind::Null(size(place).map_err(&fail)?),
            _ => return Err(fail(format!("no device is called {scheme:?}"))),
        };
        Ok(Self { kind, block_shift })
    }
}

fn size(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if bytes.get() < 4096 { Err(format!("{bytes} is less than a block")) } else { Ok(bytes) }
}

impl BackendUri {
    /// Opens the device.
    ///
    /// # Errors
    /// When it is not there, may not be used, or is not one.
    pub fn open(&self) -> Result<Arc<dyn Backend>, OpenError> {
        let shift = self.block_shift.unwrap_or(BLOCK_SHIFTS[0]);
        Ok(match &self.kind {
            Kind::Null(bytes) => Arc::new(NullBackend::new(bytes.get(), shift)),
            Kind::Memory(bytes) => Arc::new(MemoryBackend::new(bytes.get(), shift)?),
            Kind::File { path, create } => {
                if let Some(bytes) = create
                    && !path.exists()
                {
                    sys::disk::Disk::create(path, bytes.get())?;
                }
                Arc::new(FileBackend::open(path, self.block_shift)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(text: &str) -> [u64; 2] {
        let uri: BackendUri = text.parse().expect("it is one");
        let geometry = uri.open().expect("it can be opened").geometry();
        [geometry.bytes(), u64::from(geometry.block_bytes())]
    }

    #[test]
    fn devices_have_names() {
        assert_eq!(opened("null:"), [1 << 40, 512]);
        assert_eq!(opened("null:1GiB?block=4096"), [1 << 30, 4096]);
        assert_eq!(opened("memory:64KiB?block=4k"), [64 << 10, 4096]);
        let path = std::env::temp_dir().join(format!("afar-uri-{}", std::process::id()));
        let text = format!("file:{}?size=10000", path.display());
        let [bytes, block] = opened(&text);
        assert_eq!(bytes, 10_000 / block * block);
        assert_eq!(opened(&text), [bytes, block], "it is there");
        std::fs::remove_file(path).expect("it was made");
    }

    #[test]
    fn what_is_none_is_refused() {
        let cases = [
            ("disk", "no kind of device"),
            ("file:", "no path"),
            ("disk:/x", "no device is called \"disk\""),
            ("memory:", "\"\": not a size"),
            ("memory:100", "less than a block"),
            ("null:?block=1000", "a block of 1000 bytes: take 512 or 4096"),
            ("null:?block=4096&size=1G", "null has no option \"size\""),
        ];
        for (text, reason) in cases {
            let error = text.parse::<BackendUri>().expect_err(text).to_string();
            assert!(error.contains(reason), "{error}");
        }
        let missing: BackendUri = "file:/nowhere/disk".parse().expect("it is one");
        assert!(missing.open().is_err());
    }
}
