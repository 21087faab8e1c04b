//! The rows of a table by time, across parts, without holding them all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::vec::IntoIter;

use super::read::Part;
use crate::event::MonoNs;
use crate::store::error::StoreError;
use crate::store::table::Table;

/// An iterator over the rows of a table by time.
///
/// A merge of parts, each of which is sorted. Parts overlap in time, since a row is written when its interval has ended and
/// sorted by where it began; a part is decoded only from the moment at which its first row may be the next one.
pub struct Scan<T> {
    /// Not yet begun, the earliest last.
    waiting: Vec<(usize, Part)>,
    open: Vec<Cursor<T>>,
    /// The next row's time of each open part, the part's number, and its place in `open`. Of equal times the earlier part
    /// comes first, as in one stable sort.
    next: BinaryHeap<Reverse<(MonoNs, usize, usize)>>,
    failed: bool,
}

struct Cursor<T> {
    number: usize,
    part: Part,
    rows: IntoIter<T>,
    head: Option<T>,
}

impl<T: Table> Scan<T> {
    pub(super) fn new(parts: Vec<Part>) -> Self {
        let mut parts: Vec<(usize, Part)> = parts.into_iter().enumerate().collect();
        parts.sort_by_key(|(number, part)| Reverse((part.first, *number)));
        Self { waiting: parts, open: Vec::new(), next: BinaryHeap::new(), failed: false }
    }

    fn step(&mut self) -> Result<Option<T>, StoreError> {
        while let Some((_, part)) = self.waiting.last()
            && self.next.peek().is_none_or(|Reverse((time, ..))| part.first <= *time)
        {
            let Some((number, part)) = self.waiting.pop() else { break };
            self.open.push(Cursor { number, part, rows: Vec::new().into_iter(), head: None });
            self.refill(self.open.len() - 1, MonoNs::MIN)?;
        }
        let Some(Reverse((time, _, index))) = self.next.pop() else { return Ok(None) };
        let row = self.open[index].head.take();
        self.refill(index, time)?;
        Ok(row)
    }

    fn refill(&mut self, index: usize, after: MonoNs) -> Result<(), StoreError> {
        let cursor = &mut self.open[index];
        while cursor.head.is_none() {
            cursor.head = cursor.rows.next();
            if cursor.head.is_none() {
                match cursor.part.next_batch()? {
                    Some(rows) => cursor.rows = rows.into_iter(),
                    None => return Ok(()),
                }
            }
        }
        if let Some(head) = &cursor.head {
            let time = head.sort_key();
            if time < after {
                return Err(cursor.part.unsorted());
            }
            self.next.push(Reverse((time, cursor.number, index)));
        }
        Ok(())
    }
}

impl<T: Table> Iterator for Scan<T> {
    type Item = Result<T, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let step = self.step();
        self.failed = step.is_err();
        step.transpose()
    }
}
