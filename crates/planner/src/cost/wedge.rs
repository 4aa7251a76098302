//! Savings when storage and compute grow apart (Klimovic et al., Fig. 8).
//!
//! From a deployment in balance, with storage times a and compute times b:
//! S(a,b) = 1 − [a(f+δ) + b·c·m] / [max(a,b)(f+c)], m = 1/(1−drop).

use measure::Money;

use super::{CostError, Model, Part};

/// The ratios of storage to compute growth between which disaggregation loses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wedge {
    /// Disaggregation saves below this ratio; 0 if it never does.
    pub low: f64,
    /// Disaggregation saves above this ratio; infinite if it never does.
    pub high: f64,
}

/// The saving for one pair of growth factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// The factor a by which storage has grown.
    pub storage: u32,
    /// The factor b by which compute has grown.
    pub compute: u32,
    /// The saving S(a,b); negative if disaggregation costs more.
    pub saving: f64,
}

/// Prices with power and space, in units of money, and the multiplier m.
#[derive(Debug, Clone, Copy)]
struct Prices {
    flash: f64,
    compute: f64,
    tax: f64,
    multiplier: f64,
}

impl Prices {
    /// The prices of `model`'s flash (f), compute (c) and tax (δ), and m.
    fn of(model: &Model) -> Result<Self, CostError> {
        let none = Part::default();
        let of = |part| model.price([part, &none]).map(Money::units_f64);
        Ok(Self {
            flash: of(&model.flash)?,
            compute: of(&model.compute)?,
            tax: of(&model.tax)?,
            multiplier: model.multiplier(),
        })
    }
}

impl Model {
    /// m: how many servers with remote flash replace one with flash of its own.
    #[must_use]
    pub fn multiplier(&self) -> f64 {
        1e9 / (1e9 - f64::from(self.drop_ppb.min(999_999_999)))
    }
}

impl Wedge {
    /// The wedge of `model`: for a ≥ b, S > 0 is a(c − δ) > bcm; for a ≤ b it is
    /// a(f + δ) < b(f + c − cm).
    ///
    /// # Errors
    /// When a price is too high to be counted.
    pub fn of(model: &Model) -> Result<Self, CostError> {
        let Prices { flash, compute, tax, multiplier } = Prices::of(model)?;
        let left = flash + compute - compute * multiplier;
        let low = if left > 0.0 { left / (flash + tax) } else { 0.0 };
        let high = match compute - tax {
            room if room > 0.0 => compute * multiplier / room,
            _ => f64::INFINITY,
        };
        Ok(Self { low, high })
    }
}

/// S for every pair of factors from 1 to `most`, storage by storage.
///
/// # Errors
/// When a price is too high to be counted, or everything is free.
pub fn map(model: &Model, most: u32) -> Result<Vec<Cell>, CostError> {
    let Prices { flash, compute, tax, multiplier } = Prices::of(model)?;
    if flash + compute <= 0.0 {
        return Err(CostError::Free);
    }
    let pairs = (1..=most).flat_map(|storage| (1..=most).map(move |compute| (storage, compute)));
    let cell = |(storage, queries): (u32, u32)| {
        let (a, b) = (f64::from(storage), f64::from(queries));
        let pools = a * (flash + tax) + b * compute * multiplier;
        Cell { storage, compute: queries, saving: 1.0 - pools / (a.max(b) * (flash + compute)) }
    };
    Ok(pairs.map(cell).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{Dimension, compare, example};
    use super::*;

    #[test]
    fn the_wedge_of_the_example() {
        let wedge = Wedge::of(&example().0).expect("it can be counted");
        assert_eq!(format!("{:.5} {:.5}", wedge.low, wedge.high), "0.70588 1.33333");
        let (mut model, _) = example();
        model.drop_ppb = 500_000_000;
        model.tax = model.compute;
        let never = Wedge::of(&model).expect("it can be counted");
        assert_eq!(never, Wedge { low: 0.0, high: f64::INFINITY });
    }

    #[test]
    fn savings_change_sign_at_the_wedge_and_nowhere_else() {
        let (model, _) = example();
        let Wedge { low, high } = Wedge::of(&model).expect("it can be counted");
        for Cell { storage, compute, saving } in map(&model, 40).expect("it can be counted") {
            let ratio = f64::from(storage) / f64::from(compute);
            if (ratio - low).abs() > 1e-9 && (ratio - high).abs() > 1e-9 {
                assert_eq!(saving < 0.0, low < ratio && ratio < high, "{storage}, {compute}");
            }
        }
    }

    /// The text of the paper says −12 % on the diagonal, 40 % in the corner, and 50 % there with
    /// flash at twice the price. Its own inputs give others.
    #[test]
    fn the_papers_text_needs_other_inputs() {
        let (mut model, _) = example();
        let at = |model: &Model, storage, compute| {
            let cells = map(model, 7).expect("it can be counted");
            let is_it = |cell: &&Cell| (cell.storage, cell.compute) == (storage, compute);
            format!("{:.2}", cells.iter().find(is_it).expect("it is there").saving * 100.0)
        };
        assert_eq!(at(&model, 3, 3), "-15.62");
        model.drop_ppb = 166_666_667;
        model.tax.price = Money::from_units(100);
        assert_eq!([at(&model, 1, 1), at(&model, 7, 1)], ["-12.08", "39.35"]);
        model.flash.price = Money::from_units(4800);
        assert_eq!(at(&model, 1, 7), "50.28");
    }

    #[test]
    fn the_map_is_the_comparison_from_a_balanced_deployment() {
        let (model, mut tenants) = example();
        let each = |dimension| model.server.get(dimension).expect("it is said") * 100;
        for Cell { storage, compute, saving } in map(&model, 5).expect("it can be counted") {
            tenants[0].series[0] = tenants[0].series[0]
                .with(Dimension::Capacity, each(Dimension::Capacity) * u64::from(storage))
                .with(Dimension::Qps, each(Dimension::Qps) * u64::from(compute));
            let all = compare(&model, &tenants).expect("it can be counted");
            assert!((all.saving() - saving).abs() < 1e-12, "{storage}, {compute}");
        }
    }
}
