//! Two records of the same kind: every figure of both, by how much they differ, and whether their
//! intervals allow that there is no difference.

use chart::{Bar, Bars, BarsScale, Series, short};

use super::section::{Better, Chart, Figure, Picture, Section, Table};
use super::words::exact;

/// Figures that are drawn; the table has all of them.
const BARS_MAX: usize = 24;

/// What one figure of both comes to.
struct Pair<'a> {
    one: &'a Figure,
    other: &'a Figure,
    /// The second by the first.
    ratio: f64,
    /// The least and the most that their intervals allow, if both have one.
    interval: Option<(f64, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Better,
    Worse,
    Same,
    /// Without intervals nothing tells chance from a difference.
    Unknown,
}

impl<'a> Pair<'a> {
    fn new(one: &'a Figure, other: &'a Figure) -> Self {
        let ratio = |other: f64, one: f64| if other == one { 1.0 } else { other / one };
        let interval = one
            .interval
            .zip(other.interval)
            .map(|(first, second)| (ratio(second.0, first.1), ratio(second.1, first.0)));
        Self { one, other, ratio: ratio(other.value, one.value), interval }
    }

    fn verdict(&self) -> Verdict {
        let Some((low, high)) = self.interval else { return Verdict::Unknown };
        let is_more = match (low > 1.0, high < 1.0) {
            (true, _) => true,
            (_, true) => false,
            _ => return Verdict::Same,
        };
        match is_more == (self.one.better == Better::Higher) {
            true => Verdict::Better,
            false => Verdict::Worse,
        }
    }

    fn words(&self) -> &'static str {
        match self.verdict() {
            Verdict::Better => "B is better",
            Verdict::Worse => "B is worse",
            Verdict::Same => "no difference that the intervals show",
            Verdict::Unknown => "no intervals",
        }
    }
}

/// The section that compares them; `names` are their files.
pub(super) fn section(names: [&str; 2], sections: [&Section; 2]) -> Section {
    let [one, other] = sections;
    let pairs: Vec<Pair<'_>> = one
        .figures
        .iter()
        .filter_map(|figure| {
            let other = other.figures.iter().find(|other| other.name == figure.name)?;
            Some(Pair::new(figure, other))
        })
        .collect();
    let invalid = [("A", one), ("B", other)]
        .into_iter()
        .find_map(|(name, section)| section.invalid.as_ref().map(|why| format!("{name} is {why}")));
    let mut section = Section {
        title: format!("A against B: {}", one.title),
        kind: "compared",
        invalid,
        answer: answer(&pairs),
        verdicts: Some(table(&pairs)),
        facts: vec![("A".to_owned(), names[0].to_owned()), ("B".to_owned(), names[1].to_owned())],
        ..Section::default()
    };
    let missing = |from: &Section, to: &Section| {
        let is_alone = |figure: &&Figure| to.figures.iter().all(|other| other.name != figure.name);
        from.figures.iter().filter(is_alone).count()
    };
    for (name, count) in [("A", missing(one, other)), ("B", missing(other, one))] {
        if count > 0 {
            section.warnings.push(format!("{count} figures are in {name} only"));
        }
    }
    let hosts = [&one.host, &other.host].map(|host| host.as_ref().map(|host| &host.cpu_model));
    if hosts[0].zip(hosts[1]).is_some_and(|(one, other)| one != other) {
        section.warnings.push("they were made on machines with different processors".to_owned());
    }
    section.pictures.extend(bars(&pairs));
    section.pictures.extend(one.pictures.iter().filter_map(|picture| {
        let other = other.pictures.iter().find(|other| other.name == picture.name)?;
        overlay(picture, other)
    }));
    section.silenced()
}

fn answer(pairs: &[Pair<'_>]) -> Vec<String> {
    if pairs.is_empty() {
        return vec!["A and B have no figure in common.".to_owned()];
    }
    let number = |verdict| pairs.iter().filter(|pair| pair.verdict() == verdict).count();
    let (better, worse) = (number(Verdict::Better), number(Verdict::Worse));
    let (same, unknown) = (number(Verdict::Same), number(Verdict::Unknown));
    let mut answer = vec![format!(
        "Of {} figures that both have, B is better in {better} and worse in {worse}; in {same} \
         their intervals show no difference.",
        pairs.len()
    )];
    if unknown > 0 {
        answer.push(format!(
            "{unknown} have no interval: of those, only the ratio is known, and it may be chance."
        ));
    }
    let far = |pair: &Pair<'_>| pair.ratio.ln().abs();
    let sure =
        pairs.iter().filter(|pair| !matches!(pair.verdict(), Verdict::Same | Verdict::Unknown));
    let most = sure.filter(|pair| far(pair).is_finite()).max_by(|a, b| far(a).total_cmp(&far(b)));
    if let Some(Pair { one, other, ratio, interval: Some((low, high)) }) = most {
        answer.push(format!(
            "The largest difference is in {}: {} {} in A, {} in B, a ratio of {} [{}, {}].",
            one.name,
            short(one.value),
            one.unit,
            short(other.value),
            short(*ratio),
            short(*low),
            short(*high)
        ));
    }
    answer
}

fn table(pairs: &[Pair<'_>]) -> Table {
    let mut table = Table::new(["figure", "unit", "A", "B", "B/A", "low", "high", "verdict"]);
    for pair in pairs {
        let ends = pair.interval.map(|(low, high)| [exact(low), exact(high)]);
        let [low, high] = ends.unwrap_or_default();
        table.push([
            pair.one.name.clone(),
            pair.one.unit.to_owned(),
            exact(pair.one.value),
            exact(pair.other.value),
            exact(pair.ratio),
            low,
            high,
            pair.words().to_owned(),
        ]);
    }
    table
}

fn bars(pairs: &[Pair<'_>]) -> Option<Picture> {
    let drawn = pairs.iter().filter(|pair| pair.ratio.is_finite() && pair.ratio > 0.0);
    let bars: Vec<Bar> = drawn
        .take(BARS_MAX)
        .map(|pair| Bar {
            name: pair.one.name.clone(),
            parts: vec![pair.ratio],
            interval: pair.interval.filter(|ends| ends.0 > 0.0 && ends.1.is_finite()),
            text: short(pair.ratio),
        })
        .collect();
    let left_out = pairs.len().saturating_sub(bars.len());
    let more = match left_out {
        0 => String::new(),
        count => format!(" {count} more are in the table only."),
    };
    (!bars.is_empty()).then(|| Picture {
        name: "ratios".to_owned(),
        title: "B by A".to_owned(),
        caption: format!(
            "Ratios of figures; whiskers reach as far as the intervals of both allow.{more}"
        ),
        chart: Chart::Bars(Bars {
            title: "B by A".to_owned(),
            unit: "ratio".to_owned(),
            label: short,
            parts: Vec::new(),
            bars,
            marks: vec![(1.0, "same".to_owned())],
            scale: BarsScale::Ratio,
        }),
        table: table(pairs),
    })
}

/// The series of both in one plot.
fn overlay(one: &Picture, other: &Picture) -> Option<Picture> {
    let (Chart::Plot(first), Chart::Plot(second)) = (&one.chart, &other.chart) else { return None };
    if first.x.kind != second.x.kind || first.x.name != second.x.name {
        return None;
    }
    let named = |side: &'static str, series: &[Series]| -> Vec<Series> {
        let of = |series: &Series| {
            let name = if series.name.is_empty() {
                side.to_owned()
            } else {
                format!("{side}: {}", series.name)
            };
            Series { name, ..series.clone() }
        };
        series.iter().map(of).collect()
    };
    // A line of one lies beside that of the other.
    let (ours, theirs) = (named("A", &first.series), named("B", &second.series));
    let mut series = Vec::new();
    let (mut ours, mut theirs) = (ours.into_iter(), theirs.into_iter());
    loop {
        let (a, b) = (ours.next(), theirs.next());
        if a.is_none() && b.is_none() {
            break;
        }
        series.extend(a.into_iter().chain(b));
    }
    let mut chart = first.clone();
    chart.series = series;
    let mut table = Table { columns: vec!["record".to_owned()], ..Table::default() };
    table.columns.extend(one.table.columns.iter().cloned());
    for (side, picture) in [("A", one), ("B", other)] {
        for row in &picture.table.rows {
            let mut cells = vec![side.to_owned()];
            cells.extend(row.iter().cloned());
            table.rows.push(cells);
        }
    }
    Some(Picture {
        name: one.name.clone(),
        title: format!("{}, A and B", one.title),
        caption: one.caption.clone(),
        chart: Chart::Plot(chart),
        table,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(figures: Vec<Figure>) -> Section {
        Section { figures, ..Section::default() }
    }

    #[test]
    fn verdicts_need_intervals_that_do_not_meet() {
        let rate = |value: f64, ends| Figure::new("rate", "/s", value).within(ends).higher();
        let cases = [
            (rate(100.0, (99.0, 101.0)), rate(110.0, (109.0, 111.0)), "B is better"),
            (rate(110.0, (109.0, 111.0)), rate(100.0, (99.0, 101.0)), "B is worse"),
            (
                rate(100.0, (95.0, 105.0)),
                rate(104.0, (99.0, 109.0)),
                "no difference that the intervals show",
            ),
            (Figure::new("rate", "", 1.0), Figure::new("rate", "", 2.0), "no intervals"),
        ];
        for (one, other, words) in cases {
            let section = section(["a", "b"], [&with(vec![one]), &with(vec![other])]);
            let table = section.verdicts.expect("it compares");
            assert_eq!(table.rows[0][7], words);
        }
    }

    #[test]
    fn the_interval_of_a_ratio_holds_every_ratio_of_the_two() {
        let one = Figure::new("x", "", 2.0).within((1.0, 4.0));
        let other = Figure::new("x", "", 6.0).within((5.0, 8.0));
        let pair = Pair::new(&one, &other);
        assert_eq!((pair.ratio, pair.interval), (3.0, Some((1.25, 8.0))));
        let nothing = Figure::new("x", "", 0.0);
        assert_eq!(Pair::new(&nothing, &nothing).ratio, 1.0);
    }
}
