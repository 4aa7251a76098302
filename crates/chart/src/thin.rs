//! Thinning of points without a visible change: of many points in a column of pixels, a drawing
//! shows only the first, the last and the extent.

use crate::Point;

/// Thins points, in order of `x`, for a drawing `columns` wide; `place` maps an `x` to a share of
/// it. Of several points in a column, the first, the lowest, the highest and the last stay, in
/// order.
#[must_use]
pub fn thin(points: &[Point], place: impl Fn(f64) -> f64, columns: usize) -> Vec<Point> {
    if points.len() <= 4 * columns.max(1) {
        return points.to_vec();
    }
    #[expect(clippy::cast_possible_truncation, reason = "a column of a drawing")]
    let column = |point: &Point| (place(point.x) * columns as f64).floor() as i64;
    let mut kept = Vec::new();
    for shared in points.chunk_by(|one, other| column(one) == column(other)) {
        let by = |one: &(usize, &Point), other: &(usize, &Point)| one.1.y.total_cmp(&other.1.y);
        let lowest = shared.iter().enumerate().min_by(by).map_or(0, |found| found.0);
        let highest = shared.iter().enumerate().max_by(by).map_or(0, |found| found.0);
        let mut indices = [0, lowest, highest, shared.len() - 1];
        indices.sort_unstable();
        for (at, index) in indices.iter().enumerate() {
            if at == 0 || indices[at - 1] != *index {
                kept.push(shared[*index]);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, y: f64) -> Point {
        Point { x, y, interval: None }
    }

    #[test]
    fn few_points_stay() {
        let points: Vec<Point> = (0..40).map(|at| point(f64::from(at), 1.0)).collect();
        assert_eq!(thin(&points, |x| x / 40.0, 10), points);
    }

    #[test]
    fn extremes_of_every_column_stay() {
        let count = 100_000;
        let share = |x: f64| x / f64::from(count);
        let points: Vec<Point> =
            (0..count).map(|at| point(f64::from(at), f64::from(at * 7919 % 1009))).collect();
        let kept = thin(&points, share, 400);
        assert!(kept.len() <= 1600, "{}", kept.len());
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
        for column in 0..400_usize {
            let within = |all: &[Point]| -> Vec<f64> {
                let from = column as f64 / 400.0;
                let ours = all.iter().filter(|one| (share(one.x) * 400.0).floor() / 400.0 == from);
                ours.map(|one| one.y).collect()
            };
            let ends = |values: Vec<f64>| {
                let fold = |of: fn(f64, f64) -> f64| values.iter().copied().reduce(of);
                (fold(f64::min), fold(f64::max))
            };
            assert_eq!(ends(within(&kept)), ends(within(&points)), "column {column}");
        }
    }
}
