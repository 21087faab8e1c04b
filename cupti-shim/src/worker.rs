//! The thread that flushes, and that begins and ends sessions.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, PoisonError};

use tracer_abi::shim::{Collection, Producer, RingHeader, SessionRecord, ShimState};

use crate::bind::{self, Refusal};
use crate::clock;
use crate::collector::Collector;
use crate::entry;
use crate::layout::Version;
use crate::lifecycle;
use crate::nvtx;
use crate::ring;
use crate::session::Session;

/// Between two flushes: how old records get before they are in the ring, and what a killed process loses.
const FLUSH_EVERY_MS: u64 = 100;
/// Between two looks for a recorder: a sleeping shim costs four wake-ups a second.
const LOOK_EVERY_MS: u64 = 250;
/// A recorder whose counter stands still for so long is dead.
const SILENCE_NS: u64 = 3_000_000_000;
/// Started at load, a recorder must appear within this time.
const GRACE_NS: u64 = 30_000_000_000;
/// Between two readings of the clocks.
const CLOCKS_EVERY_NS: u64 = 1_000_000_000;
/// After a refusal, before the next try: the process may load CUPTI later, and other profilers go.
const RETRY_NS: u64 = 2_000_000_000;

/// Grows to wake the worker.
static WAKE: AtomicU32 = AtomicU32::new(0);

/// Wakes the worker.
pub fn wake() {
    WAKE.fetch_add(1, Release);
    // SAFETY: an address of ours and a number.
    unsafe { libc::syscall(libc::SYS_futex, WAKE.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
}

/// Waits until `WAKE` is no longer `seen`, at most so long.
fn wait(seen: u32, milliseconds: u64) {
    let time = libc::timespec {
        tv_sec: (milliseconds / 1000) as libc::time_t,
        tv_nsec: (milliseconds % 1000 * 1_000_000) as libc::c_long,
    };
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: an address of ours, a number, a time.
    unsafe { libc::syscall(libc::SYS_futex, WAKE.as_ptr(), operation, seen, &raw const time) };
}

/// What libcuda's thread began before the worker takes it over.
static BEGUN: Mutex<Begun> = Mutex::new((None, None));

/// CUPTI, if it is bound, and the session that began at load.
type Begun = (Option<&'static Collector>, Option<Session>);

/// Hands over what began at load. The worker may run already, for markers.
pub fn hand_over(begun: Begun) {
    *BEGUN.lock().unwrap_or_else(PoisonError::into_inner) = begun;
    wake();
}

/// What the worker knows.
pub struct Worker {
    ring: Producer<'static>,
    collector: Option<&'static Collector>,
    session: Option<Session>,
    /// For whom markers are written while there is no session.
    markers_for: Option<u64>,
    loaded_ns: u64,
    reader: Reader,
    clocks_ns: u64,
    retry_ns: u64,
    /// Last flushes that recorders have asked for so far.
    flush_requests: u64,
    /// Restarts that they have asked for so far.
    restarts: u64,
}

/// The recorder, as far as the ring's head tells.
struct Reader {
    token: u64,
    beats: u64,
    /// When its counter last moved.
    since_ns: u64,
}

impl Reader {
    /// The token of a recorder that lives.
    fn look(&mut self, header: &RingHeader, now: u64) -> Option<u64> {
        let seen = (header.reader.token.load(Acquire), header.reader.beats.load(Relaxed));
        if seen != (self.token, self.beats) {
            (self.token, self.beats, self.since_ns) = (seen.0, seen.1, now);
        }
        (seen.0 != 0 && now - self.since_ns < SILENCE_NS).then_some(seen.0)
    }
}

impl Worker {
    /// A worker that has not begun.
    #[must_use]
    pub fn new(ring: Producer<'static>) -> Self {
        let now = clock::monotonic_ns();
        let reader = Reader { token: 0, beats: 0, since_ns: now };
        let flush_requests = ring.header().reader.flush_requests.load(Acquire);
        let restarts = ring.header().reader.restarts.load(Acquire);
        let start = ring.header().start_at_load.load(Relaxed) != 0;
        Self {
            ring,
            collector: None,
            session: None,
            markers_for: start.then_some(0),
            loaded_ns: now,
            reader,
            clocks_ns: 0,
            retry_ns: now,
            flush_requests,
            restarts,
        }
    }

    /// Starts its thread, with all signals blocked: the program's handlers must not run on it.
    pub fn spawn(self) -> bool {
        let argument = Box::into_raw(Box::new(self)).cast::<c_void>();
        // SAFETY: zero is a valid signal set, and all fields are filled by the calls.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            // The thread inherits the mask; ours is put back at once.
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            let mut thread = std::mem::zeroed();
            let code = libc::pthread_create(&raw mut thread, ptr::null(), run, argument);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
            if code != 0 {
                drop(Box::from_raw(argument.cast::<Self>()));
            }
            code == 0 && libc::pthread_detach(thread) == 0
        }
    }

    fn work(&mut self) {
        loop {
            self.take_over();
            // Before the first turn, too: `cuInit` has not returned yet when this thread begins.
            let seen = WAKE.load(Acquire);
            if !lifecycle::is_ending() {
                wait(seen, if self.session.is_some() { FLUSH_EVERY_MS } else { LOOK_EVERY_MS });
            }
            if !lifecycle::is_alive() {
                return;
            }
            if lifecycle::is_ending() {
                self.end();
                return lifecycle::ended();
            }
            self.turn();
        }
    }

    /// One round: what the recorder wants, then a flush.
    fn turn(&mut self) {
        let now = clock::monotonic_ns();
        let header = self.ring.header();
        let reader = self.reader.look(header, now);
        self.look_after_markers(reader, now);
        let running = self.session.as_ref().map(|session| session.token);
        match (running, reader) {
            // Nobody has come yet for what was begun at load.
            (Some(0), None)
                if header.reader.readers.load(Relaxed) == 0 && now - self.loaded_ns < GRACE_NS => {}
            // The first to come for it takes it over as it is.
            (Some(0), Some(token)) if header.reader.readers.load(Relaxed) == 1 => {
                if let Some(session) = &mut self.session {
                    session.token = token;
                    header.session.store(token, Release);
                }
            }
            (Some(running), Some(token)) if running == token => {}
            (Some(_), _) => {
                if let (Some(session), Some(collector)) = (self.session.take(), self.collector) {
                    session.stop(collector);
                }
            }
            (None, Some(token)) if now >= self.retry_ns => self.begin(token, now),
            (None, _) => {}
        }
        let (Some(session), Some(collector)) = (&mut self.session, self.collector) else { return };
        if session.token != 0 {
            session.change(collector, Collection::from_raw(header.reader.wanted.load(Acquire)));
        }
        let restarts = header.reader.restarts.load(Acquire);
        if restarts != self.restarts {
            session.restart(collector);
        }
        self.restarts = restarts;
        let requests = header.reader.flush_requests.load(Acquire);
        if requests == self.flush_requests {
            session.flush(collector, false);
        } else {
            session.last_flush(collector);
        }
        self.flush_requests = requests;
        if now - self.clocks_ns >= CLOCKS_EVERY_NS {
            self.clocks_ns = now;
            session.read_clocks(collector);
        }
    }

    /// Takes what began at load.
    fn take_over(&mut self) {
        let (collector, session) = std::mem::take(&mut *BEGUN.lock().unwrap_or_else(PoisonError::into_inner));
        self.collector = collector.or(self.collector);
        if let Some(session) = session {
            self.session = Some(session);
        }
    }

    /// Lets markers be written for the recorder that is there, with or without CUDA.
    fn look_after_markers(&mut self, reader: Option<u64>, now: u64) {
        let header = self.ring.header();
        let readers = header.reader.readers.load(Relaxed);
        match (self.markers_for, reader) {
            // As for sessions: what began at load is the first recorder's.
            (Some(0), None) if readers == 0 && now - self.loaded_ns < GRACE_NS => {}
            (Some(0), Some(token)) if readers == 1 => self.markers_for = Some(token),
            (Some(known), Some(token)) if known == token => {}
            (_, None) => {
                if self.markers_for.take().is_some() {
                    nvtx::end_session();
                }
            }
            (_, Some(token)) if nvtx::is_used() => {
                self.ring.write(&SessionRecord { token, time_ns: now });
                nvtx::begin_session();
                self.markers_for = Some(token);
            }
            (_, Some(_)) => {}
        }
    }

    /// Binds CUPTI if that was not done, and begins a session.
    fn begin(&mut self, token: u64, now: u64) {
        if !entry::has_cuda() {
            return;
        }
        self.retry_ns = now + RETRY_NS;
        if self.collector.is_none() {
            match bind_and_publish(self.ring) {
                Ok(collector) => self.collector = Some(collector),
                Err(refusal) => return refuse(self.ring.header(), &refusal.to_string()),
            }
        }
        let Some(collector) = self.collector else { return };
        let graphs = self.ring.header().reader.graph_launches.load(Relaxed);
        if graphs > 0 && collector.version < Version::LATE_GRAPHS {
            return refuse(self.ring.header(), &late_graphs(graphs));
        }
        // Contexts may exist: CUPTI stays on its own clock.
        let wanted = Collection::from_raw(self.ring.header().reader.wanted.load(Acquire));
        match Session::start(collector, token, false, wanted) {
            Ok(session) => self.session = Some(session),
            Err(error) => refuse(self.ring.header(), &error.to_string()),
        }
    }

    /// The process exits: take what CUPTI has, complete or not.
    fn end(&mut self) {
        self.take_over();
        if let (Some(session), Some(collector)) = (self.session.take(), self.collector) {
            session.flush(collector, true);
        }
    }
}

/// Why a process with graphs of its own is left alone by an old CUPTI.
fn late_graphs(launches: u64) -> String {
    format!(
        "it replays CUDA graphs ({launches} in the second before), and CUPTI before CUDA 12.6 can crash a process that made \
         them before it came: start the program under `gtrace run`"
    )
}

/// Says in the ring's head why nothing is collected.
pub fn refuse(header: &RingHeader, why: &str) {
    header.refusal.set(why.as_bytes());
    header.state.store(ShimState::Refused as u32, Release);
}

/// Binds CUPTI and makes what the call-backs need.
///
/// # Errors
/// See [`Refusal`].
pub fn bind_and_publish(ring: Producer<'static>) -> Result<&'static Collector, Refusal> {
    if !ring::reserve(&ring) {
        return Err(Refusal::NoMemory("the ring"));
    }
    let bound = bind::bind()?;
    let header = ring.header();
    header.cupti_version.store(bound.version.0, Release);
    header.driver_version.store(bound.driver_version, Release);
    header.cupti_path.set(bound.path.to_bytes());
    Collector::new(ring, bound.cupti, bound.version)
        .map(Collector::publish)
        .map_err(|_| Refusal::NoMemory("CUPTI's buffers"))
}

extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: the box that `spawn` made for this thread alone.
    let mut worker = unsafe { Box::from_raw(argument.cast::<Worker>()) };
    // SAFETY: a name of at most 15 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"gtrace-cupti".as_ptr()) };
    let header = worker.ring.header();
    if catch_unwind(AssertUnwindSafe(|| worker.work())).is_err() {
        header.panics.fetch_add(1, Relaxed);
        lifecycle::ended();
    }
    ptr::null_mut()
}
