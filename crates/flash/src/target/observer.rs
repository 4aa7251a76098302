//! What anybody may look at while a target works.

use std::sync::{Arc, PoisonError, RwLock};

use super::counters::Counters;
use super::subsystem::Subsystem;

/// See the module's description.
#[derive(Clone)]
pub struct Observer {
    counters: Arc<[Arc<Counters>]>,
    subsystems: Arc<RwLock<Arc<[Arc<Subsystem>]>>>,
}

impl Observer {
    pub(super) fn new(counters: Vec<Arc<Counters>>, subsystems: Vec<Arc<Subsystem>>) -> Self {
        let subsystems = Arc::new(RwLock::new(subsystems.into()));
        Self { counters: counters.into(), subsystems }
    }

    /// What each shard has done, and last the control thread.
    #[must_use]
    pub fn counters(&self) -> &[Arc<Counters>] {
        &self.counters
    }

    /// What is served now.
    #[must_use]
    pub fn subsystems(&self) -> Arc<[Arc<Subsystem>]> {
        Arc::clone(&self.subsystems.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn serve(&self, subsystems: Vec<Arc<Subsystem>>) {
        *self.subsystems.write().unwrap_or_else(PoisonError::into_inner) = subsystems.into();
    }
}
