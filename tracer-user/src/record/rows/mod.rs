//! Rows out of records: one file a table.

mod block_io;
mod interrupts;
mod memory_stalls;
mod off_cpu;
mod retransmits;
mod symbols;
mod syscall_counts;
mod syscalls;

use std::collections::{HashMap, VecDeque};

use crate::event::{Pid, RowId, Text, Tid};

pub use block_io::block_io_row;
pub use interrupts::interrupt_row;
pub use memory_stalls::memory_stall_row;
pub use off_cpu::{off_cpu_row, still_off_row};
pub use retransmits::retransmit_row;
pub use symbols::{KernelSymbols, addresses_of};
pub use syscall_counts::syscall_count_row;
pub use syscalls::{still_running_row, syscall_row};

/// Row ids of one table, counted from 1.
#[derive(Default)]
pub struct RowIds(i64);

impl RowIds {
    /// The next one.
    pub fn next_id(&mut self) -> RowId {
        self.0 += 1;
        RowId(self.0)
    }
}

/// The devices of the requests that completed last, for the wake edges that name them. A completion's record is written
/// before the wake-up that it causes, so a look-up misses only when the record was lost, or the thread stayed runnable
/// for longer than it takes [`RecentRequests::KEPT`] requests to complete.
#[derive(Default)]
pub struct RecentRequests {
    devices: HashMap<u64, Text>,
    order: VecDeque<u64>,
}

impl RecentRequests {
    const KEPT: usize = 1 << 16;

    /// A request completed.
    pub fn completed(&mut self, request_id: u64, device: Text) {
        if self.devices.insert(request_id, device).is_none() {
            self.order.push_back(request_id);
        }
        if self.order.len() > Self::KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.devices.remove(&oldest);
        }
    }

    /// The device of a request.
    #[must_use]
    pub fn device(&self, request_id: u64) -> Option<Text> {
        self.devices.get(&request_id).cloned()
    }
}

/// A pid out of a record, 0 being none.
fn some_pid(tgid: u32) -> Option<Pid> {
    (tgid != 0).then_some(Pid(tgid as i32))
}

/// A tid out of a record, 0 being none.
fn some_tid(tid: u32) -> Option<Tid> {
    (tid != 0).then_some(Tid(tid as i32))
}

#[cfg(test)]
mod tests;
