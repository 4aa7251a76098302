//! Files of one run, opened before it and filled after it.

use std::path::{Path, PathBuf};

use console::{Directory, Failure, Output, terminal};
use netsim::{PortSeries, Trace};
use records::{FlowRow, RecordError};
use results::sim::Simulation;

use super::panels;
use super::pcap;
use super::ports;
use super::setup::Setup;
use super::{SimError, shares, steps, told};
use crate::sim::flags::SimFlags;
use document::NotRecorded;

/// The output files of one run, open.
pub(super) struct Outputs {
    json: Vec<Output>,
    flows: Vec<Table>,
    ports: Vec<Table>,
    shares: Vec<Output>,
    picture: Vec<Output>,
    profile: Option<Output>,
    capture: Option<(Output, String)>,
    /// The most packets of the capture.
    capture_max: u32,
    steps: Option<Output>,
}

/// A file and what is in it.
type Filled = (Output, Vec<u8>);

/// A table, as text or as Parquet.
enum Table {
    Csv(Output),
    Parquet(Output, PathBuf),
}

/// The results of a run that fill its files.
pub(super) struct Results<'a> {
    pub(super) setup: &'a Setup,
    pub(super) record: &'a Simulation,
    pub(super) title: String,
    pub(super) rows: &'a [FlowRow],
    pub(super) series: Option<&'a PortSeries>,
    pub(super) trace: Option<&'a Trace>,
}

impl Outputs {
    /// Opens the files, with the directory of `--output`, which is removed if nothing is written.
    pub(super) fn open(flags: &SimFlags) -> Result<(Self, Option<Directory>), Failure> {
        let list = |path: &Option<PathBuf>| path.iter().cloned().collect::<Vec<_>>();
        let (mut json, mut flows) = (list(&flags.json), list(&flags.csv));
        let (mut ports, mut shares) = (list(&flags.ports), list(&flags.cdf));
        let (mut picture, mut parquet) = (list(&flags.svg), list(&flags.parquet));
        let profile = flags.delay_profile.as_deref();
        let made = flags.output.as_deref().map(Directory::make).transpose()?;
        if let Some(directory) = &flags.output {
            json.push(directory.join("result.json"));
            flows.push(directory.join("flows.csv"));
            parquet.push(directory.join("flows.parquet"));
            ports.extend(["ports.csv", "ports.parquet"].map(|name| directory.join(name)));
            shares.push(directory.join("shares.csv"));
            picture.push(directory.join("run.svg"));
        }
        let open = |paths: &[PathBuf]| -> Result<Vec<Output>, Failure> {
            paths.iter().map(|path| Output::open(path)).collect()
        };
        let mut tables: Vec<Table> = open(&flows)?.into_iter().map(Table::Csv).collect();
        for path in parquet {
            tables.push(Table::parquet(&path)?);
        }
        let outputs = Self {
            json: open(&json)?,
            flows: tables,
            ports: ports.iter().map(|path| Table::open(path)).collect::<Result<_, _>>()?,
            shares: open(&shares)?,
            picture: open(&picture)?,
            profile: profile.map(Output::open).transpose()?,
            capture: capture(flags.pcap.as_deref())?,
            capture_max: flags.pcap_packets,
            steps: flags.steps.as_deref().map(Output::open).transpose()?,
        };
        Ok((outputs, made))
    }

    /// Whether a file needs what ports did over time.
    pub(super) fn want_ports(&self) -> bool {
        !self.ports.is_empty() || !self.picture.is_empty()
    }

    /// How many packets the run has to trace; `None` if no file needs them.
    pub(super) fn wanted_packets(&self) -> Option<u32> {
        let capture = self.capture.as_ref().map(|_| self.capture_max);
        capture.max(self.steps.as_ref().map(|_| steps::PACKETS_MAX))
    }

    /// The files, each with its contents.
    pub(super) fn filled(mut self, results: Results<'_>) -> Result<Vec<Filled>, Failure> {
        let mut files = self.packets(&results)?;
        let Results { setup, record, title, rows, series, .. } = results;
        let fabric = &setup.fabric;
        let mut add = |output, text: String| files.push((output, text.into_bytes()));
        for output in self.json {
            add(output, results::write(record));
        }
        for output in self.shares {
            add(output, shares::csv(&record.shares));
        }
        for output in self.picture {
            add(output, panels::draw(&title, record));
        }
        if let Some(output) = self.profile {
            let profile = told::profile(rows, setup.end).ok_or_else(nobody_asks)?;
            add(output, profile.to_csv());
        }
        for table in self.flows {
            let notes = [("afar", env!("CARGO_PKG_VERSION"))];
            let parquet = || records::write_flows(Vec::new(), &notes, rows);
            files.push(table.filled(|| told::csv(rows), parquet)?);
        }
        if let Some(series) = series {
            for table in self.ports {
                let parquet = || records::write_table(Vec::new(), &ports::columns(fabric, series));
                files.push(table.filled(|| ports::csv(fabric, series), parquet)?);
            }
        }
        Ok(files)
    }

    /// The page of `--steps` and the capture, each with its contents.
    fn packets(&mut self, results: &Results<'_>) -> Result<Vec<Filled>, Failure> {
        let Some(trace) = results.trace else { return Ok(Vec::new()) };
        let Setup { fabric, flows, .. } = results.setup;
        let mut files = Vec::new();
        if let Some(output) = self.steps.take() {
            let (title, rows) = (&results.title, results.rows);
            let page = steps::page(&steps::Shown { title, fabric, flows, rows, trace });
            let page = page.map_err(|message| SimError::at("--steps", message))?;
            files.push((output, page.into_bytes()));
        }
        let Some((output, name)) = self.capture.take() else { return Ok(files) };
        let capture = pcap::file(fabric, flows, trace, self.capture_max);
        files.push((output, capture.map_err(|error| SimError::at("--pcap", error.to_string()))?));
        let omitted = pcap::omitted(trace, self.capture_max);
        if omitted > 0 {
            terminal::say(&format!(
                "afar sim: {name} has the first {} packets, and not the {omitted} after them; \
                 --pcap-packets raises that\n",
                self.capture_max
            ));
        }
        Ok(files)
    }
}

/// The error of a delay profile where no flow is read, and nobody waits for one.
pub(super) fn nobody_asks() -> SimError {
    let message = "no flow is read, so nobody waits for one; add --exchange read";
    SimError::at("--delay-profile", message)
}

/// Opens the file of a capture, with its name; standard output is an error.
fn capture(path: Option<&Path>) -> Result<Option<(Output, String)>, Failure> {
    let Some(path) = path else { return Ok(None) };
    if path.as_os_str() == "-" {
        let message = "a capture is not for standard output; name a file";
        return Err(SimError::at("--pcap", message).into());
    }
    Ok(Some((Output::open(path)?, path.display().to_string())))
}

impl Table {
    /// Opens a table; Parquet if its name ends in `.parquet`, else CSV.
    fn open(path: &Path) -> Result<Self, Failure> {
        match path.extension().is_some_and(|ending| ending == "parquet") {
            true => Self::parquet(path),
            false => Output::open(path).map(Self::Csv),
        }
    }

    /// Opens a Parquet table.
    fn parquet(path: &Path) -> Result<Self, Failure> {
        Ok(Self::Parquet(Output::open(path)?, path.to_owned()))
    }

    /// The file, with the contents that `csv` or `parquet` makes for its format.
    fn filled(
        self,
        csv: impl FnOnce() -> String,
        parquet: impl FnOnce() -> Result<Vec<u8>, RecordError>,
    ) -> Result<Filled, Failure> {
        match self {
            Self::Csv(output) => Ok((output, csv().into_bytes())),
            Self::Parquet(output, path) => {
                let bytes = parquet().map_err(|source| NotRecorded { path, source })?;
                Ok((output, bytes))
            }
        }
    }
}
