//! Signals and the end of the recorded process, as things to wait for.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::error::RecordError;
use crate::event::Pid;

/// The signals that end a recording.
pub(super) const CAUGHT: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caught {
    /// Which.
    pub signal: Signal,
    /// It came from the terminal, which sent it to the whole foreground group, so that the recorded command has it too.
    pub from_terminal: bool,
}

/// Catches the signals that end a recording. Made before any other thread, which inherit the mask.
pub struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Catches them from now on.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn catch() -> Result<Self, RecordError> {
        let mut set = SigSet::empty();
        for signal in CAUGHT {
            set.add(signal);
        }
        let before = SigSet::thread_get_mask().map_err(RecordError::system("cannot read the signal mask"))?;
        set.thread_block().map_err(RecordError::system("cannot block signals"))?;
        let descriptor = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(RecordError::system("cannot make a signal descriptor"))?;
        Ok(Self { descriptor, before })
    }

    /// The next signal that came; `None` if there is none.
    #[must_use]
    pub fn next(&self) -> Option<Caught> {
        let info = self.descriptor.read_signal().ok()??;
        let signal = Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()?;
        // SI_KERNEL is above 0; what another process sent (`kill`, `sigqueue`) is at or below it.
        Some(Caught { signal, from_terminal: info.ssi_code > 0 })
    }
}

impl Drop for Signals {
    /// A signal that came while they were caught does not fire now: it did its work, or was the command's.
    fn drop(&mut self) {
        while self.next().is_some() {}
        let _ = self.before.thread_set_mask();
    }
}

/// A process that can be waited for, whoever started it, without a race over its id.
pub struct ProcessHandle {
    descriptor: OwnedFd,
}

impl ProcessHandle {
    /// Opens a process (Linux 5.3).
    ///
    /// # Errors
    /// It is gone.
    pub fn open(pid: Pid) -> Result<Self, RecordError> {
        // SAFETY: takes two integers and returns a descriptor or an error.
        let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.0, 0) };
        if raw < 0 {
            return Err(RecordError::EndedMeanwhile(pid));
        }
        // SAFETY: a descriptor made a moment ago (always close-on-exec) that nobody else has.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(raw as i32) } })
    }

    /// Sends it a signal; one that is gone is left alone.
    pub fn send(&self, signal: Signal) {
        // SAFETY: takes an open descriptor, a signal number, no siginfo and no flags.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.descriptor.as_raw_fd(),
                signal as i32,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            );
        }
    }
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Woken {
    /// A signal is there.
    pub signal: bool,
    /// The process has ended (all its threads; its parent need not have noticed).
    pub ended: bool,
}

/// Waits for a signal, the end of the process, or the time.
#[must_use]
pub fn wait(signals: &Signals, process: Option<&ProcessHandle>, at_most: Duration) -> Woken {
    let mut fds = vec![PollFd::new(signals.descriptor.as_fd(), PollFlags::POLLIN)];
    if let Some(process) = process {
        fds.push(PollFd::new(process.descriptor.as_fd(), PollFlags::POLLIN));
    }
    let timeout = PollTimeout::try_from(at_most).unwrap_or(PollTimeout::MAX);
    // An error (EINTR) is a wait that ended early.
    let _ = poll(&mut fds, timeout);
    let ready = |index: usize| fds.get(index).and_then(PollFd::any).unwrap_or(false);
    Woken { signal: ready(0), ended: ready(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_and_signals_are_seen() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let handle = ProcessHandle::open(Pid(child.id() as i32)).expect("it lives");
        let signals = Signals::catch().expect("signals");
        let short = Duration::from_millis(20);
        assert_eq!(wait(&signals, Some(&handle), short), Woken::default());
        nix::sys::signal::raise(Signal::SIGHUP).expect("sent");
        assert_eq!(wait(&signals, Some(&handle), short), Woken { signal: true, ended: false });
        assert_eq!(signals.next(), Some(Caught { signal: Signal::SIGHUP, from_terminal: false }));
        assert_eq!(signals.next(), None);
        handle.send(Signal::SIGTERM);
        assert!(wait(&signals, Some(&handle), Duration::from_secs(10)).ended);
        child.wait().expect("ours");
        assert!(matches!(ProcessHandle::open(Pid(i32::MAX)), Err(RecordError::EndedMeanwhile(_))));
    }
}
