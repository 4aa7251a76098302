//! Programs that stand in for applications, a key-value server for experiments, and loads on such
//! servers: `afar workload`, `kv`, `load`.

mod latencies;
mod load;
mod serve;
mod workload;

pub use load::flags::LoadFlags;
pub use load::load;
pub use serve::flags::StoreFlags;
pub use serve::kv;
pub use workload::flags::WorkloadFlags;
pub use workload::workload;
