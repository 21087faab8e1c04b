//! Rows of `syscall_counts`.

use tracer_abi::kernel::{CountKey, CountValue};

use crate::event::{DurationNs, MonoNs, Pid, Tid};
use crate::record::syscall;
use crate::store::schema::SyscallCount;

/// A row out of a sum.
#[must_use]
pub fn syscall_count_row(key: &CountKey, value: &CountValue) -> SyscallCount {
    SyscallCount {
        pid: Pid(key.tgid as i32),
        tid: Tid(key.tid as i32),
        name: syscall::name(key.syscall_nr),
        calls: value.calls as i64,
        total_ns: DurationNs(value.total_ns as i64),
        max_ns: DurationNs(value.max_ns as i64),
        result_sum: i64::try_from(value.result_sum).unwrap_or(i64::MAX),
        errors: value.errors as i64,
        first_ns: MonoNs(value.first_ns as i64),
        last_ns: MonoNs(value.last_ns as i64),
    }
}
