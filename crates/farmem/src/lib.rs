//! Far memory for an unmodified program: what `paging` decides, done to a real one.
//!
//! The program's anonymous memory is a memory file, its *arena*, mapped shared: a page's offset in
//! the file is its address. A page becomes remote when its mapping is dropped, and no byte moves.
//! The next touch is a minor fault of the kernel; the trap holds it as long as the network would
//! have taken. So a fault or an eviction that fails cannot show a program wrong bytes. With a blade
//! (`far`) bytes do move, and what comes back is verified.
//!
//! ```text
//! supervisor: spawn -> greet -> memory calls -> log -> residency -> evict -> report
//!     ▲ seccomp         ▲▼ messages       ▲ log  ▼ page states       ▼ page map, write-protection
//!  program: mmap ...   helper thread     trap (BPF): state -> frame -> link -> busy-wait -> log
//!     └─ touch ─► page fault ─────────────►┘ then the kernel maps the page of the arena
//! ```
//!
//! What each file knows: `filter` which calls notify, `dispatch` which module handles a call,
//! `images` whose memory is managed, `inject` how a program is entered, `object` with what,
//! `rights` how its helper follows it to another user, `calls`, `stock`, `moves`, `advice` and
//! `populate` what calls for memory do, `notices` what cannot work, `arena` one process, `fork` and
//! `inherit` its child, `cut` what the child sees of its parent, `copy` how memory gets there,
//! `leave` how a process ends, `trap` and `userfault_trap` how a fault is handled, `far` pages on a
//! blade, `events` what the trap reported, `budget` which pages leave, `watch` how pages are used,
//! `streak` where the helper works, `supervisor` the loop. The crate `tables` has what supervisor
//! and trap share. The crate `swap` has the other engine; it uses `signal`, the observer and the
//! record of this one.

mod account;
mod advice;
mod arena;
mod budget;
mod calls;
mod chores;
mod config;
mod copier;
mod copy;
mod cut;
mod detour;
mod dispatch;
mod ends;
mod error;
mod events;
mod exits;
mod far;
mod filter;
mod fork;
mod greet;
mod images;
mod inherit;
mod inject;
mod last_words;
mod leave;
mod links;
mod loader;
mod moves;
mod nearby;
mod notices;
mod object;
mod outgoing;
mod peaks;
mod pending;
mod populate;
mod process_madvise;
mod protocol;
mod report;
mod request;
mod rights;
pub mod signal;
mod state;
mod static_data;
mod stock;
mod streak;
mod supervisor;
mod thaw;
mod throttle;
mod trap;
mod userfault_trap;
mod watch;

pub use config::{
    BPF_BUDGET_MIN, BPF_DELAY_MAX_NS, BudgetScope, RunConfig, Tier, TrapKind, batch, pack_name,
};
pub use error::RunError;
pub use report::{Observer, Outcome, Retune, Silent, Snapshot};
pub use supervisor::{Supervisor, VARIABLE};
pub use tables::{FaultEvent, FaultKind, PROCS_MAX, TIERS_MAX};
pub use trap::probe;
