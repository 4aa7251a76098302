//! The file of `afar plan latency`: TOML into designs, scopes, rates, targets and how a link is
//! shared.

use std::path::Path;

use measure::{BitsPerSec, Bytes, Duration};
use planner::latency::{Component, Group, Packets, Sharing, Trunks};
use serde::Deserialize;
use toml::Spanned;

use document::DocumentError;
use document::{Source, Value};

/// The example: used without a file, and printed by `--print`.
pub(super) const EXAMPLE: &str = include_str!("../../../../examples/plan/table4.toml");

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Document {
    page: Option<Value>,
    rates: Option<Vec<Value>>,
    target: Vec<TargetTable>,
    design: Vec<GroupTable>,
    scope: Vec<GroupTable>,
    packets: Option<PacketsTable>,
    sharing: SharingTable,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PacketsTable {
    payload: Value,
    header: Value,
    request: Value,
    last: Value,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrunksTable {
    count: u16,
    times: u16,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetTable {
    name: String,
    rtt: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupTable {
    name: String,
    parts: Vec<PartTable>,
    /// For scopes only.
    trunks: Option<Spanned<TrunksTable>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartTable {
    name: String,
    time: Value,
    count: Spanned<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SharingTable {
    load: Option<Value>,
    batch: Option<Value>,
    sizes: Option<Spanned<Vec<SizeTable>>>,
    clients: Option<Value>,
    think: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SizeTable {
    size: Value,
    share: Value,
}

/// A round trip that something needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) rtt: Duration,
}

/// A file with settings applied, parsed.
#[derive(Debug, Clone)]
pub(super) struct Experiment {
    pub(super) name: String,
    pub(super) page: Bytes,
    pub(super) rates: Vec<BitsPerSec>,
    pub(super) targets: Vec<Target>,
    pub(super) designs: Vec<Group>,
    pub(super) scopes: Vec<Group>,
    /// How pages are cut into packets; `None` if they are not.
    pub(super) packets: Option<Packets>,
    /// The trunks of each scope.
    pub(super) trunks: Vec<Trunks>,
    pub(super) sharing: Sharing,
    pub(super) is_papers: bool,
}

impl Experiment {
    /// Reads a file, or takes the example, and applies settings to it.
    ///
    /// # Errors
    /// The first invalid key or value, with its place.
    pub(super) fn read(path: Option<&Path>, settings: &[String]) -> Result<Self, DocumentError> {
        let base = match path {
            Some(path) => Source::read(path)?,
            None => Source { name: "table4.toml".to_owned(), text: EXAMPLE.to_owned() },
        };
        let mut sharing = Shared::default();
        let mut experiment = Self::of(&base, &mut sharing)?;
        for setting in settings {
            let source = Source::of_setting(setting)?;
            let document: Document = source.parse()?;
            if let Some(page) = &document.page {
                experiment.page = page_of(&source, page)?;
            }
            sharing.apply(&source, &document.sharing)?;
        }
        experiment.sharing = sharing.finish(&base)?;
        experiment.is_papers = path.is_none() && settings.is_empty();
        Ok(experiment)
    }

    /// Parses a file; what it says of sharing is added to `sharing`.
    fn of(source: &Source, sharing: &mut Shared) -> Result<Self, DocumentError> {
        let document: Document = source.parse()?;
        let missing = |what: &str| source.wrong(&(0..0), format!("there is no {what}; give one"));
        let page = document.page.as_ref().ok_or_else(|| missing("page, the size of a fetch"))?;
        let rates = document.rates.unwrap_or_default();
        let rates: Vec<BitsPerSec> =
            rates.iter().map(|rate| source.value(rate)).collect::<Result<_, _>>()?;
        if rates.is_empty() {
            return Err(missing("rate in rates"));
        }
        let targets = document.target.iter().map(|target| {
            Ok(Target { name: target.name.clone(), rtt: source.value(&target.rtt)? })
        });
        let groups = |tables: &[GroupTable]| -> Result<Vec<Group>, DocumentError> {
            tables.iter().map(|table| group(source, table)).collect()
        };
        sharing.apply(source, &document.sharing)?;
        let (designs, scopes) = (groups(&document.design)?, groups(&document.scope)?);
        if designs.is_empty() {
            return Err(missing("[[design]]"));
        }
        if scopes.is_empty() {
            return Err(missing("[[scope]]"));
        }
        let packets = document.packets.as_ref().map(|table| packets(source, table)).transpose()?;
        let mut trunks = Vec::new();
        for table in document.design.iter().chain(&document.scope) {
            let Some(given) = &table.trunks else { continue };
            if packets.is_none() || document.design.iter().any(|one| std::ptr::eq(one, table)) {
                let message = "trunks are of a scope, with [packets]; add that, or leave them out";
                return Err(source.wrong(&given.span(), message));
            }
        }
        for TrunksTable { count, times } in document
            .scope
            .iter()
            .map(|one| one.trunks.as_ref().map_or(NO_TRUNKS, |it| *it.get_ref()))
        {
            trunks.push(Trunks { count: count.into(), times: u32::from(times).max(1) });
        }
        Ok(Self {
            name: source.name.clone(),
            page: page_of(source, page)?,
            rates,
            targets: targets.collect::<Result<_, DocumentError>>()?,
            designs,
            scopes,
            packets,
            trunks,
            sharing: Sharing::Alone,
            is_papers: false,
        })
    }
}

/// The keys of `[sharing]`, as read so far.
#[derive(Debug, Default)]
struct Shared {
    load: Option<f64>,
    batch: Option<u32>,
    sizes: Vec<(Bytes, f64)>,
    clients: Option<u32>,
    think: Option<Duration>,
}

impl Shared {
    /// Takes over what a file or a setting says.
    fn apply(&mut self, source: &Source, table: &SharingTable) -> Result<(), DocumentError> {
        if let Some(value) = &table.load {
            self.load = Some(share(source, value)?);
        }
        if let Some(value) = &table.batch {
            self.batch = Some(whole(source, value, "a batch")?);
        }
        if let Some(value) = &table.clients {
            self.clients = Some(whole(source, value, "a number of clients")?);
        }
        if let Some(value) = &table.think {
            self.think = Some(source.value(value)?);
        }
        if let Some(sizes) = &table.sizes {
            self.sizes.clear();
            for SizeTable { size, share: part } in sizes.get_ref() {
                self.sizes.push((page_of(source, size)?, share(source, part)?));
            }
            if self.sizes.iter().map(|(_, share)| share).sum::<f64>() <= 0.0 {
                let message = "the shares of sizes add up to nothing; give one more than 0%";
                return Err(source.wrong(&sizes.span(), message));
            }
        }
        Ok(())
    }

    /// How the link is shared; keys that exclude one another are an error.
    fn finish(self, base: &Source) -> Result<Sharing, DocumentError> {
        let wrong = |message: &str| Err(base.wrong(&(0..0), format!("sharing: {message}")));
        match (self.load, self.clients) {
            (Some(_), Some(_)) => wrong("load is for an open system, clients for a closed one"),
            (None, Some(clients)) if self.batch.is_none() && self.sizes.is_empty() => {
                Ok(Sharing::Closed { clients, think: self.think.unwrap_or_default() })
            }
            (_, None) if self.think.is_some() => wrong("think needs clients; give a number"),
            (Some(_), None) if self.batch.is_some() && !self.sizes.is_empty() => {
                wrong("batch is for pages of one size; leave out sizes, or batch")
            }
            (Some(load), None) if self.sizes.is_empty() => {
                Ok(Sharing::Load { load, batch: self.batch.unwrap_or(1) })
            }
            (Some(load), None) => Ok(Sharing::Mixed { load, sizes: self.sizes }),
            (None, None) if self.batch.is_none() && self.sizes.is_empty() => Ok(Sharing::Alone),
            (None, _) => wrong("batch and sizes need a load, such as load = \"50%\""),
        }
    }
}

/// A design or a scope with its parts.
fn group(source: &Source, table: &GroupTable) -> Result<Group, DocumentError> {
    let part = |part: &PartTable| {
        let count = u32::try_from(*part.count.get_ref()).map_err(|_| {
            source.wrong(&part.count.span(), "a count is a whole number from 0 to 4294967295")
        })?;
        Ok(Component { name: part.name.clone(), each: source.value(&part.time)?, count })
    };
    let components = table.parts.iter().map(part).collect::<Result<_, DocumentError>>()?;
    Ok(Group { name: table.name.clone(), components })
}

const NO_TRUNKS: TrunksTable = TrunksTable { count: 0, times: 1 };

/// How pages are cut into packets.
fn packets(source: &Source, table: &PacketsTable) -> Result<Packets, DocumentError> {
    let last = &table.last;
    let is_padded = match last.get_ref().0.as_str() {
        "full" => true,
        "short" => false,
        other => {
            let message = format!("\"{other}\": the last packet is \"full\" or \"short\"");
            return Err(source.wrong(&last.span(), message));
        }
    };
    Ok(Packets {
        payload: page_of(source, &table.payload)?,
        header: source.value(&table.header)?,
        request: source.value(&table.request)?,
        is_padded,
    })
}

/// A size; 0 is an error.
fn page_of(source: &Source, value: &Value) -> Result<Bytes, DocumentError> {
    let bytes: Bytes = source.value(value)?;
    if bytes == Bytes::ZERO {
        return Err(source.wrong(&value.span(), "nothing is fetched; write a size such as 4KiB"));
    }
    Ok(bytes)
}

/// A whole number from 1 to 100,000; `what` names it in errors.
fn whole(source: &Source, value: &Value, what: &str) -> Result<u32, DocumentError> {
    let text = &value.get_ref().0;
    text.parse().ok().filter(|number| (1..=100_000).contains(number)).ok_or_else(|| {
        let message = format!("\"{text}\": {what} is a whole number from 1 to 100000");
        source.wrong(&value.span(), message)
    })
}

/// A percentage or a number, from 0 to 1.
fn share(source: &Source, value: &Value) -> Result<f64, DocumentError> {
    let text = &value.get_ref().0;
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    share.ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
        let message = format!("\"{text}\": a share is from 0% to 100%; write e.g. 50%");
        source.wrong(&value.span(), message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[&str]) -> Result<Sharing, String> {
        let settings: Vec<String> = settings.iter().map(|&text| text.to_owned()).collect();
        let read = Experiment::read(None, &settings);
        read.map(|read| read.sharing).map_err(|error| error.to_string())
    }

    #[test]
    fn the_example_is_the_table() {
        let experiment = Experiment::read(None, &[]).expect("it is one");
        let (mut designs, mut scopes) = planner::latency::table4();
        for group in designs.iter_mut().chain(&mut scopes) {
            group.components.retain(|component| component.count > 0);
        }
        assert_eq!((experiment.designs, experiment.scopes), (designs, scopes));
        assert_eq!(experiment.targets.len(), 2);
    }

    #[test]
    fn sharing_is_one_of_four() {
        assert_eq!(read(&[]), Ok(Sharing::Alone));
        assert_eq!(read(&["sharing.load=50%"]), Ok(Sharing::Load { load: 0.5, batch: 1 }));
        let closed = read(&["sharing.clients=8", "sharing.think=10us"]);
        assert_eq!(closed, Ok(Sharing::Closed { clients: 8, think: Duration::from_us(10) }));
        for (settings, wanted) in [
            (&["sharing.batch=4"][..], "need a load"),
            (&["sharing.load=1", "sharing.clients=2"], "load is for an open system"),
            (&["sharing.think=1us"], "think needs clients"),
            (&["sharing.load=nan"], "a share is from 0% to 100%"),
            (&["sharing.load=120%"], "a share is from 0% to 100%"),
            (&["sharing.clients=0"], "a whole number from 1 to 100000"),
            (&["page=0"], "nothing is fetched"),
            (&["page=4 parsecs"], "unknown unit"),
        ] {
            let error = read(settings).expect_err("it cannot be");
            assert!(error.contains(wanted), "{wanted} is missing in {error}");
        }
    }

    #[test]
    fn what_cannot_be_is_named_with_its_place() {
        let refused = |from: &str, to: &str| {
            let text = EXAMPLE.replacen(from, to, 1);
            let source = Source { name: "f.toml".to_owned(), text };
            Experiment::of(&source, &mut Shared::default()).expect_err("it cannot be").to_string()
        };
        assert!(refused("950ns", "950").starts_with("f.toml:18:25: \"950\": a time needs a unit"));
        assert!(refused("count = 2", "count = -2").contains(":18:42: a count is a whole number"));
        assert!(refused("40Gb/s", "0Gb/s").contains("must be more than zero"));
        assert!(refused("[[scope]]", "[[spoce]]").contains("unknown field `spoce`"));
        assert!(refused("page =", "# page =").contains("there is no page"));
    }
}
