//! Events to rows.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::args::Args;
use super::copies::CopyWords;
use super::cursor::{Raw, three_integers};
use super::decimal::Micros;
use super::document::Event;
use super::kind::Kind;
use super::text::decode;
use crate::attribute::timeline::is_collective;
use crate::collective::{of_kernel, operation};
use crate::event::{
    ContextId, CorrelationId, DeviceId, Interval, MonoNs, OpId, Pid, RowId, StreamId, Text, Tid,
};
use crate::import::correlations::Correlations;
use crate::import::losses::Neighbours;
use crate::import::tables::{Tables, number_of_device};
use crate::import::words::{NO_LAUNCH, NO_OP, WORDS};
use crate::store::schema::{Collective, CudaApi, CudaOverhead, CudaSync, GpuOp, Marker};

/// Source of records that cannot be valid.
const INVALID: &str = "import.invalid";
/// Source of records of the host that were refused: they hide no GPU work.
const HOST: &str = "import.host";
/// Source of text that is no event.
const MALFORMED: &str = "import.malformed";

/// Turns events into rows.
pub struct Events<'a> {
    tables: &'a mut Tables,
    neighbours: Neighbours,
    correlations: Correlations,
    copies: HashMap<Text, [Option<Text>; 3], RandomState>,
    /// Complete events, of whatever kind.
    pub seen: u64,
    /// Pieces that were no event.
    pub malformed: u64,
}

impl<'a> Events<'a> {
    /// Into `tables`.
    pub fn new(tables: &'a mut Tables) -> Self {
        Self {
            tables,
            neighbours: Neighbours::default(),
            correlations: Correlations::default(),
            copies: HashMap::default(),
            seen: 0,
            malformed: 0,
        }
    }

    /// Something was no event.
    pub fn malformed(&mut self) {
        self.malformed += 1;
        self.neighbours.refuse(&mut self.tables.losses, MALFORMED, "text that is no event");
    }

    /// The file ends.
    pub fn end(&mut self) {
        self.neighbours.end(&mut self.tables.losses);
    }

    /// Takes in an event.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>) {
        self.seen += 1;
        match event.phase {
            Raw::Text(b"X") => self.interval(event),
            Raw::Text(b"M") => self.metadata(event),
            // Flow arrows, instants, counters: what they join is joined by correlation ids here.
            Raw::Text(_) => {}
            _ => self.refuse_unknown(event, "no phase"),
        }
    }

    fn refuse_unknown(&mut self, event: &Event<'_>, why: &str) {
        let kind = Kind::of(event.category.scalar());
        if kind.is_gpu_work() {
            let reason = format!("{}: {why}", kind.name());
            match Micros::parse(event.ts.scalar()).map(|start| MonoNs(start.ns())) {
                Some(start) if start.0 > 0 => {
                    let time = Interval::new(start, MonoNs(start.0 + 1));
                    self.tables.losses.hide(INVALID, &reason, time, 1);
                }
                _ => self.neighbours.refuse(&mut self.tables.losses, INVALID, &reason),
            }
        } else if kind == Kind::Other {
            self.neighbours.refuse(&mut self.tables.losses, MALFORMED, &format!("event: {why}"));
        } else {
            self.tables.losses.count(HOST, &format!("{}: {why}", kind.name()));
        }
    }

    fn interval(&mut self, event: &Event<'_>) {
        let kind = Kind::of(event.category.scalar());
        if kind == Kind::Other {
            return;
        }
        let Some(start) = Micros::parse(event.ts.scalar()) else {
            return self.refuse_unknown(event, "no start");
        };
        let Some(length) = Micros::parse(event.dur.scalar()) else {
            return self.refuse_unknown(event, "no duration");
        };
        let time = Interval { start: MonoNs(start.ns()), end: MonoNs(start.plus_ns(length)) };
        if time.start.0 <= 0 {
            return self.refuse_unknown(event, "it starts before time does");
        }
        if time.end < time.start {
            // How long it was is not known; that it was as long as it says backwards is one way to read it.
            if kind.is_gpu_work() {
                let hidden =
                    Interval::new(time.start, MonoNs(time.start.0 + (time.start.0 - time.end.0).max(1)));
                let reason = format!("{}: negative duration", kind.name());
                self.tables.losses.hide(INVALID, &reason, hidden, 1);
            } else {
                self.tables.losses.count(HOST, &format!("{}: negative duration", kind.name()));
            }
            return;
        }
        self.neighbours.good(&mut self.tables.losses, time.start);
        match kind {
            Kind::Kernel | Kind::Memcpy | Kind::Memset => self.gpu_op(kind, event, time),
            Kind::Runtime | Kind::Driver => self.call(kind, event, time),
            Kind::Operator | Kind::Annotation | Kind::Python => self.marker(kind, event, time),
            Kind::Sync => self.sync(event, time),
            Kind::Overhead => self.overhead(event, time),
            Kind::Other => {}
        }
    }

    #[inline]
    fn name(&mut self, name: Raw<'_>) -> Text {
        self.tables.names.get(name.scalar(), |raw| Text::from(&*decode(raw)))
    }

    fn gpu_op(&mut self, kind: Kind, event: &Event<'_>, time: Interval) {
        let args = Args::read(event.args);
        let Some(device) = args.device.and_then(number_of_device) else {
            let reason = format!("{}: no device", kind.name());
            return self.tables.losses.hide(INVALID, &reason, time, 1);
        };
        let name = self.name(event.name);
        let [copy_kind, src_kind, dst_kind] =
            if kind == Kind::Memcpy { self.copy_words(&name) } else { [const { None }; 3] };
        let [grid_x, grid_y, grid_z] = three_integers(args.grid);
        let [block_x, block_y, block_z] = three_integers(args.block);
        let stream = StreamId(args.stream.or_else(|| event.tid.integer()).unwrap_or_default());
        let collective = kind == Kind::Kernel && is_collective(&name);
        let id = self.tables.gpu_op(GpuOp {
            op_id: OpId(0),
            pid: Pid(0),
            device: DeviceId(device),
            context: ContextId(args.context.unwrap_or_default()),
            stream,
            kind: match kind {
                Kind::Memcpy => WORDS.memcpy.clone(),
                Kind::Memset => WORDS.memset.clone(),
                _ => WORDS.kernel.clone(),
            },
            name: copy_kind.clone().unwrap_or_else(|| name.clone()),
            start_ns: time.start,
            end_ns: time.end,
            correlation_id: CorrelationId(args.correlation.unwrap_or(NO_LAUNCH)),
            graph_id: args.graph.filter(|&graph| graph != 0),
            graph_node_id: args.graph_node.filter(|&node| node != 0),
            bytes: args.bytes.filter(|&bytes| bytes >= 0),
            copy_kind,
            src_kind,
            dst_kind,
            is_async: None,
            grid_x,
            grid_y,
            grid_z,
            block_x,
            block_y,
            block_z,
        });
        if collective {
            self.collective(&args, &name, id, DeviceId(device), stream, time);
        }
    }

    fn copy_words(&mut self, name: &Text) -> [Option<Text>; 3] {
        if let Some(words) = self.copies.get(name) {
            return words.clone();
        }
        let words = CopyWords::of(name);
        let words = [words.copy, words.source, words.destination].map(|word| word.map(Text::from));
        // Names of copies are few; a file that makes up new ones gains nothing by it.
        if self.copies.len() < 1_024 {
            self.copies.insert(name.clone(), words.clone());
        }
        words
    }

    fn collective(
        &mut self,
        args: &Args<'_>,
        kernel: &Text,
        op_id: OpId,
        device: DeviceId,
        stream: StreamId,
        time: Interval,
    ) {
        let optional = |tables: &mut Tables, raw: Raw<'_>| {
            let bytes = raw.scalar();
            (!bytes.is_empty()).then(|| tables.names.get(bytes, |raw| Text::from(&*decode(raw))))
        };
        let op = optional(self.tables, args.collective).unwrap_or_else(|| Text::from(operation(kernel)));
        let communicator = optional(self.tables, args.group);
        let data_type = optional(self.tables, args.data_type);
        let size = data_type.as_deref().and_then(size_of_type);
        let elements = args.elements.filter(|&count| count >= 0);
        self.tables.collective(Collective {
            communicator,
            ranks: args.group_size.and_then(|size| i32::try_from(size).ok()).filter(|&size| size > 0),
            count: elements,
            bytes: elements.zip(size).and_then(|(count, size)| count.checked_mul(size)),
            data_type,
            ..of_kernel(op_id, Pid(0), device, stream, op, time)
        });
    }

    /// The thread of an event of the host.
    fn thread(&mut self, kind: Kind, event: &Event<'_>) -> Option<(Pid, Tid)> {
        let number = |raw: Raw<'_>| raw.integer().map(|number| number as i32);
        let thread = number(event.pid).zip(number(event.tid)).map(|(pid, tid)| (Pid(pid), Tid(tid)));
        if thread.is_none() {
            self.tables.losses.count(HOST, &format!("{}: no thread", kind.name()));
        }
        thread
    }

    fn call(&mut self, kind: Kind, event: &Event<'_>, time: Interval) {
        let args = Args::read(event.args);
        let Some((pid, tid)) = self.thread(kind, event) else { return };
        self.tables.gpu_process.get_or_insert(pid);
        if let Some(correlation) = args.correlation
            && self.correlations.repeats(kind == Kind::Driver, correlation)
        {
            let reason = format!("{}: its correlation id was used before", kind.name());
            self.tables.losses.count("import.duplicate", &reason);
        }
        let name = self.name(event.name);
        self.tables.cuda_api(CudaApi {
            id: RowId(0),
            pid,
            tid,
            domain: if kind == Kind::Driver { WORDS.driver.clone() } else { WORDS.runtime.clone() },
            name,
            start_ns: time.start,
            end_ns: time.end,
            correlation_id: CorrelationId(args.correlation.unwrap_or(NO_OP)),
            result: 0,
        });
    }

    #[inline]
    fn marker(&mut self, kind: Kind, event: &Event<'_>, time: Interval) {
        let Some((pid, tid)) = self.thread(kind, event) else { return };
        if kind != Kind::Python {
            self.tables.gpu_process.get_or_insert(pid);
        }
        let name = self.name(event.name);
        // Before there was a category for them, annotations were operators.
        let annotation = kind == Kind::Annotation || name.starts_with("enumerate(DataLoader)");
        let domain = match kind {
            Kind::Python => &WORDS.python,
            _ if annotation => &WORDS.annotation,
            _ => &WORDS.cpu_op,
        };
        self.tables.marker(Marker {
            id: RowId(0),
            pid,
            tid,
            domain: domain.clone(),
            name,
            start_ns: time.start,
            end_ns: time.end,
        });
    }

    fn sync(&mut self, event: &Event<'_>, time: Interval) {
        let args = Args::read(event.args);
        let said = if args.sync_kind == Raw::Absent { event.name } else { args.sync_kind };
        let kind = match said.scalar() {
            b"Stream Sync" => &WORDS.stream,
            b"Event Sync" => &WORDS.event,
            b"Stream Wait Event" => &WORDS.stream_wait_event,
            b"Context Sync" | b"Device Sync" => &WORDS.context,
            _ => return self.tables.losses.count(HOST, "synchronisation: unknown kind"),
        };
        self.tables.cuda_sync(CudaSync {
            id: RowId(0),
            pid: self.tables.gpu_process.unwrap_or_default(),
            kind: kind.clone(),
            context: ContextId(args.context.unwrap_or_default()),
            // 2³²−1, read as −1: no stream is meant.
            stream: args.stream.filter(|&stream| stream >= 0 && stream != i64::from(u32::MAX)).map(StreamId),
            event_id: args.event.filter(|&event| event >= 0),
            start_ns: time.start,
            end_ns: time.end,
            correlation_id: CorrelationId(args.correlation.unwrap_or(NO_OP)),
        });
    }

    fn overhead(&mut self, event: &Event<'_>, time: Interval) {
        let words = decode(event.name.scalar()).to_ascii_lowercase().replace(' ', "_");
        let kind = match words.as_str() {
            "activity_buffer_request" => "buffer_request",
            "buffer_flush" | "activity_buffer_flush" => "buffer_flush",
            other => other,
        };
        // A thread that the trace does not know is written as 0 of process −1.
        let tid = event.tid.integer().map(|tid| Tid(tid as i32)).filter(|tid| tid.0 > 0);
        let kind = self.tables.names.get(kind.as_bytes(), |_| Text::from(kind));
        self.tables.cuda_overhead(CudaOverhead {
            id: RowId(0),
            pid: self.tables.gpu_process.unwrap_or_default(),
            tid,
            kind,
            start_ns: time.start,
            end_ns: time.end,
            correlation_id: None,
        });
    }

    fn metadata(&mut self, event: &Event<'_>) {
        /// Names that are kept.
        const KEPT: usize = 1 << 16;
        let Some(pid) = event.pid.integer().map(|pid| Pid(pid as i32)) else { return };
        let name = Args::read(event.args).name;
        if name.scalar().is_empty() {
            return;
        }
        let name = Text::from(&*decode(name.scalar()));
        match (event.name.scalar(), event.tid.integer()) {
            (b"process_name", _) if self.tables.process_names.len() < KEPT => {
                self.tables.process_names.insert(pid, name);
            }
            (b"thread_name", Some(tid)) if self.tables.thread_names.len() < KEPT => {
                self.tables.thread_names.insert((pid, Tid(tid as i32)), plain_name(&name));
            }
            _ => {}
        }
    }
}

/// `thread 25738 (python)` is called `python` by the kernel.
fn plain_name(name: &Text) -> Text {
    let inner = name
        .strip_prefix("thread ")
        .and_then(|rest| rest.split_once('('))
        .and_then(|(_, rest)| rest.trim_end().strip_suffix(')'));
    inner.map_or_else(|| name.clone(), Text::from)
}

/// Bytes of an element, by PyTorch's name of its type.
fn size_of_type(name: &str) -> Option<i64> {
    Some(match name {
        "Byte" | "Char" | "Bool" | "Float8_e4m3fn" | "Float8_e5m2" => 1,
        "Short" | "Half" | "BFloat16" => 2,
        "Int" | "Float" => 4,
        "Long" | "Double" | "ComplexFloat" => 8,
        "ComplexDouble" => 16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(plain_name(&Text::from("thread 25738 (python)")).as_str(), "python");
        assert_eq!(plain_name(&Text::from("stream 7 ")).as_str(), "stream 7 ");
    }
}
