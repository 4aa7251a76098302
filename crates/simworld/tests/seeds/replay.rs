//! What a target has answered over sockets, it answers again without any, to the byte.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use backend::MemoryBackend;
use nvme::Nqn;
use simworld::{Record, Taped};
use sys::event::Waker;
use sys::world::Machine;
use target::{Identity, IscsiAccess, Namespace, Subsystem, Target, TargetConfig};
use workload::Draw;

use crate::house::{IQN, NQN};
use crate::peers::iscsi::IscsiPeer;
use crate::peers::nvme::NvmePeer;
use crate::peers::{Op, Peer};

const SIZE: u64 = 1 << 20;
const BLOCK: usize = 512;
/// Blocks that are read and written.
const BLOCKS: u64 = 64;
const LONGEST: u64 = 24;
/// Hosts at a time, two over each protocol, commands of a run, and how many overlap.
const HOSTS: u8 = 4;
const COMMANDS: u64 = 600;
const DEPTH: u64 = 8;

/// A target with one namespace in a world, from its start to its end; `load` is what comes from
/// outside.
fn serve(taped: &Taped, namespace: u32, load: impl FnOnce([String; 2])) {
    let device = Arc::new(MemoryBackend::new(SIZE, 9).expect("there is memory"));
    let namespace = Namespace::new(namespace, device, Identity::of([5; 16]));
    let subsystem = Subsystem::new(Nqn::new(NQN).expect("a name"), None, vec![namespace]);
    subsystem.set_iscsi(Some(IscsiAccess {
        name: IQN.to_owned(),
        initiators: None,
        chap: None,
        chap_of: std::collections::BTreeMap::new(),
    }));
    let any = || vec!["127.0.0.1:0".parse().expect("an address")];
    let config = TargetConfig { nvme: any(), iscsi: any(), shards: 2, ..TargetConfig::default() };
    let target = Target::start_in(&taped.world(), &config, vec![subsystem]).expect("it listens");
    let addresses = [target.addresses()[0], target.iscsi_addresses()[0]];
    taped.outside(|| load(addresses.map(|address| address.to_string())));
    target.stop().expect("no shard has failed");
}

fn connect(addresses: &[String; 2], who: u8) -> Box<dyn Peer> {
    let world = Machine::world();
    let peer: Option<Box<dyn Peer>> = if who.is_multiple_of(2) {
        NvmePeer::connect(&*world, &addresses[0], NQN, who + 1).map(|peer| Box::new(peer) as _)
    } else {
        IscsiPeer::connect(&*world, &addresses[1], IQN, who + 1).map(|peer| Box::new(peer) as _)
    };
    peer.expect("it is there")
}

fn drawn(draw: &mut Draw, who: u8) -> Op {
    let count = 1 + draw.below(LONGEST);
    let first = draw.below(BLOCKS - count + 1);
    let blocks = u32::try_from(count).expect("it is short");
    let own = u64::from(who) + 1;
    let mut data = vec![0; usize::try_from(count).expect("it is short") * BLOCK];
    data.iter_mut().for_each(|byte| *byte = draw.below(256).to_le_bytes()[0]);
    let swapped = || data[..BLOCK].to_vec();
    match draw.below(20) {
        0..7 => Op::Read { first, count: blocks },
        7..13 => Op::Write { first, forced: first.is_multiple_of(4), data },
        13 => Op::Zero { first, count: blocks },
        14 => Op::Flush,
        15 => Op::Swap { block: first, old: vec![0; BLOCK], new: swapped() },
        16 | 17 => Op::Register(own),
        18 => Op::Acquire(own),
        _ => Op::Preempt { own, other: 1 + draw.below(u64::from(HOSTS)) },
    }
}

/// Hosts that overlap, reserve, abort, and leave with commands under way; how many have ended.
fn load(addresses: &[String; 2], seed: u64) -> u64 {
    let mut draw = Draw::new(seed);
    let waker = Waker::new().expect("there are descriptors");
    let mut hosts: Vec<(Box<dyn Peer>, Vec<u64>)> =
        (0..HOSTS).map(|who| (connect(addresses, who), Vec::new())).collect();
    let (mut begun, mut ended) = (0, 0);
    while begun < COMMANDS {
        let who = u8::try_from(draw.below(u64::from(HOSTS))).expect("it is small");
        let (peer, under_way) = &mut hosts[usize::from(who)];
        if draw.below(100) == 0 {
            hosts[usize::from(who)] = (connect(addresses, who), Vec::new());
            continue;
        }
        if draw.below(24) == 0
            && let Some(number) = under_way.last()
        {
            let _talks = peer.abort(*number);
        }
        if (under_way.len() as u64) < draw.below(DEPTH + 1)
            && let Some(number) = peer.begin(&drawn(&mut draw, who))
        {
            under_way.push(number);
            begun += 1;
            continue;
        }
        let waits = if under_way.is_empty() { Duration::ZERO } else { Duration::from_millis(1) };
        if peer.stream().wait(&waker, Some(waits)).expect("it waits")[0] {
            match peer.hear() {
                Some(told) => {
                    ended += told.len() as u64;
                    under_way.retain(|number| told.iter().all(|(other, _)| other != number));
                }
                None => hosts[usize::from(who)] = (connect(addresses, who), Vec::new()),
            }
        }
    }
    ended
}

fn record(seed: u64) -> Record {
    let taped = Taped::to_record();
    serve(&taped, 1, |addresses| {
        let ended = load(&addresses, seed);
        assert!(ended > COMMANDS / 2, "{ended} commands have ended");
    });
    taped.end()
}

#[test]
fn what_was_answered_over_sockets_is_answered_again() {
    for seed in 0..3 {
        let recorded = record(seed);
        let (turns, bytes) = (recorded.turns(), recorded.sent_bytes());
        println!("{turns} turns, {} connections, {bytes} bytes sent", recorded.connections());
        assert!(turns > 300 && bytes > 500_000, "{turns} turns, {bytes} bytes");
        let taped = Taped::to_play(&recorded);
        serve(&taped, 1, |_| unreachable!("nothing comes from outside"));
        let played = taped.end();
        assert_eq!((played.turns(), played.sent_bytes()), (turns, bytes));
    }
}

// That this can fail: by a target whose namespace has another number.
#[test]
fn another_target_is_found_out() {
    let recorded = record(7);
    let taped = Taped::to_play(&recorded);
    let played = catch_unwind(AssertUnwindSafe(|| serve(&taped, 2, |_| ())));
    let panic = played.expect_err("it answers as another");
    let text = panic.downcast_ref::<String>().expect("it says what differs");
    assert!(text.contains("recorded") && text.contains("Send"), "{text:.200}");
}
