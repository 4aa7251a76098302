//! The containers of Alibaba's cluster trace of 2018 (`container_meta.csv`), CSV without names:
//! a container's machine and request, each time the request changes.

use std::collections::BTreeMap;
use std::path::Path;

use planner::cost::{Demand, Dimension, Server};
use planner::fleet::Fleet;

use super::trace::{Row, Stays, Time, each_row, wants};
use crate::PlanError;

/// Indices of cells in a row.
const CONTAINER: usize = 0;
const MACHINE: usize = 1;
const TIME: usize = 2;
const GROUP: usize = 3;
const STATUS: usize = 4;
const CPU: usize = 5;
const MEMORY: usize = 7;
const CELLS: usize = 8;

/// Hundredths of a core that a machine has; memory is in hundredths of a machine's.
const CORES: f64 = 9_600.0;
/// The trace has eight days.
const HOURS: u32 = 8 * 24;
const HOUR: f64 = 3600.0;

struct Running {
    from: f64,
    group: String,
    machine: String,
    wants: Demand,
}

/// Reads the trace, with `server` as its machine; returns also how many stays were too short.
///
/// # Errors
/// The first invalid row, with its place.
pub(super) fn read(path: &Path, server: &Server) -> Result<(Fleet, u64), PlanError> {
    let mut stays = Stays::default();
    let mut running: BTreeMap<String, Running> = BTreeMap::new();
    each_row(path, CELLS, |row| {
        let from = row.number(TIME, (0.0, 1e12), None)? / HOUR;
        let container = row.text(CONTAINER)?;
        if let Some(before) = running.remove(container) {
            let when = Time { from: before.from, to: Some(from) };
            stays.add(row, (&before.group, Some(&before.machine)), when, before.wants)?;
        }
        if row.text(STATUS)? == "stopped" {
            return Ok(());
        }
        let shares = [
            (Dimension::Qps, row.number(CPU, (0.0, CORES), Some(0.0))? / CORES),
            (Dimension::Memory, row.number(MEMORY, (0.0, 100.0), Some(0.0))? / 100.0),
        ];
        let (group, machine) = (row.text(GROUP)?.to_owned(), row.text(MACHINE)?.to_owned());
        let wants = wants(server, &shares);
        stays.room(row, running.len() + 1)?;
        running.insert(container.to_owned(), Running { from, group, machine, wants });
        Ok(())
    })?;
    let end = Row { name: "the end", line: 1, cells: Vec::new() };
    for one in running.into_values() {
        let when = Time { from: one.from, to: None };
        stays.add(&end, (&one.group, Some(&one.machine)), when, one.wants)?;
    }
    let short = stays.short_count;
    Ok((stays.finish(HOURS, server), short))
}

#[cfg(test)]
mod tests {
    use super::super::machine;
    use super::*;

    #[test]
    fn containers_are_stays() {
        let rows = "c_1,m_7,0,app_1,started,400,400,1.56\n\
                    c_1,m_7,7200,app_1,started,800,800,3.12\n\
                    c_2,m_8,0,app_2,allocated,9600,9600,100\n\
                    c_2,m_8,3600,app_2,stopped,9600,9600,100\n";
        let path = std::env::temp_dir().join(format!("afar-alibaba-{}", std::process::id()));
        std::fs::write(&path, rows).expect("a file");
        let read_it = || read(&path, &machine());
        let (fleet, short) = read_it().expect("it is one");
        assert_eq!((fleet.stays.len(), short, fleet.hours), (3, 0, 192));
        let hours = fleet.hourly();
        let qps = |hour: usize| hours[hour][Dimension::Qps as usize];
        let whole = u128::from(machine().get(Dimension::Qps).expect("it has some"));
        assert_eq!(qps(0), whole + (whole / 24) + 1, "four cores of 96, rounded up, and all");
        assert_eq!(qps(2), whole / 12 + 1);
        std::fs::write(&path, "c_1,m_7,0,app_1,started,400,400,101\n").expect("a file");
        let error = read_it().expect_err("it cannot be").to_string();
        assert!(
            error.contains(":1:33: \"101\": there should be a number from 0 to 100"),
            "{error}"
        );
        let _gone = std::fs::remove_file(path);
    }
}
