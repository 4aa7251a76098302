//! Checks whether the results of a calibration are plausible.
//!
//! An implausible calibration is refused, with the reason: a number beside a warning would be taken
//! for a result all the same.

use measure::Duration;

/// The least time, in nanoseconds, in which a processor takes a page fault and the kernel resolves
/// it.
const FAULT_MIN_NS: u64 = 100;
/// Errors that are not mentioned: in nanoseconds, and as one part of the delay in so many.
const ERROR_NS_TOLERATED: u64 = 100;
const ERROR_SHARE_TOLERATED: u64 = 50;
/// From this share of the time on (1 in so many), waiting for a processor explains an error.
const WAITED_SHARE: u64 = 100;

/// Why a trap, or its calibration, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error(
        "the trap sees no page faults: afar's own probe touched {touched} remote pages, and none \
         was trapped"
    )]
    Blind { touched: u64 },
    #[error(
        "the trap does not see every page fault once: afar's own probe touched {touched} remote \
         pages, and {fetched} were fetched"
    )]
    Miscounts { touched: u64, fetched: u64 },
    #[error(
        "a fetch seemed to take {floor}, and no page fault takes less than {}; the clock cannot \
         be right",
        Duration::from_ns(FAULT_MIN_NS)
    )]
    TooFast { floor: Duration },
    #[error(
        "fetches are off by {error_ns:+} ns in the median where {delay} were asked for; {busy}"
    )]
    OffTarget { error_ns: i64, delay: Duration, busy: Busy },
}

/// How long the engine and its probe were kept waiting for a processor while they were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Busy {
    /// `None` where the kernel does not report it.
    pub(crate) waited_ns: Option<u64>,
    /// How long the measurement took.
    pub(crate) elapsed_ns: u64,
}

impl Busy {
    // Whether waiting for a processor explains an error.
    fn explains(self) -> bool {
        self.waited_ns.is_some_and(|waited| waited.saturating_mul(WAITED_SHARE) >= self.elapsed_ns)
    }
}

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(waited_ns) = self.waited_ns else {
            return f.write_str("this kernel does not tell whether others had the processors");
        };
        let (waited, elapsed) = (Duration::from_ns(waited_ns), Duration::from_ns(self.elapsed_ns));
        if self.explains() {
            write!(
                f,
                "afar and its probe had to wait for a processor for {waited} of {elapsed}, \
                 because other programs ran; run again when the machine is idle"
            )
        } else {
            write!(
                f,
                "no other program was in the way (afar and its probe waited for a processor for \
                 {waited} of {elapsed}): this machine's page faults vary by as much"
            )
        }
    }
}

/// Checks that each touch of a remote page was one fetch.
///
/// # Errors
/// When the counts differ.
pub(super) fn counted(touched: u64, fetched: u64) -> Result<(), Unusable> {
    match fetched {
        0 => Err(Unusable::Blind { touched }),
        _ if fetched == touched => Ok(()),
        _ => Err(Unusable::Miscounts { touched, fetched }),
    }
}

/// Checks that a fetch took no less than a page fault.
///
/// # Errors
/// When it took less.
pub(super) fn floor(floor_ns: u64) -> Result<(), Unusable> {
    if floor_ns < FAULT_MIN_NS {
        return Err(Unusable::TooFast { floor: Duration::from_ns(floor_ns) });
    }
    Ok(())
}

/// Checks that the remaining error is at most half of the requested delay.
///
/// # Errors
/// When it is larger.
pub(super) fn error(error_ns: i64, delay: Duration, busy: Busy) -> Result<(), Unusable> {
    if error_ns.unsigned_abs() > delay.as_ns() / 2 {
        return Err(Unusable::OffTarget { error_ns, delay, busy });
    }
    Ok(())
}

/// Whether an error is too small to be mentioned.
pub(super) fn is_tolerable(error_ns: i64, delay: Duration) -> bool {
    error_ns.unsigned_abs() <= ERROR_NS_TOLERATED.max(delay.as_ns() / ERROR_SHARE_TOLERATED)
}

/// A warning for the reader of results; `None` if the error is tolerable.
pub(super) fn doubt(error_ns: i64, delay: Duration, busy: Busy) -> Option<String> {
    let doubtful = !is_tolerable(error_ns, delay);
    doubtful.then(|| format!("delays are off by {error_ns:+} ns in the median; {busy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Busy = Busy { waited_ns: Some(10), elapsed_ns: 1_000_000 };

    #[test]
    fn fetches_are_exactly_the_touches() {
        assert_eq!(counted(300, 300), Ok(()));
        assert_eq!(counted(300, 0), Err(Unusable::Blind { touched: 300 }));
        for fetched in [1, 299, 301, 600] {
            assert_eq!(counted(300, fetched), Err(Unusable::Miscounts { touched: 300, fetched }));
        }
    }

    #[test]
    fn no_fetch_is_faster_than_a_fault() {
        assert!(floor(0).is_err() && floor(99).is_err());
        assert!(floor(100).is_ok());
        assert!(floor(0).unwrap_err().to_string().starts_with("a fetch seemed to take 0 ns"));
    }

    #[test]
    fn half_of_the_delay_is_the_most_it_can_be_off() {
        let delay = Duration::from_us(5);
        for error_ns in [-2501, 2501, 114_000] {
            assert!(error(error_ns, delay, IDLE).is_err(), "{error_ns}");
        }
        assert!(error(-2500, delay, IDLE).is_ok() && error(2500, delay, IDLE).is_ok());
    }

    #[test]
    fn doubt_grows_with_the_delay() {
        let doubted = |error_ns, us| doubt(error_ns, Duration::from_us(us), IDLE).is_some();
        assert!(!doubted(100, 2) && !doubted(-100, 2));
        assert!(doubted(101, 2) && doubted(-101, 2));
        assert!(!doubted(1000, 50) && doubted(1001, 50));
    }

    #[test]
    fn others_are_blamed_only_for_time_that_they_took() {
        let blames = |busy: Busy| busy.to_string().contains("because other programs ran");
        assert!(!blames(IDLE));
        assert!(!blames(Busy { waited_ns: None, ..IDLE }));
        assert!(blames(Busy { waited_ns: Some(10_000), ..IDLE }));
        assert!(!blames(Busy { waited_ns: Some(9_999), ..IDLE }));
    }
}
