//! Solicited data (R2T), and how much of it may be outstanding at a time.
//!
//! Memory is held from the request to the last byte, so a host on a slow link would hold much of it
//! for long. The window is twice what the host has lately sent in [`PERIOD_NS`]; for a fast host it
//! grows exponentially, as in TCP's slow start.
//!
//! Invariants:
//! - A host that owes nothing may be sent a request for a command of any size.
//! - Otherwise it never owes more than the larger of its share and twice what came in a period.

use super::dues::PROGRESS_BYTES;

/// The period over which bytes of a host are counted.
const PERIOD_NS: u64 = 50_000_000;

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Solicited {
    /// Commands whose data is owed, and the requested bytes of it.
    commands: u32,
    bytes: u64,
    /// Bytes that have come since the connection began; each end of a command adds
    /// [`PROGRESS_BYTES`].
    came: u64,
    /// When the period began, bytes of commands that ended in it, and in the one before.
    since_ns: u64,
    now_bytes: u64,
    last_bytes: u64,
}

impl Solicited {
    /// Whether `bytes` more may be requested; up to `share` always may.
    pub(crate) fn may_ask(&mut self, bytes: usize, share: usize, now_ns: u64) -> bool {
        self.turn(now_ns);
        let window = (2 * self.now_bytes.max(self.last_bytes)).max(share as u64);
        self.bytes == 0 || self.bytes + bytes as u64 <= window
    }

    /// Adds a command whose data is owed; `bytes` is 0 for unsolicited data.
    pub(crate) const fn ask(&mut self, bytes: usize) {
        self.commands += 1;
        self.bytes += bytes as u64;
    }

    /// Counts received bytes.
    pub(crate) const fn moved(&mut self, bytes: usize) {
        self.came += bytes as u64;
    }

    /// Removes a command whose data is no longer owed, and of which `bytes` were requested.
    pub(crate) fn end(&mut self, bytes: usize, now_ns: u64) {
        self.turn(now_ns);
        self.commands = self.commands.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes as u64);
        self.now_bytes += bytes as u64;
        self.came += PROGRESS_BYTES;
    }

    /// How many bytes of data have come since the connection began; `None` if no data is owed.
    pub(crate) const fn owed(&self) -> Option<u64> {
        if self.commands > 0 { Some(self.came) } else { None }
    }

    // Begins another period if the last one is over.
    const fn turn(&mut self, now_ns: u64) {
        let age_ns = now_ns.saturating_sub(self.since_ns);
        if age_ns >= PERIOD_NS {
            self.last_bytes = if age_ns < 2 * PERIOD_NS { self.now_bytes } else { 0 };
            (self.since_ns, self.now_bytes) = (now_ns, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    // Asks for 1 MiB as often as may be, with the data of each on a link of so many bytes per
    // millisecond, for a second; the most that was owed.
    fn most_owed(bytes_per_ms: usize) -> usize {
        let mut solicited = Solicited::default();
        let (mut owed, mut sent, mut most) = (0, 0, 0);
        for ms in 0..1000_u64 {
            let now_ns = ms * 1_000_000;
            while solicited.may_ask(MIB, 5 * MIB / 4, now_ns) {
                solicited.ask(MIB);
                owed += MIB;
                if owed > 4096 * MIB {
                    return owed;
                }
            }
            most = most.max(owed);
            sent += bytes_per_ms.min(owed - sent);
            while sent >= MIB {
                (sent, owed) = (sent - MIB, owed - MIB);
                solicited.end(MIB, now_ns);
            }
        }
        most
    }

    #[test]
    fn a_slow_host_is_asked_for_little_and_a_fast_one_for_much() {
        let slow = most_owed(12_500);
        assert!(slow <= 2 * MIB, "100 Mb/s: {} MiB", slow / MIB);
        let fast = most_owed(1_250_000);
        assert!(fast > 100 * MIB, "10 Gb/s: {} MiB", fast / MIB);
    }

    #[test]
    fn who_owes_nothing_may_be_asked_for_anything() {
        let mut solicited = Solicited::default();
        assert!(solicited.may_ask(32 * MIB, 4096, 0));
        solicited.ask(32 * MIB);
        assert!(!solicited.may_ask(1, 4096, 0));
        assert_eq!(solicited.owed(), Some(0));
        solicited.end(32 * MIB, 1);
        assert_eq!(solicited.owed(), None);
        // What came long ago says nothing.
        solicited.ask(MIB);
        assert!(solicited.may_ask(MIB, 4096, 10));
        assert!(!solicited.may_ask(MIB, 4096, 10 * PERIOD_NS));
    }
}
