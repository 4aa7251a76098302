//! `afar run` as a command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One run of a program with far memory, whose record is written to a file.
#[derive(Debug, Clone)]
pub struct RunSpec<'a> {
    /// Local memory, as `--local` takes it.
    pub local: &'a str,
    /// The whole of a share of local memory, in bytes, if it is fixed.
    pub of_bytes: Option<u64>,
    /// Whether all processes share the local memory; else each has its own.
    pub is_tree: bool,
    /// The network that delays the program.
    pub network: Network<'a>,
    /// The record whose calibration this run uses, too.
    pub calibrated: Option<&'a Path>,
    /// The file of the record.
    pub json: &'a Path,
    /// The file of every fault.
    pub record: &'a Path,
    /// Whether a run stays valid although memory is not managed.
    pub allow_unmanaged: bool,
    /// The program and its arguments. A program named `afar` is this one, whatever is on PATH.
    pub program: &'a [String],
}

/// The network's delays.
#[derive(Debug, Clone, Copy)]
pub enum Network<'a> {
    /// No delay.
    None,
    /// Delays drawn from the profile in a file.
    Profile(&'a Path),
}

impl RunSpec<'_> {
    /// The command, which prints nothing of its own.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = crate::afar();
        command.args(self.words());
        command
    }

    /// The arguments of the command.
    fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            ["run", "--quiet", "--allow-below-floor", "--local", self.local].map(Into::into).into();
        if let Some(bytes) = self.of_bytes {
            words.extend(["--of".into(), bytes.to_string().into()]);
        }
        words.extend(["--budget", "tree"].map(Into::into).into_iter().filter(|_| self.is_tree));
        words.extend(["--json".into(), self.json.into(), "--record".into(), self.record.into()]);
        words.extend(self.allow_unmanaged.then(|| "--allow-unmanaged".into()));
        match self.network {
            Network::None => words.extend(["--rtt", "0"].map(Into::into)),
            Network::Profile(path) => {
                words.extend(["--profile".into(), path.into()]);
                words.extend(self.calibrated.map(|_| "--calibrated".into()));
                words.extend(self.calibrated.map(Into::into));
            }
        }
        words.push("--".into());
        let own = |word: &String| if word == "afar" { crate::program() } else { word.into() };
        let (name, rest) = self
            .program
            .split_first()
            .map_or((None, &[][..]), |(name, rest)| (Some(own(name)), rest));
        words.extend(name.map(PathBuf::into_os_string));
        words.extend(rest.iter().map(Into::into));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(network: Network<'_>, allow_unmanaged: bool, program: &[&str]) -> Vec<String> {
        let program: Vec<String> = program.iter().map(|&word| word.to_owned()).collect();
        let spec = RunSpec {
            local: "25%",
            of_bytes: allow_unmanaged.then_some(8192),
            is_tree: allow_unmanaged,
            network,
            calibrated: allow_unmanaged.then_some(Path::new("d.json")),
            json: Path::new("a.json"),
            record: Path::new("b.parquet"),
            allow_unmanaged,
            program: &program,
        };
        spec.words().into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn words_are_flags_then_the_program() {
        let flags = "run --quiet --allow-below-floor --local 25% --json a.json --record b.parquet";
        let text = words(Network::None, false, &["sort", "x"]).join(" ");
        assert_eq!(text, format!("{flags} --rtt 0 -- sort x"));
        let text = words(Network::Profile(Path::new("c")), true, &["sort"]).join(" ");
        let flags = flags.replace("25%", "25% --of 8192 --budget tree");
        assert_eq!(
            text,
            format!("{flags} --allow-unmanaged --profile c --calibrated d.json -- sort")
        );
    }

    #[test]
    fn words_program_named_afar_is_this_one() {
        let own = crate::program().display().to_string();
        assert_eq!(words(Network::None, false, &["afar", "workload"])[12], own);
    }
}
