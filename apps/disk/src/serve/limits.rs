//! Parses limits of a target by name: `--limit`, and the table `limits` of a configuration file.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use measure::{Bytes, Duration};
use serde::Deserialize;
use target::Limits;

/// A value in a file: a number, or a text with its unit.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a text such as \"64MiB\" or \"10s\"")]
pub(crate) enum Value {
    Number(u64),
    Text(String),
}

/// The names of limits, for the error about an unknown one.
const NAMES: &str = "memory, share, stall, handshake, handshakes, wrong-secret, controllers, \
                     host-controllers and connections";
/// Least and most memory of a shard.
const MEMORY: [Bytes; 2] = [Bytes::from_mib(1), Bytes::from_mib(1 << 20)];
/// Least and most share of an association; the least is a command of one block.
const SHARE: [Bytes; 2] = [Bytes::from_kib(4), Bytes::from_mib(1 << 10)];
const TIME: [Duration; 2] = [Duration::from_ms(100), Duration::from_ms(3_600_000)];

const DELAY: [Duration; 2] = [Duration::ZERO, Duration::from_ms(60_000)];

/// The default limits, changed by the table of a configuration file.
///
/// # Errors
/// The first unknown name, or value out of range.
pub(crate) fn of_table(table: &BTreeMap<String, Value>) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for (name, value) in table {
        match value {
            Value::Number(number) => set(&mut limits, name, &number.to_string())?,
            Value::Text(text) => set(&mut limits, name, text)?,
        }
    }
    Ok(limits)
}

/// The default limits, changed by words of the form NAME=VALUE.
///
/// # Errors
/// As [`of_table`], or when a word has no '='.
pub(crate) fn of_words(words: &[String]) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for word in words {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| format!("limit {word:?}: write NAME=VALUE, e.g. memory=64MiB"))?;
        set(&mut limits, name, value)?;
    }
    Ok(limits)
}

// Parses and sets one limit.
fn set(limits: &mut Limits, name: &str, text: &str) -> Result<(), String> {
    match name {
        "memory" => limits.data = between(name, text, MEMORY)?,
        "share" => limits.share = between(name, text, SHARE)?,
        "stall" => limits.stall = between(name, text, TIME)?,
        "handshake" => limits.handshake = between(name, text, TIME)?,
        "handshakes" => limits.handshakes = between(name, text, [1, 1_000_000])?,
        "wrong-secret" => limits.wrong_secret = between(name, text, DELAY)?,
        "controllers" => limits.controllers = between(name, text, [1, 65_000])?,
        "host-controllers" => limits.host_controllers = between(name, text, [1, 65_000])?,
        "connections" => limits.connections = between(name, text, [1, 1_000_000])?,
        _ => return Err(format!("there is no limit {name:?}; there are {NAMES}")),
    }
    Ok(())
}

// Parses a value within a range.
fn between<T: FromStr<Err: Display> + PartialOrd + Display>(
    name: &str,
    text: &str,
    [least, most]: [T; 2],
) -> Result<T, String> {
    let value = text.parse::<T>().map_err(|error| format!("limit {name} {text:?}: {error}"))?;
    if value < least || value > most {
        return Err(format!("limit {name} {text:?}: give {least} to {most}"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Result<Limits, String> {
        of_words(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn limits_have_names() {
        let limits = words(&["memory=64MiB", "stall=30s", "controllers=9"]).expect("they can be");
        let expected = Limits {
            data: Bytes::from_mib(64),
            stall: Duration::from_ms(30_000),
            controllers: 9,
            ..Limits::default()
        };
        assert_eq!(limits, expected);
        for (word, reason) in [
            ("memory", "write NAME=VALUE"),
            ("memory=1KiB", "limit memory \"1KiB\": give 1.0 MiB to"),
            ("stall=soon", "limit stall \"soon\": "),
            ("controllers=0", "limit controllers \"0\": give 1 to 65000"),
            ("queues=1", "there is no limit \"queues\"; there are memory, share"),
        ] {
            let error = words(&[word]).expect_err("it cannot be");
            assert!(error.contains(reason), "{word}: {error}");
        }
    }

    // What --help says of them.
    #[test]
    fn help_names_the_defaults() {
        let Limits {
            data,
            share,
            stall,
            handshake,
            handshakes,
            wrong_secret,
            controllers,
            host_controllers,
            connections,
            ..
        } = words(&[
            "memory=32MiB",
            "share=1280KiB",
            "stall=10s",
            "handshake=10s",
            "handshakes=1024",
            "wrong-secret=1s",
            "controllers=4096",
            "host-controllers=64",
            "connections=16384",
        ])
        .expect("they can be");
        let said = Limits {
            data,
            share,
            stall,
            handshake,
            handshakes,
            wrong_secret,
            controllers,
            host_controllers,
            connections,
            ..Limits::default()
        };
        assert_eq!(said, Limits::default());
        let help = crate::serve::flags::NOTES;
        for line in ["memory 32MiB", "share 1280KiB", "stall 10s", "handshake 10s"] {
            assert!(help.contains(line), "{line}");
        }
        for line in ["handshakes 1024", "wrong-secret 1s"] {
            assert!(help.contains(line), "{line}");
        }
        for line in ["controllers 4096", "host-controllers 64", "connections 16384"] {
            assert!(help.contains(line), "{line}");
        }
    }
}
