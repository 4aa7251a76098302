//! Submission and completion queue entries, beside bytes as hosts send them.

use proptest::prelude::*;

use nvme::{
    Admin, Command, Completion, Data, Direction, Fabrics, Fused, Io, Property, QueueKind, Range,
    Status, Submission,
};

/// An entry: SGLs, identifier 7, and these fields.
fn entry(opcode: u8, fields: &[(usize, &[u8])]) -> [u8; 64] {
    let mut entry = [0; 64];
    (entry[0], entry[1], entry[2], entry[39]) = (opcode, 0x40, 7, 0x5a);
    for (at, field) in fields {
        entry[*at..*at + field.len()].copy_from_slice(field);
    }
    entry
}

fn admin(opcode: u8, fields: &[(usize, &[u8])]) -> Result<Command, Status> {
    Submission::read(QueueKind::Admin, &entry(opcode, fields)).map(|read| read.command)
}

fn io(opcode: u8, fields: &[(usize, &[u8])]) -> Result<Command, Status> {
    Submission::read(QueueKind::Io, &entry(opcode, fields)).map(|read| read.command)
}

#[test]
fn a_read_is_what_linux_sends() {
    let bytes = entry(
        0x02,
        &[
            (4, &[1, 0, 0, 0]),
            (32, &4096_u32.to_le_bytes()),
            (40, &0x1_2345_6789_u64.to_le_bytes()),
            (48, &[7, 0, 0, 0x40]),
        ],
    );
    let read = Submission::read(QueueKind::Io, &bytes).expect("it is one");
    let range = Range { first: 0x1_2345_6789, count: 8, forced: true };
    let expected = Submission {
        cid: 7,
        fused: Fused::No,
        nsid: 1,
        data: Data::Transport { length: 4096 },
        direction: Direction::ToHost,
        command: Command::Io(Io::Read(range)),
    };
    assert_eq!(read, expected);
}

#[test]
fn fabrics_commands_have_their_fields() {
    let connect = admin(0x7f, &[(4, &[1]), (40, &[0, 0, 3, 0, 127, 0, 4, 0, 0x88, 0x13, 0, 0])]);
    let expected =
        Fabrics::Connect { format: 0, queue: 3, size: 127, attributes: 4, keep_alive_ms: 5000 };
    assert_eq!(connect, Ok(Command::Fabrics(expected)));
    let property = Property { offset: 0x14, is_wide: false };
    let set = admin(0x7f, &[(4, &[0]), (44, &[0x14]), (48, &0x46_0001_u64.to_le_bytes())]);
    let expected = Fabrics::PropertySet { property, value: 0x46_0001 };
    assert_eq!(set, Ok(Command::Fabrics(expected)));
    let get = admin(0x7f, &[(4, &[4]), (40, &[1])]);
    let expected = Fabrics::PropertyGet(Property { offset: 0, is_wide: true });
    assert_eq!(get, Ok(Command::Fabrics(expected)));
    assert!(admin(0x7f, &[(4, &[4]), (40, &[2])]).is_err(), "properties have 4 or 8 bytes");
    assert!(admin(0x7f, &[(4, &[2])]).is_err(), "there is no such type");
    assert_eq!(io(0x7f, &[(4, &[8])]), Ok(Command::Fabrics(Fabrics::Disconnect)));
}

#[test]
fn admin_commands_have_their_fields() {
    let page = admin(0x02, &[(40, &[0x70, 0x80, 0xff, 0x00, 1, 0, 0, 0]), (48, &[0x10])]);
    let expected = Admin::GetLogPage {
        page: 0x70,
        specific: 0,
        retains_event: true,
        length: (0x1_00ff + 1) * 4,
        offset: 0x10,
        is_index: false,
    };
    assert_eq!(page, Ok(Command::Admin(expected)));
    // The longest that can be asked for does not wrap.
    let longest = admin(0x02, &[(42, &[0xff; 4])]);
    let length = |command| match command {
        Ok(Command::Admin(Admin::GetLogPage { length, .. })) => length,
        other => panic!("{other:?}"),
    };
    assert_eq!(length(longest), 1 << 34);
    let identify = admin(0x06, &[(40, &[6, 0, 9, 1, 0, 0, 0, 2])]);
    let expected = Admin::Identify { structure: 6, controller_id: 0x109, command_set: 2 };
    assert_eq!(identify, Ok(Command::Admin(expected)));
    let features = admin(0x09, &[(40, &[7, 0, 0, 0x80, 3, 0, 3, 0])]);
    let expected = Admin::SetFeatures { feature: 7, saves: true, value: 0x3_0003 };
    assert_eq!(features, Ok(Command::Admin(expected)));
    let abort = admin(0x08, &[(40, &[2, 0, 5, 1])]);
    assert_eq!(abort, Ok(Command::Admin(Admin::Abort { queue: 2, cid: 0x105 })));
}

#[test]
fn ranges_have_1_to_65536_blocks() {
    let count = |low: [u8; 2]| match io(0x01, &[(48, &low)]) {
        Ok(Command::Io(Io::Write(range))) => range.count,
        other => panic!("{other:?}"),
    };
    assert_eq!((count([0, 0]), count([0xff, 0xff])), (1, 65_536));
    let trim = io(0x09, &[(40, &[255, 0, 0, 0, 4])]);
    let expected = Io::DatasetManagement { range_count: 256, deallocates: true };
    assert_eq!(trim, Ok(Command::Io(expected)));
}

#[test]
fn data_is_where_the_descriptor_says() {
    let data = |kind: u8, length: u32| {
        let bytes = entry(0x01, &[(32, &length.to_le_bytes()), (39, &[kind])]);
        Submission::read(QueueKind::Io, &bytes).map(|read| read.data)
    };
    assert_eq!(data(0x5a, 0), Ok(Data::None));
    assert_eq!(data(0x00, 0), Ok(Data::None), "hosts leave it at zeros");
    assert_eq!(data(0x5a, u32::MAX), Ok(Data::Transport { length: u32::MAX }));
    assert_eq!(data(0x01, 512), Ok(Data::InCapsule { offset: 0, length: 512 }));
    for kind in (0..=255).filter(|kind| !matches!(kind, 0x01 | 0x5a)) {
        assert_eq!(data(kind, 512), Err(Status::SGL_TYPE_INVALID.do_not_retry()), "{kind:#x}");
    }
}

#[test]
fn flags_that_cannot_be_are_refused() {
    let flags = |flags: u8| {
        Submission::read(QueueKind::Io, &entry(0x00, &[(1, &[flags])])).map(|read| read.fused)
    };
    let invalid = Err(Status::INVALID_FIELD.do_not_retry());
    assert_eq!([0x00, 0xc0, 0x43].map(flags), [invalid; 3]);
    assert_eq!([0x40, 0x41, 0x82].map(flags), [Fused::No, Fused::First, Fused::Second].map(Ok));
}

#[test]
fn opcodes_are_known_or_refused() {
    let known = |kind: QueueKind| {
        let is_known = |opcode: &u8| Submission::read(kind, &entry(*opcode, &[])).is_ok();
        (0..=255).filter(is_known).collect::<Vec<u8>>()
    };
    assert_eq!(known(QueueKind::Admin), [0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18, 0x38, 0x7f]);
    let io = [0x00, 0x01, 0x02, 0x05, 0x08, 0x09, 0x0c, 0x0d, 0x0e, 0x11, 0x15, 0x7f];
    assert_eq!(known(QueueKind::Io), io);
}

proptest! {
    #[test]
    fn no_entry_panics(bytes in any::<[[u8; 32]; 2]>(), is_admin in any::<bool>()) {
        let kind = if is_admin { QueueKind::Admin } else { QueueKind::Io };
        let entry: [u8; 64] = bytes.concat().try_into().expect("two halves");
        if let Ok(read) = Submission::read(kind, &entry) {
            prop_assert_eq!(read.cid, Submission::cid_of(&entry));
        }
    }

    // Whatever can be read is written so that it reads the same again.
    #[test]
    fn what_is_written_reads_the_same(
        bytes in any::<[[u8; 32]; 2]>(),
        opcode in 0..0x20_u8,
        is_admin in any::<bool>(),
        is_fabrics in any::<bool>(),
    ) {
        let mut entry: [u8; 64] = bytes.concat().try_into().expect("two halves");
        entry[0] = if is_fabrics { 0x7f } else { opcode };
        entry[1] = 1 << 6 | entry[1] & 1;
        entry[39] = if entry[39] & 1 == 0 { 0x5a } else { 0x01 };
        if is_fabrics {
            entry[4] = opcode;
        }
        let kind = if is_admin { QueueKind::Admin } else { QueueKind::Io };
        if let Ok(read) = Submission::read(kind, &entry) {
            prop_assert_eq!(Submission::read(kind, &read.write()), Ok(read));
        }
    }

    #[test]
    fn completions_come_back(cid: u16, status in 0..0x8000_u16, result: u64, head: u16) {
        let status = Status::from_bits(status);
        let completion = Completion { cid, status, result, head };
        prop_assert_eq!(Completion::read(&completion.write()), completion);
    }
}
