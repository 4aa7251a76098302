//! Values by the names of hosts.
//!
//! Names come with connections and outlive them. A separate allocation for each name would pin
//! pages that connections have freed, so all names lie in one block, and all rows in another.
//!
//! Invariant: [`HOSTS_MAX`] hosts have rows of their own; the others share the row [`OTHERS`].

/// Hosts that have rows of their own.
pub(crate) const HOSTS_MAX: usize = 1024;
/// The name of the row that all hosts beyond the first `HOSTS_MAX` share.
pub const OTHERS: &str = "(others)";

/// See the module's description.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roster<V> {
    names: String,
    // In the order of names.
    rows: Vec<Row<V>>,
}

#[derive(Debug, Clone)]
struct Row<V> {
    start: usize,
    end: usize,
    value: V,
}

impl<V: Default> Roster<V> {
    /// The row of a host, made if missing; the row [`OTHERS`] if there are too many hosts.
    pub(crate) fn row(&mut self, host: &str) -> &mut V {
        let (name, place) = match self.find(host) {
            Err(_) if self.rows.len() >= HOSTS_MAX => (OTHERS, self.find(OTHERS)),
            place => (host, place),
        };
        let at = place.unwrap_or_else(|at| {
            let start = self.names.len();
            self.names.push_str(name);
            self.rows.insert(at, Row { start, end: self.names.len(), value: V::default() });
            at
        });
        &mut self.rows[at].value
    }

    /// All rows, in the order of names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.rows.iter().map(|row| (&self.names[row.start..row.end], &row.value))
    }

    // The place of a name's row, or where it has to be inserted.
    fn find(&self, name: &str) -> Result<usize, usize> {
        self.rows.binary_search_by(|row| self.names[row.start..row.end].cmp(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_names() {
        let mut roster = Roster::<u32>::default();
        for (name, number) in [("b", 1), ("", 2), ("c", 3), ("a", 4), ("b", 5)] {
            *roster.row(name) += number;
        }
        let rows: Vec<_> = roster.iter().collect();
        assert_eq!(rows, [("", &2), ("a", &4), ("b", &6), ("c", &3)]);
    }

    #[test]
    fn hosts_without_number_take_no_memory_without_bound() {
        let mut roster = Roster::<usize>::default();
        for number in 0..2 * HOSTS_MAX {
            *roster.row(&format!("nqn.{number}")) += 1;
        }
        assert_eq!(roster.iter().count(), HOSTS_MAX + 1);
        let others = roster.iter().find(|(name, _)| *name == OTHERS).expect("there are more");
        assert_eq!(*others.1, HOSTS_MAX);
        *roster.row("nqn.7") += 1;
        assert_eq!(roster.iter().map(|(_, count)| count).sum::<usize>(), 2 * HOSTS_MAX + 1);
    }
}
