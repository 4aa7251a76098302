//! The mappings of a process, from `/proc/pid/maps`.

/// One line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// Protection bits, as `mmap` takes them.
    pub protection: u64,
    /// Whether it maps a memory file of afar's.
    pub ours: bool,
}

/// Mappings of process `pid` that overlap `start..end`.
#[must_use]
pub fn read(pid: u32, start: u64, end: u64) -> Vec<Mapping> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mappings = text.lines().filter_map(Mapping::parse);
    mappings.filter(|m| m.start < end && m.end > start).collect()
}

impl Mapping {
    /// Parses a line of the file; `None` if it is no mapping.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let bits = [('r', 1), ('w', 2), ('x', 4)];
        let flags = rest.get(..3)?;
        let allowed = bits.iter().filter(|(letter, _)| flags.contains(*letter));
        Some(Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            protection: allowed.map(|(_, bit)| bit).sum(),
            ours: crate::file_pages::is_managed(rest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_ranges_and_protection() {
        let line = "100000200000-100000201000 rw-s 00200000 00:01 2054 /memfd:afar (deleted)";
        let (start, end) = (0x1000_0020_0000, 0x1000_0020_1000);
        let mapping = Mapping { start, end, protection: 3, ours: true };
        assert_eq!(Mapping::parse(line), Some(mapping));
        assert_eq!(Mapping::parse("nonsense"), None);
        let hidden = Mapping::parse("1000-2000 ---p 0 00:00 0");
        assert_eq!(hidden.map(|mapping| (mapping.protection, mapping.ours)), Some((0, false)));
    }
}
