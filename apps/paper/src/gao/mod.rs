//! Gao et al., Network Requirements for Resource Disaggregation, OSDI 2016.

mod apps;
mod claims;
pub(super) mod degradation;
pub(super) mod fig6;
pub(super) mod fig7;
pub(super) mod fig8;
mod place;
mod published;
pub(super) mod swap_cost;
pub(super) mod table3;

pub(super) use place::Section;
