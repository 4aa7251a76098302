//! The benchmark `load`: throughput of `afar load kv` against the clients that come with the
//! servers.

use std::ffi::OsString;
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use measure::{LoadResults, Run};
use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::process::{Job, LONG, SHORT, find};
use crate::report::{Bound, Report, Table, Verdict};
use crate::stats::Spread;

const CONNECTIONS: u64 = 50;
/// Keys that memcaslap stores and reads on each connection.
const WINDOW: u64 = 1024;
/// Keys of all clients, as many as on all connections of memcaslap, because a server's cache misses
/// depend on their number.
const KEYS: u64 = CONNECTIONS * WINDOW;
/// How long a client of memcached is measured, normally and with --quick.
const LONGER: &str = "7s";
const SHORTER: &str = "3s";
/// Bytes of every value.
const VALUE_BYTES: usize = 100;
/// The key of redis-benchmark, as long as those of afar: the tool replaces the word by 12 digits.
const KEY: &str = "user0000000__rand_int__";

/// A comparison of two clients.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    server: Server,
    depth: u64,
    requests: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    Redis,
    Memcached,
}

const CASES: [Case; 3] = [
    case("Redis GET, 1 deep", Server::Redis, 1, 400_000),
    case("Redis GET, 16 deep", Server::Redis, 16, 2_000_000),
    case("memcached get, 1 deep", Server::Memcached, 1, 1_000_000),
];

const fn case(name: &'static str, server: Server, depth: u64, requests: u64) -> Case {
    Case { name, server, depth, requests }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Afar,
    /// redis-benchmark or memcaslap.
    Peer,
}

/// Runs the benchmark.
///
/// # Errors
/// When a client or server is missing or fails.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let mut table =
        Table::new(&["requests per second", "the server's own", "afar load kv", "ratio"]);
    let (mut results, mut verdicts) = (Map::new(), Vec::new());
    for case in CASES {
        let (port, server) = start(context, case.server)?;
        if case.server == Server::Redis {
            // Stores the keys that redis-benchmark reads; afar has others.
            let value = "x".repeat(VALUE_BYTES);
            redis_benchmark(context, port, &["SET", KEY, &value], KEYS * 5, 16)?;
        }
        fill(context, case, port)?;
        let requests = case.requests / context.size(1, 10);
        let limit = match case.server {
            Server::Redis => ["--requests".to_owned(), requests.to_string()],
            Server::Memcached => ["--duration".to_owned(), context.size(LONGER, SHORTER).into()],
        };
        let clients = [Client::Peer, Client::Afar];
        let runs =
            context.alternate(case.name, &clients, |client| match (client, case.server) {
                (Client::Afar, _) => afar(context, case, port, &limit),
                (Client::Peer, Server::Redis) => {
                    redis_benchmark(context, port, &["GET", KEY], requests, case.depth)
                }
                (Client::Peer, Server::Memcached) => memcaslap(context, port),
            })?;
        drop(server);
        let ratio = Spread::ratio(&runs[1], &runs[0]);
        let (peer, ours) = (Spread::of(runs[0].clone()), Spread::of(runs[1].clone()));
        table.row(vec![case.name.to_owned(), peer.show(0), ours.show(0), ratio.show(3)]);
        let row = json!({"peer": peer.json(), "afar": ours.json(), "ratio": ratio.json()});
        results.insert(case.name.to_owned(), row);
        verdicts.push(Verdict {
            what: format!("{}: throughput over that of the server's own client", case.name),
            value: ratio.median,
            bound: Bound::AtLeast(1.0),
            unit: "",
        });
    }
    Ok(Report {
        name: "load",
        settings: json!({
            "key_count": KEYS,
            "connection_count": CONNECTIONS,
            "value_bytes": VALUE_BYTES,
        }),
        results: Value::Object(results),
        text: format!(
            "{}medians over rounds (extremes); one thread, {CONNECTIONS} connections over \
             loopback, uniform keys, values of {VALUE_BYTES} bytes\n\
             the server's own: redis-benchmark, memcaslap; for memcached \
             the median of the\nseconds of each client, since memcaslap counts the keys it \
             stores first, without waiting for answers\n",
            table.text()
        ),
        verdicts,
    })
}

/// `words` as arguments of a command.
fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Starts a server and waits until it listens. Returns its port.
fn start(context: &Context, server: Server) -> Result<(u16, Job), Failure> {
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(Failure::file("bind", "127.0.0.1"))?
        .port();
    let number = port.to_string();
    let mut command = match server {
        Server::Redis => vec![find("redis-server", "redis-server")?],
        Server::Memcached => vec![find("memcached", "memcached")?],
    };
    command.extend(match server {
        Server::Redis => words(&["--port", &number, "--save", "", "--appendonly", "no"]),
        Server::Memcached => words(&["-u", "root", "-m", "1024", "-t", "1", "-p", &number]),
    });
    let mut job = Job::start(context, &command)?;
    let deadline = Instant::now() + SHORT;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if Instant::now() > deadline {
            return Err(job.too_slow("answer", SHORT));
        }
        job.check()?;
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Ok((port, job))
}

/// Stores the keys that [`afar`] reads.
fn fill(context: &Context, case: Case, port: u16) -> Result<(), Failure> {
    let mut command = load(context, case, port);
    command.extend(words(&["--requests", "1", "--fill"]));
    Job::start(context, &command)?.finish(LONG).map(drop)
}

/// Requests per second of `afar load` in one run.
fn afar(context: &Context, case: Case, port: u16, limit: &[String]) -> Result<f64, Failure> {
    let mut command = load(context, case, port);
    command.extend(limit.iter().map(OsString::from));
    let said = Job::start(context, &command)?.finish(LONG)?;
    let results = serde_json::from_str(&said).ok().map(|run: Run<LoadResults>| run.results);
    let rate = results.map(|results| match case.server {
        // Computed in the way of each peer.
        Server::Redis => results.requests_per_s,
        Server::Memcached => by_second(results.request_count_by_second),
    });
    let rate = rate.filter(|rate| *rate > 0.0);
    rate.ok_or(Failure::Unreadable { program: "afar load", wanted: "requests_per_s", said })
}

/// The command line of `afar load`, without a limit of requests or time.
fn load(context: &Context, case: Case, port: u16) -> Vec<OsString> {
    let scheme = if case.server == Server::Redis { "redis" } else { "memcached" };
    let uri = format!("{scheme}://127.0.0.1:{port}");
    let mut command: Vec<OsString> = vec![context.afar.clone().into()];
    command.extend(words(&["load", "kv", &uri, "--json", "-", "--quiet"]));
    command.extend(words(&["--distribution", "uniform", "--workload", "c"]));
    let sizes = [
        ("--keys", KEYS),
        ("--value-size", VALUE_BYTES as u64),
        ("--connections", CONNECTIONS),
        ("--depth", case.depth),
    ];
    for (flag, value) in sizes {
        let unit = if flag == "--value-size" { "B" } else { "" };
        command.extend([flag.into(), format!("{value}{unit}").into()]);
    }
    command
}

/// Requests per second of redis-benchmark, which sends one command with random keys.
fn redis_benchmark(
    context: &Context,
    port: u16,
    request: &[&str],
    requests: u64,
    depth: u64,
) -> Result<f64, Failure> {
    let mut command = vec![find("redis-benchmark", "redis-tools")?];
    command.extend(words(&["--csv"]));
    let sizes = [
        ("-p", u64::from(port)),
        ("-n", requests),
        ("-r", KEYS),
        ("-c", CONNECTIONS),
        ("-P", depth),
    ];
    for (flag, value) in sizes {
        command.extend([flag.into(), value.to_string().into()]);
    }
    command.extend(words(request));
    let said = Job::start(context, &command)?.finish(LONG)?;
    let rate = crate::overhead::rate(&said, &request.join(" "));
    rate.ok_or(Failure::Unreadable { program: "redis-benchmark", wanted: "rps", said })
}

/// Gets per second of memcaslap.
fn memcaslap(context: &Context, port: u16) -> Result<f64, Failure> {
    let mix = context.fresh("memcaslap");
    // Lengths of keys and values, then the shares of set (0) and get (1).
    let text = format!("key\n24 24 1\nvalue\n{VALUE_BYTES} {VALUE_BYTES} 1\ncmd\n0 0.0\n1 1.0\n");
    std::fs::write(&mix, text).map_err(Failure::file("write", &mix))?;
    let mut command = vec![find("memcaslap", "libmemcached-tools")?];
    let server = format!("127.0.0.1:{port}");
    let (connections, time) = (CONNECTIONS.to_string(), context.size(LONGER, SHORTER));
    // memcaslap first stores a window of keys for each connection; `-w` makes it small.
    command.extend(words(&["-s", &server, "-T", "1", "-w", "1k", "-c", &connections]));
    command.extend(words(&["-t", time, "-S", "1s", "-F"]));
    command.push(mix.into());
    let said = Job::start(context, &command)?.finish(LONG)?;
    tps(&said).ok_or(Failure::Unreadable { program: "memcaslap", wanted: "TPS of gets", said })
}

/// The median of counts per second; leaves out the last second, which is not whole.
fn by_second(mut seconds: Vec<u64>) -> f64 {
    let _part = seconds.pop();
    Spread::of(seconds.into_iter().map(|count| count as f64)).median
}

/// The median of gets per second in the tables that memcaslap prints; `None` if there are none.
fn tps(said: &str) -> Option<f64> {
    let mut is_get = false;
    let mut rates = Vec::new();
    for line in said.lines() {
        if line.ends_with(" Statistics") {
            is_get = line == "Get Statistics";
        }
        let mut words = line.split_whitespace();
        if is_get && words.next() == Some("Period") {
            rates.extend(words.nth(2).and_then(|rate| rate.parse::<f64>().ok()));
        }
    }
    let rate = Spread::of(rates).median;
    (rate > 0.0).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tps_is_of_the_gets_of_each_second() {
        let table = |name: &str, rate: u64| {
            format!(
                "{name} Statistics\nType     Time(s)  Ops    TPS(ops/s)   Net(M/s)\n\
                 Period   1        9      {rate}       15.3\nGlobal   3        9      1     15.3\n"
            )
        };
        let seconds = [100, 300, 200].map(|rate| table("Get", rate) + &table("Total", 7));
        assert_eq!(tps(&seconds.concat()), Some(200.0));
        assert_eq!(tps(&table("Get", 0)), None);
        assert_eq!(tps(""), None);
    }
}
