//! Groups runs by the class of their machine: no figure is averaged over several classes.

use results::{Finding, Native};

use super::file::Sweep;
use super::matrix::Cell;
use super::row::Row;
use super::table::{self, MACHINE};

/// The findings of machines of one class.
#[derive(Debug)]
pub(crate) struct Group {
    /// The class, if output must name it: if it is not that of the machine that began the sweep, or
    /// if there are several.
    pub(crate) told: Option<String>,
    pub(crate) native: Option<Native>,
    pub(crate) findings: Vec<Finding>,
}

/// The findings of each class of machines, sorted by name. `own` is the class of the machine that
/// began the sweep.
pub(crate) fn groups(sweep: &Sweep, cells: &[Cell], rows: &[Row], own: &str) -> Vec<Group> {
    let mut classes: Vec<Option<&str>> = rows.iter().map(|row| row.host_class.as_deref()).collect();
    classes.sort_unstable();
    classes.dedup();
    if classes.is_empty() {
        classes.push(None);
    }
    let is_clear = classes.len() == 1 && classes[0].is_none_or(|class| class == own);
    let group = |class: &Option<&str>| {
        let is_in = |row: &&Row| row.host_class.as_deref() == *class;
        let rows: Vec<Row> = rows.iter().filter(is_in).cloned().collect();
        let told = (!is_clear).then(|| class.unwrap_or("unknown").to_owned());
        let mut findings = table::findings(cells, &rows, sweep.metric.better);
        for finding in &mut findings {
            let machine = told.iter().map(|class| (MACHINE.to_owned(), class.clone()));
            finding.settings.extend(machine);
        }
        Group { told, native: table::native(&rows, &sweep.metric), findings }
    };
    classes.iter().map(group).collect()
}

/// The tables of all classes as text.
pub(crate) fn text(groups: &[Group]) -> String {
    let one = |group: &Group| {
        let head = group.told.as_ref().map(|class| format!("machines of the class {class}\n"));
        head.unwrap_or_default() + &table::text(group.native.as_ref(), &group.findings)
    };
    groups.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// All findings, and the native figure if there is only one class.
pub(crate) fn together(mut groups: Vec<Group>) -> (Option<Native>, Vec<Finding>) {
    let native = if groups.len() == 1 { groups[0].native.take() } else { None };
    (native, groups.into_iter().flat_map(|group| group.findings).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(block: u32, cell: &Cell, value: f64, class: &str) -> Row {
        let host_class = Some(class.to_owned());
        Row { block, cell: cell.name(), value: Some(value), host_class, ..Row::default() }
    }

    #[test]
    fn runs_of_unequal_machines_are_never_averaged_nor_compared() {
        let sweep = Sweep::own("[workload]\ncommand = ['true']\n[matrix]\nrtt = ['1us']\n");
        let far = Cell::far(vec![("rtt", "1us".to_owned())]);
        let cells = [Cell::NATIVE, far.clone()];
        let mut rows = Vec::new();
        for block in 0..5 {
            for (class, native, slow) in [("a", 1.0, 2.0), ("b", 10.0, 30.0)] {
                rows.push(ran(block, &Cell::NATIVE, native, class));
                // One block of b is missing, and a's is not taken in its place.
                if (class, block) != ("b", 4) {
                    rows.push(ran(block, &far, native * slow, class));
                }
            }
        }
        let groups = groups(&sweep, &cells, &rows, "a");
        let found = |index: usize| {
            let group = &groups[index];
            let slowdown = group.findings[1].slowdown.expect("it ran");
            let native = group.native.as_ref().expect("it ran").figure.median;
            (group.told.as_deref(), native, slowdown.median, slowdown.count)
        };
        assert_eq!(found(0), (Some("a"), 1.0, 2.0, 5));
        assert_eq!(found(1), (Some("b"), 10.0, 30.0, 4));
        let text = text(&groups);
        assert!(text.starts_with("machines of the class a\nnative: 1.0000"), "{text}");
        assert!(text.contains("machines of the class b\nnative: 10.0000"), "{text}");
        let (native, findings) = together(groups);
        assert_eq!((native, findings.len()), (None, 4));
        assert_eq!((findings[1].value(MACHINE), findings[3].value(MACHINE)), ("a", "b"));
    }

    #[test]
    fn a_class_that_is_clear_is_not_told() {
        let sweep = Sweep::own("[workload]\ncommand = ['true']\n");
        let rows = [ran(0, &Cell::NATIVE, 1.0, "a")];
        let of = |own| groups(&sweep, &[Cell::NATIVE], &rows, own).remove(0).told;
        assert_eq!((of("a"), of("b")), (None, Some("a".to_owned())));
        assert_eq!(groups(&sweep, &[Cell::NATIVE], &[], "a").len(), 1);
    }
}
