//! What NVTX calls, in the program's threads.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;

use tracer_abi::shim::{MARKER_NAME_MAX_BYTES, MarkerNameRecord, MarkerRecord};

use super::names::{Wide, narrow, wide};
use super::nccl::{self, Call};
use super::open::{self, Open};
use super::payload::{EventAttributes, Message, Payload, PayloadData};
use super::{SINK, Sink, texts, wanted};
use crate::clock;

/// Keeps a panic inside; it is counted.
fn guarded<T>(without: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        if let Some(sink) = SINK.get() {
            sink.ring.header().panics.fetch_add(1, Relaxed);
        }
        without
    })
}

impl Sink {
    /// The hash of a name, which is in the ring after this; 0: it has none.
    fn intern(&self, name: &[u8]) -> u64 {
        if name.is_empty() {
            return 0;
        }
        self.names.intern_as(name, &self.ring, |hash, name| {
            let kept = &name[..name.len().min(MARKER_NAME_MAX_BYTES)];
            let truncated = u32::from(kept.len() < name.len());
            (MarkerNameRecord { hash, length: kept.len() as u32, truncated }, kept)
        })
    }

    /// The hash of a message.
    ///
    /// # Safety
    /// Handed over by a program that keeps NVTX's rules.
    unsafe fn name(&self, message: Message) -> u64 {
        match message {
            Message::None => 0,
            // SAFETY: by the caller's promise.
            Message::Narrow(text) => self.intern(unsafe { narrow(text) }),
            Message::Wide(text) => {
                let mut room: Wide = [0; MARKER_NAME_MAX_BYTES + 1];
                // SAFETY: by the caller's promise.
                self.intern(unsafe { wide(text, &mut room) })
            }
            Message::Registered(number) => texts::get(number).map_or(0, |name| self.intern(name)),
        }
    }

    fn write(&self, range: &Open, end_ns: u64, thread: u32) {
        let domain = texts::get(range.domain).map_or(0, |name| self.intern(name));
        let (start_ns, name) = (range.start_ns, range.name);
        self.ring.write(&MarkerRecord { start_ns, end_ns, domain, name, thread, reserved: 0 });
    }
}

/// A range that begins now in a domain.
///
/// # Safety
/// As [`Sink::name`].
unsafe fn begin(domain: usize, message: Message, payload: Option<Payload>) -> Open {
    let function = match message {
        Message::Registered(number) if is_nccl(domain) => texts::function(number),
        _ => None,
    };
    let call = function.map(|function| Call::begin(function, payload.as_ref()));
    let sink = wanted();
    // SAFETY: by the caller's promise.
    let name = sink.map_or(0, |sink| unsafe { sink.name(message) });
    // Read last: the range begins when this is over.
    Open { start_ns: if sink.is_some() { clock::monotonic_ns() } else { 0 }, domain, name, call }
}

fn is_nccl(domain: usize) -> bool {
    texts::get(domain) == Some(nccl::DOMAIN)
}

fn end(domain: usize, payload: Option<Payload>) -> i32 {
    let end_ns = if wanted().is_some() { clock::monotonic_ns() } else { 0 };
    let (range, level) = open::pop(domain);
    let Some(mut range) = range else { return level };
    let mut depth = 0;
    if let Some(call) = &mut range.call {
        if let Some(payload) = &payload {
            call.add(payload);
            call.remember();
        }
        depth = open::groups(call.group_change());
    }
    if let Some(sink) = wanted().filter(|_| range.start_ns != 0 && end_ns != 0) {
        let thread = open::thread_id();
        if let Some(call) = &range.call {
            sink.ring.write(&call.record(range.start_ns, end_ns, thread, depth));
        }
        sink.write(&range, end_ns, thread);
    }
    level
}

/// # Safety
/// As [`Sink::name`].
unsafe fn mark(domain: usize, message: Message) {
    // SAFETY: by the caller's promise.
    let range = unsafe { begin(domain, message, None) };
    if let Some(sink) = wanted().filter(|_| range.start_ns != 0) {
        sink.write(&range, range.start_ns, open::thread_id());
    }
}

/// # Safety
/// Null, or attributes by NVTX's rules.
unsafe fn attributes(event: *const EventAttributes) -> (Message, Option<Payload>) {
    // SAFETY: by the caller's promise.
    let Some(event) = (unsafe { event.as_ref() }) else { return (Message::None, None) };
    if usize::from(event.size) < size_of::<EventAttributes>() {
        return (Message::None, None);
    }
    // SAFETY: by the caller's promise.
    (event.message(), unsafe { event.payload() })
}

type Domain = *const c_void;

/// Functions of the default domain: `nvtxMarkEx` and so on.
pub mod core {
    use super::{EventAttributes, Message, attributes, begin, c_char, end, guarded, mark, open};

    pub unsafe extern "C" fn mark_ex(event: *const EventAttributes) {
        // SAFETY: NVTX's contract.
        guarded((), || unsafe { mark(0, attributes(event).0) });
    }
    pub unsafe extern "C" fn mark_a(text: *const c_char) {
        // SAFETY: NVTX's contract.
        guarded((), || unsafe { mark(0, Message::Narrow(text)) });
    }
    pub unsafe extern "C" fn mark_w(text: *const libc::wchar_t) {
        // SAFETY: NVTX's contract.
        guarded((), || unsafe { mark(0, Message::Wide(text)) });
    }
    pub unsafe extern "C" fn start_ex(event: *const EventAttributes) -> u64 {
        // SAFETY: NVTX's contract.
        guarded(0, || unsafe { open::start(&begin(0, attributes(event).0, None)) })
    }
    pub unsafe extern "C" fn start_a(text: *const c_char) -> u64 {
        // SAFETY: NVTX's contract.
        guarded(0, || unsafe { open::start(&begin(0, Message::Narrow(text), None)) })
    }
    pub unsafe extern "C" fn start_w(text: *const libc::wchar_t) -> u64 {
        // SAFETY: NVTX's contract.
        guarded(0, || unsafe { open::start(&begin(0, Message::Wide(text), None)) })
    }
    pub unsafe extern "C" fn range_end(number: u64) {
        guarded((), || super::end_started(number));
    }
    pub unsafe extern "C" fn push_ex(event: *const EventAttributes) -> i32 {
        guarded(-1, || {
            // SAFETY: NVTX's contract.
            let (message, payload) = unsafe { attributes(event) };
            // SAFETY: as above.
            open::push(unsafe { begin(0, message, payload) })
        })
    }
    pub unsafe extern "C" fn push_a(text: *const c_char) -> i32 {
        // SAFETY: NVTX's contract.
        guarded(-1, || open::push(unsafe { begin(0, Message::Narrow(text), None) }))
    }
    pub unsafe extern "C" fn push_w(text: *const libc::wchar_t) -> i32 {
        // SAFETY: NVTX's contract.
        guarded(-1, || open::push(unsafe { begin(0, Message::Wide(text), None) }))
    }
    pub unsafe extern "C" fn pop() -> i32 {
        guarded(-1, || end(0, None))
    }
}

fn end_started(number: u64) {
    let Some((range, thread)) = open::end(number) else { return };
    if let Some(sink) = wanted().filter(|_| range.start_ns != 0) {
        sink.write(&range, clock::monotonic_ns(), thread);
    }
}

/// Functions of named domains: `nvtxDomainMarkEx` and so on. A domain's handle is its number in `texts`, and so is that of a
/// registered string.
pub mod domains {
    use super::{
        Domain, EventAttributes, Payload, PayloadData, Wide, attributes, begin, c_char, end, guarded, mark,
        narrow, open, texts, wide,
    };

    pub unsafe extern "C" fn mark_ex(domain: Domain, event: *const EventAttributes) {
        // SAFETY: NVTX's contract.
        guarded((), || unsafe { mark(domain.addr(), attributes(event).0) });
    }
    pub unsafe extern "C" fn start_ex(domain: Domain, event: *const EventAttributes) -> u64 {
        // SAFETY: NVTX's contract.
        guarded(0, || unsafe { open::start(&begin(domain.addr(), attributes(event).0, None)) })
    }
    pub unsafe extern "C" fn range_end(_domain: Domain, number: u64) {
        guarded((), || super::end_started(number));
    }
    pub unsafe extern "C" fn push_ex(domain: Domain, event: *const EventAttributes) -> i32 {
        guarded(-1, || {
            // SAFETY: NVTX's contract.
            let (message, payload) = unsafe { attributes(event) };
            // SAFETY: as above.
            open::push(unsafe { begin(domain.addr(), message, payload) })
        })
    }
    pub unsafe extern "C" fn pop(domain: Domain) -> i32 {
        guarded(-1, || end(domain.addr(), None))
    }
    pub unsafe extern "C" fn pop_payload(domain: Domain, data: *const PayloadData, count: usize) -> i32 {
        guarded(-1, || {
            // SAFETY: NVTX's contract: an array of that length.
            let payload = if count > 0 { unsafe { Payload::first(data) } } else { None };
            end(domain.addr(), payload)
        })
    }
    pub unsafe extern "C" fn register_a(_domain: Domain, text: *const c_char) -> Domain {
        // SAFETY: NVTX's contract.
        guarded(std::ptr::null(), || handle(texts::register(unsafe { narrow(text) })))
    }
    pub unsafe extern "C" fn register_w(_domain: Domain, text: *const libc::wchar_t) -> Domain {
        guarded(std::ptr::null(), || {
            let mut room: Wide = [0; size_of::<Wide>()];
            // SAFETY: NVTX's contract.
            handle(texts::register(unsafe { wide(text, &mut room) }))
        })
    }

    fn handle(number: usize) -> Domain {
        std::ptr::without_provenance(number)
    }
}
