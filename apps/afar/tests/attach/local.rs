//! Devices of this machine, attached as those of targets are.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::support::{Launch, open_scratch};
use crate::{AFAR, Attached, MIB, Target, path, run};

// A device of this machine, attached with flags; its directory is gone when this is dropped.
fn attach_local(test: &str, device: &str, flags: &[&str]) -> Attached {
    let directory = open_scratch(&format!("attach-{test}-{}", std::process::id()));
    let directory = directory.with_extension("mount");
    fs::create_dir_all(&directory).expect("there is room for a directory");
    let words = [&[AFAR, "attach", device, path(&directory)], flags].concat();
    let mut running = Launch::new(words).limit(Duration::from_secs(120)).start();
    running.wait_for("until Ctrl-C");
    Attached { running: Some(running), directory }
}

#[test]
fn a_device_of_this_machine_is_attached_as_one_of_a_target() {
    let test = "a_device_of_this_machine_is_attached";
    let Some(target) = Target::start(test) else { return };
    let image = target.image.with_extension("local");
    let file = format!("file:{}?size=64MiB", image.display());
    for device in [&file, "memory:64MiB", "model:p3600:memory:64MiB"] {
        let attached = attach_local(test, device, &[]);
        let disk = attached.open();
        assert_eq!(disk.metadata().expect("it is there").len(), 64 * MIB, "{device}");
        let bytes: Vec<u8> = (0..2 << 20).map(|at: u32| at.to_le_bytes()[1] | 1).collect();
        disk.write_all_at(&bytes, 3 * MIB + 7).expect("any byte can be written");
        disk.sync_all().expect("it is flushed");
        run(&["fallocate", "--punch-hole", "-o", "4194304", "-l", "5000", &attached.disk()]);
        let mut read = vec![0; bytes.len()];
        disk.read_exact_at(&mut read, 3 * MIB + 7).expect("it can be read");
        let from = usize::try_from(MIB).expect("small") - 7;
        assert_eq!(read[from..from + 5000], [0; 5000], "{device}");
        assert!(read[..from] == bytes[..from] && read[from + 5000..] == bytes[from + 5000..]);
        drop(disk);
        attached.detach();
    }
    let mut stored = [0; 8];
    let kept = File::open(&image).expect("it was made");
    kept.read_exact_at(&mut stored, 3 * MIB + 7).expect("it is that long");
    assert_eq!(stored, [1; 8], "what the file has");
    fs::remove_file(&image).expect("it is there");
    let directory = target.image.with_extension("other");
    fs::create_dir_all(&directory).expect("there is room for a directory");
    let at = path(&directory);
    let cases: [(&[&str], i32, &str); 4] = [
        (&["memory:64MiB", at, "--path", "memory:64MiB"], 2, "leave it out"),
        (&["lease:1MiB:memory:64MiB", at], 2, "lease"),
        (&["nothing:1MiB", at], 2, "no device is called"),
        (&["file:/nowhere/at/all", at], 1, "/nowhere/at/all"),
    ];
    for (words, status, reason) in cases {
        let ended = Launch::new([&[AFAR, "attach"], words].concat()).run();
        let ended = ended.expect(status, &format!("{words:?}"));
        assert!(ended.stderr.contains(reason), "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{words:?}: {}", ended.stderr);
    }
    fs::remove_dir(&directory).expect("nothing is there");
    target.stop();
}

// Of two readers of one queue the one that comes first waits for its device.
#[test]
fn one_request_does_not_wait_for_another() {
    let test = "one_request_does_not_wait_for_another";
    let Some(target) = Target::start(test) else { return };
    let attached = attach_local(test, "fault:read=4s@once:memory:64MiB", &["--queues", "1"]);
    let read = |offset: u64| {
        let (disk, began) = (attached.open(), Instant::now());
        disk.read_exact_at(&mut [0; 4096], offset).expect("it can be read");
        began.elapsed() < Duration::from_secs(3)
    };
    let was_quick = std::thread::scope(|scope| {
        [0, MIB]
            .map(|at| {
                let read = &read;
                scope.spawn(move || read(at))
            })
            .map(|one| one.join().expect("it ends"))
    });
    assert_eq!(was_quick.iter().filter(|quick| **quick).count(), 1, "{was_quick:?}");
    attached.detach();
    target.stop();
}
