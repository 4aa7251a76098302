//! The registers of a controller, which fabrics hosts read and write as properties (Base 3.1.4).

use super::command::Property;
use super::layout::registers::{CAP, CC, CRTO, CSTS, NSSR, VS, cap, cc, csts};
use super::status::Status;

/// NVMe 2.1 (Base 3.1.4.2).
pub(crate) const VERSION: u32 = 0x0002_0100;

/// CSTS.SHST: shutdown processing complete.
const SHUT_DOWN: u64 = 2;
/// CSTS.SHST: shutdown processing in progress.
const SHUTTING_DOWN: u64 = 1;
/// CC.SHN: a normal shutdown.
const NORMAL: u64 = 1;
/// CC.IOSQES and CC.IOCQES: entries of 64 and of 16 bytes.
const ENTRY_SHIFTS: [u64; 2] = [6, 4];
/// Time from being enabled until ready, at most, in half seconds (CAP.TO).
const READY_HALF_SECONDS: u64 = 30;

/// The effect of a write to a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// No effect to act on.
    None,
    /// The controller was enabled.
    Enabled,
    /// The controller was reset: its queues end, but not the connection of the admin queue.
    Reset,
    /// The host shuts the controller down: all writes have to be put on the medium.
    ShutDown,
}

/// The registers of one controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Properties {
    /// Entries of an I/O queue at most, less one.
    mqes: u16,
    cc: u64,
    csts: u64,
}

impl Properties {
    /// The value of CC with which a host enables a controller (Base 3.1.4.5).
    pub const ENABLED: u64 =
        cc::EN.of(1) | cc::IOSQES.of(ENTRY_SHIFTS[0]) | cc::IOCQES.of(ENTRY_SHIFTS[1]);
    /// The value of CC with which a host requests a normal shutdown.
    pub const LEAVING: u64 = Self::ENABLED | cc::SHN.of(NORMAL);

    /// The properties of a controller that is not enabled, with at most `queue_entries` for each
    /// I/O queue (2 to 65,536).
    #[must_use]
    pub fn new(queue_entries: u32) -> Self {
        let mqes = u16::try_from(queue_entries.saturating_sub(1)).unwrap_or(u16::MAX).max(1);
        Self { mqes, cc: 0, csts: 0 }
    }

    /// Whether the controller is ready: it takes commands other than those of Fabrics.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        csts::RDY.get(self.csts) != 0
    }

    /// Reads a property.
    ///
    /// # Errors
    /// Invalid Field for one that does not exist or has another size (Base 6.4).
    pub fn get(&self, property: Property) -> Result<u64, Status> {
        let value = match (property.offset, property.is_wide) {
            (CAP, true) => self.capabilities(),
            (VS, false) => u64::from(VERSION),
            (CC, false) => self.cc,
            (CSTS, false) => self.csts,
            // Subsystem reset is not supported.
            (NSSR, false) => 0,
            // CRWMT only: the mode of the other time is not supported.
            (CRTO, false) => READY_HALF_SECONDS,
            _ => return Err(Status::INVALID_FIELD.do_not_retry()),
        };
        Ok(value)
    }

    /// Writes a property.
    ///
    /// # Errors
    /// Invalid Field for any property but CC, the only one that hosts may write (Base 6.6).
    pub fn set(&mut self, property: Property, value: u64) -> Result<Change, Status> {
        let invalid = Status::INVALID_FIELD.do_not_retry();
        if (property.offset, property.is_wide) != (CC, false) {
            return Err(invalid);
        }
        if value > u64::from(u32::MAX) {
            return Err(invalid);
        }
        let before = std::mem::replace(&mut self.cc, value);
        let [was_enabled, is_enabled] = [before, self.cc].map(|cc| cc::EN.get(cc) != 0);
        let [was_leaving, is_leaving] = [before, self.cc].map(|cc| cc::SHN.get(cc) != 0);
        if was_enabled && !is_enabled {
            self.csts = 0;
            return Ok(Change::Reset);
        }
        let mut change = Change::None;
        if !was_enabled && is_enabled {
            if !self.can_be_enabled() {
                self.csts = csts::CFS.of(1);
                return Ok(Change::None);
            }
            self.csts = csts::RDY.of(1);
            change = Change::Enabled;
        }
        if is_leaving {
            self.csts |= csts::SHST.of(SHUT_DOWN);
        }
        Ok(if is_leaving && !was_leaving { Change::ShutDown } else { change })
    }

    /// Fails the requested shutdown, since writes could not be put on the medium: it stays in
    /// progress, and the controller reports a fatal error (CSTS.CFS; Base 3.1.4.6, 3.6.1).
    pub const fn fail_shutdown(&mut self) {
        let others = self.csts & !csts::SHST.of(SHUT_DOWN);
        self.csts = others | csts::SHST.of(SHUTTING_DOWN) | csts::CFS.of(1);
    }

    // CAP (Base 3.1.4.1): contiguous queues, the NVM command set, pages of 4 KiB, ready with its
    // media (CRMS).
    fn capabilities(&self) -> u64 {
        cap::MQES.of(self.mqes.into())
            | cap::CQR.of(1)
            | cap::TO.of(READY_HALF_SECONDS)
            | cap::CSS_NVM.of(1)
            | cap::CRMS_CRWMS.of(1)
    }

    // Whether CC is supported: entries of 64 and 16 bytes, pages of 4 KiB, round robin, the NVM
    // command set (Base 3.1.4.5).
    const fn can_be_enabled(&self) -> bool {
        let is_usual = cc::CSS.get(self.cc) == 0 && cc::MPS.get(self.cc) == 0;
        let [submission, completion] = [cc::IOSQES.get(self.cc), cc::IOCQES.get(self.cc)];
        is_usual
            && cc::AMS.get(self.cc) == 0
            && submission == ENTRY_SHIFTS[0]
            && completion == ENTRY_SHIFTS[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW_CC: Property = Property { offset: CC, is_wide: false };

    fn csts(properties: &Properties) -> u64 {
        properties.get(Property { offset: CSTS, is_wide: false }).expect("it exists")
    }

    // As Linux writes them.
    #[test]
    fn a_controller_lives_as_its_host_wishes() {
        let mut properties = Properties::new(128);
        assert_eq!(properties.set(NARROW_CC, 0x0046_0000), Ok(Change::None));
        assert_eq!((csts(&properties), properties.is_ready()), (0, false));
        assert_eq!(properties.set(NARROW_CC, 0x0046_0001), Ok(Change::Enabled));
        assert_eq!((csts(&properties), properties.is_ready()), (1, true));
        assert_eq!(properties.set(NARROW_CC, 0x0046_0001), Ok(Change::None));
        assert_eq!(properties.set(NARROW_CC, 0x0046_4001), Ok(Change::ShutDown));
        assert_eq!(csts(&properties), 1 | 2 << 2);
        let mut failed = properties;
        failed.fail_shutdown();
        assert_eq!(csts(&failed), 1 | 1 << 1 | 1 << 2, "it is not complete");
        assert_eq!(properties.set(NARROW_CC, 0x0046_4001), Ok(Change::None), "it is known");
        assert_eq!(properties.set(NARROW_CC, 0x0046_0000), Ok(Change::Reset));
        assert_eq!((csts(&properties), properties.is_ready()), (0, false));
    }

    #[test]
    fn a_host_writes_what_linux_writes() {
        assert_eq!((Properties::ENABLED, Properties::LEAVING), (0x0046_0001, 0x0046_4001));
        assert_eq!(Property::CONFIGURATION, NARROW_CC);
    }

    #[test]
    fn what_cannot_be_enabled_says_so() {
        // Entries of 32 bytes; large pages; another arbitration; another command set.
        for cc in [0x0045_0001, 0x0046_0081, 0x0046_0801, 0x0046_0061, 1] {
            let mut properties = Properties::new(128);
            assert_eq!(properties.set(NARROW_CC, cc), Ok(Change::None), "{cc:#x}");
            assert_eq!((csts(&properties), properties.is_ready()), (2, false), "{cc:#x}");
            assert_eq!(properties.set(NARROW_CC, 0), Ok(Change::Reset));
            assert_eq!(properties.set(NARROW_CC, 0x0046_0001), Ok(Change::Enabled));
        }
    }

    #[test]
    fn there_are_six_properties_of_one_size_each() {
        let properties = Properties::new(128);
        let mut there = Vec::new();
        for offset in 0..0x1_0000 {
            for is_wide in [false, true] {
                if properties.get(Property { offset, is_wide }).is_ok() {
                    there.push((offset, is_wide));
                }
                let mut written = properties;
                let result = written.set(Property { offset, is_wide }, 0x46_0001);
                assert_eq!(result.is_ok(), (offset, is_wide) == (CC, false), "{offset:#x}");
            }
        }
        let narrow = [VS, CC, CSTS, NSSR, CRTO].map(|offset| (offset, false));
        assert_eq!(there, [&[(CAP, true)], &narrow[..]].concat());
    }

    #[test]
    fn capabilities_say_how_deep_queues_are() {
        let mqes = |entries| {
            let cap = Properties::new(entries).get(Property { offset: CAP, is_wide: true });
            cap.expect("it exists") & 0xffff
        };
        assert_eq!([2, 128, 65_536, 1 << 20].map(mqes), [1, 127, 65_535, 65_535]);
        assert_eq!(mqes(0), 1, "a queue has two entries at least");
        // Base 3.1.4.1: a controller of version 2.0 or above says how it becomes ready, and CRTO
        // says when.
        let properties = Properties::new(128);
        let cap = properties.get(Property { offset: CAP, is_wide: true });
        let crto = properties.get(Property { offset: CRTO, is_wide: false });
        assert_eq!((cap.map(|cap| cap >> 59 & 3), crto), (Ok(1), Ok(30)));
    }
}
