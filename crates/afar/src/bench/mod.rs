//! `afar bench`: from flags to a load on a disk, a summary and a record.

mod fio;
mod plan;
mod summary;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use flash::host::{Controller, HostError};
use flash::load::{Device, LoadConfig, LoadError, Progress, Tally};
use proto::nvme::Status;
use sys::clock::monotonic_ns;
use sys::event::{Poll, Signals};

use crate::failure::{FAILED, Failure};
use crate::flags::BenchFlags;
use crate::live::Line;
use crate::output::Output;
use crate::terminal;

pub(crate) use plan::BenchError;
use plan::{Plan, Source};

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
const PERIOD: Duration = Duration::from_millis(500);

/// Runs `afar bench`.
///
/// # Errors
/// When the flags contradict one another, or the disk cannot be reached.
pub(crate) fn bench(flags: &BenchFlags) -> Result<ExitCode, Failure> {
    let plan = Plan::resolve(flags)?;
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    // Before any thread is started, so that none of them is interrupted.
    let signals = Signals::receive(&[SIGINT, SIGTERM]).map_err(BenchError::from)?;
    let device = open(&plan)?;
    let config = plan.config(device.geometry(), device.request_bytes_max())?;
    let mut line = if flags.quiet { None } else { Line::on_terminal() };
    let (tally, interrupted) = watched(&config, &device, &signals, &mut line)?;
    drop(line);
    if let Some(output) = json {
        let record = fio::record(flags, &config, &tally, interrupted);
        let text = serde_json::to_string_pretty(&record).expect("plain data has a JSON form");
        output.write(&(text + "\n"))?;
    }
    if !flags.quiet {
        terminal::say(&summary::text(flags, &config, &tally, interrupted));
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

fn watched(
    config: &LoadConfig,
    device: &Device,
    signals: &Signals,
    line: &mut Option<Line>,
) -> Result<(Tally, bool), BenchError> {
    let mut poll = Poll::new()?;
    poll.add(signals, 0)?;
    let progress = Progress::default();
    let mut interrupted = false;
    let tally = std::thread::scope(|scope| {
        let load = scope.spawn(|| flash::load::run(config, device, &progress));
        let (mut last_ns, mut last) = (monotonic_ns(), 0);
        let mut ready = Vec::new();
        while !load.is_finished() {
            poll.wait(Some(PERIOD / 20), &mut ready)?;
            if signals.next().is_some() {
                interrupted = true;
                progress.stop();
            }
            let now = monotonic_ns();
            let period = u128::from(now - last_ns);
            if let Some(line) = line
                && period >= PERIOD.as_nanos()
            {
                let ended = progress.ended();
                let rate = u128::from(ended - last) * 1_000_000_000 / period;
                line.draw(&format!("afar  {ended} requests  {rate} IOPS"));
                (last_ns, last) = (now, ended);
            }
        }
        load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(of_load)
    })?;
    Ok((tally, interrupted))
}

fn of_load(error: LoadError) -> BenchError {
    BenchError::Load(error)
}
