//! A target: who moves how much, and what its disks do.

use std::time::Instant;

use results::live::{HostView, NamespaceView, TargetView};

use super::history::History;
use super::picture::{Told, rounded};
use super::shown::{Shown, Watched};
use super::sources::TargetLooks;
use crate::section::{Picture, Section, Table};
use crate::words::percent;

const MIB: f64 = 1_048_576.0;
const PAGE_TIME: &str = "time of this page, s";
const GAPS: &str =
    "Nothing is asked while nobody watches; the next point is the mean of that time.";
/// The most hosts of the table; the others are only counted.
const HOSTS_MAX: usize = 32;

/// A target that is watched by its metrics.
pub(super) struct Target {
    address: String,
    looks: TargetLooks,
    begun: Instant,
    host_bytes: History,
    host_commands: History,
    disk_bytes: History,
    disk_p99: History,
}

impl Target {
    /// # Errors
    /// A sentence, if the target does not answer.
    pub(super) fn new(
        address: &str,
        open: fn(&str) -> Result<TargetLooks, String>,
    ) -> Result<Self, String> {
        Ok(Self {
            address: address.to_owned(),
            looks: open(address)?,
            begun: Instant::now(),
            host_bytes: History::default(),
            host_commands: History::default(),
            disk_bytes: History::default(),
            disk_p99: History::default(),
        })
    }

    /// Adds the view of an interval to the histories.
    fn add(&mut self, view: &TargetView) {
        let at = (self.begun.elapsed().as_secs_f64(), view.interval_s);
        let hosts = || view.hosts.iter();
        self.host_bytes.add(at, hosts().map(|one| (one.host.clone(), one.mb_per_s)));
        self.host_commands.add(at, hosts().map(|one| (one.host.clone(), one.iops)));
        let disks = view.namespaces.iter().flat_map(|one| {
            let name = disk(one);
            let written = (format!("{name}, written"), one.write.mb_per_s);
            [(format!("{name}, read"), one.read.mb_per_s), written]
        });
        self.disk_bytes.add(at, disks);
        let p99 = view.namespaces.iter().filter_map(|one| Some((disk(one), one.p99_us?)));
        self.disk_p99.add(at, p99);
    }

    /// The sections on hosts, disks and shards.
    fn sections(&self, view: &TargetView) -> Vec<(String, Section)> {
        let sections = [self.hosts(view), self.disks(view), shards(view)];
        sections.into_iter().map(|section| (self.name(), section)).collect()
    }

    /// The section on hosts.
    fn hosts(&self, view: &TargetView) -> Section {
        let columns = ["host", "MB/s", "I/O/s", "memory, MiB", "waits/s", "connections"];
        let mut table = Table::new(columns);
        for one in view.hosts.iter().take(HOSTS_MAX) {
            let memory = one.memory_bytes / MIB;
            let numbers = [one.mb_per_s, one.iops, memory, one.memory_waits_per_s, one.connections];
            table.rows.push(row(plain(&one.host), &numbers));
        }
        let all = view.hosts.len();
        table.cut_from = (all > HOSTS_MAX).then_some(all as u64);
        Section {
            title: "Hosts, the greediest first".to_owned(),
            answer: vec![greedy(&view.hosts)],
            verdicts: (!view.hosts.is_empty()).then_some(table),
            pictures: pictures([
                ("host-bytes", "Moved by host", "MB/s", GAPS, &self.host_bytes),
                (
                    "host-commands",
                    "Commands by host",
                    "commands a second",
                    GAPS,
                    &self.host_commands,
                ),
            ]),
            ..Section::default()
        }
    }

    /// The section on disks.
    fn disks(&self, view: &TargetView) -> Section {
        let mut table = Table::new([
            "disk",
            "read/s",
            "write/s",
            "read MB/s",
            "write MB/s",
            "p50 µs",
            "p99 µs",
            "in flight",
            "failed/s",
        ]);
        for one in &view.namespaces {
            let [p50, p99] = [one.p50_us, one.p99_us].map(|time| time.unwrap_or(f64::NAN));
            let rates = [one.read.iops, one.write.iops, one.read.mb_per_s, one.write.mb_per_s];
            let numbers = [rates.as_slice(), &[p50, p99, one.in_flight, one.failures_per_s]];
            table.rows.push(row(disk(one), &numbers.concat()));
        }
        let sum = |of: fn(&NamespaceView) -> f64| view.namespaces.iter().map(of).sum::<f64>();
        Section {
            title: "Disks".to_owned(),
            answer: vec![format!(
                "Hosts read {} MB/s and write {} MB/s.",
                rounded(sum(|one| one.read.mb_per_s)),
                rounded(sum(|one| one.write.mb_per_s))
            )],
            verdicts: Some(table),
            pictures: pictures([
                ("disk-bytes", "Read and written by disk", "MB/s", GAPS, &self.disk_bytes),
                (
                    "disk-p99",
                    "Time of a command by disk, p99",
                    "µs",
                    "From taking a command to answering it, in the target.",
                    &self.disk_p99,
                ),
            ]),
            ..Section::default()
        }
    }
}

impl Watched for Target {
    fn name(&self) -> String {
        format!("the target at {}", self.address)
    }

    fn look(&mut self) -> Shown {
        match (self.looks)() {
            Ok(view) => {
                self.add(&view);
                let state = match view.hosts.len() {
                    1 => "The target answers; it has 1 host.".to_owned(),
                    number => format!("The target answers; it has {number} hosts."),
                };
                Shown { state, is_there: true, sections: Some(self.sections(&view)) }
            }
            Err(why) => Shown::gone(format!(
                "{why}. This page shows the last that was seen, and goes on when the target \
                 answers."
            )),
        }
    }
}

/// A sentence on the host that moves most.
fn greedy(hosts: &[HostView]) -> String {
    let all: f64 = hosts.iter().map(|one| one.mb_per_s).sum();
    match hosts.iter().max_by(|one, other| one.mb_per_s.total_cmp(&other.mb_per_s)) {
        None => "No host is connected.".to_owned(),
        Some(one) if one.mb_per_s > 0.0 => format!(
            "{} moves most: {} MB/s, {} of all.",
            plain(&one.host),
            rounded(one.mb_per_s),
            percent(one.mb_per_s / all)
        ),
        Some(_) => "No host moves anything.".to_owned(),
    }
}

/// The section on shards.
fn shards(view: &TargetView) -> Section {
    let mut table = Table::new(["shard", "busy, %", "connections"]);
    for one in &view.shards {
        table.rows.push(row(one.shard.to_string(), &[one.utilisation * 100.0, one.connections]));
    }
    let busiest = view.shards.iter().max_by(|a, b| a.utilisation.total_cmp(&b.utilisation));
    let answer = busiest
        .map(|one| format!("Shard {} is the busiest: {}.", one.shard, percent(one.utilisation)));
    Section {
        title: "Shards".to_owned(),
        answer: answer.into_iter().collect(),
        verdicts: Some(table),
        ..Section::default()
    }
}

/// Pictures of histories, each with its name, title, unit and caption.
fn pictures<const N: usize>(
    told: [(&'static str, &str, &'static str, &'static str, &History); N],
) -> Vec<Picture> {
    let picture = |(name, title, y, caption, history): (_, &str, _, _, &History)| {
        let (title, omits_zero) = (title.to_owned(), name == "disk-p99");
        Told { name, title, y, caption, x: PAGE_TIME, omits_zero }.of(history)
    };
    told.into_iter().filter_map(picture).collect()
}

// The name of a disk: the last part of its subsystem's name, and the namespace identifier.
fn disk(one: &NamespaceView) -> String {
    let name = one.subsystem.rsplit(':').next().unwrap_or_default();
    format!("{} {}", plain(name), one.namespace)
}

/// A row: a name, and numbers as they are shown.
fn row(name: String, numbers: &[f64]) -> Vec<String> {
    std::iter::once(name).chain(numbers.iter().map(|number| rounded(*number))).collect()
}

/// A text with its control characters replaced.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, mb_per_s: f64) -> HostView {
        HostView {
            host: name.to_owned(),
            iops: 1.0,
            mb_per_s,
            memory_bytes: 0.0,
            memory_waits_per_s: 0.0,
            connections: 1.0,
        }
    }

    #[test]
    fn who_is_greedy_is_said_first() {
        let hosts = [host("nqn.a", 10.0), host("nqn.b\u{7}", 30.0)];
        assert_eq!(greedy(&hosts), "nqn.b\u{fffd} moves most: 30 MB/s, 75 % of all.");
        assert_eq!(greedy(&[]), "No host is connected.");
        assert_eq!(greedy(&[host("nqn.a", 0.0)]), "No host moves anything.");
    }

    #[test]
    fn a_target_that_goes_leaves_what_was_shown() {
        let mut there = true;
        let looks: TargetLooks = Box::new(move || {
            let hosts = (0..100).map(|number| host(&format!("nqn.{number}"), 1.0)).collect();
            let view = TargetView { interval_s: 1.0, hosts, ..TargetView::default() };
            let answer = if there { Ok(view) } else { Err("read metrics: refused".to_owned()) };
            there = !there;
            answer
        });
        let open = |_: &str| Err(String::new());
        assert!(Target::new("x:1", open).is_err());
        let mut target = Target {
            address: "x:1".to_owned(),
            looks,
            begun: Instant::now(),
            host_bytes: History::default(),
            host_commands: History::default(),
            disk_bytes: History::default(),
            disk_p99: History::default(),
        };
        let shown = target.look();
        assert_eq!(
            (shown.is_there, &*shown.state),
            (true, "The target answers; it has 100 hosts.")
        );
        let sections = shown.sections.expect("there are some");
        let table = sections[0].1.verdicts.as_ref().expect("hosts");
        assert_eq!((table.rows.len(), table.cut_from), (HOSTS_MAX, Some(100)));
        let shown = target.look();
        assert!(!shown.is_there && shown.sections.is_none());
        assert!(target.look().is_there);
    }
}
