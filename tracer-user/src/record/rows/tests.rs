use tracer_abi::kernel::{
    BlockRecord, ObjectId, OffCpuRecord, RecordHeader, RecordKind, SocketAddresses, SyscallRecord,
    ThreadState, Waker, WakerKind, off_cpu_flags, syscall_flags,
};

use super::*;
use crate::event::{DurationNs, MonoNs, RequestId};
use crate::record::objects::Objects;
use crate::record::tree::Tree;

fn comm(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

fn waker(kind: WakerKind) -> Waker {
    Waker {
        kind: kind as u32,
        tid: 0,
        tgid: 0,
        syscall_nr: -1,
        cpu: 0,
        irq: 0,
        request_id: 0,
        function: 0,
        socket: SocketAddresses::default(),
        comm: [0; 16],
    }
}

fn off_cpu(waker: Waker) -> OffCpuRecord {
    OffCpuRecord {
        header: RecordHeader { kind: RecordKind::OffCpu as u32, cpu: 1, time_ns: 300 },
        tid: 11,
        tgid: 10,
        off_ns: 100,
        woken_ns: 200,
        on_ns: 300,
        syscall_start_ns: 90,
        syscall_nr: libc::SYS_read as i32,
        off_state: 1,
        flags: 0,
        off_cpu: 0,
        on_cpu: 1,
        waker,
        culprit_tid: 0,
        culprit_tgid: 0,
        culprit_comm: [0; 16],
        culprit_ns: 0,
        idle_ns: 0,
        others_ns: 0,
        args0: 3,
        forbidden_idle_ns: 0,
        allowed_cpus: 0,
        reserved: 0,
    }
}

fn row(record: &OffCpuRecord) -> crate::store::schema::OffCpu {
    let mut requests = RecentRequests::default();
    requests.completed(77, Text::from("vda"));
    off_cpu_row(record, RowId(1), MonoNs(50), &requests, &mut KernelSymbols::default())
}

#[test]
fn each_kind_of_edge_has_its_columns() {
    let none = row(&off_cpu(waker(WakerKind::None)));
    assert_eq!((none.waker_kind, none.waker_tid), (None, None));
    assert_eq!((none.state.as_str(), none.syscall.as_deref()), ("interruptible", Some("read")));

    let task = Waker {
        tid: 21,
        tgid: 20,
        syscall_nr: libc::SYS_write as i32,
        comm: comm("worker"),
        ..waker(WakerKind::Task)
    };
    let task = row(&off_cpu(task));
    assert_eq!(
        (task.waker_kind.as_deref(), task.waker_pid, task.waker_tid),
        (Some("task"), Some(Pid(20)), Some(Tid(21)))
    );
    assert_eq!((task.waker_comm.as_deref(), task.waker_syscall.as_deref()), (Some("worker"), Some("write")));

    let block = row(&off_cpu(Waker { tid: 21, tgid: 20, request_id: 77, ..waker(WakerKind::Block) }));
    assert_eq!((block.waker_object.as_deref(), block.request_id), (Some("vda"), Some(RequestId(77))));
    assert_eq!(block.waker_tid, None, "the interrupted task has nothing to do with it");

    let mut socket =
        SocketAddresses { local_port: 5000, peer_port: 9000, family: 2, ..SocketAddresses::default() };
    socket.local[..4].copy_from_slice(&[10, 0, 0, 1]);
    socket.peer[..4].copy_from_slice(&[10, 0, 0, 2]);
    let net = row(&off_cpu(Waker { socket, ..waker(WakerKind::Net) }));
    assert_eq!(net.waker_object.as_deref(), Some("10.0.0.2:9000 -> 10.0.0.1:5000"));
    assert_eq!(net.waker_tid, None);

    let irq = row(&off_cpu(Waker { irq: 45, comm: comm("nvidia"), ..waker(WakerKind::HardIrq) }));
    assert_eq!(irq.waker_object.as_deref(), Some("irq 45 nvidia"));
    let soft = row(&off_cpu(Waker { irq: 9, ..waker(WakerKind::SoftIrq) }));
    assert_eq!((soft.waker_kind.as_deref(), soft.waker_object.as_deref()), (Some("softirq"), Some("RCU")));
}

#[test]
fn a_timer_is_named_by_its_function() {
    let text = std::fs::read_to_string("/proc/kallsyms").expect("kallsyms");
    let line = text.lines().find(|line| line.ends_with(" hrtimer_wakeup")).expect("every kernel has it");
    let address = u64::from_str_radix(&line[..16], 16).expect("an address");
    if address == 0 {
        return; // the kernel hides addresses from this user
    }
    let timer = row(&off_cpu(Waker { function: address, ..waker(WakerKind::Timer) }));
    assert_eq!(timer.waker_object.as_deref(), Some("hrtimer_wakeup"));
}

#[test]
fn preemption_has_no_edge_and_is_runnable_all_the_time() {
    let mut record = off_cpu(waker(WakerKind::Task));
    record.flags = off_cpu_flags::PREEMPTED;
    record.woken_ns = 0;
    record.culprit_tid = 5;
    record.culprit_comm = comm("cc1");
    let row = row(&record);
    assert_eq!(
        (row.woken_ns, row.waker_kind.as_deref(), row.state.as_str()),
        (Some(MonoNs(100)), None, "preempted")
    );
    assert_eq!(row.culprit_comm.as_deref(), Some("cc1"));
}

#[test]
fn times_keep_their_order_whatever_the_record_says() {
    let mut record = off_cpu(waker(WakerKind::None));
    record.off_ns = 0;
    record.woken_ns = 10;
    let row_ = row(&record);
    assert_eq!((row_.off_ns, row_.woken_ns, row_.before_attach), (MonoNs(50), Some(MonoNs(50)), true));
    record.off_ns = 400;
    record.woken_ns = 500;
    let row_ = row(&record);
    assert_eq!((row_.off_ns, row_.woken_ns, row_.on_ns), (MonoNs(300), Some(MonoNs(300)), Some(MonoNs(300))));
}

#[test]
fn who_is_off_at_the_end_has_an_open_row() {
    let mut state = ThreadState {
        off_ns: 100,
        syscall_start_ns: 90,
        syscall_blocked_ns: 5,
        args: [0x7f00, 0, 0, 0, 0, 0],
        waker: waker(WakerKind::None),
        woken_ns: 0,
        syscall_nr: libc::SYS_futex as i32,
        tgid: 10,
        off_state: 1,
        flags: off_cpu_flags::BEFORE_ATTACH,
        off_cpu: 1,
        dirty_ns: 0,
        tid: 0,
        object: ObjectId::NONE,
    };
    let (requests, mut symbols) = (RecentRequests::default(), KernelSymbols::default());
    let off =
        still_off_row(Tid(11), &state, RowId(1), MonoNs(50), &requests, &mut symbols).expect("it is off");
    assert_eq!((off.woken_ns, off.on_ns, off.before_attach), (None, None, true));
    let (mut objects, tree) = (Objects::default(), Tree::new(MonoNs(0)));
    let call = still_running_row(Tid(11), &state, RowId(1), MonoNs(300), &mut objects, &tree)
        .expect("it is in a call");
    assert_eq!((call.end_ns, call.result, call.blocked_ns), (None, None, DurationNs(205)));
    assert_eq!((call.object_kind.as_deref(), call.object.as_deref()), (Some("futex"), Some("0x7f00")));
    state.off_ns = 0;
    state.syscall_nr = -1;
    assert_eq!(still_off_row(Tid(11), &state, RowId(1), MonoNs(50), &requests, &mut symbols), None);
    assert_eq!(still_running_row(Tid(11), &state, RowId(1), MonoNs(300), &mut objects, &tree), None);
}

#[test]
fn calls_have_offset_and_bytes_and_their_object() {
    let mut record = SyscallRecord {
        header: RecordHeader { kind: RecordKind::Syscall as u32, cpu: 0, time_ns: 300 },
        tid: 11,
        tgid: 10,
        start_ns: 100,
        end_ns: 300,
        blocked_ns: 150,
        result: 4096,
        args: [3, 0xdead, 4096, 1 << 20, 0, 0],
        nr: libc::SYS_pread64 as i32,
        flags: 0,
        fd: 3,
        ready_fd: -1,
        object: ObjectId { kind: 3, ..ObjectId::NONE },
    };
    record.object.addresses.family = 2;
    let (mut objects, tree) = (Objects::default(), Tree::new(MonoNs(0)));
    let mut make = |record: &SyscallRecord| syscall_row(record, RowId(1), MonoNs(50), &mut objects, &tree);
    let read = make(&record);
    assert_eq!((read.name.as_str(), read.offset, read.bytes), ("pread64", Some(1 << 20), Some(4096)));
    assert_eq!((read.object_kind.as_deref(), read.fd), (Some("tcp"), Some(3)));
    record.nr = libc::SYS_clock_nanosleep as i32;
    record.object.kind = 0;
    record.fd = -1;
    let sleep = make(&record);
    assert_eq!((sleep.object_kind.as_deref(), sleep.fd, sleep.bytes), (Some("sleep"), None, None));
    record.flags = syscall_flags::COMPAT;
    assert_eq!(make(&record).name.as_str(), format!("compat_{}", libc::SYS_clock_nanosleep));
}

#[test]
fn requests_keep_their_order_in_time() {
    let mut record = BlockRecord {
        header: RecordHeader { kind: RecordKind::Block as u32, cpu: 0, time_ns: 300 },
        request_id: 9,
        sector: 2048,
        queued_ns: 100,
        issued_ns: 150,
        completed_ns: 300,
        submitter_tid: 11,
        submitter_tgid: 10,
        submitter_comm: comm("worker"),
        bytes: 4096,
        device: 4095 << 20 | 1,
        cmd_flags: 0x8_0001,
        error: 0,
        syscall_nr: -1,
        in_flight: 1,
        file_inode: 0,
        file_device: 0,
        file_generation: 0,
        flags: 0,
        reserved: 0,
    };
    let mut objects = Objects::default();
    let row = block_io_row(&record, &mut objects);
    assert_eq!((row.queued_ns, row.issued_ns, row.completed_ns), (MonoNs(100), MonoNs(150), MonoNs(300)));
    assert_eq!(
        (row.op.as_str(), row.device.as_str(), row.comm.as_deref()),
        ("write", "4095:1", Some("worker"))
    );
    record.queued_ns = 0;
    record.issued_ns = 0;
    record.submitter_tid = 0;
    let row = block_io_row(&record, &mut objects);
    assert_eq!((row.queued_ns, row.issued_ns, row.comm), (MonoNs(300), MonoNs(300), None));
}
