//! Fetching ahead in the order of an earlier run: see `paging::order`.

use paging::regions::PAGE;

use crate::supervisor::Supervisor;
use crate::userfault_trap::{Ahead, Touch};

impl Supervisor<'_> {
    /// Fetches the pages that followed one in an earlier run. Returns whether that run touched it.
    pub(crate) fn fetch_remembered(&mut self, touch: &Touch, now: u64) -> bool {
        let page = (touch.slot, touch.address / PAGE);
        let order = self.faults.far.as_ref().and_then(|far| far.order.as_ref());
        let Some((depth, next)) = order.and_then(|order| Some((order.depth(), order.after(page)?)))
        else {
            return false;
        };
        let mut asked = Vec::new();
        for (slot, number) in next {
            if asked.len() == depth {
                break;
            }
            let one = Touch { slot, address: number * PAGE, ..*touch };
            match self.fetch_ahead(&one, now) {
                Ahead::Comes => asked.push((slot, number)),
                Ahead::NotFar => {}
                Ahead::NoFrame => break,
            }
        }
        if let Some(order) = self.faults.far.as_mut().and_then(|far| far.order.as_mut()) {
            order.asked(&asked);
        }
        true
    }

    /// Acts on a touch of a page that was local or on its way. If the page was watched, the program
    /// follows the earlier run, and the next pages are fetched.
    pub(crate) fn touched_remembered(&mut self, touch: &Touch) {
        let order = self.faults.far.as_mut().and_then(|far| far.order.as_mut());
        if order.is_some_and(|order| order.used((touch.slot, touch.address / PAGE))) {
            self.fetch_remembered(touch, self.now_ns());
        }
    }
}
