//! Azure's trace for packing of 2020 (Hadary et al., Protean, OSDI 2020), a SQLite database: tables
//! `vm` (who requests a type, from when to when, in days) and `vmType` (what a type takes of each
//! kind of machine, as shares).
//!
//! Read by the program `sqlite3`, so that nobody who does not read this trace needs its library.

use std::io::{BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use document::DocumentError;
use launch::Child;
use planner::cost::{Dimension, Server};
use planner::fleet::Fleet;

use super::trace::{Row, Stays, Time, read_rows, wants};
use crate::PlanError;

/// The trace has 14 days of requests.
const HOURS: u32 = 14 * 24;
const DAY: f64 = 24.0;
const CELLS: usize = 8;
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The query for the requests of one kind of machine; types that do not fit it are left out.
fn query(machine: u64) -> String {
    format!(
        "SELECT vm.vmId, vm.tenantId, vm.starttime, vm.endtime, t.core, t.memory, t.ssd, t.nic \
         FROM vm JOIN vmType AS t ON t.vmTypeId = vm.vmTypeId WHERE t.machineId = {machine} \
         ORDER BY vm.vmId;"
    )
}

const MOST: &str = "SELECT t.machineId FROM vm JOIN vmType AS t ON t.vmTypeId = vm.vmTypeId \
                    GROUP BY t.machineId ORDER BY count(*) DESC, t.machineId LIMIT 1;";

/// Reads the trace for one kind of machine, by default that with most requests, with `server` as
/// its machine; returns also how many stays were too short.
///
/// # Errors
/// The first invalid row, with its place.
pub(super) fn read(
    path: &Path,
    machine: Option<u64>,
    server: &Server,
) -> Result<(Fleet, u64), PlanError> {
    check(path)?;
    let wrong = |message: &str| DocumentError::At {
        place: path.display().to_string(),
        message: message.to_owned(),
    };
    let mut found = machine;
    if found.is_none() {
        ask(path, MOST, 1, |row| {
            let text = row.text(0)?;
            found = text.parse().ok();
            Ok(())
        })?;
    }
    let machine = found.ok_or_else(|| wrong("there is nobody on any machine; give another"))?;
    let mut stays = Stays::default();
    let mut count = 0_u64;
    ask(path, &query(machine), CELLS, |row| {
        count += 1;
        let share = |cell| row.number(cell, (0.0, 1.0), Some(0.0));
        let days = (-36_500.0, 36_500.0);
        let from = row.number(2, days, None)? * DAY;
        let to = row.number(3, days, Some(f64::INFINITY))? * DAY;
        let shares = [
            (Dimension::Qps, share(4)?),
            (Dimension::Memory, share(5)?),
            (Dimension::Capacity, share(6)?),
            (Dimension::Network, share(7)?),
        ];
        let time = Time { from, to: to.is_finite().then_some(to) };
        stays.add(row, (row.text(1)?, None), time, wants(server, &shares))
    })?;
    if count == 0 {
        return Err(
            wrong(&format!("nobody can be on machine {machine}; give another --machine")).into()
        );
    }
    let short = stays.short_count;
    Ok((stays.finish(HOURS, server), short))
}

/// Refuses a file that is no SQLite database.
fn check(path: &Path) -> Result<(), DocumentError> {
    let unreadable = |source| DocumentError::Unreadable { path: path.to_owned(), source };
    let mut begin = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(MAGIC.len() as u64).read_to_end(&mut begin).map_err(unreadable)?;
    if begin == MAGIC {
        return Ok(());
    }
    let message = "this is no SQLite database; give the unpacked trace".to_owned();
    Err(DocumentError::At { place: path.display().to_string(), message })
}

/// Runs a query with `sqlite3`, and hands each row of the answer to `take`.
fn ask(
    path: &Path,
    query: &str,
    cells: usize,
    take: impl FnMut(&Row<'_>) -> Result<(), DocumentError>,
) -> Result<(), PlanError> {
    let place = path.display().to_string();
    let failed = |source| PlanError::Sqlite { place: place.clone(), source };
    // Neither settings of the user nor a file that the database names may have any effect.
    let file = path.canonicalize().map_err(failed)?;
    let mut command = Command::new("sqlite3");
    command.args(["-init", "/dev/null", "-batch", "-readonly", "-safe", "-csv", "-noheader"]);
    command.arg(file).arg(query).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Child::start(command).map_err(failed)?;
    if let Some(rows) = child.output() {
        read_rows(BufReader::new(rows), path, cells, take)?;
    }
    let said = child.errors();
    let status = child.finish().map_err(|error| failed(error.source))?;
    if status.success() {
        return Ok(());
    }
    let said = said.lines().next().unwrap_or("it failed").trim();
    let message = format!("sqlite3 says \"{said}\"; give the trace for packing");
    Err(DocumentError::At { place, message }.into())
}
