//! `afar workload`: the same result with far memory and without, and one sentence for what cannot
//! be.

mod support;

use std::path::{Path, PathBuf};

use measure::{Run, WorkloadInput, WorkloadOutcome, WorkloadResults};
use support::{Ended, Launch, installed, scratch, skip, usable};

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const FAR: [&str; 7] = ["--trap", "bpf", "--no-calibrate", "--local", "25%", "--rtt", "5us"];

const WORDCOUNT: &[&str] = &["wordcount", "--size", "8MiB"];
const SORT: &[&str] = &["sort", "--size", "8MiB"];
const ALS: &[&str] = &["als", "--size", "8MiB", "--iterations", "3"];
const SINGLE: &[&str] = &["pagerank", "--size", "8MiB", "--iterations", "5"];
const TIMELY: &[&str] =
    &["pagerank", "--size", "8MiB", "--iterations", "5", "--variant", "timely", "--threads", "2"];
const JOBS: [&[&str]; 5] = [WORDCOUNT, SORT, ALS, SINGLE, TIMELY];

fn launch(flags: &[&str]) -> Launch {
    Launch::new([AFAR, "workload"].iter().chain(flags))
}

fn run(flags: &[&str]) -> Ended {
    launch(flags).run().expect(0, &format!("workload {flags:?}"))
}

/// The seconds and the checksum of a line that a sweep can read.
#[track_caller]
fn line(ended: &Ended, name: &str) -> (f64, String) {
    let text = ended.text();
    assert_eq!(text.lines().count(), 1, "{text}");
    let rest = text.strip_prefix(&format!("{name}: ")).unwrap_or_else(|| panic!("{text}"));
    let (seconds, rest) = rest.split_once(" s").unwrap_or_else(|| panic!("{text}"));
    let seconds = seconds.parse().unwrap_or_else(|_| panic!("{text}"));
    assert!(seconds > 0.0, "{text}");
    let (_, checksum) = rest.trim_end().rsplit_once(", checksum ").expect("it has a checksum");
    assert!(checksum.len() == 16 && checksum.bytes().all(|byte| byte.is_ascii_hexdigit()));
    (seconds, checksum.to_owned())
}

#[test]
fn results_follow_from_the_seed_and_the_size() {
    for job in JOBS {
        let name = job[0];
        let ended = run(job);
        assert_eq!(ended.stderr, "", "silent without a terminal");
        let (_, checksum) = line(&ended, name);
        assert_eq!(line(&run(job), name).1, checksum, "{job:?}");
        let seed = [job, &["--seed", "2"]].concat();
        assert_ne!(line(&run(&seed), name).1, checksum, "{job:?}");
        let repeated = run(&[job, &["--repetitions", "3"]].concat());
        assert!(repeated.text().contains(" s (median of 3), "), "{}", repeated.text());
        assert_eq!(line(&repeated, name).1, checksum, "{job:?}");
    }
    let checksum = |size| line(&run(&["sort", "--size", size]), "sort").1;
    assert_ne!(checksum("1MiB"), checksum("2MiB"));
}

#[test]
fn checksums_are_those_of_every_machine() {
    let expected = [
        "38e9cbe09ef5161e",
        "9eeba726ba924ba6",
        "2fe1c70cd3edf8bb",
        "bf0aa182997f2265",
        "bf0aa182997f2265",
    ];
    for (job, expected) in JOBS.iter().zip(expected) {
        assert_eq!(line(&run(job), job[0]).1, expected, "{job:?}");
    }
}

#[test]
fn results_are_the_same_on_far_memory() {
    if !usable("bpf", "workload::far") {
        return;
    }
    for job in JOBS {
        far_as_native(job);
    }
}

/// Compares, and makes sure that memory was far in between.
#[track_caller]
fn far_as_native(job: &[&str]) {
    let record = scratch(&format!("workload-{}-{}.json", job[0], job.len()));
    let path = record.to_str().expect("paths here are text");
    let (_, native) = line(&run(job), job[0]);
    let ended = launch(job).under_afar(&[&FAR[..], &["--json", path]].concat()).run();
    let ended = ended.expect(0, &format!("{job:?} on far memory"));
    ended.leaves_nothing("a workload on far memory");
    assert_eq!(line(&ended, job[0]).1, native, "{job:?}");
    let text = std::fs::read_to_string(&record).expect("afar wrote it");
    let run: Run = Run::from_json(&text).expect("afar wrote it");
    let figures = run.results.figures().expect("its memory was managed");
    let (fetched, peak) = (figures.faults.fetch_count, figures.managed_peak_bytes);
    assert!(fetched > 1000, "{job:?}: {fetched} fetches");
    assert!(peak > 7 << 20, "{job:?}: {peak} bytes");
}

#[test]
fn data_takes_about_as_much_memory_as_was_asked_for() {
    // What the process takes besides: records are exactly as large as was asked for.
    let base = peak_kib(&["sort", "--size", "32MiB"]) - 32 * 1024;
    let jobs: [&[&str]; 4] =
        [&["wordcount"], &["sort"], &["als", "--iterations", "1"], &["pagerank"]];
    for job in jobs {
        for mib in [24, 32] {
            let size = format!("{mib}MiB");
            let peak = peak_kib(&[job, &["--size", &size]].concat());
            let (asked, taken) = ((mib * 1024) as f64, (peak - base) as f64);
            assert!((taken / asked - 1.0).abs() < 0.15, "{job:?} {size}: {taken} KiB");
        }
    }
}

fn peak_kib(flags: &[&str]) -> i64 {
    let time = "import resource, subprocess, sys\nsubprocess.run(sys.argv[1:], check=True, \
                stdout=subprocess.DEVNULL)\n\
                print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let words = ["/usr/bin/python3", "-c", time, AFAR, "workload"];
    let ended = Launch::new(words.iter().chain(flags)).run().expect(0, "a measured workload");
    ended.text().trim().parse().expect("a number of KiB")
}

fn record(flags: &[&str]) -> Run<WorkloadResults> {
    let ended = run(&[flags, &["--json", "-", "--repetitions", "2", "--seed", "9"]].concat());
    Run::from_json(&ended.text()).expect("it is nothing but a record")
}

#[test]
fn records_say_what_was_done_and_what_was_found() {
    for job in JOBS {
        let Run { schema, seed, params, results, .. } = record(job);
        assert_eq!((schema.as_str(), seed), ("afar.workload/1", 9));
        assert_eq!((params.size_bytes, params.repeat_count), (8 << 20, 2));
        let [one, other] = results.elapsed_ns[..] else { panic!("{results:?}") };
        assert_eq!(results.elapsed_ns_median, one.min(other));
        let flags = [job, &["--seed", "9"]].concat();
        assert_eq!(line(&run(&flags), job[0]).1, results.checksum);
        let seconds = results.elapsed_ns_median as f64 / 1e9;
        let is_near = |rate: f64, count: u64| (rate * seconds / count as f64 - 1.0).abs() < 1e-9;
        assert!(match (params.input, results.outcome) {
            (
                WorkloadInput::Wordcount { word_count, vocabulary_count, .. },
                WorkloadOutcome::Wordcount { distinct_count, words_per_s, .. },
            ) => distinct_count <= vocabulary_count && is_near(words_per_s, word_count),
            (
                WorkloadInput::Sort { record_count, record_bytes },
                WorkloadOutcome::Sort { records_per_s, .. },
            ) => record_count == (8 << 20) / record_bytes && is_near(records_per_s, record_count),
            (
                WorkloadInput::Als { rating_count, noise, iteration_count, .. },
                WorkloadOutcome::Als { rmse, ratings_per_s },
            ) => {
                rmse.len() == 3
                    && rmse.is_sorted_by(|before, after| before > after)
                    && rmse[2] > noise * 0.9
                    && is_near(ratings_per_s, rating_count * iteration_count)
            }
            (
                WorkloadInput::Pagerank { edge_count, iteration_count, .. },
                WorkloadOutcome::Pagerank { rank_max, rank_sum, edges_per_s },
            ) => {
                rank_max > 0.0
                    && (0.15..1.0).contains(&rank_sum)
                    && is_near(edges_per_s, edge_count * iteration_count)
            }
            _ => false,
        });
    }
}

#[test]
fn ten_iterations_of_als_find_what_was_planted() {
    let run = record(&["als", "--size", "8MiB", "--rank", "5"]);
    let WorkloadOutcome::Als { rmse, .. } = run.results.outcome else { panic!("it is ALS") };
    assert!(rmse[9] < 0.1 && rmse[9] > 0.09, "{rmse:?}");
}

#[test]
fn the_list_says_what_each_stands_in_for() {
    let list = run(&["list"]).text();
    for name in ["wordcount", "sort", "als", "pagerank", "sql", "kv"] {
        assert!(list.lines().any(|line| line.starts_with(&format!("{name} "))), "{list}");
    }
    assert!(list.contains("Timely Dataflow") && list.contains("no shuffle"), "{list}");
}

/// A Python with DuckDB, or `None`, loudly.
fn python(test: &str) -> Option<PathBuf> {
    let Some(python) = std::env::var_os("AFAR_TEST_PYTHON").map(PathBuf::from) else {
        skip(test, "AFAR_TEST_PYTHON names no Python with the module duckdb; use scripts/test");
        return None;
    };
    Some(python)
}

#[test]
fn queries_answer_the_same_on_far_memory() {
    let Some(python) = python("workload::sql") else { return };
    let python = python.to_str().expect("paths here are text");
    for query in ["2a", "3a"] {
        let flags = ["sql", "--query", query, "--size", "16MiB", "--python", python];
        let (_, checksum) = line(&run(&flags), "sql");
        let other = [&flags[..], &["--seed", "2", "--repetitions", "3"]].concat();
        let other = run(&other);
        assert!(other.text().contains(" s (median of 3), "), "{}", other.text());
        assert_ne!(line(&other, "sql").1, checksum, "query {query}");
        if usable("bpf", "workload::sql") {
            far_as_native(&flags);
        }
    }
}

#[test]
fn python_without_the_module_is_told_what_to_do() {
    if !Path::new("/usr/bin/python3").is_file() {
        skip("workload::module", "not installed: /usr/bin/python3");
        return;
    }
    // Isolated, with an empty path, so that it has no module wherever it might be installed.
    let python = scratch("python-without-duckdb");
    std::fs::write(&python, "#!/bin/sh\nexec /usr/bin/python3 -I -S \"$@\"\n").expect("room");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&python, mode).expect("it is ours");
    let flags = ["sql", "--python", python.to_str().expect("paths here are text")];
    let ended = launch(&flags).run().expect(3, "sql without its module");
    assert!(ended.stderr.contains("-m pip install duckdb=="), "{}", ended.stderr);
    assert_eq!((ended.stderr.lines().count(), ended.text().as_str()), (1, ""));
}

#[test]
fn servers_hold_what_they_are_meant_to_hold_and_refuse_more() {
    let test = "workload::kv";
    if !installed(&["redis-server", "memcached"], test) {
        return;
    }
    for server in ["redis", "memcached"] {
        let port = test_support::free_port().to_string();
        let flags = ["kv", "--server", server, "--port", &port, "--size", "64MiB"];
        let mut running = launch(&flags).start();
        let target = format!("{server}://127.0.0.1:{port}");
        for _ in 0..1000 {
            if std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok() {
                break;
            }
            assert!(running.is_running(), "{server} ended");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let load = |keys: &str, status| {
            let words = [AFAR, "load", "kv", &target, "--fill", "--keys", keys, "-n", "1000"];
            let ended = Launch::new(words.iter().chain(&["--verify"])).run();
            ended.expect(status, &format!("{keys} keys in {server}")).stderr
        };
        load("60000", 0);
        let refused = load("120000", 1);
        assert!(refused.contains("refused"), "{refused}");
        running.signal("TERM");
        running.wait().leaves_nothing(server);
    }
}

#[test]
fn bad_input_is_one_sentence() {
    let port = "--port: \"0\": give a whole number from 1 to 65535";
    let cases: [(&[&str], i32, &str); 10] = [
        (&["wordcount", "--size", "4k"], 2, "--size 4.0 KiB: less than 1.0 MiB"),
        (&["sort", "--size", "900TiB"], 2, "of memory; give less"),
        (&["sql", "--size", "900TiB"], 2, "of memory; give less"),
        (&["kv", "--server", "redis", "--size", "1"], 2, "--size 1 B: less than 1.0 MiB"),
        (&["kv", "--server", "redis", "--port", "0"], 2, port),
        (&["pagerank", "--threads", "2"], 2, "--threads 2: --variant single is one thread"),
        (&["als", "--rank", "0"], 2, "--rank: \"0\": give a whole number from 1 to 128"),
        (&["sort", "--repetitions", "0"], 2, "give a whole number from 1 to"),
        (&["sql", "--python", "/no/python"], 3, "/no/python: there is no such program; install"),
        (&["sort", "--json", "/no/such/directory/x"], 2, "open /no/such/directory/x for writing"),
    ];
    for (flags, status, sentence) in cases {
        let ended = launch(flags).run().expect(status, &format!("{flags:?}"));
        assert!(ended.stderr.contains(sentence), "{flags:?}: {}", ended.stderr);
        assert!(ended.stderr.starts_with("afar"), "{}", ended.stderr);
        assert_eq!((ended.stderr.lines().count(), ended.text().as_str()), (1, ""), "{flags:?}");
    }
}
