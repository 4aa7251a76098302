//! dm-multipath of a real Linux, as multipathd sets it up: two ways to one disk of which one is
//! preferred, by ALUA over iSCSI and by ANA over NVMe/TCP, and one or the other is cut under load.

use crate::support::{full, progress};
use crate::uml::{Disk, Guest, HERE, HERE_TOO, Network};
use crate::{NQN, iscsi, seconds, verified};

/// How often a way is cut.
fn cuts() -> u32 {
    if full() { 50 } else { 3 }
}

/// multipathd, and what it makes of the disks that are there: `$d` when two ways lead to it. Then
/// `ways` prints how many of them work, and `best` where the preferred one leads.
const JOIN: &str = r#"
mkdir -p /etc/multipath
cat > /etc/multipath.conf <<CONF
defaults {
  find_multipaths no
  polling_interval 1
  max_polling_interval 1
  path_grouping_policy group_by_prio
  failback immediate
  no_path_retry queue
}
overrides {
  $checks
}
CONF
multipathd
table() { dmsetup status --target multipath 2> /dev/null; }
ways() { table | grep -oE ' [0-9]+:[0-9]+ A ' | wc -l; }
# Where the group of highest priority leads.
best() { multipath -ll | grep -A1 'prio=50' | grep -oE '(sd[a-z]+|nvme[0-9]n1) '; }
for i in $(seq 100); do [ $(ways) = 2 ] && break; sleep 0.2; done
d=/dev/mapper/$(dmsetup ls --target multipath | cut -f1)
for i in $(seq 50); do [ -n "$(best)" ] && break; sleep 0.2; done
[ -b $d ] || dmsetup mknodes
multipath -ll
was=$(best)
echo best $was
( last=2; while [ ! -e /run-guest/io/end ]; do
    now=$(ways); [ $now = $last ] || echo ways $now; last=$now; sleep 0.1
  done ) &
watch=$!
"#;

const LEAVE: &str = r"
wait $watch
kill $(pidof multipathd); sleep 1; dmsetup remove_all
";

/// Addresses in the states given, of one disk.
fn describe(disk: &Disk, file: &Disk, states: [&str; 2]) {
    let [first, second] = states;
    let addresses = |port: u32| {
        format!(
            "[{{ address = \"{HERE}:{port}\", ana = \"{first}\" }}, \
             {{ address = \"{HERE_TOO}:{port}\", ana = \"{second}\" }}]"
        )
    };
    let text = format!(
        "nvme = {}\niscsi = {}\n[[subsystem]]\nname = \"{NQN}\"\nnvme = true\n\
         namespaces = [{{ id = 1, uri = \"file:{}\" }}]\n",
        addresses(4420),
        addresses(3260),
        disk.path().display()
    );
    std::fs::write(file.path(), text).expect("it can be written to");
}

/// What a guest says that has `$d` and is cut off from it now and then.
fn goes_on(test: &str, [connect, leave]: [&str; 2], kernel: &str, names: [&str; 2]) {
    let Some(network) = Network::new(&format!("guest::{test}")) else { return };
    let disk = network.disk(test, 64 << 20);
    let file = network.file("paths.toml");
    describe(&disk, &file, ["optimized", "non-optimized"]);
    let target = network.serve_as(&file.path().display().to_string(), &[]);
    let load = verified("paths", "").replace(&format!("--runtime={}", seconds()), "--runtime=4");
    let script = format!(
        "/lib/systemd/systemd-udevd --daemon; udevadm trigger; udevadm settle\n{connect}{JOIN}\
         loads=0; while [ ! -e /run-guest/io/enough ]; do\n{load}loads=$((loads + 1)); done\n\
         echo loads $loads\n\
         for i in $(seq 100); do [ \"$(best)\" != \"$was\" ] && break; sleep 0.2; done\n\
         echo then $(best)\n{load}echo done\n{LEAVE}{leave}"
    );
    let mut guest = Guest::boot_with(&network, &script, kernel, |_| ());
    guest.wait_for("best ");
    for number in 0..cuts() {
        let address = if number % 2 == 0 { HERE } else { HERE_TOO };
        network.cut(address);
        guest.wait_for_count("ways 1", number + 1);
        network.join(address);
        guest.wait_for_count("ways 2", number + 1);
    }
    describe(&disk, &file, ["non-optimized", "optimized"]);
    target.signal("HUP");
    guest.tell("enough");
    guest.wait_for("done\n");
    guest.tell("end");
    let output = guest.wait();
    // Which way has which name is a matter of chance.
    let has = |line: String| output.lines().any(|one| one == line);
    let is_one = |best, then| has(format!("best {best}")) && has(format!("then {then}"));
    let [one, other] = names;
    assert!(is_one(one, other) || is_one(other, one), "not {one} and then {other}:\n{output}");
    let verified = output.matches("paths verified").count();
    let loads = output.split("loads ").nth(1).and_then(|rest| rest.lines().next());
    let loads: usize = loads.and_then(|loads| loads.parse().ok()).unwrap_or(0);
    assert!(loads >= 1 && verified == loads + 1, "{verified} of {loads}:\n{output}");
    progress(&format!("guest: {test}, cut {} times, {loads} loads verified\n", cuts()));
    network.stop(target);
}

#[test]
fn linux_joins_two_ways_by_alua() {
    let connect = iscsi::discover(
        "set_node node.session.timeo.replacement_timeout 1\n\
         set_node node.conn[0].timeo.noop_out_interval 1\n\
         set_node node.conn[0].timeo.noop_out_timeout 1\n",
    );
    goes_on("alua", [&connect, iscsi::LEAVE], "", ["sda", "sdb"]);
}

#[test]
fn linux_joins_two_ways_by_ana() {
    let connect = [HERE, HERE_TOO].map(|address| {
        format!(
            "nvme connect -t tcp -a {address} -s 4420 -n {NQN} --reconnect-delay=1 \
             --ctrl-loss-tmo=600 --fast_io_fail_tmo=1 --keep-alive-tmo=2\n"
        )
    });
    // What multipathd 0.11 takes for NVMe by itself, `none`, never finds a path usable again.
    let checks = "checks='path_checker directio'\n";
    let connect = format!("{}{checks}", connect.concat());
    let kernel = "nvme_core.multipath=N";
    let names = ["nvme0n1", "nvme1n1"];
    goes_on("ana", [&connect, "nvme disconnect-all 2> /dev/null\n"], kernel, names);
}
