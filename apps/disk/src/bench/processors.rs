//! Processor time of requests: of this process, and of a target on this machine.
//!
//! Both are sampled twice, with the number of requests that have ended: when counting begins, and
//! when the load has ended. So a late first sample does not distort the time per request.

use std::net::ToSocketAddrs;

use serde_json::{Value, json};
use sys::clock::monotonic_ns;
use sys::listener::{Listener, listening_at};
use sys::usage::{self, Usage};

use super::plan::Source;
use client::Watch;
use console::layout::count;

/// Samples the processor time of loads that run together.
pub(crate) struct Processors {
    /// The text that begins the live line.
    what: String,
    target: Target,
    looks: Vec<Look>,
}

/// The processes that serve the disks.
enum Target {
    /// This process.
    Own,
    /// Other processes of this machine.
    Processes(Vec<u32>),
    /// Perhaps on this machine, but not known; why.
    Unknown(String),
    /// On another machine; the text that says so.
    Elsewhere(String),
}

impl Target {
    // The target of two disks together.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Own, one) | (one, Self::Own) => one,
            (Self::Unknown(why), _) | (_, Self::Unknown(why)) => Self::Unknown(why),
            (Self::Elsewhere(why), _) | (_, Self::Elsewhere(why)) => Self::Elsewhere(why),
            (Self::Processes(mut one), Self::Processes(other)) => {
                one.extend(other);
                one.sort_unstable();
                one.dedup();
                Self::Processes(one)
            }
        }
    }
}

/// Processor times at one moment.
struct Look {
    at_ns: u64,
    ended: u64,
    own: Usage,
    /// Of a target whose processes are known.
    target: Option<Usage>,
}

/// What one side used between both samples, for so many requests.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cost {
    usage: Usage,
    requests: u64,
}

impl Processors {
    /// Finds the processes that serve these disks.
    pub(crate) fn of<'a>(sources: impl Iterator<Item = &'a Source>, what: String) -> Self {
        let mut target = Target::Own;
        for source in sources {
            let address = match source {
                Source::Local(_) => continue,
                Source::Remote(uri, _) => &uri.address,
                Source::Iscsi(uri, _) => &uri.address,
            };
            target = target.with(find(address));
        }
        Self { what, target, looks: Vec::new() }
    }

    /// Other processes of this machine that serve the disks; `None` if there may be unknown ones.
    pub(crate) fn answering(&self) -> Option<&[u32]> {
        match &self.target {
            Target::Own | Target::Elsewhere(_) => Some(&[]),
            Target::Processes(pids) => Some(pids),
            Target::Unknown(_) => None,
        }
    }

    // Samples processor times.
    fn look(&self, ended: u64) -> Look {
        let target = match &self.target {
            Target::Processes(pids) => pids.iter().try_fold(Usage::default(), |sum, pid| {
                usage::of_process(*pid).ok().map(|usage| sum.plus(&usage))
            }),
            Target::Own | Target::Unknown(_) | Target::Elsewhere(_) => None,
        };
        Look { at_ns: monotonic_ns(), ended, own: usage::of_this_process(), target }
    }

    // The cost here and at the target; `None` without two samples and a request between them.
    fn costs(&self) -> Option<(Cost, Option<Cost>)> {
        let [first, last] = &self.looks[..] else { return None };
        let requests = last.ended - first.ended;
        let cost = |usage| Cost { usage, requests };
        let target = last.target.as_ref().zip(first.target.as_ref());
        let target = target.map(|(last, first)| cost(last.since(first)));
        (requests > 0).then(|| (cost(last.own.since(&first.own)), target))
    }

    /// Processor time per request in nanoseconds, here and at the target; `None` if unknown.
    pub(crate) fn each_ns(&self) -> [Option<f64>; 2] {
        let each = |cost: Cost| cost.usage.processor_ns() as f64 / cost.requests as f64;
        match self.costs() {
            Some((own, target)) => [Some(each(own)), target.map(each)],
            None => [None, None],
        }
    }

    /// Lines of the summary: a name and a text for each side.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let Some((own, target)) = self.costs() else { return Vec::new() };
        let mut lines = vec![("processors, here", own.text())];
        match (&self.target, target) {
            (Target::Own, _) => {}
            (Target::Processes(pids), Some(target)) => {
                lines.push(("processors, target", format!("{}; {}", target.text(), names(pids))));
            }
            (Target::Processes(_), None) => {
                lines.push(("processors, target", format!("unknown: {GONE}")));
            }
            (Target::Unknown(why) | Target::Elsewhere(why), _) => {
                lines.push(("processors, target", format!("unknown: {why}")))
            }
        }
        lines
    }

    /// The processor times as JSON, for the record; null if there are none.
    pub(crate) fn record(&self) -> Value {
        let Some((own, target)) = self.costs() else { return Value::Null };
        let elapsed_ns = self.looks[1].at_ns - self.looks[0].at_ns;
        let target = match (&self.target, target) {
            (Target::Own, _) => Value::Null,
            (Target::Processes(pids), Some(target)) => {
                let mut value = target.record();
                let process = |pid: &u32| json!({"pid": pid, "name": usage::name_of(*pid)});
                value["processes"] = pids.iter().map(process).collect();
                value
            }
            (Target::Processes(_), None) => json!({"unknown": GONE}),
            (Target::Unknown(why) | Target::Elsewhere(why), _) => json!({"unknown": why}),
        };
        json!({
            "elapsed_ns": elapsed_ns,
            "request_count": own.requests,
            "own": own.record(),
            "target": target,
        })
    }
}

impl Watch for Processors {
    fn line(&mut self, ended: u64, per_second: u64) -> String {
        format!("afar  {}{ended} requests  {per_second} IOPS", self.what)
    }

    fn look(&mut self, ended: u64) {
        self.looks.push(Self::look(self, ended));
    }
}

const GONE: &str = "its process has ended meanwhile";

// Finds the processes of this machine that listen at an address.
fn find(address: &str) -> Target {
    let Ok(resolved) = address.to_socket_addrs() else {
        return Target::Unknown(format!("{address} has no address"));
    };
    let mut why = None;
    for one in resolved {
        match listening_at(one) {
            Listener::Processes(pids) => return Target::Processes(pids),
            Listener::Hidden => {
                let text = "the kernel listens there, or another user's process: try as root";
                why = Some(text.to_owned());
            }
            Listener::Nobody => {
                why = Some(format!("no process of this network namespace listens at {one}"));
            }
            Listener::Elsewhere => {}
        }
    }
    let elsewhere = || Target::Elsewhere(format!("{address} is not an address of this machine"));
    why.map_or_else(elsewhere, Target::Unknown)
}

// Names and numbers of processes, for people.
fn names(pids: &[u32]) -> String {
    let name = |pid: &u32| format!("{}, process {pid}", usage::name_of(*pid));
    pids.iter().map(name).collect::<Vec<_>>().join("; ")
}

impl Cost {
    // `ns` per request, in microseconds.
    fn each_us(&self, ns: u64) -> f64 {
        ns as f64 / 1e3 / self.requests as f64
    }

    fn per_processor_second(&self) -> f64 {
        self.requests as f64 * 1e9 / self.usage.processor_ns().max(1) as f64
    }

    // The cost per request, for people.
    fn text(&self) -> String {
        let Self { usage, .. } = self;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive rate"
        )]
        let rate = self.per_processor_second().round() as u64;
        format!(
            "{:.2} µs a request ({:.2} in the kernel), {} requests a processor-second, \
             {:.2} switches a request",
            self.each_us(usage.processor_ns()),
            self.each_us(usage.system_ns),
            count(rate),
            usage.switches() as f64 / self.requests as f64,
        )
    }

    // The cost as JSON.
    fn record(&self) -> Value {
        let Self { usage, requests } = self;
        json!({
            "user_ns": usage.user_ns,
            "system_ns": usage.system_ns,
            "voluntary_switch_count": usage.voluntary_switches,
            "involuntary_switch_count": usage.involuntary_switches,
            "minor_fault_count": usage.minor_faults,
            "major_fault_count": usage.major_faults,
            "processor_ns_per_request": usage.processor_ns() as f64 / *requests as f64,
            "requests_per_processor_second": self.per_processor_second(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn look(ended: u64, own_ns: u64, target_ns: Option<u64>) -> Look {
        let usage = |ns| Usage { user_ns: ns / 4, system_ns: ns - ns / 4, ..Usage::default() };
        Look { at_ns: own_ns, ended, own: usage(own_ns), target: target_ns.map(usage) }
    }

    #[test]
    fn costs_are_of_what_ended_between_the_looks() {
        let looks = vec![look(100, 4_000, Some(0)), look(1_100, 2_004_000, Some(8_000_000))];
        let target = Target::Processes(Vec::new());
        let mut both = Processors { what: String::new(), target, looks };
        let record = both.record();
        assert_eq!(record["own"]["processor_ns_per_request"], 2_000.0);
        assert_eq!(record["own"]["requests_per_processor_second"], 500_000.0);
        assert_eq!(record["target"]["processor_ns_per_request"], 8_000.0);
        let lines = both.lines();
        assert!(lines[0].1.starts_with("2.00 µs a request (1.50 in the kernel), 500,000 req"));
        both.looks[1].target = None;
        assert_eq!(both.record()["target"]["unknown"], GONE);
        both.looks.pop();
        assert_eq!((both.record(), both.lines().len()), (Value::Null, 0), "too short");
    }

    #[test]
    fn a_target_is_found_by_its_address_and_not_elsewhere() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has one").to_string();
        let Target::Processes(pids) = find(&address) else { panic!("it is here") };
        assert_eq!(pids, [std::process::id()]);
        let Target::Elsewhere(why) = find("192.0.2.1:4420") else { panic!("it is not here") };
        assert_eq!(why, "192.0.2.1:4420 is not an address of this machine");
    }

    #[test]
    fn several_targets_are_one() {
        let both = Target::Processes(vec![5, 7]).with(Target::Processes(vec![6, 7]));
        assert!(matches!(both, Target::Processes(pids) if pids == [5, 6, 7]));
        let own = Target::Own.with(Target::Processes(vec![5]));
        assert!(matches!(own, Target::Processes(pids) if pids == [5]));
        let unknown = Target::Processes(vec![5]).with(Target::Unknown("why".to_owned()));
        assert!(matches!(unknown, Target::Unknown(_)));
    }
}
