//! A backend around any other that writes its requests to a file, in the format of blkparse.
//!
//! ```text
//!   0,0    0        1     0.000000000  4711  Q   R 8 + 8 [afar]
//!   0,0    0        2     0.000083500  4711  C   R 8 + 8 [0]
//! ```
//!
//! A request has a line when it arrives (Q) and one when it has ended (C): device, processor,
//! number of the line, seconds since the first request, process, action, kind (R, W, D; WF when
//! forced, FF for a flush), first sector and sectors of 512 bytes, and the program or the error.
//! Departs from blkparse in that device and processor are always 0, and that errors are negative.

use std::any::Any;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sys::disk::Claim;

use crate::device::{Backend, Failure, Geometry, Operation, Request, Start};
use crate::named::{Around, BackendUri, Device, Kind, Parse, same};
use crate::open_error::OpenError;

/// A backend that traces its requests.
///
/// A line that comes a second or more after the last flush flushes the file, and so does dropping
/// the backend. If writing fails, the trace ends; requests go on.
pub struct TraceBackend {
    inner: Arc<dyn Backend>,
    /// Shared by all shards, whose lines are written one after another.
    log: Mutex<Log>,
}

struct Log {
    out: BufWriter<File>,
    process: u32,
    lines: u64,
    /// When the first request arrived.
    began_ns: Option<u64>,
    flushed_ns: u64,
    has_failed: bool,
}

const NS_PER_SEC: u64 = 1_000_000_000;
const SECTOR_BYTES: u64 = 512;
/// The program's name in lines of arrivals.
const PROGRAM: &str = "afar";

/// `trace:PATH:DEVICE`.
pub(crate) static KIND: Kind = Kind {
    scheme: "trace",
    example: "trace:/PATH:",
    remedy: "write trace:/PATH:DEVICE, e.g. trace:/tmp/trace.txt:file:/data/disk.img",
    parse: Parse::Around(named),
};

/// The parsed device, not yet open.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    path: PathBuf,
    inner: BackendUri,
}

// Parses the path of `trace:PATH:`.
fn named(place: &str) -> Result<Around, String> {
    let path = PathBuf::from(place);
    Ok(Box::new(move |inner| {
        if inner.files().contains(&path.as_path()) {
            return Err(format!("{} would be written over by the trace", path.display()));
        }
        Ok(BackendUri::new(Named { path, inner }))
    }))
}

impl Device for Named {
    fn open(&self, claim: Claim) -> Result<Arc<dyn Backend>, OpenError> {
        let traced = TraceBackend::create(self.inner.open(claim)?, &self.path);
        let named = |source| OpenError::Trace { path: self.path.clone(), source };
        Ok(Arc::new(traced.map_err(named)?))
    }

    fn inside(&self) -> Option<&BackendUri> {
        Some(&self.inner)
    }

    fn written(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn equals(&self, other: &dyn Any) -> bool {
        same(self, other)
    }
}

impl TraceBackend {
    /// Wraps `inner` and writes its requests to the file `path`, which is created or overwritten.
    ///
    /// # Errors
    /// When the file cannot be created, or is a block device, which may be somebody's disk.
    pub fn create(inner: Arc<dyn Backend>, path: &Path) -> io::Result<Self> {
        if path.metadata().is_ok_and(|there| there.file_type().is_block_device()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a block device"));
        }
        let log = Log {
            out: BufWriter::new(File::create(path)?),
            process: std::process::id(),
            lines: 0,
            began_ns: None,
            flushed_ns: 0,
            has_failed: false,
        };
        Ok(Self { inner, log: Mutex::new(log) })
    }

    // Writes a line unless the trace has failed.
    fn note(&self, action: char, request: &Request, tail: &str, now_ns: u64) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if !log.has_failed {
            // A partial line may have been written; lines after it could not be parsed.
            log.has_failed = log.note(action, request, tail, now_ns).is_err();
        }
    }
}

impl Log {
    // Writes one line, and flushes the file if the last flush is a second old.
    fn note(&mut self, action: char, request: &Request, tail: &str, now_ns: u64) -> io::Result<()> {
        let began_ns = *self.began_ns.get_or_insert_with(|| {
            self.flushed_ns = now_ns;
            now_ns
        });
        let since_ns = now_ns.saturating_sub(began_ns);
        self.lines += 1;
        write!(
            self.out,
            "{:>3},{:<3} {:>2} {:>8} {:>5}.{:09} {:>5} {action:>2} {:>3} ",
            0,
            0,
            0,
            self.lines,
            since_ns / NS_PER_SEC,
            since_ns % NS_PER_SEC,
            self.process,
            kind(request.operation),
        )?;
        let sector = request.offset / SECTOR_BYTES;
        match (request.length / SECTOR_BYTES, action) {
            (0, 'Q') => writeln!(self.out, "[{tail}]")?,
            (0, _) => writeln!(self.out, "{sector} [{tail}]")?,
            (sectors, _) => writeln!(self.out, "{sector} + {sectors} [{tail}]")?,
        }
        if now_ns.saturating_sub(self.flushed_ns) >= NS_PER_SEC {
            self.flushed_ns = now_ns;
            self.out.flush()?;
        }
        Ok(())
    }
}

// The kind of an operation in blkparse's letters.
const fn kind(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "R",
        Operation::Write { forced: false } | Operation::Zero { forced: false, .. } => "W",
        Operation::Write { forced: true } | Operation::Zero { forced: true, .. } => "WF",
        Operation::Flush => "FF",
        Operation::Discard => "D",
    }
}

// The error number of a result, as the kernel numbers errors of block devices.
const fn error(result: Result<(), Failure>) -> &'static str {
    match result {
        Ok(()) => "0",
        // EIO, ENOSPC, EROFS, ENOLINK.
        Err(Failure::Medium | Failure::OutOfRange | Failure::Refused(_)) => "-5",
        Err(Failure::NoSpace) => "-28",
        Err(Failure::WriteProtected) => "-30",
        Err(Failure::Lost) => "-67",
    }
}

impl Backend for TraceBackend {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn is_immediate(&self) -> bool {
        self.inner.is_immediate()
    }

    fn start(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Start {
        self.note('Q', request, PROGRAM, now_ns);
        self.inner.start(request, data, now_ns)
    }

    fn end(
        &self,
        request: &Request,
        result: Result<(), Failure>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        let result = self.inner.end(request, result, now_ns);
        self.note('C', request, error(result), now_ns);
        result
    }

    fn refresh(&self) {
        self.inner.refresh();
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::NullBackend;

    fn traced(name: &str) -> (TraceBackend, PathBuf) {
        let path = std::env::temp_dir().join(format!("afar-trace-{name}-{}", std::process::id()));
        let inner = Arc::new(NullBackend::new(1 << 30, 9));
        (TraceBackend::create(inner, &path).unwrap(), path)
    }

    fn taken(path: &Path) -> String {
        let text = std::fs::read_to_string(path).unwrap();
        std::fs::remove_file(path).unwrap();
        text
    }

    const READ: Request = Request { operation: Operation::Read, offset: 4096, length: 4096 };
    const T0: u64 = 77_000_000_000_000;

    #[test]
    fn lines_are_those_of_blkparse() {
        let (trace, path) = traced("lines");
        let ask = |request: &Request, result, [from_ns, to_ns]: [u64; 2]| {
            let mut data = vec![0; usize::try_from(request.length).unwrap()];
            trace.start(request, &mut data, T0 + from_ns);
            assert_eq!(trace.end(request, result, T0 + to_ns), result);
        };
        ask(&READ, Ok(()), [0, 83_500]);
        let forced = Operation::Write { forced: true };
        let write = Request { operation: forced, offset: 1 << 29, length: 1 << 20 };
        ask(&write, Err(Failure::NoSpace), [999_999_999, 1_000_000_000]);
        let flush = Request { operation: Operation::Flush, offset: 0, length: 0 };
        ask(&flush, Ok(()), [12_345_678_901, 12_345_678_902]);
        ask(&Request { operation: Operation::Discard, ..READ }, Ok(()), [13_000_000_000; 2]);
        let zero = Operation::Zero { deallocates: true, forced: false };
        ask(&Request { operation: zero, ..READ }, Err(Failure::Medium), [13_000_000_000; 2]);
        drop(trace);
        let pid = format!("{:>5}", std::process::id());
        #[rustfmt::skip] // one line, one line
        let expected = [
            format!("  0,0    0        1     0.000000000 {pid}  Q   R 8 + 8 [afar]\n"),
            format!("  0,0    0        2     0.000083500 {pid}  C   R 8 + 8 [0]\n"),
            format!("  0,0    0        3     0.999999999 {pid}  Q  WF 1048576 + 2048 [afar]\n"),
            format!("  0,0    0        4     1.000000000 {pid}  C  WF 1048576 + 2048 [-28]\n"),
            format!("  0,0    0        5    12.345678901 {pid}  Q  FF [afar]\n"),
            format!("  0,0    0        6    12.345678902 {pid}  C  FF 0 [0]\n"),
            format!("  0,0    0        7    13.000000000 {pid}  Q   D 8 + 8 [afar]\n"),
            format!("  0,0    0        8    13.000000000 {pid}  C   D 8 + 8 [0]\n"),
            format!("  0,0    0        9    13.000000000 {pid}  Q   W 8 + 8 [afar]\n"),
            format!("  0,0    0       10    13.000000000 {pid}  C   W 8 + 8 [-5]\n"),
        ];
        assert_eq!(taken(&path), expected.concat());
    }

    #[test]
    fn the_file_is_written_every_second() {
        let (trace, path) = traced("second");
        let lines = |now_ns| {
            trace.start(&READ, &mut [0; 4096], T0 + now_ns);
            std::fs::read_to_string(&path).unwrap().lines().count()
        };
        assert_eq!([0, 999_999_999, NS_PER_SEC, 1_500_000_000].map(lines), [0, 0, 3, 3]);
        drop(trace);
        assert_eq!(taken(&path).lines().count(), 4);
    }

    #[test]
    fn a_trace_that_cannot_be_written_holds_nothing_up() {
        let full = Path::new("/dev/full");
        let trace = TraceBackend::create(Arc::new(NullBackend::new(1 << 20, 9)), full).unwrap();
        for second in 0..3 {
            trace.start(&READ, &mut [0; 4096], second * NS_PER_SEC);
            assert_eq!(trace.end(&READ, Ok(()), second * NS_PER_SEC), Ok(()));
        }
        assert!(trace.log.lock().unwrap().has_failed);
        let nowhere = Path::new("/nowhere/trace");
        let inner = Arc::new(NullBackend::new(1 << 20, 9));
        assert!(TraceBackend::create(inner, nowhere).is_err());
    }
}
