//! A worker process: does one act for each byte on its standard input, and answers with a byte on its standard output.
//! A pipe in each direction is what a data loader's queues come down to.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::clock::now_ns;
use crate::cpu;
use crate::truth::Truth;

/// A worker as its parent sees it.
pub struct Worker {
    child: Child,
    requests: Option<ChildStdin>,
    answers: ChildStdout,
}

impl Worker {
    /// Starts this program again as `worker` with `arguments`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(arguments: &[&str]) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.arg("worker").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start a worker process")?;
        let (Some(requests), Some(mut answers)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("a worker process has no pipes");
        };
        answers.read_exact(&mut [0]).context("a worker process ended at its start")?;
        Ok(Self { child, requests: Some(requests), answers })
    }

    /// Asks for the act and waits until it is done.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn act(&mut self) -> Result<()> {
        let requests = self.requests.as_mut().context("the worker was told to end")?;
        requests.write_all(&[1]).context("cannot ask the worker")?;
        self.answers.read_exact(&mut [0]).context("the worker ended before its answer")
    }

    /// Tells the worker to end and waits for it.
    ///
    /// # Errors
    /// It failed.
    pub fn end(mut self) -> Result<()> {
        self.requests = None;
        let status = self.child.wait().context("cannot wait for the worker")?;
        if !status.success() {
            bail!("the worker ended with {status}");
        }
        Ok(())
    }
}

/// The worker's own side: `act` for each request, until the parent closes the pipe.
///
/// # Errors
/// The act fails, or the truth cannot be written.
pub fn serve(mut act: impl FnMut(&mut Truth) -> Result<()>) -> Result<()> {
    answer(|truth| {
        cpu::let_them_block();
        act(truth)
    })
}

/// The same, where sleeping is one of the things that are planted: what is slept before an act is planted too.
///
/// # Errors
/// The same.
pub fn serve_settled(mut act: impl FnMut(&mut Truth) -> Result<()>) -> Result<()> {
    answer(|truth| {
        settle(truth);
        act(truth)
    })
}

/// Lets whoever asked reach its wait, and plants that sleep.
pub fn settle(truth: &mut Truth) {
    let start = now_ns();
    cpu::let_them_block();
    truth.planted(start, now_ns(), &["host.sleep"], None);
}

fn answer(mut act: impl FnMut(&mut Truth) -> Result<()>) -> Result<()> {
    // The parent decides when to end, also when a terminal or a script signals the whole group.
    // SAFETY: ignoring a signal has no preconditions.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    cpu::pin(cpu::stage());
    let mut truth = Truth::from_environment();
    let (mut requests, mut answers) = (std::io::stdin().lock(), std::io::stdout().lock());
    answers.write_all(&[0])?;
    answers.flush()?;
    while requests.read(&mut [0])? == 1 {
        act(&mut truth)?;
        answers.write_all(&[1])?;
        answers.flush()?;
    }
    truth.write()
}
