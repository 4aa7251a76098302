//! State of flows, stored only while they are under way.

/// Marks a flow that has no slot.
const NONE: u32 = u32::MAX;

/// A table of `T` by flow, whose slots are reused.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    /// By flow.
    places: Vec<u32>,
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(crate) fn new(flows: usize) -> Self {
        Self { places: vec![NONE; flows], slots: Vec::new(), free: Vec::new() }
    }

    /// Allocates a slot for `flow`. `make` gets the state of the slot's last user, to reuse its
    /// memory.
    pub(crate) fn open(&mut self, flow: u32, make: impl FnOnce(Option<T>) -> T)
    where
        T: Default,
    {
        let place = if let Some(place) = self.free.pop() {
            let slot = &mut self.slots[place as usize];
            *slot = make(Some(std::mem::take(slot)));
            place
        } else {
            self.slots.push(make(None));
            u32::try_from(self.slots.len() - 1).expect("there are fewer than 2³² flows")
        };
        self.places[flow as usize] = place;
    }

    /// Frees the slot of `flow`.
    pub(crate) fn close(&mut self, flow: u32) {
        let place = std::mem::replace(&mut self.places[flow as usize], NONE);
        if place != NONE {
            self.free.push(place);
        }
    }

    #[inline]
    pub(crate) fn get(&self, flow: u32) -> Option<&T> {
        self.slots.get(self.places[flow as usize] as usize)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, flow: u32) -> Option<&mut T> {
        self.slots.get_mut(self.places[flow as usize] as usize)
    }
}

/// The set of packets of a flow that have arrived.
#[derive(Debug, Default)]
pub(crate) struct Held {
    bits: Vec<u64>,
    count: u32,
    /// The first packet that is missing.
    until: u32,
}

impl Held {
    /// An empty set for `packets` packets, in the memory of `self`.
    pub(crate) fn reset(mut self, packets: u32) -> Self {
        self.bits.clear();
        self.bits.resize(packets.div_ceil(64) as usize, 0);
        Self { bits: self.bits, count: 0, until: 0 }
    }

    /// How many packets are in the set.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    /// The first packet that is missing.
    pub(crate) const fn until(&self) -> u32 {
        self.until
    }

    /// How many packets are in the set beyond the first that is missing.
    pub(crate) const fn beyond(&self) -> u32 {
        self.count - self.until
    }

    /// Whether packet `number` is in the set.
    #[inline]
    pub(crate) fn has(&self, number: u32) -> bool {
        self.bits.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Adds a packet. Returns whether it is new.
    #[inline]
    pub(crate) fn take(&mut self, number: u32) -> bool {
        let Some(word) = self.bits.get_mut(number as usize / 64) else { return false };
        let bit = 1 << (number % 64);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        self.count += 1;
        if number == self.until {
            self.skip();
        }
        true
    }

    /// Moves `until` to the first packet that is missing.
    fn skip(&mut self) {
        while let Some(word) = self.bits.get(self.until as usize / 64) {
            let rest = word >> (self.until % 64);
            let run = (!rest).trailing_zeros().min(64 - self.until % 64);
            self.until += run;
            if run == 0 || !self.until.is_multiple_of(64) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn held_is_a_set_with_its_first_gap(
            packets in 1_u32..300,
            numbers in prop::collection::vec(0_u32..300, 0..400),
        ) {
            let mut held = Held::default().reset(packets);
            let mut model = std::collections::BTreeSet::new();
            for number in numbers.into_iter().filter(|&number| number < packets) {
                prop_assert_eq!(held.take(number), model.insert(number));
                let until = (0..).find(|number| !model.contains(number)).unwrap();
                prop_assert_eq!(held.until(), until);
                prop_assert_eq!(held.count() as usize, model.len());
                prop_assert!(held.has(number));
            }
        }
    }

    #[test]
    fn slots_are_used_again() {
        let mut slots: Slots<u32> = Slots::new(3);
        slots.open(0, |old| old.map_or(7, |_| 8));
        slots.open(2, |old| old.map_or(9, |_| 8));
        slots.close(0);
        assert_eq!((slots.get(0), slots.get(2)), (None, Some(&9)));
        slots.open(1, |old| old.map_or(5, |old| old + 100));
        assert_eq!((slots.get(1), slots.slots.len()), (Some(&107), 2));
    }
}
