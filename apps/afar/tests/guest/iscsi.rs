//! open-iscsi of a real Linux: log in, file systems, kills under load, two ways to one disk,
//! reservations.

use std::time::Duration;

use crate::support::progress;
use crate::uml::{Guest, Network};
use crate::verified;

const IQN: &str = "iqn.2026-11.local.afar:disk";

/// Begins iscsid and finds what there is; `set` is more of the node's settings.
pub(crate) fn discover(set: &str) -> String {
    format!(
        "set -e\niscsid\niscsiadm -m discovery -t sendtargets -p $HOST:3260 > /tmp/found\n\
         grep -q '{IQN}' /tmp/found && echo discovered\n\
         set_node() {{ iscsiadm -m node -T {IQN} -o update -n $1 -v \"$2\"; }}\n{set}\
         iscsiadm -m node -T {IQN} --login > /dev/null\n\
         disks() {{ ls -d /sys/class/iscsi_session/session*/device/target*/*/block/* \
         2> /dev/null | sed 's,.*/,/dev/,'; }}\n\
         for i in $(seq 50); do [ -n \"$(disks)\" ] && break; sleep 0.1; done\n\
         d=$(disks | head -1)\n"
    )
}

pub(crate) const LEAVE: &str =
    "iscsiadm -m node --logout > /dev/null 2>&1 || true; iscsiadm -k 0\n";
const CHAP: &str = "set_node node.session.auth.authmethod CHAP\n\
    set_node node.session.auth.username initiator\n\
    set_node node.session.auth.password 'sesame-open-up'\n\
    set_node node.session.auth.username_in target\n\
    set_node node.session.auth.password_in 'another-sesame'\n";
const DIGESTS: &str = "set_node node.conn[0].iscsi.HeaderDigest CRC32C\n\
    set_node node.conn[0].iscsi.DataDigest CRC32C\n";

/// A description of one disk at these addresses.
fn describe(path: &str, portals: &str) -> String {
    format!(
        "nvme = [\"0.0.0.0:4420\"]\niscsi = [{portals}]\n[[subsystem]]\n\
         name = \"nqn.2026-11.local.afar:disk\"\nnvme = true\n\
         chap = {{ user = \"initiator\", secret = \"sesame-open-up\", \
         target_user = \"target\", target_secret = \"another-sesame\" }}\n\
         namespaces = [{{ id = 1, uri = \"file:{path}\" }}]\n"
    )
}

fn has_all(output: &str, said: &[&str]) {
    for said in said {
        assert!(output.lines().any(|line| line == *said), "no {said:?}:\n{output}");
    }
}

#[test]
fn linux_logs_in_and_checks_file_systems() {
    let Some(network) = Network::new("guest::iscsi_file_systems") else { return };
    let disk = network.disk("iscsi-file-systems", 256 << 20);
    let file = network.file("iscsi-file-systems.toml");
    let path = disk.path().display().to_string();
    std::fs::write(file.path(), describe(&path, "\"0.0.0.0:3260\"")).expect("there is room");
    let target = network.serve_as(&file.path().display().to_string(), &[]);
    let script = format!(
        "{}{}mkfs.ext4 -q $d; mount $d /mnt; cp -r /etc /mnt/etc; sync\n\
         (cd /; find etc -type f -exec sha256sum {{}} +) > /tmp/sums\n\
         umount /mnt; mount $d /mnt; (cd /mnt; sha256sum --quiet -c /tmp/sums) && echo ext4 same\n\
         fstrim /mnt && echo trimmed; umount /mnt\n\
         fsck.ext4 -fn $d > /dev/null && echo ext4 clean\n\
         iscsiadm -m node --logout > /dev/null; {DIGESTS}\
         iscsiadm -m node -T {IQN} --login > /dev/null\n\
         for i in $(seq 50); do [ -n \"$(disks)\" ] && break; sleep 0.1; done; d=$(disks)\n\
         iscsiadm -m session -P 2 | grep -q 'DataDigest: CRC32C' && echo digests\n{}\
         iscsiadm -m node --logout > /dev/null\n\
         set_node node.session.auth.password 'sesame-open-it'\n\
         iscsiadm -m node -T {IQN} --login > /dev/null 2>&1 || echo kept out\n{LEAVE}",
        discover(CHAP),
        verified("plain", ""),
        verified("digests", ""),
    );
    let output = Guest::boot(&network, &script).wait();
    let said = [
        "discovered",
        "plain verified",
        "ext4 same",
        "trimmed",
        "ext4 clean",
        "digests",
        "digests verified",
        "kept out",
    ];
    has_all(&output, &said);
    network.stop(target);
}

#[test]
fn linux_logs_in_again_to_a_target_that_was_killed_under_load() {
    let Some(network) = Network::new("guest::iscsi_reconnect") else { return };
    let disk = network.disk("iscsi-reconnect", 64 << 20);
    let flags = ["--nvme", "0.0.0.0:4420", "--iscsi", "0.0.0.0:3260"];
    let serve = || {
        network.serve_as(
            &format!("nqn.2026-11.local.afar:disk=file:{}", disk.path().display()),
            &flags,
        )
    };
    let mut target = serve();
    let load = verified("reconnect", "--output=/dev/null").replace("--runtime=", "--runtime=1");
    let script = format!(
        "{}echo connected\n{load}\
         dmesg | grep -c 'detected conn error' | sed 's/^/reconnects: /'\n{LEAVE}",
        discover("set_node node.session.timeo.replacement_timeout 60\n")
    );
    let mut guest = Guest::boot(&network, &script);
    guest.wait_for("connected");
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(1500));
        target.signal("KILL");
        target.wait();
        target = serve();
        std::thread::sleep(Duration::from_millis(3000));
    }
    let output = guest.wait();
    assert!(output.contains("reconnect verified"), "{output}");
    let count = output.split("reconnects: ").nth(1).and_then(|rest| rest.lines().next());
    let count: u32 = count.and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!(count >= 3, "it has logged in {count} times:\n{output}");
    progress(&format!("guest: iSCSI, killed 3 times under load, {count} errors mended\n"));
    network.stop(target);
}

// Two sessions to one disk, by two portals: one of them goes away under load.
#[test]
fn linux_takes_two_ways_to_one_disk() {
    let Some(network) = Network::new("guest::iscsi_multipath") else { return };
    let disk = network.disk("iscsi-multipath", 64 << 20);
    let flags = ["--nvme", "0.0.0.0:4420", "--iscsi", "0.0.0.0:3260", "--iscsi", "0.0.0.0:3261"];
    let target = network
        .serve_as(&format!("nqn.2026-11.local.afar:disk=file:{}", disk.path().display()), &flags);
    let script = format!(
        "{}for i in $(seq 50); do [ $(disks | wc -l) = 2 ] && break; sleep 0.1; done\n\
         echo ways $(disks | wc -l)\n\
         size=$(blockdev --getsz $d)\n\
         [ $(for one in $(disks); do sg_inq -p 0x80 $one | md5sum; done | sort -u | wc -l) = 1 ] \
         && echo one disk\n\
         echo \"0 $size multipath 0 0 1 1 round-robin 0 2 1 $(disks | sed 's/$/ 1/' | xargs)\" \
         | dmsetup create both && echo joined\nd=/dev/mapper/both\n\
         [ -b $d ] || dmsetup mknodes\n{{ {}; }} &\nsleep 1; echo running\n\
         iscsiadm -m node -T {IQN} -p $HOST:3261 --logout \
         > /dev/null\n\
         wait; dmsetup remove both\n{LEAVE}",
        discover(""),
        verified("multipath", "").trim_end(),
    );
    let output = Guest::boot(&network, &script).wait();
    has_all(&output, &["ways 2", "one disk", "joined", "multipath verified"]);
    network.stop(target);
}

// What Linux reserves, NVMe hosts may read and not write, also after the target was killed.
#[test]
fn linux_reserves_a_logical_unit() {
    let Some(network) = Network::new("guest::iscsi_reservations") else { return };
    let disk = network.disk("iscsi-reservations", 64 << 20);
    let flags = ["--nvme", "0.0.0.0:4420", "--iscsi", "0.0.0.0:3260"];
    let serve = || {
        network.serve_as(
            &format!("nqn.2026-11.local.afar:disk=file:{}", disk.path().display()),
            &flags,
        )
    };
    let target = serve();
    let until = |file: &str| {
        format!("for i in $(seq 300); do [ -e /run-guest/io/{file} ] && break; sleep 0.1; done\n")
    };
    let script = format!(
        "{}sg_persist -n -o -G -S 7 -Z $d\nsg_persist -n -o -R -K 7 -T 1 $d\n\
         sg_persist -n -i -r $d | grep -q 'Write Exclusive' && echo reported\n\
         echo reserved\n{}for i in $(seq 100); do echo again > /tmp/text; \
         dd if=/tmp/text of=$d conv=fsync 2> /dev/null && break; sleep 0.2; done\n\
         sg_persist -n -i -k $d | grep -q '0x7' && echo known still\n\
         sg_persist -n -o -L -K 7 -T 1 $d; sg_persist -n -o -G -K 7 -S 0 $d\necho released\n\
         {LEAVE}",
        discover("set_node node.session.timeo.replacement_timeout 60\n"),
        until("killed"),
    );
    let mut guest = Guest::boot(&network, &script);
    guest.wait_for("reserved\n");
    assert!(network.bench("read") && !network.bench("write"), "others read and do not write");
    target.signal("KILL");
    target.wait();
    let target = serve();
    assert!(network.bench("read") && !network.bench("write"), "as before it was killed");
    guest.tell("killed");
    guest.wait_for("released\n");
    assert!(network.bench("write"), "it is nobody's any more");
    let output = guest.wait();
    has_all(&output, &["reported", "known still"]);
    network.stop(target);
}
