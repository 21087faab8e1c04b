//! Who held a CPU while a thread waited for it: the CPU's recent slices, added up over the wait.

use tracer_abi::kernel::OffCpuRecord;

use crate::config::off;
use crate::cpu::{CpuState, HISTORY, SUMS, Slice};
use crate::maps::{IDLE_SINCE, MOST_CPUS};
use crate::{config, kernel};

/// Shorter waits for a CPU are not worth a look at the others.
const LONG_NS: u64 = 50_000;

/// Notes that the current task leaves the CPU at `now`.
///
/// # Safety
/// `cpu` is this CPU's state, and the caller is its task switch.
#[inline(always)]
pub unsafe fn push(cpu: *mut CpuState, now: u64, tid: u32, tgid: u32) {
    // SAFETY: by the contract.
    unsafe {
        let since = (*cpu).since_ns;
        (*cpu).since_ns = now;
        // A task whose switch-in was not reported did not run since the last one that was.
        if tid == 0 || since == 0 || tid != (*cpu).tid {
            return;
        }
        let slice = add(cpu, since, now, tid, tgid);
        kernel::current_comm(&raw mut (*slice).comm);
    }
}

/// Notes that the task that came last has left the CPU by `now` without its switch having been reported.
///
/// # Safety
/// As for [`push`].
#[inline(always)]
pub unsafe fn push_unreported(cpu: *mut CpuState, now: u64) {
    // SAFETY: by the contract.
    unsafe {
        let (since, tid, task) = ((*cpu).since_ns, (*cpu).tid, (*cpu).task);
        (*cpu).since_ns = now;
        if tid == 0 || since == 0 {
            return;
        }
        let (now_tid, tgid) = kernel::task_ids(task);
        // Its structure may serve another task by now.
        if now_tid == tid {
            let slice = add(cpu, since, now, tid, tgid);
            (*slice).comm = kernel::field(task, off!(task_comm));
        }
    }
}

#[inline(always)]
unsafe fn add(cpu: *mut CpuState, since: u64, now: u64, tid: u32, tgid: u32) -> *mut Slice {
    // SAFETY: the caller's contract; the index is masked.
    unsafe {
        let slices = (*cpu).slices;
        let slice = &raw mut (*cpu).history[kernel::masked(slices, HISTORY - 1)];
        (*slice).start_ns = since;
        (*slice).end_ns = now;
        (*slice).tid = tid;
        (*slice).tgid = tgid;
        (*cpu).slices = slices + 1;
        slice
    }
}

#[inline(always)]
unsafe fn slice(cpu: *const CpuState, back: u32) -> *const Slice {
    // SAFETY: the caller's contract; the index is masked.
    unsafe {
        let index = kernel::masked((*cpu).slices.wrapping_sub(back + 1), HISTORY - 1);
        &raw const (*cpu).history[index]
    }
}

/// Time of a slice inside `[from, to)`.
#[inline(always)]
unsafe fn overlap(slice: *const Slice, from: u64, to: u64) -> u64 {
    // SAFETY: the caller's contract.
    let (start, end) = unsafe { ((*slice).start_ns, (*slice).end_ns) };
    let begin = if start > from { start } else { from };
    let end = if end < to { end } else { to };
    if end > begin { end - begin } else { 0 }
}

/// Writes the culprit, the others' and the idle time of `[from, to)` on this CPU into the record. What lies before the
/// oldest slice kept (32 of them: about 100 ms at the scheduler's usual 3 ms) is left out of all of them.
///
/// # Safety
/// `cpu` is this CPU's state, `record` is writable.
#[inline(always)]
pub unsafe fn account(cpu: *mut CpuState, from: u64, to: u64, record: *mut OffCpuRecord) {
    // SAFETY: by the contract.
    unsafe {
        account_none(record);
        if to <= from {
            return;
        }
        let epoch = (*cpu).epoch.wrapping_add(1);
        (*cpu).epoch = epoch;
        let (mut others, mut oldest, mut best) = (0_u64, to, 0_u64);
        for back in 0..HISTORY {
            let slice = slice(cpu, back);
            if (*slice).end_ns <= from {
                oldest = from;
                break;
            }
            let ran = overlap(slice, from, to);
            others += ran;
            oldest = if (*slice).start_ns > from { (*slice).start_ns } else { from };
            let sum = &raw mut (*cpu).sums[kernel::masked((*slice).tid, SUMS - 1)];
            if (*sum).epoch != epoch {
                (*sum).epoch = epoch;
                (*sum).tid = (*slice).tid;
                (*sum).ran_ns = 0;
            }
            // Of two tasks on one place of the table the later is left out: it can be missed as the culprit, never
            // blamed for the other's time.
            if (*sum).tid == (*slice).tid {
                (*sum).ran_ns += ran;
                if (*sum).ran_ns > best {
                    best = (*sum).ran_ns;
                    // In memory, where the verifier does not follow its value: in a register it would walk the loop
                    // once for each.
                    (&raw mut (*cpu).best_back).write_volatile(back);
                }
            }
        }
        (*record).others_ns = others;
        (*record).idle_ns = (to - oldest).saturating_sub(others);
        if best != 0 {
            let culprit = slice(cpu, (&raw const (*cpu).best_back).read_volatile());
            (*record).culprit_ns = best;
            (*record).culprit_tid = (*culprit).tid;
            (*record).culprit_tgid = (*culprit).tgid;
            (*record).culprit_comm = (*culprit).comm;
        }
    }
}

/// Writes that nothing is known of who held the CPU.
///
/// # Safety
/// `record` is writable.
#[inline(always)]
pub unsafe fn account_none(record: *mut OffCpuRecord) {
    // SAFETY: by the contract.
    unsafe {
        (*record).culprit_tid = 0;
        (*record).culprit_tgid = 0;
        (*record).culprit_comm = [0; 16];
        (*record).culprit_ns = 0;
        (*record).idle_ns = 0;
        (*record).others_ns = 0;
    }
}

/// Notes since when this CPU idles, 0 if it does not.
#[inline(always)]
pub fn idles(since_ns: u64) {
    if let Some(cell) = IDLE_SINCE.get_ptr_mut(kernel::this_cpu()) {
        // SAFETY: this CPU's element of the map.
        unsafe { cell.write_volatile(since_ns) };
    }
}

/// Writes, after a long wait, on how many CPUs the thread that comes may run, and for how long one of the others idled in
/// `[from, to)` (those that idle still: who idled and does no more is left out).
///
/// # Safety
/// `cpu` is this CPU's state, `record` is writable.
#[inline(always)]
pub unsafe fn forbidden(cpu: *mut CpuState, from: u64, to: u64, record: *mut OffCpuRecord) {
    // SAFETY: by the contract.
    unsafe {
        forbidden_none(record);
        if to <= from || to - from < LONG_NS {
            return;
        }
        let task = (*cpu).task;
        let allowed: u32 = kernel::field(task, off!(task_nr_cpus_allowed));
        (*record).allowed_cpus = allowed;
        if allowed != 0 && allowed < config::cpus() {
            let mask: u64 = kernel::field(task, off!(task_cpus_ptr));
            (*record).forbidden_idle_ns = idle_outside(mask, from, to);
        }
    }
}

/// The longest that one CPU outside the mask has been idle since `from`, at `to`. Rare, so it is a function of its own.
#[inline(never)]
fn idle_outside(mask: u64, from: u64, to: u64) -> u64 {
    let mut earliest = to;
    let mut other = 0;
    while other < MOST_CPUS && other < config::cpus() {
        // SAFETY: an element of the map; a word is read at once.
        let since = IDLE_SINCE.get_ptr(other).map_or(0, |cell| unsafe { cell.read_volatile() });
        if since != 0 && since < earliest {
            let word: u64 = kernel::field(mask, other / 64 * 8);
            if word >> (other & 63) & 1 == 0 {
                earliest = since;
            }
        }
        other += 1;
    }
    to - if earliest > from { earliest } else { from }
}

/// Writes that nothing is known of other CPUs.
///
/// # Safety
/// `record` is writable.
#[inline(always)]
pub unsafe fn forbidden_none(record: *mut OffCpuRecord) {
    // SAFETY: by the contract.
    unsafe {
        (*record).forbidden_idle_ns = 0;
        (*record).allowed_cpus = 0;
        (*record).reserved = 0;
    }
}
