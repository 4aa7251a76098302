//! The flags of `afar reproduce`, and the table of figures.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use console::layout;

use crate::figure::Figure;
use crate::flags::Options;
use crate::{dime, gao, guz, klimovic, validation};

/// Figures by paper, each listed in the folder of its paper.
const FIGURES: [&[Figure]; 5] =
    [dime::FIGURES, gao::FIGURES, guz::FIGURES, klimovic::FIGURES, validation::FIGURES];

/// Measure a figure of a paper on this machine, beside the paper's numbers
///
/// Figures of DiME, and those of Gao et al. before the seventh, are runs of programs with far
/// memory, as afar sweep makes them; they are kept in the directory of the pictures, and figures
/// that are made of the same runs share them. Later figures of Gao et al. are simulated, as afar
/// sim does; for Fig. 8 programs run under what comes of that. For those of Guz et al. the drive
/// of the paper is emulated, with as large a share of its throughput as this machine can serve. It
/// is loaded in this process (local), and through a target on loopback ports that the command
/// starts and ends itself: over NVMe/TCP and over iSCSI. With --disk, guz-fig6 is about a disk of
/// yours, as it is.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct ReproduceFlags {
    /// The figure
    #[arg(value_name = "FIGURE", value_parser = figure(), required_unless_present = "list")]
    pub(crate) figure: Option<&'static Figure>,

    /// Print every figure, how long it takes with --quick, and what it shows; measure nothing
    #[arg(long, conflicts_with = "figure")]
    pub(crate) list: bool,

    #[command(flatten)]
    pub(crate) options: Options,
}

const NOTES: &str = "\
Ctrl-C ends it with what was measured until then. Runs of programs with far memory are kept: the
same command goes on from there, and runs nothing a second time.

Exit status: 0 it was measured, whether or not it agrees with the paper; 1 it failed; 2 bad usage;
4 a run that it is made of is invalid; 130 interrupted.

Example: afar reproduce guz-fig7 --quick";

/// The text of `--list`: a line for each figure.
pub(crate) fn list() -> String {
    let mut rows = vec![layout::row(["figure", "--quick", ""])];
    for figure in FIGURES.into_iter().flatten() {
        let time = format!("{} s", figure.quick_s);
        rows.push(vec![figure.name.to_owned(), time, format!(" {}", figure.about)]);
    }
    let widest = rows.iter().map(|row| row[0].len()).max().unwrap_or(0);
    let line = |row: &Vec<String>| format!("{:<widest$}  {:>7} {}", row[0], row[1], row[2]);
    let lines: Vec<String> = rows.iter().map(|row| line(row).trim_end().to_owned()).collect();
    lines.join("\n") + LIST_NOTE
}

const LIST_NOTE: &str = "

times: measured while other programs kept both processors busy; an idle machine needs less. Without
--quick a figure has more repetitions of longer runs: five to twenty times as long.
";

/// The parser of a figure's name.
fn figure() -> impl TypedValueParser<Value = &'static Figure> {
    let all = || FIGURES.into_iter().flatten();
    let named = all().map(|figure| PossibleValue::new(figure.name).help(figure.about));
    PossibleValuesParser::new(named).try_map(move |name| {
        let found = all().find(|figure| figure.name == name);
        found.ok_or("there is no such figure")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_list_has_every_figure_with_its_time() {
        let list = list();
        for figure in FIGURES.into_iter().flatten() {
            // --quick ends within two minutes where nothing else runs.
            assert!((1..=150).contains(&figure.quick_s), "{}", figure.name);
            let begin = format!("\n{} ", figure.name);
            let line = list.split_once(&begin).expect("it is there").1.lines().next();
            let line = line.unwrap_or_default();
            assert!(line.contains(&format!(" {} s ", figure.quick_s)), "{line}");
            assert!(line.ends_with(figure.about), "{line}");
        }
    }

    #[test]
    fn names_of_figures_begin_with_their_paper() {
        for (paper, figures) in
            ["dime-", "gao-", "guz-", "klimovic-", "validation"].iter().zip(FIGURES)
        {
            assert!(figures.iter().all(|figure| figure.name.starts_with(paper)), "{paper}");
        }
        let all = || FIGURES.into_iter().flatten().map(|figure| figure.name);
        assert_eq!(all().collect::<BTreeSet<_>>().len(), all().count());
    }
}
