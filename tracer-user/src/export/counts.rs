//! What was exported and what was left out.

use crate::store::Table;

/// Rows by table, in alphabetical order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(Vec<(&'static str, (u64, u64))>);

impl Counts {
    /// Counts a row; returns `keep`.
    pub(super) fn row<T: Table>(&mut self, keep: bool) -> bool {
        let (kept, left_out) = self.of::<T>();
        *if keep { kept } else { left_out } += 1;
        keep
    }

    fn of<T: Table>(&mut self) -> &mut (u64, u64) {
        // This is done for every row: a handful of tables is searched faster than a tree of their names.
        let at = self.0.iter().position(|(table, _)| *table == T::NAME).unwrap_or_else(|| {
            let at = self.0.partition_point(|(table, _)| *table < T::NAME);
            self.0.insert(at, (T::NAME, (0, 0)));
            at
        });
        &mut self.0[at].1
    }

    /// Counts rows that were not even looked at.
    pub(super) fn skipped<T: Table>(&mut self, rows: u64) {
        self.of::<T>().1 += rows;
    }

    /// Rows exported and rows left out, by table.
    pub fn tables(&self) -> impl Iterator<Item = (&'static str, (u64, u64))> {
        self.0.iter().copied()
    }

    /// Rows left out, of all tables.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.0.iter().map(|(_, (_, left_out))| left_out).sum()
    }
}
