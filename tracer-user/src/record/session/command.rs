//! The command of `gtrace run`, after its recording.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use super::Notice;
use crate::record::error::RecordError;
use crate::record::signals::{ProcessHandle, Signals, wait};

/// Waits for the command, handing on signals, however long it goes on after the recording.
pub fn wait_for_command(
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
        hand_on(signals, handle);
        if woken.ended
            && let Some(status) = child.try_wait().map_err(failed)?
        {
            return Ok(status);
        }
    }
}

/// Hands the signals that came to the command, as if it had been started without gtrace. What the terminal sends goes to
/// the whole foreground group, so the command has it already.
pub fn hand_on(signals: &Signals, handle: &ProcessHandle) {
    while let Some(caught) = signals.next() {
        if !caught.from_terminal {
            handle.send(caught.signal);
        }
    }
}

/// The exit status by which a shell shows how a command ended: 128 and the signal's number if a signal ended it.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128_u8.saturating_add(signal as u8),
        (None, None) => 255,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_read_as_in_a_shell() {
        assert_eq!(exit_code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(exit_code(ExitStatus::from_raw(libc::SIGTERM)), 128 + 15);
    }
}
