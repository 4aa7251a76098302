//! Slowdowns that Gao et al. measured (their logs of 2015) against what is predicted from the
//! others of the same program.
//!
//! `AFAR_ORACLE_DIR` names a directory with `gao_degradation.csv`: program, round trip, bandwidth,
//! runs, time alone, degradation, gigabytes swapped in and out. Without it these tests say SKIPPED.

use std::collections::BTreeMap;
use std::path::Path;

use measure::{BitsPerSec, Duration};
use planner::slowdown::{Fit, Measured, Network, SwapLine};
use test_support::skip;

/// A line of the file.
struct Line {
    program: String,
    network: (u64, u64),
    degradation: f64,
    swap_gb_per_sec: f64,
}

/// By how much both ways of predicting miss one line, and whether it is within the interval.
struct Missed {
    terms: f64,
    swap: f64,
    swap_of_network: f64,
    within: bool,
}

impl Line {
    fn measured(&self) -> Measured {
        let (us, gbps) = self.network;
        let network = Network::exact(Duration::from_us(us), BitsPerSec::from_gbps(gbps));
        Measured { network, degradation: self.degradation }
    }
}

/// The programs' degradation over one network is told by the other eight, and the control has
/// everything else: all programs over all networks, or, its best case, the other programs over the
/// same network.
#[test]
fn left_out_networks_are_predicted_and_the_control_is_beaten() {
    let Some(lines) = lines() else { return };
    assert_eq!(lines.len(), 54);
    let mut by_program: BTreeMap<&str, Vec<Missed>> = BTreeMap::new();
    for left_out in 0..lines.len() {
        let missed = missed(&lines, left_out);
        by_program.entry(&lines[left_out].program).or_default().push(missed);
    }
    println!("program              two terms  swap bandwidth  of the same network  in interval");
    for (program, missed) in &by_program {
        let within = missed.iter().filter(|missed| missed.within).count();
        println!(
            "{program:<20} {:>9.4} {:>15.4} {:>20.4} {within:>10} of {}",
            mean(missed, |missed| missed.terms),
            mean(missed, |missed| missed.swap),
            mean(missed, |missed| missed.swap_of_network),
            missed.len()
        );
    }
    let bounds = [
        ("graphlab", 0.02),
        ("terasort", 0.02),
        ("memcached", 0.02),
        ("wordcount-hadoop", 0.02),
        ("wordcount", 0.06),
        ("storm", 0.02),
    ];
    for (program, bound) in bounds {
        let found = mean(&by_program[program], |missed| missed.terms);
        assert!(found <= bound, "{program}: {found}");
    }
    let all: Vec<Missed> = by_program.into_values().flatten().collect();
    let terms = mean(&all, |missed| missed.terms);
    assert!(terms < mean(&all, |missed| missed.swap));
    assert!(terms < mean(&all, |missed| missed.swap_of_network));
    let within = all.iter().filter(|missed| missed.within).count();
    assert!(within * 10 >= all.len() * 8, "{within} of {} are within their interval", all.len());
}

fn missed(lines: &[Line], left_out: usize) -> Missed {
    let wanted = &lines[left_out];
    let others = || lines.iter().enumerate().filter(|&(line, _)| line != left_out);
    let own = others().map(|(_, line)| line).filter(|line| line.program == wanted.program);
    let fit = Fit::new(&own.map(Line::measured).collect::<Vec<_>>()).expect("eight networks");
    let found = fit.degradation(&wanted.measured().network);
    let line = |of_network: bool| {
        let points = others().map(|(_, line)| line);
        let points = points.filter(|line| !of_network || line.network == wanted.network);
        let points: Vec<_> = points.map(|line| (line.swap_gb_per_sec, line.degradation)).collect();
        let line = SwapLine::new(&points).expect("five programs");
        (line.degradation(wanted.swap_gb_per_sec) - wanted.degradation).abs()
    };
    Missed {
        terms: (found.value - wanted.degradation).abs(),
        swap: line(false),
        swap_of_network: line(true),
        within: (found.low..=found.high).contains(&wanted.degradation),
    }
}

fn mean(missed: &[Missed], of: impl Fn(&Missed) -> f64) -> f64 {
    missed.iter().map(of).sum::<f64>() / missed.len() as f64
}

fn lines() -> Option<Vec<Line>> {
    let Some(directory) = std::env::var_os("AFAR_ORACLE_DIR") else {
        skip(
            "oracle::predict",
            "AFAR_ORACLE_DIR does not name a directory with gao_degradation.csv",
        );
        return None;
    };
    let text = std::fs::read_to_string(Path::new(&directory).join("gao_degradation.csv"));
    Some(text.expect("it is there").lines().skip(1).map(line).collect())
}

fn line(text: &str) -> Line {
    let fields: Vec<&str> = text.split(',').collect();
    let number = |at: usize| fields[at].parse::<f64>().expect("a number");
    let whole = |at: usize| fields[at].trim_end_matches(".0").parse().expect("a whole number");
    Line {
        program: fields[0].to_owned(),
        network: (whole(1), whole(2)),
        degradation: number(5),
        swap_gb_per_sec: (number(6) + number(7)) / number(4),
    }
}
