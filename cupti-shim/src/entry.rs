//! Where libcuda comes in, and what that has in common with NVTX.

use std::env;
use std::panic::{catch_unwind, set_hook};
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Acquire, Release},
};

use tracer_abi::shim::{Collection, Producer, RING_DEFAULT_BYTES, ShimState};

use crate::collector::Collector;
use crate::lifecycle;
use crate::nvtx;
use crate::ring;
use crate::session::Session;
use crate::worker::{self, Worker};

static LOADED: AtomicBool = AtomicBool::new(false);
static CUDA: AtomicBool = AtomicBool::new(false);

/// Called by libcuda inside of `cuInit`, once, before any context exists, if `CUDA_INJECTION64_PATH` names this library.
/// 1: it works, or will when a recorder comes; 0: it cannot. The program goes on in either case.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name is the driver's")]
pub extern "C" fn InitializeInjection() -> i32 {
    if LOADED.swap(true, AcqRel) {
        return 1;
    }
    // This library's own copy of the standard library: the program's hook, if it is a Rust program, is another.
    set_hook(Box::new(|_| {}));
    catch_unwind(load).unwrap_or(false).into()
}

fn load() -> bool {
    let Some(ring) = shared_ring() else { return false };
    if wants_start() {
        worker::hand_over(begin(ring));
    }
    CUDA.store(true, Release);
    spawn_worker(ring)
}

/// Whether libcuda has called: CUPTI may be touched.
pub(crate) fn has_cuda() -> bool {
    CUDA.load(Acquire)
}

/// Called when a library of the process uses NVTX for the first time, before or after CUDA. `false`: there is no ring.
pub(crate) fn open_for_markers() -> bool {
    set_hook(Box::new(|_| {}));
    let Some(ring) = shared_ring() else { return false };
    // Written by the program's threads from now on: a page that is not to be had would kill it.
    if !ring::reserve(&ring) {
        return false;
    }
    nvtx::open_sink(ring, wants_start());
    spawn_worker(ring)
}

fn wants_start() -> bool {
    env::var_os("GTRACE_START").is_some_and(|value| value == "1")
}

/// The ring, made at the first call.
fn shared_ring() -> Option<Producer<'static>> {
    static RING: OnceLock<Option<Producer<'static>>> = OnceLock::new();
    *RING.get_or_init(|| {
        let bytes = env::var("GTRACE_RING_BYTES").ok().and_then(|value| value.parse().ok());
        let ring = ring::make(bytes.unwrap_or(RING_DEFAULT_BYTES), wants_start()).ok()?;
        let header = ring.header();
        header.state.store(ShimState::Idle as u32, Release);
        lifecycle::install(header);
        Some(ring)
    })
}

fn spawn_worker(ring: Producer<'static>) -> bool {
    static SPAWNED: OnceLock<bool> = OnceLock::new();
    *SPAWNED.get_or_init(|| Worker::new(ring).spawn())
}

/// Starts collection at once, so that nothing is missed. What fails here is tried again when a recorder is there.
fn begin(ring: Producer<'static>) -> (Option<&'static Collector>, Option<Session>) {
    let header = ring.header();
    match worker::bind_and_publish(ring) {
        Ok(collector) => match Session::start(collector, 0, true, first_collection()) {
            Ok(session) => (Some(collector), Some(session)),
            Err(error) => {
                worker::refuse(header, &error.to_string());
                (Some(collector), None)
            }
        },
        Err(refusal) => {
            worker::refuse(header, &refusal.to_string());
            (None, None)
        }
    }
}

/// What is collected until a recorder says something else: `GTRACE_COLLECT` has a [`Collection`] as its number.
fn first_collection() -> Collection {
    let raw = env::var("GTRACE_COLLECT").ok().and_then(|value| value.parse().ok());
    raw.map_or(Collection::FULL, Collection::from_raw)
}
