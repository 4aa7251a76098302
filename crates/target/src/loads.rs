//! How many I/O queues and sessions each shard has: the control thread places the next one.

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Loads(Vec<u32>);

impl Loads {
    /// The loads of so many shards, all 0.
    pub(crate) fn new(shards: u16) -> Self {
        Self(vec![0; usize::from(shards)])
    }

    /// Places one more on the shard with the fewest. Returns that shard.
    pub(crate) fn place(&mut self) -> u16 {
        let fewest = (0..).zip(&self.0).min_by_key(|(_, count)| **count);
        let home = fewest.map_or(0, |(home, _)| home);
        self.0[usize::from(home)] += 1;
        home
    }

    /// Adds one to this shard.
    pub(crate) fn enter(&mut self, home: u16) {
        if let Some(count) = self.0.get_mut(usize::from(home)) {
            *count += 1;
        }
    }

    /// The sum over all shards.
    pub(crate) fn total(&self) -> usize {
        self.0.iter().map(|count| *count as usize).sum()
    }

    /// Removes one from this shard.
    pub(crate) fn leave(&mut self, home: u16) {
        if let Some(count) = self.0.get_mut(usize::from(home)) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_goes_where_least_is() {
        let mut loads = Loads::new(3);
        assert_eq!([(); 4].map(|()| loads.place()), [0, 1, 2, 0]);
        loads.leave(1);
        assert_eq!([(); 2].map(|()| loads.place()), [1, 1]);
        loads.leave(9);
    }
}
