//! Table `retransmits`.

use crate::event::{MonoNs, Text};
use crate::store::table::table;

table! {
    /// One TCP segment that this machine sent again, of any process. What the peer sent again is seen on its machine alone.
    pub struct Retransmit in "retransmits", sorted by time_ns {
        /// When.
        time_ns: MonoNs,
        /// `local -> peer`, as in `syscalls.object`.
        connection: Text,
    }
}
