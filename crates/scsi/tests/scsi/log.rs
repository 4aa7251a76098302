//! What a disk says of what it has done.

use scsi::{LogFigures, Outcome, Sense, Step};

use crate::{A, quiet, step, unit_data};

const FIGURES: LogFigures =
    LogFigures { commands: [1, 2], blocks: [3, 4], times_us: [5, 6], has_lost: false };

fn answered(bytes: [u8; 9], figures: &LogFigures) -> Outcome {
    match step(&mut quiet(unit_data()), A, &bytes) {
        Step::Log { asked, allocation } => Outcome::log(asked, figures, allocation),
        Step::Answer(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

fn page(page: u8, subpage: u8, first: u8) -> Outcome {
    answered([0x4d, 0, 0x40 | page, subpage, 0, 0, first, 1, 0], &FIGURES)
}

#[test]
fn pages_are_those_that_are_listed() {
    assert_eq!(page(0, 0, 0).data, [0, 0, 0, 3, 0x00, 0x19, 0x2f]);
    let all = page(0, 0xff, 0).data;
    assert_eq!(all, [0x40, 0xff, 0, 8, 0, 0, 0, 0xff, 0x19, 0, 0x2f, 0]);
    for number in 0..64 {
        let is_there = [0, 0x19, 0x2f].contains(&number);
        let refused = (!is_there).then_some(Sense::in_cdb(2, Some(5)));
        assert_eq!(page(number, 0, 0).sense, refused, "{number:#x}");
        let refused = if is_there { Sense::in_cdb(3, None) } else { Sense::in_cdb(2, Some(5)) };
        assert_eq!(page(number, 1, 0).sense, Some(refused), "{number:#x}");
    }
    // Thresholds, and what they are by default.
    for control in [0, 2, 3] {
        let outcome = answered([0x4d, 0, control << 6 | 0x19, 0, 0, 0, 0, 0, 255], &FIGURES);
        assert_eq!(outcome.sense, Some(Sense::in_cdb(2, Some(7))));
    }
    let kept = answered([0x4d, 1, 0x59, 0, 0, 0, 0, 0, 255], &FIGURES);
    assert_eq!(kept.sense, Some(Sense::in_cdb(1, Some(0))), "nothing is saved");
}

#[test]
fn figures_are_where_the_standard_has_them() {
    let data = page(0x19, 0, 0).data;
    assert_eq!((data.len(), &data[..8]), (84, &[0x99, 0, 0, 80, 0, 1, 3, 64][..]));
    let values: Vec<u64> = data[8..72]
        .chunks(8)
        .map(|value| u64::from_be_bytes(value.try_into().expect("eight")))
        .collect();
    assert_eq!(values, [1, 2, 4, 3, 5, 6, 0, 0], "what was received is what was written");
    let interval = [0, 3, 3, 8, 0, 0, 0, 6, 0, 0, 0, 1];
    assert_eq!(data[72..], interval);
    // From a parameter on, and not behind the last.
    assert_eq!(page(0x19, 0, 2).data, [&[0x99, 0, 0, 12][..], &interval].concat());
    assert_eq!(page(0x19, 0, 4).sense, Some(Sense::in_cdb(5, None)));
    let cut = answered([0x4d, 0, 0x59, 0, 0, 0, 0, 0, 4], &FIGURES).data;
    assert_eq!(cut, [0x99, 0, 0, 80], "the length is told whole");
}

#[test]
fn a_loss_is_an_informational_exception() {
    assert_eq!(page(0x2f, 0, 0).data, [0xaf, 0, 0, 8, 0, 0, 3, 4, 0, 0, 0xff, 0]);
    let lost = LogFigures { has_lost: true, ..FIGURES };
    let data = answered([0x4d, 0, 0x6f, 0, 0, 0, 0, 0, 255], &lost).data;
    assert_eq!(data[8..], [0x5d, 0, 0xff, 0]);
}
