//! Table `gaps`.

use crate::event::{DeviceId, GapId, MonoNs, OpId, Pid, Text, Tid};
use crate::store::table::table;

table! {
    /// One maximal interval in which a GPU did no compute.
    pub struct Gap in "gaps", sorted by start_ns {
        /// Unique within the bundle.
        gap_id: GapId,
        /// The GPU.
        device: DeviceId,
        /// `idle` (no op), `exposed_comm` (only collectives), `exposed_copy` (only copies and sets).
        kind: Text,
        /// Start.
        start_ns: MonoNs,
        /// End.
        end_ns: MonoNs,
        /// The last op before it. NULL: none.
        prev_op: Option<OpId>,
        /// The op that ended it. NULL: none.
        next_op: Option<OpId>,
        /// The cause that most of its time has.
        cause: Text,
        /// The stage that most of its time has.
        stage: Text,
        /// What had drained the launch queue before it: the synchronising call. NULL: none.
        enabler: Option<Text>,
        /// The process whose op ended it.
        pid: Option<Pid>,
        /// The thread that launched that op.
        tid: Option<Tid>,
    }
}
