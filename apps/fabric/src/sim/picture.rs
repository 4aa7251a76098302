//! Slowdown by transport, and by flow size, as a picture.

use chart::{Anchor, GREY, PALETTE, Panel, Scale, Svg, Tick, slowdowns, wrap};

use super::row::Row;
use super::setting::Cell;
use results::{BinFigures, Figures};

/// Runs that are compared under the same conditions, with their figures.
#[derive(Debug)]
struct Group<'a> {
    /// The label below the group.
    name: String,
    /// Each run's transport and figures; `None` if the run failed.
    bars: Vec<(String, Option<&'a Figures>)>,
}

const WIDTH: f64 = 920.0;
const LEFT: f64 = 70.0;
/// Heights of the panel of all groups, and of each panel of sizes.
const HEIGHTS: (f64, f64) = (260.0, 200.0);
/// Panels of sizes; further groups have none.
const PANELS_MAX: usize = 8;
/// From one line of text to the next.
const LINE: f64 = 17.0;
/// The axes that tell transports apart.
const SERIES: [&str; 2] = ["transport", "variant"];

/// The picture of a sweep, as SVG.
pub(super) fn slowdown(runs: &[(&Cell, &Row)]) -> String {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (cell, row) in runs {
        let words = |is_series: bool| {
            let axes = cell.axes.iter().filter(|(axis, _)| SERIES.contains(axis) == is_series);
            let word = |(axis, value): &(&str, String)| match is_series {
                true => value.clone(),
                false => format!("{axis} {value}"),
            };
            axes.map(word).collect::<Vec<_>>().join(", ")
        };
        let (name, series) = (words(false), words(true));
        let series =
            if series.is_empty() { cell.settings.text("transport").to_owned() } else { series };
        let bar = (series, row.figures.as_ref());
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.bars.push(bar),
            None => groups.push(Group { name, bars: vec![bar] }),
        }
    }
    let same = runs.first().map_or_else(String::new, |(cell, _)| same(cell));
    draw("Slowdown by transport and by flow size", &groups, &same)
}

/// What is set alike in all runs of a sweep, of which `cell` is one.
fn same(cell: &Cell) -> String {
    let is_varied = |name: &str| cell.axes.iter().any(|(axis, _)| *axis == name);
    let all = cell.settings.all().filter(|(name, _)| !is_varied(name));
    let words: Vec<String> = all.map(|(name, value)| format!("{name} {value}")).collect();
    format!("All runs: {}", words.join(", "))
}

/// Draws groups side by side, each group by flow size below, and the settings that all share.
fn draw(title: &str, groups: &[Group<'_>], same: &str) -> String {
    let shown = groups.len().min(PANELS_MAX);
    let rows = shown.div_ceil(2);
    let height = 130.0 + HEIGHTS.0 + rows as f64 * (HEIGHTS.1 + 90.0);
    let lines = wrap(same, WIDTH - 2.0 * LEFT);
    let mut svg = Svg::new(WIDTH, height + lines.len() as f64 * LINE + 12.0);
    let names = series(groups);
    let key: Vec<(&str, &str)> =
        names.iter().enumerate().map(|(index, name)| (*name, colour(index))).collect();
    svg.text((LEFT, 22.0), title, Anchor::Start);
    svg.key((LEFT, 46.0), &key);
    let mut bars_of = groups.iter().flat_map(|group| &group.bars);
    let is_sure = |figures: &Figures| {
        figures.steady.as_ref().is_some_and(|steady| steady.slowdown.mean.interval.is_some())
    };
    let note = match bars_of.any(|(_, figures)| figures.is_some_and(is_sure)) {
        true => "bars and lines: mean, with its interval; marks and dashes: 99th percentile",
        false => "bars and lines: mean; marks and dashes: 99th percentile",
    };
    svg.tinted((LEFT, 68.0), note, Anchor::Start, GREY);
    bars(&mut svg, groups, &names);
    for (index, group) in groups.iter().take(shown).enumerate() {
        let half = (WIDTH - 24.0) / 2.0;
        let left = LEFT + (index % 2) as f64 * half;
        let top = 160.0 + HEIGHTS.0 + (index / 2) as f64 * (HEIGHTS.1 + 90.0);
        by_size(&mut svg, group, &names, (left, top, half - LEFT - 16.0));
    }
    for (index, line) in lines.iter().enumerate() {
        svg.tinted((LEFT, height + index as f64 * LINE), line, Anchor::Start, GREY);
    }
    svg.finish(title)
}

/// The colour of a transport, by its index.
fn colour(index: usize) -> &'static str {
    PALETTE[index % PALETTE.len()]
}

/// The transports of all groups, each once.
fn series<'a>(groups: &'a [Group<'_>]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (name, _) in groups.iter().flat_map(|group| &group.bars) {
        if !names.contains(&name.as_str()) {
            names.push(name.as_str());
        }
    }
    names
}

/// An axis that has room for all of these slowdowns.
fn axis(all: impl Iterator<Item = f64>) -> (Scale, Vec<Tick>) {
    slowdowns(all.fold(2.0_f64, f64::max) * 1.1)
}

/// Draws mean and 99th percentile of slowdown for each run, group by group.
fn bars(svg: &mut Svg, groups: &[Group<'_>], names: &[&str]) {
    let all = groups.iter().flat_map(|group| &group.bars).filter_map(|(_, figures)| *figures);
    let (y, ticks) = axis(all.map(|figures| figures.slowdown.p99));
    let count = groups.len() as f64;
    let (width, x) = (WIDTH - LEFT - 24.0, Scale::Linear(0.0, count));
    let panel = Panel { left: LEFT, top: 84.0, width, height: HEIGHTS.0, x, y };
    let middle = |(index, group): (usize, &Group<'_>)| (index as f64 + 0.5, group.name.clone());
    let labels: Vec<Tick> = groups.iter().enumerate().map(middle).collect();
    svg.axes(&panel, ("", &labels), ("slowdown", &ticks));
    let step = 0.8 / names.len().max(1) as f64;
    for (index, group) in groups.iter().enumerate() {
        for (name, figures) in &group.bars {
            let Some(figures) = figures else { continue };
            let place = names.iter().position(|other| other == name).unwrap_or(0);
            let from = index as f64 + 0.1 + place as f64 * step;
            let to = from + step * 0.85;
            let slowdown = &figures.slowdown;
            svg.bar(panel.at(from, 1.0), panel.at(to, slowdown.mean.max(1.0)), colour(place));
            let sure = figures.steady.as_ref().and_then(|steady| steady.slowdown.mean.ends());
            if let Some(ends) = sure {
                let x = f64::midpoint(from, to);
                let [low, high] = [ends.0, ends.1].map(|end| panel.at(x, end.max(1.0)));
                svg.line(low, high, GREY, "stroke-width=\"1.5\"");
            }
            let high = slowdown.p99.max(1.0);
            let style = "stroke-width=\"2\"";
            svg.line(panel.at(from, high), panel.at(to, high), colour(place), style);
        }
    }
    svg.frame(&panel);
}

/// Draws slowdown by flow size for the runs of one group.
fn by_size(svg: &mut Svg, group: &Group<'_>, names: &[&str], place: (f64, f64, f64)) {
    let runs: Vec<(usize, &Figures)> = group
        .bars
        .iter()
        .filter_map(|(name, figures)| {
            Some((names.iter().position(|other| other == name)?, (*figures)?))
        })
        .collect();
    let mut bins: Vec<&BinFigures> = Vec::new();
    for bin in runs.iter().flat_map(|(_, figures)| &figures.bins) {
        if bins.iter().all(|other| other.to_bytes != bin.to_bytes) {
            bins.push(bin);
        }
    }
    bins.sort_by_key(|bin| bin.to_bytes);
    let all = runs.iter().flat_map(|(_, figures)| &figures.bins);
    let (y, ticks) = axis(all.map(|bin| bin.slowdown.p99));
    let (left, top, width) = place;
    let x = Scale::Linear(-0.5, bins.len().max(1) as f64 - 0.5);
    let panel = Panel { left, top, width, height: HEIGHTS.1, x, y };
    let label = |(index, bin): (usize, &&BinFigures)| {
        let name = bin.name().replace("up to ", "≤ ").replace("over ", "> ").replace(".0 ", " ");
        (index as f64, name)
    };
    let labels: Vec<Tick> = bins.iter().enumerate().map(label).collect();
    svg.axes(&panel, ("flow size", &labels), ("", &ticks));
    svg.tinted((left, top - 10.0), &group.name, Anchor::Start, GREY);
    for (series, figures) in runs {
        let points = |of: fn(&BinFigures) -> f64| -> Vec<(f64, f64)> {
            let place = |bin: &BinFigures| {
                let index = bins.iter().position(|other| other.to_bytes == bin.to_bytes);
                panel.at(index.unwrap_or(0) as f64, of(bin).max(1.0))
            };
            figures.bins.iter().map(place).collect()
        };
        let mean = points(|bin| bin.slowdown.mean);
        svg.path(&mean, colour(series), "stroke-width=\"2\"");
        mean.iter().for_each(|at| svg.dot(*at, colour(series), false));
        let p99 = points(|bin| bin.slowdown.p99);
        svg.path(&p99, colour(series), "stroke-width=\"1.5\" stroke-dasharray=\"5 4\"");
    }
    svg.frame(&panel);
}

#[cfg(test)]
mod tests {
    use super::super::knobs::KnobFlags;
    use super::super::setting::Experiment;
    use super::*;

    #[test]
    fn a_picture_of_a_sweep_says_what_all_its_runs_have_in_common() {
        let flags = KnobFlags(vec![("load", "70%".to_owned()), ("transport", "ndp".to_owned())]);
        let experiment = Experiment::read(None, &flags).expect("knobs");
        let mut cell = experiment.cells().remove(0);
        cell.axes = vec![("transport", "ndp".to_owned())];
        let same = same(&cell);
        assert!(same.starts_with("All runs: ") && !same.contains("transport"), "{same}");
        for wanted in ["load 70%", "rate 40Gbps", "flows 10000", "mtu 1500B"] {
            assert!(same.contains(wanted), "{wanted} is missing in {same}");
        }
        let group = Group { name: String::new(), bars: vec![("ndp".to_owned(), None)] };
        let drawn = draw("Title", &[group], &same);
        // Where lines end depends on how many settings there are.
        assert!(drawn.contains(">Title</text>") && drawn.contains("70%"), "{drawn}");
    }
}
