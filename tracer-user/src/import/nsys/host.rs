//! The host's side: calls of the operating system's libraries, scheduling, ranges, names.

use std::collections::HashSet;

use super::database::Database;
use super::names::Meanings;
use super::{process_of, thread_of};
use crate::attribute::STANDARD_INPUT;
use crate::event::{DurationNs, Interval, MonoNs, RowId, Text};
use crate::import::tables::{Tables, bare_syscall};
use crate::import::words::WORDS;
use crate::store::schema::{CudaOverhead, Marker, OffCpu, Syscall};

/// Source of rows that were refused; they hide no GPU work.
const HOST: &str = "import.host";

fn times(start: Option<i64>, end: Option<i64>) -> Option<Interval> {
    let (start, end) = (start?, end?);
    (start > 0 && end >= start && end < 1 << 62)
        .then_some(Interval { start: MonoNs(start), end: MonoNs(end) })
}

/// Functions that read one character or line from a stream.
fn reads(name: &str) -> bool {
    ["getc", "fgetc", "getchar", "fgets", "getline", "read"].contains(&name.trim_start_matches("_IO_"))
}

/// Call stacks that lead through the stream behind `std::cin`, the only one that libstdc++ reads in this way.
fn console_stacks(database: &Database) -> rusqlite::Result<HashSet<i64>> {
    let mut stacks = HashSet::new();
    if database.has("StringIds") {
        let rest = "WHERE symbol IN (SELECT id FROM StringIds WHERE value LIKE '%stdio_sync_filebuf%')";
        database.each("OSRT_CALLCHAINS", &["id"], rest, |row| stacks.extend(row.integer(0)))?;
    }
    Ok(stacks)
}

/// Calls of the operating system's libraries, the outermost of those that lie within one another.
pub fn os_calls(database: &Database, meanings: &Meanings, tables: &mut Tables) -> rusqlite::Result<()> {
    let console = console_stacks(database)?;
    let columns = ["start", "end", "globalTid", "nameId", "returnValue", "nestingLevel", "callchainId"];
    database.each("OSRT_API", &columns, "", |row| {
        if row.integer(5).is_some_and(|level| level > 0) {
            return;
        }
        let (Some(time), Some(thread)) = (times(row.integer(0), row.integer(1)), row.integer(2)) else {
            return tables.losses.count(HOST, "call of the operating system: no time or thread");
        };
        let (pid, tid) = thread_of(thread);
        let name = meanings.string(row.integer(3)).cloned().unwrap_or_else(|| Text::from("(unnamed)"));
        let from_console = reads(&name) && row.integer(6).is_some_and(|stack| console.contains(&stack));
        tables.syscall(Syscall {
            result: row.integer(4),
            object: from_console.then(|| Text::from(STANDARD_INPUT)),
            ..bare_syscall(pid, tid, name, time)
        });
    })
}

/// Times off the CPU, from one leave of a thread to its next arrival. Who ended them is not recorded.
pub fn scheduling(database: &Database, tables: &mut Tables) -> rusqlite::Result<()> {
    let mut left: Option<(i64, i64, i64)> = None;
    let columns = ["start", "cpu", "isSchedIn", "globalTid"];
    let given = database.each("SCHED_EVENTS", &columns, "ORDER BY globalTid, start, isSchedIn", |row| {
        let (Some(time), Some(arrives), Some(thread)) = (row.integer(0), row.integer(2), row.integer(3))
        else {
            return tables.losses.count(HOST, "scheduling event: no time or thread");
        };
        let cpu = row.integer(1).unwrap_or(-1);
        match left.take() {
            Some((before, off, from)) if before == thread && arrives != 0 => {
                off_cpu(tables, thread, off, Some(time), (from, cpu));
            }
            Some((before, off, from)) if before != thread => off_cpu(tables, before, off, None, (from, -1)),
            _ => {}
        }
        if arrives == 0 {
            left = Some((thread, time, cpu));
        }
    });
    if let Some((thread, off, cpu)) = left {
        off_cpu(tables, thread, off, None, (cpu, -1));
    }
    given
}

fn off_cpu(tables: &mut Tables, thread: i64, off: i64, on: Option<i64>, (from, to): (i64, i64)) {
    let Some(time) = times(Some(off), Some(on.unwrap_or(off))) else {
        return tables.losses.count(HOST, "scheduling event: its times cannot be");
    };
    let (pid, tid) = thread_of(thread);
    let cpu = |number: i64| i32::try_from(number).unwrap_or(-1);
    tables.off_cpu(OffCpu {
        id: RowId(0),
        pid,
        tid,
        off_ns: time.start,
        woken_ns: None,
        on_ns: on.map(MonoNs),
        state: Text::from("other"),
        before_attach: false,
        syscall: None,
        syscall_start_ns: None,
        waker_kind: None,
        waker_pid: None,
        waker_tid: None,
        waker_comm: None,
        waker_syscall: None,
        waker_object: None,
        request_id: None,
        off_cpu: cpu(from),
        on_cpu: on.map(|_| cpu(to)),
        culprit_pid: None,
        culprit_tid: None,
        culprit_comm: None,
        culprit_ns: None,
        others_ns: DurationNs(0),
        idle_ns: DurationNs(0),
        allowed_cpus: None,
        forbidden_idle_ns: None,
        throttled: None,
    });
}

/// NVTX ranges.
pub fn ranges(database: &Database, meanings: &Meanings, tables: &mut Tables) -> rusqlite::Result<()> {
    let columns = ["start", "end", "globalTid", "text", "textId"];
    // Marks have no end.
    database.each("NVTX_EVENTS", &columns, "WHERE \"end\" IS NOT NULL", |row| {
        let (Some(time), Some(thread)) = (times(row.integer(0), row.integer(1)), row.integer(2)) else {
            return tables.losses.count(HOST, "NVTX range: no time or thread");
        };
        let (pid, tid) = thread_of(thread);
        let name = row.text(3).map(Text::from).or_else(|| meanings.string(row.integer(4)).cloned());
        tables.marker(Marker {
            id: RowId(0),
            pid,
            tid,
            domain: WORDS.nvtx.clone(),
            name: name.unwrap_or_else(|| Text::from("(unnamed)")),
            start_ns: time.start,
            end_ns: time.end,
        });
    })
}

/// Time that the profiler needed for itself.
pub fn overheads(database: &Database, meanings: &Meanings, tables: &mut Tables) -> rusqlite::Result<()> {
    let columns = ["start", "end", "globalTid", "nameId", "correlationId"];
    database.each("PROFILER_OVERHEAD", &columns, "", |row| {
        let Some(time) = times(row.integer(0), row.integer(1)) else {
            return tables.losses.count(HOST, "overhead: no time");
        };
        let thread = row.integer(2).map(thread_of);
        let words = meanings.string(row.integer(3)).map_or("unknown", Text::as_str).to_ascii_lowercase();
        let plain = words.trim_start_matches("cupti").trim_start_matches([':', ' ']).replace(' ', "_");
        let kind = if plain == "resource_management" { "resource" } else { plain.as_str() };
        let kind = tables.names.get(kind.as_bytes(), |_| Text::from(kind));
        tables.cuda_overhead(CudaOverhead {
            id: RowId(0),
            pid: thread.map_or_else(|| tables.gpu_process.unwrap_or_default(), |(pid, _)| pid),
            tid: thread.map(|(_, tid)| tid),
            kind,
            start_ns: time.start,
            end_ns: time.end,
            correlation_id: None,
        });
    })
}

/// Names of threads and processes.
pub fn names(database: &Database, meanings: &Meanings, tables: &mut Tables) -> rusqlite::Result<()> {
    /// Names that are kept.
    const KEPT: usize = 1 << 16;
    database.each("ThreadNames", &["globalTid", "nameId"], "", |row| {
        if let (Some(thread), Some(name)) = (row.integer(0), meanings.string(row.integer(1)))
            && tables.thread_names.len() < KEPT
        {
            tables.thread_names.insert(thread_of(thread), name.clone());
        }
    })?;
    database.each("PROCESSES", &["globalPid", "name"], "", |row| {
        if let (Some(process), Some(name)) = (row.integer(0), row.text(1))
            && tables.process_names.len() < KEPT
        {
            tables.process_names.insert(process_of(process), Text::from(name));
        }
    })
}
