//! Placing parts of a program's memory in tiers, from Rust and from C.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{AFAR, Scratch, run, skip, stderr, stdout, text};

#[test]
fn tiers_have_latencies_of_their_own() {
    let flags = ["-q", "--local", "2MiB", "--policy", "fifo"];
    let tier = ["--tier", "name=slow,rtt=200us,local=2MiB"];
    let probe = ["--", AFAR, "probe", "--touches=500", "--tiers=slow,far"];
    let words = flags.iter().chain(&tier).chain(&probe);
    let Some(output) = run("tiers_have_latencies_of_their_own", words) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let probed: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let median_ns = |tier: usize| probed[tier]["p50_ns"].as_u64().unwrap();
    assert!(median_ns(0) >= 200_000, "slow: {} ns", median_ns(0));
    assert!(median_ns(1) < 200_000, "far: {} ns", median_ns(1));
}

#[test]
fn a_tier_that_is_not_there_is_told() {
    let words = ["-q", "--", AFAR, "probe", "--tiers=slow"];
    let Some(output) = run("a_tier_that_is_not_there_is_told", words) else {
        return;
    };
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is no tier \"slow\" here"), "{}", stderr(&output));
}

#[test]
fn the_c_header_places_under_afar_and_does_nothing_without() {
    let test = "the_c_header";
    let scratch = Scratch::new("cli");
    let source = scratch.file("place.c", PROGRAM.as_bytes());
    let program = scratch.join("place");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", text(&include)]);
    let Ok(compiled) = cc.args(["-o", text(&program), text(&source)]).status() else {
        return skip(test, "no C compiler");
    };
    assert!(compiled.success());
    let alone = Command::new(&program).output().unwrap();
    assert_eq!(stdout(&alone), "heap -1 EINVAL\nunknown -1 EINVAL\nlong -1 EINVAL\n");
    let flags = ["-q", "--local", "8MiB", "--tier", "name=slow,rtt=20us", "--", text(&program)];
    let Some(under) = run(test, flags) else {
        return;
    };
    assert_eq!(stdout(&under), "heap 0 ok\nunknown -1 EINVAL\nlong -1 EINVAL\n");
}

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include "afar.h"

static void place(const char *what, void *memory, const char *tier)
{
    int result;

    errno = 0;
    result = afar_place(memory, 1 << 20, tier);
    printf("%s %d %s\n", what, result, errno == EINVAL ? "EINVAL" : errno ? "other" : "ok");
}

int main(void)
{
    void *memory = malloc(1 << 20);

    place("heap", memory, "slow");
    place("unknown", memory, "nowhere");
    place("long", memory, "nine-byte");
    free(memory);
    return 0;
}
"#;
