//! What `afar sweep --find` has found: the edge of each axis, as it was confirmed.

use chart::{Bar, Bars, BarsScale, short};
use results::{Requirement, Requirements, Side, Standing, Verdict};
use serde_json::Value;

use super::context::Context;
use super::network::{self, Limits};
use super::section::{Chart, Figure, Picture, Section, Table};
use super::setting;
use super::sweep::program;
use super::words::{exact, list, percent, slower};

/// The section of a record `afar.requirement`.
pub(super) fn section(value: Value, context: &Context) -> Result<Section, serde_json::Error> {
    let record: Requirements = results::read_body(value)?;
    let program = program(&record.workload, &context.name);
    let bound = record.slowdown_max;
    let mut answer = vec![headline(&program, &record)];
    answer.extend(record.requirements.iter().map(|one| sentence(one, &record, bound)));
    if let Some(whole) = record.share_told() {
        answer.push(format!("A share of local memory is a share of {whole}."));
    }
    let is_invalid = record.requirements.iter().all(|one| one.invalid.is_some());
    let first = record.requirements.iter().find_map(|one| one.invalid.clone());
    let mut section = Section {
        invalid: first.filter(|_| is_invalid).map(|why| format!("invalid: {why}")),
        title: format!("{program}: what it needs"),
        kind: "requirement",
        answer,
        verdicts: verdicts(&record),
        pictures: vec![picture(&record, bound)],
        facts: vec![("held meanwhile".to_owned(), held(&record, ""))],
        command: record.command,
        host: Some(record.host.clone()),
        ..Section::default()
    };
    for one in &record.requirements {
        for (side, name) in [(&one.last_good, "last good"), (&one.first_bad, "first bad")] {
            let Some((value, slowdown)) =
                side.as_ref().and_then(|side| Some((&side.value, side.slowdown?)))
            else {
                continue;
            };
            let name = format!("slowdown, {} {value} ({name})", setting::name(&one.axis));
            let figure = Figure::new(name, "x", slowdown.median);
            section.figures.push(match slowdown.ends() {
                Some(ends) => figure.within(ends),
                None => figure,
            });
        }
        let name = setting::name(&one.axis);
        let warning = match (&one.invalid, one.standing) {
            (Some(why), _) => format!("{name}: {why}"),
            (None, Standing::Confirmed) => continue,
            (None, Standing::Undecided) => format!(
                "the edge of {name} is undecided: an interval holds the bound, or there are too \
                 few runs for one"
            ),
            (None, _) => format!("the edge of {name} was not confirmed when it ran again"),
        };
        section.warnings.push(warning);
    }
    Ok(section)
}

/// The values at which axes other than `but` were held, in words.
fn held(record: &Requirements, but: &str) -> String {
    let others = ["local", "rtt", "bandwidth", "engine"].into_iter().filter(|axis| *axis != but);
    let words = others.filter_map(|axis| {
        let value = record.held.get(axis)?;
        Some(setting::words(axis, value))
    });
    list(&words.collect::<Vec<_>>())
}

/// The first sentence: what the program needs on each confirmed axis.
fn headline(program: &str, record: &Requirements) -> String {
    let needs: Vec<String> = record
        .requirements
        .iter()
        .filter(|one| one.standing == Standing::Confirmed)
        .filter_map(|one| {
            let value = &one.last_good.as_ref()?.value;
            Some(match one.axis.as_str() {
                "rtt" => format!("a {} or less", setting::words("rtt", value)),
                "local" => format!("{} of its memory local or more", setting::local_words(value)),
                axis => format!("{} or more", setting::words(axis, value)),
            })
        })
        .collect();
    let bound = percent(record.slowdown_max - 1.0);
    let is_unknown = record.requirements.iter().any(|one| one.invalid.is_some());
    let is_open = record.requirements.iter().any(|one| one.standing != Standing::Confirmed);
    if needs.is_empty() && is_unknown {
        return format!(
            "What keeps {program} within {bound} of its speed is not known: runs are invalid."
        );
    }
    if needs.is_empty() && is_open {
        return format!(
            "It is undecided what keeps {program} within {bound} of its speed: no edge was \
             confirmed. More repetitions, or a quieter machine, would tell."
        );
    }
    if needs.is_empty() {
        return format!(
            "Nothing that was tried keeps {program} within {bound} of its speed: with {}, neither \
             a faster network nor more local memory among the steps is enough by itself.",
            held(record, "")
        );
    }
    format!(
        "{program} stays within {bound} of its speed with {}. Each of these was found by itself, \
         with the others held at {}.",
        list(&needs),
        held(record, "")
    )
}

/// The sentence on the edge of one axis.
fn sentence(one: &Requirement, record: &Requirements, bound: f64) -> String {
    let name = setting::name(&one.axis);
    let side = |side: &Side| {
        let value = setting::words(&one.axis, &side.value);
        match side.slowdown {
            Some(slowdown) => {
                let is_open = slowdown.verdict(bound) == Verdict::Undecided;
                let doubt = if is_open { ", which is undecided" } else { "" };
                format!("{value}: {} ({}{doubt})", slower(slowdown.median), slowdown.text(3))
            }
            None => format!("{value}: it could not be run"),
        }
    };
    let text = match (&one.last_good, &one.first_bad) {
        (Some(good), Some(bad)) => {
            format!(
                "The last step that is good enough is {}; the next is not, {}",
                side(good),
                side(bad)
            )
        }
        (Some(good), None) => format!("All steps are good enough, up to {}", side(good)),
        (None, Some(bad)) => format!("No step is good enough; the most generous is {}", side(bad)),
        (None, None) => match &one.invalid {
            Some(why) => format!("Nothing is known, because a run {why}"),
            None => "Nothing was tried".to_owned(),
        },
    };
    let mut name: Vec<char> = name.chars().collect();
    name.iter_mut().take(1).for_each(|first| *first = first.to_ascii_uppercase());
    let name: String = name.into_iter().collect();
    format!("{name}, with {}: {text}.", held(record, &one.axis))
}

/// Which networks are fast enough; `None` if the round trip was not searched.
fn verdicts(record: &Requirements) -> Option<Table> {
    let found = record.requirements.iter().find(|one| one.axis == "rtt")?;
    let side = |side: &Option<Side>| {
        let side = side.as_ref()?;
        let verdict = match found.standing {
            Standing::Confirmed => side.slowdown?.verdict(record.slowdown_max),
            _ => Verdict::Undecided,
        };
        Some((setting::rtt_ns(&side.value)?, verdict))
    };
    let tried = [side(&found.last_good), side(&found.first_bad)];
    let limits = Limits::of(tried.into_iter().flatten());
    Some(network::table(&[(held(record, "rtt"), limits)]))
}

/// The picture of the slowdown on both sides of each edge.
fn picture(record: &Requirements, bound: f64) -> Picture {
    let mut bars = Vec::new();
    let mut table =
        Table::new(["axis", "value", "side", "slowdown", "low", "high", "runs", "standing"]);
    for one in &record.requirements {
        for (side, name) in [(&one.last_good, "last good"), (&one.first_bad, "first bad")] {
            let Some(side) = side else { continue };
            let number = |value: Option<f64>| value.map_or_else(String::new, exact);
            let ends = side.slowdown.and_then(|slowdown| slowdown.ends());
            table.push([
                one.axis.clone(),
                side.value.clone(),
                name.to_owned(),
                number(side.slowdown.map(|slowdown| slowdown.median)),
                number(ends.map(|ends| ends.0)),
                number(ends.map(|ends| ends.1)),
                number(side.slowdown.map(|slowdown| slowdown.count as f64)),
                format!("{:?}", one.standing).to_lowercase(),
            ]);
            let Some(slowdown) = side.slowdown else { continue };
            bars.push(Bar {
                name: format!("{} {}", setting::name(&one.axis), side.value),
                parts: vec![slowdown.median],
                interval: slowdown.ends(),
                text: format!("{:.3}, {name}", slowdown.median),
            });
        }
    }
    Picture {
        name: "edges".to_owned(),
        title: "Slowdown on both sides of each edge".to_owned(),
        caption: format!(
            "Median over blocks that were run to confirm the edge, with an interval that holds the \
             true median in at least 93 % of experiments; the bound is {}.",
            short(bound)
        ),
        chart: Chart::Bars(Bars {
            title: "Slowdown on both sides of each edge".to_owned(),
            unit: "slowdown".to_owned(),
            label: short,
            parts: Vec::new(),
            bars,
            marks: vec![(bound, format!("{} slower", percent(bound - 1.0)))],
            scale: BarsScale::Ratio,
        }),
        table,
    }
}

#[cfg(test)]
mod tests {
    use measure::Host;
    use results::{Estimate, Interval};

    use super::*;

    #[test]
    fn a_requirement_is_said_in_words_and_judges_networks() {
        let side = |value: &str, median: f64| {
            let interval = Interval { low: median - 0.01, high: median + 0.01, level: 0.93 };
            let slowdown = Estimate { median, interval: Some(interval), count: 5 };
            Some(Side { value: value.to_owned(), slowdown: Some(slowdown) })
        };
        let edge = |axis: &str, last_good, first_bad, standing| Requirement {
            axis: axis.to_owned(),
            last_good,
            first_bad,
            standing,
            invalid: None,
        };
        let held = [
            ("engine", "arena"),
            ("local", "25%"),
            ("of", "peak"),
            ("rtt", "5us"),
            ("bandwidth", "40Gbps"),
        ];
        let record = Requirements {
            version: "0.1.0".to_owned(),
            command: Vec::new(),
            started_unix_ns: 0,
            host: Host::default(),
            workload: vec!["redis-server".to_owned()],
            seed: 1,
            slowdown_max: 1.05,
            held: held.map(|(axis, value)| (axis.to_owned(), value.to_owned())).into(),
            of_bytes: Some(512 << 20),
            requirements: vec![
                edge("rtt", side("3us", 1.02), side("5us", 1.09), Standing::Confirmed),
                edge("local", None, side("100%", 1.2), Standing::Undecided),
            ],
        };
        let record = serde_json::from_str(&results::write(&record)).expect("it is JSON");
        let context = Context { bound: 1.5, name: String::new() };
        let section = section(record, &context).expect("it is one");
        assert!(section.answer[0].starts_with(
            "redis-server stays within 5 % of its speed with a round trip 3 µs or less. Each"
        ));
        assert!(
            section.answer[1]
                .starts_with("Round trip, with 25 % of its memory local, 40 Gb/s and engine")
        );
        assert!(section.answer[2].contains("No step is good enough"));
        let whole = "A share of local memory is a share of 512.0 MiB (the most it used).";
        assert_eq!(section.answer[3], whole);
        assert_eq!(section.warnings.len(), 1);
        let table = section.verdicts.expect("a round trip was found");
        assert_eq!(
            (table.rows[1][2].as_str(), table.rows[5][2].as_str()),
            ("fast enough", "too slow")
        );
        assert_eq!(section.figures.len(), 3);
    }
}
