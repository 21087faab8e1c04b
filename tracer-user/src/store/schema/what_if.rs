//! Table `what_if`.

use crate::event::{DurationNs, MonoNs, Text};
use crate::store::table::table;

table! {
    /// The recording without one cause, played again on its recorded dependencies: the most helpful first.
    pub struct WhatIf in "what_if", sorted by start_ns {
        /// The cause that is taken out, on every thread of `role`.
        cause: Text,
        /// What those threads are for (`threads.role`). NULL: threads without a known role, or the device's own time.
        role: Option<Text>,
        /// Gap time that it has in the whole recording.
        gap_ns: DurationNs,
        /// Start of the part of the recording that was played: of a long one, a part in its middle.
        start_ns: MonoNs,
        /// Its end.
        end_ns: MonoNs,
        /// How long that part would take without this cause.
        alone_ns: DurationNs,
        /// How long it would take without this cause and all those in the rows before.
        together_ns: DurationNs,
        /// What would hold it up most without this cause alone, the devices' computing aside. NULL: nothing.
        next_cause: Option<Text>,
        /// On threads of this role.
        next_role: Option<Text>,
        /// For how long.
        next_ns: Option<DurationNs>,
    }
}
