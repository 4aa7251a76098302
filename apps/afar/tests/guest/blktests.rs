//! The group `nvme` of blktests, and what nvme-cli asks a controller.
//!
//! `AFAR_BLKTESTS` names a checkout of blktests whose `src` is built; a608cb5 is known to work. It
//! has a way to test a target that is not the kernel's: `NVME_TARGET_CONTROL` names a command that
//! sets one up. Ours stands already, with every subsystem that its tests name.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{full, progress, skip};
use crate::uml::{Guest, Network};
use crate::{LEAVE, connect};

const UUID: &str = "91fdba0d-f87b-4c25-b80f-db7be1418b9e";
/// The tests that need no target of the kernel's, no authentication and no TLS.
const TESTS: [&str; 21] = [
    "003", "004", "005", "008", "010", "012", "014", "018", "019", "021", "022", "023", "025",
    "026", "027", "028", "029", "031", "040", "047", "054",
];
/// nvme-cli wants large pages for it, and User-Mode Linux has none.
const WITH_LARGE_PAGES: &str = "029";

/// Answers as the command that sets a target up.
const CONTROL: &str = r#"
cat > /tmp/control <<CONTROL
#!/bin/bash
case "\$2" in
  --show-blkdev-type) echo device ;;
  --show-trtype) echo tcp ;;
  --show-hostnqn) cat /etc/nvme/hostnqn ;;
  --show-hostid) cat /etc/nvme/hostid ;;
  --show-traddr) echo $HOST ;;
  --show-trsvid) echo 4420 ;;
  --show-subsys-uuid) echo $uuid ;;
  --show-subsysnqn) echo blktests-subsystem-1 ;;
esac
CONTROL
chmod +x /tmp/control
"#;

/// Runs these tests; 054 looks at the configuration of the kernel's target before it begins.
fn script(tests: &[&str], size: &str) -> String {
    let names: Vec<String> = tests.iter().map(|test| format!("nvme/{test}")).collect();
    format!(
        "uuid={UUID}\n{CONTROL}modprobe -q nvme-tcp\n\
         cp -r /run-guest/io/blktests /tmp/blktests; cd /tmp/blktests\n\
         sed -i 's/if \\[\\[ -f \"${{ns_path}}.*/if true ; then/' tests/nvme/054\n\
         export NVME_TARGET_CONTROL=/tmp/control NVMET_TRTYPES=tcp NVME_IMG_SIZE={size}\n\
         ./check {} 2>&1 | cat\nfor one in $(find results -name '*.out.bad'); do echo $one; \
         cat $one; done\n",
        names.join(" ")
    )
}

/// The tests that a guest says have passed.
fn passed(output: &str) -> Vec<String> {
    let lines = output.lines().filter(|line| line.contains("[passed]"));
    lines.filter_map(|line| Some(line.trim().strip_prefix("nvme/")?.get(..3)?.to_owned())).collect()
}

fn copied(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} is copied", from.display());
    let _absent = std::fs::remove_dir_all(to.join(".git"));
}

#[test]
fn blktests_pass() {
    let Some(suite) = std::env::var_os("AFAR_BLKTESTS").map(PathBuf::from) else {
        return skip("guest::blktests", "AFAR_BLKTESTS names no checkout of blktests");
    };
    let Some(network) = Network::new("guest::blktests") else { return };
    let file = network.file("blktests.toml");
    let mut text = "nvme = [\"0.0.0.0:4420\"]\n".to_owned();
    for number in 0..10 {
        let uuid = if number == 1 { format!(", uuid = \"{UUID}\"") } else { String::new() };
        text += &format!(
            "[[subsystem]]\nnqn = \"blktests-subsystem-{number}\"\n\
             namespaces = [{{ id = 1, uri = \"memory:1GiB\"{uuid} }}]\n"
        );
    }
    std::fs::write(file.path(), text).expect("it can be written to");
    let target = network.serve_as(&file.path().display().to_string(), &[]);
    let [size, tests] = if full() { ["384M", ""] } else { ["32M", "003 004 019 023 054"] };
    let wanted = |test: &&str| tests.is_empty() || tests.contains(*test);
    let here: Vec<&str> =
        TESTS.into_iter().filter(wanted).filter(|test| *test != WITH_LARGE_PAGES).collect();
    let lay = |directory: &Path| copied(&suite, &directory.join("blktests"));
    let output = Guest::boot_with(&network, &script(&here, size), "", lay).wait();
    let mut have = passed(&output);
    assert_eq!(have, here, "{output}");
    if full() && network.emulates("guest::blktests") {
        let script = format!("echo 64 > /proc/sys/vm/nr_hugepages\n{}", script(&["029"], size));
        let output = Guest::emulate(&network, &script, 2, lay).wait();
        assert_eq!(passed(&output), ["029"], "{output}");
        have.push("029".to_owned());
    }
    progress(&format!("guest: {} tests of blktests pass: {}\n", have.len(), have.join(" ")));
    network.stop(target);
}

// What an operator asks a controller by hand: which pages and features there are, and who reserves.
#[test]
fn nvme_cli_is_answered() {
    let Some(network) = Network::new("guest::nvme_cli") else { return };
    let disk = network.disk("nvme-cli", 64 << 20);
    let target = network.serve(&disk);
    let asked = [
        "id-ctrl /dev/nvme0",
        "id-ns $d",
        "ns-descs $d",
        "list-ns /dev/nvme0",
        "cmdset-ind-id-ns $d",
        "show-regs /dev/nvme0",
        "smart-log /dev/nvme0",
        "error-log /dev/nvme0",
        "effects-log /dev/nvme0",
        "fw-log /dev/nvme0",
        "supported-log-pages /dev/nvme0",
        "fid-support-effects-log /dev/nvme0",
        "resv-report $d -n 1 -e",
        "get-feature /dev/nvme0 -f 7",
        "get-feature $d -n 1 -f 0x83",
        "verify $d -s 0 -c 7",
        "flush $d -n 1",
        "write-zeroes $d -s 0 -c 7",
        "dsm $d -d -s 0 -b 8",
    ];
    let mut script = connect("");
    for words in asked {
        let name = words.split(' ').next().unwrap_or_default();
        script += &format!(
            "nvme {words} > /tmp/{name} 2>&1 && echo 'answered {words}' || cat /tmp/{name}\n"
        );
    }
    script += "cat /tmp/supported-log-pages /tmp/fid-support-effects-log\n";
    script += LEAVE;
    let output = Guest::boot(&network, &script).wait();
    for words in asked {
        let line = format!("answered {words}");
        assert!(output.lines().any(|one| one == line), "no {line:?}:\n{output}");
    }
    for page in ["LID 0 ", "LID 0x2 ", "LID 0x5 ", "LID 0x12 ", "FID 07 ", "FID 83 "] {
        assert!(output.lines().any(|line| line.starts_with(page)), "no {page:?}:\n{output}");
    }
    network.stop(target);
}
