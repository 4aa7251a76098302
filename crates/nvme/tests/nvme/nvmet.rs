//! What another target says, byte for byte: the kernel's (nvmet of Linux 6.12.117), asked by
//! nvme-cli, which says what it means. So a layout that both of our ends have wrong is found.
//!
//! `nvmet/*.hex` have the lines that are not all zeros. There is one subsystem with namespace 7, in
//! group 1 of two, at 127.0.0.1.

use nvme::log::{AnaGroup, AnaState, DiscoveryEntry, read_discovery, write_ana, write_discovery};
use nvme::{
    ControllerData, ControllerKind, FoundController, FoundNamespace, IDENTIFY_BYTES, Instance,
    NamespaceData, NamespaceIds, Nqn, read_ana,
};
use test_support::read_hex;

const NQN: &str = "nqn.2026-11.example:golden";
const BLOCKS: u64 = 0x1f40_0000;
const NGUID: [u8; 16] =
    [0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0];
const UUID: [u8; 16] =
    [0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];

fn page(text: &str) -> [u8; IDENTIFY_BYTES] {
    read_hex(text).try_into().expect("4096 bytes")
}

/// Two pages differ in these ranges of bytes, each for a reason, and nowhere else.
fn differ(ours: &[u8], theirs: &[u8], why: &[((usize, usize), &str)]) {
    assert_eq!(ours.len(), theirs.len());
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for at in (0..ours.len()).filter(|&at| ours[at] != theirs[at]) {
        match ranges.last_mut() {
            Some((_, end)) if *end == at => *end = at + 1,
            _ => ranges.push((at, at + 1)),
        }
    }
    let named: Vec<(usize, usize)> = why.iter().map(|(range, _)| *range).collect();
    assert_eq!(ranges, named, "ours, and those with a reason");
}

#[test]
fn the_kernel_s_controller_is_read() {
    let found = FoundController::read(&page(include_str!("nvmet/id-ctrl.hex")));
    assert_eq!((found.instance.controller, found.kind, found.version), (1, 1, 0x1_0300));
    assert_eq!((&*found.serial, &*found.model), ("GOLDENSERIAL01", "Golden Model"));
    assert_eq!((&*found.firmware, &*found.subsystem), ("6.12.117", NQN));
    assert_eq!((found.sharing, found.transfer_shift, found.events), (0xb, 0, 0x900));
    assert_eq!((found.optional_commands, found.volatile_cache), (0xc, 1));
    assert_eq!((found.keep_alive_steps, found.quiesce_ms), (10, 0));
    assert_eq!((found.commands_max, found.namespaces_max), (1024, 1024));
    assert_eq!(found.capsule_bytes, 16 << 10);
    let ana = found.ana.expect("it reports access states");
    assert_eq!((ana.transition_s, ana.capabilities, ana.group_count), (10, 31, 128));
}

// What we say of the same controller, and where and why it differs.
#[test]
fn our_controller_is_laid_out_as_the_kernel_s() {
    let subsystem = Nqn::new(NQN).expect("a name");
    let ours = ControllerData {
        kind: ControllerKind::Io,
        instance: Instance { controller: 1, uniquifier: 0, random: 0 },
        subsystem: &subsystem,
        serial: "GOLDENSERIAL01",
        model: "Golden Model",
        firmware: "6.12.117",
        transfer_shift: 0,
        commands_max: 1024,
        namespaces_max: 1024,
        capsule_data_bytes: 16 << 10,
        has_volatile_cache: true,
        has_reservations: false,
        event_requests: 3,
        ana_groups: 128,
        quiesce_ms: 0,
        resets_max: 0,
    };
    let why = [
        ((72, 73), "RAB: no arbitration burst here"),
        ((81, 83), "VER: 2.1, not 1.3"),
        ((96, 97), "CTRATT: no traffic based keep-alive (TBKAS)"),
        ((261, 263), "LPA: pages 00h and 12h, no SMART page of a namespace; ELPE: one entry"),
        ((320, 321), "KAS: steps of 100 ms, not of a second"),
        ((520, 521), "ONCS: Compare and Verify, too"),
        ((522, 523), "FUSES: Compare and Write"),
        ((525, 526), "VWC: Flush of all namespaces is done"),
        ((531, 532), "NWPC: no write protection"),
        ((538, 539), "SGLS: transport data blocks"),
        ((2048, 2050), "PSD0: no power"),
        ((2052, 2053), "PSD0: no latency"),
        ((2056, 2057), "PSD0: no latency"),
    ];
    differ(&ours.write(), &page(include_str!("nvmet/id-ctrl.hex")), &why);
}

#[test]
fn the_kernel_s_namespace_is_read() {
    let found = FoundNamespace::read(&page(include_str!("nvmet/id-ns.hex")));
    assert_eq!((found.block_count, found.capacity_blocks), (BLOCKS, BLOCKS));
    assert_eq!((found.used_blocks, found.block_shift, found.metadata_bytes), (BLOCKS, 9, 0));
    assert_eq!((found.is_shared, found.reservation_kinds), (true, 0));
    assert_eq!((found.deallocation, found.is_write_protected, found.ana_group), (0, false, 1));
    assert_eq!((found.ids.nguid, found.opening), (NGUID, None));
    let ids = NamespaceIds::default();
    let ids = ids.with_descriptors(&page(include_str!("nvmet/ns-descs.hex")));
    assert_eq!(ids, NamespaceIds { nguid: NGUID, eui64: [0; 8], uuid: UUID });
}

#[test]
fn our_namespace_is_laid_out_as_the_kernel_s() {
    let ours = NamespaceData {
        block_count: BLOCKS,
        used_blocks: None,
        block_shift: 9,
        nguid: NGUID,
        uuid: UUID,
        atomic_blocks: 0,
        optimal_write_blocks: 0,
        discards_to_zero: false,
        reservation_kinds: 0,
        ana_group: 1,
        is_shared: true,
        is_read_only: false,
        opening: [0; 16],
    };
    let why = [
        ((24, 25), "NSFEAT: no preferred sizes"),
        ((384, 392), "the vendor's: which opening of its medium it is"),
    ];
    differ(&ours.write(), &page(include_str!("nvmet/id-ns.hex")), &why);
    let why = [
        ((0, 1), "the NGUID comes first, whose descriptor is of type 2"),
        ((19, 21), "the last byte of the one, and the type of the other"),
        ((39, 40), "the last byte of the other"),
    ];
    differ(&ours.write_descriptors(), &page(include_str!("nvmet/ns-descs.hex")), &why);
}

#[test]
fn access_states_are_the_same_bytes() {
    let theirs = read_hex(include_str!("nvmet/ana.hex"));
    let groups = [(1, AnaState::Optimized, vec![7]), (2, AnaState::Inaccessible, vec![])];
    let groups =
        groups.map(|(id, state, namespaces)| AnaGroup { id, change_count: 1, state, namespaces });
    let read = read_ana(&theirs).expect("it has a header");
    assert_eq!((read.change_count, &read.groups[..]), (1, &groups[..]));
    let ours = write_ana(&groups, 1, false);
    assert_eq!(ours, theirs[..ours.len()]);
}

#[test]
fn the_discovery_log_is_the_same_bytes() {
    let theirs = read_hex(include_str!("nvmet/discovery.hex"));
    let names = [("nqn.2014-08.org.nvmexpress.discovery", true), (NQN, false)];
    let entries = names.map(|(name, is_this_discovery)| DiscoveryEntry {
        subsystem: Nqn::new(name).expect("a name"),
        address: "127.0.0.1:4420".parse().expect("an address"),
        port: 3,
        is_this_discovery,
    });
    let read = read_discovery(&theirs).expect("it has a header");
    assert_eq!((read.generation, read.record_count, read.entries.len()), (2, 2, 2));
    for (entry, (name, is_this_discovery)) in read.entries.iter().zip(names) {
        assert_eq!((&*entry.subsystem, entry.is_this_discovery()), (name, is_this_discovery));
        assert_eq!((&*entry.address, &*entry.service, entry.port), ("127.0.0.1", "4420", 3));
    }
    let of_entry = |at: usize| {
        [
            ((at + 3, at + 4), "TREQ: the flow of submissions cannot be switched off"),
            ((at + 36, at + 64), "TRSVCID is filled with spaces"),
            ((at + 521, at + 768), "TRADDR is filled with spaces"),
        ]
    };
    let stays = ((1034, 1035), "EFLAGS: a host may stay connected (EPCSD)");
    let mut why = [&of_entry(1024)[..], &of_entry(2048), &[stays]].concat();
    why.sort_unstable();
    differ(&write_discovery(2, &entries), &theirs, &why);
}
