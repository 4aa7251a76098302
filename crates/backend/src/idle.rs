//! How a thread waits for its ring: it polls for a while, if polling has paid, and then sleeps.

use sys::clock::monotonic_ns;
use sys::ring::Ring;

/// An adaptive wait for a ring: polls first, then sleeps.
pub struct Idle {
    /// The longest time to poll; 0 to sleep at once.
    look_ns: u64,
    /// Whether polling found a completion the last time, or would have.
    pays: bool,
    /// Total time spent polling.
    looked_ns: u64,
}

impl Idle {
    /// A wait that polls for `look_ns` nanoseconds at most before it sleeps.
    #[must_use]
    pub const fn new(look_ns: u64) -> Self {
        Self { look_ns, pays: true, looked_ns: 0 }
    }

    /// The total time spent polling, in nanoseconds.
    #[must_use]
    pub const fn looked_ns(&self) -> u64 {
        self.looked_ns
    }

    /// Waits for a completion, at most until `until_ns` on the monotonic clock. Returns whether the
    /// thread has slept.
    ///
    /// # Errors
    /// As [`Ring::wait_until`].
    pub fn sleeps(&mut self, ring: &mut Ring, until_ns: Option<u64>) -> sys::Result<bool> {
        if self.look_ns == 0 {
            ring.wait_until(until_ns)?;
            return Ok(true);
        }
        let began_ns = monotonic_ns();
        let last_ns = until_ns.unwrap_or(u64::MAX);
        let look_until_ns = began_ns + self.look_ns;
        if self.pays {
            // The first poll also submits requests to the kernel, which is work and not counted.
            let mut first_ns = None;
            loop {
                ring.poll()?;
                let now_ns = monotonic_ns();
                let first_ns = *first_ns.get_or_insert(now_ns);
                if ring.has_ended() || now_ns >= look_until_ns.min(last_ns) {
                    // Capped: any longer time belongs to another thread that ran meanwhile.
                    self.looked_ns += (now_ns - first_ns).min(self.look_ns);
                    break;
                }
                // Who is to send what this thread waits for may need this processor: beside a host
                // on the same processor a read took 65 us without the yield, 23 with it.
                std::thread::yield_now();
            }
            if ring.has_ended() || last_ns <= look_until_ns {
                ring.set_direct(true);
                return Ok(false);
            }
        }
        ring.wait_until(until_ns)?;
        // Polling would have found a completion that came this soon.
        self.pays = monotonic_ns() - began_ns <= self.look_ns * 2;
        ring.set_direct(self.pays);
        Ok(true)
    }
}
