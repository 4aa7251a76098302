//! The runs of all cells, and what they say: medians, and medians of pairs within blocks.

use std::collections::BTreeMap;

use experiment::{Ratios, stats};
use results::Estimate;

use super::bench::{Seen, Turn};
use super::step::{Cell, Direction, Rung, Step, Way};

/// The runs of all cells.
#[derive(Debug, Default)]
pub struct Runs {
    /// By name of the cell, then by block.
    turns: BTreeMap<String, BTreeMap<u32, Turn>>,
    /// Why a way cannot be measured on this machine.
    absent: Vec<(Way, String)>,
    /// Why runs failed, by cell.
    failed: BTreeMap<String, String>,
}

/// The cell of a step.
#[must_use]
pub const fn cell(way: Way, rung: Rung, direction: Direction) -> Cell {
    Cell::Far(Step { way, rung, direction })
}

/// The cell whose touches are fetches of single pages.
#[must_use]
pub const fn fetch(way: Way) -> Cell {
    cell(way, Rung::Single, Direction::In)
}

/// The rate of a run, in gigabytes per second.
#[must_use]
pub fn rate(seen: &Seen) -> f64 {
    seen.moved.map_or(f64::NAN, |moved| moved.rate())
}

/// The median time of a run, in microseconds.
#[must_use]
pub fn p50_us(seen: &Seen) -> f64 {
    seen.p50_ns as f64 / 1e3
}

impl Runs {
    /// Adds a run of a block.
    pub fn add(&mut self, cell: Cell, block: u32, turn: Turn) {
        self.turns.entry(cell.name()).or_default().insert(block, turn);
    }

    /// Notes that a way cannot be measured.
    pub fn lacks(&mut self, way: Way, why: String) {
        if self.absence(way).is_none() {
            self.absent.push((way, why));
        }
    }

    /// Notes that a run failed; the first reason of a cell is kept.
    pub fn fails(&mut self, cell: Cell, why: String) {
        self.failed.entry(cell.name()).or_insert(why);
    }

    /// Why a way cannot be measured; `None` if it can.
    #[must_use]
    pub fn absence(&self, way: Way) -> Option<&str> {
        self.absent.iter().find(|(absent, _)| *absent == way).map(|(_, why)| why.as_str())
    }

    /// Cells with runs that failed, and why.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.failed.iter().map(|(cell, why)| (cell.as_str(), why.as_str()))
    }

    /// Whether a program has run with far memory.
    #[must_use]
    pub fn has_far(&self) -> bool {
        let is_far = |cell: &Cell| matches!(cell, Cell::Far(_)) && self.of(*cell).next().is_some();
        Cell::all().iter().any(is_far)
    }

    /// Why something has no figure; `None` if everything has one.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        let failed = self.failures().next().map(|(cell, why)| format!("{cell}: {why}"));
        failed.or_else(|| self.absent.first().map(|(way, why)| format!("{}: {why}", way.told())))
    }

    /// The runs of a cell, by block.
    pub fn of(&self, cell: Cell) -> impl Iterator<Item = (u32, &Turn)> {
        self.turns.get(&cell.name()).into_iter().flatten().map(|(block, turn)| (*block, turn))
    }

    /// How many runs there are, and how many of them were disturbed.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let all = || self.turns.values().flat_map(BTreeMap::values);
        (all().count(), all().filter(|turn| turn.disturbed.is_some()).count())
    }

    /// The median over blocks of a figure of a cell; `None` without a run.
    #[must_use]
    pub fn estimate(&self, cell: Cell, of: impl Fn(&Seen) -> f64) -> Option<Estimate> {
        let mut figures = Ratios::default();
        for (block, turn) in self.of(cell) {
            figures.add(block, of(&turn.seen), turn.disturbed.clone());
        }
        stats::estimate(&figures.counting().0)
    }

    /// The median of what two runs of the same block make together; `None` without a pair.
    #[must_use]
    pub fn paired(
        &self,
        [one, other]: [Cell; 2],
        of: impl Fn(&Seen, &Seen) -> f64,
    ) -> Option<Estimate> {
        let mut figures = Ratios::default();
        let others: BTreeMap<u32, &Turn> = self.of(other).collect();
        for (block, first) in self.of(one) {
            let Some(second) = others.get(&block) else { continue };
            let disturbed = first.disturbed.as_ref().or(second.disturbed.as_ref());
            figures.add(block, of(&first.seen, &second.seen), disturbed.cloned());
        }
        stats::estimate(&figures.counting().0)
    }

    /// Spins for single pages over a way that expired, as a share; `None` if nobody spun.
    #[must_use]
    pub fn expired(&self, way: Way) -> Option<f64> {
        let spins = self.of(fetch(way)).filter_map(|(_, turn)| turn.seen.moved?.spins);
        let [expired, all] =
            spins.fold([0, 0], |[expired, all], spun| [expired + spun[0], all + spun[1]]);
        (all > 0).then(|| expired as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::turn;

    /// Runs with a rate and a median time for each cell, a little more in each of five blocks.
    fn runs(figures: &[(Cell, f64, f64)]) -> Runs {
        let mut runs = Runs::default();
        for &(cell, rate, p50_us) in figures {
            for block in 0..5_u32 {
                let more = 1.0 + f64::from(block) / 100.0;
                runs.add(cell, block, turn(rate * more, p50_us * more));
            }
        }
        runs
    }

    #[test]
    fn pairs_are_of_one_block() {
        let [nvme, memory] = [Way::Nvme, Way::Memory].map(fetch);
        let mut runs = Runs::default();
        // The machine is twice as slow in each block as in the one before.
        for block in 0..5_u32 {
            let pace = f64::from(1 << block);
            runs.add(nvme, block, turn(1.0, 30.0 * pace));
            runs.add(memory, 4 - block, turn(1.0, 10.0 * f64::from(1 << (4 - block))));
        }
        let ratio = runs.paired([nvme, memory], |one, other| p50_us(one) / p50_us(other));
        let ratio = ratio.expect("there are pairs");
        assert_eq!((ratio.median, ratio.ends()), (3.0, Some((3.0, 3.0))));
        // A block that only one of them has makes no pair.
        runs.add(nvme, 9, turn(1.0, 1.0));
        let count = runs.paired([nvme, memory], |_, _| 1.0).map(|estimate| estimate.count);
        assert_eq!(count, Some(5));
        assert_eq!(runs.paired([nvme, Cell::Echo], |_, _| 1.0), None);
    }

    #[test]
    fn a_disturbed_run_counts_only_without_others() {
        let memory = fetch(Way::Memory);
        let mut runs = runs(&[(memory, 1.0, 5.0)]);
        let mut disturbed = turn(1.0, 900.0);
        disturbed.disturbed = Some("a load".to_owned());
        runs.add(memory, 7, disturbed);
        let estimate = runs.estimate(memory, p50_us).expect("there are some");
        assert_eq!((estimate.count, estimate.median), (5, 5.1));
        assert_eq!(runs.counts(), (6, 1));
    }

    #[test]
    fn the_first_reason_is_kept() {
        let mut runs = Runs::default();
        for why in ["no zram", "something else"] {
            runs.lacks(Way::Swap, why.to_owned());
            runs.fails(Cell::Echo, why.to_owned());
        }
        assert_eq!(runs.absence(Way::Swap), Some("no zram"));
        assert_eq!(runs.absence(Way::Nvme), None);
        assert_eq!(runs.failures().collect::<Vec<_>>(), [("echo", "no zram")]);
        assert_eq!(runs.reason().as_deref(), Some("echo: no zram"));
        runs.add(Cell::Echo, 0, turn(1.0, 12.0));
        assert!(!runs.has_far(), "an echo is no far memory");
        runs.add(fetch(Way::Memory), 0, turn(1.0, 4.0));
        assert!(runs.has_far());
    }
}
