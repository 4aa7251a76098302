//! Axes that fit their data, with ticks at round values.

use crate::{Scale, Tick, short};

/// An axis: its quantity and scale.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Name and unit.
    pub name: String,
    /// The scale.
    pub kind: Kind,
    /// Formats a value.
    pub label: fn(f64) -> String,
    /// Values that are shown in any case.
    pub shown: Vec<f64>,
}

/// The scale of an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Linear.
    Linear,
    /// Logarithmic; values must be above 0, others are left out.
    Logarithmic,
    /// Logarithmic if the largest value is more than ten times the smallest, and all are above 0;
    /// else linear.
    Either,
    /// The value is the index of a name.
    Named(Vec<String>),
}

impl Axis {
    /// An axis that chooses its scale.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, label: short, shown: Vec::new() }
    }

    /// The same axis, which shows `values` in any case.
    #[must_use]
    pub fn showing(mut self, values: &[f64]) -> Self {
        self.shown.extend_from_slice(values);
        self
    }

    /// The same axis, whose values `label` formats.
    #[must_use]
    pub fn labelled(mut self, label: fn(f64) -> String) -> Self {
        self.label = label;
        self
    }

    /// A value as text: a name, or a formatted number.
    pub(crate) fn tell(&self, value: f64) -> String {
        match &self.kind {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
            Kind::Named(names) => names.get(value as usize).cloned().unwrap_or_default(),
            _ => (self.label)(value),
        }
    }

    /// The scale and the ticks for `values`; `margin` is the share of the axis that stays free
    /// beyond them.
    pub(crate) fn fit(&self, values: impl Iterator<Item = f64>, margin: f64) -> (Scale, Vec<Tick>) {
        if let Kind::Named(names) = &self.kind {
            let ticks = names.iter().enumerate().map(|(at, name)| (at as f64, name.clone()));
            return (Scale::Linear(-0.5, names.len().max(1) as f64 - 0.5), ticks.collect());
        }
        let values: Vec<f64> =
            values.chain(self.shown.iter().copied()).filter(|value| value.is_finite()).collect();
        let fold = |from: f64, of: fn(f64, f64) -> f64| values.iter().copied().fold(from, of);
        let (low, high) = (fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max));
        let above =
            values.iter().copied().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let is_logarithmic = match self.kind {
            Kind::Logarithmic => above.is_finite(),
            Kind::Either => low > 0.0 && high > 10.0 * low,
            _ => false,
        };
        if !low.is_finite() {
            return self.linear(0.0, 1.0);
        }
        if is_logarithmic {
            let spread = (high / above).max(1.5).powf(margin);
            return self.logarithmic(above / spread, high.max(above * 1.5) * spread);
        }
        // A single value has room around it, too; a value to be shown may be the end itself.
        let room = if high > low { (high - low) * margin } else { high.abs() * 0.1 };
        let is_end = |end: f64| self.shown.contains(&end);
        // Values that are never negative have an axis without negative values.
        let floor = if low >= 0.0 { 0.0 } else { f64::NEG_INFINITY };
        let low = if is_end(low) && high > low { low } else { (low - room).max(floor) };
        let high = if is_end(high) && high > low { high } else { high + room };
        self.linear(low, high)
    }

    /// A linear scale with round ticks that includes `low` and `high`.
    fn linear(&self, low: f64, high: f64) -> (Scale, Vec<Tick>) {
        let span = if high > low { high - low } else { high.abs().max(1.0) };
        let decade = 10_f64.powf((span / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
        let step = step.into_iter().find(|step| span / step <= 6.0).unwrap_or(10.0 * decade);
        let (first, last) = ((low / step).floor(), ((low + span) / step).ceil());
        let mut ticks = Vec::new();
        let mut at = first;
        while at <= last {
            // Not by adding steps: 0.1 + 0.2 is not 0.3.
            let value = at * step;
            ticks.push((value, (self.label)((value / step).round() * step)));
            at += 1.0;
        }
        (Scale::Linear(first * step, last * step), ticks)
    }

    /// A logarithmic scale from `low` to `high` with round ticks.
    fn logarithmic(&self, low: f64, high: f64) -> (Scale, Vec<Tick>) {
        let decades = (high / low).log10();
        let steps: &[f64] = if decades > 2.2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        #[expect(clippy::cast_possible_truncation, reason = "powers of a finite number")]
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        // At most about eight decades have a tick each.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "few")]
        let every = (decades / 8.0).ceil().max(1.0) as usize;
        let ticks = powers.step_by(every).flat_map(|power| {
            steps.iter().map(move |step| format!("{step}e{power}").parse::<f64>().unwrap_or(1.0))
        });
        let ticks = ticks.filter(|value| (low..=high).contains(value));
        let ticks: Vec<Tick> = ticks.map(|value| (value, (self.label)(value))).collect();
        let ticks = match ticks.len() {
            // Within less than a decade, ticks at even distances.
            0..=2 => {
                let (_, even) = self.linear(low, high);
                even.into_iter().filter(|tick| (low..=high).contains(&tick.0)).collect()
            }
            _ => ticks,
        };
        (Scale::Logarithmic(low, high), ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], margin: f64) -> Vec<String> {
        axis.fit(values.iter().copied(), margin).1.into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_the_values() {
        let linear = Axis::new("x", Kind::Linear);
        assert_eq!(
            labels(&linear, &[1.0, 1.27], 0.0),
            ["1", "1.05", "1.1", "1.15", "1.2", "1.25", "1.3"]
        );
        assert_eq!(labels(&linear, &[0.0, 10.0], 0.0), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&linear, &[7.0], 0.1).len(), 5);
        assert_eq!(labels(&linear, &[], 0.0).first().map(String::as_str), Some("0"));
        assert_eq!(labels(&linear, &[f64::NAN, 0.0], 0.0).first().map(String::as_str), Some("0"));
    }

    #[test]
    fn ratios_make_an_axis_logarithmic() {
        let either = Axis::new("x", Kind::Either);
        assert_eq!(labels(&either, &[3.0, 40.0], 0.0), ["5", "10", "20"]);
        assert!(matches!(either.fit([3.0, 9.0].into_iter(), 0.0).0, Scale::Linear(..)));
        assert!(matches!(either.fit([0.0, 9.0].into_iter(), 0.0).0, Scale::Linear(..)));
        let narrow = Axis::new("x", Kind::Logarithmic);
        assert_eq!(labels(&narrow, &[5.0, 8.0], 0.0), ["5", "5.5", "6", "6.5", "7", "7.5", "8"]);
        let wide = Axis::new("x", Kind::Logarithmic);
        assert_eq!(labels(&wide, &[1.0, 1e4], 0.0), ["1", "10", "100", "1000", "10k"]);
        assert!(labels(&wide, &[1e-3, 1e15], 0.0).len() <= 10);
    }

    #[test]
    fn an_end_that_is_to_be_shown_is_the_end() {
        let share = Axis::new("x", Kind::Linear).showing(&[0.0, 1.0]);
        let ticks = labels(&share, &[0.3, 1.0], 0.03);
        assert_eq!(ticks.last().map(String::as_str), Some("1"));
    }

    #[test]
    fn names_have_their_places() {
        let named = Axis::new("x", Kind::Named(vec!["a".to_owned(), "b".to_owned()]));
        let (scale, ticks) = named.fit(std::iter::empty(), 0.0);
        assert_eq!(ticks, [(0.0, "a".to_owned()), (1.0, "b".to_owned())]);
        assert!(matches!(scale, Scale::Linear(-0.5, 1.5)));
        assert_eq!(named.tell(1.0), "b");
    }
}
