//! Several ranks, each a process with a GPU of its own, that reduce over all of them in every round. One of them comes late
//! for a reason of its own, or all make a new communicator.
//!
//! The first process starts the ranks, as `torchrun` does, and tells them when to end: a rank that ended a round earlier
//! than the others would leave them waiting for ever.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::clock::now_ns;
use crate::cpu;
use crate::gpu::Gpu;
use crate::nccl::{Comm, Nccl, UniqueId};
use crate::scenario::run_queue;
use crate::stage::{self, Options};
use crate::truth::{LATE_RANK, Truth};
use crate::worker::Worker;

/// How long the device works in each round.
const WORK_NS: u64 = 4_000_000;
/// Floats that are reduced.
const FLOATS: usize = 1 << 20;
/// How long the late rank computes after a synchronisation of its own.
const AFTER_SYNC_NS: i64 = 12_000_000;

/// What happens in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// One rank waits for a worker that reads a cold file.
    Read,
    /// One rank waits for a worker that computes.
    Decode,
    /// One rank shares its CPU with another process.
    Contention,
    /// One rank waits for its GPU before it goes on to compute.
    Sync,
    /// All ranks make a communicator.
    Setup,
}

impl Act {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Decode => "decode",
            Self::Contention => "contention",
            Self::Sync => "sync",
            Self::Setup => "setup",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Read, Self::Decode, Self::Contention, Self::Sync, Self::Setup]
            .into_iter()
            .find(|act| act.name() == name)
    }
}

/// What the processes tell each other, in a file that all have mapped.
#[repr(C)]
struct Shared {
    /// No round of this number or a higher one is begun.
    end: AtomicU64,
    /// The highest round that a rank has begun.
    begun: AtomicU64,
}

/// Starts the ranks and waits for them.
pub fn run(options: &Options, act: Act, ranks: usize) -> Result<()> {
    stage::catch_signals();
    let id = Nccl::load()?.unique_id()?.to_hex();
    std::fs::create_dir_all(&options.data)?;
    let path = options.data.join(format!("ranks-{}", std::process::id()));
    std::fs::write(&path, [0; size_of::<Shared>()]).context("cannot write what the ranks share")?;
    let shared = share(&path)?;
    let rounds = if options.rounds == 0 { u64::MAX } else { options.rounds };
    shared.end.store(rounds, Ordering::Release);
    let mut children = Vec::new();
    for rank in 0..ranks {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        if act != Act::Setup && rank == late_rank(ranks) {
            command.env(LATE_RANK, rank.to_string());
        }
        let child = command
            .args(["worker", "rank", act.name(), &rank.to_string(), &ranks.to_string(), &id])
            .args([&options.data, &path])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a rank")?;
        children.push(child);
    }
    let ready = children.iter_mut().try_for_each(ready);
    println!("READY {}", std::process::id());
    let mut failed = ready.is_err();
    while !failed && children.iter_mut().any(|child| matches!(child.try_wait(), Ok(None))) {
        if stage::is_to_stop() && shared.end.load(Ordering::Acquire) == u64::MAX {
            // Far enough ahead that none of them has got there.
            let begun = shared.begun.load(Ordering::Acquire);
            shared.end.store(begun + 20, Ordering::Release);
        }
        failed |= children
            .iter_mut()
            .any(|child| child.try_wait().is_ok_and(|status| status.is_some_and(|status| !status.success())));
        std::thread::sleep(Duration::from_millis(20));
    }
    for child in &mut children {
        if failed {
            // The others would wait for it for ever.
            let _ = child.kill();
        }
        failed |= !child.wait().is_ok_and(|status| status.success());
    }
    let _ = std::fs::remove_file(&path);
    if failed {
        bail!("a rank failed");
    }
    Ok(())
}

/// The one that comes late.
fn late_rank(ranks: usize) -> usize {
    ranks / 2
}

/// Waits until a rank has made its communicator.
fn ready(child: &mut Child) -> Result<()> {
    let output = child.stdout.take().context("a rank has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    if line.is_empty() {
        bail!("a rank ended at its start");
    }
    Ok(())
}

fn share(path: &Path) -> Result<&'static Shared> {
    let file =
        File::options().read(true).write(true).open(path).context("cannot open what the ranks share")?;
    // SAFETY: a new mapping of the file, at a place of the kernel's choice.
    let start = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<Shared>(),
            protection,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        bail!("cannot map what the ranks share");
    }
    // SAFETY: as large as the file, page-aligned, never unmapped, made of atomics.
    Ok(unsafe { &*start.cast::<Shared>() })
}

/// A rank: `act rank ranks id data shared`.
pub fn work(arguments: &[String]) -> Result<()> {
    let [act, rank, ranks, id, data, shared] = arguments else { bail!("a rank needs six arguments") };
    // The first process says when to end.
    stage::ignore_signals();
    let act = Act::named(act).with_context(|| format!("there is no act `{act}`"))?;
    let (rank, ranks): (usize, usize) = (rank.parse()?, ranks.parse()?);
    // Spinning ranks would take the CPUs from the late one. That one never waits beside a competitor: a wake-up onto its
    // CPU would be a wait that nobody can time.
    let late = rank == late_rank(ranks);
    let gpu = Gpu::open_on(rank as i32, !(late && act == Act::Contention))?;
    let nccl = Nccl::load()?;
    let comm = nccl.init(UniqueId::from_hex(id)?, rank, ranks)?;
    let memory = gpu.alloc(FLOATS * 4)?;
    let mut me = Rank {
        act,
        number: rank,
        late,
        gpu,
        nccl,
        comm,
        memory: memory.address(),
        truth: Truth::of_rank(rank),
    };
    let mut worker = match act {
        Act::Read if late => Some(Worker::start(&["cold-read", data])?),
        Act::Decode if late => Some(Worker::start(&["decode"])?),
        _ => None,
    };
    me.gpu.kernel(WORK_NS)?;
    me.reduce()?;
    me.gpu.synchronize()?;
    println!("READY");
    if late && act == Act::Contention {
        cpu::pin(cpu::stage());
    }
    let shared = share(&PathBuf::from(shared))?;
    let mut round = 0;
    while round < shared.end.load(Ordering::Acquire) {
        shared.begun.fetch_max(round, Ordering::AcqRel);
        me.round(round, worker.as_mut())?;
        round += 1;
    }
    // One more, so that the last act ends a gap and not the recording.
    me.gpu.kernel(WORK_NS)?;
    me.reduce()?;
    me.gpu.kernel(WORK_NS)?;
    me.gpu.synchronize()?;
    if let Some(worker) = worker {
        worker.end()?;
    }
    me.truth.write()
}

struct Rank {
    act: Act,
    number: usize,
    late: bool,
    gpu: Gpu,
    nccl: Nccl,
    comm: Comm,
    memory: u64,
    truth: Truth,
}

impl Rank {
    fn reduce(&self) -> Result<()> {
        self.nccl.all_reduce(self.comm, self.memory, FLOATS, self.gpu.stream())
    }

    fn round(&mut self, round: u64, worker: Option<&mut Worker>) -> Result<()> {
        self.gpu.kernel(WORK_NS)?;
        match self.act {
            Act::Read | Act::Decode => {
                if let Some(worker) = worker {
                    if round.is_multiple_of(2) {
                        self.gpu.synchronize()?;
                    }
                    worker.act()?;
                }
            }
            Act::Contention if self.late => {
                run_queue::compute(&mut self.truth);
                // Never waits for its GPU.
                return self.reduce();
            }
            Act::Sync if self.late => {
                self.gpu.synchronize()?;
                let start = now_ns();
                cpu::burn(AFTER_SYNC_NS);
                self.truth.planted(start, now_ns(), &["host.cpu.user"], None);
                self.truth.enabled_by("cuStreamSynchronize");
            }
            Act::Contention | Act::Sync => {}
            Act::Setup => {
                self.gpu.synchronize()?;
                let start = now_ns();
                let new = self.nccl.split(self.comm, self.number)?;
                self.truth.planted(start, now_ns(), &["comm.init"], None);
                self.nccl.destroy(new)?;
            }
        }
        self.reduce()?;
        self.gpu.synchronize()
    }
}
