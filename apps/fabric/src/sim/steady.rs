//! What is measured of flows that arrive by chance: neither those that fill an empty network, nor
//! those that meet one which empties.

use results::{Figures, Measured};

use super::setting::Settings;
use super::setup::Setup;
use super::{figures, run};

fn ran(settings: &[(&'static str, &str)]) -> (Setup, Figures, Vec<f64>) {
    let with = |all: Settings, &(name, value): &(&'static str, &str)| all.with(name, value);
    let setup = Setup::new(&settings.iter().fold(Settings::default(), with)).expect("it can be");
    let outcome = run::run(&setup, &mut |_| true).expect("flows finish").outcome;
    let Setup { fabric, flows, end, .. } = &setup;
    let rows = figures::rows(fabric, flows, &outcome, *end);
    let figures = figures::figures(&setup, &outcome);
    (setup, figures, rows.into_iter().map(|row| row.slowdown).collect())
}

const SMALL: [(&str, &str); 5] = [
    ("topology", "single-switch"),
    ("sizes", "web-search"),
    ("load", "80%"),
    ("flows", "400"),
    ("seed", "5"),
];

/// By hand: of 400 flows those from the 80th to the 340th.
#[test]
fn flows_at_both_ends_are_not_measured() {
    let parts = [("warm-up", "20%"), ("cool-down", "15%")];
    let (setup, figures, slowdowns) = ran(&[&SMALL[..], &parts].concat());
    let within = &slowdowns[80..340];
    let mean = within.iter().sum::<f64>() / within.len() as f64;
    assert_eq!(figures.slowdown.count, 260);
    assert!((figures.slowdown.mean - mean).abs() < 1e-5, "{mean}: {:?}", figures.slowdown);
    let measured = figures.measured.expect("some are measured");
    let start = |place: usize| (setup.flows[place].start - setup.flows[0].start).as_ps();
    assert_eq!((measured.from_ps, measured.to_ps), (start(80), start(340)));
    let all = [("warm-up", "0%"), ("cool-down", "0%")];
    let (_, whole, _) = ran(&[&SMALL[..], &all].concat());
    assert_eq!((whole.slowdown.count, whole.measured), (400, None));
    assert_ne!(whole.slowdown.mean, figures.slowdown.mean);
    // The end of a run, in which hosts fall silent one by one, is no part of its load.
    assert!(measured.utilisation > 1.2 * whole.utilisation, "{measured:?} {}", whole.utilisation);
}

/// Of pages: three packets with 4096 B, and as many acknowledgements, at 60 % of 1500 B for 1460.
#[test]
fn the_load_is_that_which_was_asked_for() {
    let pages = [("topology", "single-switch"), ("sizes", "4KiB"), ("flows", "20000")];
    let (_, figures, _) = ran(&pages);
    let Measured { asked, utilisation, .. } = figures.measured.expect("some are measured");
    let expected = 0.6 * (1460.0 / 1500.0) * (4216.0 + 120.0) / 4096.0;
    assert_eq!(asked, 0.6);
    assert!((utilisation / expected - 1.0).abs() < 0.03, "{utilisation}, expected {expected}");
}

/// Racks of 16 hosts with 4 links of the same rate send 128 of 143 parts through them.
#[test]
fn a_load_that_a_link_cannot_carry_is_refused() {
    let at = |load: &str| {
        let thin = Settings::default().with("spine-rate", "40Gbps").with("load", load);
        Setup::new(&thin.with("flows", "20")).map(|_| ()).map_err(|error| error.to_string())
    };
    let said = at("60%").expect_err("it cannot be");
    assert!(said.starts_with("--load: the link from switch "), "{said}");
    assert!(said.ends_with("would be busy 215 % of its time at 60 %; give at most 27%"), "{said}");
    assert_eq!(at("27%"), Ok(()));
    assert!(at("28%").is_err());
    for name in ["warm-up", "cool-down"] {
        let none = Settings::default().with(name, "50%");
        let said = Setup::new(&none).map(|_| ()).map_err(|error| error.to_string());
        let said = said.expect_err("it cannot be");
        assert_eq!(said, format!("--{name}: nothing would be measured; give less than 50%"));
    }
}
