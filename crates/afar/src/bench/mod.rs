//! `afar bench`: from flags to a load on a disk, a summary and a record.

mod fio;
mod plan;
mod processors;
mod summary;

use std::process::ExitCode;
use std::sync::Arc;

use flash::host::{Controller, HostError};
use flash::load::Device;
use proto::nvme::Status;

use crate::failure::{FAILED, Failure};
use crate::flags::BenchFlags;
use crate::output::Output;
use crate::session::Session;
use crate::terminal;

pub(crate) use plan::BenchError;
use plan::{Plan, Source};
use processors::Processors;

/// Runs `afar bench`.
///
/// # Errors
/// When the flags contradict one another, or the disk cannot be reached.
pub(crate) fn bench(flags: &BenchFlags) -> Result<ExitCode, Failure> {
    let plan = Plan::resolve(flags)?;
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    let mut session = Session::new(flags.quiet).map_err(BenchError::from)?;
    let device = open(&plan)?;
    let config = plan.config(device.geometry(), device.request_bytes_max())?;
    let mut processors = Processors::of(&plan.source);
    let tallies = session.run(&[(config, device)], &mut processors).map_err(BenchError::Load)?;
    session.end_line();
    let (tally, interrupted) = (&tallies[0], session.is_interrupted());
    if let Some(output) = json {
        let record = fio::record(flags, &config, tally, &processors, interrupted);
        let text = serde_json::to_string_pretty(&record).expect("plain data has a JSON form");
        output.write(&(text + "\n"))?;
    }
    if !flags.quiet {
        terminal::say(&summary::text(flags, &config, tally, &processors, interrupted));
    }
    let is_good = tally.failure_count() == 0 && tally.wrong_count() == 0 && tally.count() > 0;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn open(plan: &Plan) -> Result<Device, BenchError> {
    match &plan.source {
        Source::Local(uri) => {
            let opened = uri.open();
            let name = plan.target.clone();
            opened.map(Device::Local).map_err(|source| BenchError::Open { name, source })
        }
        Source::Remote(uri, host) => {
            let connected = Controller::connect(uri, host, plan.jobs);
            let name = plan.target.clone();
            let controller = connected.map_err(|source| match source {
                HostError::Refused { status, .. }
                    if status.is(Status::CONNECT_INVALID_PARAMETERS) =>
                {
                    BenchError::NoSubsystem { name: name.clone(), address: uri.address.clone() }
                }
                source => BenchError::Connect { name: name.clone(), source },
            })?;
            if controller.io_queues() < plan.jobs {
                let queues = controller.io_queues();
                return Err(BenchError::Queues { name, jobs: plan.jobs, queues });
            }
            Ok(Device::Remote(Arc::new(controller)))
        }
    }
}
