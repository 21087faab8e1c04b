//! What belongs together in a timeline: calls within calls, ops with their launches, collectives with their other ranks, and
//! each op with the one before it on its stream.

use std::collections::{HashMap, HashSet};

use super::{LossKind, Lost, MarkerKind, Meeting, NO_INDEX, Nested, Timeline};
use crate::attribute::names::Name;
use crate::collective::meetings;
use crate::event::{CLOCK_NOISE, ContextId, CorrelationId, Interval, MonoNs, OpId, Pid, StreamId};
use crate::store::schema;

/// Finds the row around each row. One that outlasts the row around it (a clock error) is cut.
pub fn nest<T: Nested>(rows: &mut [T]) {
    let mut open: Vec<u32> = Vec::new();
    for index in 0..rows.len() {
        let (thread, time) = (rows[index].thread(), rows[index].time());
        while let Some(&outer) = open.last() {
            let outer = &rows[outer as usize];
            if outer.thread() == thread && outer.time().end > time.start {
                break;
            }
            open.pop();
        }
        if let Some(&outer) = open.last() {
            let end = time.end.min(rows[outer as usize].time().end);
            rows[index].put_inside(outer, end);
        }
        open.push(index as u32);
    }
}

/// Joins each op with its launch, and takes out those that contradict it: an op cannot start before the call that
/// launched it began.
pub fn join_launches(timeline: &mut Timeline) {
    let mut launches: Vec<(Pid, CorrelationId, MonoNs, u32)> = timeline
        .api
        .iter()
        .enumerate()
        .filter(|(_, call)| !call.overhead)
        .map(|(index, call)| {
            let pid = timeline.threads[call.thread.0 as usize].pid;
            (pid, call.correlation, call.time.start, index as u32)
        })
        .collect();
    launches.sort_unstable();
    let mut ops = std::mem::take(&mut timeline.ops);
    ops.sort_unstable_by_key(|op| (op.device, op.time, op.id));
    let residual = timeline.clock_residual + CLOCK_NOISE;
    let source = timeline.names.str("gpu_ops: it starts before its own launch");
    ops.retain_mut(|op| {
        let key = (op.pid, op.correlation);
        let first = launches.partition_point(|&(pid, correlation, ..)| (pid, correlation) < key);
        let same = launches[first..].iter().take_while(|&&(pid, correlation, ..)| (pid, correlation) == key);
        // Ids wrap after 2³² calls: the latest launch before the op is its own.
        let latest_start = op.time.start + residual;
        let Some(launch) =
            same.clone().take_while(|launch| launch.2 <= latest_start).last().or_else(|| same.clone().next())
        else {
            return true;
        };
        let call = timeline.outermost(launch.3 as usize);
        op.launch = call as u32;
        timeline.api[call].copies = op.copy;
        timeline.api[launch.3 as usize].copies = op.copy;
        let began = launch.2;
        if op.time.start + residual < began {
            let time = Interval::new(op.time.start, op.time.end.max(began));
            timeline.losses.push(Lost { kind: LossKind::Invalid, source, pid: Some(op.pid), time });
            timeline.invalid_ops += 1;
            return false;
        }
        true
    });
    timeline.ops = ops;
}

/// Finds where threads set communicators up. Another tool's recording says of every moment in which range it was anyway.
pub fn find_set_ups(timeline: &mut Timeline) {
    if timeline.imported {
        return;
    }
    for (index, marker) in timeline.markers.iter().enumerate() {
        if marker.kind != MarkerKind::CommInit {
            continue;
        }
        let set_ups = timeline.set_ups.entry(marker.thread).or_default();
        let inside =
            set_ups.last().is_some_and(|&last| timeline.markers[last as usize].time.end > marker.time.start);
        if !inside {
            set_ups.push(index as u32);
        }
    }
}

/// Finds the ops of collectives whose ranks are all recorded.
pub fn join_meetings(timeline: &mut Timeline, rows: &[schema::Collective]) {
    let meetings = meetings(rows, timeline.clock_residual);
    if meetings.is_empty() {
        return;
    }
    let places: HashMap<OpId, usize> =
        timeline.ops.iter().enumerate().map(|(index, op)| (op.id, index)).collect();
    for meeting in meetings {
        let row = &rows[meeting.last];
        let Some(&last) = places.get(&row.op_id) else { continue };
        let number = timeline.meetings.len() as u32;
        timeline.meetings.push(Meeting { last, rank: row.rank });
        for member in meeting.members {
            if let Some(&op) = places.get(&rows[member].op_id) {
                timeline.meeting_of.insert(op, number);
            }
        }
    }
}

/// Finds the op before each op on its stream, and indexes the ops of each device by the latest end so far.
pub fn order_ops(timeline: &mut Timeline) {
    let mut last_on_stream: HashMap<(Pid, ContextId, StreamId), u32> = HashMap::new();
    let mut latest = MonoNs::MIN;
    let mut seen: HashSet<(Pid, Name)> = HashSet::new();
    for (device, range) in timeline.device_ops() {
        for index in range.clone() {
            let op = &timeline.ops[index];
            let first = seen.insert((op.pid, op.name));
            let before = last_on_stream.insert((op.pid, op.context, op.stream), index as u32);
            timeline.stream_predecessors.push(before.unwrap_or(NO_INDEX));
            timeline.ops[index].first_of_name = first;
            let op = &timeline.ops[index];
            latest = if index == range.start { op.end() } else { latest.max(op.end()) };
            timeline.latest_ends.push(latest);
        }
        timeline.device_ranges.insert(device, range);
    }
}
