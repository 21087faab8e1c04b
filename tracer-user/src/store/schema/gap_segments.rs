//! Table `gap_segments`.

use crate::event::{GapId, MonoNs, Pid, RowId, Text, Tid};
use crate::store::table::{element, table};

element! {
    /// One hop of a causal chain, from the launching thread towards the cause.
    pub struct Hop {
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// The thread's name.
        thread: Text,
        /// `blocked`, `runnable`, `running`, or `device` for a leaf that is no thread.
        state: Text,
        /// System call or CUDA call at that time. NULL: none.
        call: Option<Text>,
        /// What it waited for or worked on. NULL: unknown or nothing.
        object: Option<Text>,
        /// How the next hop ended this one's wait: `woken by task`, `block completion`, `network receive`, `timer` … NULL:
        /// the leaf.
        edge: Option<Text>,
    }
}

element! {
    /// One row that a segment rests on.
    pub struct Evidence {
        /// The table.
        table: Text,
        /// Its row: `id`, `op_id` or `request_id`.
        row: RowId,
    }
}

table! {
    /// One piece of one gap with one cause. A gap's segments are disjoint, ordered and cover it.
    pub struct GapSegment in "gap_segments", sorted by start_ns {
        /// The gap.
        gap_id: GapId,
        /// Position in the gap, from 0, in order of time.
        seq: i32,
        /// Start.
        start_ns: MonoNs,
        /// End.
        end_ns: MonoNs,
        /// Code of the cause, see docs/causes.md.
        cause: Text,
        /// What the program was at: `data_loading`, `h2d`, `forward_backward`, `communication`, `checkpoint`, `serving`,
        /// `startup`, `other`.
        stage: Text,
        /// File, device, peer, lock, culprit … of the cause.
        object: Option<Text>,
        /// The process at the end of the chain.
        pid: Option<Pid>,
        /// The thread at the end of the chain.
        tid: Option<Tid>,
        /// The chain, from the launching thread to the cause.
        path: Vec<Hop>,
        /// The rows that it rests on.
        evidence: Vec<Evidence>,
        /// `exact` (edges recorded as they happened) or `inferred`.
        confidence: Text,
    }
}
