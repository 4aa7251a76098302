//! Touches of memory, timed by the program itself: `afar probe` as a program of a sweep.

use super::programs::Runs;
use sweep::Cell;

/// Quantiles of the touches of one cell, in nanoseconds; medians over blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Touched {
    pub(super) p50_ns: f64,
    pub(super) p95_ns: f64,
    pub(super) p99_ns: f64,
    pub(super) max_ns: f64,
}

/// The text of an experiment with `pages` pages, touched in order, `touches` touches in total.
pub(super) fn again(pages: u32, touches: u32) -> String {
    let (pages, touches) = (pages.to_string(), touches.to_string());
    experiment(&["afar", "probe", "--pages", &pages, "--touches", &touches])
}

/// The text of an experiment with `pages` pages, each touched once.
pub(super) fn first(pages: u32) -> String {
    experiment(&["afar", "probe", "--pages", &pages.to_string(), "--first"])
}

/// The text of an experiment with `touches` minor faults on `pages` pages.
pub(super) fn minor(pages: u32, touches: u32) -> String {
    let (pages, touches) = (pages.to_string(), touches.to_string());
    experiment(&["afar", "probe", "--minor", "--pages", &pages, "--touches", &touches])
}

/// The text of an experiment with this command.
fn experiment(command: &[&str]) -> String {
    format!(
        "timeout = \"60s\"\nallow_below_floor = true\n[workload]\ncommand = {}\n\
         [metric]\njson = \"/p50_ns\"\nfurther = [\"/p95_ns\", \"/p99_ns\", \"/max_ns\"]\n",
        serde_json::json!(command)
    )
}

/// The quantiles of a cell; `None` if it was not run.
pub(super) fn of(runs: &Runs, cell: &Cell) -> Option<Touched> {
    Some(Touched {
        p50_ns: runs.value(cell)?,
        p95_ns: runs.further(cell, 0)?,
        p99_ns: runs.further(cell, 1)?,
        max_ns: runs.further(cell, 2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweep::Sweep;

    #[test]
    fn experiments_can_be_read() {
        for text in [again(1, 2), first(3), minor(4, 5)] {
            let sweep = Sweep::own(&text);
            assert_eq!(sweep.workload.command[..2], ["afar", "probe"]);
            assert_eq!(sweep.metric.further.len(), 3);
        }
    }
}
