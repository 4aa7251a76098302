//! The task events of Google's cluster trace of 2011 (version 2: Reiss, Wilkes and Hellerstein,
//! Google cluster-usage traces: format + schema), CSV without names.

use std::collections::BTreeMap;
use std::path::PathBuf;

use planner::cost::{Demand, Dimension, Server};
use planner::fleet::Fleet;

use super::trace::{Row, Stays, Time, each_row, hour, wants};
use document::DocumentError;

/// Indices of cells in a row.
const TIME: usize = 0;
const JOB: usize = 2;
const TASK: usize = 3;
const MACHINE: usize = 4;
const EVENT: usize = 5;
const USER: usize = 6;
const CPU: usize = 9;
const MEMORY: usize = 10;
const DISK: usize = 11;
const CELLS: usize = 13;

/// Kinds of events: a task begins to run; its request changes; the last of the ways to end.
const SCHEDULE: f64 = 1.0;
const UPDATE_RUNNING: f64 = 8.0;
const LAST_END: f64 = 6.0;
/// Microseconds of an hour; times from 2⁶² on are after the trace.
const HOUR: f64 = 3.6e9;
const AFTER: f64 = 4.6e18;

/// A task that runs.
struct Running {
    from: f64,
    machine: String,
    wants: Demand,
}

/// Reads the files of the trace in order, with `server` as its largest machine, of which requests
/// are shares; returns also how many stays were too short.
///
/// # Errors
/// The first invalid row, with its place.
pub(super) fn read(paths: &[PathBuf], server: &Server) -> Result<(Fleet, u64), DocumentError> {
    let mut stays = Stays::default();
    let mut running: BTreeMap<(String, String), (String, Running)> = BTreeMap::new();
    let mut last = 0.0_f64;
    for path in paths {
        each_row(path, CELLS, |row| {
            let time = row.number(TIME, (0.0, 1e19), None)?;
            let event = row.number(EVENT, (0.0, UPDATE_RUNNING), None)?;
            if time < AFTER {
                last = last.max(time);
            }
            let key = (row.text(JOB)?.to_owned(), row.text(TASK)?.to_owned());
            let ends = event > SCHEDULE && event <= LAST_END;
            let begins = event == SCHEDULE || event == UPDATE_RUNNING;
            if (begins || ends)
                && let Some((user, task)) = running.remove(&key)
            {
                let when = Time { from: task.from / HOUR, to: Some(time / HOUR) };
                stays.add(row, (&user, Some(&task.machine)), when, task.wants)?;
            }
            if begins {
                let share = |cell| row.number(cell, (0.0, 1.0), Some(0.0));
                let shares = [
                    (Dimension::Qps, share(CPU)?),
                    (Dimension::Memory, share(MEMORY)?),
                    (Dimension::Capacity, share(DISK)?),
                ];
                let machine = row.text(MACHINE)?.to_owned();
                let task = Running { from: time, machine, wants: wants(server, &shares) };
                stays.room(row, running.len() + 1)?;
                running.insert(key, (row.text(USER)?.to_owned(), task));
            }
            Ok(())
        })?;
    }
    let end = Row { name: "the end", line: 1, cells: Vec::new() };
    for (user, task) in running.into_values() {
        let when = Time { from: task.from / HOUR, to: None };
        stays.add(&end, (&user, Some(&task.machine)), when, task.wants)?;
    }
    let short = stays.short_count;
    Ok((stays.finish(hour(last / HOUR).max(1), server), short))
}

#[cfg(test)]
mod tests {
    use super::super::machine;
    use super::*;

    fn file(name: &str, rows: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("afar-google-{name}-{}", std::process::id()));
        std::fs::write(&path, rows).expect("a file");
        path
    }

    // Two hours: a task that asks for more after one, one that is there for a minute.
    const ROWS: &str = "0,,7,0,m1,0,ann,2,9,0.5,0.25,0.1,0\n\
                        0,,7,0,m1,1,ann,2,9,0.5,0.25,0.1,0\n\
                        60000000,,8,0,m2,1,bob,0,0,0.1,,,0\n\
                        120000000,,8,0,m2,4,bob,0,0,0.1,,,0\n\
                        3000000000,,7,0,m1,8,ann,2,9,0.5,0.5,0.1,0\n\
                        7200000000,,9,0,,0,bob,0,0,,,,1\n";

    #[test]
    fn events_are_stays() {
        let path = file("stays", ROWS);
        let server = machine();
        let (fleet, short) = read(std::slice::from_ref(&path), &server).expect("it is one");
        let _gone = std::fs::remove_file(path);
        assert_eq!((fleet.hours, short, fleet.stays.len()), (2, 1, 2));
        assert_eq!(
            (&fleet.tenants[..], &fleet.servers[..]),
            (&["ann".into()][..], &["m1".into()][..])
        );
        let memory = |hour| fleet.memory().get(&(0, hour, 0)).copied();
        let whole = server.get(Dimension::Memory).expect("it has some");
        assert_eq!((memory(0), memory(1)), (Some(whole / 4), Some(whole / 2)));
    }

    #[test]
    fn what_cannot_be_is_named_with_its_place() {
        let refused = |name: &str, from: &str, to: &str| {
            let path = file(name, &ROWS.replacen(from, to, 1));
            let error = read(std::slice::from_ref(&path), &machine())
                .expect_err("it cannot be")
                .to_string();
            let _gone = std::fs::remove_file(path);
            error
        };
        assert!(refused("a", "m1,1,ann,2,9,0.5", "m1,1,ann,2,9,1.5").contains(":2:21: \"1.5\""));
        assert!(refused("b", "60000000", "-60000000").contains(":3:1: \"-60000000\""));
        assert!(refused("c", "m2,1,bob", ",1,bob").contains("there should be a name"));
        assert!(refused("d", ",1\n", "\n").contains("has 13 cells, this one has 12"));
    }
}
