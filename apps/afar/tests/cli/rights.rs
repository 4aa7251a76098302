//! Capabilities: the set that README names is enough, and what is missing from it is named.

use std::process::{Command, Output};

use serde_json::Value;

use crate::{AFAR, Scratch, file, is_root, skip, stderr, stdout, text};

/// What README says the bpf trap needs.
const BPF: [&str; 4] = ["bpf", "perfmon", "sys_nice", "sys_ptrace"];
/// And the userfaultfd trap, without access to its device.
const USERFAULTFD: [&str; 1] = ["sys_ptrace"];
const NOBODY: u32 = 65534;

/// Runs afar as `group`'s nobody, with these capabilities and no others.
fn afar_with(group: u32, capabilities: &[&str], arguments: &[&str]) -> Output {
    let set: String = capabilities.iter().map(|name| format!(",+{name}")).collect();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &NOBODY.to_string(), "--regid", &group.to_string()]);
    command.arg("--clear-groups");
    for kind in ["inh-caps", "ambient-caps", "bounding-set"] {
        command.arg(format!("--{kind}=-all{set}"));
    }
    command.args(["timeout", "-s", "KILL", "100", AFAR]).args(arguments);
    command.output().expect("setpriv(1) is part of util-linux")
}

/// Whether somebody without rights can be made; tells if not.
fn can_drop(test: &str) -> bool {
    if !is_root(test) {
        return false;
    }
    let output = afar_with(NOBODY, &[], &["--version"]);
    if !output.status.success() {
        skip(test, "nobody cannot execute afar where it was built");
    }
    output.status.success()
}

/// Runs a program by `trap` and checks that its fetches were seen and its delay was met.
fn assert_runs(test: &str, (group, capabilities): (u32, &[&str]), (trap, rtt_us): (&str, i64)) {
    let scratch = Scratch::new("cli");
    let json = file(&scratch, "run.json", b"", 0o666);
    let rtt = format!("{rtt_us}us");
    let output = afar_with(
        group,
        capabilities,
        &[
            "run",
            "-q",
            "--trap",
            trap,
            "--local",
            "25%",
            "--rtt",
            &rtt,
            "--json",
            text(&json),
            "--",
            AFAR,
            "workload",
            "wordcount",
            "--size",
            "4MiB",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{test}: {}", stderr(&output));
    let record: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let results = &record["results"];
    let fetches = results["faults"]["fetch_count"].as_u64().unwrap();
    assert!(fetches > 500, "{test}: three quarters of the memory are remote: {results}");
    let calibration = &results["calibration"];
    assert!(calibration["floor_ns"].as_u64().unwrap() >= 100, "{test}: {calibration}");
    let error_ns = calibration["median_error_ns"].as_i64().unwrap();
    assert!(error_ns.abs() <= rtt_us * 1000 / 2, "{test}: {calibration}");
}

#[test]
fn the_named_capabilities_are_enough() {
    if !can_drop("the_named_capabilities_are_enough") {
        return;
    }
    assert_runs("bpf", (NOBODY, &BPF), ("bpf", 50));
    assert_runs("userfaultfd", (NOBODY, &USERFAULTFD), ("userfaultfd", 400));
}

#[test]
fn readme_names_them() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let wanted: Vec<String> =
        BPF.iter().map(|name| format!("`CAP_{}`", name.to_uppercase())).collect();
    let [first, second, third, fourth] = wanted.as_slice() else { unreachable!() };
    let sentence = format!("{first}, {second}, {third} and {fourth}");
    let flat = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&sentence), "README: {sentence}");
    assert!(!flat.contains("CAP_SYS_ADMIN"), "README asks for no more than that");
}

#[test]
fn a_missing_capability_is_named_by_doctor_and_run_alike() {
    if !can_drop("a_missing_capability_is_named_by_doctor_and_run_alike") {
        return;
    }
    let cases = BPF.map(|missing| ("bpf", BPF.as_slice(), missing));
    for (trap, set, missing) in
        cases.into_iter().chain([("userfaultfd", &USERFAULTFD[..], USERFAULTFD[0])])
    {
        let rest: Vec<&str> = set.iter().copied().filter(|name| *name != missing).collect();
        let name = format!("CAP_{}", missing.to_uppercase());
        let output = afar_with(NOBODY, &rest, &["run", "--trap", trap, "--", "true"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{trap} without {name}: {said}");
        assert!(said.contains(&format!("no {name}")), "{trap} without {name}: {said}");
        let doctor = afar_with(NOBODY, &rest, &["doctor", "--json", "-"]);
        let report: Value = serde_json::from_str(&stdout(&doctor)).unwrap();
        let checks = report["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == format!("trap {trap}")).unwrap();
        assert_eq!(check["state"], "no", "{trap} without {name}");
        let found = check["found"].as_str().unwrap();
        let remedy = check["remedy"].as_str().unwrap();
        assert!(said.contains(&format!("{found}; {remedy}")), "{trap}: {said} / {check}");
    }
}

#[test]
fn root_without_a_capability_is_not_told_to_be_root() {
    if !is_root("root_without_a_capability") {
        return;
    }
    let mut command = Command::new("setpriv");
    // The second implies the first.
    command.args(["--bounding-set=-bpf,-sys_admin", "timeout", "100", AFAR, "doctor"]);
    let said = stdout(&command.output().expect("setpriv(1) is part of util-linux"));
    let about_bpf = said.split("\ntrap bpf ").nth(1).expect("a line about it");
    assert!(about_bpf.trim_start().starts_with("no  no CAP_BPF: "), "{said}");
    assert!(!said.contains("as root") && !said.contains("sudo afar"), "{said}");
    assert!(said.contains("--cap-add BPF"), "{said}");
}

#[test]
fn in_a_pid_namespace_faults_are_seen() {
    if !is_root("in_a_pid_namespace") {
        return;
    }
    let scratch = Scratch::new("cli");
    let json = scratch.join("run.json");
    let mut command = Command::new("unshare");
    command.args(["-p", "-f", "--mount-proc", "timeout", "100", AFAR, "run", "-q"]);
    command.args(["--trap", "bpf", "--local", "25%", "--rtt", "50us", "--json", text(&json)]);
    command.args(["--", AFAR, "workload", "wordcount", "--size", "4MiB"]);
    let output = command.output().expect("unshare(1) is part of util-linux");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let record: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert!(record["results"]["faults"]["fetch_count"].as_u64().unwrap() > 500, "{record}");
}

/// Gives the device back as it was.
struct Device(std::fs::Metadata);
const DEVICE: &str = "/dev/userfaultfd";

impl Drop for Device {
    fn drop(&mut self) {
        use std::os::unix::fs::{MetadataExt, chown};
        let _first = std::fs::set_permissions(DEVICE, self.0.permissions());
        let _second = chown(DEVICE, Some(self.0.uid()), Some(self.0.gid()));
    }
}

#[test]
fn the_remedy_for_userfaultfd_works() {
    // Not the group of other tests, which are to be refused.
    const GROUP: u32 = 64_999;
    if !can_drop("the_remedy_for_userfaultfd_works") {
        return;
    }
    let Ok(was) = std::fs::metadata(DEVICE) else {
        return skip("the_remedy_for_userfaultfd_works", "no /dev/userfaultfd");
    };
    let refused = afar_with(GROUP, &[], &["run", "--", "true"]);
    let said = stderr(&refused);
    let (_, remedy) = said.trim_end().split_once("grant access with: ").expect("a remedy");
    let _as_it_was = Device(was);
    // As root, for the group of whoever was refused.
    let remedy = remedy.replace("sudo ", "").replace("$(id -g)", &GROUP.to_string());
    let done = Command::new("sh").args(["-c", &remedy]).status().unwrap();
    assert!(done.success(), "{remedy}");
    assert_runs("remedy", (GROUP, &[]), ("userfaultfd", 400));
}
