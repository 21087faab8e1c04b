//! What the driver's calls alone say of a device: without CUPTI there are no times of its work.
//!
//! A device can be idle only while nothing is queued. From the return of the wait that emptied the last queue to the next call
//! that sends work it certainly is: such gaps are *bounds*, since it may have become idle before the wait returned, and gets
//! to work only after the call. So a stretch with work queued is one row of `gpu_ops`, of the kind `queued`, from the first
//! call that sent work to the return of the wait that found all of it done.
//!
//! What is done is taken from waits only: for a stream, for an event in one, for all. A stream that nobody waits for counts as
//! working on. Queries are not looked at. All devices of a process are one, since calls do not name theirs.

use std::collections::HashMap;

use tracer_abi::kernel::CudaCallRecord;

use super::convert;
use super::row::GpuRow;
use super::words::WORDS;
use crate::event::{CorrelationId, DeviceId, Interval, MonoNs, OpId, Pid, RowId, Text, Tid};
use crate::record::inject::{FUNCTIONS, Role};
use crate::store::schema::{CudaApi, GpuOp};

/// Streams and events that are kept of a process; more are forgotten together, and their work counts as running on.
const MOST: usize = 1 << 16;
/// `CU_STREAM_LEGACY`.
const LEGACY: u64 = 1;
/// `CU_STREAM_PER_THREAD`.
const PER_THREAD: u64 = 2;

/// A stream of a process: its handle, or the thread whose default stream it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stream {
    Handle(u64),
    Thread(u32),
}

/// Numbers for the rows: those of other processes are beside them.
pub(super) struct Numbers<'a> {
    pub(super) next_op: &'a mut i64,
    pub(super) next_api: &'a mut i64,
}

/// A process whose calls are recorded.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    /// Streams with work that is not known to be done, with the last call that sent some.
    pending: HashMap<Stream, MonoNs>,
    /// Where each event was put, and when.
    events: HashMap<u64, (Stream, MonoNs)>,
    /// Since when work is queued, and the call that sent the first of it.
    busy: Option<(MonoNs, CorrelationId)>,
    /// Of this stretch: calls that sent work.
    sent: u64,
    calls: i64,
}

impl Bounds {
    /// Takes a call: its row, and that of the stretch which it ended.
    pub(super) fn take(
        &mut self,
        call: &CudaCallRecord,
        device: DeviceId,
        numbers: &mut Numbers<'_>,
        sink: &mut impl FnMut(GpuRow),
    ) {
        let Some(function) = FUNCTIONS.get(call.function as usize) else { return };
        let (start, end) = (MonoNs(call.start_ns as i64), MonoNs(call.end_ns.max(call.start_ns) as i64));
        self.calls += 1;
        let correlation = CorrelationId(self.calls);
        let pid = Pid(call.tgid as i32);
        sink(GpuRow::Api(CudaApi {
            id: RowId(*numbers.next_api),
            pid,
            tid: Tid(call.tid as i32),
            domain: Text::from("driver"),
            name: Text::from(function.symbol),
            start_ns: start,
            end_ns: end,
            correlation_id: correlation,
            result: call.result,
        }));
        *numbers.next_api += 1;
        let stream = match (call.stream, function.per_thread) {
            (PER_THREAD, _) | (0, true) => Stream::Thread(call.tid),
            (0 | LEGACY, _) => Stream::Handle(0),
            (handle, _) => Stream::Handle(handle),
        };
        if call.result != 0 {
            return;
        }
        match function.role {
            Role::Submits => self.send(stream, start, correlation),
            Role::Blocks => {
                self.send(stream, start, correlation);
                self.done(stream, start, end, pid, device, numbers, sink);
            }
            Role::Records => {
                if self.events.len() >= MOST {
                    self.events.clear();
                }
                self.events.insert(call.argument, (stream, start));
            }
            Role::WaitsForStream => self.done(stream, start, end, pid, device, numbers, sink),
            Role::WaitsForEvent => {
                if let Some((stream, put)) = self.events.get(&call.argument).copied() {
                    self.done(stream, put, end, pid, device, numbers, sink);
                }
            }
            Role::WaitsForAll => {
                self.pending.retain(|_, last| *last > start);
                self.end_if_empty(end, pid, device, numbers, sink);
            }
            Role::Host => {}
        }
    }

    /// The recording ends: what is queued is so until then.
    pub(super) fn finish(
        &mut self,
        pid: Pid,
        now: MonoNs,
        device: DeviceId,
        numbers: &mut Numbers<'_>,
        sink: &mut impl FnMut(GpuRow),
    ) {
        self.pending.clear();
        self.end_if_empty(now, pid, device, numbers, sink);
    }

    /// Calls that were taken.
    pub(super) fn calls(&self) -> u64 {
        self.calls.unsigned_abs()
    }

    fn send(&mut self, stream: Stream, at: MonoNs, correlation: CorrelationId) {
        if self.pending.len() >= MOST && !self.pending.contains_key(&stream) {
            // Never done: the stretch has no end any more, which takes nothing from the truth.
            return;
        }
        self.pending.insert(stream, at);
        self.sent += 1;
        self.busy.get_or_insert((at, correlation));
    }

    /// What was sent to a stream up to `until` is done at `end`.
    #[allow(clippy::too_many_arguments, reason = "one call's parts, and where its rows go")]
    fn done(
        &mut self,
        stream: Stream,
        until: MonoNs,
        end: MonoNs,
        pid: Pid,
        device: DeviceId,
        numbers: &mut Numbers<'_>,
        sink: &mut impl FnMut(GpuRow),
    ) {
        if self.pending.get(&stream).is_some_and(|last| *last <= until) {
            self.pending.remove(&stream);
            self.end_if_empty(end, pid, device, numbers, sink);
        }
    }

    fn end_if_empty(
        &mut self,
        end: MonoNs,
        pid: Pid,
        device: DeviceId,
        numbers: &mut Numbers<'_>,
        sink: &mut impl FnMut(GpuRow),
    ) {
        if !self.pending.is_empty() {
            return;
        }
        let Some((start, correlation)) = self.busy.take() else { return };
        let sent = std::mem::take(&mut self.sent);
        let time = Interval { start, end: end.max(start) };
        sink(GpuRow::Op(GpuOp {
            op_id: OpId(*numbers.next_op),
            device,
            correlation_id: correlation,
            ..convert::op(pid, &WORDS.queued, Text::from(format!("work of {sent} calls")), time, 0, 0, 0)
        }));
        *numbers.next_op += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracer_abi::kernel::RecordHeader;

    struct Bench {
        bounds: Bounds,
        busy: Vec<(i64, i64)>,
        calls: usize,
    }

    impl Bench {
        fn new() -> Self {
            Self { bounds: Bounds::default(), busy: Vec::new(), calls: 0 }
        }

        fn call(&mut self, symbol: &str, tid: u32, start: u64, end: u64, stream: u64, argument: u64) {
            let function =
                FUNCTIONS.iter().position(|function| function.symbol == symbol).expect("known") as u32;
            let header = RecordHeader { kind: 20, cpu: 0, time_ns: end };
            let record = CudaCallRecord {
                header,
                start_ns: start,
                end_ns: end,
                tid,
                tgid: 7,
                function,
                result: 0,
                stream,
                argument,
            };
            let (mut next_op, mut next_api) = (0, 0);
            let (busy, calls) = (&mut self.busy, &mut self.calls);
            let mut numbers = Numbers { next_op: &mut next_op, next_api: &mut next_api };
            self.bounds.take(&record, DeviceId(0), &mut numbers, &mut |row| match row {
                GpuRow::Op(op) => busy.push((op.start_ns.0, op.end_ns.0)),
                GpuRow::Api(_) => *calls += 1,
                _ => unreachable!("calls and stretches only"),
            });
        }
    }

    #[test]
    fn a_stretch_lasts_from_the_first_launch_to_the_wait_that_found_all_done() {
        let mut bench = Bench::new();
        bench.call("cuLaunchKernel", 7, 100, 100, 0x10, 0);
        bench.call("cuLaunchKernel", 7, 120, 120, 0x20, 0);
        bench.call("cuStreamSynchronize", 7, 130, 200, 0x10, 0);
        assert_eq!(bench.busy, [], "the other stream works on");
        bench.call("cuStreamSynchronize", 7, 210, 300, 0x20, 0);
        assert_eq!(bench.busy, [(100, 300)]);
        bench.call("cuMemcpyDtoH_v2", 7, 400, 450, 0, 64);
        bench.call("cuLaunchKernel_ptsz", 8, 500, 500, 0, 0);
        bench.call("cuStreamSynchronize", 7, 510, 520, 0, 0);
        assert_eq!(bench.busy, [(100, 300), (400, 450)], "another thread's default stream is another");
        bench.call("cuCtxSynchronize", 7, 530, 600, 0, 0);
        assert_eq!(bench.busy.last(), Some(&(500, 600)));
        assert_eq!(bench.calls, 8);
    }

    #[test]
    fn a_wait_proves_only_what_was_sent_before_it_began() {
        let mut bench = Bench::new();
        bench.call("cuLaunchKernel", 7, 100, 100, 0x10, 0);
        bench.call("cuLaunchKernel", 8, 150, 150, 0x10, 0);
        bench.call("cuStreamSynchronize", 7, 120, 200, 0x10, 0);
        assert_eq!(bench.busy, [], "the second launch came while the first was waited for");
        bench.call("cuEventRecord", 8, 210, 210, 0x10, 0xe);
        bench.call("cuLaunchKernel", 8, 220, 220, 0x10, 0);
        bench.call("cuEventSynchronize", 8, 230, 260, 0, 0xe);
        assert_eq!(bench.busy, [], "the event was before the last launch");
        bench.call("cuEventRecord", 8, 270, 270, 0x10, 0xe);
        bench.call("cuEventSynchronize", 8, 280, 300, 0, 0xe);
        assert_eq!(bench.busy, [(100, 300)]);
        bench.call("cuEventSynchronize", 8, 310, 320, 0, 0xf);
        assert_eq!(bench.busy.len(), 1, "an event that was never recorded says nothing");
    }

    proptest::proptest! {
        /// However calls come, stretches are disjoint, in order, and cover every call that sends work and is waited for.
        #[test]
        fn stretches_are_disjoint_and_cover_what_was_sent(
            steps in proptest::collection::vec((0_usize..5, 1_u64..4, 1_u64..50), 1..80),
        ) {
            let mut bench = Bench::new();
            let (mut now, mut sent) = (0, Vec::new());
            for (what, stream, length) in steps {
                now += length;
                match what {
                    0 | 1 => {
                        bench.call("cuLaunchKernel", 7, now, now, stream, 0);
                        sent.push(now as i64);
                    }
                    2 => bench.call("cuStreamSynchronize", 7, now, now + length, stream, 0),
                    3 => bench.call("cuEventRecord", 7, now, now, stream, stream),
                    _ => bench.call("cuEventSynchronize", 7, now, now + length, 0, stream),
                }
                now += length;
            }
            bench.call("cuCtxSynchronize", 7, now + 1, now + 2, 0, 0);
            proptest::prop_assert!(bench.busy.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            for at in sent {
                proptest::prop_assert!(bench.busy.iter().any(|(start, end)| (*start..*end).contains(&at)));
            }
        }
    }
}
