//! `afar version`: which afar this is, how it was built, and which records it writes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use console::{Failure, Output};
use measure::{LoadResults, Results, RunResults, WorkloadResults};
use results::about::About;
use results::disks::DiskComparison;
use results::doctor::Checkup;
use results::live::Watching;
use results::order::PageOrder;
use results::plan::admit::Admission;
use results::plan::cost::Bill;
use results::plan::cost_map::CostMap;
use results::plan::fleet::FleetDemand;
use results::plan::latency::RoundTrips;
use results::plan::place::Placement;
use results::plan::pool::PoolSizing;
use results::prediction::Prediction;
use results::report::Report;
use results::reproduced::Reproduction;
use results::served::KvServed;
use results::sim::{Sensitivity, Simulation, Simulations};
use results::torture::Torture;
use results::{ClosedLoop, Findings, Record, Requirements, Validation};

/// Every record that a command writes as JSON, by schema.
const RECORDS: [&str; 27] = [
    About::SCHEMA,
    Admission::SCHEMA,
    Bill::SCHEMA,
    Checkup::SCHEMA,
    ClosedLoop::SCHEMA,
    CostMap::SCHEMA,
    DiskComparison::SCHEMA,
    Findings::SCHEMA,
    FleetDemand::SCHEMA,
    KvServed::SCHEMA,
    LoadResults::SCHEMA,
    PageOrder::SCHEMA,
    Placement::SCHEMA,
    PoolSizing::SCHEMA,
    Prediction::SCHEMA,
    Report::SCHEMA,
    Reproduction::SCHEMA,
    Requirements::SCHEMA,
    RoundTrips::SCHEMA,
    RunResults::SCHEMA,
    Sensitivity::SCHEMA,
    Simulation::SCHEMA,
    Simulations::SCHEMA,
    Torture::SCHEMA,
    Validation::SCHEMA,
    Watching::SCHEMA,
    WorkloadResults::SCHEMA,
];

/// Print which afar this is, how it was built, and which records it writes
///
/// `afar --version` prints the first line alone.
#[derive(Debug, Args)]
pub(crate) struct VersionFlags {
    /// Write the answer as JSON; - is standard output, which then has nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Runs `afar version`.
///
/// # Errors
/// When the output cannot be written.
pub(crate) fn version(flags: &VersionFlags) -> Result<ExitCode, Failure> {
    let json = Output::wanted(flags.json.as_deref())?;
    let about = about();
    console::answer(|| table(&about), vec![(json, &|| results::write(&about))])?;
    Ok(ExitCode::SUCCESS)
}

// The build of this afar, and the schemas of its records.
fn about() -> About {
    let mut records = RECORDS.map(str::to_owned).to_vec();
    records.sort();
    About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        target: env!("AFAR_TARGET").to_owned(),
        compiler: env!("AFAR_COMPILER").to_owned(),
        is_optimized: env!("AFAR_OPT_LEVEL") != "0",
        records,
    }
}

fn table(about: &About) -> String {
    let About { version, target, compiler, is_optimized, records } = about;
    let how = if *is_optimized { "optimized" } else { "not optimized: its figures are not afar's" };
    let records = records.join("\n           ");
    format!("afar {version}\nbuilt      by {compiler}, for {target}, {how}\nrecords    {records}\n")
}
