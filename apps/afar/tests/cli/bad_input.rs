//! Bad input: one sentence that names a remedy, exit status 2, nothing started.

use crate::{Scratch, afar, file, stderr, stdout, text};

/// (flags, what the sentence must say)
#[rustfmt::skip] // one row, one line
const CASES: [(&[&str], &str); 50] = [
    (&["--local", "0"], "--local: \"0\": a local memory must be more than zero"),
    (&["--local", "0%"], "--local: \"0%\": a fraction must be more than zero"),
    (&["--local", "130%"], "--local: \"130%\": a fraction can be at most 100%"),
    (&["--local", "25"], "4096 bytes holds nothing; write e.g. 25% or 512MiB"),
    (&["--local", "5 parsecs"], "unknown unit \"parsecs\""),
    (&["--local=-1MiB"], "--local: \"-1MiB\": a local memory cannot be negative"),
    (&["--local", "512MiB", "--of", "2GiB"], "leave out --of"),
    (&["--of", "0"], "less than one page"),
    (&["--local", "25%", "--of", "peak"], "let afar sweep run both"),
    (&["--bandwidth", "0Gbps"], "--bandwidth: \"0Gbps\": a rate must be more than zero"),
    (&["--bandwidth", "40"], "--bandwidth: \"40\": a rate needs a unit"),
    (&["--bandwidth", "40GB"], "unknown unit \"GB\" for a rate"),
    (&["--rtt", "5"], "--rtt: \"5\": a time needs a unit"),
    (&["--rtt", "5lightyears"], "unknown unit \"lightyears\" for a time"),
    (&["--rtt", "5us", "--one-way", "2us"], "--rtt and --one-way exclude each other; leave one of"),
    (&["--rtt", "5us", "--profile", "/dev/null"], "--rtt and --profile exclude each other"),
    (&["--one-way", "5us", "--profile", "/dev/null"], "--profile exclude each other"),
    (&["--rtt", "5us", "--rtt", "6us"], "--rtt is given twice; give it once"),
    (&["--profile", "/no/such/file"], "read the delay profile /no/such/file: No such file"),
    (&["--profile", "/dev/null"], "/dev/null: the delay profile has no samples"),
    (&["--link", "half-dupelx"], "--link: \"half-dupelx\": give half-duplex"),
    (&["--policy", "mru"], "--policy: \"mru\": give lru"),
    (&["--policy", "best"], "give fifo, clock, lru, random or s3fifo"),
    (&["--prefetch", "next-0"], "use none, next-N or stride-N"),
    (&["--trap", "mouse"], "give auto, bpf or userfaultfd"),
    (&["--trap", "bpf", "--wait", "sleep"], "a BPF program cannot put a thread to sleep"),
    (&["--trap", "userfaultfd", "--wait", "spin"], "use --trap bpf, or leave one of the two out"),
    (&["--engine", "swap", "--wait", "sleep"], "--wait sleep is for --engine arena"),
    (&["--engine", "disk"], "give arena or swap"),
    (&["--page-cluster", "3"], "is for --engine swap"),
    (&["--engine", "swap", "--policy", "lru"], "the kernel chooses which pages leave"),
    (&["--engine", "swap", "--page-cluster", "11"], "give a whole number from 0 to 10"),
    (&["--budget", "all"], "give process or tree"),
    (&["--seed", "x"], "--seed: \"x\": a seed is a whole number"),
    (&["--like", "dime", "--rtt", "5us"], "give half of it as --one-way"),
    (&["--like", "gao", "--one-way", "5us"], "give twice of it as --rtt"),
    (&["--like", "dime", "--policy", "lru"], "--like dime is --policy fifo, so --policy lru"),
    (
        &["--like", "gao", "--link", "half-duplex"],
        "--like gao is --link full-duplex, so --link half-duplex",
    ),
    (&["--tier", "slow"], "write KEY=VALUE with name, rtt, bandwidth, local or link"),
    (&["--tier", "rtt=5us"], "the tier has no name"),
    (&["--tier", "name=far,rtt=5us"], "two tiers are named \"far\""),
    (&["--tier", "name=slow,rtt=5"], "--tier: rtt=\"5\": a time needs a unit"),
    (&["--one-way", "200days"], "unknown unit \"days\""),
    (&["--allow-below-floor", "--no-calibrate"], "exclude each other; leave one of them out"),
    (&["--calibrated", "/no/such/file"], "read the record /no/such/file: No such file"),
    (&["--calibrated", "/dev/null"], "/dev/null: it is no JSON, so it is no record \"afar.run/2\""),
    (&["--json", "/no/such/directory/x"], "its directory first: mkdir -p /no/such/directory"),
    (&["--replicas", "2"], "--replicas needs --far or --validate; add that, or leave"),
    (&["-o", "x"], "--output is for --validate; add that, or leave it out"),
    (&["--record", "/"], "open / for writing: Is a directory (os error 21); give the name"),
];

#[test]
fn one_sentence_status_2_and_nothing_started() {
    for (flags, wanted) in CASES {
        refused(flags, wanted);
    }
}

#[test]
fn limits_of_the_bpf_trap() {
    let bpf = |flags: &[&str], wanted| {
        let scratch = Scratch::new("cli");
        let marker = scratch.join("started");
        let words = ["run", "--trap", "bpf"].iter().chain(flags);
        let output = afar(words.chain(&["--", "touch", text(&marker)]));
        if output.status.code() == Some(3) {
            crate::skip("limits_of_the_bpf_trap", &stderr(&output));
            return;
        }
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{}", stderr(&output));
        assert!(!marker.exists());
    };
    bpf(&["--local", "100KiB"], "100.0 KiB of local memory is less than the 1.0 MiB");
    bpf(&["--local", "1%", "--of", "50MiB"], "512.0 KiB of local memory is less than");
    bpf(&["--rtt", "2ms"], "a delay of 2.0 ms for a page is more than the 1.0 ms");
}

#[test]
fn who_is_to_spin_is_not_put_to_sleep() {
    let output = afar(["run", "--wait", "spin", "--rtt", "2ms", "--", "true"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    one_sentence(&stderr(&output), "--wait spin, with a delay of 2.0 ms: bpf can wait no longer");
}

#[test]
fn a_delay_below_the_floor_is_refused_or_flagged() {
    let scratch = Scratch::new("cli");
    let marker = scratch.join("started");
    let output = afar(["run", "--rtt", "20ns", "--", "touch", text(&marker)]);
    if output.status.code() == Some(3) {
        crate::skip("a_delay_below_the_floor", &stderr(&output));
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("a delay of 20.0 ns for a page is less than the "));
    assert!(!marker.exists());
    let json = scratch.join("run.json");
    let flags = ["run", "--rtt", "20ns", "--allow-below-floor", "-q", "--json", text(&json)];
    let output = afar(flags.iter().chain(&["--", "touch", text(&marker)]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(marker.exists());
    let record = std::fs::read_to_string(json).unwrap();
    let run = measure::Run::<measure::RunResults>::from_json(&record).unwrap();
    assert!(run.results.calibration.is_some_and(|calibration| calibration.floor_ns > 20));
    let flagged = |warning: &String| warning.contains("a delay of 20.0 ns");
    assert!(run.results.warnings.iter().any(flagged), "{:?}", run.results.warnings);
}

#[test]
fn commands_that_are_none() {
    let cases: [(&[&str], &str); 13] = [
        (&[], "afar: no command given; see afar --help"),
        (&["rum"], "afar: there is no command \"rum\"; give run"),
        (&["nosuch"], "afar: there is no command \"nosuch\"; afar --help has those there are"),
        (&["plan", "kost"], "afar plan: there is no command \"kost\"; give cost"),
        (&["plan", "admit"], "afar plan admit: <FILE> is missing; see afar plan admit --help"),
        (&["plan", "cost", "no.toml"], "afar plan cost: no.toml: No such file or directory"),
        (&["run", "--nosuch", "--", "true"], "no flag --nosuch; afar run --help has those there"),
        (
            &["bench", "null:", "--iodepth", "0"],
            "afar bench: --iodepth: \"0\": give a whole number",
        ),
        (&["run"], "afar run: <PROGRAM> is missing; see afar run --help"),
        (&["run", "--"], "afar run: <PROGRAM> is missing; see afar run --help"),
        (&["run", "--lokal", "25%", "true"], "there is no flag --lokal; give --local"),
        (&["run", "--local"], "--local: its value is missing"),
        (&["doctor", "now"], "\"now\" is one argument too many; see afar doctor --help"),
    ];
    for (arguments, wanted) in cases {
        let output = afar(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        one_sentence(&stderr(&output), wanted);
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

/// (words, what the sentence must say): mistakes with commands other than run.
#[rustfmt::skip] // one row, one line
const OTHERS: [(&[&str], &str); 31] = [
    (&["sim", "--pcap-packets", "5"], "--pcap-packets needs --pcap; add that, or leave"),
    (&["reproduce", "dime"], "FIGURE: \"dime\": give dime-fig3, dime-table1, dime-fig4"),
    (&["man", "/proc/x"], "make the directory /proc/x: No such file or directory (os error 2)"),
    (&["discover", "nqn.x"], "ask for one by afar identify nvme+tcp://HOST/nqn.x"),
    (
        &["load", "kv", "redis://127.0.0.1:1", "--theta", "0.5", "--distribution", "uniform"],
        "--theta 0.5: it is the skew of zipfian and latest, and says nothing of uniform; leave",
    ),
    (&["sim", "--every", "1us"], "--every: nothing that is written has intervals; add --ports"),
    (&["sim", "--every", "1us", "--repetitions", "6"], "--every: only one run has intervals"),
    (&["plan", "pool", "--servers", "5"], "--servers needs --predict; add that, or leave"),
    (&["plan", "pool", "--bound", "5%"], "--bound needs --predict; add that, or leave"),
    (&["load", "kv", "redis://127.0.0.1:99999"], "a port is a whole number from 1 to 65535; write"),
    (&["discover", "127.0.0.1:99999"], "a port is a whole number from 1 to 65535; write HOST or"),
    (&["discover", "iscsi://127.0.0.1:0"], "a port is a whole number from 1 to 65535; write HOST"),
    (&["top", "127.0.0.1:99999"], "a port is a whole number from 1 to 65535; write HOST or HOST:"),
    (&["bench", "nvme+tcp://127.0.0.1:99999/nqn.x"], "a port is a whole number from 1 to 65535;"),
    (&["bench", "iscsi://127.0.0.1:x/iqn.x/0"], "a port is a whole number from 1 to 65535; write"),
    (&["torture", "nvme+tcp://127.0.0.1:99999/nqn.x"], "a port is a whole number from 1 to 65535"),
    (&["sim", "--seed", "x"], "--seed: \"x\": a seed is a whole number"),
    (&["bench", "null:", "--chap-secret", "x"], "is for disks of iscsi://, and null: is none"),
    (&["bench", "iscsi://127.0.0.1:1/x/0"], "and has 223 bytes at most; write iscsi://"),
    (&["discover", "127.0.0.1:1", "--host", "foo"], "--host foo: an NQN begins with nqn."),
    (&["identify", "nvme+tcp://127.0.0.1:1/nqn.x", "--host", "foo"], "an NQN begins with nqn."),
    (&["discover", "127.0.0.1:1", "--chap-secret", "x"], "is for disks of iscsi://"),
    (&["discover", "iscsi://127.0.0.1:1", "--chap-secret", "x"], "write iscsi://USER@HOST"),
    (&["plan", "place", "x.toml", "--seed", "5"], "exclude each other"),
    (&["torture", "--list", "--case", "N1"], "--list and --case exclude each other"),
    (&["completions", "tcsh"], "give bash, elvish, fish, powershell or zsh"),
    (&["reproduce", "nosuch-fig"], "\"nosuch-fig\": give one that afar reproduce --help names"),
    (&["man", "/dev/null"], "; give a directory, or a name that nothing has yet"),
    (&["sweep", "/dev/null"], "missing field `workload`; write it as KEY = VALUE"),
    (&["loop", "/dev/null"], "missing field `program`; write it as KEY = VALUE"),
    (&["bench", "null:", "--nmae", "x"], "there is no flag --nmae; give --name"),
];

#[test]
fn mistakes_with_other_commands() {
    for (words, wanted) in OTHERS {
        let output = afar(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        one_sentence(&stderr(&output), wanted);
        assert_eq!(stdout(&output), "", "{words:?}");
    }
}

#[test]
fn a_blade_that_cannot_be_reached_is_told_with_a_remedy() {
    let output = afar(["run", "--far", "nvme+tcp://127.0.0.1:1/nqn.x", "--", "true"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    if !stderr(&output).contains("nqn.x") {
        return crate::skip("a_blade_that_cannot_be_reached", &stderr(&output));
    }
    one_sentence(&stderr(&output), "; check the address, and that a target listens there");
}

#[test]
fn an_empty_disk_is_told_with_a_remedy() {
    let scratch = Scratch::new("cli");
    let disk = format!("file:{}", file(&scratch, "empty", b"", 0o644).display());
    let shared = format!("disk={disk}");
    for words in [&["bench", &disk][..], &["serve", "--nvme", "127.0.0.1:0", &shared]] {
        let output = afar(words);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        one_sentence(&stderr(&output), "; give it a size, such as truncate -s 1GiB ");
    }
}

#[test]
fn a_record_of_no_known_kind_is_told_by_what_it_says_it_is() {
    let scratch = Scratch::new("cli");
    for (schema, wanted) in [
        (
            "afar.run/9",
            "has schema \"afar.run/9\", which makes no report; this afar reads afar.run/2",
        ),
        ("afar.lod/1", "; the nearest is afar.load/1, and afar version lists all records"),
        ("afar.version/1", "; give one of a run, a sweep or a load: afar version lists all"),
    ] {
        let record = format!("{{\"schema\": \"{schema}\"}}");
        let output = afar(["report", text(&file(&scratch, "x.json", record.as_bytes(), 0o644))]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        one_sentence(&stderr(&output), wanted);
        assert!(stderr(&output).len() < 250, "{}", stderr(&output));
    }
}

#[test]
fn who_fails_leaves_no_empty_directory() {
    let scratch = Scratch::new("cli");
    let (made, path) = (scratch.join("made"), scratch.join("made/here"));
    let profile = scratch.join("profile");
    let program = b"[program]\ncommand = [\"true\"]\nlocal = \"50%\"\n[network]\n";
    let program = file(&scratch, "loop.toml", program, 0o644);
    let small = ["sim", "--topology=single-switch", "--hosts=4", "--flows=20", "--sizes=4KiB"];
    let twice = ["--json", "-", "--csv", "-"];
    for words in [
        [&small[..], &["--delay-profile", text(&profile)]].concat(),
        [&["reproduce", "dime-fig3"], &twice[..]].concat(),
        [&["loop", text(&program)], &twice[..]].concat(),
    ] {
        let output = afar([&words[..], &["-o", text(&path)]].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        assert!(!made.exists(), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn help_is_asked_for_in_two_ways() {
    let [one, other] = [&["help", "plan", "cost"][..], &["plan", "cost", "--help"]].map(afar);
    assert_eq!(one.status.code(), Some(0), "{}", stderr(&one));
    assert_eq!(stdout(&one), stdout(&other));
    assert!(stdout(&afar(["help"])).contains("Commands:"));
}

#[test]
fn a_target_that_cannot_be_makes_no_file() {
    let scratch = Scratch::new("cli");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (path, huge) = (scratch.join("disk.img"), scratch.join("huge.img"));
    let disk = |path: &std::path::Path, size| format!("disk=file:{}?size={size}", text(path));
    let output = afar(["serve", "--nvme", &address, &disk(&path, "4MiB")]);
    assert_eq!(output.status.code(), Some(1));
    one_sentence(&stderr(&output), "ss -ltnp names it");
    let output = afar(["serve", "--nvme", "127.0.0.1:0", &disk(&huge, "8000000TiB")]);
    assert!(!output.status.success());
    assert!(!path.exists() && !huge.exists(), "{}", stderr(&output));
}

#[test]
fn programs_that_cannot_be_managed() {
    let scratch = Scratch::new("cli");
    // An ELF header for another processor.
    let mut image = [0_u8; 64];
    image[..6].copy_from_slice(b"\x7fELF\x02\x01");
    image[18] = 183;
    let path = file(&scratch, "aarch64", &image, 0o755);
    let output = afar(["run", text(&path)]);
    assert_eq!(output.status.code(), Some(2));
    one_sentence(&stderr(&output), "it is not for a 64-bit x86 processor");
    // Found through a script as well.
    let script = format!("#!{}\n", path.display());
    let output = afar(["run", text(&file(&scratch, "script", script.as_bytes(), 0o755))]);
    assert_eq!(output.status.code(), Some(2));
}

fn refused(flags: &[&str], wanted: &str) {
    let scratch = Scratch::new("cli");
    let marker = scratch.join("started");
    let words = ["run"].iter().chain(flags);
    let output = afar(words.chain(&["--", "touch", text(&marker)]));
    if output.status.code() == Some(3) {
        // Files are opened last, and this machine has no trap.
        return crate::skip("bad_input", &stderr(&output));
    }
    assert_eq!(output.status.code(), Some(2), "{flags:?}: {}", stderr(&output));
    one_sentence(&stderr(&output), wanted);
    assert_eq!(stdout(&output), "", "{flags:?}");
    assert!(!marker.exists(), "{flags:?}");
}

/// One line, begun with the command's name, not several sentences.
fn one_sentence(stderr: &str, wanted: &str) {
    assert!(stderr.contains(wanted), "wanted {wanted}, got {stderr}");
    assert_eq!(stderr.matches('\n').count(), 1, "{stderr}");
    assert!(stderr.starts_with("afar") && stderr.ends_with('\n'), "{stderr}");
    // Abbreviations, and what names of hosts and targets begin with.
    let told = ["e.g. ", "nqn. ", "eui. ", "naa. "]
        .iter()
        .fold(stderr.to_owned(), |a, b| a.replace(b, ""));
    assert!(!told.contains(". "), "{stderr}");
}
