//! A recording from its beginning to its end.
//!
//! One thread drains the kernel's ring and the shims' on a timer (nothing is woken per event), makes rows and hands them
//! to the store, whose own thread writes them. Both are niced: on a machine that is short of CPUs the recorder gives way
//! to what it records, until that would cost events.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use nix::sys::signal::Signal;
use tracer_abi::kernel::ThreadState;

use super::assembler::Assembler;
use super::clocks;
use super::describe::describe;
use super::error::RecordError;
use super::launch::{CommandLine, HeldCommand};
use super::losses::LossLedger;
use super::preflight;
use super::priority;
use super::probes::{LoadConfig, ProbeError, Probes, RawRecord};
use super::rows::syscall_count_row;
use super::signals::{ProcessHandle, Signals, wait};
use super::tree::{Follow, SnapshotError, Tree, attach_to};
use crate::event::{MonoNs, Pid, Text, Tid};
use crate::store::schema::Loss;
use crate::store::{BundleWriter, Meta, Owner, StoreError};

/// Between two drains of the rings, at the least and at the most.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(50);
/// Records a drain should find: a tenth of what the ring holds.
const WANTED_RECORDS: usize = 12_000;
/// Records taken before the store and signals are looked at again.
const BATCH: usize = 8_192;
/// Clock samples and losses are taken so often.
const SECOND_NS: i64 = 1_000_000_000;

/// What to record.
#[derive(Clone, Debug)]
pub enum Target {
    /// A running process and all its descendants.
    Attach(Pid),
    /// A command, from its start.
    Run(CommandLine),
}

/// How to record it.
#[derive(Clone, Debug)]
pub struct Request {
    /// What.
    pub target: Target,
    /// The bundle's folder; `None`: `NAME-PID-TIME.gtrace` in the working directory.
    pub output: Option<PathBuf>,
    /// Ends the recording.
    pub duration: Option<Duration>,
    /// Whom the bundle is given to.
    pub owner: Option<Owner>,
}

/// What happens meanwhile, for a person to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The host side records.
    HostAttached {
        /// The root of the tree.
        root: Pid,
        /// Its name.
        name: Text,
        /// Processes found.
        processes: usize,
        /// Threads found.
        threads: usize,
        /// The bundle.
        output: PathBuf,
        /// Probes that are missing.
        missing_probes: Vec<String>,
    },
    /// The recording has ended; the command goes on.
    CommandGoesOn,
    /// The recording ends.
    Ending(&'static str),
}

/// A finished recording.
#[derive(Debug)]
pub struct Recorded {
    /// The bundle.
    pub output: PathBuf,
    /// Its `meta.json`.
    pub meta: Meta,
    /// Records that came.
    pub events: u64,
    /// Records that were lost.
    pub lost: u64,
    /// How the command ended, if one was run.
    pub command: Option<ExitStatus>,
    /// Why not all of it could be written. What was written is readable.
    pub failure: Option<StoreError>,
}

/// Records.
///
/// # Errors
/// Nothing was recorded, and nothing is left behind.
pub fn record(request: &Request, notify: &mut dyn FnMut(Notice)) -> Result<Recorded, RecordError> {
    preflight::check_rights()?;
    if let Target::Attach(pid) = request.target {
        preflight::check_target(pid)?;
    }
    if let Some(output) = &request.output {
        preflight::check_output(output)?;
    }
    // Before any thread is made, since threads inherit which signals are caught.
    let signals = Signals::catch()?;
    let held = match &request.target {
        Target::Run(line) => Some(HeldCommand::fork(line).map_err(|source| command_error(line, source))?),
        Target::Attach(_) => None,
    };
    let root = match (&request.target, &held) {
        (Target::Attach(pid), _) => *pid,
        (Target::Run(_), held) => held.as_ref().map_or(Pid(0), HeldCommand::pid),
    };
    let handle = ProcessHandle::open(root)?;
    let mut probes = Probes::load(&LoadConfig::default())?;
    let started = clocks::monotonic();
    let clock = clocks::sample_realtime();
    let mut tree = Tree::new(started);
    attach_to(&mut tree, &mut probes, root, started).map_err(|error| match error {
        SnapshotError::Ended(pid) => RecordError::EndedMeanwhile(pid),
        SnapshotError::Probes(error) => error.into(),
    })?;
    if wait(&signals, Some(&handle), Duration::ZERO).ended {
        return Err(RecordError::EndedMeanwhile(root));
    }
    let (processes, threads) = tree.living();
    let found = processes.iter().find(|process| process.pid == root);
    let name = found.map(|process| process.comm.clone()).unwrap_or_default();
    let output = request.output.clone().unwrap_or_else(|| default_output(&request.target, &name, root));
    let meta = describe(&request.target, root, found, probes.statuses(), started, &clock);
    let missing_probes =
        probes.statuses().iter().filter(|probe| !probe.attached).map(|probe| probe.name.clone()).collect();
    priority::yield_to_others();
    let mut writer = BundleWriter::create(&output, meta, request.owner)?;
    writer.push(clock);
    let child = match (held, &request.target) {
        (Some(held), Target::Run(line)) => match held.release() {
            Ok(child) => Some(child),
            Err(source) => {
                drop(writer);
                // Made a moment ago, and nothing is in it but what gtrace wrote.
                let _ = std::fs::remove_dir_all(&output);
                return Err(command_error(line, source));
            }
        },
        _ => None,
    };
    notify(Notice::HostAttached {
        root,
        name,
        processes: processes.len(),
        threads: threads.len(),
        output: output.clone(),
        missing_probes,
    });
    let deadline = request.duration.map(|duration| MonoNs(started.0 + duration.as_nanos() as i64));
    let mut session = Session {
        probes,
        assembler: Assembler::new(started, tree),
        writer,
        ledger: LossLedger::new(started),
        signals,
        handle,
        child,
        interval: LONGEST,
        next_second: MonoNs(started.0 + SECOND_NS),
        malformed: 0,
    };
    let ending = session.run(deadline);
    notify(Notice::Ending(ending));
    session.finish(ending, output, notify)
}

fn command_error(line: &CommandLine, source: std::io::Error) -> RecordError {
    let program = line.words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    RecordError::Command { program, source }
}

/// `python3-4711-20260131-142309.gtrace`. The name is the target's own choice: only harmless characters are kept.
fn default_output(target: &Target, comm: &Text, root: Pid) -> PathBuf {
    let program = match target {
        Target::Run(line) => {
            line.words.first().and_then(|word| Path::new(word).file_name().map(OsString::from))
        }
        Target::Attach(_) => None,
    };
    let name = program.map_or_else(|| comm.to_string(), |name| name.to_string_lossy().into_owned());
    let mut name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' })
        .take(40)
        .collect();
    if name.is_empty() || name.starts_with(['.', '-']) {
        name.insert(0, '_');
    }
    PathBuf::from(format!("{name}-{root}-{}.gtrace", local_time()))
}

/// `20260131-142309`, local time.
fn local_time() -> String {
    // SAFETY: time only returns a number when it is given no pointer.
    let now = unsafe { libc::time(std::ptr::null_mut()) };
    // SAFETY: tm is plain data, for which zero is a value.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the right types.
    unsafe { libc::localtime_r(&raw const now, &raw mut parts) };
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}",
        parts.tm_year + 1900,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec
    )
}

impl Follow for Probes {
    type Error = ProbeError;
    fn follow(&mut self, pid: Pid) -> Result<(), ProbeError> {
        self.track_process(pid.0 as u32)
    }
    fn insert_blocked(&mut self, tid: Tid, state: &ThreadState) -> Result<(), ProbeError> {
        self.insert_blocked_thread(tid.0 as u32, *state)
    }
}

struct Session {
    probes: Probes,
    assembler: Assembler,
    writer: BundleWriter,
    ledger: LossLedger,
    signals: Signals,
    handle: ProcessHandle,
    child: Option<Child>,
    interval: Duration,
    next_second: MonoNs,
    malformed: u64,
}

impl Session {
    /// Records until something ends it, and says what (`meta.ended`).
    fn run(&mut self, deadline: Option<MonoNs>) -> &'static str {
        loop {
            let now = clocks::monotonic();
            let left = deadline
                .map_or(self.interval, |deadline| Duration::from_nanos((deadline - now).0.max(0) as u64));
            let woken = wait(&self.signals, Some(&self.handle), self.interval.min(left));
            let taken = self.drain();
            self.adapt(taken);
            let now = clocks::monotonic();
            if now >= self.next_second {
                self.each_second(now);
            }
            if let Err(error) = self.writer.seal_due(now) {
                return if error.is_disk_full() { "disk_full" } else { "failed" };
            }
            if woken.ended {
                return "target_exited";
            }
            if woken.signal && self.signalled() {
                return "interrupted";
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                return "duration";
            }
        }
    }

    /// Takes everything that is in the ring. Bounded: a target that makes records as fast as they are taken must not
    /// keep the loop from its other work.
    fn drain(&mut self) -> usize {
        const ROUNDS: usize = 32;
        let mut all = 0;
        for _ in 0..ROUNDS {
            let (assembler, writer) = (&mut self.assembler, &mut self.writer);
            let taken =
                self.probes.drain(BATCH, &mut |record: RawRecord<'_>| assembler.take(&record, writer));
            assembler.settle(clocks::monotonic(), writer);
            all += taken;
            if taken < BATCH {
                break;
            }
        }
        all
    }

    fn adapt(&mut self, taken: usize) {
        if taken > WANTED_RECORDS {
            self.interval = (self.interval / 2).max(SHORTEST);
        } else if taken < WANTED_RECORDS / 4 {
            self.interval = (self.interval * 5 / 4).min(LONGEST);
        }
    }

    fn each_second(&mut self, now: MonoNs) {
        self.next_second = MonoNs(now.0 + SECOND_NS);
        self.writer.push(clocks::sample_realtime());
        self.take_losses(now);
        if let Ok(counts) = self.probes.take_syscall_counts() {
            self.writer.append(counts.iter().map(|(key, value)| syscall_count_row(key, value)).collect());
        }
        let cpu = clocks::own_cpu_ns();
        self.writer.meta_mut().recorder_cpu_ns = cpu;
    }

    fn take_losses(&mut self, now: MonoNs) {
        let Ok(totals) = self.probes.losses() else { return };
        let lost_before = self.ledger.lost_events();
        let mut rows = self.ledger.intervals(&totals, now);
        let malformed = self.probes.malformed();
        if malformed > self.malformed {
            rows.push(Loss {
                source: Text::from("ring.malformed"),
                reason: Text::from("records of an unknown kind or length"),
                pid: None,
                start_ns: rows.first().map_or(MonoNs(now.0 - SECOND_NS), |row| row.start_ns),
                end_ns: now,
                count: (malformed - self.malformed) as i64,
            });
            self.malformed = malformed;
        }
        if self.ledger.lost_events() > lost_before {
            // Giving way has cost events: from now on the recorder takes its share.
            priority::take_share();
        }
        self.writer.append(rows);
        self.writer.meta_mut().losses.extend(self.ledger.totals());
    }

    /// Whether the signals that came end the recording. With a command, they are the command's: the recording ends when
    /// it does.
    fn signalled(&mut self) -> bool {
        let mut ends = false;
        while let Some(caught) = self.signals.next() {
            if self.child.is_none() {
                ends = true;
            } else if !caught.from_terminal {
                self.handle.send(caught.signal);
            }
        }
        ends
    }

    /// Stops the probes, takes what is left, and closes the bundle.
    fn finish(
        mut self,
        ending: &str,
        output: PathBuf,
        notify: &mut dyn FnMut(Notice),
    ) -> Result<Recorded, RecordError> {
        // States first: what ends between this and the stop has a record, and that counts.
        self.probes.stop();
        let ended = clocks::monotonic();
        while self.drain() >= BATCH {}
        let states = self.probes.threads().unwrap_or_default();
        self.assembler.finish(&states, ended, &mut self.writer);
        if let Ok(counts) = self.probes.final_syscall_counts() {
            self.writer.append(counts.iter().map(|(key, value)| syscall_count_row(key, value)).collect());
        }
        self.take_losses(ended);
        self.writer.push(clocks::sample_realtime());
        let misses: u64 = self.probes.recursion_misses().iter().map(|(_, misses)| misses).sum();
        let mut meta = self.writer.meta_mut().clone();
        meta.ended_ns = Some(ended.0);
        ending.clone_into(&mut meta.ended);
        meta.recorder_cpu_ns = clocks::own_cpu_ns();
        meta.losses.insert("probe.recursion".to_owned(), misses);
        let events = self.assembler.events();
        let lost = self.ledger.lost_events() + misses;
        let (meta, failure) = match self.writer.finish(meta.clone()) {
            Ok(meta) => (meta, None),
            Err(error) => (meta, Some(error)),
        };
        priority::take_share();
        let command = match self.child {
            Some(child) => Some(wait_for_command(child, &self.signals, &self.handle, notify)?),
            None => None,
        };
        Ok(Recorded { output, meta, events, lost, command, failure })
    }
}

/// Waits for the command, handing on signals, however long it goes on after the recording.
fn wait_for_command(
    mut child: Child,
    signals: &Signals,
    handle: &ProcessHandle,
    notify: &mut dyn FnMut(Notice),
) -> Result<ExitStatus, RecordError> {
    let failed = |source| RecordError::System { action: "cannot wait for the command", source };
    if let Some(status) = child.try_wait().map_err(failed)? {
        return Ok(status);
    }
    notify(Notice::CommandGoesOn);
    loop {
        let woken = wait(signals, Some(handle), Duration::from_secs(3600));
        while let Some(caught) = signals.next() {
            if !caught.from_terminal {
                handle.send(caught.signal);
            }
        }
        if woken.ended
            && let Some(status) = child.try_wait().map_err(failed)?
        {
            return Ok(status);
        }
    }
}

/// The signal's number, for the exit status of a command that it ended.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128_u8.saturating_add(signal as u8),
        (None, None) => Signal::SIGKILL as u8,
    }
}
