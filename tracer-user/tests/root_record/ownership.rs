//! What `sudo gtrace` writes belongs to who called sudo, and to nobody else.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::gtrace::{expect_status, gtrace, python};

/// A user and a group that are nobody's here.
const CALLER: (u32, u32) = (54_321, 54_322);

fn everything_in(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    found.push(folder.to_owned());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            everything_in(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_recording_belongs_to_the_user_who_called_sudo() {
    let folder = tempfile::tempdir().unwrap();
    // The user can come in, as to a working directory of their own.
    std::os::unix::fs::chown(folder.path(), Some(CALLER.0), Some(CALLER.1)).unwrap();
    let bundle = folder.path().join("own.gtrace");
    let record = |bundle: &Path| {
        let mut command = gtrace();
        command.env("SUDO_UID", CALLER.0.to_string()).env("SUDO_GID", CALLER.1.to_string());
        command.args(["run", "-o"]).arg(bundle).arg("--").arg(python());
        // As wide open as a user may have it.
        // SAFETY: umask is safe to call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::umask(0);
                Ok(())
            });
        }
        command.args(["-c", "import time; time.sleep(0.3)"]).output().unwrap()
    };
    // Analysed and reported, so that `gaps` and `gap_segments` are written anew, too.
    expect_status(&record(&bundle), 0);
    let mut found = Vec::new();
    everything_in(&bundle, &mut found);
    assert!(found.iter().any(|path| path.extension().is_some_and(|kind| kind == "parquet")), "{found:?}");
    for path in &found {
        let metadata = std::fs::symlink_metadata(path).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), CALLER, "{}", path.display());
        assert_eq!(metadata.mode() & 0o077, 0, "{} has mode {:o}", path.display(), metadata.mode());
    }
    assert!(found.iter().any(|path| path.ends_with("meta.json")), "{found:?}");

    // The user reads it; another one does not.
    let copy = folder.path().join("gtrace");
    std::fs::copy(env!("CARGO_BIN_EXE_gtrace"), &copy).unwrap();
    let report = |uid: u32, gid: u32| {
        Command::new(&copy).arg("report").arg(&bundle).uid(uid).gid(gid).output().unwrap()
    };
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    expect_status(&report(CALLER.0, CALLER.1), 0);
    expect_status(&report(65_534, 65_534), 1);

    // It never takes what was there already.
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    expect_status(&record(&other), 2);
    assert_eq!(std::fs::metadata(&other).unwrap().uid(), 0);
}
