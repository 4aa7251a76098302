use measure::Money;

use super::compare::Peaks;
use super::{CostError, Dimension, Model, Tenant, compare};

/// A number of the model or the demand that a sensitivity analysis varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knob {
    /// Price of the flash of a server.
    FlashPrice,
    /// Price of the rest of a server.
    ComputePrice,
    /// Price of the rest of a flash server.
    TaxPrice,
    /// The queries that a server loses by remote flash.
    Drop,
    /// Every tenant's demand in every period; its value is the peak of all tenants together.
    Demand(Dimension),
    /// How much of a dimension a server has.
    Server(Dimension),
}

/// A value of a knob at which the verdict changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flip {
    /// The value nearest to the knob's own at which the verdict differs.
    pub at: u64,
    /// Whether disaggregation saves from there on.
    pub saves: bool,
}

/// How the saving depends on one knob.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sensitivity {
    /// The knob.
    pub knob: Knob,
    /// Its own value: millionths of money, billionths of a share, or an amount.
    pub value: u64,
    /// The saving if the knob is a tenth less; `None` if it cannot be.
    pub tenth_less: Option<f64>,
    /// The saving if the knob is a tenth more; `None` if it cannot be.
    pub tenth_more: Option<f64>,
    /// The nearest lower value at which the verdict changes.
    pub below: Option<Flip>,
    /// The nearest higher value at which the verdict changes.
    pub above: Option<Flip>,
}

/// A change of the verdict is searched from 1/`REACH` to `REACH` times the value.
const REACH: u64 = 100;
const STEPS: i32 = 200;
/// Beyond this many tenants a step is slow and their total demand smooth: fewer steps are enough.
const MANY: usize = 200;
const STEPS_OF_MANY: i32 = 40;

impl Knob {
    /// The knob's own value, in the unit of [`Sensitivity::value`].
    fn read(self, model: &Model, peaks: &Peaks) -> u64 {
        match self {
            Self::FlashPrice => model.flash.price.micros(),
            Self::ComputePrice => model.compute.price.micros(),
            Self::TaxPrice => model.tax.price.micros(),
            Self::Drop => u64::from(model.drop_ppb),
            // The most that all want together.
            Self::Demand(dimension) => {
                let all = peaks.together.iter().map(|demand| demand.get(dimension));
                all.max().unwrap_or(0)
            }
            Self::Server(dimension) => model.server.get(dimension).unwrap_or(0),
        }
    }

    /// The saving if the knob has `value` in place of `own`; `None` if there is none.
    fn saving(self, model: &Model, peaks: &Peaks, own: u64, value: u64) -> Option<f64> {
        let mut model = model.clone();
        match self {
            Self::FlashPrice => model.flash.price = Money::from_micros(value),
            Self::ComputePrice => model.compute.price = Money::from_micros(value),
            Self::TaxPrice => model.tax.price = Money::from_micros(value),
            Self::Drop => {
                model.drop_ppb = u32::try_from(value).ok().filter(|ppb| *ppb < 1_000_000_000)?;
            }
            Self::Demand(dimension) => {
                let mut peaks = peaks.clone();
                for demand in peaks.tenants.iter_mut().chain(&mut peaks.together) {
                    *demand = demand.times(dimension, value, own).ok()?;
                }
                return peaks.saving(&model).ok().filter(|saving| saving.is_finite());
            }
            Self::Server(dimension) => model.server = model.server.with(dimension, value),
        }
        peaks.saving(&model).ok().filter(|saving| saving.is_finite())
    }
}

/// The sensitivity of the saving to each knob that is not 0, in the order of Eq. 1 and 2.
///
/// # Errors
/// As [`compare`].
pub fn sensitivity(model: &Model, tenants: &[Tenant]) -> Result<Vec<Sensitivity>, CostError> {
    let now = compare(model, tenants)?.saving();
    let prices = [Knob::FlashPrice, Knob::ComputePrice, Knob::TaxPrice, Knob::Drop];
    let knobs = prices
        .into_iter()
        .chain(Dimension::ALL.map(Knob::Demand))
        .chain(Dimension::ALL.map(Knob::Server));
    let peaks = Peaks::of(tenants)?;
    let steps = if tenants.len() > MANY { STEPS_OF_MANY } else { STEPS };
    let mut all = Vec::new();
    for knob in knobs {
        let value = knob.read(model, &peaks);
        if value == 0 {
            continue;
        }
        let own = value;
        let saving = |value| knob.saving(model, &peaks, own, value);
        let tenth = value / 10;
        all.push(Sensitivity {
            knob,
            value,
            tenth_less: saving(value - tenth),
            tenth_more: value.checked_add(tenth).and_then(saving),
            below: flip(value, -steps, now, &saving),
            above: flip(value, steps, now, &saving),
        });
    }
    Ok(all)
}

/// The value nearest to `own` at which the saving changes its sign, or `None`. Searches `steps`
/// geometric steps (downwards if negative), then bisects.
fn flip(own: u64, steps: i32, now: f64, saving: &dyn Fn(u64) -> Option<f64>) -> Option<Flip> {
    let direction = steps.signum();
    let is_other = |value: u64| Some((saving(value)? > 0.0) != (now > 0.0));
    let step = (REACH as f64).powf(1.0 / f64::from(steps.abs()));
    let mut near = own;
    for index in 1..=steps.abs() {
        let far = own as f64 * step.powi(index * direction);
        // The cast stops at the largest number.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at the end")]
        let mut far = far.round() as u64;
        if far == near {
            continue;
        }
        if !is_other(far)? {
            near = far;
            continue;
        }
        while near.abs_diff(far) > 1 {
            let middle = near.midpoint(far);
            if is_other(middle)? {
                far = middle;
            } else {
                near = middle;
            }
        }
        return Some(Flip { at: far, saves: now <= 0.0 });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    fn of(knob: Knob) -> Sensitivity {
        let (model, tenants) = example();
        let all = sensitivity(&model, &tenants).expect("it can be counted");
        *all.iter().find(|one| one.knob == knob).expect("it is not zero")
    }

    #[test]
    fn the_break_even_drop_of_the_example() {
        let drop = of(Knob::Drop);
        let at = drop.above.expect("there is one");
        assert_eq!((at.at.div_ceil(10_000), at.saves), (35_786, false));
        assert_eq!(drop.below, None);
    }

    #[test]
    fn break_evens_of_the_example_are_those_of_the_equations() {
        // 100e12/1.2e12 · (f + δ) + 600,000 = 960,000 where δ = 1920.
        let tax = of(Knob::TaxPrice).above.expect("there is one").at;
        assert!(tax.abs_diff(1_920_000_000) <= 1, "{tax}");
        // 200 · (f + 2400) = 83.33 · (f + 150) + 600,000 where f = 132,500/116.67.
        let flash = of(Knob::FlashPrice).below.expect("there is one").at;
        assert!(flash.abs_diff(1_135_714_286) <= 1, "{flash}");
        // Capacity: C_GB · 2550 = 360,000 where it is 141.18 servers.
        let capacity = of(Knob::Demand(Dimension::Capacity)).above.expect("there is one").at;
        // To the millionth of money.
        assert!(capacity.abs_diff(169_411_764_705_882) <= 1000, "{capacity}");
    }

    #[test]
    fn a_tenth_more_or_less() {
        let flash = of(Knob::FlashPrice);
        let less = 1.0 - (2310.0 * 250.0 / 3.0 + 600_000.0) / (200.0 * 4560.0);
        assert!((flash.tenth_less.expect("it can be") - less).abs() < 1e-12);
        let drop = of(Knob::Drop);
        assert!(drop.tenth_more < drop.tenth_less);
    }
}
