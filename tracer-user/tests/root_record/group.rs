//! A control group's folder, removed at the end.

use std::path::PathBuf;
use std::time::Duration;

/// Its folder.
pub struct GroupFolder(pub PathBuf);

impl Drop for GroupFolder {
    fn drop(&mut self) {
        // A group can be removed a moment after its last process.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.0).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
