//! Exit statuses.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Done.
    Done,
    /// It failed; what and why was said.
    Failed,
    /// Wrong usage: nothing was tried.
    Usage,
    /// Recorded, but incomplete: losses above 0.1 % of the events, or the GPU side never came up.
    Incomplete,
    /// The status of the recorded command, which `gtrace run` hands on (128 + signal number if a signal ended it).
    Command(u8),
}

impl ExitStatus {
    /// The number that the shell sees.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::Command(code) => code,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}
