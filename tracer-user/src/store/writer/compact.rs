//! Many small parts into few large ones, at the end of a recording.
//!
//! Parts are sealed every few seconds for the sake of those who read along and of a recorder that gets killed. A recording of
//! an hour then has thousands of files, a tenth of them footers. When it ends, the rows of such a table are written once
//! more, part after part: in order of time within the new ones. Across all of them would ask for rows of most parts at once,
//! since an interval may have lasted for all of the recording.

use crate::store::Bundle;
use crate::store::error::StoreError;
use crate::store::schema::{TableVisitor, visit_tables};
use crate::store::table::Table;

/// Tables of fewer parts stay as they are.
const FEW_PARTS: usize = 4;
/// Tables whose parts have as many rows on average stay as they are: little is won, and it would take long.
const LARGE_PART: u64 = 16 * 1024;

/// Does it with each table that is worth it. A table with which it fails stays as it was.
pub fn compact(bundle: &Bundle) {
    visit_tables(&mut Compaction(bundle));
}

struct Compaction<'a>(&'a Bundle);

impl TableVisitor for Compaction<'_> {
    fn visit<T: Table>(&mut self) {
        // Nothing is lost by an error (a full disk, say): the parts are still there.
        let _ = compact_table::<T>(self.0);
    }
}

fn compact_table<T: Table>(bundle: &Bundle) -> Result<(), StoreError> {
    let parts = bundle.part_rows::<T>()?;
    if parts.len() < FEW_PARTS || parts.iter().sum::<u64>() > parts.len() as u64 * LARGE_PART {
        return Ok(());
    }
    let mut replacement = bundle.replacement::<T>()?;
    let mut written = Ok(());
    bundle.batches::<T>(|rows| {
        if written.is_ok() {
            written = replacement.append(rows);
        }
    })?;
    written.and_then(|()| replacement.commit())
}
