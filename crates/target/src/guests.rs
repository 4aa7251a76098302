//! The bound on associations of either protocol, and which one makes room for another: hosts
//! without I/O do not keep out hosts with I/O.

/// An existing association, named by `K`.
pub(crate) struct Guest<K> {
    pub(crate) key: K,
    /// Whether it belongs to the host of the new association.
    pub(crate) is_of_host: bool,
    /// Set if the association is idle; the lowest value makes room first.
    pub(crate) idle: Option<u64>,
}

/// How many associations there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guests {
    /// In all, above 0.
    pub(crate) most: usize,
    /// Of one host, above 0.
    pub(crate) most_of_one: usize,
}

/// There is no room, and no idle association to make any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Guests {
    /// Admits one more association. Returns the key of the one that has to end for it, if any has
    /// to.
    pub(crate) fn admit<K>(self, all: impl Iterator<Item = Guest<K>>) -> Result<Option<K>, Full> {
        let (mut count, mut own) = (0, 0);
        let mut first: Option<(u64, K)> = None;
        for guest in all {
            count += 1;
            own += usize::from(guest.is_of_host);
            if let Some(rank) = guest.idle
                && first.as_ref().is_none_or(|(lowest, _)| rank < *lowest)
            {
                first = Some((rank, guest.key));
            }
        }
        match first {
            _ if own >= self.most_of_one => Err(Full),
            _ if count < self.most => Ok(None),
            Some((_, key)) => Ok(Some(key)),
            None => Err(Full),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUESTS: Guests = Guests { most: 3, most_of_one: 2 };

    fn admit(all: &[(bool, Option<u64>)]) -> Result<Option<usize>, Full> {
        let guest = |(key, &(is_of_host, idle)): (usize, &_)| Guest { key, is_of_host, idle };
        GUESTS.admit(all.iter().enumerate().map(guest))
    }

    #[test]
    fn who_does_nothing_makes_room() {
        let (busy, idle) = ((false, None), |rank| (false, Some(rank)));
        assert_eq!(admit(&[busy, busy]), Ok(None));
        assert_eq!(admit(&[busy, busy, busy]), Err(Full));
        assert_eq!(admit(&[idle(7), busy, idle(3)]), Ok(Some(2)));
        assert_eq!(admit(&[idle(3), busy, idle(3)]), Ok(Some(0)), "the first of equals");
    }

    #[test]
    fn a_host_has_no_more_than_its_own() {
        let own = (true, Some(1));
        assert_eq!(admit(&[own]), Ok(None));
        assert_eq!(admit(&[own, own]), Err(Full));
        assert_eq!(admit(&[own, own, (false, Some(0))]), Err(Full), "though there would be room");
    }
}
