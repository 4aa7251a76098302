//! CPython as a program under test.

use std::ffi::OsString;
use std::time::Instant;

use crate::context::Context;
use crate::failure::Failure;
use crate::far::{FarRun, Place};
use crate::process::LONG;

/// Debian's Python; others on PATH may be wrappers.
const PYTHON: &str = "/usr/bin/python3";

const SORT: &str = "
import random, sys, time, zlib
random.seed(1)
start = time.perf_counter_ns()
items = ['%016x' % random.getrandbits(64) for _ in range(int(sys.argv[1]))]
built = time.perf_counter_ns()
shuffled = items[:]
copied = time.perf_counter_ns()
items.sort()
done = time.perf_counter_ns()
again = [done - copied]
for _ in range(int(sys.argv[2])):
    copy = shuffled[:]
    before = time.perf_counter_ns()
    copy.sort()
    again.append(time.perf_counter_ns() - before)
later = sorted(again[1:]) or again
print(built - start, done - copied, later[len(later) // 2], zlib.crc32(''.join(items).encode()))
";

const MAP: &str = "
import mmap, sys, time
size, pairs = int(sys.argv[1]), int(sys.argv[2])
kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
mmap.mmap(-1, size, flags=kind).close()
start = time.perf_counter_ns()
for _ in range(pairs):
    mmap.mmap(-1, size, flags=kind).close()
print((time.perf_counter_ns() - start) // pairs)
";

/// The results of a sort of strings.
#[derive(Debug, Clone)]
pub(crate) struct Sorted {
    /// Time to make the strings.
    pub(crate) build_ns: u64,
    /// Time of the first sort.
    pub(crate) sort_ns: u64,
    /// Median time of later sorts.
    pub(crate) again_ns: u64,
    /// Run time of Python, for which the record counts faults.
    pub(crate) whole_ns: u64,
    /// CRC-32 of the sorted strings.
    pub(crate) checksum: u64,
    /// afar's record; `None` without far memory.
    pub(crate) run: Option<FarRun>,
}

/// Makes and sorts `count` strings of 16 characters, then sorts them `again` times.
///
/// # Errors
/// When Python is missing or fails.
pub(crate) fn sort(
    context: &Context,
    place: &Place,
    count: u64,
    again: u64,
) -> Result<Sorted, Failure> {
    let start = Instant::now();
    let (numbers, run) = execute(context, place, SORT, &[count, again])?;
    let native_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let whole_ns = run.as_ref().map_or(native_ns, |run| run.figures.elapsed_ns);
    let [build_ns, sort_ns, again_ns, checksum] = numbers[..] else {
        return Err(unreadable("three times and a checksum", &numbers));
    };
    Ok(Sorted { build_ns, sort_ns, again_ns, whole_ns, checksum, run })
}

/// Maps and unmaps `bytes` of anonymous memory, untouched, `pairs` times. Returns nanoseconds per
/// pair, including Python's own time.
///
/// # Errors
/// When Python is missing or fails.
pub(crate) fn map(
    context: &Context,
    place: &Place,
    bytes: u64,
    pairs: u64,
) -> Result<u64, Failure> {
    let (numbers, _run) = execute(context, place, MAP, &[bytes, pairs])?;
    let [ns] = numbers[..] else {
        return Err(unreadable("a time", &numbers));
    };
    Ok(ns)
}

// Runs a Python script. Returns the whole numbers that it prints, and afar's record if it ran under
// afar.
fn execute(
    context: &Context,
    place: &Place,
    script: &str,
    arguments: &[u64],
) -> Result<(Vec<u64>, Option<FarRun>), Failure> {
    if !std::path::Path::new(PYTHON).is_file() {
        return Err(Failure::Missing { program: PYTHON, package: "python3" });
    }
    let mut program: Vec<OsString> = vec![PYTHON.into(), "-c".into(), script.into()];
    program.extend(arguments.iter().map(|argument| argument.to_string().into()));
    let outcome = place.execute(context, &program, LONG)?;
    let numbers: Result<Vec<u64>, _> = outcome.stdout.split_whitespace().map(str::parse).collect();
    match numbers {
        Ok(numbers) => Ok((numbers, outcome.run)),
        Err(_) => {
            Err(Failure::Unreadable { program: "python3", wanted: "numbers", said: outcome.stdout })
        }
    }
}

/// The failure that a script printed `numbers` instead of what is `wanted`.
fn unreadable(wanted: &'static str, numbers: &[u64]) -> Failure {
    Failure::Unreadable { program: "python3", wanted, said: format!("{numbers:?}") }
}

/// Checks that all runs have the same result.
///
/// # Errors
/// When one has another result than the first.
pub(crate) fn same_result(checksums: impl Iterator<Item = u64>) -> Result<(), Failure> {
    let mut checksums = checksums.peekable();
    let first = checksums.peek().copied();
    match checksums.find(|&checksum| Some(checksum) != first) {
        None => Ok(()),
        Some(other) => Err(Failure::Differs {
            program: "python3",
            one: format!("{:08x}", first.unwrap_or_default()),
            other: format!("{other:08x}"),
        }),
    }
}
