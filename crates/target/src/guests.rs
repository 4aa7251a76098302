//! How many associations there may be, whatever their protocol, and which makes room for another:
//! hosts that do I/O are not kept out by others that do none.

/// One that is there, named by `K`.
pub(crate) struct Guest<K> {
    pub(crate) key: K,
    /// It is of the host that another is wanted for.
    pub(crate) is_of_host: bool,
    /// It does nothing, and ends by itself the sooner the lower this is.
    pub(crate) idle: Option<u64>,
}

/// How many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guests {
    /// In all, above 0.
    pub(crate) most: usize,
    /// Of one host, above 0.
    pub(crate) most_of_one: usize,
}

/// There is no room, and none makes any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Guests {
    /// Whether one more may come; one that has to end first, if one has to.
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
