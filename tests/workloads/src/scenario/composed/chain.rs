//! A chain of threads and processes at whose end something is done.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};

use super::deed::Doer;
use super::plan::{Deed, Hop, Plan};
use crate::cpu;
use crate::truth::Truth;
use crate::worker::{self, Worker};

/// Which chain of which scenario, and where its files are.
#[derive(Clone, Debug)]
pub struct Job {
    /// The scenario.
    pub seed: u64,
    /// The cause, by its place in the plan.
    pub cause: usize,
    /// Folder for files.
    pub data: PathBuf,
    /// The chain is asked, but nothing is done at its end.
    pub idle: bool,
}

/// A station as the one before it sees it.
pub enum Link {
    /// It is the last one.
    Here(Box<Doer>),
    /// A thread.
    Thread {
        /// Asks it; dropped to tell it to end.
        ask: Sender<()>,
        /// Its answers.
        done: Receiver<()>,
        /// Its end.
        thread: JoinHandle<Result<()>>,
    },
    /// A process.
    Process(Worker),
}

impl Link {
    /// The station after `level` hops.
    ///
    /// # Errors
    /// A thread or process cannot be started, or files cannot be made.
    pub fn new(job: &Job, level: usize) -> Result<Self> {
        let plan = Plan::of_seed(job.seed);
        let cause = plan.causes.get(job.cause).context("the scenario has no such cause")?;
        match cause.hops.get(level) {
            None => Ok(Self::Here(Box::new(Doer::new(job, cause)?))),
            Some(Hop::Thread) => Self::thread(job.clone(), level),
            Some(Hop::Process) => {
                let number = |number: usize| number.to_string();
                let idle = if job.idle { "idle" } else { "act" };
                let data = job.data.to_string_lossy();
                let seed = job.seed.to_string();
                let arguments = ["composed", &data, &seed, &number(job.cause), &number(level), idle];
                Ok(Self::Process(Worker::start(&arguments)?))
            }
        }
    }

    fn thread(job: Job, level: usize) -> Result<Self> {
        let (ask, asked) = channel();
        let (say, done) = channel();
        let thread = std::thread::Builder::new().name(format!("station-{level}"));
        let thread = thread
            .spawn(move || {
                let mut next = Self::new(&job, level + 1)?;
                cpu::pin(cpu::stage());
                let mut truth = Truth::from_environment();
                while asked.recv().is_ok() {
                    worker::settle(&mut truth);
                    next.act(&mut truth)?;
                    if say.send(()).is_err() {
                        break;
                    }
                }
                next.end()?;
                truth.write()
            })
            .context("cannot start a thread")?;
        Ok(Self::Thread { ask, done, thread })
    }

    /// Has it done and waits until it is.
    ///
    /// # Errors
    /// It fails, or the chain has ended.
    pub fn act(&mut self, truth: &mut Truth) -> Result<()> {
        match self {
            Self::Here(doer) => doer.act(truth),
            Self::Thread { ask, done, .. } => {
                ask.send(()).context("a thread of the chain has ended")?;
                done.recv().context("a thread of the chain has ended")
            }
            Self::Process(worker) => worker.act(),
        }
    }

    /// Ends the chain and waits for its end.
    ///
    /// # Errors
    /// A station failed.
    pub fn end(self) -> Result<()> {
        match self {
            Self::Here(_) => Ok(()),
            Self::Thread { ask, thread, .. } => {
                drop(ask);
                thread.join().map_err(|_| anyhow!("a thread of the chain panicked"))?
            }
            Self::Process(worker) => worker.end(),
        }
    }
}

/// A process of a chain: the station after `level` hops is it itself.
///
/// # Errors
/// An argument is wrong, or the chain behind it fails.
pub fn work(arguments: &[String]) -> Result<()> {
    let [data, seed, cause, level, idle] = arguments else {
        anyhow::bail!("a station needs DATA SEED CAUSE LEVEL act|idle");
    };
    let job =
        Job { seed: seed.parse()?, cause: cause.parse()?, data: PathBuf::from(data), idle: idle == "idle" };
    let mut next = Link::new(&job, level.parse::<usize>()? + 1)?;
    worker::serve_settled(|truth| next.act(truth))?;
    next.end()
}

/// Whether the chain's deed is the launching thread's own.
#[must_use]
pub fn is_launchers(deed: Deed) -> bool {
    deed == Deed::Copy
}
