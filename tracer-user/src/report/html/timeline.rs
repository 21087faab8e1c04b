//! The GPUs' time as the page's timeline draws it: bounded, however long the recording is.
//!
//! Every gap goes into the columns of its device (waiting by cause in equal parts of the window). The longest gaps are kept
//! one by one with their segments and chains.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use crate::event::Text;
use crate::report::explain::{doing, hop_name};
use crate::report::model::Report;
use crate::report::names::Names;
use crate::report::text::{shown, thread};
use crate::report::wording;
use crate::store::schema::{Gap, GapSegment, Hop, Process, Thread};
use crate::store::{Bundle, StoreError};

use super::colors::Colors;
use super::data::{self, Strings};

/// Gaps that are kept one by one.
pub const GAPS: usize = 2_000;
/// Segments of one gap that are kept one by one.
const SEGMENTS: usize = 24;
/// Devices that are drawn.
pub const DEVICES: usize = 16;
/// Columns of all devices together.
const COLUMNS: usize = 12_000;
/// Columns of one device at most: more than a screen has.
const COLUMNS_PER_DEVICE: usize = 2_400;
/// What the kept gaps with their chains may take, in bytes. The shortest lose theirs.
const BYTES: usize = 6 << 20;

/// Reads the gaps of an analysed bundle. `report` is the bundle's.
///
/// # Errors
/// A table cannot be read.
pub fn collect(
    bundle: &Bundle,
    report: &Report,
    colors: &Colors,
    progress: &dyn Fn(u64),
) -> Result<data::Timeline, StoreError> {
    let mut lanes = Lanes::new(report);
    let mut kept = Kept::default();
    for (index, gap) in bundle.scan::<Gap>()?.enumerate() {
        let gap = gap?;
        lanes.gap(&gap);
        kept.gap(gap);
        tell(progress, index);
    }
    for (index, segment) in bundle.scan::<GapSegment>()?.enumerate() {
        let segment = segment?;
        lanes.segment(&segment);
        kept.segment(segment);
        tell(progress, index);
    }
    let names = Names::new(&bundle.read::<Process>()?, &bundle.read::<Thread>()?);
    let mut writer =
        Writer { started: report.recording.started_ns, names, colors, strings: Strings::default() };
    let devices = lanes.devices.into_iter().map(|(number, lane)| writer.lane(report, number, lane)).collect();
    let total = report.totals.gaps;
    let (gaps, chains) = writer.gaps(kept.longest_first());
    Ok(data::Timeline { devices, total_gaps: total, gaps, chains, strings: writer.strings.finish() })
}

fn tell(progress: &dyn Fn(u64), index: usize) {
    if index % 1024 == 1023 {
        progress(1024);
    }
}

/// The columns of each device.
struct Lanes {
    devices: BTreeMap<i32, Lane>,
    /// The device of each gap that is drawn.
    device_of: HashMap<i64, i32>,
}

struct Lane {
    start: i64,
    width: i64,
    columns: Vec<BTreeMap<Text, i64>>,
}

impl Lanes {
    fn new(report: &Report) -> Self {
        // Of many devices those that waited longest.
        let mut devices: Vec<_> = report.devices.iter().filter(|device| device.window_ns() > 0).collect();
        devices.sort_by_key(|device| Reverse(device.gap_ns()));
        devices.truncate(DEVICES);
        let columns = (COLUMNS / devices.len().max(1)).min(COLUMNS_PER_DEVICE) as i64;
        let lanes = devices.into_iter().map(|device| {
            let width = (device.window_ns() / columns).max(1);
            let count = device.window_ns().div_euclid(width) + 1;
            let lane =
                Lane { start: device.window_start_ns, width, columns: vec![BTreeMap::new(); count as usize] };
            (device.device, lane)
        });
        Self { devices: lanes.collect(), device_of: HashMap::new() }
    }

    fn gap(&mut self, gap: &Gap) {
        if self.devices.contains_key(&gap.device.0) {
            self.device_of.insert(gap.gap_id.0, gap.device.0);
        }
    }

    fn segment(&mut self, segment: &GapSegment) {
        let device = self.device_of.get(&segment.gap_id.0);
        let Some(lane) = device.and_then(|device| self.devices.get_mut(device)) else { return };
        let (mut from, end) = (segment.start_ns.0, segment.end_ns.0);
        while from < end {
            let index = (from - lane.start).div_euclid(lane.width);
            // A segment outside of its device's window is an error that the report names; it is not drawn.
            let Some(column) = usize::try_from(index).ok().and_then(|index| lane.columns.get_mut(index))
            else {
                return;
            };
            let until = end.min(lane.start + (index + 1) * lane.width);
            *column.entry(segment.cause.clone()).or_default() += until - from;
            from = until;
        }
    }
}

/// The longest gaps with their segments.
#[derive(Default)]
struct Kept {
    shortest: BinaryHeap<Reverse<(i64, Reverse<i64>)>>,
    gaps: HashMap<i64, (Gap, Vec<GapSegment>)>,
}

impl Kept {
    fn gap(&mut self, gap: Gap) {
        let id = gap.gap_id.0;
        self.shortest.push(Reverse(((gap.end_ns - gap.start_ns).0, Reverse(id))));
        self.gaps.insert(id, (gap, Vec::new()));
        if self.shortest.len() > GAPS
            && let Some(Reverse((_, Reverse(shortest)))) = self.shortest.pop()
        {
            self.gaps.remove(&shortest);
        }
    }

    fn segment(&mut self, segment: GapSegment) {
        let Some((_, segments)) = self.gaps.get_mut(&segment.gap_id.0) else { return };
        if let Some(last) = segments.last_mut()
            && one_piece(last, &segment)
        {
            last.end_ns = segment.end_ns;
            return;
        }
        segments.push(segment);
        // Twice as many are looked at before the shortest go, so that it costs little.
        if segments.len() > 16 * SEGMENTS {
            keep_longest(segments, 8 * SEGMENTS);
        }
    }

    fn longest_first(self) -> Vec<(Gap, Vec<GapSegment>)> {
        let mut gaps: Vec<(Gap, Vec<GapSegment>)> = self.gaps.into_values().collect();
        gaps.sort_by_key(|(gap, _)| (Reverse(gap.end_ns - gap.start_ns), gap.gap_id));
        for (_, segments) in &mut gaps {
            keep_longest(segments, SEGMENTS);
        }
        gaps
    }
}

/// Whether a segment says the same as the one before it.
fn one_piece(before: &GapSegment, after: &GapSegment) -> bool {
    before.end_ns == after.start_ns
        && before.cause == after.cause
        && before.stage == after.stage
        && before.object == after.object
        && (before.pid, before.tid) == (after.pid, after.tid)
        && before.confidence == after.confidence
        && before.path == after.path
}

fn keep_longest(segments: &mut Vec<GapSegment>, most: usize) {
    if segments.len() > most {
        segments.sort_by_key(|segment| Reverse(segment.end_ns - segment.start_ns));
        segments.truncate(most);
    }
    segments.sort_by_key(|segment| segment.start_ns);
}

/// Turns rows into what the page reads.
struct Writer<'a> {
    started: i64,
    names: Names,
    colors: &'a Colors,
    strings: Strings,
}

impl Writer<'_> {
    fn cause(&mut self, code: &str) -> u32 {
        self.strings.cause(&shown(code), wording::cause(code), self.colors.of(code))
    }

    fn lane(&mut self, report: &Report, number: i32, lane: Lane) -> data::Device {
        let known = report.devices.iter().find(|device| device.device == number);
        let columns = lane.columns.into_iter().map(|column| {
            let mut parts: Vec<(u32, i64)> =
                column.into_iter().map(|(cause, ns)| (self.cause(&cause), ns)).collect();
            parts.sort_unstable();
            parts
        });
        let columns = columns.collect();
        data::Device {
            number,
            name: known.map(|device| shown(&device.name)).unwrap_or_default(),
            start: lane.start - self.started,
            end: known.map_or(lane.start, |device| device.window_end_ns) - self.started,
            column_ns: lane.width,
            columns,
        }
    }

    fn gaps(&mut self, gaps: Vec<(Gap, Vec<GapSegment>)>) -> (Vec<data::Gap>, Vec<Vec<data::Hop>>) {
        let mut chains = Chains::default();
        let mut written = Vec::with_capacity(gaps.len());
        let mut rows = 0;
        for (gap, segments) in gaps {
            rows += 64 + segments.len() * 48;
            if self.strings.bytes() + chains.bytes() + rows > BYTES {
                break;
            }
            let pieces = segments.iter().map(|segment| self.piece(&gap, segment, &mut chains)).collect();
            written.push(data::Gap {
                id: gap.gap_id.0,
                device: gap.device.0,
                kind: match &*gap.kind {
                    "exposed_copy" => 1,
                    "exposed_comm" => 2,
                    _ => 0,
                },
                start: gap.start_ns.0 - self.started,
                length: (gap.end_ns - gap.start_ns).0,
                cause: self.cause(&gap.cause),
                stage: self.strings.add(wording::stage(&shown(&gap.stage))),
                enabler: gap.enabler.as_deref().map_or(0, |call| self.strings.add(&shown(call))),
                segments: pieces,
            });
        }
        (written, chains.list)
    }

    fn piece(&mut self, gap: &Gap, segment: &GapSegment, chains: &mut Chains) -> data::Segment {
        let who = segment.pid.zip(segment.tid).map(|(pid, tid)| thread(&self.names.thread(pid.0, tid.0)));
        data::Segment {
            start: (segment.start_ns - gap.start_ns).0,
            length: (segment.end_ns - segment.start_ns).0,
            cause: self.cause(&segment.cause),
            stage: self.strings.add(wording::stage(&shown(&segment.stage))),
            object: segment.object.as_deref().map_or(0, |object| self.strings.add(&shown(object))),
            thread: who.map_or(0, |who| self.strings.add(&who)),
            chain: self.chain(&segment.path, chains),
            inferred: u8::from(&*segment.confidence != "exact"),
        }
    }

    /// The number of a chain, counted from 1; 0 is none.
    fn chain(&mut self, path: &[Hop], chains: &mut Chains) -> u32 {
        if path.is_empty() {
            return 0;
        }
        let hops: Vec<data::Hop> = path
            .iter()
            .map(|hop| {
                let object = hop.object.as_deref().map(shown);
                data::Hop {
                    who: self.strings.add(&hop_name(&self.names, hop)),
                    does: self.strings.add(&doing(hop, object)),
                    edge: hop.edge.as_deref().map_or(0, |edge| self.strings.add(wording::edge(&shown(edge)))),
                }
            })
            .collect();
        chains.add(hops)
    }
}

/// Chains, each once.
#[derive(Default)]
struct Chains {
    list: Vec<Vec<data::Hop>>,
    numbers: HashMap<Vec<data::Hop>, u32>,
    hops: usize,
}

impl Chains {
    fn add(&mut self, hops: Vec<data::Hop>) -> u32 {
        if let Some(number) = self.numbers.get(&hops) {
            return *number;
        }
        self.hops += hops.len();
        self.list.push(hops.clone());
        let number = self.list.len() as u32;
        self.numbers.insert(hops, number);
        number
    }

    fn bytes(&self) -> usize {
        self.hops * 20
    }
}
