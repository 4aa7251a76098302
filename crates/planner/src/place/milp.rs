//! The placement as an integer program for HiGHS: one column for each server, one for each pair of
//! unit and server, and a row for each rule. HiGHS finds a placement with fewer servers than were
//! found, or a lower bound.
//!
//! Its solution is checked again in whole numbers, because HiGHS has a tolerance of a millionth.
//!
//! HiGHS is C++ and takes four minutes to compile, so this is a feature of the build (`highs`).

use std::time::Duration;

use highs::{Col, HighsModelStatus, RowProblem, Sense, SolvedModel};

use super::pack::Servers;
use super::unit::{DIMENSIONS, Units};

/// Limit of pairs of units and servers, enough for some hundreds of tenants.
const PAIRS_MAX: usize = 200_000;
/// How far a column's value may be from the whole number that it stands for.
const TOLERANCE: f64 = 1e-4;

/// What HiGHS has found.
pub(super) struct Answer<'a> {
    /// A placement with fewer servers than were found before.
    pub(super) better: Option<Servers<'a>>,
    /// No placement has fewer than this.
    pub(super) bound: u32,
}

/// Searches a placement with fewer than `found` servers for `at_most`; `bound` is a known lower
/// bound. `None` if there are too many units.
pub(super) fn search(
    units: &Units,
    found: u32,
    bound: u32,
    at_most: Duration,
) -> Option<Answer<'_>> {
    let servers = (found as usize).checked_sub(1)?.checked_mul(units.racks as usize)?;
    if servers.checked_mul(units.all.len())? > PAIRS_MAX {
        return None;
    }
    let mut program = Program::new(units, servers);
    program.fit();
    program.separate();
    program.spread();
    program.promise();
    program.order();
    program.rows.add_row(
        f64::from(bound)..=f64::from(found - 1),
        program.used.iter().map(|used| (*used, 1.0)),
    );
    let Program { pairs, rows, .. } = program;
    let mut model = rows.optimise(Sense::Minimise);
    model.make_quiet();
    // One thread and one seed: the same problem has the same answer, unless time ends it.
    model.set_option("threads", 1);
    model.set_option("random_seed", 0);
    model.set_option("time_limit", at_most.as_secs_f64());
    let solved = model.solve();
    let answer = |better, bound| Some(Answer { better, bound });
    match solved.status() {
        HighsModelStatus::Infeasible => answer(None, found),
        HighsModelStatus::Optimal => {
            let better = read(units, &pairs, &solved);
            let needed = better.as_ref().map_or(bound, Servers::used);
            answer(better, needed)
        }
        _ => {
            let needed = solved.double_info_value(c"mip_dual_bound").unwrap_or(0.0);
            let needed = (needed - TOLERANCE).ceil().clamp(f64::from(bound), f64::from(found));
            let better = read(units, &pairs, &solved);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            answer(better, needed as u32)
        }
    }
}

// The placement that the columns of `solved` stand for; `None` if a unit does not fit its server.
fn read<'a>(units: &'a Units, pairs: &[Vec<Col>], solved: &SolvedModel) -> Option<Servers<'a>> {
    let solution = solved.get_solution();
    let values = solution.columns();
    let mut servers = Servers::new(units);
    servers.open(pairs.first()?.len());
    for (unit, places) in pairs.iter().enumerate() {
        let is_one = |column: &Col| {
            values.get(column.index()).is_some_and(|value| (value - 1.0).abs() < TOLERANCE)
        };
        let server = places.iter().position(is_one)?;
        if !servers.fits(server, unit) {
            return None;
        }
        servers.put(server, unit);
    }
    Some(servers)
}

struct Program<'a> {
    units: &'a Units,
    rows: RowProblem,
    /// Whether a server is used.
    used: Vec<Col>,
    /// By unit, then by server: whether the unit is on the server.
    pairs: Vec<Vec<Col>>,
}

impl<'a> Program<'a> {
    fn new(units: &'a Units, servers: usize) -> Self {
        let mut rows = RowProblem::default();
        let used = (0..servers).map(|_| rows.add_integer_column(1.0, 0..=1)).collect();
        let racks = units.racks as usize;
        let mut pairs = Vec::with_capacity(units.all.len());
        for unit in &units.all {
            let may = |server: usize| unit.rack.is_none_or(|rack| server % racks == rack as usize);
            let column = |server| rows.add_integer_column(0.0, 0..=i32::from(may(server)));
            pairs.push((0..servers).map(column).collect());
        }
        Self { units, rows, used, pairs }
    }

    // Rows: every unit is on one server, that server is used, and no server exceeds a dimension.
    fn fit(&mut self) {
        for places in &self.pairs {
            self.rows.add_row(1..=1, places.iter().map(|place| (*place, 1.0)));
        }
        for (server, used) in self.used.iter().enumerate() {
            for places in &self.pairs {
                self.rows.add_row(..=0, [(places[server], 1.0), (*used, -1.0)]);
            }
            for dimension in 0..DIMENSIONS {
                let shares = self.units.all.iter().map(|unit| unit.shares[dimension]);
                let taken = shares.zip(&self.pairs).filter(|(share, _)| *share > 0.0);
                let taken: Vec<_> = taken.map(|(share, places)| (places[server], share)).collect();
                if !taken.is_empty() {
                    self.rows.add_row(..=0, taken.into_iter().chain([(*used, -1.0)]));
                }
            }
            if self.units.tenants_max < u32::MAX {
                let most = f64::from(self.units.tenants_max);
                let members = self.units.all.iter().map(|unit| unit.members.len() as f64);
                let taken =
                    members.zip(&self.pairs).map(|(members, places)| (places[server], members));
                self.rows.add_row(..=0, taken.chain([(*used, -most)]));
            }
        }
    }

    // Rows: units that are kept apart by the same word are on different servers.
    fn separate(&mut self) {
        let mut words: Vec<u32> =
            self.units.all.iter().flat_map(|unit| &unit.apart).copied().collect();
        words.sort_unstable();
        words.dedup();
        for word in words {
            let with: Vec<&Vec<Col>> =
                self.all_with(|unit| self.units.all[unit].apart.contains(&word));
            let rows: Vec<Vec<Col>> = columns_of(&with);
            rows.into_iter().for_each(|row| self.at_most_one(row));
        }
    }

    // Rows: replicas are on different servers, and in different racks if there are several.
    fn spread(&mut self) {
        let racks = self.units.racks as usize;
        for first in 0..self.units.all.len() {
            let unit = &self.units.all[first];
            if unit.first != first || unit.replicas < 2 {
                continue;
            }
            let replicas = self.all_with(|other| self.units.all[other].first == first);
            let by_server = columns_of(&replicas);
            if racks == 1 {
                by_server.into_iter().for_each(|row| self.at_most_one(row));
                continue;
            }
            for rack in 0..racks {
                let row = by_server.iter().skip(rack).step_by(racks).flatten().copied();
                self.at_most_one(row.collect());
            }
        }
    }

    // Rows: a server with a promised tail has at most one bursty writer.
    fn promise(&mut self) {
        let all: f64 = self.units.all.iter().map(|unit| f64::from(unit.bursty)).sum();
        for tail in (0..self.units.all.len()).filter(|unit| self.units.all[*unit].has_tail) {
            for server in 0..self.used.len() {
                let mut row: Vec<(Col, f64)> = Vec::new();
                for (unit, places) in self.units.all.iter().zip(&self.pairs) {
                    if unit.bursty > 0 {
                        row.push((places[server], f64::from(unit.bursty)));
                    }
                }
                // A row may have a column only once.
                let own = f64::from(self.units.all[tail].bursty);
                row.retain(|(column, _)| *column != self.pairs[tail][server]);
                row.push((self.pairs[tail][server], own + all));
                self.rows.add_row(..=1.0 + all, row);
            }
        }
    }

    // Rows: the servers of a rack are alike, so they are used in order.
    fn order(&mut self) {
        for server in self.units.racks as usize..self.used.len() {
            let before = self.used[server - self.units.racks as usize];
            self.rows.add_row(..=0, [(self.used[server], 1.0), (before, -1.0)]);
        }
    }

    // The columns of all units that `is_meant` accepts.
    fn all_with(&self, is_meant: impl Fn(usize) -> bool) -> Vec<&Vec<Col>> {
        (0..self.pairs.len()).filter(|unit| is_meant(*unit)).map(|unit| &self.pairs[unit]).collect()
    }

    // A row: at most one of these columns is 1.
    fn at_most_one(&mut self, row: Vec<Col>) {
        if row.len() > 1 {
            self.rows.add_row(..=1, row.into_iter().map(|column| (column, 1.0)));
        }
    }
}

// For each server, its columns for `units`.
fn columns_of(units: &[&Vec<Col>]) -> Vec<Vec<Col>> {
    let servers = units.first().map_or(0, |places| places.len());
    (0..servers).map(|server| units.iter().map(|places| places[server]).collect()).collect()
}
