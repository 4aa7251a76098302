//! Table 3: the local memory with which a class is degraded by less than 5 %.
//!
//! The available text has the table only as an image, so verdicts are about what §3.2 says of it:
//! between 20 and 30 % is enough, and class B needs more than class A.

use serde_json::{Value, json};

use super::apps::{Class, Matrix, Seen, measure};
use super::place::{Place, Section};
use super::{claims, degradation, published};
use crate::flags::Options;
use crate::plot::{Axis, Chart, Kind, Series, draw};
use crate::report::{Report, Verdict};
use crate::{Measured, ReproduceError};

/// The bound of the degradation.
const BOUND: f64 = 0.05;
/// Networks: round trip in microseconds and bandwidth in Gb/s.
const NETWORKS: [(u32, u32); 2] = [(5, 40), (3, 100)];
const CLASSES: [(Class, &str); 2] = [(Class::A, "A"), (Class::B, "B")];

/// Measures the table; `None` if it was interrupted before any result.
///
/// # Errors
/// When results cannot be written, or nothing ran.
pub(crate) fn run(flags: &Options) -> Result<Option<Measured>, ReproduceError> {
    let Some(matrix) = measure(flags, Section::Table3)? else { return Ok(None) };
    if matrix.is_empty() {
        return Ok(None);
    }
    let places = Section::Table3.places(flags.quick);
    Ok(Some(Measured {
        report: report(&matrix, &places),
        described: matrix.describe(),
        bed: matrix.record(),
        is_interrupted: matrix.outcome.is_interrupted,
    }))
}

/// The smallest measured share of local memory from which on a class is under the bound; `None` if
/// there is none.
fn least(seen: &[Seen], class: Class, network: (u32, u32), places: &[Place]) -> Option<u32> {
    let mut of_network: Vec<Place> =
        places.iter().copied().filter(|place| (place.rtt_us, place.gbps) == network).collect();
    of_network.sort_by_key(|place| std::cmp::Reverse(place.local));
    let is_under = |place: &Place| {
        claims::mean(seen, class, *place).is_some_and(|degradation| degradation < BOUND)
    };
    of_network.into_iter().take_while(is_under).map(|place| place.local).last()
}

/// A share of local memory as text.
fn shown(least: Option<u32>) -> String {
    least.map_or_else(|| "more than was measured".to_owned(), |local| format!("{local} %"))
}

/// The report of the table.
fn report(matrix: &Matrix, places: &[Place]) -> Report {
    let seen = &matrix.seen;
    let verdicts = verdicts(seen, places);
    let caption: Vec<String> =
        verdicts.iter().map(Verdict::text).chain(matrix.left_out()).collect();
    let mut table = degradation::rows(seen, places);
    table.push('\n');
    for (class, name) in CLASSES {
        for network in NETWORKS {
            let least = shown(least(seen, class, network, places));
            let (rtt_us, gbps) = network;
            let network = format!("{rtt_us} µs, {gbps} Gb/s");
            table += &format!("class {name} under 5 % at {network}: {least} local\n");
        }
    }
    let needs = NETWORKS.map(|network| {
        let [a, b] = CLASSES.map(|(class, _)| least(seen, class, network, places));
        json!({"rtt_us": network.0, "gbps": network.1, "a_percent": a, "b_percent": b})
    });
    Report {
        title: format!("{}, Table 3: local memory for less than 5 %", published::SOURCE),
        table,
        picture: picture(seen, places, &caption),
        verdicts,
        points: json!({"points": matrix.points(), "least_local": Value::Array(needs.to_vec())}),
        paper: json!({"least_local_percent": [20, 30], "bound": BOUND}),
    }
}

fn verdicts(seen: &[Seen], places: &[Place]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for network in NETWORKS {
        let [a, b] = CLASSES.map(|(class, _)| least(seen, class, network, places));
        if CLASSES.iter().any(|(class, _)| {
            let at = |place: &&Place| (place.rtt_us, place.gbps) == network;
            places.iter().filter(at).all(|&place| claims::mean(seen, *class, place).is_none())
        }) {
            continue;
        }
        let (rtt_us, gbps) = network;
        // `None` is more than was measured, so it counts as the largest.
        let more = b.unwrap_or(u32::MAX) >= a.unwrap_or(u32::MAX);
        let claim = format!(
            "at {rtt_us} µs, {gbps} Gb/s class B needs at least as much local memory as class A to \
             be under 5 %: {} and {}",
            shown(b),
            shown(a)
        );
        let why = "a class is that of the paper's application, of which the stand-in keeps only \
                   the pattern of its memory";
        verdicts.push(Verdict::because(more, claim, why));
        let claim = format!(
            "at {rtt_us} µs, {gbps} Gb/s between 20 and 30 % is enough for both classes: here {}",
            shown(a.zip(b).map(|(a, b)| a.max(b)))
        );
        let why = "the stand-ins do nothing but use memory, and all of it: their faults are not \
                   diluted by other work";
        let is_enough = a.zip(b).is_some_and(|(a, b)| a.max(b) <= 30);
        verdicts.push(Verdict::because(is_enough, claim, why));
    }
    verdicts
}

fn picture(seen: &[Seen], places: &[Place], caption: &[String]) -> String {
    let charts = NETWORKS.map(|(rtt_us, gbps)| {
        let of_network = places.iter().filter(|place| (place.rtt_us, place.gbps) == (rtt_us, gbps));
        let line = |class: Class| -> Vec<(f64, f64)> {
            let degradation = |place: &Place| {
                let percent = claims::mean(seen, class, *place)? * 100.0;
                Some((f64::from(place.local), percent))
            };
            of_network.clone().filter_map(degradation).collect()
        };
        let series = |name: &str, colour, points, kind| Series {
            name: name.to_owned(),
            colour,
            points,
            kind,
        };
        Chart {
            title: format!("mean degradation at {rtt_us} µs, {gbps} Gb/s; %"),
            x: Axis::from_zero("local memory, %", 100.0),
            y: Axis::decades("", degradation::LEAST, degradation::most(seen)),
            series: vec![
                series("class A", chart::BLUE, line(Class::A), Kind::Ours),
                series("class B", chart::ORANGE, line(Class::B), Kind::Ours),
                series("5 %", chart::GREY, vec![(0.0, 5.0), (100.0, 5.0)], Kind::Bound),
            ],
        }
    });
    let title = format!("{}, Table 3: local memory for less than 5 %", published::SOURCE);
    draw(&title, &charts, 2, caption)
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::seen_by;
    use super::super::place::BASE;
    use super::*;

    #[test]
    fn the_least_local_memory_is_that_from_which_on_all_are_under() {
        let places = Section::Table3.places(false);
        let seen = seen_by(Section::Table3, |name, place| {
            let enough = if ["als", "memcached"].contains(&name) { 30 } else { 50 };
            (if place.local >= enough { 0.01 } else { 0.2 }, 1.0)
        });
        let network = (BASE.rtt_us, BASE.gbps);
        assert_eq!(least(&seen, Class::A, network, &places), Some(30));
        assert_eq!(least(&seen, Class::B, network, &places), Some(50));
        assert_eq!(least(&seen, Class::B, (1, 1), &places), None);
        let holds: Vec<bool> =
            verdicts(&seen, &places).iter().map(|verdict| verdict.holds).collect();
        assert_eq!(holds, [true, false, true, false]);
        assert!(!picture(&seen, &places, &[]).contains("NaN"));
    }

    #[test]
    fn a_share_below_a_worse_one_does_not_count() {
        let places = Section::Table3.places(false);
        let seen =
            seen_by(Section::Table3, |_, place| (if place.local == 50 { 0.2 } else { 0.01 }, 1.0));
        assert_eq!(least(&seen, Class::A, (5, 40), &places), Some(70));
    }
}
