//! What hosts insist on before they use a controller, byte by byte.

use nvme::{ControllerData, ControllerKind, Instance, NamespaceData, Nqn, write_namespace_list};

fn number(data: &[u8], at: usize, bytes: usize) -> u64 {
    (0..bytes).rev().fold(0, |number, index| number << 8 | u64::from(data[at + index]))
}

fn controller(subsystem: &Nqn) -> ControllerData<'_> {
    ControllerData {
        kind: ControllerKind::Io,
        instance: Instance { controller: 0x1234, uniquifier: 3, random: 0x0807_0605_0403_0201 },
        subsystem,
        serial: "AFAR1",
        model: "a model whose name is longer than what there is room for",
        firmware: "0.1",
        transfer_shift: 8,
        commands_max: 128,
        namespaces_max: 32,
        capsule_data_bytes: 8192,
        has_volatile_cache: true,
        has_reservations: true,
        event_requests: 3,
        ana_groups: 0,
        quiesce_ms: 2000,
        resets_max: 4,
    }
}

#[test]
fn a_controller_is_one_that_linux_takes() {
    let subsystem = Nqn::new("nqn.2026-11.example:disk").expect("it can be one");
    let data = controller(&subsystem).write();
    assert_eq!(number(&data, 78, 2), 0x1234, "CNTLID as in Connect");
    assert_eq!(&data[4..24], b"AFAR1               ");
    assert_eq!(&data[24..64], b"a model whose name is longer than what t");
    assert_eq!(number(&data, 80, 4), 0x2_0100, "VS as the property says");
    assert_eq!(data[77], 8, "1 MiB");
    assert_ne!(number(&data, 320, 2), 0, "KAS");
    assert_eq!((data[512], data[513]), (0x66, 0x44), "entries of 64 and 16 bytes");
    assert_eq!(number(&data, 514, 2), 128, "MAXCMD");
    assert_eq!(number(&data, 516, 4), 32, "NN");
    assert_eq!(number(&data, 520, 2), 0xad, "ONCS");
    assert_eq!(data[525], 7, "a cache, and Flush for all namespaces");
    assert_eq!(number(&data, 536, 4) & 3, 1, "SGLS");
    assert!(data[768..].starts_with(b"nqn.2026-11.example:disk\0"));
    assert_eq!(number(&data, 1792, 4), (8192 + 64) / 16, "IOCCSZ");
    assert_eq!(number(&data, 1796, 4), 1, "IORCSZ");
    assert_eq!(number(&data, 1800, 2), 0, "ICDOFF");
    assert_eq!(number(&data, 92, 4), 1 << 8, "it tells of namespaces only");
    assert_eq!((data[111], data[343]), (1, 0));
    assert_eq!(data[135..144], [3, 1, 2, 3, 4, 5, 6, 7, 8], "CIU, CIRN");
    assert_eq!((number(&data, 386, 2), data[1807]), (2000, 4), "CQT, CCRL");
}

#[test]
fn access_states_are_announced_where_there_are_groups() {
    let subsystem = Nqn::new("nqn.2026-11.example:disk").expect("it can be one");
    let data = ControllerData { ana_groups: 2, ..controller(&subsystem) }.write();
    assert_eq!(data[76] & 8, 8, "CMIC");
    assert_eq!(number(&data, 344, 4), 2, "ANAGRPMAX");
    assert_eq!(number(&data, 348, 4), 2, "NANAGRPID");
    assert_eq!((data[343], number(&data, 540, 4)), (0x1f, number(&data, 516, 4)), "ANACAP, MNAN");
    assert_eq!(number(&data, 92, 4), 1 << 8 | 1 << 11, "OAES");
    let kind = ControllerKind::Discovery;
    let discovery = ControllerData { kind, ..controller(&subsystem) }.write();
    assert_eq!((discovery[111], number(&discovery, 516, 4)), (2, 0));
    assert_eq!((number(&discovery, 520, 2), discovery[525], discovery[512]), (0, 0, 0));
}

#[test]
fn a_namespace_has_a_size_a_format_and_names() {
    let namespace = NamespaceData {
        block_count: 0x1_0000_0001,
        used_blocks: None,
        block_shift: 12,
        nguid: [0xaa; 16],
        uuid: [0xbb; 16],
        atomic_blocks: 7,
        optimal_write_blocks: 31,
        discards_to_zero: true,
        reservation_kinds: 0xff,
        ana_group: 2,
        is_shared: true,
        is_read_only: false,
        opening: [0xcc; 16],
    };
    let data = namespace.write();
    for at in [0, 8, 16] {
        assert_eq!(number(&data, at, 8), 0x1_0000_0001);
    }
    assert_eq!((data[25], data[26]), (0, 0), "one format, and it is used");
    assert_eq!(number(&data, 128, 4), 12 << 16);
    assert_eq!((data[24], data[30], data[31], data[33]), (0x12, 1, 0xff, 0x09));
    assert_eq!((number(&data, 34, 2), number(&data, 36, 2), number(&data, 72, 2)), (7, 7, 31));
    assert_eq!((number(&data, 92, 4), &data[104..120]), (2, &[0xaa; 16][..]));
    let descriptors = namespace.write_descriptors();
    let expected =
        [&[2, 16, 0, 0], &[0xaa; 16][..], &[3, 16, 0, 0], &[0xbb; 16], &[4, 1, 0, 0, 0], &[0; 4]];
    assert!(descriptors.starts_with(&expected.concat()), "and it ends with zeros");
}

#[test]
fn lists_go_on_after_what_is_known() {
    let ids = |data: &[u8]| -> Vec<u64> {
        (0..1024).map(|index| number(data, index * 4, 4)).take_while(|id| *id > 0).collect()
    };
    assert_eq!(ids(&write_namespace_list([1, 2, 5], 1)), [2, 5]);
    assert_eq!(ids(&write_namespace_list([], 0)), [0; 0]);
    let many = ids(&write_namespace_list(1..=3000, 1000));
    assert_eq!((many.len(), many[0], many[1023]), (1024, 1001, 2024));
}
