//! The tree as it is when recording begins.

use std::collections::{HashMap, HashSet};

use tracer_abi::kernel::{ObjectId, ThreadState};

use super::Tree;
use crate::event::{MonoNs, Pid, Tid};
use crate::record::procfs;

/// Rounds of following before giving up on a tree that grows faster than it can be read.
const MAX_ROUNDS: usize = 100;

/// Why a tree could not be followed.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError<E> {
    /// The process was gone before it was followed.
    #[error("process {0} ended while gtrace attached to it")]
    Ended(Pid),
    /// The kernel side refused.
    #[error(transparent)]
    Probes(E),
}

/// A process and all its descendants, by the parents in `/proc`. A child whose parent died before belongs to whoever
/// adopted it, and is not found.
#[must_use]
pub fn descendants(root: Pid) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let mut root_lives = false;
    for stat in procfs::all_processes() {
        root_lives |= stat.id == root.0;
        children.entry(stat.parent).or_default().push(stat.id);
    }
    if !root_lives {
        return Vec::new();
    }
    let mut found = vec![root];
    let mut seen = HashSet::from([root.0]);
    let mut next = 0;
    while let Some(&Pid(pid)) = found.get(next) {
        next += 1;
        for &child in children.get(&pid).into_iter().flatten() {
            if seen.insert(child) {
                found.push(Pid(child));
            }
        }
    }
    found
}

/// What the snapshot needs of the kernel side.
pub trait Follow {
    /// Its error.
    type Error;
    /// Follows a process, and from then on every child that it makes.
    ///
    /// # Errors
    /// The kernel refused.
    fn follow(&mut self, pid: Pid) -> Result<(), Self::Error>;
    /// Puts in a thread found blocked, unless an event of it came first.
    ///
    /// # Errors
    /// The kernel refused for another reason than that an entry exists.
    fn insert_blocked(&mut self, tid: Tid, state: &ThreadState) -> Result<(), Self::Error>;
}

/// Follows `root` and its descendants, and enters them and their blocked threads.
///
/// The probes are live before this is called, and each process is followed *before* its threads are looked at. A
/// process forked meanwhile by one that is followed already is followed by the kernel side itself; one forked by a
/// process that was not followed yet is found by the next round. Rounds end when one finds nobody new: every member
/// is followed then.
///
/// Returns how many blocked threads found no room in the kernel side's map: of those, the time until they first run is
/// missing.
///
/// # Errors
/// The root is gone, or the kernel side refused to follow a process.
pub fn attach_to<F: Follow>(
    tree: &mut Tree,
    probes: &mut F,
    root: Pid,
    started: MonoNs,
) -> Result<u64, SnapshotError<F::Error>> {
    let mut without_room = 0;
    let mut followed = HashSet::new();
    for _ in 0..MAX_ROUNDS {
        let new: Vec<Pid> = descendants(root).into_iter().filter(|pid| followed.insert(*pid)).collect();
        if new.is_empty() {
            break;
        }
        for &pid in &new {
            probes.follow(pid).map_err(SnapshotError::Probes)?;
        }
        for &pid in &new {
            for tid in tree.add_existing(pid) {
                let Some(blocked) = procfs::blocked_thread(pid, tid) else { continue };
                let state = state_of(pid, &blocked, started);
                without_room += u64::from(probes.insert_blocked(tid, &state).is_err());
            }
        }
    }
    if tree.is_member(root) { Ok(without_room) } else { Err(SnapshotError::Ended(root)) }
}

fn state_of(pid: Pid, blocked: &procfs::BlockedThread, started: MonoNs) -> ThreadState {
    let in_call = blocked.syscall_nr >= 0;
    ThreadState {
        off_ns: started.0 as u64,
        syscall_start_ns: if in_call { started.0 as u64 } else { 0 },
        syscall_blocked_ns: 0,
        args: blocked.args,
        waker: no_waker(),
        woken_ns: 0,
        syscall_nr: blocked.syscall_nr,
        tgid: pid.0 as u32,
        off_state: blocked.off_state,
        flags: tracer_abi::kernel::off_cpu_flags::BEFORE_ATTACH,
        off_cpu: 0,
        dirty_ns: 0,
        tid: 0,
        object: ObjectId::NONE,
    }
}

fn no_waker() -> tracer_abi::kernel::Waker {
    tracer_abi::kernel::Waker {
        kind: tracer_abi::kernel::WakerKind::None as u32,
        tid: 0,
        tgid: 0,
        syscall_nr: -1,
        cpu: 0,
        irq: 0,
        request_id: 0,
        function: 0,
        socket: tracer_abi::kernel::SocketAddresses::default(),
        comm: [0; tracer_abi::kernel::THREAD_NAME_BYTES],
    }
}
