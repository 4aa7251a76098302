//! The programs of the cells, each with one thread and with four.
//!
//! Most are Debian's, on data that is the same in every run. A program ends when its work is done,
//! a server when its client has ended.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::ReproduceError;

/// Numbers of threads of a program.
pub(super) const THREADS: [u32; 2] = [1, 4];

/// A program and how it is started.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The programs that it needs, and their Debian packages.
    pub(super) needs: &'static [(&'static str, &'static str)],
    /// Whether much of its memory is unmanaged; runs are comparable only because that is the same
    /// in emulated and real ones.
    pub(super) is_small: bool,
    words: fn(&Work) -> Vec<String>,
}

/// The work of a program.
#[derive(Debug)]
pub(super) struct Work {
    /// The directory of its input.
    pub(super) directory: PathBuf,
    pub(super) threads: u32,
    pub(super) is_quick: bool,
}

/// All programs.
pub(super) static PROGRAMS: [Program; 6] = [
    Program {
        name: "sort",
        needs: &[("sort", "coreutils")],
        is_small: false,
        words: |work| {
            let data = work.data(&format!("{}.txt", work.pick("sort-quick", "sort")));
            split(&format!("sort --parallel={} -S 64M", work.threads), &[&data])
        },
    },
    Program {
        name: "Redis",
        needs: &[("redis-server", "redis-server"), ("redis-cli", "redis-tools")],
        is_small: true,
        words: |work| {
            let script = REDIS.replace("{threads}", &work.threads.to_string());
            let data = work.data(&format!("{}.txt", work.pick("redis-quick", "redis")));
            split("sh -ec", &[&script, "sh", &work.data(""), &data])
        },
    },
    Program {
        name: "PageRank",
        needs: &[],
        is_small: false,
        words: |work| {
            let size = work.pick("8MiB", "24MiB");
            let flags = format!("--threads {} --size {size} --iterations 2", work.threads);
            let afar = launch::program().display().to_string();
            let words = split(&format!("workload pagerank --variant timely {flags}"), &[]);
            [vec![afar], words].concat()
        },
    },
    Program {
        name: "SQLite",
        needs: &[("sqlite3", "sqlite3")],
        is_small: false,
        words: |work| {
            let sql = SQL.replace("{threads}", &work.threads.to_string());
            split("sqlite3 :memory:", &[&sql.replace("{rows}", work.pick("10000", "30000"))])
        },
    },
    Program {
        name: "Java",
        needs: &[("java", "default-jdk-headless"), ("javac", "default-jdk-headless")],
        is_small: true,
        words: |work| {
            let (threads, rounds) = (work.threads, work.pick("15000", "40000"));
            let flags = format!("{JAVA} -XX:ParallelGCThreads={threads} -cp");
            split(&flags, &[&work.data(""), "Churn", &threads.to_string(), rounds])
        },
    },
    Program {
        name: "Python",
        needs: &[("python3", "python3")],
        is_small: true,
        words: |work| {
            let (threads, keys) = (work.threads.to_string(), work.pick("10000", "30000"));
            split("python3 -c", &[PYTHON, &threads, keys])
        },
    },
];

/// A script of a Redis server and its client; background work is reduced.
const REDIS: &str = "cd \"$1\"; rm -f socket; redis-server --port 0 --unixsocket socket --save '' \
                     --appendonly no --hz 1 --dynamic-hz no --activerehashing no --io-threads \
                     {threads} >/dev/null & until test -S socket; do sleep 0.01; done; redis-cli \
                     -s socket --pipe <\"$2\"; redis-cli -s socket shutdown nosave; wait";
const SQL: &str = "pragma threads = {threads}; pragma temp_store = memory; \
                   create table a as with recursive n(i) as (select 0 union all select i + 1 from \
                   n where i < {rows}) select i, i * 7919 % 100003 as k, printf('row %d of many \
                   that are as long', i) as t from n; create index on_k on a(k); \
                   select count(*), sum(length(t)) from (select t from a order by t, k);";
const JAVA: &str = "java -Xms16m -Xmx16m -XX:+UseParallelGC -XX:CICompilerCount=2 \
                    -XX:TieredStopAtLevel=1";
const PYTHON: &str = "\
import sys, threading
threads, keys = map(int, sys.argv[1:])
def work(out):
    kept = {i * 7919 % 1000003: str(i) for i in range(keys // threads)}
    total = 0
    for key in sorted(kept):
        total = (total * 31 + len(kept[key]) + key) % 1000000007
    out.append(total)
out = []
all = [threading.Thread(target=work, args=(out,)) for _ in range(threads)]
[one.start() for one in all]
[one.join() for one in all]
print(sorted(out))";

impl Program {
    /// Its command line; an error if a program that it needs is missing.
    pub(super) fn words(&self, work: &Work) -> Result<Vec<String>, ReproduceError> {
        crate::programs::check(self.needs)?;
        Ok((self.words)(work))
    }
}

impl Work {
    /// `quick` with `--quick`, else `whole`.
    fn pick<'a>(&self, quick: &'a str, whole: &'a str) -> &'a str {
        if self.is_quick { quick } else { whole }
    }

    /// The path of an input file.
    fn data(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}

/// The words of `text`, then `further` arguments.
fn split(text: &str, further: &[&str]) -> Vec<String> {
    text.split_whitespace().chain(further.iter().copied()).map(str::to_owned).collect()
}

/// Creates the programs' input files that are missing.
///
/// # Errors
/// When a file cannot be written, or Java's compiler fails.
pub(super) fn prepare(directory: &Path) -> Result<(), ReproduceError> {
    let failed = |source| ReproduceError::Directory { path: directory.to_owned(), source };
    fs::create_dir_all(directory).map_err(failed)?;
    for (name, count) in [("sort-quick.txt", 64 << 10), ("sort.txt", 192 << 10)] {
        write_new(&directory.join(name), || lines(count)).map_err(failed)?;
    }
    for (name, keys) in [("redis-quick.txt", 3_000), ("redis.txt", 8_000)] {
        write_new(&directory.join(name), || requests(keys)).map_err(failed)?;
    }
    let class = directory.join("Churn.class");
    if class.is_file() || crate::programs::check(&[("javac", "")]).is_err() {
        return Ok(());
    }
    let source = directory.join("Churn.java");
    write_new(&source, || include_str!("Churn.java").to_owned()).map_err(failed)?;
    let failed = |source| ReproduceError::Start { program: "javac".to_owned(), source };
    let status = Command::new("javac").arg("-d").arg(directory).arg(source).status();
    match status.map_err(failed)?.success() {
        true => Ok(()),
        false => Err(failed(io::Error::other("it did not compile Churn.java"))),
    }
}

// Writes a file atomically unless it exists, so that an interrupted run leaves no partial file.
fn write_new(path: &Path, text: impl FnOnce() -> String) -> io::Result<()> {
    if path.is_file() {
        return Ok(());
    }
    let beside = path.with_extension("part");
    fs::write(&beside, text())?;
    fs::rename(beside, path)
}

// `count` lines of 32 bytes, in pseudo-random order.
fn lines(count: u64) -> String {
    let line = |number: u64| format!("{:016x} record {number:07x}\n", scatter(number));
    (0..count).map(line).collect()
}

// Requests to Redis: stores each key once with 512 bytes, then reads in three of four requests and
// replaces in the fourth.
fn requests(keys: u64) -> String {
    let value = |number: u64| format!("{:016x}", scatter(number)).repeat(32);
    let mut text = String::new();
    for key in 0..keys {
        let _infallible = write!(text, "SET key:{key} {}\r\n", value(key));
    }
    for number in 0..2 * keys {
        let key = scatter(number + 7) % keys;
        let _infallible = match number % 4 {
            0 => write!(text, "SET key:{key} {}\r\n", value(number)),
            _ => write!(text, "GET key:{key}\r\n"),
        };
    }
    text
}

// SplitMix64's output function.
const fn scatter(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_the_same_in_every_run_and_in_no_order() {
        let text = lines(1000);
        assert_eq!(text, lines(1000));
        assert_eq!(text.len(), 32_000);
        assert!(!text.lines().is_sorted());
        let asked = requests(100);
        assert_eq!(asked.lines().filter(|line| line.starts_with("GET ")).count(), 150);
        assert_eq!(asked.lines().filter(|line| line.starts_with("SET ")).count(), 150);
    }

    #[test]
    fn words_have_the_threads_and_the_size() {
        let work = |threads, is_quick| Work { directory: PathBuf::from("/x"), threads, is_quick };
        for program in &PROGRAMS {
            let [one, four] = THREADS.map(|threads| (program.words)(&work(threads, false)));
            assert_ne!(one, four, "{}", program.name);
            assert_ne!(one, (program.words)(&work(1, true)), "{}", program.name);
            assert!(one.iter().all(|word| !word.contains('{') || word == PYTHON), "{one:?}");
        }
    }

    #[test]
    fn what_was_written_half_is_written_again() {
        let directory = std::env::temp_dir().join(format!("afar-inputs-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("there is room");
        let path = directory.join("data.txt");
        fs::write(path.with_extension("part"), "ha").expect("there is room");
        for text in ["half and whole", "another"] {
            write_new(&path, || text.to_owned()).expect("there is room");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), "half and whole");
        }
        fs::remove_dir_all(&directory).expect("it is ours");
    }
}
