//! Checks that all open paths lead to one medium.
//!
//! Equal identifiers do not prove that: copies can have them. Equal openings ([`nvme::Opening`])
//! do: one target has opened one medium once, so data written over one path is read over the
//! others. A restarted target has another opening, so only paths that are open now count.

use std::sync::{Mutex, MutexGuard, PoisonError};

use nvme::Opening;

use super::HostError;

/// What open paths lead to, by number; `None` for a path that is not open.
pub(super) struct Ways(Mutex<Vec<Option<Opened>>>);

/// The opening that a path leads to; `None` if its target reports none.
type Opened = Option<Opening>;

impl Ways {
    /// `count` paths, none of them open.
    pub(super) fn new(count: usize) -> Self {
        Self(Mutex::new(vec![None; count]))
    }

    // Locks the list of open paths.
    fn all(&self) -> MutexGuard<'_, Vec<Option<Opened>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a path that leads to `opening`, without a check.
    pub(super) fn open(&self, path: usize, opening: Opened) {
        self.all()[path] = Some(opening);
    }

    /// Opens a path if it leads to the same opening as another open one, or is the only one.
    ///
    /// # Errors
    /// When nothing proves that it leads to the same medium.
    pub(super) fn join(&self, path: usize, opening: Opened, name: &str) -> Result<(), HostError> {
        let mut all = self.all();
        let others = all.iter().enumerate().filter(|(other, _)| *other != path);
        let others: Vec<Opened> = others.filter_map(|(_, opened)| *opened).collect();
        let is_same = |other: &Opened| other.is_some() && *other == opening;
        if others.is_empty() || others.iter().any(is_same) {
            all[path] = Some(opening);
            return Ok(());
        }
        let why = match opening.and(others[0]) {
            Some(_) => format!(
                "{name} there has the same identity, but is another: a copy, or the same medium \
                 that another target has opened, too"
            ),
            None => format!(
                "nothing proves that {name} there is this disk: targets other than afar's only \
                 say which identity it has"
            ),
        };
        let reason = format!("{why}; --trust-identity takes it for the same");
        Err(HostError::Protocol { operation: "look at a namespace", reason })
    }

    /// Closes a path.
    pub(super) fn close(&self, path: usize) {
        self.all()[path] = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_that_are_open_lead_to_one_opening() {
        let ways = Ways::new(3);
        let refused = |path, opening| {
            let error = ways.join(path, opening, "namespace 1").expect_err("it is another");
            error.to_string()
        };
        ways.join(0, Some([1; 16]), "namespace 1").expect("it is the only one");
        ways.join(1, Some([1; 16]), "namespace 1").expect("it is the same");
        assert!(refused(2, Some([2; 16])).contains("same identity, but is another"));
        assert!(refused(2, None).contains("nothing proves"));
        // The target starts again: one way after the other is lost and found.
        ways.close(0);
        assert!(refused(0, Some([2; 16])).contains("same identity, but is another"));
        ways.close(1);
        ways.join(0, Some([2; 16]), "namespace 1").expect("no other is open");
        ways.join(1, Some([2; 16]), "namespace 1").expect("it is the same");
        assert!(refused(2, Some([1; 16])).contains("same identity, but is another"));
    }

    #[test]
    fn a_way_alone_needs_no_proof() {
        let ways = Ways::new(2);
        ways.join(1, None, "namespace 1").expect("it is the only one");
        let error = ways.join(0, None, "namespace 1").expect_err("neither says anything");
        assert!(error.to_string().contains("--trust-identity"));
        ways.open(0, None);
    }
}
