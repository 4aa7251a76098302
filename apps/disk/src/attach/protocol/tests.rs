use proptest::prelude::*;

use super::asked::Malformed;
use super::numbers::flag;
use super::*;

fn message(opcode: u32, node: u64, rest: &[u8]) -> Vec<u8> {
    let length = u32::try_from(40 + rest.len()).expect("it is short");
    let mut bytes = [length.to_ne_bytes(), opcode.to_ne_bytes()].concat();
    bytes.extend(77_u64.to_ne_bytes());
    bytes.extend(node.to_ne_bytes());
    bytes.resize(40, 0);
    bytes.extend(rest);
    bytes
}

fn fields(of: &[(usize, u64)], length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length + 8];
    for (at, value) in of {
        bytes[*at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn asked(bytes: &[u8]) -> Option<Asked<'_>> {
    let message = decode(bytes).ok()?;
    assert_eq!((message.unique, message.node), (77, 2));
    Some(message.asked)
}

#[test]
fn messages_are_what_the_kernel_asks() {
    let read = message(15, 2, &fields(&[(8, 4096), (16, 512)], 40));
    assert_eq!(asked(&read), Some(Asked::Read { offset: 4096, bytes: 512 }));
    let mut rest = fields(&[(8, 8192), (16, 3)], 40);
    rest[32..36].copy_from_slice(&0o4_010_002_u32.to_ne_bytes());
    rest.extend(b"abc");
    let write = message(16, 2, &rest);
    let wanted = Asked::Write { offset: 8192, data: b"abc", is_forced: true };
    assert_eq!(asked(&write), Some(wanted), "O_SYNC");
    rest[32..36].copy_from_slice(&2_u32.to_ne_bytes());
    let plain = message(16, 2, &rest);
    let wanted = Asked::Write { offset: 8192, data: b"abc", is_forced: false };
    assert_eq!(asked(&plain), Some(wanted));
    assert_eq!(asked(&message(1, 2, b"disk\0")), Some(Asked::LookUp(b"disk")));
    let zeros = message(43, 2, &fields(&[(8, 1), (16, 2), (24, 3)], 32));
    assert_eq!(asked(&zeros), Some(Asked::Allocate { offset: 1, bytes: 2, mode: 3 }));
    for (valid, is_of_rights) in [(1, true), (2, true), (4, true), (8 | 1 << 6, false)] {
        let change = message(4, 2, &fields(&[(0, valid)], 88));
        assert_eq!(asked(&change), Some(Asked::Change { is_of_rights }), "{valid}");
    }
    let listed = message(28, 2, &fields(&[(8, 1), (16, 4096)], 40));
    assert_eq!(asked(&listed), Some(Asked::ReadDirectory { offset: 1, bytes: 4096 }));
    let bare = [
        (2, Asked::Forget),
        (42, Asked::Forget),
        (3, Asked::Attributes),
        (14, Asked::Open),
        (17, Asked::Statistics),
        (20, Asked::Sync),
        (27, Asked::OpenDirectory),
        (18, Asked::Over),
        (25, Asked::Over),
        (29, Asked::Over),
        (38, Asked::Over),
        // INTERRUPT, ACCESS, IOCTL, LSEEK, and what will come.
        (36, Asked::Other),
        (34, Asked::Other),
        (39, Asked::Other),
        (46, Asked::Other),
        (u32::MAX, Asked::Other),
    ];
    for (opcode, wanted) in bare {
        assert_eq!(asked(&message(opcode, 2, &[])), Some(wanted), "{opcode}");
    }
}

#[test]
fn messages_that_are_none_are_refused() {
    for bytes in [0, 7, 15, 39] {
        let whole = message(3, 2, &[]);
        let cut = &whole[..bytes];
        let unique = (bytes >= 16).then_some(77);
        assert_eq!(decode(cut), Err(Malformed { bytes, unique }), "{bytes} bytes");
    }
    let refused = |bytes: &[u8]| {
        let wanted = Malformed { bytes: bytes.len(), unique: Some(77) };
        assert_eq!(decode(bytes), Err(wanted), "{bytes:?}");
    };
    let mut longer = message(3, 2, &[]);
    longer[0] += 1;
    refused(&longer);
    refused(&message(15, 2, &[0; 19]));
    refused(&message(1, 2, b"disk"));
    refused(&message(1, 2, b"di\0sk\0"));
    refused(&message(1, 2, b""));
    refused(&message(43, 2, &[0; 27]));
    refused(&message(4, 2, &[0; 3]));
    refused(&message(26, 2, &[0; 15]));
    // It says 3 bytes are written.
    let three = fields(&[(16, 3)], 40);
    for data in [&b"ab"[..], b"abcd", b""] {
        refused(&message(16, 2, &[&three, data].concat()));
    }
    refused(&message(16, 2, &three[..39]));
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _either = decode(&bytes);
    }

    #[test]
    fn any_rest_is_a_message_or_refused(
        opcode in 0_u32..60,
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        if let Ok(Message { asked: Asked::Write { data, .. }, .. }) =
            decode(&message(opcode, 2, &rest))
        {
            prop_assert_eq!(data.len() + 40, rest.len());
        }
    }
}

#[test]
fn answers_have_the_sizes_of_the_kernel() {
    let node = Attributes {
        node: 2,
        kind: Kind::File,
        rights: 0o600,
        bytes: 8 << 20,
        since: std::time::UNIX_EPOCH + std::time::Duration::new(5, 6),
        user: 7,
        group: 8,
    };
    let second = std::time::Duration::from_secs(1);
    assert_eq!(
        head(9, 5, 100),
        *[&116_u32.to_ne_bytes()[..], &(-5_i32).to_ne_bytes(), &9_u64.to_ne_bytes()].concat()
    );
    let of = attributes(&node, second);
    assert_eq!((of.len(), entry(&node, second).len()), (104, 128));
    let at = |at: usize| u64::from_ne_bytes(of[at..at + 8].try_into().expect("eight"));
    let half = |at: usize| u32::from_ne_bytes(of[at..at + 4].try_into().expect("four"));
    assert_eq!([at(0), at(16), at(24), at(32), at(40)], [1, 2, 8 << 20, (8 << 20) / 512, 5]);
    let halves = [64, 76, 80, 84, 88, 96].map(half);
    assert_eq!(halves, [6, 0o100_600, 1, 7, 8, 4096]);
    assert_eq!(entry(&node, second)[40..], of[16..], "the same attributes");
    assert_eq!((opened(Kind::File).len(), opened(Kind::Directory)), (16, vec![0; 16]));
    assert_eq!(opened(Kind::File)[8], 0x41);
    assert_eq!((statistics(8 << 20).len(), written(3).len()), (80, 8));
    let (first, rest) = stale(2);
    assert_eq!((first.len(), rest.len(), first[4]), (16, 24, 2));
}

#[test]
fn what_is_agreed_on_is_what_is_offered() {
    let offered = Version { major: 7, minor: 45, readahead_bytes: 1 << 17, flags: u64::MAX };
    let half =
        |bytes: &[u8], at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four"));
    let all = started(&offered);
    assert_eq!(all.len(), 64);
    let wanted = u32::try_from(flag::WANTED).expect("none is above");
    assert_eq!([0, 4, 8, 12, 20].map(|at| half(&all, at)), [7, 40, 1 << 17, wanted, 1 << 20]);
    assert_eq!(u16::from_ne_bytes([all[28], all[29]]), 256, "pages");
    let few = started(&Version { minor: 31, flags: flag::BIG_WRITES, ..offered });
    assert_eq!([half(&few, 4), half(&few, 12)], [31, 1 << 5]);
    let newer = started(&Version { major: 8, ..offered });
    assert_eq!([half(&newer, 0), half(&newer, 12)], [7, 0], "it is to ask again");
    let mut bytes = fields(&[(0, 7 | 40 << 32), (8, 1 << 17 | 1 << 62), (16, 3)], 64);
    let message = message(26, 0, &bytes);
    let Ok(Message { asked: Asked::Start(version), .. }) = decode(&message) else { panic!("one") };
    assert_eq!(version.flags, 1 << 30 | 3 << 32);
    bytes.truncate(16);
}

#[test]
fn a_directory_is_listed_as_far_as_there_is_room() {
    let mut entries = Entries::new(70);
    assert!(entries.add(1, 1, Kind::Directory, "."));
    assert!(entries.add(2, 2, Kind::File, "disk"));
    assert!(!entries.add(2, 3, Kind::File, "more"));
    let bytes = entries.bytes();
    assert_eq!((bytes.len(), &bytes[56..60], bytes[20], bytes[52]), (64, &b"disk"[..], 4, 8));
}
