//! Starting programs and reaching into them. A test binary of its own: a child has copies of this
//! process's descriptors between fork and exec, and other tests look at who has which.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use sys::process::{Life, SpawnError, Spawned, spawn};
use sys::remote::{Remote, share_memory};
use sys::seccomp::Filter;

fn run(words: &[&str]) -> Result<Spawned, SpawnError> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    spawn(&words, ("AFAR_TEST".as_ref(), "here".as_ref()), Filter::new(&[], &[]), 0)
}

// This child alone: other tests have children, too.
fn status_of(spawned: &Spawned) -> Option<i32> {
    let pid = Pid::from_raw(i32::try_from(spawned.pid).ok()?)?;
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).ok()?.and_then(|status| status.exit_status())
}

#[test]
fn spawn_finds_programs_as_a_shell_does() {
    let script = std::env::temp_dir().join(format!("afar-spawn-{}", std::process::id()));
    // No first line that names an interpreter: sh runs it.
    let text = "test \"$1\" = word && test \"$AFAR_TEST\" = here && exit 7";
    std::fs::write(&script, text).expect("there is room for temporary files");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).expect("the file is ours");
    let path = script.to_str().expect("a plain name");
    assert_eq!(status_of(&run(&[path, "word"]).expect("a script")), Some(7));
    assert_eq!(status_of(&run(&["sh", "-c", "exit 3"]).expect("a shell")), Some(3));
    std::fs::remove_file(script).expect("the file is ours");
    let kind = |words: &[&str]| match run(words) {
        Err(SpawnError::Program(error)) => error.kind(),
        other => panic!("{words:?}: {other:?}"),
    };
    assert_eq!(kind(&["no-such-program-anywhere"]), std::io::ErrorKind::NotFound);
    assert_eq!(kind(&["/etc/passwd"]), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn an_address_space_is_gone_with_its_process() {
    let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().expect("sleep");
    let remote = Remote::open(child.id()).expect("a child may be traced");
    assert!(!remote.is_gone());
    assert!(!share_memory(child.id(), std::process::id()).expect("both are there"));
    let life = Life::of(child.id()).expect("it is there").to_string();
    assert!(Life::is_lived(&life) && !Life::is_lived(&format!("{life}0")));
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    assert!(!Life::is_lived(&life));
    assert!(remote.is_gone());
    assert!(share_memory(child.id(), std::process::id()).is_err());
}

#[test]
fn memory_is_written_whatever_its_protection() {
    static TEXT: [u8; 4] = *b"text";
    let remote = Remote::open(std::process::id()).expect("one's own");
    let address = TEXT.as_ptr() as u64;
    remote.write(b"tent", address).expect("a private mapping");
    let mut now = [0_u8; 4];
    remote.read(&mut now, address).expect("it is mapped");
    assert_eq!(&now, b"tent");
}
