//! Values of knobs from flags and files, each with the place it was read from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use measure::{Bytes, Duration};
use results::sim::Simulation;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::SimError;
use super::knob::Knob;
use super::knobs::{self, KnobFlags, find, nearest};
use document::toml_text;

/// The key of a plan that lists the knobs its sweep varies; no knob has this name.
const VARIED: &str = "varied";

/// A value as it was written, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    text: String,
    place: String,
}

/// Values of knobs; absent ones have their defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    given: BTreeMap<&'static str, Setting>,
    /// Knobs that a sweep varies; a knob that needs another value of one of these is no error.
    varied: Vec<&'static str>,
}

/// Lists of values of knobs, of which every combination is run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Experiment {
    axes: Vec<(&'static str, Vec<Setting>)>,
}

/// One run of a sweep.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// The knobs that the sweep varies, with their values in this run.
    pub(crate) axes: Vec<(&'static str, String)>,
    pub(crate) settings: Settings,
}

impl Settings {
    /// What a knob is set to; empty if that depends on other knobs.
    pub(crate) fn text(&self, name: &str) -> &str {
        match self.given.get(name) {
            Some(setting) => &setting.text,
            None => find(name).map_or("", |knob| knob.value()),
        }
    }

    /// Whether a knob was set.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// The error of an invalid value of a knob, at the place where it was set.
    pub(crate) fn wrong(&self, name: &str, message: impl fmt::Display) -> SimError {
        let place = self.given.get(name).map_or_else(|| flag(name), |set| set.place.clone());
        SimError::at(place, message.to_string())
    }

    /// Parses the value of a knob.
    ///
    /// # Errors
    /// If the text of the knob is no `T`.
    pub(crate) fn value<T: FromStr<Err: fmt::Display>>(&self, name: &str) -> Result<T, SimError> {
        self.text(name).parse().map_err(|error| self.wrong(name, error))
    }

    /// The seed of all random numbers.
    ///
    /// # Errors
    /// If the seed is no whole number.
    pub(crate) fn seed(&self) -> Result<u64, SimError> {
        document::seed(self.text("seed")).map_err(|error| self.wrong("seed", error))
    }

    /// A knob's value, a whole number from `low` to `high`.
    ///
    /// # Errors
    /// If the value is no number, or out of bounds.
    pub(crate) fn number(&self, name: &str, low: u32, high: u32) -> Result<u32, SimError> {
        let count: measure::Count = self.value(name)?;
        let number = u32::try_from(count.get()).ok().filter(|count| (low..=high).contains(count));
        number.ok_or_else(|| {
            let text = self.text(name);
            self.wrong(name, format!("\"{text}\": give a whole number from {low} to {high}"))
        })
    }

    /// The value that `of` has for the word a knob is set to.
    ///
    /// # Errors
    /// If the word is not in `of`.
    pub(crate) fn choice<T: Copy>(&self, name: &str, of: &[(&str, T)]) -> Result<T, SimError> {
        let text = self.text(name);
        let found = of.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let words: Vec<&str> = of.iter().map(|(word, _)| *word).collect();
            self.wrong(name, format!("there is no {name} \"{text}\"; give {}", words.join(", ")))
        })
    }

    /// Refuses knobs that have no effect.
    ///
    /// # Errors
    /// The first knob that was set although it needs another value of another knob.
    pub(crate) fn check(&self) -> Result<(), SimError> {
        let given = knobs::all().iter().filter(|knob| self.is_given(knob.name));
        for (knob, &(other, values)) in
            given.flat_map(|knob| knob.needs.iter().map(move |need| (knob, need)))
        {
            if !values.contains(&self.text(other)) && !self.varied.contains(&other) {
                let (text, words) = (self.text(other), values.join(", "));
                let message =
                    format!("it says nothing with {other} {text}; it is for {other} {words}");
                return Err(self.wrong(knob.name, message));
            }
        }
        Ok(())
    }

    /// Every knob that has an effect with these settings.
    pub(crate) fn that_matter(&self) -> impl Iterator<Item = &'static Knob> {
        let matters = |knob: &&Knob| {
            let mut needs = knob.needs.iter();
            needs.all(|(other, values)| values.contains(&self.text(other)))
        };
        knobs::all().iter().filter(matters)
    }

    /// Every knob that has an effect, with its value; without those that follow from others.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let valued = self.that_matter();
        valued.map(|knob| (knob.name, self.text(knob.name))).filter(|(_, text)| !text.is_empty())
    }

    /// A time of at least one picosecond.
    ///
    /// # Errors
    /// If the value is no time, 0, or longer than `most`.
    pub(crate) fn time(&self, name: &str, most: Duration) -> Result<Duration, SimError> {
        let time = document::delay(self.text(name)).map_err(|error| self.wrong(name, error))?;
        match time.is_zero() || time > most {
            true => Err(self.wrong(name, format!("{time}: give a time from 1ps to {most}"))),
            false => Ok(time),
        }
    }

    /// A limit in bytes; `None` for no limit.
    ///
    /// # Errors
    /// If the value is neither a size nor `none`.
    pub(crate) fn limit(&self, name: &str) -> Result<Option<Bytes>, SimError> {
        match self.text(name) {
            "none" => Ok(None),
            _ => self.value(name).map(Some),
        }
    }

    /// Sets the knob that a key of a file names.
    ///
    /// # Errors
    /// If no knob has that name.
    pub(crate) fn read(&mut self, key: &str, text: &str, place: String) -> Result<(), SimError> {
        let name = known(key).map_err(|message| SimError::at(place.as_str(), message))?;
        let place = format!("{place}: {name}");
        self.given.insert(name, Setting { text: text.to_owned(), place });
        Ok(())
    }

    /// The plan of a run: the knobs that were set, and those that its sweep varies.
    pub(crate) fn planned(&self) -> BTreeMap<String, String> {
        let given = self.given.iter();
        let mut plan: BTreeMap<String, String> =
            given.map(|(name, setting)| ((*name).to_owned(), setting.text.clone())).collect();
        plan.insert(VARIED.to_owned(), self.varied.join(","));
        plan
    }

    /// The settings in a plan.
    ///
    /// # Errors
    /// If the plan names a knob that does not exist.
    pub(crate) fn of_plan(plan: &BTreeMap<String, String>) -> Result<Self, SimError> {
        let mut settings = Self::default();
        for (name, text) in plan {
            if name == VARIED {
                let knobs = text.split(',').filter_map(find);
                settings.varied = knobs.map(|knob| knob.name).collect();
            } else {
                settings.read(name, text, "points.jsonl".to_owned())?;
            }
        }
        Ok(settings)
    }

    /// The same settings with another value of a knob.
    pub fn with(mut self, name: &'static str, text: &str) -> Self {
        self.given.insert(name, Setting { text: text.to_owned(), place: flag(name) });
        self
    }
}

/// The name of a knob as a flag.
fn flag(name: &str) -> String {
    format!("--{name}")
}

impl Experiment {
    /// Reads the file, if one is given; flags override its values.
    ///
    /// # Errors
    /// The first invalid key or value, with its place.
    pub(crate) fn read(path: Option<&Path>, flags: &KnobFlags) -> Result<Self, SimError> {
        let mut axes = BTreeMap::new();
        if let Some(path) = path {
            let (name, text) = (path.display().to_string(), super::read_text(path)?);
            if path.extension().is_some_and(|ending| ending == "json") {
                axes.extend(Self::of_record(&name, &text)?.axes);
            } else {
                parse(&name, &text, &mut axes)?;
            }
        }
        for (name, value) in &flags.0 {
            axes.insert(*name, vec![Setting { text: value.clone(), place: flag(name) }]);
        }
        let axes = knobs::all()
            .iter()
            .filter_map(|knob| Some((knob.name, axes.remove(knob.name)?)))
            .collect();
        Ok(Self { axes })
    }

    /// The experiment of one run, from the record that `--json` has written.
    ///
    /// # Errors
    /// If `text` is no such record.
    pub(crate) fn of_record(name: &str, text: &str) -> Result<Self, SimError> {
        let wrong = |message: String| SimError::at(name, message);
        let record: Simulation = results::read(text)
            .map_err(|error| wrong(format!("{error}; give what afar sim --json has written")))?;
        let mut axes = BTreeMap::new();
        for (key, text) in record.settings {
            let knob = known(&key).map_err(wrong)?;
            axes.insert(knob, vec![Setting { text, place: format!("{name}: {knob}") }]);
        }
        let known = knobs::all().iter();
        Ok(Self {
            axes: known.filter_map(|one| Some((one.name, axes.remove(one.name)?))).collect(),
        })
    }

    /// Every combination of values, in the order of knobs.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        let many = |values: &[Setting]| values.len() > 1;
        let varied: Vec<&str> =
            self.axes.iter().filter(|(_, values)| many(values)).map(|(name, _)| *name).collect();
        let settings = Settings { given: BTreeMap::new(), varied };
        let mut cells = vec![Cell { axes: Vec::new(), settings }];
        for (name, values) in &self.axes {
            let with = |cell: &Cell, value: &Setting| {
                let mut cell = cell.clone();
                cell.settings.given.insert(name, value.clone());
                if many(values) {
                    cell.axes.push((name, value.text.clone()));
                }
                cell
            };
            cells = cells
                .iter()
                .flat_map(|cell| values.iter().map(move |value| with(cell, value)))
                .collect();
        }
        cells
    }
}

impl Experiment {
    /// All knobs with their values, and a hash of each file that a value names: sweeps with the
    /// same text are the same.
    pub(crate) fn said(&self) -> String {
        let mut text = String::new();
        for (name, values) in &self.axes {
            for Setting { text: value, .. } in values {
                let marks = find(name).map_or_else(String::new, |knob| marks(knob, value));
                text += &format!("{name} = {value:?}{marks}\n");
            }
        }
        text
    }
}

// A hash of each file that a value of a knob names.
fn marks(knob: &Knob, value: &str) -> String {
    let names = value.split(',').filter(|_| knob.value.contains("FILE"));
    let files = names.filter_map(|name| std::fs::read(name).ok());
    let fold = |mark, byte: &u8| workload::fnv64(mark ^ u64::from(*byte));
    files.map(|bytes| format!(" # {:016x}", bytes.iter().fold(0, fold))).collect()
}

impl Cell {
    /// The cell's name in tables and files: what varies, as `knob=value`.
    pub(crate) fn name(&self) -> String {
        let words = self.axes.iter().map(|(axis, value)| format!("{axis}={value}"));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Reads `knob = value` and `knob = [value, value]`.
fn parse(
    name: &str,
    text: &str,
    axes: &mut BTreeMap<&'static str, Vec<Setting>>,
) -> Result<(), SimError> {
    let wrong =
        |at: usize, message: String| SimError::at(toml_text::place(name, text, at), message);
    let document = DeTable::parse(text).map_err(|error| {
        let message = toml_text::told(text, error.message());
        wrong(error.span().map_or(0, |span| span.start), message)
    })?;
    for (key, value) in document.get_ref() {
        let knob = known(key.get_ref()).map_err(|message| wrong(key.span().start, message))?;
        let one = |value: &Spanned<DeValue<'_>>| {
            let at = value.span().start;
            let plain = plain(value.get_ref()).ok_or_else(|| {
                wrong(at, format!("{}: give a text, a number or a list of them", knob))
            })?;
            let place = format!("{}: {}", toml_text::place(name, text, at), knob);
            Ok(Setting { text: plain, place })
        };
        let values: Vec<Setting> = match value.get_ref() {
            DeValue::Array(list) => list.iter().map(one).collect::<Result<_, SimError>>()?,
            _ => vec![one(value)?],
        };
        if values.is_empty() {
            return Err(wrong(value.span().start, format!("{}: an empty list", knob)));
        }
        axes.insert(knob, values);
    }
    Ok(())
}

/// The knob that a key of a file names; the error may suggest another.
fn known(key: &str) -> Result<&'static str, String> {
    let name = key.replace('_', "-");
    find(&name).map(|knob| knob.name).ok_or_else(|| {
        let hint = nearest(&name).map_or_else(
            || "afar sim --list shows those there are".to_owned(),
            |near| format!("did you mean \"{}\"?", near.replace('-', "_")),
        );
        format!("there is no knob \"{key}\"; {hint}")
    })
}

/// The text of a string or number in TOML; `None` for other types.
fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_another_when_any_file_of_its_has_changed() {
        let named = |name: &str| {
            let name = format!("afar-setting-{}-{name}", std::process::id());
            std::env::temp_dir().join(name).display().to_string()
        };
        let (one, other) = (named("one"), named("other"));
        let write = |name: &str, text: &str| std::fs::write(name, text).expect("there is room");
        write(&one, "1");
        for (knob, value) in [
            ("faults", format!("{one},{other}")),
            ("blocks", format!("{one},{other}")),
            ("moves", other.clone()),
            ("traffic", other.clone()),
            ("sizes", other.clone()),
            ("topology", other.clone()),
        ] {
            let said = || read(&format!("{knob} = {value:?}")).expect("it is one").said();
            write(&other, "2");
            let before = said();
            write(&other, "3");
            assert_ne!(before, said(), "{knob}");
            write(&other, "2");
            assert_eq!(before, said(), "{knob}");
        }
        [one, other].iter().for_each(|name| std::fs::remove_file(name).expect("it is there"));
    }

    fn read(text: &str) -> Result<Experiment, SimError> {
        let mut axes = BTreeMap::new();
        parse("f.toml", text, &mut axes)?;
        let axes = knobs::all()
            .iter()
            .filter_map(|knob| Some((knob.name, axes.remove(knob.name)?)))
            .collect();
        Ok(Experiment { axes })
    }

    #[test]
    fn lists_are_combined_in_the_order_of_knobs() {
        let read = read("load = [\"20%\", \"60%\"]\ntransport = [\"tcp\", \"dctcp\"]\nseed = 7\n");
        let cells = read.unwrap().cells();
        let names: Vec<String> = cells.iter().map(Cell::name).collect();
        assert_eq!(
            names,
            [
                "transport=tcp load=20%",
                "transport=tcp load=60%",
                "transport=dctcp load=20%",
                "transport=dctcp load=60%"
            ]
        );
        assert_eq!(cells[2].settings.text("seed"), "7");
        assert_eq!(cells[2].settings.text("racks"), "9");
        let planned = Settings::of_plan(&cells[2].settings.planned()).unwrap();
        let texts = |settings: &Settings| (settings.planned(), settings.varied.clone());
        assert_eq!(texts(&planned), texts(&cells[2].settings), "a plan says all of it");
        assert!(planned.is_given("seed") && !planned.is_given("racks"));
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        let said = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            said("seed = 1\nlod = 3"),
            "f.toml:2:1: there is no knob \"lod\"; did you mean \"load\"?"
        );
        assert!(said("seed = ").starts_with("f.toml:1:"));
        assert!(said("seed = [1, {}]").starts_with("f.toml:1:12: seed: give a text"));
        assert_eq!(said("seed = []"), "f.toml:1:8: seed: an empty list");
        let cells = read("flows = 5\nracks = \"x\"").unwrap().cells();
        let wrong = cells[0].settings.number("racks", 1, 9).unwrap_err().to_string();
        assert!(wrong.starts_with("f.toml:2:9: racks: \"x\""), "{wrong}");
    }

    #[test]
    fn what_says_nothing_is_refused_unless_it_is_varied() {
        let vain = read("topology = \"fat-tree\"\nracks = 3").unwrap().cells();
        assert_eq!(
            vain[0].settings.check().unwrap_err().to_string(),
            "f.toml:2:9: racks: it says nothing with topology fat-tree; it is for topology \
             leaf-spine"
        );
        let both = read("topology = [\"fat-tree\", \"leaf-spine\"]\nracks = 3").unwrap().cells();
        assert!(both.iter().all(|cell| cell.settings.check().is_ok()));
    }
}
