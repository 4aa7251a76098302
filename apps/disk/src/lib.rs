//! Remote flash: `afar serve`, `bench`, `attach`, `discover`, `identify` and `top`.
//!
//! ```text
//! serve ─► target ◄─ NVMe/TCP, iSCSI ─► host, host::initiator ◄─ bench, attach
//!            └─► metrics ─► top
//! ```

mod attach;
mod bench;
mod curve;
mod discover;
mod holes;
mod identify;
mod serve;
mod top;

pub use attach::flags::AttachFlags;
pub use attach::{FUSE_REMEDY, KIND as ATTACHED_KIND, attach};
pub use bench::bench;
pub use bench::flags::BenchFlags;
pub use curve::{Curve, Frame, Point, draw};
pub use discover::discover;
pub use discover::flags::DiscoverFlags;
pub use holes::told as sparse;
pub use identify::flags::IdentifyFlags;
pub use identify::identify;
pub use serve::flags::ServeFlags;
pub use serve::{TRACE, serve};
pub use top::flags::TopFlags;
pub use top::{Looks, top, watched};
