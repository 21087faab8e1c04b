//! One file a scenario: a GPU program that stalls for one reason, and writes down when.

mod alloc_free;
mod cold_read;
mod composed;
mod decode;
mod direct_read;
mod exposed_copy;
mod full_queue;
mod gil;
mod graph_build;
mod launch_bound;
mod lock;
mod module_load;
mod other_device;
mod other_stream;
mod pageable_copy;
mod ranks;
pub mod run_queue;
pub mod shared_device;
mod sleep;
pub mod slow_peer;
mod sync_each_kernel;
mod throttled_read;
mod uring_read;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::stage::Options;
use ranks::Act;

/// A scenario's entry.
type Run = fn(&Options) -> Result<()>;

/// The scenarios by their names.
pub const SCENARIOS: [(&str, Run); 31] = [
    ("cold-read", cold_read::run),
    ("direct-read", direct_read::run),
    ("uring-read", uring_read::run),
    ("throttled-read", throttled_read::run),
    ("decode", decode::run),
    ("sleep", sleep::run),
    ("lock", lock::run),
    ("gil", gil::run),
    ("run-queue", run_queue::run),
    ("slow-peer", slow_peer::run),
    ("sync-each-kernel", sync_each_kernel::run),
    ("pageable-copy", pageable_copy::run),
    ("exposed-copy", exposed_copy::run),
    ("alloc-free", alloc_free::run),
    ("module-load", module_load::run),
    ("graph-build", graph_build::run),
    ("launch-bound", launch_bound::run),
    ("full-queue", full_queue::run),
    ("other-stream", other_stream::run),
    ("other-device", other_device::run),
    ("shared-device", shared_device::run),
    ("late-rank-read", |options| ranks::run(options, Act::Read, 2)),
    ("late-rank-read-4", |options| ranks::run(options, Act::Read, 4)),
    ("late-rank-decode", |options| ranks::run(options, Act::Decode, 2)),
    ("late-rank-decode-4", |options| ranks::run(options, Act::Decode, 4)),
    ("late-rank-contention", |options| ranks::run(options, Act::Contention, 2)),
    ("late-rank-contention-4", |options| ranks::run(options, Act::Contention, 4)),
    ("late-rank-sync", |options| ranks::run(options, Act::Sync, 2)),
    ("late-rank-sync-4", |options| ranks::run(options, Act::Sync, 4)),
    ("comm-init", |options| ranks::run(options, Act::Setup, 2)),
    ("composed", composed::run),
];

/// Runs a scenario.
///
/// # Errors
/// There is no such scenario, or it fails.
pub fn run(name: &str, options: &Options) -> Result<()> {
    let found = SCENARIOS.iter().find(|(known, _)| *known == name);
    let (_, run) = found.with_context(|| format!("there is no scenario `{name}`"))?;
    run(options)
}

/// Runs the worker process of a scenario.
///
/// # Errors
/// There is no such worker, or it fails.
pub fn work(arguments: &[String]) -> Result<()> {
    match arguments {
        [kind, data] if kind == "cold-read" => cold_read::work(&PathBuf::from(data)),
        [kind, data] if kind == "direct-read" => direct_read::work(&PathBuf::from(data)),
        [kind, data] if kind == "uring-read" => uring_read::work(&PathBuf::from(data)),
        [kind, path, group] if kind == "throttled-read" => {
            throttled_read::work(&PathBuf::from(path), &PathBuf::from(group))
        }
        [kind] if kind == "decode" => decode::work(),
        [kind, rest @ ..] if kind == "rank" => ranks::work(rest),
        [kind, rest @ ..] if kind == "composed" => composed::work(rest),
        _ => bail!("there is no worker `{}`", arguments.join(" ")),
    }
}
