//! Which collective of which communicator a kernel is: by the calls of NCCL that launched it.
//!
//! A call outside of a group launches its own kernel, within the call's own range. Calls in a group launch when the outermost
//! group ends, within that call's range, on the same thread; the library puts those of one communicator together.

use std::collections::{HashMap, VecDeque};

use tracer_abi::shim::{NcclFunction, NcclRecord};

use super::launches::Launches;
use crate::collective::{of_kernel, operation};
use crate::event::{DeviceId, Interval, MonoNs, StreamId, Text};
use crate::store::schema::{Collective, GpuOp};

/// Ranges that are remembered per thread: kernels are known when their buffer comes, a tenth of a second later.
const MOST_SPANS: usize = 1 << 14;
/// Calls of one group that are remembered.
const MOST_CALLS: usize = 1 << 12;
/// Threads and communicators that are remembered.
const MOST: usize = 1 << 10;

#[derive(Clone, Copy)]
struct Call {
    function: NcclFunction,
    comm: u64,
    bytes: u64,
    sequence: u64,
}

/// A range in which kernels can have been launched, with the calls that they are for.
struct Span {
    time: Interval,
    calls: Vec<Call>,
}

#[derive(Default)]
struct Thread {
    /// Calls of the group that is open.
    group: Vec<Call>,
    spans: VecDeque<Span>,
}

/// This process's part of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    rank: i32,
    device: i32,
}

#[derive(Default)]
struct Comm {
    ranks: i32,
    members: Vec<Member>,
}

/// What one process said of its communicators and calls.
#[derive(Default)]
pub(super) struct Nccl {
    comms: HashMap<u64, Comm>,
    threads: HashMap<u32, Thread>,
    /// Kernels of collectives so far, where no call says more.
    counts: HashMap<(DeviceId, StreamId), i64>,
}

impl Nccl {
    /// Takes a call that has returned.
    pub(super) fn add(&mut self, record: &NcclRecord, time: Interval) {
        let Some(function) = NcclFunction::from_raw(record.function) else { return };
        if function.is_about_communicator() {
            return self.communicator(record);
        }
        if self.threads.len() >= MOST && !self.threads.contains_key(&record.thread) {
            return;
        }
        let thread = self.threads.entry(record.thread).or_default();
        let call = Call { function, comm: record.comm, bytes: record.bytes, sequence: record.sequence };
        match function {
            NcclFunction::GroupStart if record.depth <= 1 => thread.group.clear(),
            NcclFunction::GroupEnd if record.depth == 0 => {
                let calls = std::mem::take(&mut thread.group);
                thread.push(Span { time, calls });
            }
            NcclFunction::GroupStart | NcclFunction::GroupEnd => {}
            _ if record.depth > 0 => {
                if thread.group.len() < MOST_CALLS {
                    thread.group.push(call);
                }
            }
            _ => thread.push(Span { time, calls: vec![call] }),
        }
    }

    fn communicator(&mut self, record: &NcclRecord) {
        let full = self.comms.len() >= MOST && !self.comms.contains_key(&record.comm);
        let ranks = i32::try_from(record.ranks).unwrap_or(0);
        if record.comm == 0 || ranks == 0 || full {
            return;
        }
        let comm = self.comms.entry(record.comm).or_default();
        comm.ranks = ranks;
        let member = Member { rank: record.rank, device: record.device };
        if (0..ranks).contains(&member.rank) && !comm.members.contains(&member) && comm.members.len() < MOST {
            comm.members.push(member);
        }
    }

    /// The collectives that a kernel is for, which began on CUPTI's device `device`; one of which nothing is said, if none
    /// is known.
    pub(super) fn collectives(&mut self, op: &GpuOp, device: u32, launches: &Launches) -> Vec<Collective> {
        let launch = launches.call(op.correlation_id.0 as u32);
        let calls = launch.map_or_else(Vec::new, |(moment, thread)| self.calls(thread, moment, &op.name));
        let mut rows: Vec<Collective> =
            calls.iter().filter_map(|call| self.row(op, device as i32, call)).collect();
        if rows.is_empty() {
            let count = self.counts.entry((op.device, op.stream)).or_default();
            rows.push(plain(op, Text::from(operation(&op.name)), *count));
            *count += 1;
        }
        if let ([row], Some((data_type, size))) = (rows.as_mut_slice(), data_type(&op.name)) {
            row.data_type = Some(Text::from(data_type));
            row.count = row.bytes.map(|bytes| bytes / size);
        }
        rows
    }

    /// The calls that a kernel launched at `moment` can be for.
    fn calls(&self, thread: u32, moment: MonoNs, kernel: &str) -> Vec<Call> {
        let Some(thread) = self.threads.get(&thread) else { return Vec::new() };
        let end = thread.spans.partition_point(|span| span.time.start <= moment);
        let Some(span) = end.checked_sub(1).and_then(|index| thread.spans.get(index)) else {
            return Vec::new();
        };
        if span.time.end < moment {
            return Vec::new();
        }
        // Sends and receives of a group make a kernel of their own.
        let between_pairs = kernel.contains("SendRecv");
        let by_pairs = |function| {
            matches!(
                function,
                NcclFunction::Send
                    | NcclFunction::Recv
                    | NcclFunction::AlltoAll
                    | NcclFunction::Gather
                    | NcclFunction::Scatter
            )
        };
        span.calls.iter().copied().filter(|call| by_pairs(call.function) == between_pairs).collect()
    }

    fn row(&self, op: &GpuOp, device: i32, call: &Call) -> Option<Collective> {
        let comm = self.comms.get(&call.comm);
        let members = comm.map_or(&[][..], |comm| &comm.members);
        let here: Vec<&Member> = members.iter().filter(|member| member.device == device).collect();
        // Another device's call of the same group.
        if here.is_empty() && members.iter().any(|member| member.device >= 0) {
            return None;
        }
        let sequence = match members.len() {
            // Each rank of the process calls in its turn; which of them this is is told by the device.
            several @ 2.. => call.sequence / several as u64,
            _ => call.sequence,
        };
        let known = call.function.is_collective() && call.sequence != u64::MAX && call.comm != 0;
        let mut row = plain(op, Text::from(call.function.op()), if known { sequence as i64 } else { -1 });
        row.communicator = (call.comm != 0).then(|| Text::from(format!("{:016x}", call.comm)));
        row.rank = if let [only] = here[..] { Some(only.rank) } else { None };
        row.ranks = comm.map(|comm| comm.ranks);
        row.bytes = i64::try_from(call.bytes).ok();
        Some(row)
    }
}

impl Thread {
    fn push(&mut self, span: Span) {
        if self.spans.len() == MOST_SPANS {
            self.spans.pop_front();
        }
        // A thread's calls return in order; a hostile one's need not.
        if self.spans.back().is_none_or(|last| last.time.start <= span.time.start) {
            self.spans.push_back(span);
        }
    }
}

fn plain(op: &GpuOp, name: Text, sequence: i64) -> Collective {
    let time = Interval { start: op.start_ns, end: op.end_ns };
    Collective { sequence, ..of_kernel(op.op_id, op.pid, op.device, op.stream, name, time) }
}

/// The type in a kernel's name, and the bytes of an element.
fn data_type(kernel: &str) -> Option<(&str, i64)> {
    kernel.split(['_', '(']).find_map(|word| {
        let size = match word {
            "i8" | "u8" | "f8e4m3" | "f8e5m2" => 1,
            "f16" | "bf16" => 2,
            "i32" | "u32" | "f32" => 4,
            "i64" | "u64" | "f64" => 8,
            _ => return None,
        };
        Some((word, size))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Pid;
    use crate::event::{CorrelationId, OpId};
    use crate::record::gpu::convert;
    use tracer_abi::shim::KernelRecord;

    const COMM: u64 = 0xC0;

    fn record(function: NcclFunction, start: u64, end: u64, depth: u32, sequence: u64) -> NcclRecord {
        NcclRecord {
            start_ns: start,
            end_ns: end,
            comm: if function.op().is_empty() { 0 } else { COMM },
            bytes: 4096,
            sequence,
            function: function as u32,
            thread: 5,
            depth,
            ranks: 0,
            rank: -1,
            device: -1,
            reserved: 0,
        }
    }

    fn member(rank: i32, device: i32) -> NcclRecord {
        NcclRecord { comm: COMM, ranks: 4, rank, device, ..record(NcclFunction::CommInitRank, 1, 2, 0, 0) }
    }

    fn add(nccl: &mut Nccl, record: NcclRecord) {
        let time = Interval { start: MonoNs(record.start_ns as i64), end: MonoNs(record.end_ns as i64) };
        nccl.add(&record, time);
    }

    fn kernel(name: &str, correlation: u32) -> GpuOp {
        let record = KernelRecord {
            start_ns: 0,
            end_ns: 0,
            name: 0,
            graph_node: 0,
            correlation,
            device: 0,
            context: 1,
            stream: 7,
            graph: 0,
            grid: [1; 3],
            block: [1; 3],
            channel: 0,
        };
        let time = Interval { start: MonoNs(1_000), end: MonoNs(2_000) };
        let op = convert::kernel(Pid(9), &record, Text::from(name), time);
        GpuOp { op_id: OpId(3), correlation_id: CorrelationId(correlation.into()), ..op }
    }

    const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";

    #[test]
    fn a_kernel_is_the_call_that_launched_it() {
        let (mut nccl, mut launches) = (Nccl::default(), Launches::default());
        add(&mut nccl, member(2, 0));
        add(&mut nccl, record(NcclFunction::AllReduce, 100, 200, 0, 0));
        add(&mut nccl, record(NcclFunction::AllReduce, 300, 400, 0, 1));
        launches.add(8, MonoNs(350), 5);
        let rows = nccl.collectives(&kernel(ALL_REDUCE, 8), 0, &launches);
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!(
            (row.sequence, row.rank, row.ranks, row.bytes, row.count),
            (1, Some(2), Some(4), Some(4096), Some(1024))
        );
        assert_eq!((row.op.as_str(), row.communicator.as_deref()), ("allreduce", Some("00000000000000c0")));
        // Launched between the two: nothing is known of it.
        launches.add(9, MonoNs(250), 5);
        let rows = nccl.collectives(&kernel(ALL_REDUCE, 9), 0, &launches);
        assert_eq!((rows[0].communicator.as_deref(), rows[0].op.as_str()), (None, "allreduce"));
    }

    #[test]
    fn calls_of_a_group_are_launched_at_its_end() {
        let (mut nccl, mut launches) = (Nccl::default(), Launches::default());
        add(&mut nccl, member(0, 0));
        for (function, start, depth, sequence) in [
            (NcclFunction::GroupStart, 10, 1, 0),
            (NcclFunction::GroupStart, 20, 2, 0),
            (NcclFunction::AllReduce, 30, 2, 4),
            (NcclFunction::Send, 40, 2, u64::MAX),
            (NcclFunction::GroupEnd, 50, 1, 0),
            (NcclFunction::AllGather, 60, 1, 5),
            (NcclFunction::GroupEnd, 70, 0, 0),
        ] {
            add(&mut nccl, record(function, start, start + 9, depth, sequence));
        }
        launches.add(1, MonoNs(75), 5);
        let ops = |rows: Vec<Collective>| rows.iter().map(|row| row.op.to_string()).collect::<Vec<_>>();
        assert_eq!(ops(nccl.collectives(&kernel(ALL_REDUCE, 1), 0, &launches)), ["allreduce", "allgather"]);
        assert_eq!(ops(nccl.collectives(&kernel("ncclDevKernel_SendRecv", 1), 0, &launches)), ["send"]);
    }

    #[test]
    fn several_ranks_of_one_process_are_told_by_their_devices() {
        let (mut nccl, mut launches) = (Nccl::default(), Launches::default());
        add(&mut nccl, member(0, 0));
        add(&mut nccl, member(1, 1));
        add(&mut nccl, record(NcclFunction::AllReduce, 10, 20, 0, 7));
        launches.add(1, MonoNs(15), 5);
        let rows = nccl.collectives(&kernel(ALL_REDUCE, 1), 1, &launches);
        assert_eq!((rows[0].rank, rows[0].sequence), (Some(1), 3));
    }
}
