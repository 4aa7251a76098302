//! Cells in a table and a picture, and what is to be true of them.

use console::layout::{NONE, row, table};
use results::{Agreement, Emulated, Validation};
use serde_json::{Value, json};

use super::cell::Ran;
use crate::plot::{Axis, Chart, Kind, Series, draw};
use crate::report::{Report, Verdict};

/// A program that is slowed down by less says little of how far memory is emulated.
const SLOWDOWN_MIN: f64 = 1.3;
/// Of the cells that say something, so many are to agree; and to differ by a wrong profile.
const AGREE_MIN: f64 = 0.9;
const DIFFER_MIN: f64 = 0.8;
const TITLE: &str = "far memory emulated, beside the same really far over NVMe/TCP";

pub(super) fn report(ran: &[Ran]) -> Report {
    let verdicts = verdicts(ran);
    let caption: Vec<String> = verdicts.iter().map(Verdict::text).collect();
    Report {
        title: TITLE.to_owned(),
        table: rows(ran),
        picture: picture(ran, &caption),
        points: Value::Array(ran.iter().map(point).collect()),
        verdicts,
        paper: json!({"none": "nobody has published this"}),
    }
}

fn emulated<'a>(record: &'a Validation, name: &str) -> Option<&'a Emulated> {
    record.emulated.iter().find(|one| one.name == name)
}

fn point((cell, outcome): &Ran) -> Value {
    let mut point = json!({"program": cell.name, "local": cell.local});
    match outcome {
        Ok(record) => point["validation"] = json!(record),
        Err(why) => point["failed"] = json!(why),
    }
    point
}

fn rows(ran: &[Ran]) -> String {
    let head = ["program", "local", "real", "emulated by real", "fetches", "moved", "agreement"];
    let mut rows = vec![row(head)];
    let mut failures = String::new();
    for (cell, outcome) in ran {
        let cells = match outcome {
            Ok(record) => told(record),
            Err(why) => {
                failures += &format!("{} with {} local failed: {why}\n", cell.name, cell.local);
                [NONE; 5].map(str::to_owned)
            }
        };
        let names = [cell.name, cell.local].map(str::to_owned);
        rows.push(names.into_iter().chain(cells).collect());
    }
    format!(
        "{}real: how many times slower than natively; fetches and moved: those of emulated by \
         those of real runs\n{failures}",
        table(&rows)
    )
}

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

// The share of cells that are slowed down by enough, of those that are decided.
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

fn picture(ran: &[Ran], caption: &[String]) -> String {
    let names: Vec<String> =
        ran.iter().map(|(cell, _)| format!("{} {}", cell.name, cell.local)).collect();
    let places = || (1..).map(f64::from);
    let ratios = |name: &str| -> Vec<(f64, f64)> {
        let of = |(_, outcome): &Ran| Some(emulated(outcome.as_ref().ok()?, name)?.ratio.median);
        places().zip(ran).filter_map(|(at, one)| Some((at, of(one)?))).collect()
    };
    let ends = |value: f64| vec![(0.5, value), (ran.len() as f64 + 0.5, value)];
    let series =
        |name: &str, colour, points, kind| Series { name: name.to_owned(), colour, points, kind };
    let all = vec![
        series("emulated by real", chart::BLUE, ratios("plain"), Kind::Dots),
        series("1.25 times as long", chart::ORANGE, ratios("scaled"), Kind::Dots),
        series("within 5 %", chart::GREY, ends(0.95), Kind::Bound),
        series("", chart::GREY, ends(1.05), Kind::Bound),
    ];
    let most = all.iter().flat_map(|one| &one.points).map(|point| point.1).fold(1.05, f64::max);
    let chart = Chart {
        title: "run time emulated by run time really far".to_owned(),
        x: Axis::names("program, local memory", &names),
        y: Axis::from_zero("emulated by real", most * 1.05),
        series: all,
    };
    draw(TITLE, &[chart], 1, caption)
}
