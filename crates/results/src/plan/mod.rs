//! What the commands of `afar plan` write with `--json`.

pub mod admit;
pub mod cost;
pub mod cost_map;
pub mod fleet;
pub mod latency;
pub mod place;
pub mod pool;
