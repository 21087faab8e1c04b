//! What `/proc` says about the tasks of a tree. Everything in it is under the control of the recorded program, or can
//! vanish between two reads: reads are bounded, text is made valid UTF-8, a task that is gone is `None`.

mod blocked;
mod cpu_quota;
mod descriptors;
mod mounts;
mod process;
mod read;
mod stolen;

pub use blocked::{BlockedThread, blocked_thread};
pub use cpu_quota::CpuGroups;
pub use descriptors::{Access, Descriptor, descriptors, link_of};
pub use mounts::{Mount, mounts};
pub use process::{ProcessDetails, TaskStat, all_processes, details, stat, thread_stat, threads};
pub use read::{bounded_text, read_bounded};
pub use stolen::stolen;
