//! `--dry-run`: the runs of a sweep with all settings, and how long they may take.

use super::file::Sweep;
use super::find;
use super::matrix::Cell;
use super::row::Row;
use super::time::{clock, mean_s};

/// The plan of a matrix as text; `rows` are runs that are done.
pub(crate) fn matrix(sweep: &Sweep, cells: &[Cell], rows: &[Row]) -> String {
    let runs = cells.len() * sweep.repetitions as usize;
    let names: String = cells.iter().map(|cell| format!("  {}\n", cell.name())).collect();
    let is_ours = |row: &&Row| cells.iter().any(|cell| cell.name() == row.cell);
    let done = rows.iter().filter(is_ours).count();
    let left = (runs - done.min(runs)) as f64;
    format!(
        "{} cells in {} blocks: {runs} runs, {done} of them done\n{names}{}{}",
        cells.len(),
        sweep.repetitions,
        settings(sweep),
        time(sweep, rows, [left, left])
    )
}

/// The plan of a search as text: it bisects each axis, then runs both sides of each edge again,
/// beside the native program.
pub(crate) fn search(sweep: &Sweep, bound: &str, rows: &[Row]) -> String {
    let mut out = format!("search for a slowdown of at most {bound} along three axes\n");
    let (mut least, mut most) = (0_u32, 0_u32);
    for axis in find::SEARCHED {
        let steps = find::steps(sweep, axis);
        let tried = usize::BITS - steps.len().leading_zeros();
        out += &format!("  {axis}: {} (at most {tried} of them)\n", steps.join(", "));
        // At least: each step, and in confirmation native, both sides and a run for the peak.
        least += sweep.repetitions * (tried.saturating_sub(1) + 3);
        most += sweep.repetitions * find::PATIENCE * (2 * tried + 4 * find::MOVES);
    }
    let find = &sweep.find;
    out += &format!(
        "what does not move: engine {}, local {}, of {}, rtt {}, bandwidth {}\n",
        find.engine, find.local, find.of, find.rtt, find.bandwidth
    );
    out += &format!("{least} to {most} runs, {} of them done\n", rows.len());
    let left = [least, most].map(|runs| f64::from(runs) - rows.len() as f64);
    out + &settings(sweep) + &time(sweep, rows, left.map(|runs| runs.max(0.0)))
}

// A command line with quotes where a shell needs them.
fn as_typed(words: &[String]) -> String {
    let is_plain = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
    let words = words.iter();
    let quoted = words.map(|word| if is_plain(word) { word.clone() } else { format!("'{word}'") });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The workload, the metric and the limits of a run, as text.
fn settings(sweep: &Sweep) -> String {
    let workload = &sweep.workload;
    let load = workload.load.as_ref().map(|load| format!("load: {}\n", as_typed(load)));
    let metric = sweep.metric.pattern.as_ref().or(sweep.metric.json.as_ref());
    format!(
        "command: {}\n{}metric: {} ({} is better)\nseed {}, attempts {}, others at most {}, stolen \
         at most {}, a run takes at most {}\n",
        as_typed(&workload.command),
        load.unwrap_or_default(),
        metric.map_or("wall time", |metric| metric),
        sweep.metric.better.word(),
        sweep.seed,
        sweep.attempts,
        sweep.others_max(),
        sweep.stolen_max(),
        clock(sweep.timeout().as_secs_f64()),
    )
}

/// The expected time of `least` runs and the longest time of `most` runs, as text.
fn time(sweep: &Sweep, rows: &[Row], [least, most]: [f64; 2]) -> String {
    let expected = match mean_s(rows) {
        Some(mean) => format!("about {}", clock(mean * least)),
        None => "unknown until the first run has ended".to_owned(),
    };
    // The longest time if every run is repeated.
    let limit = clock(sweep.timeout().as_secs_f64() * most * f64::from(sweep.attempts));
    format!("time left: {expected}, at most {limit}\n")
}

#[cfg(test)]
mod tests {
    use super::super::matrix::cells;
    use super::*;

    #[test]
    fn a_plan_has_every_setting_and_the_time_that_runs_took() {
        let text = "repetitions = 2\n[workload]\ncommand = ['sleep', '1']\n[matrix]\n\
                    rtt = ['3us', '5us']\n";
        let sweep = Sweep::own(text);
        let cells = cells(&sweep);
        let plan = matrix(&sweep, &cells, &[]);
        assert!(plan.starts_with("5 cells in 2 blocks: 10 runs, 0 of them done\n"), "{plan}");
        for line in [
            "  rtt=5us\n",
            "command: sleep 1\nmetric: wall time (lower is better)\n",
            "seed 1, attempts 3, others at most 5%, stolen at most 5%, a run takes at most 10 min",
            "time left: unknown until the first run has ended, at most 5 h 00 min\n",
        ] {
            assert!(plan.contains(line), "{line}: {plan}");
        }
        let row = Row { cell: "rtt=5us".to_owned(), elapsed_ns: 2_000_000_000, ..Row::default() };
        let plan = matrix(&sweep, &cells, &[row]);
        assert!(plan.contains("1 of them done\n") && plan.contains("about 18 s"), "{plan}");
    }

    #[test]
    fn the_plan_of_a_search_has_its_steps() {
        let sweep = Sweep::own("[workload]\ncommand = ['sleep', '1']\n");
        let plan = search(&sweep, "5%", &[]);
        assert!(plan.contains("  rtt: 2us, 3us, 5us, 10us, 20us, 40us, 100us (at most 3 of them)"));
        assert!(plan.contains("what does not move: engine arena, local 25%, of peak, rtt 5us"));
    }
}
