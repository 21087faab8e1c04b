//! The thread that takes samples out of their ring and names them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use tracer_abi::kernel::{PYTHON_FRAMES, RecordHeader, STACK_BYTES, SampleRecord, sample_flags};

use super::modules::Modules;
use super::process::Process;
use super::unwind::Cache;
use crate::event::{MonoNs, Pid, RowId, Text, Tid};
use crate::record::priority;
use crate::record::probes::StackSource;
use crate::store::schema::Sample;

/// Between two looks at the ring. A process that ends sooner after a sample takes the names that were not read yet with it.
const INTERVAL: Duration = Duration::from_millis(20);
/// Processes that are kept.
const MOST_PROCESSES: usize = 1024;
/// Samples handed on at once.
const BATCH: usize = 512;
/// Time that is taken for what is left in the ring at the end.
const LAST: Duration = Duration::from_secs(1);

/// What both threads see.
#[derive(Default)]
pub struct Shared {
    /// The clock has stopped: take what is left and end.
    pub stop: AtomicBool,
    /// Samples that were not handed on, since nobody took them in time.
    pub refused: AtomicU64,
    /// Records that were of another form.
    pub malformed: AtomicU64,
}

/// Takes samples until it is told to stop.
pub fn run(mut source: StackSource, shared: &Arc<Shared>, rows: &SyncSender<Vec<Sample>>) {
    priority::yield_to_others();
    let mut namer = Namer::default();
    let mut last: Option<Instant> = None;
    let mut pending = Vec::new();
    loop {
        let stopping = shared.stop.load(Ordering::Acquire);
        if stopping && last.is_none() {
            last = Some(Instant::now());
        }
        let in_time = || last.is_none_or(|since| since.elapsed() < LAST);
        let mut taken = 0;
        while pending.len() < BATCH && in_time() {
            let Some(bytes) = source.take() else { break };
            taken += 1;
            match RawSample::parse(&bytes) {
                Some(sample) => pending.push(namer.name(&sample, &mut source)),
                None => {
                    shared.malformed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        if !pending.is_empty() {
            match rows.try_send(std::mem::take(&mut pending)) {
                Ok(()) => {}
                // They wait here, and what comes after them in the ring.
                Err(TrySendError::Full(batch)) if in_time() => pending = batch,
                Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                    shared.refused.fetch_add(batch.len() as u64, Ordering::Relaxed);
                }
            }
        }
        if taken < BATCH {
            if stopping && pending.is_empty() {
                return;
            }
            std::thread::sleep(INTERVAL);
        }
    }
}

/// A record whose lengths were checked, and whose parts lie in a copy of its own.
pub struct RawSample {
    record: Box<SampleRecord>,
}

impl RawSample {
    /// Copies a record out of the ring, if its length is what it says.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let head = std::mem::offset_of!(SampleRecord, stack);
        if bytes.len() < head || bytes.len() > size_of::<SampleRecord>() {
            return None;
        }
        // SAFETY: a structure of integers and arrays of them: all zeros is a value.
        let mut record: Box<SampleRecord> = unsafe { Box::new(std::mem::zeroed()) };
        // SAFETY: every bit pattern is a value of the structure; both are as long as the copy, and do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut *record).cast::<u8>(), bytes.len());
        }
        let sane = bytes.len() - head == record.stack_bytes as usize
            && record.stack_bytes as usize <= STACK_BYTES
            && record.python_frames as usize <= PYTHON_FRAMES;
        sane.then_some(Self { record })
    }

    fn header(&self) -> &RecordHeader {
        &self.record.header
    }
}

/// Everything that names need.
#[derive(Default)]
struct Namer {
    processes: HashMap<u32, Process>,
    modules: Modules,
    cache: Cache,
    samples: i64,
}

impl Namer {
    fn name(&mut self, sample: &RawSample, source: &mut StackSource) -> Sample {
        let record = &*sample.record;
        self.samples += 1;
        let pid = Pid(record.tgid as i32);
        if !self.processes.get(&record.tgid).is_some_and(|process| process.is(record)) {
            self.make_room();
            self.processes.insert(record.tgid, Process::new(pid, record.mm, &mut self.modules));
        }
        let mut frames = Vec::new();
        let mut incomplete = true;
        if let Some(process) = self.processes.get_mut(&record.tgid) {
            process.used = self.samples as u64;
            if let Some(found) = process.find_python() {
                source.tell_python(record.tgid, &found);
            }
            let python = &record.python[..record.python_frames as usize];
            let stack = &record.stack[..record.stack_bytes as usize];
            let named = process.name(record, python, stack, &mut self.modules, &mut self.cache);
            (frames, incomplete) = (named.frames, named.incomplete);
        }
        Sample {
            id: RowId(self.samples),
            pid,
            tid: Tid(record.tid as i32),
            time_ns: MonoNs(sample.header().time_ns as i64),
            cpu: record.header.cpu as i32,
            mode: Text::from(if record.flags & sample_flags::IN_KERNEL != 0 { "kernel" } else { "user" }),
            frames,
            incomplete,
        }
    }

    /// Forgets the process that was sampled the longest ago, if there are too many.
    fn make_room(&mut self) {
        if self.processes.len() < MOST_PROCESSES {
            return;
        }
        let oldest = self.processes.iter().min_by_key(|(_, process)| process.used).map(|(tgid, _)| *tgid);
        if let Some(oldest) = oldest {
            self.processes.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_records_of_the_length_that_they_say_are_taken() {
        // SAFETY: as above.
        let mut record: Box<SampleRecord> = unsafe { Box::new(std::mem::zeroed()) };
        record.stack_bytes = 100;
        record.python_frames = 3;
        let head = std::mem::offset_of!(SampleRecord, stack);
        // SAFETY: the bytes of a structure of integers without padding.
        let bytes = |record: &SampleRecord| unsafe {
            std::slice::from_raw_parts((&raw const *record).cast::<u8>(), size_of::<SampleRecord>()).to_vec()
        };
        let whole = bytes(&record);
        assert!(RawSample::parse(&whole[..head + 100]).is_some());
        for length in [0, 16, head - 1, head, head + 99, head + 101, whole.len()] {
            assert!(RawSample::parse(&whole[..length]).is_none(), "{length}");
        }
        record.python_frames = PYTHON_FRAMES as u32 + 1;
        assert!(RawSample::parse(&bytes(&record)[..head + 100]).is_none());
    }
}
