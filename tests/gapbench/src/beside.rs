//! Programs that run beside a recording, or that are recorded from outside.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// A program that said `READY`; it is killed when this is dropped.
pub struct Beside {
    child: Child,
    output: BufReader<ChildStdout>,
    said: String,
}

impl Beside {
    /// Starts a program and waits for the line `READY …`.
    ///
    /// # Errors
    /// It cannot be started, or ends before.
    pub fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().display().to_string();
        let mut child =
            command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {name}"))?;
        let output =
            child.stdout.take().map(BufReader::new).with_context(|| format!("{name} has no output"))?;
        let mut beside = Self { child, output, said: String::new() };
        loop {
            let line = beside.line().with_context(|| format!("{name} ended before it was ready"))?;
            if let Some(said) = line.strip_prefix("READY ") {
                said.clone_into(&mut beside.said);
                return Ok(beside);
            }
        }
    }

    /// What it said after `READY`.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its standard input, if it was piped.
    pub fn input(&mut self) -> Option<&mut std::process::ChildStdin> {
        self.child.stdin.as_mut()
    }

    /// The next line that it prints.
    ///
    /// # Errors
    /// It prints nothing more.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("its output has ended");
        }
        Ok(line.trim_end().to_owned())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: the child is not yet waited for, so its pid is its own.
        unsafe { libc::kill(self.child.id().cast_signed(), signal) };
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        // Nobody reads what it still prints: it must not block on that.
        let _ = std::io::copy(&mut self.output, &mut std::io::sink());
        self.child.wait().context("cannot wait for a child process")
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
