//! Programs that stand in for applications, and loads on key-value stores: `afar workload`, `load`.

mod load;
mod workload;

pub use load::flags::LoadFlags;
pub use load::load;
pub use workload::flags::WorkloadFlags;
pub use workload::workload;
