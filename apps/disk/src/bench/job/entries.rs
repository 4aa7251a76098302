//! Looks up the options of a section by name, and parses their values.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use measure::Duration;

use super::text::{Entry, Section};
use super::units::{Extent, KbBase, time};
use super::words::{MEANINGLESS, SUPPORTED, UNSUPPORTED, canonical, nearest};
use super::{JobError, Note};

pub(super) type Read<T> = Result<T, JobError>;

impl Entry {
    /// The error that this option is wrong for `reason`, with its name and value in front.
    pub(super) fn wrong(&self, reason: impl AsRef<str>) -> JobError {
        let (name, reason) = (&self.name, reason.as_ref());
        let text = match &self.value {
            Some(value) => {
                // Some reasons begin with the value already.
                let rest = reason.strip_prefix(&format!("\"{value}\""));
                let rest = rest.map_or(reason, |rest| rest.trim_start_matches([':', ' ']));
                format!("{name}={value}: {rest}")
            }
            None => format!("{name}: {reason}"),
        };
        JobError { line: self.line, reason: text }
    }

    /// The value; an error where there is none.
    pub(super) fn value(&self) -> Read<&str> {
        let value = self.value.as_deref().filter(|value| !value.is_empty());
        value.ok_or_else(|| self.wrong("it has no value; write NAME=VALUE"))
    }

    /// The value, parsed by `read`.
    pub(super) fn parse<T>(&self, read: impl FnOnce(&str) -> Result<T, String>) -> Read<T> {
        read(self.value()?).map_err(|reason| self.wrong(reason))
    }
}

/// Values for reads, writes and trims, and the option that has them.
pub(super) type Each<'a> = (&'a Entry, [Option<u64>; 3]);

/// The options of a section, by fio's name for each.
pub(super) struct Entries<'a> {
    by_name: BTreeMap<&'a str, &'a Entry>,
    base: KbBase,
}

impl<'a> Entries<'a> {
    /// Indexes the options of a section; notes those without effect, refuses those not supported.
    pub(super) fn of(section: &'a Section, notes: &mut Vec<Note>) -> Read<Self> {
        let mut words = Self { by_name: BTreeMap::new(), base: KbBase::default() };
        for entry in &section.entries {
            let word = canonical(&entry.name);
            if SUPPORTED.contains(&word) {
                words.by_name.insert(word, entry);
            } else if let Some((_, why)) = MEANINGLESS.iter().find(|(name, _)| *name == word) {
                let text = format!("{} has no effect: {why}", entry.name);
                notes.push(Note { line: entry.line, text });
            } else {
                refuse(entry, word)?;
            }
        }
        words.base = match words.choice("kb_base", &["1000", "1024"])? {
            Some("1000") => KbBase::Thousand,
            _ => KbBase::Binary,
        };
        words.note(notes)?;
        Ok(words)
    }

    // Notes supported options whose values have no effect.
    fn note(&self, notes: &mut Vec<Note>) -> Read<()> {
        let mut add = |entry: &Entry, why: &str| {
            let text = format!(
                "{}={} has no effect: {why}",
                entry.name,
                entry.value.as_deref().unwrap_or_default()
            );
            notes.push(Note { line: entry.line, text });
        };
        if let Some(entry) = self.get("ioengine")
            && entry.value()? != "null"
        {
            add(entry, "requests go afar's own way");
        }
        for (name, value) in [("direct", false), ("buffered", true)] {
            if let Some(entry) = self.get(name)
                && self.boolean(name)? == Some(value)
            {
                add(entry, "files are opened past the page cache");
            }
        }
        Ok(())
    }

    /// The option of this name; `None` if it is missing.
    pub(super) fn get(&self, word: &str) -> Option<&'a Entry> {
        self.by_name.get(word).copied()
    }

    /// The value of an option; `None` if it is missing or empty.
    pub(super) fn text(&self, word: &str) -> Option<&'a str> {
        self.get(word)?.value.as_deref().filter(|value| !value.is_empty())
    }

    /// An option that is a whole number within `range`.
    pub(super) fn whole(&self, word: &str, range: RangeInclusive<u64>) -> Read<Option<u64>> {
        let Some(entry) = self.get(word) else { return Ok(None) };
        let number = entry.parse(|text| self.base.number(text))?;
        if range.contains(&number) {
            return Ok(Some(number));
        }
        Err(entry.wrong(format!("write {} to {}", range.start(), range.end())))
    }

    /// An option that is a number of bytes or a percentage.
    pub(super) fn extent(&self, word: &str) -> Read<Option<Extent>> {
        self.get(word).map(|entry| entry.parse(|text| self.base.extent(text))).transpose()
    }

    /// An option that is a time; a number without a unit counts `bare_ns` each.
    pub(super) fn time(&self, word: &str, bare_ns: u64) -> Read<Option<Duration>> {
        self.get(word).map(|entry| entry.parse(|text| time(text, bare_ns))).transpose()
    }

    /// An option that is 0 or 1.
    pub(super) fn boolean(&self, word: &str) -> Read<Option<bool>> {
        let Some(entry) = self.get(word) else { return Ok(None) };
        match entry.value()? {
            "0" => Ok(Some(false)),
            "1" => Ok(Some(true)),
            _ => Err(entry.wrong("write 0 or 1")),
        }
    }

    /// An option that is 0 or 1, or 1 where it has no value; false where it is missing.
    pub(super) fn flag(&self, word: &str) -> Read<bool> {
        match self.get(word) {
            Some(Entry { value: None, .. }) => Ok(true),
            _ => self.boolean(word).map(|value| value.unwrap_or(false)),
        }
    }

    /// An option that is one of `choices`.
    pub(super) fn choice(
        &self,
        word: &str,
        choices: &[&'static str],
    ) -> Read<Option<&'static str>> {
        let Some(entry) = self.get(word) else { return Ok(None) };
        let value = entry.value()?;
        let found = choices.iter().find(|choice| **choice == value).copied();
        found.map(Some).ok_or_else(|| entry.wrong(format!("write {}", choices.join(", "))))
    }

    /// An option with values for reads, writes and trims: one for all, or a list. Values missing at
    /// its end repeat the last one; empty ones are `None`.
    pub(super) fn each(&self, word: &str) -> Read<Option<Each<'a>>> {
        let Some(entry) = self.get(word) else { return Ok(None) };
        let parts: Vec<&str> = entry.value()?.split(',').map(str::trim).collect();
        if parts.len() > 3 {
            return Err(entry.wrong("write up to three values: for reads, writes and trims"));
        }
        let read = |index: usize| match parts.get(index.min(parts.len() - 1)) {
            None | Some(&"") => Ok(None),
            Some(text) => self.base.number(text).map(Some).map_err(|reason| entry.wrong(reason)),
        };
        Ok(Some((entry, [read(0)?, read(1)?, read(2)?])))
    }
}

// Refuses an option that is unknown or not supported, unless its value is the one without effect.
fn refuse(entry: &Entry, word: &str) -> Read<()> {
    let name = &entry.name;
    let wrong = |reason: String| JobError { line: entry.line, reason };
    let Some((_, neutral, instead)) = UNSUPPORTED.iter().find(|(known, ..)| *known == word) else {
        return Err(wrong(match nearest(name) {
            Some(near) => format!("fio has no option \"{name}\"; did you mean {near}?"),
            None => format!("fio has no option \"{name}\"; see fio(1)"),
        }));
    };
    if !neutral.is_empty() && entry.value.as_deref() == Some(neutral) {
        return Ok(());
    }
    Err(wrong(match *instead {
        "" => format!("fio's {name} is not supported; remove it"),
        instead => format!("fio's {name} is not supported; remove it and {instead}"),
    }))
}
