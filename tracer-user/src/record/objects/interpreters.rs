//! CPython in recorded processes: which futex words are its global interpreter lock (GIL).
//!
//! The lock is `struct _gil_runtime_state`: a mutex and condition variables whose futex words lie in the structure itself.
//! Up to 3.11 it is `_PyRuntime.ceval.gil`. From 3.12 on each interpreter has its own, and the main interpreter lies in
//! `_PyRuntime` with its lock (`_PyRuntime._main_interpreter._gil`). No other lock of CPython has a futex word there: those
//! of `PyThread_allocate_lock` are allocated apart, and who waits for a `PyMutex` (3.13 and later) parks on a word of its own
//! stack. So a futex word inside `_PyRuntime` is the GIL's. Interpreters with a lock of their own (3.12 and later) lie on
//! the heap: their locks are not told from others.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;

use crate::event::{DurationNs, MonoNs, Pid, Text};
use crate::record::inject::elf::{self, Mapped};
use crate::record::inject::target;

/// A process without CPython may load it later: it is looked at again after so long, then after twice as long.
const FIRST_AGAIN: DurationNs = DurationNs(50_000_000);
/// And no later than after so long.
const LAST_AGAIN: DurationNs = DurationNs(64_000_000_000);
/// Most processes and files that are kept; a recording with more begins anew.
const MOST: usize = 1 << 14;
/// Beginning of `_PyRuntime` from 3.13 on: a cookie, the version, and whether the build is free-threaded
/// (`struct _Py_DebugOffsets`).
const COOKIE: &[u8; 8] = b"xdebugpy";

/// The interpreters found so far.
#[derive(Debug, Default)]
pub struct Interpreters {
    processes: HashMap<Pid, Looked>,
    /// By device and inode: processes share the file.
    files: HashMap<(u64, u64), Option<Runtime>>,
    versions: BTreeMap<String, u64>,
}

/// What a look at a process found.
#[derive(Debug)]
struct Looked {
    found: Option<Interpreter>,
    again: MonoNs,
    wait: DurationNs,
}

/// The interpreter of a process.
#[derive(Clone, Debug)]
struct Interpreter {
    /// Where `_PyRuntime` lies.
    runtime: Range<u64>,
    /// What its lock is called.
    lock: Text,
    /// Which it is, for [`Interpreters::versions`].
    version: String,
}

/// `_PyRuntime` in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Runtime {
    /// From the first mapping of the file on.
    offset: u64,
    bytes: u64,
    /// `3.11`; empty if it is not known.
    version: String,
    free_threaded: bool,
}

impl Interpreters {
    /// What the lock is called if this futex word of a process is its interpreter lock.
    pub fn lock(&mut self, pid: Pid, word: u64, now: MonoNs) -> Option<Text> {
        let due = self.processes.get(&pid).is_none_or(|looked| looked.found.is_none() && looked.again <= now);
        if due {
            self.look(pid, now);
        }
        let found = self.processes.get(&pid)?.found.as_ref()?;
        found.runtime.contains(&word).then(|| found.lock.clone())
    }

    /// Looks at a process that has just begun to run CPython. Its library may not be there yet: then the next wait asks again.
    pub fn look_early(&mut self, pid: Pid, now: MonoNs) {
        self.look(pid, now);
        if self.processes.get(&pid).is_some_and(|looked| looked.found.is_none()) {
            self.processes.remove(&pid);
        }
    }

    /// A process was forked: what its parent has mapped it has at the same places.
    pub fn inherit(&mut self, parent: Pid, child: Pid) {
        let Some(found) = self.processes.get(&parent).and_then(|looked| looked.found.clone()) else { return };
        *self.versions.entry(found.version.clone()).or_default() += 1;
        let looked = Looked { found: Some(found), again: MonoNs::MAX, wait: LAST_AGAIN };
        self.processes.insert(child, looked);
    }

    /// The process has ended, or runs another program.
    pub fn forget(&mut self, pid: Pid) {
        self.processes.remove(&pid);
    }

    /// How many processes ran which CPython: `3.11`, `3.13 free-threaded`.
    #[must_use]
    pub fn versions(&self) -> &BTreeMap<String, u64> {
        &self.versions
    }

    fn look(&mut self, pid: Pid, now: MonoNs) {
        if self.processes.len() >= MOST || self.files.len() >= MOST {
            self.processes.clear();
            self.files.clear();
        }
        let wait = self.processes.get(&pid).map_or(FIRST_AGAIN, |looked| DurationNs(looked.wait.0 * 2));
        let wait = wait.min(LAST_AGAIN);
        let found = target::files(pid).iter().filter(|file| may_be_python(&file.path)).find_map(|file| {
            let runtime = self.runtime_in(pid, file)?;
            let start = file.start.wrapping_add(runtime.offset);
            *self.versions.entry(runtime.says()).or_default() += 1;
            let range = start..start.checked_add(runtime.bytes)?;
            Some(Interpreter { runtime: range, lock: runtime.lock(), version: runtime.says() })
        });
        self.processes.insert(pid, Looked { found, again: now + wait, wait });
    }

    fn runtime_in(&mut self, pid: Pid, file: &Mapped) -> Option<Runtime> {
        let metadata = std::fs::metadata(file.link(pid)).ok()?;
        let key = (metadata.dev(), metadata.ino());
        if let Some(known) = self.files.get(&key) {
            return known.clone();
        }
        let found = file.read(pid).and_then(|bytes| Runtime::in_file(&bytes, &file.path));
        self.files.insert(key, found.clone());
        found
    }
}

impl Runtime {
    fn in_file(bytes: &[u8], path: &str) -> Option<Self> {
        let (address, length) = elf::object(bytes, "_PyRuntime")?;
        let start = elf::bytes_at(bytes, 0, address, 24).unwrap_or_default();
        let word = |at: usize| {
            let raw: [u8; 8] = start.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(raw))
        };
        let debug_offsets = start.starts_with(COOKIE);
        // `Py_Version` came with 3.11; older ones are told by the name of the file.
        let hex = elf::object(bytes, "Py_Version").and_then(|(address, _)| {
            let raw: [u8; 8] = elf::bytes_at(bytes, 0, address, 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(raw))
        });
        let hex = if debug_offsets { word(8).or(hex) } else { hex };
        let version = hex.map(|hex| format!("{}.{}", hex >> 24 & 0xff, hex >> 16 & 0xff));
        Some(Self {
            offset: address,
            bytes: length,
            version: version.or_else(|| version_in(path)).unwrap_or_default(),
            free_threaded: debug_offsets && word(16).is_some_and(|flag| flag != 0),
        })
    }

    fn says(&self) -> String {
        let version = if self.version.is_empty() { "of unknown version" } else { self.version.as_str() };
        if self.free_threaded { format!("{version} free-threaded") } else { version.to_owned() }
    }

    fn lock(&self) -> Text {
        Text::from(format!("GIL of CPython {}", self.says()))
    }
}

/// Whether a file's name is that of CPython or its library: `python3.11`, `libpython3.9.so.1.0`.
fn may_be_python(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.starts_with("python") || name.starts_with("libpython")
}

/// `3.9` of `/usr/lib/libpython3.9.so.1.0`.
fn version_in(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let rest = &name[name.find("python")? + "python".len()..];
    let (major, rest) = rest.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (major == "3" && !minor.is_empty()).then(|| format!("3.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_names() {
        assert_eq!(version_in("/usr/bin/python3.8").as_deref(), Some("3.8"));
        assert_eq!(version_in("/opt/lib/libpython3.10.so.1.0").as_deref(), Some("3.10"));
        assert_eq!(version_in("/usr/bin/python3"), None);
        assert_eq!(version_in("/usr/bin/perl"), None);
        assert!(may_be_python("/x/python3.14t") && !may_be_python("/python/perl"));
    }

    #[test]
    fn a_file_that_is_no_program_holds_no_runtime() {
        assert_eq!(Runtime::in_file(b"#!/bin/sh", "/usr/bin/python3.11"), None);
        assert_eq!(Runtime::in_file(&[], "/usr/bin/python3.11"), None);
    }

    #[test]
    fn a_process_without_python_has_no_such_lock_and_is_not_read_again_at_once() {
        let own = Pid(std::process::id() as i32);
        let mut interpreters = Interpreters::default();
        assert_eq!(interpreters.lock(own, 0x1000, MonoNs(0)), None);
        assert_eq!(interpreters.processes[&own].again, MonoNs(FIRST_AGAIN.0));
        interpreters.lock(own, 0x1000, MonoNs(FIRST_AGAIN.0));
        assert_eq!(interpreters.processes[&own].again, MonoNs(3 * FIRST_AGAIN.0));
        interpreters.inherit(own, Pid(1));
        assert!(!interpreters.processes.contains_key(&Pid(1)), "there is nothing to inherit");
        interpreters.forget(own);
        assert!(interpreters.processes.is_empty() && interpreters.versions().is_empty());
    }
}
