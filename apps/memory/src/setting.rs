//! Settings of tiers, and changes of a running program.

use std::fmt;
use std::str::FromStr;

use document::{Bandwidth, delay};
use measure::{Duration, LinkMode, LocalSize, ParseError};
use serde::{Deserialize, Serialize};

/// Longest name of a tier: it must fit into one register.
const NAME_BYTES_MAX: usize = 8;

/// A further tier of far memory, as given: `name=slow,rtt=20us,bandwidth=10Gbps,local=25%`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TierSetting {
    pub(crate) name: String,
    pub(crate) rtt: Option<Duration>,
    pub(crate) bandwidth: Option<Bandwidth>,
    pub(crate) local: Option<LocalSize>,
    pub(crate) link: Option<LinkMode>,
}

/// A change to a running program, as given: `rtt=10us local=25% tier=slow`. A value of `None`
/// stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// The tier; `None` for the default tier.
    pub(crate) tier: Option<String>,
    pub(crate) rtt: Option<String>,
    pub(crate) bandwidth: Option<String>,
    pub(crate) local: Option<String>,
}

/// Why a text is not the setting of a tier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SettingError {
    #[error("\"{text}\" is not a setting; write KEY=VALUE with {known}")]
    NotASetting { text: String, known: &'static str },
    #[error("there is no setting \"{key}\"; use {known}")]
    UnknownKey { key: String, known: &'static str },
    #[error("{0} is given twice; leave one out")]
    Twice(String),
    #[error("there is nothing to set; write KEY=VALUE with {CHANGE_KEYS}")]
    Nothing,
    #[error("the tier has no name; add name=NAME, as in afar_place(..., \"NAME\")")]
    NoName,
    #[error(
        "the name \"{0}\" must have 1 to {NAME_BYTES_MAX} bytes of letters, digits, - and _; \
         choose another"
    )]
    Name(String),
    #[error("{0}={1}")]
    Value(&'static str, #[source] ParseError),
}

const TIER_KEYS: &str = "name, rtt, bandwidth, local or link";
const CHANGE_KEYS: &str = "rtt, bandwidth, local or tier";

impl FromStr for TierSetting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let mut name = None;
        let mut tier =
            Self { name: String::new(), rtt: None, bandwidth: None, local: None, link: None };
        for setting in text.split(',') {
            let (key, value) = split(setting, TIER_KEYS)?;
            let twice = match key {
                "name" => name.replace(value).is_some(),
                "rtt" => {
                    let rtt = delay(value).map_err(|error| SettingError::Value("rtt", error))?;
                    tier.rtt.replace(rtt).is_some()
                }
                "bandwidth" => {
                    let rate = read("bandwidth", value)?;
                    tier.bandwidth.replace(rate).is_some()
                }
                "local" => tier.local.replace(read("local", value)?).is_some(),
                "link" => tier.link.replace(read("link", value)?).is_some(),
                _ => return Err(unknown(key, TIER_KEYS)),
            };
            if twice {
                return Err(SettingError::Twice(key.to_owned()));
            }
        }
        name.ok_or(SettingError::NoName)?.clone_into(&mut tier.name);
        let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let length = tier.name.len();
        if !(1..=NAME_BYTES_MAX).contains(&length) || !tier.name.bytes().all(good) {
            return Err(SettingError::Name(tier.name));
        }
        Ok(tier)
    }
}

impl Change {
    /// Parses and checks `KEY=VALUE` words.
    ///
    /// # Errors
    /// At the first word that is not a setting, or if there is none.
    pub(crate) fn from_words(words: &[String]) -> Result<Self, SettingError> {
        let mut change = Self::default();
        for word in words {
            let (key, value) = split(word, CHANGE_KEYS)?;
            let place = match key {
                "tier" => &mut change.tier,
                "rtt" => {
                    delay(value).map_err(|error| SettingError::Value("rtt", error))?;
                    &mut change.rtt
                }
                "bandwidth" => {
                    read::<Bandwidth>("bandwidth", value)?;
                    &mut change.bandwidth
                }
                "local" => {
                    read::<LocalSize>("local", value)?;
                    &mut change.local
                }
                _ => return Err(unknown(key, CHANGE_KEYS)),
            };
            if place.replace(value.to_owned()).is_some() {
                return Err(SettingError::Twice(key.to_owned()));
            }
        }
        if change.settings().all(|(key, _)| key == "tier") {
            return Err(SettingError::Nothing);
        }
        Ok(change)
    }

    // The settings that are given: key and value.
    fn settings(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let all = [
            ("tier", &self.tier),
            ("rtt", &self.rtt),
            ("bandwidth", &self.bandwidth),
            ("local", &self.local),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)))
    }
}

/// The words from which it was parsed.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> =
            self.settings().map(|(key, value)| format!("{key}={value}")).collect();
        f.pad(&words.join(" "))
    }
}

fn split<'a>(text: &'a str, known: &'static str) -> Result<(&'a str, &'a str), SettingError> {
    text.split_once('=').ok_or_else(|| SettingError::NotASetting { text: text.to_owned(), known })
}

fn unknown(key: &str, known: &'static str) -> SettingError {
    SettingError::UnknownKey { key: key.to_owned(), known }
}

fn read<T: FromStr<Err = ParseError>>(key: &'static str, value: &str) -> Result<T, SettingError> {
    value.parse().map_err(|error| SettingError::Value(key, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tier_all_settings() {
        let tier = "name=slow,rtt=20us,bandwidth=none,local=25%,link=per-fault".parse();
        let wanted = TierSetting {
            name: "slow".to_owned(),
            rtt: Some(Duration::from_us(20)),
            bandwidth: Some(Bandwidth(None)),
            local: Some("25%".parse().unwrap()),
            link: Some(LinkMode::PerFault),
        };
        assert_eq!(tier, Ok(wanted));
    }

    #[test]
    fn tier_error_texts() {
        let cases = [
            (
                "slow",
                "\"slow\" is not a setting; \
                 write KEY=VALUE with name, rtt, bandwidth, local or link",
            ),
            ("rtt=5us", "the tier has no name; add name=NAME, as in afar_place(..., \"NAME\")"),
            (
                "name=a,speed=3",
                "there is no setting \"speed\"; use name, rtt, bandwidth, local or link",
            ),
            ("name=a,name=b", "name is given twice; leave one out"),
            (
                "name=far-away-memory",
                "the name \"far-away-memory\" must have 1 to 8 bytes of letters, digits, - and _; \
                 choose another",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(text.parse::<TierSetting>().unwrap_err().to_string(), message);
        }
        let error = "name=a,rtt=5".parse::<TierSetting>().unwrap_err().to_string();
        assert!(error.starts_with("rtt=\"5\": a time needs a unit"), "{error}");
    }

    #[test]
    fn change_reads_its_display() {
        let words = ["tier=slow", "rtt=10us", "bandwidth=none", "local=12.5%"].map(str::to_owned);
        let change = Change::from_words(&words).unwrap();
        assert_eq!(change.to_string(), words.join(" "));
    }

    #[test]
    fn change_error_texts() {
        let known = "rtt, bandwidth, local or tier";
        let cases = [
            (&[][..], format!("there is nothing to set; write KEY=VALUE with {known}")),
            (&["tier=slow"], format!("there is nothing to set; write KEY=VALUE with {known}")),
            (&["rtt"], format!("\"rtt\" is not a setting; write KEY=VALUE with {known}")),
            (&["link=half-duplex"], format!("there is no setting \"link\"; use {known}")),
            (&["rtt=1us", "rtt=2us"], "rtt is given twice; leave one out".to_owned()),
        ];
        for (words, message) in cases {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(Change::from_words(&words).unwrap_err().to_string(), message);
        }
    }
}
