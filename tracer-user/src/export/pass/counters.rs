//! Counters over time: how busy a GPU is, and what a block device has to do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Pass;
use crate::event::{Interval, MonoNs};
use crate::export::ExportError;
use crate::export::select::Detail;
use crate::export::tracks::{Group, Row};
use crate::store::schema::BlockIo;

/// A counter's value from a moment on.
pub type Step = (MonoNs, i64);

/// A counter on its way through the recording.
pub struct Series {
    group: Group,
    row: Row,
    last: Option<Step>,
}

impl Series {
    /// A counter that has no value yet.
    pub fn new(group: Group, row: Row) -> Self {
        Self { group, row, last: None }
    }
}

impl Pass<'_> {
    /// Whether counters are exported.
    pub(super) fn counts_on(&self) -> bool {
        self.selection.detail() <= Detail::Chains && self.story.started < self.story.end
    }

    /// The recording in steps of time, for averages: a few hundred in what is shown.
    pub(super) fn bins(&self) -> Bins {
        let all = Interval::new(self.story.started, self.story.end);
        let shown = self.selection.shortest().unwrap_or(all.length()).0;
        let width =
            [100_000_000, 10_000_000, 1_000_000, 100_000].into_iter().find(|width| width * 200 <= shown);
        Bins { all, width: width.unwrap_or(10_000), bin: 0, sum: 0 }
    }

    /// The counter has these values.
    pub(super) fn steps(
        &mut self,
        series: &mut Series,
        steps: impl IntoIterator<Item = Step>,
    ) -> Result<(), ExportError> {
        for (time, value) in steps {
            if series.last.is_some_and(|(_, last)| last == value) {
                continue;
            }
            self.resume(series, time)?;
            series.last = Some((time, value));
            if self.selection.touches(time, time) {
                self.emit(series, time, value)?;
            }
        }
        Ok(())
    }

    /// No more values come.
    pub(super) fn last_step(&mut self, series: &mut Series) -> Result<(), ExportError> {
        self.resume(series, self.story.end)
    }

    /// Where a part of the time that is shown began since the last value, it has that value.
    fn resume(&mut self, series: &Series, before: MonoNs) -> Result<(), ExportError> {
        let Some((since, value)) = series.last else { return Ok(()) };
        let selection = self.selection;
        selection.begun(since, before).try_for_each(|start| self.emit(series, start, value))
    }

    fn emit(&mut self, series: &Series, time: MonoNs, value: i64) -> Result<(), ExportError> {
        let track = self.first(series.group, &series.row)?;
        self.sink.counter(track, time, value).map_err(ExportError::out)
    }
}

/// A sum over each step of time.
#[derive(Clone)]
pub struct Bins {
    all: Interval,
    width: i64,
    bin: i64,
    sum: i64,
}

impl Bins {
    fn of(&self, time: MonoNs) -> i64 {
        time.0.saturating_sub(self.all.start.0) / self.width
    }

    fn start(&self, bin: i64) -> MonoNs {
        MonoNs(self.all.start.0.saturating_add(bin.saturating_mul(self.width)))
    }

    /// Goes on to a later step: the one at hand has its value now, those in between have nothing.
    fn go_to(&mut self, bin: i64, value: impl Fn(i64, i64) -> i64, out: &mut Vec<Step>) {
        if bin <= self.bin {
            return;
        }
        out.push((self.start(self.bin), value(self.sum, self.width)));
        if bin > self.bin + 1 {
            out.push((self.start(self.bin + 1), 0));
        }
        (self.bin, self.sum) = (bin, 0);
    }
}

/// How much of the time a GPU does anything.
pub struct Busy {
    bins: Bins,
    /// Up to here it is known.
    until: MonoNs,
}

impl Busy {
    /// Nothing was done yet.
    pub fn new(bins: Bins) -> Self {
        Self { until: bins.all.start, bins }
    }

    /// It did this. Ops come in order of their start.
    pub fn op(&mut self, start: MonoNs, end: MonoNs, out: &mut Vec<Step>) {
        let (mut at, end) = (start.max(self.until), end.min(self.bins.all.end));
        while at < end {
            let bins = &mut self.bins;
            let bin = bins.of(at);
            bins.go_to(bin, percent, out);
            let (from, to) = (bins.start(bin), bins.start(bin + 1));
            if at == from && to <= end && bins.sum == 0 {
                // All steps that it fills at once: one op may last as long as the recording.
                let full = (end.0 - at.0) / bins.width;
                out.push((at, 100));
                bins.bin = bin + full;
                at = bins.start(bins.bin);
            } else {
                let part = to.min(end);
                bins.sum += part.0 - at.0;
                at = part;
            }
        }
        self.until = self.until.max(end);
    }

    /// No more ops come.
    pub fn finish(&mut self, out: &mut Vec<Step>) {
        self.bins.go_to(self.bins.bin + 2, percent, out);
    }
}

fn percent(sum: i64, width: i64) -> i64 {
    (sum * 100 + width / 2) / width
}

/// What a block device has to do.
pub struct Load {
    bins: Bins,
    /// Requests made and not completed: when they will be, and their bytes.
    open: BinaryHeap<Reverse<(MonoNs, i64)>>,
}

impl Load {
    /// No request was made yet.
    pub fn new(bins: Bins) -> Self {
        Self { bins, open: BinaryHeap::new() }
    }

    /// A request. They come in the order in which they were made.
    pub fn request(&mut self, io: &BlockIo, depth: &mut Vec<Step>, throughput: &mut Vec<Step>) {
        self.complete(io.queued_ns, depth, throughput);
        self.open.push(Reverse((io.completed_ns.max(io.queued_ns), io.bytes)));
        depth.push((io.queued_ns, self.open.len() as i64));
    }

    /// No more requests come.
    pub fn finish(&mut self, depth: &mut Vec<Step>, throughput: &mut Vec<Step>) {
        self.complete(MonoNs::MAX, depth, throughput);
        self.bins.go_to(self.bins.bin + 2, per_second, throughput);
    }

    fn complete(&mut self, until: MonoNs, depth: &mut Vec<Step>, throughput: &mut Vec<Step>) {
        while let Some(&Reverse((time, bytes))) = self.open.peek()
            && time <= until
        {
            self.open.pop();
            depth.push((time, self.open.len() as i64));
            if self.bins.all.start <= time && time < self.bins.all.end {
                self.bins.go_to(self.bins.of(time), per_second, throughput);
                self.bins.sum = self.bins.sum.saturating_add(bytes.max(0));
            }
        }
    }
}

fn per_second(sum: i64, width: i64) -> i64 {
    i64::try_from(i128::from(sum) * 1_000_000_000 / i128::from(width)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bins(length: i64, width: i64) -> Bins {
        Bins { all: Interval::new(MonoNs(1000), MonoNs(1000 + length)), width, bin: 0, sum: 0 }
    }

    /// A counter's value at a moment.
    fn at(steps: &[Step], time: i64) -> i64 {
        steps.iter().rev().find(|(from, _)| from.0 <= time).map_or(0, |step| step.1)
    }

    proptest! {
        #[test]
        fn busy_is_the_union_of_ops(mut ops in prop::collection::vec((900_i64..2100, 0_i64..300), 0..30)) {
            ops.sort_unstable();
            let (mut busy, mut steps) = (Busy::new(bins(1000, 50)), Vec::new());
            for (start, length) in &ops {
                busy.op(MonoNs(*start), MonoNs(start + length), &mut steps);
            }
            busy.finish(&mut steps);
            prop_assert!(steps.is_sorted_by_key(|step| step.0));
            for from in (1000..2000).step_by(50) {
                let works = |time: &i64| ops.iter().any(|(start, length)| (*start..start + length).contains(time));
                let expected = (from..from + 50).filter(works).count() as i64 * 2;
                prop_assert_eq!(at(&steps, from), expected, "at {}: {:?}", from, steps);
            }
        }

        #[test]
        fn depth_and_throughput_are_those_of_the_requests(
            mut requests in prop::collection::vec((900_i64..2100, 0_i64..300, 0_i64..100), 0..30),
        ) {
            requests.sort_unstable();
            let mut load = Load::new(bins(1000, 50));
            let (mut depth, mut throughput) = (Vec::new(), Vec::new());
            for &(queued, length, bytes) in &requests {
                load.request(&request(queued, queued + length, bytes), &mut depth, &mut throughput);
            }
            load.finish(&mut depth, &mut throughput);
            prop_assert!(depth.is_sorted_by_key(|step| step.0) && throughput.is_sorted_by_key(|step| step.0));
            for time in 900..2500 {
                let open = |(queued, length, _): &&(i64, i64, i64)| (*queued..queued + length).contains(&time);
                prop_assert_eq!(at(&depth, time), requests.iter().filter(open).count() as i64, "at {}", time);
            }
            for from in (1000..2000).step_by(50) {
                let done = requests.iter().filter(|(queued, length, _)| (from..from + 50).contains(&(queued + length)));
                let expected = done.map(|request| request.2).sum::<i64>() * 20_000_000;
                prop_assert_eq!(at(&throughput, from), expected, "at {}", from);
            }
        }
    }

    fn request(queued: i64, completed: i64, bytes: i64) -> BlockIo {
        BlockIo {
            request_id: crate::event::RequestId(1),
            pid: None,
            tid: None,
            comm: None,
            device: "vda".into(),
            op: "read".into(),
            sector: 0,
            bytes,
            queued_ns: MonoNs(queued),
            issued_ns: MonoNs(queued),
            completed_ns: MonoNs(completed),
            in_flight: 1,
            error: 0,
            throttled: None,
            swap: None,
            file: None,
        }
    }

    #[test]
    fn an_op_without_end_takes_no_time_to_count() {
        let (mut busy, mut steps) = (Busy::new(bins(i64::MAX - 2000, 10_000)), Vec::new());
        busy.op(MonoNs(1000), MonoNs::MAX, &mut steps);
        busy.finish(&mut steps);
        assert!(steps.len() < 5 && steps[0] == (MonoNs(1000), 100), "{steps:?}");
    }
}
