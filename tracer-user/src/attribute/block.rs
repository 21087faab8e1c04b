//! Gaps walked side by side, in blocks.
//!
//! No gap's walk needs another's, so that blocks of gaps go to as many threads as there are CPUs. What comes out does not
//! depend on how many those are: every block has strings and hops of its own, and blocks are taken in order of time.

use std::num::NonZero;
use std::sync::mpsc::sync_channel;

use super::cause::Cause;
use super::gaps::{DeviceTime, RawGap};
use super::ledger::Ledger;
use super::lost::LostTime;
use super::names::Names;
use super::path::{EvidenceTable, PathId, Paths};
use super::role::{self, Roles};
use super::segment::Segment;
use super::stage::Stage;
use super::timeline::{NO_INDEX, Timeline};
use super::walk::Walker;
use super::{Violation, conserve, enabler, gaps};
use crate::event::{DeviceId, GapId, RowId, Text};
use crate::store::schema;

/// Most gaps in a block: their segments fill a good part of a row group of a table.
const MOST_GAPS: usize = 4096;
/// Fewest gaps in a block, where there are enough: some milliseconds of work.
const FEWEST_GAPS: usize = 1024;
/// Into how many blocks fewer gaps than those are divided, so that all threads have some.
const BLOCKS: usize = 8;

/// A gap with its cause.
#[derive(Clone, Copy, Debug)]
pub struct AttributedGap {
    /// Where and when.
    pub gap: RawGap,
    /// Its segments, a range of [`Block::segments`].
    pub segments: (usize, usize),
    /// The synchronising call that had drained the launch queue, an index into [`Timeline::api`].
    pub enabler: Option<usize>,
}

/// Gaps that follow one another, with their causes.
#[derive(Debug, Default)]
pub struct Block {
    /// Its number.
    pub number: usize,
    /// The number of its first gap.
    pub first: usize,
    /// Gaps by start.
    pub gaps: Vec<AttributedGap>,
    /// Their segments, gap by gap, each gap's in order of time.
    pub segments: Vec<Segment>,
    /// The strings of segments and hops.
    pub names: Names,
    /// The chains.
    pub paths: Paths,
}

/// A timeline whose gaps are found and not yet walked.
pub struct Found<'a> {
    timeline: &'a Timeline,
    /// The threads' roles.
    pub roles: Roles,
    /// What each device did.
    pub devices: Vec<DeviceTime>,
    /// All gaps, by start.
    pub gaps: Vec<RawGap>,
    lost: Vec<(DeviceId, LostTime)>,
}

impl<'a> Found<'a> {
    /// Finds devices, gaps and roles.
    ///
    /// # Errors
    /// Time does not add up.
    pub fn new(timeline: &'a Timeline) -> Result<Self, Violation> {
        let roles = role::find_roles(timeline);
        let (mut devices, mut found, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        for (device, range) in timeline.device_ops() {
            let (time, gaps) = gaps::find_gaps(timeline, device, range);
            conserve::check_device(&time)?;
            lost.push((device, LostTime::of_device(timeline, device)));
            devices.push(time);
            found.extend(gaps);
        }
        found.sort_by_key(|gap: &RawGap| (gap.time.start, gap.device));
        Ok(Self { timeline, roles, devices, gaps: found, lost })
    }

    /// Walks all gaps; `make` is called on each block in one of several threads, and `take` on what it made, in order.
    ///
    /// # Errors
    /// Time does not add up, or `take` failed.
    pub fn walk<T: Send, E: From<Violation>>(
        &self,
        make: impl Fn(Block) -> T + Sync,
        mut take: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let size = self.gaps.len().div_ceil(BLOCKS).clamp(FEWEST_GAPS, MOST_GAPS);
        let blocks = self.gaps.len().div_ceil(size);
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(blocks);
        std::thread::scope(|scope| {
            // Each thread has the blocks of its turn, and is at most one ahead of being asked for them.
            let turns: Vec<_> = (0..threads)
                .map(|turn| {
                    let (sender, receiver) = sync_channel(1);
                    let make = &make;
                    scope.spawn(move || {
                        for block in (turn..blocks).step_by(threads) {
                            if sender.send(self.block(block, size).map(make)).is_err() {
                                return; // Taking failed.
                            }
                        }
                    });
                    receiver
                })
                .collect();
            for block in 0..blocks {
                // A thread that is gone has panicked; the scope says so.
                let Ok(walked) = turns[block % threads].recv() else { return Ok(()) };
                take(walked?)?;
            }
            Ok(())
        })
    }

    /// Walks all gaps into one block.
    ///
    /// # Errors
    /// Time does not add up.
    pub fn walk_all(&self) -> Result<Block, Violation> {
        let mut whole = Block { names: self.timeline.names.clone(), ..Block::default() };
        self.walk(
            |block| block,
            |block| {
                whole.append(&block);
                Ok::<(), Violation>(())
            },
        )?;
        Ok(whole)
    }

    fn block(&self, number: usize, size: usize) -> Result<Block, Violation> {
        let first = number * size;
        let found = &self.gaps[first..self.gaps.len().min(first + size)];
        let mut walker = Walker::new(self.timeline, &self.roles);
        let mut block = Block { number, first, ..Block::default() };
        for (index, gap) in (first..).zip(found) {
            let mut pieces = walker.walk(index as u32, gap);
            if let Some((_, lost)) = self.lost.iter().find(|(device, _)| *device == gap.device) {
                pieces = lost.cut_out_of(pieces);
            }
            if self.timeline.bounded.contains(&gap.device) {
                // Where the gap begins and ends follows from calls, not from the device.
                for piece in &mut pieces {
                    piece.inferred = true;
                }
            }
            conserve::check_gap(index, gap, &pieces)?;
            let first = block.segments.len();
            block.segments.extend(pieces);
            let enabler = enabler::of_gap(self.timeline, gap);
            block.gaps.push(AttributedGap { gap: *gap, segments: (first, block.segments.len()), enabler });
        }
        (block.names, block.paths) = (walker.names, walker.paths);
        Ok(block)
    }
}

impl Block {
    /// Adds the gaps that follow its own.
    pub fn append(&mut self, other: &Self) {
        let (segments, hops) = (self.segments.len(), self.paths.len());
        let Self { names, paths, .. } = self;
        paths.extend(&other.paths, |name| names.adopt(&other.names, name));
        self.segments.extend(other.segments.iter().map(|segment| Segment {
            object: self.names.adopt(&other.names, segment.object),
            path: segment.path.after(hops),
            ..*segment
        }));
        self.gaps.extend(other.gaps.iter().map(|gap| AttributedGap {
            segments: (segments + gap.segments.0, segments + gap.segments.1),
            ..*gap
        }));
    }

    /// The segments of a gap.
    #[must_use]
    pub fn segments_of(&self, gap: &AttributedGap) -> &[Segment] {
        &self.segments[gap.segments.0..gap.segments.1]
    }

    fn numbered(&self) -> impl Iterator<Item = (GapId, &AttributedGap)> {
        (self.first as i64..).map(GapId).zip(&self.gaps)
    }

    /// The rows of the table `gaps`, in its order.
    pub fn gap_rows<'a>(&'a self, timeline: &'a Timeline) -> impl Iterator<Item = schema::Gap> + 'a {
        self.numbered().map(|(gap_id, gap)| {
            let ledger = Ledger::of(self.segments_of(gap));
            let next = gap.gap.next.map(|next| &timeline.ops[next]);
            let launch = next.filter(|op| op.launch != NO_INDEX).map(|op| op.launch as usize);
            schema::Gap {
                gap_id,
                device: gap.gap.device,
                kind: Text::fixed(gap.gap.activity.gap_kind().unwrap_or_default()),
                start_ns: gap.gap.time.start,
                end_ns: gap.gap.time.end,
                prev_op: gap.gap.previous.map(|previous| timeline.ops[previous].id),
                next_op: next.map(|op| op.id),
                cause: Text::fixed(ledger.dominant_cause().map_or("", Cause::code)),
                stage: Text::fixed(ledger.dominant_stage().unwrap_or(Stage::Other).as_str()),
                enabler: gap.enabler.and_then(|call| timeline.names.to_text(timeline.api[call].name)),
                pid: next.map(|op| op.pid),
                tid: launch.map(|call| timeline.thread(timeline.api[call].thread).tid),
            }
        })
    }

    /// The rows of the table `gap_segments`, gap by gap.
    pub fn segment_rows<'a>(
        &'a self,
        timeline: &'a Timeline,
    ) -> impl Iterator<Item = schema::GapSegment> + 'a {
        self.numbered().flat_map(move |(gap_id, gap)| {
            self.segments_of(gap).iter().enumerate().map(move |(seq, segment)| {
                let thread = segment.thread(&self.paths);
                schema::GapSegment {
                    gap_id,
                    seq: seq as i32,
                    start_ns: segment.time.start,
                    end_ns: segment.time.end,
                    cause: Text::fixed(segment.cause.code()),
                    stage: Text::fixed(segment.stage.as_str()),
                    object: self.names.to_text(segment.object),
                    pid: thread.map(|(pid, _)| pid),
                    tid: thread.map(|(_, tid)| tid),
                    path: self.paths.to_rows(segment.path, &self.names),
                    evidence: self.evidence(timeline, gap, segment),
                    confidence: Text::fixed(if segment.inferred { "inferred" } else { "exact" }),
                }
            })
        })
    }

    /// The op that ended the gap and its launch, then the rows of the chain. Lost time rests on nothing.
    fn evidence(&self, timeline: &Timeline, gap: &AttributedGap, segment: &Segment) -> Vec<schema::Evidence> {
        let mut found: Vec<(EvidenceTable, i64)> = Vec::with_capacity(16);
        found.extend(self.paths.evidence(segment.path));
        if let Some(next) = gap.gap.next.filter(|_| segment.path != PathId::ROOT) {
            let next = &timeline.ops[next];
            if next.launch != NO_INDEX {
                found.push((EvidenceTable::CudaApi, timeline.api[next.launch as usize].id.0));
            }
            found.push((EvidenceTable::GpuOps, next.id.0));
        }
        found.reverse();
        let mut rows: Vec<schema::Evidence> = Vec::with_capacity(found.len());
        for (index, row) in found.iter().enumerate() {
            // Chains are short.
            if !found[..index].contains(row) {
                rows.push(schema::Evidence { table: Text::fixed(row.0.as_str()), row: RowId(row.1) });
            }
        }
        rows
    }
}
