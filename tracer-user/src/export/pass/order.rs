//! Rows in the order in which they are written.

use std::cmp::Reverse;

use crate::event::MonoNs;
use crate::store::StoreError;

/// Rows that come by start, put in order for nesting: of equal starts the longer first.
pub fn nested<T>(
    rows: impl Iterator<Item = Result<T, StoreError>>,
    span: impl Fn(&T) -> (MonoNs, MonoNs),
) -> impl Iterator<Item = Result<T, StoreError>> {
    let mut rows = rows.peekable();
    let mut ready: Vec<Result<T, StoreError>> = Vec::new();
    std::iter::from_fn(move || {
        if let Some(row) = ready.pop() {
            return Some(row);
        }
        let first = match rows.next()? {
            Ok(first) => first,
            error => return Some(error),
        };
        let (start, _) = span(&first);
        let same = |row: &Result<T, StoreError>| row.as_ref().is_ok_and(|row| span(row).0 == start);
        let Some(next) = rows.next_if(same) else { return Some(Ok(first)) };
        let mut group: Vec<_> = std::iter::once(Ok(first)).chain(std::iter::once(next)).flatten().collect();
        while let Some(Ok(row)) = rows.next_if(same) {
            group.push(row);
        }
        group.sort_by_key(|row| Reverse(span(row).1));
        ready.extend(group.into_iter().rev().map(Ok));
        ready.pop()
    })
}

/// Two streams sorted by start as one; of equal starts the left one first.
pub fn merge<T>(
    left: impl Iterator<Item = Result<T, StoreError>>,
    right: impl Iterator<Item = Result<T, StoreError>>,
    start: impl Fn(&T) -> MonoNs,
) -> impl Iterator<Item = Result<T, StoreError>> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    std::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some(Ok(a)), Some(Ok(b))) if start(b) < start(a) => right.next(),
        // An error on the right comes before rows that may belong after it.
        (Some(Ok(_)), Some(Err(_))) | (None, _) => right.next(),
        _ => left.next(),
    })
}
