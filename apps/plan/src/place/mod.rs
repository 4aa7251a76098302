//! `afar plan place`: tenants onto servers, or from where they are to where they should be.

mod file;
mod tenant;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use console::{
    Failure,
    layout::{NONE, row, table},
    terminal,
};
use measure::{BitsPerSec, Bytes, Duration};
use planner::cost::Dimension;
use planner::place::{
    Migration, PlaceError, Placement, Pool, Problem, fleet, fleet_server, migrate,
};
use records::Column;
use results::plan::place as record;

use self::file::{Experiment, Places, Prices};
use self::tenant::Scope;
use super::grid::{self, Grid};
use super::picture::{Cells, cells};
use super::{PlanError, Written, when, write};
use crate::flags::PlaceFlags;

/// The most rows of tables that grow with the problem.
const SHOWN: usize = 20;

/// Runs `afar plan place`.
///
/// # Errors
/// If there is no placement, a file or flag is invalid, or a result cannot be written.
pub(super) fn place(flags: &PlaceFlags) -> Result<ExitCode, Failure> {
    if flags.print {
        terminal::answer(file::EXAMPLE)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (found, name) = match (&flags.experiment, flags.synthetic) {
        // An error that concerns no tenant concerns the whole file.
        (Some(path), _) => (file::read(path)?, format!("{}:1:1", path.display())),
        (None, count) => {
            let tenants = fleet(count.unwrap_or(1) as usize, flags.seed);
            let pool = Pool { server: fleet_server(), racks: 1, ..Pool::default() };
            let problem = Problem { tenants, pool };
            let (scope, prices, places) = (Scope::PAPERS, Prices::default(), Places::default());
            (Experiment { problem, scope, prices, places }, "--synthetic".to_owned())
        }
    };
    let Experiment { mut problem, scope, prices, places } = found;
    for text in &flags.add_tenant {
        tenant::add(&mut problem, text, &scope)?;
    }
    let refused = |source| {
        let place = places.of(&problem, &source, &name);
        PlanError::Place { place, source }
    };
    let (placement, migration) = match &flags.now {
        None => (placed(&problem, flags.exact)?.map_err(refused)?, None),
        Some(path) => {
            let (now, rate) = (file::now(path, &problem)?, flags.move_rate);
            let lost: BTreeSet<u32> = flags.lose_server.iter().copied().collect();
            if let Some(server) = lost.iter().find(|one| !now.iter().flatten().any(|at| at == *one))
            {
                return Err(PlanError::NoServer(*server).into());
            }
            let Migration { placement, moves } =
                migrate(&problem, &now, &lost, flags.move_at_most.get()).map_err(refused)?;
            let change = Change { moves, before: contents(&problem, &now), rate, prices };
            (placement, Some(change))
        }
    };
    let change = migration.as_ref();
    let mut table = text(&problem, &placement);
    if let Some(change) = change {
        table += &change.text(&problem, &placement);
    }
    let files = vec![
        (&flags.csv, grid::bytes(&flags.csv, || Ok(rows(&problem, &placement)))?),
        when(&flags.json, || results::write(&recorded(&problem, &placement, change))),
        when(&flags.svg, || picture(&problem, &placement, change)),
    ];
    write(Written { table, files })
}

/// From this many tenants on, a search has a progress line.
const WATCHED_MIN: usize = 100_000;
const PARTS: usize = 10;

/// Finds a placement, with a progress line if there are many tenants.
fn watched(problem: &Problem) -> Result<Placement, PlaceError> {
    let count = problem.tenants.len();
    if count < WATCHED_MIN {
        return planner::place::place(problem);
    }
    let mut progress = console::Progress::new("part", PARTS);
    let mut last = 0.0;
    planner::place::place_watched(problem, &mut |share| {
        // Several rules may be tried, each of which begins with a share of 0.
        while share > last && share * PARTS as f64 >= (progress.ended() + 1) as f64 {
            progress.end(&format!("{:.0} % of {count} tenants", share * 100.0));
        }
        last = share.max(last);
        progress.show(&format!("{:.0} % of {count} tenants", last * 100.0));
    })
}

/// Finds a placement; with `exact`, HiGHS looks for fewer servers for at most this time.
#[cfg(feature = "highs")]
fn placed(
    problem: &Problem,
    exact: Option<Duration>,
) -> Result<Result<Placement, PlaceError>, PlanError> {
    Ok(match exact {
        Some(time) => {
            let time = std::time::Duration::from_nanos(time.as_ns());
            let mut progress = console::Progress::new("search", 1);
            progress.begin(Some(time.as_secs_f64()));
            let search = || planner::place::place_exactly(problem, time);
            progress.during("looking for a placement of fewer servers", search)
        }
        None => watched(problem),
    })
}

/// Finds a placement; `exact` is an error in an afar without HiGHS.
#[cfg(not(feature = "highs"))]
fn placed(
    problem: &Problem,
    exact: Option<Duration>,
) -> Result<Result<Placement, PlaceError>, PlanError> {
    match exact {
        Some(_) => Err(PlanError::NoSolver),
        None => Ok(watched(problem)),
    }
}

/// A migration from one placement to another.
struct Change {
    moves: Vec<planner::place::Move>,
    /// What was on each server in use before.
    before: Contents,
    rate: BitsPerSec,
    prices: Prices,
}

impl Change {
    /// The bytes that move.
    fn bytes(&self, problem: &Problem) -> Bytes {
        let bytes = |one: &planner::place::Move| {
            Bytes::new(problem.tenants[one.tenant].wants.get(Dimension::Capacity))
        };
        self.moves.iter().map(bytes).fold(Bytes::ZERO, Bytes::saturating_add)
    }

    /// The readable list of moves, with their time and worth.
    fn text(&self, problem: &Problem, placement: &Placement) -> String {
        if self.moves.is_empty() {
            return "\nNobody moves.\n".to_owned();
        }
        let mut lines = vec![row(["tenant", "from", "to", "size"])];
        for one in self.moves.iter().take(SHOWN) {
            let tenant = &problem.tenants[one.tenant];
            lines.push(vec![
                tenant.name.clone(),
                one.from.map_or_else(|| NONE.to_owned(), |server| server.to_string()),
                one.to.to_string(),
                Bytes::new(tenant.wants.get(Dimension::Capacity)).to_string(),
            ]);
        }
        let bytes = self.bytes(problem);
        let after = placement.servers as usize;
        let change = match self.before.len().abs_diff(after) {
            0 => "as many servers are in use as before".to_owned(),
            count if after < self.before.len() => format!("{count} servers are free then"),
            count => format!("{count} more servers are in use then"),
        };
        format!(
            "\n{}{} moves, {bytes}, {} at {}; {change}.\n{}",
            table(&lines),
            self.moves.len(),
            hours(self.rate, bytes),
            self.rate,
            self.worth(problem, placement),
        )
    }

    /// How many servers the migration frees.
    fn freed(&self, placement: &Placement) -> usize {
        self.before.len().saturating_sub(placement.servers as usize)
    }

    /// What free servers are worth and what moving costs; `None` unless both prices are given.
    fn benefit(&self, problem: &Problem, placement: &Placement) -> Option<(f64, f64)> {
        let (server, moved) = (self.prices.server?, self.prices.moved?);
        let terabytes = self.bytes(problem).get() as f64 / 1e12;
        let freed = self.freed(placement) as f64;
        Some((freed * server.units_f64(), terabytes * moved.units_f64()))
    }

    /// A sentence on benefit and cost, or on the bytes that move for each free server.
    fn worth(&self, problem: &Problem, placement: &Placement) -> String {
        let freed = self.freed(placement) as u64;
        match self.benefit(problem, placement) {
            Some((benefit, cost)) if cost > 0.0 => format!(
                "Free servers are worth {benefit:.2}, {:.2} times the {cost:.2} that moving \
                 costs.\n",
                benefit / cost
            ),
            _ if freed > 0 => {
                let each = Bytes::new(self.bytes(problem).get() / freed);
                format!("{each} move for each server that is free.\n")
            }
            _ => String::new(),
        }
    }
}

/// How long bytes take to move, as text; it may exceed the longest `Duration`.
fn hours(rate: BitsPerSec, bytes: Bytes) -> String {
    let seconds = bytes.get() as f64 * 8.0 / rate.get() as f64;
    match seconds {
        0.0..120.0 => format!("{seconds:.1} s"),
        0.0..7200.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// The number of tenants on each server, and sums of demand by dimension.
type Contents = BTreeMap<u32, (usize, [u128; 6])>;

/// What is on each server, where tenants are in `places`.
fn contents(problem: &Problem, places: &[Vec<u32>]) -> Contents {
    let mut servers = Contents::new();
    for (tenant, places) in problem.tenants.iter().zip(places) {
        for &server in places {
            let (count, sums) = servers.entry(server).or_default();
            *count += 1;
            for dimension in Dimension::ALL {
                sums[dimension as usize] += u128::from(tenant.wants.get(dimension));
            }
        }
    }
    servers
}

/// The readable placement: how good it is, and how full servers are.
fn text(problem: &Problem, placement: &Placement) -> String {
    let Placement { servers, bound, is_best, .. } = placement;
    let tenants = problem.tenants.len();
    let gap = (f64::from(*servers) / f64::from((*bound).max(1)) - 1.0) * 100.0;
    let quality = if *is_best {
        "fewer are not possible".to_owned()
    } else {
        format!("at least {bound} are needed, so at most {gap:.1} % could be saved")
    };
    let mut text = format!("{tenants} tenants on {servers} servers; {quality}.\n\n");
    let limited: Vec<Dimension> = Dimension::ALL
        .into_iter()
        .filter(|dimension| problem.pool.server.get(*dimension).is_some())
        .collect();
    let contents = contents(problem, &placement.places);
    let mut lines = vec![row(["server", "rack", "tenants"])];
    lines[0].extend(limited.iter().map(|dimension| format!("{dimension} %")));
    let share = |dimension: &Dimension, sum: u128, servers: f64| {
        let each = problem.pool.server.get(*dimension).unwrap_or(u64::MAX);
        format!("{:.0}", sum as f64 / (each as f64 * servers) * 100.0)
    };
    for (server, (count, sums)) in contents.iter().take(SHOWN) {
        let rack = server % problem.pool.racks.max(1);
        let mut cells = vec![server.to_string(), rack.to_string(), count.to_string()];
        cells.extend(limited.iter().map(|one| share(one, sums[*one as usize], 1.0)));
        lines.push(cells);
    }
    let mut cells = row(["all", "", ""]);
    cells[2] = contents.values().map(|(count, _)| count).sum::<usize>().to_string();
    cells.extend(limited.iter().map(|one| {
        let sum = contents.values().map(|(_, sums)| sums[*one as usize]).sum();
        share(one, sum, f64::from(*servers))
    }));
    lines.push(cells);
    text += &table(&lines);
    if contents.len() > SHOWN {
        text += "The first are shown; --csv FILE writes who is where.\n";
    }
    text
}

/// The table for CSV: a row for each replica.
fn rows(problem: &Problem, placement: &Placement) -> Grid {
    let (mut tenants, mut replicas, mut servers) = (Vec::new(), Vec::new(), Vec::new());
    for (tenant, places) in problem.tenants.iter().zip(&placement.places) {
        for (replica, server) in (0..).zip(places) {
            tenants.push(tenant.name.clone());
            replicas.push(replica);
            servers.push(u64::from(*server));
        }
    }
    vec![
        ("tenant", Column::Text(tenants)),
        ("replica", Column::Numbers(replicas)),
        ("server", Column::Numbers(servers)),
    ]
}

/// The picture of how full each server is in each dimension, also before a migration.
fn picture(problem: &Problem, placement: &Placement, change: Option<&Change>) -> String {
    let after = contents(problem, &placement.places);
    let before = change.map(|change| &change.before);
    let servers: BTreeSet<u32> =
        after.keys().chain(before.into_iter().flat_map(Contents::keys)).copied().collect();
    let mut rows = Vec::new();
    for dimension in Dimension::ALL {
        let Some(each) = problem.pool.server.get(dimension) else { continue };
        let shares = |contents: &Contents| -> Vec<f64> {
            let sum = |server| contents.get(server).map_or(0, |(_, sums)| sums[dimension as usize]);
            servers.iter().map(|server| sum(server) as f64 / each as f64).collect()
        };
        match before {
            Some(before) => {
                rows.push((format!("{dimension}, before"), shares(before)));
                rows.push((format!("{dimension}, after"), shares(&after)));
            }
            None => rows.push((dimension.to_string(), shares(&after))),
        }
    }
    cells(&Cells {
        title: "How full each server is",
        columns: &format!("{} servers", servers.len()),
        rows,
        note: "what tenants take of each server",
    })
}

/// What is used of each server in each dimension, as the record has it.
fn used(problem: &Problem, contents: &Contents) -> Vec<record::Server> {
    let server = |(server, (count, sums)): (&u32, &(usize, [u128; 6]))| {
        let used = Dimension::ALL.map(|one| (one.name().to_owned(), sums[one as usize] as f64));
        record::Server {
            server: u64::from(*server),
            rack: u64::from(server % problem.pool.racks.max(1)),
            tenant_count: *count as u64,
            used: used.into(),
        }
    };
    contents.iter().map(server).collect()
}

/// A migration as the record has it.
fn migration(problem: &Problem, placement: &Placement, change: &Change) -> record::Migration {
    let moves = change.moves.iter().map(|one| {
        let tenant = &problem.tenants[one.tenant];
        record::Move {
            tenant: tenant.name.clone(),
            from: one.from.map(u64::from),
            to: u64::from(one.to),
            bytes: tenant.wants.get(Dimension::Capacity),
        }
    });
    let benefit = change.benefit(problem, placement);
    record::Migration {
        moves: moves.collect(),
        bytes: change.bytes(problem).get(),
        rate_bps: change.rate.get(),
        server_count_before: change.before.len() as u64,
        servers_before: used(problem, &change.before),
        server_count_freed: change.freed(placement) as u64,
        benefit: benefit.map(|(benefit, _)| benefit),
        cost: benefit.map(|(_, cost)| cost),
    }
}

/// The record of a placement.
fn recorded(
    problem: &Problem,
    placement: &Placement,
    change: Option<&Change>,
) -> record::Placement {
    let tenants = problem.tenants.iter().zip(&placement.places);
    let tenants = tenants.map(|(tenant, places)| record::Tenant {
        name: tenant.name.clone(),
        servers: places.iter().copied().map(u64::from).collect(),
    });
    let limits = Dimension::ALL.into_iter().filter_map(|one| {
        problem.pool.server.get(one).map(|limit| (one.name().to_owned(), limit as f64))
    });
    record::Placement {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        server_count: u64::from(placement.servers),
        server_count_min: u64::from(placement.bound),
        is_best: placement.is_best,
        server_limits: limits.collect(),
        servers: used(problem, &contents(problem, &placement.places)),
        tenants: tenants.collect(),
        migration: change.map(|change| migration(problem, placement, change)),
    }
}
