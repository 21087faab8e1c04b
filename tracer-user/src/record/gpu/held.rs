//! GPU work that waits for its launch.
//!
//! CUPTI hands over launches and GPU work in buffers of their own, in no order. A record that starts before its own
//! launch is wrong and must not become a row, so each piece of work is held until the launch is known, or until it is
//! clear that it will not come.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{Hash as _, Hasher as _};

use super::devices::Devices;
use super::launches::Launches;
use super::row::GpuRow;
use crate::event::{CLOCK_NOISE, DurationNs, MonoNs, OpId, Pid, Text};
use crate::store::schema::{GpuOp, Loss};

/// How long a launch may be late. CUPTI's buffers are flushed several times a second.
const PATIENCE: DurationNs = DurationNs(1_000_000_000);
/// Records that are held per process.
const MOST: usize = 1 << 17;
/// Rows of losses per drain before they are put together.
const MOST_LOSS_ROWS: usize = 256;

/// A record that is held.
#[derive(Debug)]
pub(super) struct Held {
    /// Joins with the launch.
    pub(super) correlation: u32,
    /// CUPTI's number of its device.
    pub(super) device: u32,
    /// What it is.
    pub(super) what: What,
}

/// What a held record is.
#[derive(Debug)]
pub(super) enum What {
    /// Work; `op_id` and `device` are not set yet.
    Op(Box<GpuOp>),
    /// A record without valid times.
    Invalid(Invalid),
}

/// A record without valid times: what it was, and the interval in which its work may have been.
#[derive(Clone, Debug)]
pub(super) struct Invalid {
    /// `kernel: start and end are 0`.
    pub(super) reason: Text,
    /// Not before this (the flush before the one that brought it), unless its launch tells better.
    pub(super) after: MonoNs,
    /// Not after this.
    pub(super) before: MonoNs,
}

/// What one process's records wait for.
#[derive(Default)]
pub(super) struct Waiting {
    held: VecDeque<(MonoNs, Held)>,
    losses: Vec<(Text, MonoNs, MonoNs)>,
    told: Told,
}

/// The records that were handed out last, to know one that comes twice.
#[derive(Default)]
struct Told {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Told {
    /// Whether the very same record came before.
    fn is_again(&mut self, op: &GpuOp) -> bool {
        let mut hasher = std::hash::DefaultHasher::new();
        (op.correlation_id.0, op.stream.0, op.graph_node_id, op.start_ns.0, op.end_ns.0, &*op.kind, op.bytes)
            .hash(&mut hasher);
        let key = hasher.finish();
        if !self.known.insert(key) {
            return true;
        }
        if self.order.len() == MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(key);
        false
    }
}

impl Waiting {
    /// Holds a record that was read at `now`.
    pub(super) fn add(&mut self, now: MonoNs, record: Held) {
        self.held.push_back((now, record));
    }

    /// Hands out what need not wait any longer, work with CUPTI's number of its device. `all`: everything, since nothing more
    /// will come.
    #[allow(
        clippy::too_many_arguments,
        reason = "the state of one process and of the whole recording meet here"
    )]
    pub(super) fn release(
        &mut self,
        pid: Pid,
        launches: &Launches,
        devices: &mut Devices,
        residual_ns: i64,
        now: MonoNs,
        all: bool,
        next_op: &mut i64,
        sink: &mut impl FnMut(GpuRow, u32),
    ) {
        let mut keep = VecDeque::new();
        let surplus = self.held.len().saturating_sub(MOST);
        for (index, (since, record)) in std::mem::take(&mut self.held).into_iter().enumerate() {
            let launch = launches.get(record.correlation);
            let due = all || index < surplus || now - since >= PATIENCE;
            let described =
                devices.get(pid, record.device).is_some() || matches!(record.what, What::Invalid(_));
            if !due && (launch.is_none() || !described) {
                keep.push_back((since, record));
                continue;
            }
            match record.what {
                What::Op(op) => match launch {
                    Some(launch) if op.start_ns.0 < launch.0 - residual_ns - CLOCK_NOISE.0 => {
                        let reason = Text::from(format!("{}: starts before its launch", op.kind));
                        // Its end may be right; if that is before the launch too, it ran before it was read.
                        let before = if op.end_ns > launch { op.end_ns } else { since };
                        self.losses.push((reason, launch, before.max(launch)));
                    }
                    // It takes nothing away, but is no second op.
                    _ if self.told.is_again(&op) => {
                        let reason = Text::from(format!("{}: the same record came twice", op.kind));
                        self.losses.push((reason, op.end_ns, op.end_ns));
                    }
                    _ => {
                        let mut op = *op;
                        op.device = devices.get_or_invent(pid, record.device);
                        op.op_id = OpId(*next_op);
                        *next_op += 1;
                        sink(GpuRow::Op(op), record.device);
                    }
                },
                What::Invalid(invalid) => {
                    let after = launch.unwrap_or(invalid.after).min(invalid.before);
                    self.losses.push((invalid.reason, after, invalid.before));
                }
            }
        }
        self.held = keep;
        self.tell_losses(pid, sink);
    }

    /// One row a record, unless they are very many: then one a reason.
    fn tell_losses(&mut self, pid: Pid, sink: &mut impl FnMut(GpuRow, u32)) {
        let losses = std::mem::take(&mut self.losses);
        let row = |reason, start_ns, end_ns, count| {
            let source = Text::from("cupti.invalid");
            GpuRow::Loss(Loss { source, reason, pid: Some(pid), start_ns, end_ns, count })
        };
        if losses.len() <= MOST_LOSS_ROWS {
            for (reason, start, end) in losses {
                sink(row(reason, start, end, 1), 0);
            }
            return;
        }
        let mut by_reason: HashMap<Text, (MonoNs, MonoNs, i64)> = HashMap::new();
        for (reason, start, end) in losses {
            let sum = by_reason.entry(reason).or_insert((start, end, 0));
            *sum = (sum.0.min(start), sum.1.max(end), sum.2 + 1);
        }
        for (reason, (start, end, count)) in by_reason {
            sink(row(reason, start, end, count), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Interval;
    use crate::record::gpu::convert;
    use tracer_abi::shim::{DeviceRecord, GraphRecord};

    const PID: Pid = Pid(7);

    struct Bench {
        waiting: Waiting,
        launches: Launches,
        devices: Devices,
        next_op: i64,
    }

    impl Bench {
        fn new() -> Self {
            let mut devices = Devices::default();
            let record = DeviceRecord {
                uuid: [1; 16],
                memory_bytes: 1,
                device: 0,
                multiprocessors: 1,
                capability_major: 9,
                capability_minor: 0,
                copy_engines: 1,
                is_mig: 0,
                name_length: 0,
                reserved: 0,
            };
            devices.describe(PID, &record, b"");
            Self { waiting: Waiting::default(), launches: Launches::default(), devices, next_op: 0 }
        }

        fn work(&mut self, correlation: u32, start: i64, device: u32) {
            let record = GraphRecord {
                start_ns: 0,
                end_ns: 0,
                correlation,
                device,
                context: 1,
                stream: 1,
                graph: 1,
                reserved: 0,
            };
            let time = Interval { start: MonoNs(start), end: MonoNs(start + 100) };
            let op = Box::new(convert::whole_graph(PID, &record, time));
            self.waiting.add(MonoNs(10_000), Held { correlation, device, what: What::Op(op) });
        }

        fn release(&mut self, now: i64, all: bool) -> Vec<GpuRow> {
            let mut rows = Vec::new();
            let (launches, devices) = (&self.launches, &mut self.devices);
            self.waiting.release(
                PID,
                launches,
                devices,
                500,
                MonoNs(now),
                all,
                &mut self.next_op,
                &mut |row, _| {
                    rows.push(row);
                },
            );
            rows
        }
    }

    #[test]
    fn work_waits_for_its_launch_and_not_for_ever() {
        let mut bench = Bench::new();
        bench.work(1, 5_000, 0);
        bench.work(2, 6_000, 0);
        assert_eq!(bench.release(20_000, false), []);
        bench.launches.add(2, MonoNs(5_500), 1);
        assert!(
            matches!(bench.release(30_000, false).as_slice(), [GpuRow::Op(op)] if op.start_ns == MonoNs(6_000))
        );
        assert!(
            matches!(bench.release(10_000 + PATIENCE.0, false).as_slice(), [GpuRow::Op(op)] if op.op_id == OpId(1))
        );
    }

    #[test]
    fn work_before_its_launch_is_a_loss_unless_the_clocks_explain_it() {
        let mut bench = Bench::new();
        bench.launches.add(1, MonoNs(5_000), 1);
        bench.work(1, 5_000 - 500 - CLOCK_NOISE.0, 0);
        bench.work(1, 5_000 - 500 - CLOCK_NOISE.0 - 1, 0);
        let rows = bench.release(20_000, false);
        let [GpuRow::Op(_), GpuRow::Loss(loss)] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!(
            (&*loss.reason, loss.start_ns, loss.end_ns),
            ("graph: starts before its launch", MonoNs(5_000), MonoNs(10_000))
        );
    }

    #[test]
    fn the_same_record_twice_is_one_op() {
        let mut bench = Bench::new();
        bench.launches.add(1, MonoNs(1_000), 1);
        bench.work(1, 5_000, 0);
        bench.work(1, 5_000, 0);
        bench.work(1, 5_001, 0);
        let rows = bench.release(20_000, false);
        let [GpuRow::Op(_), GpuRow::Op(_), GpuRow::Loss(loss)] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((&*loss.reason, loss.count), ("graph: the same record came twice", 1));
        assert_eq!(loss.start_ns, loss.end_ns, "nothing is unknown by it");
    }

    #[test]
    fn work_waits_for_its_device_to_be_described() {
        let mut bench = Bench::new();
        bench.launches.add(1, MonoNs(1_000), 1);
        bench.work(1, 5_000, 3);
        assert_eq!(bench.release(20_000, false), []);
        assert!(matches!(bench.release(20_000, true).as_slice(), [GpuRow::Op(op)] if op.device.0 == 1));
    }

    #[test]
    fn very_many_invalid_records_make_one_row_a_reason() {
        let mut bench = Bench::new();
        for index in 0..1_000 {
            let reason = Text::from(if index % 2 == 0 { "even" } else { "odd" });
            let invalid = Invalid { reason, after: MonoNs(1_000 + index), before: MonoNs(9_000) };
            let held = Held { correlation: 99, device: 0, what: What::Invalid(invalid) };
            bench.waiting.add(MonoNs(10_000), held);
        }
        let rows = bench.release(20_000, true);
        assert_eq!(rows.len(), 2);
        let counts: Vec<i64> =
            rows.iter().map(|row| if let GpuRow::Loss(loss) = row { loss.count } else { 0 }).collect();
        assert_eq!(counts, [500, 500]);
    }
}
