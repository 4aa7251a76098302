//! Runs a matrix or a search on this machine, one run after another.

use std::collections::HashMap;

use console::{Failure, Progress, terminal};
use experiment::journal::{Header, Journal};
use experiment::{Looks, stats};

use super::error::SweepError;
use super::find::{self, Edge, Requirement};
use super::matrix::Cell;
use super::row::Row;
use super::trial::Trials;
use super::trouble::NotKept;
use super::whole::{in_block, waits};
use super::{json, table};

/// Why a sweep has ended early.
pub(crate) enum Stopped {
    Interrupted,
    Failure(Failure),
}

impl From<NotKept> for Stopped {
    fn from(why: NotKept) -> Self {
        match why {
            NotKept::Interrupted => Self::Interrupted,
            NotKept::Journal(error) => Self::Failure(SweepError::from(error).into()),
        }
    }
}

/// Block numbers reserved for one confirmation: more than it has repetitions.
pub(super) const CONFIRMING: u32 = 100_000;

/// A sweep that runs on this machine.
pub(crate) struct Sweeping<'a> {
    pub(crate) trials: Trials<'a>,
    pub(crate) header: &'a Header,
    pub(crate) journal: Journal<Row>,
    /// After which numbers of runs a step of the search is tested.
    pub(crate) looks: Looks,
    pub(crate) progress: Progress,
    /// Why the last run of each cell had no figure, so that the message is printed once.
    pub(crate) told: HashMap<String, String>,
}

impl Sweeping<'_> {
    /// Runs all cells in all blocks.
    pub(crate) fn matrix(&mut self, cells: &[Cell]) -> Result<Option<[String; 2]>, Stopped> {
        let sweep = self.trials.sweep;
        for block in 0..sweep.repetitions {
            for index in self.in_block(cells, block) {
                self.once(&cells[index], block)?;
            }
        }
        Ok(None)
    }

    // Searches all axes. Returns the requirements as text and as JSON.
    pub(crate) fn find(&mut self, bound: f64) -> Result<Option<[String; 2]>, Stopped> {
        let sweep = self.trials.sweep;
        let mut found = Vec::new();
        for (number, axis) in (0..).zip(find::SEARCHED) {
            let steps = find::steps(sweep, axis);
            found.push(match find::search(steps, bound, |value| self.step(axis, value, bound))? {
                Edge::At(edge) => self.confirm((number, axis), edge, bound)?,
                Edge::Invalid(value, why) => Requirement::invalid(axis, (value, why)),
            });
        }
        let of_bytes = self.journal.rows.iter().find_map(|row| row.of_bytes);
        let record = json::requirements(self.header, sweep, (bound, of_bytes), &found);
        let text = find::text(sweep, (bound, of_bytes), &found);
        Ok(Some([text, results::write(&record)]))
    }

    // Runs both sides of an edge again, and moves it until they lie on opposite sides of the bound.
    pub(super) fn confirm(
        &mut self,
        (number, axis): (u32, &'static str),
        edge: usize,
        bound: f64,
    ) -> Result<Requirement, Stopped> {
        let sweep = self.trials.sweep;
        let steps = find::steps(sweep, axis);
        let mut edge = edge;
        let mut found = Requirement::new(axis);
        for turn in 0..find::MOVES {
            // The blocks of the search come before those of confirmations.
            let first = CONFIRMING * (1 + number * find::MOVES + turn);
            let good = edge.checked_sub(1).map(|index| &steps[index]);
            let sides: Vec<&String> = good.into_iter().chain(steps.get(edge)).collect();
            let cells: Vec<Cell> =
                sides.iter().map(|value| find::cell(sweep, axis, value)).collect();
            self.run_sides(&cells, first, bound)?;
            let blocks = || first..first + CONFIRMING;
            let judged: Vec<find::Step> =
                cells.iter().map(|cell| self.judge(cell, blocks(), bound).settled(bound)).collect();
            let invalid = sides
                .iter()
                .zip(&judged)
                .find_map(|(value, step)| Some(((*value).clone(), step.invalid.clone()?)));
            if let Some(step) = invalid {
                return Ok(Requirement::invalid(axis, step));
            }
            let mut judged = judged.into_iter();
            let good = good.map(|value| (value.clone(), judged.next()));
            let bad = steps.get(edge).map(|value| (value.clone(), judged.next()));
            let step = |side: Option<(String, Option<find::Step>)>| {
                side.and_then(|(value, step)| Some((value, step?)))
            };
            (found.good, found.bad) = (step(good), step(bad));
            let [good, bad] = [&found.good, &found.bad].map(|side| side.as_ref());
            let (good, bad) = (good.map(|side| &side.1), bad.map(|side| &side.1));
            match find::moved(edge, good, bad, bound) {
                None => {
                    found.standing = find::standing(good, bad, bound);
                    break;
                }
                Some(next) => edge = next,
            }
        }
        Ok(found)
    }

    // Runs cells beside the native one, in blocks from `first` on, until each can be judged.
    fn run_sides(&mut self, cells: &[Cell], first: u32, bound: f64) -> Result<(), Stopped> {
        let sweep = self.trials.sweep;
        let waiting = cells.iter().filter(|cell| waits(cell, &self.journal.rows));
        let mut zeros: Vec<Cell> = waiting.map(Cell::zero_of).collect();
        zeros.dedup();
        let all: Vec<Cell> = [Cell::NATIVE].iter().chain(&zeros).chain(cells).cloned().collect();
        for turn in 0..sweep.repetitions * find::PATIENCE {
            let blocks = first..first + CONFIRMING;
            let unsure = |cell: &Cell| self.judge(cell, blocks.clone(), bound).is_unsure(bound);
            if turn >= sweep.repetitions && !cells.iter().any(unsure) {
                break;
            }
            let block = first + turn;
            for index in self.in_block(&all, block) {
                self.once(&all[index], block)?;
            }
        }
        Ok(())
    }

    // Runs a step beside the native program until it is decided, or has run most often.
    pub(super) fn step(
        &mut self,
        axis: &'static str,
        value: &str,
        bound: f64,
    ) -> Result<find::Step, Stopped> {
        let sweep = self.trials.sweep;
        let cell = find::cell(sweep, axis, value);
        for block in 0..sweep.repetitions * find::PATIENCE {
            let is_unsure = self.judge(&cell, 0..CONFIRMING, bound).is_unsure(bound);
            if block >= sweep.repetitions && !is_unsure {
                break;
            }
            self.once(&Cell::NATIVE, block)?;
            if waits(&cell, &self.journal.rows) {
                self.once(&cell.zero_of(), block)?;
            }
            self.once(&cell, block)?;
        }
        Ok(self.judge(&cell, 0..CONFIRMING, bound).settled(bound))
    }

    // The result of a cell from its runs in `blocks`.
    pub(super) fn judge(
        &self,
        cell: &Cell,
        blocks: std::ops::Range<u32>,
        bound: f64,
    ) -> find::Step {
        let rows = self.journal.rows.iter().filter(|row| blocks.contains(&row.block));
        let rows: Vec<Row> = rows.cloned().collect();
        let estimate = |values: &[f64]| stats::estimate_at(values, &self.looks);
        let better = self.trials.sweep.metric.better;
        find::Step::of(&table::finding(cell, &rows, better, estimate), bound)
    }

    // The order of cells in a block, as indexes.
    fn in_block(&self, cells: &[Cell], block: u32) -> Vec<usize> {
        let at = |index: usize| (&cells[index], self.journal.rows.as_slice());
        in_block(cells.len(), (self.trials.sweep.seed, block), at)
    }

    // Runs a cell in a block, unless the journal has that run, and shows progress and errors.
    fn once(&mut self, cell: &Cell, block: u32) -> Result<(), Stopped> {
        let (name, number) = (cell.name(), block + 1);
        let before = self.journal.rows.len();
        if !self.journal.has(block, &name) {
            self.progress.show(&format!("block {number}  {name}"));
        }
        let trouble = self.trials.keep(cell, block, &mut self.journal)?;
        if let Some(row) = self.journal.rows.get(before..).and_then(<[Row]>::last) {
            self.progress.end(&format!("{name} {:.2} s", row.elapsed_ns as f64 / 1e9));
        }
        if let Some(why) = trouble {
            let before = self.told.insert(name.clone(), why.clone());
            let why = if before.as_ref() == Some(&why) { "the same again" } else { &why };
            terminal::note(&format!("afar sweep: {name}, block {number}: {why}\n"));
        }
        Ok(())
    }
}
