//! Whether a process launches CUDA graphs: counted before CUPTI comes.
//!
//! Before CUDA 12.6 a process that replays graphs made before CUPTI was there can crash under it (pytorch#75504, #100441,
//! #112507). Which CUPTI a process has is known only inside it; so the launches are counted here, and the shim decides.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::time::Duration;

use super::elf::{self, Mapped};
use super::target;
use crate::event::Pid;

/// How long launches are counted.
pub const WINDOW: Duration = Duration::from_millis(1_000);
/// The driver's entry points; the second is that of programs with a default stream a thread.
const LAUNCHES: [&str; 2] = ["cuGraphLaunch", "cuGraphLaunch_ptsz"];
/// Threads of a process that are watched.
const MOST_THREADS: usize = 512;

/// Counts the graph launches of processes. A process whose launches cannot be counted is not in the result.
pub fn watch(pids: &[Pid]) -> BTreeMap<Pid, u64> {
    let counters: Vec<(Pid, Counters)> = pids
        .iter()
        .filter_map(|&pid| {
            let driver = target::files(pid).into_iter().find(|file| file.path.contains("/libcuda.so"))?;
            Some((pid, Counters::open(pid, &driver, &LAUNCHES)?))
        })
        .collect();
    if !counters.is_empty() {
        std::thread::sleep(WINDOW);
    }
    counters.iter().map(|(pid, counters)| (*pid, counters.sum())).collect()
}

/// Counters of calls of functions, one for each function and thread.
struct Counters(Vec<OwnedFd>);

impl Counters {
    /// Begins to count. `None`: the kernel has no probes of user programs, or refuses.
    fn open(pid: Pid, library: &Mapped, functions: &[&str]) -> Option<Self> {
        let kind = std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type").ok()?;
        let kind: u32 = kind.trim().parse().ok()?;
        let bytes = library.read(pid)?;
        // The very file that is mapped, wherever the process sees it.
        let path =
            CString::new(format!("/proc/{pid}/map_files/{:x}-{:x}", library.start, library.end)).ok()?;
        let mut counters = Vec::new();
        for offset in functions.iter().filter_map(|name| elf::function_offset(&bytes, name)) {
            for (tid, _) in target::threads(pid).into_iter().take(MOST_THREADS) {
                // A thread may have ended meanwhile.
                counters.extend(open(kind, &path, offset, tid));
            }
        }
        (!counters.is_empty()).then_some(Self(counters))
    }

    fn sum(&self) -> u64 {
        self.0
            .iter()
            .filter_map(|counter| {
                let mut bytes = [0; 8];
                File::from(counter.try_clone().ok()?).read_exact(&mut bytes).ok()?;
                Some(u64::from_ne_bytes(bytes))
            })
            .sum()
    }
}

/// `struct perf_event_attr` up to `config2` (`PERF_ATTR_SIZE_VER1`, 72 bytes).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    /// Address of the path.
    config1: u64,
    /// Offset in the file.
    config2: u64,
}

/// Counts the passes of a thread over an instruction (`perf_event_open(2)`, dynamic PMU `uprobe`, 4.17 and later).
fn open(kind: u32, path: &CString, offset: u64, tid: i32) -> Option<OwnedFd> {
    const CLOEXEC: libc::c_ulong = 8;
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config1: path.as_ptr() as u64,
        config2: offset,
        ..Attributes::default()
    };
    // SAFETY: the structure and the path live until the call returns; -1: any CPU, no group.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, tid, -1, -1, CLOEXEC) };
    // SAFETY: a descriptor that is ours alone.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "counts calls by a probe, which needs root"]
    fn root_calls_of_a_function_are_counted() {
        let own = Pid(std::process::id() as i32);
        let libc = target::files(own).into_iter().find(|file| file.path.contains("/libc.so.6"));
        let libc = libc.expect("the C library");
        let counters = Counters::open(own, &libc, &["getppid", "no_such_function"]).expect("counters");
        assert_eq!(counters.sum(), 0);
        for _ in 0..1000 {
            // SAFETY: no preconditions.
            unsafe { libc::getppid() };
        }
        assert_eq!(counters.sum(), 1000);
    }
}
