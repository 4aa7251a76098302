//! A backend around any other that injects failures and delays by rules.

use std::any::Any;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use measure::{Duration, Fraction};
use sys::disk::Claim;
use workload::Draw;

use crate::device::{Backend, Failure, Geometry, Operation, Request, Start};
use crate::named::{Around, BackendUri, Device, Kind, Parse, same};
use crate::open_error::OpenError;

/// Which requests fail, are skipped or delayed.
///
/// ```text
/// RULES   RULE[,RULE]...[,seed=NUMBER]
/// RULE    OPERATION=EFFECT[@WHEN]
/// ```
///
/// - Operations are `read`, `write`, `flush`, `zero`, `discard` and `any`.
/// - Effects are failures, `eio` (of the medium), `enospc` (no space) or `erofs` (read-only),
///   `skip` (success without execution: a device that lies), and delays, a time such as `5ms`.
/// - `WHEN` is a random share of the requests, `0.01` or `1%`; every n-th, `every=1000`; or only
///   the first, `once`. Without it, a rule applies to all of them.
///
/// `read=eio@0.01,write=enospc@every=1000,any=5ms@0.1%,flush=eio@once` is an example. Rules have
/// no colon.
///
/// Every rule counts the requests of its operation and draws its random numbers by itself. Of the
/// rules that apply to a request, the first failure or skip decides, and delays are summed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRules {
    rules: Vec<Rule>,
    seed: u64,
}

/// Why a text is no list of rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rule {text:?}: {reason}")]
pub struct FaultRulesError {
    text: String,
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rule {
    about: About,
    effect: Effect,
    when: When,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Any,
    Read,
    Write,
    Flush,
    Zero,
    Discard,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    // The request ends with this result and is not executed.
    End(Result<(), Failure>),
    DelayNs(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    Once,
    Every(u64),
    Share(Fraction),
}

/// A backend with the failures and delays of [`FaultRules`].
///
/// A request that fails or is skipped is not passed on: nothing is written, and the device inside
/// sees neither its start nor its end. The seed and the order of the requests determine which
/// requests are affected.
pub struct FaultBackend {
    inner: Arc<dyn Backend>,
    rules: Vec<Rule>,
    state: Mutex<State>,
}

struct State {
    /// For each rule, the number of requests of its operation so far, and its random numbers.
    asked: Vec<(u64, Draw)>,
    /// Requests that were not passed on and have not ended, with their results.
    kept: Vec<(Request, Result<(), Failure>)>,
}

impl FromStr for FaultRules {
    type Err = FaultRulesError;

    fn from_str(text: &str) -> Result<Self, FaultRulesError> {
        let (mut rules, mut seed) = (Vec::new(), 0);
        for part in text.split(',') {
            let fail = |reason| FaultRulesError { text: part.to_owned(), reason };
            match part.strip_prefix("seed=") {
                Some(number) => {
                    let number = number.parse();
                    seed = number.map_err(|_| fail("a seed is a whole number".to_owned()))?;
                }
                None => rules.push(rule(part).map_err(fail)?),
            }
        }
        match rules.is_empty() {
            true => Err(FaultRulesError { text: text.to_owned(), reason: NO_RULE.to_owned() }),
            false => Ok(Self { rules, seed }),
        }
    }
}

const NO_RULE: &str = "nothing goes wrong by it; write e.g. read=eio@0.01";

// Parses `OPERATION=EFFECT[@WHEN]`.
fn rule(text: &str) -> Result<Rule, String> {
    let (about, rest) = text.split_once('=').ok_or("no effect; write e.g. read=eio@0.01")?;
    let about = match about {
        "any" => About::Any,
        "read" => About::Read,
        "write" => About::Write,
        "flush" => About::Flush,
        "zero" => About::Zero,
        "discard" => About::Discard,
        _ => {
            return Err(format!(
                "no operation is called {about:?}; take read, write, flush, zero, discard or any"
            ));
        }
    };
    let (effect, when) =
        rest.split_once('@').map_or((rest, None), |(effect, when)| (effect, Some(when)));
    Ok(Rule { about, effect: self::effect(effect)?, when: self::when(when)? })
}

// Parses an effect: a failure, `skip` or a delay.
fn effect(text: &str) -> Result<Effect, String> {
    Ok(match text {
        "eio" => Effect::End(Err(Failure::Medium)),
        "enospc" => Effect::End(Err(Failure::NoSpace)),
        "erofs" => Effect::End(Err(Failure::WriteProtected)),
        "skip" => Effect::End(Ok(())),
        text if text.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
            let delay: Duration = text.parse().map_err(|error| format!("{error}"))?;
            Effect::DelayNs(delay.as_ns())
        }
        _ => {
            return Err(format!(
                "no effect is called {text:?}; take eio, enospc, erofs, skip or a delay such as 5ms"
            ));
        }
    })
}

// Parses the part after `@`; `None` means always.
fn when(text: Option<&str>) -> Result<When, String> {
    Ok(match text {
        None => When::Always,
        Some("once") => When::Once,
        Some(text) => match text.strip_prefix("every=") {
            Some(count) => {
                let count = count.parse().ok().filter(|count| *count > 0);
                When::Every(count.ok_or("a count is a whole number from 1 on, e.g. every=1000")?)
            }
            None => {
                let share = text.parse::<Fraction>();
                When::Share(share.map_err(|error| format!("{error}; or once, or every=1000"))?)
            }
        },
    })
}

impl Rule {
    // Returns whether the rule covers `operation`.
    const fn is_about(self, operation: Operation) -> bool {
        matches!(
            (self.about, operation),
            (About::Any, _)
                | (About::Read, Operation::Read)
                | (About::Write, Operation::Write { .. })
                | (About::Flush, Operation::Flush)
                | (About::Zero, Operation::Zero { .. })
                | (About::Discard, Operation::Discard)
        )
    }

    // Counts one request of the rule's operation. Returns whether the rule applies to it.
    fn applies(self, (count, draw): &mut (u64, Draw)) -> bool {
        *count += 1;
        match self.when {
            When::Always => true,
            When::Once => *count == 1,
            When::Every(interval) => count.is_multiple_of(interval),
            When::Share(share) => draw.below(1_000_000) < u64::from(share.ppm()),
        }
    }
}

/// `fault:RULES:DEVICE`.
pub(crate) static KIND: Kind = Kind {
    scheme: "fault",
    example: "fault:read=eio@0.01:",
    remedy: "write fault:RULES:DEVICE, \
        e.g. fault:read=eio@0.01,write=enospc@every=1000:memory:1GiB",
    parse: Parse::Around(named),
};

/// The parsed device, not yet open.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    rules: FaultRules,
    inner: BackendUri,
}

// Parses the rules of `fault:RULES:`.
fn named(place: &str) -> Result<Around, String> {
    let rules = place.parse().map_err(|error: FaultRulesError| error.to_string())?;
    Ok(Box::new(move |inner| Ok(BackendUri::new(Named { rules, inner }))))
}

impl Device for Named {
    fn open(&self, claim: Claim) -> Result<Arc<dyn Backend>, OpenError> {
        Ok(Arc::new(FaultBackend::new(self.inner.open(claim)?, &self.rules)))
    }

    fn inside(&self) -> Option<&BackendUri> {
        Some(&self.inner)
    }

    fn equals(&self, other: &dyn Any) -> bool {
        same(self, other)
    }
}

impl FaultBackend {
    /// Wraps `inner` with `rules`.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, rules: &FaultRules) -> Self {
        let FaultRules { rules, seed } = rules.clone();
        // Rules of one seed draw different numbers.
        let draw = |index: usize| Draw::new(seed ^ (index as u64) << 32);
        let asked = (0..rules.len()).map(|index| (0, draw(index))).collect();
        let state = Mutex::new(State { asked, kept: Vec::new() });
        Self { inner, rules, state }
    }

    // Applies the rules to a request. Returns its result if it is not passed on, and its delay in
    // nanoseconds.
    fn judge(&self, request: &Request) -> (Option<Result<(), Failure>>, u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut end, mut delay_ns) = (None, 0_u64);
        for (rule, asked) in self.rules.iter().zip(&mut state.asked) {
            if rule.is_about(request.operation) && rule.applies(asked) {
                match rule.effect {
                    Effect::End(result) => end = end.or(Some(result)),
                    Effect::DelayNs(ns) => delay_ns = delay_ns.saturating_add(ns),
                }
            }
        }
        if let Some(result) = end {
            state.kept.push((*request, result));
        }
        (end, delay_ns)
    }

    // Removes a request with this result from those that were not passed on. Returns whether it was
    // one of them; equal requests are interchangeable.
    fn was_kept(&self, request: &Request, result: Result<(), Failure>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let place = state.kept.iter().position(|kept| *kept == (*request, result));
        place.map(|place| state.kept.swap_remove(place)).is_some()
    }
}

impl Backend for FaultBackend {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn is_immediate(&self) -> bool {
        let delays = self.rules.iter().any(|rule| matches!(rule.effect, Effect::DelayNs(_)));
        self.inner.is_immediate() && !delays
    }

    fn start(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Start {
        let (end, delay_ns) = self.judge(request);
        let start = match end {
            Some(result) => Start::done(result),
            None => self.inner.start(request, data, now_ns),
        };
        let delayed_ns = if delay_ns == 0 { 0 } else { now_ns.saturating_add(delay_ns) };
        Start { not_before_ns: start.not_before_ns.max(delayed_ns), ..start }
    }

    fn end(
        &self,
        request: &Request,
        result: Result<(), Failure>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        if self.was_kept(request, result) {
            result
        } else {
            self.inner.end(request, result, now_ns)
        }
    }

    fn refresh(&self) {
        self.inner.refresh();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::{NullBackend, Work};

    const WRITE: Operation = Operation::Write { forced: false };

    /// Counts what gets through to it.
    struct Counter {
        inner: NullBackend,
        started: AtomicU64,
        ended: AtomicU64,
    }

    impl Backend for Counter {
        fn geometry(&self) -> Geometry {
            self.inner.geometry()
        }

        fn is_immediate(&self) -> bool {
            true
        }

        fn start(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Start {
            self.started.fetch_add(1, Ordering::Relaxed);
            self.inner.start(request, data, now_ns)
        }

        fn end(
            &self,
            _request: &Request,
            result: Result<(), Failure>,
            _now_ns: u64,
        ) -> Result<(), Failure> {
            self.ended.fetch_add(1, Ordering::Relaxed);
            result
        }
    }

    fn faulty(rules: &str) -> (FaultBackend, Arc<Counter>) {
        let [started, ended] = [0, 0].map(AtomicU64::new);
        let counter = Arc::new(Counter { inner: NullBackend::new(1 << 20, 12), started, ended });
        let inner: Arc<dyn Backend> = Arc::clone(&counter) as _;
        (FaultBackend::new(inner, &rules.parse().expect(rules)), counter)
    }

    fn ask(backend: &FaultBackend, operation: Operation) -> (Result<(), Failure>, u64) {
        let request = Request { operation, offset: 0, length: 4096 };
        let start = backend.start(&request, &mut [0; 4096], 100);
        let Work::Done(result) = start.work else { panic!("nothing is left to do") };
        (backend.end(&request, result, start.not_before_ns), start.not_before_ns)
    }

    fn failures(rules: &str, operation: Operation, count: u64) -> Vec<u64> {
        let (backend, _) = faulty(rules);
        (1..=count).filter(|_| ask(&backend, operation).0.is_err()).collect()
    }

    #[test]
    fn failures_are_those_of_the_rules_and_go_no_further() {
        let rules = "read=eio@every=3,write=enospc@once,flush=erofs";
        let (backend, counter) = faulty(rules);
        let results = |operation, count: u64| -> Vec<_> {
            (0..count).map(|_| ask(&backend, operation).0).collect()
        };
        let [eio, enospc] = [Failure::Medium, Failure::NoSpace].map(Err);
        assert_eq!(results(Operation::Read, 6), [Ok(()), Ok(()), eio, Ok(()), Ok(()), eio]);
        assert_eq!(results(WRITE, 3), [enospc, Ok(()), Ok(())]);
        assert_eq!(results(Operation::Flush, 2), [Err(Failure::WriteProtected); 2]);
        assert_eq!(results(Operation::Discard, 1), [Ok(())]);
        let through = [&counter.started, &counter.ended].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(through, [7, 7]);
        assert!(backend.is_immediate());
    }

    // A drive that says that it has flushed.
    #[test]
    fn what_is_skipped_ends_well_and_goes_no_further() {
        let (backend, counter) = faulty("flush=skip,write=skip@every=2");
        let results = [Operation::Flush, WRITE, WRITE].map(|operation| ask(&backend, operation).0);
        assert_eq!(results, [Ok(()); 3]);
        let through = [&counter.started, &counter.ended].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(through, [1, 1], "the first write");
    }

    #[test]
    fn chance_follows_from_the_seed_and_has_its_share() {
        let some = failures("read=eio@0.01", Operation::Read, 100_000);
        // Five standard deviations.
        assert!((some.len() as i64 - 1_000).abs() < 160, "{}", some.len());
        assert_eq!(some, failures("read=eio@1%,seed=0", Operation::Read, 100_000));
        assert_ne!(some, failures("read=eio@0.01,seed=1", Operation::Read, 100_000));
        assert_eq!(failures("read=eio@1", Operation::Read, 9).len(), 9);
    }

    #[test]
    fn a_rule_draws_and_counts_by_itself() {
        let alone = failures("read=eio@0.1", Operation::Read, 1_000);
        let (backend, _) = faulty("read=eio@0.1,write=eio@0.1,any=1us@0.5");
        let among: Vec<_> = (1..=1_000_u64)
            .filter(|_| {
                let _written = ask(&backend, WRITE);
                ask(&backend, Operation::Read).0.is_err()
            })
            .collect();
        assert_eq!(alone, among);
    }

    #[test]
    fn delays_add_up_and_hold_for_failures_too() {
        let (backend, counter) =
            faulty("any=5ms@every=2,read=1us,read=eio@every=4,any=erofs@every=4");
        let mut outcomes = (0..4).map(|_| ask(&backend, Operation::Read));
        assert_eq!(outcomes.next(), Some((Ok(()), 1_100)));
        assert_eq!(outcomes.next(), Some((Ok(()), 5_001_100)));
        assert_eq!(outcomes.next(), Some((Ok(()), 1_100)));
        assert_eq!(outcomes.next(), Some((Err(Failure::Medium), 5_001_100)), "the first holds");
        assert_eq!(counter.ended.load(Ordering::Relaxed), 3);
        assert!(!backend.is_immediate());
        assert_eq!(ask(&faulty("write=5ms").0, Operation::Read), (Ok(()), 0));
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        let cases = [
            ("", "rule \"\": no effect; write e.g. read=eio@0.01"),
            ("seed=3", "rule \"seed=3\": nothing goes wrong by it"),
            ("read", "rule \"read\": no effect"),
            ("reed=eio", "rule \"reed=eio\": no operation is called \"reed\"; take read,"),
            ("read=eio,write=bad", "rule \"write=bad\": no effect is called \"bad\"; take eio,"),
            ("read=5", "a time needs a unit"),
            ("read=eio@2", "a fraction can be at most 100%; write e.g. 25%; or once, or every"),
            ("read=eio@every=0", "a count is a whole number from 1 on, e.g. every=1000"),
            ("read=eio,seed=x", "rule \"seed=x\": a seed is a whole number"),
        ];
        for (text, reason) in cases {
            let error = text.parse::<FaultRules>().expect_err(text).to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
