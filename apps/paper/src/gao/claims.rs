//! Verdicts on the paper's statements about the shapes of its figures.

use super::apps::{Class, Point, Seen};
use super::place::{BASE, Place, Section};
use super::published;
use crate::report::Verdict;

/// Differences of run time below this share are noise.
const NOISE: f64 = 0.03;
/// The same with one block.
const NOISE_QUICK: f64 = 0.10;
/// Most gain of run time from 40 to 100 Gb/s, as a share: a page takes 0.49 of 5.82 µs less.
const FLAT: f64 = 0.10;
/// A program's working set is local if its fetches take less than this share of a native run.
const CEASED: f64 = 0.01;
/// Degradations up to this count as no effect.
const NONE: f64 = 0.05;

const WHY_NOISE: &str = "other work on this machine took processor time in some runs";
const WHY_TOUCHES: &str = "the first touch of a page costs more in the arena engine, and other \
                           work on this machine took processor time in some runs";
const WHY_BARE: &str = "the stand-ins do nothing but use memory: no disk, no shuffle, no collector \
                        whose time would dilute their faults";

/// The noise with `--quick` or without.
pub(super) const fn noise(is_quick: bool) -> f64 {
    if is_quick { NOISE_QUICK } else { NOISE }
}

/// The mean degradation of a class in a cell, without applications of both classes; `None` if there
/// are no results.
pub(super) fn mean(seen: &[Seen], class: Class, place: Place) -> Option<f64> {
    let of_class = seen.iter().filter(|seen| seen.app.class == class);
    let all: Vec<f64> = of_class.filter_map(|seen| seen.degradation(place)).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// A share as text, in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Points that contradict a shape.
#[derive(Debug, Default)]
struct Breaks {
    /// Points that contradict it in every block.
    always: Vec<String>,
    /// Points that contradict it in the median, within the range of their runs.
    scattered: Vec<String>,
}

impl Breaks {
    /// The verdict that `claim` holds unless a point always contradicts it.
    fn verdict(&self, mut claim: String, why: &str) -> Verdict {
        if !self.always.is_empty() {
            claim += &format!("; it is broken by {}", self.always.join("; "));
        }
        if !self.scattered.is_empty() {
            let points = self.scattered.join("; ");
            claim += &format!("; off by no more than their runs differ: {points}");
        }
        Verdict::because(self.always.is_empty(), claim, why)
    }

    /// Points that are faster than an earlier one of `places`, which are ordered by degradation.
    fn of_order(seen: &[Seen], places: &[Place], noise: f64) -> Self {
        let mut out = Self::default();
        for one in seen {
            let mut before: Vec<&Point> = Vec::new();
            for point in places.iter().filter_map(|&place| one.at(place)) {
                let faster = |[here, there]: [f64; 2]| 1.0 + here < (1.0 + there) * (1.0 - noise);
                let [_, high] = point.range;
                let name = || format!("{} at {}", one.app.name, point.place.name());
                if before.iter().any(|other| faster([high, other.range[0]])) {
                    out.always.push(name());
                } else if before.iter().any(|other| faster([point.degradation, other.degradation]))
                {
                    out.scattered.push(name());
                }
                before.push(point);
            }
        }
        out
    }
}

/// The verdict that degradation grows along `places`.
fn ordered(seen: &[Seen], places: &[Place], noise: f64, what: &str) -> Verdict {
    let claim = format!("{what}, within {:.0} %", noise * 100.0);
    Breaks::of_order(seen, places, noise).verdict(claim, WHY_NOISE)
}

/// Fig. 2: the degradation of classes stays within the paper's bounds.
pub(super) fn networks(seen: &[Seen], is_quick: bool) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let limits = [
        (Class::A, "A", Place { rtt_us: 5, ..BASE }, published::CLASS_A),
        (Class::B, "B", Place { rtt_us: 1, ..BASE }, published::CLASS_B),
    ];
    for (class, name, place, limit) in limits {
        let Some(mean) = mean(seen, class, place) else { continue };
        let paper = match class {
            Class::B => " (at 3 µs; Fig. 4 has those)",
            Class::A | Class::Both => "",
        };
        let claim = format!(
            "class {name} at {}: {} on average; the paper's {} at most{paper}",
            place.name(),
            percent(mean),
            percent(limit)
        );
        verdicts.push(Verdict::because(mean <= limit, claim, WHY_BARE));
    }
    verdicts.extend(split(seen));
    for gbps in [100, 40, 10] {
        let places = [1, 5, 10].map(|rtt_us| Place { rtt_us, gbps, ..BASE });
        let what = format!("at {gbps} Gb/s degradation grows with latency");
        verdicts.push(ordered(seen, &places, noise(is_quick), &what));
    }
    verdicts
}

// The verdict that class B is degraded more than class A.
fn split(seen: &[Seen]) -> Option<Verdict> {
    let (a, b) = (mean(seen, Class::A, BASE)?, mean(seen, Class::B, BASE)?);
    let each = |class: Class| {
        let of_class = seen.iter().filter(|seen| seen.app.class == class);
        let shown = of_class.filter_map(|seen| {
            Some(format!("{} {}", seen.app.name, percent(seen.degradation(BASE)?)))
        });
        shown.collect::<Vec<_>>().join(", ")
    };
    let claim = format!(
        "class B is slowed down more than class A at {}: {} ({}) against {} ({}), on average",
        BASE.name(),
        percent(b),
        each(Class::B),
        percent(a),
        each(Class::A)
    );
    let why = "a class is that of the paper's application, of which the stand-in keeps only the \
               pattern of its memory";
    Some(Verdict::because(b > a, claim, why))
}

/// Fig. 3: more than 40 Gb/s hardly help.
pub(super) fn bandwidths(seen: &[Seen], is_quick: bool) -> Vec<Verdict> {
    let at = |gbps| Place { gbps, ..BASE };
    let gain = |seen: &Seen, from, to| {
        let [from, to] = [from, to].map(|gbps| seen.degradation(at(gbps)));
        Some(1.0 - (1.0 + to?) / (1.0 + from?))
    };
    let limit = FLAT + noise(is_quick) - NOISE;
    let gains: Vec<(&Seen, f64)> =
        seen.iter().filter_map(|seen| Some((seen, gain(seen, 40, 100)?))).collect();
    let mut verdicts = Vec::new();
    if !gains.is_empty() {
        let is_more = |(_, gain): &&(&Seen, f64)| *gain > limit;
        let breaks: Vec<String> = gains
            .iter()
            .filter(is_more)
            .map(|(seen, gain)| format!("{} ({})", seen.app.name, percent(*gain)))
            .collect();
        let most = gains.iter().map(|(_, gain)| *gain).fold(f64::MIN, f64::max);
        let mut claim = format!(
            "more than 40 Gb/s hardly helps: with 100 Gb/s runs are shorter by {} at most; {} is \
             enough",
            percent(most),
            percent(limit)
        );
        if !breaks.is_empty() {
            claim += &format!("; it is broken by {}", breaks.join(", "));
        }
        let why = "many faults of one program follow one another so closely that they share the \
                   link, or other work took processor time";
        verdicts.push(Verdict::because(breaks.is_empty(), claim, why));
    }
    let sum = |from, to| seen.iter().filter_map(|seen| gain(seen, from, to)).sum::<f64>();
    if seen.iter().any(|seen| gain(seen, 10, 40).is_some()) {
        let (below, above) = (sum(10, 40), sum(40, 100));
        let count = seen.len() as f64;
        let claim = format!(
            "up to 40 Gb/s bandwidth helps more: runs are shorter by {} from 10 to 40 Gb/s and by \
             {} from 40 to 100, on average",
            percent(below / count),
            percent(above / count)
        );
        verdicts.push(Verdict::because(below > above, claim, WHY_NOISE));
    }
    let places: Vec<Place> = Section::Fig3.places(is_quick).into_iter().rev().collect();
    let what = "degradation falls with bandwidth";
    verdicts.push(ordered(seen, &places, noise(is_quick), what));
    verdicts
}

/// Fig. 4: latency matters, most to class B.
pub(super) fn latencies(seen: &[Seen], is_quick: bool) -> Vec<Verdict> {
    let places = Section::Fig4.places(is_quick);
    let what = "degradation grows with latency";
    let mut verdicts = vec![ordered(seen, &places, noise(is_quick), what)];
    let place = Place { rtt_us: 3, ..BASE };
    if let Some(mean) = mean(seen, Class::B, place) {
        let claim = format!(
            "class B at {}: {} on average; the paper's {} at most",
            place.name(),
            percent(mean),
            percent(published::CLASS_B)
        );
        verdicts.push(Verdict::because(mean <= published::CLASS_B, claim, WHY_BARE));
    }
    verdicts.extend(split(seen));
    verdicts
}

/// Fig. 5: degradation falls with local memory.
pub(super) fn locals(seen: &[Seen], is_quick: bool) -> Vec<Verdict> {
    let places: Vec<Place> = Section::Fig5.places(is_quick).into_iter().rev().collect();
    let what = "degradation falls with local memory";
    let mut verdicts = vec![ordered(seen, &places, noise(is_quick), what)];
    let [low, high] = [20, 30].map(|local| mean(seen, Class::B, Place { local, ..BASE }));
    if let (Some(low), Some(high)) = (low, high) {
        let [paper_low, paper_high] = published::CLASS_B_LOCAL;
        let claim = format!(
            "from 20 % to 30 % local the degradation of class B is about halved: {} to {}; the \
             paper's {} to {}; two thirds is enough",
            percent(low),
            percent(high),
            percent(paper_low),
            percent(paper_high)
        );
        verdicts.push(Verdict::because(high <= low * 2.0 / 3.0, claim, WHY_BARE));
    }
    verdicts.extend(above_the_working_set(seen, &places, is_quick));
    verdicts
}

// The verdict that a program whose working set is local has almost no degradation.
fn above_the_working_set(seen: &[Seen], places: &[Place], is_quick: bool) -> Option<Verdict> {
    let none = NONE + noise(is_quick) - NOISE;
    let mut breaks = Breaks::default();
    let mut count = 0;
    let mut above_40 = Vec::new();
    for one in seen {
        let Some(native_s) = one.native_s else { continue };
        let known = places.iter().filter_map(|&place| one.at(place));
        for point in known.filter(|point| point.fetch_s() <= native_s * CEASED) {
            count += 1;
            let (name, local) = (one.app.name, point.place.local);
            let name = || format!("{name} at {local} % ({})", percent(point.degradation));
            if point.range[0] > none {
                breaks.always.push(name());
            } else if point.degradation > none {
                breaks.scattered.push(name());
            }
        }
        let needs = one.points.iter().filter(|point| point.degradation > none);
        if needs.clone().any(|point| point.place.local > 40) {
            above_40.push(one.app.name);
        }
    }
    if count == 0 {
        return None;
    }
    let mut claim = format!(
        "above the working set, where all fetches of a program take less than {} of its run, far \
         memory has no effect: {count} points within {} of native",
        percent(CEASED),
        percent(none)
    );
    if !above_40.is_empty() {
        claim += &format!(
            " (the paper's working sets are under 40 % of their memory; those of {} are not, here)",
            above_40.join(", ")
        );
    }
    Some(breaks.verdict(claim, WHY_TOUCHES))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::apps::APPS;
    use super::*;

    /// Every application with degradations and fetches by a rule.
    pub(in super::super) fn seen_by(
        section: Section,
        rule: impl Fn(&str, Place) -> (f64, f64),
    ) -> Vec<Seen> {
        let points = |name: &str| {
            let point = |place| {
                let (degradation, fetches) = rule(name, place);
                Point { place, degradation, range: [degradation; 2], fetches }
            };
            section.places(false).into_iter().map(point).collect()
        };
        let seen = |app| Seen {
            app,
            points: points(app.name),
            undelayed: Some((1e5, 2.0)),
            native_s: Some(0.05),
        };
        APPS.iter().map(seen).collect()
    }

    fn holds(verdicts: &[Verdict]) -> Vec<bool> {
        verdicts.iter().map(|verdict| verdict.holds).collect()
    }

    // A fault takes a round trip and a page: so many faults for each microsecond of a run.
    fn two_terms(name: &str, place: Place) -> (f64, f64) {
        let faults = if ["als", "memcached"].contains(&name) { 0.008 } else { 0.016 };
        let fetches = f64::from(100 - place.local.min(100)) * 10.0;
        let delay_us = f64::from(place.rtt_us) + 32.768 / f64::from(place.gbps);
        (faults * delay_us * fetches / 750.0, fetches)
    }

    #[test]
    fn two_terms_have_every_shape_but_the_halving() {
        let seen = |section| seen_by(section, two_terms);
        assert!(holds(&networks(&seen(Section::Fig2), false)).iter().all(|holds| *holds));
        assert!(holds(&bandwidths(&seen(Section::Fig3), false)).iter().all(|holds| *holds));
        let verdicts = latencies(&seen(Section::Fig4), false);
        assert!(holds(&verdicts).iter().all(|holds| *holds), "{verdicts:?}");
        let verdicts = locals(&seen(Section::Fig5), false);
        assert_eq!(holds(&verdicts), [true, false, true], "{verdicts:?}");
        assert!(verdicts[2].claim.contains("those of"), "{verdicts:?}");
    }

    #[test]
    fn points_that_break_a_shape_are_named() {
        let odd = |name: &str, place: Place| {
            let (degradation, fetches) = two_terms(name, place);
            (if (name, place.rtt_us) == ("sort", 20) { 0.01 } else { degradation }, fetches)
        };
        let claim = &latencies(&seen_by(Section::Fig4, odd), false)[0];
        assert!(!claim.holds, "{claim:?}");
        assert!(claim.claim.contains("broken by sort at 20 µs, 40 Gb/s, 25 % local"), "{claim:?}");
    }

    #[test]
    fn points_of_runs_that_differ_do_not_break_a_shape() {
        let mut seen = seen_by(Section::Fig4, two_terms);
        let place = Place { rtt_us: 20, ..BASE };
        let point = seen[0].points.iter_mut().find(|point| point.place == place).unwrap();
        let was = point.degradation;
        (point.degradation, point.range) = (0.01, [0.0, was]);
        let verdict = &latencies(&seen, false)[0];
        let claim = "no more than their runs differ: wordcount at 20 µs, 40 Gb/s, 25 % local";
        assert!(verdict.holds && verdict.claim.ends_with(claim), "{verdict:?}");
    }

    #[test]
    fn without_fetches_there_is_no_effect_or_it_is_said() {
        let odd = |name: &str, place: Place| {
            let fetches = if place.local > 50 { 0.0 } else { 100.0 };
            (if name == "sql" && place.local == 70 { 0.2 } else { 0.0 }, fetches)
        };
        let verdicts = locals(&seen_by(Section::Fig5, odd), false);
        let last = verdicts.last().expect("fetches have ceased");
        assert!(!last.holds && last.claim.contains("sql at 70 % (20.0 %)"), "{last:?}");
        assert!(last.claim.contains("21 points"), "{last:?}");
    }
}
