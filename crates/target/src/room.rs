//! How much memory a connection has for what it receives: little while little comes, for most
//! connections are idle.

/// Bytes received at once, at least and at most; both powers of two.
const LEAST: usize = 2 << 10;
const MOST: usize = 64 << 10;
/// It shrinks when so many receives in a row have brought less than this part of it.
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
    /// So many bytes have come at once.
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

    /// Memory for the next, made of what was there for the last.
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
