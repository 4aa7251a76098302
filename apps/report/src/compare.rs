//! Records of the same kind, each beside the first: every figure of both, by how much they differ,
//! and whether their intervals allow that there is no difference.

use chart::{Bar, Bars, BarsScale, Plot, Series, short};

use super::section::{Better, Chart, Figure, Picture, Section, Table};
use super::words::exact;

/// The most figures that are drawn; the table has all of them.
const BARS_MAX: usize = 24;

/// A figure that two records have.
struct Pair<'a> {
    one: &'a Figure,
    other: &'a Figure,
    /// `other` divided by `one`.
    ratio: f64,
    /// The least and the largest ratio that the intervals allow; `None` unless both have one.
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

    /// Whether the second record is better, by the interval of the ratio.
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

    /// The verdict in words; `letter` stands for the second record.
    fn words(&self, letter: &str) -> String {
        match self.verdict() {
            Verdict::Better => format!("{letter} is better"),
            Verdict::Worse => format!("{letter} is worse"),
            Verdict::Same => format!("{letter}: no difference that the intervals show"),
            Verdict::Unknown => format!("{letter}: no intervals"),
        }
    }
}

/// Letters of records; no more records than these are compared.
pub(super) const LETTERS: [&str; 26] = [
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S",
    "T", "U", "V", "W", "X", "Y", "Z",
];

/// A record beside the first, and the figures that both have.
struct Beside<'a> {
    letter: &'static str,
    section: &'a Section,
    pairs: Vec<Pair<'a>>,
}

impl<'a> Beside<'a> {
    fn new(letter: &'static str, first: &'a Section, section: &'a Section) -> Self {
        let pair = |figure: &'a Figure| {
            let other = section.figures.iter().find(|other| other.name == figure.name)?;
            Some(Pair::new(figure, other))
        };
        Self { letter, section, pairs: first.figures.iter().filter_map(pair).collect() }
    }

    /// The pair of the figure called `name`; `None` unless both records have it.
    fn pair(&self, name: &str) -> Option<&Pair<'a>> {
        self.pairs.iter().find(|pair| pair.one.name == name)
    }
}

/// The section that compares 2 to 26 records, each with the first; a record has its file's name.
pub(super) fn section(records: &[(&str, &Section)]) -> Section {
    let first = records[0].1;
    let lettered = || LETTERS.into_iter().zip(records.iter().copied());
    let others: Vec<Beside<'_>> =
        lettered().skip(1).map(|(letter, (_, other))| Beside::new(letter, first, other)).collect();
    let invalid = lettered().find_map(|(letter, (_, section))| {
        section.invalid.as_ref().map(|why| format!("{letter} is {why}"))
    });
    let letters: Vec<&str> = others.iter().map(|other| other.letter).collect();
    let mut section = Section {
        title: format!("A against {}: {}", letters.join(", "), first.title),
        kind: "compared",
        invalid,
        answer: others.iter().flat_map(answer).collect(),
        verdicts: Some(table(first, &others)),
        facts: lettered().map(|(letter, (name, _))| (letter.to_owned(), name.to_owned())).collect(),
        ..Section::default()
    };
    for other in &others {
        section.warnings.extend(warnings(first, other));
    }
    section.pictures.extend(bars(first, &others));
    section.pictures.extend(first.pictures.iter().filter_map(|picture| overlay(picture, &others)));
    section.silenced()
}

/// Warnings of figures that only one record has, and of machines that differ.
fn warnings(first: &Section, other: &Beside<'_>) -> Vec<String> {
    let missing = |from: &Section, to: &Section| {
        let is_alone = |figure: &&Figure| to.figures.iter().all(|other| other.name != figure.name);
        from.figures.iter().filter(is_alone).count()
    };
    let Beside { letter, section, .. } = other;
    let mut warnings = Vec::new();
    for (name, without, count) in
        [("A", letter, missing(first, section)), (letter, &"A", missing(section, first))]
    {
        if count > 0 {
            warnings.push(format!("{count} figures are in {name}, and not in {without}"));
        }
    }
    let hosts = [&first.host, &section.host].map(|host| host.as_ref().map(|host| &host.cpu_model));
    if hosts[0].zip(hosts[1]).is_some_and(|(one, other)| one != other) {
        warnings.push(format!("A and {letter} were made on machines with different processors"));
    }
    warnings
}

/// Sentences on how many figures are better or worse, and on the largest difference.
fn answer(beside: &Beside<'_>) -> Vec<String> {
    let Beside { letter, pairs, .. } = beside;
    if pairs.is_empty() {
        return vec![format!("A and {letter} have no figure in common.")];
    }
    let number = |verdict| pairs.iter().filter(|pair| pair.verdict() == verdict).count();
    let (better, worse) = (number(Verdict::Better), number(Verdict::Worse));
    let (same, unknown) = (number(Verdict::Same), number(Verdict::Unknown));
    let mut answer = vec![format!(
        "Of {} figures that A and {letter} have, {letter} is better in {better} and worse in \
         {worse}; in {same} their intervals show no difference.",
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
            "The largest difference is in {}: {} {} in A, {} in {letter}, a ratio of {} [{}, {}].",
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

/// A row for each figure that the first record shares with another.
fn table(first: &Section, others: &[Beside<'_>]) -> Table {
    let is_one = others.len() == 1;
    let mut columns = ["figure", "unit", "A"].map(str::to_owned).to_vec();
    columns.extend(others.iter().map(|other| other.letter.to_owned()));
    for Beside { letter, .. } in others {
        columns.push(format!("{letter}/A"));
        let ends = ["low", "high"];
        columns.extend(
            ends.map(|end| if is_one { end.to_owned() } else { format!("{letter} {end}") }),
        );
    }
    columns.push("verdict".to_owned());
    let mut table = Table { columns, ..Table::default() };
    for figure in &first.figures {
        let pairs: Vec<Option<&Pair<'_>>> =
            others.iter().map(|other| other.pair(&figure.name)).collect();
        if pairs.iter().all(Option::is_none) {
            continue;
        }
        let mut row = vec![figure.name.clone(), figure.unit.to_owned(), exact(figure.value)];
        let cell = |value: Option<f64>| value.map_or_else(String::new, exact);
        row.extend(pairs.iter().map(|pair| cell(pair.map(|pair| pair.other.value))));
        for pair in &pairs {
            let ends = pair.and_then(|pair| pair.interval);
            let ratio = pair.map(|pair| pair.ratio);
            row.extend([ratio, ends.map(|ends| ends.0), ends.map(|ends| ends.1)].map(cell));
        }
        let told = others.iter().zip(&pairs);
        let told = told.filter_map(|(other, pair)| pair.map(|pair| pair.words(other.letter)));
        row.push(told.collect::<Vec<_>>().join("; "));
        table.rows.push(row);
    }
    table
}

/// Bars of the ratios of figures; `None` if no ratio can be drawn.
fn bars(first: &Section, others: &[Beside<'_>]) -> Option<Picture> {
    let is_one = others.len() == 1;
    let pairs = || {
        let of = |figure: &Figure| {
            let beside = |other: &'_ Beside<'_>| {
                let pair = other.pair(&figure.name)?;
                let name = match is_one {
                    true => figure.name.clone(),
                    false => format!("{}: {}", other.letter, figure.name),
                };
                Some((name, pair.ratio, pair.interval))
            };
            others.iter().filter_map(beside).collect::<Vec<_>>()
        };
        first.figures.iter().flat_map(of)
    };
    let drawn = pairs().filter(|(_, ratio, _)| ratio.is_finite() && *ratio > 0.0);
    let bars: Vec<Bar> = drawn
        .take(BARS_MAX)
        .map(|(name, ratio, interval)| Bar {
            name,
            parts: vec![ratio],
            interval: interval.filter(|ends| ends.0 > 0.0 && ends.1.is_finite()),
            text: short(ratio),
        })
        .collect();
    let left_out = pairs().count().saturating_sub(bars.len());
    let more = match left_out {
        0 => String::new(),
        count => format!(" {count} more are in the table only."),
    };
    let title = if is_one { "B by A" } else { "Each by A" };
    (!bars.is_empty()).then(|| Picture {
        name: "ratios".to_owned(),
        title: title.to_owned(),
        caption: format!(
            "Ratios of figures; whiskers reach as far as the intervals of both allow.{more}"
        ),
        chart: Chart::Bars(Bars {
            title: title.to_owned(),
            unit: "ratio".to_owned(),
            label: short,
            parts: Vec::new(),
            bars,
            marks: vec![(1.0, "same".to_owned())],
            scale: BarsScale::Ratio,
        }),
        table: table(first, others),
    })
}

/// One plot with the series that all records have in a picture of the same name; `None` if only the
/// first has it.
fn overlay(picture: &Picture, others: &[Beside<'_>]) -> Option<Picture> {
    let Chart::Plot(first) = &picture.chart else { return None };
    let mut plots = vec![("A", first, picture)];
    for Beside { letter, section, .. } in others {
        let same = section.pictures.iter().find(|other| other.name == picture.name);
        let Some(other) = same else { continue };
        let Chart::Plot(plot) = &other.chart else { continue };
        if first.x.kind == plot.x.kind && first.x.name == plot.x.name {
            plots.push((letter, plot, other));
        }
    }
    if plots.len() == 1 {
        return None;
    }
    let named = |side: &str, series: &Series| {
        let name = match series.name.is_empty() {
            true => side.to_owned(),
            false => format!("{side}: {}", series.name),
        };
        Series { name, ..series.clone() }
    };
    let mut chart = first.clone();
    // The first lines of all records come first, then the second ones.
    let most = plots.iter().map(|(_, plot, _)| plot.series.len()).max().unwrap_or_default();
    let in_turn = (0..most).flat_map(|index| {
        let of = move |(side, plot, _): &(&'static str, &Plot, &Picture)| {
            plot.series.get(index).map(|series| named(side, series))
        };
        plots.iter().filter_map(of).collect::<Vec<_>>()
    });
    chart.series = in_turn.collect();
    let mut table = Table { columns: vec!["record".to_owned()], ..Table::default() };
    table.columns.extend(picture.table.columns.iter().cloned());
    for (side, _, picture) in &plots {
        for row in &picture.table.rows {
            table.rows.push(std::iter::once((*side).to_owned()).chain(row.clone()).collect());
        }
    }
    let sides: Vec<&str> = plots.iter().map(|(side, ..)| *side).collect();
    let sides = sides
        .split_last()
        .map_or_else(String::new, |(last, others)| format!("{} and {last}", others.join(", ")));
    Some(Picture {
        name: picture.name.clone(),
        title: format!("{}, {sides}", picture.title),
        caption: picture.caption.clone(),
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
                "B: no difference that the intervals show",
            ),
            (Figure::new("rate", "", 1.0), Figure::new("rate", "", 2.0), "B: no intervals"),
        ];
        for (one, other, words) in cases {
            let section = section(&[("a", &with(vec![one])), ("b", &with(vec![other]))]);
            let table = section.verdicts.expect("it compares");
            assert_eq!(table.rows[0][7], words);
        }
    }

    #[test]
    fn any_number_stands_beside_the_first() {
        let rate = |value: f64| Figure::new("rate", "/s", value).within((value, value)).higher();
        let [first, second] = [with(vec![rate(4.0)]), with(vec![rate(8.0)])];
        let third = with(vec![rate(2.0), Figure::new("more", "", 1.0)]);
        let section = section(&[("a", &first), ("b", &second), ("c", &third)]);
        let table = section.verdicts.expect("it compares");
        let columns = "figure unit A B C B/A B low B high C/A C low C high verdict";
        assert_eq!(table.columns.join(" "), columns);
        let row = "rate /s 4 8 2 2 2 2 0.5 0.5 0.5 B is better; C is worse";
        assert_eq!(table.rows.iter().map(|row| row.join(" ")).collect::<Vec<_>>(), [row]);
        assert!(section.warnings[0].starts_with("1 figures are in C, and not in A"));
        let Chart::Bars(bars) = &section.pictures[0].chart else { panic!("the first has bars") };
        let names: Vec<&str> = bars.bars.iter().map(|bar| bar.name.as_str()).collect();
        assert_eq!(names, ["B: rate", "C: rate"]);
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
