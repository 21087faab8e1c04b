//! What speaks for or against the other explanations that people reach for first. Only what rows show; where the rows
//! cannot tell, nothing is said.

use std::collections::{BTreeMap, HashSet};

use crate::event::{DurationNs, Interval, MonoNs};
use crate::report::findings::percent;
use crate::report::text::style::{plural, time};
use crate::report::union::Union;
use crate::report::wording::is_prefix;
use crate::store::meta::Meta;
use crate::store::schema::{BlockIo, CudaApi, Gap, GapSegment, GpuOp, Loss, OffCpu};
use crate::store::{Bundle, StoreError};

/// A question and what the rows say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The other explanation.
    pub question: &'static str,
    /// What the recording shows.
    pub answer: String,
}

/// Looks at the gap's time in the raw tables.
pub fn observe(
    bundle: &Bundle,
    gap: &Gap,
    segments: &[GapSegment],
    launch: Option<&CudaApi>,
) -> Result<Vec<Observation>, StoreError> {
    let window = Interval { start: gap.start_ns, end: gap.end_ns };
    // Another tool's trace holds neither scheduler nor disks, and of the GPUs only those of its own process.
    let imported = bundle.meta().mode == "import";
    let attached = |probe: &str| !imported && has_probe(bundle.meta(), probe);
    let mut list = vec![submission(gap, launch)];
    if !imported {
        list.extend(other_gpu_work(bundle, gap, window)?);
    }
    if attached("sched") {
        list.extend(cpu(bundle, segments, window)?);
    }
    if attached("block") {
        list.push(disk(bundle, segments, window)?);
    }
    list.push(losses(bundle, window)?);
    Ok(list)
}

/// Whether every probe of a subsystem is attached: with one missing, "nothing was seen" means nothing. A bundle that
/// lists no probes at all was made elsewhere, and its tables are taken as they are.
fn has_probe(meta: &Meta, subsystem: &str) -> bool {
    meta.probes.iter().filter(|probe| probe.name.contains(subsystem)).all(|probe| probe.attached)
}

fn submission(gap: &Gap, launch: Option<&CudaApi>) -> Observation {
    let answer = match launch {
        None => "the call that launched the next op is not in the recording".to_owned(),
        Some(call) if call.start_ns >= gap.start_ns => {
            let after = call.start_ns - gap.start_ns;
            let whole = gap.end_ns - gap.start_ns;
            format!(
                "no: the next op was launched only {after} after the gap began ({} of it); what ended the gap was not there before",
                percent(after.0, whole.0)
            )
        }
        Some(call) => {
            format!(
                "it had been launched {} before the gap began: the host was in time",
                gap.start_ns - call.start_ns
            )
        }
    };
    Observation { question: "Was the work there and the GPU slow to take it?", answer }
}

/// Ops of other processes and other devices within the gap.
fn other_gpu_work(bundle: &Bundle, gap: &Gap, window: Interval) -> Result<Option<Observation>, StoreError> {
    let mut by_device: BTreeMap<i32, Union> = BTreeMap::new();
    for op in bundle.scan::<GpuOp>()? {
        let op = op?;
        if op.start_ns >= window.end {
            break;
        }
        let part = Interval::new(op.start_ns, op.end_ns).intersect(window);
        if op.device != gap.device && !part.is_empty() {
            by_device.entry(op.device.0).or_default().add(part.start.0, part.end.0);
        }
    }
    if bundle.meta().gpus.len() < 2 {
        return Ok(None);
    }
    let busy: Vec<String> = by_device
        .iter()
        .map(|(device, busy)| format!("GPU {device} {}", percent(busy.length(), window.length().0)))
        .collect();
    let answer = if busy.is_empty() {
        "the other GPUs had no work in this time either".to_owned()
    } else {
        format!("busy meanwhile: {}", busy.join(", "))
    };
    Ok(Some(Observation { question: "What did the other GPUs do?", answer }))
}

/// How long threads of the chains wanted a CPU within the gap.
fn cpu(
    bundle: &Bundle,
    segments: &[GapSegment],
    window: Interval,
) -> Result<Option<Observation>, StoreError> {
    let threads: HashSet<i32> = segments
        .iter()
        .flat_map(|segment| &segment.path)
        .map(|hop| hop.tid.0)
        .filter(|tid| *tid > 0)
        .collect();
    if threads.is_empty() {
        return Ok(None);
    }
    let mut waited = DurationNs(0);
    let mut times = 0;
    for row in bundle.scan::<OffCpu>()? {
        let row = row?;
        if row.off_ns >= window.end {
            break;
        }
        let (Some(woken), Some(on)) = (row.woken_ns, row.on_ns) else { continue };
        let part = Interval::new(woken, on).intersect(window);
        if threads.contains(&row.tid.0) && !part.is_empty() {
            waited = waited + part.length();
            times += 1;
        }
    }
    let answer = format!(
        "the {} of its chains together waited {waited} for a CPU in this time, {}",
        plural(threads.len() as u64, "thread"),
        plural(times, "time")
    );
    Ok(Some(Observation { question: "Was it a lack of CPUs?", answer }))
}

/// What the disks did within the gap.
fn disk(bundle: &Bundle, segments: &[GapSegment], window: Interval) -> Result<Observation, StoreError> {
    let evidence: HashSet<i64> = segments
        .iter()
        .flat_map(|segment| &segment.evidence)
        .filter(|evidence| &*evidence.table == "block_io")
        .map(|evidence| evidence.row.0)
        .collect();
    let mut in_flight = 0;
    let mut waited_for = 0;
    for row in bundle.scan::<BlockIo>()? {
        let row = row?;
        if row.queued_ns >= window.end {
            break;
        }
        if !Interval::new(row.queued_ns, row.completed_ns).intersect(window).is_empty() {
            in_flight += 1;
            waited_for += u64::from(evidence.contains(&row.request_id.0));
        }
    }
    let storage: i64 = segments
        .iter()
        .filter(|segment| is_prefix("storage", &segment.cause) || is_prefix("memory", &segment.cause))
        .map(|segment| (segment.end_ns - segment.start_ns).0)
        .sum();
    let answer = match (in_flight, storage) {
        (0, _) => "no: no request of any recorded thread was at a disk in this time".to_owned(),
        (_, 0) => format!(
            "no: {} of recorded threads were at a disk, but no thread of the chains waited for one",
            plural(in_flight, "request")
        ),
        (_, ns) => format!(
            "for {}: {} at a disk in this time, {waited_for} of them waited for by the chains",
            time(ns),
            plural(in_flight, "request")
        ),
    };
    Ok(Observation { question: "Was it the disk?", answer })
}

fn losses(bundle: &Bundle, window: Interval) -> Result<Observation, StoreError> {
    let mut count = 0;
    for loss in bundle.scan::<Loss>()? {
        let loss = loss?;
        let end = loss.end_ns.max(loss.start_ns + DurationNs(1));
        if !Interval::new(loss.start_ns, end).intersect(window).is_empty() {
            count += loss.count;
        }
    }
    let from_start = MonoNs(bundle.meta().started_ns) <= window.start;
    let answer = match (count, from_start) {
        (0, true) => "no: no event was lost in this time".to_owned(),
        (0, false) => "it began before the recording did".to_owned(),
        (lost, _) => {
            format!("{} lost in intervals that touch this time", plural(lost.max(0) as u64, "event"))
        }
    };
    Ok(Observation { question: "Could something have been missed?", answer })
}
