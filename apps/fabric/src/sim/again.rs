//! A record is enough to have its run again: whatever decides a result is among its settings.

use measure::Duration;
use netsim::{Outcome, Parameter, Slot, Transport};
use records::FlowRow;
use results::Figures;
use results::sim::Simulation;
use workload::Draw;

use super::setting::{Experiment, Settings};
use super::setup::Setup;
use super::transport::PUBLISHED;
use super::{figures, run, told};

/// Settings by chance.
const COUNT: u64 = 200;

fn pick<'a, T>(draw: &mut Draw, of: &'a [T]) -> &'a T {
    &of[usize::try_from(draw.below(of.len() as u64)).unwrap_or(0)]
}

fn set(settings: Settings, name: &'static str, value: impl ToString) -> Settings {
    settings.with(name, &value.to_string())
}

/// Who sends when, not much of it.
fn traffic(draw: &mut Draw, settings: Settings) -> Settings {
    let name = *pick(draw, &["poisson", "permutation", "incast", "all-to-all", "bursts"]);
    let mut settings = set(settings, "traffic", name);
    settings = match name {
        "poisson" => {
            let sizes = pick(draw, &["4KiB", "imc10", "100000B"]);
            let some = set(settings, "sizes", sizes);
            set(set(some, "load", format!("{}%", 10 + draw.below(80))), "flows", 5 + draw.below(40))
        }
        "bursts" => {
            let some = set(set(settings, "burst", 1 + draw.below(4)), "size", 1 + draw.below(9000));
            set(set(some, "load", format!("{}%", 10 + draw.below(80))), "flows", 5 + draw.below(40))
        }
        "incast" => {
            let some = set(settings, "senders", 1 + draw.below(3));
            set(set(some, "receiver", draw.below(4)), "size", 1 + draw.below(90_000))
        }
        _ => set(settings, "size", 1 + draw.below(20_000)),
    };
    set(settings, "seed", draw.below(1000))
}

fn network(draw: &mut Draw, settings: Settings) -> Settings {
    let name = *pick(draw, &["single-switch", "leaf-spine", "fat-tree"]);
    let mut settings = set(settings, "topology", name);
    settings = match name {
        "single-switch" => set(settings, "hosts", 4 + draw.below(4)),
        "fat-tree" => set(settings, "arity", 4),
        _ => {
            let some = set(settings, "racks", 2 + draw.below(2));
            set(set(some, "hosts-per-rack", 2 + draw.below(3)), "spines", 1 + draw.below(3))
        }
    };
    settings = set(settings, "rate", format!("{}Gbps", pick(draw, &[10, 25, 40, 100])));
    settings = set(settings, "delay", format!("{}ns", draw.below(1000)));
    settings = set(settings, "switching", pick(draw, &["cut-through", "store-and-forward"]));
    set(settings, "balance", pick(draw, &["spray", "flow"]))
}

/// From half of what a transport has by itself to twice as much, of half of what can be set.
fn parameters(draw: &mut Draw, mut settings: Settings) -> Settings {
    let mut protocol = Setup::new(&settings).expect("it can be").protocol;
    for (Parameter { name, least, most, .. }, slot) in protocol.slots() {
        // What is counted until its sender knows is acknowledged by itself.
        let is_single = name == "messages-per-ack" && settings.text("end") == "acknowledged";
        if draw.below(2) == 0 || is_single {
            continue;
        }
        settings = match slot {
            Slot::Count(&mut count) => {
                let half = u64::from(count) / 2;
                let other = half + draw.below(3 * half.max(1)) + 1;
                set(settings, name, other.clamp(u64::from(least), u64::from(most)))
            }
            Slot::Time(&mut time) => {
                let ps = time.as_ps() / 2 + draw.below(time.as_ps() * 3 / 2) + 1;
                set(settings, name, format!("{}ps", ps.min(Parameter::TIME_MAX.as_ps())))
            }
            Slot::Flag(_) => set(settings, name, pick(draw, &["yes", "no"])),
        };
    }
    settings
}

fn drawn(number: u64) -> Settings {
    let mut draw = Draw::new(number);
    let kind = usize::try_from(number).unwrap_or(0) % (Transport::ALL.len() + 1);
    let Some(transport) = Transport::ALL.get(kind) else {
        let names = ["pfabric", "phost", "fastpass", "tcp", "dctcp"];
        let settings = set(Settings::default(), "variant", PUBLISHED);
        let settings = set(settings, "transport", pick(&mut draw, &names));
        let settings = set(settings, "rate", pick(&mut draw, &["40Gbps", "100Gbps"]));
        let settings = set(set(settings, "sizes", "4KiB"), "load", "30%");
        return set(set(settings, "flows", 100), "seed", draw.below(1000));
    };
    let settings = set(Settings::default(), "transport", transport.describe().name);
    let mut settings = network(&mut draw, settings);
    settings = traffic(&mut draw, settings);
    settings = set(settings, "exchange", pick(&mut draw, &["one-way", "read", "write"]));
    let mtu = 600 + draw.below(8400);
    settings = set(set(settings, "mtu", format!("{mtu}B")), "header", "60B");
    settings = set(settings, "request-size", format!("{}B", 60 + draw.below(400)));
    if draw.below(2) == 0 {
        settings = set(settings, "buffer", format!("{}B", mtu * (2 + draw.below(30))));
    }
    if draw.below(2) == 0 {
        settings = set(settings, "last-packet", pick(&mut draw, &["short", "full"]));
    }
    if draw.below(2) == 0 {
        settings = set(settings, "end", pick(&mut draw, &["received", "acknowledged"]));
    }
    match transport {
        Transport::Dctcp => settings = set(settings, "mark", 1 + draw.below(30)),
        Transport::Ndp => settings = set(settings, "trim", 2 + draw.below(20)),
        _ => {}
    }
    if matches!(transport, Transport::Dctcp | Transport::Tcp | Transport::Ndp) {
        settings = set(settings, "host-queue", pick(&mut draw, &["levels", "turns", "drop-tail"]));
    }
    parameters(&mut draw, settings)
}

type Ran = Result<(Figures, Vec<FlowRow>, Outcome), netsim::SimError>;

/// Schedules that always come too late, for example, are settings that have no result.
fn ran(setup: &Setup) -> Ran {
    let outcome = run::run(setup, &mut |_| true)?.outcome;
    let Setup { fabric, flows, end, .. } = setup;
    let figures = figures::figures(setup, &outcome);
    Ok((figures, figures::rows(fabric, flows, &outcome, *end), outcome))
}

/// What `--json` writes of a run.
fn written(settings: &Settings, setup: &Setup, figures: &Figures) -> String {
    results::write(&told::record(settings, setup, figures.clone(), 1, None, Vec::new()))
}

#[test]
fn a_run_from_a_record_alone_is_the_same_run() {
    let mut results_of = vec![0; Transport::ALL.len() + 1];
    // What is recorded does not depend on what came of it.
    let some = ran(&Setup::new(&Settings::default().with("flows", "5")).expect("it can be"));
    let (some, ..) = some.expect("flows finish");
    for number in 0..COUNT {
        let settings = drawn(number);
        let setup = Setup::new(&settings).unwrap_or_else(|error| panic!("{number}: {error}"));
        let text = written(&settings, &setup, &some);
        let record: Simulation = results::read(&text).expect("it was written");
        for knob in settings.that_matter() {
            let key = knob.name.replace('-', "_");
            assert!(record.settings.contains_key(&key), "{number}: no {key} in {text}");
        }
        let again = Experiment::of_record("record.json", &text).expect("it is a record");
        let again = &again.cells()[0].settings;
        let other = Setup::new(again).unwrap_or_else(|error| panic!("{number}: {error}: {text}"));
        let is_same = format!("{:?}", other.fabric) == format!("{:?}", setup.fabric);
        assert!(is_same, "{number}: another network than that of {text}");
        assert_eq!((other.protocol, other.end), (setup.protocol, setup.end), "{number}");
        assert_eq!(written(again, &other, &some), text, "{number}: what is written of it");
        let first = ran(&setup);
        assert!(ran(&other) == first, "{number}: {text}");
        let kind = usize::try_from(number).unwrap_or(0) % results_of.len();
        results_of[kind] += usize::from(first.is_ok());
    }
    assert!(results_of.iter().all(|&count| count >= 15), "of 25 each: {results_of:?}");
}

/// A run in which nothing moves for long is given up; so no timeout is longer.
#[test]
fn times_without_end_are_refused() {
    for name in ["timeout", "timeout-min"] {
        let settings = set(Settings::default(), "transport", "tcp");
        let long = Parameter::TIME_MAX + Duration::from_ps(1);
        for time in ["0".to_owned(), format!("{}ps", long.as_ps())] {
            let wrong = Setup::new(&set(settings.clone(), name, time)).map(|_| ());
            let said = wrong.map_err(|error| error.to_string()).expect_err("it cannot be");
            assert!(said.starts_with(&format!("--{name}: ")) && said.contains("1ps"), "{said}");
        }
    }
}
