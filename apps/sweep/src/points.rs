//! Single runs (points) of a sweep's directory, which an engine has machines execute.

use std::collections::BTreeMap;
use std::process::ExitCode;

use console::{Class, Failure};
use dispatch::PointFlags;
use experiment::journal::{self, Header, Journal, Point};
use experiment::machine::Measuring;

use super::error::SweepError;
use super::file::Sweep;
use super::matrix::Cell;
use super::row::Row;
use super::trial::{Trials, clear_scratch};
use super::trouble::NotKept;
use super::whole::{in_block, is_settled};

/// All runs of a matrix, in order.
pub(crate) fn plan(header: &Header, sweep: &Sweep, cells: &[Cell]) -> Vec<Point> {
    let of_block = |block: u32| {
        let order = in_block(cells.len(), (sweep.seed, block), |index| (&cells[index], &[]));
        order.into_iter().map(move |index| {
            let cell = cells[index].name();
            Point { id: header.id(block, &cell), block, cell, settings: BTreeMap::new() }
        })
    };
    (0..sweep.repetitions).flat_map(of_block).collect()
}

/// Runs the points of `flags` that have no result yet, one after another, block by block.
///
/// # Errors
/// When another program measures on this machine, a point waits for one that has not run, a point
/// does not exist, or its result cannot be written. A run without a figure is a result.
pub fn points(flags: &PointFlags) -> Result<ExitCode, Failure> {
    let directory = &flags.directory;
    let mut journal = Journal::<Row>::join(directory).map_err(SweepError::from)?;
    let header = journal.header().clone();
    let sweep = Sweep::of(&header.experiment, &directory.join(journal::HEADER))
        .map_err(SweepError::from)?;
    let blocks = chosen(flags)?;
    let _measuring = Measuring::begin().map_err(SweepError::from)?;
    let signals = console::interrupts().map_err(SweepError::from)?;
    clear_scratch();
    let trials = Trials {
        sweep: &sweep,
        allow_unmanaged: header.allow_unmanaged,
        afar: launch::program(),
        signals: &signals,
    };
    let mut waiting = None;
    for (block, cells) in blocks {
        let at = |index: usize| (&cells[index], journal.rows.as_slice());
        for index in in_block(cells.len(), (sweep.seed, block), at) {
            let cell = &cells[index];
            journal.read_on().map_err(SweepError::from)?;
            if !journal.has(block, &cell.name()) && !is_settled(cell, block, &journal.rows) {
                waiting = Some(cell.name());
                continue;
            }
            match trials.keep(cell, block, &mut journal) {
                Ok(_told_by_the_result) => {}
                Err(NotKept::Interrupted) => return Ok(Class::Interrupted.into()),
                Err(NotKept::Journal(error)) => return Err(SweepError::from(error).into()),
            }
        }
    }
    waiting.map_or(Ok(ExitCode::SUCCESS), |cell| Err(SweepError::Waits(cell).into()))
}

/// The cells of the points of `flags`, by block.
fn chosen(flags: &PointFlags) -> Result<BTreeMap<u32, Vec<Cell>>, SweepError> {
    let planned = journal::points(&flags.directory)?;
    let mut blocks = BTreeMap::<u32, Vec<Cell>>::new();
    for id in &flags.ids {
        let point = planned.iter().find(|point| point.id == *id);
        let known = point.and_then(|point| Some((point.block, Cell::named(&point.cell)?)));
        let unknown = || SweepError::NoPoint { path: flags.directory.clone(), id: id.clone() };
        let (block, cell) = known.ok_or_else(unknown)?;
        blocks.entry(block).or_default().push(cell);
    }
    Ok(blocks)
}
