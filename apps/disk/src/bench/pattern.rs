//! Patterns of requests, and the distribution of random ones.

use clap::ValueEnum;

const ZIPF: f64 = 1.1;

const ZIPF_MOST: f64 = 10.0;

/// Parses a distribution: the skew of `zipf:SKEW`, or `None` for `random`.
///
/// # Errors
/// A sentence on what is wrong.
pub(crate) fn skew(text: &str) -> Result<Option<f64>, String> {
    let (kind, skew) = text.split_once(':').unwrap_or((text, ""));
    match (kind, skew) {
        ("random", "") => Ok(None),
        ("zipf", "") => Ok(Some(ZIPF)),
        ("zipf", skew) => {
            let skew = skew.parse().ok();
            let skew = skew.filter(|skew| (0.0..=ZIPF_MOST).contains(skew) && *skew != 0.0);
            let skew = skew.filter(|skew: &f64| *skew != 1.0);
            skew.map(Some)
                .ok_or_else(|| format!("write zipf:SKEW, above 0, not 1, at most {ZIPF_MOST}"))
        }
        _ => Err(format!("\"{text}\" is no distribution; write random, zipf or zipf:SKEW")),
    }
}

/// What requests do, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pattern {
    /// Reads anywhere
    Randread,
    /// Writes anywhere
    Randwrite,
    /// Both anywhere
    Randrw,
    /// Reads one after another
    Read,
    /// Writes one after another
    Write,
    /// Gives room back anywhere
    Randtrim,
    /// Gives room back, one place after another
    Trim,
    /// Both one after another
    #[value(name = "rw", alias = "readwrite")]
    Mixed,
}

impl Pattern {
    /// The percentage of reads; `mixed` for patterns of both reads and writes.
    pub(crate) const fn read_percent(self, mixed: u8) -> u8 {
        match self {
            Self::Read | Self::Randread => 100,
            Self::Mixed | Self::Randrw => mixed,
            Self::Write | Self::Randwrite | Self::Trim | Self::Randtrim => 0,
        }
    }

    /// Whether requests go to one place after another.
    pub(crate) const fn is_sequential(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Mixed | Self::Trim)
    }

    /// Whether requests deallocate blocks.
    pub(crate) const fn trims(self) -> bool {
        matches!(self, Self::Trim | Self::Randtrim)
    }

    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
