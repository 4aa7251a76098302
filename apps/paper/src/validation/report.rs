//! The report of the validation: table, picture and verdicts.

use chart::{Bar, Bars, BarsScale};
use console::layout::{NONE, row, table};
use results::{Agreement, Emulated, SLOWDOWN_MIN, Validation};
use serde_json::{Value, json};

use super::cell::Ran;
use crate::report::{Report, Verdict};

/// The least share of slowed-down cells that must agree,
const AGREE_MIN: f64 = 0.9;
/// and that must differ if the profile is wrong.
const DIFFER_MIN: f64 = 0.8;
const TITLE: &str = "far memory emulated, beside the same really far over NVMe/TCP";

/// The report of all cells.
pub(super) fn report(ran: &[Ran]) -> Report {
    let verdicts = verdicts(ran);
    Report {
        title: TITLE.to_owned(),
        table: rows(ran),
        picture: picture(ran),
        points: Value::Array(ran.iter().map(point).collect()),
        verdicts,
        paper: json!({"none": "nobody has published this"}),
    }
}

/// The emulated runs named `name`: `plain`, or an ablation.
fn emulated<'a>(record: &'a Validation, name: &str) -> Option<&'a Emulated> {
    record.emulated.iter().find(|one| one.name == name)
}

/// A cell for the record.
fn point((cell, outcome): &Ran) -> Value {
    let mut point = json!({
        "program": cell.program.name,
        "threads": cell.threads,
        "local": cell.local,
    });
    match outcome {
        Ok(record) => point["validation"] = json!(record),
        Err(why) => point["failed"] = json!(why),
    }
    point
}

/// The table as text.
fn rows(ran: &[Ran]) -> String {
    let head = ["program", "local", "real", "emulated by real", "fetches", "moved", "agreement"];
    let mut rows = vec![row(head)];
    let mut failures = String::new();
    for (cell, outcome) in ran {
        let cells = match outcome {
            Ok(record) => told(record),
            Err(why) => {
                failures += &format!("{}, {} local, failed: {why}\n", cell.name(), cell.local);
                [NONE; 5].map(str::to_owned)
            }
        };
        let names = [cell.name(), cell.local.to_owned()];
        rows.push(names.into_iter().chain(cells).collect());
    }
    format!(
        "{}real: how many times slower than natively; fetches and moved: those of emulated by \
         those of real runs\n{failures}",
        table(&rows)
    )
}

/// The cells of a row after its names.
fn told(record: &Validation) -> [String; 5] {
    let real = record
        .real
        .as_ref()
        .map_or_else(|| NONE.to_owned(), |real| format!("{:.2}", real.slowdown.median));
    match emulated(record, "plain") {
        None => [real, NONE.to_owned(), NONE.to_owned(), NONE.to_owned(), NONE.to_owned()],
        Some(plain) => [
            real,
            plain.ratio.text(3),
            format!("{:.3}", plain.fetch_ratio),
            format!("{:.3}", plain.moved_ratio),
            plain.agreement.words().to_owned(),
        ],
    }
}

// The verdicts on cells that are slowed down enough: how many agree, and how many differ with a
// wrong profile.
fn verdicts(ran: &[Ran]) -> Vec<Verdict> {
    let records = ran.iter().filter_map(|(_, outcome)| outcome.as_ref().ok());
    let telling: Vec<&Validation> = records
        .filter(|record| {
            record.real.as_ref().is_some_and(|real| real.slowdown.median >= SLOWDOWN_MIN)
        })
        .collect();
    let verdict = |name: &str, wanted: &[Agreement], least: f64, what: &str| {
        let all = telling.iter().filter_map(|record| emulated(record, name));
        let all: Vec<Agreement> = all.map(|one| one.agreement).collect();
        let open = |one: &&Agreement| matches!(one, Agreement::Undecided | Agreement::Disturbed);
        let open_count = all.iter().filter(open).count();
        let count = all.iter().filter(|one| wanted.contains(one)).count();
        let claim = format!(
            "of {} cells that are slowed down {SLOWDOWN_MIN} times or more, {count} {what}; {:.0} \
             % are to; {open_count} are undecided or were disturbed",
            all.len(),
            least * 100.0
        );
        let share = |count: usize| count as f64 / all.len() as f64;
        match all.len() {
            0 => Verdict::undecided(claim, "no cell is slowed down enough"),
            _ if share(count) >= least => Verdict::new(true, claim),
            _ if share(count + open_count) >= least => {
                Verdict::undecided(claim, "too many cells are")
            }
            _ => Verdict::new(false, claim),
        }
    };
    let agree = verdict(
        "plain",
        &[Agreement::Agrees],
        AGREE_MIN,
        "agree with what really happens, within 5 % of the time and 2 % of fetches and bytes",
    );
    let differ = verdict(
        "scaled",
        &[Agreement::Differs, Agreement::Counts],
        DIFFER_MIN,
        "are seen to differ where the emulated fetches take 1.25 times as long",
    );
    vec![agree, differ]
}

fn picture(ran: &[Ran]) -> String {
    let bar = |(cell, outcome): &Ran| {
        let plain = emulated(outcome.as_ref().ok()?, "plain")?;
        Some(Bar {
            name: format!("{}, {}", cell.name(), cell.local),
            parts: vec![plain.ratio.median],
            interval: plain.ratio.ends(),
            text: format!("{:.2}", plain.ratio.median),
        })
    };
    let bars = Bars {
        title: TITLE.to_owned(),
        unit: "run time emulated by run time really far".to_owned(),
        label: chart::short,
        parts: Vec::new(),
        bars: ran.iter().filter_map(bar).collect(),
        marks: vec![(0.95, "−5 %".to_owned()), (1.05, "+5 %".to_owned())],
        scale: BarsScale::Ratio,
    };
    bars.draw().svg
}

#[cfg(test)]
mod tests {
    use super::super::cell::Cell;
    use super::super::programs::PROGRAMS;
    use super::*;

    // Cells that end so, plainly and with a profile that is wrong.
    fn ran(ends: &[(Agreement, Agreement)]) -> Vec<Ran> {
        let golden = include_str!("../../../../crates/results/tests/golden/validation.json");
        let record: Validation = results::read(golden).expect("a golden record");
        let cell = Cell { program: &PROGRAMS[0], threads: 1, local: "20%" };
        let of = |&(plain, scaled): &(Agreement, Agreement)| {
            let mut record = record.clone();
            (record.emulated[0].agreement, record.emulated[1].agreement) = (plain, scaled);
            (cell, Ok(record))
        };
        ends.iter().map(of).collect()
    }

    fn decided(ends: &[(Agreement, Agreement)]) -> [Option<bool>; 2] {
        let verdicts = verdicts(&ran(ends));
        [verdicts[0].decided(), verdicts[1].decided()]
    }

    #[test]
    fn nine_of_ten_are_to_agree_and_a_wrong_profile_is_to_be_seen() {
        use Agreement::{Agrees, Differs, Undecided};
        let good = [(Agrees, Differs); 9];
        let with = |one| [&good[..], &[one]].concat();
        assert_eq!(decided(&with((Differs, Differs))), [Some(true), Some(true)]);
        let two = |one| [&good[..8], &[one, one]].concat();
        assert_eq!(decided(&two((Differs, Agrees))), [Some(false), Some(true)]);
        // They might agree yet.
        assert_eq!(decided(&two((Undecided, Undecided))), [None, Some(true)]);
        let three = [&good[..7], &[(Agrees, Agrees); 3]].concat();
        assert_eq!(decided(&three), [Some(true), Some(false)]);
    }

    #[test]
    fn cells_that_are_hardly_slower_decide_nothing() {
        let mut ran = ran(&[(Agreement::Differs, Agreement::Agrees)]);
        let real = ran[0].1.as_mut().ok().and_then(|record| record.real.as_mut());
        real.expect("the golden record has one").slowdown.median = 1.2;
        assert!(verdicts(&ran).iter().all(|verdict| verdict.decided().is_none()));
    }

    #[test]
    fn a_cell_that_failed_says_why() {
        let (cell, _) = ran(&[(Agreement::Agrees, Agreement::Differs)]).remove(0);
        let report = report(&[(cell, Err("no such program".to_owned()))]);
        assert!(report.table.contains("sort, 1 thread, 20% local, failed: no such program"));
        assert_eq!(report.points[0]["failed"], "no such program");
    }
}
