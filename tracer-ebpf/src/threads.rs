//! Recorded threads: from a tid to its state, in two array look-ups.

use tracer_abi::kernel::{LossClass, ObjectKind, ThreadState, WakerKind, off_cpu_flags};

use crate::kernel::PF_KTHREAD;
use crate::maps::{COUNT_CACHES, FREE_SLOTS, PROCESSES, SEEDS, SLOTS, THREAD_INDEX, THREADS};
use crate::{config, counts, emit};

/// `BPF_NOEXIST`.
const NO_EXIST: u64 = 1;

#[inline(always)]
fn slot_cell(tid: u32) -> Option<*mut u16> {
    let word = SLOTS.get_ptr_mut(tid >> 2)?.cast::<u16>();
    // SAFETY: one of the element's four cells.
    Some(unsafe { word.add((tid & 3) as usize) })
}

#[inline(always)]
fn slot(tid: u32) -> u32 {
    // SAFETY: a cell of the map; a 16-bit access is atomic.
    slot_cell(tid).map_or(0, |cell| u32::from(unsafe { cell.read_volatile() }))
}

#[inline(always)]
fn process_cell(tgid: u32) -> Option<*mut u8> {
    let word = PROCESSES.get_ptr_mut(tgid >> 3)?.cast::<u8>();
    // SAFETY: one of the element's eight bytes.
    Some(unsafe { word.add((tgid & 7) as usize) })
}

/// Whether the process is a member of the recorded tree.
#[inline(always)]
pub fn is_member(tgid: u32) -> bool {
    // SAFETY: a byte of the map.
    process_cell(tgid).is_some_and(|cell| unsafe { cell.read_volatile() } != 0)
}

/// Begins or ends the membership of a process.
#[inline(always)]
pub fn set_member(tgid: u32, member: bool) {
    match process_cell(tgid) {
        // SAFETY: a byte of the map.
        Some(cell) => unsafe { cell.write_volatile(u8::from(member)) },
        None if member => emit::lost(LossClass::ProcessesFull),
        None => {}
    }
}

/// The state of a recorded thread; `None` if it is not recorded (yet).
#[inline(always)]
pub fn find(tid: u32) -> Option<*mut ThreadState> {
    let slot = slot(tid);
    if slot == 0 { None } else { THREADS.get_ptr_mut(slot) }
}

/// The thread's cache of counts.
#[inline(always)]
pub fn count_cache(tid: u32) -> Option<*mut tracer_abi::kernel::CountCache> {
    let slot = slot(tid);
    if slot == 0 { None } else { COUNT_CACHES.get_ptr_mut(slot) }
}

/// What is known about a thread that the programs meet for the first time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// It runs at this moment: what user space saw of it is over.
    Running,
    /// It was off the CPU until now: what user space saw of it at attach holds.
    Off,
}

/// The state of a member's or kernel thread's task, made if it is new; `None` if it is not to be recorded. `flags` are
/// read only where they decide.
#[inline(always)]
pub fn find_or_make(
    tid: u32,
    tgid: u32,
    first: First,
    flags: impl FnOnce() -> u32,
) -> Option<*mut ThreadState> {
    if let Some(state) = find(tid) {
        return Some(state);
    }
    if is_member(tgid) {
        return make(tid, tgid, false, first);
    }
    // A kernel thread is a process of its own; the idle task has tid 0.
    if config::kernel_threads() && tid == tgid && tid != 0 && flags() & PF_KTHREAD != 0 {
        return make(tid, tgid, true, first);
    }
    None
}

/// Makes a thread's state. Rare, so it is a function of its own in the programs.
#[inline(never)]
fn make_slot(tid: u32) -> u32 {
    let Ok(Some(free)) = FREE_SLOTS.pop() else {
        emit::lost(LossClass::ThreadsFull);
        return 0;
    };
    if THREAD_INDEX.insert(tid, free, NO_EXIST).is_err() {
        // Another CPU was first, or the index is full.
        let _ = FREE_SLOTS.push(free, 0);
        // SAFETY: a copy is taken at once; the entry is only removed at the thread's end.
        return unsafe { THREAD_INDEX.get(tid) }.copied().unwrap_or(0);
    }
    free
}

#[inline(always)]
pub fn make(tid: u32, tgid: u32, kernel_thread: bool, first: First) -> Option<*mut ThreadState> {
    let slot = make_slot(tid);
    if slot == 0 {
        return None;
    }
    let state = THREADS.get_ptr_mut(slot)?;
    let seed = if kernel_thread { None } else { SEEDS.get_ptr(tid) };
    // SAFETY: an element of each map; the state's slot is this thread's alone.
    unsafe {
        match seed {
            Some(seed) if first == First::Off => {
                core::ptr::copy_nonoverlapping(seed, state, 1);
                if (*state).syscall_nr != -1 {
                    (*state).flags |= off_cpu_flags::CALL_BEFORE_ATTACH;
                }
            }
            _ => reset(state),
        }
        if first == First::Running {
            (*state).flags |= off_cpu_flags::SEEN_RUNNING;
        }
        (*state).tid = tid;
        (*state).tgid = tgid;
        if kernel_thread {
            (*state).flags |= off_cpu_flags::KERNEL_THREAD;
        }
        if let Some(cache) = COUNT_CACHES.get_ptr_mut(slot) {
            counts::clear(cache);
        }
        if let Some(cell) = slot_cell(tid) {
            cell.write_volatile(slot as u16);
        }
    }
    if seed.is_some() {
        let _ = SEEDS.remove(tid);
    }
    Some(state)
}

/// An empty state: running, outside a system call.
///
/// # Safety
/// `state` is writable.
#[inline(always)]
pub unsafe fn reset(state: *mut ThreadState) {
    // SAFETY: by the contract. What is valid only beside another field (arguments, addresses) need not be cleared.
    unsafe {
        (*state).off_ns = 0;
        (*state).syscall_start_ns = 0;
        (*state).syscall_blocked_ns = 0;
        (*state).args = [0; 6];
        (*state).waker.kind = WakerKind::None as u32;
        (*state).waker.socket.family = 0;
        (*state).woken_ns = 0;
        (*state).syscall_nr = -1;
        (*state).off_state = 0;
        (*state).flags = 0;
        (*state).off_cpu = 0;
        (*state).dirty_ns = 0;
        (*state).object.kind = ObjectKind::None as u32;
    }
}

/// Forgets a thread that has ended, and keeps its counts.
#[inline(never)]
pub fn free(tid: u32) -> u32 {
    let slot = slot(tid);
    if slot == 0 {
        return 0;
    }
    let tgid = THREADS.get_ptr(slot).map_or(0, |state| unsafe { (*state).tgid });
    if let Some(cache) = COUNT_CACHES.get_ptr_mut(slot) {
        // SAFETY: the thread is gone, nobody else writes its cache.
        unsafe { counts::flush(cache, tid, tgid) };
    }
    if let Some(cell) = slot_cell(tid) {
        // SAFETY: a cell of the map.
        unsafe { cell.write_volatile(0) };
    }
    let _ = THREAD_INDEX.remove(tid);
    let _ = FREE_SLOTS.push(slot, 0);
    slot
}

/// A thread takes over another tid: `exec` by one that is not its process's first makes it the first.
#[inline(always)]
pub fn rename(old: u32, new: u32) {
    let moved = slot(old);
    if moved == 0 {
        return;
    }
    free(new);
    if let Some(state) = THREADS.get_ptr_mut(moved) {
        // SAFETY: an element of the map.
        unsafe { (*state).tid = new };
    }
    let _ = THREAD_INDEX.remove(old);
    let _ = THREAD_INDEX.insert(new, moved, 0);
    if let Some(cell) = slot_cell(old) {
        // SAFETY: a cell of the map.
        unsafe { cell.write_volatile(0) };
    }
    if let Some(cell) = slot_cell(new) {
        // SAFETY: a cell of the map.
        unsafe { cell.write_volatile(moved as u16) };
    }
}
