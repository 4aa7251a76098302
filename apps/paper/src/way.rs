//! The ways to the drive, and values for each of them.

use std::ops::{Index, IndexMut};

use chart::{BLUE, GREEN, ORANGE};
use serde::Serialize;

use super::report::median;

/// A way to the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The drive is in this process.
    Local,
    /// Through a target, over NVMe/TCP.
    Nvme,
    /// Through the same target, over iSCSI.
    Iscsi,
}

/// A value for each way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct PerWay<T> {
    pub(super) local: T,
    pub(super) nvme: T,
    pub(super) iscsi: T,
}

/// All orders of the ways. In the first three, and in the last three, each way has each position
/// once.
const ORDERS: [[Way; 3]; 6] = {
    use Way::{Iscsi, Local, Nvme};
    [
        [Local, Nvme, Iscsi],
        [Nvme, Iscsi, Local],
        [Iscsi, Local, Nvme],
        [Local, Iscsi, Nvme],
        [Iscsi, Nvme, Local],
        [Nvme, Local, Iscsi],
    ]
};

/// Calls `run` for each way, in an order that depends on the repetition; `None` if one call returns
/// `None`.
///
/// # Errors
/// The first error of `run`.
pub(super) fn in_turn<T, E>(
    repetition: usize,
    mut run: impl FnMut(Way) -> Result<Option<T>, E>,
) -> Result<Option<PerWay<T>>, E> {
    let mut made = PerWay { local: None, nvme: None, iscsi: None };
    for way in ORDERS[repetition % ORDERS.len()] {
        let Some(one) = run(way)? else { return Ok(None) };
        made[way] = Some(one);
    }
    let PerWay { local, nvme, iscsi } = made;
    let all = local.zip(nvme).zip(iscsi);
    Ok(all.map(|((local, nvme), iscsi)| PerWay { local, nvme, iscsi }))
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Local, Self::Nvme, Self::Iscsi];
    /// The ways through the target.
    pub(super) const REMOTE: [Self; 2] = [Self::Nvme, Self::Iscsi];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Nvme => "NVMe/TCP",
            Self::Iscsi => "iSCSI",
        }
    }

    /// Its colour in pictures.
    pub(super) const fn colour(self) -> &'static str {
        match self {
            Self::Local => BLUE,
            Self::Nvme => ORANGE,
            Self::Iscsi => GREEN,
        }
    }

    /// Names and colours of ways, for a picture's key.
    pub(super) fn key(ways: &[Self]) -> Vec<(&'static str, &'static str)> {
        ways.iter().map(|way| (way.name(), way.colour())).collect()
    }
}

impl<T> PerWay<T> {
    /// The values that `make` returns for each way.
    pub(super) fn each(mut make: impl FnMut(Way) -> T) -> Self {
        Self { local: make(Way::Local), nvme: make(Way::Nvme), iscsi: make(Way::Iscsi) }
    }

    /// The values that `make` returns for each of these.
    pub(super) fn map<U>(&self, mut make: impl FnMut(&T) -> U) -> PerWay<U> {
        PerWay::each(|way| make(&self[way]))
    }

    /// The values in the order of [`Way::ALL`].
    pub(super) fn all(&self) -> [&T; 3] {
        [&self.local, &self.nvme, &self.iscsi]
    }
}

impl PerWay<f64> {
    /// The largest value.
    pub(super) fn most(&self) -> f64 {
        self.local.max(self.nvme).max(self.iscsi)
    }

    /// The smallest value.
    pub(super) fn least(&self) -> f64 {
        self.local.min(self.nvme).min(self.iscsi)
    }

    /// The value of a way, as a share of the local one.
    pub(super) fn of_local(&self, way: Way) -> f64 {
        self[way] / self.local.max(1e-9)
    }
}

impl<T> PerWay<Vec<T>> {
    /// Appends the values of one more repetition.
    pub(super) fn push(&mut self, one: PerWay<T>) {
        self.local.push(one.local);
        self.nvme.push(one.nvme);
        self.iscsi.push(one.iscsi);
    }
}

impl PerWay<Vec<f64>> {
    /// The medians over repetitions.
    pub(super) fn medians(&self) -> PerWay<f64> {
        self.map(|values| median(values.iter().copied()))
    }
}

impl<T> Index<Way> for PerWay<T> {
    type Output = T;

    fn index(&self, way: Way) -> &T {
        match way {
            Way::Local => &self.local,
            Way::Nvme => &self.nvme,
            Way::Iscsi => &self.iscsi,
        }
    }
}

impl<T> IndexMut<Way> for PerWay<T> {
    fn index_mut(&mut self, way: Way) -> &mut T {
        match way {
            Way::Local => &mut self.local,
            Way::Nvme => &mut self.nvme,
            Way::Iscsi => &mut self.iscsi,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(repetition: usize) -> Vec<Way> {
        let mut turns = Vec::new();
        let run = |way| {
            turns.push(way);
            Ok::<_, ()>(Some(way))
        };
        let made = in_turn(repetition, run).expect("nothing fails").expect("nothing ends it");
        assert!(Way::ALL.into_iter().all(|way| made[way] == way), "each is where it belongs");
        turns
    }

    #[test]
    fn every_way_has_every_turn_and_every_order_comes() {
        for first in [0, 3] {
            for turn in 0..3 {
                let at: Vec<Way> = (first..first + 3).map(|number| turns(number)[turn]).collect();
                assert!(Way::ALL.iter().all(|way| at.contains(way)), "turn {turn}: {at:?}");
            }
        }
        let orders: Vec<Vec<Way>> = (0..6).map(turns).collect();
        let are_unlike = |(index, one)| !orders[..index].contains(one);
        assert!(orders.iter().enumerate().all(are_unlike), "{orders:?}");
        assert_eq!(turns(6), turns(0));
    }

    #[test]
    fn nothing_is_done_after_an_interruption() {
        let mut count = 0;
        let run = |_| {
            count += 1;
            Ok::<_, ()>((count < 2).then_some(()))
        };
        assert_eq!(in_turn(0, run), Ok(None));
        assert_eq!(count, 2);
    }

    #[test]
    fn shares_are_of_local() {
        let mut rates = PerWay::<Vec<f64>>::default();
        rates.push(PerWay { local: 4.0, nvme: 3.0, iscsi: 1.0 });
        rates.push(PerWay { local: 2.0, nvme: 3.0, iscsi: 2.0 });
        let medians = rates.medians();
        assert_eq!(medians, PerWay { local: 3.0, nvme: 3.0, iscsi: 1.5 });
        assert_eq!(
            (medians.of_local(Way::Iscsi), medians.least(), medians.most()),
            (0.5, 1.5, 3.0)
        );
    }
}
