//! What direct-attached and disaggregated flash cost (Klimovic et al. §4.3, Eq. 1 and 2).
//!
//! ```text
//! direct         max(GB_t/GB_s, IOPS_t/IOPS_s, QPS_t/QPS_s) · (f + c)
//! disaggregated  max(GB_t/GB_s, IOPS_t/IOPS_s) · (f + δ)  +  QPS_t/(QPS_s · (1 − drop)) · c
//! ```
//!
//! Beyond the paper: every term may have more dimensions (memory, network), machines may be whole
//! ones with spares, their price may include power and space, and demand is a series of periods for
//! each of several tenants. Servers with flash of their own belong to one tenant and are sized for
//! its peak; pools are sized for the peak of their users' total demand.

mod compare;
mod demand;
mod dimension;
mod error;
mod knob;
mod machines;
mod model;
mod preset;
mod usage;
mod wedge;

pub use compare::{Comparison, Fleet, Side, compare};
pub use demand::{Demand, Tenant, grow};
pub use dimension::Dimension;
pub use error::CostError;
pub use knob::{Flip, Knob, Sensitivity, sensitivity};
pub use machines::Machines;
pub use model::{Facility, Model, Part, Server};
pub use preset::{DROPS, Drop, WORKLOADS, Workload, example};
pub use usage::{Usage, usage};
pub use wedge::{Cell, Wedge, map};
