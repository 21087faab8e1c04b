//! Table `processes`.

use crate::event::{MonoNs, Pid, Text};
use crate::store::table::table;

table! {
    /// One process seen: the recorded tree, and those outside that took part in a wait (`outside`).
    pub struct Process in "processes", sorted by start_ns {
        /// Process.
        pid: Pid,
        /// Its parent.
        parent: Option<Pid>,
        /// When it began, or when the recording did.
        start_ns: MonoNs,
        /// When it ended; of one outside the tree, when that was noticed. NULL: it lived on.
        end_ns: Option<MonoNs>,
        /// Its name as the kernel has it.
        comm: Text,
        /// Its program.
        exe: Option<Text>,
        /// Its arguments, joined by spaces, at most 4096 bytes.
        cmdline: Option<Text>,
        /// Its control group.
        cgroup: Option<Text>,
        /// The container's id where the control group shows one.
        container: Option<Text>,
        /// It loaded the CUDA driver and made a context (as the shim saw it).
        owns_gpu: bool,
        /// Not a member of the recorded tree.
        outside: bool,
        /// Kernel thread.
        kernel: bool,
    }
}
