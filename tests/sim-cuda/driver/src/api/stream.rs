//! Streams.

use std::ffi::c_void;

use sim_abi::{SyncInfo, SyncKind};

use super::call::{api, put, put_if};
use crate::capture::Capture;
use crate::context;
use crate::device::channel::{HostCall, Work};
use crate::device::machine;
use crate::error::{self, Result};
use crate::event::EVENTS;
use crate::hook;
use crate::stream::{self, Kind, Stream};
use crate::submit;

fn sync_info(stream: &Stream, start: u64, result: i32, is_query: bool) -> SyncInfo {
    SyncInfo {
        kind: SyncKind::Stream,
        is_query,
        context: stream.context_id,
        stream: stream.id,
        event: u32::MAX,
        event_sync_id: 0,
        correlation_id: hook::correlation_id(),
        result,
        start,
        end: 0,
    }
}

fn create(handle: *mut *mut c_void, flags: u32, priority: i32) -> Result {
    if handle.is_null() {
        return Err(error::INVALID_VALUE);
    }
    let made = Stream::create(&*context::current()?, Kind::Made, flags, priority)?;
    put(handle, made.handle)
}

fn not_capturing(stream: &Stream) -> Result {
    if stream.capture().is_some() { Err(error::CAPTURE_UNSUPPORTED) } else { Ok(()) }
}

api! {
    /// Makes a stream.
    fn cuStreamCreate[](handle: *mut *mut c_void, flags: u32) {
        create(handle, flags, 0)
    }

    /// Makes a stream with a priority.
    fn cuStreamCreateWithPriority[](handle: *mut *mut c_void, flags: u32, priority: i32) {
        create(handle, flags, priority)
    }

    /// Takes it away; what is in it is still done.
    fn cuStreamDestroy_v2[](handle: *mut c_void) {
        let stream = stream::STREAMS.get(handle).filter(|s| s.kind == Kind::Made).ok_or(error::INVALID_HANDLE)?;
        stream.destroy();
        Ok(())
    }

    /// Waits for all its work.
    fn cuStreamSynchronize[twin cuStreamSynchronize_ptsz](handle: *mut c_void) {
        let start = hook::clock();
        let stream = stream::resolve(handle)?;
        not_capturing(&stream)?;
        let tail = machine::lock().tail(stream.channel);
        submit::wait(&[tail], &*context::by_handle(stream.context)?);
        hook::sync(sync_info(&stream, start, 0, false));
        Ok(())
    }

    /// Whether all its work is done.
    fn cuStreamQuery[twin cuStreamQuery_ptsz](handle: *mut c_void) {
        let start = hook::clock();
        let stream = stream::resolve(handle)?;
        not_capturing(&stream)?;
        let mut machine = machine::lock();
        machine.advance();
        let tail = machine.tail(stream.channel);
        let result = if machine.is_settled(&[tail]) { Ok(()) } else { Err(error::NOT_READY) };
        drop(machine);
        hook::sync(sync_info(&stream, start, result.err().map_or(0, |e: error::CuError| e.0), true));
        result
    }

    /// Lets it wait for an event.
    fn cuStreamWaitEvent[twin cuStreamWaitEvent_ptsz](handle: *mut c_void, event: *mut c_void, flags: u32) {
        if flags & !1 != 0 {
            return Err(error::INVALID_VALUE);
        }
        let stream = stream::resolve(handle)?;
        EVENTS.get(event).ok_or(error::INVALID_HANDLE)?.wait_in(&stream)
    }

    /// Lets it call a function of the host.
    fn cuLaunchHostFunc[twin cuLaunchHostFunc_ptsz](
        handle: *mut c_void, function: Option<unsafe extern "C" fn(*mut c_void)>, user: *mut c_void,
    ) {
        let stream = stream::resolve(handle)?;
        let function = function.ok_or(error::INVALID_VALUE)?;
        let info = hook::HostOrigin {
            device: stream.device,
            context: stream.context_id,
            stream: stream.id,
            correlation_id: hook::correlation_id(),
            graph_id: 0,
            graph_node_id: 0,
        };
        submit::submit(&stream, Work::Host(HostCall { function, user, info }), None);
        Ok(())
    }

    /// Its priority.
    fn cuStreamGetPriority[twin cuStreamGetPriority_ptsz](handle: *mut c_void, priority: *mut i32) {
        put(priority, stream::resolve(handle)?.priority)
    }

    /// Its flags.
    fn cuStreamGetFlags[twin cuStreamGetFlags_ptsz](handle: *mut c_void, flags: *mut u32) {
        put(flags, stream::resolve(handle)?.flags)
    }

    /// Its context.
    fn cuStreamGetCtx[twin cuStreamGetCtx_ptsz](handle: *mut c_void, context: *mut *mut c_void) {
        put(context, stream::resolve(handle)?.context)
    }

    /// A number that names it.
    fn cuStreamGetId[twin cuStreamGetId_ptsz](handle: *mut c_void, id: *mut u64) {
        put(id, stream::resolve(handle)?.handle as u64)
    }

    /// Accepted without effect: managed memory is the host's.
    fn cuStreamAttachMemAsync[twin cuStreamAttachMemAsync_ptsz](
        handle: *mut c_void, address: u64, len: usize, flags: u32,
    ) {
        let _ = (address, len, flags);
        stream::resolve(handle).map(drop)
    }

    /// Whether it captures a graph.
    fn cuStreamIsCapturing[twin cuStreamIsCapturing_ptsz](handle: *mut c_void, status: *mut i32) {
        put(status, i32::from(stream::resolve(handle)?.capture().is_some()))
    }

    /// Whether it captures a graph, and which.
    fn cuStreamGetCaptureInfo_v2[twin cuStreamGetCaptureInfo_v2_ptsz](
        handle: *mut c_void, status: *mut i32, id: *mut u64, graph: *mut *mut c_void, deps: *mut *const c_void,
        count: *mut usize,
    ) {
        let capture = stream::resolve(handle)?.capture();
        put(status, i32::from(capture.is_some()))?;
        put_if(id, capture.map_or(0, |capture| capture.id));
        // The graph does not exist before the end of the capture.
        put_if(graph, std::ptr::null_mut());
        put_if(deps, std::ptr::null());
        put_if(count, 0);
        Ok(())
    }

    /// Begins to capture what is given to it.
    fn cuStreamBeginCapture_v2[twin cuStreamBeginCapture_v2_ptsz](handle: *mut c_void, mode: i32) {
        if !(0..=2).contains(&mode) {
            return Err(error::INVALID_VALUE);
        }
        let stream = stream::resolve(handle)?;
        if stream.kind == Kind::Null {
            return Err(error::CAPTURE_UNSUPPORTED);
        }
        Capture::begin(&stream)
    }

    /// Ends it; the result is a graph.
    fn cuStreamEndCapture[twin cuStreamEndCapture_ptsz](handle: *mut c_void, graph: *mut *mut c_void) {
        let stream = stream::resolve(handle)?;
        let capture = stream.capture().ok_or(error::INVALID_VALUE)?;
        let made = capture.end(&stream)?;
        put(graph, made.handle)
    }
}
