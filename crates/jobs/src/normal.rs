//! Normal equations: symmetric systems, small and dense.

/// The length of a packed symmetric system: the rows of the lower triangle one after another, then
/// the right-hand side.
pub(crate) const fn packed_len(rank: usize) -> usize {
    rank * (rank + 1) / 2 + rank
}

/// Adds the equation `factor · x = value` to a least-squares system.
pub(crate) fn add(system: &mut [f64], factor: &[f64], value: f64) {
    // A length known to the compiler makes the sums several times faster, and they stay the same.
    match (factor.try_into(), system.try_into()) {
        (Ok(factor), Ok(system)) => add_eight(system, factor, value),
        _ => add_any(system, factor, value),
    }
}

/// As `add_any`, for factors of length 8.
fn add_eight(system: &mut [f64; packed_len(8)], factor: &[f64; 8], value: f64) {
    let mut row = 0;
    for index in 0..8 {
        for other in 0..=index {
            system[row + other] += factor[index] * factor[other];
        }
        row += index + 1;
    }
    for index in 0..8 {
        system[row + index] += factor[index] * value;
    }
}

/// Adds the outer product of `factor` to the triangle and `value` times `factor` to the right side.
fn add_any(system: &mut [f64], factor: &[f64], value: f64) {
    let mut row = 0;
    for (index, &entry) in factor.iter().enumerate() {
        let cells = &mut system[row..=row + index];
        cells.iter_mut().zip(factor).for_each(|(cell, other)| *cell += entry * other);
        row += index + 1;
    }
    let cells = &mut system[row..];
    cells.iter_mut().zip(factor).for_each(|(cell, entry)| *cell += entry * value);
}

/// Solves the system with `ridge` added to its diagonal, by Cholesky's decomposition, in place.
pub(crate) fn solve(system: &mut [f64], ridge: f64, solution: &mut [f64]) {
    let rank = solution.len();
    let (matrix, right) = system.split_at_mut(rank * (rank + 1) / 2);
    let at = |row: usize, column: usize| row * (row + 1) / 2 + column;
    for row in 0..rank {
        matrix[at(row, row)] += ridge;
        for column in 0..=row {
            let mut rest = matrix[at(row, column)];
            for inner in 0..column {
                rest -= matrix[at(row, inner)] * matrix[at(column, inner)];
            }
            matrix[at(row, column)] = if row == column {
                // Without a ridge, rounding may make a positive diagonal entry zero or negative.
                rest.max(f64::MIN_POSITIVE).sqrt()
            } else {
                rest / matrix[at(column, column)]
            };
        }
    }
    for row in 0..rank {
        let known: f64 = (0..row).map(|inner| matrix[at(row, inner)] * solution[inner]).sum();
        solution[row] = (right[row] - known) / matrix[at(row, row)];
    }
    for row in (0..rank).rev() {
        let known: f64 =
            (row + 1..rank).map(|inner| matrix[at(inner, row)] * solution[inner]).sum();
        solution[row] = (solution[row] - known) / matrix[at(row, row)];
    }
}

/// The inner product of two vectors.
pub(crate) fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn solve_known_system() {
        // [4 2; 2 3] x = [10; 8] has the solution (1.75, 1.5).
        let mut system = [4.0, 2.0, 3.0, 10.0, 8.0];
        let mut solution = [0.0; 2];
        solve(&mut system, 0.0, &mut solution);
        assert!((solution[0] - 1.75).abs() < 1e-12 && (solution[1] - 1.5).abs() < 1e-12);
    }

    #[test]
    fn ridge_alone_divides() {
        let mut system = vec![0.0; packed_len(3)];
        system[6..].copy_from_slice(&[1.0, 2.0, 3.0]);
        let mut solution = [0.0; 3];
        solve(&mut system, 4.0, &mut solution);
        assert_eq!(solution, [0.25, 0.5, 0.75]);
    }

    proptest! {
        #[test]
        fn eight_is_like_any_other_length(
            factor in prop::collection::vec(-10.0..10.0_f64, 8),
            value in -10.0..10.0_f64,
        ) {
            let mut systems = [[1.0; packed_len(8)]; 2];
            add(&mut systems[0], &factor, value);
            add_any(&mut systems[1], &factor, value);
            prop_assert_eq!(systems[0], systems[1]);
        }

        #[test]
        fn solve_finds_what_the_equations_were_made_from(
            wanted in prop::collection::vec(-10.0..10.0_f64, 4),
            factors in prop::collection::vec(prop::collection::vec(-1.0..1.0_f64, 4), 40),
        ) {
            let mut system = vec![0.0; packed_len(4)];
            for factor in &factors {
                add(&mut system, factor, dot(factor, &wanted));
            }
            let mut solution = [0.0; 4];
            solve(&mut system, 0.0, &mut solution);
            for (found, wanted) in solution.iter().zip(&wanted) {
                prop_assert!((found - wanted).abs() < 1e-6, "{solution:?}");
            }
        }
    }
}
