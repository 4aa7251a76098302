//! Parses devices: `memory:8GiB`, `file:/path`, `null:`, `model:pm1725:memory:8GiB`.

use std::str::FromStr;

use measure::Bytes;

use crate::kinds;
use crate::named::{BLOCK_SHIFTS, BackendUri, Kind, Options, Parse};

/// Why a text names no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: {reason}; {remedy}")]
pub struct UriError {
    text: String,
    reason: String,
    remedy: String,
}

/// The mistake in a part of the text, and what to write instead.
type Wrong = (String, String);

/// The most devices around another; more are a mistake, and could overflow the stack.
const NESTED_MAX: u32 = 8;

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

// Parses a device that stands inside `around` others.
fn parse(text: &str, around: u32) -> Result<BackendUri, Wrong> {
    let (scheme, rest) = text.split_once(':').ok_or_else(|| no_scheme(text))?;
    let kind = kinds::ALL.iter().find(|kind| kind.scheme == scheme);
    let kind = kind.ok_or_else(|| (format!("no device is called {scheme:?}"), all()))?;
    let wrong = |reason: String| (reason, kind.remedy.to_owned());
    let read = match kind.parse {
        Parse::Medium(read) => return medium(rest, read).map_err(wrong),
        Parse::Around(read) => read,
    };
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
    let outer = read(place).map_err(wrong)?;
    let inner = parse(inner, around + 1)?;
    if inner.is_leased() {
        return Err(wrong(format!("{scheme} cannot stand around a lease")));
    }
    outer(inner).map_err(wrong)
}

// Parses a medium: a place and its options.
fn medium(
    rest: &str,
    read: fn(&str, Options<'_>) -> Result<BackendUri, String>,
) -> Result<BackendUri, String> {
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    let mut block_shift = None;
    let mut own = Vec::new();
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=').unwrap_or((option, "")) {
            ("block", value) => block_shift = Some(block(value)?),
            option => own.push(option),
        }
    }
    read(place, Options { block_shift, own: &own })
}

// Parses a block size into its log2.
fn block(text: &str) -> Result<u8, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let shift = BLOCK_SHIFTS.into_iter().find(|shift| 1 << shift == bytes.get());
    shift.ok_or_else(|| format!("a block of {} bytes: take 512 or 4096", bytes.get()))
}

// The error for a text without a scheme, which most likely is a path.
fn no_scheme(text: &str) -> Wrong {
    let remedy = match text.contains('/') {
        true => format!("a file or block device is file:{text}; otherwise {}", all()),
        false => all(),
    };
    ("it names no kind of device".to_owned(), remedy)
}

// How to write a device of any kind.
fn all() -> String {
    let is_around = |kind: &&&Kind| matches!(kind.parse, Parse::Around(_));
    let media = kinds::ALL.iter().filter(|kind| !is_around(kind)).map(|kind| kind.example);
    let around = kinds::ALL.iter().filter(is_around).map(|kind| kind.example);
    let [media, around] = [listed(media, "or"), listed(around, "and")];
    format!("write {media}, after any of {around}")
}

// Joins words as "a, b or c"; `word` is the last conjunction.
fn listed(all: impl Iterator<Item = &'static str>, word: &str) -> String {
    let all: Vec<&str> = all.collect();
    match all.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("{} {word} {last}", others.join(", "))
        }
        _ => all.concat(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use sys::disk::Claim;

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
        let uri = |text: &str| text.parse::<BackendUri>().expect(text);
        assert_eq!(uri("model:pm1725*100%:null:"), uri("model:pm1725:null:1TiB?block=512"));
        assert_ne!(uri("model:pm1725*0.5:null:"), uri("model:pm1725:null:"));
        assert_ne!(uri("model:pm1725:null:"), uri("model:pm1725:memory:1TiB"));
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
            ("disk", "it names no kind of device; write file:/PATH"),
            (
                "/d",
                "it names no kind of device; a file or block device is file:/d; otherwise write",
            ),
            ("model:pm1725", "model has no device inside; write model:pm1725:DEVICE or"),
            ("model:pm1725:", "model has no device inside"),
            ("model::null:", "model does not say what it does"),
            (
                "model:pm1725:disk",
                "\"model:pm1725:disk\": it names no kind of device; write file:/",
            ),
            ("model:pm9:null:", "no drive is called \"pm9\"; take pm1725 or p3600; write model:"),
            ("model:pm1725*2:null:", "a fraction can be at most 100%"),
            ("model:pm1725*0:null:", "a fraction must be more than zero"),
            ("fault:read=bad:null:", "rule \"read=bad\": no effect is called \"bad\""),
            ("fault:read=eio@every:9:null:", "not a fraction"),
            (
                "fault:read=eio:memory:9",
                "\"fault:read=eio:memory:9\": 9 B is less than 4096 bytes, the smallest disk",
            ),
            ("trace::null:", "trace does not say what it does; write trace:/PATH:DEVICE"),
            ("trace:/d:model:pm1725:file:/d", "/d would be written over by the trace"),
            ("trace:/t:trace:/t:null:", "/t would be written over by the trace"),
            (&deep, "more than 8 devices around one another"),
            ("file:", "no path"),
            ("lease:ttl=60s:null:", "only memory:SIZE can be leased; write lease:ttl=TIME"),
            ("lease:ttl=1ms:memory:1M", "ttl 1.0 ms: 100 ms to 24 h"),
            ("lease:ttl=soon:memory:1M", "ttl: "),
            ("lease:quota=2M:memory:1M", "quota 2.0 MiB: 4 KiB to the 1.0 MiB of the memory"),
            ("lease:size=1M:memory:1M", "a lease has no term \"size=1M\""),
            ("trace:/t:lease:ttl=60s:memory:1M", "trace cannot stand around a lease"),
            ("disk:/x", "no device is called \"disk\""),
            ("memory:", "\"\": not a size"),
            ("memory:100", "the smallest disk"),
            ("null:?block=1000", "a block of 1000 bytes: take 512 or 4096"),
            ("null:?block=4096&size=1G", "null has no option \"size\"; its only option is block"),
            ("memory:1M?fill", "memory has no option \"fill\"; its only option is block"),
            (
                "file:/d?sise=1M",
                "file has no option \"sise\"; its options are size, fill, readonly and",
            ),
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
