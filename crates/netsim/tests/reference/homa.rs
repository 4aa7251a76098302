//! Homa against what its paper published: 99th percentiles of slowdown by size at 80 % load, from
//! the data behind Fig. 12 of Montazeri et al. 2018 (`original-raw-data-from-paper.txt` of
//! HomaL4Protocol-ns-3), as means over each tenth of the messages.
//!
//! The network is that of their simulator: 144 hosts at 10 Gb/s, 0.25 µs a switch, 1.5 µs in hosts,
//! packets of 1442 B with 96 B around them, and buffers in which nothing is dropped.

use measure::{BitsPerSec, Duration, Instant};
use netsim::{
    Fabric, Flow, Frame, HomaConfig, Ideal, LeafSpine, Protocol, Requests, Switching, Topology,
    Transport, simulate,
};
use test_support::skip;
use workload::Draw;

/// A workload of the paper.
struct Workload {
    name: &'static str,
    /// Sizes, and the share of messages that are at most as long.
    file: &'static str,
    /// Bytes of a size of 1.
    unit: u64,
    /// The longest messages of tenths that are published with hardly more than one link alone
    /// takes, which are compared less strictly.
    like_one_link: &'static [u64],
}

/// Messages of Facebook's key-value stores.
const W1: Workload =
    Workload { name: "W1", file: "FacebookKeyValue_Sampled.txt", unit: 1, like_one_link: &[] };
/// RPCs of Google's search.
const W2: Workload =
    Workload { name: "W2", file: "Google_SearchRPC.txt", unit: 1, like_one_link: &[] };
/// All RPCs of a data centre of Google.
const W3: Workload =
    Workload { name: "W3", file: "Google_AllRPC.txt", unit: 1, like_one_link: &[] };
/// A Hadoop cluster of Facebook.
const W4: Workload =
    Workload { name: "W4", file: "Facebook_HadoopDist_All.txt", unit: 1, like_one_link: &[] };
/// The web search behind DCTCP, in full packets.
///
/// A single link with 80 % of load that always sends of the message with least left takes 1.87,
/// 2.06, 2.61 and 11.82 for the four longest tenths. 1.84, 2.18, 2.87 and 10.08 are published, of
/// messages that cross two such links, their sender's and their receiver's; of W4 it is 1.3 to 1.6
/// of what one link takes.
const W5: Workload = Workload {
    name: "W5",
    file: "DCTCP_MsgSizeDist.txt",
    unit: 1442,
    like_one_link: &[2_210_586, 11_537_442],
};

fn fabric() -> Fabric {
    let delays = [1250, 250, 250, 500].map(Duration::from_ns);
    let shape = LeafSpine::paper(BitsPerSec::from_gbps(10), delays);
    let topology = Topology::leaf_spine(&shape).expect("the network of the paper");
    let fabric = Transport::Homa.fabric(topology, Switching::StoreAndForward);
    let mut fabric = fabric.expect("it can be had");
    // Theirs drops nothing.
    fabric.switch_port.buffer = None;
    fabric.frame = Frame { payload: 1442, header: 96, is_padded: false };
    fabric.requests = Requests { bytes: 96, ..Requests::default() };
    fabric
}

/// Messages that take 80 % of hosts' links with their headers and grants, as the paper has it.
fn messages(workload: &Workload, count: usize) -> Option<Vec<Flow>> {
    let Some(directory) = std::env::var_os("AFAR_ORACLE_DIR") else {
        skip("oracle::homa", "set AFAR_ORACLE_DIR to a directory with network/sizes/*.txt");
        return None;
    };
    let path = std::path::PathBuf::from(directory).join("network/sizes").join(workload.file);
    let text = std::fs::read_to_string(path).expect("sizes can be read");
    // The first line is the mean.
    let sizes: Vec<(u64, f64)> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.trim().split_once(char::is_whitespace))
        .map(|(size, share)| {
            let size: u64 = size.trim().parse().expect("a size");
            (size.max(1) * workload.unit, share.trim().parse().expect("a share"))
        })
        .collect();
    let mut draw = Draw::new(1);
    let chance = |draw: &mut Draw| draw.below(1 << 53) as f64 / (1_u64 << 53) as f64;
    let mut at = 0.0;
    let drawn: Vec<(f64, Flow)> = (0..count)
        .map(|_| {
            at -= (1.0 - chance(&mut draw)).ln();
            let place = chance(&mut draw);
            let size = sizes.partition_point(|(_, share)| *share < place).min(sizes.len() - 1);
            let src = u32::try_from(draw.below(144)).expect("a host");
            let dst = (src + 1 + u32::try_from(draw.below(143)).expect("a host")) % 144;
            (at, Flow { src, dst, bytes: sizes[size].0, ..Flow::default() })
        })
        .collect();
    let fabric = fabric();
    let Protocol::Homa(HomaConfig { round_trip, .. }) = Transport::Homa.protocol(&fabric) else {
        unreachable!("it is Homa's")
    };
    let wire = |flow: &Flow| {
        let packets = fabric.frame.packets(flow.bytes);
        let headers = packets + packets.saturating_sub(round_trip);
        flow.bytes + u64::from(headers) * u64::from(fabric.frame.header)
    };
    let bytes: u64 = drawn.iter().map(|(_, flow)| wire(flow)).sum();
    let ps_each = bytes as f64 / (0.8 * 144.0 * 10e9 / 8.0) * 1e12 / at;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times of a test are positive and short"
    )]
    let start = |at: f64| Instant::from_ps((at * ps_each) as u64);
    Some(drawn.into_iter().map(|(at, flow)| Flow { start: start(at), ..flow }).collect())
}

/// Messages of similar size: the longest, their share of all in per cent, and the 99th percentile
/// of their slowdown.
type Range = (u64, f64, f64);

/// What the paper has of a workload, by tenth of its messages.
fn published(name: &str) -> Vec<Vec<Range>> {
    let mut tenths = vec![Vec::new()];
    let mut percent = 0.0;
    for line in include_str!("homa.csv").lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let [workload, upto, share, p99] = fields[..] else { continue };
        if workload != name {
            continue;
        }
        let number = |text: &str| text.parse::<f64>().expect("a number");
        if percent >= 10.0 * tenths.len() as f64 - 1e-6 && tenths.len() < 10 {
            tenths.push(Vec::new());
        }
        percent += number(share);
        let range = (upto.parse().expect("a size"), number(share), number(p99));
        tenths.last_mut().expect("there is a tenth").push(range);
    }
    tenths
}

/// Of messages after the first tenth and before the last; of so many tenths by size.
///
/// As theirs, ours are means over ranges of size, weighted by their messages. Ranges of which too
/// few messages were measured for a percentile are joined with the next; the last are left out.
fn assert_published(workload: &Workload, count: usize, tenths: usize) {
    let Some(flows) = messages(workload, count) else { return };
    let name = workload.name;
    let fabric = fabric();
    let protocol = Transport::Homa.protocol(&fabric);
    let outcome = simulate(&fabric, protocol, &flows).expect("they end");
    assert!(outcome.records.iter().all(|record| record.data_drops == 0), "{name}: drops");
    let ideal = Ideal::new(&fabric);
    let mut measured: Vec<(u64, f64)> = flows
        .iter()
        .zip(&outcome.records)
        .take(flows.len() / 10 * 9)
        .skip(flows.len() / 10)
        .map(|(flow, record)| {
            let took = record.received.expect("all are received") - flow.start;
            (flow.bytes, took.as_ps() as f64 / ideal.received(flow).as_ps() as f64)
        })
        .collect();
    measured.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut over = 0;
    for ranges in &published(name)[..tenths] {
        let first = over + 1;
        let (mut ours, mut theirs, mut weight) = (0.0, 0.0, 0.0);
        // Ranges that are not done with: their share, and their percentiles times their share.
        let mut joined = (0.0, 0.0);
        for &(upto, percent, p99) in ranges {
            joined = (joined.0 + percent, joined.1 + p99 * percent);
            let from = measured.partition_point(|&(bytes, _)| bytes <= over);
            let until = measured.partition_point(|&(bytes, _)| bytes <= upto);
            if until - from < ENOUGH {
                continue;
            }
            let mut slowdowns: Vec<f64> =
                measured[from..until].iter().map(|&(_, slowdown)| slowdown).collect();
            slowdowns.sort_by(f64::total_cmp);
            ours += slowdowns[slowdowns.len() * 99 / 100] * joined.0;
            theirs += joined.1;
            weight += joined.0;
            joined = (0.0, 0.0);
            over = upto;
        }
        let off = ours / theirs - 1.0;
        let (ours, theirs) = (ours / weight, theirs / weight);
        println!(
            "{name}, {first} to {over} B, {weight:.1} %: {ours:.2} for {theirs:.2}, {:+.0} %",
            off * 100.0
        );
        let most = if workload.like_one_link.contains(&over) { 0.45 } else { 0.25 };
        assert!(off.abs() < most, "{name}, {first} to {over} B: {ours} for {theirs}");
    }
}

/// Messages of a range for a percentile.
const ENOUGH: usize = 100;

/// Whether everything is compared, with as many messages as that needs.
fn is_full() -> bool {
    std::env::var_os("AFAR_TEST_FULL").is_some()
}

#[test]
fn messages_of_key_value_stores_are_as_slow_as_published() {
    assert_published(&W1, if is_full() { 1_000_000 } else { 60_000 }, 10);
}

#[test]
fn rpcs_of_a_search_are_as_slow_as_published() {
    assert_published(&W2, if is_full() { 400_000 } else { 40_000 }, 10);
}

#[test]
fn rpcs_are_as_slow_as_published() {
    assert_published(&W3, if is_full() { 400_000 } else { 40_000 }, 10);
}

/// The longest tenth takes a hundred thousand messages to settle.
#[test]
fn messages_of_hadoop_are_as_slow_as_published() {
    let (count, tenths) = if is_full() { (100_000, 10) } else { (8_000, 9) };
    assert_published(&W4, count, tenths);
}

#[test]
fn files_of_a_web_search_are_as_slow_as_published() {
    if is_full() {
        assert_published(&W5, 20_000, 10);
    } else {
        skip("oracle::homa, W5", "set AFAR_TEST_FULL=1; it takes 50 million packets");
    }
}
