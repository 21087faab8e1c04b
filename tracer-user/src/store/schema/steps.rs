//! Table `steps`.

use crate::event::{DeviceId, DurationNs, MonoNs, Text};
use crate::store::table::table;

table! {
    /// One step of a training or serving loop on one GPU, from the end of the work of the step before it to the end of its
    /// own. Its length is `compute_ns + idle_ns + exposed_copy_ns + exposed_comm_ns`, and those three gap times are the sum of
    /// the times by stage.
    pub struct Step in "steps", sorted by start_ns {
        /// Its number on this GPU, from 0.
        step: i64,
        /// The GPU.
        device: DeviceId,
        /// Start.
        start_ns: MonoNs,
        /// End.
        end_ns: MonoNs,
        /// `range` (the program or its profiler marked steps) or `sequence` (the GPU's work repeats).
        found_by: Text,
        /// The marked range. NULL: found from the sequence.
        range: Option<Text>,
        /// Ops launched in it.
        ops: i64,
        /// Time with some computing kernel running.
        compute_ns: DurationNs,
        /// Time with no op.
        idle_ns: DurationNs,
        /// Time with only copies and sets.
        exposed_copy_ns: DurationNs,
        /// Time with only collectives.
        exposed_comm_ns: DurationNs,
        /// Gap time of stage `data_loading`.
        data_loading_ns: DurationNs,
        /// Gap time of stage `h2d`.
        h2d_ns: DurationNs,
        /// Gap time of stage `forward_backward`.
        forward_backward_ns: DurationNs,
        /// Gap time of stage `communication`.
        communication_ns: DurationNs,
        /// Gap time of stage `checkpoint`.
        checkpoint_ns: DurationNs,
        /// Gap time of stage `serving`.
        serving_ns: DurationNs,
        /// Gap time of stage `startup`.
        startup_ns: DurationNs,
        /// Gap time of stage `other`.
        other_ns: DurationNs,
        /// How it differs from the others: `first` (the first one, and slower), `periodic` (one of slow steps at even
        /// distances), `slow`. NULL: it does not.
        outlier: Option<Text>,
    }
}
