//! A real Linux host, in User-Mode Linux, uses what `afar serve` serves.
//!
//! `AFAR_GUEST_DIR` names a directory with `linux-uml`, a User-Mode Linux 6.12 with nvme-tcp, and
//! `root.ext4`, a root file system with nvme-cli, fio, e2fsprogs and xfsprogs. Its init runs the
//! script `cmd.sh` of a host directory and writes its output to `out` there and its status to
//! `status`. With `vmlinuz` and `initrd.cpio` there, and QEMU, a machine of several processors is
//! emulated, too.

mod blktests;
mod durable;
mod iscsi;
mod paths;
#[path = "../support/mod.rs"]
mod support;
mod uml;

use std::time::Duration;

use support::progress;
use uml::{Guest, Network};

const NQN: &str = "nqn.2026-11.local.afar:disk";

/// Connects the one subsystem; the disk is /dev/nvme0n1 then.
fn connect(flags: &str) -> String {
    format!(
        "set -e\nnvme connect -t tcp -a $HOST -s 4420 -n {NQN} {flags}\n\
         for i in $(seq 50); do [ -b /dev/nvme0n1 ] && break; sleep 0.1; done\n\
         d=/dev/nvme0n1\n"
    )
}

const LEAVE: &str = "nvme disconnect-all 2>/dev/null\n";

/// Seconds of fio under verification.
fn seconds() -> u32 {
    if support::full() { 60 } else { 5 }
}

fn verified(name: &str, more: &str) -> String {
    format!(
        "fio --name={name} --filename=$d --rw=randrw --bsrange=4k-1M --size=48M --iodepth=16 \
         --ioengine=io_uring --direct=1 --verify=crc32c --verify_fatal=1 --time_based \
         --runtime={} {more} --minimal > /dev/null && echo {name} verified\n",
        seconds()
    )
}

#[test]
fn linux_finds_mounts_and_checks_file_systems() {
    let Some(network) = Network::new("guest::file_systems") else { return };
    let disk = network.disk("file-systems", 512 << 20);
    let target = network.serve(&disk);
    let script = format!(
        "nvme discover -t tcp -a $HOST -s 4420 | grep -q 'subnqn:  {NQN}' && echo discovered\n\
         {}{}\
         mkfs.ext4 -q $d; mount $d /mnt; cp -r /etc /mnt/etc; sync; \
         (cd /; find etc -type f -exec sha256sum {{}} +) > /tmp/sums\n\
         umount /mnt; mount $d /mnt; (cd /mnt; sha256sum --quiet -c /tmp/sums) && echo ext4 same\n\
         fstrim /mnt && echo trimmed; umount /mnt\n\
         fsck.ext4 -fn $d > /dev/null && echo ext4 clean\n\
         mkfs.xfs -q -f $d; mount $d /mnt; cp -r /etc /mnt/etc; umount /mnt; mount $d /mnt\n\
         (cd /mnt; sha256sum --quiet -c /tmp/sums) && echo xfs same\n\
         umount /mnt; xfs_repair -n $d > /dev/null 2>&1 && echo xfs clean\n{LEAVE}",
        connect(""),
        verified("plain", "")
    );
    let output = Guest::boot(&network, &script).wait();
    for said in [
        "discovered",
        "plain verified",
        "ext4 same",
        "trimmed",
        "ext4 clean",
        "xfs same",
        "xfs clean",
    ] {
        assert!(output.lines().any(|line| line == said), "no {said:?}:\n{output}");
    }
    network.stop(target);
}

#[test]
fn linux_checks_headers_and_data() {
    let Some(network) = Network::new("guest::digests") else { return };
    let disk = network.disk("digests", 64 << 20);
    let target = network.serve(&disk);
    let digests = ["--hdr-digest", "--data-digest", "--hdr-digest --data-digest"];
    let mut script = String::new();
    for (number, flags) in digests.into_iter().enumerate() {
        script += &connect(flags);
        script += &verified(&format!("digests{number}"), "");
        script += LEAVE;
        script += "sleep 0.5\n";
    }
    let output = Guest::boot(&network, &script).wait();
    for number in 0..digests.len() {
        assert!(output.contains(&format!("digests{number} verified")), "{output}");
    }
    network.stop(target);
}

#[test]
fn linux_finds_a_target_again_that_was_killed_under_load() {
    let Some(network) = Network::new("guest::reconnect") else { return };
    let disk = network.disk("reconnect", 64 << 20);
    let mut target = network.serve(&disk);
    let load = verified("reconnect", "--output=/dev/null")
        .replace(&format!("--runtime={}", seconds()), &format!("--runtime={}", seconds() + 15));
    let script = format!(
        "{}echo connected\n{load}dmesg | grep -c 'Successfully reconnected' | \
         sed 's/^/reconnects: /'\n{LEAVE}",
        connect("--reconnect-delay=1 --ctrl-loss-tmo=60 --keep-alive-tmo=2")
    );
    let mut guest = Guest::boot(&network, &script);
    guest.wait_for("connected");
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(1500));
        target.signal("KILL");
        target.wait();
        target = network.serve(&disk);
        // Linux tries again after a second.
        std::thread::sleep(Duration::from_millis(2000));
    }
    let output = guest.wait();
    assert!(output.contains("reconnect verified"), "{output}");
    let count = output.split("reconnects: ").nth(1).and_then(|rest| rest.lines().next());
    let count: u32 = count.and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!(count >= 3, "it has reconnected {count} times:\n{output}");
    progress(&format!("guest: killed 3 times under load, found again {count} times\n"));
    network.stop(target);
}

// User-Mode Linux has one processor, and so one queue.
#[test]
fn linux_uses_four_queues() {
    let Some(network) = Network::new("guest::queues") else { return };
    if !network.emulates("guest::queues") {
        return;
    }
    let disk = network.disk("queues", 64 << 20);
    let target = network.serve(&disk);
    let script = format!(
        "modprobe nvme-tcp\n{}echo queues $(ls -d /sys/block/nvme0*/mq/* | wc -l)\n\
         fio --name=queues --filename=$d --rw=randrw --bsrange=4k-1M --size=16M --numjobs=4 \
         --offset_increment=16M --iodepth=8 --ioengine=io_uring --direct=1 --verify=crc32c \
         --verify_fatal=1 --minimal > /dev/null && echo queues verified\n\
         head -c 1M /dev/urandom > /tmp/a; nvme write $d -s 0 -c 2047 -z 1048576 -d /tmp/a\n\
         nvme read $d -s 0 -c 2047 -z 1048576 -d /tmp/b; cmp /tmp/a /tmp/b && echo large same\n\
         {LEAVE}",
        connect("--nr-io-queues=4")
    );
    let output = Guest::emulate(&network, &script, 4, |_| ()).wait();
    assert!(output.contains("queues 4\n"), "{output}");
    assert!(output.contains("queues verified"), "{output}");
    assert!(output.contains("large same"), "{output}");
    network.stop(target);
}

// What Linux reserves, another host may read and not write, also after the target was killed.
#[test]
fn linux_reserves_a_disk() {
    let Some(network) = Network::new("guest::reservations") else { return };
    let disk = network.disk("reservations", 64 << 20);
    let target = network.serve(&disk);
    let until = |file: &str| {
        format!("for i in $(seq 300); do [ -e /run-guest/io/{file} ] && break; sleep 0.1; done\n")
    };
    let script = format!(
        "{}nvme resv-register $d -n 1 --nrkey=7 --rrega=0 --cptpl=3\n\
         nvme resv-acquire $d -n 1 --crkey=7 --rtype=1 --racqa=0\n\
         nvme resv-report $d -n 1 -e -o json > /tmp/report\n\
         grep -q '\"regctl\" *: *1,' /tmp/report \
         && grep -q '\"rtype\" *: *1,' /tmp/report && grep -q '\"ptpls\" *: *1' /tmp/report \
         && echo reported || cat /tmp/report\n\
         nvme get-feature $d -n 1 -f 0x83 | grep -q 'Current value:0x00000001' && echo persists\n\
         echo reserved\n{}echo again > /tmp/text; dd if=/tmp/text of=$d conv=fsync 2> /dev/null \
         && echo written again\nnvme resv-release $d -n 1 --crkey=7 --rtype=1 --rrela=0\n\
         nvme resv-register $d -n 1 --crkey=7 --rrega=1\necho released\n{LEAVE}",
        connect("--reconnect-delay=1 --ctrl-loss-tmo=60 --keep-alive-tmo=2"),
        until("killed"),
    );
    let mut guest = Guest::boot(&network, &script);
    guest.wait_for("reserved\n");
    assert!(network.bench("read") && !network.bench("write"), "others read and do not write");
    target.signal("KILL");
    target.wait();
    let target = network.serve(&disk);
    assert!(network.bench("read") && !network.bench("write"), "as before it was killed");
    guest.tell("killed");
    guest.wait_for("released\n");
    assert!(network.bench("write"), "it is nobody's any more");
    let output = guest.wait();
    for said in ["reported", "persists", "written again"] {
        assert!(output.lines().any(|line| line == said), "no {said:?}:\n{output}");
    }
    network.stop(target);
}

// Two ways to one disk: Linux takes the one that it is told to take, under load.
#[test]
fn linux_goes_another_way() {
    let Some(network) = Network::new("guest::multipath") else { return };
    let disk = network.disk("multipath", 64 << 20);
    let file = network.file("multipath.toml");
    let states = |first: &str, second: &str| {
        let path = disk.path().display();
        let text = format!(
            "nvme = [{{ address = \"0.0.0.0:4420\", ana = \"{first}\" }}, \
             {{ address = \"0.0.0.0:4421\", ana = \"{second}\" }}]\n\
             [[subsystem]]\nname = \"nqn.2026-11.local.afar:disk\"\n\
             namespaces = [{{ id = 1, uri = \"file:{path}\" }}]\n"
        );
        std::fs::write(file.path(), text).expect("it can be written to");
    };
    states("optimized", "non-optimized");
    let target = network.serve_as(&file.path().display().to_string(), &[]);
    let reads = "cat /sys/block/nvme0c0n1/ana_state /sys/block/nvme0c1n1/ana_state | xargs";
    let wait = |states: &str| {
        format!(
            "for i in $(seq 100); do [ \"$({reads})\" = '{states}' ] && echo saw {states} && \
             break; sleep 0.1; done\n"
        )
    };
    let script = format!(
        "{}nvme connect -t tcp -a $HOST -s 4421 -n {NQN}\n{}{{ {}; }} &\nsleep 1; echo running\n\
         {}{}wait\n\
         nvme discover -t tcp -a $HOST -s 4420 | grep -c 'subtype: *nvme subsystem' | \
         sed 's/^/found /'\n{LEAVE}",
        connect(""),
        wait("optimized non-optimized"),
        verified("multipath", "").trim_end(),
        wait("inaccessible optimized"),
        wait("optimized persistent-loss"),
    );
    let mut guest = Guest::boot(&network, &script);
    guest.wait_for("running");
    states("inaccessible", "optimized");
    target.signal("HUP");
    guest.wait_for("saw inaccessible");
    states("optimized", "persistent-loss");
    target.signal("HUP");
    let output = guest.wait();
    for said in ["saw optimized non-optimized", "saw optimized persistent-loss", "found 2"] {
        assert!(output.contains(said), "no {said:?}:\n{output}");
    }
    assert!(output.contains("multipath verified"), "{output}");
    network.stop(target);
}

#[test]
fn linux_sees_a_disk_grow() {
    let Some(network) = Network::new("guest::resize") else { return };
    let disk = network.disk("resize", 64 << 20);
    let target = network.serve(&disk);
    let script = format!(
        "{}echo size $(blockdev --getsize64 $d)\n\
         for i in $(seq 100); do [ $(blockdev --getsize64 $d) != 67108864 ] && break; sleep 0.1; \
         done\necho size $(blockdev --getsize64 $d)\n{LEAVE}",
        connect("")
    );
    let mut guest = Guest::boot(&network, &script);
    guest.wait_for("size 67108864");
    let file = std::fs::File::options().write(true).open(disk.path()).expect("it is there");
    file.set_len(128 << 20).expect("it can grow");
    target.signal("HUP");
    let output = guest.wait();
    assert!(output.contains("size 134217728"), "{output}");
    network.stop(target);
}
