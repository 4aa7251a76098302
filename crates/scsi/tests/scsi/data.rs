//! What a disk says of itself, and what it makes of parameters.

use scsi::{Sense, Status, Step, UnmapRange, compare, is_zero, or_into, unmap_ranges};

use crate::{A, BLOCKS, answer, quiet, unit_data, with_parameters};

fn page(page: u8) -> Vec<u8> {
    let data = answer(&mut quiet(unit_data()), A, &[0x12, 1, page, 1, 0]).data;
    assert_eq!((data[0], data[1]), (0, page));
    assert_eq!(usize::from(data[2]) << 8 | usize::from(data[3]), data.len() - 4);
    data
}

#[test]
fn standard_data_is_where_spc_has_it() {
    let mut unit = quiet(unit_data());
    let data = answer(&mut unit, A, &[0x12, 0, 0, 1, 0]).data;
    assert_eq!((data.len(), data[4]), (96, 91));
    assert_eq!(data[..4], [0, 0, 6, 0x12]);
    assert_eq!(&data[8..36], b"afar    disk            1   ");
    assert_eq!(data[58..66], [0x00, 0xa0, 0x09, 0x60, 0x04, 0x60, 0x04, 0xc0]);
    for allocation in 0..=255 {
        let cut = answer(&mut unit, A, &[0x12, 0, 0, 0, allocation]);
        assert_eq!(cut.data, data[..96.min(usize::from(allocation))]);
    }
}

#[test]
fn pages_are_those_that_are_listed() {
    let listed = page(0)[4..].to_vec();
    assert_eq!(listed, [0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2, 0xc0]);
    for number in 0..=255 {
        let outcome = answer(&mut quiet(unit_data()), A, &[0x12, 1, number, 1, 0]);
        assert_eq!(outcome.status == Status::Good, listed.contains(&number), "{number:x}");
    }
    assert_eq!(page(0x80).len(), 36);
    let limits = page(0xb0);
    assert_eq!((limits.len(), limits[5]), (64, 8));
    assert_eq!(limits[6..12], [0, 8, 0, 0, 8, 0]);
    assert_eq!(limits[20..28], [0, 0, 0x20, 0, 0, 0, 0, 16]);
    assert_eq!(limits[36..48], [0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 8]);
    assert_eq!(page(0xb1)[4..6], [0, 1]);
    assert_eq!(page(0xb2)[5], 0xc4);
}

#[test]
fn designators_name_the_unit_and_the_port() {
    let data = page(0x83);
    let (mut rest, mut found) = (&data[4..], Vec::new());
    while !rest.is_empty() {
        let length = usize::from(rest[3]);
        found.push((rest[0] & 0xf, rest[1] & 0x3f, rest[4..4 + length].to_vec()));
        rest = &rest[4 + length..];
    }
    let kinds: Vec<_> = found.iter().map(|(code, kind, _)| (*code, *kind)).collect();
    assert_eq!(kinds, [(1, 3), (1, 2), (2, 1), (1, 0x14), (1, 0x15), (3, 0x18)]);
    assert_eq!(found[0].2[0] >> 4, 3, "assigned locally");
    assert_eq!(found[1].2, [0x11; 16]);
    assert!(found[5].2.starts_with(b"iqn.2001-04.com.example:disk,t,0x0001\0"));
    assert_eq!(found[5].2.len() % 4, 0);
}

#[test]
fn capacity_is_told_in_both_lengths() {
    let mut unit = quiet(unit_data());
    assert_eq!(answer(&mut unit, A, &[0x25]).data, [0, 0, 0xff, 0xff, 0, 0, 2, 0]);
    let long = answer(&mut unit, A, &[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32]).data;
    assert_eq!(long[4..16], [0, 0, 0xff, 0xff, 0, 0, 2, 0, 0, 3, 0xc0, 0]);
    let huge = scsi::UnitData { block_count: 1 << 33, ..unit_data() };
    assert_eq!(huge.capacity()[..4], [0xff; 4]);
    let status = [0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 24];
    let status = answer(&mut unit, A, &status).data;
    assert_eq!(status[..4], [0, 0, 0, 20]);
    assert_eq!(status[14..21], [0xff, 0xff, 0, 0, 0, 1, 0]);
}

#[test]
fn mode_pages_are_read_and_set() {
    let mut unit = quiet(unit_data());
    let short = answer(&mut unit, A, &[0x1a, 0, 0x3f, 0, 255]).data;
    assert_eq!(usize::from(short[0]), short.len() - 1);
    assert_eq!(short[..12], [short[0], 0, 0x10, 8, 0, 1, 0, 0, 0, 0, 2, 0]);
    let caching = answer(&mut unit, A, &[0x1a, 8, 8, 0, 255]).data;
    assert_eq!(caching[4..7], [8, 18, 4], "there is a write cache");
    let changeable = answer(&mut unit, A, &[0x5a, 8, 0x4a, 0, 0, 0, 0, 0, 255]).data;
    assert_eq!(changeable[8..20], [0x0a, 10, 4, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
    let saved = answer(&mut unit, A, &[0x1a, 0, 0xca, 0, 255]).sense;
    assert_eq!(saved, Some(Sense::SAVING_NOT_SUPPORTED));
    assert_eq!(
        answer(&mut unit, A, &[0x1a, 0, 0x02, 0, 255]).sense,
        Some(Sense::in_cdb(2, Some(5)))
    );
    // D_SENSE is what sense data is written by from then on.
    let set = [0, 0, 0, 0, 0x0a, 10, 4, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0];
    with_parameters(&mut unit, A, &[0x15, 0x10, 0, 0, 16], &set);
    assert!(unit.has_descriptors());
    unit.reset(scsi::ResetKind::Wish);
    assert!(!unit.has_descriptors());
}

#[test]
fn parameters_that_cannot_be_set_are_refused() {
    let good = [0, 0, 0, 0, 0x0a, 10, 4, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0];
    let select = |data: &[u8]| {
        let length = u8::try_from(data.len()).expect("short");
        let mut unit = quiet(unit_data());
        let step = with_parameters(&mut unit, A, &[0x15, 0x10, 0, 0, length], data);
        let Step::Answer(outcome) = step else { panic!("{step:?}") };
        assert_eq!(outcome.status == Status::Good, unit.has_descriptors() || data.is_empty());
        outcome.sense
    };
    assert_eq!((select(&good), select(&[])), (None, None));
    let changed = |at: usize, value: u8| {
        let mut data = good;
        data[at] = value;
        select(&data)
    };
    assert_eq!(changed(3, 4), Some(Sense::in_parameters(3, None)), "half a descriptor");
    assert_eq!(changed(3, 8), Some(Sense::in_parameters(4, None)), "not its blocks");
    assert_eq!(changed(4, 0x02), Some(Sense::in_parameters(4, Some(6))), "no such page");
    for length in [0, 9, 11, 255] {
        assert_eq!(changed(5, length), Some(Sense::in_parameters(5, None)), "{length}");
    }
    assert_eq!(changed(7, 0), Some(Sense::in_parameters(7, None)), "not to be changed");
    for length in 1..16 {
        if length != 4 {
            assert_eq!(select(&good[..length]), Some(Sense::PARAMETER_LIST_LENGTH), "{length}");
        }
    }
}

fn unmap(descriptors: &[(u64, u32)], said: Option<u16>) -> Vec<u8> {
    let length = said.unwrap_or_else(|| u16::try_from(descriptors.len() * 16).expect("few"));
    let mut data = (length + 6).to_be_bytes().to_vec();
    data.extend_from_slice(&length.to_be_bytes());
    data.extend_from_slice(&[0; 4]);
    for (first, count) in descriptors {
        data.extend_from_slice(&first.to_be_bytes());
        data.extend_from_slice(&count.to_be_bytes());
        data.extend_from_slice(&[0; 4]);
    }
    data
}

#[test]
fn room_is_given_back_where_it_is_said() {
    let ranges = |data: &[u8]| unmap_ranges(data, &unit_data());
    let data = unmap(&[(8, 8), (0, 0), (BLOCKS - 1, 1)], None);
    let expected = [(8 * 512, 8 * 512), ((BLOCKS - 1) * 512, 512)]
        .map(|(offset, length)| UnmapRange { offset, length });
    assert_eq!(ranges(&data), Ok(expected.to_vec()));
    assert_eq!(ranges(&[]), Ok(Vec::new()));
    assert_eq!(ranges(&[0; 7]), Err(Sense::PARAMETER_LIST_LENGTH));
    assert_eq!(ranges(&unmap(&[(0, 1)], Some(32))), Err(Sense::PARAMETER_LIST_LENGTH));
    assert_eq!(ranges(&unmap(&[(0, 1)], Some(0xfff0))), Err(Sense::PARAMETER_LIST_LENGTH));
    assert_eq!(ranges(&unmap(&[(0, 1); 17], None)), Err(Sense::in_parameters(2, None)));
    let far = Err(Sense::LBA_OUT_OF_RANGE.about(BLOCKS));
    assert_eq!(ranges(&unmap(&[(0, 1), (BLOCKS, 1)], None)), far);
    let wraps = Err(Sense::LBA_OUT_OF_RANGE.about(u64::MAX));
    assert_eq!(ranges(&unmap(&[(u64::MAX, 2)], None)), wraps);
    assert_eq!(ranges(&unmap(&[(0, 8192), (0, 1)], None)), Err(Sense::in_parameters(32, None)));
}

#[test]
fn data_is_compared_and_combined() {
    assert_eq!(compare(&[1, 2, 3, 4], &[1, 2, 3, 4]), Ok(()));
    assert_eq!(compare(&[1, 2, 3, 4], &[1, 2, 0, 4]), Err(Sense::MISCOMPARE.about(2)));
    assert_eq!(compare(&[1, 2, 1, 2], &[1, 2]), Ok(()));
    assert_eq!(compare(&[1, 2, 1, 3], &[1, 2]), Err(Sense::MISCOMPARE.about(3)));
    let mut there = [0x0f, 0xf0];
    or_into(&mut there, &[0x11, 0x11]);
    assert_eq!(there, [0x1f, 0xf1]);
    assert!(is_zero(&[0; 512]) && !is_zero(&there));
}
