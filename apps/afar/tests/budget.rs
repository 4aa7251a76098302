//! Local memory is a promise: it is never exceeded by more than the batch on its way out, however
//! many threads fault at once on a machine that has no processor to spare.

mod support;

use std::time::Duration;

use measure::Run;
use support::{Launch, program, scratch, usable};

/// A few faults go on while the bell is on its way, the more the shorter they are, and the longer
/// other programs keep the supervisor from its processor. It is never more than a batch, and a
/// quarter of one in at least one run of these.
const ATTEMPTS: usize = 5;

#[test]
fn budget_is_held_while_every_processor_faults() {
    for (threads, rtt) in [("1", "0"), ("2", "0"), ("8", "0"), ("2", "5us"), ("8", "5us")] {
        let what = format!("{threads} threads, {rtt}");
        let mut seen = Vec::new();
        for _ in 0..ATTEMPTS {
            let Some(run) = storm(&["25%", "--rtt", rtt], &[threads, "32", "60000"], "held") else {
                return;
            };
            let budget = run.results.figures().unwrap().budget;
            assert!(budget.held, "{what}: {budget:?}");
            assert!(run.results.warnings.is_empty(), "{what}: {:?}", run.results.warnings);
            let excess = budget.peak_resident_bytes.saturating_sub(budget.budget_bytes);
            seen.push((excess, budget.batch_bytes));
            if excess * 4 <= budget.batch_bytes {
                break;
            }
        }
        let is_small = seen.last().is_some_and(|(excess, batch)| excess * 4 <= *batch);
        assert!(is_small, "{what}: {seen:?}");
    }
}

#[test]
fn locked_memory_beyond_the_budget_is_said_and_nobody_waits_for_it() {
    let Some(run) = storm(&["4MiB"], &["2", "16", "20000", "lock"], "locked") else { return };
    assert!(!run.results.figures().unwrap().budget.held);
    let said = |warning: &String| warning.contains("locked");
    assert!(run.results.warnings.iter().any(said), "{:?}", run.results.warnings);
}

// None, loudly, when this machine does not let us.
fn storm(flags: &[&str], arguments: &[&str], name: &str) -> Option<Run> {
    if !usable("bpf", name) {
        return None;
    }
    let record = scratch(&format!("{name}.json"));
    let json = record.to_str().expect("paths here are text");
    let words = [program("storm").into_os_string()].into_iter();
    let mut launch = Launch::new(words.chain(arguments.iter().map(Into::into)));
    if arguments.contains(&"lock") {
        launch = launch.unmanaged("the kernel does not let go of pages that are locked");
    }
    let all = [&["--trap", "bpf", "--json", json, "--local"], flags].concat();
    let ended = launch.under_afar(&all).limit(Duration::from_secs(120)).run().expect(0, name);
    assert_eq!(ended.text(), "done\n");
    ended.leaves_nothing(name);
    let text = std::fs::read_to_string(&record).expect("afar writes its record");
    Some(Run::from_json(&text).expect("a record is a record"))
}
