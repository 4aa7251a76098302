//! Static data (`.data`, `.bss`), which is managed from the program's first call for memory on.
//!
//! ```text
//! helper greets -> static data found, its contents copied to the memory file
//!               -> helper maps the file in its place -> the program goes on
//! ```
//!
//! DESIGN NOTES
//!
//! * The only thread waits in our object meanwhile, with every signal blocked. So nobody writes to
//!   what has been copied and is not mapped yet.
//! * Only the program's own: what the loader keeps stays local (`loader`), and libraries lie at
//!   addresses above those that are managed. So do programs that are linked to be anywhere and have
//!   no loader (`-static-pie`).
//! * A `.bss` may be large and is empty at first: only pages that are there are copied.

use paging::regions::Traits;
use sys::memory::MemoryFile;
use sys::pagemap::PageMap;
use sys::remote::Remote;

use super::arena::manageable;
use super::events::TABLE_FULL;
use super::inherit::send_mappings;
use super::loader::given;
use super::supervisor::Supervisor;
use sys::maps::Mapping;

const PROT_WRITE: u64 = 2;
const PROT_EXEC: u64 = 4;
/// The entry of the auxiliary vector with the address of the program's headers.
const AT_PHDR: u64 = 3;
/// Bytes of one copy.
const CHUNK: usize = 256 << 10;

/// A mapping of static data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Data {
    mapping: Mapping,
    /// Its initial contents are those of the file, not zeros.
    from_file: bool,
}

impl Supervisor<'_> {
    /// Takes the static data of an image that has just greeted under management, and sends its
    /// helper, which waits, the ranges to map.
    pub(crate) fn take_static_data(&mut self, slot: usize, tgid: u32) {
        let (Some(arena), Some(injection)) =
            (self.people.arenas[slot].as_ref(), self.programs.injections.get(&tgid))
        else {
            return;
        };
        let mut taken = Vec::new();
        for data in of(tgid) {
            let Mapping { start, end, .. } = data.mapping;
            if copy(tgid, injection.memory(), &arena.memory, data).is_ok() {
                taken.push(data.mapping);
            } else {
                // This mapping stays unmanaged.
                let _end_of_file = arena.memory.punch(start, end - start);
            }
        }
        let Some(arena) = self.people.arenas[slot].as_mut() else { return };
        for one in &taken {
            arena.space.regions.map(one.start, one.end, Traits::default());
            let unopened = arena.open(&self.kernel.tables, one.start, one.end - one.start);
            self.books.totals.lost(TABLE_FULL, unopened);
        }
        // Without its helper the process is about to end.
        let _ending = send_mappings(arena, &[], &taken);
    }
}

// The static data of process `pid`; none if it is not found, or partly swapped out.
fn of(pid: u32) -> Vec<Data> {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    let is_swapped = |status: &str| {
        let swapped = status.lines().find_map(|line| line.strip_prefix("VmSwap:"));
        !swapped.is_some_and(|kib| kib.trim().starts_with("0 "))
    };
    match (read("maps"), given(pid, AT_PHDR), read("status")) {
        (Ok(maps), Some(headers), Ok(status)) if !is_swapped(&status) => find(&maps, headers),
        _ => Vec::new(),
    }
}

// The writable mappings of the file that is mapped at `headers`, and those without a file that
// follow one immediately.
fn find(maps: &str, headers: u64) -> Vec<Data> {
    let lines: Vec<(Mapping, Vec<&str>)> = maps
        .lines()
        .filter_map(|line| Some((Mapping::parse(line)?, line.split_whitespace().collect())))
        .collect();
    // Device and inode.
    fn file<'a>(fields: &[&'a str]) -> Option<[&'a str; 2]> {
        let pair: [&str; 2] = fields.get(3..5)?.try_into().ok()?;
        (pair[1] != "0").then_some(pair)
    }
    let holds = |mapping: &Mapping| (mapping.start..mapping.end).contains(&headers);
    let program = lines.iter().find(|(mapping, _)| holds(mapping)).and_then(|line| file(&line.1));
    let (mut found, mut behind) = (Vec::new(), 0);
    for (mapping, fields) in &lines {
        let from_file = program.is_some() && file(fields) == program;
        // A mapping that ends where the heap would begin is named after it.
        let has_no_name = matches!(fields.get(5), None | Some(&"[heap]"));
        let follows = mapping.start == behind && file(fields).is_none() && has_no_name;
        if !from_file && !follows {
            continue;
        }
        behind = mapping.end;
        let is_data = mapping.protection & (PROT_WRITE | PROT_EXEC) == PROT_WRITE;
        let is_private = fields.get(1).is_some_and(|flags| flags.ends_with('p'));
        let range = Some((mapping.start, mapping.end));
        if is_data && is_private && manageable(mapping.start, mapping.end) == range {
            found.push(Data { mapping: *mapping, from_file });
        }
    }
    found
}

fn copy(pid: u32, from: &Remote, to: &MemoryFile, data: Data) -> Result<(), sys::Error> {
    let Mapping { start, end, .. } = data.mapping;
    let mut ranges = Vec::new();
    if data.from_file {
        ranges.push((start, end));
    } else {
        PageMap::open(pid)?.present(start, end, |start, end| ranges.push((start, end)))?;
    }
    let mut buffer = vec![0_u8; CHUNK];
    for (start, end) in ranges {
        let mut at = start;
        while at < end {
            let count = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
            from.read(&mut buffer[..count], at)?;
            to.write_at(&buffer[..count], at)?;
            at += count as u64;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
00400000-00401000 r--p 00000000 fe:00 77   /usr/bin/a program
00401000-00405000 r-xp 00001000 fe:00 77   /usr/bin/a program
00405000-00406000 r--p 00005000 fe:00 77   /usr/bin/a program
00406000-00408000 rw-p 00006000 fe:00 77   /usr/bin/a program
00408000-00508000 rw-p 00000000 00:00 0    [heap]
00600000-00601000 rw-p 00000000 00:00 0
7f0000000000-7f0000010000 r-xp 00000000 fe:00 78   /usr/lib/ld.so
7f0000010000-7f0000012000 rw-p 00010000 fe:00 78   /usr/lib/ld.so
7f0000012000-7f0000013000 rw-p 00000000 00:00 0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0    [stack]
";

    fn ranges(maps: &str, headers: u64) -> Vec<(u64, u64, bool)> {
        let range = |data: Data| (data.mapping.start, data.mapping.end, data.from_file);
        find(maps, headers).into_iter().map(range).collect()
    }

    #[test]
    fn static_data_are_what_can_be_written_of_the_programs_file_and_what_follows_it() {
        let data = [(0x40_6000, 0x40_8000, true), (0x40_8000, 0x50_8000, false)];
        assert_eq!(ranges(MAPS, 0x40_0040), data);
        // The kernel may begin a `.bss` where no data of the file are.
        let without = MAPS.replace("rw-p 00006000", "r--p 00006000");
        assert_eq!(ranges(&without, 0x40_0040), data[1..]);
    }

    #[test]
    fn what_cannot_be_managed_or_is_executed_stays() {
        assert_eq!(ranges(MAPS, 0x7f00_0000_0040), [], "above the addresses that are managed");
        assert_eq!(ranges(MAPS, 0x60_0000), [], "no file");
        assert_eq!(ranges(MAPS, 0x50), [], "nothing there");
        let executed = MAPS.replace("rw-p 00006000", "rwxp 00006000");
        assert_eq!(ranges(&executed, 0x40_0040), [(0x40_8000, 0x50_8000, false)]);
    }
}
