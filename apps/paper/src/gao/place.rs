//! The cells in which stand-ins are measured, and which figure needs which.

use crate::programs::far;
use sweep::Cell;

/// A network (round-trip time and bandwidth), and local memory in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) rtt_us: u32,
    pub(super) gbps: u32,
    pub(super) local: u32,
}

/// The paper's base case: 5 µs, 40 Gb/s, a quarter of the memory local.
pub(super) const BASE: Place = Place { rtt_us: 5, gbps: 40, local: 25 };

const PAGE_BITS: f64 = 4096.0 * 8.0;

/// A figure or table, as a section of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Fig2,
    Fig3,
    Fig4,
    Fig5,
    Fig6,
    Table3,
}

impl Section {
    const ALL: [Self; 6] =
        [Self::Fig2, Self::Fig3, Self::Fig4, Self::Fig5, Self::Fig6, Self::Table3];

    /// The cells that it needs, in the order of its axis.
    pub(super) fn places(self, is_quick: bool) -> Vec<Place> {
        let latencies =
            |rtts: &[u32]| rtts.iter().map(|&rtt_us| Place { rtt_us, ..BASE }).collect();
        let bandwidths = |all: &[u32]| all.iter().map(|&gbps| Place { gbps, ..BASE }).collect();
        let locals = |base: Place, all: &[u32]| -> Vec<Place> {
            all.iter().map(|&local| Place { local, ..base }).collect()
        };
        match (self, is_quick) {
            (Self::Fig2, _) => [1, 5, 10]
                .into_iter()
                .flat_map(|rtt_us| [100, 40, 10].map(|gbps| Place { rtt_us, gbps, ..BASE }))
                .collect(),
            (Self::Fig3, false) => bandwidths(&[10, 20, 40, 60, 80, 100]),
            (Self::Fig3, true) => bandwidths(&[10, 20, 40, 100]),
            (Self::Fig4, false) => latencies(&[1, 3, 5, 10, 20, 40]),
            (Self::Fig4, true) => latencies(&[1, 3, 5, 10, 40]),
            (Self::Fig5, false) => locals(BASE, &[10, 20, 30, 40, 50, 70, 90, 100]),
            (Self::Fig5, true) => locals(BASE, &[20, 30, 50, 75, 100]),
            (Self::Fig6, _) => vec![BASE],
            (Self::Table3, false) => [5, 3]
                .into_iter()
                .flat_map(|rtt_us| {
                    let gbps = if rtt_us == 3 { 100 } else { 40 };
                    locals(Place { rtt_us, gbps, ..BASE }, &[20, 30, 50, 70, 90])
                })
                .collect(),
            (Self::Table3, true) => [5, 3]
                .into_iter()
                .flat_map(|rtt_us| {
                    let gbps = if rtt_us == 3 { 100 } else { 40 };
                    locals(Place { rtt_us, gbps, ..BASE }, &[30, 50, 75])
                })
                .collect(),
        }
    }
}

impl Place {
    pub(super) fn name(self) -> String {
        format!("{} µs, {} Gb/s, {} % local", self.rtt_us, self.gbps, self.local)
    }

    /// The time of a fetch on an idle link.
    pub(super) fn delay_us(self) -> f64 {
        f64::from(self.rtt_us) + PAGE_BITS / (f64::from(self.gbps) * 1e3)
    }

    // The cell; the link is that of Gao et al.: a round trip, then one transfer after another in
    // each direction.
    pub(super) fn cell(self, of: &str) -> Cell {
        far(&[
            ("local", &format!("{}%", self.local)),
            ("of", of),
            ("rtt", &format!("{}us", self.rtt_us)),
            ("bandwidth", &format!("{}Gbps", self.gbps)),
            ("link", "full-duplex"),
        ])
    }
}

/// All cells of a program whose local memory is a share of `of`.
pub(super) fn cells(section: Section, is_quick: bool, of: &str) -> Vec<Cell> {
    let mut cells = vec![Cell::NATIVE, undelayed(of)];
    let sections = if is_quick { vec![section] } else { Section::ALL.to_vec() };
    for place in sections.iter().flat_map(|section| section.places(is_quick)) {
        let cell = place.cell(of);
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    cells
}

/// The cell with a quarter of the memory local and no delay, which shows swap bandwidth.
pub(super) fn undelayed(of: &str) -> Cell {
    far(&[("local", &format!("{}%", BASE.local)), ("of", of)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_memory_is_a_share_of_the_most_that_is_used() {
        let quarter = BASE.cell("33558528");
        let name = "local=25% of=33558528 rtt=5us bandwidth=40Gbps link=full-duplex";
        assert_eq!(quarter.name(), name);
        let full = cells(Section::Fig2, false, "1048576");
        assert_eq!(full.len(), 30);
        assert_eq!(full, cells(Section::Table3, false, "1048576"));
    }

    #[test]
    fn sections_share_what_they_can() {
        let full = |section: Section| section.places(false);
        for section in [Section::Fig2, Section::Fig3, Section::Fig4, Section::Fig6] {
            assert!(full(section).contains(&BASE), "{section:?}");
        }
        assert_eq!(full(Section::Fig2).len(), 9);
        let of_fig2 = |place: &Place| full(Section::Fig2).contains(place);
        assert_eq!(full(Section::Fig3).into_iter().filter(of_fig2).count(), 3);
        let of_fig5 = |place: &Place| full(Section::Fig5).contains(place);
        assert_eq!(full(Section::Table3).into_iter().filter(of_fig5).count(), 5);
    }
}
