//! What it costs to be asked about a system call: a supervisor that answers at once, and nothing
//! else (`seccomp_unotify(2)`).

use std::ffi::{OsStr, OsString};
use std::time::Instant;

use sys::event::Poll;
use sys::process::SpawnError;
use sys::seccomp::{Block, Filter, Verdict};

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::AsksFlags;

/// getppid, which nothing else here calls meanwhile.
const GETPPID: std::ffi::c_long = 110;

/// Nanoseconds of a call that a supervisor is asked about, in the mean of so many.
///
/// # Errors
/// When the kernel refuses the filter, or the program ends otherwise than it should.
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

fn refused(error: SpawnError) -> Failure {
    let source = std::io::Error::other(error);
    Failure::NotStarted { program: "bench".to_owned(), source }
}

/// The program that is asked about: writes nanoseconds per call to a file.
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
