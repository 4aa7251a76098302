//! The amount of memory that a share of local memory is a share of.
//!
//! By default this is the peak memory of the program's first run with all memory local, under the
//! cell's engine: a fixed amount, and the same in every run of the sweep, because that run comes
//! before the first one that needs it. It is the memory of all processes of the program, so they
//! share the local memory, too.

use measure::{Bytes, LocalSize, ShareOf};
use results::CellKind as Kind;

use super::matrix::Cell;
use super::row::Row;
use super::trouble::Trouble;

/// The remedy in a message that the peak is not known.
const REMEDY: &str = "mend that, or give local memory as a size such as 64MiB, or say of what it \
                      is a share: of = \"512MiB\", or of = \"live\" for what is in use at each \
                      moment";

/// Whether a cell cannot run yet, because the run that shows the peak has not ended.
pub fn waits(cell: &Cell, rows: &[Row]) -> bool {
    needs_peak(cell) && peak(cell, rows).is_none()
}

/// The order of the `count` cells of a block, as indexes: shuffled, but if a cell waits for the
/// peak, runs with all memory local come first. `at` returns a cell and its program's runs by
/// index.
pub fn in_block<'a>(
    count: usize,
    (seed, block): (u64, u32),
    at: impl Fn(usize) -> (&'a Cell, &'a [Row]),
) -> Vec<usize> {
    let mut order = experiment::order(count, seed, block);
    let is_waiting = |&index: &usize| {
        let (cell, rows) = at(index);
        waits(cell, rows)
    };
    // A stable sort keeps the rest of the order shuffled.
    if order.iter().any(is_waiting) {
        order.sort_by_key(|&index| at(index).0.kind != Kind::Zero);
    }
    order
}

/// What the local memory of a cell is a share of; `None` if it is a size.
pub(crate) fn of(cell: &Cell) -> Option<ShareOf> {
    let value = |name: &str| {
        let named = cell.settings.iter().find(|(axis, _)| *axis == name);
        named.map(|(_, value)| value.as_str())
    };
    let LocalSize::Fraction(_) = value("local")?.parse().ok()? else { return None };
    // Cells without `of` are from an older afar, which only knew live shares.
    Some(value("of").map_or(ShareOf::Live, |of| of.parse().unwrap_or(ShareOf::Live)))
}

/// The peak memory of the cell's program, for the flags of its run; `None` if they do not need
/// it.
///
/// # Errors
/// When the peak is needed and not known.
pub(crate) fn of_run(cell: &Cell, rows: &[Row]) -> Result<Option<Bytes>, Trouble> {
    if !needs_peak(cell) {
        return Ok(None);
    }
    let zero = cell.zero_of().name();
    let why = match peak(cell, rows) {
        Some(Bytes::ZERO) => "none of its memory was managed".to_owned(),
        Some(peak) => return Ok(Some(peak)),
        None => {
            let last = rows.iter().rfind(|row| row.cell == zero);
            match last.and_then(Row::trouble) {
                Some(why) => format!("of its run with all memory local: {why}"),
                None => "it has not run with all memory local".to_owned(),
            }
        }
    };
    let is_invalid = rows.iter().any(|row| row.cell == zero && row.invalid.is_some());
    let told = format!("the most memory that the program uses is not known, because {why}");
    Err(if is_invalid {
        Trouble::Invalid(format!("invalid: {told}; {REMEDY}"))
    } else {
        Trouble::Failed(format!("{told}; {REMEDY}"))
    })
}

/// Whether the cell's local memory is a share of the peak.
fn needs_peak(cell: &Cell) -> bool {
    cell.is_share() && of(cell) == Some(ShareOf::Peak)
}

/// The peak memory of the first run with all memory local under the cell's engine; `None` without
/// such a run.
fn peak(cell: &Cell, rows: &[Row]) -> Option<Bytes> {
    first(cell, rows)?.managed_peak_bytes.map(Bytes::new)
}

/// The run with all memory local that has a figure and the lowest block, not the one that ended
/// first.
fn first<'a>(cell: &Cell, rows: &'a [Row]) -> Option<&'a Row> {
    let zero = cell.zero_of().name();
    let has_told =
        |row: &&Row| row.cell == zero && row.value.is_some() && row.managed_peak_bytes.is_some();
    rows.iter().filter(has_told).min_by_key(|row| row.block)
}

/// Whether the peak for a cell's run in `block` is final: no later run can have a lower block.
pub(crate) fn is_settled(cell: &Cell, block: u32, rows: &[Row]) -> bool {
    let zero = cell.zero_of().name();
    let has_run = |block| rows.iter().any(|row| row.block == block && row.cell == zero);
    // Without a peak the run fails, once all blocks up to its own have been tried.
    let end = first(cell, rows).map_or(block + 1, |row| row.block);
    !needs_peak(cell) || (0..end).all(has_run)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn far(settings: &[(&'static str, &str)]) -> Cell {
        Cell::far(settings.iter().map(|&(axis, value)| (axis, value.to_owned())).collect())
    }

    fn zero(engine: Option<&str>, block: u32, peak: Option<u64>) -> Row {
        Row {
            block,
            cell: Cell::zero(engine).name(),
            value: peak.map(|_| 1.0),
            failure: peak.is_none().then(|| "it hung".to_owned()),
            managed_peak_bytes: Some(peak.unwrap_or(MIB)),
            ..Row::default()
        }
    }

    #[test]
    fn a_share_is_of_the_first_run_with_all_memory_local_and_stays_so() {
        let cell = far(&[("local", "25%"), ("rtt", "5us")]);
        assert_eq!(cell.name(), "local=25% of=peak rtt=5us");
        // What failed has not used what it would.
        let mut rows = vec![zero(None, 0, None), zero(None, 1, Some(512 * MIB))];
        let of = |rows: &[Row]| of_run(&cell, rows).expect("it is known");
        assert_eq!(of(&rows), Some(Bytes::from_mib(512)));
        rows.push(zero(None, 2, Some(700 * MIB)));
        assert_eq!(of(&rows), Some(Bytes::from_mib(512)), "the first, whatever comes later");
        assert!(!waits(&cell, &rows) && waits(&cell, &rows[..1]));
        let flags = cell.flags(of(&rows));
        let whole = ["--local", "25%", "--of", "536870912", "--budget", "tree", "--rtt", "5us"];
        assert_eq!(flags, whole);
        // Each engine manages what it manages.
        let swap = far(&[("engine", "swap"), ("local", "25%")]);
        assert!(waits(&swap, &rows));
        rows.push(zero(Some("swap"), 2, Some(600 * MIB)));
        let known = of_run(&swap, &rows).expect("it is known");
        assert_eq!(known, Some(Bytes::from_mib(600)));
    }

    #[test]
    fn which_machine_is_faster_does_not_decide_what_a_share_is_of() {
        let cell = far(&[("local", "25%")]);
        let (zeroth, first) = (zero(None, 0, Some(5 * MIB)), zero(None, 1, Some(6 * MIB)));
        let late = [first.clone(), zeroth.clone()];
        assert_eq!(of_run(&cell, &late).expect("it is known"), Some(Bytes::from_mib(5)));
        assert!(!is_settled(&cell, 1, std::slice::from_ref(&first)), "that of block 0 may come");
        assert!(is_settled(&cell, 1, &late) && is_settled(&cell, 0, &[zeroth]));
        // That of block 0 has failed, and so it stays.
        assert!(is_settled(&cell, 1, &[first, zero(None, 0, None)]));
        assert!(is_settled(&cell, 0, &[zero(None, 0, None)]), "the run says why it cannot be");
        assert!(!is_settled(&cell, 1, &[zero(None, 0, None)]));
        assert!(is_settled(&far(&[("local", "64MiB")]), 3, &[]), "a size waits for nothing");
    }

    #[test]
    fn what_is_not_known_is_never_another_amount() {
        let cell = far(&[("local", "25%")]);
        let refused = |rows: &[Row]| match of_run(&cell, rows) {
            Err(Trouble::Failed(why) | Trouble::Invalid(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(refused(&[]).contains("it has not run with all memory local; mend that"));
        let why = refused(&[zero(None, 0, None)]);
        assert!(why.contains("because of its run with all memory local: it hung; "), "{why}");
        assert!(why.contains("of = \"live\""), "{why}");
        assert!(refused(&[zero(None, 0, Some(0))]).contains("none of its memory was managed"));
        let invalid = zero(None, 0, None).invalidated("invalid: it ran natively".to_owned());
        let Err(Trouble::Invalid(why)) = of_run(&cell, &[invalid]) else { panic!("not invalid") };
        assert!(why.starts_with("invalid: ") && why.contains("it ran natively"), "{why}");
    }

    #[test]
    fn who_asks_for_the_live_footprint_or_a_size_waits_for_nothing() {
        for (cell, flags) in [
            (far(&[("local", "25%"), ("of", "live")]), "--local 25% --of live"),
            (far(&[("local", "25%"), ("of", "1GiB")]), "--local 25% --of 1GiB"),
            (far(&[("local", "64MiB"), ("of", "peak")]), "--local 64MiB"),
            // All of it is all of it, of whatever it is.
            (far(&[("local", "100%")]), "--local 100%"),
            (far(&[("rtt", "5us"), ("of", "peak")]), "--rtt 5us"),
        ] {
            assert!(!waits(&cell, &[]), "{}", cell.name());
            assert_eq!(of_run(&cell, &[]).expect("nothing to know"), None);
            assert_eq!(cell.flags(None).join(" "), flags);
        }
        let old = Cell::named("local=25% rtt=5us").expect("a cell");
        assert_eq!(of(&old), Some(ShareOf::Live), "as it was run then");
    }

    #[test]
    fn the_run_that_says_what_shares_are_of_comes_first_and_only_then() {
        let cells = [Cell::NATIVE, far(&[("local", "25%")]), Cell::zero(None)];
        let shuffled = |block| experiment::order(3, 1, block);
        for block in 0..8 {
            let ordered = |rows: &[Row]| in_block(3, (1, block), |index| (&cells[index], rows));
            let rest = |order: Vec<usize>| order.into_iter().filter(|&index| index != 2);
            let first = ordered(&[]);
            assert_eq!(first[0], 2, "{block}");
            assert!(rest(first).eq(rest(shuffled(block))), "{block}");
            assert_eq!(ordered(&[zero(None, 0, Some(MIB))]), shuffled(block), "as ever");
        }
    }
}
