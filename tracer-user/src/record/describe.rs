//! `meta.json`: what is known when a recording begins.

use std::collections::BTreeMap;

use super::clocks;
use super::session::Target;
use crate::event::{MonoNs, Pid};
use crate::store::Meta;
use crate::store::meta::{ProbeStatus, SchemaVersion};
use crate::store::schema::{ClockSample, Process};

/// The contents of `meta.json` while the recording runs.
#[must_use]
pub fn describe(
    target: &Target,
    root: Pid,
    process: Option<&Process>,
    probes: &[ProbeStatus],
    started: MonoNs,
    clock: &ClockSample,
) -> Meta {
    let (mode, command) = match target {
        Target::Run(line) => {
            ("run", line.words.iter().map(|word| word.to_string_lossy().into_owned()).collect())
        }
        Target::Attach(_) => {
            let cmdline = process.and_then(|process| process.cmdline.as_deref().or(Some(&process.comm)));
            ("attach", cmdline.map(ToOwned::to_owned).into_iter().collect())
        }
    };
    let names = nix::sys::utsname::uname().ok();
    let name = |part: Option<&std::ffi::OsStr>| {
        part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default()
    };
    Meta {
        began_ns: None,
        schema: SchemaVersion::CURRENT,
        gtrace_version: env!("CARGO_PKG_VERSION").to_owned(),
        mode: mode.to_owned(),
        command,
        root_pid: Some(root.0),
        host: name(names.as_ref().map(nix::sys::utsname::UtsName::nodename)),
        kernel: name(names.as_ref().map(nix::sys::utsname::UtsName::release)),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        utc_offset_ns: clocks::utc_offset_ns(clock),
        started_ns: started.0,
        ended_ns: None,
        ended: "running".to_owned(),
        gpus: Vec::new(),
        gpu_processes: Vec::new(),
        gpu_devices: Vec::new(),
        gpu_bounds: Vec::new(),
        gpu_missing: None,
        probes: probes.to_vec(),
        rows: BTreeMap::new(),
        losses: BTreeMap::new(),
        cpu_throttled_ns: BTreeMap::new(),
        interpreters: BTreeMap::new(),
        stolen_cpu_ns: 0,
        clock_residual_ns: 0,
        recorder_cpu_ns: 0,
        recorder_pid: Some(std::process::id() as i32),
    }
}
