//! Has the linker keep one copy of functions that are the same: 2 % of the binary.

/// Set where Zig is the linker, which does not know the flag; scripts/wheel builds so.
const ZIG: &str = "CARGO_ZIGBUILD_TARGET";

fn main() {
    // Where Rust's own linker is the default one; GNU ld does not know the flag.
    let rust = std::env::var("TARGET").as_deref() == Ok("x86_64-unknown-linux-gnu");
    if rust && std::env::var_os(ZIG).is_none() {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={ZIG}");
}
