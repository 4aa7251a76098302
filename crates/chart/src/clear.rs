//! Where the name of a line stands clear of what is drawn beside it.

use crate::text_width;

/// Height of a name above its foot, and what letters have below it.
const RISE: f64 = 11.0;
const FALL: f64 = 3.0;
/// Room between a name and its line.
const GAP: f64 = 4.0;

/// A rectangle: its left, upper, right and lower edges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Room {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Room {
    /// The room of `name` at an end of a horizontal line at height `y`, above it or below it.
    fn beside(&self, name: &str, y: f64, (is_right, is_above): (bool, bool)) -> Self {
        let width = text_width(name);
        let left = if is_right { self.right - GAP - width } else { self.left + GAP };
        let foot = if is_above { y - GAP } else { y + GAP + RISE };
        Self { left, top: foot - RISE, right: left + width, bottom: foot + FALL }
    }

    /// Whether `other` is in it.
    fn holds(&self, other: &Self) -> bool {
        self.left <= other.left
            && other.right <= self.right
            && self.top <= other.top
            && other.bottom <= self.bottom
    }

    /// Whether a straight line goes through it.
    fn is_crossed(&self, from: (f64, f64), to: (f64, f64)) -> bool {
        let (mut begin, mut end) = (0.0_f64, 1.0_f64);
        let axes = [
            (from.0, to.0 - from.0, self.left, self.right),
            (from.1, to.1 - from.1, self.top, self.bottom),
        ];
        for (at, step, low, high) in axes {
            if step == 0.0 {
                if !(low..=high).contains(&at) {
                    return false;
                }
                continue;
            }
            let (one, other) = ((low - at) / step, (high - at) / step);
            begin = begin.max(one.min(other));
            end = end.min(one.max(other));
        }
        begin <= end
    }
}

/// The foot of the name of a horizontal line at height `y`, from where it reads to the right: at
/// an end of the line, above or below it, within `panel`, where fewest of the drawn `lines` are.
pub(crate) fn foot(panel: &Room, name: &str, y: f64, lines: &[Vec<(f64, f64)>]) -> (f64, f64) {
    let sides = [(true, true), (true, false), (false, true), (false, false)];
    let rooms = sides.map(|side| panel.beside(name, y, side));
    let crossings = |room: &Room| {
        let pairs = lines.iter().flat_map(|line| line.windows(2));
        pairs.filter(|pair| room.is_crossed(pair[0], pair[1])).count()
    };
    let inside = rooms.iter().filter(|room| panel.holds(room));
    let best = inside.min_by_key(|room| crossings(room)).unwrap_or(&rooms[0]);
    (best.left, best.bottom - FALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PANEL: Room = Room { left: 0.0, top: 0.0, right: 400.0, bottom: 200.0 };

    #[test]
    fn a_name_stands_above_the_right_end_of_its_line_if_nothing_is_there() {
        let (x, y) = foot(&PANEL, "p50", 100.0, &[]);
        assert_eq!((x, y), (400.0 - GAP - text_width("p50"), 96.0));
    }

    #[test]
    fn a_name_stays_in_the_picture_and_clear_of_lines() {
        // A distribution that is at its top at the right.
        let line = vec![vec![(0.0, 200.0), (300.0, 190.0), (310.0, 8.0), (400.0, 2.0)]];
        let (x, y) = foot(&PANEL, "p99", 6.0, &line);
        assert!(x > 310.0 && y > 6.0, "at the right, below: {x} {y}");
        // One that rises at the very end.
        let line = vec![vec![(0.0, 200.0), (380.0, 190.0), (385.0, 2.0), (400.0, 2.0)]];
        let (x, y) = foot(&PANEL, "p99", 6.0, &line);
        assert!(x < 100.0 && y > 6.0, "at the left, below: {x} {y}");
    }

    #[test]
    fn a_line_crosses_what_it_goes_through_and_nothing_else() {
        let room = Room { left: 10.0, top: 10.0, right: 20.0, bottom: 20.0 };
        assert!(
            room.is_crossed((0.0, 0.0), (30.0, 30.0)) && room.is_crossed((15.0, 0.0), (15.0, 99.0))
        );
        assert!(
            !room.is_crossed((0.0, 0.0), (9.0, 99.0))
                && !room.is_crossed((0.0, 25.0), (30.0, 25.0))
        );
        assert!(!room.is_crossed((0.0, 15.0), (30.0, 60.0)), "it passes the corner");
        assert!(room.is_crossed((15.0, 15.0), (15.0, 15.0)), "a point inside");
    }
}
