//! A target on a device that writes down what is durable: dm-log-writes, in a real Linux.
//!
//! The device logs a write when a flush has come after it, or when the write is forced, and a mark
//! whenever it is told to. So what the log has before a mark is what would be left if the machine
//! lost its power there. A host writes a block, by a flush or forced, sets a mark with the block's
//! number when that has ended well, and kills the target now and then; then a reader of the log
//! looks for the block before its mark.

use crate::support::progress;
use crate::uml::{AFAR, Guest, Network};

const NQN: &str = "nqn.2026-11.local.afar:logged";
const IQN: &str = "iqn.2026-11.local.afar:logged";
/// Blocks that are written over each protocol, half of them with a flush and half of them forced.
const BLOCKS: usize = 40;

/// Reads the log: super block, then entries of a sector each, before the data that they are about.
/// Prints which blocks are there before their marks, and which are not.
const READER: &str = r#"
import struct
log = open('/dev/loop1', 'rb')
SECTOR = 512
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
magic, _version, entries, size = struct.unpack('<QQQI', log.read(28))
assert magic == 0x6a736677736872 and size == SECTOR, (hex(magic), size)
at, disk, good, lost, flushes, forced = SECTOR, {}, [], [], 0, 0
for _ in range(entries):
    log.seek(at)
    entry = log.read(SECTOR)
    sector, count, flags, length = struct.unpack('<QQQQ', entry[:32])
    at += SECTOR
    flushes += bool(flags & FLUSH)
    forced += bool(flags & FUA)
    if flags & MARK:
        name = entry[32:32 + length].rstrip(b'\0').decode()
        if name.startswith('block-'):
            number = int(name.split('-')[1])
            have = b''.join(disk.get(number * 8 + k, b'') for k in range(8))
            (good if have == (b'%08d' % number) * 512 else lost).append(number)
    elif not flags & DISCARD:
        for k in range(count):
            disk[sector + k] = log.read(SECTOR)
        at += count * SECTOR
print('durable', len(good), 'lost', len(lost), *lost)
print('flushes', flushes > 0, 'forced', forced > 0)
"#;

/// What a guest does: words of the target, then how its host begins and leaves.
fn script(kind: &str, flags: &str, device: &str, [connect, leave]: [&str; 2]) -> String {
    format!(
        r#"
set -e
cd /tmp
truncate -s 16M data; truncate -s 64M log
losetup /dev/loop0 data; losetup /dev/loop1 log
size=$(blockdev --getsz /dev/loop0)
dmsetup create logged --table "0 $size log-writes /dev/loop0 /dev/loop1"
dmsetup mknodes
begin() {{
  /run-guest/io/afar serve {NQN}={kind}/dev/mapper/logged {flags} --state /tmp/state \
    > /tmp/serve.log 2>&1 &
  target=$!
  for i in $(seq 100); do grep -q 'until Ctrl-C' /tmp/serve.log && return; sleep 0.1; done
  cat /tmp/serve.log; return 1
}}
mkdir -p state
begin
{connect}
for number in $(seq {BLOCKS}); do
  for i in $(seq 512); do printf %08d $number; done > block
  how=conv=fsync; [ $((number % 2)) = 0 ] || how=oflag=direct,dsync
  ok=
  for again in $(seq 60); do
    dd if=block of={device} bs=4096 seek=$number oflag=direct $how 2> dd.log && ok=yes && break
    sleep 0.5
  done
  [ -n "$ok" ] || {{ cat dd.log; dmesg | tail; exit 1; }}
  dmsetup message logged 0 mark block-$number
  if [ $((number % 10)) = 0 ]; then
    kill -9 $target; wait $target || true; begin
  fi
done
{leave}
kill -INT $target; wait $target
dmsetup remove logged
python3 /run-guest/io/reader.py
"#
    )
}

/// What the reader says of a log, and of what a device `kind` has made of it.
fn read(test: &str, kind: &str, flags: &str, device: &str, ends: [&str; 2]) -> Option<String> {
    let network = Network::new(&format!("guest::durable_{test}"))?;
    let lay = |directory: &std::path::Path| {
        std::fs::copy(AFAR, directory.join("afar")).expect("there is room");
        std::fs::write(directory.join("reader.py"), READER).expect("there is room");
    };
    let script = script(kind, flags, device, ends);
    Some(Guest::boot_with(&network, &script, "", lay).wait())
}

fn has(output: &str, line: &str) {
    assert!(output.lines().any(|one| one == line), "no {line:?}:\n{output}");
}

fn over_nvme(test: &str, kind: &str) -> Option<String> {
    let connect = format!(
        "nvme connect -t tcp -a 127.0.0.1 -s 4420 -n {NQN} --reconnect-delay=1 \
         --ctrl-loss-tmo=600 --keep-alive-tmo=2\n\
         for i in $(seq 50); do [ -b /dev/nvme0n1 ] && break; sleep 0.1; done"
    );
    let ends = [connect.as_str(), "nvme disconnect-all 2> /dev/null"];
    read(test, kind, "--nvme 127.0.0.1:4420", "/dev/nvme0n1", ends)
}

#[test]
fn what_linux_flushes_over_nvme_is_durable() {
    let Some(output) = over_nvme("nvme", "file:") else { return };
    has(&output, &format!("durable {BLOCKS} lost 0"));
    has(&output, "flushes True forced True");
    progress(&format!("guest: {BLOCKS} blocks over NVMe are durable when they are said to be\n"));
}

// That this can fail: before a device whose flushes do nothing.
#[test]
fn what_is_not_flushed_is_found_out() {
    let Some(output) = over_nvme("skips", "fault:flush=skip:file:") else { return };
    let lost = BLOCKS / 2;
    assert!(output.contains(&format!("durable {} lost {lost} ", BLOCKS - lost)), "{output}");
}

#[test]
fn what_linux_flushes_over_iscsi_is_durable() {
    let connect = format!(
        "iscsid\niscsiadm -m discovery -t sendtargets -p 127.0.0.1:3260 > /dev/null\n\
         iscsiadm -m node -T {IQN} -p 127.0.0.1:3260 --login > /dev/null\n\
         for i in $(seq 50); do [ -b /dev/sda ] && break; sleep 0.1; done"
    );
    let ends = [connect.as_str(), "iscsiadm -m node --logout > /dev/null; iscsiadm -k 0"];
    let Some(output) = read("iscsi", "file:", "--iscsi 127.0.0.1:3260", "/dev/sda", ends) else {
        return;
    };
    has(&output, &format!("durable {BLOCKS} lost 0"));
    has(&output, "flushes True forced True");
    progress(&format!("guest: {BLOCKS} blocks over iSCSI are durable when they are said to be\n"));
}
