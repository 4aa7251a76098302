//! Builds the BPF program of the delay. The link that it reads is that of `farmem`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const LINK: &str = "../farmem/bpf";

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let machine = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the architecture");
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed={LINK}");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let mut command = Command::new(clang);
    command
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c"])
        .arg("bpf/swap.bpf.c")
        .arg("-o")
        .arg(out.join("swap.bpf.o"))
        .arg(format!("-I{LINK}"))
        // Where Debian and its descendants keep <asm/types.h>.
        .arg(format!("-I/usr/include/{machine}-linux-gnu"));
    match command.status() {
        Ok(status) if status.success() => {}
        outcome => panic!(
            "compile a BPF program; clang and libbpf-dev are needed: {command:?}: {outcome:?}"
        ),
    }
}
