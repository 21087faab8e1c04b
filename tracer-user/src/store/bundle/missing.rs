//! Rows that a recording once had: parts that somebody removed, or that a copy of the folder left behind.

use super::Bundle;
use crate::event::{MonoNs, Text};
use crate::store::error::StoreError;
use crate::store::schema::{Gap, GapSegment, Loss, TableVisitor, visit_tables};
use crate::store::table::Table;

impl Bundle {
    /// Rows that `meta.json` counts and no part holds, as losses over the whole recording, a row a table: when they were is
    /// not known any more. A recording that still runs, or whose recorder was killed, counts none.
    ///
    /// # Errors
    /// A part cannot be opened; the error names it.
    pub fn missing(&self) -> Result<Vec<Loss>, StoreError> {
        let mut search = Search { bundle: self, missing: Vec::new(), failed: None };
        if self.meta.ended_ns.is_some() {
            visit_tables(&mut search);
        }
        search.failed.map_or(Ok(search.missing), Err)
    }
}

struct Search<'a> {
    bundle: &'a Bundle,
    missing: Vec<Loss>,
    failed: Option<StoreError>,
}

impl TableVisitor for Search<'_> {
    fn visit<T: Table>(&mut self) {
        let meta = self.bundle.meta();
        let counted = meta.rows.get(T::NAME).copied().unwrap_or_default();
        // What the analysis makes anew is no loss.
        if counted == 0 || self.failed.is_some() || [Gap::NAME, GapSegment::NAME].contains(&T::NAME) {
            return;
        }
        let there = match self.bundle.count::<T>() {
            Ok(there) => there,
            Err(error) => {
                self.failed = Some(error);
                return;
            }
        };
        if there < counted {
            self.missing.push(Loss {
                source: Text::from("store"),
                reason: Text::from(format!("{}: parts of it are gone", T::NAME)),
                pid: None,
                start_ns: MonoNs(meta.started_ns),
                end_ns: MonoNs(meta.ended_ns.unwrap_or(i64::MAX).max(meta.started_ns)),
                count: i64::try_from(counted - there).unwrap_or(i64::MAX),
            });
        }
    }
}
