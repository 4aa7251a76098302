//! Pauses between attempts to connect again.
//!
//! The bound of a pause doubles each time, up to a maximum, and the pause is random in its upper
//! half: hosts that lose a target at the same time do not all reconnect at the same time.

use std::time::{Duration, Instant};

use workload::Draw;

use crate::error::HostError;

/// See the module's description.
#[derive(Debug)]
pub struct Backoff {
    first_ns: u64,
    most_ns: u64,
    next_ns: u64,
    draw: Draw,
}

impl Backoff {
    /// Pauses of up to `first` at the beginning, and up to `most` later.
    #[must_use]
    pub fn new(first: Duration, most: Duration, seed: u64) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (first_ns, most_ns) = (ns(first.min(most)), ns(most));
        Self { first_ns, most_ns, next_ns: first_ns, draw: Draw::new(seed) }
    }

    /// The next pause.
    pub fn pause(&mut self) -> Duration {
        let half = self.next_ns / 2;
        let pause_ns = self.next_ns - self.draw.below(half + 1);
        self.next_ns = self.next_ns.saturating_mul(2).min(self.most_ns);
        Duration::from_nanos(pause_ns)
    }

    /// Begins again with the first pause.
    pub const fn reset(&mut self) {
        self.next_ns = self.first_ns;
    }
}

/// Bounds of the pause between two attempts of `patiently`, at first and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// Calls `attempt` until it does not fail because of the network, for `patience` at most: so a
/// target that is being restarted is found. `wait` sleeps between two attempts.
///
/// # Errors
/// The error of the last attempt, or the first one that is no network error.
pub fn patiently<T>(
    patience: measure::Duration,
    mut wait: impl FnMut(Duration),
    mut attempt: impl FnMut() -> Result<T, HostError>,
) -> Result<T, HostError> {
    let until = Instant::now() + Duration::from_nanos(patience.as_ns());
    let mut backoff = Backoff::new(FIRST_PAUSE, LAST_PAUSE, sys::clock::monotonic_ns());
    loop {
        let result = attempt();
        let is_network = matches!(result, Err(HostError::Network { .. }));
        if !is_network || Instant::now() >= until {
            return result;
        }
        wait(backoff.pause());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn pauses_double_up_to_a_bound_and_are_not_all_alike() {
        let mut some = Vec::new();
        for seed in 0..50 {
            let mut backoff = Backoff::new(MS(100), MS(1000), seed);
            for most in [100, 200, 400, 800, 1000, 1000] {
                let pause = backoff.pause();
                assert!((MS(most / 2)..=MS(most)).contains(&pause), "{pause:?} of {most}");
                some.push(pause);
            }
            backoff.reset();
            assert!(backoff.pause() <= MS(100));
        }
        some.sort();
        some.dedup();
        assert!(some.len() > 200, "{}", some.len());
    }

    #[test]
    fn only_the_network_is_tried_again() {
        let lost = || {
            let source = std::io::ErrorKind::ConnectionReset.into();
            Err(HostError::Network { operation: "connect", source })
        };
        let tried = |patience, answers: &dyn Fn(u32) -> Result<u32, HostError>| {
            let mut count = 0;
            let result =
                patiently(measure::Duration::from_ms(patience), std::thread::sleep, || {
                    count += 1;
                    answers(count)
                });
            (count, result.is_ok())
        };
        let third = |count| if count < 3 { lost() } else { Ok(count) };
        assert_eq!(tried(60_000, &third), (3, true));
        assert_eq!(tried(0, &third), (1, false), "nobody has asked for patience");
        let refused = |_| Err(HostError::Login { status: 0x0203 });
        assert_eq!(tried(60_000, &refused), (1, false));
    }

    #[test]
    fn the_first_is_no_longer_than_the_longest() {
        let mut backoff = Backoff::new(MS(100), MS(10), 1);
        assert!(backoff.pause() <= MS(10) && backoff.pause() <= MS(10));
        assert_eq!(Backoff::new(MS(0), MS(0), 1).pause(), MS(0));
    }
}
