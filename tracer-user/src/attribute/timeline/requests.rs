//! Block requests: found by their number, and by device and time.

use std::collections::HashMap;

use super::row::Request;
use crate::attribute::names::Name;
use crate::event::{Interval, MonoNs, RequestId};

/// The block requests of a recording.
#[derive(Debug, Default)]
pub struct Requests {
    /// By device, then by when they were made.
    rows: Vec<Request>,
    /// The latest completion among the requests of the same device up to and including this one: never decreases within a
    /// device, so that those still unfinished at a moment are found by binary search.
    latest: Vec<MonoNs>,
    /// Numbers with their rows, sorted.
    by_id: Vec<(RequestId, u32)>,
    devices: HashMap<Name, std::ops::Range<usize>>,
}

impl Requests {
    /// Sorts and indexes.
    #[must_use]
    pub fn new(mut requests: Vec<Request>) -> Self {
        requests.sort_unstable_by_key(|request| (request.device, request.queued, request.id));
        let mut latest = Vec::with_capacity(requests.len());
        let mut devices: HashMap<Name, std::ops::Range<usize>> = HashMap::new();
        let mut by_id: Vec<(RequestId, u32)> =
            requests.iter().zip(0..).map(|(request, index)| (request.id, index)).collect();
        by_id.sort_unstable();
        for (index, request) in requests.iter().enumerate() {
            let range = devices.entry(request.device).or_insert(index..index);
            let before = if range.end == range.start { MonoNs::MIN } else { latest[index - 1] };
            range.end = index + 1;
            latest.push(request.completed.max(before));
        }
        Self { rows: requests, latest, by_id, devices }
    }

    /// The request with this number.
    #[must_use]
    pub fn get(&self, id: RequestId) -> Option<&Request> {
        let first = self.by_id.partition_point(|&(number, _)| number < id);
        self.by_id
            .get(first)
            .filter(|&&(number, _)| number == id)
            .map(|&(_, index)| &self.rows[index as usize])
    }

    /// The requests of `device` that were unfinished at some moment of `time`, in the order in which they were made.
    pub fn during(&self, device: Name, time: Interval) -> impl Iterator<Item = &Request> {
        let range = self.devices.get(&device).cloned().unwrap_or_default();
        let first =
            range.start + self.latest[range.clone()].partition_point(|&completed| completed <= time.start);
        self.rows[first..range.end.max(first)]
            .iter()
            .take_while(move |request| request.queued < time.end)
            .filter(move |request| request.completed > time.start)
    }
}
