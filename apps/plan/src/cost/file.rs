//! The file of `afar plan cost`: TOML into a model and its tenants.

use std::path::Path;

use measure::Money;
use planner::cost::{
    CostError, DROPS, Demand, Dimension, Facility, Model, Part, Server, Tenant, WORKLOADS,
    Workload, grow,
};
use serde::Deserialize;
use toml::Spanned;

use super::series;
use crate::PlanError;
use crate::amounts::{Amounts, amount, small};
use document::{DocumentError, Source, Value};

/// The example: used without a file, and printed by `--print`.
pub(super) const EXAMPLE: &str = include_str!("../../../../examples/plan/klimovic.toml");
/// The most periods of a series: ten years of hours.
const PERIODS_MAX: usize = 87_600;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Document {
    currency: Option<String>,
    server: Amounts,
    price: Parts,
    power: Parts,
    space: Parts,
    facility: FacilityTable,
    remote: Remote,
    buy: Buy,
    demand: Option<Spanned<Wanted>>,
    tenant: Vec<Spanned<Wanted>>,
    tenants: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Parts {
    flash: Option<Value>,
    compute: Option<Value>,
    tax: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FacilityTable {
    per_watt: Option<Value>,
    per_unit: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Remote {
    drop: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Buy {
    whole: Option<Value>,
    spares: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Wanted {
    name: Option<Spanned<String>>,
    capacity: Option<Value>,
    iops: Option<Value>,
    traffic: Option<Value>,
    qps: Option<Value>,
    memory: Option<Value>,
    network: Option<Value>,
    workload: Option<Value>,
    growth: Amounts,
    periods: Option<Value>,
    series: Option<Spanned<String>>,
}

/// A file with settings applied, parsed.
#[derive(Debug, Clone)]
pub(super) struct Experiment {
    /// The place of errors that concern the whole file.
    pub(super) name: String,
    pub(super) currency: String,
    pub(super) model: Model,
    pub(super) tenants: Vec<Tenant>,
    /// Whether nothing differs from the paper's example.
    pub(super) is_papers: bool,
    /// Where the file wants each dimension first.
    places: [Option<String>; 6],
}

/// What a tenant wants, as read so far.
#[derive(Debug, Clone, Default)]
struct Draft {
    name: String,
    amounts: [Option<u64>; 6],
    /// Where the amounts are in the file.
    places: [Option<String>; 6],
    workload: Option<Workload>,
    growth_ppm: Vec<(Dimension, u64)>,
    periods: usize,
    series: Vec<Demand>,
}

impl Experiment {
    /// Reads a file, or takes the example, and applies settings to it.
    ///
    /// # Errors
    /// The first invalid key or value, with its place.
    pub(super) fn read(path: Option<&Path>, settings: &[String]) -> Result<Self, PlanError> {
        let base = match path {
            Some(path) => Source::read(path)?,
            None => Source { name: "klimovic.toml".to_owned(), text: EXAMPLE.to_owned() },
        };
        let mut reading = Reading::new();
        reading.apply(&base)?;
        for setting in settings {
            reading.apply(&Source::of_setting(setting)?)?;
        }
        let mut experiment = reading.finish(&base)?;
        experiment.is_papers = path.is_none() && settings.is_empty();
        Ok(experiment)
    }

    /// Adds to an error the place of the dimension it concerns, or else that of the file.
    pub(super) fn wrong(&self, source: CostError) -> PlanError {
        let place = match source {
            CostError::Amount(one) | CostError::Unsaid(one) | CostError::Nothing(one) => {
                self.places[one as usize].clone()
            }
            CostError::Money | CostError::NoDemand | CostError::Free => None,
        };
        PlanError::Cost { place: place.unwrap_or_else(|| self.name.clone()), source }
    }
}

/// The file and settings, as read so far.
struct Reading {
    currency: String,
    model: Model,
    prices: [Option<Money>; 3],
    demand: Option<Draft>,
    tenants: Vec<Draft>,
}

impl Reading {
    fn new() -> Self {
        let none = Part::default();
        let model = Model {
            server: Server::default(),
            flash: none,
            compute: none,
            tax: none,
            facility: Facility::default(),
            drop_ppb: 0,
            whole: false,
            spares: 0,
        };
        let currency = String::new();
        Self { currency, model, prices: [None; 3], demand: None, tenants: Vec::new() }
    }

    /// Takes over what a file or a setting says.
    fn apply(&mut self, source: &Source) -> Result<(), DocumentError> {
        let document: Document = source.parse()?;
        if let Some(currency) = &document.currency {
            self.currency.clone_from(currency);
        }
        for (dimension, value) in document.server.all() {
            let Some(value) = value else { continue };
            let amount = amount(source, dimension, value)?;
            if amount == 0 {
                let message = format!("a server has no {dimension}; give it more than zero");
                return Err(source.wrong(&value.span(), message));
            }
            self.model.server = self.model.server.with(dimension, amount);
        }
        self.apply_parts(source, &document)?;
        if let Some(value) = &document.remote.drop {
            self.model.drop_ppb = drop(source, value)?;
        }
        if let Some(value) = &document.buy.whole {
            self.model.whole = source.value(value)?;
        }
        if let Some(value) = &document.buy.spares {
            self.model.spares = small(source, value, 1_000_000, "spares")?;
        }
        if let Some(wanted) = &document.demand {
            let draft = self.demand.get_or_insert_with(Draft::default);
            draft.apply(source, wanted)?;
        }
        for wanted in &document.tenant {
            let mut draft = Draft::default();
            draft.apply(source, wanted)?;
            if draft.name.is_empty() {
                return Err(source.wrong(&wanted.span(), "a tenant needs a name; give it one"));
            }
            if self.tenants.iter().any(|other| other.name == draft.name) {
                let message = format!("tenant \"{}\" is there twice; rename one", draft.name);
                return Err(source.wrong(&wanted.span(), message));
            }
            self.tenants.push(draft);
        }
        if let Some(name) = &document.tenants {
            self.add_all(source, name)?;
        }
        if let (Some(wanted), false) = (&document.demand, self.tenants.is_empty()) {
            let message = "there is [demand] and [[tenant]]; make the demand a tenant, too";
            return Err(source.wrong(&wanted.span(), message));
        }
        Ok(())
    }

    /// Adds the tenants of the table called `name`.
    fn add_all(&mut self, source: &Source, name: &Spanned<String>) -> Result<(), DocumentError> {
        let path = Path::new(&source.name).with_file_name(name.get_ref());
        let before = self.tenants.len();
        for Tenant { name: tenant, series } in series::read_all(&path, PERIODS_MAX)? {
            let is_other = self.tenants[..before].iter().any(|other| other.name == tenant);
            if self.demand.is_some() || is_other {
                let message = format!("tenant \"{tenant}\" is there twice, or beside [demand]");
                return Err(source.wrong(&name.span(), message));
            }
            self.tenants.push(Draft { name: tenant, series, ..Draft::default() });
        }
        Ok(())
    }

    /// Takes over the price, power and space of each part of a server, and of the facility.
    fn apply_parts(&mut self, source: &Source, document: &Document) -> Result<(), DocumentError> {
        let model = &mut self.model;
        let parts = [&mut model.flash, &mut model.compute, &mut model.tax];
        let (prices, powers, spaces) =
            (document.price.all(), document.power.all(), document.space.all());
        for (index, part) in parts.into_iter().enumerate() {
            if let Some(value) = prices[index] {
                part.price = source.value(value)?;
                self.prices[index] = Some(part.price);
            }
            if let Some(value) = powers[index] {
                part.power_watts = small(source, value, 1_000_000, "watts")?;
            }
            if let Some(value) = spaces[index] {
                part.space_milliunits = milliunits(source, value)?;
            }
        }
        if let Some(value) = &document.facility.per_watt {
            model.facility.per_watt = source.value(value)?;
        }
        if let Some(value) = &document.facility.per_unit {
            model.facility.per_unit = source.value(value)?;
        }
        Ok(())
    }

    /// The experiment, once everything is read; a price that is missing is an error.
    fn finish(self, base: &Source) -> Result<Experiment, PlanError> {
        for (price, name) in self.prices.iter().zip(["flash", "compute", "tax"]) {
            if price.is_none() {
                let message = format!("price.{name} is missing; write it under [price]");
                return Err(base.wrong(&(0..0), message).into());
            }
        }
        let drafts = match self.demand {
            Some(demand) => vec![demand],
            None => self.tenants,
        };
        let first = |dimension: Dimension| {
            drafts.iter().find_map(|draft| draft.places[dimension as usize].clone())
        };
        let places = Dimension::ALL.map(first);
        let tenants = drafts.into_iter().map(|draft| draft.finish(base));
        Ok(Experiment {
            name: base.name.clone(),
            currency: self.currency,
            model: self.model,
            tenants: tenants.collect::<Result<_, _>>()?,
            is_papers: false,
            places,
        })
    }
}

impl Draft {
    /// Takes over what a table of the file says of the tenant.
    fn apply(&mut self, source: &Source, wanted: &Spanned<Wanted>) -> Result<(), DocumentError> {
        let table = wanted.get_ref();
        if let Some(name) = &table.name {
            self.name.clone_from(name.get_ref());
        }
        for (dimension, value) in table.all() {
            if let Some(value) = value {
                self.amounts[dimension as usize] = Some(amount(source, dimension, value)?);
                self.places[dimension as usize] = Some(source.place(value.span().start));
            }
        }
        if let Some(value) = &table.workload {
            let name = &value.get_ref().0;
            let found = WORKLOADS.iter().find(|one| one.name == name);
            self.workload = Some(*found.ok_or_else(|| {
                let message = format!("\"{name}\": there is no such workload; use A, B, C or D");
                source.wrong(&value.span(), message)
            })?);
        }
        for (dimension, value) in table.growth.all() {
            let Some(value) = value else { continue };
            self.growth_ppm.retain(|(other, _)| *other != dimension);
            self.growth_ppm.push((dimension, growth(source, value)?));
        }
        if let Some(value) = &table.periods {
            self.periods = small(source, value, 87_600, "periods")? as usize;
        }
        if let Some(name) = &table.series {
            let path = Path::new(&source.name).with_file_name(name.get_ref());
            self.series = series::read(&path, PERIODS_MAX)?;
        }
        let has_amounts = self.amounts.iter().any(Option::is_some);
        if !self.series.is_empty() && (has_amounts || self.workload.is_some()) {
            let message = "a series is everything that is wanted; leave out the other amounts";
            return Err(source.wrong(&wanted.span(), message));
        }
        if !self.growth_ppm.is_empty() && self.periods < 2 {
            let message = "growth needs periods, 2 or more, such as periods = 12";
            return Err(source.wrong(&wanted.span(), message));
        }
        Ok(())
    }

    /// The tenant with its demand in every period.
    fn finish(self, base: &Source) -> Result<Tenant, PlanError> {
        if !self.series.is_empty() {
            return Ok(Tenant { name: self.name, series: self.series });
        }
        let capacity = self.amounts[Dimension::Capacity as usize].unwrap_or(0);
        let mut first = self.workload.map_or_else(Demand::default, |one| one.peak(capacity));
        for dimension in Dimension::ALL {
            if let Some(amount) = self.amounts[dimension as usize] {
                first = first.with(dimension, amount);
            }
        }
        let series = grow(first, &self.growth_ppm, self.periods.max(1));
        let series = series.map_err(|source| {
            let place = match source {
                CostError::Amount(one) => self.places[one as usize].clone(),
                _ => None,
            };
            PlanError::Cost { place: place.unwrap_or_else(|| base.name.clone()), source }
        })?;
        Ok(Tenant { name: self.name, series })
    }
}

impl Wanted {
    /// Every dimension with its amount, if the table gives one.
    const fn all(&self) -> [(Dimension, Option<&Value>); 6] {
        [
            (Dimension::Capacity, self.capacity.as_ref()),
            (Dimension::Iops, self.iops.as_ref()),
            (Dimension::Traffic, self.traffic.as_ref()),
            (Dimension::Qps, self.qps.as_ref()),
            (Dimension::Memory, self.memory.as_ref()),
            (Dimension::Network, self.network.as_ref()),
        ]
    }
}

impl Parts {
    /// The values for flash, compute and tax.
    const fn all(&self) -> [Option<&Value>; 3] {
        [self.flash.as_ref(), self.compute.as_ref(), self.tax.as_ref()]
    }
}

/// A number of rack units, in thousandths.
fn milliunits(source: &Source, value: &Value) -> Result<u32, DocumentError> {
    let text = &value.get_ref().0;
    let units = text.parse().ok().filter(|units: &f64| (0.0..=1000.0).contains(units));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1e6")]
    let milliunits = units.map(|units| (units * 1e3).round() as u32);
    milliunits.ok_or_else(|| {
        let message = format!("\"{text}\": a machine has 0 to 1000 rack units; write e.g. 0.5");
        source.wrong(&value.span(), message)
    })
}

/// A drop in billionths, from a share below 100 % or from the name of a known drop.
fn drop(source: &Source, value: &Value) -> Result<u32, DocumentError> {
    let text = &value.get_ref().0;
    if let Some(named) = DROPS.iter().find(|drop| drop.name == text) {
        return Ok(named.ppb);
    }
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    let share = share.ok().filter(|share| (0.0..1.0).contains(share));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1e9")]
    let ppb = share.map(|share| (share * 1e9).round() as u32).filter(|ppb| *ppb < 1_000_000_000);
    ppb.ok_or_else(|| {
        let names = DROPS.map(|drop| drop.name).join(", ");
        let message = format!(
            "\"{text}\": a drop is a share from 0% to less than 100%, or one of {names}; write \
             e.g. 20%"
        );
        source.wrong(&value.span(), message)
    })
}

/// The growth of a period in percent, as a factor in millionths.
fn growth(source: &Source, value: &Value) -> Result<u64, DocumentError> {
    let text = &value.get_ref().0;
    let percent = text.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
    let percent = percent.filter(|percent| (-100.0..=10_000.0).contains(percent));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1.01e8")]
    let ppm = percent.map(|percent| (1e6 + percent * 1e4).round() as u64);
    ppm.ok_or_else(|| {
        let message =
            format!("\"{text}\": growth is -100% to 10000% for each period; write e.g. 5%");
        source.wrong(&value.span(), message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, settings: &[&str]) -> Result<Experiment, PlanError> {
        let base = Source { name: "f.toml".to_owned(), text: text.to_owned() };
        let mut reading = Reading::new();
        reading.apply(&base)?;
        for setting in settings {
            reading.apply(&Source::of_setting(setting)?)?;
        }
        reading.finish(&base)
    }

    #[test]
    fn the_example_is_that_of_the_crate() {
        let experiment = Experiment::read(None, &[]).expect("it is one");
        let (model, tenants) = planner::cost::example();
        assert_eq!(experiment.model, model);
        assert_eq!(experiment.tenants[0].series, tenants[0].series);
        assert!(experiment.is_papers);
    }

    #[test]
    fn settings_replace_what_the_file_says() {
        let settings =
            ["demand.qps=20M", "price.tax=0", "remote.drop=guz-nvmeof", "buy.whole=true"];
        let read = read(EXAMPLE, &settings).expect("it is one");
        assert_eq!(read.tenants[0].series[0].get(Dimension::Qps), 20_000_000);
        assert_eq!((read.model.tax.price, read.model.drop_ppb), (Money::ZERO, 20_000_000));
        assert!(read.model.whole);
        let sixth = self::read(EXAMPLE, &["remote.drop=16.6666667%"]).expect("it is one");
        assert_eq!(sixth.model.drop_ppb, 166_666_667);
    }

    #[test]
    fn what_cannot_be_is_named_with_its_place() {
        let refused = |text: &str| read(text, &[]).expect_err("it cannot be").to_string();
        let with = |line: &str| refused(&format!("{line}\n{EXAMPLE}"));
        assert!(with("curency = \"$\"").starts_with("f.toml:1:1: unknown field `curency`"));
        let replaced = |from: &str, to: &str| refused(&EXAMPLE.replace(from, to));
        let negative = replaced("flash = 2400", "flash = -2400");
        assert!(negative.contains("\"-2400\": a price cannot be negative"), "{negative}");
        assert!(negative.starts_with("f.toml:11:9: "), "{negative}");
        let zero = replaced("1.2TB", "0");
        assert!(zero.starts_with("f.toml:7:12: a server has no capacity"), "{zero}");
        assert!(
            replaced("100TB", "100 parsecs").contains("f.toml:19:12: \"100 parsecs\": unknown")
        );
        assert!(replaced("100TB", "1e18B").contains("unknown unit"));
        assert!(replaced("100TB", "99999999T").contains("at most 16 EiB"));
        assert!(replaced("20%", "100%").contains("less than 100%"));
        assert!(replaced("20%", "nan").contains("a drop is a share"));
        assert!(replaced("tax = 150", "").contains("price.tax is missing"));
        let twice = "[[tenant]]\nname = \"a\"\n[[tenant]]\nname = \"a\"\n";
        let none = EXAMPLE.split("[demand]").next().expect("it begins so");
        assert!(refused(&format!("{none}{twice}")).contains("tenant \"a\" is there twice"));
        let both = format!("{EXAMPLE}[[tenant]]\nname = \"a\"\n");
        assert!(refused(&both).contains("there is [demand] and [[tenant]]"));
        assert!(refused(&format!("{none}[[tenant]]\nqps = 1")).contains("a tenant needs a name"));
        let grown = refused(&format!("{EXAMPLE}growth = {{ qps = \"5%\" }}"));
        assert!(grown.contains("growth needs periods"), "{grown}");
        assert!(refused(&format!("{EXAMPLE}workload = \"E\"")).contains("use A, B, C or D"));
    }
}
