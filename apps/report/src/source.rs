//! Records from files and directories: the kind of each, and the module that reads it.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use measure::{LoadResults, Results as _, RunResults, WorkloadResults};
use records::RecordError;
use results::{ClosedLoop, Findings, Record as _, Requirements, Validation};
use serde_json::Value;

use super::context::Context;
use super::section::Section;
use super::{
    disk, disks, faults, flows, kv, loops, plan, predicted, reproduced, requirement, run, served,
    sim, sweep, torture, validated, workload,
};

/// Longest record that is read; those of afar are a few megabytes at most.
const BYTES_MAX: u64 = 256 << 20;
/// The name of the schema of `afar bench` in messages.
const FIO: &str = "fio's JSON of afar bench";
/// How a Parquet file begins.
const PARQUET: &[u8] = b"PAR1";

/// Why there is no report of a record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("{}: {source}; give a record that afar has written", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error(
        "{} has {bytes} bytes, and a record at most {BYTES_MAX}; give a single record of afar",
        path.display()
    )]
    TooLong { path: PathBuf, bytes: u64 },
    #[error(
        "{}: a directory without sweep.json or result.json; give that of an afar sweep or of afar \
         sim --output",
        path.display()
    )]
    Directory { path: PathBuf },
    #[error(
        "{}: the directory of a sweep of afar sim; give what its --json has written",
        path.display()
    )]
    Simulated { path: PathBuf },
    #[error(
        "{}: neither JSON nor Parquet ({source}); give what --json or --record has written",
        path.display()
    )]
    NotJson { path: PathBuf, source: serde_json::Error },
    #[error(
        "{} has no \"schema\" field, so it is no record of afar; give what --json of a command \
         has written",
        path.display()
    )]
    NoSchema { path: PathBuf },
    #[error(
        "{} has schema \"{found}\", which makes no report; {}",
        path.display(), instead(found)
    )]
    UnknownSchema { path: PathBuf, found: String },
    #[error(
        "{} cannot be read as \"{schema}\": {source}; it may be cut short",
        path.display()
    )]
    Malformed { path: PathBuf, schema: String, source: serde_json::Error },
    #[error("{}: {source}", path.display())]
    Parquet { path: PathBuf, source: RecordError },
    #[error("{}: {what}", path.display())]
    Sweep { path: PathBuf, what: String },
}

/// Reads the findings in the directory of a sweep; the error says why that is impossible.
pub type OfSweep<'a> = &'a dyn Fn(&Path) -> Result<Findings, String>;

type Reader = fn(Value, &Context) -> Result<Section, serde_json::Error>;

/// Kinds of records by their schema.
const READERS: [(&str, Reader); 22] = [
    (RunResults::SCHEMA, run::section),
    (Findings::SCHEMA, sweep::section),
    (Requirements::SCHEMA, requirement::section),
    (LoadResults::SCHEMA, kv::section),
    (results::served::KvServed::SCHEMA, served::section),
    (WorkloadResults::SCHEMA, workload::section),
    (results::disks::DiskComparison::SCHEMA, disks::section),
    (results::torture::Torture::SCHEMA, torture::section),
    (results::sim::Simulation::SCHEMA, sim::section),
    (results::sim::Simulations::SCHEMA, sim::many::section),
    (ClosedLoop::SCHEMA, loops::section),
    (Validation::SCHEMA, validated::section),
    (results::prediction::Prediction::SCHEMA, predicted::section),
    (results::reproduced::Reproduction::SCHEMA, reproduced::section),
    (results::plan::cost::Bill::SCHEMA, plan::cost::section),
    (results::plan::cost_map::CostMap::SCHEMA, plan::cost::map),
    (results::plan::latency::RoundTrips::SCHEMA, plan::latency::section),
    (results::plan::place::Placement::SCHEMA, plan::place::section),
    (results::plan::pool::PoolSizing::SCHEMA, plan::pool::section),
    (results::plan::admit::Admission::SCHEMA, plan::admit::section),
    (results::plan::fleet::FleetDemand::SCHEMA, plan::fleet::section),
    // As fio's records, afar's have no schema: `fio version` says what they are.
    (FIO, disk::section),
];

/// What to do about a record of a kind that no report is made of.
fn instead(found: &str) -> String {
    let known = || READERS.iter().map(|(schema, _)| *schema).filter(|schema| *schema != FIO);
    let near = console::usage::nearest(kind(found), known().map(kind));
    match near.and_then(|near| known().find(|schema| kind(schema) == near)) {
        Some(same) if kind(same) == kind(found) => {
            format!("this afar reads {same}: make it again, or use the afar that wrote it")
        }
        Some(near) => format!("the nearest is {near}, and afar version lists all records"),
        None => "give one of a run, a sweep or a load: afar version lists all records".to_owned(),
    }
}

/// A schema without its prefix `afar.` and without its version.
fn kind(schema: &str) -> &str {
    let whole = schema.strip_prefix("afar.").unwrap_or(schema);
    whole.split('/').next().unwrap_or_default()
}

/// Reads a record, or the directory that holds it.
///
/// # Errors
/// If the file cannot be read, or is no record that a report is made of.
pub(super) fn read(path: &Path, bound: f64, of_sweep: OfSweep<'_>) -> Result<Section, SourceError> {
    let name =
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let context = Context { bound, name };
    if path.is_dir() {
        return of_directory(path, &context, of_sweep);
    }
    let bytes = bytes(path)?;
    if bytes.starts_with(PARQUET) {
        return of_parquet(path);
    }
    of_json(path, &bytes, &context)
}

/// The bytes of a record; of a Parquet file only the first four.
fn bytes(path: &Path) -> Result<Vec<u8>, SourceError> {
    let unreadable = |source| SourceError::Unreadable { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    let mut start = Vec::new();
    let length = PARQUET.len() as u64;
    file.by_ref().take(length).read_to_end(&mut start).map_err(unreadable)?;
    // Parquet files may be larger: they are read piece by piece.
    if start == PARQUET {
        return Ok(start);
    }
    file.take(BYTES_MAX).read_to_end(&mut start).map_err(unreadable)?;
    match start.len() as u64 {
        bytes @ BYTES_MAX.. => Err(SourceError::TooLong { path: path.to_owned(), bytes }),
        _ => Ok(start),
    }
}

/// The section of a directory of `afar sweep` or `afar sim --output`.
fn of_directory(
    path: &Path,
    context: &Context,
    of_sweep: OfSweep<'_>,
) -> Result<Section, SourceError> {
    let head = path.join("sweep.json");
    if head.exists() {
        let value: Value = serde_json::from_slice(&bytes(&head)?)
            .map_err(|source| SourceError::NotJson { path: head.clone(), source })?;
        match value["schema"].as_str() {
            Some(results::SWEEP_SCHEMA) => {}
            Some(results::sim::SWEEP_SCHEMA) => {
                return Err(SourceError::Simulated { path: path.to_owned() });
            }
            Some(found) => {
                return Err(SourceError::UnknownSchema { path: head, found: found.to_owned() });
            }
            None => return Err(SourceError::NoSchema { path: head }),
        }
        let findings =
            of_sweep(path).map_err(|what| SourceError::Sweep { path: path.to_owned(), what })?;
        let began_unix_ns = Some(findings.started_unix_ns);
        return Ok(Section { began_unix_ns, ..sweep::of(findings, context).silenced() });
    }
    let result = path.join("result.json");
    if !result.exists() {
        return Err(SourceError::Directory { path: path.to_owned() });
    }
    let mut section = of_json(&result, &bytes(&result)?, context)?;
    let flows = path.join("flows.parquet");
    if flows.exists() {
        section.pictures.append(&mut of_parquet(&flows)?.pictures);
    }
    Ok(section)
}

/// The section of a Parquet file of faults or flows.
fn of_parquet(path: &Path) -> Result<Section, SourceError> {
    let failed = |source| SourceError::Parquet { path: path.to_owned(), source };
    let open = || {
        File::open(path).map_err(|source| SourceError::Unreadable { path: path.to_owned(), source })
    };
    let reader = match records::FaultReader::new(open()?) {
        Ok(reader) => reader,
        Err(RecordError::Invalid(why)) => return Ok(faults::invalid(why)),
        Err(source) => return Err(failed(source)),
    };
    match reader.note("schema") {
        Some(records::FAULTS_SCHEMA) => faults::section(reader).map_err(failed),
        _ => flows::section(open()?).map_err(failed),
    }
}

/// The section of a JSON record, by its schema.
fn of_json(path: &Path, bytes: &[u8], context: &Context) -> Result<Section, SourceError> {
    let path = path.to_owned();
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(source) => return Err(SourceError::NotJson { path, source }),
    };
    let schema = match &value["schema"] {
        Value::String(schema) => schema.clone(),
        _ if value["fio version"].is_string() => FIO.to_owned(),
        _ => return Err(SourceError::NoSchema { path }),
    };
    let Some((_, reader)) = READERS.iter().find(|(known, _)| *known == schema) else {
        return Err(SourceError::UnknownSchema { path, found: schema });
    };
    let began_unix_ns = value["started_unix_ns"].as_u64();
    let section = reader(value, context);
    let section = section.map_err(|source| SourceError::Malformed { path, schema, source })?;
    Ok(Section { began_unix_ns, ..section })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let context = Context { bound: 1.05, name: String::new() };
        let read = of_json(Path::new("x.json"), text.as_bytes(), &context);
        read.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_is_no_record_is_told_apart() {
        assert!(refused("{").starts_with("x.json: neither JSON nor Parquet (EOF"));
        assert!(refused("[]").contains("has no \"schema\" field"));
        assert!(refused("{\"schema\": 1}").contains("has no \"schema\" field"));
        let unknown = refused("{\"schema\": \"afar.run/9\"}");
        assert_eq!(
            unknown,
            "x.json has schema \"afar.run/9\", which makes no report; this afar reads afar.run/2: \
             make it again, or use the afar that wrote it"
        );
        for (found, wanted) in [
            ("afar.findingss/1", "; the nearest is afar.findings/3"),
            ("afar.report/1", "; give one of a run"),
            ("afar.doctor/2", "; give one of a run"),
            ("", "; give one of a run"),
        ] {
            let told = refused(&format!("{{\"schema\": \"{found}\"}}"));
            assert!(told.contains(wanted), "{told}");
        }
        for (schema, _) in READERS.iter().filter(|(schema, _)| *schema != FIO) {
            let told = refused(&format!("{{\"schema\": \"{schema}\"}}"));
            assert!(
                told.contains(&format!("cannot be read as \"{schema}\": missing field")),
                "{told}"
            );
        }
    }
}
