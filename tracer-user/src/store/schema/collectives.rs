//! Table `collectives`.

use crate::event::{DeviceId, MonoNs, OpId, Pid, StreamId, Text};
use crate::store::table::table;

table! {
    /// One collective operation on one rank: a kernel of NCCL or RCCL, with what the program says about it.
    pub struct Collective in "collectives", sorted by start_ns {
        /// Its kernel in `gpu_ops`. Calls of one group can share one.
        op_id: OpId,
        /// Process.
        pid: Pid,
        /// The GPU.
        device: DeviceId,
        /// CUDA stream.
        stream: StreamId,
        /// `allreduce`, `allgather` …, from the program or the kernel's name.
        op: Text,
        /// The communicator's or process group's name; of a recording NCCL's own number of it, which is the same on all
        /// ranks. NULL: not said.
        communicator: Option<Text>,
        /// This process's rank in the job. NULL: not said.
        rank: Option<i32>,
        /// Ranks that take part. NULL: not said.
        ranks: Option<i32>,
        /// Position among the collectives of this communicator on this rank, from 0; where the communicator is not said,
        /// among those of this device and stream. -1: not told (sends and receives).
        sequence: i64,
        /// Elements sent. NULL: not said.
        count: Option<i64>,
        /// Their type: `Float`, `BFloat16`. NULL: not said.
        data_type: Option<Text>,
        /// Bytes sent. NULL: not said, or of a type of unknown size.
        bytes: Option<i64>,
        /// Start on the device.
        start_ns: MonoNs,
        /// End on the device.
        end_ns: MonoNs,
    }
}
