//! Which runs an experiment consists of, and in which order.

use workload::Draw;

use super::file::{AXES, Sweep};

/// Something that is run once in every block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) kind: Kind,
    /// Axis and value, in the order of [`AXES`].
    pub(crate) settings: Vec<(&'static str, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Without afar.
    Native,
    /// With all memory local and no delay.
    Zero,
    /// With far memory.
    Far,
}

impl Cell {
    /// What slowdowns are measured against.
    pub(crate) const NATIVE: Self = Self { kind: Kind::Native, settings: Vec::new() };
    /// What afar costs by itself.
    pub(crate) const ZERO: Self = Self { kind: Kind::Zero, settings: Vec::new() };

    /// The name it has in files: `native`, `zero`, or its settings.
    pub(crate) fn name(&self) -> String {
        match self.kind {
            Kind::Native => "native".to_owned(),
            Kind::Zero => "zero".to_owned(),
            Kind::Far => {
                let words = self.settings.iter().map(|(axis, value)| format!("{axis}={value}"));
                words.collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Its value of an axis; empty if it has none.
    pub(crate) fn value(&self, axis: &str) -> &str {
        let setting = self.settings.iter().find(|(name, _)| *name == axis);
        setting.map_or("", |(_, value)| value)
    }

    /// Flags of `afar run`.
    pub(crate) fn flags(&self) -> Vec<String> {
        self.settings
            .iter()
            .flat_map(|(axis, value)| [format!("--{axis}"), value.clone()])
            .collect()
    }
}

/// Both baselines and every combination of values.
pub(crate) fn cells(sweep: &Sweep) -> Vec<Cell> {
    let mut combinations = vec![Vec::new()];
    for axis in AXES {
        let values = sweep.matrix.axis(axis);
        if !values.is_empty() {
            combinations = combinations
                .into_iter()
                .flat_map(|before: Vec<(&'static str, String)>| {
                    values.iter().map(move |value| {
                        let mut settings = before.clone();
                        settings.push((axis, value.clone()));
                        settings
                    })
                })
                .collect();
        }
    }
    let far = combinations.into_iter().filter(|settings| !settings.is_empty());
    let far = far.map(|settings| Cell { kind: Kind::Far, settings });
    [Cell::NATIVE, Cell::ZERO].into_iter().chain(far).collect()
}

/// The order of a block: every cell once, shuffled, so that a machine that drifts does not favour
/// any.
pub(crate) fn order(count: usize, seed: u64, block: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut draw = Draw::new(seed.wrapping_add(u64::from(block).wrapping_mul(0x9e37_79b9)));
    for last in (1..count).rev() {
        let other = usize::try_from(draw.below(last as u64 + 1)).unwrap_or(0);
        order.swap(last, other);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_combined_with_everything() {
        let text = "[workload]\ncommand = [\"true\"]\n[matrix]\nrtt = [\"1us\", \"5us\"]\n\
                    local = [\"25%\", \"50%\"]\n";
        let sweep: Sweep = toml::from_str(text).expect("it is an experiment");
        let names: Vec<String> = cells(&sweep).iter().map(Cell::name).collect();
        assert_eq!(
            names,
            [
                "native",
                "zero",
                "local=25% rtt=1us",
                "local=25% rtt=5us",
                "local=50% rtt=1us",
                "local=50% rtt=5us"
            ]
        );
        assert_eq!(cells(&sweep)[3].flags(), ["--local", "25%", "--rtt", "5us"]);
    }

    #[test]
    fn orders_differ_between_blocks_and_follow_from_the_seed() {
        let mut sorted = order(20, 1, 0);
        assert_eq!(order(20, 1, 0), sorted);
        assert_ne!(order(20, 1, 1), sorted);
        assert_ne!(order(20, 2, 0), sorted);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    }
}
