//! Starting the command of `gtrace run`: held before its program until everything is ready to record it.
//!
//! The child is forked, tells its pid and waits; only when the recorder says so does it execute the program. So nothing
//! of the program's life is missed, and if the recorder cannot record, the program never starts. If the recorder dies
//! meanwhile, the child sees the end of the pipe and goes away.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread::JoinHandle;

use nix::sys::signal::SigSet;

use super::signals::CAUGHT;
use crate::event::Pid;

/// What to start.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// The program, looked for on `PATH`, and its arguments.
    pub words: Vec<OsString>,
    /// Variables to set beside the inherited ones.
    pub variables: Vec<(OsString, OsString)>,
}

/// A command that waits before its program.
pub struct HeldCommand {
    pid: Pid,
    go: Option<PipeWriter>,
    starter: Option<JoinHandle<io::Result<Child>>>,
}

impl HeldCommand {
    /// Forks the child and waits for its pid.
    ///
    /// # Errors
    /// It cannot be forked, or there is no command.
    pub fn fork(line: &CommandLine) -> io::Result<Self> {
        let (program, arguments) = line
            .words
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no command is given"))?;
        let mut command = Command::new(program);
        command.args(arguments).envs(line.variables.iter().map(|(name, value)| (name, value)));
        let (mut pid_reader, pid_writer) = io::pipe()?;
        let (go_reader, go_writer) = io::pipe()?;
        hold(&mut command, pid_writer, go_reader, &go_writer);
        // `spawn` returns after the exec, so it waits in a thread of its own. The command, and with it this process's copy
        // of the child's ends, goes with it.
        let starter =
            std::thread::Builder::new().name("gtrace-launch".into()).spawn(move || command.spawn())?;
        let mut pid = [0; 4];
        if let Err(error) = pid_reader.read_exact(&mut pid) {
            // No pid came: the fork failed, and `spawn` says why.
            drop(go_writer);
            return Err(match starter.join() {
                Ok(Err(reason)) => reason,
                _ => error,
            });
        }
        Ok(Self { pid: Pid(i32::from_ne_bytes(pid)), go: Some(go_writer), starter: Some(starter) })
    }

    /// The child's pid.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the child execute its program.
    ///
    /// # Errors
    /// The program cannot be executed (not found, not executable).
    pub fn release(mut self) -> io::Result<Child> {
        if let Some(mut go) = self.go.take() {
            go.write_all(b"g")?;
        }
        self.join()
    }

    fn join(&mut self) -> io::Result<Child> {
        match self.starter.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            _ => Err(io::Error::other("the thread that starts the command ended by itself")),
        }
    }
}

impl Drop for HeldCommand {
    /// Not released: the child ends without having executed anything.
    fn drop(&mut self) {
        self.go = None;
        if self.starter.is_some()
            && let Ok(mut child) = self.join()
        {
            let _ = child.wait();
        }
    }
}

/// Makes the child tell its pid and wait for one byte before it executes.
fn hold(
    command: &mut Command,
    mut pid_writer: PipeWriter,
    mut go_reader: PipeReader,
    go_writer: &PipeWriter,
) {
    // The child has a copy of the writing end, too: as long as it holds it, it would not see the end of the pipe.
    let own_copy = go_writer.as_fd().as_raw_fd();
    // What `Signals` blocks, the child has inherited. Its program must not: Python, for one, ends its worker processes
    // with SIGTERM and then waits for them.
    let caught: SigSet = CAUGHT.into_iter().collect();
    let wait = move || {
        caught.thread_unblock()?;
        // SAFETY: closes the child's copy of a descriptor; nothing in the child uses it.
        unsafe { libc::close(own_copy) };
        pid_writer.write_all(&std::process::id().to_ne_bytes())?;
        let mut byte = [0];
        match go_reader.read(&mut byte)? {
            1 => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::Interrupted)),
        }
    };
    // SAFETY: after the fork of a process with threads only async-signal-safe work is allowed: this does sigprocmask, getpid,
    // close, write and read on descriptors made before, and allocates nothing (errors are made of a kind or an errno).
    unsafe { command.pre_exec(wait) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> CommandLine {
        CommandLine { words: words.iter().map(OsString::from).collect(), variables: Vec::new() }
    }

    #[test]
    fn the_command_blocks_no_signal() {
        let _signals = crate::record::signals::Signals::catch().expect("signals");
        let folder = tempfile::tempdir().expect("a folder");
        let status = folder.path().join("status");
        let copy = line(&["cp", "/proc/self/status", status.to_str().expect("UTF-8")]);
        let mut child = HeldCommand::fork(&copy).expect("forks").release().expect("executes");
        assert!(child.wait().expect("ours").success());
        let status = std::fs::read_to_string(&status).expect("was copied");
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("there is one");
        let blocked = u64::from_str_radix(blocked.trim(), 16).expect("a mask");
        assert_eq!(blocked & (1 << (libc::SIGTERM - 1) | 1 << (libc::SIGINT - 1)), 0, "{blocked:x}");
    }

    #[test]
    fn nothing_is_executed_before_the_release() {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = folder.path().join("mark");
        let touch = line(&["touch", mark.to_str().expect("UTF-8")]);
        let held = HeldCommand::fork(&touch).expect("forks");
        std::thread::sleep(std::time::Duration::from_millis(100));
        let own_program = std::fs::read_link("/proc/self/exe").expect("own");
        let its_program = std::fs::read_link(format!("/proc/{}/exe", held.pid())).expect("it lives");
        assert_eq!(its_program, own_program);
        assert!(!mark.exists());
        let pid = held.pid();
        let mut child = held.release().expect("executes");
        assert_eq!(child.id() as i32, pid.0);
        assert!(child.wait().expect("ours").success());
        assert!(mark.exists());

        let _ = std::fs::remove_file(&mark);
        let held = HeldCommand::fork(&touch).expect("forks");
        let pid = held.pid();
        drop(held);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        assert!(!mark.exists());
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_of_the_release() {
        let held = HeldCommand::fork(&line(&["/no/such/program"])).expect("forks");
        assert_eq!(held.release().map(|_| ()).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
        assert!(HeldCommand::fork(&line(&[])).is_err());
    }

    #[test]
    fn variables_reach_the_program() {
        let mut command = line(&["sh", "-c", "test \"$GTRACE_TEST\" = 'a b'"]);
        command.variables.push(("GTRACE_TEST".into(), "a b".into()));
        let mut child = HeldCommand::fork(&command).expect("forks").release().expect("executes");
        assert!(child.wait().expect("ours").success());
    }
}
