//! The file of `afar plan pool`: TOML into loads of servers and what can be bought.

use std::path::Path;

use measure::{Bytes, Money};
use planner::pool::{Curve, Terms};
use serde::Deserialize;
use toml::Spanned;

use super::added::Predicted;
use super::demand::Program;
use super::{curve, demand};
use crate::amounts::small;
use document::DocumentError;
use document::{Source, Value};

/// The example: used without a file, and printed by `--print`.
pub(super) const EXAMPLE: &str = include_str!("../../../../examples/plan/pool.toml");
const GIB: Bytes = Bytes::from_gib(1);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Document {
    currency: Option<String>,
    server: ServerTable,
    pool: PoolTable,
    price: PriceTable,
    demand: Option<Spanned<String>>,
    program: Vec<Spanned<ProgramTable>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServerTable {
    step: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PoolTable {
    servers: Option<Value>,
    step: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PriceTable {
    local: Option<Value>,
    pool: Option<Value>,
    port: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramTable {
    name: String,
    bound: Value,
    curve: Option<Spanned<Vec<PointTable>>>,
    sweep: Option<Spanned<String>>,
    #[serde(default, rename = "where")]
    held: Vec<Spanned<String>>,
    servers: Option<Value>,
    memory: Option<Value>,
    low: Option<Value>,
    peak: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PointTable {
    local: Value,
    slowdown: Value,
}

/// A file with settings applied, parsed.
#[derive(Debug)]
pub(super) struct Experiment {
    pub(super) name: String,
    pub(super) currency: String,
    /// Whether prices were given; without any, a byte costs the same everywhere.
    pub(super) has_prices: bool,
    pub(super) terms: Terms,
    pub(super) programs: Vec<Program>,
    pub(super) servers: demand::Servers,
}

/// Settings that concern all programs, as read so far.
struct Terse {
    currency: String,
    has_prices: bool,
    terms: Terms,
}

impl Experiment {
    /// Reads a file, or takes the example, and applies settings to it.
    ///
    /// # Errors
    /// The first invalid key or value, with its place.
    pub(super) fn read(
        path: Option<&Path>,
        settings: &[String],
        predicted: &Predicted<'_>,
    ) -> Result<Self, DocumentError> {
        let base = match path {
            Some(path) => Source::read(path)?,
            None => Source { name: "pool.toml".to_owned(), text: EXAMPLE.to_owned() },
        };
        // Predicted programs replace those of the example; its prices and steps stay.
        let is_example = path.is_none() && !predicted.files.is_empty();
        Self::of(&base, settings, (predicted, is_example))
    }

    /// Parses a file, and applies settings and predictions to it.
    fn of(
        base: &Source,
        settings: &[String],
        (predicted, is_example): (&Predicted<'_>, bool),
    ) -> Result<Self, DocumentError> {
        let mut document: Document = base.parse()?;
        if is_example {
            document.program.clear();
        }
        let one = Money::from_units(1);
        let terms = Terms {
            local_step: GIB,
            pool_step: GIB,
            servers_max: None,
            local: one,
            pool: one,
            port: Money::ZERO,
        };
        let mut terse = Terse { currency: String::new(), has_prices: false, terms };
        terse.apply(base, &document)?;
        for setting in settings {
            let source = Source::of_setting(setting)?;
            let document: Document = source.parse()?;
            if let Some(table) = document.program.first() {
                return Err(source.wrong(&table.span(), "programs are not set one by one"));
            }
            terse.apply(&source, &document)?;
        }
        let mut programs: Vec<Program> = Vec::new();
        for table in &document.program {
            let program = program(base, table)?;
            if programs.iter().any(|other| other.name == program.name) {
                let message = format!("program \"{}\" is there twice; rename one", program.name);
                return Err(base.wrong(&table.span(), message));
            }
            programs.push(program);
        }
        for (program, path) in predicted.programs()?.into_iter().zip(predicted.files) {
            if programs.iter().any(|other| other.name == program.name) {
                let message = format!("program \"{}\" is there twice; rename a file", program.name);
                return Err(DocumentError::At { place: path.display().to_string(), message });
            }
            programs.push(program);
        }
        let file = document.demand.as_ref();
        let servers = demand::read(base, file, &programs)?;
        let Terse { currency, has_prices, terms } = terse;
        Ok(Self { name: base.name.clone(), currency, has_prices, terms, programs, servers })
    }
}

impl Terse {
    /// Takes over what a file or a setting says.
    fn apply(&mut self, source: &Source, document: &Document) -> Result<(), DocumentError> {
        if let Some(currency) = &document.currency {
            self.currency.clone_from(currency);
        }
        let terms = &mut self.terms;
        let steps = [
            (&document.server.step, &mut terms.local_step),
            (&document.pool.step, &mut terms.pool_step),
        ];
        for (value, step) in steps {
            if let Some(value) = value {
                *step = source.value(value)?;
                if *step == Bytes::ZERO {
                    let message = "a step of nothing cannot be; write a size such as 32GiB";
                    return Err(source.wrong(&value.span(), message));
                }
            }
        }
        if let Some(value) = &document.pool.servers {
            let servers = small(source, value, 10_000_000, "servers")?;
            if servers == 0 {
                let message = "there are no servers to a pool; give at least 1, or leave it out";
                return Err(source.wrong(&value.span(), message));
            }
            terms.servers_max = Some(servers);
        }
        let price = &document.price;
        let prices = [
            (&price.local, &mut terms.local),
            (&price.pool, &mut terms.pool),
            (&price.port, &mut terms.port),
        ];
        for (value, price) in prices {
            if let Some(value) = value {
                *price = source.value(value)?;
                self.has_prices = true;
            }
        }
        Ok(())
    }
}

/// A program with its bound, its curve and the memory it wants.
fn program(source: &Source, spanned: &Spanned<ProgramTable>) -> Result<Program, DocumentError> {
    let table = spanned.get_ref();
    let bound = percent(source, &table.bound)?;
    let curve = match (&table.curve, &table.sweep) {
        (Some(points), None) => {
            let mut read = Vec::new();
            for point in points.get_ref() {
                let local = share(source, &point.local)?;
                read.push((local, source.value::<f64>(&point.slowdown)?));
            }
            Curve::new(read).map_err(|error| source.wrong(&points.span(), error.to_string()))?
        }
        (None, Some(name)) => {
            let path = Path::new(&source.name).with_file_name(name.get_ref());
            let mut held = Vec::new();
            for text in &table.held {
                let pair = text.get_ref().split_once('=').ok_or_else(|| {
                    source.wrong(&text.span(), "write AXIS=VALUE, such as \"rtt=5us\"")
                })?;
                held.push(pair);
            }
            curve::read(&path, &held)?
        }
        _ => {
            let message = "a program has a curve or a sweep; give one of them";
            return Err(source.wrong(&spanned.span(), message));
        }
    };
    let alone = table.memory.as_ref().map(|memory| day(source, table, memory)).transpose()?;
    if alone.is_none()
        && let Some(value) = [&table.servers, &table.low, &table.peak].into_iter().flatten().next()
    {
        return Err(source.wrong(&value.span(), "there is no memory; give a size such as 64GiB"));
    }
    let least_ppm = curve.least_ppm(bound);
    Ok(Program { name: table.name.clone(), bound, least_ppm, alone })
}

/// The memory that a program wants on servers of its own.
fn day(
    source: &Source,
    table: &ProgramTable,
    memory: &Value,
) -> Result<demand::Day, DocumentError> {
    let number = |value: &Option<Value>, most, what| {
        value.as_ref().map(|value| small(source, value, most, what)).transpose()
    };
    Ok(demand::Day {
        servers: number(&table.servers, demand::SERVERS_MAX, "servers")?.unwrap_or(1),
        memory: source.value::<Bytes>(memory)?.get(),
        low: table.low.as_ref().map(|low| share(source, low)).transpose()?.unwrap_or(1.0),
        peak: number(&table.peak, 23, "hours")?.unwrap_or(12),
    })
}

/// A bound: a percentage, which may exceed 100 %.
fn percent(source: &Source, value: &Value) -> Result<f64, DocumentError> {
    let text = &value.get_ref().0;
    let percent = text.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
    percent
        .filter(|percent| (0.0..=100_000.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| {
            let message = format!("\"{text}\": a bound is 0% or more; write e.g. 5%");
            source.wrong(&value.span(), message)
        })
}

/// A share of memory, from 0 to 1.
fn share(source: &Source, value: &Value) -> Result<f64, DocumentError> {
    curve::share(&value.get_ref().0).map_err(|message| source.wrong(&value.span(), message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(from: &str, to: &str) -> String {
        assert!(EXAMPLE.contains(from), "{from}");
        let text = EXAMPLE.replacen(from, to, 1);
        let source = Source { name: "f.toml".to_owned(), text };
        Experiment::of(&source, &[], (&Predicted::default(), false))
            .expect_err("it cannot be")
            .to_string()
    }

    #[test]
    fn the_example_is_one() {
        let experiment = Experiment::read(None, &[], &Predicted::default()).expect("it is one");
        let shares: Vec<u64> = experiment.programs.iter().map(|one| one.least_ppm).collect();
        // On the lines between 50 % and 30 %, 25 % and 10 %, 75 % and 50 %.
        assert_eq!(shares, [486_667, 243_618, 708_334]);
        assert_eq!((experiment.servers.names.len(), experiment.servers.loads[0].len()), (32, 24));
        let first = experiment.servers.loads[0][14];
        assert_eq!((first.all, first.least), (480 << 30, (480 << 30) * 486_667 / 1_000_000 + 1));
    }

    #[test]
    fn what_cannot_be_is_named_with_its_place() {
        assert!(refused("\"5%\"", "\"-5%\"").starts_with("f.toml:19:9: \"-5%\": a bound is 0%"));
        assert!(refused("\"32GiB\"", "0").starts_with("f.toml:6:8: a step of nothing"));
        assert!(refused("servers = 16", "servers = 0").contains("no servers to a pool"));
        assert!(refused("local = 5", "local = -5").contains("a price cannot be negative"));
        assert!(refused("slowdown = 1.01", "slowdown = nan").contains("f.toml:24:9:"));
        assert!(refused("local = \"70%\"", "local = \"170%\"").contains("a share is from 0% to"));
        assert!(refused("local = \"70%\"", "local = \"50%\"").contains("each once"));
        assert!(refused("peak = 14", "peak = 24").contains("from 0 to 23"));
        assert!(refused("\"480GiB\"", "\"99999999999TiB\"").contains("f.toml:21:10:"));
        assert!(refused("name = \"reports\"", "name = \"shop\"").contains("is there twice"));
        assert!(refused("memory = \"256GiB\"", "").contains("there is no memory"));
    }
}
