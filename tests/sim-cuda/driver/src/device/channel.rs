//! A hardware channel: the queue of one stream, worked off strictly in order.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::device::data::DataJob;
use crate::device::rendezvous::Rendezvous;
use crate::hook;

/// Names a channel for the life of the process; never used again.
pub type ChannelKey = u64;

/// A point in a channel: reached when the operation with this number, and all before it, are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Channel.
    pub channel: ChannelKey,
    /// Number of the operation in it, from 1.
    pub seq: u64,
}

/// The parts of a device that work one operation at a time. Kernels have slots instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyEngine {
    /// Host to device.
    ToDevice,
    /// Device to host.
    ToHost,
    /// Within the device.
    Local,
    /// To another device.
    Peer,
}

/// When an event's recording was reached; 0 before.
#[derive(Debug, Default)]
pub struct RecordPoint(pub AtomicU64);

/// A function that a stream calls on the host.
#[derive(Clone, Copy)]
pub struct HostCall {
    /// The function.
    pub function: unsafe extern "C" fn(*mut c_void),
    /// Its argument.
    pub user: *mut c_void,
    /// What CUPTI hears of it.
    pub info: hook::HostOrigin,
}

// SAFETY: the caller of `cuLaunchHostFunc` gives the pointer to be used in a thread of the driver.
unsafe impl Send for HostCall {}

/// What an operation does.
#[derive(Clone)]
pub enum Work {
    /// Runs in a compute slot. `data` is the effect on memory, for a memset.
    Kernel {
        /// ns.
        duration: u64,
        /// Effect on memory.
        data: Option<DataJob>,
    },
    /// Runs in a compute slot until its peers have come and the bytes have moved.
    Collective(Arc<Rendezvous>),
    /// Runs on a copy engine.
    Copy {
        /// Which.
        engine: CopyEngine,
        /// ns.
        duration: u64,
        /// Effect on memory.
        data: Option<DataJob>,
    },
    /// Takes no time: a recording of an event, a wait for other channels, a release of memory.
    Marker {
        /// Event's recording to be marked as reached.
        point: Option<Arc<RecordPoint>>,
        /// Effect on memory.
        data: Option<DataJob>,
    },
    /// Calls back into the host.
    Host(HostCall),
}

impl Work {
    /// ns that it takes on the device.
    pub fn duration(&self) -> u64 {
        match self {
            Work::Kernel { duration, .. } | Work::Copy { duration, .. } => *duration,
            // At the least.
            Work::Collective(rendezvous) => rendezvous.transfer_ns,
            Work::Marker { .. } | Work::Host(_) => 0,
        }
    }

    /// Whether it occupies an engine of the device.
    pub fn is_device_work(&self) -> bool {
        matches!(self, Work::Kernel { .. } | Work::Collective(_) | Work::Copy { .. })
    }

    /// Whether the host has to act when it starts, so that the scheduler has to be awake then.
    pub fn needs_host(&self) -> bool {
        match self {
            // Its peers hear of its start from the process.
            Work::Host(_) | Work::Collective(_) => true,
            Work::Copy { data: Some(job), .. } | Work::Kernel { data: Some(job), .. } => job.is_large(),
            _ => false,
        }
    }
}

/// First start and last end of the operations of one graph launch.
pub struct GraphSpan {
    token: u64,
    device: u32,
    left: AtomicU32,
    start: AtomicU64,
    end: AtomicU64,
}

impl GraphSpan {
    /// A span over `operations` operations, to be reported with `token`.
    pub fn new(token: u64, device: u32, operations: u32) -> Arc<Self> {
        let (left, start) = (AtomicU32::new(operations), AtomicU64::new(u64::MAX));
        Arc::new(Self { token, device, left, start, end: AtomicU64::new(0) })
    }

    /// One operation is over; the last one reports.
    pub fn done(&self, start: u64, end: u64) {
        self.start.fetch_min(start, Ordering::Relaxed);
        self.end.fetch_max(end, Ordering::Relaxed);
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let (start, end) = (self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
            hook::op_done(self.token, self.device, start, end);
        }
    }
}

/// One operation in a channel.
pub struct Op {
    /// Number in its channel.
    pub seq: u64,
    /// What it does.
    pub work: Work,
    /// Earliest start: when it has come to the device.
    pub ready: u64,
    /// What it waits for, besides its predecessor.
    pub deps: Vec<Mark>,
    /// CUPTI's token, 0 for none.
    pub token: u64,
    /// Graph launch that it belongs to.
    pub span: Option<Arc<GraphSpan>>,
    /// When it started; 0 before.
    pub start: u64,
}

/// What the operation at the head of a channel is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not looked at yet, or there is none.
    Idle,
    /// It comes to the device at that time.
    AwaitReady(u64),
    /// It waits for another channel.
    AwaitDep(Mark),
    /// It waits for an engine or a compute slot.
    AwaitEngine,
    /// It runs until then.
    Running(u64),
    /// A collective runs, and not all of its peers do.
    AwaitPeers,
    /// A host function runs, or is about to.
    AwaitHost,
}

/// A channel.
pub struct Channel {
    /// Device.
    pub device: u32,
    /// Stream's priority; lower goes first.
    pub priority: i32,
    /// What is not over yet.
    pub queue: VecDeque<Op>,
    /// Head's state.
    pub state: State,
    /// Number of the last operation given.
    pub last_seq: u64,
    /// Number of the last operation that is over.
    pub done_seq: u64,
    /// The next operation cannot start before this.
    pub free_at: u64,
    /// Channels that wait for operations of this one.
    pub dependents: Vec<(u64, ChannelKey)>,
    /// Data jobs of its operations: (operation, ticket), both rising.
    pub tickets: VecDeque<(u64, u64)>,
    /// Operations at whose start the host has to act.
    pub alarms: VecDeque<u64>,
    /// The stream is destroyed: goes when all is done.
    pub closed: bool,
}

impl Channel {
    /// An empty channel.
    pub fn new(device: u32, priority: i32) -> Self {
        Self {
            device,
            priority,
            queue: VecDeque::new(),
            state: State::Idle,
            last_seq: 0,
            done_seq: 0,
            free_at: 0,
            dependents: Vec::new(),
            tickets: VecDeque::new(),
            alarms: VecDeque::new(),
            closed: false,
        }
    }

    /// The last data job of the operations up to `seq`.
    pub fn ticket_at(&self, seq: u64) -> u64 {
        self.tickets.iter().rev().find(|(s, _)| *s <= seq).map_or(0, |(_, ticket)| *ticket)
    }

    /// Notes that operation `seq` needs data job `ticket`.
    pub fn note_ticket(&mut self, seq: u64, ticket: u64, all_done: u64) {
        while self.tickets.front().is_some_and(|(_, t)| *t <= all_done) {
            self.tickets.pop_front();
        }
        let last = self.tickets.back().map_or(0, |(_, t)| *t);
        if ticket > last && ticket > all_done {
            self.tickets.push_back((seq, ticket));
        }
    }
}
