//! The disks of a running target: opens those of a plan, and later changes them to another plan.
//!
//! Invariants:
//! - A plan whose disks cannot all be opened changes nothing: everything new is opened before the
//!   first change.
//! - A namespace whose URI and identifiers are unchanged is kept, with its counters.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backend::Claim;
use measure::Bytes;
use nvme::Nqn;
use nvme::log::AnaState;
use target::{Identity, Namespace, Reserved, Subsystem, Target};

use super::ServeError;
use super::file::STATES;
use super::plan::{Fixed, NamespacePlan, Plan, SubsystemPlan};

/// The subsystems that a target serves, and their plan.
pub(crate) struct Disks {
    plan: Plan,
    served: Vec<Served>,
}

/// A subsystem that is served, and the plans its namespaces were opened from.
struct Served {
    subsystem: Arc<Subsystem>,
    plans: BTreeMap<u32, NamespacePlan>,
}

/// A subsystem as it will be: opened, but not yet served.
struct Next {
    served: Served,
    is_new: bool,
    /// Its new list of namespaces; `None` if unchanged.
    namespaces: Option<Vec<Arc<Namespace>>>,
    /// Identifiers of namespaces that are new, replaced or gone, and lines that report them.
    changed: Vec<u32>,
    lines: Vec<String>,
}

/// Lines to print.
type Lines = Vec<String>;

/// Opens the subsystems of a plan; returns lines to print, too. `is_new` gives every file and
/// device another identity than it has.
///
/// # Errors
/// When a device cannot be opened.
pub(crate) fn open(plan: &Plan, is_new: bool) -> Result<(Vec<Subsystem>, Lines), ServeError> {
    let mut lines = Vec::new();
    let mut open = |one| open_subsystem(one, &plan.fixed, is_new, &mut lines);
    let subsystems = plan.subsystems.iter().map(&mut open).collect::<Result<_, _>>()?;
    Ok((subsystems, lines))
}

// Opens a subsystem with its namespaces; appends lines to print.
fn open_subsystem(
    plan: &SubsystemPlan,
    fixed: &Fixed,
    is_new: bool,
    lines: &mut Lines,
) -> Result<Subsystem, ServeError> {
    let namespaces = plan.namespaces.iter();
    let namespaces = namespaces.map(|one| open_namespace(&plan.nqn, one, fixed, is_new, lines));
    let namespaces = namespaces.collect::<Result<_, _>>()?;
    let subsystem = Subsystem::new(plan.nqn.clone(), plan.allow.clone(), namespaces);
    subsystem.set_iscsi(Some(plan.iscsi.clone()));
    Ok(subsystem)
}

// Opens a namespace with its identity and stored reservations; appends lines to print.
fn open_namespace(
    nqn: &Nqn,
    plan: &NamespacePlan,
    fixed: &Fixed,
    is_new: bool,
    lines: &mut Lines,
) -> Result<Namespace, ServeError> {
    let state = fixed.state.as_deref();
    let opened = plan.uri.open(if fixed.is_shared { Claim::Shared } else { Claim::Alone });
    let name = || format!("{} ({})", nqn.as_str(), plan.text);
    let backend = opened.map_err(|source| ServeError::Open { name: name(), source })?;
    let identity = match plan.uri.file() {
        // Both identifiers are in the plan.
        _ if plan.nguid.is_some() && plan.uuid.is_some() => Identity::drawn(),
        Some(file) => {
            let known = Identity::of_medium(file, state, is_new);
            let known = known.map_err(|source| ServeError::Identity { name: name(), source })?;
            if !known.is_kept {
                lines.push(format!(
                    "{} is another disk to hosts at each start, for nothing of its identity is \
                     kept with {}; --state DIRECTORY keeps it",
                    title(nqn, plan.id),
                    file.display()
                ));
            }
            known.identity
        }
        // Memory is another disk after every start.
        None => Identity::drawn(),
    };
    let mut namespace = Namespace::new(plan.id, backend, identity);
    namespace.nguid = plan.nguid.unwrap_or(namespace.nguid);
    namespace.uuid = plan.uuid.unwrap_or(namespace.uuid);
    if let Some(file) = state_file(&namespace, plan.uri.file(), state) {
        let kept = Reserved::kept(file);
        namespace.reserved = kept.map_err(|source| ServeError::Kept { name: name(), source })?;
    }
    Ok(namespace)
}

// The file that stores a namespace's reservations: in the state directory, or else beside the file
// that is served. `None` if they are not stored: for devices without a state directory, and memory.
fn state_file(
    namespace: &Namespace,
    file: Option<&Path>,
    directory: Option<&Path>,
) -> Option<PathBuf> {
    let file = file?;
    if let Some(directory) = directory {
        let uuid = u128::from_be_bytes(namespace.uuid);
        return Some(directory.join(format!("{uuid:032x}.reservations")));
    }
    let mut beside = file.is_file().then(|| file.as_os_str().to_owned())?;
    beside.push(".reservations");
    Some(beside.into())
}

// The plans of a subsystem's namespaces, by identifier.
fn plans(plan: &SubsystemPlan) -> BTreeMap<u32, NamespacePlan> {
    plan.namespaces.iter().map(|one| (one.id, one.clone())).collect()
}

/// The name of a namespace in messages.
pub(crate) fn title(nqn: &Nqn, id: u32) -> String {
    match id {
        1 => nqn.as_str().to_owned(),
        _ => format!("{} namespace {id}", nqn.as_str()),
    }
}

impl Disks {
    /// The disks of a target that was started with the subsystems [`open`] returned for `plan`.
    pub(crate) fn new(plan: Plan, target: &Target) -> Self {
        let subsystems = target.subsystems();
        let served = plan.subsystems.iter().zip(subsystems.iter()).map(|(plan, subsystem)| {
            Served { subsystem: Arc::clone(subsystem), plans: plans(plan) }
        });
        let served = served.collect();
        Self { plan, served }
    }

    /// The plan that is served.
    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Changes the target to another plan, and reads the sizes of its disks again. Returns a line
    /// for each change.
    ///
    /// # Errors
    /// When a device cannot be opened. Then nothing has changed.
    pub(crate) fn follow(
        &mut self,
        plan: Plan,
        target: &Target,
    ) -> Result<Vec<String>, ServeError> {
        let next: Vec<Next> =
            plan.subsystems.iter().map(|one| self.next(one)).collect::<Result<_, _>>()?;
        let mut lines = Vec::new();
        let fixed = self.plan.fixed.differences(&plan.fixed);
        if !fixed.is_empty() {
            let names = fixed.join(", ");
            lines.push(format!("{names} cannot change while it runs, and stays as it was"));
        }
        lines.append(&mut self.reach(&plan, target));
        let mut can_find_other = false;
        let is_left = |served: &Served| {
            next.iter().all(|next| !Arc::ptr_eq(&next.served.subsystem, &served.subsystem))
        };
        for Served { subsystem, .. } in self.served.iter().filter(|served| is_left(served)) {
            can_find_other = true;
            lines.push(format!("{} is gone", subsystem.nqn.as_str()));
        }
        let mut served = Vec::new();
        for (mut one, plan) in next.into_iter().zip(&plan.subsystems) {
            let before = self.plan.subsystems.iter().find(|before| before.nqn == plan.nqn);
            let is_other =
                |before: &SubsystemPlan| before.allow != plan.allow || before.iscsi != plan.iscsi;
            if !one.is_new && before.is_some_and(is_other) {
                can_find_other = true;
                one.served.subsystem.admit(plan.allow.clone());
                one.served.subsystem.set_iscsi(Some(plan.iscsi.clone()));
                lines.push(format!("{} is for other hosts", plan.nqn.as_str()));
            }
            can_find_other |= one.is_new;
            lines.append(&mut one.lines);
            lines.append(&mut one.change(target));
            served.push(one.served);
        }
        if can_find_other {
            target.serve(served.iter().map(|one| Arc::clone(&one.subsystem)).collect());
        }
        self.served = served;
        // The fixed part stays, whatever the new plan says.
        self.plan = Plan { fixed: self.plan.fixed.clone(), ..plan };
        Ok(lines)
    }

    // Sets the access states (ANA, ALUA) of addresses that both plans have; returns a line for each
    // change.
    fn reach(&self, plan: &Plan, target: &Target) -> Vec<String> {
        let (own, next) = (&self.plan.fixed, &plan.fixed);
        let nvme = reached([&own.nvme, &next.nvme], &plan.ana, |at, state| target.reach(at, state));
        let iscsi = reached([&own.iscsi, &next.iscsi], &plan.iscsi_ana, |at, state| {
            target.reach_iscsi(at, state)
        });
        [nvme, iscsi].concat()
    }

    // Opens the namespaces of a subsystem that are new or have changed.
    fn next(&self, plan: &SubsystemPlan) -> Result<Next, ServeError> {
        let nqn = &plan.nqn;
        let plans = plans(plan);
        let fixed = &self.plan.fixed;
        let Some(before) = self.served.iter().find(|one| one.subsystem.nqn == *nqn) else {
            let count = plan.namespaces.len();
            let mut lines = vec![format!("{} is new, with {count} namespaces", nqn.as_str())];
            let subsystem = Arc::new(open_subsystem(plan, fixed, false, &mut lines)?);
            let served = Served { subsystem, plans };
            return Ok(Next { served, is_new: true, namespaces: None, changed: Vec::new(), lines });
        };
        let (mut changed, mut lines) = (Vec::new(), Vec::new());
        let mut namespaces = Vec::new();
        let had = before.subsystem.namespaces();
        for one in &plan.namespaces {
            let same = had.iter().find(|had| had.id == one.id);
            match same.filter(|_| before.plans.get(&one.id).is_some_and(|old| old.is_like(one))) {
                Some(same) => namespaces.push(Arc::clone(same)),
                None => {
                    changed.push(one.id);
                    lines.push(format!("{} is {} now", title(nqn, one.id), one.text));
                    let opened = open_namespace(nqn, one, fixed, false, &mut lines)?;
                    namespaces.push(Arc::new(opened));
                }
            }
        }
        for id in before.plans.keys().filter(|id| !plans.contains_key(id)) {
            changed.push(*id);
            lines.push(format!("{} is gone", title(nqn, *id)));
        }
        let served = Served { subsystem: Arc::clone(&before.subsystem), plans };
        let namespaces = (!changed.is_empty()).then_some(namespaces);
        Ok(Next { served, is_new: false, namespaces, changed, lines })
    }
}

// Sets the state of each address of `own` that is also in `next`, whose order `states` has; returns
// a line for each change.
fn reached(
    [own, next]: [&[SocketAddr]; 2],
    states: &[AnaState],
    reach: impl Fn(usize, AnaState) -> bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, address) in own.iter().enumerate() {
        let place = next.iter().position(|other| other == address);
        let Some(state) = place.and_then(|place| states.get(place)) else { continue };
        if reach(index, *state) {
            let name = STATES.iter().find(|(_, known)| known == state).map(|(name, _)| name);
            lines.push(format!("{address} is {} now", name.unwrap_or(&"")));
        }
    }
    lines
}

impl Next {
    // Reads sizes again, replaces namespaces and notifies hosts; returns a line for each new size.
    fn change(&mut self, target: &Target) -> Vec<String> {
        let subsystem = &self.served.subsystem;
        let mut lines = Vec::new();
        for namespace in &*subsystem.namespaces() {
            let before = namespace.backend.geometry();
            namespace.backend.refresh();
            let after = namespace.backend.geometry();
            if before != after && !self.changed.contains(&namespace.id) {
                self.changed.push(namespace.id);
                let title = title(&subsystem.nqn, namespace.id);
                lines.push(format!("{title} has {} now", Bytes::new(after.bytes())));
            }
        }
        if let Some(namespaces) = self.namespaces.take() {
            subsystem.replace(namespaces);
        }
        if !self.changed.is_empty() {
            target.changed(subsystem, &self.changed);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_place_and_has_another_state() {
        let [a, b, c] = ["10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3"]
            .map(|address| address.parse::<SocketAddr>().expect("an address"));
        let states = [AnaState::Inaccessible, AnaState::Optimized];
        let made = std::cell::RefCell::new(Vec::new());
        let lines = reached([&[a, b, c], &[c, a]], &states, |at, state| {
            made.borrow_mut().push((at, state));
            state == AnaState::Inaccessible
        });
        assert_eq!(*made.borrow(), [(0, AnaState::Optimized), (2, AnaState::Inaccessible)]);
        assert_eq!(lines, ["10.0.0.1:3 is inaccessible now"]);
    }
}
