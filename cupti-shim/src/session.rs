//! Collection for one recorder: on, flush, off. All of it runs in one thread at a time: the one that loads the library
//! (start at load), after that the worker.

use std::ffi::c_char;
use std::fmt;
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, Release};

use tracer_abi::shim::{ClockKind, CollectMode, Collection, SessionRecord, ShimState, WhichClock};

use crate::bind::{ResultCode, SUCCESS, SubscriberHandle, SubscriberParams, result_name};
use crate::callbacks;
use crate::cbids;
use crate::clock;
use crate::collector::Collector;
use crate::layout::{Version, kind};

/// Kinds of which nothing useful is left if one cannot be had.
const NEEDED: [u32; 1] = [kind::CONCURRENT_KERNEL];
/// Kinds that are switched on if the version has them.
const WANTED: [u32; 3] = [kind::MEMCPY, kind::MEMCPY2, kind::MEMSET];
/// Kinds that the light mode does without.
const FULL_ONLY: [u32; 2] = [kind::SYNCHRONIZATION, kind::OVERHEAD];
/// Kinds of which the records of what exists already are written, too.
const DUMPED: [u32; 3] = [kind::DEVICE, kind::CONTEXT, kind::STREAM];
/// `CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM`.
const SYSTEM_THREAD_IDS: u32 = 1;
/// `CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER`.
const ZEROED_BUFFERS: u32 = 5;
/// `CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`.
const MULTIPLE_SUBSCRIBERS: ResultCode = 39;

/// Collection cannot begin.
#[derive(Debug, PartialEq, Eq)]
pub struct StartError {
    /// What was tried.
    pub call: &'static str,
    /// What CUPTI said.
    pub code: ResultCode,
    /// Who holds the subscription, where CUPTI tells.
    pub holder: Option<String>,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with {}: {}", self.call, self.code, result_name(self.code))?;
        match &self.holder {
            Some(holder) => write!(f, " (the subscriber is \"{holder}\")"),
            None => Ok(()),
        }
    }
}

/// A session under way.
#[derive(Debug)]
pub struct Session {
    /// For whom: a recorder's token, 0 at load.
    pub token: u64,
    subscriber: SubscriberHandle,
    collection: Collection,
}

// SAFETY: the handle is CUPTI's and may be used from any thread.
unsafe impl Send for Session {}

impl Session {
    /// Begins to collect. `own_clock`: no context exists yet, so CUPTI may be made to use CLOCK_MONOTONIC; otherwise its
    /// device records would stay on CLOCK_REALTIME (before 13.3.3), and other clients' timelines would move.
    ///
    /// # Errors
    /// Another profiler is there, or CUPTI does not work here.
    pub fn start(
        collector: &'static Collector,
        token: u64,
        own_clock: bool,
        collection: Collection,
    ) -> Result<Self, StartError> {
        let (cupti, header) = (&collector.cupti, collector.header());
        let failed = |call, code| StartError { call, code, holder: None };
        let subscriber = subscribe(collector)?;
        let session = Self { token, subscriber, collection };

        if let (true, Some(enable_domain)) = (collector.version >= Version::STATE_DOMAIN, cupti.enable_domain)
        {
            // SAFETY: our subscription. A version that refuses only leaves us without its complaints.
            unsafe { enable_domain(1, subscriber, callbacks::DOMAIN_STATE) };
        }
        if let Some(set_thread_id_type) = cupti.set_thread_id_type {
            // SAFETY: a number.
            unsafe { set_thread_id_type(SYSTEM_THREAD_IDS) };
        }
        promise_zeroed_buffers(collector, true);
        if header.clock.load(Relaxed) == ClockKind::Unknown as u32 {
            // SAFETY: the function is ours for ever. Before any kind is enabled, as CUPTI wants it.
            let registered = own_clock
                && cupti
                    .register_timestamp_callback
                    .is_some_and(|register| unsafe { register(callbacks::timestamp) == SUCCESS });
            let clock = if registered { ClockKind::Monotonic } else { ClockKind::Realtime };
            header.clock.store(clock as u32, Release);
        }
        // SAFETY: the functions are ours for ever.
        let code = cupti.register_callbacks.map_or(1, |register| unsafe {
            register(callbacks::buffer_requested, callbacks::buffer_completed)
        });
        if code != SUCCESS {
            session.unsubscribe(collector);
            return Err(failed("cuptiActivityRegisterCallbacks", code));
        }
        collector.names.begin_session();
        collector.ring.write(&SessionRecord { token, time_ns: clock::monotonic_ns() });
        if let Err((kind_call, code)) = enable_kinds(collector, collection) {
            disable_kinds(collector);
            session.unsubscribe(collector);
            return Err(failed(kind_call, code));
        }
        tell(collector, collection, clock::monotonic_ns());
        header.session.store(token, Release);
        header.flushed_ns.store(clock::monotonic_ns(), Release);
        header.state.store(ShimState::Collecting as u32, Release);
        Ok(session)
    }

    /// Collects something else from now on. What is off is told before it is switched off, and what is on after it is on: all
    /// that lies within what is told was collected.
    pub fn change(&mut self, collector: &Collector, wanted: Collection) {
        if wanted == self.collection {
            return;
        }
        let less = wanted.mode as u32 > self.collection.mode as u32;
        let before = clock::monotonic_ns();
        if wanted.mode == CollectMode::Paused {
            disable_kinds(collector);
            self.flush(collector, false);
        } else {
            switch_extras(collector, wanted);
            if let Err((call, code)) = enable_kinds(collector, wanted) {
                let text = format!("{call} failed with {code}: {}", result_name(code));
                collector.header().notice.set(text.as_bytes());
            }
        }
        self.collection = wanted;
        tell(collector, wanted, if less { before } else { clock::monotonic_ns() });
    }

    /// Begins again what another client of CUPTI took over: the call-backs were its own meanwhile, and it may have switched
    /// our kinds off.
    pub fn restart(&mut self, collector: &'static Collector) {
        if self.collection.mode == CollectMode::Paused {
            return;
        }
        if let Some(register) = collector.cupti.register_callbacks {
            // SAFETY: the functions are ours for ever.
            unsafe { register(callbacks::buffer_requested, callbacks::buffer_completed) };
        }
        promise_zeroed_buffers(collector, true);
        if enable_kinds(collector, self.collection).is_ok() {
            tell(collector, self.collection, clock::monotonic_ns());
        }
    }

    /// Takes what is complete (`forced`: what is not, too), and tells how things are.
    pub fn flush(&self, collector: &Collector, forced: bool) {
        let header = collector.header();
        let began = clock::monotonic_ns();
        if let Some(flush_all) = collector.cupti.flush_all {
            // SAFETY: takes a number. Calls `buffer_completed` in this thread.
            unsafe { flush_all(forced.into()) };
        }
        if let Some(get_dropped) = collector.cupti.get_num_dropped_records {
            let mut dropped = 0;
            // SAFETY: no context means all, and a number to fill. Told once: CUPTI counts from 0 after each call.
            if unsafe { get_dropped(ptr::null_mut(), 0, &raw mut dropped) } == SUCCESS {
                header.cupti_dropped.fetch_add(dropped as u64, Relaxed);
            }
        }
        header.outstanding_buffers.store(collector.pool.outstanding(), Relaxed);
        header.flushed_ns.store(began, Release);
        header.flushes.fetch_add(1, Release);
    }

    /// The recorder's last: what is not complete as well. A buffer that always holds some work under way, because the
    /// device never pauses, would else never come. What is under way is not delivered again, so only now.
    pub fn last_flush(&self, collector: &Collector) {
        collector.last_flush.store(true, Relaxed);
        self.flush(collector, true);
        collector.last_flush.store(false, Relaxed);
    }

    /// Writes a reading of CLOCK_REALTIME, and of CUPTI's clock once a buffer has come back: before that it may still be
    /// another one.
    pub fn read_clocks(&self, collector: &Collector) {
        if let Some(record) = clock::bracket(WhichClock::Realtime, || Some(clock::realtime_ns())) {
            collector.ring.write(&record);
        }
        if collector.completed.load(Relaxed) == 0 {
            return;
        }
        let cupti = clock::bracket(WhichClock::Cupti, || {
            let mut time = 0;
            // SAFETY: a number to fill.
            let code = unsafe { collector.cupti.get_timestamp?(&raw mut time) };
            (code == SUCCESS).then_some(time)
        });
        if let Some(record) = cupti {
            collector.ring.write(&record);
        }
    }

    /// Stops collecting and lets other profilers subscribe. The library stays where it is: after `cuptiFinalize` later
    /// clients got no buffers, and buffers may still be out.
    pub fn stop(self, collector: &Collector) {
        disable_kinds(collector);
        self.flush(collector, false);
        self.unsubscribe(collector);
        let header = collector.header();
        header.session.store(0, Release);
        header.state.store(ShimState::Idle as u32, Release);
    }

    fn unsubscribe(&self, collector: &Collector) {
        promise_zeroed_buffers(collector, false);
        if let Some(unsubscribe) = collector.cupti.unsubscribe {
            // SAFETY: our subscription, not used after this.
            unsafe { unsubscribe(self.subscriber) };
        }
    }
}

fn subscribe(collector: &Collector) -> Result<SubscriberHandle, StartError> {
    let cupti = &collector.cupti;
    let mut subscriber = ptr::null_mut();
    // SAFETY: a handle to fill; the function is ours for ever.
    let code = cupti
        .subscribe
        .map_or(1, |subscribe| unsafe { subscribe(&raw mut subscriber, callbacks::event, ptr::null_mut()) });
    collector.header().subscribe_result.store(code as i32, Release);
    if code == SUCCESS {
        return Ok(subscriber);
    }
    let holder = if code == MULTIPLE_SUBSCRIBERS { holder(collector) } else { None };
    Err(StartError { call: "cuptiSubscribe", code, holder })
}

/// The name of the subscriber in our way. Only the named form of subscribing tells it (13.3 and later).
fn holder(collector: &Collector) -> Option<String> {
    let subscribe =
        collector.cupti.subscribe_v2.filter(|_| collector.version >= Version::NAMED_SUBSCRIBERS)?;
    let mut old = [0_u8; 128];
    let mut subscriber = ptr::null_mut();
    let mut params = SubscriberParams {
        struct_size: size_of::<SubscriberParams>(),
        subscriber_name: c"gtrace".as_ptr(),
        old_subscriber_name: old.as_mut_ptr().cast::<c_char>(),
        old_subscriber_size: old.len(),
        allow_multiple_subscribers: 0,
    };
    // SAFETY: a handle and a struct to read and fill that live during the call; the function is ours for ever.
    let code = unsafe { subscribe(&raw mut subscriber, callbacks::event, ptr::null_mut(), &raw mut params) };
    if code == SUCCESS {
        // The other one has just gone. The next try subscribes in the ordinary way.
        if let Some(unsubscribe) = collector.cupti.unsubscribe {
            // SAFETY: our subscription, not used after this.
            unsafe { unsubscribe(subscriber) };
        }
        return None;
    }
    let length = old.iter().position(|byte| *byte == 0).unwrap_or(old.len());
    (length > 0).then(|| String::from_utf8_lossy(&old[..length]).into_owned())
}

/// Says what is collected, and since when.
fn tell(collector: &Collector, collection: Collection, since_ns: u64) {
    let header = collector.header();
    header.collection_since_ns.store(since_ns, Release);
    header.collection.store(collection.to_raw(), Release);
}

/// Switches off what a collection does without.
fn switch_extras(collector: &Collector, wanted: Collection) {
    let cupti = &collector.cupti;
    let Some(disable) = cupti.disable else { return };
    if !wanted.whole_graphs {
        // SAFETY: takes a number. Graphs that exist may stay whole: CUPTI says that it does not go back for these.
        unsafe { disable(kind::GRAPH_TRACE) };
    }
    if wanted.mode == CollectMode::Light {
        for kind in FULL_ONLY.into_iter().chain([kind::RUNTIME]) {
            // SAFETY: as above.
            unsafe { disable(kind) };
        }
        let extra: Vec<u16> = cbids::DRIVER
            .iter()
            .copied()
            .filter(|cbid| cbids::DRIVER_LIGHT.binary_search(cbid).is_err())
            .collect();
        enable_calls(collector, cupti.enable_driver_api, &extra, 0);
        enable_calls(collector, cupti.enable_runtime_api, cbids::RUNTIME, 0);
    }
}

fn enable_kinds(collector: &Collector, collection: Collection) -> Result<(), (&'static str, ResultCode)> {
    let cupti = &collector.cupti;
    let Some(enable) = cupti.enable else { return Err(("cuptiActivityEnable", 1)) };
    if collection.mode == CollectMode::Paused {
        return Ok(());
    }
    // Devices first, so that they are known before their work.
    for kind in DUMPED {
        // SAFETY: takes a number; a kind that is unknown is refused.
        unsafe {
            let code = cupti.enable_and_dump.map_or(1, |dump| dump(kind));
            if code != SUCCESS {
                enable(kind);
            }
        }
    }
    for kind in NEEDED {
        // SAFETY: as above.
        let code = unsafe { enable(kind) };
        if code != SUCCESS {
            return Err(("cuptiActivityEnable of kernels", code));
        }
    }
    let is_full = collection.mode == CollectMode::Full;
    let extras = FULL_ONLY.into_iter().filter(|_| is_full);
    for kind in WANTED.into_iter().chain(extras).chain(collection.whole_graphs.then_some(kind::GRAPH_TRACE)) {
        // SAFETY: as above.
        let code = unsafe { enable(kind) };
        if code != SUCCESS {
            note(collector, kind, code);
        }
    }
    if let Some(enable_all) =
        cupti.enable_all_sync_records.filter(|_| collector.version >= Version::ALL_SYNC_RECORDS)
    {
        // SAFETY: takes a flag. Queries that found nothing ready are no waits.
        unsafe { enable_all(0) };
    }
    let driver = if is_full { cbids::DRIVER } else { cbids::DRIVER_LIGHT };
    for (kind, selected, calls) in [
        (kind::DRIVER, cupti.enable_driver_api, driver),
        (kind::RUNTIME, cupti.enable_runtime_api, cbids::RUNTIME),
    ] {
        if kind == kind::RUNTIME && !is_full {
            continue;
        }
        if !enable_calls(collector, selected, calls, 1) {
            // SAFETY: as above. All calls come, and are sorted out when they are read.
            let code = unsafe { enable(kind) };
            if code != SUCCESS {
                note(collector, kind, code);
            }
        }
    }
    Ok(())
}

type Selected = Option<unsafe extern "C" fn(u32, u8) -> ResultCode>;

/// Switches calls one by one. `false`: this version cannot.
fn enable_calls(collector: &Collector, selected: Selected, calls: &[u16], on: u8) -> bool {
    let Some(select) = selected.filter(|_| collector.version >= Version::SELECTED_CALLS) else {
        return false;
    };
    let mut any = false;
    for &cbid in calls {
        // SAFETY: takes numbers; a call that this version does not know is refused.
        any |= unsafe { select(cbid.into(), on) } == SUCCESS;
    }
    any
}

/// Tells CUPTI whether the buffers that it gets are zero, as ours are and other clients' may not be. It would zero them in
/// the program's thread.
fn promise_zeroed_buffers(collector: &Collector, zeroed: bool) {
    let Some(set_attribute) = collector.cupti.set_attribute else { return };
    let (mut size, mut value) = (1_usize, u8::from(zeroed));
    // SAFETY: the attribute is one byte; its size goes with it.
    unsafe { set_attribute(ZEROED_BUFFERS, &raw mut size, (&raw mut value).cast()) };
}

fn disable_kinds(collector: &Collector) {
    let cupti = &collector.cupti;
    enable_calls(collector, cupti.enable_driver_api, cbids::DRIVER, 0);
    enable_calls(collector, cupti.enable_runtime_api, cbids::RUNTIME, 0);
    let Some(disable) = cupti.disable else { return };
    let all = NEEDED.iter().chain(&WANTED).chain(&FULL_ONLY).chain(&DUMPED).chain(&[
        kind::GRAPH_TRACE,
        kind::DRIVER,
        kind::RUNTIME,
    ]);
    for &kind in all {
        // SAFETY: takes a number.
        unsafe { disable(kind) };
    }
}

fn note(collector: &Collector, kind: u32, code: ResultCode) {
    let text = format!("records of kind {kind} cannot be had: {code}, {}", result_name(code));
    collector.header().notice.set(text.as_bytes());
}
