//! Pages that the kernel counts as shared memory although they are not the program's: pages of
//! files on a tmpfs, and managed ones.
//!
//! A program or a library on a tmpfs, as in a container or a small guest, is what it is on a disk:
//! pages of a file, which stay local and do not count as memory to be managed. `/proc/PID/status`
//! does not tell them from shared memory that the program uses as its memory; `smaps` does, by
//! mapping: the file has a name on a mounted tmpfs other than `/dev/shm`, and is mapped privately,
//! or executable and not writable. System V memory, a memfd, and `MAP_SHARED` without a file lie on
//! a tmpfs of the kernel's own, which is not mounted.

use std::collections::BTreeSet;

/// Where programs share memory by name.
const SHARED_BY_NAME: &str = "/dev/shm/";

/// Shared memory beyond the arena from which on its mappings are read, which takes longer than the
/// rest of a sample.
const WORTH_A_LOOK: u64 = 256 << 10;
/// Samples after which mappings are read again even if the amount has not changed.
const LOOK_AGAIN: u32 = 10;

/// A device as `maps` writes it: `major:minor` in hexadecimal.
type Device = (u32, u32);

/// Resident pages of a process that count as shared memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Of files on a tmpfs.
    pub files: u64,
    /// Of managed memory, pages included whose arrival is not known yet.
    pub managed: u64,
}

/// What the kernel counts as shared memory beyond the arena, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beyond {
    /// All such memory.
    pub bytes: u64,
    /// Of that, pages of files.
    pub files: u64,
    /// Of that, managed pages that have arrived unseen, as `mlockall` brings them in.
    pub unseen: u64,
}

impl Beyond {
    /// Of that, the program's own shared memory.
    #[must_use]
    pub const fn own(self) -> u64 {
        self.bytes - self.files - self.unseen
    }
}

/// The last reading of a process's mappings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look {
    last: Beyond,
    /// Samples since then.
    age: u32,
}

impl Look {
    /// Divides `bytes` of shared memory beyond the arena by kind. Where the last reading is too
    /// old, `look` reads the mappings anew. As pages come and go between its readings, only what
    /// was there before and after counts (static data turns from pages of a file into managed
    /// ones). A changed amount is no reason to read if `known` bytes were there at once before: the
    /// peak stays the same. `None` if the process has gone meanwhile.
    pub fn beyond(
        &mut self,
        mut bytes: u64,
        known: u64,
        look: impl FnOnce() -> Option<Beyond>,
    ) -> Option<Beyond> {
        if bytes <= WORTH_A_LOOK {
            return Some(Beyond { bytes, ..Beyond::default() });
        }
        self.age += 1;
        let is_another = bytes > known && bytes.abs_diff(self.last.bytes) > WORTH_A_LOOK;
        if self.age > LOOK_AGAIN || is_another {
            let last = look()?;
            bytes = bytes.min(last.bytes);
            *self = Self { last: Beyond { bytes, ..last }, age: 0 };
        }
        let files = self.last.files.min(bytes);
        Some(Beyond { bytes, files, unseen: self.last.unseen.min(bytes - files) })
    }
}

/// The pages of process `pid` that count as shared memory; none if it cannot be read.
#[must_use]
pub fn mapped(pid: u32) -> Mapped {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    let mounted = read("mountinfo").map(|text| tmpfs(&text)).unwrap_or_default();
    read("smaps").map_or_else(|_| Mapped::default(), |text| sum(&text, &mounted))
}

/// Whether a line of `maps` or `smaps` is a mapping of managed memory, or of its tables.
#[must_use]
pub fn is_managed(line: &str) -> bool {
    line.ends_with("/memfd:afar (deleted)")
}

/// The devices of mounted tmpfs, from the text of `mountinfo`.
fn tmpfs(mountinfo: &str) -> BTreeSet<Device> {
    let device = |line: &str| {
        let (mount, kind) = line.split_once(" - ")?;
        let (major, minor) = mount.split(' ').nth(2)?.split_once(':')?;
        let is_tmpfs = kind.split(' ').next() == Some("tmpfs");
        let device = (major.parse().ok()?, minor.parse().ok()?);
        is_tmpfs.then_some(device)
    };
    mountinfo.lines().filter_map(device).collect()
}

// Whether a line of `maps` is a mapping of a file on a mounted tmpfs that counts as a file's.
fn is_file(line: &str, mounted: &BTreeSet<Device>) -> bool {
    let fields: Vec<&str> = line.splitn(6, ' ').collect();
    let [_range, flags, _offset, device, _inode, name] = fields[..] else {
        return false;
    };
    let hexadecimal = |text| u32::from_str_radix(text, 16).ok();
    let device = device
        .split_once(':')
        .and_then(|(major, minor)| Some((hexadecimal(major)?, hexadecimal(minor)?)));
    let as_file = flags.ends_with('p') || flags.contains('x') && !flags.contains('w');
    let name = name.trim_start();
    as_file
        && name.starts_with('/')
        && !name.starts_with(SHARED_BY_NAME)
        && device.is_some_and(|device| mounted.contains(&device))
}

/// Sums up the resident pages in the text of `smaps`.
fn sum(smaps: &str, mounted: &BTreeSet<Device>) -> Mapped {
    let mut mapped = Mapped::default();
    let (mut is_inside, mut is_ours) = (false, false);
    for line in smaps.lines() {
        // A mapping begins with a line of its range; its fields begin with a name and a colon.
        let first = line.split(' ').next().unwrap_or_default();
        let Some(field) = first.strip_suffix(':') else {
            (is_inside, is_ours) = (is_file(line, mounted), is_managed(line));
            continue;
        };
        let kib = || line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
        let part = match () {
            () if is_inside => &mut mapped.files,
            () if is_ours => &mut mapped.managed,
            () => continue,
        };
        match field {
            "Rss" => *part = part.saturating_add(kib().unwrap_or(0) * 1024),
            // The process's own copies of pages.
            "Anonymous" => *part = part.saturating_sub(kib().unwrap_or(0) * 1024),
            _ => {}
        }
    }
    mapped
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const MOUNTS: &str = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        30 22 0:27 / /tmp rw,nosuid shared:5 - tmpfs tmpfs rw,size=100k\n\
        31 22 0:35 / /dev/shm rw - tmpfs shm rw\n";

    fn mounted() -> BTreeSet<Device> {
        tmpfs(MOUNTS)
    }

    #[test]
    fn a_tmpfs_is_known_by_its_mount() {
        assert_eq!(mounted(), BTreeSet::from([(0, 27), (0, 35)]));
    }

    #[test]
    fn a_file_is_private_or_executed_has_a_name_and_is_on_a_tmpfs() {
        let is = |line: &str| is_file(line, &mounted());
        assert!(is("1000-2000 r-xp 00000000 00:1b 12                 /tmp/a program"));
        assert!(is("1000-2000 rw-p 00000000 00:1b 12                 /tmp/library (deleted)"));
        assert!(is("1000-2000 r-xs 00000000 00:1b 12                 /tmp/program"));
        for other in [
            "1000-2000 rw-s 00000000 00:1b 12                 /tmp/memory",
            "1000-2000 rwxs 00000000 00:1b 12                 /tmp/memory",
            "1000-2000 r--s 00000000 00:1b 12                 /tmp/memory",
            "1000-2000 r-xp 00000000 fe:00 12                 /usr/bin/program",
            "1000-2000 rw-p 00000000 00:23 12                 /dev/shm/memory",
            "1000-2000 rw-p 00000000 00:01 12                 /memfd:memory (deleted)",
            "1000-2000 rw-s 00000000 00:01 12                 /SYSV00000000 (deleted)",
            "1000-2000 rw-p 00000000 00:00 0 ",
            "1000-2000 rw-p 00000000 00:00 0                  [stack]",
        ] {
            assert!(!is(other), "{other}");
        }
    }

    #[test]
    fn pages_of_such_files_are_added_up_without_copies() {
        let one = |head: &str, rss, anonymous| {
            format!(
                "{head}\nSize: 900 kB\nRss:  {rss} kB\nPss: 1 kB\nAnonymous:  {anonymous} kB\n\
                 AnonHugePages: 0 kB\nVmFlags: rd ex mr mw me sd\n"
            )
        };
        let smaps = one("1000-2000 r-xp 00000000 00:1b 12   /tmp/program", 300, 0)
            + &one("2000-3000 rw-p 00000000 00:1b 12   /tmp/program", 50, 20)
            + &one("3000-4000 rw-s 00000000 00:01 7    /memfd:afar (deleted)", 7000, 0)
            + &one("4000-5000 rw-p 00000000 00:00 0    [heap]", 400, 400);
        let expected = Mapped { files: 330 << 10, managed: 7000 << 10 };
        assert_eq!(sum(&smaps, &mounted()), expected);
    }

    #[test]
    fn shared_memory_is_looked_at_when_there_is_much_of_it_or_another_amount() {
        let mut look = Look::default();
        let looks = Cell::new(0);
        let mut files = |bytes: u64| {
            let beyond = look.beyond(bytes, 0, || {
                looks.set(looks.get() + 1);
                Some(Beyond { bytes, files: 1 << 20, unseen: 0 })
            });
            beyond.expect("it is there").files
        };
        assert_eq!(files(WORTH_A_LOOK), 0);
        assert_eq!(looks.get(), 0);
        assert_eq!(files(WORTH_A_LOOK + 1), WORTH_A_LOOK + 1, "no more than there is");
        assert_eq!(files(WORTH_A_LOOK * 2), WORTH_A_LOOK * 2);
        assert_eq!(files(8 << 20), 1 << 20);
        for _ in 0..LOOK_AGAIN {
            assert_eq!(files(8 << 20), 1 << 20);
        }
        assert_eq!(looks.get(), 2);
        files(8 << 20);
        assert_eq!(looks.get(), 3);
    }

    // Pages that a call brings in are there before their arrival is known.
    #[test]
    fn managed_pages_that_arrived_unseen_are_not_shared_memory() {
        let own = |bytes: u64| {
            let seen = Beyond { bytes, files: 1 << 20, unseen: 2 << 20 };
            Look::default().beyond(bytes, 0, || Some(seen)).map(Beyond::own)
        };
        assert_eq!(own(8 << 20), Some(5 << 20));
        assert_eq!(own(2 << 20), Some(0), "no more than there is");
    }

    // The readings of one look are not of one moment.
    #[test]
    fn what_has_gone_while_it_was_looked_at_does_not_count() {
        let mut look = Look::default();
        let later = Beyond { bytes: 1 << 20, files: 1 << 20, unseen: 0 };
        assert_eq!(look.beyond(8 << 20, 0, || Some(later)).map(Beyond::own), Some(0));
        assert_eq!(Look::default().beyond(8 << 20, 0, || None), None, "all of it has gone");
    }

    #[test]
    fn less_shared_memory_than_was_known_is_looked_at_now_and_then() {
        let mut look = Look::default();
        let looks = Cell::new(0);
        let mut sample = |bytes: u64| {
            look.beyond(bytes, 8 << 20, || {
                looks.set(looks.get() + 1);
                Some(Beyond { bytes, ..Beyond::default() })
            })
        };
        for turn in 0..u64::from(LOOK_AGAIN) {
            sample((1 + turn % 8) << 20);
        }
        assert_eq!(looks.get(), 0);
        sample(1 << 20);
        assert_eq!(looks.get(), 1, "it may be more of a file");
        sample(9 << 20);
        assert_eq!(looks.get(), 2);
    }
}
