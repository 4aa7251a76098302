//! Builds the parts of the engine that do not run in this process: the BPF program of the trap, and
//! the shared object that is loaded into the program.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo::rerun-if-changed=bpf");
    build_bpf("fault", &out);
    build_preload(&out.join("libafar.so"));
}

fn build_bpf(name: &str, out: &Path) {
    let machine = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the architecture");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let mut command = Command::new(clang);
    command
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c"])
        .arg(format!("bpf/{name}.bpf.c"))
        .arg("-o")
        .arg(out.join(format!("{name}.bpf.o")))
        // Where Debian and its descendants keep <asm/types.h>.
        .arg(format!("-I/usr/include/{machine}-linux-gnu"));
    run(&mut command, "compile a BPF program; clang and libbpf-dev are needed");
}

// Compiles crate `farmem-preload` to the shared object that is placed in the program.
fn build_preload(object: &Path) {
    let source = Path::new("../farmem-preload/src");
    println!("cargo::rerun-if-changed={}", source.display());
    let mut command = Command::new(env::var_os("RUSTC").expect("cargo sets RUSTC"));
    command
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "afar"])
        .args(["--cfg", "afar_shared_object", "-C", "opt-level=2", "-C", "panic=abort"])
        // afar copies the object into the program without a loader, and enters it at `afar_enter`.
        .args([
            "-C",
            "link-args=-nostdlib -nostartfiles -Wl,-z,now -Wl,-Bsymbolic -Wl,-e,afar_enter",
        ])
        .arg("-o")
        .arg(object)
        .arg(source.join("lib.rs"));
    run(&mut command, "compile the part that runs inside the program");
}

fn run(command: &mut Command, purpose: &str) {
    match command.status() {
        Ok(status) if status.success() => {}
        outcome => panic!("{purpose}: {command:?}: {outcome:?}"),
    }
}
