//! Redis and memcached as programs of a sweep, and what is asked of them: YCSB's workload A.
//!
//! Timers and background threads are as quiet as they go, so that faults are those of requests; a
//! hundred requests are under way, because a processor that sleeps between two takes the longer to
//! wake the longer it slept.

use serde_json::json;

pub(super) const PROGRAMS: [(&str, &str); 2] =
    [("redis-server", "redis-server"), ("memcached", "memcached")];
/// Size of a value, as YCSB's.
const VALUE_BYTES: u32 = 1_000;
const DEPTH: u32 = 100;

/// A key-value server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    Redis,
    Memcached,
}

/// How much is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amount {
    pub(super) keys: u32,
    pub(super) requests: u32,
}

impl Server {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Memcached => "memcached",
        }
    }

    pub(super) const fn shown(self) -> &'static str {
        match self {
            Self::Redis => "Redis",
            Self::Memcached => "memcached",
        }
    }

    /// Its words; `{dir}` is the directory of the run.
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
        // An empty word is one: nothing is to be saved.
        let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        if self == Self::Memcached && sys::process::effective_user() == 0 {
            // It refuses to run as root unless told to.
            words.extend(["-u", "root"].map(str::to_owned));
        }
        words
    }

    /// Words of a load on it, to which pace and output come.
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

    /// An experiment with the server alone.
    pub(super) fn experiment(self, amount: Amount) -> String {
        let mut load = vec!["afar".to_owned()];
        load.extend(self.load(amount.keys));
        let requests = amount.requests.to_string();
        let more = ["--fill", "--requests", &requests, "--json", "-"];
        load.extend(more.map(str::to_owned));
        experiment(&self.command(), self, &load)
    }
}

/// An experiment whose figure is requests a second, by a load that prints its record.
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
