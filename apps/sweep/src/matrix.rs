//! The cells of an experiment.

use std::collections::BTreeMap;

use measure::{Bytes, LocalSize};
use results::CellKind as Kind;

use super::file::{AXES, Sweep};

/// A combination of values, which runs once in every block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Native, native without huge pages, under an engine with all memory local, or far.
    pub kind: Kind,
    /// Pairs of axis and value, in the order of tables.
    pub settings: Vec<(&'static str, String)>,
}

/// The engine of a cell that names none.
const ENGINE: &str = "arena";

impl Cell {
    /// The native program, the base of slowdowns.
    pub const NATIVE: Self = Self { kind: Kind::Native, settings: Vec::new() };
    /// The native program without transparent huge pages.
    pub(crate) const SMALL: Self = Self { kind: Kind::Small, settings: Vec::new() };

    /// The program under an engine with all memory local and no delay; `None` is the default
    /// engine.
    pub fn zero(engine: Option<&str>) -> Self {
        let settings = engine.map(|engine| ("engine", engine.to_owned())).into_iter();
        Self::of(Kind::Zero, settings.collect())
    }

    /// The program with far memory. A share of local memory is a share of the peak, unless `of`
    /// is set.
    pub fn far(mut settings: Vec<(&'static str, String)>) -> Self {
        if let Some(at) = settings.iter().position(|(axis, _)| *axis == "local")
            && settings.iter().all(|(axis, _)| *axis != "of")
        {
            settings.insert(at + 1, ("of", "peak".to_owned()));
        }
        Self::of(Kind::Far, settings)
    }

    /// Whether local memory is a share below 100 %.
    pub(crate) fn is_share(&self) -> bool {
        let is_it = |(axis, value): &(&str, String)| {
            *axis == "local" && value.parse().is_ok_and(LocalSize::is_share)
        };
        self.settings.iter().any(is_it)
    }

    // A normalised cell: leaves out the default engine, and `of` if local memory is no share.
    fn of(kind: Kind, mut settings: Vec<(&'static str, String)>) -> Self {
        let is_part = |(axis, value): &(&str, String)| {
            *axis == "local" && matches!(value.parse(), Ok(LocalSize::Fraction(_)))
        };
        let has_part = settings.iter().any(is_part);
        settings.retain(|(axis, value)| match *axis {
            "engine" => value != ENGINE,
            "of" => has_part,
            _ => true,
        });
        Self { kind, settings }
    }

    /// The cell with all memory local under the same engine.
    pub fn zero_of(&self) -> Self {
        Self::zero(Some(self.engine()))
    }

    /// Whether the program runs under afar.
    pub(crate) const fn is_under_afar(&self) -> bool {
        matches!(self.kind, Kind::Zero | Kind::Far)
    }

    /// The engine, named or default.
    pub fn engine(&self) -> &str {
        let named = self.settings.iter().find(|(axis, _)| *axis == "engine");
        named.map_or(ENGINE, |(_, engine)| engine)
    }

    /// All settings, with the engine of cells under afar.
    pub fn all_settings(&self) -> BTreeMap<String, String> {
        let named = self.settings.iter().map(|(axis, value)| ((*axis).to_owned(), value.clone()));
        let engine = ("engine".to_owned(), self.engine().to_owned());
        named.chain(self.is_under_afar().then_some(engine)).collect()
    }

    /// Its name in files: `native`, `small`, `zero` and its engine, or its settings.
    pub fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Native => "native",
            Kind::Small => "small",
            Kind::Zero => "zero",
            Kind::Far => "",
        };
        let settings = self.settings.iter().map(|(axis, value)| format!("{axis}={value}"));
        let words = Some(kind.to_owned()).filter(|kind| !kind.is_empty()).into_iter();
        words.chain(settings).collect::<Vec<_>>().join(" ")
    }

    /// The cell with that name in files; `None` if there is no such cell.
    pub fn named(name: &str) -> Option<Self> {
        let (kind, settings) = match name.split_once(' ').unwrap_or((name, "")) {
            ("native", rest) => (Kind::Native, rest),
            ("small", rest) => (Kind::Small, rest),
            ("zero", rest) => (Kind::Zero, rest),
            _ => (Kind::Far, name),
        };
        let words = settings.split(' ').filter(|word| !word.is_empty());
        let settings = words.map(|word| {
            let (key, value) = word.split_once('=')?;
            let axis = AXES.into_iter().find(|axis| *axis == key)?;
            Some((axis, value.to_owned()))
        });
        Some(Self::of(kind, settings.collect::<Option<_>>()?))
    }

    /// The flags of `afar run`. `peak`: the memory that a share is a share of, if it is needed.
    pub(crate) fn flags(&self, peak: Option<Bytes>) -> Vec<String> {
        let mut flags = Vec::new();
        for (axis, value) in &self.settings {
            match (*axis, peak) {
                ("of", _) if !self.is_share() => {}
                // The peak is that of all processes, so they share one budget.
                ("of", Some(peak)) => {
                    let bytes = peak.get().to_string();
                    flags.extend(["--of", &bytes, "--budget", "tree"].map(str::to_owned));
                }
                _ => flags.extend([format!("--{axis}"), value.clone()]),
            }
        }
        flags
    }
}

/// Axes that only the arena engine has; under the swap engine the kernel decides.
const ARENA_ONLY: [&str; 2] = ["policy", "prefetch"];

// A combination without the axes that its engine does not have.
fn possible(settings: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    let swaps = settings.iter().any(|(axis, value)| (*axis, value.as_str()) == ("engine", "swap"));
    let has = |axis: &str| !(swaps && ARENA_ONLY.contains(&axis));
    settings.into_iter().filter(|(axis, _)| has(axis)).collect()
}

/// All cells: native, native without huge pages, all memory local under each engine, and every
/// combination of values.
pub(crate) fn cells(sweep: &Sweep) -> Vec<Cell> {
    let mut combinations = vec![Vec::new()];
    for axis in AXES {
        let values = sweep.matrix.axis(axis);
        if !values.is_empty() {
            combinations = combinations
                .into_iter()
                .flat_map(|before: Vec<(&'static str, String)>| {
                    values.iter().map(move |value| {
                        let mut settings = before.clone();
                        settings.push((axis, value.clone()));
                        settings
                    })
                })
                .collect();
        }
    }
    let engines = sweep.matrix.axis("engine");
    let zeros = engines.iter().map(|engine| Cell::zero(Some(engine)));
    let zero = engines.is_empty().then(|| Cell::zero(None));
    let natives = [Cell::NATIVE, Cell::SMALL].into_iter();
    let mut cells: Vec<Cell> = natives.chain(zero).chain(zeros).collect();
    for settings in combinations.into_iter().filter(|settings| !settings.is_empty()) {
        let cell = Cell::far(possible(settings));
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_combined_with_everything() {
        let text = "[workload]\ncommand = [\"true\"]\n[matrix]\nrtt = [\"1us\", \"5us\"]\n\
                    local = [\"25%\", \"50%\"]\n";
        let sweep: Sweep = toml::from_str(text).expect("it is an experiment");
        let names: Vec<String> = cells(&sweep).iter().map(Cell::name).collect();
        assert_eq!(
            names,
            [
                "native",
                "small",
                "zero",
                "local=25% of=peak rtt=1us",
                "local=25% of=peak rtt=5us",
                "local=50% of=peak rtt=1us",
                "local=50% of=peak rtt=5us"
            ]
        );
        let both = "of = ['live', 'peak']\n";
        let sweep: Sweep = toml::from_str(&format!("{text}{both}")).expect("it is an experiment");
        let cells = cells(&sweep);
        assert_eq!(cells.len(), 3 + 2 * 2 * 2);
        assert_eq!(cells[3].name(), "local=25% of=live rtt=1us");
    }

    #[test]
    fn an_engine_is_combined_with_what_it_has() {
        let text = "[workload]\ncommand = [\"true\"]\n[matrix]\nengine = [\"arena\", \"swap\"]\n\
                    local = [\"25%\"]\npolicy = [\"lru\", \"fifo\"]\n";
        let sweep: Sweep = toml::from_str(text).expect("it is an experiment");
        let cells = cells(&sweep);
        let names: Vec<String> = cells.iter().map(Cell::name).collect();
        assert_eq!(
            names,
            [
                "native",
                "small",
                "zero",
                "zero engine=swap",
                "local=25% of=peak policy=lru",
                "local=25% of=peak policy=fifo",
                "engine=swap local=25% of=peak",
            ]
        );
        assert_eq!(cells[3].flags(None), ["--engine", "swap"]);
    }

    #[test]
    fn names_are_read_back() {
        let settings = vec![("local", "25%".to_owned()), ("rtt", "1us".to_owned())];
        let far = Cell::far(settings);
        let zeros = [Cell::zero(None), Cell::zero(Some("swap"))];
        for cell in [Cell::NATIVE, Cell::SMALL, far].into_iter().chain(zeros) {
            assert_eq!(Cell::named(&cell.name()), Some(cell));
        }
        assert_eq!(Cell::named("local=25% colour=red"), None);
        let named = Cell::named("engine=arena local=25%").expect("a cell");
        assert_eq!(named.name(), "local=25%", "one run has one name");
        assert_eq!((named.engine(), named.all_settings()["engine"].as_str()), ("arena", "arena"));
        assert_eq!(Cell::named("zero engine=arena"), Some(Cell::zero(None)));
    }
}
