//! The cells of Fig. 4.

use crate::programs::far;
use sweep::Cell;

/// The values of each axis; every combination is a cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub(super) one_way_us: &'static [f64],
    pub(super) gbps: &'static [u32],
    pub(super) local: &'static [u32],
}

pub(super) const QUICK: Grid =
    Grid { one_way_us: &[1.0, 5.0, 10.0], gbps: &[10, 100], local: &[20, 40] };
pub(super) const FULL: Grid =
    Grid { one_way_us: &[1.0, 2.5, 5.0, 10.0], gbps: &[10, 40, 100], local: &[20, 40, 60] };

/// A cell; `local` percent of `of` is local.
pub(super) fn cell((one_way_us, gbps, local): (f64, u32, u32), of: &str) -> Cell {
    far(&[
        ("local", &format!("{local}%")),
        ("of", of),
        ("rtt", &format!("{:.0}ns", one_way_us * 2e3)),
        ("bandwidth", &format!("{gbps}Gbps")),
        ("policy", "fifo"),
        ("link", "per-fault"),
    ])
}

/// All cells of a server.
pub(super) fn cells(grid: Grid, of: &str) -> Vec<Cell> {
    let mut cells = vec![Cell::NATIVE, Cell::zero(None)];
    for &local in grid.local {
        for &gbps in grid.gbps {
            cells.extend(
                grid.one_way_us.iter().map(|&one_way_us| cell((one_way_us, gbps, local), of)),
            );
        }
    }
    cells
}

/// The cells in which the faults of filling a server are counted: they depend on local memory, not
/// on the network.
pub(super) fn fills(grid: Grid, of: &str) -> Vec<Cell> {
    grid.local.iter().map(|&local| cell((grid.one_way_us[0], grid.gbps[0], local), of)).collect()
}
