//! What `afar serve` gives up once it serves, and what it says of that.

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use support::{Launch, Running, skip};
use test_support::Scratch;

const AFAR: &str = env!("CARGO_BIN_EXE_afar");
const NQN: &str = "nqn.2026-11.local.afar:disk";
/// Whose name every system has.
const NOBODY: &str = "65534";

/// What a target is configured by and serves, where everybody may look.
struct Home(Scratch);

impl Home {
    fn new(name: &str) -> Self {
        let directory = Scratch::new(&format!("rights-{name}"));
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))
            .expect("it is ours");
        Self(directory)
    }

    fn directory(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(&path).expect("there is room");
        path
    }

    // What is served, with these namespaces, numbered from 1 on.
    fn write(&self, top: &str, uris: &[&str]) -> String {
        let path = self.directory("etc").join("flash.toml");
        let namespaces =
            (1..).zip(uris).map(|(id, uri)| format!("{{ id = {id}, uri = \"{uri}\" }}"));
        let namespaces = namespaces.collect::<Vec<_>>().join(", ");
        let text = format!(
            "nvme = [\"127.0.0.1:0\"]\nshards = 2\nmetrics = \"127.0.0.1:0\"\n{top}\n\
             [[subsystem]]\nname = \"{NQN}\"\nnamespaces = [ {namespaces} ]\n"
        );
        fs::write(&path, text).expect("there is room");
        path.display().to_string()
    }
}

struct Target {
    running: Running,
    address: String,
}

impl Target {
    fn start(words: &[&str]) -> Self {
        let (running, ready) = Launch::new([&[AFAR, "serve"], words].concat()).serve();
        Self { running, address: ready.nvme[0].to_string() }
    }

    fn serves(&self, namespace: u32) -> bool {
        let uri = format!("nvme+tcp://{}/{NQN}/{namespace}", self.address);
        let load = ["--rw", "randrw", "--depth", "8", "--requests", "500", "--verify"];
        Launch::new([&[AFAR, "bench", &uri], &load[..]].concat()).run().status == 0
    }

    // Has it look at its file again, and waits for what it says of that.
    fn reload(&self, said: &str) {
        self.running.signal("HUP");
        let began = Instant::now();
        while !self.running.errors().contains(said) {
            let errors = self.running.errors();
            assert!(began.elapsed() < Duration::from_secs(30), "{said}: {errors}");
            sleep(Duration::from_millis(20));
        }
    }

    // What the kernel says of each thread.
    fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.running.pid()));
        let tasks = tasks.expect("it runs").map(|task| task.expect("it runs").path());
        tasks.map(|task| fs::read_to_string(task.join("status")).expect("it runs")).collect()
    }

    fn stop(self) -> String {
        self.running.signal("TERM");
        let ended = self.running.wait().expect(0, "afar serve");
        ended.leaves_nothing("afar serve");
        ended.stderr
    }
}

// The values of a line of a thread's status.
fn status<'a>(thread: &'a str, name: &str) -> Vec<&'a str> {
    let mut lines = thread.lines().filter_map(|line| line.split_once(':'));
    let line = lines.find(|(key, _)| *key == name).expect("the kernel says it");
    line.1.split_whitespace().collect()
}

fn is_root(test: &str) -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root {
        skip(test, "only root can give up being root");
    }
    is_root
}

#[test]
fn a_target_keeps_to_its_directories() {
    let home = Home::new("sandbox");
    let [data, other] = ["data", "other"].map(|name| home.directory(name));
    let [one, two, three] = [data.join("one"), data.join("two"), other.join("three")]
        .map(|file| format!("file:{}?size=1MiB", file.display()));
    let file = home.write("", &[&one]);
    let target = Target::start(&[&file]);
    let threads = target.threads();
    assert!(threads.len() > 4, "main, two shards, control, keeper, metrics: {threads:?}");
    for thread in &threads {
        assert_eq!(status(thread, "Seccomp"), ["2"], "{thread}");
        assert_eq!(status(thread, "NoNewPrivs"), ["1"], "{thread}");
    }
    assert!(target.serves(1), "the ring works");
    home.write("", &[&one, &two]);
    target.reload("namespace 2 is file:");
    assert!(target.serves(2), "a file beside the first");
    home.write("", &[&one, &two, &three]);
    target.reload("everything stays as it was");
    assert!(target.serves(1) && target.serves(2) && !target.serves(3));
    let said = target.stop();
    let away = other.join("three");
    let (away, within) = (away.display(), data.display());
    let place = format!("{away} is outside the sandbox, which holds {within}: ");
    for text in [&*place, "Permission denied", "or with --sandbox off"] {
        assert!(said.contains(text), "{text}: {said}");
    }
    assert!(!other.join("three").exists());
    // Unless that is not wanted.
    let file = home.write("sandbox = \"off\"", &[&one]);
    let target = Target::start(&[&file]);
    home.write("sandbox = \"off\"", &[&one, &three]);
    target.reload("namespace 2 is file:");
    for thread in target.threads() {
        assert_eq!(status(&thread, "Seccomp"), ["0"], "{thread}");
    }
    target.stop();
}

#[test]
fn root_is_given_up_for_a_user() {
    if !is_root("rights::root_is_given_up_for_a_user") {
        return;
    }
    let home = Home::new("user");
    let data = home.directory("data");
    let disk = data.join("disk");
    fs::File::create(&disk).and_then(|file| file.set_len(1 << 20)).expect("there is room");
    fs::set_permissions(&disk, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let uri = format!("file:{}", disk.display());
    let file = home.write("user = \"nobody\"", &[&uri]);
    // Reservations could not be kept.
    let ended = Launch::new([AFAR, "serve", &file]).run().expect(1, "a directory of root's");
    let reason = format!("user nobody cannot write in {}, where reservations", data.display());
    assert!(ended.stderr.contains(&reason), "{}", ended.stderr);
    std::os::unix::fs::chown(&data, Some(65_534), None).expect("root may");
    let target = Target::start(&[&file]);
    for thread in target.threads() {
        assert_eq!(status(&thread, "Uid"), [NOBODY; 4], "{thread}");
        assert_eq!(status(&thread, "Gid"), [NOBODY; 4], "{thread}");
        assert_eq!(status(&thread, "Groups"), [NOBODY], "{thread}");
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(status(&thread, set), ["0000000000000000"], "{set}: {thread}");
        }
        assert_eq!(status(&thread, "NoNewPrivs"), ["1"], "{thread}");
    }
    assert!(target.serves(1), "what was opened before stays open");
    let own = format!("file:{}?size=1MiB", data.join("own").display());
    home.write("user = \"nobody\"", &[&uri, &own]);
    target.reload("namespace 2 is file:");
    assert_eq!(fs::metadata(data.join("own")).expect("it was made").uid(), 65_534);
    // What root has is out of reach.
    let roots = data.join("roots");
    fs::copy(&disk, &roots).expect("there is room");
    let roots = format!("file:{}", roots.display());
    home.write("user = \"nobody\"", &[&uri, &own, &roots]);
    target.reload("everything stays as it was");
    let said = target.stop();
    for text in ["rights of user nobody from here on", "with the rights of user nobody: let nobody"]
    {
        assert!(said.contains(text), "{text}: {said}");
    }
}

#[test]
fn who_cannot_be_is_said_in_one_sentence() {
    for (words, status, reason) in [
        (&["--user", "no such user"][..], 2, "there is no user \"no such user\"; getent"),
        (&["--user", "nobody:no such group"], 2, "there is no group"),
        (&["--user", "root"], 2, "is root, who may do everything; name another user"),
        (&["--user", "4242424"], 2, "write USER:GROUP"),
        (&["--sandbox", "maybe"], 2, "give auto, on or off"),
    ] {
        let words = [&[AFAR, "serve", "disk=null:", "--nvme", "127.0.0.1:0"], words].concat();
        let ended = Launch::new(&words).run().expect(status, reason);
        assert!(ended.stderr.contains(reason), "{words:?}: {}", ended.stderr);
    }
}
