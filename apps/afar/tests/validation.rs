//! An emulated run held against one whose pages are far for real. Pages take 200 µs, so that what
//! a program takes is what its fetches take.

mod support;

use results::{Agreement, ValidatedSide, Validation};
use support::{Launch, program, scratch, usable};

const BLADE: &str = "memory:64MiB?delay=200us";

// What holds however long anything takes: no fetch is shorter than its profile says, the program
// waits for each of them, both sides fetch and move the same, and the status is the verdict's.
// Within a quarter is what a loaded machine leaves of an agreement; that of a twentieth is a
// claim, `validation`.
#[test]
fn an_emulation_waits_as_its_profile_says_and_ends_as_its_verdict_says() {
    if !usable("userfaultfd", "validation") {
        return;
    }
    for (mode, flags) in [("write", &["--ablate", "scaled"][..]), ("read", &[])] {
        let record = validated(mode, flags);
        let real = record.real.as_ref().expect("it ran");
        assert!(real.fetch_count >= 2048.0, "{mode}: {record:#?}");
        assert_eq!(real.wait, "sleep");
        let measured = record.profile.expect("it was measured");
        assert!(measured.p50_us >= 200.0 && real.fetch.p50_us >= 200.0, "{mode}: {record:#?}");
        let plain = record.emulated[0].agreement;
        assert!(!matches!(plain, Agreement::Differs | Agreement::Counts), "{mode}: {record:#?}");
        for one in &record.emulated {
            let times = if one.name == "scaled" { 1.25 } else { 1.0 };
            waits_for(&one.side, times * measured.p50_us, times * measured.mean_us);
            assert!((one.fetch_ratio - 1.0).abs() < 0.02, "{mode}: {record:#?}");
            assert!((one.moved_ratio - 1.0).abs() < 0.02, "{mode}: {record:#?}");
        }
    }
    let wrong = scratch("wrong-profile.csv");
    std::fs::write(&wrong, "4096,500\n").expect("room");
    let wrong = wrong.to_str().expect("paths here are text");
    let record = validated("read", &["--profile", wrong]);
    waits_for(&record.emulated[0].side, 500.0, 500.0);
    assert_ne!(record.emulated[0].agreement, Agreement::Agrees, "{record:#?}");
}

// A twentieth is for the ends of a fault, which calibration takes off, and for chance in a sample.
fn waits_for(side: &ValidatedSide, p50_us: f64, mean_us: f64) {
    assert!(side.fetch.p50_us >= 0.95 * p50_us, "{p50_us} µs: {side:#?}");
    let least = 0.95 * side.fetch_count * mean_us / 1e6;
    assert!(side.seconds.median >= least, "{mean_us} µs: {side:#?}");
}

// The record of a validation, which ended as its verdict says.
fn validated(mode: &str, flags: &[&str]) -> Validation {
    let json = scratch("validation.json");
    let path = json.to_str().expect("paths here are text");
    let own = ["run", "--validate", BLADE, "--local", "2MiB", "--trap", "userfaultfd"];
    let rest = ["--within", "25%", "--repetitions", "5", "--json", path];
    let program = program("rewrites").into_os_string();
    let words: Vec<std::ffi::OsString> = [env!("CARGO_BIN_EXE_afar").into()]
        .into_iter()
        .chain(own.iter().chain(&rest).chain(flags).map(Into::into))
        .chain(["--".into(), program, mode.into(), "1".into()])
        .collect();
    let ended = Launch::new(words).run();
    let text = std::fs::read_to_string(&json).unwrap_or_default();
    let record: Validation = results::read(&text)
        .unwrap_or_else(|error| panic!("{mode}: no record, {error}: {}", ended.stderr));
    let plain = &record.emulated[0];
    let status = match plain.agreement {
        Agreement::Agrees => 0,
        Agreement::Differs | Agreement::Counts => 5,
        Agreement::Undecided | Agreement::Insensitive | Agreement::Disturbed => 6,
    };
    let ended = ended.expect(status, mode);
    support::progress(&format!("{mode}: {}", ended.stderr.lines().last().unwrap_or_default()));
    ended.leaves_nothing(mode);
    let slowdown = record.real.as_ref().map_or(0.0, |real| real.slowdown.median);
    for one in &record.emulated {
        let counts = [one.fetch_ratio, one.moved_ratio];
        let of = Agreement::of(&one.ratio, record.within, counts, record.counts_within);
        let is_disturbed = one.agreement == Agreement::Disturbed;
        let is_so = one.agreement == of.with_slowdown(slowdown);
        assert!(is_disturbed || is_so, "{mode}: {record:#?}");
    }
    record
}

#[test]
fn bad_input_is_one_sentence() {
    let afar = env!("CARGO_BIN_EXE_afar");
    let cases: [(&[&str], &str); 4] = [
        (&["--validate", "memory:64MiB", "--rtt", "5us"], "--rtt"),
        (&["--ablate", "mean"], "--validate"),
        (&["--validate", "memory:64MiB?speed=2"], "its setting is no delay"),
        (&["--validate", "memory:64MiB", "--repetitions", "0"], "0"),
    ];
    for (flags, sentence) in cases {
        let words = ["run"].iter().chain(flags).chain(&["--", "/bin/true"]);
        let ended = Launch::new([&afar].into_iter().chain(words)).run();
        let ended = ended.expect(2, &format!("{flags:?}"));
        assert!(ended.stderr.contains(sentence), "{flags:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{flags:?}: {}", ended.stderr);
    }
    // Nothing is concluded from a run that is invalid, and the record says why.
    let json = scratch("validation-invalid.json");
    let path = json.to_str().expect("paths here are text");
    let words = ["run", "--validate", "memory:64MiB", "--json", path, "--", "/bin/true"];
    let ended = Launch::new([afar].into_iter().chain(words)).run().expect(4, "invalid");
    assert!(ended.stderr.contains("the real run: invalid: "), "{}", ended.stderr);
    let text = std::fs::read_to_string(&json).expect("it was written");
    let record: Validation = results::read(&text).expect("a record is a record");
    assert!(record.invalid.is_some_and(|why| why.contains("invalid: ")) && record.real.is_none());
    // A program's own status is its own, and what afar run refuses is told as that.
    let words =
        ["run", "--validate", "memory:64MiB", "--supervisor-cpu", "8000", "--", "/bin/true"];
    let ended = Launch::new([afar].into_iter().chain(words)).run().expect(2, "refused");
    assert!(ended.stderr.contains("may not use that processor"), "{}", ended.stderr);
}
