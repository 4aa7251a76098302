//! What was seen over time, in bounded memory.
//!
//! A full history is halved: neighbours become one moment, each value the mean of both by the time
//! they stand for. So all of the time is there, older times in coarser steps.

use std::collections::{BTreeMap, BTreeSet};

/// The most moments that are stored.
pub(super) const MOMENTS_MAX: usize = 512;
/// The most values of one moment, the largest; the others are left out.
pub(super) const VALUES_MAX: usize = 8;

/// Named values over time.
#[derive(Debug, Default)]
pub(super) struct History {
    moments: Vec<Moment>,
}

#[derive(Debug, Clone, PartialEq)]
struct Moment {
    /// Its end, in seconds.
    at: f64,
    /// How long it lasted.
    span: f64,
    values: BTreeMap<String, f64>,
}

impl History {
    /// Adds what was seen in the `span` seconds that ended `at`; a time before the last begins
    /// anew.
    pub(super) fn add(
        &mut self,
        (at, span): (f64, f64),
        values: impl IntoIterator<Item = (String, f64)>,
    ) {
        if self.moments.last().is_some_and(|last| at < last.at) {
            self.moments.clear();
        }
        let mut values: Vec<(String, f64)> = values.into_iter().collect();
        values.sort_by(|one, other| other.1.total_cmp(&one.1));
        values.truncate(VALUES_MAX);
        self.moments.push(Moment { at, span, values: values.into_iter().collect() });
        if self.moments.len() >= MOMENTS_MAX {
            self.moments = self.moments.chunks(2).map(merged).collect();
        }
    }

    /// The names of at most `count` series, those with the largest sums first, each with its points
    /// in the order of time. A moment without a value has none of it: 0.
    pub(super) fn series(&self, count: usize) -> Vec<(String, Vec<(f64, f64)>)> {
        let names: BTreeSet<&String> =
            self.moments.iter().flat_map(|moment| moment.values.keys()).collect();
        let sum = |name: &str| -> f64 {
            let of = |moment: &Moment| moment.values.get(name).map_or(0.0, |one| one * moment.span);
            self.moments.iter().map(of).sum()
        };
        let mut named: Vec<(f64, &String)> =
            names.into_iter().map(|name| (sum(name), name)).collect();
        named.sort_by(|one, other| other.0.total_cmp(&one.0));
        let points = |name: &String| {
            let of = |moment: &Moment| (moment.at, moment.values.get(name).copied().unwrap_or(0.0));
            self.moments.iter().map(of).collect()
        };
        named.into_iter().take(count).map(|(_, name)| (name.clone(), points(name))).collect()
    }

    /// Whether there are enough moments to draw.
    pub(super) fn is_drawable(&self) -> bool {
        self.moments.len() >= 2
    }
}

/// One moment for two neighbours, with the means of their values; a single one is unchanged.
fn merged(pair: &[Moment]) -> Moment {
    let [one, other] = pair else { return pair[0].clone() };
    let span = one.span + other.span;
    let names = one.values.keys().chain(other.values.keys());
    let mean = |name: &String| {
        let of = |moment: &Moment| moment.values.get(name).map_or(0.0, |one| one * moment.span);
        (of(one) + of(other)) / span.max(f64::MIN_POSITIVE)
    };
    let mut values: Vec<(String, f64)> = names.map(|name| (name.clone(), mean(name))).collect();
    values.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    values.dedup_by(|one, other| one.0 == other.0);
    values.truncate(VALUES_MAX);
    Moment { at: other.at, span, values: values.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, value: f64) -> (String, f64) {
        (name.to_owned(), value)
    }

    #[test]
    fn a_history_has_a_bound_and_keeps_all_of_the_time() {
        let mut history = History::default();
        for second in 0..100_000_u32 {
            let at = f64::from(second);
            // Ever new names, and one that stays.
            let names = (0..20).map(|number| value(&format!("{second}-{number}"), 1e-3));
            history.add((at, 1.0), names.chain([value("all", 2.0)]));
            assert!(history.moments.len() < MOMENTS_MAX);
            assert!(history.moments.iter().all(|moment| moment.values.len() <= VALUES_MAX));
        }
        let series = history.series(1);
        let (name, points) = &series[0];
        assert_eq!(name, "all");
        assert!(points.iter().all(|point| (point.1 - 2.0).abs() < 1e-9), "a mean of 2 is 2");
        let spans: f64 = history.moments.iter().map(|moment| moment.span).sum();
        assert_eq!((spans, points[points.len() - 1].0), (100_000.0, 99_999.0));
    }

    #[test]
    fn merged_moments_have_the_mean_by_time() {
        let moment = |at, span, values: &[(String, f64)]| Moment {
            at,
            span,
            values: values.iter().cloned().collect(),
        };
        let one = moment(1.0, 1.0, &[value("a", 4.0), value("b", 8.0)]);
        let other = moment(4.0, 3.0, &[value("a", 8.0)]);
        let both = moment(4.0, 4.0, &[value("a", 7.0), value("b", 2.0)]);
        assert_eq!(merged(&[one.clone(), other]), both);
        assert_eq!(merged(std::slice::from_ref(&one)), one);
    }

    #[test]
    fn a_time_that_goes_back_begins_anew() {
        let mut history = History::default();
        for at in [1.0, 2.0, 0.5] {
            history.add((at, 1.0), [value("a", at)]);
        }
        assert_eq!(history.series(9), [("a".to_owned(), vec![(0.5, 0.5)])]);
        assert!(!history.is_drawable());
    }
}
