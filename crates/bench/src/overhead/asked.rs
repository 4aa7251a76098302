//! The cost of a system call that notifies a supervisor which answers at once
//! (`seccomp_unotify(2)`).

use std::ffi::{OsStr, OsString};
use std::time::Instant;

use sys::event::Poll;
use sys::process::SpawnError;
use sys::seccomp::{Block, Filter, Verdict};

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::AsksFlags;

/// The number of getppid, which this program calls nowhere else.
const GETPPID: std::ffi::c_long = 110;

/// The mean time of `count` calls that notify a supervisor, in nanoseconds per call.
///
/// # Errors
/// When the kernel refuses the filter, or the program does not write its answer.
pub(super) fn round_trip(context: &Context, count: u64) -> Result<f64, Failure> {
    let answer = context.fresh("txt");
    let mut words = context.hidden("asks");
    let flags: [OsString; 4] =
        ["--count".into(), count.to_string().into(), "--answer".into(), answer.clone().into()];
    words.extend(flags);
    let ask = Block { nr: GETPPID, rules: Vec::new(), otherwise: Verdict::Notify };
    let variable = (OsStr::new("AFAR_BENCH"), OsStr::new("asks"));
    let spawned =
        sys::process::spawn(&words, variable, Filter::new(&[ask], &[]), 0).map_err(refused)?;
    let (mut poll, mut ready) = (Poll::new()?, Vec::new());
    poll.add(&spawned.listener, 0)?;
    let mut is_over = false;
    while !is_over {
        poll.wait(None, &mut ready)?;
        is_over = ready.iter().any(|event| event.hung_up);
        if !is_over && let Some(call) = spawned.listener.receive()? {
            spawned.listener.proceed(call.id)?;
        }
    }
    while sys::process::next_change().is_some() {}
    let said = std::fs::read_to_string(&answer).map_err(Failure::file("read", "the answer"))?;
    let (program, wanted) = ("bench", "a time");
    said.trim().parse().map_err(|_| Failure::Unreadable { program, wanted, said })
}

/// The failure that the program could not be started.
fn refused(error: SpawnError) -> Failure {
    let source = std::io::Error::other(error);
    Failure::NotStarted { program: "bench".to_owned(), source }
}

/// The hidden command `asks`: makes system calls and writes nanoseconds per call to a file.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn asks(flags: &AsksFlags) -> Result<(), Failure> {
    let begin = Instant::now();
    for _ in 0..flags.count {
        std::hint::black_box(std::os::unix::process::parent_id());
    }
    let ns = begin.elapsed().as_secs_f64() * 1e9 / crate::stats::float(flags.count.max(1));
    std::fs::write(&flags.answer, ns.to_string()).map_err(Failure::file("write", "the answer"))
}
