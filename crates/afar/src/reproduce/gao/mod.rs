//! Gao et al., Network Requirements for Resource Disaggregation, OSDI 2016.

pub(super) mod fig7;
pub(super) mod fig8;
