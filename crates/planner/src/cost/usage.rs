use super::{Comparison, CostError, Demand, Dimension, Machines, Model, Tenant, compare};

/// The share of a bought dimension that is used in its busiest period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// The dimension.
    pub dimension: Dimension,
    /// The share that is used if tenants have flash of their own.
    pub direct: f64,
    /// The share of the pools that all tenants use together.
    pub pooled: f64,
}

/// The usage of every dimension that servers have and tenants need, except traffic. Queries that
/// servers lose by remote flash count as used.
///
/// # Errors
/// When a sum of demands exceeds 64 bits.
pub fn usage(
    model: &Model,
    tenants: &[Tenant],
    bought: &Comparison,
) -> Result<Vec<Usage>, CostError> {
    let together = compare::together(tenants)?;
    let direct: f64 = bought.direct.iter().map(|side| side.machines.as_f64()).sum();
    let mut all = Vec::new();
    for dimension in Dimension::ALL {
        let most = together.iter().map(|demand: &Demand| demand.get(dimension)).max();
        let (Some(each), Some(most @ 1..)) = (model.server.get(dimension), most) else { continue };
        if dimension == Dimension::Traffic {
            continue;
        }
        let is_flash = matches!(dimension, Dimension::Capacity | Dimension::Iops);
        let pool = if is_flash { bought.pooled.flash } else { bought.pooled.compute };
        let lost = if dimension == Dimension::Qps { model.multiplier() } else { 1.0 };
        let needed = Machines::of(most, each).map_or(0.0, Machines::as_f64);
        let pooled = needed * lost / pool.machines.as_f64();
        all.push(Usage { dimension, direct: needed / direct, pooled });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn flash_of_its_own_lies_idle() {
        let (model, tenants) = example();
        let bought = compare(&model, &tenants).expect("it can be counted");
        let all = usage(&model, &tenants, &bought).expect("it can be counted");
        let [capacity, qps] = &all[..] else { panic!("{all:?}") };
        // 100 TB of 200 · 1.2 TB.
        assert!((capacity.direct - 100.0 / 240.0).abs() < 1e-12);
        assert!((capacity.pooled - 1.0).abs() < 1e-12 && (qps.pooled - 1.0).abs() < 1e-12);
        assert!((qps.direct - 1.0).abs() < 1e-12);
    }
}
