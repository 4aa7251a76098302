//! Everything that can be set of a simulation: once here, for flags, files and `--list`.

use std::sync::LazyLock;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use console::layout::{row, table};

use super::knob::Preset::{Value, Words};
use super::knob::{Knob, Need, knob};

const GAO: &str = "Gao et al. 2016, §4.2";
const OWN: &str = "afar";
const YAPS: &str = "simulator of Gao et al. 2016";
const SHAPES: &[&str] = &["single-switch", "leaf-spine", "fat-tree"];
const LEAF_SPINE: &[Need] = &[("topology", &["leaf-spine"])];
const POISSON: &[Need] = &[("traffic", &["poisson"])];
const DEFAULT: &[Need] = &[("variant", &["default"])];
const GENERATED: &[Need] =
    &[("traffic", &["poisson", "permutation", "incast", "all-to-all", "bursts"])];
const FIXED: &[Need] = &[("traffic", &["permutation", "incast", "all-to-all", "bursts"])];
const BLADES: &[Need] = &[("traffic", &["blades"])];
const FITTED: &[Need] = &[("replay", &["fitted"])];
const INCAST: &[Need] = &[("traffic", &["incast"])];

static ALL: LazyLock<Vec<Knob>> =
    LazyLock::new(|| NETWORK.into_iter().chain(super::transport_knobs::knobs()).collect());

/// All knobs, in the order of records.
pub(crate) fn all() -> &'static [Knob] {
    &ALL
}

const NETWORK: [Knob; 49] = [
    knob(
        "topology",
        "NAME|FILE",
        Value("leaf-spine"),
        "Who is connected to whom: single-switch, leaf-spine, fat-tree, or a TOML file of cables",
        GAO,
    ),
    knob("racks", "NUMBER", Value("9"), "Racks, each with a leaf switch", GAO).of(LEAF_SPINE),
    knob("hosts-per-rack", "NUMBER", Value("16"), "Hosts in a rack", GAO).of(LEAF_SPINE),
    knob("spines", "NUMBER", Value("4"), "Spine switches, each with a link to each leaf", YAPS)
        .of(LEAF_SPINE),
    knob(
        "spine-rate",
        "RATE",
        Words("full bisection"),
        "Rate of the links between leaves and spines",
        GAO,
    )
    .of(LEAF_SPINE),
    knob("hosts", "NUMBER", Value("16"), "Hosts at the switch", OWN)
        .of(&[("topology", &["single-switch"])]),
    knob("arity", "NUMBER", Value("8"), "Ports of a switch; arity³/4 hosts", OWN)
        .of(&[("topology", &["fat-tree"])]),
    knob("rate", "RATE", Value("40Gbps"), "Rate of hosts' links", GAO).of(&[("topology", SHAPES)]),
    knob(
        "delay",
        "TIME[,TIME,TIME,TIME]",
        Value("200ns"),
        "Propagation and switching of each link, or of host to leaf, leaf to spine, spine to leaf \
         and leaf to host (10ns,400ns,400ns,210ns for the figures of Gao et al.)",
        YAPS,
    )
    .of(&[("topology", SHAPES)]),
    knob(
        "switching",
        "WHEN",
        Value("cut-through"),
        "When a switch hands a packet on: cut-through or store-and-forward",
        YAPS,
    ),
    knob(
        "balance",
        "HOW",
        Value("spray"),
        "Which of several ways packets take: spray (in turn) or flow (all of a flow the same)",
        GAO,
    ),
    knob(
        "buffer",
        "SIZE",
        Words("36864B; with homa that for each port of a switch, with ndp twice its data packets"),
        "What may wait at a switch's port, or none",
        GAO,
    ),
    knob(
        "host-buffer",
        "SIZE",
        Words("none, or 36864B for as-published-2016"),
        "What may wait at a host's own port, or none",
        OWN,
    )
    .of(DEFAULT),
    knob(
        "host-queue",
        "HOW",
        Value("turns"),
        "What a host sends first of what waits: levels (as it came, headers first), turns (a \
         packet of each flow in turn, headers first) or drop-tail (as it came)",
        "TCP, DCTCP: Linux (sch_fq, TCP small queues); NDP: its authors' simulator",
    )
    .of(&[("transport", &["dctcp", "tcp", "ndp"]), ("variant", &["default"])]),
    knob("mtu", "SIZE", Value("1500B"), "A full packet on the wire, header included", GAO)
        .of(DEFAULT),
    knob(
        "header",
        "SIZE",
        Value("40B"),
        "Header of every packet, and the whole of packets that carry no data",
        YAPS,
    )
    .of(DEFAULT),
    knob(
        "mark",
        "PACKETS",
        Value("12"),
        "Packets in a switch's queue from which they are marked",
        "half of a port's buffer, above a seventh of the round trip (RFC 8257, §4) and bursts",
    )
    .of(&[("transport", &["dctcp"]), ("variant", &["default"])]),
    knob(
        "trim",
        "PACKETS",
        Value("8"),
        "Data packets that wait at a switch's port before more are cut to their headers",
        "Handley et al. 2017, §6",
    )
    .of(&[("transport", &["ndp"]), ("variant", &["default"])]),
    knob("transport", "NAME", Value("pfabric"), "What the ends of flows do", GAO),
    knob(
        "variant",
        "NAME",
        Value("default"),
        "default (as the transport's own paper has it) or as-published-2016 (as the simulator of \
         Gao et al. had it, for their figures)",
        YAPS,
    ),
    knob(
        "end",
        "WHEN",
        Words("received, or acknowledged for as-published-2016"),
        "When a flow has ended: received (the receiver has every byte) or acknowledged (the \
         sender knows it, and is told of each at once)",
        YAPS,
    ),
    knob(
        "traffic",
        "NAME|FILE",
        Value("poisson"),
        "Who sends when: poisson (by chance, all to all), permutation, incast, all-to-all (at \
         once), bursts (on and off), blades (what programs asked of memory and disks), or a list \
         of flows as CSV or Parquet",
        GAO,
    ),
    knob(
        "sizes",
        "NAME|SIZE|FILE",
        Value("imc10"),
        "What flows carry: imc10 (Benson et al. 2010), web-search (Alizadeh et al. 2010), \
         data-mining (Greenberg et al. 2009), one size, or a file of sizes and cumulative shares",
        "pHost, CoNEXT 2015",
    )
    .of(POISSON),
    knob(
        "load",
        "SHARE",
        Value("60%"),
        "Share of the time of hosts' links that data and headers take; with bursts, the share of \
         the time that they are on",
        GAO,
    )
    .of(&[("traffic", &["poisson", "bursts"])]),
    knob("flows", "NUMBER", Value("10000"), "How many flows; of blades, the first so many", OWN)
        .of(&[("traffic", &["poisson", "bursts", "blades"])]),
    knob(
        "repetitions",
        "NUMBER",
        Value("1"),
        "Independent runs, with seeds from --seed on; from 6 on every figure has an interval that \
         holds what such runs have in the middle, in at least 93 % of experiments",
        "Law 2015, §9.5.2",
    )
    .of(POISSON),
    knob(
        "exchange",
        "HOW",
        Value("one-way"),
        "What brings a flow about: one-way (its sender has bytes), read (its receiver asks for \
         them, and is done when it has every one) or write (its sender has bytes, and is done \
         when it knows that they have come)",
        OWN,
    )
    .of(GENERATED),
    knob(
        "request-size",
        "SIZE",
        Value("40B"),
        "A reader's request on the wire, from a header to a full packet",
        "as long as an acknowledgement",
    )
    .of(DEFAULT),
    knob(
        "request-timeout",
        "TIME",
        Value("200us"),
        "How long a reader that has heard nothing waits before it asks again; doubled each time",
        "least timeout of TCP in data centres",
    )
    .of(DEFAULT),
    knob(
        "last-packet",
        "HOW",
        Words("full if something is read or written, else short"),
        "The last packet of a flow: short (as long as what it carries) or full (three full ones \
         for 4 KiB, as in the simulator of Gao et al.)",
        YAPS,
    ),
    knob(
        "warm-up",
        "SHARE|TIME|auto",
        Words("auto with repetitions, else 10%, or 0% for as-published-2016"),
        "What comes before the flows that are measured, while the network fills: a share of \
         --flows, or more flows for a time, or for as long as queues at this load and with these \
         sizes need (auto)",
        "Law 2015, §9.5.1; auto: Abate and Whitt 1987",
    )
    .of(POISSON),
    knob(
        "cool-down",
        "SHARE|auto",
        Words("auto with repetitions, else 10%, or 0% for as-published-2016"),
        "What comes after the flows that are measured, so that these meet no network that empties: \
         a share of --flows, or more flows until every measured one has ended (auto)",
        "Law 2015, §9.5.1",
    )
    .of(POISSON),
    knob("size", "SIZE", Value("1MiB"), "What each flow carries", OWN).of(FIXED),
    knob("senders", "NUMBER", Value("8"), "Hosts that send to one", OWN).of(INCAST),
    knob("receiver", "HOST", Value("0"), "The host they send to", OWN).of(INCAST),
    knob("burst", "NUMBER", Value("16"), "Flows of a burst", OWN).of(&[("traffic", &["bursts"])]),
    knob(
        "faults",
        "FILE[,FILE]",
        Words("none"),
        "Records of page faults (afar run --record), which nodes take in turn",
        GAO,
    )
    .of(BLADES),
    knob(
        "blocks",
        "FILE[,FILE]",
        Words("none"),
        "Records of block I/O (blkparse, or trace: of afar serve), which nodes take in turn",
        GAO,
    )
    .of(BLADES),
    knob(
        "moves",
        "FILE",
        Words("none"),
        "What the blades of one cluster move, in place of records: a list of flows as traffic \
         takes one, from blade to blade, numbered compute, then memory, then disk",
        OWN,
    )
    .of(BLADES),
    knob("nodes", "NUMBER", Value("5"), "Nodes of a cluster, each with three blades", GAO)
        .of(BLADES),
    knob("clusters", "NUMBER", Words("as many as fit"), "How many clusters", GAO).of(BLADES),
    knob(
        "scale",
        "NAME",
        Value("rack"),
        "Where a cluster's blades are: rack (at one switch) or datacenter (anywhere)",
        GAO,
    )
    .of(BLADES),
    knob(
        "replay",
        "HOW",
        Value("recorded"),
        "What blades send: recorded (each node the flows of its record, from somewhere in it on) \
         or fitted (each pair of blades draws sizes and gaps of its own from the distributions of \
         that pair in the record)",
        GAO,
    )
    .of(BLADES),
    knob(
        "begin",
        "WHERE",
        Value("anywhere"),
        "Where fitted flows begin: anywhere (as somebody finds them who comes at any time) or \
         together (every pair with a gap from its distribution, mostly in a burst, as the \
         simulator of Gao et al. does)",
        OWN,
    )
    .of(FITTED),
    knob(
        "copies",
        "NUMBER",
        Value("1"),
        "How many times over each pair draws its flows (3 in the simulator of Gao et al.)",
        OWN,
    )
    .of(FITTED),
    knob(
        "batch",
        "TIME",
        Value("0"),
        "What a pair of blades moves within this time is one flow",
        OWN,
    )
    .of(BLADES),
    knob("speed", "FACTOR", Value("1"), "How much faster than recorded programs run", OWN)
        .of(BLADES),
    knob("seed", "NUMBER", Value("1"), "What everything that is drawn follows from", OWN),
    knob(
        "every",
        "TIME",
        Value("1us"),
        "Intervals of --ports and --svg, in the network's time; of a run with more than there is \
         memory for (2048, fewer with over 1024 ports) twice as long, or four times, and so on",
        OWN,
    ),
];

/// The knob called `name`; `None` if there is none.
pub(crate) fn find(name: &str) -> Option<&'static Knob> {
    all().iter().find(|knob| knob.name == name)
}

/// The knob's name that is most like `name`; `None` if none is near.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    console::usage::nearest(name, all().iter().map(|knob| knob.name))
}

/// The text of `--list`: a table of knobs, what each decides, and the transports.
pub(crate) fn list(transports: &str) -> String {
    let mut rows = vec![row(["knob", "value", "default", "from"])];
    rows.extend(all().iter().map(|knob| row([knob.name, knob.value, knob.shown(), knob.from])));
    let mut text = table(&rows);
    text.push('\n');
    text += "Defaults of transports are those in the network of the other defaults; in others they \
             follow from it.\n\n";
    for knob in all() {
        text += &format!("{}: {}.", knob.name, knob.what);
        for (other, values) in knob.needs {
            text += &format!(" With {other} {}.", values.join(", "));
        }
        text.push('\n');
    }
    format!("{text}\n{transports}")
}

/// Knobs that were set by flags.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnobFlags(pub(crate) Vec<(&'static str, String)>);

impl Args for KnobFlags {
    fn augment_args(command: Command) -> Command {
        all().iter().fold(command, |command, knob| {
            let help = format!("{} [default: {}]", knob.what, knob.shown());
            let argument = Arg::new(knob.name).long(knob.name).value_name(knob.value);
            command.arg(argument.help(help).hide_possible_values(true).help_heading("Network"))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for KnobFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for knob in all() {
            if let Some(value) = matches.get_one::<String>(knob.name) {
                self.0.push((knob.name, value.clone()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood() {
        assert_eq!(nearest("lod"), Some("load"));
        assert_eq!(nearest("sead"), Some("seed"));
        assert_eq!(nearest("weather"), None);
    }

    #[test]
    fn every_need_is_a_knob_with_that_value_or_a_file() {
        for knob in all() {
            for (other, values) in knob.needs {
                let other = find(other).unwrap();
                let is_known = |value: &&str| {
                    other.what.contains(value) || netsim::Transport::named(value).is_some()
                };
                assert!(values.iter().all(is_known), "{}", knob.name);
            }
        }
    }
}
