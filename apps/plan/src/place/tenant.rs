//! Tenants of a file, of a table or of a flag: what they want, and near whom.

use std::collections::BTreeMap;

use measure::Duration;
use planner::cost::{Demand, Dimension, WORKLOADS};
use planner::place::{Guest, Problem};
use serde::Deserialize;
use toml::Spanned;

use crate::amounts::cell_amount;
use document::DocumentError;
use document::csv::{list, rows};
use document::{Source, Text, Value};

const REPLICAS_MAX: u32 = 1_000;

/// How far away a server may be: round trips to one in the same rack and to any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) rack: Duration,
    pub(super) datacenter: Duration,
    pub(super) racks: u32,
}

impl Scope {
    /// RDMA at 40 Gb/s by Gao et al. 2016, Table 4.
    pub(super) const PAPERS: Self =
        Self { rack: Duration::from_ns(3_380), datacenter: Duration::from_ns(5_140), racks: 1 };
}

/// A tenant as a table of the file has it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Wanted {
    name: Option<Value>,
    capacity: Option<Value>,
    iops: Option<Value>,
    traffic: Option<Value>,
    qps: Option<Value>,
    memory: Option<Value>,
    network: Option<Value>,
    workload: Option<Value>,
    replicas: Option<Value>,
    with: Option<Value>,
    apart: Option<Value>,
    bursty: Option<Value>,
    tail: Option<Value>,
    latency: Option<Value>,
    rack: Option<Value>,
}

/// Keys of a tenant in TOML, and columns in CSV.
const KEYS: [&str; 15] = [
    "name", "capacity", "iops", "traffic", "qps", "memory", "network", "workload", "replicas",
    "with", "apart", "bursty", "tail", "latency", "rack",
];

/// A tenant whose references to others are not resolved yet.
pub(super) struct Draft {
    guest: Guest,
    /// The tenant's offset in the text.
    pub(super) at: usize,
    /// The name of the tenant whose servers it must share, and the offset of that name.
    with: Option<(String, usize)>,
    /// The round trip that it needs, and the rack of its program, each with its offset.
    latency: Option<(Duration, usize)>,
    rack: Option<(u32, usize)>,
}

impl Draft {
    /// The draft in a table of TOML.
    pub(super) fn of(source: &Source, wanted: &Spanned<Wanted>) -> Result<Self, DocumentError> {
        let table = wanted.get_ref();
        let values = [
            &table.name,
            &table.capacity,
            &table.iops,
            &table.traffic,
            &table.qps,
            &table.memory,
            &table.network,
            &table.workload,
            &table.replicas,
            &table.with,
            &table.apart,
            &table.bursty,
            &table.tail,
            &table.latency,
            &table.rack,
        ];
        let given = KEYS.iter().zip(values).filter_map(|(key, value)| {
            let value = value.as_ref()?;
            let Text(text) = value.get_ref();
            Some((*key, text.as_str(), value.span().start))
        });
        Self::from_pairs(source, wanted.span().start, given)
    }

    /// The draft of keys and values, each with its offset in the text.
    fn from_pairs<'a>(
        source: &Source,
        at: usize,
        given: impl Iterator<Item = (&'a str, &'a str, usize)>,
    ) -> Result<Self, DocumentError> {
        let guest = Guest { replicas: 1, ..Guest::default() };
        let mut draft = Self { guest, at, with: None, latency: None, rack: None };
        let mut amounts: Vec<(Dimension, u64)> = Vec::new();
        let mut workload = None;
        for (key, text, at) in given {
            let wrong = |message: String| source.wrong(&(at..at), message);
            let guest = &mut draft.guest;
            let truth = || match text {
                "true" | "1" => Ok(true),
                "false" | "0" => Ok(false),
                _ => Err(wrong(format!("\"{text}\": {key} is true or false"))),
            };
            match key {
                "name" => guest.name = text.to_owned(),
                "with" => draft.with = Some((text.to_owned(), at)),
                "apart" => guest.apart = Some(text.to_owned()),
                "bursty" => guest.bursty = truth()?,
                "tail" => guest.tail = truth()?,
                "latency" => {
                    let time =
                        text.parse::<Duration>().map_err(|error| wrong(error.to_string()))?;
                    draft.latency = Some((time, at));
                }
                "rack" => {
                    let rack = text
                        .parse()
                        .map_err(|_| wrong(format!("\"{text}\": a rack is a number from 0 on")))?;
                    draft.rack = Some((rack, at));
                }
                "replicas" => {
                    let number = text.parse().ok().filter(|one| (1..=REPLICAS_MAX).contains(one));
                    guest.replicas = number.ok_or_else(|| {
                        wrong(format!("\"{text}\": replicas are 1 to {REPLICAS_MAX}"))
                    })?;
                }
                "workload" => {
                    let found = WORKLOADS.iter().find(|one| one.name == text);
                    workload = Some(found.ok_or_else(|| {
                        wrong(format!("\"{text}\": there is no such workload; use A, B, C or D"))
                    })?);
                }
                _ => {
                    let dimension = Dimension::ALL.into_iter().find(|one| one.name() == key);
                    let dimension = dimension.ok_or_else(|| {
                        wrong(format!("\"{key}\": a tenant has {}", KEYS.join(", ")))
                    })?;
                    let amount = cell_amount(source, dimension, text).map_err(wrong)?;
                    amounts.push((dimension, amount));
                }
            }
        }
        let capacity = amounts.iter().find(|(dimension, _)| *dimension == Dimension::Capacity);
        let capacity = capacity.map_or(0, |(_, amount)| *amount);
        let first = workload.map_or_else(Demand::default, |workload| workload.peak(capacity));
        let with =
            |wants: Demand, (dimension, amount): (Dimension, u64)| wants.with(dimension, amount);
        draft.guest.wants = amounts.into_iter().fold(first, with);
        if draft.guest.name.is_empty() {
            return Err(source.wrong(&(at..at), "a tenant needs a name; give it one"));
        }
        Ok(draft)
    }
}

/// The tenants in CSV; an empty cell leaves its key unset.
pub(super) fn table_of(source: &Source) -> Result<Vec<Draft>, DocumentError> {
    let mut rows = rows(&source.text);
    let header = rows.next().unwrap_or_default();
    let columns: Vec<&str> = header.cells().map(|(_, name)| name).collect();
    for (at, name) in header.cells() {
        if !KEYS.contains(&name) {
            let message = format!("\"{name}\": no such column; use {}", KEYS.join(", "));
            return Err(source.wrong(&(at..at), message));
        }
    }
    let mut drafts = Vec::new();
    for row in rows {
        if row.cells().count() != columns.len() {
            let message = format!("a row has {} cells, as the first line has", columns.len());
            return Err(source.wrong(&(row.at..row.at), message));
        }
        let given = row.cells().zip(&columns).map(|((at, text), key)| (*key, text, at));
        let given = given.filter(|(_, text, _)| !text.is_empty());
        drafts.push(Draft::from_pairs(source, row.at, given)?);
    }
    Ok(drafts)
}

impl Draft {
    /// Binds the tenant to its rack if servers in other racks are too far for its latency.
    fn bind(&mut self, source: &Source, scope: &Scope) -> Result<(), DocumentError> {
        let Some((latency, at)) = self.latency else { return Ok(()) };
        let wrong = |message: String| Err(source.wrong(&(at..at), message));
        let name = &self.guest.name;
        if latency >= scope.datacenter {
            return Ok(());
        }
        if latency < scope.rack {
            return wrong(format!(
                "tenant \"{name}\" needs {}, and a server in its own rack answers in {}; allow {} \
                 more",
                exact(latency),
                exact(scope.rack),
                exact(scope.rack - latency)
            ));
        }
        let Some((rack, rack_at)) = self.rack else {
            return wrong(format!(
                "tenant \"{name}\" needs {}, which only its own rack gives: say which that is, or \
                 allow {}",
                exact(latency),
                exact(scope.datacenter)
            ));
        };
        if rack >= scope.racks {
            let message = format!("there is no rack {rack}; pool.racks is {}", scope.racks);
            return Err(source.wrong(&(rack_at..rack_at), message));
        }
        self.guest.rack = Some(rack);
        Ok(())
    }
}

/// A time in µs with every digit, so that a user can allow exactly that time.
pub(super) fn exact(time: Duration) -> String {
    let text = format!("{:.6}", time.as_ns_f64() / 1e3);
    format!("{} µs", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Resolves references to other tenants, and binds tenants to racks.
pub(super) fn finish<'a>(
    source: &dyn Fn(usize) -> &'a Source,
    drafts: Vec<Draft>,
    scope: &Scope,
) -> Result<Vec<Guest>, DocumentError> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for (number, draft) in drafts.iter().enumerate() {
        if numbers.insert(draft.guest.name.clone(), number).is_some() {
            let message = format!("tenant \"{}\" is there twice; rename one", draft.guest.name);
            return Err(source(number).wrong(&(draft.at..draft.at), message));
        }
    }
    let mut tenants = Vec::new();
    for (number, mut draft) in drafts.into_iter().enumerate() {
        let source = source(number);
        if let Some((name, at)) = &draft.with {
            let other = numbers.get(name).ok_or_else(|| {
                let message = format!("there is no tenant \"{name}\"; give one that there is");
                source.wrong(&(*at..*at), message)
            })?;
            draft.guest.with = Some(*other);
        }
        draft.bind(source, scope)?;
        tenants.push(draft.guest);
    }
    Ok(tenants)
}

/// Adds the tenant of a flag: `name=x,capacity=1TB`.
///
/// # Errors
/// If the text is no tenant, or its name is taken.
pub(super) fn add(problem: &mut Problem, text: &str, scope: &Scope) -> Result<(), DocumentError> {
    let source = Source { name: format!("--add-tenant {text}"), text: text.to_owned() };
    let mut pairs = Vec::new();
    for (at, pair) in list(text) {
        let Some((key, value)) = pair.split_once('=') else {
            let message = format!("\"{pair}\": write KEY=VALUE, such as capacity=1TB");
            return Err(source.wrong(&(at..at), message));
        };
        pairs.push((key, value, at));
    }
    let mut draft = Draft::from_pairs(&source, 0, pairs.into_iter())?;
    let number = |name: &str| problem.tenants.iter().position(|tenant| tenant.name == name);
    if number(&draft.guest.name).is_some() {
        let message = format!("tenant \"{}\" is there already; rename it", draft.guest.name);
        return Err(source.wrong(&(0..0), message));
    }
    if let Some((name, at)) = &draft.with {
        let message = format!("there is no tenant \"{name}\"; give one that there is");
        draft.guest.with = Some(number(name).ok_or_else(|| source.wrong(&(*at..*at), message))?);
    }
    draft.bind(&source, scope)?;
    problem.tenants.push(draft.guest);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_tenants_too() {
        let text = "name,capacity,replicas,bursty,with\na,1TB,2,true,\nb,2TB,2,,a\n";
        let source = Source { name: "t.csv".to_owned(), text: text.to_owned() };
        let drafts = table_of(&source).expect("it is one");
        let tenants = finish(&|_| &source, drafts, &Scope::PAPERS).expect("it is one");
        assert_eq!((tenants[0].bursty, tenants[1].with), (true, Some(0)));
        let refused = |text: &str| {
            let source = Source { name: "t.csv".to_owned(), text: text.to_owned() };
            let drafts = table_of(&source);
            let all = drafts.and_then(|drafts| finish(&|_| &source, drafts, &Scope::PAPERS));
            all.expect_err("it cannot be").to_string()
        };
        assert!(refused("name,size\n").starts_with("t.csv:1:6: \"size\": no such column"));
        assert!(refused("name,iops\na,-1\n").starts_with("t.csv:2:3: \"-1\": a count cannot be"));
        assert!(refused("name\na\na\n").starts_with("t.csv:3:1: tenant \"a\" is there twice"));
        assert!(refused("name,with\na,b\n").starts_with("t.csv:2:3: there is no tenant \"b\""));
        assert!(refused("name,tail\na,maybe\n").contains("tail is true or false"));
        assert!(refused("name,tail\na\n").contains("a row has 2 cells"));
    }
}
