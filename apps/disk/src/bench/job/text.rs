//! Parses the text of a job file, as fio does: sections of `name=value`.
//!
//! ```text
//! bytes ─► lines ─► comments removed, ${VARIABLES} replaced ─► sections, each with global options
//! ```
//!
//! No library of INI files does this: none reports the line of an entry, which errors and notes
//! begin with. rust-ini 0.21 also takes a key without `=` for a part of the next one's name
//! (`stonewall` above `bs=4k` is one key), and reports a bracket left open in line 3 at line 5;
//! configparser 3.3 makes one section of two with the same name.

use super::JobError;

/// One `name=value`; the value is `None` where there is no `=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The line, from 1.
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

/// A section that is a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) line: usize,
    pub(crate) name: String,
    /// All options of the section; first those of `[global]` sections above it.
    pub(crate) entries: Vec<Entry>,
    /// How many of `entries` are global.
    pub(crate) global_count: usize,
}

/// The options of a section whose name begins with this apply to all sections below.
const GLOBAL: &str = "global";

/// Parses a job file whose variables have the values of `variable`.
///
/// # Errors
/// The first invalid line.
pub(crate) fn read(
    bytes: &[u8],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Section>, JobError> {
    let mut globals: Vec<Entry> = Vec::new();
    let mut sections: Vec<Section> = Vec::new();
    // Whether entries belong to `globals` or to the last section; `None` above the first section.
    let mut is_global = None;
    for (index, bytes) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = index + 1;
        let wrong = |reason: String| JobError { line, reason };
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
        let text = expand(without_comment(text).trim(), variable).map_err(wrong)?;
        if text.is_empty() {
            continue;
        }
        if let Some(rest) = text.strip_prefix('[') {
            let name = rest.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            let Some(name) = name else {
                return Err(wrong(format!("{text:?} begins a section; write [NAME]")));
            };
            is_global = Some(name.starts_with(GLOBAL));
            if is_global == Some(false) {
                let (name, entries) = (name.to_owned(), globals.clone());
                sections.push(Section { line, name, global_count: entries.len(), entries });
            }
            continue;
        }
        let entry = entry(line, &text);
        match (is_global, sections.last_mut()) {
            (Some(true), _) => globals.push(entry),
            (Some(false), Some(section)) => section.entries.push(entry),
            _ => return Err(wrong(format!("{text:?} belongs to no section; begin with [NAME]"))),
        }
    }
    if sections.is_empty() {
        let reason = "there is no job; begin one with [NAME]".to_owned();
        return Err(JobError { line: 1, reason });
    }
    Ok(sections)
}

fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default()
}

// Splits `name=value`.
fn entry(line: usize, text: &str) -> Entry {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.trim().to_owned())),
        None => (text, None),
    };
    Entry { line, name: name.trim().to_owned(), value }
}

// Replaces each `${NAME}` by its value. One that is not set is an error; fio inserts nothing.
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| format!("\"${{{after}\" has no end; write ${{NAME}}"))?;
        let value = variable(name)
            .ok_or_else(|| format!("${{{name}}} is not set; run with {name}=VALUE before afar"))?;
        out += before;
        out += &value;
        rest = after;
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn none(_name: &str) -> Option<String> {
        None
    }

    fn parse(text: &str) -> Vec<Section> {
        read(text.as_bytes(), &none).expect("it can be read")
    }

    fn shown(section: &Section) -> Vec<String> {
        let text = |entry: &Entry| match &entry.value {
            Some(value) => format!("{}: {}={value}", entry.line, entry.name),
            None => format!("{}: {}", entry.line, entry.name),
        };
        section.entries.iter().map(text).collect()
    }

    #[test]
    fn sections_have_what_is_global_above_them() {
        let text = "; a comment\n[global]\nbs=4k # each\n\n[one]\r\n  rw = randread ; so\n\
                    time_based\n\
                    [global]\niodepth=2\n[two words]\nfilename=a=b\n";
        let sections = parse(text);
        let names: Vec<_> = sections.iter().map(|one| (one.line, one.name.as_str())).collect();
        assert_eq!(names, [(5, "one"), (10, "two words")]);
        assert_eq!(shown(&sections[0]), ["3: bs=4k", "6: rw=randread", "7: time_based"]);
        assert_eq!(shown(&sections[1]), ["3: bs=4k", "9: iodepth=2", "11: filename=a=b"]);
        assert_eq!((sections[0].global_count, sections[1].global_count), (1, 2));
    }

    #[test]
    fn variables_have_values() {
        let set = |name: &str| (name == "SIZE").then(|| "2m".to_owned());
        let text = "[a]\nsize=${SIZE}\nfilename=x${SIZE}y$SIZE\n";
        let sections = read(text.as_bytes(), &set).expect("it can be read");
        assert_eq!(shown(&sections[0]), ["2: size=2m", "3: filename=x2my$SIZE"]);
    }

    #[test]
    fn what_cannot_be_says_where_and_why() {
        let cases: [(&[u8], usize, &str); 8] = [
            (b"", 1, "there is no job"),
            (b"[global]\nbs=4k\n", 1, "there is no job"),
            (b"\nbs=4k\n[a]", 2, "\"bs=4k\" belongs to no section"),
            (b"[a\nbs=4k", 1, "\"[a\" begins a section; write [NAME]"),
            (b"[ ]", 1, "write [NAME]"),
            (b"[a]\n\xff=1", 2, "not UTF-8"),
            (b"[a]\nbs=${NONE}", 2, "${NONE} is not set; run with NONE=VALUE before afar"),
            (b"[a]\nbs=${NO", 2, "\"${NO\" has no end"),
        ];
        for (text, line, reason) in cases {
            let error = read(text, &none).expect_err("it cannot be read");
            assert_eq!(error.line, line, "{error:?}");
            assert!(error.reason.contains(reason), "{error:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(&bytes, &none);
        }

        #[test]
        fn any_text_is_read_or_refused(
            text in "(\\[[a-z ]{0,6}\\]?|[a-z_${}=;#0-9 ]{0,20}|\n){0,40}",
        ) {
            let _ = read(text.as_bytes(), &|name| Some(name.to_owned()));
        }

        #[test]
        fn what_is_written_is_read(
            jobs in prop::collection::vec(
                ("[a-f]{1,8}x", prop::collection::vec(("[a-z_]{1,9}", "[a-z0-9.:/]{0,9}"), 0..5)),
                1..5,
            )
        ) {
            let mut text = String::new();
            for (name, entries) in &jobs {
                text += &format!("[{name}]\n");
                for (name, value) in entries {
                    text += &format!(" {name}={value}\n");
                }
            }
            let sections = parse(&text);
            prop_assert_eq!(sections.len(), jobs.len());
            for (section, (name, entries)) in sections.iter().zip(&jobs) {
                prop_assert_eq!(&section.name, name);
                let read: Vec<_> = section
                    .entries
                    .iter()
                    .map(|one| (one.name.clone(), one.value.clone().unwrap_or_default()))
                    .collect();
                prop_assert_eq!(&read, entries);
            }
        }
    }
}
