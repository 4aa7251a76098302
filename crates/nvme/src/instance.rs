//! Instances of a controller, by which a host names a controller that it can no longer reach.
//!
//! A CNTLID may be reused by another controller, and a controller is a new instance whenever it is
//! enabled. So a host that has lost its path to a controller gives CNTLID, CIU and CIRN when it has
//! another controller reset it (Cross-Controller Reset: TP8028, Base 2.3 5.4.3).

/// See the module's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instance {
    /// CNTLID.
    pub controller: u16,
    /// CIU: a new value whenever the controller is enabled, never 0.
    pub uniquifier: u8,
    /// CIRN: a new pseudorandom number whenever the controller is enabled.
    pub random: u64,
}

/// Generates the instances of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instances {
    controller: u16,
    seed: u64,
    count: u64,
}

// An odd number, so that its multiples modulo 2⁶⁴ all differ.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Instances {
    /// The instances of a controller that was never enabled; `seed` is a random number for it.
    pub(crate) const fn new(controller: u16, seed: u64) -> Self {
        Self { controller, seed, count: 0 }
    }

    /// The current instance.
    pub(crate) fn now(&self) -> Instance {
        let uniquifier = u8::try_from(self.count % 255).unwrap_or(0) + 1;
        let random = self.seed.wrapping_add(self.count.wrapping_mul(STEP));
        Instance { controller: self.controller, uniquifier, random }
    }

    /// Begins the next instance: the controller is enabled.
    pub(crate) const fn begin(&mut self) {
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_instance_is_like_another() {
        let mut instances = Instances::new(7, u64::MAX);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let Instance { controller, uniquifier, random } = instances.now();
            assert!(controller == 7 && uniquifier > 0);
            assert!(seen.insert(random));
            instances.begin();
            assert_ne!(instances.now().uniquifier, uniquifier);
        }
    }
}
