//! What a command has begun to write, and takes away again if a signal ends it.
//!
//! Half a trace file or half an imported recording is of no use, and nobody looks for it under its hidden name. A recording
//! of a program is another matter: [`super::run`] and [`super::attach`] end it in order.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// Everything that is unfinished now.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How often removing is tried: the command may be writing another part meanwhile.
const TRIES: usize = 20;

/// Something unfinished: a file, or a folder with all that is in it. Dropped when it is whole, or removed already.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    /// What is going to be made at `path`. Where there is something already it is not this command's, and stays.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        static WATCH: Once = Once::new();
        WATCH.call_once(watch);
        if path.symlink_metadata().is_ok() {
            return None;
        }
        // A signal comes at any time, and the folder could be left for another.
        let path = std::path::absolute(path).ok()?;
        list().push(path.clone());
        Some(Self { path })
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        list().retain(|path| *path != self.path);
    }
}

fn list() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for signals in a thread of its own: a handler may do next to nothing. Without it (no thread can be made) a signal
/// ends the command as ever, and what it began stays.
fn watch() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT]) else { return };
    let watching = std::thread::Builder::new().name("gtrace-signals".into()).spawn(move || {
        for signal in &mut signals {
            // Held to the end: nothing gets its final name from now on.
            let unfinished = list();
            unfinished.iter().for_each(|path| remove(path));
            // Ends the process as if nobody had caught it, so that a shell sees what happened.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    drop(watching);
}

fn remove(path: &Path) {
    for _ in 0..TRIES {
        let removed = match path.symlink_metadata() {
            Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
            Ok(_) => std::fs::remove_file(path),
            Err(_) => return,
        };
        if removed.is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_before_is_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        assert!(Unfinished::at(dir.path()).is_none());
        let new = Unfinished::at(&dir.path().join("new")).expect("not there yet");
        assert!(list().contains(&dir.path().join("new")));
        drop(new);
        assert!(!list().contains(&dir.path().join("new")));
    }

    #[test]
    fn a_folder_goes_with_what_is_in_it_and_links_are_not_followed() {
        let dir = tempfile::tempdir().expect("a folder");
        let (kept, gone) = (dir.path().join("kept"), dir.path().join("gone"));
        std::fs::create_dir_all(gone.join("inside")).expect("a folder");
        std::fs::write(&kept, "x").expect("a file");
        std::os::unix::fs::symlink(&kept, gone.join("inside/link")).expect("a link");
        remove(&gone);
        assert!(!gone.exists() && kept.exists());
        remove(&gone);
    }
}
