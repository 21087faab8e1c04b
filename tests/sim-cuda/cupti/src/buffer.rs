//! The client's buffers: asked for, filled, given back.
//!
//! A record of device work takes its place at the launch, in the launching thread, and gets its times when the work is
//! over. A buffer can go back when it has no such open place left; a forced flush gives it back with them, and they are
//! never filled.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::clock::{self, Clock};
use crate::driver;
use crate::fault;
use crate::record::{self, Record};
use crate::selection;
use crate::version;
use crate::{kind, worker};

type RequestV1 = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type CompleteV1 = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
type RequestV2 = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize, *mut RequestInfo);
type CompleteV2 = unsafe extern "C" fn(*mut u8, usize, usize, *mut CompleteInfo);

/// `CUpti_BufferCallbackRequestInfo`.
#[repr(C)]
pub struct RequestInfo {
    struct_size: usize,
}

/// `CUpti_BufferCallbackCompleteInfo`.
#[repr(C)]
pub struct CompleteInfo {
    struct_size: usize,
    thread_id: u64,
    layouts: *mut c_void,
    layout_count: usize,
}

/// The client's callbacks.
#[derive(Clone, Copy)]
pub enum Callbacks {
    /// Of the global functions.
    V1(RequestV1, CompleteV1),
    /// Of a subscriber.
    V2(RequestV2, CompleteV2),
}

struct Buffer {
    address: usize,
    size: usize,
    used: usize,
    records: usize,
    max_records: usize,
    open: usize,
    thread: u64,
    full_since: Option<Instant>,
}

/// The place of a record of device work.
struct Slot {
    buffer: u64,
    offset: usize,
    kind: u32,
    launched: u64,
    clock: Clock,
}

#[derive(Default)]
struct Store {
    callbacks: Option<Callbacks>,
    per_thread: bool,
    buffers: HashMap<u64, Buffer>,
    current: HashMap<u64, u64>,
    full: VecDeque<u64>,
    spare: Vec<(usize, usize, usize)>,
    slots: HashMap<u64, Slot>,
    next: u64,
    dropped: usize,
    counts: Counts,
}

/// For the faults that hit every so manieth.
#[derive(Default)]
struct Counts {
    records: u64,
    device_records: u64,
    launched: u64,
    all: u64,
    buffers: u64,
}

fn store() -> MutexGuard<'static, Store> {
    static STORE: OnceLock<Mutex<Store>> = OnceLock::new();
    STORE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers the client's callbacks; the last one to do so wins.
pub fn register(callbacks: Callbacks) {
    store().callbacks = Some(callbacks);
}

/// Whether there are any.
pub fn is_registered() -> bool {
    store().callbacks.is_some()
}

/// One buffer for each thread, or one for all.
pub fn set_per_thread(on: bool) {
    store().per_thread = on;
}

/// Writes a record that is complete.
pub fn write(record: &Record) {
    put(record, None);
    let mut store = store();
    store.counts.records += 1;
    let extra = fault::hits(fault::get().unknown_kinds, store.counts.records);
    drop(store);
    if extra {
        put(&record::unknown(), None);
    }
}

/// Takes a place for device work; the result is its token, 0 if there is no place.
pub fn reserve(record: &Record, launched: u64, clock: Clock) -> u64 {
    put(record, Some((launched, clock)))
}

fn put(record: &Record, open: Option<(u64, Clock)>) -> u64 {
    let size = if record.kind == kind::UNKNOWN {
        Some(kind::UNKNOWN_SIZE)
    } else {
        version::get().size(record.kind)
    };
    let Some(size) = size else { return 0 };
    let mut store = store();
    let faults = fault::get();
    store.counts.all += 1;
    store.counts.launched += u64::from(open.is_some());
    let past = |count: u64, most: u64| most != 0 && count > most;
    if past(store.counts.all, faults.mute_after)
        || (open.is_some() && past(store.counts.launched, faults.silent_after))
    {
        return 0;
    }
    let thread = thread_key();
    let key = if store.per_thread { thread } else { 0 };
    store.next += 1;
    let token = store.next;
    if fault::hits(fault::get().drop_records, token) {
        store.dropped += 1;
        return 0;
    }
    loop {
        if let Some(id) = store.current.get(&key).copied()
            && let Some(buffer) = store.buffers.get_mut(&id)
        {
            let room = buffer.size - buffer.used >= size;
            if room && (buffer.max_records == 0 || buffer.records < buffer.max_records) {
                let offset = buffer.used;
                // SAFETY: the client gave `size` bytes at `address`; `used` and the record end within them.
                unsafe {
                    let place = (buffer.address as *mut u8).add(offset);
                    place.copy_from_nonoverlapping(record.bytes.as_ptr(), size);
                }
                buffer.used += size;
                buffer.records += 1;
                let Some((launched, clock)) = open else { return 0 };
                buffer.open += 1;
                store.slots.insert(token, Slot { buffer: id, offset, kind: record.kind, launched, clock });
                return token;
            }
            buffer.full_since = Some(Instant::now());
            store.current.remove(&key);
            store.full.push_back(id);
            worker::wake();
        }
        let Some(callbacks) = store.callbacks else {
            store.dropped += 1;
            return 0;
        };
        let given = if let Some(spare) = store.spare.pop() {
            Some(spare)
        } else {
            drop(store);
            let given = request(callbacks);
            store = self::store();
            given
        };
        let Some((address, bytes, max_records)) = given.filter(|(_, bytes, _)| *bytes >= size) else {
            assert!(!fault::get().null_buffer_crash, "a null buffer, as before CUDA 12.9");
            store.dropped += 1;
            return 0;
        };
        if store.current.contains_key(&key) {
            // Another thread was faster.
            store.spare.push((address, bytes, max_records));
            continue;
        }
        store.next += 1;
        let id = store.next;
        let buffer = Buffer {
            address,
            size: bytes,
            used: 0,
            records: 0,
            max_records,
            open: 0,
            thread,
            full_since: None,
        };
        store.buffers.insert(id, buffer);
        store.current.insert(key, id);
    }
}

fn thread_key() -> u64 {
    // SAFETY: no arguments.
    unsafe { libc::pthread_self() as u64 }
}

fn request(callbacks: Callbacks) -> Option<(usize, usize, usize)> {
    let (mut address, mut bytes, mut max_records) = (std::ptr::null_mut(), 0, 0);
    match callbacks {
        // SAFETY: the client's function, called as its protocol says.
        Callbacks::V1(request, _) => unsafe {
            request(&raw mut address, &raw mut bytes, &raw mut max_records);
        },
        Callbacks::V2(request, _) => {
            let mut info = RequestInfo { struct_size: size_of::<RequestInfo>() };
            // SAFETY: as above.
            unsafe { request(&raw mut address, &raw mut bytes, &raw mut max_records, &raw mut info) }
        }
    }
    // Unaligned buffers are refused, as the real one does.
    (!address.is_null() && (address as usize).is_multiple_of(8)).then_some((
        address as usize,
        bytes,
        max_records,
    ))
}

/// Device work is over: its record gets its times, given on the device's clock.
pub fn fill(token: u64, device: u32, start: u64, end: u64) {
    let Ok(table) = driver::table() else { return };
    let mut store = store();
    let Some(slot) = store.slots.remove(&token) else { return };
    store.counts.device_records += 1;
    let count = store.counts.device_records;
    let Some(buffer) = store.buffers.get_mut(&slot.buffer) else { return };
    let (mut start, mut end) =
        (clock::convert(table, device, start, slot.clock), clock::convert(table, device, end, slot.clock));
    let faults = fault::get();
    if faults.zero_after != 0 && count > faults.zero_after {
        (start, end) = (0, 0);
    } else if fault::hits(faults.end_before_start, count) {
        (start, end) = (end, start.saturating_sub(1));
    } else if fault::hits(faults.start_before_launch, count) && slot.launched != 0 {
        let early = start.saturating_sub(slot.launched) + 20_000;
        (start, end) = (start.saturating_sub(early), end.saturating_sub(early));
    }
    let (start_at, end_at, completed_at) = record::time_offsets(slot.kind);
    let set = |at: usize, value: u64| {
        // SAFETY: the record lies within the buffer, which the client has not got back yet, and has these fields.
        unsafe { (buffer.address as *mut u8).add(slot.offset + at).cast::<u64>().write_unaligned(value) };
    };
    set(start_at, start);
    set(end_at, end);
    if let Some(at) = completed_at {
        set(at, end);
    }
    buffer.open -= 1;
    if buffer.open == 0 && buffer.full_since.is_some() {
        worker::wake();
    }
    if fault::hits(faults.duplicates, count) {
        let mut record = Record::new(slot.kind);
        let size = version::get().size(slot.kind).unwrap_or(0).min(record::MAX);
        // SAFETY: the record lies within the buffer, which the client has not got back: the store is locked.
        unsafe {
            let from = (buffer.address as *const u8).add(slot.offset);
            record.bytes.as_mut_ptr().copy_from_nonoverlapping(from, size);
        }
        drop(store);
        put(&record, None);
    }
}

/// Which buffers go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Full and complete ones: what the worker does by itself.
    Full,
    /// All that have something in them and nothing open.
    Complete,
    /// All that have something in them.
    Forced,
}

/// Gives buffers back to the client. The result tells whether full ones are left.
pub fn give_back(which: Which) -> bool {
    let late = Duration::from_millis(fault::get().late_ms.unsigned_abs());
    let mut store = store();
    let Some(callbacks) = store.callbacks else { return false };
    let mut candidates: Vec<u64> = store.full.iter().copied().collect();
    if which != Which::Full {
        candidates.extend(store.current.values());
    }
    let mut going = Vec::new();
    for id in candidates {
        let Some(buffer) = store.buffers.get(&id) else { continue };
        let complete = buffer.open == 0;
        let go = match which {
            Which::Full if fault::get().late_ms < 0 => false,
            Which::Full => complete && buffer.full_since.is_some_and(|since| since.elapsed() >= late),
            Which::Complete => complete && buffer.used > 0,
            Which::Forced => buffer.used > 0,
        };
        if go && let Some(buffer) = store.buffers.remove(&id) {
            store.full.retain(|full| *full != id);
            store.current.retain(|_, current| *current != id);
            if buffer.open > 0 {
                store.slots.retain(|_, slot| slot.buffer != id);
            }
            going.push((id, buffer));
        }
    }
    let left = !store.full.is_empty();
    going.sort_by_key(|(id, _)| *id);
    for (_, buffer) in &mut going {
        store.counts.buffers += 1;
        if fault::hits(fault::get().drop_buffers, store.counts.buffers) {
            store.dropped += buffer.records;
            buffer.used = 0;
        }
    }
    let first = store.counts.buffers - going.len() as u64;
    drop(store);
    for (at, (_, buffer)) in going.iter().enumerate() {
        if fault::hits(fault::get().foreign_buffers, first + at as u64 + 1) {
            complete(callbacks, foreign_buffer());
        }
        complete(callbacks, (buffer.address as *mut u8, buffer.size, buffer.used, buffer.thread));
    }
    left
}

fn complete(callbacks: Callbacks, (address, size, valid, thread): (*mut u8, usize, usize, u64)) {
    match callbacks {
        // SAFETY: the client's function, called as its protocol says.
        Callbacks::V1(_, complete) => unsafe { complete(std::ptr::null_mut(), 0, address, size, valid) },
        Callbacks::V2(_, complete) => {
            let mut info = CompleteInfo {
                struct_size: size_of::<CompleteInfo>(),
                thread_id: thread,
                layouts: std::ptr::null_mut(),
                layout_count: 0,
            };
            // SAFETY: as above.
            unsafe { complete(address, size, valid, &raw mut info) }
        }
    }
}

/// A buffer that this client never gave, with a record in it: what another client's would look like.
fn foreign_buffer() -> (*mut u8, usize, usize, u64) {
    let buffer: &'static mut [u64] = Box::leak(vec![0u64; 512].into_boxed_slice());
    let size = version::get().size(kind::DRIVER).unwrap_or(40);
    let record = record::api(1, 1, 2, [selection::process_id(), 1], 1, 0);
    let address = buffer.as_mut_ptr().cast::<u8>();
    // SAFETY: the buffer has 4096 bytes, more than any record.
    unsafe { address.copy_from_nonoverlapping(record.bytes.as_ptr(), size) };
    (address, 4096, size, 0)
}

/// Records that were dropped since the last question.
pub fn take_dropped() -> usize {
    std::mem::take(&mut store().dropped)
}

/// Forgets the client. Its buffers stay where they are and never come back.
pub fn forget() {
    let mut store = store();
    store.callbacks = None;
    store.buffers.clear();
    store.current.clear();
    store.full.clear();
    store.spare.clear();
    store.slots.clear();
}

/// The record after `record` in a buffer, or the first one.
pub fn next(buffer: *mut u8, valid: usize, record: *mut u8) -> crate::result::Result<*mut u8> {
    use crate::result::{INVALID_KIND, INVALID_PARAMETER, MAX_LIMIT_REACHED};
    if buffer.is_null() {
        return Err(INVALID_PARAMETER);
    }
    let offset = if record.is_null() {
        0
    } else {
        let at = (record as usize).checked_sub(buffer as usize).filter(|at| at + 4 <= valid);
        at.ok_or(INVALID_PARAMETER)? + size_at(record).ok_or(INVALID_KIND)?
    };
    if offset + 4 > valid {
        return Err(MAX_LIMIT_REACHED);
    }
    let next = buffer.wrapping_add(offset);
    let size = size_at(next).ok_or(INVALID_KIND)?;
    if offset + size > valid { Err(MAX_LIMIT_REACHED) } else { Ok(next) }
}

fn size_at(record: *mut u8) -> Option<usize> {
    // SAFETY: the callers have checked that four bytes lie within the buffer.
    let kind = unsafe { record.cast::<u32>().read_unaligned() };
    if kind == kind::UNKNOWN { Some(kind::UNKNOWN_SIZE) } else { version::get().size(kind) }
}
