//! Which functions threads were in while a GPU waited for their own code.
//!
//! A segment is named by a function only if a sample fell into it. Samples are taken at even distances, so those in all
//! segments of a cause together say how its time is shared out, whatever the length of each.

use std::collections::HashMap;

use super::ledger::MOST_OBJECTS;
use super::model::FunctionShare;
use crate::attribute::frame::{self, Place};
use crate::store::schema::{GapSegment, Sample};

/// The cause whose time is named by functions.
pub const CAUSE: &str = "host.cpu.user";

/// Collects segments, then samples.
#[derive(Debug, Default)]
pub struct FunctionTally {
    time: HashMap<(i32, i32), Vec<(i64, i64)>>,
    functions: HashMap<String, HashMap<String, u64>>,
    samples: u64,
}

impl FunctionTally {
    /// Takes in a segment.
    pub fn segment(&mut self, segment: &GapSegment) {
        if let (true, Some(pid), Some(tid)) = (&*segment.cause == CAUSE, segment.pid, segment.tid) {
            self.time.entry((pid.0, tid.0)).or_default().push((segment.start_ns.0, segment.end_ns.0));
        }
    }

    /// All segments were taken in. Devices may wait at the same time: a sample counts once.
    pub fn segments_end(&mut self) {
        for pieces in self.time.values_mut() {
            pieces.sort_unstable();
            let mut joined: Vec<(i64, i64)> = Vec::with_capacity(pieces.len());
            for &(start, end) in pieces.iter() {
                match joined.last_mut() {
                    Some(last) if start <= last.1 => last.1 = last.1.max(end),
                    _ => joined.push((start, end)),
                }
            }
            *pieces = joined;
        }
    }

    /// Counts a sample, if it fell into one of them.
    pub fn sample(&mut self, sample: &Sample) {
        let Some(pieces) = self.time.get(&(sample.pid.0, sample.tid.0)) else { return };
        let at = sample.time_ns.0;
        let begun = pieces.partition_point(|piece| piece.0 <= at);
        if begun.checked_sub(1).is_none_or(|last| at >= pieces[last].1) {
            return;
        }
        self.samples += 1;
        let Some(place) = frame::place(&sample.frames) else { return };
        let function = Place::label(&place.file, &place.function, None, "");
        let label = Place::label(&place.file, &place.function, place.line, &place.inside);
        *self.functions.entry(function).or_default().entry(label).or_default() += 1;
    }

    /// How many samples fell into the time, and the functions that they were in, the most frequent first.
    #[must_use]
    pub fn finish(self) -> (u64, Vec<FunctionShare>) {
        let mut functions: Vec<FunctionShare> = self
            .functions
            .into_iter()
            .map(|(name, labels)| FunctionShare {
                name,
                samples: labels.values().sum(),
                mostly: labels.into_iter().max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0))).unwrap_or_default().0,
            })
            .collect();
        functions.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.name.cmp(&b.name)));
        functions.truncate(MOST_OBJECTS);
        (self.samples, functions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{GapId, MonoNs, Pid, RowId, Tid};
    use crate::store::schema::Frame;

    fn segment(cause: &str, tid: i32, start: i64, end: i64) -> GapSegment {
        GapSegment {
            gap_id: GapId(1),
            seq: 0,
            start_ns: MonoNs(start),
            end_ns: MonoNs(end),
            cause: cause.into(),
            stage: "other".into(),
            object: None,
            pid: Some(Pid(7)),
            tid: Some(Tid(tid)),
            path: Vec::new(),
            evidence: Vec::new(),
            confidence: "exact".into(),
        }
    }

    fn sample(tid: i32, at: i64, function: &str, line: i32) -> Sample {
        let frame = Frame {
            kind: "python".into(),
            function: Some(function.into()),
            file: Some("/srv/train.py".into()),
            line: Some(line),
            module: None,
            address: None,
        };
        Sample {
            id: RowId(at),
            pid: Pid(7),
            tid: Tid(tid),
            time_ns: MonoNs(at),
            cpu: 0,
            mode: "user".into(),
            frames: if function.is_empty() { Vec::new() } else { vec![frame] },
            incomplete: false,
        }
    }

    #[test]
    fn only_samples_in_the_time_of_the_cause_count() {
        let mut tally = FunctionTally::default();
        for piece in
            [(CAUSE, 8, 100, 200), (CAUSE, 8, 150, 250), (CAUSE, 9, 300, 400), ("host.sleep", 8, 500, 600)]
        {
            tally.segment(&segment(piece.0, piece.1, piece.2, piece.3));
        }
        tally.segments_end();
        for (tid, at, function, line) in [
            (8, 99, "before", 1),
            (8, 100, "decode", 61),
            (8, 170, "decode", 61),
            (8, 249, "decode", 60),
            (8, 250, "after", 1),
            (8, 350, "another's", 1),
            (9, 350, "collate", 8),
            (9, 399, "", 0),
            (8, 550, "asleep", 1),
        ] {
            tally.sample(&sample(tid, at, function, line));
        }
        let (samples, functions) = tally.finish();
        let told: Vec<(&str, u64, &str)> =
            functions.iter().map(|f| (f.name.as_str(), f.samples, f.mostly.as_str())).collect();
        assert_eq!(samples, 5);
        assert_eq!(
            told,
            [("train.py: decode", 3, "train.py:61 decode"), ("train.py: collate", 1, "train.py:8 collate")]
        );
    }
}
