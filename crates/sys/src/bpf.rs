//! Loads a BPF object, sizes its maps, maps them into this process and attaches its programs to raw
//! tracepoints.

use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::perf::{PerfEvent as Message, PerfEventArrayBuffer};
use aya::maps::{Map, MapData, PerfEventArray, RingBuf};
use aya::programs::perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent};
use aya::programs::{PerfEvent, ProgramError, RawTracePoint};
use aya::{Ebpf, EbpfLoader};
use std::os::fd::{AsRawFd, RawFd};

use crate::Result;
use crate::memory::SharedView;

/// Why a BPF object could not be used.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// The kernel or the loader refused the object.
    #[error("load the page-fault trap: {0}")]
    Load(#[from] aya::EbpfError),
    /// The kernel refused to load a program.
    #[error("load {program}: {source}{}", verdict(.log))]
    Refused {
        /// The program.
        program: &'static str,
        /// The kernel's answer.
        source: std::io::Error,
        /// What the verifier said, in full; empty if it was not asked.
        log: String,
    },
    /// The kernel has no such tracepoint.
    #[error("attach {program}: this kernel has no tracepoint {tracepoint}")]
    NoTracepoint {
        /// The program.
        program: &'static str,
        /// What it was to be attached to.
        tracepoint: String,
    },
    /// A program could not be used.
    #[error("load the page-fault trap: {0}")]
    Program(#[from] ProgramError),
    /// A map could not be used.
    #[error("open a map of the page-fault trap: {0}")]
    Map(#[from] aya::maps::MapError),
    /// A processor's bell could not be opened.
    #[error("open a bell of the page-fault trap: {0}")]
    Bell(#[from] aya::maps::perf::PerfBufferError),
    /// The machine's processors could not be counted.
    #[error("count the processors: {0}")]
    Processors(#[source] std::io::Error),
    /// The object lacks something it should have.
    #[error("the page-fault trap has no {0}")]
    Missing(&'static str),
    /// Mapping one of its maps failed.
    #[error(transparent)]
    System(#[from] crate::Error),
}

/// The error of a program that could not be loaded, with the verifier's log if there is one.
fn refused(program: &'static str, error: ProgramError) -> BpfError {
    match error {
        ProgramError::LoadError { io_error, verifier_log } => {
            BpfError::Refused { program, source: io_error, log: verifier_log.to_string() }
        }
        other => BpfError::Program(other),
    }
}

/// The essence of the verifier's log: its last line before the statistics, or a known cause in the
/// user's terms. Empty for an empty log.
fn verdict(log: &str) -> String {
    const STATISTICS: [&str; 3] = ["verification time", "stack depth", "processed "];
    let is_statistics = |line: &&str| STATISTICS.iter().any(|begin| line.starts_with(begin));
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let Some(last) = lines.rfind(|line| !is_statistics(line)) else {
        return String::new();
    };
    if last.contains("bpf_loop#181") || last.contains("unknown#181") {
        return ": this kernel has no bpf_loop, which Linux 5.17 brought".to_owned();
    }
    format!(": the kernel's verifier says \"{last}\"")
}

/// A loaded BPF object. Dropping it detaches every program.
pub struct Object {
    ebpf: Ebpf,
}

/// A size or constant that is set before the object is loaded into the kernel.
#[derive(Debug, Clone, Copy)]
pub enum Setting<'a> {
    /// Number of entries of a map.
    Entries(&'a str, u32),
    /// A 32-bit constant.
    Constant(&'a str, &'a u32),
}

impl Object {
    /// Loads `bytes` (an ELF object for the BPF machine) with `settings`.
    ///
    /// # Errors
    /// When the kernel refuses: the caller lacks `CAP_BPF`/`CAP_PERFMON`, or the kernel is too old.
    pub fn load(bytes: &[u8], settings: &[Setting<'_>]) -> std::result::Result<Self, BpfError> {
        let mut loader = EbpfLoader::new();
        for setting in settings {
            match *setting {
                Setting::Entries(map, entries) => loader.map_max_entries(map, entries),
                Setting::Constant(name, value) => loader.override_global(name, value, true),
            };
        }
        Ok(Self { ebpf: loader.load(bytes)? })
    }

    /// Loads program `name` and attaches it to the raw tracepoint `tracepoint`.
    ///
    /// # Errors
    /// When the verifier refuses the program or the tracepoint does not exist.
    pub fn attach(
        &mut self,
        name: &'static str,
        tracepoint: &str,
    ) -> std::result::Result<(), BpfError> {
        let program = self.ebpf.program_mut(name).ok_or(BpfError::Missing(name))?;
        let program: &mut RawTracePoint = program.try_into()?;
        if program.fd().is_err() {
            program.load().map_err(|error| refused(name, error))?;
        }
        program.attach(tracepoint).map_err(|error| match error {
            ProgramError::SyscallError(call)
                if call.io_error.kind() == std::io::ErrorKind::NotFound =>
            {
                BpfError::NoTracepoint { program: name, tracepoint: tracepoint.to_owned() }
            }
            other => BpfError::Program(other),
        })?;
        Ok(())
    }

    /// Loads program `name` and runs it after every minor fault of any process.
    ///
    /// # Errors
    /// When the verifier refuses the program or the caller may not count events of other processes.
    pub fn attach_minor_faults(&mut self, name: &'static str) -> std::result::Result<(), BpfError> {
        self.attach_event(name, SoftwareEvent::PageFaultsMin)
    }

    /// Loads program `name` and runs it after every major fault of any process.
    ///
    /// # Errors
    /// As [`Object::attach_minor_faults`].
    pub fn attach_major_faults(&mut self, name: &'static str) -> std::result::Result<(), BpfError> {
        self.attach_event(name, SoftwareEvent::PageFaultsMaj)
    }

    /// Runs program `name` once more when the kernel starts to handle a fault of any process, after
    /// its earlier attachments; interrupts are let in between two of them.
    ///
    /// # Errors
    /// As [`Object::attach_minor_faults`]; there is a descriptor for each processor.
    pub fn attach_faults(&mut self, name: &'static str) -> std::result::Result<(), BpfError> {
        self.attach_event(name, SoftwareEvent::PageFaults)
    }

    /// Loads program `name` and runs it at every `event`, on each processor that is online.
    fn attach_event(
        &mut self,
        name: &'static str,
        event: SoftwareEvent,
    ) -> std::result::Result<(), BpfError> {
        let program = self.ebpf.program_mut(name).ok_or(BpfError::Missing(name))?;
        let program: &mut PerfEvent = program.try_into()?;
        if program.fd().is_err() {
            program.load().map_err(|error| refused(name, error))?;
        }
        let online = aya::util::online_cpus().map_err(|(_, error)| BpfError::Processors(error))?;
        for cpu in online {
            let event = PerfEventConfig::Software(event);
            let scope = PerfEventScope::AllProcessesOneCpu { cpu };
            program.attach(event, scope, SamplePolicy::Period(1), false)?;
        }
        Ok(())
    }

    /// Maps the first `bytes` of the array `name` into this process.
    ///
    /// # Errors
    /// When there is no such array or it cannot be mapped.
    pub fn view(
        &self,
        name: &'static str,
        bytes: usize,
    ) -> std::result::Result<SharedView, BpfError> {
        let map = self.ebpf.map(name).ok_or(BpfError::Missing(name))?;
        let Map::Array(data) = map else {
            return Err(BpfError::Missing(name));
        };
        Ok(view_of(data, bytes)?)
    }

    /// Takes the ring buffer `name`, whose messages are 32-bit numbers, out of the object.
    ///
    /// # Errors
    /// When there is no such ring buffer.
    pub fn take_doorbell(&mut self, name: &'static str) -> std::result::Result<Doorbell, BpfError> {
        let map = self.ebpf.take_map(name).ok_or(BpfError::Missing(name))?;
        Ok(Doorbell { ring: RingBuf::try_from(map)? })
    }

    /// Takes the perf event array `name` out of the object and opens a bell for each processor that
    /// is online.
    ///
    /// # Errors
    /// When there is no such array, or the caller may not count events of other processes.
    pub fn take_bells(
        &mut self,
        name: &'static str,
    ) -> std::result::Result<Vec<ProcessorBell>, BpfError> {
        let map = self.ebpf.take_map(name).ok_or(BpfError::Missing(name))?;
        let mut array = PerfEventArray::try_from(map)?;
        let online = aya::util::online_cpus().map_err(|(_, error)| BpfError::Processors(error))?;
        let open = |number| Ok(ProcessorBell { buffer: array.open(number, Some(1))?, number });
        online.into_iter().map(open).collect()
    }
}

/// A wake-up from programs on one processor, each time with a number.
pub struct ProcessorBell {
    buffer: PerfEventArrayBuffer<MapData>,
    number: u32,
}

impl ProcessorBell {
    /// Takes all messages. Returns the number of the last one; `None` if there was none.
    pub fn answer(&mut self) -> Option<u32> {
        self.buffer.fold(None, |last, message| match message {
            Message::Sample { head, .. } => head.first_chunk().map(|b| u32::from_ne_bytes(*b)),
            Message::Lost { .. } => last,
        })
    }

    /// The number of the processor.
    #[must_use]
    pub const fn processor(&self) -> usize {
        self.number as usize
    }
}

impl AsFd for ProcessorBell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.buffer.as_fd()
    }
}

/// Maps the first `bytes` of a BPF map into this process.
fn view_of(data: &MapData, bytes: usize) -> Result<SharedView> {
    SharedView::map(&data.fd().as_fd(), bytes)
}

/// A ring buffer whose messages, 32-bit numbers, wake this process.
pub struct Doorbell {
    ring: RingBuf<MapData>,
}

impl Doorbell {
    /// Takes all messages and calls `hear` with the number of each.
    pub fn answer(&mut self, mut hear: impl FnMut(u32)) {
        while let Some(message) = self.ring.next() {
            if let Some(bytes) = message.first_chunk() {
                hear(u32::from_ne_bytes(*bytes));
            }
        }
    }

    /// The descriptor to wait on.
    #[must_use]
    pub fn raw_fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_the_verifiers_last_word() {
        let log = "654: (bf) r2 = r9\n655: (0f) r2 += r1\n\
            math between map_value pointer and register with unbounded min value is not allowed\n\
            verification time 6832 usec\nstack depth 152+0\nprocessed 370 insns (limit 1000000)\n";
        let said = verdict(log);
        assert!(
            said.starts_with(": the kernel's verifier says \"math between map_value"),
            "{said}"
        );
        assert!(said.ends_with("is not allowed\""), "{said}");
        assert_eq!(
            verdict("7: (85) call unknown#181\ninvalid func unknown#181\nprocessed 9 insns"),
            ": this kernel has no bpf_loop, which Linux 5.17 brought"
        );
        assert_eq!(verdict(""), "");
    }
}
