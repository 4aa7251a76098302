//! What to buy, where to put it, and when not to disaggregate.
//!
//! ```text
//! trace or seed ─► Fleet ─► demand by hour, tenant and server
//! Demand over time ─► Model (servers, prices, overheads) ─► Comparison ─► Knob: what changes it
//!                                                      └──► Wedge, map: savings by growth
//! components of a path, load ─► RoundTrip ─► targets met
//! latencies under load ─► Device ─► who may share it
//! tenants, pool ─► Placement ─► check; Migration
//! what a program fetches, network ─► slowdown, between what and what
//! slowdowns by local memory, memory wanted over time ─► memory of servers and pools
//! ```
//!
//! Invariants, mostly absences:
//! 1. Nothing here reads a file, a clock or a thread: quantities in, quantities out.
//! 2. Machines and money are exact: no rounding before the last step, and an overflow is an error.
//! 3. Same input, same output, on every machine.
//!
//! Papers: Klimovic et al., Flash Storage Disaggregation, EuroSys 2016; Gao et al., Network
//! Requirements for Resource Disaggregation, OSDI 2016.

pub mod cost;
pub mod device;
pub mod fleet;
pub mod latency;
pub mod place;
pub mod pool;
pub mod queue;
pub mod slowdown;
