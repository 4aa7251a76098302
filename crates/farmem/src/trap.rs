//! Opening a trap: the BPF object with its tables, or tables alone for userfaultfd.

use std::sync::atomic::Ordering;

use measure::Duration;
use sys::bpf::{BpfError, Doorbell, Object, ProcessorBell, Setting};

use super::RunError;
use super::config::{RunConfig, TrapKind};
use sys::told::memory_bytes;
use tables::Asks;
use tables::Tables;
use tables::{EVENTS_MAX, Sizes};

// Aligns the object as the BPF loader requires.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);
// The doorbell rings every so many events while a sample of pages is watched, so that a page is
// watched soon after its first touch.
const WATCHED_BELL: u64 = 256;
/// How long a program of the trap waits at most; interrupts are off in it.
const OFF_MAX_NS: u64 = 18_000;
/// Most BPF programs that continue a wait: enough for [`super::BPF_DELAY_MAX_NS`].
const STRETCHES_MAX: u64 = 56;
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/fault.bpf.o")));

/// An attached BPF object; dropping it detaches it.
pub(crate) struct Trap {
    object: Object,
    /// Whether fetches wait on after their page is mapped; `None` before that was tried.
    resting: Option<bool>,
    /// How many BPF programs continue a fault's wait.
    stretches: u64,
}

impl Trap {
    /// Has fetches wait for the rest of their delay after their page is mapped. Returns whether
    /// that works. Other processes' faults pay for it too, so not before there is a delay.
    pub(crate) fn rest(&mut self) -> bool {
        let object = &mut self.object;
        let attach = || object.attach_minor_faults("afar_fault_done").is_ok();
        *self.resting.get_or_insert_with(attach)
    }

    /// Splits waits of `longest_ns` among so many BPF programs that interrupts are let in every
    /// [`OFF_MAX_NS`]. Returns how many there are beyond the first. Every fault of the machine runs
    /// them, so there are none before a delay needs them.
    pub(crate) fn stretch(&mut self, longest_ns: u64) -> u64 {
        let wanted = longest_ns.div_ceil(OFF_MAX_NS).saturating_sub(1).min(STRETCHES_MAX);
        while self.stretches < wanted && self.object.attach_faults("afar_fault_wait").is_ok() {
            self.stretches += 1;
        }
        self.stretches
    }
}

/// The parts of an open trap.
pub(crate) struct Opened {
    pub(crate) tables: Tables,
    pub(crate) doorbell: Option<Doorbell>,
    /// Rings where a fault finds no frame.
    pub(crate) bells: Vec<ProcessorBell>,
    pub(crate) trap: Option<Trap>,
    /// The table of asks, if faults spin for pages on a blade.
    pub(crate) asks: Option<Asks>,
}

/// Opens the trap that `config` asks for.
pub(crate) fn open(config: &RunConfig) -> Result<Opened, RunError> {
    let sizes = Sizes::for_memory(memory_bytes("MemTotal:"));
    let opened = match (config.trap, config.spin_max) {
        (TrapKind::Bpf, _) => attach(sizes, "afar_fault")?,
        (TrapKind::Userfault, Some(longest)) => spinning(sizes, longest)?,
        (TrapKind::Userfault, None) => Opened {
            tables: Tables::private(sizes)?,
            doorbell: None,
            bells: Vec::new(),
            trap: None,
            asks: None,
        },
    };
    let tables = &opened.tables;
    tables.epoch_ns().store(sys::clock::monotonic_ns(), Ordering::Release);
    tables.recorded().store(u32::from(config.record), Ordering::Release);
    let watched = config.watch.is_some();
    tables.watched().store(u64::from(watched), Ordering::Release);
    let bell = if watched { WATCHED_BELL } else { EVENTS_MAX as u64 / 4 };
    tables.bell_mask().store(bell - 1, Ordering::Release);
    Ok(opened)
}

/// Checks whether the BPF trap can be used here.
///
/// # Errors
/// The kernel's refusal.
pub fn probe() -> Result<(), BpfError> {
    attach(Sizes { nodes: 512 }, "afar_fault").map(|_opened| ())
}

/// A userfaultfd trap with BPF programs by which faults ask for pages on a blade.
fn spinning(sizes: Sizes, longest: Duration) -> Result<Opened, BpfError> {
    let mut opened = attach(sizes, "afar_ask")?;
    let processors = sys::processors::ProcessorTime::now().count();
    if let Some(trap) = &opened.trap {
        opened.asks = Some(Asks::of(&trap.object, longest, processors)?);
    }
    // No fault rings for the supervisor: those without an answer are reported by userfaultfd.
    (opened.doorbell, opened.bells) = (None, Vec::new());
    Ok(opened)
}

fn attach(sizes: Sizes, program: &'static str) -> Result<Opened, BpfError> {
    let mask = sizes.stock() - 1;
    let settings = [
        Setting::Entries("afar_nodes", sizes.nodes),
        Setting::Entries("afar_owners", sizes.nodes),
        Setting::Entries("afar_stock", sizes.stock()),
        Setting::Constant("stock_mask", &mask),
    ];
    let mut object = Object::load(&OBJECT.0, &settings)?;
    let tables = Tables::open(sizes, |name, bytes| object.view(name, bytes))?;
    let doorbell = object.take_doorbell("afar_doorbell")?;
    let bells = object.take_bells("afar_short")?;
    object.attach(program, "page_fault_user")?;
    object.attach(program, "page_fault_kernel")?;
    Ok(Opened {
        tables,
        doorbell: Some(doorbell),
        bells,
        trap: Some(Trap { object, resting: None, stretches: 0 }),
        asks: None,
    })
}
