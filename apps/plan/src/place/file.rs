//! The file of `afar plan place`: TOML, and CSV for many tenants, into a problem.

use std::collections::BTreeMap;
use std::path::Path;

use measure::Money;
use planner::cost::Server;
use planner::place::{PlaceError, Pool, Problem};
use serde::Deserialize;
use toml::Spanned;

use super::tenant::{Draft, Scope, Wanted, exact, finish, table_of};
use crate::amounts::{Amounts, amount, small};
use document::DocumentError;
use document::csv::rows;
use document::{Source, Value};

/// The example that `--print` prints.
pub(super) const EXAMPLE: &str = include_str!("../../../../examples/plan/place.toml");

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Document {
    server: Amounts,
    pool: PoolTable,
    rtt: RttTable,
    price: PriceTable,
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
struct RttTable {
    rack: Option<Value>,
    datacenter: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PriceTable {
    server: Option<Value>,
    moved: Option<Value>,
}

/// Prices of a migration; `None` where the file gives none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Prices {
    /// What a server is worth that becomes free.
    pub(super) server: Option<Money>,
    /// What moving a terabyte costs.
    pub(super) moved: Option<Money>,
}

/// A file, parsed.
#[derive(Debug)]
pub(super) struct Experiment {
    pub(super) problem: Problem,
    pub(super) scope: Scope,
    pub(super) prices: Prices,
    pub(super) places: Places,
}

/// The places of tenants: of the first `first_count` in the file, of the others in its table.
#[derive(Debug, Default)]
pub(super) struct Places {
    sources: Vec<Source>,
    first_count: usize,
    at: Vec<usize>,
}

impl Places {
    /// The place of the tenant that an error concerns; `otherwise` if it concerns none, or one that
    /// a flag added.
    pub(super) fn of(&self, problem: &Problem, error: &PlaceError, otherwise: &str) -> String {
        let find = |name: &str| problem.tenants.iter().position(|tenant| tenant.name == name);
        let found = error.tenant().and_then(find).and_then(|tenant| {
            let source = self.sources.get(usize::from(tenant >= self.first_count))?;
            Some(source.place(*self.at.get(tenant)?))
        });
        found.unwrap_or_else(|| otherwise.to_owned())
    }
}

/// Reads a file and the file of tenants that it may name.
///
/// # Errors
/// The first invalid key or value, with its place.
pub(super) fn read(path: &Path) -> Result<Experiment, DocumentError> {
    parse(&Source::read(path)?)
}

/// Parses a file, and reads the table of tenants that it may name.
fn parse(source: &Source) -> Result<Experiment, DocumentError> {
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
    let first_count = drafts.len();
    let mut sources = vec![source.clone()];
    if let Some(name) = &document.tenants {
        let further = Source::read(&Path::new(&source.name).with_file_name(name.get_ref()))?;
        drafts.extend(table_of(&further)?);
        sources.push(further);
    }
    let of = |tenant| &sources[usize::from(tenant >= first_count)];
    let at = drafts.iter().map(|draft| draft.at).collect();
    let scope = Scope { racks: pool.racks, ..scope(source, &document.rtt)? };
    let tenants = finish(&of, drafts, &scope)?;
    let money = |value: &Option<Value>| value.as_ref().map(|one| source.value(one)).transpose();
    let prices =
        Prices { server: money(&document.price.server)?, moved: money(&document.price.moved)? };
    let problem = Problem { tenants, pool };
    Ok(Experiment { problem, scope, prices, places: Places { sources, first_count, at } })
}

/// The round trips of `[rtt]`, by default those of the paper.
fn scope(source: &Source, table: &RttTable) -> Result<Scope, DocumentError> {
    let mut scope = Scope::PAPERS;
    if let Some(value) = &table.rack {
        scope.rack = source.value(value)?;
    }
    if let Some(value) = &table.datacenter {
        scope.datacenter = source.value(value)?;
        if scope.datacenter < scope.rack {
            let message = format!(
                "a server in another rack cannot be nearer than one in the same, {}; give more",
                exact(scope.rack)
            );
            return Err(source.wrong(&value.span(), message));
        }
    }
    scope.datacenter = scope.datacenter.max(scope.rack);
    Ok(scope)
}

/// Reads the servers of each tenant now: columns tenant, replica, server, as `--csv` writes them.
///
/// # Errors
/// The first invalid row, with its place.
pub(super) fn now(path: &Path, problem: &Problem) -> Result<Vec<Vec<u32>>, DocumentError> {
    let source = Source::read(path)?;
    let numbers: BTreeMap<&str, usize> =
        problem.tenants.iter().enumerate().map(|(at, one)| (one.name.as_str(), at)).collect();
    let mut now = vec![Vec::new(); problem.tenants.len()];
    let mut rows = rows(&source.text);
    let header = rows.next().unwrap_or_default();
    let header: Vec<&str> = header.cells().map(|(_, name)| name).collect();
    if header != ["tenant", "replica", "server"] {
        return Err(source
            .wrong(&(0..0), "begin it with tenant,replica,server, as afar plan place --csv does"));
    }
    for row in rows {
        let found: Vec<(usize, &str)> = row.cells().collect();
        let [(at, name), _, (server_at, server)] = found[..] else {
            return Err(source.wrong(&(row.at..row.at), "a row has 3 cells, as the first line has"));
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
    use planner::cost::Dimension;

    use super::*;

    fn read(text: &str) -> Result<Problem, String> {
        let source = Source { name: "f.toml".to_owned(), text: text.to_owned() };
        parse(&source).map(|found| found.problem).map_err(|error| error.to_string())
    }

    #[test]
    fn the_example_is_one() {
        let problem = read(EXAMPLE).expect("it is one");
        assert_eq!((problem.tenants.len(), problem.pool.racks), (7, 3));
        assert_eq!(problem.tenants[5].rack, Some(1));
        assert_eq!(problem.tenants[1].with, Some(0));
        assert_eq!(problem.tenants[0].wants.get(Dimension::Iops), 30_300);
    }

    #[test]
    fn latencies_bind_to_racks() {
        let tenant = "[pool]\nracks = 2\n[[tenant]]\nname = \"a\"\nlatency = ";
        let rack = |text: &str| read(&format!("{tenant}{text}")).map(|one| one.tenants[0].rack);
        assert_eq!(rack("\"4us\"\nrack = 1"), Ok(Some(1)));
        assert_eq!(rack("\"5.14us\"\nrack = 1"), Ok(None), "any server is near enough");
        let refused = |text: &str| rack(text).expect_err("it cannot be");
        let near = refused("\"3us\"\nrack = 1");
        assert!(near.starts_with("f.toml:5:11: tenant \"a\" needs 3 µs"), "{near}");
        assert!(near.ends_with("answers in 3.38 µs; allow 0.38 µs more"), "{near}");
        assert!(refused("\"4us\"").contains("say which that is, or allow 5.14 µs"));
        assert!(refused("\"4us\"\nrack = 2").starts_with("f.toml:6:8: there is no rack 2"));
        assert!(refused("\"4\"").contains("needs a unit"));
        let turned = "[rtt]\nrack = \"9us\"\ndatacenter = \"5us\"\n";
        assert!(
            read(turned).expect_err("it cannot be").contains("f.toml:3:14: a server in another")
        );
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
