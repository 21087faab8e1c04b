//! Rows of `syscalls`.

use tracer_abi::kernel::{ObjectKind, SyscallRecord, ThreadState, syscall_flags};

use crate::event::{DurationNs, MonoNs, Pid, RowId, Text, Tid};
use crate::record::objects::{Named, Objects, named_by_proc};
use crate::record::syscall::{self, Meaning, Operand};
use crate::record::tree::Tree;
use crate::store::schema::Syscall;

/// A row out of a call that returned.
pub fn syscall_row(
    record: &SyscallRecord,
    id: RowId,
    started: MonoNs,
    objects: &mut Objects,
    tree: &Tree,
) -> Syscall {
    let pid = Pid(record.tgid as i32);
    let compat = record.flags & syscall_flags::COMPAT != 0;
    let name = if compat { Text::from(format!("compat_{}", record.nr)) } else { syscall::name(record.nr) };
    let meaning = if compat { Meaning::default() } else { syscall::meaning(&name) };
    let ready = record.flags & syscall_flags::READY_FD != 0;
    let fd = if ready { record.ready_fd } else { record.fd };
    let named = if record.object.kind == ObjectKind::None as u32 {
        without_descriptor(meaning, &record.args, pid, MonoNs(record.end_ns as i64), objects)
    } else {
        objects.name(&record.object, pid, fd, tree)
    };
    let start =
        if record.start_ns == 0 { started.0 } else { record.start_ns as i64 }.min(record.end_ns as i64);
    Syscall {
        id,
        pid,
        tid: Tid(record.tid as i32),
        start_ns: MonoNs(start),
        end_ns: Some(MonoNs(record.end_ns as i64)),
        result: Some(record.result),
        blocked_ns: DurationNs(record.blocked_ns as i64),
        fd: (fd >= 0).then_some(fd),
        object_kind: named.kind,
        object: named.object,
        device: named.device,
        peer: named.peer,
        offset: argument(&record.args, meaning.offset),
        bytes: argument(&record.args, meaning.bytes),
        name,
    }
}

/// A row for a call that had not returned at the end; `None` outside one. Where the kernel side has not read its object
/// (the call began before it looked), it is what the descriptor leads to now: the call still uses it.
pub fn still_running_row(
    tid: Tid,
    state: &ThreadState,
    id: RowId,
    now: MonoNs,
    objects: &mut Objects,
    tree: &Tree,
) -> Option<Syscall> {
    if state.syscall_nr < 0 || state.syscall_start_ns == 0 {
        return None;
    }
    let pid = Pid(state.tgid as i32);
    let name = syscall::name(state.syscall_nr);
    let meaning = syscall::meaning(&name);
    let (fd, named) = match meaning.operand {
        Operand::Descriptor(index) => {
            let fd = state.args.get(usize::from(index)).map_or(-1, |&value| value as i32);
            let named = if state.object.kind == ObjectKind::None as u32 {
                named_by_proc(pid, fd)
            } else {
                objects.name(&state.object, pid, fd, tree)
            };
            (Some(fd).filter(|&fd| fd >= 0), named)
        }
        _ => (None, without_descriptor(meaning, &state.args, pid, now, objects)),
    };
    let since_off = if state.off_ns == 0 || state.woken_ns != 0 { 0 } else { now.0 - state.off_ns as i64 };
    Some(Syscall {
        id,
        pid,
        tid,
        start_ns: MonoNs(state.syscall_start_ns as i64),
        end_ns: None,
        result: None,
        blocked_ns: DurationNs(state.syscall_blocked_ns as i64 + since_off.max(0)),
        fd,
        object_kind: named.kind,
        object: named.object,
        device: named.device,
        peer: named.peer,
        offset: argument(&state.args, meaning.offset),
        bytes: argument(&state.args, meaning.bytes),
        name,
    })
}

fn argument(args: &[u64; 6], index: Option<u8>) -> Option<i64> {
    args.get(usize::from(index?)).map(|&value| value as i64)
}

fn without_descriptor(
    meaning: Meaning,
    args: &[u64; 6],
    pid: Pid,
    now: MonoNs,
    objects: &mut Objects,
) -> Named {
    let named = |kind: &str, object| Named { kind: Some(Text::from(kind)), object, ..Named::default() };
    match meaning.operand {
        Operand::FutexWord(index) => {
            objects.futex(pid, args.get(usize::from(index)).copied().unwrap_or(0), now)
        }
        Operand::Sleep => named("sleep", None),
        Operand::Process => {
            let waited = args[0] as i32;
            named("process", (waited > 0).then(|| Text::from(waited.to_string())))
        }
        Operand::None | Operand::Descriptor(_) | Operand::NewDescriptor | Operand::DescriptorSet => {
            Named::default()
        }
    }
}
