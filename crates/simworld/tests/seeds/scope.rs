//! What of a seed is run: all of it, or less, until nothing more can be left out.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, PoisonError};

use crate::faults::Fault;

/// How much of a seed is run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// Commands at most, for each host; `None` for as many as the scenario has.
    pub(crate) commands: Option<u64>,
    /// The faults that happen, by their numbers in the seed; `None` for all.
    pub(crate) faults: Option<BTreeSet<u32>>,
    /// The device says that it has flushed, and has not.
    pub(crate) lies: bool,
    /// Those that have happened.
    pub(crate) happened: RefCell<Vec<(u32, Fault)>>,
}

impl Scope {
    /// As `AFAR_COMMANDS` and `AFAR_FAULTS` say.
    pub(crate) fn named() -> Self {
        let number = |text: &str| text.parse().expect("AFAR_COMMANDS and AFAR_FAULTS are numbers");
        let commands = std::env::var("AFAR_COMMANDS").ok().map(|text| number(&text));
        let faults = std::env::var("AFAR_FAULTS").ok().map(|text| {
            let each = text.split(',').filter(|one| !one.is_empty());
            each.map(|one| one.parse().expect("AFAR_FAULTS are numbers")).collect()
        });
        Self { commands, faults, ..Self::default() }
    }

    /// Whether it is all of a seed.
    pub(crate) const fn is_whole(&self) -> bool {
        self.commands.is_none() && self.faults.is_none()
    }

    pub(crate) fn commands_of(&self, all: u64) -> u64 {
        self.commands.map_or(all, |most| most.min(all))
    }

    pub(crate) fn has(&self, number: u32) -> bool {
        self.faults.as_ref().is_none_or(|faults| faults.contains(&number))
    }

    pub(crate) fn note(&self, number: u32, fault: Fault) {
        self.happened.borrow_mut().push((number, fault));
    }
}

/// What is left of a seed that fails.
pub(crate) struct Left {
    pub(crate) scope: Scope,
    pub(crate) faults: Vec<(u32, Fault)>,
    pub(crate) runs: u32,
}

impl Left {
    /// How it is run again.
    pub(crate) fn words(&self, seed: u64) -> String {
        let commands =
            self.scope.commands.map_or(String::new(), |most| format!(" AFAR_COMMANDS={most}"));
        let numbers: Vec<String> =
            self.faults.iter().map(|(number, _)| number.to_string()).collect();
        let names: Vec<String> =
            self.faults.iter().map(|(_, fault)| format!("{fault:?}")).collect();
        format!(
            "AFAR_SEED={seed}{commands} AFAR_FAULTS={} runs what is left of it after {} runs: {}",
            numbers.join(","),
            self.runs,
            if names.is_empty() { "no fault".to_owned() } else { names.join(", ") }
        )
    }
}

/// Leaves out commands from the end, and faults, as long as the rest fails; `None` if all of it
/// does not. Panics of the runs are not printed.
pub(crate) fn shrink(whole: &Scope, commands: u64, run: impl Fn(&Scope)) -> Option<Left> {
    // The hook is the process'.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let hook = take_hook();
    set_hook(Box::new(|_| ()));
    let left = Shrink { run, runs: 0 }.all(whole, commands);
    set_hook(hook);
    left
}

struct Shrink<R> {
    run: R,
    runs: u32,
}

impl<R: Fn(&Scope)> Shrink<R> {
    fn all(mut self, whole: &Scope, commands: u64) -> Option<Left> {
        let mut faults = self.fails(whole)?;
        let mut scope = Scope { commands: Some(whole.commands_of(commands)), ..whole.clone() };
        loop {
            let before = (scope.commands, faults.len());
            self.fewer_commands(&mut scope, &mut faults);
            self.fewer_faults(&mut scope, &mut faults);
            if (scope.commands, faults.len()) == before {
                return Some(Left { scope, faults, runs: self.runs });
            }
        }
    }

    // The faults that have happened, if it fails.
    fn fails(&mut self, scope: &Scope) -> Option<Vec<(u32, Fault)>> {
        self.runs += 1;
        scope.happened.borrow_mut().clear();
        let ran = catch_unwind(AssertUnwindSafe(|| (self.run)(scope)));
        ran.is_err().then(|| scope.happened.borrow().clone())
    }

    fn fewer_commands(&mut self, scope: &mut Scope, faults: &mut Vec<(u32, Fault)>) {
        let mut step = scope.commands.unwrap_or(0) / 2;
        while step > 0 {
            let most = scope.commands.unwrap_or(0).saturating_sub(step);
            let fewer = Scope { commands: Some(most), ..scope.clone() };
            match (most > 0).then(|| self.fails(&fewer)).flatten() {
                Some(happened) => (*scope, *faults) = (fewer, happened),
                None => step /= 2,
            }
        }
    }

    fn fewer_faults(&mut self, scope: &mut Scope, faults: &mut Vec<(u32, Fault)>) {
        let mut size = faults.len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < faults.len() {
                let numbers = faults.iter().enumerate();
                let kept = numbers.filter(|(at, _)| !(from..from + size).contains(at));
                let kept = Some(kept.map(|(_, (number, _))| *number).collect());
                let fewer = Scope { faults: kept, ..scope.clone() };
                match self.fails(&fewer) {
                    Some(happened) => (*scope, *faults) = (fewer, happened),
                    None => from += size,
                }
            }
            size /= 2;
        }
    }
}
