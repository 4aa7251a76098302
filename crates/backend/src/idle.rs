//! How a thread waits for its ring: it looks for what has ended for a while, where that has paid,
//! and then sleeps.

use sys::clock::monotonic_ns;
use sys::ring::Ring;

/// See the module's description.
pub struct Idle {
    /// How long it looks at most; 0 for not at all.
    look_ns: u64,
    /// Looking would have found something the last time.
    pays: bool,
    /// How long it has looked in all.
    looked_ns: u64,
}

impl Idle {
    /// Looks for `look_ns` nanoseconds at most before it sleeps.
    #[must_use]
    pub const fn new(look_ns: u64) -> Self {
        Self { look_ns, pays: true, looked_ns: 0 }
    }

    /// How long it has looked and found nothing yet, in nanoseconds.
    #[must_use]
    pub const fn looked_ns(&self) -> u64 {
        self.looked_ns
    }

    /// Waits for something to end, or at most until `until_ns` by the monotonic clock; whether it
    /// has slept.
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
            // The first look also hands the kernel what it is to do, which is work.
            let mut first_ns = None;
            loop {
                ring.poll()?;
                let now_ns = monotonic_ns();
                let first_ns = *first_ns.get_or_insert(now_ns);
                if ring.has_ended() || now_ns >= look_until_ns.min(last_ns) {
                    // What took longer than looking may was another thread's turn.
                    self.looked_ns += (now_ns - first_ns).min(self.look_ns);
                    break;
                }
                std::hint::spin_loop();
            }
            if ring.has_ended() || last_ns <= look_until_ns {
                ring.set_direct(true);
                return Ok(false);
            }
        }
        ring.wait_until(until_ns)?;
        // Whatever came so soon would have been found by looking.
        self.pays = monotonic_ns() - began_ns <= self.look_ns * 2;
        ring.set_direct(self.pays);
        Ok(true)
    }
}
