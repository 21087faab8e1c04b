//! What can be known to be wrong before anything is loaded or written.

use std::path::Path;

use super::error::RecordError;
use super::procfs;
use crate::event::Pid;

/// Inode of the first pid namespace (`PROC_PID_INIT_INO` in `include/linux/proc_ns.h`): the kernel's own pids are those.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Whether this process may record at all.
///
/// # Errors
/// It is not root, or sees other pids than the kernel.
pub fn check_rights() -> Result<(), RecordError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(RecordError::NotRoot);
    }
    check_pid_namespace()
}

/// Whether this process sees the kernel's own pids, which its records name.
///
/// # Errors
/// It sees others.
pub fn check_pid_namespace() -> Result<(), RecordError> {
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    if !namespace.as_os_str().is_empty() && namespace.as_os_str() != INITIAL_PID_NAMESPACE {
        return Err(RecordError::PidNamespace);
    }
    Ok(())
}

/// Whether a process can be attached to.
///
/// # Errors
/// There is no such process, it is gtrace itself or one of those that started it, it is a thread, it belongs to the
/// kernel, or it has ended already.
pub fn check_target(pid: Pid) -> Result<(), RecordError> {
    if pid.0 <= 0 {
        return Err(RecordError::NoSuchProcess(pid));
    }
    let stat = procfs::stat(pid).ok_or(RecordError::NoSuchProcess(pid))?;
    // `/proc/<tid>` opens for every thread, though only processes are listed.
    if !procfs::threads(pid).contains(&crate::event::Tid(pid.0))
        || thread_group(pid).is_some_and(|group| group != pid)
    {
        return Err(RecordError::IsThread(pid, thread_group(pid).unwrap_or(pid)));
    }
    if stat.kernel {
        return Err(RecordError::KernelThread(pid, stat.comm));
    }
    if matches!(stat.state, b'Z' | b'X') {
        return Err(RecordError::AlreadyEnded(pid));
    }
    let own = Pid(std::process::id() as i32);
    if pid == own {
        return Err(RecordError::OwnProcess(pid));
    }
    if is_ancestor(pid, own) {
        return Err(RecordError::OwnAncestor(pid, stat.comm));
    }
    Ok(())
}

fn thread_group(tid: Pid) -> Option<Pid> {
    let bytes = procfs::read_bounded(format!("/proc/{tid}/status"), 8192).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok().map(Pid)
}

/// Whether `pid` started, directly or not, `of`: its tree would hold the recorder, which would record its own recording.
fn is_ancestor(pid: Pid, of: Pid) -> bool {
    let mut at = of;
    // Longer chains of parents than this are no accident.
    for _ in 0..4096 {
        let Some(stat) = procfs::stat(at) else { return false };
        if stat.parent == pid.0 {
            return true;
        }
        if stat.parent <= 0 {
            return false;
        }
        at = Pid(stat.parent);
    }
    false
}

/// Whether the recording can be made at this place.
///
/// # Errors
/// Something is there already, or the folder that is to hold it is not there or not writable.
pub fn check_output(output: &Path) -> Result<(), RecordError> {
    if std::fs::symlink_metadata(output).is_ok() {
        return Err(RecordError::OutputExists(output.into()));
    }
    let parent = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let unusable = |reason: String| Err(RecordError::OutputFolder { folder: parent.into(), reason });
    match std::fs::metadata(parent) {
        Err(error) => unusable(error.to_string()),
        Ok(found) if !found.is_dir() => unusable("it is no folder".into()),
        // Root may write anywhere but on a file system mounted read-only, and where the file system has its own rules.
        Ok(_) => {
            match nix::unistd::access(parent, nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK)
            {
                Ok(()) => Ok(()),
                Err(error) => unusable(error.desc().to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_targets_are_told_apart() {
        let own = Pid(std::process::id() as i32);
        assert!(matches!(check_target(own), Err(RecordError::OwnProcess(_))));
        let parent = procfs::stat(own).expect("own").parent;
        assert!(matches!(check_target(Pid(parent)), Err(RecordError::OwnAncestor(..))));
        assert!(matches!(check_target(Pid(i32::MAX)), Err(RecordError::NoSuchProcess(_))));
        assert!(matches!(check_target(Pid(0)), Err(RecordError::NoSuchProcess(_))));
        assert!(matches!(check_target(Pid(2)), Err(RecordError::KernelThread(..))));
        let thread = std::thread::spawn(|| {
            let tid = nix::unistd::gettid().as_raw();
            check_target(Pid(tid))
        });
        assert!(
            matches!(thread.join().expect("no panic"), Err(RecordError::IsThread(_, group)) if group == own)
        );
        let mut zombie = std::process::Command::new("true").spawn().expect("true starts");
        let pid = Pid(zombie.id() as i32);
        while procfs::stat(pid).is_some_and(|stat| stat.state != b'Z') {
            std::thread::yield_now();
        }
        assert!(matches!(check_target(pid), Err(RecordError::AlreadyEnded(_))));
        zombie.wait().expect("ours");
    }

    #[test]
    fn an_output_that_is_there_is_not_touched() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(check_output(&folder.path().join("new.gtrace")).is_ok());
        assert!(matches!(check_output(folder.path()), Err(RecordError::OutputExists(_))));
        std::os::unix::fs::symlink("/nowhere", folder.path().join("link")).expect("a link");
        assert!(matches!(check_output(&folder.path().join("link")), Err(RecordError::OutputExists(_))));
        assert!(matches!(check_output(&folder.path().join("no/new")), Err(RecordError::OutputFolder { .. })));
    }
}
