//! The size of a connection's receive buffer: small while little comes, for most connections are
//! idle.

/// Sizes of a receive buffer in bytes, at least and at most; both powers of two.
const LEAST: usize = 2 << 10;
const MOST: usize = 64 << 10;
/// The buffer shrinks after `CALM` receives in a row of less than one `PART`th of it.
const CALM: u8 = 8;
const PART: usize = 32;

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Room {
    bytes: usize,
    calm: u8,
}

impl Default for Room {
    fn default() -> Self {
        Self { bytes: LEAST, calm: 0 }
    }
}

impl Room {
    /// Adapts the size after a receive of `count` bytes: a full buffer grows to the maximum, many
    /// small receives shrink it.
    pub(crate) const fn learn(&mut self, count: usize) {
        if count >= self.bytes {
            (self.bytes, self.calm) = (MOST, 0);
        } else if count * PART < self.bytes {
            self.calm += 1;
            if self.calm == CALM {
                let less = self.bytes / PART;
                (self.bytes, self.calm) = (if less > LEAST { less } else { LEAST }, 0);
            }
        } else {
            self.calm = 0;
        }
    }

    /// The buffer for the next receive: the last one, if it is not too large.
    pub(crate) fn fit(&self, mut input: Vec<u8>) -> Vec<u8> {
        if input.capacity() > self.bytes {
            input = Vec::new();
        }
        if input.len() < self.bytes {
            input.resize(self.bytes, 0);
        }
        input
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_much_room_only_where_much_comes() {
        let mut room = Room::default();
        room.learn(72);
        assert_eq!(room.fit(Vec::new()).len(), LEAST);
        room.learn(LEAST);
        let input = room.fit(Vec::new());
        assert_eq!(input.len(), MOST);
        for _ in 0..CALM {
            assert_eq!(room.fit(Vec::new()).len(), MOST);
            room.learn(72);
        }
        assert_eq!(room.fit(input).capacity(), LEAST);
    }
}
