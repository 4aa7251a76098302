//! Work on all processors, with a progress line, until it ends or Ctrl-C ends it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::run::Looker;

/// How often signals are polled and the progress line is drawn.
const LOOK: Duration = Duration::from_millis(200);

/// The number of threads: `wanted`, or as many as there are processors.
pub fn threads(wanted: Option<u32>) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    wanted.map_or_else(all, |wanted| wanted as usize)
}

/// Calls `work` for every number below `count` on threads, and `ended` with each result as it
/// comes; `work` returns `None` once its flag says stop. Returns whether all of them ended.
///
/// # Errors
/// The first error of `work` or `ended`.
pub fn run<T: Send, E: Send>(
    count: usize,
    threads: usize,
    (looker, name): (&mut Looker<'_>, impl Fn(usize) -> String),
    work: impl Fn(usize, &AtomicBool) -> Result<Option<T>, E> + Sync,
    mut ended: impl FnMut(usize, T) -> Result<(), E>,
) -> Result<bool, E> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..threads.min(count) {
            let (sender, next, stop, work) = (sender.clone(), &next, &stop, &work);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let Some(done) = work(number, stop).transpose() else { return };
                    if sender.send((number, done)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut done = 0;
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok((number, result)) => {
                    let taken = result.and_then(|result| ended(number, result));
                    if taken.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    taken?;
                    done += 1;
                    looker.progress.end(&name(number));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(done == count),
            }
            if looker.signals.next().is_some() {
                stop.store(true, Ordering::Relaxed);
            }
            looker.progress.show("");
        }
    })
}

#[cfg(test)]
mod tests {
    use console::Progress;
    use sys::event::Signals;

    use super::*;

    #[test]
    fn everything_is_done_once_and_an_error_stops_the_rest() {
        let signals = Signals::receive(&[]).expect("no signals");
        let mut looker = Looker { signals: &signals, progress: Progress::unseen("run") };
        let mut seen = Vec::new();
        let whole = run(
            100,
            3,
            (&mut looker, |number| number.to_string()),
            |number, _| Ok::<_, ()>(Some(number * number)),
            |number, square| {
                seen.push((number, square));
                Ok(())
            },
        );
        seen.sort_unstable();
        assert_eq!(whole, Ok(true));
        assert_eq!(seen, (0..100).map(|number| (number, number * number)).collect::<Vec<_>>());
        let mut taken = 0;
        let broken = run(
            100,
            1,
            (&mut looker, |number| number.to_string()),
            |number, _| if number == 3 { Err(number) } else { Ok(Some(())) },
            |_, ()| {
                taken += 1;
                Ok(())
            },
        );
        assert_eq!((broken, taken), (Err(3), 3));
    }
}
