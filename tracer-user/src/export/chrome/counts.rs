//! What was exported and what was left out.

use std::collections::BTreeMap;

use crate::store::Table;

/// Rows by table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<&'static str, (u64, u64)>);

impl Counts {
    /// Counts a row; returns `keep`.
    pub(super) fn row<T: Table>(&mut self, keep: bool) -> bool {
        let (kept, left_out) = self.0.entry(T::NAME).or_default();
        *if keep { kept } else { left_out } += 1;
        keep
    }

    /// Rows exported and rows left out, by table.
    pub fn tables(&self) -> impl Iterator<Item = (&'static str, (u64, u64))> {
        self.0.iter().map(|(table, counts)| (*table, *counts))
    }

    /// Rows left out, of all tables.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.0.values().map(|(_, left_out)| left_out).sum()
    }
}
