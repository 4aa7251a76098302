//! `afar serve`: what a medium is known by, and who has it.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Ended, Launch, Running};
use test_support::Scratch;

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const NQN: &str = "nqn.2026-11.local.afar:disk";

fn image(directory: &Scratch, name: &str) -> PathBuf {
    let path = directory.join(name);
    let file = fs::File::create(&path).expect("there is room");
    file.set_len(1 << 20).expect("it takes no room yet");
    path
}

fn launch(uri: &str, flags: &[&str]) -> Launch {
    let disk = format!("{NQN}={uri}");
    Launch::new([&[AFAR, "serve", &disk, "--nvme", "127.0.0.1:0"], flags].concat())
}

fn of(path: &Path) -> String {
    format!("file:{}", path.display())
}

/// A target, and its namespace's NGUID and UUID.
fn serve(uri: &str, flags: &[&str]) -> (Running, [String; 2]) {
    let (running, ready) = launch(uri, flags).serve();
    let at = format!("nvme+tcp://{}/{NQN}", ready.nvme[0]);
    let said = Launch::new([AFAR, "identify", &at, "--json", "-"]).run();
    let said: Value = serde_json::from_str(&said.expect(0, "identify").text()).expect("JSON");
    let namespace = &said["namespaces"][0];
    let ids =
        ["nguid", "uuid"].map(|name| namespace[name].as_str().expect("it has one").to_owned());
    (running, ids)
}

fn end(running: Running, signal: &str) {
    running.signal(signal);
    running.wait().leaves_nothing("afar serve");
}

fn known(uri: &str, flags: &[&str]) -> [String; 2] {
    let (running, ids) = serve(uri, flags);
    end(running, "KILL");
    ids
}

fn refused(uri: &str, flags: &[&str]) -> Ended {
    let ended = launch(uri, flags).run().expect(1, uri);
    ended.leaves_nothing("a refusal");
    ended
}

#[test]
fn no_two_media_are_one_disk_whatever_they_are_called() {
    let directory = Scratch::new("identity-two");
    let mut all: Vec<[String; 2]> = Vec::new();
    // The same name, the same number of a namespace, the same size; started again and again.
    for round in 0..50 {
        let path = image(&directory, &format!("{round}"));
        all.push(known(&of(&path), &[]));
        all.push(known("memory:1MiB", &[]));
    }
    for place in 0..2 {
        let mut ids: Vec<_> = all.iter().map(|ids| &ids[place]).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), all.len(), "two of them are one disk to hosts");
    }
}

#[test]
fn a_medium_keeps_its_identity_and_a_copy_does_not_have_it() {
    let directory = Scratch::new("identity-kept");
    let path = image(&directory, "a");
    let ids = known(&of(&path), &[]);
    assert_eq!(known(&of(&path), &[]), ids, "after a kill");
    let [renamed, plain, whole] = ["b", "c", "d"].map(|name| directory.join(name));
    fs::rename(&path, &renamed).expect("it is there");
    assert_eq!(known(&of(&renamed), &[]), ids, "under another name");
    fs::copy(&renamed, &plain).expect("there is room");
    let (original, of_original) = serve(&of(&renamed), &[]);
    assert_eq!(of_original, ids);
    let of_plain = known(&of(&plain), &[]);
    let cp = ["cp", "--preserve=all"].map(str::to_owned).into_iter();
    let cp = cp.chain([&renamed, &whole].map(|path| path.display().to_string()));
    Launch::new(cp).run().expect(0, "cp");
    let stderr = refused(&of(&whole), &[]).stderr;
    assert!(stderr.contains("--new-identity makes it a disk of its own"), "{stderr}");
    let of_whole = known(&of(&whole), &["--new-identity"]);
    assert_eq!(known(&of(&whole), &[]), of_whole);
    for (place, id) in ids.iter().enumerate() {
        assert!(of_plain[place] != *id && of_whole[place] != *id, "they are two disks");
    }
    end(original, "INT");
}

#[test]
fn a_file_is_served_once() {
    let directory = Scratch::new("identity-once");
    let path = image(&directory, "a");
    let uri = of(&path);
    let (first, _) = serve(&uri, &[]);
    let holder = format!("process {} (", first.pid());
    let link = directory.join("link");
    fs::hard_link(&path, &link).expect("it is not there");
    for (uri, flags) in [(&uri, &[][..]), (&of(&link), &[]), (&uri, &["--shared"])] {
        let stderr = refused(uri, flags).stderr;
        assert!(stderr.contains(&holder) && stderr.contains("afar serve"), "{stderr}");
    }
    let load = Launch::new([AFAR, "bench", &uri]).run().expect(1, "a load is no better");
    assert!(load.stderr.contains(&holder), "{}", load.stderr);
    end(first, "KILL");
    // Under two names in one process.
    let twice = Launch::new([AFAR, "serve", &format!("a={uri}"), &format!("b={}", of(&link))]);
    let stderr = twice.run().expect(1, "the same file twice").stderr;
    assert!(stderr.contains("this process has it"), "{stderr}");
    // Whoever only reads lets others read, and whoever shares others that do.
    for flags in [[("?readonly", ""); 2], [("", "--shared"); 2]] {
        let both = flags.map(|(option, flag)| {
            let flags: &[&str] = if flag.is_empty() { &[] } else { &[flag] };
            serve(&format!("{uri}{option}"), flags)
        });
        assert_eq!(both[0].1, both[1].1, "two ways to one medium");
        refused(&uri, &[]);
        for (running, _) in both {
            end(running, "INT");
        }
    }
}

// Several ways to a disk are taken for one only if its target proves that they lead to one medium,
// opened once: over both protocols, and not to another medium of the same name and identity.
#[test]
fn several_ways_are_proved_to_lead_to_one_medium() {
    let directory = Scratch::new("identity-ways");
    let [path, other, at] = ["a", "b", "at"].map(|name| directory.join(name));
    for file in [&path, &other] {
        fs::write(file, vec![0; 1 << 20]).expect("there is room");
    }
    fs::create_dir(&at).expect("it is not there");
    let (first, ids) = serve(&of(&path), &[]);
    let (nguid, uuid) = (&ids[0], &ids[1]);
    end(first, "INT");
    let clone = directory.join("clone.toml");
    let text = format!(
        "nvme = [\"127.0.0.1:0\"]\n[[subsystem]]\nname = \"{NQN}\"\n\
         namespaces = [ {{ id = 1, uri = \
         \"{}\", nguid = \"{nguid}\", uuid = \"{uuid}\" }} ]\n",
        of(&other)
    );
    fs::write(&clone, text).expect("there is room");
    let clone = Launch::new([AFAR, "serve", &clone.display().to_string()]);
    for others in [[clone, launch(&of(&path), &["--shared"])]].into_iter().flatten() {
        let (first, ready) = launch(&of(&path), &["--shared", "--iscsi", "127.0.0.1:0"]).serve();
        let (second, elsewhere) = others.serve();
        let nvme = |port: std::net::SocketAddr| format!("nvme+tcp://{port}/{NQN}");
        let ways = [nvme(ready.nvme[0]), nvme(elsewhere.nvme[0])];
        let directory = at.display().to_string();
        let words = [AFAR, "attach", &ways[0], &directory, "--path", &ways[1]];
        let refused = Launch::new(words).run().expect(1, "another medium");
        assert!(
            refused.stderr.contains("has the same identity, but is another"),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.contains("--trust-identity"), "{}", refused.stderr);
        end(second, "INT");
        end(first, "INT");
    }
}

#[test]
fn what_is_only_read_is_not_written() {
    let directory = Scratch::new("identity-read");
    let path = image(&directory, "a");
    fs::write(&path, vec![7; 1 << 20]).expect("there is room");
    let (running, ready) = launch(&format!("{}?readonly", of(&path)), &[]).serve();
    let at = format!("nvme+tcp://{}/{NQN}", ready.nvme[0]);
    let bench = |rw: &str| {
        let words = [AFAR, "bench", &at, "--rw", rw, "--requests", "10"];
        Launch::new(words).run()
    };
    bench("randread").expect(0, "reads");
    for rw in ["randwrite", "randtrim"] {
        let ended = bench(rw);
        assert_ne!(ended.status, 0, "{rw}: {}", ended.stderr);
    }
    end(running, "INT");
    assert_eq!(fs::read(&path).expect("it is there"), vec![7; 1 << 20]);
}

#[test]
fn what_must_be_proved_cannot_be_had_by_another_door() {
    let directory = Scratch::new("identity-doors");
    let file = directory.join("doors.toml");
    let chap = "chap = { user = \"me\", secret = \"sesame, open up\" }";
    for (more, status) in [("", 1), ("nvme = true", 0)] {
        let text = format!(
            "nvme = [\"127.0.0.1:0\"]\niscsi = [\"127.0.0.1:0\"]\n[[subsystem]]\n\
             name = \"{NQN}\"\n{chap}\n{more}\nnamespaces = [ {{ id = 1, uri = \"null:\" }} ]\n"
        );
        fs::write(&file, text).expect("there is room");
        let (running, ready) = Launch::new([AFAR, "serve", &file.display().to_string()]).serve();
        let address = ready.nvme[0].to_string();
        let at = format!("nvme+tcp://{address}/{NQN}");
        let load = Launch::new([AFAR, "bench", &at, "--requests", "10"]).run();
        load.expect(status, "a host that has proved nothing");
        let found = Launch::new([AFAR, "discover", &address]).run().expect(0, "discover").text();
        assert_eq!(found.contains(NQN), status == 0, "{found}");
        end(running, "INT");
    }
}

/// A block device over a file, while it is there.
struct LoopDevice(String);

impl LoopDevice {
    fn over(image: &Path) -> Option<Self> {
        let words =
            ["losetup", "--find", "--show", &image.display().to_string()].map(str::to_owned);
        let ended = Launch::new(words).run();
        (ended.status == 0).then(|| Self(ended.text().trim().to_owned()))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // It goes when the last process that has it has ended.
        let _gone = std::process::Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_block_device_is_served_once_and_known_again() {
    const TEST: &str = "a_block_device_is_served_once_and_known_again";
    let directory = Scratch::new("identity-block");
    let Some(device) = LoopDevice::over(&image(&directory, "a")) else {
        return support::skip(TEST, "there is no loop device to be had");
    };
    let state = directory.join("state");
    fs::create_dir(&state).expect("there is room");
    let kept = ["--state", state.to_str().expect("it is text")];
    let uri = format!("file:{}", device.0);
    let (first, ids) = serve(&uri, &kept);
    let holder = format!("process {} (", first.pid());
    let read_only = format!("{uri}?readonly");
    for (uri, flags) in [(&uri, &[][..]), (&uri, &["--shared"]), (&read_only, &[])] {
        let stderr = refused(uri, flags).stderr;
        assert!(stderr.contains(&holder) && stderr.contains("afar serve"), "{flags:?}: {stderr}");
    }
    let load = Launch::new([AFAR, "bench", &uri]).run().expect(1, "a load is no better");
    assert!(load.stderr.contains(&holder), "{}", load.stderr);
    end(first, "KILL");
    assert_eq!(known(&uri, &kept), ids, "--state keeps it");
    assert_ne!(known(&uri, &[]), ids, "and nothing else does");
    for (option, flags) in [("", &["--shared"][..]), ("?readonly", &[])] {
        let flags = [flags, &kept[..]].concat();
        let both = [(); 2].map(|()| serve(&format!("{uri}{option}"), &flags));
        assert_eq!([&both[0].1, &both[1].1], [&ids; 2], "two ways to one medium");
        let stderr = refused(&uri, &[]).stderr;
        assert!(stderr.contains("has it"), "who wants it alone: {stderr}");
        for (running, _) in both {
            end(running, "INT");
        }
    }
}

#[test]
fn an_identity_that_is_not_kept_is_said() {
    const MOUNT: &str = "mount -t ramfs none \"$1\" && truncate -s 1M \"$1/disk\" && shift &&
        exec \"$@\"";
    if !rustix::process::geteuid().is_root() {
        return support::skip("identity::an_identity_that_is_not_kept_is_said", "only root mounts");
    }
    let scratch = Scratch::new("identity-forgotten");
    // A file system on which files cannot have attributes.
    let [mount, state] = ["mount", "state"].map(|name| {
        let path = scratch.join(name);
        fs::create_dir_all(&path).expect("there is room");
        path.display().to_string()
    });
    let disk = format!("{NQN}=file:{mount}/disk");
    let said = |flags: &[&str]| {
        let serve = [AFAR, "serve", &disk, "--nvme", "127.0.0.1:0"];
        let words = [&["unshare", "--mount", "sh", "-c", MOUNT, "sh", &mount], &serve[..], flags];
        let (running, _ready) = Launch::new(words.concat()).serve();
        running.signal("TERM");
        running.wait().expect(0, "afar serve").stderr
    };
    let line = format!("afar: {NQN} is another disk to hosts at each start");
    let without = said(&[]);
    assert!(without.contains(&line) && without.contains("--state DIRECTORY keeps it"), "{without}");
    let with = said(&["--state", &state]);
    assert!(!with.contains(&line), "{with}");
}
