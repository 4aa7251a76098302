//! `afar plan place`: tenants onto servers, or from where they are to where they should be.

mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use measure::{BitsPerSec, Bytes};
use planner::cost::Dimension;
use planner::place::{Migration, Placement, Pool, Problem, fleet, fleet_server, migrate};
use serde_json::{Value, json};

use super::PlanError;
use crate::failure::Failure;
use crate::flags::PlaceFlags;
use crate::layout::{NONE, row, table};
use crate::output::Output;
use crate::terminal;

/// Rows of tables that grow with the problem.
const SHOWN: usize = 20;

/// Runs `afar plan place`.
///
/// # Errors
/// When there is no placement, a file or flag cannot be, or a result cannot be written.
pub(super) fn place(flags: &PlaceFlags) -> Result<ExitCode, Failure> {
    if flags.print {
        terminal::answer(file::EXAMPLE).map_err(Failure::Stdout)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (mut problem, name) = match (&flags.experiment, flags.synthetic) {
        (Some(path), _) => (file::read(path)?, path.display().to_string()),
        (None, count) => {
            let tenants = fleet(count.unwrap_or(1) as usize, flags.seed);
            let pool = Pool { server: fleet_server(), racks: 1, ..Pool::default() };
            (Problem { tenants, pool }, "--synthetic".to_owned())
        }
    };
    for text in &flags.add_tenant {
        file::add(&mut problem, text)?;
    }
    let refused = |source| PlanError::Place { place: name.clone(), source };
    let (placement, migration) = match &flags.now {
        None => (planner::place::place(&problem).map_err(refused)?, None),
        Some(path) => {
            let now = file::now(path, &problem)?;
            let lost: BTreeSet<u32> = flags.lose_server.iter().copied().collect();
            if let Some(server) = lost.iter().find(|one| !now.iter().flatten().any(|at| at == *one))
            {
                return Err(PlanError::NoServer(*server).into());
            }
            let Migration { placement, moves } =
                migrate(&problem, &now, &lost, flags.move_at_most.get()).map_err(refused)?;
            let before: BTreeSet<u32> = now.into_iter().flatten().collect();
            (placement, Some(Change { moves, before: before.len(), rate: flags.move_rate }))
        }
    };
    let outputs = [&flags.csv, &flags.json].map(|path| path.as_deref().map(Output::open));
    let [csv, json] = outputs.map(Option::transpose);
    let (csv, json) = (csv?, json?);
    let is_stdout = [&flags.csv, &flags.json]
        .into_iter()
        .any(|path| path.as_ref().is_some_and(|path| path.as_os_str() == "-"));
    if let Some(csv) = csv {
        csv.write(&rows(&problem, &placement))?;
    }
    if let Some(json) = json {
        json.write(&record(&problem, &placement, migration.as_ref()))?;
    }
    if !is_stdout {
        let mut text = text(&problem, &placement);
        if let Some(change) = &migration {
            text += &change.text(&problem, &placement);
        }
        terminal::answer(&text).map_err(Failure::Stdout)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// From one placement to another.
struct Change {
    moves: Vec<planner::place::Move>,
    /// Servers that were in use.
    before: usize,
    rate: BitsPerSec,
}

impl Change {
    fn bytes(&self, problem: &Problem) -> Bytes {
        let bytes = |one: &planner::place::Move| {
            Bytes::new(problem.tenants[one.tenant].wants.get(Dimension::Capacity))
        };
        self.moves.iter().map(bytes).fold(Bytes::ZERO, Bytes::saturating_add)
    }

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
        let change = match self.before.abs_diff(after) {
            0 => "as many servers are in use as before".to_owned(),
            count if after < self.before => format!("{count} servers are free then"),
            count => format!("{count} more servers are in use then"),
        };
        format!(
            "\n{}{} moves, {bytes}, {} at {}; {change}.\n",
            table(&lines),
            self.moves.len(),
            hours(self.rate, bytes),
            self.rate,
        )
    }
}

/// How long bytes take, which may be longer than a duration can be.
fn hours(rate: BitsPerSec, bytes: Bytes) -> String {
    let seconds = bytes.get() as f64 * 8.0 / rate.get() as f64;
    match seconds {
        0.0..120.0 => format!("{seconds:.1} s"),
        0.0..7200.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// What is on each server: tenants, and sums by dimension.
fn contents(problem: &Problem, placement: &Placement) -> BTreeMap<u32, (usize, [u128; 6])> {
    let mut servers: BTreeMap<u32, (usize, [u128; 6])> = BTreeMap::new();
    for (tenant, places) in problem.tenants.iter().zip(&placement.places) {
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
    let contents = contents(problem, placement);
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

fn rows(problem: &Problem, placement: &Placement) -> String {
    let mut text = "tenant,replica,server\n".to_owned();
    for (tenant, places) in problem.tenants.iter().zip(&placement.places) {
        for (replica, server) in places.iter().enumerate() {
            text += &format!("{},{replica},{server}\n", tenant.name);
        }
    }
    text
}

fn record(problem: &Problem, placement: &Placement, change: Option<&Change>) -> String {
    let tenants = problem.tenants.iter().zip(&placement.places);
    let tenants = tenants.map(|(tenant, places)| json!({"name": tenant.name, "servers": places}));
    let servers = contents(problem, placement).into_iter().map(|(server, (count, sums))| {
        let used =
            Dimension::ALL.map(|one| (one.name().to_owned(), json!(sums[one as usize] as f64)));
        let used: serde_json::Map<String, Value> = used.into_iter().collect();
        let rack = server % problem.pool.racks.max(1);
        json!({"server": server, "rack": rack, "tenant_count": count, "used": used})
    });
    let moves = change.map(|change| {
        let moves = change.moves.iter().map(|one| {
            let tenant = &problem.tenants[one.tenant];
            let bytes = tenant.wants.get(Dimension::Capacity);
            json!({"tenant": tenant.name, "from": one.from, "to": one.to, "bytes": bytes})
        });
        json!({
            "moves": moves.collect::<Vec<_>>(),
            "bytes": change.bytes(problem).get(),
            "rate_bps": change.rate.get(),
            "server_count_before": change.before,
        })
    });
    super::json_text(&json!({
        "schema": "afar.plan.place/1",
        "version": env!("CARGO_PKG_VERSION"),
        "server_count": placement.servers,
        "server_count_min": placement.bound,
        "is_best": placement.is_best,
        "servers": servers.collect::<Vec<_>>(),
        "tenants": tenants.collect::<Vec<_>>(),
        "migration": moves,
    }))
}
