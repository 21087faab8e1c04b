//! Where libcuda comes in.

use std::env;
use std::panic::{catch_unwind, set_hook};
use std::sync::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Release},
};

use tracer_abi::shim::{Collection, Producer, RING_DEFAULT_BYTES, ShimState};

use crate::lifecycle;
use crate::ring;
use crate::session::Session;
use crate::worker::{self, Worker};

static LOADED: AtomicBool = AtomicBool::new(false);

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
    let start = env::var_os("GTRACE_START").is_some_and(|value| value == "1");
    let bytes = env::var("GTRACE_RING_BYTES").ok().and_then(|value| value.parse().ok());
    let Ok(ring) = ring::make(bytes.unwrap_or(RING_DEFAULT_BYTES), start) else { return false };
    let header = ring.header();
    header.state.store(ShimState::Idle as u32, Release);
    let worker = if start { begin(ring) } else { Worker::new(ring, None, None) };
    lifecycle::install(header);
    worker.spawn()
}

/// Starts collection at once, so that nothing is missed. What fails here is tried again when a recorder is there.
fn begin(ring: Producer<'static>) -> Worker {
    let header = ring.header();
    match worker::bind_and_publish(ring) {
        Ok(collector) => match Session::start(collector, 0, true, first_collection()) {
            Ok(session) => Worker::new(ring, Some(collector), Some(session)),
            Err(error) => {
                worker::refuse(header, &error.to_string());
                Worker::new(ring, Some(collector), None)
            }
        },
        Err(refusal) => {
            worker::refuse(header, &refusal.to_string());
            Worker::new(ring, None, None)
        }
    }
}

/// What is collected until a recorder says something else: `GTRACE_COLLECT` has a [`Collection`] as its number.
fn first_collection() -> Collection {
    let raw = env::var("GTRACE_COLLECT").ok().and_then(|value| value.parse().ok());
    raw.map_or(Collection::FULL, Collection::from_raw)
}
