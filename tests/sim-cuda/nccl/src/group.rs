//! Groups: calls between start and end are put together and carried out at the end.

use std::cell::RefCell;

use crate::comm::Comm;
use crate::launch::{self, Operation};
use crate::result::{self, Result};

#[derive(Default)]
struct Group {
    depth: u32,
    joined: Vec<&'static Comm>,
    operations: Vec<Operation>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

fn with<T>(work: impl FnOnce(&mut Group) -> T) -> Result<T> {
    GROUP.try_with(|group| work(&mut group.borrow_mut())).map_err(|_| result::INTERNAL)
}

/// Begins a group, or one within it.
pub fn start() -> Result {
    with(|group| group.depth += 1)
}

/// Ends it; the outermost carries everything out.
pub fn end() -> Result {
    let due = with(|group| {
        group.depth = group.depth.checked_sub(1).ok_or(result::USAGE)?;
        Ok((group.depth == 0).then(|| std::mem::take(group)))
    })??;
    let Some(group) = due else { return Ok(()) };
    group.joined.iter().try_for_each(|comm| comm.complete())?;
    let mut left = group.operations;
    while let Some(first) = left.first().copied() {
        let goes_along = |op: &Operation| {
            std::ptr::eq(op.comm, first.comm)
                && op.stream == first.stream
                && op.kind.is_p2p() == first.kind.is_p2p()
        };
        let (now, later): (Vec<_>, Vec<_>) = left.into_iter().partition(goes_along);
        launch::launch(&now)?;
        left = later;
    }
    Ok(())
}

/// Carries an operation out, now or at the end of the group.
pub fn submit(operation: Operation) -> Result {
    let now = with(|group| {
        if group.depth > 0 {
            group.operations.push(operation);
        }
        group.depth == 0
    })?;
    if now { launch::launch(&[operation]) } else { Ok(()) }
}

/// Waits for the other ranks of a communicator, now or at the end of the group.
pub fn complete(comm: &'static Comm) -> Result {
    let now = with(|group| {
        if group.depth > 0 {
            group.joined.push(comm);
        }
        group.depth == 0
    })?;
    if now { comm.complete() } else { Ok(()) }
}
