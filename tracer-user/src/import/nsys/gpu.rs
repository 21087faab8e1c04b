//! The device's work and the calls that asked for it.

use super::database::{Database, Row};
use super::names::{Meanings, without_version};
use super::{INVALID, process_of, thread_of};
use crate::attribute::timeline::is_collective;
use crate::collective::{of_kernel, operation};
use crate::event::{ContextId, CorrelationId, DeviceId, Interval, MonoNs, OpId, Pid, RowId, StreamId, Text};
use crate::import::tables::{Tables, number_of_device};
use crate::import::words::{NO_LAUNCH, NO_OP, WORDS};
use crate::store::schema::{CudaApi, CudaSync, GpuOp};

/// Columns that every kind of work has, in the order of [`op`].
const COMMON: [&str; 8] =
    ["start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphNodeId"];
const OWN: usize = COMMON.len();

fn columns<const N: usize>(own: [&'static str; N]) -> Vec<&'static str> {
    COMMON.into_iter().chain(own).collect()
}

/// A valid interval in columns 0 and 1, or what is wrong counted.
pub fn interval(tables: &mut Tables, row: &Row<'_>, what: &str) -> Option<Interval> {
    let (Some(start), Some(end)) = (row.integer(0), row.integer(1)) else {
        let everywhere = Interval { start: MonoNs(0), end: MonoNs(i64::MAX) };
        tables.losses.hide(INVALID, &format!("{what}: no time"), everywhere, 1);
        return None;
    };
    let why = match () {
        () if start <= 0 => "it starts before time does",
        () if end < start => "negative duration",
        () if end >= 1 << 62 => "it ends after time does",
        () => return Some(Interval { start: MonoNs(start), end: MonoNs(end) }),
    };
    // Where it lay is one of the ways to read its two times.
    let hidden = Interval { start: MonoNs(start.min(end)), end: MonoNs(start.max(end)) };
    tables.losses.hide(INVALID, &format!("{what}: {why}"), hidden, 1);
    None
}

fn op(row: &Row<'_>, time: Interval, kind: &Text, name: Text) -> Option<GpuOp> {
    Some(GpuOp {
        op_id: OpId(0),
        pid: row.integer(6).map(process_of).unwrap_or_default(),
        device: DeviceId(number_of_device(row.integer(2)?)?),
        context: ContextId(row.integer(3).unwrap_or_default()),
        stream: StreamId(row.integer(4).unwrap_or_default()),
        kind: kind.clone(),
        name,
        start_ns: time.start,
        end_ns: time.end,
        correlation_id: CorrelationId(row.integer(5).unwrap_or(NO_LAUNCH)),
        graph_id: None,
        graph_node_id: row.integer(7).filter(|&node| node != 0),
        bytes: None,
        copy_kind: None,
        src_kind: None,
        dst_kind: None,
        is_async: None,
        grid_x: None,
        grid_y: None,
        grid_z: None,
        block_x: None,
        block_y: None,
        block_z: None,
    })
}

fn add(tables: &mut Tables, what: &str, time: Interval, row: Option<GpuOp>) -> Option<OpId> {
    if row.is_none() {
        tables.losses.hide(INVALID, &format!("{what}: no device"), time, 1);
    }
    row.map(|row| tables.gpu_op(row))
}

/// Kernels.
pub fn kernels(database: &Database, meanings: &Meanings, tables: &mut Tables) -> rusqlite::Result<()> {
    let columns =
        columns(["demangledName", "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"]);
    database.each("CUPTI_ACTIVITY_KIND_KERNEL", &columns, "", |row| {
        let Some(time) = interval(tables, &row, "kernel") else { return };
        let name = meanings.string(row.integer(OWN)).or_else(|| meanings.string(row.integer(OWN + 1)));
        let name = name.cloned().unwrap_or_else(|| Text::from("(kernel without a name)"));
        let size = |at: usize| row.integer(OWN + at).and_then(|size| i32::try_from(size).ok());
        let op = op(&row, time, &WORDS.kernel, name.clone()).map(|op| GpuOp {
            grid_x: size(2),
            grid_y: size(3),
            grid_z: size(4),
            block_x: size(5),
            block_y: size(6),
            block_z: size(7),
            ..op
        });
        let place = op.as_ref().map(|op| (op.pid, op.device, op.stream));
        if let (Some(op_id), Some((pid, device, stream)), true) =
            (add(tables, "kernel", time, op), place, is_collective(&name))
        {
            let operation = Text::from(operation(&name));
            tables.collective(of_kernel(op_id, pid, device, stream, operation, time));
        }
    })
}

/// Copies, and pages of unified memory that moved.
pub fn copies(database: &Database, meanings: &Meanings, tables: &mut Tables) -> rusqlite::Result<()> {
    let columns = columns(["bytes", "copyKind", "srcKind", "dstKind"]);
    database.each("CUPTI_ACTIVITY_KIND_MEMCPY", &columns, "", |row| {
        let Some(time) = interval(tables, &row, "memcpy") else { return };
        let copy = meanings.copy(row.integer(OWN + 1));
        let memory = |at: usize| {
            if copy.unified { Some(Text::from("managed")) } else { meanings.memory(row.integer(OWN + at)) }
        };
        let (src_kind, dst_kind) = (memory(2), memory(3));
        let op = op(&row, time, &WORDS.memcpy, copy.kind.clone()).map(|op| GpuOp {
            bytes: row.integer(OWN).filter(|&bytes| bytes >= 0),
            copy_kind: Some(copy.kind.clone()),
            src_kind,
            dst_kind,
            // Pages move without a call; the number that stands there is no call's.
            correlation_id: if copy.unified { CorrelationId(NO_LAUNCH) } else { op.correlation_id },
            ..op
        });
        add(tables, "memcpy", time, op);
    })
}

/// Memsets.
pub fn memsets(database: &Database, tables: &mut Tables) -> rusqlite::Result<()> {
    database.each("CUPTI_ACTIVITY_KIND_MEMSET", &columns(["bytes"]), "", |row| {
        let Some(time) = interval(tables, &row, "memset") else { return };
        let op = op(&row, time, &WORDS.memset, Text::from("Memset"))
            .map(|op| GpuOp { bytes: row.integer(OWN).filter(|&bytes| bytes >= 0), ..op });
        add(tables, "memset", time, op);
    })
}

/// Whole graphs, where they were traced as one.
pub fn graphs(database: &Database, tables: &mut Tables) -> rusqlite::Result<()> {
    database.each("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &columns(["graphId"]), "", |row| {
        let Some(time) = interval(tables, &row, "graph") else { return };
        let graph = row.integer(OWN);
        let name = Text::from(format!("graph {}", graph.unwrap_or_default()));
        let op = op(&row, time, &WORDS.graph, name).map(|op| GpuOp { graph_id: graph, ..op });
        add(tables, "graph", time, op);
    })
}

/// Calls of the runtime and the driver.
pub fn calls(database: &Database, meanings: &Meanings, tables: &mut Tables) -> rusqlite::Result<()> {
    let columns = ["start", "end", "globalTid", "correlationId", "nameId", "returnValue"];
    for table in ["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"] {
        database.each(table, &columns, "", |row| {
            let (Some(start), Some(end), Some(thread)) = (row.integer(0), row.integer(1), row.integer(2))
            else {
                return tables.losses.count("import.host", "runtime call: no time or thread");
            };
            if start <= 0 || end < start || end >= 1 << 62 {
                return tables.losses.count("import.host", "runtime call: its times cannot be");
            }
            let (pid, tid) = thread_of(thread);
            let name = meanings.string(row.integer(4)).map_or("(unnamed)", Text::as_str);
            let name = without_version(name);
            let driver = name
                .strip_prefix("cu")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
            let name = tables.names.get(name.as_bytes(), |_| Text::from(name));
            tables.gpu_process.get_or_insert(pid);
            tables.cuda_api(CudaApi {
                id: RowId(0),
                pid,
                tid,
                domain: if driver { WORDS.driver.clone() } else { WORDS.runtime.clone() },
                name,
                start_ns: MonoNs(start),
                end_ns: MonoNs(end),
                correlation_id: CorrelationId(row.integer(3).unwrap_or(NO_OP)),
                result: row.integer(5).and_then(|result| i32::try_from(result).ok()).unwrap_or_default(),
            });
        })?;
    }
    Ok(())
}

/// Synchronisations.
pub fn syncs(database: &Database, meanings: &Meanings, tables: &mut Tables) -> rusqlite::Result<()> {
    let columns =
        ["start", "end", "globalPid", "syncType", "contextId", "streamId", "eventId", "correlationId"];
    database.each("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &columns, "", |row| {
        let (Some(start), Some(end), Some(kind)) =
            (row.integer(0), row.integer(1).filter(|&end| end < 1 << 62), meanings.sync(row.integer(3)))
        else {
            // Nsight Systems 2024.6 writes 0 for cudaDeviceSynchronize: the call itself says what it is.
            return tables.losses.count("import.host", "synchronisation: no time, or of unknown kind");
        };
        if start <= 0 || end < start {
            return tables.losses.count("import.host", "synchronisation: its times cannot be");
        }
        tables.cuda_sync(CudaSync {
            id: RowId(0),
            pid: row.integer(2).map_or(Pid(0), process_of),
            kind: kind.clone(),
            context: ContextId(row.integer(4).unwrap_or_default()),
            stream: row
                .integer(5)
                .filter(|&stream| stream >= 0 && stream != i64::from(u32::MAX))
                .map(StreamId),
            event_id: row.integer(6).filter(|&event| event >= 0 && event != i64::from(u32::MAX)),
            start_ns: MonoNs(start),
            end_ns: MonoNs(end),
            correlation_id: CorrelationId(row.integer(7).unwrap_or(NO_OP)),
        });
    })
}
