//! When the calls that launch work began.

use std::collections::{HashMap, VecDeque};

use crate::event::MonoNs;

/// Calls that are remembered per process. Work starts at most that many calls after its launch, or is not checked.
const MOST: usize = 1 << 17;

/// Start of the API calls of one process, by correlation id.
#[derive(Default)]
pub(super) struct Launches {
    starts: HashMap<u32, (MonoNs, u32)>,
    order: VecDeque<u32>,
}

impl Launches {
    /// Takes a call. Of nested calls with one id (runtime around driver) the outermost counts.
    pub(super) fn add(&mut self, correlation: u32, start: MonoNs, thread: u32) {
        if let Some(known) = self.starts.get_mut(&correlation) {
            known.0 = start.min(known.0);
            return;
        }
        if self.order.len() == MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.starts.remove(&oldest);
        }
        self.order.push_back(correlation);
        self.starts.insert(correlation, (start, thread));
    }

    /// When the call with this id began.
    pub(super) fn get(&self, correlation: u32) -> Option<MonoNs> {
        self.starts.get(&correlation).map(|(start, _)| *start)
    }

    /// When and in which thread (its number in the process) the call with this id began.
    pub(super) fn call(&self, correlation: u32) -> Option<(MonoNs, u32)> {
        self.starts.get(&correlation).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_call_counts_and_old_ones_are_forgotten() {
        let mut launches = Launches::default();
        launches.add(1, MonoNs(20), 1);
        launches.add(1, MonoNs(10), 1);
        launches.add(1, MonoNs(30), 1);
        assert_eq!(launches.get(1), Some(MonoNs(10)));
        for id in 2..MOST as u32 + 2 {
            launches.add(id, MonoNs(40), 1);
        }
        assert_eq!((launches.get(1), launches.get(2)), (None, Some(MonoNs(40))));
        assert_eq!(launches.starts.len(), MOST);
    }
}
