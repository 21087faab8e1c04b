//! Threads that are blocked when recording begins.

use super::process::thread_stat;
use super::read::read_bounded;
use crate::event::{Pid, Tid};

/// A thread that was not on a CPU when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedThread {
    /// `TASK_INTERRUPTIBLE` 1, `TASK_UNINTERRUPTIBLE` 2, stopped 4, traced 8.
    pub off_state: u32,
    /// The system call that it is in, −1 outside one (a page fault).
    pub syscall_nr: i32,
    /// The call's arguments.
    pub args: [u64; 6],
}

/// Looks whether a thread sleeps, and in which system call. `None`: it runs, or is gone.
///
/// State and call are two reads, and the thread may move between them. Whoever uses the answer puts it into the map of
/// threads only if the kernel side has not made an entry of its own (`BPF_NOEXIST`): the thread's process was
/// followed before the first of the reads, so any wake-up, switch or system call since then has made that entry, and
/// the answer is dropped. What is not dropped was true from the read until now.
#[must_use]
pub fn blocked_thread(pid: Pid, tid: Tid) -> Option<BlockedThread> {
    let off_state = match thread_stat(pid, tid)?.state {
        b'S' => 1,
        b'D' => 2,
        b'T' => 4,
        b't' => 8,
        _ => return None,
    };
    let call = read_bounded(format!("/proc/{pid}/task/{tid}/syscall"), 512).ok();
    let (syscall_nr, args) = match call.as_deref().map(parse_syscall) {
        Some(Syscall::In(number, args)) => (number, args),
        Some(Syscall::Running) => return None,
        // Without the right to look into the call, the thread still slept.
        Some(Syscall::Outside) | None => (-1, [0; 6]),
    };
    Some(BlockedThread { off_state, syscall_nr, args })
}

#[derive(Debug, PartialEq, Eq)]
enum Syscall {
    Running,
    Outside,
    In(i32, [u64; 6]),
}

/// `running`, `-1 sp pc`, or `nr a0 … a5 sp pc` with the number in decimal and the rest in hexadecimal
/// (`proc_pid_syscall` in `fs/proc/base.c`).
fn parse_syscall(bytes: &[u8]) -> Syscall {
    let Ok(text) = std::str::from_utf8(bytes) else { return Syscall::Outside };
    let mut words = text.split_ascii_whitespace();
    let number = match words.next() {
        Some("running") => return Syscall::Running,
        Some(word) => word.parse::<i32>().unwrap_or(-1),
        None => -1,
    };
    if number < 0 {
        return Syscall::Outside;
    }
    let mut args = [0; 6];
    for arg in &mut args {
        let Some(word) = words.next().and_then(|word| word.strip_prefix("0x")) else {
            return Syscall::Outside;
        };
        let Ok(value) = u64::from_str_radix(word, 16) else { return Syscall::Outside };
        *arg = value;
    }
    Syscall::In(number, args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms() {
        assert_eq!(parse_syscall(b"running\n"), Syscall::Running);
        assert_eq!(parse_syscall(b"-1 0x7ffc 0x7f06\n"), Syscall::Outside);
        assert_eq!(
            parse_syscall(b"230 0x0 0x1 0x7ffc6798ef60 0x2 0x0 0x9 0x7ffc6798ef48 0x7f0665dd1503\n"),
            Syscall::In(230, [0, 1, 0x7ffc_6798_ef60, 2, 0, 9])
        );
        assert_eq!(parse_syscall(b"230 0x0"), Syscall::Outside);
        assert_eq!(parse_syscall(b""), Syscall::Outside);
    }

    #[test]
    fn a_sleeping_child_is_blocked_in_its_call() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let id = child.id() as i32;
        let found = (0..200).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            blocked_thread(Pid(id), Tid(id)).filter(|blocked| blocked.syscall_nr >= 0)
        });
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        let blocked = found.expect("seen asleep");
        assert_eq!(blocked.off_state, 1);
        let name = crate::record::syscall::name(blocked.syscall_nr);
        assert!(matches!(&*name, "clock_nanosleep" | "nanosleep"), "{name}");
    }
}
