//! Table `clocks`.

use crate::event::{MonoNs, Pid, Text};
use crate::store::table::table;

table! {
    /// One bracketed reading of another clock.
    pub struct ClockSample in "clocks", sorted by before_ns {
        /// CLOCK_MONOTONIC just before.
        before_ns: MonoNs,
        /// The other clock, in its own nanoseconds.
        other_ns: i64,
        /// CLOCK_MONOTONIC just after.
        after_ns: MonoNs,
        /// Which clock: `realtime`, `cupti`.
        clock: Text,
        /// The process that read it; NULL: the recorder.
        pid: Option<Pid>,
    }
}
