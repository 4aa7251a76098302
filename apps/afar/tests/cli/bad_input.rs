//! Bad input: one sentence that names a remedy, exit status 2, nothing started.

use crate::{Scratch, afar, file, stderr, stdout, text};

/// (flags, what the sentence must say)
#[rustfmt::skip] // one row, one line
const CASES: [(&[&str], &str); 48] = [
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
    (&["--rtt", "5us", "--one-way", "2us"], "'--rtt <TIME>' cannot be used with '--one-way"),
    (&["--rtt", "5us", "--profile", "/dev/null"], "cannot be used with '--profile <FILE>'"),
    (&["--one-way", "5us", "--profile", "/dev/null"], "cannot be used with '--profile <FILE>'"),
    (&["--rtt", "5us", "--rtt", "6us"], "'--rtt <TIME>' cannot be used multiple times"),
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
    (&["--allow-below-floor", "--no-calibrate"], "cannot be used with"),
    (&["--calibrated", "/no/such/file"], "read the record /no/such/file: No such file"),
    (&["--calibrated", "/dev/null"], "/dev/null: it is no JSON, so it is no record \"afar.run/2\""),
    (&["--json", "/no/such/directory/x"], "open /no/such/directory/x for writing: No such file"),
    (&["--record", "/"], "open / for writing: Is a directory"),
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
    let cases: [(&[&str], &str); 7] = [
        (&[], "afar: no command given; see afar --help"),
        (&["rum"], "afar: unrecognized subcommand 'rum'; a similar subcommand exists: 'run'"),
        (&["run"], "afar run: <PROGRAM> is missing; see afar run --help"),
        (&["run", "--"], "afar run: <PROGRAM> is missing; see afar run --help"),
        (&["run", "--lokal", "25%", "true"], "a similar argument exists: '--local'"),
        (&["run", "--local"], "--local: its value is missing"),
        (&["doctor", "now"], "unexpected argument 'now' found"),
    ];
    for (arguments, wanted) in cases {
        let output = afar(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        one_sentence(&stderr(&output), wanted);
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
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
    assert!(!stderr.replace("e.g. ", "").contains(". "), "{stderr}");
}
