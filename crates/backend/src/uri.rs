//! Devices by name: `memory:8GiB`, `file:/path`, `null:`, `model:pm1725:memory:8GiB`.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use measure::{Bytes, Fraction};
use sys::disk::{Claim, Opening};

use crate::{
    Backend, FaultBackend, FaultRules, FaultRulesError, FileBackend, MemoryBackend, ModelBackend,
    ModelConfig, NullBackend, OpenError, TraceBackend,
};

/// What a namespace is made of, as text.
///
/// ```text
/// file:PATH                    a file or block device
/// memory:SIZE                  the target's own memory
/// null:[SIZE]                  nothing; 1 TiB if not said
/// model:DRIVE[*SHARE]:DEVICE   as fast as a drive: pm1725 or p3600, or a share of its throughput
/// fault:RULES:DEVICE           failures and delays by rules, see [`FaultRules`]
/// trace:PATH:DEVICE            what is asked of it, written to a file: see [`TraceBackend`]
/// ```
///
/// A `DEVICE` is any of these, up to eight around one another, and is what is left of the text
/// after the colon: a drive, rules and the path of a trace have no colon in them. In
/// `trace:/tmp/all.txt:fault:read=eio@0.01,any=5ms@once:model:pm1725*0.1:memory:8GiB`, requests are
/// traced as their sender sees them.
///
/// The device inside may end in `?block=512` or `?block=4096`, its block; `file` also takes
/// `size=SIZE`, which makes the file if it is not there, `readonly`, with which it is never written
/// and may be read by others at the same time, and `fill`, with which zeros are written to all its
/// holes before it is used, so that reads of them ask the medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendUri {
    kind: Kind,
    block_shift: Option<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    File { path: PathBuf, create: Option<Bytes>, is_read_only: bool, fills: bool },
    Memory(Bytes),
    Null(Bytes),
    Model(ModelConfig, Box<BackendUri>),
    Fault(FaultRules, Box<BackendUri>),
    Trace(PathBuf, Box<BackendUri>),
}

/// Text that names no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: {reason}; {remedy}")]
pub struct UriError {
    text: String,
    reason: String,
    remedy: &'static str,
}

/// What is wrong with a part of the text, and what to write instead.
type Wrong = (String, &'static str);

/// Size of nothing, if it has none.
const NULL_BYTES: u64 = 1 << 40;
/// Blocks that hosts take.
const BLOCK_SHIFTS: [u8; 2] = [9, 12];
/// Devices around one another; more is a mistake, and would fill the stack in the end.
const NESTED_MAX: u32 = 8;

const DEVICE: &str = "write file:/PATH, memory:8GiB or null:, e.g. file:/data/disk.img";
const AROUND: &str = "write file:/PATH, memory:8GiB or null:, \
    after any of model:pm1725:, fault:read=eio@0.01: and trace:/PATH:";
const MODEL: &str = "write model:pm1725:DEVICE or model:p3600*0.1:DEVICE, \
    e.g. model:pm1725*0.1:memory:8GiB";
const FAULT: &str = "write fault:RULES:DEVICE, \
    e.g. fault:read=eio@0.01,write=enospc@every=1000:memory:1GiB";
const TRACE: &str = "write trace:/PATH:DEVICE, e.g. trace:/tmp/trace.txt:file:/data/disk.img";

impl FromStr for BackendUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        parse(text, 0).map_err(|(reason, remedy)| UriError {
            text: text.to_owned(),
            reason,
            remedy,
        })
    }
}

fn parse(text: &str, around: u32) -> Result<BackendUri, Wrong> {
    let (scheme, rest) =
        text.split_once(':').ok_or_else(|| ("no kind of device".to_owned(), AROUND))?;
    let remedy = match scheme {
        "file" | "memory" | "null" => {
            return plain(scheme, rest).map_err(|reason| (reason, DEVICE));
        }
        "model" => MODEL,
        "fault" => FAULT,
        "trace" => TRACE,
        _ => return Err((format!("no device is called {scheme:?}"), AROUND)),
    };
    let wrong = |reason: String| (reason, remedy);
    let (place, inner) = rest
        .split_once(':')
        .filter(|(_, inner)| !inner.is_empty())
        .ok_or_else(|| wrong(format!("{scheme} has no device inside")))?;
    if around == NESTED_MAX {
        return Err(wrong(format!("more than {NESTED_MAX} devices around one another")));
    }
    if place.is_empty() {
        return Err(wrong(format!("{scheme} does not say what it does")));
    }
    let inside = || parse(inner, around + 1).map(Box::new);
    let kind = match scheme {
        "model" => Kind::Model(model(place).map_err(wrong)?, inside()?),
        "fault" => {
            let rules = place.parse().map_err(|error: FaultRulesError| wrong(error.to_string()))?;
            Kind::Fault(rules, inside()?)
        }
        _ => Kind::Trace(place.into(), inside()?),
    };
    match &kind {
        Kind::Trace(path, inner) if inner.writes(path) => {
            Err(wrong(format!("{} would be written over by the trace", path.display())))
        }
        _ => Ok(BackendUri { kind, block_shift: None }),
    }
}

// A drive, and how much of it.
fn model(place: &str) -> Result<ModelConfig, String> {
    let (name, share) = place.split_once('*').unwrap_or((place, "1"));
    let config = ModelConfig::named(name)
        .ok_or_else(|| format!("no drive is called {name:?}; take pm1725 or p3600"))?;
    let share: Fraction = share.parse().map_err(|error| format!("{error}"))?;
    Ok(config.scaled(share))
}

// A device with none inside.
fn plain(scheme: &str, rest: &str) -> Result<BackendUri, String> {
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    let mut block_shift = None;
    let (mut create, mut is_read_only, mut fills) = (None, false, false);
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match (name, scheme) {
            ("block", _) => block_shift = Some(block(value)?),
            ("size", "file") => create = Some(size(value)?),
            ("readonly", "file") if value.is_empty() => is_read_only = true,
            ("fill", "file") if value.is_empty() => fills = true,
            _ => return Err(format!("{scheme} has no option {name:?}")),
        }
    }
    let kind = match (scheme, place) {
        ("file", "") => return Err("no path".to_owned()),
        ("file", _) if fills && is_read_only => {
            return Err("fill writes, and readonly does not let it".to_owned());
        }
        ("file", path) => Kind::File { path: path.into(), create, is_read_only, fills },
        ("memory", place) => Kind::Memory(size(place)?),
        (_, "") => Kind::Null(Bytes::new(NULL_BYTES)),
        (_, place) => Kind::Null(size(place)?),
    };
    Ok(BackendUri { kind, block_shift })
}

fn block(text: &str) -> Result<u8, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let shift = BLOCK_SHIFTS.into_iter().find(|shift| 1 << shift == bytes.get());
    shift.ok_or_else(|| format!("a block of {} bytes: take 512 or 4096", bytes.get()))
}

fn size(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if bytes.get() < 4096 { Err(format!("{bytes} is less than a block")) } else { Ok(bytes) }
}

impl BackendUri {
    /// Opens the device, and those around it; `claim` says who else may have the file or block
    /// device that holds the bytes.
    ///
    /// # Errors
    /// When it is not there, may not be used, is another's, or is not one; when a trace cannot be
    /// written.
    pub fn open(&self, claim: Claim) -> Result<Arc<dyn Backend>, OpenError> {
        let shift = self.block_shift.unwrap_or(BLOCK_SHIFTS[0]);
        Ok(match &self.kind {
            Kind::Null(bytes) => Arc::new(NullBackend::new(bytes.get(), shift)),
            Kind::Memory(bytes) => Arc::new(MemoryBackend::new(bytes.get(), shift)?),
            Kind::File { path, create, is_read_only, fills } => {
                if *fills && claim == Claim::Shared {
                    let reason = "fill would write over what others write to it meanwhile";
                    return Err(OpenError::Shape(format!("{reason}; fill it before it is shared")));
                }
                if let Some(bytes) = create
                    && !path.exists()
                {
                    sys::disk::Disk::create(path, bytes.get())?;
                }
                let opening = Opening { is_read_only: *is_read_only, claim };
                let backend = FileBackend::open(path, self.block_shift, opening)?;
                if *fills {
                    // Nobody else has the file now.
                    sys::holes::fill(path)?;
                }
                Arc::new(backend)
            }
            Kind::Model(config, inner) => Arc::new(ModelBackend::new(inner.open(claim)?, *config)),
            Kind::Fault(rules, inner) => Arc::new(FaultBackend::new(inner.open(claim)?, rules)),
            Kind::Trace(path, inner) => {
                let traced = TraceBackend::create(inner.open(claim)?, path);
                let named = |source| OpenError::Trace { path: path.clone(), source };
                Arc::new(traced.map_err(named)?)
            }
        })
    }

    /// Whether its file or block device is opened to be read only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        match &self.kind {
            Kind::File { is_read_only, .. } => *is_read_only,
            Kind::Memory(_) | Kind::Null(_) => false,
            Kind::Model(_, inner) | Kind::Fault(_, inner) | Kind::Trace(_, inner) => {
                inner.is_read_only()
            }
        }
    }

    /// The file or block device that holds the bytes in the end, whatever is around it; what is
    /// written to the device is written there.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.kind {
            Kind::File { path, .. } => Some(path),
            Kind::Memory(_) | Kind::Null(_) => None,
            Kind::Model(_, inner) | Kind::Fault(_, inner) | Kind::Trace(_, inner) => inner.file(),
        }
    }

    /// The file whose holes are to be filled when it is opened, which can take as long as writing
    /// all of it.
    #[must_use]
    pub fn fills(&self) -> Option<&Path> {
        match &self.kind {
            Kind::File { path, fills, .. } => fills.then_some(path),
            Kind::Memory(_) | Kind::Null(_) => None,
            Kind::Model(_, inner) | Kind::Fault(_, inner) | Kind::Trace(_, inner) => inner.fills(),
        }
    }

    /// All files that are opened for it: that of [`Self::file`], and traces.
    #[must_use]
    pub fn files(&self) -> Vec<&Path> {
        match &self.kind {
            Kind::File { path, .. } => vec![path],
            Kind::Memory(_) | Kind::Null(_) => Vec::new(),
            Kind::Model(_, inner) | Kind::Fault(_, inner) => inner.files(),
            Kind::Trace(path, inner) => [&[path.as_path()], &*inner.files()].concat(),
        }
    }

    // Whether what it does changes this file.
    fn writes(&self, file: &Path) -> bool {
        match &self.kind {
            Kind::File { path, .. } => path == file,
            Kind::Memory(_) | Kind::Null(_) => false,
            Kind::Model(_, inner) | Kind::Fault(_, inner) => inner.writes(file),
            Kind::Trace(path, inner) => path == file || inner.writes(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, Operation, Request, Work};

    fn opened(text: &str) -> [u64; 2] {
        let uri: BackendUri = text.parse().expect("it is one");
        let geometry = uri.open(Claim::Alone).expect("it can be opened").geometry();
        [geometry.bytes(), u64::from(geometry.block_bytes())]
    }

    #[test]
    fn devices_have_names() {
        assert_eq!(opened("null:"), [1 << 40, 512]);
        assert_eq!(opened("null:1GiB?block=4096"), [1 << 30, 4096]);
        assert_eq!(opened("null:1GiB?block=512"), [1 << 30, 512]);
        assert_eq!(opened("memory:64KiB?block=4k"), [64 << 10, 4096]);
        let path = std::env::temp_dir().join(format!("afar-uri-{}", std::process::id()));
        let text = format!("file:{}?size=10000", path.display());
        let [bytes, block] = opened(&text);
        assert_eq!(bytes, 10_000 / block * block);
        assert_eq!(opened(&text), [bytes, block], "it is there");
        let room =
            || std::os::unix::fs::MetadataExt::blocks(&path.metadata().expect("it is there"));
        assert_eq!(room(), 0, "nothing was written");
        assert_eq!(opened(&format!("{text}&fill")), [bytes, block]);
        assert!(room() * 512 >= bytes, "{}", room());
        let shared: BackendUri = format!("{text}&fill").parse().expect("it is one");
        let error = shared.open(Claim::Shared).err().expect("others may write").to_string();
        assert!(error.contains("fill it before it is shared"), "{error}");
        std::fs::remove_file(path).expect("it was made");
    }

    #[test]
    fn devices_stand_around_one_another() {
        assert_eq!(opened("model:pm1725:memory:64KiB?block=4096"), [64 << 10, 4096]);
        assert_eq!(opened("fault:read=eio@0.01,write=enospc@every=9:null:1GiB"), [1 << 30, 512]);
        let path = std::env::temp_dir().join(format!("afar-uri-trace-{}", std::process::id()));
        let rules = "fault:read=eio@once,any=1ms@every=2";
        let text = format!("trace:{}:{rules}:model:p3600*0.1:null:1MiB", path.display());
        let backend =
            text.parse::<BackendUri>().expect("it is one").open(Claim::Alone).expect("it opens");
        let read = Request { operation: Operation::Read, offset: 0, length: 4096 };
        let ask = |now_ns| {
            let start = backend.start(&read, &mut [0; 4096], now_ns);
            let Work::Done(result) = start.work else { panic!("nothing is left to do") };
            (backend.end(&read, result, start.not_before_ns), start.not_before_ns)
        };
        assert_eq!(ask(0), (Err(Failure::Medium), 0));
        assert_eq!(ask(10), (Ok(()), 1_000_010), "the later of the delay and the drive");
        assert_eq!(ask(2_000_000), (Ok(()), 2_083_500));
        drop(backend);
        let lines = std::fs::read_to_string(&path).expect("it was written");
        assert_eq!(lines.lines().count(), 6);
        std::fs::remove_file(path).expect("it was made");
        let kind = |text: &str| text.parse::<BackendUri>().expect(text).kind;
        assert_eq!(kind("model:pm1725*100%:null:"), kind("model:pm1725:null:"));
        assert_ne!(kind("model:pm1725*0.5:null:"), kind("model:pm1725:null:"));
    }

    #[test]
    fn the_file_inside_is_named() {
        let file = |text: &str| text.parse::<BackendUri>().expect(text).file().map(PathBuf::from);
        assert_eq!(file("file:/disk?size=1G"), Some("/disk".into()));
        assert_eq!(file("trace:/t:fault:any=eio:model:p3600:file:/disk"), Some("/disk".into()));
        assert_eq!(file("trace:/t:memory:1M"), None);
        let uri: BackendUri = "trace:/t:fault:any=eio:file:/disk".parse().expect("it is one");
        assert_eq!(uri.files(), [Path::new("/t"), Path::new("/disk")]);
    }

    #[test]
    fn what_is_none_is_refused() {
        let deep = format!("{}null:", "model:pm1725:".repeat(9));
        let cases = [
            ("disk", "no kind of device"),
            ("model:pm1725", "model has no device inside; write model:pm1725:DEVICE or"),
            ("model:pm1725:", "model has no device inside"),
            ("model::null:", "model does not say what it does"),
            ("model:pm1725:disk", "\"model:pm1725:disk\": no kind of device; write file:/PATH"),
            ("model:pm9:null:", "no drive is called \"pm9\"; take pm1725 or p3600; write model:"),
            ("model:pm1725*2:null:", "a fraction can be at most 100%"),
            ("model:pm1725*0:null:", "a fraction must be more than zero"),
            ("fault:read=bad:null:", "rule \"read=bad\": no effect is called \"bad\""),
            ("fault:read=eio@every:9:null:", "not a fraction"),
            ("fault:read=eio:memory:9", "\"fault:read=eio:memory:9\": 9 B is less than a block"),
            ("trace::null:", "trace does not say what it does; write trace:/PATH:DEVICE"),
            ("trace:/d:model:pm1725:file:/d", "/d would be written over by the trace"),
            ("trace:/t:trace:/t:null:", "/t would be written over by the trace"),
            (&deep, "more than 8 devices around one another"),
            ("file:", "no path"),
            ("disk:/x", "no device is called \"disk\""),
            ("memory:", "\"\": not a size"),
            ("memory:100", "less than a block"),
            ("null:?block=1000", "a block of 1000 bytes: take 512 or 4096"),
            ("null:?block=4096&size=1G", "null has no option \"size\""),
            ("memory:1M?fill", "memory has no option \"fill\""),
            ("file:/d?readonly&fill", "fill writes, and readonly does not let it"),
        ];
        for (text, reason) in cases {
            let error = text.parse::<BackendUri>().expect_err(text).to_string();
            assert!(error.contains(reason), "{error}");
        }
        let missing: BackendUri = "file:/nowhere/disk".parse().expect("it is one");
        assert!(missing.open(Claim::Alone).is_err());
        let nowhere: BackendUri = "trace:/nowhere/trace:null:".parse().expect("it is one");
        let error = nowhere.open(Claim::Alone).err().expect("there is no such place").to_string();
        assert!(error.contains("its trace \"/nowhere/trace\" cannot be written"), "{error}");
    }
}
