//! Redis and memcached as programs of a sweep, under YCSB's workload A.
//!
//! Timers and background threads are reduced, so that requests cause the faults. A hundred requests
//! are outstanding, because a processor that sleeps between two requests takes the longer to wake
//! the longer it slept.

use serde_json::json;

pub(super) const PROGRAMS: [(&str, &str); 2] =
    [("redis-server", "redis-server"), ("memcached", "memcached")];
/// Bytes of a value, as in YCSB.
const VALUE_BYTES: u32 = 1_000;
const DEPTH: u32 = 100;

/// A key-value server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    Redis,
    Memcached,
}

/// The size of a load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amount {
    pub(super) keys: u32,
    pub(super) requests: u32,
}

impl Server {
    /// Its name in files.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Memcached => "memcached",
        }
    }

    /// Its name in output.
    pub(super) const fn shown(self) -> &'static str {
        match self {
            Self::Redis => "Redis",
            Self::Memcached => "memcached",
        }
    }

    /// Its command line; `{dir}` is the directory of the run.
    pub(super) fn command(self) -> Vec<String> {
        let text = match self {
            Self::Redis => {
                "redis-server --port 0 --unixsocket {dir}/redis --dir {dir} --save  \
                 --appendonly no --hz 1 --dynamic-hz no --activerehashing no"
            }
            Self::Memcached => {
                "memcached -s {dir}/memcached -m 4096 -t 1 -o \
                 hashpower=18,no_hashexpand,no_lru_crawler,no_lru_maintainer,slab_automove=0"
            }
        };
        // `split(' ')` keeps the empty word after `--save`, which disables saving.
        let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        if self == Self::Memcached && sys::process::effective_user() == 0 {
            // memcached refuses to run as root without this flag.
            words.extend(["-u", "root"].map(str::to_owned));
        }
        words
    }

    /// The arguments of `afar` for a load on it, without pace and output.
    pub(super) fn load(self, keys: u32) -> Vec<String> {
        let target = format!("{0}+unix:{{dir}}/{0}", self.name());
        let (keys, bytes, depth) = (keys.to_string(), VALUE_BYTES.to_string(), DEPTH.to_string());
        let words = [
            ["load", "kv", target.as_str(), "--quiet"],
            ["--workload", "a", "--keys", &keys],
            ["--value-size", &bytes, "--connections", "1"],
            ["--depth", &depth, "--timeout", "60s"],
        ];
        words.concat().into_iter().map(str::to_owned).collect()
    }

    /// The text of an experiment with this server alone.
    pub(super) fn experiment(self, amount: Amount) -> String {
        let mut load = vec!["afar".to_owned()];
        load.extend(self.load(amount.keys));
        let requests = amount.requests.to_string();
        let more = ["--fill", "--requests", &requests, "--json", "-"];
        load.extend(more.map(str::to_owned));
        experiment(&self.command(), self, &load)
    }
}

/// The text of an experiment whose figure is requests per second, from the record of its load.
pub(super) fn experiment(command: &[String], ready: Server, load: &[String]) -> String {
    format!(
        "timeout = \"120s\"\nallow_below_floor = true\n\
         [workload]\ncommand = {}\nready_path = \"{{dir}}/{}\"\nload = {}\n\
         [metric]\njson = \"/results/requests_per_s\"\nbetter = \"higher\"\n",
        json!(command),
        ready.name(),
        json!(load)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweep::Sweep;

    #[test]
    fn experiments_can_be_read() {
        for server in [Server::Redis, Server::Memcached] {
            let text = server.experiment(Amount { keys: 10, requests: 100 });
            let sweep = Sweep::own(&text);
            assert_eq!(sweep.workload.command, server.command());
            assert!(sweep.workload.load.is_some_and(|load| load.contains(&"a".to_owned())));
        }
        assert!(Server::Redis.command().contains(&String::new()), "nothing is saved");
    }
}
