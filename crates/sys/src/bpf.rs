//! Loads a BPF object, sizes its maps, maps them into this process and attaches its programs to raw
//! tracepoints.

use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::perf::{PerfEvent as Message, PerfEventArrayBuffer};
use aya::maps::{Map, MapData, PerfEventArray, RingBuf};
use aya::programs::perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent};
use aya::programs::{PerfEvent, RawTracePoint};
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
    /// The kernel's verifier or permission check refused a program.
    #[error("load the page-fault trap: {0}")]
    Program(#[from] aya::programs::ProgramError),
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

/// A loaded BPF object. Dropping it detaches every program.
pub struct Object {
    ebpf: Ebpf,
}

/// A size or constant that the loader sets before the object goes to the kernel.
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
        program.load()?;
        program.attach(tracepoint)?;
        Ok(())
    }

    /// Loads program `name` and has it run after every minor fault of any process.
    ///
    /// # Errors
    /// When the verifier refuses the program or the caller may not count events of others.
    pub fn attach_minor_faults(&mut self, name: &'static str) -> std::result::Result<(), BpfError> {
        self.attach_event(name, SoftwareEvent::PageFaultsMin)
    }

    /// Loads program `name` and has it run after every major fault of any process.
    ///
    /// # Errors
    /// As [`Object::attach_minor_faults`].
    pub fn attach_major_faults(&mut self, name: &'static str) -> std::result::Result<(), BpfError> {
        self.attach_event(name, SoftwareEvent::PageFaultsMaj)
    }

    fn attach_event(
        &mut self,
        name: &'static str,
        event: SoftwareEvent,
    ) -> std::result::Result<(), BpfError> {
        let program = self.ebpf.program_mut(name).ok_or(BpfError::Missing(name))?;
        let program: &mut PerfEvent = program.try_into()?;
        program.load()?;
        let online = aya::util::online_cpus().map_err(|(_, error)| BpfError::Processors(error))?;
        for cpu in online {
            let event = PerfEventConfig::Software(event);
            let scope = PerfEventScope::AllProcessesOneCpu { cpu };
            program.attach(event, scope, SamplePolicy::Period(1), false)?;
        }
        Ok(())
    }

    /// Maps the array `name` of `bytes` into this process.
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

    /// Takes the ring buffer `name`, whose messages are numbers of 32 bits.
    ///
    /// # Errors
    /// When there is no such ring buffer.
    pub fn take_doorbell(&mut self, name: &'static str) -> std::result::Result<Doorbell, BpfError> {
        let map = self.ebpf.take_map(name).ok_or(BpfError::Missing(name))?;
        Ok(Doorbell { ring: RingBuf::try_from(map)? })
    }

    /// Takes the bells of every processor that is online from the array `name`.
    ///
    /// # Errors
    /// When there is no such array, or the caller may not count events of others.
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

/// A bell that only programs on one processor ring, each time with a number.
pub struct ProcessorBell {
    buffer: PerfEventArrayBuffer<MapData>,
    number: u32,
}

impl ProcessorBell {
    /// Takes all rings at once; the number of the last one, if there was one.
    pub fn answer(&mut self) -> Option<u32> {
        self.buffer.fold(None, |last, message| match message {
            Message::Sample { head, .. } => head.first_chunk().map(|b| u32::from_ne_bytes(*b)),
            Message::Lost { .. } => last,
        })
    }

    /// The processor.
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

fn view_of(data: &MapData, bytes: usize) -> Result<SharedView> {
    SharedView::map(&data.fd().as_fd(), bytes)
}

/// A ring buffer that wakes this process, each time with a number.
pub struct Doorbell {
    ring: RingBuf<MapData>,
}

impl Doorbell {
    /// Takes all rings at once and tells `hear` their numbers.
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
