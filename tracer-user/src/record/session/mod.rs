//! A recording from its beginning to its end.
//!
//! One thread drains the kernel's ring and the shims' on a timer (nothing is woken per event), makes rows and hands them
//! to the store, whose own thread writes them. Both are niced: on a machine that is short of CPUs the recorder gives way
//! to what it records, until that would cost events.

mod clients;
mod collect;
mod command;
mod gpu_link;
mod injector;
mod live;
mod name;
mod quotas;
mod silence;

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use tracer_abi::kernel::ThreadState;

use super::assembler::Assembler;
use super::clocks;
use super::describe::describe;
use super::error::RecordError;
use super::launch::{CommandLine, HeldCommand};
use super::preflight;
use super::priority;
use super::probes::{LoadConfig, ProbeError, Probes};
use super::signals::{ProcessHandle, Signals, wait};
use super::stacks::Stacks;
use super::tree::{Follow, SnapshotError, Tree, attach_to};
use crate::event::{MonoNs, Pid, Text, Tid};
use crate::store::schema::Loss;
use crate::store::writer::SealPolicy;
use crate::store::{BundleWriter, Meta, Owner, StoreError};
use gpu_link::GpuLink;
use live::{Parts, Session};
use name::default_output;
use quotas::Quotas;

pub use collect::{Windows, Wish};
pub use command::exit_code;

/// What to record.
#[derive(Clone, Debug)]
pub enum Target {
    /// A running process and all its descendants.
    Attach(Pid),
    /// A command, from its start.
    Run(CommandLine),
}

/// System calls that neither block nor last this long are counted, not written one by one, unless told otherwise.
pub const CALLS_OVER: Duration = Duration::from_micros(10);

/// Stack samples a second on each CPU, unless told otherwise. A prime, so that it does not run in step with programs that do
/// something every so many milliseconds.
pub const STACK_RATE: u32 = 199;

/// How to record it.
#[derive(Clone, Debug)]
pub struct Request {
    /// What.
    pub target: Target,
    /// The bundle's folder; `None`: `NAME-PID-TIME.gtrace` in the working directory.
    pub output: Option<PathBuf>,
    /// Ends the recording.
    pub duration: Option<Duration>,
    /// System calls that neither block nor last this long are counted, not written one by one.
    pub calls_over: Duration,
    /// Stack samples a second on each CPU; 0: none.
    pub stack_rate: u32,
    /// Bring the shim into processes that run already.
    pub inject: bool,
    /// Make the GPU side of the driver's calls alone.
    pub no_cupti: bool,
    /// What is collected of the GPU side.
    pub wish: Wish,
    /// Whom the bundle is given to.
    pub owner: Option<Owner>,
    /// Keep only so much of the recording on disk, its end; `None`: all.
    pub keep: Option<Duration>,
    /// Rows are written when the oldest is that old; `None`: as the store has it.
    pub seal_after: Option<Duration>,
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
    /// The first GPU record came through.
    GpuAttached {
        /// From these processes.
        pids: Vec<i32>,
    },
    /// Less is collected from now on, since the program launches slower than without: the words for it.
    SteppedDown(String),
    /// Another client of CUPTI came into a process (its records are not gtrace's meanwhile), or is gone.
    Client {
        /// The process.
        pid: i32,
        /// Whether it came.
        here: bool,
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
    let mut probes = Probes::load(&LoadConfig {
        fast_syscall_ns: u64::try_from(request.calls_over.as_nanos()).unwrap_or(u64::MAX),
        stack_rate: request.stack_rate,
        ..LoadConfig::default()
    })?;
    // Before a process is tracked: its first samples have Python frames only once the kernel was told of its interpreter.
    let stacks = Stacks::begin(probes.take_stacks());
    let started = clocks::monotonic();
    let clock = clocks::sample_realtime();
    let mut tree = Tree::new(started);
    let without_room = attach_to(&mut tree, &mut probes, root, started).map_err(|error| match error {
        SnapshotError::Ended(pid) => RecordError::EndedMeanwhile(pid),
        SnapshotError::Probes(error) => error.into(),
    })?;
    if wait(&signals, Some(&handle), Duration::ZERO).ended {
        return Err(RecordError::EndedMeanwhile(root));
    }
    // Before the bundle is made: the shims need a moment to begin, too.
    let mut gpu = GpuLink::new(request.wish, request.no_cupti);
    gpu.attach(&tree, request.inject, &mut probes);
    let (processes, threads) = tree.living();
    let found = processes.iter().find(|process| process.pid == root);
    let name = match &request.target {
        Target::Run(line) => {
            Text::from(&*line.words.first().map(|word| word.to_string_lossy()).unwrap_or_default())
        }
        Target::Attach(_) => found.map(|process| process.comm.clone()).unwrap_or_default(),
    };
    let output = request.output.clone().unwrap_or_else(|| default_output(&request.target, &name, root));
    let mut quotas = Quotas::default();
    quotas.watch(&processes);
    let meta = describe(&request.target, root, found, probes.statuses(), started, &clock);
    let missing_probes =
        probes.statuses().iter().filter(|probe| !probe.attached).map(|probe| probe.name.clone()).collect();
    priority::yield_to_others();
    let mut writer = BundleWriter::create_with(&output, meta, request.owner, policy(request))?;
    writer.push(clock);
    if without_room > 0 {
        writer.push(Loss {
            source: Text::from("threads"),
            reason: Text::from(
                "too many threads were blocked at the beginning: some are missing until they first run",
            ),
            pid: None,
            start_ns: started,
            end_ns: clocks::monotonic(),
            count: without_room as i64,
        });
    }
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
    // The time that was asked for is time of recording, not of getting ready.
    let ready = clocks::monotonic();
    let deadline = request.duration.map(|duration| MonoNs(ready.0 + duration.as_nanos() as i64));
    let assembler = Assembler::new(started, tree);
    let mut session = Session::new(
        Parts { probes, assembler, stacks, writer, gpu, signals, handle, child, quotas },
        started,
    );
    let ending = session.run(deadline, notify);
    notify(Notice::Ending(ending));
    session.finish(ending, output, notify)
}

/// How rows are written.
fn policy(request: &Request) -> SealPolicy {
    let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let mut policy = SealPolicy { keep_ns: request.keep.map(ns), ..SealPolicy::default() };
    if let Some(after) = request.seal_after {
        policy.age_ns = ns(after);
    }
    policy
}

fn command_error(line: &CommandLine, source: std::io::Error) -> RecordError {
    let program = line.words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    RecordError::Command { program, source }
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
