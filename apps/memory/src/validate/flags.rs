//! Flags of `afar run --validate`.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use measure::Fraction;

use crate::far::{FarUri, far_uri};

const HEADING: &str = "Validation";
const REPETITIONS: u32 = 7;
const WITHIN: Fraction = Fraction::from_percent(5).expect("it is below 100 %");

/// Flags of `afar run --validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateFlags {
    /// Run the program natively, with its memory on these blades for real (as --far), and emulated
    /// with the times that their fetches took, or those of --profile; print how far the emulation
    /// is from what happens
    #[arg(long = "validate", value_name = "URI[,URI]...", value_parser = far_uri)]
    #[arg(value_delimiter = ',', help_heading = HEADING, group = "blade")]
    #[arg(conflicts_with_all = [
        "far", "rtt", "one_way", "bandwidth", "link", "like", "tiers", "record",
        "engine", "page_cluster", "no_calibrate", "calibrated", "dry_run", "write_back",
    ])]
    pub(crate) uris: Vec<FarUri>,

    /// With --validate: run each kind so often, in shuffled blocks; an interval needs 5
    /// [default: 7]
    #[arg(long, value_name = "COUNT", value_parser = repetitions(), help_heading = HEADING)]
    repetitions: Option<u32>,

    /// With --validate: how far an emulated run may be from a real one [default: 5%]
    #[arg(long, value_name = "SHARE", help_heading = HEADING)]
    within: Option<Fraction>,

    /// With --validate, and without --profile: emulate also with one thing changed, to see whether
    /// it matters: mean (each fetch takes the mean), scaled (each takes 1.25 times as long), waits
    /// (threads sleep instead of spinning, or spin), dirty-bits (pages are written back that were
    /// written to, changed or not), free-writes (no page is)
    #[arg(long, value_name = "WHAT[,WHAT]...", value_enum, value_delimiter = ',')]
    #[arg(conflicts_with = "profile", help_heading = HEADING)]
    pub(crate) ablate: Vec<Ablation>,

    /// With --validate: keep records and the profile here; created if missing [default: nowhere]
    #[arg(long, short, value_name = "DIR", help_heading = HEADING)]
    pub(crate) output: Option<PathBuf>,
}

impl ValidateFlags {
    /// What means something with --validate only, and whether it was given.
    pub(crate) fn given(&self) -> [(&'static str, bool); 4] {
        [
            ("--repetitions", self.repetitions.is_some()),
            ("--within", self.within.is_some()),
            ("--ablate", !self.ablate.is_empty()),
            ("--output", self.output.is_some()),
        ]
    }

    pub(crate) fn repetitions(&self) -> u32 {
        self.repetitions.unwrap_or(REPETITIONS)
    }

    pub(crate) fn within(&self) -> Fraction {
        self.within.unwrap_or(WITHIN)
    }
}

/// What is changed in an emulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Ablation {
    /// Each fetch takes the mean
    Mean,
    /// Each fetch takes 1.25 times as long
    Scaled,
    /// Threads sleep instead of spinning, or spin
    Waits,
    /// Pages are written back that were written to, changed or not
    DirtyBits,
    /// No page is written back
    FreeWrites,
}

impl Ablation {
    /// The name users know it by.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Scaled => "scaled",
            Self::Waits => "waits",
            Self::DirtyBits => "dirty-bits",
            Self::FreeWrites => "free-writes",
        }
    }
}

fn repetitions() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=1000)
}
