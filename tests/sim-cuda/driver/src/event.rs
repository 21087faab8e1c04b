//! Events.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sim_abi::{EventInfo, SyncInfo, SyncKind};

use crate::capture::Captured;
use crate::context::{self, Context};
use crate::device::channel::{Mark, RecordPoint, Work};
use crate::device::machine;
use crate::device::wait::{self, Flavour};
use crate::error::{self, Result};
use crate::handle::Table;
use crate::hook;
use crate::stream::Stream;
use crate::submit;

const BLOCKING_SYNC: u32 = 1;
const DISABLE_TIMING: u32 = 2;

/// All events.
pub static EVENTS: Table<Event> = Table::new(3);

/// An event.
pub struct Event {
    /// Handle.
    pub handle: *mut c_void,
    id: u32,
    context_id: u32,
    flags: u32,
    last: Mutex<Recording>,
}

/// Its latest recording.
#[derive(Clone, Default)]
enum Recording {
    #[default]
    Never,
    At(Mark, Arc<RecordPoint>, u32, u64),
    Captured(Captured),
}

// SAFETY: the handle is a number, never looked into.
unsafe impl Send for Event {}
// SAFETY: as above; the rest is synchronised or fixed.
unsafe impl Sync for Event {}

impl Event {
    /// Makes an event.
    pub fn create(context: &Context, flags: u32) -> Result<Arc<Self>> {
        if flags & !7 != 0 {
            return Err(error::INVALID_VALUE);
        }
        let (id, context_id) = (context.next_event(), context.id);
        Ok(EVENTS.insert(|handle| Self { handle, id, context_id, flags, last: Mutex::default() }))
    }

    fn last(&self) -> Recording {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_last(&self, recording: Recording) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = recording;
    }

    /// Records it in a stream.
    pub fn record(&self, stream: &Arc<Stream>) {
        static SYNC_ID: AtomicU64 = AtomicU64::new(1);
        if let Some(capture) = stream.capture() {
            self.set_last(Recording::Captured(capture.tail(stream)));
            return;
        }
        let point = Arc::new(RecordPoint::default());
        let work = Work::Marker { point: Some(Arc::clone(&point)), data: None };
        let mark = submit::submit(stream, work, None);
        let event_sync_id = SYNC_ID.fetch_add(1, Ordering::Relaxed);
        self.set_last(Recording::At(mark, point, stream.id, event_sync_id));
        hook::event_record(&EventInfo {
            device: stream.device,
            context: stream.context_id,
            stream: stream.id,
            event: self.id,
            event_sync_id,
            correlation_id: hook::correlation_id(),
        });
    }

    /// Lets a stream wait for it.
    pub fn wait_in(&self, stream: &Arc<Stream>) -> Result {
        let start = hook::clock();
        match (self.last(), stream.capture()) {
            (Recording::Never, _) => {}
            (Recording::Captured(captured), None) => captured.join(stream)?,
            (Recording::Captured(captured), Some(capture)) => capture.wait(stream, &captured)?,
            (Recording::At(..), Some(_)) => return Err(error::CAPTURE_ISOLATION),
            (Recording::At(mark, ..), None) => {
                submit::submit_after(stream, Work::Marker { point: None, data: None }, None, vec![mark]);
            }
        }
        let info = self.sync_info(SyncKind::StreamWaitEvent, start, stream.id, 0, false);
        // The context of the stream that waits, not of the event.
        hook::sync(SyncInfo { context: stream.context_id, ..info });
        Ok(())
    }

    /// Waits for it in the calling thread.
    pub fn synchronize(&self) -> Result {
        let start = hook::clock();
        let (mark, stream) = match self.last() {
            Recording::Never => return Ok(()),
            Recording::Captured(_) => return Err(error::CAPTURED_EVENT),
            Recording::At(mark, _, stream, _) => (mark, stream),
        };
        let context = context::current().ok();
        let flavour = if self.flags & BLOCKING_SYNC != 0 {
            Flavour::Block
        } else {
            match context.map_or(Flavour::Spin, |c| c.flavour()) {
                Flavour::Yield => Flavour::Yield,
                // Blocking is the event's own flag; a context's flag alone does not make event waits block.
                Flavour::Spin | Flavour::Block => Flavour::Spin,
            }
        };
        wait::wait(&[mark], flavour);
        hook::sync(self.sync_info(SyncKind::Event, start, stream, 0, false));
        Ok(())
    }

    /// Whether it is reached.
    pub fn query(&self) -> Result {
        let start = hook::clock();
        let (result, stream) = match self.last() {
            Recording::Never => return Ok(()),
            Recording::Captured(_) => return Err(error::CAPTURED_EVENT),
            Recording::At(mark, _, stream, _) => {
                let mut machine = machine::lock();
                machine.advance();
                (if machine.is_settled(&[mark]) { Ok(()) } else { Err(error::NOT_READY) }, stream)
            }
        };
        let code = result.err().map_or(0, |e: error::CuError| e.0);
        hook::sync(self.sync_info(SyncKind::Event, start, stream, code, true));
        result
    }

    /// ms from `start` to this one.
    pub fn elapsed_since(&self, start: &Event) -> Result<f32> {
        if (self.flags | start.flags) & DISABLE_TIMING != 0 {
            return Err(error::INVALID_HANDLE);
        }
        machine::lock().advance();
        let time = |event: &Event| match event.last() {
            Recording::Never => Err(error::INVALID_HANDLE),
            Recording::Captured(_) => Err(error::CAPTURED_EVENT),
            Recording::At(_, point, ..) => match point.0.load(Ordering::Acquire) {
                0 => Err(error::NOT_READY),
                at => Ok(at),
            },
        };
        let (from, to) = (time(start)?, time(self)?);
        Ok((to as f64 - from as f64) as f32 / 1e6)
    }

    fn sync_info(&self, kind: SyncKind, start: u64, stream: u32, result: i32, is_query: bool) -> SyncInfo {
        let event_sync_id = if let Recording::At(_, _, _, id) = self.last() { id } else { 0 };
        SyncInfo {
            kind,
            is_query,
            context: self.context_id,
            stream,
            event: self.id,
            event_sync_id,
            correlation_id: hook::correlation_id(),
            result,
            start,
            end: 0,
        }
    }
}
