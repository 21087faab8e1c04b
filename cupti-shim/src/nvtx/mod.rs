//! NVTX: what the program and its libraries mark, NCCL among them.
//!
//! NVTX is header-only: each library that uses it has its own copy, which loads what `NVTX_INJECTION64_PATH` names at its
//! first use and lets it fill in a table of functions ([`attach`]). These are called in the program's threads ([`calls`]):
//! nothing is allocated, locked or waited for. Open ranges are kept by thread ([`open`]), what is registered in memory of
//! this library ([`texts`]), and a range is written to the ring when it ends. Of NCCL's domain the payloads are read, too
//! ([`nccl`]).

mod attach;
mod calls;
mod names;
mod nccl;
mod open;
mod payload;
mod texts;

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

use tracer_abi::shim::Producer;

pub use attach::{InitializeInjectionNvtx2, InitializeInjectionNvtxExtension};

use crate::names::Names;

/// Where ranges are written.
struct Sink {
    ring: Producer<'static>,
    names: Names,
}

static SINK: OnceLock<Sink> = OnceLock::new();
/// Whether somebody wants them.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Lets ranges be written to `ring`. `wanted`: from now on.
pub fn open_sink(ring: Producer<'static>, wanted: bool) {
    if SINK.set(Sink { ring, names: Names::new() }).is_ok() {
        WANTED.store(wanted, Release);
    }
}

/// Whether a library of the process has NVTX.
#[must_use]
pub fn is_used() -> bool {
    SINK.get().is_some()
}

/// A recorder begins: names are written again.
pub fn begin_session() {
    if let Some(sink) = SINK.get() {
        sink.names.begin_session();
        // What is known already: recorders count on hearing of every communicator.
        nccl::made().for_each(|record| {
            sink.ring.write(&record);
        });
        WANTED.store(true, Release);
    }
}

/// Nobody wants them any more. Async-signal-safe.
pub fn end_session() {
    WANTED.store(false, Release);
}

/// The sink, while somebody wants what is written there.
fn wanted() -> Option<&'static Sink> {
    if WANTED.load(Acquire) { SINK.get() } else { None }
}
