//! Block requests: from the bio's submitter to the completion, whose identity the wake-up in the same interrupt takes.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use tracer_abi::kernel::{
    BlockRecord, LossClass, ObjectId, ObjectKind, RecordKind, SyscallClass, THREAD_NAME_BYTES, ThreadState,
    block_flags,
};

use crate::config::{self, off};
use crate::maps::{BIOS, IN_FLIGHT, REQUESTS};
use crate::{cpu, emit, kernel, object, path, threads};

/// Low byte of `cmd_flags`: the operation.
const OP_MASK: u32 = 0xff;
const OP_FLUSH: u32 = 2;
/// `REQ_FUA | REQ_PREFLUSH` are bits 17 and 18 in every kernel since 4.10: a request with one of them may end twice,
/// once for its data and once for the flush after it.
const FLUSHING: u32 = 1 << 17 | 1 << 18;
/// `PF_WQ_WORKER` of `task_struct.flags`, unchanged since 2.6.36.
const PF_WQ_WORKER: u32 = 0x20;

/// Who made a bio.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Submitter {
    pub queued_ns: u64,
    pub file_inode: u64,
    pub tid: u32,
    pub tgid: u32,
    pub comm: [u8; THREAD_NAME_BYTES],
    pub syscall_nr: i32,
    pub file_device: u32,
    pub file_generation: u32,
    /// [`block_flags`].
    pub flags: u32,
}

/// A request that the driver has.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Request {
    pub id: u64,
    /// `start_time_ns`: the same `struct request` serves one after another, this tells them apart.
    pub start_ns: u64,
    /// 0: its data is done, the flush after it is not.
    pub issued_ns: u64,
    pub sector: u64,
    pub bytes: u32,
    pub device: u32,
    pub cmd_flags: u32,
    pub in_flight: u32,
    pub submitter: Submitter,
}

/// A bio enters the block layer, in its submitter's context.
#[raw_tracepoint(tracepoint = "block_bio_queue")]
pub fn block_bio_queue(ctx: RawTracePointContext) -> i32 {
    remember(ctx.arg(0));
    0
}

/// A bio that is too large for one request: the front part becomes a bio of its own.
#[raw_tracepoint(tracepoint = "block_split")]
pub fn block_split(ctx: RawTracePointContext) -> i32 {
    remember(ctx.arg(0));
    0
}

/// A bio joins a request that is there already.
#[raw_tracepoint(tracepoint = "block_bio_backmerge")]
pub fn block_bio_backmerge(ctx: RawTracePointContext) -> i32 {
    let bio: u64 = ctx.arg(0);
    let _ = BIOS.remove(bio);
    0
}

/// A request joins the one before it.
#[raw_tracepoint(tracepoint = "block_rq_merge")]
pub fn block_rq_merge(ctx: RawTracePointContext) -> i32 {
    let bio: u64 = kernel::field(ctx.arg(0), off!(rq_bio));
    let _ = BIOS.remove(bio);
    0
}

#[inline(always)]
fn remember(bio: u64) {
    let (tid, tgid) = kernel::current_ids();
    let mut submitter = Submitter {
        queued_ns: kernel::now_ns(),
        file_inode: 0,
        tid,
        tgid,
        comm: [0; THREAD_NAME_BYTES],
        syscall_nr: -1,
        file_device: 0,
        file_generation: 0,
        flags: flags_of(bio),
    };
    // SAFETY: a local; the thread's element of the map.
    unsafe {
        kernel::current_comm(&raw mut submitter.comm);
        let state = threads::find(tid);
        if let Some(state) = state {
            submitter.syscall_nr = (*state).syscall_nr;
        }
        let found = file_of_direct(bio, tgid, &mut submitter);
        let direct_call = !found && state.is_some_and(|state| is_direct_call(state));
        if !found && (direct_call || !file_of_pages(bio, tgid, &mut submitter)) {
            if let Some(state) = state {
                file_of_call(state, tgid, &mut submitter);
            }
        }
    }
    let _ = BIOS.insert(bio, submitter, 0);
}

/// [`block_flags`] of a bio.
#[inline(always)]
fn flags_of(bio: u64) -> u32 {
    let end: u64 = kernel::field(bio, off!(bio_end_io));
    let [swap_in, swap_out] = config::swap_end_io();
    let swap = end != 0 && (end == swap_in || end == swap_out);
    let throttled = if was_throttled() { block_flags::THROTTLED } else { 0 };
    if swap { throttled | block_flags::SWAP } else { throttled }
}

/// Whether the current task is the kernel's thread that lets go what a control group's limit held back.
#[inline(always)]
fn was_throttled() -> bool {
    let work = config::throttle_work();
    if work == 0 || kernel::current_word::<u32>(off!(task_flags)) & PF_WQ_WORKER == 0 {
        return false;
    }
    let thread: u64 = kernel::field(kernel::current_task(), off!(task_worker_private));
    let worker: u64 = kernel::field(thread, off!(kthread_data));
    kernel::field::<u64>(worker, off!(worker_current_func)) == work
}

/// The file of direct I/O through iomap, whichever call asked for it (a read, an io_uring or AIO request): the bio knows its
/// request. What the pages say would be the program's buffer.
#[inline(always)]
unsafe fn file_of_direct(bio: u64, tgid: u32, submitter: &mut Submitter) -> bool {
    let end_io = config::direct_end_io();
    if end_io == 0 {
        return false;
    }
    let mut end: u64 = kernel::field(bio, off!(bio_end_io));
    let mut private: u64 = kernel::field(bio, off!(bio_private));
    if end == config::chain_end_io() && end != 0 {
        // The front part of a bio that was split: the rest is what it is chained to.
        end = kernel::field(private, off!(bio_end_io));
        private = kernel::field(private, off!(bio_private));
    }
    if end != end_io {
        return false;
    }
    let request: u64 = kernel::field(private, off!(iomap_dio_iocb));
    let file: u64 = kernel::field(request, off!(kiocb_filp));
    if file == 0 {
        return false;
    }
    let mut object = ObjectId::NONE;
    // SAFETY: a local.
    unsafe { object::of_file(file, -1, tgid, &raw mut object) };
    if object.kind != ObjectKind::File as u32 {
        return false;
    }
    submitter.file_inode = object.inode;
    submitter.file_device = object.device;
    submitter.file_generation = object.generation;
    true
}

/// Whether the submitter's call is on a descriptor for direct I/O (of a file system that does without iomap).
#[inline(always)]
unsafe fn is_direct_call(state: *mut ThreadState) -> bool {
    // SAFETY: the caller's contract: the current thread's element of the map.
    unsafe {
        config::syscall_class((*state).syscall_nr) == SyscallClass::Fd0 as u8
            && object::flags_of_descriptor((*state).args[0] as i32) & config::o_direct() != 0
    }
}

/// The file whose page-cache pages the bio carries: true of buffered reads, page faults and write-back alike, whoever
/// submits. Not for direct I/O (the pages are the program's) and not for metadata (they are the device's).
#[inline(always)]
unsafe fn file_of_pages(bio: u64, tgid: u32, submitter: &mut Submitter) -> bool {
    let vector: u64 = kernel::field(bio, off!(bio_io_vec));
    let mut page: u64 = kernel::field(vector, 0);
    let head: u64 = kernel::field(page, off!(page_compound_head));
    if head & 1 == 1 {
        page = head - 1;
    }
    let mapping: u64 = kernel::field(page, off!(page_mapping));
    // The low bits mark anonymous and movable pages.
    if mapping == 0 || mapping & 3 != 0 {
        return false;
    }
    let inode: u64 = kernel::field(mapping, off!(mapping_host));
    if inode == 0 {
        return false;
    }
    let mut object = ObjectId::NONE;
    // SAFETY: a local.
    let magic = unsafe { object::of_inode(inode, &raw mut object) };
    if object.kind != ObjectKind::File as u32 || object.inode == 0 {
        return false;
    }
    submitter.file_inode = object.inode;
    submitter.file_device = object.device;
    submitter.file_generation = object.generation;
    let dentry = path::dentry_of(inode);
    if dentry != 0 {
        path::send(&object, magic, dentry, tgid, -1);
    }
    true
}

/// The file that the submitter's call names.
#[inline(always)]
unsafe fn file_of_call(state: *mut ThreadState, tgid: u32, submitter: &mut Submitter) {
    // SAFETY: the caller's contract: the current thread's element of the map.
    unsafe {
        if (*state).object.kind == ObjectKind::None as u32
            && config::syscall_class((*state).syscall_nr) == SyscallClass::Fd0 as u8
        {
            object::of_descriptor((*state).args[0] as i32, tgid, &raw mut (*state).object);
        }
        if (*state).object.kind == ObjectKind::File as u32 {
            submitter.file_inode = (*state).object.inode;
            submitter.file_device = (*state).object.device;
            submitter.file_generation = (*state).object.generation;
        }
    }
}

/// A new number: unique in a recording, never 0.
#[inline(always)]
fn new_id() -> u64 {
    let Some(cpu) = cpu::this() else { return 0 };
    // SAFETY: this CPU's element of the map; an interrupt in between takes a number of its own level.
    unsafe {
        let level = kernel::masked((*cpu).depth, cpu::FRAMES - 1);
        let count = (*cpu).requests[level] + 1;
        (*cpu).requests[level] = count;
        u64::from(kernel::this_cpu()) << 48 | (level as u64) << 46 | count
    }
}

#[inline(always)]
fn device_of(request: u64) -> u32 {
    let mut device: u64 = kernel::field(request, off!(rq_part));
    if device == 0 {
        let queue: u64 = kernel::field(request, off!(rq_queue));
        let disk: u64 = kernel::field(queue, off!(queue_disk));
        device = kernel::field(disk, off!(disk_part0));
    }
    kernel::field(device, off!(bdev_dev))
}

/// The driver gets a request.
#[raw_tracepoint(tracepoint = "block_rq_issue")]
pub fn block_rq_issue(ctx: RawTracePointContext) -> i32 {
    let rq: u64 = ctx.arg(0);
    let now = kernel::now_ns();
    if let Some(known) = REQUESTS.get_ptr_mut(rq) {
        // SAFETY: an element of the map; a request is issued by one CPU at a time.
        unsafe {
            if (*known).issued_ns != 0
                && (*known).start_ns == start_of(rq)
                && (*known).bytes == kernel::field::<u32>(rq, off!(rq_data_len))
            {
                // The driver was busy and gave it back: the device has it from now on.
                (*known).issued_ns = now;
                return 0;
            }
        }
    }
    let queue: u64 = kernel::field(rq, off!(rq_queue));
    let bio: u64 = kernel::field(rq, off!(rq_bio));
    let mut request = Request {
        id: new_id(),
        start_ns: start_of(rq),
        issued_ns: now,
        sector: kernel::field(rq, off!(rq_sector)),
        bytes: kernel::field(rq, off!(rq_data_len)),
        device: device_of(rq),
        cmd_flags: kernel::field(rq, off!(rq_cmd_flags)),
        in_flight: in_flight(queue, 1),
        submitter: nobody(rq, now),
    };
    // SAFETY: a copy is taken at once.
    if let Some(submitter) = unsafe { BIOS.get(bio) } {
        request.submitter = *submitter;
        let _ = BIOS.remove(bio);
    }
    if REQUESTS.insert(rq, request, 0).is_err() {
        emit::lost(LossClass::RequestsFull);
    }
    0
}

#[inline(always)]
fn start_of(rq: u64) -> u64 {
    kernel::field(rq, off!(rq_start_time_ns))
}

#[inline(always)]
fn nobody(rq: u64, now: u64) -> Submitter {
    let start = start_of(rq);
    Submitter {
        queued_ns: if start == 0 { now } else { start },
        file_inode: 0,
        tid: 0,
        tgid: 0,
        comm: [0; THREAD_NAME_BYTES],
        syscall_nr: -1,
        file_device: 0,
        file_generation: 0,
        flags: 0,
    }
}

/// Adds to the requests in flight on a queue; returns how many there are then.
#[inline(always)]
fn in_flight(queue: u64, add: i64) -> u32 {
    match IN_FLIGHT.get_ptr_mut(queue) {
        Some(count) => {
            // SAFETY: an element of the map, aligned to 8.
            unsafe {
                kernel::atomic_add(count, add as u64);
                count.read_volatile() as u32
            }
        }
        None if add > 0 => {
            let _ = IN_FLIGHT.insert(queue, add as u64, 0);
            add as u32
        }
        None => 0,
    }
}

/// A request, or a part of it, is done. The wake-ups follow in the same interrupt.
#[raw_tracepoint(tracepoint = "block_rq_complete")]
pub fn block_rq_complete(ctx: RawTracePointContext) -> i32 {
    let rq: u64 = ctx.arg(0);
    let status: u32 = ctx.arg(1);
    let done: u32 = ctx.arg(2);
    let now = kernel::now_ns();
    let frame = cpu::top_frame();
    let left: u32 = kernel::field(rq, off!(rq_data_len));
    let Some(known) = REQUESTS.get_ptr_mut(rq) else {
        unknown(rq, now, status);
        return 0;
    };
    // SAFETY: an element of the map, this CPU's frame.
    unsafe {
        let second = (*known).issued_ns == 0;
        if second && (*known).start_ns != start_of(rq) {
            // There was no flush after it: this is another request in the same place.
            let _ = REQUESTS.remove(rq);
            unknown(rq, now, status);
            return 0;
        }
        if let Some(frame) = frame {
            (*frame).request_id = (*known).id;
            if second {
                (*known).issued_ns = (*frame).flush_issued_ns;
            }
        }
        // The length is that of what was left before this completion.
        if done < left {
            return 0;
        }
        write(known, now, status);
        if second {
            let _ = REQUESTS.remove(rq);
            return 0;
        }
        in_flight(kernel::field(rq, off!(rq_queue)), -1);
        if let Some(frame) = frame {
            if (*known).cmd_flags & OP_MASK == OP_FLUSH {
                (*frame).flush_issued_ns = (*known).issued_ns;
            }
        }
        if (*known).cmd_flags & FLUSHING != 0 && (*known).bytes != 0 {
            // It may end a second time, when the flush after it is done; then it counts from here.
            (*known).id = new_id();
            (*known).issued_ns = 0;
            (*known).bytes = 0;
            (*known).submitter.queued_ns = now;
        } else {
            let _ = REQUESTS.remove(rq);
        }
    }
    0
}

/// The end of a request that never reached the driver as such: an empty flush, for which the block layer made a flush
/// request of its own that ends in this same interrupt; or one that was issued before recording began.
#[inline(always)]
fn unknown(rq: u64, now: u64, status: u32) {
    let bio: u64 = kernel::field(rq, off!(rq_bio));
    let mut request = Request {
        id: new_id(),
        start_ns: 0,
        issued_ns: 0,
        sector: kernel::field(rq, off!(rq_sector)),
        bytes: kernel::field(rq, off!(rq_data_len)),
        device: device_of(rq),
        cmd_flags: kernel::field(rq, off!(rq_cmd_flags)),
        in_flight: 0,
        submitter: nobody(rq, now),
    };
    // SAFETY: a copy is taken at once; this CPU's frame.
    unsafe {
        if let Some(submitter) = BIOS.get(bio) {
            request.submitter = *submitter;
            let _ = BIOS.remove(bio);
        }
        if let Some(frame) = cpu::top_frame() {
            (*frame).request_id = request.id;
            request.issued_ns = (*frame).flush_issued_ns;
        }
        write(&raw const request, now, status);
    }
}

#[inline(always)]
unsafe fn write(request: *const Request, now: u64, status: u32) {
    let Some(mut entry) = emit::reserve::<BlockRecord>(LossClass::RingBlock) else { return };
    let record = entry.as_mut_ptr();
    // SAFETY: room for a record in the ring; the caller's request.
    unsafe {
        (*record).header = emit::header(RecordKind::Block, now);
        (*record).request_id = (*request).id;
        (*record).sector = (*request).sector;
        (*record).queued_ns = (*request).submitter.queued_ns;
        (*record).issued_ns = (*request).issued_ns;
        (*record).completed_ns = now;
        (*record).submitter_tid = (*request).submitter.tid;
        (*record).submitter_tgid = (*request).submitter.tgid;
        (*record).submitter_comm = (*request).submitter.comm;
        (*record).bytes = (*request).bytes;
        (*record).device = (*request).device;
        (*record).cmd_flags = (*request).cmd_flags;
        (*record).error = errno(status);
        (*record).syscall_nr = (*request).submitter.syscall_nr;
        (*record).in_flight = (*request).in_flight;
        (*record).file_inode = (*request).submitter.file_inode;
        (*record).file_device = (*request).submitter.file_device;
        (*record).file_generation = (*request).submitter.file_generation;
        (*record).flags = (*request).submitter.flags;
        (*record).reserved = 0;
    }
    emit::submit(entry);
}

/// The errno of a completion: since 5.16 the tracepoint passes a `blk_status_t`, before it a negative errno. The table
/// is that of `block/blk-core.c`.
#[inline(always)]
fn errno(status: u32) -> i32 {
    let status = status as i32;
    match status {
        0 => 0,
        1 => 95,
        2 => 110,
        3 => 28,
        4 => 67,
        5 => 121,
        6 => 52,
        7 => 61,
        8 => 84,
        9 => 12,
        11 | 12 => 11,
        _ if status < 0 => -status,
        _ => 5,
    }
}
