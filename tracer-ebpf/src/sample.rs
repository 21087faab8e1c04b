//! Where recorded threads are, a few hundred times a second: a clock on each CPU looks at whoever runs there.
//!
//! The frames of Python are read here, while the thread that makes them is interrupted: its own frames do not change
//! meanwhile. Everything read is the program's memory and may be anything; every loop is bounded, and what it means is
//! found out and checked in user space. Native frames are unwound there too, from the registers and the stack's top.

use aya_ebpf::EbpfContext as _;
use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use aya_ebpf::helpers::generated::{
    bpf_get_current_task_btf, bpf_get_stack, bpf_probe_read_user, bpf_task_pt_regs,
};
use aya_ebpf::macros::perf_event;
use aya_ebpf::programs::PerfEventContext;
use tracer_abi::kernel::{
    LossClass, Offsets, PYTHON_FRAMES, PYTHON_THREADS, PythonProcess, RecordKind, STACK_BYTES, SampleRecord,
    sample_flags,
};

use crate::config::off;
use crate::maps::{PYTHON, PYTHON_STATES, SAMPLE, STACKS};
use crate::{cpu, emit, kernel, threads};

const PAGE: u64 = 4096;

/// Runs on each CPU at the rate that the loader chose.
#[perf_event]
pub fn cpu_clock(ctx: PerfEventContext) -> u32 {
    let (tid, tgid) = kernel::current_ids();
    if tid == 0 || !threads::is_member(tgid) {
        return 0;
    }
    let Some(record) = SAMPLE.get_ptr_mut(0) else { return 0 };
    // SAFETY: this CPU's element of the map; the clock does not interrupt itself.
    unsafe {
        (*record).header = emit::header(RecordKind::Sample, kernel::now_ns());
        (*record).tid = tid;
        (*record).tgid = tgid;
        (*record).mm = kernel::current_word(off!(task_mm));
        (*record).python_frames = 0;
        (*record).reserved = 0;
        // The kernel's own stack is empty where the thread was in its own code.
        let mut inside = 0_u64;
        let depth = bpf_get_stack(ctx.as_ptr(), (&raw mut inside).cast(), 8, 0);
        (*record).flags = if depth > 0 { sample_flags::IN_KERNEL } else { 0 };
        let registers = bpf_task_pt_regs(bpf_get_current_task_btf()) as u64;
        (*record).ip = kernel::field(registers, off!(regs_ip));
        (*record).sp = kernel::field(registers, off!(regs_sp));
        (*record).fp = kernel::field(registers, off!(regs_fp));
        (*record).lr = kernel::field(registers, off!(regs_lr));
        python(record, tid, tgid);
        let used = stack(record);
        let length = (size_of::<SampleRecord>() - STACK_BYTES - PAGE as usize) as u64 + (used & 0x3fff);
        let bytes = core::slice::from_raw_parts(record.cast::<u8>(), length as usize);
        if STACKS.output::<[u8]>(bytes, u64::from(BPF_RB_NO_WAKEUP)).is_err() {
            emit::lost(LossClass::RingSample);
        }
        not_the_interrupts();
    }
    0
}

/// What the sample took is not told as an interrupt that took long from the thread: it counts from here on only.
#[inline(always)]
fn not_the_interrupts() {
    let Some(cpu) = cpu::this() else { return };
    // SAFETY: this CPU's element of the map; the clock runs within the interrupt that this belongs to.
    unsafe {
        if (*cpu).interrupt_since_ns != 0 {
            (*cpu).interrupt_since_ns = kernel::now_ns();
        }
    }
}

/// A word of the program's memory, 0 if it cannot be read at this moment.
#[inline(always)]
fn word(address: u64) -> u64 {
    let mut value = 0_u64;
    // SAFETY: eight bytes are read into eight; a page that is not there reads as zeros.
    unsafe { bpf_probe_read_user((&raw mut value).cast(), 8, address as *const _) };
    value
}

/// Copies the top of the stack page by page, up to the first page that is not there. Returns the bytes copied.
#[inline(always)]
unsafe fn stack(record: *mut SampleRecord) -> u64 {
    let mut used = 0_u64;
    // SAFETY: the caller's contract: this CPU's element of the map. What is copied begins below `STACK_BYTES` and is one
    // page at the most, which `stack` has room for.
    unsafe {
        let sp = (*record).sp;
        for _ in 0..3 {
            let from = sp.wrapping_add(used);
            let length = PAGE - (from & (PAGE - 1));
            if used >= STACK_BYTES as u64 {
                break;
            }
            let at = (&raw mut (*record).stack).cast::<u8>().add(kernel::masked(used as u32, STACK_BYTES as u32 - 1));
            if bpf_probe_read_user(at.cast(), length as u32, from as *const _) != 0 {
                break;
            }
            used += length;
        }
        if used > STACK_BYTES as u64 {
            used = STACK_BYTES as u64;
        }
        (*record).stack_bytes = used as u32;
    }
    used
}

/// Reads the Python frames of the current thread, if its process is known to run Python.
#[inline(always)]
unsafe fn python(record: *mut SampleRecord, tid: u32, tgid: u32) {
    // SAFETY: the caller's contract; a process's entry is only replaced as a whole, and every value in it is used as an
    // address of the program's or an offset.
    unsafe {
        let Some(process) = PYTHON.get_ptr(tgid) else { return };
        if (*process).mm != (*record).mm {
            return;
        }
        let state = thread_state(&*process, tid);
        if state == 0 {
            return;
        }
        (*record).flags |= sample_flags::PYTHON_THREAD;
        let mut frame = word(state.wrapping_add(u64::from((*process).thread_frame)));
        if (*process).cframe_frame != Offsets::ABSENT {
            frame = word(frame.wrapping_add(u64::from((*process).cframe_frame)));
        }
        let mut count = 0_u32;
        while count < PYTHON_FRAMES as u32 && frame != 0 {
            let at = &raw mut (*record).python[kernel::masked(count, PYTHON_FRAMES as u32 - 1)];
            (*at).code = word(frame.wrapping_add(u64::from((*process).frame_code)));
            (*at).instruction = word(frame.wrapping_add(u64::from((*process).frame_instruction)));
            frame = word(frame.wrapping_add(u64::from((*process).frame_previous)));
            count += 1;
        }
        if frame != 0 {
            (*record).flags |= sample_flags::PYTHON_CUT;
        }
        (*record).python_frames = count;
    }
}

/// The address of the current thread's `PyThreadState`; 0 if it has none.
#[inline(always)]
fn thread_state(process: &PythonProcess, tid: u32) -> u64 {
    let own = identity(process);
    let is_own = |state: u64| word(state.wrapping_add(u64::from(process.thread_id))) == own;
    // SAFETY: a copy is taken at once.
    let known = unsafe { PYTHON_STATES.get(tid) }.copied().unwrap_or(0);
    if known != 0 && is_own(known) {
        return known;
    }
    let mut state = word(process.threads_head);
    for _ in 0..PYTHON_THREADS {
        if state == 0 {
            return 0;
        }
        if is_own(state) {
            let _ = PYTHON_STATES.insert(tid, state, 0);
            return state;
        }
        state = word(state.wrapping_add(u64::from(process.thread_next)));
    }
    0
}

/// What the current thread's `PyThreadState` has in `thread_id`.
#[inline(always)]
fn identity(process: &PythonProcess) -> u64 {
    if process.by_number == 0 {
        return kernel::current_word(off!(task_thread_pointer));
    }
    let pid: u64 = kernel::current_word(off!(task_thread_pid));
    let level: u32 = kernel::field(pid, off!(pid_level));
    // `struct upid { int nr; struct pid_namespace *ns; }`, one for each level.
    let numbers = pid.wrapping_add(u64::from(off!(pid_numbers)));
    let number: u32 = kernel::field(numbers.wrapping_add(u64::from(level & 31) * 16), 0);
    u64::from(number)
}
