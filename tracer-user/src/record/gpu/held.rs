//! GPU work that waits for its launch.
//!
//! CUPTI hands over launches and GPU work in buffers of their own, in no order. A record that starts before its own
//! launch is wrong and must not become a row, so each piece of work is held until the launch is known, or until it is
//! clear that it will not come.

use std::collections::{HashMap, VecDeque};

use super::devices::Devices;
use super::launches::Launches;
use super::row::GpuRow;
use crate::event::{DurationNs, MonoNs, OpId, Pid, Text};
use crate::store::schema::{GpuOp, Loss};

/// How long a launch may be late. CUPTI's buffers are flushed several times a second.
const PATIENCE: DurationNs = DurationNs(1_000_000_000);
/// Records that are held per process.
const MOST: usize = 1 << 17;
/// Host and device clocks agree to about a microsecond at best.
const NOISE_NS: i64 = 1_000;
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
}

impl Waiting {
    /// Holds a record that was read at `now`.
    pub(super) fn add(&mut self, now: MonoNs, record: Held) {
        self.held.push_back((now, record));
    }

    /// Hands out what need not wait any longer. `all`: everything, since nothing more will come.
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
        sink: &mut impl FnMut(GpuRow),
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
                    Some(launch) if op.start_ns.0 < launch.0 - residual_ns - NOISE_NS => {
                        let reason = Text::from(format!("{}: starts before its launch", op.kind));
                        self.losses.push((reason, launch, op.end_ns.max(launch)));
                    }
                    _ => {
                        let mut op = *op;
                        op.device = devices.get_or_invent(pid, record.device);
                        op.op_id = OpId(*next_op);
                        *next_op += 1;
                        sink(GpuRow::Op(op));
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
    fn tell_losses(&mut self, pid: Pid, sink: &mut impl FnMut(GpuRow)) {
        let losses = std::mem::take(&mut self.losses);
        let row = |reason, start_ns, end_ns, count| {
            let source = Text::from("cupti.invalid");
            GpuRow::Loss(Loss { source, reason, pid: Some(pid), start_ns, end_ns, count })
        };
        if losses.len() <= MOST_LOSS_ROWS {
            for (reason, start, end) in losses {
                sink(row(reason, start, end, 1));
            }
            return;
        }
        let mut by_reason: HashMap<Text, (MonoNs, MonoNs, i64)> = HashMap::new();
        for (reason, start, end) in losses {
            let sum = by_reason.entry(reason).or_insert((start, end, 0));
            *sum = (sum.0.min(start), sum.1.max(end), sum.2 + 1);
        }
        for (reason, (start, end, count)) in by_reason {
            sink(row(reason, start, end, count));
        }
    }
}
