//! A file about tenants and servers: TOML, and CSV for many tenants, into a problem.

use std::collections::BTreeMap;
use std::path::Path;

use planner::cost::{Demand, Dimension, Server, WORKLOADS};
use planner::place::{Guest, Pool, Problem};
use serde::Deserialize;
use toml::Spanned;

use crate::plan::PlanError;
use crate::plan::amounts::{Amounts, amount, parse_amount, small};
use crate::plan::csv::{cells, rows};
use crate::plan::source::{Source, Text, Value};

/// What files are begun with.
pub(super) const EXAMPLE: &str = include_str!("../../../../../examples/plan/place.toml");
const REPLICAS_MAX: u32 = 1_000;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Document {
    server: Amounts,
    pool: PoolTable,
    tenant: Vec<Spanned<Wanted>>,
    tenants: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PoolTable {
    count: Option<Value>,
    racks: Option<Value>,
    tenants_max: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Wanted {
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
}

/// Keys of a tenant, which are columns, too.
const KEYS: [&str; 13] = [
    "name", "capacity", "iops", "traffic", "qps", "memory", "network", "workload", "replicas",
    "with", "apart", "bursty", "tail",
];

/// Reads a file and the file of tenants that it may name.
///
/// # Errors
/// The first thing that cannot be, with its place.
pub(super) fn read(path: &Path) -> Result<Problem, PlanError> {
    parse(&Source::read(path)?)
}

fn parse(source: &Source) -> Result<Problem, PlanError> {
    let document: Document = source.parse()?;
    let mut server = Server::default();
    for (dimension, value) in document.server.all() {
        let Some(value) = value else { continue };
        let amount = amount(source, dimension, value)?;
        if amount == 0 {
            let message = format!("a server has no {dimension}; give it more than zero");
            return Err(source.wrong(&value.span(), message));
        }
        server = server.with(dimension, amount);
    }
    let number = |value: &Option<Value>, what: &str| {
        let read = value.as_ref().map(|value| {
            let number = small(source, value, 10_000_000, what)?;
            if number == 0 {
                let message = format!("there are no {what}; give at least 1, or leave it out");
                return Err(source.wrong(&value.span(), message));
            }
            Ok(number)
        });
        read.transpose()
    };
    let table = &document.pool;
    let pool = Pool {
        server,
        count: number(&table.count, "servers")?,
        racks: number(&table.racks, "racks")?.unwrap_or(1),
        tenants_max: number(&table.tenants_max, "tenants")?,
    };
    let mut drafts = Vec::new();
    for wanted in &document.tenant {
        drafts.push(Draft::of(source, wanted)?);
    }
    let mut places = vec![source; drafts.len()];
    let further = document
        .tenants
        .as_ref()
        .map(|name| Source::read(&Path::new(&source.name).with_file_name(name.get_ref())));
    let further = further.transpose()?;
    if let Some(further) = &further {
        drafts.extend(table_of(further)?);
        places.resize(drafts.len(), further);
    }
    let tenants = finish(&places, drafts)?;
    Ok(Problem { tenants, pool })
}

/// A tenant before it is known who the others are.
struct Draft {
    guest: Guest,
    /// Where it stands.
    at: usize,
    /// The name of whom it is to be with, and where that stands.
    with: Option<(String, usize)>,
}

impl Draft {
    fn of(source: &Source, wanted: &Spanned<Wanted>) -> Result<Self, PlanError> {
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
        ];
        let given = KEYS.iter().zip(values).filter_map(|(key, value)| {
            let value = value.as_ref()?;
            let Text(text) = value.get_ref();
            Some((*key, text.as_str(), value.span().start))
        });
        Self::from_pairs(source, wanted.span().start, given)
    }

    /// Of keys and their values, with where they stand.
    fn from_pairs<'a>(
        source: &Source,
        at: usize,
        given: impl Iterator<Item = (&'a str, &'a str, usize)>,
    ) -> Result<Self, PlanError> {
        let mut draft = Self { guest: Guest { replicas: 1, ..Guest::default() }, at, with: None };
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
                    amounts.push((dimension, parse_amount(dimension, text).map_err(wrong)?));
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

/// Tenants as CSV; empty cells say nothing.
fn table_of(source: &Source) -> Result<Vec<Draft>, PlanError> {
    let mut rows = rows(&source.text);
    let header = rows.next().unwrap_or((0, ""));
    let columns: Vec<&str> = cells(header).map(|(_, name)| name).collect();
    for (at, name) in cells(header) {
        if !KEYS.contains(&name) {
            let message = format!("\"{name}\": no such column; use {}", KEYS.join(", "));
            return Err(source.wrong(&(at..at), message));
        }
    }
    let mut drafts = Vec::new();
    for row in rows {
        if cells(row).count() != columns.len() {
            let message = format!("a row has {} cells, as the first line has", columns.len());
            return Err(source.wrong(&(row.0..row.0), message));
        }
        let given = cells(row).zip(&columns).map(|((at, text), key)| (*key, text, at));
        let given = given.filter(|(_, text, _)| !text.is_empty());
        drafts.push(Draft::from_pairs(source, row.0, given)?);
    }
    Ok(drafts)
}

/// Names to numbers.
fn finish(places: &[&Source], drafts: Vec<Draft>) -> Result<Vec<Guest>, PlanError> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for (number, (source, draft)) in places.iter().zip(&drafts).enumerate() {
        if numbers.insert(draft.guest.name.clone(), number).is_some() {
            let message = format!("tenant \"{}\" is there twice; rename one", draft.guest.name);
            return Err(source.wrong(&(draft.at..draft.at), message));
        }
    }
    let mut tenants = Vec::new();
    for (source, mut draft) in places.iter().zip(drafts) {
        if let Some((name, at)) = &draft.with {
            let other = numbers.get(name).ok_or_else(|| {
                let message = format!("there is no tenant \"{name}\"; give one that there is");
                source.wrong(&(*at..*at), message)
            })?;
            draft.guest.with = Some(*other);
        }
        tenants.push(draft.guest);
    }
    Ok(tenants)
}

/// A tenant as a flag: `name=x,capacity=1TB`.
///
/// # Errors
/// When it is none, or there is one with its name.
pub(super) fn add(problem: &mut Problem, text: &str) -> Result<(), PlanError> {
    let source = Source { name: format!("--add-tenant {text}"), text: text.to_owned() };
    let mut pairs = Vec::new();
    for (at, pair) in cells((0, text)) {
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
    problem.tenants.push(draft.guest);
    Ok(())
}

/// Where tenants are: columns tenant, replica, server, as a placement is written.
///
/// # Errors
/// The first thing that cannot be, with its place.
pub(super) fn now(path: &Path, problem: &Problem) -> Result<Vec<Vec<u32>>, PlanError> {
    let source = Source::read(path)?;
    let numbers: BTreeMap<&str, usize> =
        problem.tenants.iter().enumerate().map(|(at, one)| (one.name.as_str(), at)).collect();
    let mut now = vec![Vec::new(); problem.tenants.len()];
    let mut rows = rows(&source.text);
    let header: Vec<&str> = rows.next().map_or(Vec::new(), |row| cells(row).map(|c| c.1).collect());
    if header != ["tenant", "replica", "server"] {
        return Err(source.wrong(&(0..0), "begin it with tenant,replica,server"));
    }
    for row in rows {
        let found: Vec<(usize, &str)> = cells(row).collect();
        let [(at, name), _, (server_at, server)] = found[..] else {
            return Err(source.wrong(&(row.0..row.0), "a row has 3 cells, as the first line has"));
        };
        let tenant = numbers.get(name).ok_or_else(|| {
            let message = format!("there is no tenant \"{name}\"; leave out its rows");
            source.wrong(&(at..at), message)
        })?;
        let server = server.parse().ok().filter(|server| *server < 10_000_000);
        now[*tenant].push(server.ok_or_else(|| {
            source.wrong(&(server_at..server_at), "a server is a number from 0 to 9999999")
        })?);
    }
    for (places, tenant) in now.iter().zip(&problem.tenants) {
        if places.len() > tenant.replicas as usize {
            let message = format!(
                "tenant \"{}\" is in {} places and has {} replicas; leave out a row",
                tenant.name,
                places.len(),
                tenant.replicas
            );
            return Err(source.wrong(&(0..0), message));
        }
    }
    Ok(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Problem, String> {
        let source = Source { name: "f.toml".to_owned(), text: text.to_owned() };
        parse(&source).map_err(|error| error.to_string())
    }

    #[test]
    fn the_example_is_one() {
        let problem = read(EXAMPLE).expect("it is one");
        assert_eq!((problem.tenants.len(), problem.pool.racks), (6, 3));
        assert_eq!(problem.tenants[1].with, Some(0));
        assert_eq!(problem.tenants[0].wants.get(Dimension::Iops), 30_300);
    }

    #[test]
    fn tables_have_tenants_too() {
        let text = "name,capacity,replicas,bursty,with\na,1TB,2,true,\nb,2TB,2,,a\n";
        let source = Source { name: "t.csv".to_owned(), text: text.to_owned() };
        let drafts = table_of(&source).expect("it is one");
        let tenants = finish(&[&source, &source], drafts).expect("it is one");
        assert_eq!((tenants[0].bursty, tenants[1].with), (true, Some(0)));
        let refused = |text: &str| {
            let source = Source { name: "t.csv".to_owned(), text: text.to_owned() };
            let drafts = table_of(&source);
            let all = drafts.and_then(|drafts| finish(&vec![&source; drafts.len()], drafts));
            all.expect_err("it cannot be").to_string()
        };
        assert!(refused("name,size\n").starts_with("t.csv:1:6: \"size\": no such column"));
        assert!(refused("name,iops\na,-1\n").starts_with("t.csv:2:3: \"-1\": a count cannot be"));
        assert!(refused("name\na\na\n").starts_with("t.csv:3:1: tenant \"a\" is there twice"));
        assert!(refused("name,with\na,b\n").starts_with("t.csv:2:3: there is no tenant \"b\""));
        assert!(refused("name,tail\na,maybe\n").contains("tail is true or false"));
        assert!(refused("name,tail\na\n").contains("a row has 2 cells"));
    }

    #[test]
    fn what_cannot_be_is_named_with_its_place() {
        let refused = |text: &str| read(text).expect_err("it cannot be");
        let tenant = "[[tenant]]\nname = \"a\"\n";
        assert!(refused("[server]\nqps = 0").starts_with("f.toml:2:7: a server has no qps"));
        assert!(refused("[pool]\nracks = 0").starts_with("f.toml:2:9: there are no racks"));
        assert!(refused(&format!("{tenant}with = \"b\"")).starts_with("f.toml:3:8: there is no"));
        assert!(refused(&format!("{tenant}replicas = 0")).contains("replicas are 1 to 1000"));
        assert!(refused(&format!("{tenant}{tenant}")).starts_with("f.toml:3:1: tenant \"a\" is"));
        assert!(refused(&format!("{tenant}siz = 1")).contains("unknown field `siz`"));
        assert!(refused("[[tenant]]\nqps = 1").contains("a tenant needs a name"));
    }
}
