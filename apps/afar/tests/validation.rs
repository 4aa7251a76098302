//! An emulated run held against one whose pages are far for real: they agree where the delay is
//! what it is said to be, and do not where it is not. Pages take 200 µs, so that what a program
//! takes is what its fetches take.

mod support;

use results::{Agreement, Validation};
use support::{Launch, program, scratch, usable};

const BLADE: &str = "memory:64MiB?delay=200us";

// One test, since other work on the machine disturbs it: then medians are all that is asked for.
#[test]
fn an_emulation_agrees_with_what_happens_and_a_wrong_one_does_not() {
    if !usable("userfaultfd", "validation") {
        return;
    }
    for (mode, flags) in [("write", &["--ablate", "scaled"][..]), ("read", &[])] {
        let record = validated(mode, flags, 0);
        for one in &record.emulated {
            let median = one.ratio.median;
            match one.name.as_str() {
                "plain" => assert!((0.9..1.1).contains(&median), "{mode}: {record:#?}"),
                _ => assert!(median > 1.12, "{mode}: {record:#?}"),
            }
            assert!((one.fetch_ratio - 1.0).abs() < 0.02, "{mode}: {record:#?}");
            assert!((one.moved_ratio - 1.0).abs() < 0.02, "{mode}: {record:#?}");
        }
        let real = record.real.as_ref().expect("it ran");
        assert!(real.fetch_count >= 2048.0, "{mode}: {record:#?}");
        assert!(real.slowdown.median > 1.3, "{mode}: {record:#?}");
        assert_eq!(real.wait, "sleep");
    }
    let wrong = scratch("wrong-profile.csv");
    std::fs::write(&wrong, "4096,500\n").expect("room");
    let wrong = wrong.to_str().expect("paths here are text");
    let record = validated("read", &["--profile", wrong], 5);
    assert!(record.emulated[0].ratio.median > 1.2, "{record:#?}");
}

// The record of a validation, which ends so, or undecided where the machine was disturbed.
fn validated(mode: &str, flags: &[&str], status: i32) -> Validation {
    let json = scratch("validation.json");
    let path = json.to_str().expect("paths here are text");
    let own = ["run", "--validate", BLADE, "--local", "2MiB", "--trap", "userfaultfd"];
    let rest = ["--repetitions", "5", "--json", path];
    let program = program("rewrites").into_os_string();
    let words: Vec<std::ffi::OsString> = [env!("CARGO_BIN_EXE_afar").into()]
        .into_iter()
        .chain(own.iter().chain(&rest).chain(flags).map(Into::into))
        .chain(["--".into(), program, mode.into(), "1".into()])
        .collect();
    let ended = Launch::new(words).run();
    let is_disturbed = ended.status == 6;
    let ended = ended.expect(if is_disturbed { 6 } else { status }, mode);
    support::progress(&format!("{mode}: {}", ended.stderr.lines().last().unwrap_or_default()));
    ended.leaves_nothing(mode);
    let text = std::fs::read_to_string(&json).expect("it was written");
    let record: Validation = results::read(&text).expect("a record is a record");
    for one in &record.emulated {
        let wanted = match (one.name.as_str(), status) {
            ("plain", 0) => Agreement::Agrees,
            _ => Agreement::Differs,
        };
        let is_open = matches!(one.agreement, Agreement::Undecided | Agreement::Disturbed);
        assert!(is_open || one.agreement == wanted, "{mode}: {record:#?}");
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
