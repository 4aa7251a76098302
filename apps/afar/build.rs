//! Has the linker keep one copy of functions that are the same: 2 % of the binary; and tells the
//! program how it is built.

use std::process::Command;

/// Set where Zig is the linker, which does not know the flag; scripts/wheel builds so.
const ZIG: &str = "CARGO_ZIGBUILD_TARGET";

fn main() {
    // Where Rust's own linker is the default one; GNU ld does not know the flag.
    let rust = std::env::var("TARGET").as_deref() == Ok("x86_64-unknown-linux-gnu");
    if rust && std::env::var_os(ZIG).is_none() {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    println!("cargo::rustc-env=AFAR_TARGET={}", of("TARGET"));
    println!("cargo::rustc-env=AFAR_OPT_LEVEL={}", of("OPT_LEVEL"));
    println!("cargo::rustc-env=AFAR_COMPILER={}", compiler(&of("RUSTC")));
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={ZIG}");
}

// Its name and version, without the commit and the day.
fn compiler(path: &str) -> String {
    let said = Command::new(path).arg("--version").output().map(|output| output.stdout);
    let said = String::from_utf8(said.unwrap_or_default()).unwrap_or_default();
    said.split(" (").next().unwrap_or("rustc").trim().to_owned()
}
